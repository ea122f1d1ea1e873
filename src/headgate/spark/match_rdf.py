"""Events that are RDF, made ready to be matched."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.spark.events import Given
from headgate.spark.rdf_events import judge_documents
from headgate.spark.rdf_matching import match_documents

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headgate.spark.graph_matching import Sources


def read_rdf(session: SparkSession, path: str, sources: Sources | None, content_type: str | None) -> Given:
    """Parse a table or folder of documents; workers find out by the snapshot what they are asked."""
    found = judge_documents(session, path, content_type, sources)
    return Given(found.judged, found.judged.events, match_documents, feeds=found.feeds)
