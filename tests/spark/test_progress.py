"""The display of progress, with a stand-in for Spark's status."""

from __future__ import annotations

import io
import sys
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from headgate.spark import progress
from headgate.spark.progress import step, watch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def stages() -> SparkSession:
    """Return a session whose only stage has 3 of 8 tasks done, and is over when asked a second time."""
    answers = iter([[7]])
    tracker = SimpleNamespace(
        getActiveStageIds=lambda: next(answers, []),
        getStageInfo=lambda _stage: SimpleNamespace(numTasks=8, numCompletedTasks=3),
    )
    context = SimpleNamespace(statusTracker=lambda: tracker)
    return cast("SparkSession", SimpleNamespace(sparkContext=context))


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PATIENCE", "_EVERY", "_TERMINAL_PATIENCE", "_TERMINAL_EVERY"):
        monkeypatch.setattr(progress, name, 0.05)


@pytest.mark.usefixtures("impatient")
def test_lines_count_tasks(capsys: pytest.CaptureFixture[str]) -> None:
    with watch(stages(), "matching") as timing:
        time.sleep(0.3)
    lines = capsys.readouterr().err.splitlines()
    assert lines[:2] == ["matching: 3 of 8 tasks, 0 s", "matching: 8 of 8 tasks, 0 s"]
    assert timing.seconds >= 0.3


@pytest.mark.usefixtures("impatient")
def test_a_step_tells_its_time(capsys: pytest.CaptureFixture[str]) -> None:
    with step("reading") as timing:
        time.sleep(0.1)
    assert capsys.readouterr().err.splitlines()[0] == "reading: 0 s"
    assert timing.seconds >= 0.1


def test_quick_work_is_silent(capsys: pytest.CaptureFixture[str]) -> None:
    with step("reading"), watch(stages(), "matching"):
        pass
    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("impatient")
def test_quiet_is_silent(capsys: pytest.CaptureFixture[str]) -> None:
    with step("reading", quiet=True), watch(stages(), "matching", quiet=True) as timing:
        time.sleep(0.1)
    assert capsys.readouterr().err == ""
    assert timing.seconds >= 0.1


@pytest.mark.usefixtures("impatient")
def test_a_broken_session_does_not_hide_the_error(capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> None:
        time.sleep(0.1)
        raise KeyError("the body's own")

    with pytest.raises(KeyError, match="the body's own"), watch(cast("SparkSession", None), "matching"):
        fail()
    assert "matching: 0 s" in capsys.readouterr().err


@pytest.mark.usefixtures("impatient")
def test_a_terminal_gets_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with watch(stages(), "matching"):
        time.sleep(0.6)
    assert "matching" in terminal.getvalue()
    assert "of 8 tasks" in terminal.getvalue()
