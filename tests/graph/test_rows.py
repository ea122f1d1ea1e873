"""Views of a graph that changes: each stands still, whatever is laid out behind it, and threads may ask."""

from __future__ import annotations

import random
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np
import pytest

from headgate import Edge, Event, Node, Subscription
from headgate.graph.changes import rows
from headgate.graph.changes.rows import ChangedRows, owners
from headgate.graph.index import GraphIndex, _nodes, _served
from headgate.records.index.index import RecordIndex
from tests.graph.random_graphs import SHAPES, draw_event, draw_graph
from tests.graph.test_changes import change
from tests.seeds import seeds

if TYPE_CHECKING:
    from headgate.graph.changes.rows import LaidRows


@pytest.fixture(params=[0, 1 << 14])
def waste(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lay rows out anew all the time, or never."""
    monkeypatch.setattr(rows, "_WASTE", request.param)


def laid(found: LaidRows, base: dict[int, dict[int, float]], count: int) -> dict[int, dict[int, float]]:
    """Read the children of all vertices off what was laid out."""
    children = {}
    for vertex in range(count):
        row = int(found.swap[vertex])
        if row < 0:
            children[vertex] = base[vertex]
            continue
        some = slice(int(found.start[row]), int(found.start[row + 1]))
        assert found.child[some].tolist() == sorted(found.child[some].tolist())
        children[vertex] = dict(zip(found.child[some].tolist(), found.cost[some].tolist(), strict=True))
    owner = owners(found.swap, len(found.start) - 1)
    of = np.repeat(owner, np.diff(found.start))
    for vertex in np.unique(owner[owner >= 0]).tolist():
        assert found.child[of == vertex].tolist() == sorted(children[vertex])
    return children


@pytest.mark.usefixtures("waste")
@pytest.mark.parametrize("seed", seeds(4))
def test_rows_of_older_views_stay(seed: int) -> None:
    rng = random.Random(seed)
    drawn = draw_graph(rng, SHAPES[seed % len(SHAPES)], 40)
    arrays = GraphIndex.build(drawn.nodes, drawn.edges, drawn.subscriptions, room=RecordIndex).base.arrays
    found = ChangedRows(arrays)
    model = {
        v: dict(zip(found[v].child.tolist(), found[v].cost.tolist(), strict=True))
        for v in range(arrays.vertices)
    }
    base = {v: dict(children) for v, children in model.items()}
    seen = []
    for _ in range(120):
        vertex, child, cost = rng.randrange(len(model)), rng.randrange(len(model)), float(rng.randrange(3))
        if rng.random() < 0.1:
            model[len(model)] = {}
        elif rng.random() < 0.6:
            found[vertex] = found[vertex].joined(child, cost)
            model[vertex][child] = min(cost, model[vertex].get(child, cost))
        else:
            gone = rng.sample(sorted(model[vertex]), min(2, len(model[vertex])))
            found[vertex] = found[vertex].without(gone)
            for each in gone:
                del model[vertex][each]
        assert (child in found[vertex]) is (child in model[vertex])
        assert found.leads_to(child) is any(child in children for v, children in model.items() if v in found)
        if rng.random() < 0.4:
            seen.append((found.lay_out(len(model)), {v: dict(each) for v, each in model.items()}))
    for old, children in seen:
        assert laid(old, base, len(children)) == children


@pytest.mark.usefixtures("waste")
@pytest.mark.parametrize("seed", seeds(4))
def test_older_views_answer_as_they_did(seed: int) -> None:
    rng = random.Random(f"views {seed}")
    drawn = draw_graph(rng, SHAPES[seed % len(SHAPES)], 60)
    index = GraphIndex.build(drawn.nodes, drawn.edges, drawn.subscriptions, room=RecordIndex)
    seen = []
    for number in range(30):
        change(rng, index, drawn, number)
        event = draw_event(rng, str(rng.choice(drawn.nodes).id), number)
        seen.append((index.view, event, index.nodes(event), index.match(event)))
    for view, event, nodes, served in seen:
        assert _nodes(view, view.walk(event)) == nodes
        assert _served(view, view.walk(event, view.serving)) == served


def test_threads_ask_while_the_graph_changes() -> None:
    """Half of the nodes stay as they are; the others come, go, and get filters that hold and do not."""
    nodes = [Node("pub"), *(Node(f"n{i}", "a = 1", subscription=f"s{i}") for i in range(20))]
    index = GraphIndex.build(nodes, [Edge("pub", f"n{i}") for i in range(20)], room=RecordIndex)
    always = {f"s{i}" for i in range(10)}
    may = always | {f"s{i}" for i in range(10, 20)} | {f"z{i}" for i in range(10)}
    event = Event("e", {"a": 1}, source="pub")
    done = threading.Event()

    def read() -> int:
        rounds = 0
        while not done.is_set() or rounds < 5:
            found = index.match(event)
            assert found == sorted(set(found))
            assert always <= set(found) <= may
            assert always <= {each.subscription for each in index.top(event, 40)} <= may
            rounds += 1
        return rounds

    def write() -> None:
        rng = random.Random(4)
        hanging: set[int] = set()
        try:
            for step in range(150):
                number = rng.randrange(10)
                if step % 3 == 0:
                    index.set_filter(f"n{number + 10}", rng.choice(["a = 1", "a = 2", None]))
                elif step % 3 == 1:
                    index.remove_edge("pub", f"n{number + 10}")
                    index.add_edge(Edge("pub", f"n{number + 10}"))
                elif number in hanging:
                    index.unsubscribe(f"z{number}")
                    hanging.discard(number)
                else:
                    index.subscribe(Subscription(f"z{number}", "a = 1", node=f"n{number}"))
                    hanging.add(number)
                if step % 50 == 49:
                    index.compact()
        finally:
            done.set()

    with ThreadPoolExecutor(4) as threads:
        readers = [threads.submit(read) for _ in range(3)]
        threads.submit(write).result()
        assert all(reader.result() >= 5 for reader in readers)
