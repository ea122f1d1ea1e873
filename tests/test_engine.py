"""The facade answers as the rooms behind it do."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from headgate import (
    Edge,
    Engine,
    Event,
    GraphError,
    GraphIndex,
    Node,
    RankedIndex,
    RecordIndex,
    SnapshotError,
    Subscription,
    SubscriptionError,
)
from headgate.core.snapshot import write_snapshot
from headgate.graph.reference import reach_nodes
from headgate.ranking import content_reference
from headgate.ranking.content_reference import holds
from tests.graph.random_graphs import SHAPES, draw_event, draw_graph

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
def test_publish_subscribe_explain_save_open(tmp_path: Path, kind: str) -> None:
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
    assert engine.publish(EVENT) == ["s"]
    engine.subscribe(Subscription("t", "age = 35", node=node))
    assert engine.publish(EVENT) == ["s", "t"]
    engine.unsubscribe("s")
    assert engine.publish(EVENT) == ["t"]
    assert engine.explain(EVENT, "t").matches
    assert "match" in engine.explain(EVENT, "t").lines()[0]
    engine.save(tmp_path / "snapshot")
    opened = Engine.open(tmp_path / "snapshot")
    assert opened.publish(EVENT) == ["t"]
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
    with pytest.raises(GraphError, match="subscription 's' hangs at node 'net', and there is no graph"):
        Engine.build([Subscription("s", "TRUE", node="net")])


def test_what_needs_ranks() -> None:
    engine = Engine.build([Subscription("s", "age > 30"), Subscription("r", "age > 20")])
    assert pairs(engine.top(EVENT, 1)) == [("r", 0.0)]
    assert engine.explain_rank(EVENT, "s", 1).rank == 2
    for built in (engine, with_graph()):
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
            built.subscribe(Subscription("t", "TRUE", node="net", weights=[1]))
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
    assert "f" not in engine.publish(EVENT)
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
    with pytest.raises(SnapshotError, match="belongs to the room 'other'"):
        Engine.open(tmp_path / "x")
