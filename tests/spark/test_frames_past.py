"""DataFrames of the past: explanations, one filter, and changed subscriptions, tried over events."""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import headgate.spark as hg
from headgate import Edge, Engine, Node, Subscription
from headgate.errors import HeadgateError, TableError
from tests.contract.frames import hostile
from tests.lanes import some
from tests.records.random_filters import SCHEMA, random_event, random_filter
from tests.seeds import share
from tests.spark.rdf_cases import too_much

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

FILTERS = {"old": "age > 30", "red": "colour = 'red'", "none": "age > 1000"}
ROWS = [("u1", 35, "red"), ("u2", 20, "blue"), ("u3", None, None), (None, 50, "red")]


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("past") / "snapshot"
    Engine.build(Subscription(name, text) for name, text in FILTERS.items()).save(place)
    return place


def events_in(session: SparkSession) -> DataFrame:
    return session.createDataFrame(ROWS, "uuid string, Age int, colour string")


def pairs_of(found: DataFrame) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row) for row in found.collect())


# Explanations


def test_explanations(spark: SparkSession, snapshot: Path, tmp_path: Path) -> None:
    """They are those of the command line, and say what `match` says."""
    told = hg.explain(
        events_in(spark), snapshot, "old", id="uuid", keep=["colour"], names={"explanation": "why"}
    )
    assert told.schema.simpleString() == "struct<event_id:string,matched:boolean,why:string,colour:string>"
    way = "indexed by age: age > 30"
    miss = f"nearest miss: age > 30\n{way}"
    assert [tuple(row) for row in told.orderBy("event_id").collect()] == [
        ("u1", True, f"match\n  held    age > 30   age = 35\n{way}", "red"),
        (
            "u2",
            False,
            f"no match\n  failed  age > 30   age = 20 (off by 10)\n{miss}",
            "blue",
        ),
        (
            "u3",
            False,
            f"no match\n  unknown age > 30   age = NULL (the attribute is NULL)\n{miss}",
            None,
        ),
    ]
    nodes = [Node("1"), Node("2", "age > 30")]
    Engine.build([Subscription(7, "TRUE", node="2")], nodes=nodes, edges=[Edge("1", "2")]).save(
        tmp_path / "graph"
    )
    rows = [(1, 40, "1"), (2, 4, "1"), (3, 40, "x")]
    events = spark.createDataFrame(rows, "id int, age int, site string")
    graph = hg.explain(events, tmp_path / "graph", "7", source="site").orderBy("event_id").collect()
    assert [(row["event_id"], row["matched"]) for row in graph] == [(1, True), (2, False)]
    assert graph[0]["explanation"].splitlines()[0] == "match: 1 hop from 1 to 7"


def test_explanations_agree_with_match(spark: SparkSession, tmp_path: Path) -> None:
    """Random filters over columns of every type, in a session with other settings."""
    rng = random.Random(8)
    texts = [random_filter(rng, wild=True) for _ in range(share(32))]
    # Something matches, also where few are drawn.
    filters = {f"s{number}": f"({text}) OR id IN (3, 5)" for number, text in enumerate(texts)}
    Engine.build(Subscription(name, text) for name, text in filters.items()).save(tmp_path / "snapshot")
    events = drawn(hostile(spark, 0), rng, 40)
    matched = pairs_of(hg.match(events, tmp_path / "snapshot"))
    assert matched
    for name, text in filters.items():
        told = hg.explain(events, tmp_path / "snapshot", name).select("event_id", "matched")
        wanted = Counter((event, (event, name) in matched) for event in range(40))
        assert pairs_of(told) == wanted, text


def drawn(session: SparkSession, rng: random.Random, count: int) -> DataFrame:
    rows = [random_event(rng, number) for number in range(count)]
    return session.createDataFrame(pa.Table.from_pylist(rows, schema=SCHEMA))


