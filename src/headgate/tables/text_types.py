"""What Spark takes texts for where it infers types: in CSV, and in the names of folders."""

from __future__ import annotations

import datetime as dt
import re
from datetime import date
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

WHOLE, FRACTION, TRUTH, DAY, TEXT = "whole", "fraction", "truth", "day", "text"
TIME = "time"
"""What only `meant_kind` tells."""
TYPES: dict[str, pa.DataType] = {
    WHOLE: pa.int64(),
    FRACTION: pa.float64(),
    TRUTH: pa.bool_(),
    DAY: pa.date32(),
    TIME: pa.timestamp("us", "UTC"),
    TEXT: pa.string(),
}
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}\Z")
_FRACTION = re.compile(r"[+-]?[0-9]*\.[0-9]+\Z")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}\Z")
_UNCLEAR = re.compile(r"[\s+.0-9-]|T[0-9]|(?:nan|inf|infinity)\Z", re.IGNORECASE)
"""What begins as a number or a time does."""
_NUMBER_SIGNS = re.compile(r"[0-9+\-:. TZ/eEdDfF]*\Z|[+-]?0[xX]")
_BEGUN_TIME = re.compile(r"[+-]?[0-9]+[-:]")
_LONG = re.compile(r"[+-]?[0-9]+\Z")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\Z")
_TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?"
    r"(?:Z|[+-][0-9]{2}:[0-9]{2})?\Z"
)
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
    if text[0].isspace() or _BEGUN_TIME.match(text) or _NUMBER_SIGNS.match(text):
        return None
    return TEXT if text[0] in "0123456789+-." else None


def _is_day(text: str) -> bool:
    try:
        return date.fromisoformat(text) >= _EARLIEST
    except ValueError:
        return False


def meant_kind(text: str) -> str | None:
    """Say what a value is also where Spark looks at the others of its column; None if that is not clear.

    >>> [meant_kind(text) for text in ("1e5", "12345678901234567890", "2024-01-31T12:30Z", "12:30")]
    ['fraction', 'whole', 'time', None]
    """
    kind = kind_of_text(text)
    if kind is None and _LONG.match(text):
        return WHOLE
    if kind is None and _NUMBER.match(text):
        return FRACTION
    return TIME if kind is None and _TIME.match(text) and _is_time(text) else kind


class UnclearError(ValueError):
    """A text whose type is not clear beside the others of its column."""


def typed_column(
    texts: Iterable[str], kind_of: Callable[[str], str | None] = kind_of_text
) -> tuple[str, Mapping[str, Any]]:
    """Find the type that fits all texts of a column, as Spark infers it, and what each of them is then.

    >>> typed_column(["7", "1.5"])
    ('fraction', {'7': 7.0, '1.5': 1.5})
    >>> typed_column(["7", "x"])[0], typed_column([])[0], typed_column(["true", "7"])[0]
    ('text', 'text', 'text')
    """
    kinds = {text: kind_of(text) for text in texts}
    kinds_seen = {kind for kind in kinds.values() if kind is not None}
    if not kinds or TEXT in kinds_seen:
        return TEXT, {text: text for text in kinds}
    unclear = next((text for text, kind in kinds.items() if kind is None), None)
    if unclear is not None or (len(kinds_seen) > 1 and not kinds_seen <= {WHOLE, FRACTION, TRUTH}):
        raise UnclearError(min(kinds) if unclear is None else unclear)
    kind = kinds_seen.pop() if len(kinds_seen) == 1 else TEXT if TRUTH in kinds_seen else FRACTION
    read = _READ[kind]
    return kind, {text: read(text) for text in kinds}


def _time(text: str) -> dt.datetime:
    moment = dt.datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)


def _is_time(text: str) -> bool:
    try:
        return _time(text).date() >= _EARLIEST
    except (ValueError, OverflowError):
        return False


_READ: dict[str, Callable[[str], Any]] = {
    WHOLE: int,
    FRACTION: float,
    TRUTH: lambda text: text.lower() == "true",
    DAY: date.fromisoformat,
    TIME: _time,
    TEXT: str,
}
