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
    from headgate.core.arrays import Ints
    from headgate.core.event import Event
    from headgate.ranking.answers import RankedMatches
    from headgate.ranking.filters.keys import RankKeys

    Doubles = NDArray[np.float64]


class Asked(NamedTuple):
    """Events that are asked about together, and what they are called."""

    events: pa.RecordBatch | Sequence[Event]
    ids: pa.Array[Any]


def matched(asked: Asked, content: Content) -> tuple[Ints, Ints]:
    """Match events: the rows of events, rising, and the ids of filters, which are whole numbers."""
    portion = joined(content.ask(asked.events, asked.ids), pa.int64())
    return portion.rows, portion.numbers


def ranked(pairs: tuple[Ints, Ints], keys: RankKeys) -> tuple[Ints, Ints]:
    """Turn matches by key into rows: by event, and for each the best first."""
    events, numbers = pairs
    # What was subscribed later comes last for each event.
    if bool(((np.diff(numbers) < 0) & (np.diff(events) == 0)).any()):
        order = np.lexsort((numbers, events))
        events, numbers = events[order], numbers[order]
    return events, keys.rows(numbers)


def first(asked: Asked, content: Content, keys: RankKeys, k: int) -> tuple[Ints, Ints]:
    """Find the first k matches of each event by key, and turn them into rows."""
    if isinstance(content, FindsFirst):
        events, numbers = content.first_numbers(asked.events, k)
        return events, keys.rows(numbers)
    events, rows = ranked(matched(asked, content), keys)
    kept = places_within(events) < k
    return events[kept], rows[kept]


def best(matches: RankedMatches, order: Doubles, k: int) -> RankedMatches:
    """Sort the matches of each event by their values, equal ones by `order`, and cut them at k."""
    sorted_ = np.lexsort((order[matches.rows], -matches.values, matches.events))
    return matches.take(sorted_[places_within(matches.events[sorted_]) < k])
