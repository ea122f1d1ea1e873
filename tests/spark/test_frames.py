"""DataFrames of events: columns of every kind, names, shapes, streams, and what is refused."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

import headgate.spark as hg
from headgate import Edge, Engine, Node, Subscription
from headgate.core.snapshot import shard_name
from headgate.core.versions.current import resolved
from headgate.errors import HeadgateError, SnapshotError, TableError
from headgate.runtime.sharding import Sharding
from headgate.spark.frames import match as frames
from tests.contract.frames import HOSTILE, hostile
from tests.lanes import some
from tests.spark.files import put_lines
from tests.spark.jobs import compile_subscriptions
from tests.spark.rdf_cases import too_much
from tests.spark.without_spark import compile_shards

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from tests.spark.files import Row

FILTERS = {"old": "age > 30", "noon": "at >= TIMESTAMP '2026-01-01 12:00:00'", "red": "`a.b`.c = 'red'"}
FILTERS["cheap"] = "price BETWEEN 2.9999999999 AND 3.0"
NOON = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)
SCHEMA = (
    "uuid string, age smallint, at timestamp, `a.b` struct<c: string>, price decimal(38, 10), "
    "tags array<string>, raw binary, day date, `odd ``name` double"
)
ROWS = [
    (
        "u1",
        35,
        NOON - dt.timedelta(hours=2),
        ("red",),
        Decimal("9.5"),
        ["x", None],
        b"\x00",
        NOON.date(),
        1.5,
    ),
    ("u2", 20, NOON, None, None, [], None, None, None),
    ("u3", 1, NOON - dt.timedelta(seconds=1), ("blue",), Decimal(3), None, b"", NOON.date(), 0.0),
    (None, 50, NOON, ("red",), None, None, None, None, None),
]
PAIRS = {("u1", "old"), ("u1", "red"), ("u2", "noon"), ("u3", "cheap")}


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("frames") / "snapshot"
    Engine.build(Subscription(name, text) for name, text in FILTERS.items()).save(place)
    return place


def events_in(session: SparkSession) -> DataFrame:
    return session.createDataFrame(ROWS, SCHEMA)


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_rows_and_what_is_kept(spark: SparkSession, snapshot: Path, number: int) -> None:
    """Whatever the session's settings, matches are the same, and columns come as they were."""
    events = events_in(hostile(spark, number))
    kept = [name for name in events.columns if name != "uuid"]
    found = hg.match(events, snapshot, id="uuid", keep=kept)
    assert found.schema.names == ["event_id", "subscription_id", *kept]
    assert [found.schema[name].dataType for name in kept] == [events.schema[name].dataType for name in kept]
    rows = found.collect()
    assert {(row["event_id"], row["subscription_id"]) for row in rows} == PAIRS
    given = {row["uuid"]: tuple(row)[1:] for row in events.collect()}
    assert all(tuple(row)[2:] == given[row["event_id"]] for row in rows)


def test_arrays_have_every_event(spark: SparkSession, snapshot: Path) -> None:
    found = hg.match(
        events_in(spark), snapshot, id="uuid", shape="arrays", keep=["age"], names={"age": "years"}
    )
    rows = {row["event_id"]: (sorted(row["matches"]), row["years"]) for row in found.collect()}
    assert rows == {"u1": (["old", "red"], 35), "u2": (["noon"], 20), "u3": (["cheap"], 1)}


@pytest.mark.parametrize("kind", ["tinyint", "int", "bigint", "string"])
def test_ids_keep_their_type(spark: SparkSession, snapshot: Path, kind: str) -> None:
    events = spark.sql(f"SELECT CAST(id AS {kind}) AS id, 40 AS age FROM range(3)")
    found = hg.match(events, snapshot)
    assert found.schema["event_id"].dataType == events.schema["id"].dataType
    assert sorted(str(row["event_id"]) for row in found.collect()) == ["0", "1", "2"]


