"""Tables and folders of events: which rows or documents are events, and why the others are not.

The same for every job. Documents, in rows of a table or in files, are parsed by workers, once, and kept.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import functions as sf

from headgate.core.event import DATA, ID, SOURCE
from headgate.core.ids import WHOLE
from headgate.core.values import fold
from headgate.jobs.events import EventTable
from headgate.runtime.rows import NOT_UTF8, REPLACEMENT
from headgate.spark.tables.rows import SparkRows
from headgate.spark.tables.tables import (
    check_columns,
    column,
    id_type,
    read_columns,
    read_lines,
    read_text,
    source_of,
    texts_are_utf8,
)
from headgate.tables.document_rows import CONTENT, LENGTH, PATH
from headgate.tables.event_rows import (
    COLUMNS,
    MISFIT,
    NO_ID,
    REASON,
    ROW,
    list_refused,
)
from headgate.tables.lines import BROKEN, VALUE
from headgate.tables.places import Format, as_spark, is_remote, table_files

if TYPE_CHECKING:
    from collections.abc import Collection

    from pyspark.sql import DataFrame, SparkSession

    from headgate.contents.kind import Kind
    from headgate.jobs.events import JudgeTask
    from headgate.runtime.targets import Sources


_REASON = "_headgate_reason"


def judge(session: SparkSession, asked: JudgeTask) -> EventTable[SparkRows]:
    """Tell the events of a table with columns from rows that are none. No shuffle."""
    path, form, sources, texts, placed = asked
    if sources is None:
        return _judge_columns(read_columns(session, path, form), path, form, texts)
    # As text, so that CSV's 007 is not taken for 7; workers give it the type of the ids of nodes.
    table = read_columns(session, path, form, texts=(ID, SOURCE))
    check_columns(table, path, ID, SOURCE)
    judged = _judge_columns(table, path, form, texts)
    return _judge_sources(judged, path, sources) if table.columns and placed else judged


def read_json_lines(session: SparkSession, path: str) -> DataFrame:
    """Read lines as bytes."""
    return read_text(session, path).select(sf.col(VALUE).cast("binary"))


def _judge_columns(
    table: DataFrame, path: str, form: Format, texts: Collection[str] | None
) -> EventTable[SparkRows]:
    if not table.columns:
        empty = SparkRows(table.select(sf.lit("").alias(ID), sf.lit("").alias(SOURCE)).limit(0))
        return EventTable(COLUMNS, empty, _none_refused(table.sparkSession), 0, 0, "string")
    check_columns(table, path, ID)
    names = [name for name in table.columns if name != BROKEN]
    name = next(name for name in names if fold(name) == ID)
    kind, identity = id_type(table, name, path), column(name)
    broken = sf.col(BROKEN) if BROKEN in table.columns else sf.lit(None).cast("string")
    strange = broken.contains(REPLACEMENT)
    whole = None
    if form is Format.PARQUET:
        whole = texts_are_utf8(field for field in table.schema if texts is None or fold(field.name) in texts)
        strange = sf.lit(False) if whole is None else ~whole
    reason = (
        sf.when(strange, sf.lit(NOT_UTF8))
        .when(broken.isNotNull(), sf.lit(MISFIT))
        .when(identity.isNull(), sf.lit(NO_ID))
    )
    count = _footers(table, path) if form is Format.PARQUET and whole is None else None
    if count is not None:
        typed = SparkRows(table.withColumn(name, identity.cast(kind)))
        return EventTable(COLUMNS, typed, _none_refused(table.sparkSession), count, 0, kind)
    table = table.withColumn(_REASON, reason)
    good = sf.col(_REASON).isNull()
    totals = table.agg(
        sf.count_if(good).alias("good"),
        sf.count_if(~good).alias("bad"),
        sf.bool_and(sf.when(good, identity.cast("string").rlike(rf"^({WHOLE})\z"))).alias("whole"),
    ).collect()[0]
    # CSV has text only, so it is read.
    kind = "long" if form is Format.CSV and totals["whole"] is True else kind
    row = sf.coalesce(broken, sf.to_json(sf.struct(*map(column, names))))
    refused = table.where(~good).select(row.alias(ROW), sf.col(_REASON).alias(REASON))
    events = table.where(good).drop(_REASON, BROKEN).withColumn(name, identity.cast(kind))
    judged = SparkRows(events), SparkRows(refused)
    return EventTable(COLUMNS, *judged, totals["good"], totals["bad"], kind)


def _judge_sources(judged: EventTable[SparkRows], path: str, sources: Sources) -> EventTable[SparkRows]:
    """Refuse events from nowhere. They are counted first: most often there are none."""
    table = judged.rows.frame
    name = next(name for name in table.columns if fold(name) == SOURCE)
    source = column(name).cast(id_type(table, name, path)).alias(SOURCE)
    rows = table.select(sf.to_json(sf.struct(*map(column, table.columns))).alias(ROW), source)
    refused = rows.mapInArrow(partial(list_refused, sources=sources), f"{ROW} string, {REASON} string")
    count = refused.count()
    if not count:
        return judged
    return replace(
        judged,
        refused=judged.refused.then(SparkRows(refused)),
        count=judged.count - count,
        rejected=judged.rejected + count,
    )


def _none_refused(session: SparkSession) -> SparkRows:
    return SparkRows(session.createDataFrame([], f"{ROW} string, {REASON} string"))


def _footers(table: DataFrame, path: str) -> int | None:
    """Count the rows of local Parquet files by their footers, if those say that every row has an id.

    Else, and if a footer cannot be read or does not say, None: the rows must be looked at.
    """
    if is_remote(path):
        return None
    rows = 0
    for file in table.inputFiles():
        try:
            footer = pq.read_metadata(unquote(urlsplit(file).path))
        except (OSError, pa.ArrowException):
            return None
        leaves = [leaf for leaf in range(footer.num_columns) if fold(footer.schema.column(leaf).path) == ID]
        if len(leaves) != 1:
            return None
        for group in range(footer.num_row_groups):
            # The stubs of pyarrow spell the flag wrongly.
            about: Any = footer.row_group(group).column(leaves[0]).statistics
            if about is None or not about.has_null_count or about.null_count:
                return None
        rows += footer.num_rows
    return rows


def read_rows(session: SparkSession, path: str) -> DataFrame:
    """Read a table as rows of JSON, in as many parts as there are cores at least."""
    lines = read_lines(session, path, ID, DATA).select(VALUE, BROKEN)
    parts = session.sparkContext.defaultParallelism
    if lines.rdd.getNumPartitions() >= parts:
        return lines
    # Sorted, because a shuffle gives rows in any order, and events are told apart by their place: a part that
    # is lost and read again must have them where they were.
    return lines.repartition(parts).sortWithinPartitions(VALUE, BROKEN)


TASK_BYTES = 8 << 20
"""How much a task is given to read, about."""


def read_files(session: SparkSession, path: str, kind: Kind) -> DataFrame:
    """Read files as rows, those of a folder with those of the folders inside it. No shuffle."""
    files = session.read.format("binaryFile").option("recursiveFileLookup", "true").load(source_of(path))
    most = kind.most
    small = files.where(sf.col(LENGTH) <= most).select(PATH, LENGTH, CONTENT)
    # Their content is not even read.
    large = files.where(sf.col(LENGTH) > most).select(
        PATH, LENGTH, sf.lit(None).cast("binary").alias(CONTENT)
    )
    files_read = small.union(large)
    if is_remote(path):
        return _with_empty(files_read, _left_out(files))
    sizes = {file: file.stat().st_size for file in table_files(path)}
    files_read = _with_empty(files_read, [as_spark(file) for file, size in sizes.items() if not size])
    # Small files would be many tasks, each with a parser process of its own.
    tasks = sum(sizes.values()) // TASK_BYTES
    return files_read.coalesce(max(session.sparkContext.defaultParallelism, tasks))


def _left_out(files: DataFrame) -> list[str]:
    """List the files without a byte of another file system: Spark lists them, and then leaves them out."""
    listed = {unquote(file).replace("file:///", "file:/") for file in files.inputFiles()}
    return sorted(listed.difference(row[PATH] for row in files.select(PATH).collect()))


def _with_empty(files: DataFrame, paths: list[str]) -> DataFrame:
    """Add files without a byte, so that they are refused and not lost."""
    if not paths:
        return files
    rows = [(path, 0, None) for path in paths]
    empty = files.sparkSession.createDataFrame(rows, f"{PATH} string, {LENGTH} long, {CONTENT} binary")
    return files.union(empty)
