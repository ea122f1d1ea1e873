"""The tutorials are run as they stand, and so are the Python examples of the other pages."""

from __future__ import annotations

import doctest
import io
import os
import shlex
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.cli.running import Command as Here
from tests.docs.fences import ROOT, Command, Fence, agrees, commands, fences
from tests.lanes import some

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TUTORIALS = {
    "docs/tutorial.md": None,
    "docs/tutorial-openrtb.md": "examples/openrtb",
    "docs/tutorial-rdf.md": "examples/rss",
    "docs/tutorial-xml.md": "examples/xml",
}
"""Pages, and the folder that a page tells the reader to copy and go to."""
MOST_SPARK_COMMANDS = 5
_ON_SPARK = tuple(f"headgate {name}" for name in ("compile", "match", "backtest", "plan", "demo", "generate"))


def run(command: Command, folder: Path) -> list[str]:
    """Run one command in a folder with this environment's programs first; stderr joins stdout."""
    path = f"{ROOT / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", command.text],
        cwd=folder,
        env={**os.environ, "PATH": path, "COLUMNS": "80"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    return done.stdout.splitlines()


def run_here(command: Command, folder: Path, here: Here, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Run a `headgate` command in this process, on the Spark that is there; whatever else in a shell."""
    before, bar, text = command.text.replace("\\\n", " ").rpartition(" | headgate ")
    lexer = shlex.shlex(f"headgate {text}" if bar else text, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words = list(lexer)
    told = words[-3:] == [";", "echo", "exit code $?"]
    words = words[:-3] if told else words
    if words[0] != "headgate" or any(set(word) <= set("();<>|&") for word in words if word):
        return run(command, folder)
    if bar:
        given = "".join(f"{line}\n" for line in run(Command(before, ()), folder))
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given.encode()), "utf-8"))
    ran = here(*words[1:])
    lines = (ran.out + ran.err).splitlines()
    return [*lines, f"exit code {ran.code}"] if told else lines


def run_python(fence: Fence, name: str, names: dict[str, object]) -> None:
    """Run a block of `>>>` lines; names live on into the next block."""
    test = doctest.DocTestParser().get_doctest(fence.body, names, name, name, fence.line)
    assert test.examples, f"{name}:{fence.line}: a python block needs '>>> ' lines"
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    runner.run(test, out=report.append, clear_globs=False)
    names.update(test.globs)
    assert not report, "".join(report)


@pytest.mark.nightly
@pytest.mark.spark
@pytest.mark.parametrize("page", TUTORIALS)
def test_tutorial(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As its reader would: every command is a process."""
    if not (ROOT / ".venv" / "bin" / "headgate").exists():
        assert shutil.which("headgate"), "headgate is neither in .venv nor on PATH"
    follow(page, tmp_path, monkeypatch, lambda command: run(command, tmp_path))


@pytest.mark.usefixtures("spark")
# Two of the pages are about records.
@pytest.mark.parametrize("page", some(list(TUTORIALS), 0, 2, 3))
def test_tutorial_on_one_spark(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    here = Here(monkeypatch, capsys)
    follow(page, tmp_path, monkeypatch, lambda command: run_here(command, tmp_path, here, monkeypatch))


def follow(
    page: str, folder: Path, monkeypatch: pytest.MonkeyPatch, run_one: Callable[[Command], list[str]]
) -> None:
    """Do what a tutorial says in a folder, and compare what is shown with what comes."""
    data = TUTORIALS[page]
    if data is not None:
        shutil.copytree(ROOT / data, folder, dirs_exist_ok=True)
    monkeypatch.chdir(folder)
    names: dict[str, object] = {}
    for fence in fences(ROOT / page):
        if fence.language == "console":
            for command in commands(fence.body):
                real = run_one(command)
                assert agrees(command.shown, real), (
                    f"{page}, line {fence.line}: {command.text}\nshown:\n"
                    + "\n".join(command.shown)
                    + "\nreal:\n"
                    + "\n".join(real)
                )
        elif fence.language == "python":
            run_python(fence, page, names)


@pytest.mark.parametrize("page", TUTORIALS)
def test_tutorial_is_quick(page: str) -> None:
    texts = [
        command.text
        for fence in fences(ROOT / page)
        if fence.language == "console"
        for command in commands(fence.body)
    ]
    on_spark = [text for text in texts if any(word in text for word in _ON_SPARK) and "--help" not in text]
    assert 0 < len(on_spark) <= MOST_SPARK_COMMANDS


@pytest.mark.parametrize(
    "page",
    [
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "docs/engine.md",
        "docs/graph.md",
        "docs/language.md",
        "docs/live.md",
        "docs/plan.md",
        "docs/ranking.md",
        "docs/rdf-events.md",
        "docs/xml-events.md",
        # The parts of these that need no command. The others, which start Spark, are for the nightly lane.
        "docs/tutorial-rdf.md",
        "docs/tutorial-xml.md",
    ],
)
def test_python_of_other_pages(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_page(page, tmp_path, monkeypatch)


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("page", ["README.md", "docs/dataframes.md"])
def test_python_of_pages_with_spark(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_page(page, tmp_path, monkeypatch)


def run_page(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the blocks of Python one after the other."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for fence in fences(ROOT / page):
        if fence.language == "python":
            run_python(fence, page, names)
