"""One event at a time to codes: dictionaries and bisection instead of columns."""

from __future__ import annotations

import datetime as dt
from bisect import bisect_right
from typing import TYPE_CHECKING

import numpy as np

from headgate.core.interning import TextPool
from headgate.core.values import Kind, kind_of, micros
from headgate.records.events.encode import CASTS, OWN
from headgate.records.index.arrays import Events
from headgate.records.index.grams import GRAMS, event_grams
from headgate.records.index.lines import ARRAY_CELL, NULL_CELL, OTHER_CELL
from headgate.records.programs.leaves import TEXT_FACETS, Facet, float_key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from numpy.typing import NDArray

    from headgate.core.values import Path
    from headgate.records.index.build import Built

_NO_TEXTS = TextPool.build([])


class _Line:
    """One line, ready for single values."""

    def __init__(self, built: Built, line: int) -> None:
        lines = built.lines
        self.number = line
        self.multi = bool(lines.line_multi[line])
        codes = lines.cell_code[lines.cell_base[line] : lines.cell_base[line + 1]]
        self._codes: list[int] = codes.tolist()
        self.null: int = self._codes[NULL_CELL]
        self.other: int = self._codes[OTHER_CELL]
        self.array: int = self._codes[ARRAY_CELL]
        self._numbers: dict[Kind, tuple[list[int], int]] = {}
        self._casts: list[tuple[Callable[[str], int | None], list[int], int]] = []
        self._texts: dict[str, int] | None = None
        self._forms = False
        self._place: Callable[[str], int] | None = None
        for c in np.flatnonzero(lines.column_line == line).tolist():
            facet, first = Facet(int(lines.column_facet[c])), int(lines.column_cell[c])
            thresholds = lines.thresholds[lines.threshold_start[c] : lines.threshold_start[c + 1]].tolist()
            if facet in OWN:
                self._numbers[OWN[facet]] = (thresholds, first)
            elif facet in TEXT_FACETS:
                self._open_texts(built, c, first, codes)
                self._forms = facet is Facet.TEXT
            else:
                self._casts.append((CASTS[facet], thresholds, first))

    def _open_texts(self, built: Built, c: int, first: int, codes: NDArray[np.int32]) -> None:
        """Look named texts up; others are placed among them only if some filter covers the gaps."""
        begin, end = int(built.lines.text_first[c]), int(built.lines.text_last[c])
        own = codes[first : first + 2 * (end - begin) + 1]
        texts = (built.texts.text(place) for place in range(begin, end))
        self._texts = dict(zip(texts, own[1::2].tolist(), strict=True))
        if own[::2].any():
            pool = built.texts
            self._place = lambda text: int(own[pool.place([text], begin, end)[0]])

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
            return self.array if kind is Kind.ARRAY else self.other
        thresholds, first = known
        return self._codes[first + bisect_right(thresholds, _number(value))]

    def _text(self, text: str) -> int:
        if self._texts is not None:
            found = self._texts.get(text)
            if found is not None:
                return found
            return self._place(text) if self._place is not None else 0
        for cast, thresholds, first in self._casts:
            key = cast(text)
            if key is not None:
                return self._codes[first + bisect_right(thresholds, key)]
        return self.other


def _number(value: object) -> int:
    if isinstance(value, float):
        return float_key(value)
    if isinstance(value, int):
        return int(value)
    assert isinstance(value, dt.date)
    return micros(value)


class SingleEncoder:
    """Encodes one event; a value costs about a microsecond."""

    def __init__(self, built: Built) -> None:
        self._built = built
        lines = built.lines
        self._grams: dict[Path, int] = {}
        self._lines: dict[Path, list[_Line]] = {path: [] for path in built.attributes}
        for line in range(lines.size):
            path = built.attributes[lines.line_attribute[line]]
            if lines.line_multi[line] == GRAMS:
                self._grams[path] = line
            else:
                self._lines[path].append(_Line(built, line))
        self._nulls = np.zeros((1, lines.size), np.int32)
        for owned in self._lines.values():
            for own in owned:
                self._nulls[0, own.number] = 0 if own.multi else own.null
        self._no_multi = np.zeros((lines.size, 2), np.int64)
        self._globs = [built.attributes[attribute] for attribute in built.arrays.glob_attribute.tolist()]

    def encode(self, attributes: Mapping[Path, object]) -> Events:
        """Encode the values of one event."""
        codes = self._nulls.copy()
        elements: list[tuple[int, list[int]]] = []
        row = codes[0]
        for path, value in attributes.items():
            lines = self._lines.get(path)
            if not lines:
                continue
            kind = kind_of(value)
            for line in lines:
                if not line.multi:
                    row[line.number] = line.code(value, kind)
                elif kind is Kind.ARRAY:
                    row[line.number] = 1
                    assert isinstance(value, list | tuple)
                    elements.append((line.number, [line.code(item, kind_of(item)) for item in value]))
        elements.extend(self._gram_codes(attributes))
        multi_start, multi_codes = self._no_multi, np.zeros(0, np.int32)
        if elements:
            multi_start = self._no_multi.copy()
            at = 0
            for number, found in elements:
                multi_start[number] = at, at + len(found)
                at += len(found)
            multi_codes = np.array([code for _, found in elements for code in found], np.int32)
        text_of, pool = self._texts(attributes)
        return Events(codes, multi_start, multi_codes, text_of, pool.offsets, pool.data)

    def _gram_codes(self, attributes: Mapping[Path, object]) -> Iterator[tuple[int, list[int]]]:
        lines = self._built.lines
        for path, line in self._grams.items():
            text = _form(attributes.get(path))
            if text is not None:
                known = lines.grams[lines.gram_start[line] : lines.gram_start[line + 1]]
                _, found = event_grams(np.zeros(1, np.int32), TextPool.build([text]), known)
                yield line, found.tolist()

    def _texts(self, attributes: Mapping[Path, object]) -> tuple[NDArray[np.int32], TextPool]:
        forms = [_form(attributes.get(path)) for path in self._globs]
        text_of = np.full((len(forms), 1), -1, np.int32)
        texts = [text for text in forms if text is not None]
        if texts:
            text_of[[form is not None for form in forms], 0] = np.arange(len(texts))
        return text_of, TextPool.build(texts) if texts else _NO_TEXTS


def _form(value: object) -> str | None:
    """Return what LIKE sees of a value."""
    kind = kind_of(value)
    if kind not in {Kind.STRING, Kind.INT, Kind.BOOL}:
        return None
    return str(value).lower() if kind is Kind.BOOL else str(value)
