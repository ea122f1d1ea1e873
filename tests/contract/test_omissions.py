"""A filter that is too expensive for an event is left out of it, told, and does not hold, whoever asks."""

from __future__ import annotations

import random
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from headgate import Edge, Engine, Event, Node, Omission, Omissions, Subscription
from headgate.ranking.filters.index import RankedIndex
from headgate.rdf.events.reading import make_graph
from headgate.rdf.explain import explain
from headgate.rdf.index import matching

if TYPE_CHECKING:
    from collections.abc import Callable

CLIQUE = " . ".join(f"?v{i} <urn:p> ?v{j}" for i in range(8) for j in range(i))
HARD, EASY = f"ASK {{ {CLIQUE} }}", "ASK { ?a <urn:p> ?b }"
WHY = "joining it takes more than 100,000 steps; send smaller events, or narrow the filter"


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let filters take so few steps that nobody has to wait for them."""
    monkeypatch.setattr(matching, "BUDGET", 100_000)
    monkeypatch.setattr(matching, "LEAST", 1_000)
    monkeypatch.setattr(explain, "STEPS", 1_000)
    monkeypatch.setattr(explain, "nearest", partial(explain.nearest, budget=200))


def dense(identity: str = "e", source: str | None = None) -> Event:
    rng = random.Random(5)
    pairs = [(i, j) for i in range(40) for j in range(i) if rng.random() < 0.5]
    graph = make_graph([(f"<urn:n{i}>", "<urn:p>", f"<urn:n{j}>") for i, j in pairs])
    return Event(identity, graph, content_type="nt", source=source)


def told(ask: Callable[..., object], *given: object) -> list[Omission]:
    """Ask, and list what was left out."""
    with Omissions() as left_out:
        ask(*given)
    return list(left_out)


def test_rankings() -> None:
    given = [Subscription("hard", HARD, "sparql", score=3.0), Subscription("easy", EASY, "sparql", score=1.0)]
    engine = Engine.build(given, ranked=True)
    index, event = engine.index, dense()
    assert isinstance(index, RankedIndex)
    left = [Omission("e", "hard", WHY)]
    assert told(engine.match, event) == left
    assert engine.match(event) == ["easy"]
    assert told(engine.top, event, 2) == left
    assert [each.subscription for each in engine.top(event, 2)] == ["easy"]
    events, rows = [event, dense("f")], pa.array(["x", "y"])
    many = [Omission(each, "hard", WHY) for each in "xy"]
    assert told(index.match_batch, events, rows) == many
    assert told(index.best, events, rows, 2) == many
    assert index.match_batch(events)["subscription_id"].to_pylist() == ["easy", "easy"]
    assert told(engine.explain_rank, event, "hard", 1) == left
    assert not engine.explain_rank(event, "hard", 1).runs
    engine.subscribe(Subscription("later", HARD, "sparql", score=9.0))
    assert {each.subscription for each in told(engine.top, event, 2)} == {"hard", "later"}


def test_clauses() -> None:
    """One clause of a filter may be too much; the others count."""
    text = f"ASK {{ {CLIQUE} FILTER(str(?v0) = str(?v7)) }}"
    engine = Engine.build([Subscription("s", text, "sparql", weights=[1.0] * 29)], ranked=True)
    left = told(engine.top, dense(), 1, "relaxed")
    assert all(each.subscription is None for each in left)
    assert all(each.reason.startswith("the clause ASK") for each in left)
    (best,) = engine.top(dense(), 1, "relaxed")
    assert best.subscription == "s"


def test_graphs() -> None:
    nodes = [Node("pub"), Node("a", HARD, dialect="sparql"), Node("b")]
    edges = [Edge("pub", "a"), Edge("pub", "b")]
    given = [
        Subscription("behind", EASY, "sparql", node="a"),
        Subscription("hard", HARD, "sparql", node="b"),
        Subscription("easy", EASY, "sparql", node="b"),
    ]
    engine = Engine.build(given, nodes=nodes, edges=edges)
    event = dense(source="pub")

    def left(*events: object) -> set[Omission]:
        """List what may be told of events: which of the two is the first has more steps."""
        fewer = WHY.replace("100,000", "50,000")
        told = {Omission(None, None, f"the filter of the node a: {why}") for why in (WHY, fewer)}
        told |= {Omission(None, "hard", why) for why in (WHY, fewer)}
        return {each._replace(event=event) for each in told for event in events}  # type: ignore[arg-type]

    for evaluator in ("auto", "general"):
        found = told(engine.graph.match, event, evaluator)
        assert len(found) == 2
        assert set(found) <= left("e")
        assert engine.graph.match(event, evaluator) == ["easy"]
    assert [each.subscription for each in engine.top(event, 3)] == ["easy"]
    assert not engine.explain(event, "hard").matches
    assert not engine.explain(event, "behind").matches
    events, rows = [event, dense("f", "pub")], pa.array([10, 11])
    for found in (
        told(engine.graph.match_batch, events, rows),
        told(engine.graph.top_batch, events, 2, rows),
    ):
        assert len(found) == 4
        assert set(found) <= left(10, 11)
    # Those that came later have numbers of their own, and those that are gone are not told.
    engine.subscribe(Subscription("later", HARD, "sparql", node="b"))
    engine.unsubscribe("hard")
    for found in (told(engine.match, event), told(engine.graph.match_batch, events, rows)):
        assert {each.subscription for each in found} == {None, "later"}
