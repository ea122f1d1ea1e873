"""Columns of many events to the codes of one index; for events given one by one see `rows.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headgate.core.casts import to_bool, to_date, to_double, to_int, to_timestamp
from headgate.core.interning import TextPool
from headgate.core.values import Kind
from headgate.records.computed import WORDS
from headgate.records.events.columns import BatchColumns, Column, Columns, EventColumns, text_forms
from headgate.records.index.arrays import Events
from headgate.records.index.grams import GRAMS, event_grams
from headgate.records.index.line_words import event_words
from headgate.records.index.lines import ARRAY_CELL, NULL_CELL, OTHER_CELL
from headgate.records.programs.leaves import TEXT_FACETS, Facet, float_key

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from headgate.core.values import Path
    from headgate.records.index.arrays import BuiltIndex, RecordArrays


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


def encode(given: Columns, index: BuiltIndex) -> Events:
    """Encode a batch of events for an index."""
    for attribute in compared(index):
        given.refuse_foreign(index.attributes[attribute])
    is_words = [path[:1] == (WORDS,) for path in index.attributes]
    columns = _Columns(given, index.attributes, is_words)
    count = given.count
    lines = index.lines
    by_line = np.zeros((lines.size, count), np.int32)
    multi_start = np.zeros((lines.size, count + 1), np.int64)
    elements: list[NDArray[np.int32]] = []
    total = 0
    of_line = np.searchsorted(lines.column_line, np.arange(lines.size + 1)).tolist()
    for line in range(lines.size):
        attribute = int(lines.line_attribute[line])
        cells = lines.cell_code[lines.cell_base[line] : lines.cell_base[line + 1]]
        facets = range(of_line[line], of_line[line + 1])
        fewer = None if lines.line_multi[line] else columns.distinct(attribute)
        if fewer is not None:
            by_line[line] = cells[_cells(fewer[0], facets, index)][fewer[1]]
            continue
        column = columns[attribute]
        if lines.line_multi[line] == GRAMS:
            known = lines.grams[lines.gram_start[line] : lines.gram_start[line + 1]]
            begin, found = event_grams(*text_forms(column), known)
            multi_start[line] = begin + total
            elements.append(found)
            total += len(found)
        elif is_words[attribute]:
            code, texts = text_forms(column)
            by_line[line] = code >= 0
            begin, found = event_words(code, texts, index, line)
            multi_start[line] = begin + total
            elements.append(found)
            total += len(found)
        elif not lines.line_multi[line]:
            by_line[line] = cells[_cells(column, facets, index)]
        else:
            by_line[line] = column.kind == Kind.ARRAY
            multi_start[line] = column.start + total
            if column.elements is not None:
                found = cells[_cells(column.elements, facets, index)]
                elements.append(found)
                total += len(found)
    text_of, pool = _glob_texts(columns, count, index.arrays)
    return Events(
        codes=_by_event(by_line),
        multi_start=multi_start,
        multi_codes=np.concatenate([np.zeros(0, np.int32), *elements]),
        text_of=text_of,
        text_offsets=pool.offsets,
        text_data=pool.data,
    )


class _Columns(dict[int, "Column"]):
    """The columns of attributes by their numbers, each read when it is first asked for."""

    def __init__(self, given: Columns, attributes: Sequence[Path], is_words: Sequence[bool]) -> None:
        super().__init__()
        self._given = given
        self._attributes = attributes
        self._is_words = is_words
        self._distinct: dict[int, tuple[Column, NDArray[np.int32]] | None] = {}

    def __missing__(self, attribute: int) -> Column:
        path = self._attributes[attribute]
        self[attribute] = self._given(path[1:] if self._is_words[attribute] else path)
        return self[attribute]

    def distinct(self, attribute: int) -> tuple[Column, NDArray[np.int32]] | None:
        """Return fewer values of a computed attribute, and which of them each event has."""
        if attribute not in self._distinct:
            self._distinct[attribute] = self._given.distinct(self._attributes[attribute])
        return self._distinct[attribute]


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


_BLOCK = 256
"""Events whose codes are turned together: they and their lines fit into a cache."""


def _by_event(by_line: NDArray[np.int32]) -> NDArray[np.int32]:
    """Turn codes of lines into those of events."""
    count = by_line.shape[1]
    found = np.empty((count, len(by_line)), np.int32)
    for first in range(0, count, _BLOCK):
        found[first : first + _BLOCK] = by_line[:, first : first + _BLOCK].T
    return found


_MANY = 64
"""Keys for which a table may be made."""
_SPREAD = 4
"""Places of a table for each key, at most."""


def _places(thresholds: NDArray[np.int64], keys: NDArray[np.int64]) -> NDArray[np.int64]:
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


def _glob_texts(
    columns: Mapping[int, Column], count: int, arrays: RecordArrays
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
