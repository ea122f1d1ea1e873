"""The backtest job for documents: one pattern over those of the past, evaluated by our index."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as sf

from headgate.contents.kind import Wanted
from headgate.contents.registry import DEFAULT, content_of, room_of_content
from headgate.core.event import CONTENT_TYPE, DATA, ID
from headgate.core.subscription import Subscription
from headgate.spark.backtest.backtest import Backtested
from headgate.spark.session.progress import watch
from headgate.spark.session.session import spark_errors
from headgate.spark.tables.document_events import SOURCES, judge_documents
from headgate.spark.tables.event_rows import read_events
from headgate.spark.tables.requests import check_backtest_documents
from headgate.spark.tables.tables import write_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import SparkSession

    from headgate.contents.protocol import Content
    from headgate.rdf.language.model import Options
    from headgate.rdf.taxonomy.taxonomy import Taxonomy

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
) -> Backtested:
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
    return Backtested(
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
