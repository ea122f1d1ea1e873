"""CSV as text: a header, then rows of values; a row that is none comes with the reason.

Whoever reads CSV in Python reads it with this: tables of jobs, files of a stream, rows of changes, samples.
"""

from __future__ import annotations

import codecs
import csv
import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

MISFIT = "the line does not have as many fields as the header"
NOT_UTF8 = "the row has bytes that are not UTF-8: write the table in UTF-8"
ODD_QUOTES = 'quotes stand in the middle of a value: put the value in quotes, and double those inside it ("")'
_ROW = re.compile(rb'((?:"(?:[^"]|"")*+"|[^"\r\n])*+"?[^\r\n]*+)(?:\r?\n|\r|\Z)')
"""What is in quotes may have ends of lines. A row that is not regular ends with its line."""
_REGULAR = re.compile(rb'(?:(?:"(?:[^"]|"")*+"|[^",\r\n]*+)(?:,|\Z))*+')


class CsvRow(NamedTuple):
    """A row as it came, its values, and why it is none; then the values are about what was meant."""

    line: bytes
    values: list[str]
    reason: str | None = None

    @property
    def text(self) -> str:
        """Return the row for people."""
        return self.line.decode(errors="replace")


class CsvText:
    r"""What a file holds. It is cut as far as rows are asked for; empty lines are none.

    >>> table = CsvText(b'id,filter\n1,"a, b"\n2\n')
    >>> table.header.values, [row.values for row in table if row.reason is None]
    (['id', 'filter'], [['1', 'a, b']])
    """

    def __init__(self, data: bytes) -> None:
        self._rows = _rows(data.removeprefix(codecs.BOM_UTF8))
        self.header = next(self._rows, CsvRow(b"", []))

    def __iter__(self) -> Iterator[CsvRow]:
        """List the rows after the header, once."""
        count = len(self.header.values)
        for row in self._rows:
            fits = row.reason is not None or len(row.values) == count
            yield row if fits else row._replace(reason=MISFIT)

    def objects(self) -> Iterator[tuple[CsvRow, dict[str, str] | None]]:
        """List the rows, each with its values that are not empty by name: None if it cannot be read.

        Quotes may stand in the middle of a value: filters have them there.
        """
        names = self.header.values
        for row in self:
            fits = row.reason != NOT_UTF8 and len(row.values) == len(names)
            pairs = zip(names, row.values, strict=fits)
            yield row, {name: value for name, value in pairs if value} if fits else None


def _rows(data: bytes) -> Iterator[CsvRow]:
    # By itself Python gives up at 131,072 characters.
    csv.field_size_limit(max(csv.field_size_limit(), len(data)))
    given: list[tuple[bytes, str | None]] = []

    def texts() -> Iterator[str]:
        for row in _ROW.finditer(data):
            if row[1]:
                text, reason = _judged(row[1])
                given.append((row[1], reason))
                yield text

    # A text that is regular, or nothing, is one row.
    for values in csv.reader(texts(), strict=True):
        line, reason = given.pop()
        yield CsvRow(line, values if reason is None else _meant(line), reason)


def _meant(line: bytes) -> list[str]:
    return next(csv.reader(line.decode(errors="replace").splitlines(keepends=True)), [])


def _judged(line: bytes) -> tuple[str, str | None]:
    try:
        text = line.decode()
    except UnicodeDecodeError:
        return "", NOT_UTF8
    return (text, None) if _REGULAR.fullmatch(line) and "\0" not in text else ("", ODD_QUOTES)
