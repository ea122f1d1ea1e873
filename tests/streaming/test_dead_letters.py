"""Events that are not matched: malformed, late, duplicates, from nowhere, and files that cannot be read."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from headgate import Edge, Engine, Node, Subscription
from tests.streaming.world import World, lines, move

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from headgate.spark.streaming.run import Streamed


def world_of(tmp_path: Path, **more: Any) -> World:
    """Make a stream of records whose every event matches once."""
    world = World(tmp_path, more)
    Engine.build([Subscription("all", "id IS NOT NULL")]).save(world.snapshot)
    return world


def kinds(world: World) -> Counter[str]:
    """Count the dead letters by kind."""
    return Counter(row["kind"] for row in world.dead())


def told(done: Streamed) -> dict[str, int]:
    """Return the counts of dead letters that the run tells."""
    found = {
        "malformed": done.malformed,
        "late": done.late,
        "duplicate": done.duplicate,
        "unknown-source": done.unknown_source,
    }
    return {kind: count for kind, count in found.items() if count}


def test_malformed(spark: SparkSession, tmp_path: Path) -> None:
    """Lines that are no events keep their text and get a reason; the others are matched."""
    world = world_of(tmp_path)
    bad = ["", "{", "[1]", '{"age": 3}', '{"id": 1.5}', '{"id": "a", "x": 1, "X": 2}', "\x00", '"text"']
    world.send("1.jsonl", [*bad, {"id": "good"}, {"id": 7}])
    done = world.run(spark)
    assert world.matches() == {("good", "all"): 1, ("7", "all"): 1}
    dead = world.dead()
    assert [row["row"] for row in dead] == bad[1:]
    assert all(row["reason"] and row["at"] and row["batch"] == 0 for row in dead)
    assert {row["origin"] for row in dead} == {str(world.events / "1.jsonl")}
    assert told(done) == dict(kinds(world)) == {"malformed": 7}


def test_bad_files(spark: SparkSession, tmp_path: Path) -> None:
    """A file that cannot be read is one dead letter with its name, and the stream goes on.

    An empty file holds no event and is passed over.
    """
    world = world_of(tmp_path)
    pq.write_table(pa.table({"id": [1, 2, 3] * 1000}), world.events / "_whole")
    whole = (world.events / "_whole").read_bytes()
    (world.events / "_whole").unlink()
    move(world.events, "a.parquet", b"this is no Parquet")
    move(world.events, "b.parquet", whole[: len(whole) // 2])
    move(world.events, "c.parquet", whole[: len(whole) // 2] + whole[-200:])
    move(world.events, "d.csv", "id\n1\n")
    move(world.events, "e.jsonl", b"\xff\xfe\x00garbage\n" + lines([{"id": "good"}]).encode())
    move(world.events, "f.jsonl", b"")
    done = world.run(spark)
    assert world.matches() == {("good", "all"): 1}
    assert told(done) == {"malformed": 5}
    assert sorted(row["origin"].rpartition("/")[2] for row in world.dead()) == [
        "a.parquet", "b.parquet", "c.parquet", "d.csv", "e.jsonl",
    ]  # fmt: skip
    world.send("g.jsonl", [{"id": "later"}])
    assert world.run(spark).events == 1


def test_schema_drift(spark: SparkSession, tmp_path: Path) -> None:
    """Each file has its own columns and types; a value that no filter can look at is told."""
    world = World(tmp_path)
    Engine.build([Subscription("s", "age > 30"), Subscription("t", "age = 'old'")]).save(world.snapshot)
    tables = [
        pa.table({"id": ["a", "b"], "age": [40, 20]}),
        pa.table({"id": ["c"], "age": [41.5], "more": [["x"]]}),
        pa.table({"id": ["d"]}),
        pa.table({"id": ["e"], "age": pa.array([b"bytes"], pa.binary())}),
        pa.table({"no": ["id"]}),
        pa.table({"ID": [1], "AGE": [77]}),
    ]
    for number, table in enumerate(tables):
        pq.write_table(table, world.events / f"_{number}")
        (world.events / f"_{number}").rename(world.events / f"{number}.parquet")
    world.send("9.jsonl", [{"id": "f", "age": 31}, {"id": "g", "age": [1]}, {"id": "h", "age": {"x": 1}}])
    world.run(spark)
    assert world.matches() == {("a", "s"): 1, ("c", "s"): 1, ("1", "s"): 1, ("f", "s"): 1}
    dead = world.dead()
    assert sorted(row["origin"].rpartition("/")[2] for row in dead) == ["3.parquet", "4.parquet"]


def test_duplicates(spark: SparkSession, tmp_path: Path) -> None:
    """An id counts once: in a file, in two files of a batch, and in a later batch; 7 and "7" are two."""
    world = world_of(tmp_path, finished="keep")
    # The first is the larger one: where Spark makes one part of several files, that is their order.
    others = [{"id": f"x{n}"} for n in range(9)]
    world.send("1.jsonl", [{"id": "a", "n": 1}, {"id": "b", "n": 1}, {"id": "a", "n": 2}, *others])
    world.send("2.jsonl", [{"id": "b", "n": 2}, {"id": 7}, {"id": "7"}])
    done = world.run(spark)
    assert (done.batches, done.events, done.duplicate) == (1, 13, 2)
    assert sorted(row["row"] for row in world.dead()) == ['{"id": "a", "n": 2}', '{"id": "b", "n": 2}']
    world.send("3.jsonl", [{"id": "a", "n": 3}, {"id": "c"}])
    done = world.run(spark)
    assert (done.events, done.duplicate) == (1, 1)
    assert kinds(world) == {"duplicate": 3}
    found = world.matches()
    assert found.total() == 14
    assert found["7", "all"] == 2
    assert max(count for match, count in found.items() if match[0] != "7") == 1


def test_duplicates_over_parts(spark: SparkSession, tmp_path: Path) -> None:
    """Of an id that several parts of a batch have, that of the first file counts, whatever its part."""
    world = world_of(tmp_path)
    pad = "x" * 2_500_000
    for name in "abc":
        world.send(f"{name}.jsonl", [{"id": "same", "from": name}, {"id": name, "pad": pad}, {"id": "same"}])
    done = world.run(spark)
    assert (done.batches, done.events, done.duplicate) == (1, 4, 5)
    assert world.matches() == {(each, "all"): 1 for each in ("same", "a", "b", "c")}
    assert sorted((row["origin"][-7], row["row"]) for row in world.dead()) == [
        ("a", '{"id": "same"}'),
        ("b", '{"id": "same", "from": "b"}'),
        ("b", '{"id": "same"}'),
        ("c", '{"id": "same", "from": "c"}'),
        ("c", '{"id": "same"}'),
    ]


def test_window(spark: SparkSession, tmp_path: Path) -> None:
    """After the window an id is new again; without one, it always is."""
    world = world_of(tmp_path, window=0.0)
    world.send("1.jsonl", [{"id": "a"}, {"id": "a"}])
    assert world.run(spark).duplicate == 1
    record = next((world.state / "batches").iterdir()).read_text()
    assert '"committed"' in record
    world.send("2.jsonl", [{"id": "b"}])
    world.run(spark, window=3600.0)
    world.send("3.jsonl", [{"id": "b"}, {"id": "c"}, {"id": "c"}])
    done = world.run(spark, window=None)
    assert (done.events, done.duplicate) == (3, 0)


def test_late(spark: SparkSession, tmp_path: Path) -> None:
    """An event is late by the newest that was committed before; those without a time never are."""
    world = world_of(tmp_path, lateness=3600.0)
    world.send(
        "1.jsonl",
        [{"id": "old", "time": "2026-05-10T01:00:00Z"}, {"id": "new", "time": "2026-05-10T09:00:00Z"}],
    )
    assert world.run(spark).late == 0
    world.send(
        "2.jsonl",
        [
            {"id": "late", "time": "2026-05-10T07:59:59Z"},
            {"id": "just", "time": "2026-05-10T08:00:00Z"},
            {"id": "zone", "time": "2026-05-10T09:59:00+02:00"},
            {"id": "none"},
            {"id": "odd", "time": 17},
            {"id": "word", "time": "noon"},
            {"id": "next", "time": "2026-05-11T09:00:00"},
        ],
    )
    done = world.run(spark)
    assert (done.events, done.late) == (5, 2)
    assert [row["kind"] for row in world.dead()] == ["late", "late"]
    assert "2026-05-10T07:59:59" in world.dead()[0]["reason"]
    assert "before 2026-05-10T08:00:00" in world.dead()[0]["reason"]
    world.send("3.jsonl", [{"id": "late", "time": "2026-05-10T23:00:00Z"}])
    assert world.run(spark).late == 1


def test_late_documents(spark: SparkSession, tmp_path: Path) -> None:
    """Rows of documents have a time of their own, and one that is none is malformed."""
    world = World(tmp_path, {"lateness": 60.0, "content_type": "xml"})
    Engine.build([Subscription("s", "//a", "xpath")]).save(world.snapshot)
    for name, time in (("1", "2026-05-10T09:00:00Z"), ("2", "2026-05-10T08:00:00Z"), ("3", "noon")):
        world.send(f"{name}.jsonl", [{"id": name, "time": time, "data": "<a/>"}])
        world.run(spark)
    assert world.matches() == {("1", "s"): 1}
    assert kinds(world) == {"late": 1, "malformed": 1}


def test_unknown_source(spark: SparkSession, tmp_path: Path) -> None:
    """With a graph, an event from no node is a dead letter; numbers and text are fitted to the nodes' ids."""
    world = World(tmp_path)
    nodes, edges = [Node(1), Node(2)], [Edge(1, 2)]
    Engine.build([Subscription("s", "age > 3", node=2)], nodes=nodes, edges=edges).save(world.snapshot)
    rows = [{"id": n, "age": 9, "source": source} for n, source in enumerate((1, "1", 3, "x", "01", None))]
    world.send("1.jsonl", [*rows, {"id": 9, "age": 9}])
    done = world.run(spark)
    assert world.matches() == {("0", "s"): 1, ("1", "s"): 1}
    assert told(done) == dict(kinds(world)) == {"unknown-source": 5}


def test_malformed_documents(spark: SparkSession, tmp_path: Path) -> None:
    """Documents that cannot be parsed, or are of another kind, are dead letters."""
    world = World(tmp_path)
    Engine.build([Subscription("s", "//a", "xpath")]).save(world.snapshot)
    rows: list[dict[str, Any]] = [
        {"id": 1, "datacontenttype": "xml", "data": "<a/>"},
        {"id": 2, "datacontenttype": "xml", "data": "<a>"},
        {"id": 3, "datacontenttype": "turtle", "data": "<urn:a> <urn:b> <urn:c> ."},
        {"id": 4, "data": "<a/>"},
        {"id": 5, "datacontenttype": "xml"},
        {"id": 6, "datacontenttype": "xml", "data": 7},
        {"datacontenttype": "xml", "data": "<a/>"},
        {"id": 8, "datacontenttype": "xml", "data": "<a/>", "Data": "<b/>"},
    ]
    world.send("1.jsonl", rows)
    move(world.events, "2.xml", "<a><b></a>")
    move(world.events, "3.xml", "<a/>")
    done = world.run(spark)
    assert world.matches() == {("1", "s"): 1, ("3.xml", "s"): 1}
    assert told(done) == {"malformed": 8}
