"""Explanations on a terminal: no wider than it is, and in colour; and events from files."""

from __future__ import annotations

import fcntl
import gzip
import os
import pty
import re
import struct
import subprocess
import termios
from typing import TYPE_CHECKING

import pytest

from headgate.cli.explaining import fit
from tests.cli.running import HEADGATE
from tests.spark.files import put

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.running import Command

FILTER = "age > 30 AND (topic = 'art' OR topic = 'news' AND price < 5) AND name LIKE '%smith%'"
EVENT = '{"id": 1, "age": 20, "topic": "news", "price": 7, "name": "john"}'
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def on_terminal(columns: int, **more: str) -> str:
    """Run a command whose output is a terminal of some columns."""
    main, other = pty.openpty()
    fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in {"COLUMNS", "NO_COLOR"}}
    command = [HEADGATE, "explain", "--filter", FILTER, "--event", EVENT]
    ran = subprocess.run(command, stdout=other, env={**environment, "TERM": "xterm", **more}, check=False)
    os.close(other)
    assert ran.returncode == 0
    found = b""
    while True:
        try:
            some = os.read(main, 4096)
        except OSError:
            # A terminal that nobody writes to any more.
            break
        if not some:
            break
        found += some
    os.close(main)
    return found.decode().replace("\r\n", "\n")


def test_a_terminal_of_60_columns() -> None:
    """All of it is there, in lines that fit; the words that say how it went have their colours."""
    text = on_terminal(60)
    plain = _COLOUR.sub("", text)
    assert max(map(len, plain.splitlines())) <= 60
    assert "\x1b[32mheld\x1b[0m" in text
    assert "\x1b[31mfailed\x1b[0m" in text
    assert plain.splitlines()[-8:-3] == [
        "  failed  name LIKE '%smith%'",
        '            name = "john" (the text does not fit the',
        "            pattern)",
        "nearest miss: age > 30 AND topic = 'art' AND name LIKE",
        "  '%smith%'",
    ]
    assert plain.splitlines()[-3:] == [
        "indexed by letters of name: name LIKE '%smith%'",
        "verified: age > 30, topic = 'art', topic = 'news', price <",
        "  5, name LIKE '%smith%'",
    ]
    wide = on_terminal(200, NO_COLOR="1")
    assert not _COLOUR.search(wide)
    assert len(wide.splitlines()) == 9
    assert "".join(wide.split()) == "".join(plain.split())


def test_a_pipe_gets_neither(headgate: Command) -> None:
    ran = headgate("explain", "--filter", FILTER, "--event", EVENT)
    assert "\x1b" not in ran.out
    assert max(map(len, ran.out.splitlines())) > 60


@pytest.mark.parametrize(
    "line",
    ["", "short", "  held    " + "x" * 100, "no match: every path from a to b is blocked " + "and " * 20],
)
def test_nothing_is_lost_when_a_line_is_broken(line: str) -> None:
    found = fit(line, 40)
    assert max(map(len, found)) <= 40
    assert "".join("".join(found).split()) == "".join(line.split())


def test_an_event_from_a_file(headgate: Command, tmp_path: Path) -> None:
    """Records and documents, packed or not; a table of several events is refused."""
    (tmp_path / "e.json.gz").write_bytes(gzip.compress(EVENT.encode()))
    (tmp_path / "d.xml.gz").write_bytes(gzip.compress(b"<a><b/></a>"))
    put(tmp_path / "pretty.json", '\ufeff{\n  "age": 35\n}\n')
    put(tmp_path / "two.jsonl", '{"age": 35}\n{"age": 36}\n')
    for words, code, said in (
        (("--filter", "age < 30", "--event", tmp_path / "e.json.gz"), 0, "match\n"),
        (("--filter", "age > 30", "--event", tmp_path / "pretty.json"), 0, "match\n"),
        (("--filter", "//a/b", "--dialect", "xpath", "--event", tmp_path / "d.xml.gz"), 0, "match\n"),
        (("--filter", "age > 30", "--event", tmp_path / "no.json"), 1, "no.json does not exist"),
        (
            ("--filter", "age > 30", "--event", tmp_path / "two.jsonl"),
            1,
            "two.jsonl has 2 lines: give a",
        ),
        (("--filter", "age > 30", "--event", "nonsense"), 1, "not valid JSON"),
    ):
        ran = headgate("explain", *words)
        assert ran.code == code, ran.err
        assert said in (ran.complaint if code else ran.out)
