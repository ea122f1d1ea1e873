"""Which kinds of content a table of filters is for, by its column `dialect`, and a sample of events."""

from __future__ import annotations

from functools import partial, reduce
from operator import or_
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as sf

from headgate.core.event import Event
from headgate.core.values import fold
from headgate.records.events.columns import BatchColumns, EventColumns
from headgate.runtime.rows import DIALECT, FILTER
from headgate.spark.tables.tables import column, column_names, read_columns, read_text
from headgate.tables.choosing import SAMPLE, choose, find_dialects
from headgate.tables.event_rows import read_event
from headgate.tables.filter_rows import find_fields
from headgate.tables.lines import BROKEN, VALUE
from headgate.tables.places import Format, check_input

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, SparkSession

    from headgate.contents.kind import FilterSettings
    from headgate.contents.protocol import Contents
    from headgate.records.events.columns import Columns


def read_sample(session: SparkSession, path: str) -> Columns:
    """Read the first events of a table; lines that are none are passed over: `match` will refuse them."""
    form = check_input(path)
    if form is Format.JSONL:
        rows = read_text(session, path).limit(SAMPLE).collect()
        found = [read_event(row[VALUE].encode()) for row in rows]
        return EventColumns([event.attributes for event in found if isinstance(event, Event)])
    table = read_columns(session, path, form).drop(BROKEN).limit(SAMPLE).toArrow()
    whole = [table[name].combine_chunks() for name in table.column_names]
    return BatchColumns(pa.RecordBatch.from_arrays(whole, names=table.column_names))


def contents_of(wanted: FilterSettings, session: SparkSession, tables: Sequence[str]) -> Contents:
    """Choose the kinds that the filters of tables are for, as one; refuses settings that do not fit."""
    dialects = {each for path in tables for each in dialects_of(session, path, wanted.dialect)}
    return choose(wanted, tables, dialects, partial(read_sample, session))


def dialects_of(session: SparkSession, path: str, default: str) -> set[str]:
    """List the dialects of a table's filters; those that name none have the default."""
    form = check_input(path)
    if form is Format.JSONL:
        return _of_lines(session, path, default)
    names = {fold(name): name for name in column_names(session, path, form)}
    if FILTER not in names:
        return set()
    table = read_columns(session, path, form, typed=False)
    table = table.where(column(names[FILTER]).isNotNull())
    if DIALECT not in names:
        return set() if table.isEmpty() else {default}
    said = sf.coalesce(column(names[DIALECT]).cast("string"), sf.lit(default))
    return {row[0] for row in table.select(said).distinct().collect()}


def _of_lines(session: SparkSession, path: str, default: str) -> set[str]:
    lines = read_text(session, path)
    if lines.where(mentions(DIALECT)).isEmpty():
        return set() if lines.where(mentions(FILTER)).isEmpty() else {default}
    found = lines.select(sf.col(VALUE).cast("binary")).mapInArrow(
        partial(find_dialects, default=default), f"{DIALECT} string"
    )
    return {row[0] for row in found.distinct().collect()}


def mentions(*names: str) -> Column:
    """Tell which lines of JSON may have one of some fields: names may be written with escapes."""
    line = sf.lower(VALUE)
    hints = [line.contains(hint) for hint in ("\\u00", *(f'"{name}"' for name in names))]
    return reduce(or_, hints)


def has_any(session: SparkSession, path: str, form: Format, names: Sequence[str]) -> bool:
    """Tell whether a table has one of some columns; in JSON lines, whether a row has one of the fields."""
    if form is not Format.JSONL:
        return not {*map(fold, column_names(session, path, form))}.isdisjoint(names)
    likely = read_text(session, path).where(mentions(*names))
    work = partial(find_fields, names=names)
    return not likely.select(sf.col(VALUE).cast("binary")).mapInArrow(work, f"{VALUE} binary").isEmpty()