@pytest.mark.parametrize("shape", some(["arrays", "rows"], 0))
def test_workers_write_what_spark_would(
    spark: SparkSession, snapshot: Path, tmp_path: Path, shape: str
) -> None:
    session = hostile(spark, 0)
    events = events_in(session)
    kept = [name for name in events.columns if name != "uuid"]
    found = hg.match(events, snapshot, id="uuid", keep=kept, shape=shape, names={"age": "years"})
    place = tmp_path / "out.parquet"
    hg.write_parquet(found, place)
    found.write.parquet(str(tmp_path / "by-spark.parquet"))
    ours, theirs = (
        session.read.parquet(str(tmp_path / name)) for name in ("out.parquet", "by-spark.parquet")
    )
    assert ours.schema == theirs.schema
    assert sorted(ours.collect(), key=str) == sorted(theirs.collect(), key=str)
    assert (place / "_SUCCESS").exists()
    with pytest.raises(TableError, match=r"is there already: remove it, or give mode='overwrite'$"):
        hg.write_parquet(found, place)
    hg.write_parquet(hg.match(events.where("age > 1000"), snapshot, id="uuid"), place, mode="overwrite")
    assert session.read.parquet(str(place)).schema.names == ["event_id", "subscription_id"]
    assert session.read.parquet(str(place)).count() == 0
    hg.write_parquet(found.where("event_id = 'u3'"), place, mode="overwrite")
    assert [row["event_id"] for row in session.read.parquet(str(place)).collect()] == ["u3"]
    with pytest.raises(TableError, match=r"^mode is 'append': use 'error' or 'overwrite'$"):
        hg.write_parquet(found, place, mode="append")


DECIMAL_FILTERS = [
    *("price = 0.1", "price > 0.1e0", "price < 0.100000000000000001", "price IN (0.1, 2)", "price <> '0.1'"),
    *("NOT price BETWEEN 0.1 AND 9223372036854775806.5", "price <=> NULL", "price = 12345678901234567890.5"),
    *("giant = 99999999999999999999999999999999999998", "giant > 9223372036854775807", "giant = 1e38"),
    *("tiny > 0", "tiny = 0.1", "tiny <= 0e0", "NOT tiny = 0.1", "of.price = 0.25", "of.price IS NULL"),
    *(
        "array_contains(prices, 0.1)",
        "array_contains(prices, 2)",
        "arrays_overlap(prices, array(0.1, 99999999.99))",
    ),
    *("forall(prices, x -> x IN (0.1, 2.00))", "NOT array_contains(prices, 0.1e0)"),
]
DECIMAL_SCHEMA = (
    "id int, price decimal(38, 18), giant decimal(38, 0), tiny decimal(38, 38), "
    "of struct<price: decimal(5, 2)>, prices array<decimal(10, 2)>"
)
DECIMAL_ROWS: list[tuple[Any, ...]] = [
    ("0.1", "99999999999999999999999999999999999999", "0.1", "0.25", ["0.10", None]),
    (
        "0.100000000000000001",
        "99999999999999999999999999999999999998",
        "0.1" + "0" * 36 + "1",
        "-0.25",
        ["2.00"],
    ),
    ("0.099999999999999999", "9223372036854775807", "-0." + "0" * 37 + "1", None, ["0.10", "2.00"]),
    ("12345678901234567890.5", "9223372036854775808", "0", "999.99", []),
    (
        "9223372036854775806.5",
        "-99999999999999999999999999999999999999",
        "0." + "9" * 38,
        "0",
        ["7.00", "0.11"],
    ),
    (None, None, None, None, None),
]


def test_decimals_match_as_where_says(spark: SparkSession, tmp_path: Path) -> None:
    def number(text: str | None) -> Decimal | None:
        return None if text is None else Decimal(text)

    rows = [
        (place, *map(number, row[:3]), (number(row[3]),), None if row[4] is None else [*map(number, row[4])])
        for place, row in enumerate(DECIMAL_ROWS)
    ]
    events = spark.createDataFrame(rows, DECIMAL_SCHEMA).coalesce(1)
    Engine.build(Subscription(name, text) for name, text in enumerate(DECIMAL_FILTERS)).save(tmp_path / "s")
    columns = [f"({text}) AS c{number}" for number, text in enumerate(DECIMAL_FILTERS)]
    said = events.selectExpr("id", *columns).collect()
    wanted = {(row["id"], n) for row in said for n in range(len(DECIMAL_FILTERS)) if row[f"c{n}"]}
    assert {n for _, n in wanted} == {*range(len(DECIMAL_FILTERS))}, "each of them holds for some row"
    found = hg.match(events, tmp_path / "s").collect()
    assert {tuple(row) for row in found} == wanted


