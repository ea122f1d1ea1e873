"""Where events of a stream on Spark come from: streaming DataFrames of the columns of `sources/columns.py`.

Sources are in `stream/sources`. That of folders is here: the driver lists files, workers read them. A file
must be moved into the folder whole: written elsewhere, or under a name that begins with `.` or `_`, and then
renamed. One that is written in place may be read half.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as sf

from headgate.spark.stream.kafka import read_kafka
from headgate.spark.stream.logs import read_log
from headgate.stream.settings import ARCHIVE, DELETE
from headgate.stream.sources.columns import ARRIVED, CONTENT_TYPE, ORIGIN, VALUE
from headgate.stream.sources.registry import source_of
from headgate.tables.places import for_reading

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from headgate.stream.settings import StreamSettings


_SCHEMA = "path string, modificationTime timestamp, length long, content binary"


def read_files(session: SparkSession, settings: StreamSettings) -> DataFrame:
    """List files as they come. Their content is not read here: `value` is null, and workers open `origin`."""
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


def read(session: SparkSession, settings: StreamSettings) -> DataFrame:
    """Open the source that the settings name."""
    source = source_of(settings.events)
    if source is None:
        return read_files(session, settings)
    log = source.log(settings)
    return read_kafka(session, settings) if log is None else read_log(session, log)
