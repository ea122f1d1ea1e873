"""The run of a stream, whoever says which rows are a batch: Spark, or this process.

opened ──► fed: batch after batch, until somebody asks for the end, or time or events are over
       └──► the last changes are taken in, and it is said what was done
"""

from __future__ import annotations

import tempfile
import threading
import time
import traceback
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from headgate.core.machine import disk_error, full_at, fullest, put_file, says_full
from headgate.errors import HeadgateError, MachineError, TableError
from headgate.runtime.log import Subscriptions
from headgate.runtime.state import State
from headgate.stream.batch import Batches
from headgate.stream.reporting import StreamReporter, StreamResult
from headgate.stream.rows import KINDS, match_schema
from headgate.stream.settings import is_broker
from headgate.stream.sources.registry import open_changes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from headgate.stream.batch import Sink
    from headgate.stream.reporting import History
    from headgate.stream.settings import StreamSettings

    Feed = Callable[["OpenStream", "Ending"], str]
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
        schema = match_schema(settings.question, numbered=numbered)
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


FAILURE = "failure.txt"
"""Where in the state the traceback of a defect is, for whoever mends it."""
_LONGEST = 300


@contextmanager
def one_line(settings: StreamSettings) -> Iterator[None]:
    """Turn whatever ends a stream into one line."""
    try:
        yield
    except (HeadgateError, ImportError) as error:
        # What Java cannot write does not say where that was.
        if not (isinstance(error, HeadgateError) and error.full):
            raise
        raise full_at(fullest(places_of(settings))) from error
    except OSError as error:
        raise disk_error(error) from error
    except MemoryError as error:
        raise MachineError(
            "the stream ran out of memory: give it more, or smaller batches (--max-files, --max-bytes, "
            "--max-rows), then run the same command again"
        ) from error
    except Exception as error:  # what is left is a defect, and nobody can read its traceback in a terminal
        text = _text(error)
        if says_full(text):
            raise full_at(fullest(places_of(settings))) from error
        path = Path(settings.state).absolute() / FAILURE
        path.parent.mkdir(parents=True, exist_ok=True)
        put_file(path, text.encode(errors="backslashreplace"))
        raise HeadgateError(
            f"the stream ended by a defect of Headgate, {_reason(error)}; where it came from is in {path}: "
            "run the same command again, and report it with that file if it comes again"
        ) from error


def places_of(settings: StreamSettings) -> list[Path]:
    """List the places that a stream and Spark write to on this machine."""
    # Spark's notes first: what is full and said by Java is theirs, if they are on a disk with others.
    named = [f"{settings.state}/spark", settings.state, settings.dead, settings.rejected, settings.output]
    places = [Path(each).absolute() for each in named if not is_broker(each)]
    return [*places, Path(tempfile.gettempdir())]


def _text(error: Exception) -> str:
    return "".join(traceback.format_exception(error))


def _reason(error: Exception) -> str:
    """Say what was raised: of an error in a worker, the last line of its own traceback."""
    text = str(error)
    if "Traceback (most recent call last)" in text:
        # Java adds lines of its own after it.
        traced = text.rpartition("Traceback (most recent call last)")[2].splitlines()[1:]
        kept = [line for line in traced if line and not line.startswith((" ", "\t"))]
        return f"in a worker: {kept[0]}"[:_LONGEST] if kept else "in a worker"
    return f"{type(error).__name__}: {' '.join(text.split())}"[:_LONGEST]


class Ending:
    """Whether a stream shall end though more may come."""

    def __init__(self, stop: threading.Event | None, seconds: float | None) -> None:
        self._stop = stop or threading.Event()
        self._until = None if seconds is None else time.monotonic() + seconds

    def why(self, within: float = 0.0) -> str | None:
        """Say why it shall end; waits so long for somebody to ask for it."""
        if self._stop.wait(within):
            return "asked"
        return "seconds" if self._until is not None and time.monotonic() >= self._until else None


def run(
    settings: StreamSettings,
    open_sink: OpenSink,
    feed: Feed,
    *,
    stop: threading.Event | None,
    quiet: bool,
    history: History | None,
) -> StreamResult:
    """Run a stream that was checked: `feed` does its batches until the end, and says why that came.

    Run again with the same state, it goes on where it ended, also if the process was killed. `history` is
    told of every batch.
    """
    ending = Ending(stop, settings.seconds)
    with one_line(settings), opened(settings, open_sink, quiet=quiet, history=history) as stream:
        return stream.end(feed(stream, ending))
