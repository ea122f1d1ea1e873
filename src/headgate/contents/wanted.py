"""What is said of all filters of a job."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headgate.core.subscription import SQL


@dataclass(frozen=True)
class Wanted:
    """Settings of filters. Each kind of content knows some of them (`Kind.settings`)."""

    dialect: str = SQL
    """That of rows that name none."""
    schema: str | None = None
    """The attributes' types, as JSON."""
    sample: str | None = None
    """A table of events."""
    taxonomy: Any = None
    """A `Taxonomy`."""
    options: Any = None
    """What departs from the standard of the language."""

    @property
    def said(self) -> tuple[str, ...]:
        """Name the settings that are made.

        >>> Wanted(sample="events.jsonl").said
        ('sample',)
        """
        return tuple(name for name in SETTINGS if getattr(self, name) is not None)


SETTINGS = {
    "schema": "a schema",
    "sample": "a sample",
    "taxonomy": "a taxonomy",
    "options": "options",
}
"""The settings that are about some kinds only, as messages name them."""
