"""Columns of many events, or single values, to the codes of one index.

Events that are given one by one are read by `rows.py`. The code of one value is found by a dictionary of
texts, and bisection among thresholds of numbers.
"""

from __future__ import annotations

import datetime as dt
from bisect import bisect_right
from copy import copy
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from headgate.core.casts import to_bool, to_date, to_double, to_int, to_timestamp
from headgate.core.interning import TextPool
from headgate.core.values import Kind, micros
from headgate.records.computed import WORDS
from headgate.records.events.columns import Column, Columns, text_forms
from headgate.records.index.arrays import Events
from headgate.records.index.grams import GRAMS, event_grams, event_words
from headgate.records.index.lines import ARRAY_CELL, NULL_CELL, OTHER_CELL
from headgate.records.programs.decimals import decimal_key, decimal_text
from headgate.records.programs.leaves import OWN, TEXT_FACETS, Facet, float_key

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from headgate.core.arrays import Bytes, Ints, Ints32
    from headgate.records.index.arrays import BuiltIndex


def _float_cast(text: str) -> int | None:
    value = to_double(text)
    return None if value is None else float_key(value)


CASTS: dict[Facet, Callable[[str], int | None]] = {
    Facet.STRING_BOOL: to_bool,
    Facet.STRING_INT: to_int,
    Facet.STRING_FLOAT: _float_cast,
    Facet.STRING_DATE: to_date,
    Facet.STRING_TIMESTAMP: to_timestamp,
}


def compared(index: BuiltIndex) -> set[int]:
    """List the attributes that filters look into, beyond whether they are there."""
    inside = index.lines.line_attribute[index.lines.column_line]
    return {*inside.tolist(), *index.arrays.glob_attribute.tolist()}


def encode(given: Columns, index: BuiltIndex) -> Events:
    """Encode a batch of events for an index."""
    for attribute in compared(index):
        given.refuse_foreign(index.attributes[attribute])
    is_words = [path[:1] == (WORDS,) for path in index.attributes]
    paths = [path[is_word:] for path, is_word in zip(index.attributes, is_words, strict=True)]
    count = given.count
    lines = index.lines
    by_line = np.zeros((lines.size, count), np.int32)
    multi_start = np.zeros((lines.size, count + 1), np.int64)
    elements: list[Ints32] = []
    total = 0
    of_line = np.searchsorted(lines.column_line, np.arange(lines.size + 1)).tolist()
    for line in range(lines.size):
        attribute = int(lines.line_attribute[line])
        cells = lines.cell_code[lines.cell_base[line] : lines.cell_base[line + 1]]
        facets = range(of_line[line], of_line[line + 1])
        column = given(paths[attribute])
        if lines.line_multi[line] == GRAMS:
            known = lines.grams[lines.gram_start[line] : lines.gram_start[line + 1]]
            begin, codes = event_grams(*text_forms(column), known)
            multi_start[line] = begin + total
            elements.append(codes)
            total += len(codes)
        elif is_words[attribute]:
            code, texts = text_forms(column)
            by_line[line] = code >= 0
            begin, codes = event_words(code, texts, index, line)
            multi_start[line] = begin + total
            elements.append(codes)
            total += len(codes)
        elif not lines.line_multi[line]:
            by_line[line] = cells[_cells(column, facets, index)]
        else:
            by_line[line] = column.kind == Kind.ARRAY
            multi_start[line] = column.start + total
            if column.elements is not None:
                codes = cells[_cells(column.elements, facets, index)]
                elements.append(codes)
                total += len(codes)
    seen = index.arrays.glob_attribute.tolist()
    text_of, pool = _glob_texts([given(paths[attribute]) for attribute in seen], count)
    return Events(
        codes=_by_event(by_line),
        multi_start=multi_start,
        multi_codes=np.concatenate([np.zeros(0, np.int32), *elements]),
        text_of=text_of,
        text_offsets=pool.offsets,
        text_data=pool.data,
    )


_SPECIAL = np.full(max(Kind) + 1, OTHER_CELL, np.int64)
_SPECIAL[Kind.NULL] = NULL_CELL
_SPECIAL[Kind.ARRAY] = ARRAY_CELL


