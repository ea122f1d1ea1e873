"""Questions about many events at once: asked of one engine, and the answers of several put together.

Events come as an Arrow batch or as Python values, and are not turned into the other form.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.contents.protocol import EVENT_ID, SUBSCRIPTION_ID
from headgate.core.event import SOURCE
from headgate.core.id_types import fit_id, fit_ids
from headgate.core.values import fold
from headgate.runtime.questions import RANK, SCORE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from headgate.core.event import Event
    from headgate.engine.engine import Engine
    from headgate.engine.statistics import Statistics
    from headgate.graph.index import GraphIndex
    from headgate.runtime.questions import Top

    Column = pa.Array[Any]
    Events = pa.RecordBatch | Sequence[Event]

PAIRS = 1 << 24
"""What holds, in memory, at most: fewer events are asked about together if each may have much."""
_compute: Any = pc


def at_once(engine: Engine, top: Top | None) -> int:
    """Say how many events an engine may be asked about together, for the answer to fit into memory."""
    return engine.backend.at_once(top, PAIRS)


class Counting(NamedTuple):
    """Where answers are counted, and the ids of the events if others stand for them."""

    statistics: Statistics
    names: Column | None = None


def ask(
    engine: Engine, events: Events, ids: Column, top: Top | None, counting: Counting | None = None
) -> Iterator[pa.RecordBatch]:
    """Ask an engine for all matches of events, or the best of each, in portions; `ids` stand for theirs."""
    if counting is None:
        return engine.backend.portions(events, ids, top, PAIRS)
    return counting.statistics.answers(engine.backend, events, ids, top, PAIRS, counting.names)


def merged(
    answers: Sequence[pa.RecordBatch],
    ids: Column,
    top: Top | None,
    wanted: NDArray[np.int64] | None = None,
) -> pa.RecordBatch:
    """Put answers of shards together that have rows for events: all, or the best; equal ones go by id.

    `wanted` says of each event how many, if that is not the same for all.

    A subscription is on one shard, so nothing is there twice; and the best of all are among the best of each.

    >>> from headgate.runtime.questions import Top
    >>> answers = [
    ...     pa.RecordBatch.from_pydict({EVENT_ID: [0, 0], SUBSCRIPTION_ID: ["b", "d"], SCORE: [2.0, 1.0]}),
    ...     pa.RecordBatch.from_pydict({EVENT_ID: [0, 1], SUBSCRIPTION_ID: ["a", "c"], SCORE: [2.0, 0.5]}),
    ... ]
    >>> list(zip(*merged(answers, pa.array(["e0", "e1"]), Top(2)).to_pydict().values()))
    [('e0', 'a', 2.0, 1), ('e0', 'b', 2.0, 2), ('e1', 'c', 0.5, 1)]
    """
    names = [EVENT_ID, SUBSCRIPTION_ID] if top is None else [EVENT_ID, SUBSCRIPTION_ID, SCORE]
    # One without rows does not know the type of its ids.
    found = [each for each in answers if each.num_rows]
    columns = {name: _joined([each.column(name) for each in found]) for name in names}
    keys = [(EVENT_ID, "ascending"), (SUBSCRIPTION_ID, "ascending")]
    if top is not None:
        keys.insert(1, (SCORE, "descending"))
    whole = pa.RecordBatch.from_pydict(columns)
    whole = whole.take(_compute.sort_indices(whole, sort_keys=keys))
    if top is not None:
        row = np.asarray(whole.column(EVENT_ID))
        rank = np.arange(1, len(row) + 1) - np.searchsorted(row, row)
        whole = whole.append_column(RANK, pa.array(rank.astype(np.int32)))
        whole = whole.filter(pa.array(rank <= (top.k if wanted is None else wanted[row])))
    return whole.set_column(0, EVENT_ID, ids.take(whole.column(EVENT_ID)))


def _joined(columns: Sequence[Column]) -> Column:
    if not columns:
        return pa.array([], pa.int64())
    kind = columns[0].type
    return pa.concat_arrays([column.cast(kind) for column in columns])


def refused_by_all(
    events: pa.RecordBatch, shards: Iterable[Callable[[pa.RecordBatch], list[str | None]]]
) -> list[str | None]:
    """Say of each event why every shard refuses its source; None where one does not."""
    found: list[str | None] = [""] * events.num_rows
    for refused in shards:
        # A node that leads nowhere is on one shard only, the others are on all: the first mostly will do.
        rows = [row for row, reason in enumerate(found) if reason is not None]
        if not rows:
            break
        for row, reason in zip(rows, refused(events.take(pa.array(rows))), strict=True):
            found[row] = reason
    return found


def sources_of(events: Events) -> Column:
    """Return the sources of events as they were given; whole numbers among texts become text."""
    if isinstance(events, pa.RecordBatch):
        return events.column(_place(events))
    sources = [event.source for event in events]
    if not any(isinstance(source, str) for source in sources):
        return pa.array(sources, pa.int64())
    return pa.array([None if source is None else str(source) for source in sources], pa.string())


def fitted(events: Events, *, numbered: bool) -> Events:
    """Give sources the type that ids of nodes have."""
    if isinstance(events, pa.RecordBatch):
        place = _place(events)
        return events.set_column(place, SOURCE, fit_ids(events.column(place), numbered=numbered))
    return [_fitted(event, numbered=numbered) for event in events]


def _fitted(event: Event, *, numbered: bool) -> Event:
    if event.source is None or isinstance(event.source, int) is numbered:
        return event
    return replace(event, source=fit_id(event.source, numbered=numbered))


def _place(batch: pa.RecordBatch) -> int:
    return [fold(name) for name in batch.schema.names].index(SOURCE)


def known(graph: GraphIndex, events: Events) -> NDArray[np.bool_]:
    """Tell which events come from a node of a graph, or of this shard of it."""
    if not isinstance(events, pa.RecordBatch):
        kind: pa.DataType = pa.int64() if graph.base.names.node_ids.numbered else pa.string()
        source = pa.array([event.source for event in events], kind)
        events = pa.RecordBatch.from_arrays([source], names=[SOURCE])
    return np.array([reason is None for reason in graph.sources(events)], np.bool_)
