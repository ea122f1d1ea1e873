"""The engine over XML: with a graph and without, ranked and not, saved and opened."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from headgate import Edge, Engine, Event, Node, Subscription
from headgate.errors import EventError, SubscriptionError
from headgate.xml.index.index import XmlIndex

if TYPE_CHECKING:
    from pathlib import Path

TEXT = "<news><company>ACME</company><author>Bo</author><title>Up</title></news>"
EVENT = Event("e", TEXT, source="pub", content_type="xml")
ACME = Subscription("acme", "//news[company = 'ACME'][author{val}]/title{val}", "xpath", score=1.0)
OTHER = Subscription("other", "//news[company = 'Other']", "xpath", score=2.0)
TITLES = Subscription("titles", "//title_{val}", "tree", score=3.0)
GATES = [
    Node("pub"),
    Node("open", filter="/news", dialect="xpath"),
    Node("shut", filter="/feed", dialect="xpath"),
]
WAYS = [Edge("pub", "open"), Edge("pub", "shut")]


def hung(subscription: Subscription, node: str) -> Subscription:
    """Hang a subscription at a node."""
    return Subscription(
        subscription.id, subscription.filter, subscription.dialect, node=node, score=subscription.score
    )


def engines() -> dict[str, Engine]:
    """Build one of each kind."""
    graph = [hung(ACME, "open"), hung(OTHER, "open"), hung(TITLES, "shut")]
    return {
        "plain": Engine.build([ACME, OTHER, TITLES], ranked=False),
        "ranked": Engine.build([ACME, OTHER, TITLES]),
        "graph": Engine.build(graph, nodes=GATES, edges=WAYS),
    }


@pytest.mark.parametrize("kind", ["plain", "ranked", "graph"])
def test_all_kinds_answer(kind: str, tmp_path: Path) -> None:
    engine = engines()[kind]
    engine.save(tmp_path / "snapshot")
    for each in (engine, Engine.open(tmp_path / "snapshot")):
        got = ["acme"] if kind == "graph" else ["acme", "titles"]
        assert each.match(EVENT) == got
        assert each.explain(EVENT, "acme").matches
        assert not each.explain(EVENT, "other").matches
        answer = each.answer(EVENT, "acme")
        assert answer is not None
        assert answer.tuples().rows == (("Bo", "Up"),)
        assert each.answer(EVENT, "other") is None
        assert (each.answer(EVENT, "titles") is None) == (kind == "graph")
        with pytest.raises(SubscriptionError, match="the filter of 'acme' binds no variables"):
            each.bindings(EVENT, "acme")
        with pytest.raises(EventError, match="look at XML"):
            each.match(Event("r", {"a": 1}, source="pub"))


def test_ranks_and_changes() -> None:
    engine = engines()["ranked"]
    assert [best.subscription for best in engine.top(EVENT, 5)] == ["titles", "acme"]
    engine.unsubscribe("titles")
    engine.subscribe(Subscription("new", "//author{val}[. = 'Bo']", "xpath", score=9.0))
    assert [best.subscription for best in engine.top(EVENT, 5)] == ["new", "acme"]
    both = Engine.build([ACME, Subscription("r", "a = 1")])
    assert both.match(EVENT) == ["acme"]
    assert both.match({"a": 1}) == ["r"]
    with pytest.raises(SubscriptionError, match="the filter of 'r' returns no nodes"):
        Engine.build([Subscription("r", "a = 1")]).answer(Event("e", {"a": 1}), "r")
    assert isinstance(Engine.build([ACME], ranked=False).index, XmlIndex)
