"""Events that jobs ask for: what workers get of a table or a folder, and what is known of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from headgate.contents.kind import Feeds
    from headgate.jobs.runner import Rows


def _nothing() -> None:
    """Leave events to the end of the job."""


@dataclass(frozen=True)
class EventTable:
    """The events of a table, and the rows that are none."""

    form: str
    """How workers get the events: one of the forms of `tables.frames.reading`."""
    rows: Rows
    refused: Rows
    """Rows that are none: `row` and `reason`."""
    count: int
    rejected: int
    id_type: str
    """`long` or `string`."""
    unknown: tuple[str, ...] = ()
    """Attributes that filters name and the table lacks."""
    meant: Mapping[str, str] = field(default_factory=dict)
    """Columns of it that were likeliest meant by them."""
    feeds: Feeds | None = None
    forget: Callable[[], None] = _nothing
    """Frees what was kept."""
