"""Results of many matches at once are those of one after the other, whatever stands around the filters."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from headgate import Engine, Event, Omission, Omissions, Subscription
from headgate.contents import results as results_room
from headgate.contents.results import ResultRows, result_columns
from headgate.core.rooms import RDF, RECORDS, XML
from headgate.core.subscription import SPARQL, SQL, XPATH
from headgate.engine.question import Question as Asked
from headgate.errors import HeadgateError, TableError
from headgate.rdf.index import bindings
from headgate.runtime.engines import Runtime
from headgate.tables.results import Tables
from tests.contract.library import Library
from tests.contract.telling import MIXED, taxonomy
from tests.contract.world import Question, draw_world
from tests.seeds import seeds
from tests.spark.jobs import compile_graph, compile_subscriptions

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from headgate.core.event import Id
    from tests.contract.world import World

Found = dict[tuple[Any, Any], tuple[Any, bool]]
WORLDS = [
    pytest.param(
        content, graph, ranked, id=f"{content}-{'graph' if graph else 'ranked' if ranked else 'plain'}"
    )
    for content in (RECORDS, RDF, XML, MIXED)
    for graph, ranked in ((False, False), (False, True), (True, False))
]


def one_by_one(
    engine: Engine, event: Event, identity: Id, dialect: str | None, limit: int
) -> tuple[Any, bool]:
    """Ask for what one match gives, and whether that is all; `dialect` is None if only a node serves it."""
    if event.content_type == "application/json":
        return [], True
    if dialect is None:
        return [{}], True
    if dialect == SPARQL:
        bound = engine.bindings(event, identity, limit)
        return bound.plain(), bound.complete
    answer = engine.answer(event, identity)
    if answer is None:
        return [], True
    tuples = answer.tuples(limit)
    rows = [
        {name: text if isinstance(text, str) else ",".join(map(str, text)) for name, text in row.items()}
        for row in (dict(zip(tuples.names, each, strict=True)) for each in tuples.rows)
    ]
    return rows, tuples.complete


def rows_of(table: pa.Table | Iterable[pa.RecordBatch]) -> Found:
    """Read a table of matches with results: by event and subscription."""
    batches = table.to_batches() if isinstance(table, pa.Table) else table
    rows = [row for batch in batches for row in batch.to_pylist()]
    found = {
        (row["event_id"], row["subscription_id"]): (_maps(row["results"]), row["complete"]) for row in rows
    }
    assert len(found) == len(rows)
    return found


def _maps(results: Any) -> Any:
    return None if results is None else [dict(each) for each in results]


def events_of(world: World) -> list[Event]:
    return [Event.from_row(row) for row in world.events]


def expected(engine: Engine, world: World, question: Question, limit: int) -> Found:
    dialects = {row["id"]: row["dialect"] for row in world.at(question)}
    return {
        (event.id, each): one_by_one(engine, event, each, dialects.get(each), limit)
        for event in events_of(world)
        for each in engine.match(event)
    }


@pytest.mark.parametrize(("content", "graph", "ranked"), WORLDS)
def test_as_one_by_one(content: str, graph: bool, ranked: bool) -> None:
    world = draw_world(content, tuple(seeds(48)), graph=graph, ranked=ranked)
    library = Library(world)
    for question in (Question(), Question(changed=True)):
        library.turn_to(question)
        engine = library.asked
        for limit in (1, 1000):
            wanted = expected(engine, world, question, limit)
            assert any(rows for rows, _ in wanted.values()) is (content != RECORDS)
            assert rows_of(engine.match_batch(events_of(world), results=limit)) == wanted


@pytest.mark.parametrize("content", [RDF, XML, MIXED])
def test_columns(content: str) -> None:
    """Documents in columns are read once, and give the same."""
    world = draw_world(content, tuple(seeds(16)), graph=True, ranked=False)
    engine = Library(world).engine
    names = ("id", "source", "data", "datacontenttype")
    rows = [row for row in world.events if "data" in row]
    table = pa.table({name: [row.get(name) for row in rows] for name in names})
    wanted = rows_of(engine.match_batch([Event.from_row(row) for row in rows], results=True))
    assert wanted
    assert rows_of(engine.match_batch(table, results=True)) == wanted


@pytest.mark.parametrize("content", [RDF, MIXED])
def test_best(content: str) -> None:
    """The best have results, too, and nearly matching filters have none."""
    world = draw_world(content, tuple(seeds(16)), graph=False, ranked=True)
    engine = Library(world).engine
    whole = rows_of(engine.match_batch(events_of(world), results=True))
    for mode in ("exact", "relaxed"):
        best = engine.top_batch(events_of(world), 3, mode, results=True)
        assert best.column_names == ["event_id", "subscription_id", "score", "rank", "results", "complete"]
        assert best.drop_columns(["results", "complete"]) == engine.top_batch(events_of(world), 3, mode)
        for pair, found in rows_of(best).items():
            assert found == whole.get(pair, ([], True))


@pytest.mark.parametrize(("content", "graph"), [(XML, False), (MIXED, False), (MIXED, True)])
def test_shards(content: str, graph: bool, tmp_path: Path) -> None:
    world = draw_world(content, tuple(seeds(16)), graph=graph, ranked=graph)
    tables = {name: tmp_path / f"{name}.jsonl" for name in ("subscriptions", "nodes", "edges")}
    for name, place in tables.items():
        place.write_text("\n".join(json.dumps(row) for row in getattr(world, name)), "utf-8")
    more: Any = {"rejected": str(tmp_path / "rejected.jsonl"), "taxonomy": taxonomy(content), "shards": 3}
    to = str(tmp_path / "snapshot")
    if graph:
        places = Tables(*(str(tables[name]) for name in ("nodes", "edges", "subscriptions")))
        compile_graph(None, places, to, quiet=True, **more)
    else:
        compile_subscriptions(None, str(tables["subscriptions"]), to, quiet=True, **more)
    shards = Runtime.open(tmp_path / "snapshot")
    events = events_of(world)
    names: list[Any] = [event.id for event in events]
    ids = pa.array(names)
    wanted = expected(Library(world).engine, world, Question(), 1000)
    assert rows_of(shards.ask(events, ids, Asked.of(results=1000))) == wanted


def test_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    """What takes too long, or is too large, is NULL and told; the others have theirs, in parts that fit."""
    monkeypatch.setattr(bindings, "STEPS", 50)
    given = [
        Subscription("easy", "ASK { <urn:a> <urn:p> ?x }", SPARQL),
        Subscription("hard", "ASK { ?v <urn:p> ?w . ?w <urn:p> ?x . ?x <urn:p> ?y . ?y <urn:p> ?z }", SPARQL),
        Subscription("long", "//b{cont}", XPATH),
        Subscription("short", "//c{val}", XPATH),
    ]
    engine = Engine.build(given)
    names = "abcdef"
    turtle = " ".join(f"<urn:{one}> <urn:p> <urn:{other}> ." for one in names for other in names)
    text = f"<a><b>{'x' * 500}</b><b/><c>{'y' * 300}</c></a>"
    events = [
        Event("e1", turtle, content_type="turtle"),
        Event("e2", text, content_type="xml"),
        Event("e3", text, content_type="xml"),
    ]
    monkeypatch.setattr(results_room, "LARGEST", 400)
    monkeypatch.setattr(results_room, "ENOUGH", 100)
    with Omissions() as left_out:
        found = rows_of(engine.match_batch(events, results=True))
    assert found["e1", "hard"] == found["e2", "long"] == (None, False)
    assert found["e1", "easy"] == ([{"x": f"urn:{each}"} for each in names], True)
    assert found["e2", "short"] == found["e3", "short"] == ([{"c.val": "y" * 300}], True)
    large = (
        "it matches, but its results are too much: they have more than 400 characters; ask for fewer, send "
        "smaller events, or narrow the filter"
    )
    steps = (
        "it matches, but its results are too much: searching for its bindings takes more than 100 steps; "
        "send smaller events, or narrow the filter"
    )
    assert list(left_out) == [
        Omission("e1", "hard", steps),
        Omission("e2", "long", large),
        Omission("e3", "long", large),
    ]


def test_counted_and_by_threads() -> None:
    """Statistics count the events by their ids, and threads change nothing."""
    counted = []
    for results in (False, True):
        engine = Engine.build([Subscription("s", "//a{val}", XPATH), Subscription("t", "//b", XPATH)])
        statistics = engine.statistics()
        events = [Event(f"e{number}", f"<a>{number}</a>", content_type="xml") for number in range(600)]
        found = engine.match_batch(events, results=results, threads=2)
        assert found["event_id"].to_pylist() == [event.id for event in events]
        counted.append(statistics.table().select(["subscription_id", "matches", "last_event"]).to_pylist())
        if results:
            assert found["results"].to_pylist() == [[[("a.val", str(number))]] for number in range(600)]
    assert counted[0] == counted[1]


def test_gone_meanwhile() -> None:
    """A subscription that is removed between its match and its results has no row."""
    engine = Engine.build([Subscription(each, "//a{val}", XPATH) for each in ("s1", "s2")])
    event = Event("e", "<a>1</a>", content_type="xml")
    ids = pa.array([0])
    found = [*engine.backend.ask([event], ids)]
    engine.unsubscribe("s1")
    (rows,) = results_room.with_results(found, [event], ids, engine.backend.homes, 10)
    assert rows.to_pylist() == [
        {"event_id": 0, "subscription_id": "s2", "results": [[("a.val", "1")]], "complete": True}
    ]


def test_records_and_nothing() -> None:
    """Filters of records give an empty list, and a table without rows has the columns."""
    engine = Engine.build([Subscription("s", "age > 30", SQL)])
    assert engine.match_batch(pa.table({"age": [35]}), results=True).to_pylist() == [
        {"event_id": 0, "subscription_id": "s", "results": [], "complete": True}
    ]
    none = engine.match_batch(pa.table({"age": [3]}), results=True)
    assert (none.num_rows, none.schema.field("results").type) == (0, results_room.RESULTS_TYPE)
    assert engine.match_batch([], results=5).column_names[-2:] == ["results", "complete"]
    columns = result_columns([ResultRows(("x",), (("1",),), complete=True), None])
    assert [each.null_count for each in columns] == [1, 0]


@pytest.mark.parametrize("wrong", [0, -1, 1.5, "all", 1_000_001, [3]])
def test_wrong_limits(wrong: Any) -> None:
    engine = Engine.build([Subscription("s", "age > 30", SQL)])
    with pytest.raises(TableError, match="give True, or how many rows of a match, from 1 to 1,000,000"):
        engine.match_batch([{"age": 35}], results=wrong)


def test_bad_documents_are_told() -> None:
    engine = Engine.build([Subscription("s", "//a", XPATH)])
    table = pa.table({"id": ["e1"], "data": ["<a>"], "datacontenttype": ["xml"]})
    with pytest.raises(HeadgateError, match="event 'e1': "):
        engine.match_batch(table, results=True)
