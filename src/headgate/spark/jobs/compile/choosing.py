"""Which kinds of content tables of filters are for, and a sample of events."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from headgate.core.event import Event
from headgate.records.events.columns import BatchColumns, GivenColumns
from headgate.spark.tables.tables import read_columns, read_text
from headgate.tables.choosing import choose
from headgate.tables.event_rows import read_event
from headgate.tables.lines import BROKEN, SAMPLE, VALUE
from headgate.tables.places import Format, check_input

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from headgate.contents.kind import FilterSettings
    from headgate.contents.protocol import Contents
    from headgate.records.events.columns import Columns
    from headgate.spark.tables.given import GivenTable


def read_sample(session: SparkSession, path: str) -> Columns:
    """Read the first events of a table; lines that are none are passed over: `match` will refuse them."""
    form = check_input(path)
    if form is Format.JSONL:
        rows = read_text(session, path).limit(SAMPLE).collect()
        found = [read_event(row[VALUE].encode()) for row in rows]
        return GivenColumns([event for event in found if isinstance(event, Event)])
    return first_of(read_columns(session, path, form).drop(BROKEN))


def first_of(events: DataFrame) -> Columns:
    """Return the first events of a DataFrame."""
    table = events.limit(SAMPLE).toArrow()
    whole = [table[name].combine_chunks() for name in table.column_names]
    return BatchColumns(pa.RecordBatch.from_arrays(whole, names=table.column_names))


def contents_of(
    wanted: FilterSettings,
    tables: Sequence[GivenTable],
    session: SparkSession,
    sample: Callable[[str], Columns] | None = None,
) -> Contents:
    """Choose the kinds that the filters of tables are for, as one; refuses settings that do not fit."""
    dialects = {each for table in tables for each in table.dialects(wanted.dialect)}
    names = [table.name for table in tables]
    return choose(wanted, names, dialects, sample or partial(read_sample, session))
