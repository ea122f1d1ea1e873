"""Explanations agree with a plain search over the graph as users gave it, and read well."""

from __future__ import annotations

import random
from functools import partial
from typing import TYPE_CHECKING

import pytest

from headgate import Edge, Event, Node, Subscription
from headgate.errors import EventError, SubscriptionError
from headgate.graph.explain import BLOCKED, NO_PATH, OWN_FILTER, SERVED
from headgate.graph.index import GraphIndex
from headgate.records.index.index import RecordIndex
from tests.graph.random_graphs import SHAPES, Drawn, draw_event, draw_graph, valid_text
from tests.graph.reference import passes, reach_subscriptions
from tests.graph.test_ranked import alter
from tests.seeds import NIGHTLY

if TYPE_CHECKING:
    from headgate.core.event import Id
    from headgate.graph.explain import Path

FAR = (10_000, 10_000)


def prices(drawn: Drawn, event: Event, *, hops_first: bool) -> dict[Id, tuple[int, int]]:
    """Find for each subscription the least (blocking, hops) of all paths to it, or (hops, blocking)."""
    valid = partial(valid_text, event)
    blocks = {node.id: int(not passes(node, valid)) for node in drawn.nodes}
    assert event.source is not None

    def further(price: tuple[int, int], blocking: int, hops: int) -> tuple[int, int]:
        more = (hops, blocking) if hops_first else (blocking, hops)
        return price[0] + more[0], price[1] + more[1]

    best: dict[Id, tuple[int, int]] = {}
    changed = True
    while changed:
        changed = False
        for edge in drawn.edges:
            before = (0, 0) if edge.source == event.source else best.get(edge.source)
            if before is not None:
                price = further(before, int(not passes(edge, valid)) + blocks[edge.target], 1)
                if price < best.get(edge.target, FAR):
                    best[edge.target] = price
                    changed = True
    found = {n.subscription: best.get(n.id, FAR) for n in drawn.nodes if n.subscription is not None}
    for each in drawn.subscriptions:
        at = (0, 0) if each.node == event.source else best.get(str(each.node), FAR)
        found[each.id] = at if at == FAR else further(at, int(not valid(each.filter, each.dialect)), 0)
    return found


def check(index: GraphIndex, drawn: Drawn, event: Event) -> set[str]:
    """Check the explanation of every subscription; returns the reasons that were found."""
    assert event.source is not None
    valid = partial(valid_text, event)
    served = reach_subscriptions(drawn.nodes, drawn.edges, drawn.subscriptions, event.source, valid)
    fewest, shortest = (prices(drawn, event, hops_first=first) for first in (False, True))
    reasons = set()
    for subscription in fewest:
        found = index.explain(event, subscription)
        reasons.add(found.reason)
        assert found.matches is (subscription in served)
        assert found.lines()[0].startswith("match" if found.matches else "no match")
        if fewest[subscription] == FAR:
            assert (found.reason, found.path, found.fewest) == (NO_PATH, None, None)
            continue
        assert found.path is not None
        for path in (found.path, *([found.fewest] if found.fewest else [])):
            check_path(drawn, event, path, subscription)
        easiest = found.fewest or found.path
        assert (len(easiest.blocking), easiest.hops) == fewest[subscription]
        if not found.matches:
            assert (found.path.hops, len(found.path.blocking)) == shortest[subscription]
            assert (found.own is not None) is easiest.steps[-1].blocks
            alone = found.own is not None and len(easiest.blocking) == 1
            assert found.reason == (OWN_FILTER if alone else BLOCKED)
    return reasons


def check_path(drawn: Drawn, event: Event, path: Path, subscription: Id) -> None:
    """Walk a path by its names: all its edges are there, and its steps block where filters fail."""
    nodes: dict[Id, Node] = {node.id: node for node in drawn.nodes}
    valid = partial(valid_text, event)
    at, through = event.source, False
    for step in path.steps:
        assert step.blocks is not (step.filter is None or valid(step.filter, "sql"))
        if step.verdict is not None:
            assert not step.verdict.matches
        if step.kind == "edge":
            source, target = step.name.split(" → ")
            assert source == at
            assert any(e.filter is not None for e in drawn.edges if (e.source, e.target) == (at, target))
        elif step.kind == "node":
            whole = [e for e in drawn.edges if (e.source, e.target) == (at, step.name) and e.filter is None]
            assert through or whole
            at = step.name
        through = step.kind == "edge"
    hung = {each.id: each.node for each in drawn.subscriptions}
    assert (path.steps[-1].kind == "subscription") is (subscription in hung)
    assert hung.get(subscription) == at or nodes[str(at)].subscription == subscription


