"""Events made ready to be matched: of records the columns that filters name, of documents what was read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as sf

from headgate.contents.registry import kind_of
from headgate.core.event import ID, SOURCE
from headgate.core.values import dotted, fold, top_names
from headgate.spark.tables.comparing import check_types
from headgate.spark.tables.events import EventTable, judge, judge_documents
from headgate.spark.tables.tables import attribute_paths, column, column_names
from headgate.tables.event_rows import COLUMNS, DOCUMENTS, LINES, PACKED
from headgate.tables.places import Format, check_input
from headgate.tables.requests import are_documents, check_events
from headgate.tables.results import meant_by

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from headgate.runtime.targets import Sources, Target


def read_table(
    session: SparkSession,
    path: str,
    target: Target,
    sources: Sources | None,
    content_type: str | None,
    *,
    texts: bool = True,
) -> EventTable:
    """Judge a table of events, or a folder of documents, as the content of the filters wants it.

    Without `texts`, workers are left to find that a text of Parquet is not UTF-8, and then refuse all.
    """
    kind = kind_of(target.content)
    form = check_events(path, kind, content_type) if kind.documents else check_input(path)
    if are_documents(kind, form, lambda: [] if form is None else column_names(session, path, form)):
        found = judge_documents(session, path, target.content, content_type, sources)
        return EventTable(found.judged, found.judged.events, DOCUMENTS, feeds=found.feeds)
    assert form is not None, "only documents come in files of their own"
    needed = {ID, *([SOURCE] if target.graph else []), *_names(target)}
    judged = judge(session, path, form, sources, texts=needed if texts else (), mark=target.mark)
    if form is Format.JSONL:
        return EventTable(judged, judged.events, LINES)
    table = _needed(judged.events, target)
    unknown = check_types(table, path, target)
    if not judged.count:
        unknown = ()
    meant = meant_by(unknown, map(dotted, attribute_paths(judged.events.schema, target.mark)))
    return EventTable(judged, _packed(table), COLUMNS, unknown, meant)


def _needed(table: DataFrame, target: Target) -> DataFrame:
    """Keep the id, the source if there is a graph, and the columns that filters name."""
    wanted = _names(target) | {ID, *([SOURCE] if target.graph else [])}
    return table.select(*[column(name) for name in table.columns if fold(name) in wanted])


def _names(target: Target) -> set[str]:
    """Name the columns that filters look at, folded."""
    return {name for path in target.attributes for name in top_names(path)}


def _packed(table: DataFrame) -> DataFrame:
    """Make one column of all: `mapInArrow` stumbles over dots and backticks in the names of columns."""
    return table.select(sf.struct(*map(column, table.columns)).alias(PACKED))
