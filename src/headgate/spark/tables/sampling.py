"""A sample of events, from which compiling learns which values are rare."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from headgate.core.event import Event
from headgate.records.events.columns import BatchColumns, EventColumns
from headgate.spark.match.matching import read_event
from headgate.spark.tables.places import Format, check_input, for_reading
from headgate.spark.tables.tables import BROKEN, VALUE, read_columns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headgate.records.events.columns import Columns

SAMPLE = 4096
"""Events that are looked at: the first of the table."""


def read_sample(session: SparkSession, path: str) -> Columns:
    """Read the first events of a table; lines that are none are passed over: `match` will refuse them."""
    form = check_input(path)
    if form is Format.JSONL:
        rows = session.read.text(for_reading(path)).limit(SAMPLE).collect()
        found = [read_event(row[VALUE].encode()) for row in rows]
        return EventColumns([event.attributes for event in found if isinstance(event, Event)])
    table = read_columns(session, path, form).drop(BROKEN).limit(SAMPLE).toArrow()
    whole = [table[name].combine_chunks() for name in table.column_names]
    return BatchColumns(pa.RecordBatch.from_arrays(whole, names=table.column_names))
