"""Batches of events through a graph: Arrow in, Arrow out."""

from __future__ import annotations

import re
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.core.casts import INT64_MAX, INT64_MIN
from headgate.core.event import ID, SOURCE, Event
from headgate.errors import EventError
from headgate.graph import walking
from headgate.graph.base import NO_CELLS, NO_PLANES
from headgate.graph.hits import find_hits
from headgate.graph.ranked import order_by_id
from headgate.graph.ways import BY_FILTERS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from headgate.core.event import Id
    from headgate.core.ids import Ids
    from headgate.graph.view import View

    Column = pa.Array[Any]

EVENT_ID, SUBSCRIPTION_ID = "event_id", "subscription_id"
_SURROGATE = re.compile("[\ud800-\udfff]")
CHUNK = 4096
"""Events encoded together."""

_compute: Any = pc


def match_batch(view: View, events: pa.RecordBatch) -> pa.RecordBatch:
    """Match a batch of events that all have a source."""
    identities, source = column(events, ID), sources(view, events)
    for row in np.flatnonzero(source < 0)[:1].tolist():
        raise EventError(f"event {identities[row].as_py()!r}: {refusals(view, events)[row]}")
    chunks = (events.slice(begin, CHUNK) for begin in range(0, events.num_rows, CHUNK))
    return _match(view, chunks, source, identities)


def match_events(view: View, events: Sequence[Event], identities: Column | None = None) -> pa.RecordBatch:
    """Match events given as Python values, all with a source; `identities` stand for their ids."""
    source = np.array(find_all(view, [event.source for event in events]), np.int32)
    for row in np.flatnonzero(source < 0)[:1].tolist():
        view.source(events[row])
    if identities is None:
        identities = pa.array([event.id for event in events])
    chunks = (events[begin : begin + CHUNK] for begin in range(0, len(events), CHUNK))
    return _match(view, chunks, source, identities)


def _match(
    view: View,
    chunks: Iterable[pa.RecordBatch | Sequence[Event]],
    source: NDArray[np.int32],
    identities: Column,
) -> pa.RecordBatch:
    rows, places = [np.zeros(0, np.int64)], [np.zeros(0, np.int32)]
    for begin, chunk in zip(count(0, CHUNK), chunks, strict=False):
        entries = source[begin : begin + CHUNK]

        def some(
            way: int,
            first: int,
            last: int,
            *,
            begin: int = begin,
            chunk: pa.RecordBatch | Sequence[Event] = chunk,
            entries: NDArray[np.int32] = entries,
        ) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
            row, place = _chunk(view, chunk[first:last], entries[first:last], way)
            return row + begin + first, place

        for row, place in view.ways.run(len(entries), some):
            rows.append(row)
            places.append(place)
    columns = [identities.take(np.concatenate(rows)), subscription_ids(view, np.concatenate(places))]
    return pa.RecordBatch.from_arrays(columns, names=[EVENT_ID, SUBSCRIPTION_ID])


def column(events: pa.RecordBatch, name: str) -> Column:
    """Find a column whatever the case of its name; refuses a batch without it."""
    for place, found in enumerate(events.schema.names):
        if found.casefold() == name:
            return events.column(place)
    raise EventError(f"the events have no column {name!r}; the columns are {', '.join(events.schema.names)}")


def sources(view: View, events: pa.RecordBatch) -> NDArray[np.int32]:
    """Find the vertices of the sources, -1 where there is none."""
    coded = _compute.dictionary_encode(column(events, SOURCE))
    values = coded.dictionary.to_pylist()
    place = np.asarray(coded.indices.fill_null(len(values)))
    return np.asarray(np.array([*find_all(view, values), -1], np.int32)[place])


def find_all(view: View, values: Sequence[object]) -> list[int]:
    """Find the vertices of nodes, -1 for what is none."""
    ids, vertex = view.base.names.node_ids, view.base.names.vertex_of_node
    wanted = [value for value in values if isinstance(value, str | int)]
    if view.later is not None or len(wanted) < len(values) or not len(ids) or not _fit(ids, wanted):
        return [view.find(value) if isinstance(value, str | int) else -1 for value in values]
    # All at once: one by one takes twenty times as long, and half of the time of a match.
    places = ids.places(wanted).tolist()
    return [
        int(vertex[place]) if place < len(ids) and ids[place] == value else -1
        for place, value in zip(places, wanted, strict=True)
    ]


