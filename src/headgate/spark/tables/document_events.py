"""Tables and folders of documents: which are events, and why the others are not.

rows of a table, or files -> parsed by workers, once, and kept -> events, rejected, types of the ids
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_schema

from headgate.contents.kind import Feeds
from headgate.contents.registry import kind_of
from headgate.core.event import CONTENT_TYPE, DATA, ID
from headgate.spark.tables.document_rows import (
    FEEDS,
    LENIENT,
    NOTES,
    READ,
    TALLY,
    WHOLE,
    Reading,
    read_documents,
    read_files,
    read_rows,
)
from headgate.spark.tables.event_rows import NUMBERS, PARSED, REASON, ROW, TEXTS
from headgate.spark.tables.events import Judged
from headgate.spark.tables.places import Format, as_spark, is_remote, local
from headgate.spark.tables.requests import check_events, check_type
from headgate.spark.tables.tables import BROKEN, VALUE, read_lines

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from headgate.runtime.targets import Sources

SOURCES = ("source_number", "source_text")
"""The columns of an event's source."""


class Documents(NamedTuple):
    """Events with `id`, the columns of `SOURCES`, `PARSED`, and the document if it is kept."""

    judged: Judged
    feeds: Feeds | None


def judge_documents(
    session: SparkSession,
    path: str,
    content: str,
    content_type: str | None = None,
    sources: Sources | None = None,
    *,
    keep: bool = False,
) -> Documents:
    """Read documents for a content room, and tell events from what is none.

    Shuffles a table that lies in too few parts.

    With `sources`, those that do not come from a node of the graph are refused, too. `keep` keeps the
    documents beside what was read of them.
    """
    kind = kind_of(content)
    form = check_events(path, kind, content_type)
    reading = Reading(content, check_type(content_type, kind), sources, keep, _folder(path))
    given = read_files(session, path, kind) if form is None else _rows(session, path)
    work = partial(read_documents if form is None else read_rows, reading=reading)
    # Kept, because parsing is most of the work.
    read = given.mapInArrow(work, from_arrow_schema(READ)).persist()
    row = read.agg(*(sf.sum(name).alias(name) for name in TALLY), sf.count(REASON).alias(REASON)).collect()[0]
    tally = {name: row[name] or 0 for name in (*TALLY, REASON)}
    # CSV has text only, so it is read.
    whole = form is Format.CSV and tally[WHOLE] == tally[TEXTS]
    id_type = "long" if whole or not tally[TEXTS] else "string"
    identity = sf.coalesce(sf.col("id_text").cast(id_type), sf.col("id_number").cast(id_type)).alias(ID)
    kept = (CONTENT_TYPE, sf.col(DATA).cast("string").alias(DATA)) if keep else ()
    events = read.where(sf.col(PARSED).isNotNull()).select(identity, *SOURCES, PARSED, *kept)
    refused = read.where(sf.col(REASON).isNotNull()).select(ROW, REASON)
    judged = Judged(events, refused, tally[NUMBERS] + tally[TEXTS], tally[REASON], id_type, read)
    feeds = Feeds(tally[FEEDS], tally[LENIENT], tally[NOTES])
    return Documents(judged, feeds if feeds.feeds else None)


def _rows(session: SparkSession, path: str) -> DataFrame:
    """Read a table as rows of JSON, in as many parts as there are cores at least."""
    lines = read_lines(session, path, ID, DATA).select(VALUE, BROKEN)
    parts = session.sparkContext.defaultParallelism
    if lines.rdd.getNumPartitions() >= parts:
        return lines
    # Sorted, because a shuffle gives rows in any order, and events are told apart by their place: a part that
    # is lost and read again must have them where they were.
    return lines.repartition(parts).sortWithinPartitions(VALUE, BROKEN)


def _folder(path: str) -> str:
    """Write a folder as Spark writes it before the names of its files."""
    return f"{path.rstrip('/')}/" if is_remote(path) else f"{as_spark(local(path))}/"
