"""Counters of subscriptions, and which events are measured to estimate what checking a filter costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.engine.statistics_columns import MOMENT, schema_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.core.ids import Ids

    Column = pa.Array[Any]
    Ints = NDArray[np.int64]

FIRST, SAMPLED = 128, 64
"""The first events are all measured; later so many at a time, which stand for all since the last ones."""
CALLS, EVENTS_BETWEEN = 8192, 1 << 16
"""Measuring costs as much as some calls, or as some hundred events of a large one: it is done so rarely."""
_compute: Any = pc


class Sample:
    """Which events are measured."""

    def __init__(self) -> None:
        self._seen = self._owed = self._calls = 0

    def choose(self, count: int) -> tuple[Ints, float]:
        """Choose among the events of a call; returns their rows, and how many events each stands for."""
        first = self._seen == self._owed
        self._seen += count
        self._owed += count
        self._calls += 1
        if self._seen > FIRST and not first and self._calls < CALLS and self._owed < EVENTS_BETWEEN:
            return np.zeros(0, np.int64), 0.0
        size = count if self._seen <= FIRST else min(count, SAMPLED)
        if not size:
            return np.zeros(0, np.int64), 0.0
        rows, weight = np.arange(size) * count // size, self._owed / size
        self._owed = self._calls = 0
        return rows, weight

    @property
    def scale(self) -> float:
        """Return what estimates are multiplied by, because the last events were not measured."""
        return self._seen / max(1, self._seen - self._owed)


class Counters:
    """Counters of subscriptions whose ids are known from the start, by place."""

    def __init__(self, ids: Ids) -> None:
        self.ids = ids
        self.names = ids.to_arrow()
        count = len(ids)
        self.since, self.matches, self.moment = (np.zeros(count, np.int64) for _ in range(3))
        self.exceeded = np.zeros(count, np.int64)
        self.sample = Sample()
        self.work = np.zeros(count)
        self.candidates = np.full(count, -1.0)
        """-1 while nothing was measured."""
        self.event: Column = pa.nulls(count, pa.string())
        self.gone = np.zeros(count, np.bool_)

    def add(self, places: Ints, counts: Ints, moments: Ints, events: Column) -> None:
        """Add matches of some subscriptions, each once, with the last event of each."""
        self.matches[places] += counts
        later = moments > self.moment[places]
        self.moment[places[later]] = moments[later]
        at = np.arange(len(self.ids))
        at[places[later]] = len(at) + np.flatnonzero(later)
        self.event = pa.concat_arrays([self.event, events]).take(at)

    def begin(self, place: int, events: int, *, gone: bool) -> None:
        """Count anew for a subscription."""
        for counter in (self.matches, self.moment, self.work, self.exceeded):
            counter[place] = 0
        self.candidates[place] = -1
        self.since[place], self.gone[place] = events, gone

    def table(self, events: int, *, scaled: bool) -> pa.Table:
        """Return what was counted; estimates are of all events if scaled, else of those until now."""
        here = ~self.gone
        some: list[Any] = [events - self.since, self.matches]
        some += [as_moments(self.moment), _compute.if_else(self.moment > 0, self.event, None)]
        unknown, scale = self.candidates < 0, self.sample.scale if scaled else 1.0
        costs = (np.rint(scale * each).astype(np.int64) for each in (self.candidates, self.work))
        some += [pa.array(each, mask=unknown) for each in costs]
        columns = [self.names, *some, self.exceeded]
        schema = schema_of(numbered=self.ids.numbered)
        return pa.Table.from_arrays([as_array(each) for each in columns], schema=schema).filter(
            pa.array(here)
        )


def as_array(column: Any) -> Column:
    return column if isinstance(column, pa.Array) else pa.array(column)


def as_moments(moment: Ints) -> Column:
    return pa.array(moment, mask=moment == 0).cast(MOMENT)
