"""Events that are documents, made ready to be matched."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.spark.match.document_matching import match_documents
from headgate.spark.tables.document_events import judge_documents
from headgate.spark.tables.events import Given

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headgate.spark.match.graph_matching import Sources


def read_given(
    session: SparkSession, path: str, content: str, sources: Sources | None, content_type: str | None
) -> Given:
    """Parse a table or folder of documents; workers find out by the snapshot what they are asked."""
    found = judge_documents(session, path, content, content_type, sources)
    return Given(found.judged, found.judged.events, match_documents, feeds=found.feeds)
