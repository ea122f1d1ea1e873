"""A graph index as its users ask and change it: what Python and Arrow add to the kernels."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from benchmarks.graph_series import interleaved
from benchmarks.results import Result
from headgate import Edge, Event
from headgate.graph.index import GraphIndex
from headgate.records.index.index import RecordIndex

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.graph_make import Ready

BEST = 20
CHANGES = 32
MOST_ADDED = 200
"""Microseconds that the first question after a change may take longer."""


def measure_ways(ready: Ready, title: str) -> list[Result]:
    """Ask one by one, in batches, for the best, and after changes."""
    index, batch = ready.index, ready.events
    filter_planes = index.base.filter_planes
    assert filter_planes is not None
    some = [Event.from_row(row) for row in batch.slice(0, 128).to_pylist()]
    changed = GraphIndex(index.base, RecordIndex)
    changes = _changes(changed, some)
    single: dict[str, Callable[[], object]] = {
        "match, one event from a dict": lambda: [index.match(event) for event in some],
        "reach, the first subscription of an event from a dict": lambda: [
            next(index.reach(event), None) for event in some
        ],
        f"top({BEST}), one event from a dict": lambda: [index.top(event, BEST) for event in some],
    }
    many: dict[str, Callable[[], object]] = {
        "encoding from Arrow": lambda: filter_planes.encode_batch(batch),
        "match_batch, from Arrow to Arrow": lambda: index.match_batch(batch),
    }
    found = {name: value / len(some) * 1e6 for name, value in interleaved(single, 3).items()}
    found |= {name: value / batch.num_rows * 1e6 for name, value in interleaved(many, 3).items()}
    found |= {name: value / CHANGES * 1e6 for name, value in interleaved(changes, 3).items()}
    found["match after those changes, one event from a dict"] = (
        interleaved({"": lambda: [changed.match(event) for event in some]}, 3)[""] / len(some) * 1e6
    )
    rows = [
        Result(f"{title}: {name}", value, "µs", section="From end to end") for name, value in found.items()
    ]
    name = f"{title}: what a change adds to the next question"
    rows.append(Result(name, _added(changed, some[0]), "µs", goal=MOST_ADDED, section="From end to end"))
    return rows


def _added(index: GraphIndex, event: Event) -> float:
    """Return the microseconds by which a match after a change is longer than the same match again."""
    ids = [place for place in index.base.names.node_ids[:CHANGES] if isinstance(place, str)]
    found = []
    for text in (None, "topic = 'none of them'") * 3:
        took = [0.0, 0.0]
        for node in ids:
            index.set_filter(node, text)
            for again in (0, 1):
                begun = time.perf_counter()
                index.match(event)
                took[again] += time.perf_counter() - begun
        found.append((took[0] - took[1]) / len(ids) * 1e6)
    return sorted(found)[len(found) // 2]


def _changes(index: GraphIndex, events: list[Event]) -> dict[str, Callable[[], object]]:
    """Return changes, each followed by a match that must see it."""
    ids = [place for place in index.base.names.node_ids[:CHANGES] if isinstance(place, str)]
    event = events[0]
    assert event.source is not None
    source = event.source

    def filters(text: str | None) -> None:
        for node in ids:
            index.set_filter(node, text)
            index.match(event)

    def edges() -> None:
        for node in ids:
            index.add_edge(Edge(source, node))
            assert node in index.match(event)
            index.remove_edge(source, node)

    filters(None)
    return {
        "a node gets a filter, then match": lambda: filters("topic = 'none of them'"),
        "a node loses its filter, then match": lambda: filters(None),
        "an edge comes, match, and it goes": edges,
    }
