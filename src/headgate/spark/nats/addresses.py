"""The NATS addresses among the settings of a stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.brokers.nats.settings import NatsSettings

if TYPE_CHECKING:
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


def changes_of(settings: StreamSettings) -> NatsSettings:
    """Return where changes of subscriptions come from."""
    return _address(settings, settings.changes or "", {})


def _address(settings: StreamSettings, address: str, more: dict[str, int]) -> NatsSettings:
    """Read an address; what it says itself goes before the options for all of them."""
    shared = {
        name.removeprefix(PREFIX): value
        for name, value in settings.options.items()
        if name.startswith(PREFIX)
    }
    return NatsSettings.of(address, shared, **more)
