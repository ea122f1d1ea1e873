"""Events that are not matched: malformed, late, duplicates, from nowhere, and files that cannot be read."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from headgate import Edge, Engine, Node, Subscription
from tests.spark.rdf_cases import too_much
from tests.streaming.world import World, lines, move

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from headgate.stream.reporting import StreamResult


def world_of(tmp_path: Path, **more: Any) -> World:
    """Make a stream of records whose every event matches once."""
    world = World(tmp_path, more)
    Engine.build([Subscription("all", "id IS NOT NULL")]).save(world.snapshot)
    return world


def kinds(world: World) -> Counter[str]:
    """Count the dead letters by kind."""
    return Counter(row["kind"] for row in world.dead())


def told(done: StreamResult) -> dict[str, int]:
    """Return the counts of dead letters that the run tells."""
    found = {
        "malformed": done.malformed,
        "late": done.late,
        "duplicate": done.duplicate,
        "unknown-source": done.unknown_source,
        "left-out": done.left_out,
    }
    return {kind: count for kind, count in found.items() if count}


MALFORMED = ["", "{", "[1]", '{"age": 3}', '{"id": 1.5}', '{"id": "a", "x": 1, "X": 2}', "\x00", '"text"']


def send_malformed(world: World) -> None:
    """Send lines that are not events among others."""
    world.send("lines.jsonl", [*MALFORMED, {"id": "good"}, {"id": 77}])


def send_bad_files(world: World) -> None:
    """Send files that cannot be read, and one that holds nothing."""
    pq.write_table(pa.table({"id": [1, 2, 3] * 1000}), world.events / "_whole")
    whole = (world.events / "_whole").read_bytes()
    (world.events / "_whole").unlink()
    move(world.events, "bad-a.parquet", b"this is no Parquet")
    move(world.events, "bad-b.parquet", whole[: len(whole) // 2])
    move(world.events, "bad-c.parquet", whole[: len(whole) // 2] + whole[-200:])
    move(world.events, "bad-d.txt", "id\n1\n")
    move(world.events, "bad-e.jsonl", b"\xff\xfe\x00garbage\n" + lines([{"id": "sound"}]).encode())
    move(world.events, "bad-f.jsonl", b"")


def send_drifting(world: World) -> None:
    """Send files that have columns and types of their own."""
    tables = [
        pa.table({"id": ["da", "db"], "age": [40, 20]}),
        pa.table({"id": ["dc"], "age": [41.5], "more": [["x"]]}),
        pa.table({"id": ["dd"]}),
        pa.table({"id": ["de"], "age": pa.array([b"bytes"], pa.binary())}),
        pa.table({"no": ["id"]}),
        pa.table({"ID": [1], "AGE": [77]}),
    ]
    for number, table in enumerate(tables):
        pq.write_table(table, world.events / f"_{number}")
        (world.events / f"_{number}").rename(world.events / f"drift-{number}.parquet")
    rows: list[dict[str, Any]] = [
        {"id": "df", "age": 31},
        {"id": "dg", "age": [1]},
        {"id": "dh", "age": {"x": 1}},
    ]
    world.send("drift-9.jsonl", rows)


def send_repeated(world: World) -> None:
    """Send ids twice, in a file and in two; 7 and "7" are two."""
    # The first is the larger one: where Spark makes one part of several files, that is their order.
    others = [{"id": f"x{n}"} for n in range(9)]
    world.send("twice-1.jsonl", [{"id": "a", "n": 1}, {"id": "b", "n": 1}, {"id": "a", "n": 2}, *others])
    world.send("twice-2.jsonl", [{"id": "b", "n": 2}, {"id": 7}, {"id": "7"}])


def test_one_batch_of_records(session: SparkSession | None, tmp_path: Path) -> None:
    """Whatever may be wrong with lines and files of records, each in files of its own of one batch."""
    world = World(tmp_path, {"finished": "keep"})
    given = [Subscription("all", "id IS NOT NULL"), Subscription("s", "age > 30")]
    Engine.build([*given, Subscription("t", "age = 'old'")]).save(world.snapshot)
    for send in (send_malformed, send_bad_files, send_drifting, send_repeated):
        send(world)
    done = world.run(session)
    assert (done.batches, done.events) == (1, 2 + 1 + 8 + 13)
    assert told(done) == dict(kinds(world)) == {"malformed": 7 + 5 + 2, "duplicate": 2}
    found = world.matches()
    ids = Counter(match[0] for match in found.elements() if match[1] == "all")
    dead: dict[str, list[dict[str, Any]]] = {"lines": [], "bad": [], "drift": [], "twice": []}
    for row in world.dead():
        assert row["reason"]
        assert row["at"]
        assert row["batch"] == 0
        dead[row["origin"].rpartition("/")[2].partition(".")[0].partition("-")[0]].append(row)
    # Lines that are no events keep their text and get a reason; the others are matched.
    assert (ids["good"], ids["77"]) == (1, 1)
    assert [row["row"] for row in dead["lines"]] == MALFORMED[1:]
    assert {row["origin"] for row in dead["lines"]} == {str(world.events / "lines.jsonl")}
    # A file that cannot be read is one dead letter with its name. An empty one is passed over.
    assert ids["sound"] == 1
    assert sorted(row["origin"].rpartition("/")[2] for row in dead["bad"]) == [
        "bad-a.parquet", "bad-b.parquet", "bad-c.parquet", "bad-d.txt", "bad-e.jsonl",
    ]  # fmt: skip
    # Each file has its own columns and types; a value that no filter can look at is told.
    by_age = {match: count for match, count in found.items() if match[1] != "all"}
    assert by_age == {("da", "s"): 1, ("dc", "s"): 1, ("1", "s"): 1, ("df", "s"): 1}
    assert sorted(row["origin"].rpartition("/")[2] for row in dead["drift"]) == [
        "drift-3.parquet", "drift-4.parquet",
    ]  # fmt: skip
    # An id counts once, in a file and in two files of a batch.
    assert {row["kind"] for row in dead["twice"]} == {"duplicate"}
    assert sorted(row["row"] for row in dead["twice"]) == ['{"id": "a", "n": 2}', '{"id": "b", "n": 2}']
    # The stream goes on, and an id of an earlier batch is a duplicate, too.
    world.send("twice-3.jsonl", [{"id": "a", "n": 3}, {"id": "c"}])
    world.send("later.jsonl", [{"id": "later"}])
    done = world.run(session)
    assert (done.events, done.duplicate, done.malformed) == (2, 1, 0)
    assert kinds(world) == {"malformed": 14, "duplicate": 3}
    ids = Counter(match[0] for match in world.matches().elements() if match[1] == "all")
    assert ids.total() == 24 + 2
    assert ids["7"] == 2
    assert max(count for each, count in ids.items() if each != "7") == 1


def test_duplicates_over_parts(session: SparkSession | None, tmp_path: Path) -> None:
    """Of an id that several parts of a batch have, that of the first file counts, whatever its part."""
    world = world_of(tmp_path)
    pad = "x" * 2_500_000
    for name in "abc":
        world.send(f"{name}.jsonl", [{"id": "same", "from": name}, {"id": name, "pad": pad}, {"id": "same"}])
    done = world.run(session)
    assert (done.batches, done.events, done.duplicate) == (1, 4, 5)
    assert world.matches() == {(each, "all"): 1 for each in ("same", "a", "b", "c")}
    assert sorted((row["origin"][-7], row["row"]) for row in world.dead()) == [
        ("a", '{"id": "same"}'),
        ("b", '{"id": "same", "from": "b"}'),
        ("b", '{"id": "same"}'),
        ("c", '{"id": "same", "from": "c"}'),
        ("c", '{"id": "same"}'),
    ]


def test_window(tmp_path: Path) -> None:
    """After the window an id is new again; without one, it always is."""
    world = world_of(tmp_path, window=1e-3)
    world.send("1.jsonl", [{"id": "a"}, {"id": "a"}])
    assert world.run().duplicate == 1
    record = next((world.state / "batches").iterdir()).read_text()
    assert '"committed"' in record
    world.send("2.jsonl", [{"id": "b"}])
    world.run(window=3600.0)
    world.send("3.jsonl", [{"id": "b"}, {"id": "c"}, {"id": "c"}])
    done = world.run(window=None)
    assert (done.events, done.duplicate) == (3, 0)


def test_late(tmp_path: Path) -> None:
    """An event is late by the newest that was committed before; those without a time never are."""
    world = world_of(tmp_path, lateness=3600.0)
    world.send(
        "1.jsonl",
        [{"id": "old", "time": "2026-05-10T01:00:00Z"}, {"id": "new", "time": "2026-05-10T09:00:00Z"}],
    )
    assert world.run().late == 0
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
    done = world.run()
    assert (done.events, done.late) == (5, 2)
    assert [row["kind"] for row in world.dead()] == ["late", "late"]
    assert "2026-05-10T07:59:59" in world.dead()[0]["reason"]
    assert "before 2026-05-10T08:00:00" in world.dead()[0]["reason"]
    world.send("3.jsonl", [{"id": "late", "time": "2026-05-10T23:00:00Z"}])
    assert world.run().late == 1


def test_late_documents(tmp_path: Path) -> None:
    """Rows of documents have a time of their own, and one that is none is malformed."""
    world = World(tmp_path, {"lateness": 60.0, "content_type": "xml"})
    Engine.build([Subscription("s", "//a", "xpath")]).save(world.snapshot)
    world.send("1.jsonl", [{"id": "1", "time": "2026-05-10T09:00:00Z", "data": "<a/>"}])
    world.run()
    for name, time in (("2", "2026-05-10T08:00:00Z"), ("3", "noon")):
        world.send(f"{name}.jsonl", [{"id": name, "time": time, "data": "<a/>"}])
    world.run()
    assert world.matches() == {("1", "s"): 1}
    assert kinds(world) == {"late": 1, "malformed": 1}


def test_unknown_source(tmp_path: Path) -> None:
    """With a graph, an event from no node is a dead letter; numbers and text are fitted to the nodes' ids."""
    world = World(tmp_path)
    nodes, edges = [Node(1), Node(2)], [Edge(1, 2)]
    Engine.build([Subscription("s", "age > 3", node=2)], nodes=nodes, edges=edges).save(world.snapshot)
    rows = [{"id": n, "age": 9, "source": source} for n, source in enumerate((1, "1", 3, "x", "01", None))]
    world.send("1.jsonl", [*rows, {"id": 9, "age": 9}])
    done = world.run()
    assert world.matches() == {("0", "s"): 1, ("1", "s"): 1}
    assert told(done) == dict(kinds(world)) == {"unknown-source": 5}


