"""A stream made ready to do batches, whoever says which rows are a batch: Spark, or this process."""

from __future__ import annotations

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
from headgate.stream.batch import Batches
from headgate.stream.changes import open_changes
from headgate.stream.reading import ReadSettings
from headgate.stream.reporting import StreamReporter, StreamResult
from headgate.stream.rows import KINDS, match_schema
from headgate.stream.settings import is_broker
from headgate.tables.places import local
from headgate.tables.requests import check_type

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa

    from headgate.stream.reporting import History
    from headgate.stream.settings import StreamSettings
    from headgate.stream.sinks import FileSink, Sink

    OpenSink = Callable[[pa.Schema, StreamReporter], Sink | FileSink]


@dataclass(frozen=True)
class OpenStream:
    """A stream that is open: its state, its subscriptions, and what does a batch."""

    state: State
    subscriptions: Subscriptions
    telling: StreamReporter
    batches: Batches
    begun: float

    def end(self, stopped: str) -> StreamResult:
        """Take in the last changes, and say what was done."""
        self.subscriptions.poll()
        self.telling.now_and_then(None, self.subscriptions, last=True)
        counts = self.telling.counts
        return StreamResult(
            batches=counts["batches"],
            events=counts["events"],
            matches=counts["matches"],
            **{kind.replace("-", "_"): counts[kind] for kind in KINDS},
            changes=self.subscriptions.accepted,
            rejected_changes=self.subscriptions.refused,
            version=self.subscriptions.version,
            subscriptions=self.subscriptions.count,
            seconds=time.monotonic() - self.begun,
            latency=self.telling.latency,
            stopped=stopped,
        )


@contextmanager
def opened(
    settings: StreamSettings,
    open_sink: OpenSink,
    *,
    quiet: bool,
    history: History | None,
) -> Iterator[OpenStream]:
    """Open a stream, and hold its state until the end of the body."""
    begun = time.monotonic()
    state = State(Path(settings.state).absolute())
    with state.held(), ExitStack() as open_:
        subscriptions = Subscriptions(settings, state, open_changes(settings))
        open_.callback(subscriptions.close)
        telling = StreamReporter(settings, state.root, quiet=quiet, history=history)
        if settings.metrics_port is not None:
            open_.enter_context(telling.metrics.serve(settings.metrics_port))
        numbered = bool(state.fixed("numbered", subscriptions.numbered))
        schema = match_schema(numbered=numbered, top=settings.best, results=settings.limit)
        sink = open_sink(schema, telling)
        open_.callback(sink.close)
        last = -1 if state.last is None else int(state.last["batch"])
        batches = Batches(
            settings,
            state,
            subscriptions,
            sink,
            SeenIds(state.seen, last),
            _reading(settings, subscriptions),
            telling,
            numbered=numbered,
        )
        if batches.statistics is not None:
            open_.callback(batches.statistics.write)
        state.check_checkpoint()
        check_kind(state, settings)
        batches.take_over()
        subscriptions.take_over()
        yield OpenStream(state, subscriptions, telling, batches, begun)


def _reading(settings: StreamSettings, subscriptions: Subscriptions) -> ReadSettings:
    content = subscriptions.content
    kind = kind_of(content)
    named = check_type(settings.content_type, kind) if kind.documents else None
    folder = None if is_broker(settings.events) else str(local(settings.events).absolute())
    return ReadSettings(content, named, settings.time, folder, subscriptions.mark)


def check_kind(state: State, settings: StreamSettings) -> None:
    """Refuse another kind of output: a batch may be ready for the one that was."""
    scheme = settings.output.partition("://")[0] if is_broker(settings.output) else "files"
    was = state.fixed("output", scheme)
    if was != scheme:
        raise TableError(
            f"state {state.root} is of a stream that writes to {was}, and {scheme} is another kind of "
            "output: name one of that kind, or start with a new state"
        )
