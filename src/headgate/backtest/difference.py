"""What differs between two engines: by event, and by subscription.

matches before, matches after -> rows (event_id, subscription_id, net, before, after)
all of these rows             -> who would come and go, and how many matches each subscription has

Rows with an event say by how much the times differ that it matches a subscription; those with a subscription
only say how many matches it has; those with neither count events, and rows that are none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.contents.protocol import EVENT_ID, SUBSCRIPTION_ID
from headgate.core.omission import Omissions
from headgate.tables.frames.reading import read_frame
from headgate.tables.frames.rows import as_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from headgate.runtime.targets import Openable
    from headgate.tables.frames.reading import Given
    from headgate.tables.frames.task import FrameTask

NET, BEFORE, AFTER = "net", "before", "after"
CHANGE, COUNT = "change", "count"
GAINED, LOST = "gained", "lost"
_compute: Any = pc


class Differ(NamedTuple):
    """Asks both engines about events, and tells the difference."""

    task: FrameTask
    before: Openable | None
    after: Openable | None
    event_type: pa.DataType
    """Of ids of events."""
    wanted: pa.Array[Any] | None = None
    """The subscriptions that are asked for; None for all."""

    @property
    def ids(self) -> dict[str, pa.DataType]:
        """Return the columns of ids, with their types."""
        return {EVENT_ID: self.event_type, SUBSCRIPTION_ID: pa.int64() if self.task.numbered else pa.string()}

    @property
    def schema(self) -> pa.Schema:
        """Return the columns of what comes out."""
        return pa.schema({**self.ids, **dict.fromkeys((NET, BEFORE, AFTER), pa.int64())})

    @property
    def changed(self) -> pa.Schema:
        """Return the columns of who would come and go."""
        return pa.schema({**self.ids, CHANGE: pa.string()})

    def of_batches(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Compare events as workers get them."""
        return self.of_events(read_frame(batches, self.task))

    def of_events(self, read: Iterable[Given]) -> Iterator[pa.RecordBatch]:
        """Compare events that were read, some at a time."""
        for given in read:
            yield from self._rows(net=pa.array([len(given.events)]), before=pa.array([len(given.refused)]))
            matches = [self._matches(given, each) for each in (self.before, self.after)]
            changed = _summed(
                pa.concat_tables(
                    table.append_column(NET, pa.array(np.full(table.num_rows, sign, np.int64)))
                    for table, sign in zip(matches, (-1, 1), strict=True)
                )
            )
            yield from self._rows(*(changed[name] for name in (EVENT_ID, SUBSCRIPTION_ID, NET)))
            for name, table in zip((BEFORE, AFTER), matches, strict=True):
                counts = table.group_by([SUBSCRIPTION_ID]).aggregate([(SUBSCRIPTION_ID, "count")])
                number = counts[f"{SUBSCRIPTION_ID}_count"]
                yield from self._rows(subscription=counts[SUBSCRIPTION_ID], **{name: number})

    def _matches(self, given: Given, group: Openable | None) -> pa.Table:
        """Return who is matched by some events, of those that are asked for."""
        parts: Iterable[pa.RecordBatch] = ()
        if group is not None:
            parts = as_rows(given, self.task._replace(group=group), Omissions())
        batches = []
        for part in parts:
            columns = [part.column(name).cast(kind) for name, kind in self.ids.items()]
            pairs = pa.RecordBatch.from_arrays(columns, names=list(self.ids))
            if self.wanted is not None:
                pairs = pairs.filter(_compute.is_in(pairs[SUBSCRIPTION_ID], value_set=self.wanted))
            batches.append(pairs)
        return pa.Table.from_batches(batches, pa.schema(self.ids))

    def _rows(
        self, event: Any = None, subscription: Any = None, net: Any = None, **counts: Any
    ) -> Iterator[pa.RecordBatch]:
        filled = {EVENT_ID: event, SUBSCRIPTION_ID: subscription, NET: net, **counts}
        count = next(len(column) for column in filled.values() if column is not None)
        columns = [
            pa.nulls(count, kind.type)
            if (column := filled.get(kind.name)) is None
            else column.cast(kind.type)
            for kind in self.schema
        ]
        yield from pa.table(columns, schema=self.schema).combine_chunks().to_batches()


def _summed(signed: pa.Table) -> pa.Table:
    sums = signed.group_by([EVENT_ID, SUBSCRIPTION_ID]).aggregate([(NET, "sum")])
    return sums.filter(_compute.not_equal(sums["net_sum"], 0)).rename_columns(
        [EVENT_ID, SUBSCRIPTION_ID, NET]
    )


def tell_changed(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """List what would come and go, of all rows of some events and subscriptions.

    Events may share an id, and be told apart by their rows: what differs is known of all rows only.
    """
    for rows in _whole(batches):
        sums = _summed(rows.select([EVENT_ID, SUBSCRIPTION_ID, NET]))
        net = np.asarray(sums[NET].to_numpy(), np.int64)
        places: Any = np.repeat(np.arange(len(net)), np.abs(net))
        change = pa.array([GAINED if net[index] > 0 else LOST for index in places], pa.string())
        pairs = sums.select([EVENT_ID, SUBSCRIPTION_ID]).take(places)
        yield from pairs.append_column(CHANGE, change).combine_chunks().to_batches()


def count_changed(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Count what would come and go by subscription, of the rows of a part."""
    for rows in _whole(batches):
        counts = rows.group_by([SUBSCRIPTION_ID, CHANGE]).aggregate([(CHANGE, "count")])
        yield from counts.rename_columns([SUBSCRIPTION_ID, CHANGE, COUNT]).combine_chunks().to_batches()


def count_matches(batches: Iterable[pa.RecordBatch], wanted: pa.Array[Any]) -> Iterator[pa.RecordBatch]:
    """Count the matches of some subscriptions before and after, of all rows of these."""
    for rows in _whole(batches):
        some = rows.filter(_compute.is_in(rows[SUBSCRIPTION_ID], value_set=wanted))
        sums = some.group_by([SUBSCRIPTION_ID]).aggregate([(BEFORE, "sum"), (AFTER, "sum")])
        yield from sums.rename_columns([SUBSCRIPTION_ID, BEFORE, AFTER]).combine_chunks().to_batches()


def _whole(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Put the rows of a part together, if there are any."""
    held = list(batches)
    if held:
        yield pa.Table.from_batches(held)
