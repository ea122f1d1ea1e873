"""What the cost of changes is measured with: the first events of a table, and the days it spans."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as sf
from pyspark.sql.types import DateType, StringType, TimestampNTZType, TimestampType

from headgate.backtest.cost import SAMPLE, events_of, span
from headgate.contents.registry import kind_of
from headgate.core.event import TIME, Event
from headgate.core.values import fold
from headgate.spark.tables.tables import column, read_columns, read_text
from headgate.tables.event_rows import read_event, read_events
from headgate.tables.lines import BROKEN, VALUE
from headgate.tables.places import Format, check_input, is_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def sampled(session: SparkSession, path: str, content: str, rows: DataFrame) -> list[Event]:
    """Read the first events of a table, as Python values; documents from `rows`, where they are read already.

    Records are read anew: workers get no more of their columns than the changed subscriptions look at.
    """
    if kind_of(content).documents:
        read = rows.limit(SAMPLE).toArrow().combine_chunks().to_batches()
        return [event for batch in read for event in read_events(batch, content)]
    form = check_input(path)
    if form is Format.JSONL:
        lines = read_text(session, path).limit(SAMPLE).collect()
        found = [read_event(line[VALUE].encode()) for line in lines]
        return [event for event in found if isinstance(event, Event)]
    table = read_columns(session, path, form).drop(BROKEN).limit(SAMPLE).toArrow()
    return events_of(table.to_pylist())


def days_of(session: SparkSession, path: str) -> float | None:
    """Measure the days from the first event of a table to the last; None if no two times differ."""
    if not is_table(path):
        # A folder of documents: files have no times of events.
        return None
    form = check_input(path)
    if form is Format.JSONL:
        table = read_text(session, path)
        when = sf.try_to_timestamp(sf.get_json_object(VALUE, f"$.{TIME}"))
    else:
        table = read_columns(session, path, form)
        name = next((name for name in table.columns if fold(name) == TIME), None)
        if name is None:
            return None
        kind = table.schema[name].dataType
        if isinstance(kind, StringType):
            when = sf.try_to_timestamp(column(name))
        elif isinstance(kind, TimestampType | TimestampNTZType | DateType):
            when = column(name).cast("timestamp")
        else:
            return None
    first, last = table.agg(sf.min(when).cast("double"), sf.max(when).cast("double")).collect()[0]
    return span(first, last)
