"""Changes of subscriptions from a NATS stream: a message is a change, a position is a sequence number."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.errors import TableError
from headgate.spark.nats.addresses import changes_of
from headgate.spark.nats.reading import Range
from headgate.spark.nats.settings import FAIL, FIRST, NEW
from headgate.spark.nats.stream import Stream
from headgate.spark.streaming.changes import Change

if TYPE_CHECKING:
    from headgate.spark.nats.stream import State
    from headgate.spark.streaming.settings import StreamSettings


class NatsChanges:
    """A source of changes after the protocol of `headgate.spark.streaming.changes`."""

    def __init__(self, settings: StreamSettings) -> None:
        self._settings = changes_of(settings)
        self._stream = Stream(self._settings)

    def since(self, position: str | None) -> tuple[list[Change], str | None]:
        """List the changes after a position, at most `max_rows`, and the position after them."""
        state = self._stream.state()
        at = self._begin(state) if position is None else int(position)
        self._check(state, at)
        stop = min(state.end, max(at, state.first) + self._settings.max_rows)
        if stop <= at:
            return [], str(at)
        wanted = Range(max(at, state.first), stop, self._settings.subject)
        found = [
            Change(one.data, f"{one.subject} {one.sequence}")
            for part in self._stream.messages(wanted)
            for one in part
        ]
        return found, str(stop)

    def close(self) -> None:
        """Hang up."""
        self._stream.close()

    def _begin(self, state: State) -> int:
        start = self._settings.start
        return {FIRST: state.first, NEW: state.end}.get(start) or int(start)

    def _check(self, state: State, at: int) -> None:
        place = self._settings.place
        if at > state.end and self._settings.start != str(at):
            raise TableError(
                f"{place}: the stream of changes ends before {state.end}, and {at} is the next: it was "
                "made anew, so compile all subscriptions again and begin anew with another state directory"
            )
        if at < state.first and self._settings.on_loss == FAIL:
            raise TableError(
                f"{place}: the stream of changes begins at {state.first}, and {at} is the next: "
                f"{state.first - at:,} changes were purged or expired unread; compile all subscriptions "
                "again, or set on_loss=go-on"
            )
