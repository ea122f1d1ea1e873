"""Events to the codes of one index's columns: many together, or one by dictionaries and bisection."""

from __future__ import annotations

import datetime as dt
from bisect import bisect_right
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from headgate.core.casts import to_bool, to_date, to_double, to_int, to_timestamp
from headgate.core.interning import TextPool
from headgate.core.values import Kind, kind_of, micros
from headgate.records.events.columns import BatchColumns, Column, Columns, EventColumns
from headgate.records.index.arrays import Events
from headgate.records.index.grams import GRAMS, event_grams
from headgate.records.index.lines import ARRAY_CELL, NULL_CELL, OTHER_CELL
from headgate.records.programs.decimals import decimal_key, decimal_text
from headgate.records.programs.leaves import TEXT_FACETS, Facet, float_key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from headgate.core.values import Path
    from headgate.records.index.arrays import RecordArrays
    from headgate.records.index.build import BuiltIndex


OWN = {
    Facet.BOOL: Kind.BOOL,
    Facet.INT: Kind.INT,
    Facet.FLOAT: Kind.FLOAT,
    Facet.DECIMAL: Kind.DECIMAL,
    Facet.TIMESTAMP: Kind.TIMESTAMP,
}


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


def encode_batch(batch: pa.RecordBatch, index: BuiltIndex) -> Events:
    """Encode an Arrow batch; columns that no filter names are not looked at."""
    return encode(BatchColumns(batch), index)


def encode_events(events: Sequence[Mapping[Path, object]], index: BuiltIndex) -> Events:
    """Encode events given as flattened Python values."""
    return encode(EventColumns(events), index)


def compared(index: BuiltIndex) -> set[int]:
    """List the attributes that filters look into, beyond whether they are there."""
    inside = index.lines.line_attribute[index.lines.column_line]
    return {*inside.tolist(), *index.arrays.glob_attribute.tolist()}


def encode(source: Columns, index: BuiltIndex) -> Events:
    """Encode a batch of events for an index."""
    for attribute in compared(index):
        source.refuse_foreign(index.attributes[attribute])
    columns = [source(path) for path in index.attributes]
    count = source.count
    lines = index.lines
    codes = np.zeros((count, lines.size), np.int32)
    multi_start = np.zeros((lines.size, count + 1), np.int64)
    elements: list[NDArray[np.int32]] = []
    total = 0
    of_line = np.searchsorted(lines.column_line, np.arange(lines.size + 1)).tolist()
    for line in range(lines.size):
        column = columns[lines.line_attribute[line]]
        cells = lines.cell_code[lines.cell_base[line] : lines.cell_base[line + 1]]
        facets = range(of_line[line], of_line[line + 1])
        if lines.line_multi[line] == GRAMS:
            known = lines.grams[lines.gram_start[line] : lines.gram_start[line + 1]]
            begin, found = event_grams(*text_forms(column), known)
            multi_start[line] = begin + total
            elements.append(found)
            total += len(found)
        elif not lines.line_multi[line]:
            codes[:, line] = cells[_cells(column, facets, index)]
        else:
            codes[:, line] = column.kind == Kind.ARRAY
            multi_start[line] = column.start + total
            if column.elements is not None:
                found = cells[_cells(column.elements, facets, index)]
                elements.append(found)
                total += len(found)
    text_of, pool = _glob_texts(columns, count, index.arrays)
    return Events(
        codes=codes,
        multi_start=multi_start,
        multi_codes=np.concatenate([np.zeros(0, np.int32), *elements]),
        text_of=text_of,
        text_offsets=pool.offsets,
        text_data=pool.data,
    )


_SPECIAL = np.full(max(Kind) + 1, OTHER_CELL, np.int64)
_SPECIAL[Kind.NULL] = NULL_CELL
_SPECIAL[Kind.ARRAY] = ARRAY_CELL


