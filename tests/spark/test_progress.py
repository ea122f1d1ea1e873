"""The display of progress, over real tasks of a real Spark."""

from __future__ import annotations

import io
import re
import sys
import time
from typing import TYPE_CHECKING, cast

import pytest

from headgate.runtime import progress
from headgate.runtime.progress import Tasks, left, step
from headgate.spark.session.listeners import listening
from headgate.spark.session.progress import watch

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def at_leisure(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Work for a while, so that there is something to be seen."""
    for batch in batches:
        until = time.monotonic() + 0.12
        while time.monotonic() < until:
            sum(range(1000))
        yield batch


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PATIENCE", "_EVERY", "_TERMINAL_PATIENCE", "_TERMINAL_EVERY"):
        monkeypatch.setattr(progress, name, 0.05)
    monkeypatch.setattr(progress, "_ENOUGH_SECONDS", 0.1)


@pytest.fixture
def slow(spark: SparkSession, tmp_path: Path) -> DataFrame:
    """Make a table of 800 rows in 8 files, each a task of some time."""
    spark.conf.set("spark.sql.files.openCostInBytes", "4m")
    spark.range(0, 800, 1, 8).write.parquet(str(tmp_path / "table"))
    table = spark.read.parquet(str(tmp_path / "table")).mapInArrow(at_leisure, "id long")
    table.limit(1).collect()
    spark.conf.unset("spark.sql.files.openCostInBytes")
    return table


@pytest.mark.usefixtures("impatient")
def test_lines_count_tasks_and_rows_and_reckon_the_rest(
    spark: SparkSession, slow: DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    with watch(spark, "matching", rows=800, noun="events") as timing:
        slow.collect()
    lines = capsys.readouterr().err.splitlines()
    assert all(line.startswith("matching: ") for line in lines)
    told = re.compile(
        r"matching: (\d) of (\d) tasks, [\d,]+ events a second, \d+ s(, about \d+ s left)?", re.ASCII
    )
    found = [match for match in map(told.fullmatch, lines) if match]
    assert found, lines
    done = [int(match[1]) for match in found]
    assert done == sorted(done)
    assert any(match[3] for match in found)
    assert timing.seconds >= 0.3


@pytest.mark.usefixtures("impatient")
def test_a_terminal_gets_a_bar(spark: SparkSession, slow: DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "160")
    with watch(spark, "matching"):
        slow.collect()
    shown = re.sub(r"\x1b\[[0-9;?]*\w", "", terminal.getvalue())
    assert re.search(r"matching .* \d of \d tasks", shown)
    assert re.search(r"\d of \d tasks, [\d,]+ rows a second", shown)
    assert re.search(r"about \d+ s left", shown)


def test_jobs_bear_the_title(spark: SparkSession) -> None:
    with listening(spark) as activity:
        with watch(spark, "outer"):
            with watch(spark, "inner", quiet=True):
                spark.range(5).collect()
            spark.range(5).collect()
        spark.range(5).collect()
    assert [stage.title for stage in activity.stages] == ["inner", "outer", ""]


@pytest.mark.usefixtures("impatient")
def test_a_step_tells_its_time(capsys: pytest.CaptureFixture[str]) -> None:
    with step("reading") as timing:
        time.sleep(0.1)
    assert capsys.readouterr().err.splitlines()[0] == "reading: 0 s"
    assert timing.seconds >= 0.1


def test_quick_work_is_silent(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    with step("reading"), watch(spark, "matching"):
        pass
    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("impatient")
def test_quiet_is_silent(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    with step("reading", quiet=True), watch(spark, "matching", quiet=True) as timing:
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


def test_the_rest_is_reckoned_only_from_something() -> None:
    assert left(Tasks(0, 8), 100) is None
    assert left(Tasks(4, 8), 100) == 100
    # More rows than were said: tasks are the better guess.
    assert left(Tasks(4, 8, 1000), 100, rows=900) == 100
