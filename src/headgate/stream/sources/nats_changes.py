"""Changes of subscriptions from a NATS stream: a message is a change, a position is a sequence number.

Behind the number stands when the NATS stream was made: one that was made anew has other messages under the
same numbers. Positions of earlier versions lack it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.brokers.nats.reading import Range
from headgate.brokers.nats.settings import FAIL
from headgate.brokers.nats.stream import Loss, Stream
from headgate.errors import TableError
from headgate.runtime.changes import Change
from headgate.stream.sources.nats_log import first_of

if TYPE_CHECKING:
    from headgate.brokers.nats.settings import NatsSettings
    from headgate.brokers.nats.stream import State

_START_AGAIN = "compile all subscriptions again and start again with another state directory"


class NatsChanges:
    """A source of changes after the protocol of `headgate.runtime.changes`."""

    source = "nats"

    def __init__(self, settings: NatsSettings) -> None:
        self._settings = settings
        self._stream = Stream(settings)
        self._losses: list[Change] = []

    def since(self, position: str | None) -> tuple[list[Change], str | None]:
        """List the changes after a position, at most `max_rows`, and the position after them.

        In place of those that are lost comes a line that says so, which is no change and will be refused.
        """
        self._losses = []
        state = self._stream.state()
        number, _, created = (position or "").partition(" ")
        at = int(number) if number else first_of(self._settings, state)
        self._check(state, at, created or state.created)
        stop = min(state.end, max(at, state.first) + self._settings.max_rows)
        if stop <= at:
            return [], position or f"{at} {state.created}"
        wanted = Range(max(at, state.first), stop, self._settings.subject)
        found = [
            Change(one.data, f"{one.subject} {one.sequence}")
            for part in self._stream.watched(wanted, state.created, self._lost)
            for one in part
        ]
        return self._losses + found, f"{stop} {state.created}"

    def close(self) -> None:
        """Hang up."""
        self._stream.close()

    def _check(self, state: State, at: int, created: str) -> None:
        place = self._settings.place
        if created != state.created:
            raise TableError(
                f"{place}: the stream of changes was created again at {state.created}, and {at} is the next "
                f"of the one made at {created}: {_START_AGAIN}"
            )
        if at > state.end and self._settings.start != str(at):
            raise TableError(
                f"{place}: the stream of changes ends before {state.end}, and {at} is the next: it was "
                f"created again, so {_START_AGAIN}"
            )
        if at < state.first:
            self._lost(Loss(at, state.first, state.first - at))

    def _lost(self, loss: Loss) -> None:
        if self._settings.on_loss == FAIL:
            raise TableError(
                f"{self._settings.place}: the stream of changes begins at {loss.first}, and {loss.at} is the "
                f"next: {loss.most:,} changes were purged or expired unread; compile all subscriptions "
                "again, or set on_loss=go-on"
            )
        # Numbers, not changes: some of them may have been of other subjects.
        said = f"sequence numbers {loss.at:,} to {loss.first - 1:,} were purged or expired unread"
        self._losses.append(Change(said.encode(), f"{self._settings.stream} {loss.at}"))
