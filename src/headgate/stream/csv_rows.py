"""Rows of one file of CSV, typed as Spark types a table of that file alone; and the rows that are none.

A column has the type that fits all its values in the file: whole numbers, numbers, truth values, days, times,
and else text. `id` and `source` are text that is read one by one: 7 is a number, and 007 is not.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections import Counter
from typing import TYPE_CHECKING, Any

from headgate.core.event import ID, SECOND_MARK, SOURCE
from headgate.core.id_types import is_whole
from headgate.core.text.csv_text import CsvText
from headgate.core.values import fold
from headgate.errors import EventError
from headgate.runtime import rows as table_rows
from headgate.tables.event_rows import MISFIT
from headgate.tables.text_types import WHOLE, UnclearError, meant_kind, typed_column

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from headgate.core.text.csv_text import CsvRow

    Row = dict[str, Any]

_LEAST, _MOST = -(1 << 63), (1 << 63) - 1


class CsvFile:
    """What a file holds: the names of its columns, and its rows."""

    def __init__(self, data: bytes) -> None:
        if data.startswith(BOM_UTF8 * 2):
            raise EventError(SECOND_MARK)
        self._table = CsvText(data)
        self.names = _header(self._table.header)

    def rows(self, *, typed: bool) -> Iterator[tuple[Row | EventError, bytes]]:
        """Read the rows, each with its bytes; without `typed` all values but ids are text."""
        good: list[CsvRow] = []
        for row in self._table:
            if row.reason is None:
                good.append(row)
            else:
                yield EventError(MISFIT if row.reason == table_rows.MISFIT else row.reason), row.line
        columns = []
        for place, name in enumerate(self.names):
            values: Sequence[Any] = [row.values[place] for row in good]
            if fold(name) in {ID, SOURCE}:
                values = [int(text) if is_whole(text) else text for text in values]
            elif typed:
                values = _typed(values, name)
            columns.append(values)
        for number, given in enumerate(good):
            values = [column[number] for column in columns]
            if any(value is _BEYOND for value in values):
                yield EventError(MISFIT), given.line
            else:
                pairs = zip(self.names, values, strict=True)
                yield {name: value for name, value in pairs if value is not None and value != ""}, given.line


def _header(given: CsvRow) -> list[str]:
    if given.reason is not None:
        raise EventError(f"the header of the file cannot be read: {given.reason}")
    for name, times in Counter(map(fold, given.values)).items():
        if not name.strip():
            raise EventError("a column of the file has no name: give each one in the header")
        if times > 1:
            raise EventError(f"the header names the column {name!r} {times} times")
    return given.values


_BEYOND = object()
"""A whole number that no column holds."""


def _typed(values: Sequence[str], name: str) -> Sequence[Any]:
    """Give a column the type that fits all that is in it."""
    try:
        kind, known = typed_column({text for text in values if text}, meant_kind)
    except UnclearError as error:
        raise EventError(
            f"column {name} holds {str(error)[:40]!r}, whose type is not clear beside the others: send the "
            "file as JSON lines or Parquet"
        ) from None
    found = [known.get(text) for text in values]
    if kind != WHOLE:
        return found
    return [number if number is None or _LEAST <= number <= _MOST else _BEYOND for number in found]
