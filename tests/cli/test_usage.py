"""Help, versions, wrong usage, and what is refused before Spark starts: none of these may start it."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

import pytest

import headgate as package
from headgate import Subscription
from headgate.records.index.index import RecordIndex
from tests.spark.files import names, put, put_lines

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.running import Command

COMMANDS = ["doctor", "demo", "run", "compile", "match", "backtest", "explain", "generate records"]


@pytest.fixture(autouse=True)
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail if a command comes as far as a session."""
    from headgate.spark.session import session

    def refuse(*_: object, **__: object) -> None:
        pytest.fail("Spark would have started")

    monkeypatch.setattr(session, "open_session", refuse)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a snapshot and tables, and the process in it."""
    RecordIndex.build([Subscription("s", "a = 1")]).save(tmp_path / "snapshot")
    put_lines(tmp_path / "subs.jsonl", [{"id": 1, "filter": "a = 1"}])
    put_lines(tmp_path / "events.jsonl", [{"id": 1, "a": 1}])
    put(tmp_path / "precious" / "letter.txt", "mine")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(headgate: Command, command: str) -> None:
    for option in ("--help", "-h"):
        ran = headgate(*command.split(), option)
        assert (ran.code, ran.err) == (0, "")
        assert re.search(rf"\n  Examples?:\n    headgate {command} ", ran.out)
        assert "--json" in ran.out


def test_the_help_lists_every_command(headgate: Command) -> None:
    ran = headgate("--help")
    assert (ran.code, ran.err) == (0, "")
    assert all(f"  {command.split()[0]} " in ran.out for command in COMMANDS)
    assert headgate("generate", "--help").code == 0


def test_no_command_shows_the_help(headgate: Command) -> None:
    ran = headgate()
    assert ran.code == 2
    assert "\n  Begin with:\n    headgate doctor " in ran.out

    ran = headgate("generate")
    assert ran.code == 2
    assert re.search("\n  records +Generate the advertising workload", ran.out)


def test_the_version(headgate: Command) -> None:
    ran = headgate("--version")
    assert (ran.code, ran.out, ran.err) == (0, f"headgate, version {package.__version__}\n", "")


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ("dmeo", "No such command 'dmeo'"),
        ("--nope", "No such option"),
        (
            "match --nope",
            "No such option '--nope'. (Did you mean one of: '--hops', '--mode', '--top'?) (see",
        ),
        ("compile --output out", "Missing option '--subscriptions', or '--nodes' and '--edges'"),
        ("compile --nodes subs.jsonl --output out", "give both --nodes and --edges"),
        ("compile --edges subs.jsonl --subscriptions subs.jsonl --output out", "give both --nodes and"),
        (
            "compile --subscriptions subs.jsonl --output o --shard-by access",
            "--shard-by goes with --shards",
        ),
        ("compile --subscriptions subs.jsonl --output o --shards 2 --shard-by luck", "'luck' is not one of"),
        (
            "compile --nodes a --edges b --output out --shards 0",
            "'0' is not a number from 1 to 1,000, nor 'auto'",
        ),
        ("compile --subscriptions subs.jsonl", "Missing option '--output'"),
        ("match --snapshot snapshot --events events.jsonl", "Missing option '--output'"),
        ("match stray --snapshot s --events e --output o", "unexpected extra argument"),
        ("backtest --events events.jsonl", "give one of --filter and --changes"),
        ("explain --filter TRUE", "Missing option '--event'"),
        ("explain --event {}", "give --filter, or --snapshot and --subscription"),
        ("explain --event {} --filter TRUE --snapshot snapshot", "give --filter, or --snapshot and"),
        ("explain --event {} --snapshot snapshot", "give --filter, or --snapshot and --subscription"),
        ("generate numbers", "No such command 'numbers'"),
        ("generate records --output out --events many", "is not a valid integer"),
        ("generate records --output out --events -1", "is not in the range"),
        ("generate records --output out --format csv", "is not one of 'jsonl', 'parquet'"),
        ("generate records --output events.jsonl", "is a file"),
        ("demo --subscriptions 0", "is not in the range"),
        ("demo --output subs.jsonl", "is a file"),
        ("warm --copy-to subs.jsonl", "is a file"),
        ("demo --conf nonsense", "--conf nonsense: write NAME=VALUE"),
        ("match --snapshot snapshot --events events.jsonl --output m.jsonl --conf x", "write NAME=VALUE"),
    ],
)
@pytest.mark.usefixtures("files")
def test_wrong_usage_is_one_line_and_2(headgate: Command, arguments: str, part: str) -> None:
    ran = headgate(*arguments.split())
    assert part in ran.complaint
    assert ran.code == 2


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ("compile --subscriptions no.jsonl --output o", "no.jsonl does not exist"),
        ("compile --subscriptions snapshot/manifest.txt --output o", "does not exist"),
        (
            "compile --subscriptions precious/letter.txt --output o",
            "the format of precious/letter.txt is not",
        ),
        ("compile --subscriptions subs.jsonl --output precious", "precious exists and is not a snapshot"),
        ("compile --subscriptions subs.jsonl --output precious/", "exists and is not a snapshot"),
        ("compile --subscriptions subs.jsonl --output .", ". exists and is not a snapshot"),
        ("compile --subscriptions subs.jsonl --output ./", "exists and is not a snapshot"),
        ("compile --subscriptions subs.jsonl --output ..", "exists and is not a snapshot"),
        ("compile --subscriptions subs.jsonl --output /", "exists and is not a snapshot"),
        ("compile --subscriptions subs.jsonl --output subs.jsonl", "is named twice"),
        ("compile --subscriptions subs.jsonl --output o --rejected subs.jsonl", "is named twice"),
        (
            "compile --subscriptions subs.jsonl --output o --rejected precious",
            "the format of precious is not",
        ),
        ("compile --subscriptions subs.jsonl --output o --rejected subs.jsonl/r.csv", "is not a directory"),
        (
            "compile --subscriptions subs.jsonl --output o --schema no.json",
            "no.json cannot be read: No such file",
        ),
        ("compile --subscriptions subs.jsonl --output o --schema subs.jsonl", "attribute id has 1"),
        ("match --snapshot no --events events.jsonl --output m.jsonl", "no is not a snapshot"),
        ("match --snapshot precious --events events.jsonl --output m.jsonl", "precious is not a snapshot"),
        ("match --snapshot snapshot --events no.csv --output m.jsonl", "no.csv does not exist"),
        (
            "match --snapshot snapshot --events events.jsonl --output m.txt",
            "the format of m.txt is not clear",
        ),
        ("match --snapshot snapshot --events events.jsonl --output events.jsonl", "is named twice"),
        (
            "match --snapshot snapshot --events events.jsonl --output ./",
            "is a directory that Headgate did not write",
        ),
        ("backtest --filter TRUE --events no.parquet", "no.parquet does not exist"),
        ("backtest --filter TRUE --events events.jsonl --output precious", "the format of precious is not"),
        ("backtest --filter TRUE --events events.jsonl --output events.jsonl", "is named twice"),
        ("explain --event {bad --filter TRUE", "not valid JSON"),
        ("explain --event [] --filter TRUE", "expected a JSON object, found list"),
        ("explain --event {} --snapshot no --subscription s", "no is not a snapshot"),
        ("explain --event {} --snapshot snapshot --subscription x", "there is no subscription 'x' here"),
        ("demo --output precious", "precious is not empty and not a demo's directory"),
    ],
)
def test_what_is_refused_is_one_line_and_1(headgate: Command, files: Path, arguments: str, part: str) -> None:
    before = names(files)
    ran = headgate(*arguments.split())
    assert part in ran.complaint
    assert ran.code == 1
    assert names(files) == before
    assert names(files / "precious") == ["letter.txt"]


@pytest.mark.usefixtures("files")
def test_a_refused_filter_shows_the_place(headgate: Command) -> None:
    ran = headgate(
        "backtest", "--filter", "age > 30 AND\n (topic LIKE upper('x'))", "--events", "events.jsonl"
    )
    assert ran.code == 1
    assert ", at character 27: …30 AND (topic LIKE ⟪upper('x'))" in ran.complaint


def test_a_damaged_snapshot_is_one_line(headgate: Command, files: Path) -> None:
    for file in sorted((files / "snapshot").iterdir()):
        whole = file.read_bytes()
        for damaged in (whole[:-1], whole[:-1] + bytes([whole[-1] ^ 1]), b""):
            file.write_bytes(damaged)
            ran = headgate(
                "match", "--snapshot", "snapshot/", "--events", "events.jsonl", "--output", "m.jsonl"
            )
            assert ran.code == 1
            assert "snapshot" in ran.complaint
        file.write_bytes(whole)
    assert not (files / "m.jsonl").exists()


def test_a_place_that_cannot_be_written_is_one_line(headgate: Command, files: Path) -> None:
    (files / "nowhere").symlink_to("/proc/no-such-place")
    ran = headgate("demo", "--output", "nowhere/demo")
    assert ran.code == 1
    assert "nowhere: File exists" in ran.complaint


def test_doctor_says_what_it_found(headgate: Command) -> None:
    ran = headgate("doctor")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines()[:2] == ["the library", f"  ok  Python: {sys.version.split()[0]}"]
    assert ran.out.splitlines()[-1] == "what is installed works"
    found = headgate("doctor", "--json").json
    assert found["ok"] is True
    assert {"Python", "pyspark", "Java"} <= {finding["name"] for finding in found["findings"]}


def test_doctor_exits_with_1_where_something_is_missing(
    headgate: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    from headgate.cli import machine as doctor

    monkeypatch.setattr(doctor, "memory", lambda: 2**20)
    ran = headgate("doctor")
    assert ran.code == 1
    assert "  NO  memory: 0.0 GiB, Spark and an index need 2 GiB or more" in ran.out
    assert ran.out.endswith("something is missing, see NO above\n")
    assert headgate("doctor", "--json").json["ok"] is False
