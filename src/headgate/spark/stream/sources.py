"""Where events come from: whatever it is, rows of four columns.

    value         binary      one JSON line or one document; null for a file, which workers open themselves
    content_type  string      what `value` is: a media type, or null for a JSON line
    origin        string      the file or the subject, for messages; the id of a document that has no other
    arrived       timestamp   when the source got it

A source is a function `read(session, settings) -> DataFrame` that gives a streaming DataFrame of these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.spark.stream.settings import KAFKA, NATS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from headgate.runtime.changes import Changes
    from headgate.spark.stream.settings import StreamSettings

VALUE, CONTENT_TYPE, ORIGIN, ARRIVED = COLUMNS = ("value", "content_type", "origin", "arrived")
SCHEMA = f"{VALUE} binary, {CONTENT_TYPE} string, {ORIGIN} string, {ARRIVED} timestamp"


def read(session: SparkSession, settings: StreamSettings) -> DataFrame:
    """Open the source that the settings name."""
    if settings.events.startswith(NATS):
        from headgate.spark.nats.source import read_nats

        return read_nats(session, settings)
    if settings.events.startswith(KAFKA):
        from headgate.spark.stream.kafka import read_kafka

        return read_kafka(session, settings)
    from headgate.spark.stream.files import read_files

    return read_files(session, settings)


def open_changes(settings: StreamSettings) -> Changes | None:
    """Open the source of changes that the settings name, if they name one."""
    if settings.changes is None:
        return None
    if settings.changes.startswith(NATS):
        from headgate.spark.nats.source import NatsChanges

        return NatsChanges(settings)
    from headgate.runtime.changes import FileChanges

    return FileChanges(settings.changes)
