"""What is asked of several shards: how their answers are put together, and which events they take."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.contents.portions import Portion, joined
from headgate.core.event import SOURCE
from headgate.core.id_types import fit_id, fit_ids
from headgate.core.values import fold

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from headgate.core.event import Event
    from headgate.engine.statistics import Statistics
    from headgate.runtime.questions import Top

    Column = pa.Array[Any]
    Events = pa.RecordBatch | Sequence[Event]
    Given = TypeVar("Given", pa.RecordBatch, Column)

PAIRS = 1 << 24
"""What holds, in memory, at most: fewer events are asked about together if each may have much."""
_compute: Any = pc


class Counting(NamedTuple):
    """Where answers are counted, and the ids of the events if others stand for them."""

    statistics: Statistics
    names: Column | None = None


def merged(answers: Iterable[Portion], top: Top, wanted: NDArray[np.int64] | None = None) -> Portion:
    """Put the best of shards together: the best of all; equal ones go by id.

    `wanted` says of each event how many, if that is not the same for all.

    A subscription is on one shard, so nothing is there twice; and the best of all are among the best of each.

    >>> from headgate.runtime.questions import Top
    >>> answers = [
    ...     Portion.of(np.array([0, 0]), pa.array(["b", "d"]), np.array([2.0, 1.0])),
    ...     Portion.of(np.array([0, 1]), pa.array(["a", "c"]), np.array([2.0, 0.5])),
    ... ]
    >>> found = merged(answers, Top(2)).batch(pa.array(["e0", "e1"]))
    >>> list(zip(*found.to_pydict().values()))
    [('e0', 'a', 2.0, 1), ('e0', 'b', 2.0, 2), ('e1', 'c', 0.5, 1)]
    """
    whole = joined(answers, pa.string())
    assert whole.values is not None
    keys = [pa.array(whole.rows), pa.array(-whole.values), whole.ids]
    names = ["row", "value", "id"]
    order = np.asarray(
        _compute.sort_indices(
            pa.RecordBatch.from_arrays(keys, names=names), sort_keys=[(name, "ascending") for name in names]
        )
    )
    found = Portion.of(whole.rows[order], whole.ids.take(order), whole.values[order])
    return found.some(found.ranks <= (top.k if wanted is None else wanted[found.rows]))


def refused_by_all(given: Given, shards: Iterable[Callable[[Given], list[str | None]]]) -> list[str | None]:
    """Say of sources why every shard refuses them; None where one does not."""
    found: list[str | None] = [""] * len(given)
    for refused in shards:
        # A node that leads nowhere is on one shard only, the others are on all: the first mostly will do.
        rows = [row for row, reason in enumerate(found) if reason is not None]
        if not rows:
            break
        for row, reason in zip(rows, refused(given.take(pa.array(rows))), strict=True):
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
