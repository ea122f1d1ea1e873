"""What a service answers, as a client gives it to programs."""

from __future__ import annotations

from typing import Any

import msgspec


class PublishedEvent(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one event."""

    id: str
    cursor: int | None = None
    """Its position in the log; none if it was refused."""
    matched: int = 0
    """How many subscriptions matched."""
    matches: list[str] | None = None
    """Which ones, if that was asked for."""
    refused: str | None = None


class Published(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the events of a call."""

    accepted: int
    refused: int
    matched: int
    events: list[PublishedEvent]


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """An event for a consumer, and those of its subscriptions that matched."""

    cursor: int
    """Acknowledge this, and all up to it is done."""
    subscriptions: list[str]
    event: dict[str, Any]
    """The CloudEvent."""

    @property
    def data(self) -> Any:
        """Return the data of the event."""
        return self.event.get("data")


class Deliveries(msgspec.Struct, frozen=True, kw_only=True):
    """Some deliveries of a consumer, in order."""

    items: list[Delivery]


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """What became of an import of subscriptions."""

    accepted: int
    refused: int
    errors: list[dict[str, Any]]
    """The line, the id and the reason of each that was refused."""


class Items(msgspec.Struct, frozen=True, kw_only=True):
    """Some of a list."""

    items: list[dict[str, Any]]
    next: str | None = None


class KeptEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event that a service keeps."""

    cursor: int
    """Its position in the log."""
    time: float
    """When it was committed, in seconds since 1970."""
    matches: list[str]
    held: list[str] = []
    """Subscriptions that it matched, and that did not get it because of their limit."""
    event: msgspec.Raw
    """The CloudEvent, as JSON."""


class KeptEvents(msgspec.Struct, frozen=True, kw_only=True):
    """Some of the events that a service keeps, in order."""

    items: list[KeptEvent]
    next: str | None = None
    """What to give as `after` for those that follow; None at the end."""
    first: int
    """All before this cursor were forgotten."""
    last: int
    """The cursor of the last one; one less than `first` if there are none."""
    log: str
    """Which log it is. In another one, cursors mean other events."""
