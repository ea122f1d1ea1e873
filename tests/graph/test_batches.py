"""Batches, snapshots and threads give what single events give."""

from __future__ import annotations

import random
import shutil
import threading
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from headgate import Edge, Event, Node
from headgate.errors import EventError, SnapshotError
from headgate.graph.index import GraphIndex
from headgate.records.index.index import RecordIndex
from tests.graph.random_graphs import SHAPES, draw_event, draw_graph

if TYPE_CHECKING:
    from pathlib import Path


def table(events: list[Event]) -> pa.RecordBatch:
    rows = [{"id": each.id, "source": each.source, **each.data} for each in events]
    fields: list[tuple[str, pa.DataType]] = [(name, pa.string()) for name in ("id", "source", "topic")]
    fields += [("age", pa.int64()), ("tags", pa.list_(pa.string()))]
    return pa.RecordBatch.from_pylist(rows, pa.schema(fields))


def pairs(found: pa.RecordBatch) -> list[tuple[object, object]]:
    return list(zip(found["event_id"].to_pylist(), found["subscription_id"].to_pylist(), strict=True))


@pytest.mark.parametrize("shape", SHAPES)
def test_a_batch_is_its_events(shape: str, tmp_path: Path) -> None:
    rng = random.Random(f"batch {shape}")
    drawn = draw_graph(rng, shape, 130)
    index = GraphIndex.build(drawn.nodes, drawn.edges, drawn.subscriptions, room=RecordIndex)
    events = [draw_event(rng, str(rng.choice(drawn.nodes).id), number) for number in range(300)]
    expected = [(each.id, found) for each in events for found in index.match(each)]
    assert pairs(index.match_batch(table(events))) == expected
    assert pairs(index.match_batch(table([]))) == []
    index.save(tmp_path / "graph")
    opened = GraphIndex.open(tmp_path / "graph", room=RecordIndex)
    assert pairs(opened.match_batch(table(events))) == expected
    assert [(each.id, found) for each in events for found in opened.match(each)] == expected
    opened.add_node(Node("late", subscription="late"))
    opened.add_edge(Edge(drawn.nodes[0].id, "late"))
    changed = [(each.id, found) for each in events for found in opened.match(each)]
    assert pairs(opened.match_batch(table(events))) == changed


def test_unknown_sources_in_a_batch() -> None:
    index = GraphIndex.build([Node("a"), Node("b", subscription="s")], [Edge("a", "b")], room=RecordIndex)
    batch = pa.RecordBatch.from_pylist([{"id": 1, "source": "a"}, {"id": 2, "source": "x"}, {"id": 3}])
    assert index.sources(batch) == [
        None,
        "source 'x' is not a node of the graph: give the id of one",
        "it has no source: name the node where it enters the graph",
    ]
    with pytest.raises(EventError, match="event 2: source 'x' is not a node of the graph"):
        index.match_batch(batch)
    assert pairs(index.match_batch(batch.slice(0, 1))) == [(1, "s")]
    with pytest.raises(EventError, match="the events have no column 'source'"):
        index.match_batch(pa.RecordBatch.from_pylist([{"id": 1}]))
    with pytest.raises(EventError, match="the column source is given twice"):
        index.match_batch(pa.RecordBatch.from_pylist([{"id": 1, "source": "a", "Source": "b"}]))


def test_snapshots_of_other_rooms_are_refused(tmp_path: Path) -> None:
    RecordIndex.build([]).save(tmp_path / "records")
    with pytest.raises(SnapshotError, match="is a snapshot of 'records', not of 'graph'"):
        GraphIndex.open(tmp_path / "records", room=RecordIndex)
    index = GraphIndex.build([Node("a", "x = 1")], [], room=RecordIndex)
    index.save(tmp_path / "graph")
    index.save(tmp_path / "graph")
    inside = tmp_path / "graph" / "filters" / "stream.npy"
    inside.write_bytes(inside.read_bytes()[:-1] + b"\x7f")
    with pytest.raises(SnapshotError, match="damaged"):
        GraphIndex.open(tmp_path / "graph", room=RecordIndex)


def test_filters_of_another_graph_are_refused(tmp_path: Path) -> None:
    for name, text in (("one", "x = 1"), ("two", "x = 2")):
        GraphIndex.build([Node("a", text)], [], room=RecordIndex).save(tmp_path / name)
    shutil.rmtree(tmp_path / "one" / "filters")
    shutil.copytree(tmp_path / "two" / "filters", tmp_path / "one" / "filters")
    with pytest.raises(SnapshotError, match="filters does not belong to it"):
        GraphIndex.open(tmp_path / "one", room=RecordIndex)


def test_a_graph_that_is_replaced_while_it_is_opened_is_opened_anew(tmp_path: Path) -> None:
    old, new = (
        GraphIndex.build(
            [Node("p"), Node("a", f"x = {x}", subscription=f"s{x}")], [Edge("p", "a")], room=RecordIndex
        )
        for x in (1, 2)
    )
    old.save(tmp_path / "graph")

    class Meanwhile(RecordIndex):
        """Puts the other graph in place just before the filters are opened, once."""

        replaced = False

        @classmethod
        def open(cls, path: Path, *, verify: bool = True) -> RecordIndex:
            if not cls.replaced:
                cls.replaced = True
                new.save(tmp_path / "graph")
            return RecordIndex.open(path, verify=verify)

    opened = GraphIndex.open(tmp_path / "graph", room=Meanwhile)
    assert [opened.match(Event("e", {"x": x}, source="p")) for x in (1, 2)] == [[], ["s2"]]


@pytest.mark.parametrize("source", [2**70, True, "\ud800", 1.5])
def test_odd_sources(source: object) -> None:
    index = GraphIndex.build([Node(1), Node(2, subscription=5)], [Edge(1, 2)], room=RecordIndex)
    event = Event("e", {}, source=source)  # type: ignore[arg-type]
    with pytest.raises(EventError, match="is not a node of the graph"):
        index.match(event)
    with pytest.raises(EventError, match="is not a node of the graph"):
        index.match_batch([event])


def test_threads_may_ask_while_others_change() -> None:
    rng = random.Random("threads")
    drawn = draw_graph(rng, "cycles", 80)
    index = GraphIndex.build(drawn.nodes, drawn.edges, drawn.subscriptions, room=RecordIndex)
    source = str(drawn.nodes[0].id)
    events = [draw_event(rng, source, number) for number in range(20)]
    index.add_node(Node("gate", "age >= 0", subscription="gate"))
    index.add_edge(Edge(source, "gate"))
    before = [set(index.match(each)) - {"gate"} for each in events]
    wrong: list[object] = []
    stop = threading.Event()

    def ask() -> None:
        try:
            while not stop.is_set():
                for each, expected in zip(events, before, strict=True):
                    if set(index.match(each)) - {"gate"} != expected:
                        wrong.append(each)
        except BaseException as error:  # noqa: BLE001 -- shown by the test
            wrong.append(error)

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(60):
        index.set_filter("gate", None if number % 3 else f"age > {number % 7}")
        if number % 20 == 0:
            index.compact()
    stop.set()
    for thread in threads:
        thread.join()
    assert not wrong
