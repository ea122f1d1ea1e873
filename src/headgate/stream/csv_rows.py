"""Rows of one file of CSV, typed as Spark types a table of that file alone; and the rows that are none.

A column has the type that fits all its values in the file: whole numbers, numbers, truth values, days, times,
and else text. `id` and `source` are text that is read one by one: 7 is a number, and 007 is not.
"""

from __future__ import annotations

import codecs
import csv
import datetime as dt
import io
import re
from collections import Counter
from typing import TYPE_CHECKING, Any

from headgate.core.event import ID, SECOND_MARK, SOURCE
from headgate.core.id_types import is_whole
from headgate.core.values import fold
from headgate.errors import EventError
from headgate.runtime.rows import NOT_UTF8
from headgate.tables.event_rows import MISFIT
from headgate.tables.text_types import DAY, FRACTION, TEXT, TRUTH, WHOLE, kind_of_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Row = dict[str, Any]

ODD_QUOTES = 'quotes stand in the middle of a value: put the value in quotes, and double those inside it ("")'
TIME = "time"
_RECORD = re.compile(rb'(?:"(?:[^"]|"")*+"|[^"\r\n])*+"?[^\r\n]*+')
"""A row: what is in quotes may have ends of lines. One that is not regular ends with its line."""
_REGULAR = re.compile(rb'(?:(?:"(?:[^"]|"")*+"|[^",\r\n]*+)(?:,|\Z))*+')
_END = re.compile(rb"\r?\n|\r")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\Z")
_LONG = re.compile(r"[+-]?[0-9]+\Z")
_TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?"
    r"(?:Z|[+-][0-9]{2}:[0-9]{2})?\Z"
)
_LEAST, _MOST = -(1 << 63), (1 << 63) - 1
_EARLIEST = dt.datetime(1600, 1, 1, tzinfo=dt.UTC)
"""Before, calendars differ."""


class CsvFile:
    """What a file holds: the names of its columns, and its rows."""

    def __init__(self, data: bytes) -> None:
        data = data.removeprefix(codecs.BOM_UTF8)
        if data.startswith(codecs.BOM_UTF8):
            raise EventError(SECOND_MARK)
        self._records = _records(data)
        self.names = _header(next(self._records, b""))

    def rows(self, *, typed: bool) -> Iterator[tuple[Row | EventError, bytes]]:
        """Read the rows, each with its bytes; without `typed` all values but ids are text."""
        good: list[tuple[list[str], bytes]] = []
        for record in self._records:
            try:
                good.append((_fields(record, len(self.names)), record))
            except EventError as error:
                yield error, record
        columns = []
        for place, name in enumerate(self.names):
            values: Sequence[Any] = [fields[place] for fields, _ in good]
            if fold(name) in {ID, SOURCE}:
                values = list(map(_identity, values))
            elif typed:
                values = _typed(values, name)
            columns.append(values)
        for number, (_, record) in enumerate(good):
            row = {name: column[number] for name, column in zip(self.names, columns, strict=True)}
            if any(value is _BEYOND for value in row.values()):
                yield EventError(MISFIT), record
            else:
                yield (
                    {name: value for name, value in row.items() if value is not None and value != ""},
                    record,
                )


def _records(data: bytes) -> Iterator[bytes]:
    """Cut a file into rows; empty lines are none."""
    place = 0
    while place < len(data):
        found = _RECORD.match(data, place)
        assert found is not None
        place = found.end()
        end = _END.match(data, place)
        place = end.end() if end else len(data)
        if found[0]:
            yield found[0]


def _header(record: bytes) -> list[str]:
    try:
        names = _fields(record, None) if record else []
    except EventError as error:
        raise EventError(f"the header of the file cannot be read: {error}") from None
    for name, times in Counter(map(fold, names)).items():
        if not name.strip():
            raise EventError("a column of the file has no name: give each one in the header")
        if times > 1:
            raise EventError(f"the header names the column {name!r} {times} times")
    return names


def _fields(record: bytes, count: int | None) -> list[str]:
    """Read the values of a row."""
    try:
        text = record.decode()
    except UnicodeDecodeError:
        raise EventError(NOT_UTF8) from None
    if not _REGULAR.fullmatch(record) or "\0" in text:
        raise EventError(ODD_QUOTES)
    # By itself Python gives up at 131,072 characters.
    csv.field_size_limit(max(csv.field_size_limit(), len(text)))
    fields = next(csv.reader(io.StringIO(text, newline=""), strict=True), [""])
    if count is not None and len(fields) != count:
        raise EventError(MISFIT)
    return fields


def _identity(text: str) -> str | int:
    return int(text) if is_whole(text) else text


_BEYOND = object()
"""A whole number that no column holds."""


def _typed(values: Sequence[str], name: str) -> Sequence[Any]:
    """Give a column the type that fits all that is in it."""
    distinct = {text for text in values if text}
    kinds = {text: kind_of_text(text) for text in distinct}
    if TEXT in kinds.values():
        return values
    found = {kind or _kind(text, name) for text, kind in kinds.items()}
    read: Callable[[str], Any]
    if not found or found == {TRUTH}:
        read = _truth
    elif found == {WHOLE}:
        read = _whole
    elif found <= {WHOLE, FRACTION}:
        read = float
    elif found == {DAY}:
        read = dt.date.fromisoformat
    elif found == {TIME}:
        read = _time
    elif found <= {WHOLE, FRACTION, TRUTH}:
        return values
    else:
        raise EventError(_unclear(name, min(distinct)))
    known = {text: read(text) for text in distinct}
    return [known.get(text) for text in values]


def _kind(text: str, name: str) -> str:
    """Say what a text is that Spark may take for several things; refuses what is not clear."""
    if _LONG.match(text):
        return WHOLE
    if _NUMBER.match(text):
        return FRACTION
    if _TIME.match(text) and _is_time(text):
        return TIME
    raise EventError(_unclear(name, text))


def _unclear(name: str, text: str) -> str:
    return (
        f"column {name} holds {text[:40]!r}, whose type is not clear beside the others: send the file as "
        "JSON lines or Parquet"
    )


def _truth(text: str) -> bool:
    return text.lower() == "true"


def _whole(text: str) -> Any:
    number = int(text)
    return number if _LEAST <= number <= _MOST else _BEYOND


def _time(text: str) -> dt.datetime:
    found = dt.datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=dt.UTC)


def _is_time(text: str) -> bool:
    try:
        return _time(text) >= _EARLIEST
    except (ValueError, OverflowError):
        return False