@pytest.mark.parametrize("shape", SHAPES)
def test_explanations_agree_with_a_plain_search(shape: str) -> None:
    rng = random.Random(f"explain {shape}")
    reasons = set()
    for number in range(12):
        drawn = draw_graph(rng, shape, rng.choice((1, 2, 5, 20, 40)))
        index = GraphIndex.build(drawn.nodes, drawn.edges, drawn.subscriptions, room=RecordIndex)
        reasons |= check(index, drawn, draw_event(rng, str(rng.choice(drawn.nodes).id), number))
    everywhere = shape == "ring"
    assert reasons == {SERVED, OWN_FILTER, BLOCKED, *([] if everywhere else [NO_PATH])}


@pytest.mark.parametrize("shape", SHAPES)
def test_explanations_of_a_changed_graph(shape: str) -> None:
    rng = random.Random(f"explain changes {shape}")
    drawn = draw_graph(rng, shape, 25)
    index = GraphIndex.build(drawn.nodes, drawn.edges, drawn.subscriptions, room=RecordIndex)
    for number in range(25 if NIGHTLY else 8):
        alter(rng, index, drawn, number)
        check(index, drawn, draw_event(rng, str(rng.choice(drawn.nodes).id), number))


@pytest.fixture
def exchange() -> GraphIndex:
    """Two ways from `pub` to `shoes`: a short one with two filters of its own, and a longer one with one."""
    nodes = [
        Node("pub"),
        Node("sport-net", "topic = 'sport' AND age > 30"),
        Node("adult-net", "age >= 18"),
        Node("night-net", "hour < 5"),
        Node("shoes", "age < 60", subscription="shoes"),
        Node("island", subscription="island"),
    ]
    edges = [
        Edge("pub", "sport-net"),
        Edge("sport-net", "shoes", "gender = 'f'"),
        Edge("pub", "adult-net"),
        Edge("adult-net", "night-net"),
        Edge("night-net", "shoes"),
        Edge("island", "shoes"),
    ]
    news = Subscription("news", "topic = 'news'", node="adult-net")
    return GraphIndex.build(nodes, edges, [news], room=RecordIndex)


def visit(source: str = "pub", **data: object) -> Event:
    return Event("e1", data, source=source)


def test_the_path_of_one_that_is_served(exchange: GraphIndex) -> None:
    found = exchange.explain(visit(age=40, topic="sport", gender="f", hour=3), "shoes")
    assert found.reason == SERVED
    assert found.text().splitlines() == [
        "match: 2 hops from pub to shoes",
        "  passes  sport-net           topic = 'sport' AND age > 30",
        "  passes  sport-net → shoes   gender = 'f'",
        "  passes  shoes               age < 60",
    ]
    longer = exchange.explain(visit(age=40, topic="art", hour=3), "shoes").path
    assert longer is not None
    assert [step.name for step in longer.steps] == ["adult-net", "night-net", "shoes"]


def test_what_blocks_the_shortest_path_and_what_is_the_least_to_mend(exchange: GraphIndex) -> None:
    found = exchange.explain(visit(age=20, topic="art", hour=7), "shoes")
    assert found.reason == BLOCKED
    assert found.lines() == [
        "no match: every path from pub to shoes is blocked",
        "the shortest, 2 hops, blocked at 2 of 3 steps:",
        "  blocks  sport-net           topic = 'sport' AND age > 30",
        "          no match",
        "            failed  topic = 'sport'   topic = \"art\"",
        "            failed  age > 30          age = 20 (off by 10)",
        "          nearest miss: topic = 'sport' AND age > 30",
        "  blocks  sport-net → shoes   gender = 'f'",
        "          no match",
        "            unknown gender = 'f'   gender = NULL (the event has no such attribute)",
        "          nearest miss: gender = 'f'",
        "  passes  shoes               age < 60",
        "the one with the fewest to fix, 3 hops, blocked at 1 of 3 steps:",
        "  passes  adult-net   age >= 18",
        "  blocks  night-net   hour < 5",
        "          no match",
        "            failed  hour < 5   hour = 7 (off by 2)",
        "          nearest miss: hour < 5",
        "  passes  shoes       age < 60",
    ]


