"""What a stream may be given: rows in Parquet, documents in files, feeds, and no subscription at all."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headgate import Engine, Subscription
from headgate.errors import EventError
from headgate.spark.tables.tables import read_csv
from headgate.stream.reading import CsvFile
from tests.streaming.world import PARQUET, World, move

if TYPE_CHECKING:
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


@pytest.mark.nightly
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


def packed(data: bytes, name: str) -> bytes:
    """Pack a file as its name says."""
    if name.endswith(".gz"):
        # In two members, as programs that append write it.
        return gzip.compress(data[:10]) + gzip.compress(data[10:])
    return bytes(pa.compress(data, codec="zstd", asbytes=True)) if name.endswith(".zst") else data


ROWS = [{"id": 1, "n": 12, "t": "news"}, {"id": "a", "n": 3}, {"id": 7, "t": 'say "é", and\nmore'}]
TABLES = {
    "jsonl": b"".join(json.dumps(row).encode() + b"\n" for row in ROWS),
    "csv": b'\xef\xbb\xbfid,n,t\r\n1,12,news\r\na,3,\r\n\r\n7,,"say ""\xc3\xa9"", and\nmore"\r\n',
}


NAMES = ("1.json", "1.ndjson", "1.jsonl.gz", "1.JSON.zst", "1.csv", "1.csv.gz", "1.csv.zst")


def test_files_that_people_have(session: SparkSession | None, tmp_path: Path) -> None:
    """The same rows in any format, packed or not, are the same events."""
    world = World(tmp_path, {"window": 0})
    filters = ("n > 10", "n < 10", "t = 'news'", "t LIKE 'say \"é\", and%more'", "id = 1", "n IS NULL")
    Engine.build([Subscription(number, text) for number, text in enumerate(filters)]).save(world.snapshot)
    for name in NAMES:
        move(world.events, name, packed(TABLES["csv" if "csv" in name else "jsonl"], name))
    done = world.run(session)
    assert (done.events, done.malformed) == (3 * len(NAMES), 0)
    matches = [("1", 0), ("1", 2), ("1", 4), ("a", 1), ("7", 3), ("7", 5)]
    assert world.matches() == dict.fromkeys(matches, len(NAMES))


def test_rows_that_are_not_utf_8_are_refused(session: SparkSession | None, tmp_path: Path) -> None:
    """In every format, of events and of changes; other rows of the file are events, and none is guessed."""
    world = World(tmp_path)
    Engine.build([Subscription("s", "n > 1")]).save(world.snapshot)
    move(world.events, "1.jsonl", b'{"id": "j1", "n": 5}\n{"id": "j2", "n": 5, "t": "caf\xe9"}\n')
    move(world.events, "2.csv", b'id,n,t\nc1,5,a\nc2,5,caf\xe9\nc3,5\nc4,5,b"c\n')
    texts = pa.array([b"ok", b"caf\xe9"], pa.binary()).view(pa.string())
    nested = pa.StructArray.from_arrays([texts], ["x"])
    for number, column in enumerate((texts, nested)):
        table = pa.table({"id": [f"p{number}1", f"p{number}2"], "n": [5, 5], "t": column})
        pq.write_table(table, world.events / f".{number}")
        (world.events / f".{number}").rename(world.events / f"{number}.parquet")
    move(world.changes, "1.csv", b"op,id,filter\nsubscribe,t,n > 2\nsubscribe,u,t = 'caf\xe9'\n")
    move(world.changes, "2.jsonl.gz", packed(b'{"op": "subscribe", "id": "v", "filter": "n > 3"}\n', ".gz"))
    move(world.changes, "3.jsonl", b'{"op": "subscribe", "id": "caf\xe9", "filter": "n > 3"}\n')
    changed = pa.table({"op": ["unsubscribe"], "id": texts.slice(1)})
    pq.write_table(changed, world.changes / ".4")
    (world.changes / ".4").rename(world.changes / "4.parquet")
    move(world.changes, "5.jsonl.zst", b"no such thing")
    done = world.run(session)
    assert (done.events, done.malformed, done.changes, done.rejected_changes) == (4, 6, 2, 4)
    good = ("j1", "c1", "p01", "p11")
    assert world.matches() == {(name, each): 1 for name in good for each in ("s", "t", "v")}
    dead = {row["row"]: row["reason"] for row in world.dead()}
    assert dead.pop("c3,5") == "the line does not fit the header, or a value its column's type"
    assert dead.pop('c4,5,b"c').startswith("quotes stand in the middle of a value: put the value in quotes")
    assert all("utf-8" in reason.lower() for reason in dead.values())
    shown = sorted(dead)
    assert shown[0] == "c2,5,caf\\xe9"
    assert shown[1] == '{"id": "j2", "n": 5, "t": "caf\\xe9"}'
    assert [json.loads(row)["id"] for row in shown[2:]] == ["p02", "p12"]
    refused = sorted((row["origin"], row["reason"]) for row in world.rejected())
    assert [origin for origin, _ in refused] == ["1.csv", "3.jsonl", "4.parquet", "5.jsonl.zst"]
    assert all("utf-8" in reason.lower() for _, reason in refused[:3])


def test_files_that_are_damaged_or_empty(session: SparkSession | None, tmp_path: Path) -> None:
    """A damaged file is a dead letter with its name; one without a row is nothing."""
    world = World(tmp_path)
    Engine.build([Subscription("s", "n > 1")]).save(world.snapshot)
    for name in ("1.json", "1.csv", "1.csv.gz", "1.jsonl.zst"):
        move(world.events, name, b"")
    move(world.events, "2.csv", b"id,n\n")
    good = packed(TABLES["jsonl"] * 50, ".zst")
    for name, data in (
        ("3.jsonl.gz", b"no gzip"),
        ("3.csv.zst", good[: len(good) // 2]),
        ("3.csv", b"id,n,N\n1,2,3\n"),
        ("4.csv", b"id,n\n1,12:30\n2,4\n"),
        ("5.csv", b"id,\xff\n1,2\n"),
        ("6.txt.gz", b""),
    ):
        move(world.events, name, data)
    done = world.run(session)
    assert (done.events, done.malformed) == (0, 6)
    dead = {Path(row["row"]).name: row["reason"] for row in world.dead()}
    assert "it is no sound gzip file" in dead["3.jsonl.gz"]
    assert "it is no sound zstd file" in dead["3.csv.zst"]
    assert dead["3.csv"] == "the header names the column 'n' 2 times"
    assert dead["4.csv"].startswith("column n holds '12:30', whose type is not clear beside the others: send")
    assert dead["5.csv"].startswith(
        "the header of the file cannot be read: the row has bytes that are not UTF-8"
    )
    assert dead["6.txt.gz"].startswith(
        "the file's name ends in none of .jsonl, .ndjson, .json, .csv, .parquet,"
    )


def test_an_empty_folder(session: SparkSession | None, tmp_path: Path) -> None:
    """There is nothing to match, and the tables of matches and dead letters have their columns."""
    world = World(tmp_path, {"format": PARQUET})
    Engine.build([Subscription("s", "n > 1")]).save(world.snapshot)
    done = world.run(session)
    assert (done.batches, done.events, done.stopped) == (0, 0, "once")
    assert pq.read_table(world.output).schema.names == ["event_id", "subscription_id"]
    assert pq.read_table(world.settings().dead).schema.names[:3] == ["row", "reason", "kind"]


def test_packed_documents(session: SparkSession | None, tmp_path: Path) -> None:
    """A document may be packed, and rows of documents may be CSV."""
    world = World(tmp_path)
    Engine.build([Subscription("s", "//a[@n > 1]", "xpath")]).save(world.snapshot)
    move(world.events, "1.xml.gz", packed(b'<a n="2"/>', ".gz"))
    move(world.events, "2.xml.zst", packed(b'<a n="1"/>', ".zst"))
    move(world.events, "3.xml.gz", b"no gzip")
    move(world.events, "4.csv", b'id,datacontenttype,data\n7,xml,"<a n=""2""/>"\n8,xml,\n')
    move(world.events, "5.json", b'{"id": 9, "datacontenttype": "xml", "data": "<a n=\\"3\\"/>"}\n')
    done = world.run(session)
    assert (done.events, done.malformed) == (4, 2)
    assert world.matches() == {("1.xml.gz", "s"): 1, ("7", "s"): 1, ("9", "s"): 1}


CSV = {
    "whole": ["7", "-3", "+12", "1234567890123456789", "0"],
    "fraction": ["1.5", "1e3", "-2", ".5", "7."],
    "exponent": ["1E5", "2", "3", "4", "5e-1"],
    "truth": ["true", "FALSE", "True", "", "false"],
    "day": ["2026-01-31", "2024-02-29", "1999-12-31", "", "2026-05-10"],
    "moment": [
        "2026-05-10T09:30:00Z",
        "2026-05-10 09:30:00",
        "2026-05-10T09:30:00.123456+02:00",
        "",
        "2026-05-10T09:30",
    ],
    "mixed": ["1", "true", "2", "", "x"],
    "text": ["art", "3rd", "007", "", "a b"],
    "half": ["1", "true", "2.5", "", "3"],
}


def test_csv_has_the_types_that_spark_gives_it(spark: SparkSession, tmp_path: Path) -> None:
    """Columns of every kind, read by Spark as a table of that file."""
    lines = [
        ",".join(("id", *CSV)),
        *(",".join((str(n), *row)) for n, row in enumerate(zip(*CSV.values(), strict=True))),
    ]
    data = ("\n".join(lines) + "\n").encode()
    file = tmp_path / "1.csv"
    file.write_bytes(data)
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    table = read_csv(session, str(file), typed=True).drop("_headgate_broken").toArrow().to_pylist()
    found = [row for row, _ in CsvFile(data).rows(typed=True)]
    assert len(found) == len(table) == 5
    for mine, theirs in zip(found, table, strict=True):
        assert isinstance(mine, dict)
        wanted = {name: value for name, value in theirs.items() if value is not None}
        assert {name: value for name, value in mine.items() if name != "id"} == {
            name: value for name, value in wanted.items() if name != "id"
        }
        assert [type(value) for name, value in mine.items() if name != "id"] == [
            type(value) for name, value in wanted.items() if name != "id"
        ]


def test_csv_beyond_and_beside() -> None:
    """Numbers that no column holds are rows that do not fit; ends of lines may be of any kind."""
    rows = list(CsvFile(b"id,n\r1,99999999999999999999\r\n2,5\n\n\n3,-7").rows(typed=True))
    assert [row if isinstance(row, dict) else str(row) for row, _ in rows] == [
        "the line does not fit the header, or a value its column's type",
        {"id": 2, "n": 5},
        {"id": 3, "n": -7},
    ]
    assert list(CsvFile(b"").rows(typed=True)) == []
    [(row, _)] = CsvFile(b'id,t\n007,"a\nb"\n').rows(typed=True)
    assert row == {"id": "007", "t": "a\nb"}
    rows = list(CsvFile(b'id,t\n1,"never closed\n2,b\n').rows(typed=True))
    assert [isinstance(row, EventError) for row, _ in rows] == [True, False]
