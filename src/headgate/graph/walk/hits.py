"""Which filters of a graph hold for many events, and which of two ways to the answer is quicker.

The other direction from `filter_planes`, which asks the filters that a walk comes to. Where few of many
filters hold, their own index finds them sooner than a walk can ask those on its way.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

from headgate.core.omission import Omission, RenamedOmissions, renaming
from headgate.graph.arrays import has_bits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from headgate.core.arrays import Ints

    Match = TypeVar("Match")
    from collections.abc import Sequence

    from headgate.core.event import Event
    from headgate.graph.changes.view import View


BY_GRAPH, BY_FILTERS = range(2)
"""The graph asks the filters that it comes to; the filters say which of them hold, and the graph follows."""

TRIAL = 64
"""Events of a trial."""
AGAIN = 1 << 20
"""Events until the next trial."""


class StrategyChooser:
    """Remembers which way was quicker. Threads may share it: at worst one of them tries once more."""

    def __init__(self) -> None:
        self.best = BY_GRAPH
        self._left = 0

    def run(self, count: int, work: Callable[[int, int, int], Iterable[Match]]) -> Iterator[Match]:
        """Do `work(way, begin, end)` for all of `count` events, in order, by the quicker way."""
        begin = 0
        if self._left <= 0 and count >= 2 * (TRIAL + 1):
            seconds = []
            for way in (BY_GRAPH, BY_FILTERS):
                # One event first, which pays for what is made once.
                yield from work(way, begin, begin + 1)
                begun = time.thread_time()
                trial = [*work(way, begin + 1, begin + 1 + TRIAL)]
                seconds.append(time.thread_time() - begun)
                yield from trial
                begin += 1 + TRIAL
            self.best = BY_GRAPH if seconds[BY_GRAPH] <= seconds[BY_FILTERS] else BY_FILTERS
            self._left = AGAIN
        self._left -= count
        if begin < count:
            yield from work(self.best, begin, count)


class Hits(NamedTuple):
    """Positions whose filter holds: those of event e are `position[start[e] : start[e + 1]]`."""

    start: Ints
    position: Ints


PAIRS = 1 << 24
"""What may hold of some events together: so many are asked about at a time."""
NO_HITS = Hits(np.zeros(0, np.int64), np.zeros(0, np.int64))
"""Nothing was asked: not even the events have a place there."""


def find_hits(view: View, events: pa.RecordBatch | Sequence[Event]) -> Iterator[tuple[int, int, Hits]]:
    """Ask the filters of a view about events; some of them at a time, from one to another."""
    for matches in renaming(view.named, view.base.content.ask(events, _rows(events), PAIRS)):
        begin, end, position = matches.begin, matches.end, matches.numbers - view.arrays.roots
        kept = position >= 0
        row, position = matches.rows[kept] - begin, position[kept]
        if view.later is not None:
            with RenamedOmissions(partial(_from, begin)):
                row, position = _with_later(view, events[begin:end], row, position)
        yield begin, end, Hits(np.searchsorted(row, np.arange(end - begin + 1)), position)


def _rows(events: pa.RecordBatch | Sequence[Event]) -> pa.Array[Any]:
    return pa.array(np.arange(len(events)))


def _from(begin: int, omission: Omission) -> Omission:
    """Count the rows of events from the first of all."""
    return omission._replace(event=begin + int(omission.event or 0))


def _with_later(
    view: View, events: pa.RecordBatch | Sequence[Event], row: Ints, position: Ints
) -> tuple[Ints, Ints]:
    """Drop the filters that are gone, and ask those that came later."""
    later = view.later
    assert later is not None
    kept = ~has_bits(view.overlay.dirty, position)
    row, position = row[kept], position[kept]
    if later.filters is None:
        return row, position
    matches = [*renaming(partial(view.named, later=True), later.filters.ask(events, _rows(events), PAIRS))]
    number = np.concatenate([np.zeros(0, np.int64), *(each.numbers for each in matches)])
    # Filters that came after this view was taken are not of it.
    known = number < len(later.filter_vertex)
    new = later.filter_vertex[number[known]] - view.arrays.roots
    new_row = np.concatenate([np.zeros(0, np.int64), *(each.rows for each in matches)])[known][new >= 0]
    row, position = np.concatenate([row, new_row]), np.concatenate([position, new[new >= 0]])
    order = np.argsort(row, kind="stable")
    return row[order], position[order]