@pytest.mark.nightly
def test_a_filter_that_is_too_much_is_told(spark: SparkSession, tmp_path: Path) -> None:
    text, dense = too_much()
    Engine.build([Subscription("hard", text, "sparql")]).save(tmp_path / "snapshot")
    events = spark.createDataFrame([(1, dense), (2, "<urn:a> <urn:p> 3 .")], "id int, data string")
    done = hg.backtest(events, text, dialect="sparql", format="turtle")
    assert (done.events, done.matches, done.rejected) == (2, 0, 0)
    (row,) = done.refused.collect()
    assert row["event_id"] == 1
    assert row["reason"].startswith("subscription 'the filter' is left out: joining it takes more than")


# One filter


def test_a_filter_says_what_where_does(spark: SparkSession) -> None:
    """Random filters: the rows are those of Spark's own WHERE, with all of their columns."""
    rng = random.Random(5)
    # Spark cannot sort structs with NaN and the like: rows are told by their ids.
    events = drawn(spark, rng, 60).persist()
    found = 0
    for _ in range(share(32)):
        text = random_filter(rng)
        done = hg.backtest(events, text)
        assert done.matching.schema == events.schema
        matching = pairs_of(done.matching.select("id"))
        assert matching == pairs_of(events.where(text).select("id")), text
        assert (done.events, done.matches, done.rejected) == (60, matching.total(), 0)
        found += matching.total()
    events.unpersist()
    assert found


def test_what_names_mean_to_a_filter(spark: SparkSession) -> None:
    events = spark.createDataFrame([(1, 5), (2, 1)], "id int, Age int")
    assert hg.backtest(events, "Age > 3", names="exact").matches == 1
    with pytest.raises(TableError) as caught:
        hg.backtest(events, "age > 3", names="exact")
    assert str(caught.value) == "no event of the DataFrame has the attribute age; did you mean Age?"
    with pytest.raises(TableError) as caught:
        hg.backtest(events, "//a", dialect="xpath", nulls="told")
    wanted = "settings of names are for filters of records, and the filter is 'xpath': leave them out"
    assert str(caught.value) == wanted


@pytest.mark.parametrize("number", some([0, 1, 2], 2))
@pytest.mark.nightly
def test_a_filter_in_sessions_of_others(spark: SparkSession, number: int) -> None:
    session = hostile(spark, number)
    before = session.conf.getAll
    rows = "VALUES (1, TIMESTAMP '2026-01-01 11:59:59Z'), (2, TIMESTAMP '2026-01-01 12:00:00Z'), (NULL, NULL)"
    events = session.sql(f"SELECT id, CAST(at AS TIMESTAMP_LTZ) AS At FROM {rows} AS t(id, at)")
    done = hg.backtest(events, "at >= TIMESTAMP '2026-01-01 12:00:00'")
    assert [row["id"] for row in done.matching.collect()] == [2]
    assert (done.events, done.matches, done.rejected, done.share) == (2, 1, 1, 0.5)
    assert [tuple(row) for row in done.counts.collect()] == [(2, 1, 1)]
    assert done.refused.collect()[0]["reason"].startswith("the event has no id")
    assert session.conf.getAll == before


@pytest.mark.nightly
def test_documents_and_feeds_of_one_filter(spark: SparkSession) -> None:
    rows = [(1, "<a><b>x</b></a>"), (2, "<a/>"), (3, "<")]
    events = spark.createDataFrame(rows, "id int, body string")
    done = hg.backtest(events, "//a/b", dialect="xpath", data="body", format="xml", keep=["Body"])
    assert [tuple(row) for row in done.matching.collect()] == [rows[0][1:]]
    assert (done.events, done.matches, done.rejected) == (2, 1, 1)


# Changes


