"""Which kinds of content the filters of tables are for, and whether they are ranked, as their rows say."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from headgate.core.event import Event
from headgate.core.values import fold
from headgate.jobs.events import first_read
from headgate.records.events.columns import BatchColumns, EventColumns
from headgate.runtime.rows import DIALECT, FILTER
from headgate.tables.choosing import choose, find_dialects
from headgate.tables.filter_rows import find_fields
from headgate.tables.lines import SAMPLE, VALUE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from headgate.contents.kind import FilterSettings
    from headgate.contents.protocol import Contents
    from headgate.jobs.runner import Table
    from headgate.records.events.columns import Columns

_DIALECTS = pa.schema({DIALECT: pa.string()})
_FOUND = pa.schema({VALUE: pa.binary()})


def contents_of(
    wanted: FilterSettings, tables: Iterable[Table], find_table: Callable[[str], Table]
) -> Contents:
    """Choose the kinds that the filters of tables are for, as one; refuses settings that do not fit."""
    tables_given = list(tables)
    dialects = {each for table in tables_given for each in dialects_of(table, wanted.dialect)}
    names = [table.name for table in tables_given]
    return choose(wanted, names, dialects, lambda path: read_sample(find_table(path)))


def dialects_of(table: Table, default: str) -> set[str]:
    """List the dialects of a table's filters; those that name none have the default."""
    columns = table.columns()
    if columns is not None and FILTER not in map(fold, columns):
        return set()
    lines = table.lines().select(VALUE)
    dialects = lines.map(partial(find_dialects, default=default), _DIALECTS).collect()
    return {str(each) for each in dialects[DIALECT].to_pylist()}


def has_any(table: Table, names: Sequence[str]) -> bool:
    """Tell whether a table has one of some columns; in JSON lines, whether a row has one of the fields."""
    columns = table.columns()
    if columns is not None:
        return not {*map(fold, columns)}.isdisjoint(names)
    likely = table.lines().select(VALUE).map(partial(find_fields, names=names), _FOUND)
    return likely.head(1).num_rows > 0


def read_sample(table: Table) -> Columns:
    """Read the first events of a table; lines that are none are passed over: `match` will refuse them."""
    if table.columns() is None:
        rows = first_read(table, SAMPLE)
        return EventColumns([event for event in rows if isinstance(event, Event)])
    first = table.typed().head(SAMPLE)
    whole = [first[name].combine_chunks() for name in first.column_names]
    return BatchColumns(pa.RecordBatch.from_arrays(whole, names=first.column_names))