def test_one_path_is_enough_if_the_shortest_is_the_easiest_to_mend(exchange: GraphIndex) -> None:
    found = exchange.explain(visit(age=40, topic="sport", hour=7), "shoes")
    assert found.reason == BLOCKED
    assert found.fewest is None
    assert found.path is not None
    assert [step.name for step in found.path.blocking] == ["sport-net → shoes"]


@pytest.mark.parametrize("subscription", ["shoes", "news"])
def test_its_own_filter_fails(exchange: GraphIndex, subscription: str) -> None:
    found = exchange.explain(visit(age=70, topic="sport", gender="f", hour=3), subscription)
    assert found.reason == OWN_FILTER
    assert found.own is not None
    assert not found.own.matches
    assert f"from pub to {subscription}, where its own filter fails" in found.lines()[0]


def test_no_path_leads_there(exchange: GraphIndex) -> None:
    found = exchange.explain(visit(age=20), "island")
    assert (found.reason, found.own) == (NO_PATH, None)
    assert found.text() == "no match: no path leads from pub to island, whatever the filters say"
    back = exchange.explain(visit("shoes", topic="art"), "news")
    assert back.reason == NO_PATH
    assert back.lines()[1:3] == ["its own filter fails as well:", "no match"]


def test_the_best_of_several_nodes_is_explained() -> None:
    nodes = [Node("pub"), Node("near", "a = 1", subscription="s"), Node("mid"), Node("far", subscription="s")]
    edges = [Edge("pub", "near"), Edge("pub", "mid"), Edge("mid", "far")]
    index = GraphIndex.build(nodes, edges, room=RecordIndex)
    for a, names in ((1, ["near"]), (2, ["mid", "far"])):
        path = index.explain(visit(a=a), "s").path
        assert path is not None
        assert [step.name for step in path.steps] == names


def test_whoever_hangs_at_the_source_is_no_hop_away(exchange: GraphIndex) -> None:
    exchange.subscribe(Subscription("here", "age > 1", node="pub"))
    assert exchange.explain(visit(age=2), "here").lines()[0] == "match: 0 hops from pub to here"
    assert exchange.explain(visit(age=0), "here").reason == OWN_FILTER


def test_numbers_may_be_ids() -> None:
    index = GraphIndex.build([Node(0), Node(1, subscription=7)], [Edge(0, 1)], room=RecordIndex)
    assert index.explain(Event(5, {}, source=0), 7).lines()[0] == "match: 1 hop from 0 to 7"


@pytest.mark.parametrize("unknown", ["nobody", 7, "gone", "orphan", "island"])
def test_an_unknown_subscription_is_refused(exchange: GraphIndex, unknown: Id) -> None:
    exchange.subscribe(Subscription("gone", "TRUE", node="pub"))
    exchange.unsubscribe("gone")
    exchange.subscribe(Subscription("orphan", "TRUE", node="island"))
    exchange.remove_node("island")
    with pytest.raises(
        SubscriptionError, match=f"^there is no subscription {unknown!r} in the graph: [^\n]*$"
    ):
        exchange.explain(visit(), unknown)


def test_an_unknown_source_is_refused(exchange: GraphIndex) -> None:
    with pytest.raises(EventError, match="source 'nobody' of event 'e1' is not a node of the graph"):
        exchange.explain(visit("nobody"), "shoes")
    with pytest.raises(EventError, match="event 'e1' has no source"):
        exchange.explain(Event("e1", {}), "shoes")


@pytest.mark.parametrize("names", ["abcd", "dbca", "cadb"])
def test_equal_paths_go_by_names_however_the_graph_came_about(names: str) -> None:
    ends = [Node("pub"), Node("end", subscription="s")]
    edges = [Edge("pub", name) for name in names] + [Edge(name, "end") for name in names]
    whole = GraphIndex.build([*map(Node, names), *ends], edges, room=RecordIndex)
    grown = GraphIndex.build(ends, [], room=RecordIndex)
    for name in names:
        grown.add_node(Node(name))
        grown.add_edge(Edge("pub", name))
        grown.add_edge(Edge(name, "end"))
    for index in (whole, grown):
        found = index.explain(Event("e1", {}, source="pub"), "s").path
        assert found is not None
        assert [step.name for step in found.steps] == ["a", "end"]
