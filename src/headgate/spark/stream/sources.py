"""Where events come from: whatever it is, rows of four columns.

    value         binary      one JSON line or one document; null for a file, which workers open themselves
    content_type  string      what `value` is: a media type, or null for a JSON line
    origin        string      the file or the subject, for messages; the id of a document that has no other
    arrived       timestamp   when the source got it

A source is a function `read(session, settings) -> DataFrame` that gives a streaming DataFrame of these. That
of folders is here: the driver lists files, workers read them. A file must be moved into the folder whole:
written elsewhere, or under a name that begins with `.` or `_`, and then renamed. One that is written in place
may be read half.
"""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING

from headgate.errors import TableError
from headgate.spark.stream.settings import ARCHIVE, DELETE, KAFKA, KEEP, NATS, SERVICE
from headgate.tables.places import for_reading, leads_out

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import DataFrame, SparkSession

    from headgate.runtime.changes import Changes, ChangeSettings
    from headgate.spark.stream.settings import StreamSettings


_SCHEMA = "path string, modificationTime timestamp, length long, content binary"


def read_files(session: SparkSession, settings: StreamSettings) -> DataFrame:
    """List files as they come. Their content is not read here: `value` is null, and workers open `origin`."""
    from pyspark.sql import functions as sf

    options: dict[str, str] = {
        "recursiveFileLookup": "true",
        # By default files that look old beside others are passed over without a word.
        "maxFileAge": "36500d",
        "ignoreMissingFiles": "true",
    }
    if settings.max_files is not None:
        options["maxFilesPerTrigger"] = str(settings.max_files)
    elif settings.max_bytes is not None:
        options["maxBytesPerTrigger"] = str(settings.max_bytes)
    if settings.finished == DELETE:
        options["cleanSource"] = "delete"
    elif settings.finished.startswith(ARCHIVE):
        archive = Path(settings.finished.removeprefix(ARCHIVE)).absolute()
        options |= {"cleanSource": "archive", "sourceArchiveDir": str(archive)}
    reader = session.readStream.format("binaryFile").schema(_SCHEMA).options(**options)
    return reader.load(for_reading(settings.events)).select(
        sf.lit(None).cast("binary").alias(VALUE),
        sf.lit(None).cast("string").alias(CONTENT_TYPE),
        sf.regexp_replace("path", "^file:(//)?", "").alias(ORIGIN),
        sf.col("modificationTime").alias(ARRIVED),
    )


def with_empty(rows: DataFrame, paths: Iterable[str]) -> DataFrame:
    """Add the files of a batch without a byte: Spark leaves them out, and workers say what each is."""
    empty = []
    for path in paths:
        try:
            about = Path(path).stat()
        except FileNotFoundError:
            # As Spark does with what is gone.
            continue
        if not about.st_size:
            empty.append((None, None, path, dt.datetime.fromtimestamp(about.st_mtime, dt.UTC)))
    return rows.union(rows.sparkSession.createDataFrame(empty, SCHEMA)) if empty else rows


def check_removed(paths: Iterable[str], settings: StreamSettings) -> None:
    """Refuse files behind a link to a folder elsewhere, if Spark would remove them when the batch is done."""
    if settings.finished == KEEP:
        return
    for folder in sorted({Path(path).parent for path in paths}):
        if leads_out(folder, settings.events):
            raise TableError(
                f"{folder} lies behind a link that leads out of {settings.events}, and finished is "
                f"{settings.finished!r}: remove the link, so that nothing is removed there"
            )


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
    if settings.events.startswith(SERVICE):
        from headgate.spark.service.source import read_events

        return read_events(session, settings)

    return read_files(session, settings)


def open_changes(settings: ChangeSettings) -> Changes | None:
    """Open the source of changes that the settings name, if they name one."""
    if settings.changes is None:
        return None
    if settings.changes.startswith(NATS):
        from headgate.spark.nats.source import NatsChanges

        return NatsChanges(settings)
    from headgate.runtime.changes import FileChanges
    from headgate.tables.packed import ending, read_file

    return FileChanges(settings.changes, ending, read_file)
