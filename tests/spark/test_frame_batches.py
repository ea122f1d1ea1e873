"""Streaming DataFrames with subscriptions that change: pinned versions, one pass, and what is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import functions as sf

import headgate.spark as hg
from headgate import Engine, Subscription
from headgate.errors import SnapshotError, TableError
from tests.spark.files import put_lines
from tests.streaming.world import read_folder

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

SCHEMA = "uuid string, age int, tags map<string, int>, place struct<city: string, seen: map<string, int>>"


class World:
    """A query over a folder, and what it wrote."""

    def __init__(self, spark: SparkSession, root: Path) -> None:
        self.spark, self.root = spark, root
        self.found: dict[int, set[tuple[Any, ...]]] = {}
        self.refused: dict[int, list[tuple[Any, ...]]] = {}
        self.fails = False
        self.read = spark.sparkContext.accumulator(0)
        for name in ("in", "changes"):
            (root / name).mkdir()
        Engine.build([Subscription("old", "age > 30")]).save(root / "snapshot")

    def put(self, number: int, rows: list[tuple[Any, ...]]) -> None:
        """Have events arrive."""
        frame = self.spark.createDataFrame(rows, SCHEMA)
        frame.coalesce(1).write.mode("append").parquet(str(self.root / "in" / f"part={number}"))

    def change(self, name: str, *changes: dict[str, Any]) -> None:
        """Have changes arrive."""
        put_lines(self.root / "changes" / f"{name}.jsonl", list(changes))

    def write(self, matches: DataFrame, refused: DataFrame, batch: int) -> None:
        """Replace what was written of a batch."""
        self.found[batch] = {tuple(row) for row in matches.collect()}
        self.refused[batch] = [tuple(row) for row in refused.collect()]
        if self.fails:
            raise OSError("the table is gone")

    def run(self, checkpoint: str = "checkpoint", **given: Any) -> None:
        """Run the query over what is there."""
        state = given.pop("state", "state")
        batches = hg.each_batch(
            self.root / "changes",
            self.root / "snapshot",
            self.write,
            state=self.root / state,
            id="uuid",
            **given,
        )
        read = self.read

        def count(age: int) -> int:
            read.add(1)
            return age

        counted = sf.udf(count, "int", useArrow=False).asNondeterministic()
        arriving = self.spark.readStream.schema(f"{SCHEMA}, part int").parquet(str(self.root / "in"))
        # Not to be computed twice by leaving it out of one of two plans.
        counting = arriving.withColumn("age", counted("age"))
        writing = counting.writeStream.foreachBatch(batches)
        writing = writing.option("checkpointLocation", str(self.root / checkpoint))
        try:
            writing.trigger(availableNow=True).start().awaitTermination()
        finally:
            batches.close()


def test_versions_are_pinned(spark: SparkSession, tmp_path: Path) -> None:
    """A batch that is done again sees the subscriptions that it saw, whatever has come since."""
    world = World(spark, tmp_path)
    paris = ("Paris", {"x": 1})
    world.put(0, [("u1", 35, {"a": 1}, paris), (None, 40, None, None)])
    world.change("1", {"op": "subscribe", "id": "city", "filter": "place.city = 'Paris'"}, {"op": "fly"})
    world.run(keep=["age"], names={"subscription_id": "alert"})
    assert world.found == {0: {("u1", "old", 35), ("u1", "city", 35)}}
    assert [reason for _, reason, _ in world.refused[0]] == [
        "the event has no id: give the field 'id' as text or a whole number"
    ]
    assert world.refused[0][0][2].startswith('{"uuid": null, "age": 40')
    assert [row["origin"] for row in read_folder(tmp_path / "state" / "rejected-changes")] == ["1.jsonl"]
    assert world.read.value == 2, "both come of one pass"

    world.put(1, [("u2", 10, None, paris)])
    world.fails = True
    with pytest.raises(StreamingQueryException, match="the table is gone"):
        world.run()
    assert world.found[1] == {("u2", "city")}
    # One that names what filters cannot compare finds nothing, and takes nothing from the others.
    world.change(
        "2",
        {"op": "unsubscribe", "id": "city"},
        {"op": "subscribe", "id": "young", "filter": "age < 20 OR tags = 1 OR place.seen = 1"},
    )
    world.fails = False
    world.put(2, [("u3", 12, {"a": 1}, paris)])
    world.run()
    assert world.found[1] == {("u2", "city")}
    assert world.found[2] == {("u3", "young")}


def test_a_state_has_one_query(spark: SparkSession, tmp_path: Path) -> None:
    """With a new checkpoint, numbers of batches mean other rows."""
    world = World(spark, tmp_path)
    world.put(0, [("u1", 35, None, None)])
    world.run()
    with pytest.raises(StreamingQueryException, match="belongs to another query than this one"):
        world.run("other")
    world.run("other", state="other-state")
    # As Spark Connect has it, where the id of a query is not known.
    batches = hg.each_batch(None, tmp_path / "snapshot", world.write, state=tmp_path / "third", id="uuid")
    events = spark.createDataFrame([("u1", 35, None, None)], SCHEMA)
    batches(events, 7)
    batches(events, 7)
    with pytest.raises(TableError, match="batch 6 comes after batch 7"):
        batches(events, 6)
    batches.close()
    assert world.found[7] == {("u1", "old")}


def test_what_is_refused(tmp_path: Path) -> None:
    """Wrong arguments are one line before anything runs."""
    Engine.build([Subscription("old", "age > 30")]).save(tmp_path / "snapshot")
    (tmp_path / "file").touch()

    def ask(
        changes: Any = None, snapshot: Any = tmp_path / "snapshot", write: Any = print, **given: Any
    ) -> Any:
        return hg.each_batch(changes, snapshot, write, **{"state": tmp_path / "state", **given})

    cases: list[tuple[dict[str, Any], str]] = [
        ({"changes": tmp_path / "none"}, "is not a folder: make it"),
        ({"write": "print"}, "write is 'print': give a function"),
        ({"state": tmp_path / "file"}, "is a file, and the state of a stream is a directory"),
        ({"state": "s3://bucket/state"}, "s3://bucket/state"),
        ({"mode": "relaxed"}, "say with k how many are wanted"),
        ({"fold": 0}, "fold is 0: use 1 or more"),
    ]
    for given, words in cases:
        with pytest.raises(TableError, match=words):
            ask(**given)
    with pytest.raises(SnapshotError):
        ask(snapshot=tmp_path / "none")
