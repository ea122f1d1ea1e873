"""The columns of statistics of subscriptions, and how tables of them are added up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from headgate.contents.protocol import SUBSCRIPTION_ID

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    found = rows.aggregate([(name, "sum") for name in sums] + [(name, "last", _KEEP) for name in last])
    names = [name.removesuffix("_sum").removesuffix("_last") for name in found.column_names]
    return found.rename_columns(names).select(whole.column_names).cast(whole.schema)


_KEEP = pc.ScalarAggregateOptions(skip_nulls=False)
