"""Events to the keys of one index's columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from headgate.core.casts import to_bool, to_date, to_double, to_int, to_timestamp
from headgate.core.interning import TextPool
from headgate.core.values import Kind, dotted
from headgate.errors import EventError
from headgate.records.arrays import Events
from headgate.records.columns import Column, find_column, from_arrow, from_values, missing
from headgate.records.facets import Facet, float_key
from headgate.records.kernels import match_globs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from headgate.core.values import Path
    from headgate.records.arrays import RecordArrays
    from headgate.records.build import Built

_OWN = {
    Facet.BOOL: Kind.BOOL,
    Facet.INT: Kind.INT,
    Facet.FLOAT: Kind.FLOAT,
    Facet.TIMESTAMP: Kind.TIMESTAMP,
}


def _float_cast(text: str) -> int | None:
    value = to_double(text)
    return None if value is None else float_key(value)


_CASTS: dict[Facet, Callable[[str], int | None]] = {
    Facet.STRING_BOOL: to_bool,
    Facet.STRING_INT: to_int,
    Facet.STRING_FLOAT: _float_cast,
    Facet.STRING_DATE: to_date,
    Facet.STRING_TIMESTAMP: to_timestamp,
}


def encode_batch(batch: pa.RecordBatch, index: Built) -> Events:
    """Encode an Arrow batch; columns that no filter names are not looked at."""
    columns = []
    compared = _compared(index.arrays)
    for number, path in enumerate(index.attributes):
        array = find_column(batch, path)
        if array is not None and pa.types.is_decimal(array.type) and number in compared:
            raise EventError(
                f"column {dotted(path)} is {array.type}, which filters cannot compare: cast it to float64"
            )
        columns.append(missing(batch.num_rows) if array is None else from_arrow(array))
    return _encode(columns, batch.num_rows, index)


def _compared(arrays: RecordArrays) -> set[int]:
    """List the attributes that filters look into, beyond whether they are there."""
    inside = ~np.isin(arrays.column_facet, [Facet.PRESENT, Facet.ARRAY])
    return {*arrays.column_attribute[inside].tolist(), *arrays.glob_attribute.tolist()}


def encode_events(events: Sequence[Mapping[Path, object]], index: Built) -> Events:
    """Encode events given as flattened Python values."""
    columns = [from_values([event.get(path) for event in events]) for path in index.attributes]
    return _encode(columns, len(events), index)


def _encode(columns: Sequence[Column], count: int, index: Built) -> Events:
    arrays = index.arrays
    width = len(arrays.column_facet)
    keys = np.zeros((width, count), np.int64)
    has = np.zeros((width, count), np.uint8)
    element_base = np.full(width, -1, np.int64)
    element_keys: list[NDArray[np.int64]] = []
    element_has: list[NDArray[np.uint8]] = []
    total = 0
    for c in range(width):
        column = columns[arrays.column_attribute[c]]
        if not arrays.column_element[c]:
            keys[c], has[c] = _facet_keys(column, c, index)
        elif column.elements is not None:
            found, present = _facet_keys(column.elements, c, index)
            if not present.any():
                continue
            element_base[c] = total
            element_keys.append(found)
            element_has.append(present)
            total += len(found)
    return Events(
        keys=keys,
        has=has,
        used=np.asarray(has.any(axis=1), np.uint8),
        is_null=_stack([column.kind == Kind.NULL for column in columns], count),
        is_array=_stack([column.kind == Kind.ARRAY for column in columns], count),
        array_start=np.array([column.start for column in columns], np.int64).reshape(len(columns), count + 1),
        element_base=element_base,
        element_keys=np.concatenate([np.zeros(0, np.int64), *element_keys]),
        element_has=np.concatenate([np.zeros(0, np.uint8), *element_has]),
        globs=_encode_globs(columns, count, arrays),
    )


def _stack(rows: list[NDArray[np.bool_]], count: int) -> NDArray[np.uint8]:
    return np.array(rows, np.uint8).reshape(len(rows), count)


def _facet_keys(column: Column, c: int, index: Built) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Return the keys of a column on one facet, and which values have that facet."""
    facet = Facet(int(index.arrays.column_facet[c]))
    if facet in _OWN:
        return column.number, (column.kind == _OWN[facet]).astype(np.uint8)
    if facet is Facet.PRESENT:
        return np.zeros(len(column.kind), np.int64), (column.kind != Kind.NULL).astype(np.uint8)
    if facet is Facet.ARRAY:
        return np.zeros(len(column.kind), np.int64), (column.kind == Kind.ARRAY).astype(np.uint8)
    if facet in _CASTS:
        casts = [_CASTS[facet](text) for text in column.texts]
        found = np.array([0 if key is None else key for key in casts], np.int64)
        able = np.array([key is not None for key in casts], bool)
        return _spread(column.code, found, able)
    code, texts = text_forms(column) if facet is Facet.TEXT else (column.code, column.texts)
    first, last = index.arrays.text_first[c], index.arrays.text_last[c]
    return _spread(code, index.texts.place(texts, first, last), np.ones(len(texts), bool))


def _spread(
    code: NDArray[np.int32], keys: NDArray[np.int64], able: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Give each value the key of its text; code -1 has none."""
    has = np.append(able, False)[code].astype(np.uint8)
    return np.append(keys, 0)[code], has


def text_forms(column: Column) -> tuple[NDArray[np.int32], list[str]]:
    """Return what LIKE sees: texts as they are, whole numbers and Booleans written out."""
    written = (column.kind == Kind.INT) | (column.kind == Kind.BOOL)
    if not written.any():
        return column.code, column.texts
    texts = dict.fromkeys(column.texts)
    places = {text: place for place, text in enumerate(texts)}
    code = column.code.copy()
    for i in np.flatnonzero(written):
        number = int(column.number[i])
        text = str(number) if column.kind[i] == Kind.INT else str(bool(number)).lower()
        code[i] = places.setdefault(text, len(places))
    return code, list(places)


def _encode_globs(columns: Sequence[Column], count: int, arrays: RecordArrays) -> NDArray[np.uint8]:
    """Match each distinct text of an attribute against the patterns over it, once."""
    result = np.full((len(arrays.glob_attribute), count), 2, np.uint8)
    for attribute in np.unique(arrays.glob_attribute):
        globs = np.flatnonzero(arrays.glob_attribute == attribute).astype(np.int32)
        code, texts = text_forms(columns[attribute])
        fits = np.full((len(globs), len(texts) + 1), 2, np.uint8)
        match_globs(arrays, globs, TextPool.build(texts), fits)
        result[globs] = fits[:, code]
    return result
