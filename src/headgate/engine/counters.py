"""Counters of subscriptions, and which events are measured to estimate what checking a filter costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.contents.protocol import SUBSCRIPTION_ID

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headgate.core.arrays import Ints
    from headgate.core.ids import Ids

    Column = pa.Array[Any]


ID, EVENTS, MATCHES = SUBSCRIPTION_ID, "events", "matches"
LAST_MATCH, LAST_EVENT = "last_match", "last_event"
CANDIDATES, WORK, EXCEEDED = "candidates", "work", "exceeded"
MOMENT = pa.timestamp("us", "UTC")
_TYPES: dict[str, pa.DataType] = {
    EVENTS: pa.int64(),
    MATCHES: pa.int64(),
    LAST_MATCH: MOMENT,
    LAST_EVENT: pa.string(),
    CANDIDATES: pa.int64(),
    WORK: pa.int64(),
    EXCEEDED: pa.int64(),
}
_compute: Any = pc


def schema_of(*, numbered: bool) -> pa.Schema:
    """Return the columns of statistics: ids are whole numbers or text."""
    return pa.schema({ID: pa.int64() if numbered else pa.string(), **_TYPES})


def merged(tables: Sequence[pa.Table]) -> pa.Table:
    """Add statistics up, which have ids of one type: by subscription, in the order of ids.

    The last match is the latest of all. What nobody has measured stays unknown.

    >>> some = pa.table({ID: ["s1"], **{name: pa.array([None], kind) for name, kind in _TYPES.items()}})
    >>> more = some.set_column(2, MATCHES, pa.array([2]))
    >>> merged([some, more, more]).select([ID, MATCHES, WORK]).to_pylist()
    [{'subscription_id': 's1', 'matches': 4, 'work': None}]
    """
    whole = pa.concat_tables(tables)
    if len(tables) == 1 or not whole.num_rows:
        return whole.sort_by(ID)
    last = [LAST_MATCH, LAST_EVENT]
    sums = [name for name in _TYPES if name not in last]
    # The last of a group is taken: those of no match come first.
    moment = _compute.fill_null(whole[LAST_MATCH].cast(pa.int64()), 0)
    order = _compute.sort_indices(
        whole.append_column("moment", moment), sort_keys=[(ID, "ascending"), ("moment", "ascending")]
    )
    rows = pa.TableGroupBy(whole.take(order), ID, use_threads=False)
    added = rows.aggregate([(name, "sum") for name in sums] + [(name, "last", _KEEP) for name in last])
    names = [name.removesuffix("_sum").removesuffix("_last") for name in added.column_names]
    return added.rename_columns(names).select(whole.column_names).cast(whole.schema)


_KEEP = pc.ScalarAggregateOptions(skip_nulls=False)


FIRST, SAMPLED = 128, 64
"""The first events are all measured; later so many at a time, which stand for all since the last ones."""
CALLS, EVENTS_BETWEEN = 8192, 1 << 16
"""Measuring costs as much as some calls, or as some hundred events of a large one: it is done so rarely."""


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

    def begin(self, number: int, events: int, *, gone: bool) -> None:
        """Count anew for a subscription."""
        for counter in (self.matches, self.moment, self.work, self.exceeded):
            counter[number] = 0
        self.candidates[number] = -1
        self.since[number], self.gone[number] = events, gone

    def table(self, events: int, *, scaled: bool) -> pa.Table:
        """Return what was counted; estimates are of all events if scaled, else of those until now."""
        here = ~self.gone
        some: list[Any] = [events - self.since, self.matches]
        moment: Column = pa.array(self.moment, mask=self.moment == 0)
        some += [moment.cast(MOMENT), _compute.if_else(self.moment > 0, self.event, None)]
        unknown, scale = self.candidates < 0, self.sample.scale if scaled else 1.0
        costs = (np.rint(scale * each).astype(np.int64) for each in (self.candidates, self.work))
        some += [pa.array(each, mask=unknown) for each in costs]
        columns = [self.names, *some, self.exceeded]
        schema = schema_of(numbered=self.ids.numbered)
        return pa.Table.from_arrays(
            [each if isinstance(each, pa.Array) else pa.array(each) for each in columns], schema=schema
        ).filter(pa.array(here))
