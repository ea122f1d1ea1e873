"""Many events at once, by the graph or by the filters: the answers are those of single events."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

from headgate import Edge, Event, Node, Subscription
from headgate.contents.portions import ids_of
from headgate.errors import EventError, GraphError
from headgate.graph import batch
from headgate.graph.index import GraphIndex
from headgate.graph.path_cost import DEFAULT_PATH_COST, PathCost
from headgate.graph.walk import hits
from headgate.graph.walk.hits import BY_FILTERS, BY_GRAPH, TRIAL, StrategyChooser
from headgate.records.index.index import RecordIndex
from tests.contract.rooms import WithoutPlanes
from tests.graph.random_graphs import SHAPES, draw_event, draw_graph
from tests.graph.test_batches import pairs, table
from tests.graph.test_ranked import drawn_graph
from tests.seeds import seeds, share

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from headgate.contents.protocol import ContentRoom
    from headgate.graph.walk.hits import Match


class Only(StrategyChooser):
    """Goes one way, and notes that it was asked."""

    def __init__(self, way: int) -> None:
        super().__init__()
        self.best = way
        self.asked = 0
        self._left = 1 << 62

    def run(self, count: int, work: Callable[[int, int, int], Iterable[Match]]) -> Iterator[Match]:
        self.asked += 1
        return super().run(count, work)


def by(index: GraphIndex, way: int) -> GraphIndex:
    index.view.ways = Only(way)
    return index


def was_asked(index: GraphIndex) -> bool:
    return isinstance(index.view.ways, Only) and index.view.ways.asked > 0


def best_one_by_one(
    index: GraphIndex, events: Sequence[Event], k: int, path: PathCost = DEFAULT_PATH_COST
) -> list[tuple[object, ...]]:
    return [
        (event.id, found.subscription, found.value, rank)
        for event in events
        for rank, found in enumerate(index.top(event, k, **path._asdict()), 1)
    ]


def rows_of(found: pa.RecordBatch) -> list[tuple[object, ...]]:
    assert found.schema.names == ["event_id", "subscription_id", "score", "rank"]
    return list(zip(*(column.to_pylist() for column in found.columns), strict=True))


@pytest.mark.parametrize("way", [BY_GRAPH, BY_FILTERS])
@pytest.mark.parametrize("room", [RecordIndex, WithoutPlanes])
@pytest.mark.parametrize("shape", SHAPES)
def test_both_ways_lead_to_the_same(shape: str, room: ContentRoom, way: int) -> None:
    rng = random.Random(f"ways {shape} {way}")
    drawn = draw_graph(rng, shape, 130)
    index = by(GraphIndex.build(drawn.nodes, drawn.edges, drawn.subscriptions, room=room), way)
    events = [draw_event(rng, str(rng.choice(drawn.nodes).id), number) for number in range(60)]
    expected = [(each.id, found) for each in events for found in index.match(each)]
    assert expected
    assert pairs(index.match_batch(table(events))) == expected
    assert pairs(index.match_batch(events)) == expected
    assert was_asked(index)


@pytest.mark.parametrize("way", [BY_GRAPH, BY_FILTERS])
@pytest.mark.parametrize("k", [1, 3, 1000])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_best_of_many_events_are_those_of_each(shape: str, k: int, way: int) -> None:
    rng = random.Random(f"top {shape} {k}")
    some = False
    for _ in range(share(4)):
        drawn = drawn_graph(rng, shape)
        index = by(GraphIndex.build(drawn.nodes, drawn.edges, drawn.subscriptions, room=RecordIndex), way)
        events = [draw_event(rng, str(rng.choice(drawn.nodes).id), number) for number in range(40)]
        for path in (DEFAULT_PATH_COST, PathCost("times", 0.5), PathCost(hops=True)):
            expected = best_one_by_one(index, events, k, path)
            some |= bool(expected)
            assert rows_of(index.top_batch(table(events), k, path=path)) == expected
            assert rows_of(index.top_batch(events, k, path=path)) == expected
        # What a batch leaves behind does not disturb a single event.
        assert best_one_by_one(index, events[:5], k) == best_one_by_one(index, events[:5], k)
        assert rows_of(index.top_batch(table([]), k)) == []
        assert was_asked(index) or not index.view.subscriptions
    assert some


@pytest.mark.parametrize("seed", seeds(4))
def test_changed_graphs_answer_many_events_as_they_answer_one(seed: int) -> None:
    rng = random.Random(seed)
    drawn = drawn_graph(rng, SHAPES[seed % len(SHAPES)])
    index = GraphIndex.build(drawn.nodes, drawn.edges, drawn.subscriptions, room=RecordIndex)
    first = drawn.nodes[0].id
    index.add_node(Node("late", "age > 3", subscription="late", score=3.0))
    index.add_edge(Edge(first, "late", cost=0.5))
    index.subscribe(Subscription("hangs", "topic = 'news' OR age < 50", node="late", score=2.0))
    index.subscribe(Subscription("a-first", "age >= 0", node="late", score=2.0))
    if drawn.subscriptions:
        index.unsubscribe(drawn.subscriptions[0].id)
    index.set_score("hangs", 9.0)
    events = [draw_event(rng, str(rng.choice((first, rng.choice(drawn.nodes).id))), n) for n in range(80)]
    expected = [(each.id, found) for each in events for found in index.match(each)]
    assert "hangs" in {found for _, found in expected}
    assert pairs(index.match_batch(table(events))) == expected
    for k in (1, 2, 50):
        assert rows_of(index.top_batch(table(events), k)) == best_one_by_one(index, events, k)


def test_filters_that_planes_cannot_decide_are_asked_in_batches_too() -> None:
    texts = ["topic LIKE '%ew%'", "NOT (topic LIKE '_%s' AND age > 2)"]
    nodes = [Node("pub"), *(Node(text, text, subscription=text, score=1.0) for text in texts)]
    edges = [Edge("pub", node.id) for node in nodes[1:]]
    index = by(GraphIndex.build(nodes, edges, room=RecordIndex), BY_GRAPH)
    events = [
        Event(str(n), {"topic": topic, "age": n}, source="pub")
        for n, topic in enumerate(["news", "new", "x", "art"])
    ]
    expected = best_one_by_one(index, events, 2)
    assert len(expected) > 3
    assert rows_of(index.top_batch(events, 2)) == expected


@pytest.mark.parametrize("way", [BY_GRAPH, BY_FILTERS])
def test_portions_come_in_order_and_leave_room_for_other_questions(
    way: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(f"portions {way}")
    drawn = draw_graph(rng, "dag", 130)
    index = by(GraphIndex.build(drawn.nodes, drawn.edges, drawn.subscriptions, room=RecordIndex), way)
    events = [draw_event(rng, str(rng.choice(drawn.nodes).id), number) for number in range(90)]
    expected = [(each.id, found) for each in events for found in index.match(each)]
    monkeypatch.setattr(batch, "PORTION", 20)
    monkeypatch.setattr(batch, "_make_out", lambda view: np.empty(64 * view.words + 64, np.int64))
    monkeypatch.setattr(hits, "PAIRS", 200)
    for given in (table(events), events):
        portions = []
        names = ids_of(given)
        for portion in index.ask(given, names):
            portions.append(pairs(portion.batch(names)))
            # Asked on the same thread, in the midst of it.
            assert index.match(events[3]) == [found for event, found in expected if event == events[3].id]
            assert index.top(events[5], 2) == index.top(events[5], 2)
        assert [pair for portion in portions for pair in portion] == expected
        # An event's matches are not torn apart.
        ids = [{event for event, _ in portion} for portion in portions]
        assert sum(map(len, ids)) == len(set().union(*ids))
        assert len(portions) > 3 or way == BY_GRAPH


def test_bad_questions_about_many_events() -> None:
    index = GraphIndex.build([Node("a"), Node("b", subscription="s")], [Edge("a", "b")], room=RecordIndex)
    batch = pa.RecordBatch.from_pylist([{"id": 1, "source": "a"}, {"id": 2, "source": "x"}])
    with pytest.raises(EventError, match="event 2: source 'x' is not a node of the graph"):
        index.top_batch(batch, 1)
    with pytest.raises(EventError, match="source 'x' of event 2 is not a node"):
        index.top_batch([Event(2, {}, source="x")], 1)
    with pytest.raises(GraphError, match="k is 0"):
        index.top_batch(batch, 0)
    assert rows_of(index.top_batch(batch.slice(0, 1), 1)) == [(1, "s", -1.0, 1)]


def test_the_quicker_way_is_taken_after_a_trial() -> None:
    ways, asked = StrategyChooser(), []

    def work(way: int, begin: int, end: int) -> list[int]:
        asked.append((way, end - begin))
        if way == BY_GRAPH:
            sum(range(20_000 * (end - begin)))
        return list(range(begin, end))

    few = 2 * TRIAL
    assert [*ways.run(few, work)] == [*range(few)]
    assert asked == [(BY_GRAPH, few)]
    asked.clear()
    assert [*ways.run(1000, work)] == [*range(1000)]
    rest = 1000 - 2 * (TRIAL + 1)
    assert asked == [
        (BY_GRAPH, 1),
        (BY_GRAPH, TRIAL),
        (BY_FILTERS, 1),
        (BY_FILTERS, TRIAL),
        (BY_FILTERS, rest),
    ]
    asked.clear()
    assert [*ways.run(10, work)] == [*range(10)]
    assert asked == [(BY_FILTERS, 10)]
