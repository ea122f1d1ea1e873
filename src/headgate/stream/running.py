"""The run of a stream, whoever says which rows are a batch: Spark, or this process.

opened ──► fed: batch after batch, until somebody asks for the end, or time or events are over
       └──► the last changes are taken in, and it is said what was done
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from headgate.stream.failing import one_line
from headgate.stream.opening import opened

if TYPE_CHECKING:
    from collections.abc import Callable

    from headgate.stream.opening import OpenSink, OpenStream
    from headgate.stream.reporting import History, StreamResult
    from headgate.stream.settings import StreamSettings

    Feed = Callable[[OpenStream, "Ending"], str]


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
