"""Every content, with a graph or without, all matches or the best: what the engine in this process gives."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headgate import Edge, Engine, Node, Subscription
from tests.lanes import some
from tests.streaming.world import PARQUET, World, move

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

TOPICS = ("news", "sport", "art", "money")


def record_filter(rng: random.Random) -> str:
    """Draw a filter of records."""
    parts = [f"topic = '{rng.choice(TOPICS)}'", f"age > {rng.randrange(60)}", f"price < {rng.randrange(100)}"]
    return rng.choice((" AND ", " OR ")).join(rng.sample(parts, rng.choice((1, 2))))


def record(rng: random.Random, number: int) -> dict[str, Any]:
    """Draw a record; an attribute may be missing, or change its type."""
    found: dict[str, Any] = {"id": f"e{number}", "topic": rng.choice(TOPICS), "age": rng.randrange(60)}
    if rng.random() < 0.3:
        found["price"] = rng.choice((7, 12.5, "40", None))
    if rng.random() < 0.2:
        found[f"new{number}"] = {"nested": number}
    return found


def rdf_filter(rng: random.Random) -> str:
    """Draw a pattern over RDF."""
    return f'ASK {{ ?x <urn:topic> "{rng.choice(TOPICS)}" ; <urn:age> ?a FILTER(?a > {rng.randrange(60)}) }}'


def rdf(rng: random.Random, number: int) -> dict[str, Any]:
    """Draw a row with RDF."""
    data = f'<urn:e> <urn:topic> "{rng.choice(TOPICS)}" ; <urn:age> {rng.randrange(60)} .'
    return {"id": f"e{number}", "datacontenttype": "turtle", "data": data}


def xml_filter(rng: random.Random) -> str:
    """Draw a pattern over XML."""
    return f"//item[topic = '{rng.choice(TOPICS)}'][@age > {rng.randrange(60)}]"


def xml(rng: random.Random, number: int) -> dict[str, Any]:
    """Draw a row with XML."""
    inside = f'<item age="{rng.randrange(60)}"><topic>{rng.choice(TOPICS)}</topic></item>'
    return {"id": number, "datacontenttype": "xml", "data": f"<all>{inside}</all>"}


CONTENTS = {
    "records": ("sql", record_filter, record),
    "rdf": ("sparql", rdf_filter, rdf),
    "xml": ("xpath", xml_filter, xml),
}
QUESTIONS: dict[str, dict[str, Any]] = {
    "all": {},
    "exact": {"top": 3},
    "relaxed": {"top": 3, "mode": "relaxed"},
}


def make(world: World, content: str, *, graph: bool, ranked: bool) -> random.Random:
    """Build a snapshot, files of events and changes."""
    dialect, draw_filter, draw_event = CONTENTS[content]
    rng = random.Random(f"{content} {graph} {ranked}")
    places = ["left", "right", "end"] if graph else [None]

    def subscription(number: int) -> dict[str, Any]:
        found: dict[str, Any] = {"id": f"s{number}", "filter": draw_filter(rng), "dialect": dialect}
        if graph:
            found["node"] = rng.choice(places)
        if ranked or graph:
            found["score"] = rng.randrange(5)
        if ranked and content == "records":
            names = [name for name in ("topic", "age", "price") if name in found["filter"]]
            found["weights"] = {name: rng.randrange(4) for name in names}
        return found

    given = [Subscription(**subscription(number)) for number in range(30)]
    more: dict[str, Any] = {}
    if graph:
        more["nodes"] = [
            Node("pub"),
            Node("left", draw_filter(rng), dialect=dialect),
            Node("right"),
            Node("end"),
        ]
        more["edges"] = [Edge("pub", "left"), Edge("pub", "right"), Edge("left", "end")]
    Engine.build(given, ranked=ranked, **more).save(world.snapshot)
    number = 0
    for batch in range(3):
        rows = []
        for _ in range(20):
            rows.append(draw_event(rng, number))
            number += 1
            if graph:
                rows[-1]["source"] = rng.choice(("pub", "pub", "pub", "left", "nowhere"))
        world.send(f"{batch}.jsonl", rows)
    changes: list[dict[str, Any]] = [{"op": "subscribe", **subscription(number)} for number in range(30, 40)]
    changes += [{"op": "unsubscribe", "id": f"s{number}"} for number in range(0, 35, 5)]
    if ranked or graph:
        changes += [{"op": "score", "id": f"s{number}", "score": 9} for number in range(1, 35, 5)]
    world.change("1.jsonl", changes)
    return rng


CELLS = [
    (content, graph, question) for content in CONTENTS for graph in (False, True) for question in QUESTIONS
]


@pytest.mark.parametrize(
    ("content", "graph", "question"),
    # Every content with a graph and without, every question of both.
    some(CELLS, 1, 5, 6, 10, 14, 15),
    ids=[f"{content}-{'graph' if graph else 'plain'}-{question}" for content, graph, question in CELLS],
)
def test_stream_is_engine(
    spark: SparkSession, tmp_path: Path, content: str, *, graph: bool, question: str
) -> None:
    """Events meet the subscriptions of the snapshot and of the changes, as in the engine."""
    world = World(tmp_path, dict(QUESTIONS[question]))
    make(world, content, graph=graph, ranked=question != "all")
    done = world.run(spark)
    found = world.matches()
    assert found == world.expected()
    assert found
    assert not world.rejected()
    assert done.matches == found.total()
    assert {row["kind"] for row in world.dead()} == ({"unknown-source"} if graph else set())
    assert done.events + done.unknown_source == 60


def test_parquet_in_and_out(spark: SparkSession, tmp_path: Path) -> None:
    """Rows of Parquet files are events, whatever columns each file has; matches are Parquet."""
    world = World(tmp_path, {"format": PARQUET})
    Engine.build([Subscription(1, "age > 30"), Subscription(2, "topic = 'news'")]).save(world.snapshot)
    tables: list[list[dict[str, Any]]] = [
        [{"id": 1, "age": 40}, {"id": 2, "age": 20}],
        [{"id": "3", "age": "41", "topic": "news"}],
        [{"id": "4", "topic": None, "more": {"age": 1}}],
    ]
    for number, rows in enumerate(tables):
        pq.write_table(pa.Table.from_pylist(rows), world.events / f".{number}")
        (world.events / f".{number}").rename(world.events / f"{number}.parquet")
    assert world.run(spark).events == 4
    assert world.matches() == world.expected()
    table = spark.read.parquet(str(world.output))
    assert table.dtypes == [("event_id", "string"), ("subscription_id", "bigint")]
    assert sorted(map(tuple, table.collect())) == [("1", 1), ("3", 1), ("3", 2)]


@pytest.mark.parametrize(("content", "suffix"), [("rdf", "ttl"), ("xml", "xml")])
def test_document_files(spark: SparkSession, tmp_path: Path, content: str, suffix: str) -> None:
    """A file may be one document; its name is the event's id."""
    world = World(tmp_path)
    dialect, draw_filter, draw_event = CONTENTS[content]
    rng = random.Random(content)
    given = [Subscription(number, draw_filter(rng), dialect) for number in range(50)]
    Engine.build(given).save(world.snapshot)
    for number in range(10):
        move(world.events, f"{number}.{suffix}", draw_event(rng, number)["data"])
    assert world.run(spark).events == 10
    assert world.matches() == world.expected(default_type="turtle" if content == "rdf" else "xml")
    assert world.matches()


def test_feed_is_an_event_an_item(spark: SparkSession, tmp_path: Path) -> None:
    """The items of an RSS feed are one event each."""
    world = World(tmp_path)
    Engine.build([Subscription("s", "ASK { ?x a <http://purl.org/rss/1.0/item> }", "sparql")]).save(
        world.snapshot
    )
    items = "".join(
        f'<item rdf:about="http://x.org/{n}"><title>t{n}</title><link>http://x.org/{n}</link></item>'
        for n in range(3)
    )
    move(
        world.events,
        "feed.rss",
        '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/">'
        f'<channel rdf:about="http://x.org/"><title>t</title></channel>{items}</rdf:RDF>',
    )
    done = world.run(spark)
    assert (done.events, done.matches) == (3, 3)
    assert len(world.matches()) == 3


def test_empty_snapshot_grows(spark: SparkSession, tmp_path: Path) -> None:
    """A stream may begin without any subscription."""
    world = World(tmp_path)
    Engine.build([]).save(world.snapshot)
    world.change("1.jsonl", [{"op": "subscribe", "id": "s1", "filter": "age > 30"}])
    world.send("1.jsonl", [{"id": 1, "age": 31}])
    world.run(spark)
    assert world.matches() == {("1", "s1"): 1}
