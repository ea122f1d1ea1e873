"""The stream job on Spark: events as they come to matches, each once.

source ──► Spark: which rows are batch N ──► stream/batch.py: pin, match, stage, commit ──► sink
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark
from pyspark.errors import PySparkException
from pyspark.sql import functions as sf

from headgate.spark.session.listeners import metering
from headgate.spark.session.session import spark_errors
from headgate.spark.session.settings import UNLISTED, own_session
from headgate.spark.stream.batch import match_rows
from headgate.spark.stream.kafka import read_kafka
from headgate.spark.stream.logs import read_log
from headgate.spark.stream.sinks import open_sink
from headgate.stream.request import check_request
from headgate.stream.running import run
from headgate.stream.settings import ARCHIVE, DELETE
from headgate.stream.sources.logs import ARRIVED, CONTENT_TYPE, ORIGIN, VALUE
from headgate.stream.sources.registry import source_of
from headgate.tables.places import for_reading

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from headgate.stream.batch import Batches, Sink
    from headgate.stream.reporting import History, StreamReporter, StreamResult
    from headgate.stream.running import Ending, OpenStream
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


_PACKAGE = "org.apache.spark.sql.execution.streaming" + (
    "" if pyspark.__version__.startswith("4.0") else ".checkpointing"
)
CONF = {
    # The default one starts ten processes for each file that it writes, this one two; we are the only writer.
    UNLISTED: f"{_PACKAGE}.FileSystemBasedCheckpointFileManager",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.streaming.metricsEnabled": "false",
}
_LOOK = 0.2
"""Seconds between looks at whether the stream shall end."""


def run_stream(
    session: SparkSession,
    settings: StreamSettings,
    *,
    stop: threading.Event | None = None,
    quiet: bool = False,
    history: History | None = None,
) -> StreamResult:
    """Run a stream until it is at its end, its time is over, or `stop` is set.

    It ends after the batch that is under way. Run again with the same state, it goes on where it ended, also
    if the process was killed. `history` is told of every batch.
    """
    check_request(settings)
    own = own_session(session, CONF)
    with ExitStack() as metered:

        def sink(telling: StreamReporter) -> Sink | None:
            if settings.metrics is not None or settings.metrics_port is not None:
                metered.enter_context(metering(own, telling.metrics))
            with spark_errors():
                return open_sink(own, settings)

        def feed(stream: OpenStream, ending: Ending) -> str:
            with spark_errors():
                query = _started(own, settings, stream)
                with _ended(query, stream.batches):
                    stream.state.fixed("query", str(query.id))
                    return _wait(query, ending, stream)

        return run(settings, sink, feed, stop=stop, quiet=quiet, history=history)


def _started(session: SparkSession, settings: StreamSettings, stream: OpenStream) -> StreamingQuery:
    rows = read(session, settings)
    checkpoint = f"file://{stream.state.spark}"

    def batch(given: DataFrame, number: int) -> None:
        stream.batches(partial(match_rows, rows=given), number)

    writer = rows.writeStream.foreachBatch(batch).option("checkpointLocation", checkpoint)
    if settings.once:
        writer = writer.trigger(availableNow=True)
    else:
        writer = writer.trigger(processingTime=f"{max(1, round(settings.every * 1000))} milliseconds")
    return writer.start()


@contextmanager
def _ended(query: StreamingQuery, batches: Batches) -> Iterator[None]:
    """End the query at the end of the body, after the batch that is under way."""
    try:
        yield
    finally:
        with batches.under_way:
            batches.ending = True
            query.stop()


def _raise_failure(query: StreamingQuery, batches: Batches) -> None:
    """Raise what ended a query, if something did: of a batch, the error itself."""
    try:
        query.awaitTermination()
    except PySparkException:
        if batches.failure is None:
            raise
        raise batches.failure from None


def _wait(query: StreamingQuery, ending: Ending, stream: OpenStream) -> str:
    """Wait for the end, and say why it came; take in changes while there are no events."""
    while True:
        why = ending.why(_LOOK)
        if why is not None:
            return why
        if not query.isActive:
            _raise_failure(query, stream.batches)
            return "once"
        if stream.batches.under_way.acquire(blocking=False):
            try:
                stream.subscriptions.poll()
                stream.telling.now_and_then(None, stream.subscriptions)
            finally:
                stream.batches.under_way.release()
