"""NATS JetStream as a source of events, a sink of matches and a stream of subscription changes.

The client library is imported inside functions only, so that Headgate works without it; it comes with
`headgate[nats]`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from headgate.brokers.nats.settings import NatsSettings
from headgate.errors import TableError

if TYPE_CHECKING:
    from headgate.runtime.changes import ChangeSettings
    from headgate.spark.stream.settings import StreamSettings

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
    from headgate.brokers.nats.settings import Template
    from headgate.brokers.nats.stream import Stream
    from headgate.spark.nats.sink import DEFAULT, check_patience, check_stream
    from headgate.spark.stream.settings import NATS

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
