"""The backtest job: one filter over historic events. Spark SQL asks records, an index documents."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from headgate.contents.kind import Wanted
from headgate.contents.registry import DEFAULT, content_of, room_of_content
from headgate.core.event import CONTENT_TYPE, DATA, ID
from headgate.core.schema import Schema, Type
from headgate.core.subscription import SQL, Subscription
from headgate.core.values import Kind, dotted, fold
from headgate.errors import TableError
from headgate.records.language.dialects import to_sql
from headgate.records.language.model import predicates
from headgate.records.language.parse import parse_filter
from headgate.spark.session.progress import watch
from headgate.spark.session.session import spark_errors
from headgate.spark.tables.events import SOURCES, judge, judge_documents
from headgate.spark.tables.tables import column, write_table
from headgate.tables.event_rows import keep_events, read_events
from headgate.tables.lines import VALUE
from headgate.tables.places import Format
from headgate.tables.requests import check_backtest, check_backtest_documents

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import DataFrame, SparkSession

    from headgate.contents.kind import Feeds
    from headgate.contents.protocol import Content
    from headgate.core.values import Path
    from headgate.rdf.language.model import Options
    from headgate.rdf.taxonomy.taxonomy import Taxonomy


@dataclass(frozen=True)
class BacktestResult:
    """What the filter would have done."""

    events: int
    matches: int
    rejected: int
    """Lines that Spark could not read as events."""
    sample: tuple[str, ...]
    """Ids of some events that match."""
    seconds: float
    feeds: Feeds | None = None
    """What was read of RSS feeds, if there were any."""


def backtest(
    session: SparkSession,
    filter_text: str,
    events: str,
    *,
    dialect: str = SQL,
    output: str | None = None,
    quiet: bool = False,
) -> BacktestResult:
    """Count the records that a filter would have matched; with `output`, write those events there.

    The text is parsed by us first, so a filter that passes here can be subscribed with as it is.
    """
    sql = to_sql(filter_text, dialect)
    tree = parse_filter(sql)
    form = check_backtest(events, output)
    with spark_errors(), watch(session, "backtesting", quiet=quiet) as timing:
        judged = judge(session, events, form)
        table = _parsed(judged.events) if form is Format.JSONL else judged.events
        try:
            if judged.count:
                _check_attributes(table, {found.attribute.path for found in predicates(tree)}, events)
            matching = table.where(sql) if judged.count else table.limit(0)
            # Counted before anything is written, so that a value that cannot be cast leaves nothing behind.
            matches = matching.count()
            identity = next(name for name in matching.columns if fold(name) == ID)
            sample = matching.select(column(identity).cast("string")).limit(5).collect()
            if output is not None:
                write_table(matching, output)
        finally:
            table.unpersist()
            judged.forget()
    return BacktestResult(
        events=judged.count,
        matches=matches,
        rejected=judged.rejected,
        sample=tuple(str(row[0]) for row in sample),
        seconds=timing.seconds,
    )


def _parsed(lines: DataFrame) -> DataFrame:
    """Let Spark parse the lines that are events; it infers one type for each attribute."""
    kept = lines.mapInArrow(keep_events, f"{VALUE} binary").select(sf.col(VALUE).cast("string"))
    table = lines.sparkSession.read.json(kept)
    # Without any event there is nothing to infer from.
    return table.persist() if table.columns else table.select(sf.lit("").alias(ID))


def _check_attributes(table: DataFrame, paths: set[tuple[str, ...]], events: str) -> None:
    """Refuse a filter over attributes that no event has: most often a name is misspelt."""
    schema = Schema(dict.fromkeys(_paths(table.schema, ()), Type(Kind.OBJECT)))
    for path in sorted(paths - set(schema.types)):
        near = schema.nearest(path)
        hint = f"; did you mean {near}?" if near else ""
        raise TableError(f"no event of {events} has the attribute {dotted(path)}{hint}")


def _paths(struct: StructType, prefix: Path) -> Iterator[Path]:
    """List the attributes of a table by folded path, nested ones included."""
    for field in struct:
        path = (*prefix, fold(field.name))
        yield path
        if isinstance(field.dataType, StructType):
            yield from _paths(field.dataType, path)


SAMPLE = 5
"""Ids that are shown."""


class Pattern(NamedTuple):
    """A filter, as it is sent to workers, with the settings that are about it."""

    text: str
    content: str
    wanted: Wanted

    def indexed(self) -> Content:
        """Index it; refuses a bad filter."""
        room = room_of_content(self.content, self.wanted)
        return room.build([Subscription(0, self.text, self.wanted.dialect)])


def backtest_documents(
    session: SparkSession,
    filter_text: str,
    events: str,
    *,
    dialect: str,
    content_type: str | None = None,
    taxonomy: Taxonomy | None = None,
    options: Options | None = None,
    output: str | None = None,
    quiet: bool = False,
) -> BacktestResult:
    """Count the documents that a filter would have matched; with `output`, write those there.

    They are written with the columns `id`, `source`, `datacontenttype` and `data`: as they came, and items of
    feeds as N-Triples.
    """
    content = content_of([dialect], "the filter") or DEFAULT
    wanted = Wanted(dialect, taxonomy=taxonomy, options=options)
    pattern = Pattern(filter_text, content, wanted)
    pattern.indexed()
    check_backtest_documents(events, output, content, content_type)
    with spark_errors(), watch(session, "backtesting", quiet=quiet) as timing:
        judged, feeds = judge_documents(session, events, content, content_type, keep=output is not None)
        # Kept, because it is asked three times.
        matching = judged.events.mapInArrow(partial(_keep, pattern=pattern), judged.events.schema).persist()
        try:
            matches = matching.count()
            sample = matching.select(sf.col(ID).cast("string")).limit(SAMPLE).collect()
            if output is not None:
                source = sf.coalesce(*(sf.col(name).cast("string") for name in SOURCES)).alias("source")
                write_table(matching.select(ID, source, CONTENT_TYPE, DATA), output)
        finally:
            matching.unpersist()
            judged.forget()
    return BacktestResult(
        events=judged.count,
        matches=matches,
        rejected=judged.rejected,
        sample=tuple(str(row[0]) for row in sample),
        seconds=timing.seconds,
        feeds=feeds,
    )


def _keep(batches: Iterable[pa.RecordBatch], pattern: Pattern) -> Iterator[pa.RecordBatch]:
    """Keep the events that match."""
    index = pattern.indexed()
    for batch in batches:
        found = index.match_events(read_events(batch, pattern.content), pa.array(np.arange(batch.num_rows)))
        yield batch.take(found.column(0))
