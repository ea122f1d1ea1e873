"""What a stream may be given: rows in Parquet, documents in files, feeds, and no subscription at all."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headgate import Engine, Subscription
from tests.streaming.world import PARQUET, World, move

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

TOPICS = ("news", "sport", "art", "money")


def rdf_filter(rng: random.Random) -> str:
    """Draw a pattern over RDF."""
    return f'ASK {{ ?x <urn:topic> "{rng.choice(TOPICS)}" ; <urn:age> ?a FILTER(?a > {rng.randrange(60)}) }}'


def rdf(rng: random.Random) -> str:
    """Draw a document of RDF."""
    return f'<urn:e> <urn:topic> "{rng.choice(TOPICS)}" ; <urn:age> {rng.randrange(60)} .'


def xml_filter(rng: random.Random) -> str:
    """Draw a pattern over XML."""
    return f"//item[topic = '{rng.choice(TOPICS)}'][@age > {rng.randrange(60)}]"


def xml(rng: random.Random) -> str:
    """Draw a document of XML."""
    return f'<all><item age="{rng.randrange(60)}"><topic>{rng.choice(TOPICS)}</topic></item></all>'


CONTENTS = {
    "rdf": ("sparql", rdf_filter, rdf),
    "xml": ("xpath", xml_filter, xml),
}


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
def test_document_files(tmp_path: Path, content: str, suffix: str) -> None:
    """A file may be one document; its name is the event's id."""
    world = World(tmp_path)
    dialect, draw_filter, draw_event = CONTENTS[content]
    rng = random.Random(content)
    given = [Subscription(number, draw_filter(rng), dialect) for number in range(50)]
    Engine.build(given).save(world.snapshot)
    for number in range(10):
        move(world.events, f"{number}.{suffix}", draw_event(rng))
    assert world.run().events == 10
    assert world.matches() == world.expected(default_type="turtle" if content == "rdf" else "xml")
    assert world.matches()


def test_feed_is_an_event_an_item(tmp_path: Path) -> None:
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
    done = world.run()
    assert (done.events, done.matches) == (3, 3)
    assert len(world.matches()) == 3


def test_empty_snapshot_grows(tmp_path: Path) -> None:
    """A stream may begin without any subscription."""
    world = World(tmp_path)
    Engine.build([]).save(world.snapshot)
    world.change("1.jsonl", [{"op": "subscribe", "id": "s1", "filter": "age > 30"}])
    world.send("1.jsonl", [{"id": 1, "age": 31}])
    world.run()
    assert world.matches() == {("1", "s1"): 1}
