"""What Spark takes a text for where it infers types: in CSV, and in the names of folders."""

from __future__ import annotations

import re
from datetime import date

WHOLE, FRACTION, TRUTH, DAY, TEXT = "whole", "fraction", "truth", "day", "text"
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}\Z")
_FRACTION = re.compile(r"[+-]?[0-9]*\.[0-9]+\Z")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}\Z")
_UNCLEAR = re.compile(r"[\s+.0-9-]|T[0-9]|(?:nan|inf|infinity)\Z", re.IGNORECASE)
"""What begins as a number or a time does."""
_NUMBER_SIGNS = re.compile(r"[0-9+\-:. TZ/eEdDfF]*\Z|[+-]?0[xX]")
_TIME = re.compile(r"[+-]?[0-9]+[-:]")
_EARLIEST = date(1600, 1, 1)
"""Before, calendars differ."""


def kind_of_text(text: str) -> str | None:
    """Say what Spark takes a value for; None if that is not clear.

    >>> [kind_of_text(text) for text in ("7", "-1.5", "TRUE", "2024-02-29", "art", "3rd", "", "1e5", "12:30")]
    ['whole', 'fraction', 'truth', 'day', 'text', 'text', 'text', None, None]
    """
    if _WHOLE.match(text):
        return WHOLE
    if _FRACTION.match(text):
        return FRACTION
    if text.lower() in {"true", "false"}:
        return TRUTH
    if not _UNCLEAR.match(text):
        return TEXT
    if _DAY.match(text):
        return DAY if _is_day(text) else None
    if text[0].isspace() or _TIME.match(text) or _NUMBER_SIGNS.match(text):
        return None
    return TEXT if text[0] in "0123456789+-." else None


def _is_day(text: str) -> bool:
    try:
        return date.fromisoformat(text) >= _EARLIEST
    except ValueError:
        return False