def _cells(column: Column, facets: range, index: BuiltIndex) -> Ints:
    """Return the cell of each value on the line that some facets belong to."""
    lines = index.lines
    kinds = np.bincount(column.kind, minlength=max(Kind) + 1)
    cells = _SPECIAL[column.kind]
    for c in facets:
        facet, first = Facet(int(lines.column_facet[c])), lines.column_cell[c]
        thresholds = lines.thresholds[lines.threshold_start[c] : lines.threshold_start[c + 1]]
        if facet in OWN:
            if kinds[OWN[facet]] == len(cells):
                cells = first + _places(thresholds, column.number)
            elif 2 * kinds[OWN[facet]] > len(cells):
                # To look up those of others as well is quicker than to pick out one's own.
                places = _places(thresholds, column.number)
                cells = np.where(column.kind == OWN[facet], first + places, cells)
            elif kinds[OWN[facet]]:
                mine = column.kind == OWN[facet]
                cells[mine] = first + _places(thresholds, column.number[mine])
        elif facet is Facet.LONG_DECIMAL:
            if column.decimals is not None:
                code_of, digits = column.decimals.texts
                places = index.texts.place_pool(digits, lines.text_first[c], lines.text_last[c])
                cells[column.decimals.rows] = first + places[code_of]
        elif facet in TEXT_FACETS:
            code, texts = (column.code, column.texts) if facet is Facet.STRING else text_forms(column)
            if texts.size:
                places = index.texts.place_pool(texts, lines.text_first[c], lines.text_last[c])
                cells = np.where(code >= 0, first + places[code], cells)
        elif kinds[Kind.STRING]:
            casts = [CASTS[facet](text) for text in column.texts.texts()]
            able = np.array([key is not None for key in casts], bool)
            keys = np.array([0 if key is None else key for key in casts], np.int64)
            text_cells = np.where(able, first + np.searchsorted(thresholds, keys, side="right"), OTHER_CELL)
            cells = np.where(column.code >= 0, text_cells[column.code], cells)
    return cells


_BLOCK = 256
"""Events whose codes are turned together: they and their lines fit into a cache."""


def _by_event(by_line: Ints32) -> Ints32:
    """Turn codes of lines into those of events."""
    count = by_line.shape[1]
    by_event = np.empty((count, len(by_line)), np.int32)
    for first in range(0, count, _BLOCK):
        by_event[first : first + _BLOCK] = by_line[:, first : first + _BLOCK].T
    return by_event


_MANY = 64
"""Keys for which a table may be made."""
_SPREAD = 4
"""Places of a table for each key, at most."""


def _places(thresholds: Ints, keys: Ints) -> Ints:
    """Count the thresholds at most each key; of keys that lie close together, by a table of all between them.

    >>> _places(np.array([3, 5, 5]), np.arange(6)).tolist()
    [0, 0, 0, 1, 1, 3]
    """
    if len(keys) >= _MANY:
        low, high = int(keys.min()), int(keys.max())
        if high - low < _SPREAD * len(keys):
            begin, end = np.searchsorted(thresholds, low), np.searchsorted(thresholds, high, side="right")
            table = np.cumsum(np.bincount(thresholds[begin:end] - low, minlength=high - low + 1)) + begin
            return np.asarray(table[keys - low], np.int64)
    return np.searchsorted(thresholds, keys, side="right")


def _glob_texts(columns: Sequence[Column], count: int) -> tuple[Ints32, TextPool]:
    """Find the texts that patterns see; those of all attributes lie in one pool."""
    text_of = np.full((len(columns), count), -1, np.int32)
    offsets = [np.zeros(1, np.int64)]
    data: list[Bytes] = [np.zeros(0, np.uint8)]
    texts = size = 0
    for side, column in enumerate(columns):
        code, pool = text_forms(column)
        text_of[side] = np.where(code >= 0, code + texts, -1)
        offsets.append(pool.offsets[1:] + size)
        data.append(pool.data)
        texts += pool.size
        size += len(pool.data)
    return text_of, TextPool(np.concatenate(offsets), np.concatenate(data))


MANY = 4_096
"""Numbers of a line of which objects are made, at most: there may be millions."""
LOOKED_UP = 1 << 16
"""Texts of a line that are kept in a dictionary, at most; among more, a text is searched for."""


