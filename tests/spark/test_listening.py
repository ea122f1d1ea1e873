"""A real listener on a real bus: what it hears, what it leaves alone, and that it goes away."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as sf

from headgate.runtime.stages import StageRun, TaskRun
from headgate.spark.session.listeners import SparkActivity, listening, metering
from headgate.stream.metrics import Metrics

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import SparkSession


def bus(spark: SparkSession) -> Any:
    return getattr(spark.sparkContext, "_jsc").sc().listenerBus()  # noqa: B009 -- no public name


def slow_third(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        # Work, not a wait: the third task takes longer than the others.
        until = time.monotonic() + (1.5 if 200 in batch.column(0).to_pylist() else 0.05)
        while time.monotonic() < until:
            sum(range(1000))
        yield batch


def test_it_hears_every_task_of_every_stage(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(0, 1000, 1, 10).write.parquet(str(tmp_path / "in"))
    began = time.time()
    with listening(spark) as activity:
        spark.sparkContext.setJobDescription("counting")
        table = spark.read.parquet(str(tmp_path / "in")).selectExpr("id % 7 AS k")
        assert table.groupBy("k").count().count() == 7
        spark.sparkContext.setJobDescription("writing")
        spark.range(0, 500, 1, 4).write.parquet(str(tmp_path / "out"))
        spark.sparkContext.setJobDescription("")
    ended = time.time()
    assert activity.troubles == ()
    by = {
        title: [each for each in activity.stages if each.title == title] for title in ("counting", "writing")
    }
    assert len(activity.stages) == len(by["counting"]) + len(by["writing"])
    for stage in activity.stages:
        assert (len(stage.tasks), stage.failure, stage.missing) == (stage.planned, None, 0)
        assert began - 0.01 <= stage.start <= stage.start + stage.seconds <= ended + 0.01
        for task in stage.tasks:
            assert (task.executor, task.failure) == ("driver", None)
            assert stage.start <= task.start
            assert 0 <= task.run_seconds <= task.seconds + 0.01
    # The first of them only looks at the footers.
    assert max(sum(task.rows for task in stage.tasks) for stage in by["counting"]) == 1000
    (written,) = by["writing"]
    assert len(written.tasks) == 4


@pytest.mark.nightly
def test_skew_is_the_slowest_over_the_middle(spark: SparkSession) -> None:
    table = spark.range(0, 500, 1, 5).mapInArrow(slow_third, "id long")
    # Once before, so that no task is the one that must start a worker.
    table.collect()
    with listening(spark) as activity:
        table.collect()
    (stage,) = activity.stages
    assert stage.slowest is not None
    assert stage.slowest.index == 2
    assert stage.skew is not None
    assert stage.skew == stage.slowest.seconds / stage.median_seconds > 1.5


def test_it_goes_away_and_a_second_one_hears_no_less(spark: SparkSession) -> None:
    with listening(spark) as first:
        with listening(spark) as second:
            spark.range(10).count()
        seen = second.stages
        spark.range(10).count()
    assert len(first.stages) > len(second.stages) == len(seen) > 0
    spark.range(10).count()
    bus(spark).waitUntilEmpty(10_000)
    assert second.stages == seen
    assert len(first.stages) == 2 * len(seen)


def test_failures_are_heard_with_their_reasons(spark: SparkSession) -> None:
    def fail(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if 3 in batch.column(0).to_pylist():
                raise ValueError("three is too many")
            yield batch

    with pytest.raises(Exception, match="three is too many"), listening(spark) as activity:
        spark.range(0, 4, 1, 2).mapInArrow(fail, "id long").collect()
    (stage,) = activity.stages
    failed = [task for task in stage.tasks if task.failure]
    assert len(failed) >= 1
    assert {task.failure for task in failed} == {"ValueError: three is too many"}
    assert stage.failure is not None
    assert "three is too many" in stage.failure


def test_an_error_of_the_listener_is_told_and_breaks_nothing(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(_self: SparkActivity, event: dict[str, Any]) -> None:
        raise KeyError(event["Event"])

    with monkeypatch.context() as patch:
        patch.setattr(SparkActivity, "take", broken)
        with listening(spark) as activity:
            assert spark.range(100).count() == 100
    assert "an event could not be read: KeyError: 'SparkListenerStageSubmitted'" in activity.troubles
    told = capsys.readouterr().err
    assert told.startswith("listening to Spark: an event could not be read: KeyError")
    assert told.count("\n") == 1
    assert activity.stages == ()


def test_tasks_that_were_not_heard_are_told() -> None:
    task = TaskRun("1", 0.0, 1.0)
    stage = StageRun("s", 0.0, 5.0, (task, replace(task, number=1)), planned=3)
    assert stage.missing == 2
    assert replace(stage, failure="x").missing == 0
    assert StageRun("s", 0.0).seconds == 0
    assert replace(stage, tasks=()).skew is None


def test_what_was_heard_becomes_metrics(spark: SparkSession) -> None:
    metrics = Metrics()
    with listening(spark) as activity:
        spark.range(0, 100, 1, 3).write.format("noop").mode("overwrite").save()
    activity.count(metrics)
    assert metrics.value("headgate_tasks_total", status="done") == 3
    assert "headgate_task_seconds_count 3\n" in metrics.text()
    assert "headgate_stage_skew{" in metrics.text()


def test_a_stream_feeds_metrics(spark: SparkSession, tmp_path: Path) -> None:
    metrics = Metrics()
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("x\n" * 40, encoding="utf-8")
    with metering(spark, metrics) as meter:
        table = spark.readStream.text(str(tmp_path / "in")).observe("seen", sf.count(sf.lit(1)).alias("rows"))
        writer = table.writeStream.format("noop").trigger(availableNow=True)
        query = writer.option("checkpointLocation", str(tmp_path / "state")).start()
        assert query.awaitTermination(120)
        bus(spark).waitUntilEmpty(10_000)
        assert meter.batches >= 1
        assert metrics.value("headgate_observed", name="seen.rows") == 40
        assert metrics.value("headgate_phase_seconds", phase="triggerExecution") > 0
    assert meter.troubles == []
