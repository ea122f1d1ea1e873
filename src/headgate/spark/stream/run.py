"""The stream job on Spark: events as they come to matches, each once.

source ──► Spark: which rows are batch N ──► stream/batch.py: pin, match, stage, commit ──► sink
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING

import pyspark
from pyspark.errors import PySparkException

from headgate.spark.session.listeners import metering
from headgate.spark.session.session import spark_errors
from headgate.spark.session.settings import UNLISTED, own_session
from headgate.spark.stream.batch import match_rows
from headgate.spark.stream.sinks import open_sink
from headgate.spark.stream.sources import read
from headgate.stream.request import check_request
from headgate.stream.running import run

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from headgate.stream.batch import Batches
    from headgate.stream.opening import OpenStream
    from headgate.stream.reporting import History, StreamReporter, StreamResult
    from headgate.stream.running import Ending
    from headgate.stream.settings import StreamSettings
    from headgate.stream.sinks import Sink

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
    place = f"file://{stream.state.spark}"

    def batch(given: DataFrame, number: int) -> None:
        stream.batches(partial(match_rows, rows=given), number)

    writer = rows.writeStream.foreachBatch(batch).option("checkpointLocation", place)
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
