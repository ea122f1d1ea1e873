"""Snapshots in an object store, on Spark: workers fetch them by themselves, by address and digest."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

import headgate.spark as hg
from headgate.core.machine import cache_home
from headgate.core.snapshot import manifest_of
from headgate.core.versions.stores import locate
from headgate.jobs.match import match_events
from headgate.spark.runner import SparkRunner
from tests.core.stores import StoreServer
from tests.spark.files import get_lines, put_lines

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def store() -> Iterator[StoreServer]:
    started = StoreServer()
    yield started
    started.stop()


def test_workers_fetch_what_the_driver_compiled(
    spark: SparkSession, store: StoreServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver's cache is gone before they run; a version that is replaced meanwhile is still the one."""
    monkeypatch.setenv("HEADGATE_CACHE", str(tmp_path / "driver"))
    (tmp_path / "changes").mkdir()
    (tmp_path / "changes" / "1.jsonl").write_text("")
    place = store.address("spark")
    subscriptions = spark.createDataFrame([("old", "age > 30"), ("all", "TRUE")], "id string, filter string")
    compiled = hg.compile(subscriptions, place, changes=str(tmp_path / "changes"))
    assert (compiled.path, compiled.subscriptions) == (place, 2)
    version = locate(place)
    assert manifest_of(version.place)["changes"] == {"source": "files", "position": '["1.jsonl"]'}
    matched = hg.match(spark.sql("SELECT id, id * 20 AS age FROM range(3)"), compiled)
    hg.compile(subscriptions.where("id = 'all'"), place)
    shutil.rmtree(tmp_path / "driver")
    try:
        found = {(row["event_id"], row["subscription_id"]) for row in matched.collect()}
    finally:
        # Workers were started with the cache of this user.
        shutil.rmtree(cache_home() / "snapshots" / version.place.name, ignore_errors=True)
    assert found == {(0, "all"), (1, "all"), (2, "all"), (2, "old")}
    assert not (tmp_path / "driver").exists()


@pytest.mark.nightly
def test_the_job_takes_an_address(spark: SparkSession, store: StoreServer, tmp_path: Path) -> None:
    place = store.address("job")
    hg.compile(spark.createDataFrame([(7, "age > 30")], "id long, filter string"), place)
    events = put_lines(tmp_path / "e.jsonl", [{"id": n, "age": n * 20} for n in range(3)])
    output = tmp_path / "m.jsonl"
    done = match_events(
        SparkRunner(spark, quiet=True), place, str(events), str(output), rejected=str(tmp_path / "r.jsonl")
    )
    assert (done.events, done.matches) == (3, 1)
    assert get_lines(output) == [{"event_id": 2, "subscription_id": 7}]
