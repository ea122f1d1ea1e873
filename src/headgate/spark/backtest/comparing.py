"""What workers do to compare two snapshots: each event is matched against both, and what differs goes out.

batch of events -> matches before, matches after -> their difference by event, their counts by subscription
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.records.index.index import EVENT_ID, SUBSCRIPTION_ID
from headgate.spark.match.worker import match_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from headgate.spark.match.worker import Task

NET, BEFORE, AFTER = "net", "before", "after"
_compute: Any = pc


class Pair(NamedTuple):
    """Two snapshots to be compared; None is one without subscriptions."""

    before: Task | None
    after: Task | None
    wanted: pa.Array[Any] | None = None
    """The subscriptions that are asked for; None for all."""

    @property
    def task(self) -> Task:
        """Return one of the two, for what they have in common."""
        task = self.before or self.after
        assert task is not None
        return task

    @property
    def ddl(self) -> str:
        """Return the columns of what comes out, for Spark.

        Rows with an event say by how much the times differ that it matches a subscription; those without say
        how many matches a subscription has.
        """
        task = self.task
        ids = f"{EVENT_ID} {task.event_type}, {SUBSCRIPTION_ID} {task.subscription_type}"
        return f"{ids}, {NET} long, {BEFORE} long, {AFTER} long"


def compare(batches: Iterable[pa.RecordBatch], pair: Pair) -> Iterator[pa.RecordBatch]:
    """Match events against both snapshots and tell the difference, batch by batch."""
    for batch in batches:
        before, after = _matches(batch, pair, pair.before), _matches(batch, pair, pair.after)
        yield from _differences(before, after, pair)
        yield from _counts(before, after, pair)


def _matches(batch: pa.RecordBatch, pair: Pair, task: Task | None) -> pa.Table:
    names = [EVENT_ID, SUBSCRIPTION_ID]
    schema = pa.schema([pair.task.output.field(name) for name in names])
    found = []
    for part in match_rows([batch], task) if task is not None else ():
        pairs = part.select(names)
        if pair.wanted is not None:
            pairs = pairs.filter(_compute.is_in(pairs[SUBSCRIPTION_ID], value_set=pair.wanted))
        found.append(pairs)
    return pa.Table.from_batches(found, schema)


def _differences(before: pa.Table, after: pa.Table, pair: Pair) -> Iterator[pa.RecordBatch]:
    signed = pa.concat_tables(
        table.append_column(NET, pa.array(np.full(table.num_rows, sign, np.int64)))
        for table, sign in ((before, -1), (after, 1))
    )
    sums = signed.group_by([EVENT_ID, SUBSCRIPTION_ID]).aggregate([(NET, "sum")])
    changed = sums.filter(_compute.not_equal(sums["net_sum"], 0))
    yield from _rows(changed.num_rows, pair, changed[EVENT_ID], changed[SUBSCRIPTION_ID], changed["net_sum"])


def _counts(before: pa.Table, after: pa.Table, pair: Pair) -> Iterator[pa.RecordBatch]:
    for name, table in ((BEFORE, before), (AFTER, after)):
        counts = table.group_by([SUBSCRIPTION_ID]).aggregate([(SUBSCRIPTION_ID, "count")])
        number = counts[f"{SUBSCRIPTION_ID}_count"]
        yield from _rows(counts.num_rows, pair, None, counts[SUBSCRIPTION_ID], None, **{name: number})


def _rows(
    count: int, pair: Pair, event: Any, subscription: Any, net: Any, before: Any = None, after: Any = None
) -> Iterator[pa.RecordBatch]:
    kinds = [*pair.task.output.types[:2], pa.int64(), pa.int64(), pa.int64()]
    names = [EVENT_ID, SUBSCRIPTION_ID, NET, BEFORE, AFTER]
    columns = [
        pa.array([None] * count, kind) if column is None else column.cast(kind)
        for column, kind in zip((event, subscription, net, before, after), kinds, strict=True)
    ]
    yield from pa.table(columns, names=names).combine_chunks().to_batches()
