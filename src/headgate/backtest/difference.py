"""What differs between two snapshots: by event, and by subscription.

matches before, matches after -> rows (event_id, subscription_id, net, before, after)
all of these rows             -> who would come and go, and how many matches each subscription has

Rows with an event say by how much the times differ that it matches a subscription; those without say how many
matches a subscription has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.contents.protocol import EVENT_ID, SUBSCRIPTION_ID

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

NET, BEFORE, AFTER = "net", "before", "after"
CHANGE = "change"
GAINED, LOST = "gained", "lost"
_compute: Any = pc


def matches_of(
    parts: Iterable[pa.RecordBatch], schema: pa.Schema, wanted: pa.Array[Any] | None = None
) -> pa.Table:
    """Put matches together, of some subscriptions only if `wanted` names them."""
    names = [EVENT_ID, SUBSCRIPTION_ID]
    found = []
    for part in parts:
        pairs = pa.RecordBatch.from_arrays(
            [part.column(name).cast(schema.field(name).type) for name in names], names=names
        )
        if wanted is not None:
            pairs = pairs.filter(_compute.is_in(pairs[SUBSCRIPTION_ID], value_set=wanted))
        found.append(pairs)
    return pa.Table.from_batches(found, pa.schema([schema.field(name) for name in names]))


class Differ(NamedTuple):
    """Tells what differs between two answers about some events."""

    matches: pa.Schema
    """The columns of matches, which both answers have."""
    wanted: pa.Array[Any] | None = None
    """The subscriptions that are asked for; None for all."""

    @property
    def output(self) -> pa.Schema:
        """Return the columns of what comes out."""
        return rows_schema(self.matches)

    def __call__(
        self, before: Iterable[pa.RecordBatch], after: Iterable[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        """Tell the difference between the matches of some events, before and after."""
        yield from compare(*(matches_of(each, self.matches, self.wanted) for each in (before, after)))

    def tally(self, events: int, refused: int) -> Iterator[pa.RecordBatch]:
        """Note how many events there were, and how many rows that are none: in a row without ids."""
        subscription = pa.nulls(1, self.matches.field(SUBSCRIPTION_ID).type)
        yield from _rows(self.matches, None, subscription, pa.array([events]), before=pa.array([refused]))


def compare(before: pa.Table, after: pa.Table) -> Iterator[pa.RecordBatch]:
    """Tell the difference between the matches of some events, before and after."""
    yield from _differences(before, after)
    yield from _counts(before, after)


def _differences(before: pa.Table, after: pa.Table) -> Iterator[pa.RecordBatch]:
    signed = pa.concat_tables(
        table.append_column(NET, pa.array(np.full(table.num_rows, sign, np.int64)))
        for table, sign in ((before, -1), (after, 1))
    )
    changed = _summed(signed)
    yield from _rows(before.schema, changed[EVENT_ID], changed[SUBSCRIPTION_ID], changed[NET])


def _summed(signed: pa.Table) -> pa.Table:
    sums = signed.group_by([EVENT_ID, SUBSCRIPTION_ID]).aggregate([(NET, "sum")])
    return sums.filter(_compute.not_equal(sums["net_sum"], 0)).rename_columns(
        [EVENT_ID, SUBSCRIPTION_ID, NET]
    )


def _counts(before: pa.Table, after: pa.Table) -> Iterator[pa.RecordBatch]:
    for name, table in ((BEFORE, before), (AFTER, after)):
        counts = table.group_by([SUBSCRIPTION_ID]).aggregate([(SUBSCRIPTION_ID, "count")])
        number = counts[f"{SUBSCRIPTION_ID}_count"]
        yield from _rows(before.schema, None, counts[SUBSCRIPTION_ID], None, **{name: number})


def _rows(
    schema: pa.Schema, event: Any, subscription: Any, net: Any, before: Any = None, after: Any = None
) -> Iterator[pa.RecordBatch]:
    whole = rows_schema(schema)
    columns = [
        pa.nulls(len(subscription), field.type) if column is None else column.cast(field.type)
        for column, field in zip((event, subscription, net, before, after), whole, strict=True)
    ]
    yield from pa.table(columns, schema=whole).combine_chunks().to_batches()


def rows_schema(matches: pa.Schema) -> pa.Schema:
    """Return the columns of what `compare` tells of such matches."""
    kinds = {name: matches.field(name).type for name in (EVENT_ID, SUBSCRIPTION_ID)}
    return pa.schema({**kinds, **dict.fromkeys((NET, BEFORE, AFTER), pa.int64())})


def changed_of(rows: pa.Table) -> pa.Table:
    """List what would come and go, in the order of ids.

    Events may share an id, and be told apart by their rows: what differs is known of all rows only.
    """
    sums = _summed(rows.filter(rows[EVENT_ID].is_valid()).select([EVENT_ID, SUBSCRIPTION_ID, NET]))
    sums = sums.sort_by([(EVENT_ID, "ascending"), (SUBSCRIPTION_ID, "ascending")])
    net = np.asarray(sums[NET].to_numpy(), np.int64)
    places = np.repeat(np.arange(len(net)), np.abs(net))
    change = pa.array([GAINED if net[place] > 0 else LOST for place in places], pa.string())
    return sums.select([EVENT_ID, SUBSCRIPTION_ID]).take(places).append_column(CHANGE, change)


def counts_of(rows: pa.Table) -> dict[Any, tuple[int, int]]:
    """Count the matches of subscriptions, before and after."""
    told = rows.filter(rows[EVENT_ID].is_null())
    sums = told.group_by([SUBSCRIPTION_ID]).aggregate([(BEFORE, "sum"), (AFTER, "sum")])
    columns = (sums[name].to_pylist() for name in (SUBSCRIPTION_ID, "before_sum", "after_sum"))
    return {identity: (before or 0, after or 0) for identity, before, after in zip(*columns, strict=True)}
