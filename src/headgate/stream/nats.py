"""NATS JetStream as a source of events, a sink of matches, and a stream of changes of subscriptions.

In a stream of changes a message is a change, a position is a sequence number. Behind the number stands when
the NATS stream was made: one that was made anew has other messages under the same numbers. Positions of
earlier versions lack it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from headgate.brokers.nats.connection import ANSWER, GREETING
from headgate.brokers.nats.reading import Range
from headgate.brokers.nats.settings import FAIL, FIRST, NEW, NatsSettings, Template, covers, overlap
from headgate.brokers.nats.stream import Loss, Stream
from headgate.errors import TableError
from headgate.runtime.changes import Change
from headgate.stream.settings import NATS

if TYPE_CHECKING:
    from headgate.brokers.nats.stream import State
    from headgate.runtime.changes import ChangeSettings
    from headgate.stream.settings import StreamSettings

DEFAULT = "matches"
"""The subject of matches, unless one is given."""
PREFIX = "nats."
"""Before the names of settings among `options` that hold for every NATS address of a stream."""


def events_of(settings: StreamSettings) -> NatsSettings:
    """Return where events come from."""
    limit = {} if settings.max_rows is None else {"max_rows": settings.max_rows}
    return _address(settings, settings.events, limit)


def matches_of(settings: StreamSettings) -> NatsSettings:
    """Return where matches go."""
    return _address(settings, settings.output, {})


def changes_of(settings: ChangeSettings) -> NatsSettings:
    """Return where changes of subscriptions come from."""
    return _address(settings, settings.changes or "", {})


def _address(settings: ChangeSettings, address: str, more: dict[str, int]) -> NatsSettings:
    """Read an address; what it says itself goes before the options for all of them."""
    shared = {
        name.removeprefix(PREFIX): value
        for name, value in settings.options.items()
        if name.startswith(PREFIX)
    }
    return NatsSettings.of(address, shared, **more)


def check(settings: StreamSettings) -> None:
    """Ask the servers that a stream's settings name, before Spark starts, whether all will go well."""
    if settings.events.startswith(NATS):
        _check_source(events_of(settings))
    if settings.changes is not None and settings.changes.startswith(NATS):
        _check_source(changes_of(settings))
    if settings.output.startswith(NATS):
        matches = matches_of(settings)
        check_patience(matches)
        template = Template(matches.subject or DEFAULT, matches.place)
        columns = ("event_id", "subscription_id") + (("score", "rank") if settings.top is not None else ())
        template.check(columns, matches.place)
        with Stream(replace(matches, patience=0.0)) as stream:
            check_stream(stream, template)


def _check_source(settings: NatsSettings) -> None:
    with Stream(replace(settings, patience=0.0)) as stream:
        state = stream.state()
    wanted = settings.subject
    if wanted is not None and not any(overlap(subject, wanted) for subject in state.subjects):
        raise TableError(
            f"{settings.place}: the stream takes {', '.join(state.subjects) or 'no subjects'}, and none "
            f"fits {wanted}: set another subject, or none to read all"
        )


def check_patience(settings: NatsSettings) -> None:
    """Refuse to publish again, after a lost connection, when the server may have forgotten the ids."""
    latest = settings.patience + ANSWER + GREETING * len(settings.servers)
    # Without patience nothing is published again.
    if settings.patience and latest > settings.window:
        raise TableError(
            f"{settings.place}: with patience={settings.patience:g} a message may be published again "
            f"{latest:g} s later, and window is {settings.window:g} s: lengthen window, or shorten patience"
        )


def check_stream(stream: Stream, template: Template) -> None:
    """Make sure that there is a stream that takes all matches and knows their ids for long enough."""
    settings, state = stream.settings, stream.look()
    if state is None:
        if settings.create:
            stream.create(template.pattern)
        state = stream.state()
    if not any(covers(subject, template.pattern) for subject in state.subjects):
        raise TableError(
            f"{settings.place}: the stream takes {', '.join(state.subjects) or 'no subjects'}, and matches "
            f"go to {template.text}: set subject, or add it to the stream's"
        )
    if state.window < settings.window:
        raise TableError(
            f"{settings.place}: the stream knows message ids for {state.window:g} s, and {settings.window:g} "
            f"are wanted: lengthen its duplicate window, or set window={state.window:g}"
        )


_START_AGAIN = "compile all subscriptions again and start again with another state directory"


class NatsChanges:
    """A source of changes after the protocol of `headgate.runtime.changes`."""

    source = "nats"

    def __init__(self, settings: ChangeSettings) -> None:
        self._settings = changes_of(settings)
        self._stream = Stream(self._settings)
        self._losses: list[Change] = []

    def since(self, position: str | None) -> tuple[list[Change], str | None]:
        """List the changes after a position, at most `max_rows`, and the position after them.

        In place of those that are lost comes a line that says so, which is no change and will be refused.
        """
        self._losses = []
        state = self._stream.state()
        number, _, created = (position or "").partition(" ")
        at = int(number) if number else self._begin(state)
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

    def _begin(self, state: State) -> int:
        start = self._settings.start
        return {FIRST: state.first, NEW: state.end}.get(start) or int(start)

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
