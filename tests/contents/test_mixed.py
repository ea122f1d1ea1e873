"""Filters of several kinds of content in one engine: an event's content type says which of them are asked.

The contract over all surfaces has such worlds, and the suite over all content rooms such a room. What only a
mixture can get wrong is here.
"""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from headgate import Edge, Engine, Event, Node, Subscription
from headgate.contents import registry
from headgate.contents.mixed.index import OtherKind
from headgate.core import event as events
from headgate.core import subscription as subscriptions
from headgate.core.snapshot import is_snapshot, room_of
from headgate.core.versions.current import resolved
from headgate.errors import EventError, HeadgateError, SubscriptionError
from tests.contents.lines_kind import Lines

if TYPE_CHECKING:
    from pathlib import Path

RECORD = Event("r", {"age": 35})
GRAPH = Event("g", "<urn:x> a <urn:Art> .", content_type="turtle")
TREE = Event("t", "<a><b/></a>", content_type="xml")
SOME = [
    Subscription("old", "age > 30", score=2),
    Subscription("art", "ASK { ?x a <urn:Art> }", "sparql", score=1),
    Subscription("tree", "//a/b", "xpath", score=1),
    Subscription("every", "//*", "xpath", score=3),
]


def test_only_the_filters_of_an_events_kind_compete() -> None:
    engine = Engine.build(SOME)
    assert [engine.match(event) for event in (RECORD, GRAPH, TREE)] == [["old"], ["art"], ["every", "tree"]]
    assert [best.subscription for best in engine.top(TREE, 5)] == ["every", "tree"]
    engine.set_score("tree", 7)
    table = engine.top_batch([TREE, RECORD, GRAPH, TREE], 1)
    assert table["subscription_id"].to_pylist() == ["tree", "old", "art", "tree"]
    assert table["event_id"].to_pylist() == ["t", "r", "g", "t"]
    told = engine.explain(TREE, "old")
    assert told == OtherKind("records", "application/xml")
    assert told.lines() == ["no match: the filter looks at records, and the event is application/xml"]
    assert "no match: the filter looks at RDF" in "".join(engine.explain_rank(TREE, "art", 1).lines())
    assert repr(engine) == "<Engine: 4 subscriptions over records, RDF and XML, ranked>"
    assert "<td><code>xpath: //a/b</code></td>" in engine._repr_html_()
    assert (engine.filter("tree"), len(engine), engine.ids) == ("//a/b", 4, ["art", "every", "old", "tree"])


def test_what_filters_give() -> None:
    engine = Engine.build(SOME)
    assert engine.bindings(GRAPH, "art").rows == (("<urn:x>",),)
    assert engine.bindings(TREE, "art").rows == ()
    assert engine.answer(TREE, "tree") is not None
    assert engine.answer(GRAPH, "tree") is None
    for call, wrong, reason in (
        (engine.bindings, "old", "the filter of 'old' binds no variables: those of RDF do"),
        (engine.answer, "art", "the filter of 'art' returns no nodes: those of XML do"),
        (engine.answer, "nobody", "there is no subscription 'nobody' here"),
    ):
        with pytest.raises(SubscriptionError, match=reason):
            call(RECORD, wrong)
    assert len(engine.taxonomy) == 0
    unknown = engine.unknown([{"aeg": 3}, TREE])
    assert (unknown.attributes, unknown.names) == ({"aeg": "age"}, {"age": "aeg"})


def test_ids_are_unique_across_kinds() -> None:
    with pytest.raises(SubscriptionError, match="id 'old' is given 2 times"):
        Engine.build([*SOME, Subscription("old", "//c", "xpath")])
    engine = Engine.build(SOME, ranked=False)
    with pytest.raises(SubscriptionError, match="id 'old' is subscribed already"):
        engine.subscribe(Subscription("old", "//c", "xpath"))
    with pytest.raises(SubscriptionError, match="id 7 has the wrong type: ids here are text"):
        engine.subscribe(Subscription(7, "//c", "xpath"))
    engine.replace(Subscription("old", "//b", "xpath"))
    assert (engine.match(RECORD), engine.match(TREE)) == ([], ["every", "old", "tree"])
    engine.unsubscribe("old")
    engine.compact()
    assert engine.ids == ["art", "every", "tree"]
    some: list[Any] = [{"id": "art", "filter": "age > 3"}, {"id": "new", "filter": "/b", "dialect": "xpath"}]
    collected = Engine.build([*SOME, *some, Subscription("bad", "ASK {", "sparql")], on_error="collect")
    assert [each.id for each in collected.refused] == ["art", "bad"]


def test_events_of_no_kind_that_is_held_are_refused() -> None:
    engine = Engine.build(SOME[:2], ranked=False)
    reason = (
        "event 't' is application/xml and these filters look at records and RDF: send application/json, "
        "text/turtle, application/n-triples, application/rdf.xml, application/ld.json, application/rss.xml"
    )
    for call in (engine.match, lambda event: engine.match_batch([RECORD, event])):
        with pytest.raises(EventError, match=reason):
            call(TREE)
    with pytest.raises(SubscriptionError, match="dialect 'xpath' is of another kind: filters here look at"):
        engine.subscribe(SOME[2])
    documents = Engine.build(SOME[1:], ranked=False)
    with pytest.raises(EventError, match="event 0 is application/json and these filters look at RDF and XML"):
        documents.match_batch(pa.table({"age": [35]}))


