"""The backtest job: one filter over historic events. Spark SQL asks records, an index documents."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql import functions as sf

from headgate.backtest.one_filter import (
    SAMPLE,
    BacktestResult,
    Pattern,
    check_attributes,
    check_paths,
    keep_columns,
    keep_documents,
    keep_lines,
    list_paths,
    named_in,
    read_paths,
)
from headgate.contents.kind import FilterSettings
from headgate.contents.registry import DEFAULT, content_of
from headgate.core.event import CONTENT_TYPE, DATA, ID, TIME, Event
from headgate.core.subscription import SQL
from headgate.core.values import fold
from headgate.records.expressions.parse import spark_text
from headgate.records.language.dialects import to_sql
from headgate.records.language.model import predicates
from headgate.records.language.parse import parse_filter
from headgate.records.names import NameSettings
from headgate.spark.session.progress import watch
from headgate.spark.session.session import spark_errors
from headgate.spark.session.settings import in_own_session
from headgate.spark.tables.events import SOURCES, judge, judge_documents
from headgate.spark.tables.tables import attribute_paths, column, write_table
from headgate.tables.event_rows import PACKED, keep_events
from headgate.tables.lines import VALUE
from headgate.tables.places import Format
from headgate.tables.requests import check_backtest, check_backtest_documents

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

    from headgate.rdf.language.model import Options
    from headgate.rdf.taxonomy.taxonomy import Taxonomy


@in_own_session
def backtest(
    session: SparkSession,
    filter_text: str,
    events: str,
    *,
    dialect: str = SQL,
    nulls: str | None = None,
    names: str | None = None,
    dots: str | None = None,
    output: str | None = None,
    quiet: bool = False,
) -> BacktestResult:
    """Count the records that a filter would have matched; with `output`, write those events there.

    The text is parsed by us first, so a filter that passes here can be subscribed with as it is. Where names
    mean something else than in Spark (`nulls`, `names`, `dots`), an index is asked instead.
    """
    wanted = FilterSettings(dialect, nulls=nulls, names=names, dots=dots)
    if not NameSettings.of(vars(wanted)).usual:
        return _by_index(session, Pattern(filter_text, DEFAULT, wanted), events, output, quiet=quiet)
    sql = to_sql(filter_text, dialect)
    tree = parse_filter(sql)
    form = check_backtest(events, output)
    with spark_errors(), watch(session, "backtesting", quiet=quiet) as timing:
        judged = judge(session, events, form, texts=None)
        table = _parsed(judged.events) if form is Format.JSONL else judged.events
        try:
            if judged.count:
                check_attributes(attribute_paths(table.schema), named_in(predicates(tree)), events)
            timed = any(fold(name) == TIME for name in table.columns)
            matching = table.where(spark_text(sql, timed=timed)) if judged.count else table.limit(0)
            # Counted before anything is written, so that a value that cannot be cast leaves nothing behind.
            matches = matching.count()
            identity = next(name for name in matching.columns if fold(name) == ID)
            sample = matching.select(column(identity).cast("string")).limit(SAMPLE).collect()
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


def _by_index(
    session: SparkSession, pattern: Pattern, events: str, output: str | None, *, quiet: bool
) -> BacktestResult:
    """Count the records that match, where Spark's names are not those of the filter. No shuffle."""
    index = pattern.indexed()
    form = check_backtest(events, output)
    with spark_errors(), watch(session, "backtesting", quiet=quiet) as timing:
        judged = judge(session, events, form, texts=None, mark=pattern.mark)
        if form is Format.JSONL:
            listed = judged.events.mapInArrow(partial(list_paths, mark=pattern.mark), f"{VALUE} binary")
            known = read_paths(bytes(row[0]) for row in listed.distinct().collect())
            matching = judged.events.mapInArrow(partial(keep_lines, pattern=pattern), f"{VALUE} binary")
        else:
            table = judged.events
            known = {*attribute_paths(table.schema, pattern.mark)}
            packed = table.select(sf.struct(*map(column, table.columns)).alias(PACKED))
            matching = packed.mapInArrow(partial(keep_columns, pattern=pattern), packed.schema)
            matching = matching.select(f"{PACKED}.*")
        if judged.count:
            check_paths(known, pattern, index, events)
        # Kept, because it is asked three times.
        matching = matching.persist()
        try:
            matches = matching.count()
            if form is Format.JSONL:
                lines = [bytes(row[0]) for row in matching.limit(SAMPLE).collect()]
                sample = [str(Event.from_json(line).id) for line in lines]
            else:
                identity = next(name for name in matching.columns if fold(name) == ID)
                rows = matching.select(column(identity).cast("string")).limit(SAMPLE).collect()
                sample = [str(row[0]) for row in rows]
            if output is not None:
                write_table(_parsed(matching) if form is Format.JSONL else matching, output)
        finally:
            matching.unpersist()
            judged.forget()
    return BacktestResult(
        events=judged.count,
        matches=matches,
        rejected=judged.rejected,
        sample=tuple(sample),
        seconds=timing.seconds,
    )


@in_own_session
def backtest_documents(
    session: SparkSession,
    filter_text: str,
    events: str,
    *,
    dialect: str,
    content_type: str | None = None,
    taxonomy: Taxonomy | None = None,
    options: Options | None = None,
    namespaces: Mapping[str, str] | None = None,
    unindexed: str | None = None,
    output: str | None = None,
    quiet: bool = False,
) -> BacktestResult:
    """Count the documents that a filter would have matched; with `output`, write those there.

    They are written with the columns `id`, `source`, `datacontenttype` and `data`: as they came, and items of
    feeds as N-Triples.
    """
    content = content_of([dialect], "the filter") or DEFAULT
    wanted = FilterSettings(
        dialect, taxonomy=taxonomy, options=options, namespaces=namespaces, unindexed=unindexed
    )
    pattern = Pattern(filter_text, content, wanted)
    pattern.indexed()
    check_backtest_documents(events, output, content, content_type)
    with spark_errors(), watch(session, "backtesting", quiet=quiet) as timing:
        judged, feeds = judge_documents(session, events, content, content_type, keep=output is not None)
        # Kept, because it is asked three times.
        matching = judged.events.mapInArrow(
            partial(keep_documents, pattern=pattern), judged.events.schema
        ).persist()
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
