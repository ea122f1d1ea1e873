"""What goes wrong while a job runs: it ends right, or says clearly why not, and a second run completes it."""

from __future__ import annotations

import os
import shutil
import signal
import threading
import time
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headgate import Subscription
from headgate.core.snapshot import digest_of
from headgate.errors import SnapshotError, TableError
from headgate.jobs.match import match_events
from headgate.records.index.index import RecordIndex
from headgate.runtime.targets import opened_as
from headgate.spark.matching import _reported
from headgate.spark.runner import SparkRunner
from headgate.workloads.records import advertising
from tests.spark.files import get_table, names, put_lines, put_table
from tests.spark.jobs import compile_subscriptions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from headgate.tables.results import MatchResult

FILTERS, EVENTS = 300, 4_000


@pytest.fixture(scope="module")
def made(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compile some filters, beside a table of events in several files."""
    tmp_path = tmp_path_factory.mktemp("made")
    put_lines(tmp_path / "subs.jsonl", advertising.subscriptions(np.arange(FILTERS), 3).to_pylist())
    compile_subscriptions(
        spark,
        str(tmp_path / "subs.jsonl"),
        str(tmp_path / "snapshot"),
        rejected=str(tmp_path / "no.jsonl"),
        quiet=True,
    )
    (tmp_path / "events").mkdir()
    for number, rows in enumerate(np.array_split(np.arange(EVENTS), 8)):
        pq.write_table(
            pa.Table.from_batches([advertising.events(rows, 3)]), tmp_path / "events" / f"{number}.parquet"
        )
    return tmp_path


@pytest.fixture
def place(made: Path, tmp_path: Path) -> Path:
    """Copy what was compiled, so that a test may damage it."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return tmp_path


def match(spark: SparkSession, place: Path, events: str = "events") -> MatchResult:
    return match_events(
        SparkRunner(spark, quiet=True),
        str(place / "snapshot"),
        str(place / events),
        str(place / "matches.parquet"),
        rejected=str(place / "refused.jsonl"),
    )


def answers(place: Path) -> list[tuple[object, ...]]:
    return sorted(tuple(row.values()) for row in get_table(place / "matches.parquet"))


@cache
def wanted(count: int = EVENTS) -> list[tuple[object, ...]]:
    rows = advertising.subscriptions(np.arange(FILTERS), 3).to_pylist()
    index = RecordIndex.build(Subscription(row["id"], row["filter"]) for row in rows)
    found = index.match_batch(advertising.events(np.arange(count), 3))
    return sorted(tuple(row.values()) for row in found.to_pylist())


def test_columns_that_only_some_files_have_count(spark: SparkSession, tmp_path: Path) -> None:
    put_lines(tmp_path / "subs.jsonl", [{"id": 1, "filter": "age > 3"}, {"id": 2, "filter": "topic = 'art'"}])
    compile_subscriptions(
        spark,
        str(tmp_path / "subs.jsonl"),
        str(tmp_path / "snapshot"),
        rejected=str(tmp_path / "no.jsonl"),
        quiet=True,
    )
    (tmp_path / "events").mkdir()
    put_table(tmp_path / "events" / "a.parquet", [{"id": 1, "age": 5}, {"id": 2, "age": 1}])
    put_table(tmp_path / "events" / "b.parquet", [{"id": 3, "topic": "art", "age": 9, "more": True}])
    put_table(tmp_path / "events" / "c.parquet", [{"id": 4, "topic": "art"}])
    done = match(spark, tmp_path)
    assert (done.events, done.unknown_attributes) == (4, ())
    assert answers(tmp_path) == [(1, 1), (3, 1), (3, 2), (4, 2)]


@pytest.mark.nightly
def test_a_match_that_fails_at_its_end_changes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    """Matches and refused rows are those of before, wherever they are."""
    elsewhere = "viewfs://elsewhere/data"
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001
    hadoop.set("fs.viewfs.mounttable.elsewhere.link./data", f"file://{tmp_path}/far")
    (tmp_path / "far").mkdir()
    put_lines(tmp_path / "e.jsonl", [{"id": 1, "a": 2}, {"a": 2}])
    put_lines(tmp_path / "f.jsonl", [{"id": 1, "a": 2}, {"id": 2, "a": 2}, {"b": 2}])

    def match(events: str, output: str) -> None:
        match_events(
            SparkRunner(spark, quiet=True),
            str(tmp_path / "s"),
            str(tmp_path / events),
            output,
            rejected=str(tmp_path / "r.jsonl"),
            stats=str(tmp_path / "stats.parquet"),
        )

    for output, place in (
        (str(tmp_path / "m.parquet"), tmp_path / "m.parquet"),
        (str(tmp_path / "m.jsonl"), tmp_path / "m.jsonl"),
        (f"{elsewhere}/m.parquet", tmp_path / "far" / "m.parquet"),
    ):
        RecordIndex.build([Subscription(1, "a > 1")]).save(tmp_path / "s")
        match("e.jsonl", output)
        there = [names(tmp_path), names(tmp_path / "far"), get_table(tmp_path / "r.jsonl")]
        assert len(get_table(place)) == 1
        # Statistics are added last, and these are of ids of another type.
        RecordIndex.build([Subscription("x", "a > 1")]).save(tmp_path / "s")
        with pytest.raises(TableError, match="name another file"):
            match("f.jsonl", output)
        assert [names(tmp_path), names(tmp_path / "far"), get_table(tmp_path / "r.jsonl")] == there
        assert len(get_table(place)) == 1
        RecordIndex.build([Subscription(1, "a > 1")]).save(tmp_path / "s")
        match("f.jsonl", output)
        assert len(get_table(place)) == 2
        assert [row["row"] for row in get_table(tmp_path / "r.jsonl")] == ['{"b": 2}']
        assert [names(tmp_path), names(tmp_path / "far")] == there[:2]


@pytest.mark.parametrize("apart", [False, True], ids=["files", "handed"])
def test_a_task_that_is_tried_again_counts_once(
    spark: SparkSession, place: Path, monkeypatch: pytest.MonkeyPatch, apart: bool
) -> None:
    done = place / "failed"

    def reported(*batches: Any, **told: Any) -> Iterator[pa.RecordBatch]:
        """Fail the first time, when all is counted."""
        yield from _reported(*batches, **told)
        if not done.exists():
            done.touch()
            raise OSError("the machine is gone")

    monkeypatch.setattr("headgate.spark.matching._reported", reported)
    if apart:
        monkeypatch.setattr("headgate.spark.matching.sees_files", lambda _: False)
    found = match(spark, place)
    assert done.exists()
    assert (found.events, found.matches) == (EVENTS, len(wanted()))
    assert answers(place) == wanted()


def test_a_column_of_several_types_is_named(spark: SparkSession, place: Path) -> None:
    put_table(place / "events" / "9.parquet", [{"id": "x", "age": "old"}])
    match_before = names(place)
    with pytest.raises(TableError) as refused:
        match(spark, place)
    told = str(refused.value)
    assert "events: column age is " in told
    assert " in 0.parquet and string in 9.parquet: give it one type" in told
    assert "\n" not in told
    assert names(place) == match_before
    (place / "events" / "9.parquet").unlink()
    match(spark, place)
    assert answers(place) == wanted()


@pytest.mark.nightly
def test_one_huge_partition(spark: SparkSession, place: Path) -> None:
    rows = advertising.events(np.arange(EVENTS), 3)
    pq.write_table(pa.Table.from_batches([rows]), place / "one.parquet", row_group_size=EVENTS)
    done = match(spark, place, "one.parquet")
    assert done.events == EVENTS
    assert answers(place) == wanted()


def test_a_file_that_is_cut_short_is_named(spark: SparkSession, place: Path) -> None:
    file = place / "events" / "3.parquet"
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(TableError) as refused:
        match(spark, place)
    assert "3.parquet" in str(refused.value)
    assert "\n" not in str(refused.value)
    assert not (place / "matches.parquet").exists()
    file.write_bytes(whole)
    match(spark, place)
    assert answers(place) == wanted()


@pytest.mark.nightly
def test_damage_inside_a_file_is_told(spark: SparkSession, place: Path) -> None:
    file = place / "events" / "5.parquet"
    whole = file.read_bytes()
    middle = len(whole) // 3
    file.write_bytes(whole[:middle] + bytes(64) + whole[middle + 64 :])
    with pytest.raises(TableError) as refused:
        match(spark, place)
    assert "\n" not in str(refused.value)
    assert not (place / "matches.parquet").exists()
    file.write_bytes(whole)
    match(spark, place)
    assert answers(place) == wanted()


def test_workers_open_the_snapshot_that_was_verified(tmp_path: Path) -> None:
    RecordIndex.build([Subscription(1, "age > 1")]).save(tmp_path / "snapshot")
    before = digest_of(tmp_path / "snapshot")
    path = str(tmp_path / "snapshot")
    assert len(opened_as(path, before, RecordIndex.open)) == 1
    RecordIndex.build([Subscription(2, "age > 1")]).save(tmp_path / "snapshot")
    with pytest.raises(SnapshotError, match="was replaced while it was being used: run the job again"):
        opened_as(path, before, RecordIndex.open)


def test_a_snapshot_that_is_replaced_during_a_job(spark: SparkSession, place: Path) -> None:
    """All answers are of the old one, or the job says that it was replaced; never a mixture."""
    others = [Subscription("other", "age >= 0")]
    before, stop = wanted(), threading.Event()

    def replace() -> None:
        while not stop.is_set():
            RecordIndex.build(others).save(place / "snapshot")
            time.sleep(0.05)

    thread = threading.Timer(0.3, replace)
    thread.start()
    ended = ""
    try:
        match(spark, place)
    except SnapshotError as error:
        ended = str(error)
    finally:
        stop.set()
        thread.join()
    if ended:
        assert "\n" not in ended
    else:
        assert answers(place) in (before, sorted((row["id"], "other") for row in _old_enough(place)))
    done = match(spark, place)
    assert done.events == EVENTS
    assert {subscription for _, subscription in answers(place)} == {"other"}


def _old_enough(place: Path) -> list[dict[str, object]]:
    table = pq.read_table(place / "events", columns=["id", "age"]).to_pylist()
    return [row for row in table if row["age"] is not None and row["age"] >= 0]


def _workers() -> Iterator[int]:
    """List the Python workers of this machine's Spark that are below this process."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes()
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            above = (Path("/proc") / str(parent) / "cmdline").read_bytes()
        except (OSError, ValueError):
            continue
        if b"pyspark.worker" in command and b"pyspark.worker" in above and _is_ours(parent):
            yield int(folder.name)


def _is_ours(process: int) -> bool:
    while process > 1:
        if process == os.getpid():
            return True
        process = int((Path("/proc") / str(process) / "stat").read_text().rpartition(")")[2].split()[1])
    return False


@pytest.mark.nightly
def test_a_worker_that_is_killed_is_replaced(spark: SparkSession, place: Path) -> None:
    match(spark, place)
    expected = answers(place)
    assert expected == wanted()
    killed: list[int] = []
    stop = threading.Event()

    def kill() -> None:
        while not stop.wait(0.05) and len(killed) < 2:
            for process in _workers():
                os.kill(process, signal.SIGKILL)
                killed.append(process)
                break

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        match(spark, place)
    finally:
        stop.set()
        thread.join()
    assert killed, "there was a worker to kill"
    assert answers(place) == expected
    assert not [name for name in names(place / "matches.parquet") if name.startswith(".")]