def test_what_is_no_event_is_listed(spark: SparkSession, snapshot: Path, tmp_path: Path) -> None:
    (row,) = hg.refused(events_in(spark), snapshot, id="uuid").collect()
    assert (row["event_id"], row["reason"][:19]) == (None, "the event has no id")
    assert json.loads(row["row"])["age"] == 50
    nodes = [Node("pub"), Node("net", "age > 30")]
    Engine.build([Subscription("s", "TRUE", node="net")], nodes=nodes, edges=[Edge("pub", "net")]).save(
        tmp_path / "graph"
    )
    events = spark.sql("SELECT * FROM VALUES (1, 40, 'pub'), (2, 40, 'x'), (3, 4, 'pub') AS t(id, age, site)")
    (row,) = hg.refused(events, tmp_path / "graph", source="site").collect()
    assert (row["event_id"], row["reason"]) == (
        2,
        "source 'x' is not a node of the graph: give the id of one",
    )
    assert [tuple(row) for row in hg.match(events, tmp_path / "graph", source="site").collect()] == [(1, "s")]


def test_documents_and_filters_that_are_too_much(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, dense = too_much()
    Engine.build(
        [Subscription("hard", text, "sparql"), Subscription("easy", "ASK { ?a <urn:p> ?b }", "sparql")]
    ).save(tmp_path / "snapshot")
    events = spark.createDataFrame([(1, dense), (2, "<urn:a> <urn:p> 3 ."), (3, "<")], "id int, body string")
    given: dict[str, Any] = {"data": "body", "format": "turtle"}
    told = {
        row["event_id"]: row["reason"]
        for row in hg.refused(events, tmp_path / "snapshot", exceeded=True, **given).collect()
    }
    assert sorted(told) == [1, 3]
    assert told[1].startswith("subscription 'hard' is left out: joining it takes more than")
    both: list[Any] = []

    def write(matches: DataFrame, refused: DataFrame, batch: int) -> None:
        both.extend([batch, [tuple(row) for row in matches.collect()]])
        both.append({row["event_id"]: row["reason"] for row in refused.collect()})

    batches = hg.each_batch(None, tmp_path / "snapshot", write, state=tmp_path / "state", **given)
    batches(events, 7)
    batches.close()
    assert both == [7, [(1, "easy"), (2, "easy")], told]
    # The same of shards that do not fit together: each tells what it leaves out, one tells of bad rows.
    rows: list[Row] = [
        {"id": f"s{n}", "filter": text if n < 3 else "ASK { ?a <urn:p> ?b }", "dialect": "sparql"}
        for n in range(6)
    ]
    table, sharding = put_lines(tmp_path / "subs.jsonl", rows), Sharding.of(3)
    compile_subscriptions(
        None, table, str(tmp_path / "cut"), rejected=str(tmp_path / "no.jsonl"), sharding=sharding
    )
    homes = [{*Engine.open(resolved(tmp_path / "cut") / shard_name(shard)).ids} for shard in range(3)]
    assert sum(not home.isdisjoint({"s0", "s1", "s2"}) for home in homes) > 1
    monkeypatch.setattr(frames, "worker_memory", lambda _: 1)
    reasons = (
        hg.refused(events, tmp_path / "cut", exceeded=True, **given).select("event_id", "reason").collect()
    )
    assert sorted(row["event_id"] for row in reasons) == [1, 1, 1, 3]
    assert len({row["reason"] for row in reasons}) == 4
    monkeypatch.undo()
    found = hg.match(events.where("id > 1"), tmp_path / "snapshot", **given)
    assert [tuple(row) for row in found.collect()] == [(2, "easy")]


def test_a_stream_of_any_source_and_sink(spark: SparkSession, snapshot: Path, tmp_path: Path) -> None:
    """The functions are the same, and so are the rows."""
    events_in(spark).write.parquet(str(tmp_path / "in"))
    events = spark.readStream.schema(SCHEMA).parquet(str(tmp_path / "in"))
    for number, found in enumerate(
        (hg.match(events, snapshot, id="uuid"), hg.refused(events, snapshot, id="uuid"))
    ):
        assert found.isStreaming
        place = str(tmp_path / str(number))
        writing = found.writeStream.option("checkpointLocation", f"{place}-state").trigger(availableNow=True)
        writing.format("json").start(place).awaitTermination()
        rows = spark.read.json(place).collect()
        if number:
            assert [row["reason"][:19] for row in rows] == ["the event has no id"]
        else:
            assert {(row["event_id"], row["subscription_id"]) for row in rows} == PAIRS


def test_shards_that_do_not_fit_together(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are asked one after the other, and the best of all are found."""
    rows: list[Row] = [{"id": n, "filter": f"age > {n}", "score": n % 7} for n in range(40)]
    compile_shards(tmp_path / "snapshot", rows, 3, ranked=True)
    whole = Engine.build([Subscription(row["id"], row["filter"], score=row["score"]) for row in rows])
    events = spark.sql("SELECT CAST(id AS STRING) AS id, 10 * id AS age FROM range(5)")
    best: set[Any] = {
        (str(number), each.subscription, rank, each.value)
        for number in range(5)
        for rank, each in enumerate(ranked(whole, 10 * number), 1)
    }
    for memory in (1 << 30, 1):
        monkeypatch.setattr(frames, "worker_memory", lambda _, memory=memory: memory)
        found = hg.top(events, tmp_path / "snapshot", 4)
        assert found.schema.names == ["event_id", "subscription_id", "rank", "value"]
        assert {tuple(row) for row in found.collect()} == best
        assert hg.match(events, tmp_path / "snapshot").count() == 0 + 10 + 20 + 30 + 40
    with pytest.raises(TableError, match="use shape='rows', and group them"):
        hg.match(events, tmp_path / "snapshot", shape="arrays")


def ranked(engine: Engine, age: int) -> list[Any]:
    return list(engine.top({"age": age}, 4))


SUBSCRIPTIONS = [("b", "age > 30", 2.0), ("a", "age > 20", 1.0), ("c", "age >", 0.0), ("a", "TRUE", 0.0)]


@pytest.mark.parametrize("shards", some([1, 3], 0))
def test_compile(spark: SparkSession, tmp_path: Path, shards: int) -> None:
    """A frame in several partitions, in a session of others: the first of equal ids stays."""
    session = hostile(spark, 0)
    session.conf.set("spark.sql.jsonGenerator.ignoreNullFields", "false")
    frame = session.createDataFrame(SUBSCRIPTIONS, "Id string, filter string, SCORE double").repartition(1)
    frame = frame.union(session.createDataFrame([("d", "age < 5", None)], frame.schema))
    made = hg.compile(frame, tmp_path / "snapshot", shards=shards)
    assert (made.subscriptions, made.rejected, made.shards, made.ranked) == (3, 2, shards, True)
    assert made.attributes == ("age",)
    reasons = {json.loads(row["row"])["Id"]: row["reason"] for row in made.refused.collect()}
    assert set(reasons) == {"a", "c"}
    assert reasons["a"] == "id 'a' was given by an earlier row already"
    events = session.sql("SELECT 1 AS id, 40 AS age UNION ALL SELECT 2, 25")
    assert {tuple(row) for row in hg.match(events, made).collect()} == {(1, "a"), (1, "b"), (2, "a")}
    best = hg.top(events, made, 1).collect()
    assert {(row["event_id"], row["subscription_id"], row["value"]) for row in best} == {
        (1, "b", 2.0),
        (2, "a", 1.0),
    }


def test_compile_a_graph(spark: SparkSession, tmp_path: Path) -> None:
    nodes = spark.createDataFrame(
        [("pub", None), ("net", "age > 30"), ("x", "age >")], "id string, filter string"
    )
    edges = spark.createDataFrame([("pub", "net")], "source string, target string")
    hung = spark.createDataFrame([("s", "TRUE", "net")], "id string, filter string, node string")
    sample = spark.sql("SELECT 'pub' AS source, 1 AS id, 40 AS age")
    made = hg.compile(hung, tmp_path / "graph", nodes=nodes, edges=edges, sample=sample)
    assert (made.nodes, made.edges, made.subscriptions, made.rejected) == (2, 1, 1, 1)
    assert [row["table"] for row in made.refused.collect()] == ["nodes"]
    assert [tuple(row) for row in hg.match(sample, made).collect()] == [(1, "s")]
    assert "refused" not in repr(made)


def test_mistakes_of_compile(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.createDataFrame([("a", "TRUE")], "id string, filtr string")
    for given, reason in (
        ({"subscriptions": frame}, "subscriptions has no column 'filter'; its columns are"),
        ({"subscriptions": None}, "give subscriptions, or nodes and edges"),
        ({"subscriptions": frame, "nodes": frame}, "give subscriptions, or nodes and edges"),
        ({"subscriptions": [1]}, "subscriptions are list: give a DataFrame of Spark"),
        ({"subscriptions": frame, "schema": "{"}, "schema: "),
        ({"subscriptions": frame, "shards": 0}, "0 shards: give a number from 1 to 1,000"),
    ):
        with pytest.raises(HeadgateError, match=reason):
            hg.compile(to=tmp_path / "s", **given)
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({}, "events has no column 'id'; its columns are uuid, age"),
        ({"id": "uid"}, "(is 'uuid' meant?)"),
        ({"id": "price"}, "column price is decimal(38,10): cast it to string or bigint"),
        ({"id": "uuid", "keep": ["prize"]}, "events has no column 'prize'"),
        ({"id": "uuid", "keep": "price"}, "keep is 'price': give a list of names of columns"),
        ({"id": "uuid", "keep": ["age", "AGE"]}, "column age would be there twice"),
        ({"id": "uuid", "shape": "lists"}, "shape is 'lists': use 'rows' or 'arrays'"),
        (
            {"id": "uuid", "names": {"event": "e"}},
            "names: the result has no column 'event': did you mean 'event_id'?",
        ),
        ({"id": "uuid", "format": "xml"}, "format is 'xml', and events of records have none: leave it out"),
    ],
)
def test_mistakes(spark: SparkSession, snapshot: Path, given: dict[str, Any], reason: str) -> None:
    with pytest.raises(TableError) as refused:
        hg.match(events_in(spark), snapshot, **given)
    assert reason in str(refused.value)
    assert "\n" not in str(refused.value)


def test_other_mistakes(spark: SparkSession, snapshot: Path) -> None:
    with pytest.raises(SnapshotError, match="no such directory"):
        hg.match(events_in(spark), "nowhere")
    with pytest.raises(TableError, match="events are list: give a DataFrame of Spark"):
        hg.match([], snapshot)  # type: ignore[arg-type]
    with pytest.raises(SnapshotError, match="score"):
        hg.top(events_in(spark), snapshot, 3, id="uuid")
    with pytest.raises(AttributeError, match="has no attribute 'matches'"):
        hg.matches  # noqa: B018


def test_texts_that_are_not_utf8(spark: SparkSession, snapshot: Path) -> None:
    """Spark keeps any bytes as text; such rows are refused, and no other."""
    events = spark.sql(
        "SELECT * FROM VALUES ('a', 40, 'é'), ('b', 40, CAST(X'63E9' AS STRING)), "
        "(CAST(X'E9' AS STRING), 40, '') AS t(uuid, age, `a.b`)"
    ).selectExpr("uuid", "age", "struct(`a.b` AS c) AS `a.b`")
    assert [tuple(row) for row in hg.match(events, snapshot, id="uuid").collect()] == [("a", "old")]
    told = [
        (row["reason"], json.loads(row["row"])) for row in hg.refused(events, snapshot, id="uuid").collect()
    ]
    why = "the row has bytes that are not UTF-8: write the table in UTF-8"
    assert told == [
        (why, {"uuid": "b", "age": 40, "a.b": {"c": "c\\xe9"}}),
        (why, {"uuid": "\\xe9", "age": 40, "a.b": {"c": ""}}),
    ]
