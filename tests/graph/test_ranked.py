"""The best k agree with a plain search for all of them, and the search stops as soon as it may."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import pytest

from headgate import Edge, Event, Node, Subscription
from headgate.errors import EventError, GraphError
from headgate.graph.index import GraphIndex
from headgate.graph.path_cost import PathCost
from headgate.graph.ranked.kernels import VISITED
from headgate.graph.ranked.ranked import search
from headgate.records.index.index import RecordIndex
from tests.graph.random_graphs import SHAPES, Drawn, draw_event, draw_filter, draw_graph, valid_text
from tests.graph.reference import best_paths, passes
from tests.seeds import NIGHTLY, seeds

if TYPE_CHECKING:
    from headgate.core.event import Id
    from headgate.graph.ranked.ranked import RankedMatch

pytestmark = pytest.mark.jit_off

ALL = 10_000
RANKINGS = [
    ("minus", 0.9, False),
    ("minus", 0.9, True),
    ("times", 0.9, False),
    ("times", 0.5, True),
    ("times", 1, False),
]


def drawn_graph(rng: random.Random, shape: str) -> Drawn:
    """Draw a graph with many ties: few scores, some below zero, free edges, shared subscriptions."""
    drawn = draw_graph(rng, shape, rng.choice((1, 2, 5, 20, 70, 150)))
    shared = rng.choice((1, 2, 3))
    nodes = [
        replace(
            node,
            subscription=f"s{i // shared:03}" if node.subscription else None,
            score=rng.choice((-1.0, 0.0, 0.0, 1.0, 2.5)),
        )
        for i, node in enumerate(drawn.nodes)
    ]
    edges = [replace(edge, cost=rng.choice((0.0, 0.25, 1.0))) for edge in drawn.edges]
    subscriptions = [replace(each, score=rng.choice((-2.0, 0.0, 2.5))) for each in drawn.subscriptions]
    return Drawn(nodes, edges, subscriptions)


def check(index: GraphIndex, drawn: Drawn, event: Event, ranking: tuple[str, float, bool]) -> None:
    by, decay, hops = ranking
    assert event.source is not None
    expected = best_paths(
        drawn.nodes,
        drawn.edges,
        drawn.subscriptions,
        event.source,
        partial(valid_text, event),
        ALL,
        times=decay if by == "times" else None,
        hops=hops,
    )
    found = index.top(event, ALL, by=by, decay=decay, hops=hops)
    assert [(each.subscription, each.value, each.score, each.cost) for each in found] == expected
    assert sorted(each.subscription for each in found) == index.match(event)
    for each in found:
        check_path(drawn, event, each, hops=hops)
    for k in {1, 2, 3, len(found) // 2 + 1, len(found) + 1}:
        assert index.top(event, k, by=by, decay=decay, hops=hops) == found[:k]


def check_path(drawn: Drawn, event: Event, found: RankedMatch, *, hops: bool) -> None:
    """Walk a path by its names: it must be valid, cost what it is said to, and end where it serves."""
    nodes: dict[Id, Node] = {node.id: node for node in drawn.nodes}
    valid = partial(valid_text, event)
    assert found.path[0] == event.source
    cost, at, through = 0.0, found.path[0], False
    for name in found.path[1:]:
        split = name not in nodes
        assert not (split and through)
        target = name.split(" → ")[1] if split else name
        if not through:
            edges = [e for e in drawn.edges if (e.source, e.target) == (at, target)]
            ways = [e.cost for e in edges if (e.filter is not None) is split and passes(e, valid)]
            assert ways, f"no way from {at} to {target}"
            cost += 1 if hops else min(ways)
        through = split
        if not split:
            assert passes(nodes[name], valid)
            cost += 0 if hops else nodes[name].cost
            at = name
    assert not through
    assert cost == found.cost
    hung = {each.id: each.node for each in drawn.subscriptions}
    assert nodes[at].subscription == found.subscription or hung[found.subscription] == at


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", seeds(8))
def test_the_best_are_those_of_the_reference(shape: str, seed: int) -> None:
    rng = random.Random(f"ranked {shape}{seed}")
    drawn = drawn_graph(rng, shape)
    index = GraphIndex.build(drawn.nodes, drawn.edges, drawn.subscriptions, room=RecordIndex)
    for number in range(5):
        event = draw_event(rng, str(rng.choice(drawn.nodes).id), number)
        for ranking in RANKINGS:
            check(index, drawn, event, ranking)


def alter(rng: random.Random, index: GraphIndex, drawn: Drawn, number: int) -> None:
    """Change something that paths or scores depend on, in the index and in what users would have given."""
    what, node, other = rng.randrange(7), rng.choice(drawn.nodes).id, rng.choice(drawn.nodes).id
    score, cost = rng.choice((-1.0, 0.0, 3.0, 9.0)), rng.choice((0.0, 0.25, 1.0))
    text = draw_filter(rng)
    if what == 0:
        added = Node(f"x{number:03}", text, subscription=f"y{number:03}", score=score, cost=cost)
        index.add_node(added)
        drawn.nodes.append(added)
    elif what == 1 or (what == 2 and len(drawn.nodes) < 3):
        edge = Edge(node, other, text if number % 3 == 0 else None, cost=cost)
        index.add_edge(edge)
        drawn.edges.append(edge)
    elif what == 2:
        index.remove_node(node)
        drawn.nodes[:] = [each for each in drawn.nodes if each.id != node]
        drawn.edges[:] = [each for each in drawn.edges if node not in {each.source, each.target}]
        drawn.subscriptions[:] = [each for each in drawn.subscriptions if each.node != node]
    elif what == 3 and drawn.edges:
        ends = rng.choice([(each.source, each.target) for each in drawn.edges])
        index.remove_edge(*ends)
        drawn.edges[:] = [each for each in drawn.edges if (each.source, each.target) != ends]
    elif what == 4 and drawn.subscriptions:
        gone = drawn.subscriptions.pop(rng.randrange(len(drawn.subscriptions)))
        index.unsubscribe(gone.id)
    elif what == 5:
        index.set_filter(node, text)
        drawn.nodes[:] = [replace(each, filter=text) if each.id == node else each for each in drawn.nodes]
    else:
        hung = Subscription(f"h{number:03}", text or "TRUE", node=node, score=score)
        index.subscribe(hung)
        drawn.subscriptions.append(hung)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", seeds(4))
def test_a_changed_graph_ranks_as_one_built_anew(shape: str, seed: int) -> None:
    rng = random.Random(f"ranked changes {shape}{seed}")
    drawn = draw_graph(rng, shape, rng.choice((2, 10, 60, 130)))
    index = GraphIndex.build(drawn.nodes, drawn.edges, drawn.subscriptions, room=RecordIndex)
    for number in range(40 if NIGHTLY else 12):
        alter(rng, index, drawn, number)
        event = draw_event(rng, str(rng.choice(drawn.nodes).id), number)
        check(index, drawn, event, RANKINGS[number % len(RANKINGS)])
        if rng.random() < 0.1:
            index.compact()
            check(index, drawn, event, RANKINGS[number % len(RANKINGS)])


def star(arms: int) -> GraphIndex:
    """Lead from `pub` over many hubs to one subscription each; hub i promises i."""
    hubs = [Node(f"hub{i:03}") for i in range(arms)]
    ends = [Node(f"end{i:03}", "a = 1", subscription=f"s{i:03}", score=i) for i in range(arms)]
    edges = [Edge("pub", hub.id) for hub in hubs]
    edges += [Edge(hub.id, end.id, cost=0.0) for hub, end in zip(hubs, ends, strict=True)]
    return GraphIndex.build([Node("pub"), *hubs, *ends], edges, room=RecordIndex)


@pytest.mark.parametrize("by", ["minus", "times"])
@pytest.mark.parametrize(("k", "visited"), [(1, 2), (5, 6), (50, 51), (ALL, 101)])
def test_the_search_stops_when_nothing_can_be_better(by: str, k: int, visited: int) -> None:
    index, event = star(100), Event("e", {"a": 1}, source="pub")
    found = search(index.view, event, k, PathCost(by))
    assert found.counts[VISITED] == visited
    assert index.top(event, 1, by=by)[0].subscription == "s099"


def test_the_search_stops_on_a_changed_graph_too() -> None:
    index, event = star(100), Event("e", {"a": 1}, source="pub")
    index.add_node(Node("late", subscription="late", score=50.0))
    index.add_edge(Edge("hub000", "late"))
    assert [each.subscription for each in index.top(event, 3)] == ["s099", "s098", "s097"]
    # Every hub may lead to the new 50 now, for all that the bound knows; the best three promise more.
    assert search(index.view, event, 3, PathCost()).counts[VISITED] == 4
    assert [each.subscription for each in index.top(event, 52)[-3:]] == ["s050", "late", "s049"]


def test_equal_values_go_by_id_and_equal_paths_by_the_smaller_vertex() -> None:
    nodes = [Node("pub"), Node("m2"), Node("m1"), Node("b", subscription="b"), Node("a", subscription="a")]
    ways = [("pub", "m2"), ("pub", "m1"), ("m1", "a"), ("m2", "a"), ("m1", "b"), ("m2", "b")]
    index = GraphIndex.build(nodes, [Edge(*way) for way in ways], room=RecordIndex)
    event = Event("e", {}, source="pub")
    first = min("m1", "m2", key=index.view.find)
    assert [(each.subscription, each.path) for each in index.top(event, 5)] == [
        ("a", ("pub", first, "a")),
        ("b", ("pub", first, "b")),
    ]
    assert [each.subscription for each in index.top(event, 1)] == ["a"]
    for late in ("0", "aa"):
        index.subscribe(Subscription(late, "TRUE", node="a"))
    assert [each.subscription for each in index.top(event, 5)] == ["0", "a", "aa", "b"]
    assert [each.subscription for each in index.top(event, 3)] == ["0", "a", "aa"]


def test_a_detour_that_costs_less_is_taken() -> None:
    nodes = [
        Node("pub"),
        Node("dear", cost=5.0),
        Node("x"),
        Node("y"),
        Node("end", subscription="s", score=9),
    ]
    edges = [
        Edge("pub", "dear"),
        Edge("dear", "end"),
        Edge("pub", "x", "a = 1"),
        Edge("x", "y"),
        Edge("y", "end"),
    ]
    index = GraphIndex.build(nodes, edges, room=RecordIndex)
    cheap, blocked = (index.top(Event("e", {"a": a}, source="pub"), 1)[0] for a in (1, 2))
    assert (cheap.value, cheap.cost, cheap.path) == (6.0, 3.0, ("pub", "pub → x", "x", "y", "end"))
    assert (blocked.value, blocked.cost, blocked.path) == (2.0, 7.0, ("pub", "dear", "end"))
    hops = index.top(Event("e", {"a": 1}, source="pub"), 1, hops=True)[0]
    assert (hops.value, hops.cost, hops.path) == (7.0, 2.0, ("pub", "dear", "end"))


def test_the_source_is_served_by_the_way_back_and_what_hangs_at_it_at_once() -> None:
    nodes = [Node("a", subscription="own", score=3.0, cost=0.5), Node("b", cost=0.25)]
    index = GraphIndex.build(
        nodes,
        [Edge("a", "b"), Edge("b", "a")],
        [Subscription("hung", "TRUE", node="a", score=1.0)],
        room=RecordIndex,
    )
    found = index.top(Event("e", {}, source="a"), 5)
    assert [(each.subscription, each.cost, each.path) for each in found] == [
        ("hung", 0.0, ("a",)),
        ("own", 2.75, ("a", "b", "a")),
    ]


def test_scores_below_zero_fall_with_the_path() -> None:
    nodes = [
        Node("pub"),
        Node("near", subscription="near", score=-1),
        Node("far", subscription="far", score=-1),
    ]
    index = GraphIndex.build(nodes, [Edge("pub", "near"), Edge("near", "far", cost=9000)], room=RecordIndex)
    event = Event("e", {}, source="pub")
    assert [(each.subscription, each.value) for each in index.top(event, 2, by="times", decay=0.5)] == [
        ("near", -2.0),
        ("far", float("-inf")),
    ]


def test_a_higher_score_of_another_node_counts_for_the_subscription() -> None:
    index = GraphIndex.build(
        [Node("pub"), Node("x", subscription="s", score=1.0), Node("y")], [Edge("pub", "x")], room=RecordIndex
    )
    index.add_node(Node("z", subscription="s", score=4.0))
    event = Event("e", {}, source="pub")
    assert [(each.score, each.path) for each in index.top(event, 5)] == [(4.0, ("pub", "x"))]


def test_the_score_of_a_publisher_that_was_removed_counts_no_more() -> None:
    nodes = [Node("pub"), Node("p", subscription="s", score=9.0)]
    index = GraphIndex.build(nodes, [Edge("p", "pub")], room=RecordIndex)
    index.remove_node("p")
    index.add_node(Node("z", subscription="s", score=4.0))
    index.add_edge(Edge("pub", "z"))
    assert [each.score for each in index.top(Event("e", {}, source="pub"), 5)] == [4.0]


def test_filters_that_planes_cannot_decide_are_asked() -> None:
    nodes = [Node("pub"), Node("mid", "t LIKE '%a%b%'"), Node("end", "t LIKE '_x%'", subscription="s")]
    index = GraphIndex.build(nodes, [Edge("pub", "mid"), Edge("mid", "end")], room=RecordIndex)
    assert not index.base.planes.exact
    assert [each.path for each in index.top(Event("e", {"t": "axb"}, source="pub"), 3)] == [
        ("pub", "mid", "end")
    ]
    assert index.top(Event("e", {"t": "ayb"}, source="pub"), 3) == []
    assert index.top(Event("e", {"t": "bxa"}, source="pub"), 3) == []


def test_threads_do_not_disturb_each_other() -> None:
    index = star(60)
    events = [Event(n, {"a": 1}, source=source) for n, source in enumerate(["pub", "hub003", "hub017"] * 20)]
    alone = [index.top(event, 7) for event in events]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda event: index.top(event, 7), events)) == alone


def test_an_empty_graph_has_no_best() -> None:
    index = GraphIndex.build([Node("pub")], [], room=RecordIndex)
    assert index.top(Event("e", {}, source="pub"), 3) == []


@pytest.mark.parametrize(
    ("k", "by", "decay", "message"),
    [
        (0, "minus", 0.9, "k is 0: give"),
        (1, "plus", 0.9, "there is no ranking by 'plus': use 'minus' or 'times'"),
        (1, "times", 0.0, "decay is 0.0: give"),
        (1, "times", 1.5, "decay is 1.5: give"),
        (1, "times", float("nan"), "decay is nan: give"),
    ],
)
def test_what_is_no_ranking_is_refused(k: int, by: str, decay: float, message: str) -> None:
    with pytest.raises(GraphError, match=message):
        star(2).top(Event("e", {}, source="pub"), k, by=by, decay=decay)


def test_an_unknown_source_is_refused() -> None:
    with pytest.raises(EventError, match="source 'nobody' of event 'e' is not a node"):
        star(2).top(Event("e", {}, source="nobody"), 1)
