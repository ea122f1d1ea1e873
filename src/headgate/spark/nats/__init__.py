"""NATS JetStream as a source of events, a sink of matches and a stream of subscription changes.

The client library is imported inside functions only, so that Headgate works without it; it comes with
`headgate[nats]`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from headgate.errors import TableError

if TYPE_CHECKING:
    from headgate.brokers.nats.settings import NatsSettings
    from headgate.spark.stream.settings import StreamSettings


def check(settings: StreamSettings) -> None:
    """Ask the servers that a stream's settings name, before Spark starts, whether all will go well."""
    from headgate.brokers.nats.stream import Stream
    from headgate.brokers.nats.subjects import Template
    from headgate.spark.nats.addresses import changes_of, events_of, matches_of
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
    from headgate.brokers.nats.stream import Stream
    from headgate.brokers.nats.subjects import overlap

    with Stream(replace(settings, patience=0.0)) as stream:
        state = stream.state()
    wanted = settings.subject
    if wanted is not None and not any(overlap(subject, wanted) for subject in state.subjects):
        raise TableError(
            f"{settings.place}: the stream takes {', '.join(state.subjects) or 'no subjects'}, and none "
            f"fits {wanted}: set another subject, or none to read all"
        )
