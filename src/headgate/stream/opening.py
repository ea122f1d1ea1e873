"""A stream made ready to do batches, whoever says which rows are a batch: Spark, or this process."""

from __future__ import annotations

import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from headgate.errors import TableError
from headgate.runtime.log import Subscriptions
from headgate.runtime.state import State
from headgate.stream.batch import Batches
from headgate.stream.changes import open_changes
from headgate.stream.reporting import StreamReporter, StreamResult
from headgate.stream.rows import KINDS, match_schema
from headgate.stream.settings import is_broker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from headgate.stream.reporting import History
    from headgate.stream.settings import StreamSettings
    from headgate.stream.sinks import Sink

    OpenSink = Callable[[StreamReporter], Sink | None]


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
        sink = open_sink(telling)
        if sink is not None:
            open_.callback(sink.close)
        batches = Batches(settings, state, subscriptions, sink, schema, telling)
        if batches.statistics is not None:
            open_.callback(batches.statistics.write)
        state.check_checkpoint()
        check_kind(state, settings)
        batches.take_over()
        subscriptions.take_over()
        yield OpenStream(state, subscriptions, telling, batches, begun)


def check_kind(state: State, settings: StreamSettings) -> None:
    """Refuse another kind of output: a batch may be ready for the one that was."""
    scheme = settings.output.partition("://")[0] if is_broker(settings.output) else "files"
    was = state.fixed("output", scheme)
    if was != scheme:
        raise TableError(
            f"state {state.root} is of a stream that writes to {was}, and {scheme} is another kind of "
            "output: name one of that kind, or start with a new state"
        )