def test_changes(spark: SparkSession, snapshot: Path) -> None:
    """As a DataFrame or as dicts: the difference of two matches, and what is refused."""
    changes = [
        {"id": "old", "filter": "age > 10"},
        {"op": "unsubscribe", "id": "red"},
        {"id": "new", "filter": "age >"},
    ]
    table = spark.createDataFrame(
        [tuple(row.get(name) for name in ("op", "ID", "id", "filter")) for row in changes],
        "op string, x string, id string, filter string",
    ).drop("x")
    session = hostile(spark, 0)
    before = session.conf.getAll
    tried = hg.what_if(events_in(session), snapshot, changes, id="uuid")
    assert pairs_of(tried.changed) == {("u1", "red", "lost"): 1, ("u2", "old", "gained"): 1}
    assert (tried.events, tried.gained, tried.lost) == (3, 1, 1)
    assert (tried.changes, tried.rejected) == ({"replace": 1, "unsubscribe": 1}, 1)
    effects = [(each.id, each.before, each.after, each.gained, each.lost) for each in tried.effects]
    assert effects == [("old", 1, 2, 1, 0), ("red", 1, 0, 0, 1)]
    assert session.conf.getAll == before
    again = hg.what_if(events_in(session), snapshot, table, id="uuid")
    assert (again.changes, again.rejected) == (tried.changes, 1)
    told = {row["table"]: row["reason"] for row in again.refused.collect()}
    assert sorted(told) == ["changes", "events"]
    assert told["changes"].startswith("a value or a condition is missing after this")
    assert told["events"].startswith("the event has no id")
    nothing = hg.what_if(events_in(spark), snapshot, [], id="uuid")
    assert nothing.changed.count() == 0


# Mistakes


def test_mistakes(spark: SparkSession, snapshot: Path, tmp_path: Path) -> None:
    events = events_in(spark)
    stream = spark.readStream.schema("id int").parquet(str(tmp_path))
    uuid: Any = {"id": "uuid"}
    wrong: Any = [1]
    calls: dict[str, Callable[[], object]] = {
        "no subscription 'oldd' here: did you mean 'old'?": lambda: hg.explain(
            events, snapshot, "oldd", **uuid
        ),
        "events has no column 'id'": lambda: hg.explain(events, snapshot, "old"),
        "keep is 'age': give a list": lambda: hg.explain(events, snapshot, "old", keep="age", **uuid),
        "events are list: give a DataFrame of Spark": lambda: hg.backtest(wrong, "a = 1"),
        "a value or a condition is missing after this": lambda: hg.backtest(events, "age >", **uuid),
        "no event of the DataFrame has the attribute agee; did you mean age?": lambda: hg.backtest(
            events, "agee > 3", **uuid
        ),
        "has no column 'id'; its columns are uuid, Age": lambda: hg.backtest(events, "age > 3"),
        "events has no column 'data'": lambda: hg.backtest(events, "//a", dialect="xpath", **uuid),
        "events are a stream, which has no end": lambda: hg.backtest(stream, "id > 3").matches,
        "events are a stream: what is gained and lost": lambda: hg.what_if(stream, snapshot, []),
        "changes are a stream: hand them to headgate stream": lambda: hg.what_if(events, snapshot, stream),
        "changes are int: give a DataFrame of Spark, or a list": lambda: hg.what_if(
            events, snapshot, wrong[0]
        ),
        "changes have a row that is int: give dicts": lambda: hg.what_if(events, snapshot, wrong),
        "changes have a row that JSON cannot hold": lambda: hg.what_if(events, snapshot, [{"id": b"1"}]),
        "changes has no column 'id'": lambda: hg.what_if(events, snapshot, events),
        "score": lambda: hg.what_if(events, snapshot, [], k=3, **uuid),
        "noise 2 is not a share of the events": lambda: hg.what_if(events, snapshot, [], noise=2, **uuid),
    }
    for reason, call in calls.items():
        with pytest.raises(HeadgateError) as refused:
            call()
        assert reason in str(refused.value)
        assert "\n" not in str(refused.value)
