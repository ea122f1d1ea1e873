"""The code of one value on a line: by a dictionary of texts, and bisection among thresholds of numbers."""

from __future__ import annotations

import datetime as dt
from bisect import bisect_right
from copy import copy
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from headgate.core.values import Kind, micros
from headgate.records.events.encode import CASTS, OWN
from headgate.records.index.lines import ARRAY_CELL, NULL_CELL, OTHER_CELL
from headgate.records.programs.decimals import decimal_key, decimal_text
from headgate.records.programs.leaves import TEXT_FACETS, Facet, float_key

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from headgate.records.index.arrays import BuiltIndex

MANY, STEP = 4_096, 256
"""Numbers of which objects are made: those of a line may be millions. Of more, one in so many."""
LOOKED_UP = 1 << 16
"""Texts of a line that are kept in a dictionary, at most; among more, a text is searched for."""


class _Long:
    """Many rising numbers, and some of them for a first look: the others are seldom in a cache."""

    def __init__(self, values: NDArray[Any]) -> None:
        self._all = np.ascontiguousarray(values).data
        self._some: list[int] = values[::STEP].tolist()

    def place(self, key: int) -> int:
        """Count those that are at most a key."""
        begin = max(0, bisect_right(self._some, key) - 1) * STEP
        return bisect_right(self._all, key, begin, min(begin + STEP, len(self._all)))


def _placing_among(values: NDArray[Any]) -> Callable[[int], int]:
    """Return what counts the numbers that are at most a key."""
    return _Long(values).place if len(values) > MANY else partial(bisect_right, values.tolist())


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

    def _open_texts(self, built: BuiltIndex, c: int, first: int, codes: NDArray[np.int32]) -> None:
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
        found = copy(self)
        found.number += behind
        return found

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
        return self._codes[first + place(_number(value))]

    def _text(self, text: str) -> int:
        if self._texts is not None:
            found = self._texts.get(text)
            if found is not None:
                return found
            return self._place(text) if self._place is not None else 0
        for cast, place, first in self._casts:
            key = cast(text)
            if key is not None:
                return self._codes[first + place(key)]
        return self.other


def _placing(built: BuiltIndex, c: int, own: NDArray[np.int32]) -> Callable[[str], int]:
    """Return what finds the code of a text on a facet, given those of the facet's cells."""
    begin, end = int(built.lines.text_first[c]), int(built.lines.text_last[c])
    return lambda text: int(own[built.texts.place([text], begin, end)[0]])


def _number(value: object) -> int:
    if isinstance(value, float):
        return float_key(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, Decimal):
        return decimal_key(value)
    assert isinstance(value, dt.date)
    return micros(value)
