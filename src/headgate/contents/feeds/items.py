"""What a feed is taken apart into."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from headgate.errors import EventError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headgate.core.event import Event


class Feed(NamedTuple):
    """The events of a feed's items in the order of the document, and what was forgiven on the way."""

    items: tuple[Event, ...]
    notes: tuple[str, ...]


def only(items: Sequence[Event], feed: Event) -> Sequence[Event]:
    """Return the item of a feed that has one; refuses a feed that is asked about as if it were one event."""
    if len(items) != 1:
        raise EventError(
            f"event {feed.id!r} is a feed of {len(items):,} items, and each of them is an event: ask with "
            "Engine.read(event), which lists them"
        )
    return items
