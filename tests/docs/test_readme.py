"""The README: short, its figures are those of the pages it names, its session with a service runs.

Its Python is run with that of other pages (`test_tutorial.py`).
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.cli.running import Command as Here
from tests.docs.fences import ROOT, agrees, commands, fences
from tests.docs.test_tutorial import run_here

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

README = ROOT / "README.md"
TEXT = README.read_text("utf-8")
MOST_LINES = 150
SERVE = "headgate serve --data data/ &"


def test_it_is_short() -> None:
    assert TEXT.count("\n") <= MOST_LINES


def figures() -> Iterator[tuple[str, str]]:
    """Give each figure of the sections that compare, and the text of the pages that stand beside it."""
    section = TEXT.partition("\n## Headgate or something else\n")[2].partition("\n## More")[0]
    for part in re.findall(r"^\|.*\|$|(?:^[^|\n].*\n)+", section, re.MULTILINE):
        pages = re.findall(r"\]\((docs/(?:benchmarks|algorithms)/\w+\.md)", part)
        beside = "\n".join((ROOT / page).read_text("utf-8") for page in pages)
        prose = re.sub(
            r"\]\([^)]*\)|(?:Table|Figure|section) [\d.]+|^Their machines.*", "", part, flags=re.MULTILINE
        )
        if pages and not part.startswith("-"):
            yield from ((figure, beside) for figure in re.findall(r"\d[\d,]*(?:\.\d+)?", prose))


def test_every_figure_is_on_the_page_beside_it() -> None:
    found = list(figures())
    assert len(found) > 40
    missing = [
        figure
        for figure, page in found
        if not re.search(rf"(?<![\d,.]){re.escape(figure)}(?![\d,]|\.\d)", page)
    ]
    assert missing == []


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Start what the session starts, at a port that nobody has, and tell the commands after it."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path for path in sys.path if path))
    path = f"{ROOT / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"
    command = ["bash", "-c", f"exec {SERVE.removesuffix(' &')} --port 0"]
    with subprocess.Popen(
        command, cwd=tmp_path, env={**os.environ, "PATH": path}, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        told = next(line for line in process.stderr if line.startswith("headgate serves at "))
        monkeypatch.setenv("HEADGATE_URL", told.split()[-1])
        yield
        process.terminate()


@pytest.mark.usefixtures("service")
def test_the_session_with_a_service_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (body,) = (fence.body for fence in fences(README) if fence.language == "console")
    first, *others = commands(body)
    assert (first.text, first.shown) == (SERVE, ())
    here = Here(monkeypatch, capsys)
    for command in others:
        real = run_here(command, tmp_path, here, monkeypatch)
        assert agrees(command.shown, real), f"{command.text}\n" + "\n".join(real)