def test_columns_of_records_and_documents() -> None:
    """A row is a document if it says so; every other row is a record."""
    engine = Engine.build([*SOME, Subscription("typed", "datacontenttype = 'text/html'")], ranked=False)
    rows = [
        {"id": "1", "age": 35},
        {"id": "2", "datacontenttype": "turtle", "data": GRAPH.data},
        {"id": "3", "datacontenttype": "text/html", "data": "<a/>"},
        {"id": "4", "datacontenttype": "xml", "data": TREE.data},
        {"id": "5", "datacontenttype": "xml", "age": 40},
    ]
    expected = [["old"], ["art"], ["typed"], ["every", "tree"], ["old"]]
    assert [engine.match(row) for row in rows] == expected
    schema: dict[str, pa.DataType] = dict.fromkeys(("id", "datacontenttype", "data"), pa.string())
    assert (
        engine.match_events(pa.Table.from_pylist(rows, pa.schema(schema | {"age": pa.int64()}))) == expected
    )
    assert engine.match_events(rows) == expected


def test_a_snapshot_has_one_of_each_kind_inside(tmp_path: Path) -> None:
    for ranked, inside in ((False, ""), (True, "filters")):
        place = tmp_path / f"snapshot{ranked}"
        Engine.build(SOME, ranked=ranked).save(place)
        place = resolved(place)
        assert room_of(place / inside) == "records+rdf+xml"
        assert all(is_snapshot(place / inside / kind) for kind in ("records", "rdf", "xml"))
        engine = pickle.loads(pickle.dumps(Engine.open(place)))
        assert [engine.match(event) for event in (RECORD, GRAPH, TREE)] == [
            ["old"],
            ["art"],
            ["every", "tree"],
        ]
        engine.subscribe(Subscription("late", "age < 40"))
        assert engine.match(RECORD) == ["late", "old"]


def test_a_subscription_without_filter_is_for_every_kind(tmp_path: Path) -> None:
    """What a node serves without a filter is one clause, which events of every kind meet."""
    nodes = [Node("pub"), Node("leaf", subscription="served"), Node("rdf", SOME[1].filter, dialect="sparql")]
    edges = [Edge("pub", "leaf"), Edge("pub", "rdf")]
    some = [replace(each, node="pub") for each in SOME]
    Engine.build(some, nodes=nodes, edges=edges, ranked=True).save(tmp_path / "graph")
    engine = Engine.open(tmp_path / "graph")
    for compacted in (False, True):
        if compacted:
            engine.compact()
        for event, own in ((RECORD, ["old"]), (GRAPH, ["art"]), (TREE, ["every", "tree"])):
            sent = replace(event, source="pub")
            assert engine.match(sent) == sorted([*own, "served"])
            assert {best.subscription for best in engine.top(sent, 9, "relaxed")} == {*own, "served"}
            assert ("rdf" in engine.graph.nodes(sent)) is (event is GRAPH)


class Tags(Lines):
    """A kind of one's own that looks at XML, as another does."""

    name = "tags"
    types = {"xml": "application/xml"}  # noqa: RUF012 -- never changed
    suffixes = {".xml": "application/xml"}  # noqa: RUF012 -- never changed


KIND = Tags()


def test_kinds_that_share_a_content_type_are_merged(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An event of two kinds is asked of both: what matches is merged, and so are the best."""
    monkeypatch.setenv(registry.MODULES, __name__)
    monkeypatch.setattr(subscriptions, "_dialects", [*subscriptions._dialects])  # noqa: SLF001 -- put back
    monkeypatch.setattr(events, "_KNOWN", {**events._KNOWN})  # noqa: SLF001 -- put back
    monkeypatch.setattr(events, "_OTHERS", [*events._OTHERS])  # noqa: SLF001 -- put back
    registry.kinds.cache_clear()
    try:
        more = [Subscription("begins", "<a", "prefix", score=2), Subscription("not", "<b", "prefix", score=9)]
        for ranked in (False, True):
            Engine.build([*SOME, *more], ranked=ranked).save(tmp_path / "snapshot")
            engine = Engine.open(tmp_path / "snapshot")
            assert engine.match(TREE) == ["begins", "every", "tree"]
            assert engine.match_events([GRAPH, TREE, RECORD]) == [
                ["art"],
                ["begins", "every", "tree"],
                ["old"],
            ]
        engine = Engine.open(tmp_path / "snapshot")
        assert [best.subscription for best in engine.top(TREE, 2)] == ["every", "begins"]
        kind = registry.kind_of("xml+tags")
        (read,) = kind.read([TREE])
        assert not isinstance(read, HeadgateError)
        data, content_type = kind.unpack(kind.pack(read.events[0]))
        assert engine.match(Event("t", data, content_type=content_type)) == ["begins", "every", "tree"]
        (wrong,) = kind.read([replace(TREE, data="<a>\n")])
        assert str(wrong).startswith("not valid XML")
    finally:
        registry.kinds.cache_clear()