def _placing_among(values: NDArray[Any]) -> Callable[[int], int]:
    """Return what counts the numbers that are at most a key."""
    numbers: Sequence[int] = values.tolist() if len(values) <= MANY else np.ascontiguousarray(values).data
    return partial(bisect_right, numbers)


class LineCodes:
    """One line, ready for single values."""

    def __init__(self, built: BuiltIndex, line: int) -> None:
        lines = built.lines
        self.number = line
        self.multi = bool(lines.line_multi[line])
        codes = lines.cell_code[lines.cell_base[line] : lines.cell_base[line + 1]]
        self._codes: Sequence[int] = (
            codes.tolist() if len(codes) <= MANY else np.ascontiguousarray(codes).data
        )
        self.null: int = self._codes[NULL_CELL]
        self.other: int = self._codes[OTHER_CELL]
        self.array: int = self._codes[ARRAY_CELL]
        self._numbers: dict[Kind, tuple[Callable[[int], int], int]] = {}
        self._casts: list[tuple[Callable[[str], int | None], Callable[[int], int], int]] = []
        self._texts: dict[str, int] | None = None
        self._forms = False
        self._place: Callable[[str], int] | None = None
        self._long: Callable[[str], int] | None = None
        for c in np.flatnonzero(lines.column_line == line).tolist():
            facet, first = Facet(int(lines.column_facet[c])), int(lines.column_cell[c])
            thresholds = lines.thresholds[lines.threshold_start[c] : lines.threshold_start[c + 1]]
            if facet in OWN:
                self._numbers[OWN[facet]] = (_placing_among(thresholds), first)
            elif facet is Facet.LONG_DECIMAL:
                self._long = _placing(built, c, codes[first:])
            elif facet in TEXT_FACETS:
                self._open_texts(built, c, first, codes)
                self._forms = facet is Facet.TEXT
            else:
                self._casts.append((CASTS[facet], _placing_among(thresholds), first))

    def _open_texts(self, built: BuiltIndex, c: int, first: int, codes: Ints32) -> None:
        """Look named texts up; others are placed among them only if some filter covers the gaps."""
        begin, end = int(built.lines.text_first[c]), int(built.lines.text_last[c])
        own = codes[first : first + 2 * (end - begin) + 1]
        many = end - begin > LOOKED_UP
        texts = [] if many else built.texts.some(begin, end).texts()
        self._texts = dict(zip(texts, own[1::2].tolist(), strict=False))
        if many or own[::2].any():
            self._place = _placing(built, c, own)

    def moved(self, behind: int) -> LineCodes:
        """Return the same line with a number that is so much higher."""
        line = copy(self)
        line.number += behind
        return line

    def code(self, value: object, kind: Kind) -> int:
        """Return the code of a value."""
        if kind is Kind.STRING:
            return self._text(str(value))
        if kind is Kind.NULL:
            return self.null
        if self._forms and kind in {Kind.INT, Kind.BOOL}:
            return self._text(str(value) if kind is Kind.INT else str(value).lower())
        known = self._numbers.get(kind)
        if known is None:
            if self._long is not None and kind is Kind.DECIMAL:
                assert isinstance(value, Decimal)
                return self._long(decimal_text(value))
            return self.array if kind is Kind.ARRAY else self.other
        place, first = known
        return self._codes[first + place(number_key(value))]

    def _text(self, text: str) -> int:
        if self._texts is not None:
            code = self._texts.get(text)
            if code is not None:
                return code
            return self._place(text) if self._place is not None else 0
        for cast, place, first in self._casts:
            key = cast(text)
            if key is not None:
                return self._codes[first + place(key)]
        return self.other


def _placing(built: BuiltIndex, c: int, own: Ints32) -> Callable[[str], int]:
    """Return what finds the code of a text on a facet, given those of the facet's cells."""
    begin, end = int(built.lines.text_first[c]), int(built.lines.text_last[c])
    return lambda text: int(own[built.texts.place([text], begin, end)[0]])


def number_key(value: object) -> int:
    if isinstance(value, float):
        return float_key(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, Decimal):
        return decimal_key(value)
    assert isinstance(value, dt.date)
    return micros(value)