def _cells(column: Column, facets: range, index: BuiltIndex) -> NDArray[np.int64]:
    """Return the cell of each value on the line that some facets belong to."""
    lines = index.lines
    kinds = np.bincount(column.kind, minlength=max(Kind) + 1)
    cells = _SPECIAL[column.kind]
    for c in facets:
        facet, first = Facet(int(lines.column_facet[c])), lines.column_cell[c]
        thresholds = lines.thresholds[lines.threshold_start[c] : lines.threshold_start[c + 1]]
        if facet in OWN:
            if kinds[OWN[facet]]:
                mine = column.kind == OWN[facet]
                cells[mine] = first + np.searchsorted(thresholds, column.number[mine], side="right")
        elif facet is Facet.LONG_DECIMAL:
            if column.decimals is not None:
                place, digits = column.decimals.texts
                places = index.texts.place_pool(digits, lines.text_first[c], lines.text_last[c])
                cells[column.decimals.rows] = first + places[place]
        elif facet in TEXT_FACETS:
            code, texts = (column.code, column.texts) if facet is Facet.STRING else text_forms(column)
            if texts.size:
                places = index.texts.place_pool(texts, lines.text_first[c], lines.text_last[c])
                cells = np.where(code >= 0, first + places[code], cells)
        elif kinds[Kind.STRING]:
            casts = [CASTS[facet](text) for text in column.texts.texts()]
            able = np.array([key is not None for key in casts], bool)
            keys = np.array([0 if key is None else key for key in casts], np.int64)
            found = np.where(able, first + np.searchsorted(thresholds, keys, side="right"), OTHER_CELL)
            cells = np.where(column.code >= 0, found[column.code], cells)
    return cells


def text_forms(column: Column) -> tuple[NDArray[np.int32], TextPool]:
    """Return what LIKE sees: texts as they are, whole numbers and Booleans written out."""
    written = (column.kind == Kind.INT) | (column.kind == Kind.BOOL)
    if not written.any():
        return column.code, column.texts
    places = {text: place for place, text in enumerate(column.texts.texts())}
    code = column.code.copy()
    for i in np.flatnonzero(written):
        number = int(column.number[i])
        text = str(number) if column.kind[i] == Kind.INT else str(bool(number)).lower()
        code[i] = places.setdefault(text, len(places))
    return code, TextPool.build(places)


def _glob_texts(
    columns: Sequence[Column], count: int, arrays: RecordArrays
) -> tuple[NDArray[np.int32], TextPool]:
    """Find the texts that patterns see; those of all attributes lie in one pool."""
    text_of = np.full((len(arrays.glob_attribute), count), -1, np.int32)
    offsets = [np.zeros(1, np.int64)]
    data: list[NDArray[np.uint8]] = [np.zeros(0, np.uint8)]
    texts = size = 0
    for side, attribute in enumerate(arrays.glob_attribute.tolist()):
        code, pool = text_forms(columns[attribute])
        text_of[side] = np.where(code >= 0, code + texts, -1)
        offsets.append(pool.offsets[1:] + size)
        data.append(pool.data)
        texts += pool.size
        size += len(pool.data)
    return text_of, TextPool(np.concatenate(offsets), np.concatenate(data))


_NO_TEXTS = TextPool.build([])


_MANY, _STEP = 4_096, 256
"""Numbers of which objects are made: those of a line may be millions. Of more, one in so many."""


class _Long:
    """Many rising numbers, and some of them for a first look: the others are seldom in a cache."""

    def __init__(self, values: NDArray[Any]) -> None:
        self._all = np.ascontiguousarray(values).data
        self._some: list[int] = values[::_STEP].tolist()

    def place(self, key: int) -> int:
        """Count those that are at most a key."""
        begin = max(0, bisect_right(self._some, key) - 1) * _STEP
        return bisect_right(self._all, key, begin, min(begin + _STEP, len(self._all)))


def _placing_among(values: NDArray[Any]) -> Callable[[int], int]:
    """Return what counts the numbers that are at most a key."""
    return _Long(values).place if len(values) > _MANY else partial(bisect_right, values.tolist())


class _Line:
    """One line, ready for single values."""

    def __init__(self, built: BuiltIndex, line: int) -> None:
        lines = built.lines
        self.number = line
        self.multi = bool(lines.line_multi[line])
        codes = lines.cell_code[lines.cell_base[line] : lines.cell_base[line + 1]]
        self._codes: Sequence[int] = (
            codes.tolist() if len(codes) <= _MANY else np.ascontiguousarray(codes).data
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
        texts = (built.texts.text(place) for place in range(begin, end))
        self._texts = dict(zip(texts, own[1::2].tolist(), strict=True))
        if own[::2].any():
            self._place = _placing(built, c, own)

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


class SingleEncoder:
    """Encodes one event; a value costs about a microsecond."""

    def __init__(self, built: BuiltIndex) -> None:
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