def _fit(ids: Ids, values: Sequence[Id]) -> bool:
    """Tell whether values may be looked up together: of the type of the ids, and such that can be stored."""
    if ids.numbered:
        return all(type(value) is int and INT64_MIN <= value <= INT64_MAX for value in values)
    return all(isinstance(value, str) and not _SURROGATE.search(value) for value in values)


def refusals(view: View, events: pa.RecordBatch) -> list[str | None]:
    """Say of each event why its source is refused; None where it is not."""
    found: list[str | None] = [None] * events.num_rows
    given = column(events, SOURCE)
    for row in np.flatnonzero(sources(view, events) < 0).tolist():
        source = given[row].as_py()
        found[row] = (
            "it has no source: name the node where it enters the graph"
            if source is None
            else f"source {source!r} is no node of the graph: give the id of one"
        )
    return found


def _chunk(
    view: View, events: pa.RecordBatch | Sequence[Event], source: NDArray[np.int32], way: int
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Match events; returns rows and places of subscriptions that belong together, sorted."""
    counts = np.zeros(len(source), np.int64)
    if way == BY_FILTERS or view.base.sieve is None or view.later is not None:
        found = _by_filters(view, events, source, counts)
    else:
        found = _by_graph(view, events, source, counts)
    rows = np.repeat(np.arange(len(source)), counts)
    later = view.later
    if later is None:
        return _sorted_once(rows, view.arrays.serves[found + view.arrays.roots], np.zeros(0))
    places = np.concatenate([view.arrays.serves, later.serves])[found + view.arrays.roots]
    return _sorted_once(rows, places, -order_by_id(view))


def _by_graph(
    view: View,
    events: pa.RecordBatch | Sequence[Event],
    source: NDArray[np.int32],
    counts: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Walk from the sources and ask the filters on the way; `counts` says how much each event has found."""
    sieve = view.base.sieve
    assert sieve is not None
    encoded = sieve.encode_batch(events) if isinstance(events, pa.RecordBatch) else sieve.encode(events)
    scratch, given = view.scratch(), np.zeros(view.words, np.uint64)
    out = _room(view)
    parts = [np.zeros(0, np.int64)]
    done, resume = 0, False
    while done < len(source):
        reached, why = walking.walk_events(
            view.arrays,
            view.overlay,
            sieve.planes,
            encoded.cells,
            given,
            view.serving,
            source,
            done,
            resume,
            scratch,
            out,
            counts,
        )
        parts.append(out[: counts[done:reached].sum()].copy())
        done, resume = reached, why == walking.ASKING
        if resume:
            asked = scratch.asked[: scratch.counts[walking.ASKED]]
            walking.answer(view.arrays, scratch, sieve.holds(encoded, done, asked))
    return np.concatenate(parts)


def _by_filters(
    view: View,
    events: pa.RecordBatch | Sequence[Event],
    source: NDArray[np.int32],
    counts: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Ask all filters, and walk through those that hold."""
    hits, given, out = find_hits(view, events), np.zeros(view.words, np.uint64), _room(view)
    # As many rows as there are planes: none.
    scratch = view.scratch()._replace(rows=np.zeros(0, np.int32))
    parts = [np.zeros(0, np.int64)]
    args = (view.arrays, view.overlay, NO_PLANES, NO_CELLS, *hits, given, view.serving, source)
    done = 0
    while done < len(source):
        reached = walking.walk_hits(*args, done, scratch, out, counts)
        parts.append(out[: counts[done:reached].sum()].copy())
        done = reached
    return np.concatenate(parts)


def _room(view: View) -> NDArray[np.int64]:
    """Make room for what some events find, or one that finds everything."""
    return np.empty(max(1 << 16, 64 * view.words + 64), np.int64)


def _sorted_once(
    rows: NDArray[np.int64], places: NDArray[np.int32], rank: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Sort by event and subscription; several vertices may serve one subscription, which counts once.

    Places are in the order of ids, unless subscriptions came later: then `rank` says it.
    """
    order = np.lexsort((rank[places] if len(rank) else places, rows))
    rows, places = rows[order], places[order]
    kept = np.ones(len(rows), np.bool_)
    kept[1:] = (rows[1:] != rows[:-1]) | (places[1:] != places[:-1])
    return rows[kept], places[kept]


def subscription_ids(view: View, places: NDArray[np.integer[Any]]) -> Column:
    """Return ids of subscriptions for Arrow."""
    ids: Column = view.base.subscription_array
    if view.later is not None and view.later.subscription_ids:
        new: Any = tuple(view.later.subscription_ids)
        later: Any = pa.array(new, ids.type if len(ids) else None)
        ids = pa.concat_arrays([ids.cast(later.type), later])
    return ids.take(places)