def test_malformed_documents(tmp_path: Path) -> None:
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
    move(world.events, "4 #%20.xml", "")
    move(world.events, "5.parquet", "")
    done = world.run()
    assert world.matches() == {("1", "s"): 1, ("3.xml", "s"): 1}
    assert told(done) == {"malformed": 10}
    # Spark would pass over files without a byte.
    empty = {row["origin"].rpartition("/")[2]: row["reason"] for row in world.dead()[-2:]}
    assert empty["4 #%20.xml"] == "the document is empty: its file has no bytes"
    assert empty["5.parquet"].startswith("the file is not Parquet, or is damaged")
    # Also if a batch has no others; those of earlier batches stay what they were.
    move(world.events, "6.xml", "")
    done = world.run()
    assert (done.batches, done.events, told(done)) == (1, 0, {"malformed": 1})
    assert world.dead()[-1]["origin"] == str(world.events / "6.xml")


def test_a_filter_that_is_too_much(tmp_path: Path) -> None:
    """It is left out of the event, as a dead letter with the subscription; the event goes to all others."""
    world = World(tmp_path)
    clique, statements = too_much()
    given = [Subscription("bad", clique, "sparql"), Subscription("s", "ASK { ?a <urn:p> ?b }", "sparql")]
    Engine.build(given).save(world.snapshot)
    rows = [{"id": "dense", "data": statements}, {"id": "small", "data": statements.split("\n")[0]}]
    world.send("1.jsonl", [{**row, "datacontenttype": "nt"} for row in rows])
    done = world.run()
    assert (done.events, done.matches) == (2, 2)
    assert world.matches() == {("dense", "s"): 1, ("small", "s"): 1}
    assert told(done) == dict(kinds(world)) == {"left-out": 1}
    (letter,) = world.dead()
    assert letter["subscription"] == "bad"
    assert letter["reason"].startswith("joining it takes more than 50,000,000 steps")
    assert '"id": "dense"' in letter["row"]
