"""Names that filters and events do not share: mostly slips of the pen, which no error ever tells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from headgate.contents.registry import kind_of
from headgate.core.event import EVENT_TIME, ID, JSON, SOURCE, TIME
from headgate.core.likeliest import likeliest
from headgate.core.values import dotted
from headgate.errors import SubscriptionError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headgate.core.values import Path
    from headgate.engine.backend import Backend, Events


class Unknown(NamedTuple):
    """Names that one side has and the other has not, each with the one that was likeliest meant, if any.

    `attributes` are those of events that no filter names, `names` those of filters that no event has.
    """

    attributes: dict[str, str | None]
    names: dict[str, str | None]


def find_unknown(backend: Backend, asked: Iterable[tuple[Events, Any]]) -> Unknown:
    """Compare the names in filters with those of events; for filters over records."""
    kind = kind_of(backend.room.room_name)
    if not kind.rows:
        raise SubscriptionError(
            f"these filters look at {kind.title}, where names are part of a pattern: those over records name "
            "attributes"
        )
    in_filters = {name for content in backend.contents for name in getattr(content, "attributes", ())}
    mark = next(filter(None, map(_mark, backend.contents)), "")
    in_events = {dotted(path) for events, _ in asked for path in _paths(events, mark)}
    if dotted(EVENT_TIME) in in_events:
        # The time of an event stands for its attribute `time` in `:event_time`.
        in_events = in_events - {dotted(EVENT_TIME)} | in_filters & {TIME}
    seen = {_upper for name in in_filters for _upper in _uppers(name)} | {ID, SOURCE}
    return Unknown(
        {name: likeliest(name, in_filters) for name in sorted(in_events - seen)},
        {name: likeliest(name, in_events) for name in sorted(in_filters - in_events - {ID, SOURCE})},
    )


def _mark(content: Any) -> str:
    """Return what stands before names to filters, see `core/values.py`."""
    several = (member.content for member in getattr(content, "members", ()))
    settings = (getattr(each, "settings", None) for each in (content, *several))
    return next(filter(None, (getattr(each, "mark", "") for each in settings)), "")


def _paths(events: Any, mark: str) -> Iterable[Path]:
    from headgate.core.schema import Schema

    if hasattr(events, "schema"):
        return Schema.from_arrow(events.schema, mark).types
    return {path for event in events if event.content_type == JSON for path in event.attributes_as(mark)}


def _uppers(name: str) -> Iterable[str]:
    """List a dotted name and the objects around it."""
    parts = name.split(".")
    return (".".join(parts[:end]) for end in range(1, len(parts) + 1))
