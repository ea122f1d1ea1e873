"""The facade answers as the rooms behind it do."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from headgate import Edge, Engine, Event, Node, Options, Subscription, Taxonomy
from headgate.core.snapshot import write_snapshot
from headgate.errors import EventError, GraphError, SnapshotError, SubscriptionError, TaxonomyError
from headgate.graph.index import GraphIndex
from headgate.ranking.filters.index import RankedIndex
from headgate.rdf.index.index import RdfIndex
from headgate.rdf.language.model import SUBCLASS
from headgate.records.index.index import RecordIndex
from tests.graph.random_graphs import SHAPES, draw_event, draw_graph
from tests.graph.reference import reach_nodes
from tests.ranking import filters_reference as content_reference
from tests.ranking.filters_reference import holds

if TYPE_CHECKING:
    from pathlib import Path

    from headgate import Best
    from headgate.core.event import Id

EVENT = Event("e", {"age": 35}, source="pub")


def with_graph() -> Engine:
    return Engine.build(
        [Subscription("s", "age > 30", node="net", score=2.0)],
        nodes=[Node("pub"), Node("net", "age < 40")],
        edges=[Edge("pub", "net")],
    )


def pairs(found: object) -> list[tuple[Id, float]]:
    assert isinstance(found, list)
    return [(each.subscription, each.value) for each in found]


@pytest.mark.parametrize("kind", ["graph", "records", "ranked", "ranked graph"])
def test_match_subscribe_explain_save_open(tmp_path: Path, kind: str) -> None:
    if "graph" in kind:
        engine = Engine.build(
            [Subscription("s", "age > 30", node="net")],
            nodes=[Node("pub"), Node("net", "age < 40")],
            edges=[Edge("pub", "net")],
            ranked="ranked" in kind,
        )
    else:
        engine = Engine.build([Subscription("s", "age > 30")], ranked=kind == "ranked")
    node = "net" if "graph" in kind else None
    assert engine.match(EVENT) == ["s"]
    engine.subscribe(Subscription("t", "age = 35", node=node))
    assert engine.match(EVENT) == ["s", "t"]
    engine.unsubscribe("s")
    assert engine.match(EVENT) == ["t"]
    assert engine.explain(EVENT, "t").matches
    assert "match" in engine.explain(EVENT, "t").lines()[0]
    engine.save(tmp_path / "snapshot")
    opened = Engine.open(tmp_path / "snapshot")
    assert opened.match(EVENT) == ["t"]
    if "ranked" in kind:
        assert pairs(opened.top(EVENT, 3, "relaxed")) == [("t", 1.0)]


def test_what_is_held() -> None:
    plain, scored = Subscription("s", "TRUE"), Subscription("s", "TRUE", score=1)
    weighed = Subscription("s", "TRUE", weights=[2])
    for subscriptions, ranked, kind in (
        ([plain], None, RecordIndex),
        ([plain], True, RankedIndex),
        ([scored], None, RankedIndex),
        ([weighed], None, RankedIndex),
        ([weighed], False, RecordIndex),
        ([], None, RecordIndex),
    ):
        assert type(Engine.build(subscriptions, ranked=ranked).index) is kind
    assert type(with_graph().index) is GraphIndex


def test_what_needs_a_graph() -> None:
    assert [each.value for each in with_graph().top(EVENT, 5)] == [1.0]
    assert [each.value for each in with_graph().top(EVENT, 5, by="times", decay=0.5)] == [1.0]
    assert with_graph().top(EVENT, 0) == []
    with pytest.raises(GraphError, match="there is no graph here"):
        assert Engine.build([]).graph
    with pytest.raises(GraphError, match="`by`, `decay` and `hops` say what the way through a graph costs"):
        Engine.build([]).top(EVENT, 1, by="times")
    with pytest.raises(GraphError, match="there are edges and no nodes"):
        Engine.build([], edges=[Edge("a", "b")])
    with pytest.raises(GraphError, match="subscription 's' is attached to node 'net', and there is no graph"):
        Engine.build([Subscription("s", "TRUE", node="net")])


def test_what_needs_ranks() -> None:
    engine = Engine.build([Subscription("s", "age > 30"), Subscription("r", "age > 20")])
    assert pairs(engine.top(EVENT, 1)) == [("r", 0.0)]
    assert engine.explain_rank(EVENT, "s", 1).rank == 2
    for built, node in ((engine, None), (with_graph(), "net")):
        with pytest.raises(
            SubscriptionError, match="clauses are not ranked here: build the engine with ranked=True"
        ):
            built.top(EVENT, 1, "relaxed")
        with pytest.raises(SubscriptionError, match="clauses are not ranked here"):
            built.set_weights("s", None)
        with pytest.raises(SubscriptionError, match="clauses are not ranked here"):
            built.explain_rank(EVENT, "s", 1, "relaxed")
        with pytest.raises(
            SubscriptionError, match="subscription 't' has weights, and clauses are not ranked here"
        ):
            built.subscribe(Subscription("t", "TRUE", node=node, weights=[1]))
    with pytest.raises(SubscriptionError, match="nothing is ranked here: build the engine with ranked=True"):
        engine.set_score("s", 1.0)
    with pytest.raises(SubscriptionError, match="there is no mode 'best'"):
        engine.top(EVENT, 1, "best")


def test_ranks_without_a_graph() -> None:
    engine = Engine.build(
        [
            Subscription("s", "age > 30", score=1),
            Subscription("t", "age > 20 AND size = 1", score=2, weights=[3, 1]),
        ]
    )
    assert pairs(engine.top(EVENT, 5)) == [("s", 1.0)]
    assert pairs(engine.top(EVENT, 5, "relaxed")) == [("t", 3.0), ("s", 1.0)]
    assert pairs(engine.top(EVENT, 5, "relaxed", factors={"age": 0})) == []
    engine.set_weights("t", {"age": 0.5})
    engine.subscribe(Subscription("u", "age > 30", score=5))
    engine.set_score("s", 9)
    assert pairs(engine.top(EVENT, 5)) == [("s", 9.0), ("u", 5.0)]
    assert pairs(engine.top(EVENT, 5, "relaxed")) == [("s", 1.0), ("u", 1.0), ("t", 0.5)]
    assert engine.explain_rank(EVENT, "u", 1).lines()[0] == "not among the best 1: rank 2, score 5"
    assert engine.explain_rank(EVENT, "t", 1, "relaxed").rank == 3


def test_ranks_in_a_graph(tmp_path: Path) -> None:
    engine = Engine.build(
        [
            Subscription("a", "age > 30 AND size = 1", node="net", score=1.0, weights={"age": 2}),
            Subscription("b", "age > 30", node="far", score=5.0),
            Subscription("c", "age > 40", node="net", score=3.0),
            Subscription("d", "age > 20", node="pub"),
        ],
        nodes=[
            Node("pub"),
            Node("net", "age < 40"),
            Node("far", "age > 90"),
            Node("own", subscription="e", score=4.0),
        ],
        edges=[Edge("pub", "net"), Edge("net", "far"), Edge("net", "own")],
    )
    assert pairs(engine.top(EVENT, 5)) == [("e", 2.0), ("d", 0.0)]
    expected = [("a", 2.0), ("d", 1.0), ("e", 1.0)]
    assert pairs(engine.top(EVENT, 5, "relaxed")) == expected
    engine.save(tmp_path / "snapshot")
    engine = Engine.open(tmp_path / "snapshot")
    assert pairs(engine.top(EVENT, 5, "relaxed")) == expected
    engine.set_score("d", 7.0)
    engine.set_weights("d", [9])
    assert pairs(engine.top(EVENT, 5)) == [("d", 7.0), ("e", 2.0)]
    assert pairs(engine.top(EVENT, 5, "relaxed")) == [("d", 9.0), ("a", 2.0), ("e", 1.0)]
    engine.graph.set_filter("far", None)
    assert pairs(engine.top(EVENT, 5)) == [("d", 7.0), ("b", 3.0), ("e", 2.0)]
    assert pairs(engine.top(EVENT, 5, "relaxed")) == [("d", 9.0), ("a", 2.0), ("b", 1.0), ("e", 1.0)]
    why = engine.explain_rank(EVENT, "e", 1)
    assert (why.rank, why.value) == (3, 2.0)
    assert why.lines() == [
        "not among the best 1: rank 3, score 2",
        "  place 1 is 'd' with 7",
        "5 short of place 1",
    ]
    assert engine.explain_rank(EVENT, "c", 2).lines()[0] == "not among the best 2: no match"
    assert engine.explain_rank(EVENT, "a", 1, "relaxed").rank == 2
    engine.graph.set_filter("far", "age > 90")
    blocked = engine.explain_rank(EVENT, "b", 3, "relaxed")
    assert (blocked.rank, blocked.value) == (None, 1.0)
    assert blocked.lines()[0] == "not among the best 3: the event does not get there"
    assert any("age > 90" in line for line in blocked.lines())
    for weights in ([1, 2], {"size": 1}):
        with pytest.raises(SubscriptionError):
            engine.subscribe(Subscription("f", "age > 3", node="net", weights=weights))
    assert "f" not in engine.match(EVENT)
    with pytest.raises(GraphError, match="there is no node 'nowhere'"):
        engine.subscribe(Subscription("f", "age > 3", node="nowhere"))
    with pytest.raises(SubscriptionError, match="there is no subscription 'f' here"):
        engine.unsubscribe("f")
    with pytest.raises(SubscriptionError, match="there is no subscription 'f' here"):
        engine.set_score("f", 1.0)


def test_nodes_that_come_and_go_take_their_subscriptions_along(tmp_path: Path) -> None:
    engine = Engine.build(
        [Subscription("a", "age > 30", node="net"), Subscription("b", "age > 40 AND age > 1", node="pub")],
        nodes=[Node("pub"), Node("net")],
        edges=[Edge("pub", "net")],
        ranked=True,
    )
    engine.graph.add_node(Node("new", "age > 3", subscription="z"))
    engine.graph.add_edge(Edge("net", "new"))
    assert pairs(engine.top(EVENT, 5, "relaxed")) == [("a", 1.0), ("b", 1.0), ("z", 1.0)]
    engine.set_weights("z", [4])
    engine.graph.remove_node("net")
    assert pairs(engine.top(EVENT, 5, "relaxed")) == [("b", 1.0)]
    with pytest.raises(SubscriptionError, match="there is no subscription 'a' here"):
        engine.set_weights("a", [4])
    engine.graph.add_edge(Edge("pub", "new"))
    assert pairs(engine.top(EVENT, 5, "relaxed")) == [("z", 4.0), ("b", 1.0)]
    engine.subscribe(Subscription("a", "age > 30 AND age > 31", node="pub"))
    engine.graph.compact()
    assert pairs(engine.top(EVENT, 5, "relaxed")) == [("z", 4.0), ("a", 2.0), ("b", 1.0)]
    engine.unsubscribe("z")
    engine.save(tmp_path / "snapshot")
    opened = Engine.open(tmp_path / "snapshot")
    assert pairs(opened.top(EVENT, 5, "relaxed")) == [("a", 2.0), ("b", 1.0)]


@pytest.mark.parametrize("shape", SHAPES)
def test_relaxed_over_random_graphs(shape: str) -> None:
    """Among the subscriptions at nodes that are reached, as the slow twin ranks them, through changes."""
    rng = random.Random(shape)
    drawn = draw_graph(rng, shape, 30)
    texts = ["age > 5", "topic = 'news' AND age < 9", "age < 7 AND tags IS NULL AND topic = 'art'", "TRUE"]
    here = {
        each.id: Subscription(each.id, rng.choice(texts), node=each.node, score=rng.choice([0.0, 1.0]))
        for each in drawn.subscriptions
    }
    engine = Engine.build(here.values(), nodes=drawn.nodes, edges=drawn.edges, ranked=True)
    nodes = [node for node in drawn.nodes if node.subscription is not None]
    for step in range(12):
        event = draw_event(rng, str(rng.choice(drawn.nodes).id))
        found = pairs(engine.top(event, 6, "relaxed"))
        assert found == expected(event, drawn.nodes, drawn.edges, here, nodes)[:6]
        if here and step % 3 == 0:
            gone = rng.choice(sorted(here, key=str))
            engine.unsubscribe(gone)
            del here[gone]
            nodes = [node for node in nodes if node.subscription != gone]
        elif step % 3 == 1:
            fresh = f"new{step}" if not here or isinstance(next(iter(here)), str) else 1000 + step
            here[fresh] = Subscription(fresh, rng.choice(texts), node=rng.choice(drawn.nodes).id)
            engine.subscribe(here[fresh])
        elif here:
            some = rng.choice(sorted(here, key=str))
            count = len(RecordIndex.clauses(here[some].filter))
            weights = [rng.choice([0.0, 0.5, 2.0]) for _ in range(count)]
            engine.set_weights(some, weights)
            here[some] = Subscription(some, here[some].filter, node=here[some].node, weights=weights)


@pytest.mark.parametrize("shape", SHAPES)
def test_scores_that_change_in_random_graphs(shape: str) -> None:
    rng = random.Random(f"scores {shape}")
    drawn = draw_graph(rng, shape, 40)
    engine = Engine.build(drawn.subscriptions, nodes=drawn.nodes, edges=drawn.edges)
    hung = {each.id: each for each in drawn.subscriptions}
    served = {node.subscription for node in drawn.nodes if node.subscription is not None}
    scores: dict[Id, float] = {}
    for step in range(15):
        identity = rng.choice(sorted(served | set(hung), key=str))
        scores[identity] = rng.choice([-3.0, 0.0, 1.0, 2.5, 9.0])
        engine.set_score(identity, scores[identity])
        assert engine.graph.score(identity) == scores[identity]
        if step % 5 == 4:
            engine.graph.compact()
        subscriptions = [replace(each, score=scores.get(each.id, each.score)) for each in hung.values()]
        nodes = [
            node
            if node.subscription is None
            else replace(node, score=scores.get(node.subscription, node.score))
            for node in drawn.nodes
        ]
        rebuilt = Engine.build(subscriptions, nodes=nodes, edges=drawn.edges)
        event = draw_event(rng, str(rng.choice(drawn.nodes).id))
        for by in ("minus", "times"):
            assert pairs(engine.top(event, 4, by=by)) == pairs(rebuilt.top(event, 4, by=by))


def expected(
    event: Event,
    nodes: list[Node],
    edges: list[Edge],
    subscriptions: dict[Id, Subscription],
    serving: list[Node],
) -> list[tuple[Id, float]]:
    assert event.source is not None
    reached = reach_nodes(
        nodes, edges, event.source, lambda text, dialect: holds(RecordIndex, text, dialect, event)
    )
    at = reached | {event.source}
    came = {each.id: each for each in subscriptions.values() if each.node in at}
    for node in serving:
        assert node.subscription is not None
        own = subscriptions.get(node.subscription)
        if own is not None and node.id in at:
            came[own.id] = own
        elif own is None and node.id in reached:
            came[node.subscription] = Subscription(node.subscription, "TRUE")
    found: list[Best] = content_reference.relaxed(came.values(), event, 100, room=RecordIndex)
    return pairs(found)


def test_other_rooms_are_refused(tmp_path: Path) -> None:
    write_snapshot(tmp_path / "x", "other", {}, counts={}, about={})
    with pytest.raises(SnapshotError, match="is a snapshot of 'other'"):
        Engine.open(tmp_path / "x")


# RDF

EX = "http://example.org/"
PREFIX = f"PREFIX : <{EX}> PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#> "
DOCUMENT = Event(
    "e",
    f"@prefix : <{EX}> . :a a :Painting ; :year 2001 ; :by :x . :b :year 1990 .",
    source="pub",
    content_type="text/turtle",
)
RDF_KINDS = ["plain", "ranked", "graph", "ranked graph"]


def art() -> Taxonomy:
    return Taxonomy.of([(f"<{EX}Painting>", SUBCLASS, f"<{EX}Art>")])


def asking(identity: Id, where: str, **more: Any) -> Subscription:
    return Subscription(identity, f"{PREFIX} SELECT * {{ {where} }}", "sparql", **more)


def over_rdf(kind: str, *subscriptions: Subscription, options: Options | None = None) -> Engine:
    if "graph" not in kind:
        return Engine.build(subscriptions, ranked=kind == "ranked", taxonomy=art(), options=options)
    return Engine.build(
        [replace(each, node="net") for each in subscriptions],
        nodes=[
            Node("pub"),
            Node("net", f"{PREFIX} ASK {{ ?x :year ?y FILTER(?y > 2000) }}", dialect="sparql"),
            Node("far", "(?x, <http://example.org/year>, ?y, {}, {?y > 3000})", dialect="tuples"),
            Node("own", subscription="o"),
        ],
        edges=[Edge("pub", "net"), Edge("net", "far"), Edge("net", "own")],
        ranked="ranked" in kind,
        taxonomy=art(),
        options=options,
    )


@pytest.mark.parametrize("kind", RDF_KINDS)
def test_rdf_through_everything(tmp_path: Path, kind: str) -> None:
    graph = "graph" in kind
    own = ["o"] if graph else []
    node = "net" if graph else None
    engine = over_rdf(kind, asking("s", "?x a/rdfs:subClassOf* :Art ; :year ?y"), asking("z", "?x :no ?y"))
    assert engine.match(DOCUMENT) == [*own, "s"]
    engine.subscribe(Subscription("t", "(?x, <http://example.org/by>, ?z)", "tuples", node=node))
    assert engine.match(DOCUMENT) == [*own, "s", "t"]
    found = engine.bindings(DOCUMENT, "s")
    assert (found.names, found.complete) == (("?x", "?y"), True)
    assert found.rows == ((f"<{EX}a>", '"2001"^^<http://www.w3.org/2001/XMLSchema#integer>'),)
    assert engine.bindings(DOCUMENT, "t").names == ("?x", "?z")
    assert engine.bindings(DOCUMENT, "z").rows == ()
    assert engine.explain(DOCUMENT, "s").matches
    assert not engine.explain(DOCUMENT, "z").matches
    # What is in the taxonomy counts for the next event, wherever filters are.
    engine.taxonomy.remove((f"<{EX}Painting>", SUBCLASS, f"<{EX}Art>"))
    assert engine.match(DOCUMENT) == [*own, "t"]
    if kind != "plain":
        value = [each.subscription for each in engine.top(DOCUMENT, 5)]
        assert sorted(value, key=str) == [*own, "t"]
    if "ranked" in kind:
        # Of "s" one clause is left that holds.
        assert dict(pairs(engine.top(DOCUMENT, 5, "relaxed"))) == {
            **dict.fromkeys(own, 1.0),
            "s": 1.0,
            "t": 1.0,
        }
    engine.save(tmp_path / "snapshot")
    opened = Engine.open(tmp_path / "snapshot")
    assert opened.match(DOCUMENT) == [*own, "t"]
    opened.taxonomy.add((f"<{EX}Painting>", SUBCLASS, f"<{EX}Art>"))
    assert opened.match(DOCUMENT) == [*own, "s", "t"]
    if "ranked" in kind:
        assert dict(pairs(opened.top(DOCUMENT, 5, "relaxed")))["s"] == 2.0
        assert opened.explain_rank(DOCUMENT, "s", 1, "relaxed").rank == 1
    opened.unsubscribe("t")
    opened.save(tmp_path / "again")
    assert Engine.open(tmp_path / "again").match(DOCUMENT) == [*own, "s"]


def test_ways_through_a_graph_of_patterns(tmp_path: Path) -> None:
    engine = over_rdf("ranked graph", asking("s", "?x :year ?y", weights={f"{EX}year": 3}))
    engine.graph.add_node(Node("new", subscription="n"))
    engine.graph.add_edge(Edge("far", "new"))
    assert engine.match(DOCUMENT) == ["o", "s"]
    assert engine.bindings(DOCUMENT, "o") == ((), ((),), True)
    assert engine.bindings(DOCUMENT, "n").rows == ()
    assert len(engine.bindings(DOCUMENT, "s").rows) == 2
    assert engine.bindings(DOCUMENT, "s", 1).complete is False
    engine.graph.set_filter("net", f"{PREFIX} ASK {{ :nobody ?p ?o }}", "sparql")
    assert engine.match(DOCUMENT) == []
    assert engine.bindings(DOCUMENT, "s").rows == ()
    engine.graph.set_filter("net", None)
    engine.graph.set_filter("far", "ASK {}", "sparql")
    engine.graph.compact()
    assert engine.match(DOCUMENT) == ["n", "o", "s"]
    assert pairs(engine.top(DOCUMENT, 5, "relaxed")) == [("s", 3.0), ("n", 1.0), ("o", 1.0)]
    engine.save(tmp_path / "snapshot")
    opened = Engine.open(tmp_path / "snapshot")
    assert opened.match(DOCUMENT) == ["n", "o", "s"]
    assert pairs(opened.top(DOCUMENT, 5, "relaxed")) == [("s", 3.0), ("n", 1.0), ("o", 1.0)]
    assert pairs(opened.top(DOCUMENT, 1)) == pairs(engine.top(DOCUMENT, 1))
    with pytest.raises(SubscriptionError, match="there is no subscription 'nobody' here"):
        opened.bindings(DOCUMENT, "nobody")


@pytest.mark.parametrize("kind", RDF_KINDS)
def test_options_reach_all_filters(tmp_path: Path, kind: str) -> None:
    event = replace(DOCUMENT, data=f'@prefix : <{EX}> . :a :year "2001", 2001 .')
    asked = asking(
        "s", "?x :year ?y, ?z FILTER(?y = ?z && isLITERAL(?y) && ?y < 3000 && DATATYPE(?y) != DATATYPE(?z))"
    )
    strict, lax = over_rdf(kind, asked), over_rdf(kind, asked, options=Options(coerce=True))
    assert "s" not in strict.match(event)
    assert "s" in lax.match(event)
    assert len(lax.bindings(event, "s").rows) == 2
    lax.save(tmp_path / "snapshot")
    assert "s" in Engine.open(tmp_path / "snapshot").match(event)


def test_an_engine_of_one_content_is_asked_about_that() -> None:
    records, patterns = Subscription("r", "age > 3"), asking("p", "?x ?y ?z")
    with pytest.raises(
        SubscriptionError, match=r"a taxonomy and options are for filters of RDF, and these are"
    ):
        Engine.build([records], taxonomy=Taxonomy())
    with pytest.raises(
        SubscriptionError, match="dialect 'sparql' is not for records: filters of records are"
    ):
        Engine.build([records]).subscribe(patterns)
    for kind in RDF_KINDS:
        engine = over_rdf(kind, patterns)
        wrong = replace(records, node="net" if "graph" in kind else None)
        with pytest.raises(
            SubscriptionError, match="dialect 'sql' is not for RDF events: filters of RDF events are"
        ):
            engine.subscribe(wrong)
        assert "r" not in engine.match(DOCUMENT)
        with pytest.raises(EventError, match=r"application/json and these filters look at RDF"):
            engine.match(EVENT)
        with pytest.raises(EventError, match=r"application/xml and these filters look at RDF"):
            engine.match(replace(DOCUMENT, data="<x/>", content_type="xml"))
    for engine in (Engine.build([records]), with_graph()):
        with pytest.raises(TaxonomyError, match="there is no taxonomy here"):
            assert engine.taxonomy
        with pytest.raises(SubscriptionError, match=r"binds no variables|no subscription 'r' here"):
            engine.bindings(EVENT, "r")
    with pytest.raises(SubscriptionError, match="nothing is ranked here"):
        over_rdf("plain", patterns).set_score("p", 1.0)
    assert isinstance(Engine.build(options=Options()).index, RdfIndex)
    assert isinstance(Engine.build().index, RecordIndex)
