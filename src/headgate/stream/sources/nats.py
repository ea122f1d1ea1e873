"""NATS JetStream as a source of events, a sink of matches, and a stream of changes of subscriptions."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from headgate.errors import TableError
from headgate.stream.sources.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable

    from headgate.brokers.nats.settings import NatsSettings, Template
    from headgate.brokers.nats.stream import Stream
    from headgate.runtime.changes import Changes, ChangeSettings
    from headgate.stream.settings import StreamSettings
    from headgate.stream.sources.logs import Log

DEFAULT = "matches"
"""The subject of matches, unless one is given."""


class Nats(Source):
    """Streams of NATS servers, for whatever a stream of ours reads and writes."""

    title, name = "NATS", "nats"
    schemes = ("nats://",)

    def ask(self, settings: StreamSettings) -> None:
        """Ask the servers."""
        from headgate.brokers.nats.settings import Template
        from headgate.brokers.nats.stream import Stream

        if self.has(settings.events):
            _check_source(self.events(settings))
        if self.has(settings.changes):
            _check_source(self.read(settings, settings.changes))
        if self.has(settings.output):
            matches = self.read(settings, settings.output)
            check_patience(matches)
            template = Template(matches.subject or DEFAULT, matches.place)
            ranked = ("score", "rank") if settings.top is not None else ()
            template.check(("event_id", "subscription_id", *ranked), matches.place)
            with Stream(replace(matches, patience=0.0)) as stream:
                check_stream(stream, template)

    def log(self, settings: StreamSettings) -> Callable[[], Log]:
        """Return what opens the stream that events come from."""
        from headgate.stream.sources.nats_log import NatsLog

        return partial(NatsLog, self.events(settings))

    def changes(self, settings: ChangeSettings) -> Changes:
        """Open the stream that changes come from."""
        from headgate.stream.sources.nats_log import NatsChanges

        return NatsChanges(self.read(settings, settings.changes))

    def events(self, settings: StreamSettings) -> NatsSettings:
        """Return where events come from."""
        more = {} if settings.max_rows is None else {"max_rows": settings.max_rows}
        return self.read(settings, settings.events, **more)

    def read(self, settings: ChangeSettings, address: str | None, **more: int) -> NatsSettings:
        """Read an address; what it says itself goes before the options for all of them."""
        from headgate.brokers.nats.settings import NatsSettings

        return NatsSettings.of(address or "", self.shared(settings.options), **more)


def _check_source(settings: NatsSettings) -> None:
    from headgate.brokers.nats.settings import overlap
    from headgate.brokers.nats.stream import Stream

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
    from headgate.brokers.nats.connection import ANSWER, GREETING

    latest = settings.patience + ANSWER + GREETING * len(settings.servers)
    # Without patience nothing is published again.
    if settings.patience and latest > settings.window:
        raise TableError(
            f"{settings.place}: with patience={settings.patience:g} a message may be published again "
            f"{latest:g} s later, and window is {settings.window:g} s: lengthen window, or shorten patience"
        )


def check_stream(stream: Stream, template: Template) -> None:
    """Make sure that there is a stream that takes all matches and knows their ids for long enough."""
    from headgate.brokers.nats.settings import covers

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
