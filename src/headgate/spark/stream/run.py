"""The stream job: events as they come to matches, each once.

source ──► Spark: which rows are batch N ──► batch.py: pin, match, stage, commit ──► sink
                                                ▲
changes of subscriptions ──► log.py ────────────┘
"""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from headgate.contents.registry import kind_of
from headgate.errors import TableError
from headgate.runtime.log import Subscriptions
from headgate.runtime.seen import SeenIds
from headgate.runtime.state import State
from headgate.spark.session.listeners import metering
from headgate.spark.session.session import SEMANTICS, spark_errors
from headgate.spark.stream import sources
from headgate.spark.stream.batch import Batches
from headgate.spark.stream.reading import ReadSettings
from headgate.spark.stream.reporting import StreamReporter
from headgate.spark.stream.request import check_request
from headgate.spark.stream.rows import KINDS, match_schema
from headgate.spark.stream.settings import is_broker
from headgate.spark.stream.sinks import open_sink
from headgate.tables.places import local
from headgate.tables.requests import check_type

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from headgate.spark.stream.reporting import History
    from headgate.spark.stream.settings import StreamSettings

CONF = {
    # The default one starts a process for each file that it writes; this state has one writer.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.streaming.metricsEnabled": "false",
}
_LOOK = 0.2
"""Seconds between looks at whether the stream shall end."""


@dataclass(frozen=True)
class StreamResult:
    """What a stream did in this run."""

    batches: int
    events: int
    matches: int
    malformed: int
    late: int
    duplicate: int
    unknown_source: int
    left_out: int
    changes: int
    """Changes of subscriptions that were accepted."""
    rejected_changes: int
    version: int
    """The version of the subscriptions at the end."""
    subscriptions: int
    seconds: float
    latency: float | None
    """The middle of the last times from arrival to commit, in seconds."""
    stopped: str
    """Why it ended: once, seconds, or asked."""


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
    begun = time.monotonic()
    state = State(Path(settings.state).absolute())
    with spark_errors(), state.held(), ExitStack() as open_:
        subscriptions = Subscriptions(settings, state, sources.open_changes(settings))
        open_.callback(subscriptions.close)
        telling = StreamReporter(settings, state.root, quiet=quiet, history=history)
        if settings.metrics_port is not None:
            open_.enter_context(telling.metrics.serve(settings.metrics_port))
        numbered = bool(state.fixed("numbered", subscriptions.numbered))
        own = _own_session(session)
        if settings.metrics is not None or settings.metrics_port is not None:
            open_.enter_context(metering(own, telling.metrics))
        sink = open_sink(own, settings, match_schema(numbered=numbered, top=settings.best))
        open_.callback(sink.close)
        last = -1 if state.last is None else int(state.last["batch"])
        batches = Batches(
            settings,
            state,
            subscriptions,
            sink,
            SeenIds(state.seen, last),
            _reading(settings, subscriptions.content),
            telling,
            numbered=numbered,
        )
        state.check_checkpoint()
        _check_kind(state, settings)
        batches.take_over()
        subscriptions.take_over()
        query = _started(own, settings, state, batches)
        with _ended(query, batches):
            state.fixed("query", str(query.id))
            stopped = _wait(query, settings, stop, batches, subscriptions, telling)
        subscriptions.poll()
        telling.now_and_then(None, subscriptions, last=True)
        counts = telling.counts
        return StreamResult(
            batches=counts["batches"],
            events=counts["events"],
            matches=counts["matches"],
            **{kind.replace("-", "_"): counts[kind] for kind in KINDS},
            changes=subscriptions.accepted,
            rejected_changes=subscriptions.refused,
            version=subscriptions.version,
            subscriptions=subscriptions.count,
            seconds=time.monotonic() - begun,
            latency=telling.latency,
            stopped=stopped,
        )


def _own_session(session: SparkSession) -> SparkSession:
    """Return a session with settings of its own, on the same Spark."""
    own = session.newSession()
    for name, value in {**SEMANTICS, **CONF}.items():
        if own.conf.isModifiable(name):
            own.conf.set(name, value)
    return own


def _reading(settings: StreamSettings, content: str) -> ReadSettings:
    kind = kind_of(content)
    named = check_type(settings.content_type, kind) if kind.documents else None
    folder = None if is_broker(settings.events) else str(local(settings.events).absolute())
    return ReadSettings(content, named, settings.time, folder)


def _started(
    session: SparkSession, settings: StreamSettings, state: State, batches: Batches
) -> StreamingQuery:
    rows = sources.read(session, settings)
    writer = rows.writeStream.foreachBatch(batches).option("checkpointLocation", f"file://{state.spark}")
    if settings.once:
        writer = writer.trigger(availableNow=True)
    else:
        writer = writer.trigger(processingTime=f"{max(1, round(settings.every * 1000))} milliseconds")
    return writer.start()


def _check_kind(state: State, settings: StreamSettings) -> None:
    """Refuse another kind of output: a batch may be ready for the one that was."""
    scheme = settings.output.partition("://")[0] if is_broker(settings.output) else "files"
    was = state.fixed("output", scheme)
    if was != scheme:
        raise TableError(
            f"state {state.root} is of a stream that writes to {was}, and {scheme} is another kind of "
            "output: name one of that kind, or start with a new state"
        )


@contextmanager
def _ended(query: StreamingQuery, batches: Batches) -> Iterator[None]:
    """End the query at the end of the body, after the batch that is under way."""
    try:
        yield
    finally:
        with batches.under_way:
            batches.ending = True
            query.stop()


def _wait(
    query: StreamingQuery,
    settings: StreamSettings,
    stop: threading.Event | None,
    batches: Batches,
    subscriptions: Subscriptions,
    telling: StreamReporter,
) -> str:
    """Wait for the end, and say why it came; take in changes while there are no events."""
    asked = stop or threading.Event()
    until = None if settings.seconds is None else time.monotonic() + settings.seconds
    while True:
        if asked.wait(_LOOK):
            return "asked"
        if until is not None and time.monotonic() >= until:
            return "seconds"
        if not query.isActive:
            # Raises what ended it, if something did.
            query.awaitTermination()
            return "once"
        if batches.under_way.acquire(blocking=False):
            try:
                subscriptions.poll()
                telling.now_and_then(None, subscriptions)
            finally:
                batches.under_way.release()
