"""Many events at once: which rows match them, and which of these are best."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from headgate.contents.portions import joined, places_within
from headgate.contents.protocol import FindsFirst

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from headgate.contents.protocol import Content
    from headgate.core.event import Event
    from headgate.ranking.filters.keys import RankKeys

    Ints = NDArray[np.int64]
    Doubles = NDArray[np.float64]


class Asked(NamedTuple):
    """Events that are asked about together, and what they are called."""

    events: pa.RecordBatch | Sequence[Event]
    ids: pa.Array[Any]


def matched(asked: Asked, content: Content) -> tuple[Ints, Ints]:
    """Match events: the rows of events, rising, and the ids of filters, which are whole numbers."""
    found = joined(content.ask(asked.events, asked.ids), pa.int64())
    return found.rows, found.numbers


class Rows(NamedTuple):
    """Row rows[i] matches the event at place events[i]; by event, and for each the best first."""

    events: Ints
    rows: Ints


def ranked(pairs: tuple[Ints, Ints], keys: RankKeys) -> Rows:
    """Turn matches by key into rows."""
    events, found = pairs
    # What was subscribed later comes last for each event.
    if bool(((np.diff(found) < 0) & (np.diff(events) == 0)).any()):
        order = np.lexsort((found, events))
        events, found = events[order], found[order]
    return Rows(events, keys.rows(found))


def first(asked: Asked, content: Content, keys: RankKeys, k: int) -> Rows:
    """Find the first k matches of each event by key, and turn them into rows."""
    if isinstance(content, FindsFirst):
        events, found = content.first_numbers(asked.events, k)
        return Rows(events, keys.rows(found))
    every = ranked(matched(asked, content), keys)
    kept = places_within(every.events) < k
    return Rows(every.events[kept], every.rows[kept])


def best(
    found: Rows, values: NDArray[np.float64], order: NDArray[np.float64], k: int
) -> tuple[Rows, Doubles]:
    """Sort the matches of each event by their values, equal ones by `order`, and cut them at k."""
    sorted_ = np.lexsort((order[found.rows], -values, found.events))
    sorted_ = sorted_[places_within(found.events[sorted_]) < k]
    return Rows(found.events[sorted_], found.rows[sorted_]), values[sorted_]
