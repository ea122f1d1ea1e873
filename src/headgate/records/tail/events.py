"""Events to the keys of a tail's columns, which are numbered as filters name them."""

from __future__ import annotations

import datetime as dt
from array import array
from decimal import Decimal
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

import numpy as np

from headgate.core.values import Kind, kind_of, micros
from headgate.records.computed import compute, is_computed
from headgate.records.events.columns import text_forms
from headgate.records.events.encode import CASTS, OWN
from headgate.records.programs.decimals import decimal_key, decimal_text
from headgate.records.programs.leaves import TEXT_FACETS, Facet, float_key
from headgate.records.tail.arrays import ELEMENT, FACETS, TEXT, TailEvents
from headgate.records.tail.kernels import hash_texts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from numpy.typing import NDArray

    from headgate.core.interning import TextPool
    from headgate.core.values import Path
    from headgate.records.events.columns import Column

_OWN = {int(facet): kind for facet, kind in OWN.items()}
_TEXTS = tuple(int(facet) for facet in TEXT_FACETS)
_FORMS = {Kind.STRING, Kind.INT, Kind.BOOL}
_PRESENT, _ARRAY, _STRING = int(Facet.PRESENT), int(Facet.ARRAY), int(Facet.STRING)
_LONG = int(Facet.LONG_DECIMAL)
_CASTS = {int(facet): cast for facet, cast in CASTS.items()}


class Side(NamedTuple):
    """One attribute, and its columns so far, as (column, facet); lists and dictionaries only grow."""

    number: int
    values: list[tuple[int, int]]
    elements: list[tuple[int, int]]
    column_of: dict[int, int]


class Sides:
    """The attributes and columns of a tail. One thread adds; a reader leaves out columns beyond its width."""

    def __init__(self) -> None:
        self.of: dict[Path, Side] = {}
        self.computed: list[Path] = []
        self.width = 0

    def side(self, path: Path) -> Side:
        """Return an attribute, new or known."""
        found = self.of.get(path)
        if found is None:
            found = self.of[path] = Side(len(self.of), [], [], {})
            if is_computed(path):
                self.computed.append(path)
        return found

    def add(self, side: Side, flags: int) -> int:
        """Number a column, given as in `TailArrays.columns`."""
        number = self.width
        # First, so that a number is not given twice if the rest fails.
        self.width += 1
        (side.elements if flags & ELEMENT else side.values).append((number, flags >> FACETS))
        side.column_of[flags] = number
        return number


def flags_of(facet: int, *, element: bool) -> int:
    """Describe a column as `TailArrays.columns` does."""
    return facet << FACETS | (TEXT if facet in _TEXTS else 0) | (ELEMENT if element else 0)


def text_hash(text: bytes) -> int:
    """Stand for a text in hashes of keys."""
    return crc32(text)


def within(columns: list[tuple[int, int]], width: int) -> Iterator[tuple[int, int]]:
    """List the columns that a reader knows of."""
    for column in columns:
        if column[0] >= width:
            break
        yield column


def encode_columns(
    sides: Sides, width: int, paths: list[Path], columns: Callable[[Path], Column], count: int
) -> TailEvents:
    """Encode a batch of events."""
    keys = np.zeros((count, width), np.int64)
    has = np.zeros((count, width), np.uint8)
    multi_keys: list[NDArray[np.int64]] = [np.zeros(0, np.int64)]
    multi_has: list[NDArray[np.uint8]] = [np.zeros(0, np.uint8)]
    multi = 0
    texts = _Texts()
    for path in paths:
        side, column = sides.of[path], columns(path)
        other = np.where(column.kind == Kind.NULL, np.uint8(0), np.uint8(2))
        for number, facet in within(side.values, width):
            keys[:, number], there = _keys(column, facet, texts)
            has[:, number] = np.where(there, np.uint8(1), other)
        arrays = column.kind == Kind.ARRAY
        if column.elements is None or not arrays.any():
            continue
        lengths = np.diff(column.start)
        # Every list is preceded by its length.
        heads = column.start[:-1] + np.arange(count)
        inside = np.arange(len(column.elements.kind)) + np.repeat(np.arange(count), lengths) + 1
        for number, facet in within(side.elements, width):
            own_keys = np.zeros(count + len(inside), np.int64)
            own_has = np.zeros(count + len(inside), np.uint8)
            own_keys[inside], own_has[inside] = _keys(column.elements, facet, texts)
            own_keys[heads] = lengths
            keys[:, number], has[:, number] = heads + multi, arrays
            multi += len(own_keys)
            multi_keys.append(own_keys)
            multi_has.append(own_has)
    return TailEvents(
        keys.reshape(-1),
        has.reshape(-1),
        np.concatenate(multi_keys),
        np.concatenate(multi_has),
        *texts.finish(),
    )


class _Texts:
    """The texts of several columns in one pool."""

    def __init__(self) -> None:
        self._pools: list[TextPool] = []
        self._texts = 0

    def add(self, pool: TextPool) -> int:
        """Append texts; returns the number of the first."""
        first = self._texts
        self._pools.append(pool)
        self._texts += pool.size
        return first

    def finish(self) -> tuple[NDArray[np.int64], NDArray[np.uint8], NDArray[np.int64]]:
        lengths = np.concatenate([np.zeros(1, np.int64), *(np.diff(pool.offsets) for pool in self._pools)])
        offsets = np.cumsum(lengths)
        data = np.concatenate([np.zeros(0, np.uint8), *(pool.data for pool in self._pools)])
        hashes = np.empty(len(offsets) - 1, np.int64)
        hash_texts(data, offsets, _REMAINDERS, hashes)
        return offsets, data, hashes


def _remainders() -> NDArray[np.int64]:
    """Return what a byte adds to a CRC-32."""
    found = np.arange(256)
    for _ in range(8):
        found = np.where(found & 1, (found >> 1) ^ 0xEDB88320, found >> 1)
    return found


_REMAINDERS = _remainders()


def _keys(column: Column, facet: int, texts: _Texts) -> tuple[NDArray[np.int64] | int, NDArray[np.bool_]]:
    """Return the keys of values on a facet, and which values have it."""
    if facet == _PRESENT:
        return 0, column.kind != Kind.NULL
    if facet == _ARRAY:
        return 0, column.kind == Kind.ARRAY
    if facet in _OWN:
        return column.number, column.kind == _OWN[facet]
    if facet == _LONG:
        return _digits(column, texts)
    code, pool = (column.code, column.texts) if facet != Facet.TEXT else text_forms(column)
    there = code >= 0
    if facet in _TEXTS:
        return code.astype(np.int64) + texts.add(pool), there
    if not there.any():
        return 0, there
    casts = [_CASTS[facet](text) for text in pool.texts()]
    able = np.array([key is not None for key in casts], bool)
    found = np.array([key or 0 for key in casts], np.int64)
    return found[code], there & able[code]


def _digits(column: Column, texts: _Texts) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the keys of decimals for literals of many digits."""
    keys = np.zeros(len(column.kind), np.int64)
    if column.decimals is not None:
        code, pool = column.decimals.texts
        keys[column.decimals.rows] = code + texts.add(pool)
    return keys, column.kind == Kind.DECIMAL


def encode_one(sides: Sides, width: int, attributes: Mapping[Path, object]) -> TailEvents:
    """Encode one event; attributes that the tail does not name are not looked at."""
    keys, has = array("q", bytes(8 * width)), bytearray(width)
    multi_keys, multi_has = array("q"), bytearray()
    texts: list[bytes] = []
    known = sides.of
    given = attributes.items()
    if sides.computed:
        more = [(path, compute(path, attributes)) for path in list(sides.computed)]
        given = chain(given, more)  # type: ignore[assignment]
    for path, value in given:
        side = known.get(path)
        if side is None or value is None:
            continue
        kind = kind_of(value)
        for number, facet in side.values:
            if number >= width:
                break
            # Most columns of numbers are of another kind than the value.
            key = _key(value, kind, facet, texts) if _OWN.get(facet, kind) is kind else None
            if key is None:
                has[number] = 2
            else:
                keys[number], has[number] = key, 1
        if kind is Kind.ARRAY:
            assert isinstance(value, list | tuple)
            for number, facet in within(side.elements, width):
                keys[number], has[number] = len(multi_keys), 1
                found = [_key(item, kind_of(item), facet, texts) for item in value]
                multi_keys.extend([len(value), *(key or 0 for key in found)])
                multi_has.extend([0, *(key is not None for key in found)])
    offsets, hashes = array("q", [0]), array("q")
    for text in texts:
        offsets.append(offsets[-1] + len(text))
        hashes.append(text_hash(text))
    return TailEvents(
        np.frombuffer(keys, np.int64),
        np.frombuffer(has, np.uint8),
        np.frombuffer(multi_keys, np.int64),
        np.frombuffer(multi_has, np.uint8),
        np.frombuffer(offsets, np.int64),
        # Of a bytearray, because bytes would make an array that cannot be written: another type to the JIT.
        np.frombuffer(bytearray().join(texts), np.uint8),
        np.frombuffer(hashes, np.int64),
    )


def _key(value: object, kind: Kind, facet: int, texts: list[bytes]) -> int | None:
    """Return the key of a value on a facet, or None if it has none."""
    if facet == _PRESENT:
        return None if kind is Kind.NULL else 0
    if kind is Kind.STRING:
        assert isinstance(value, str)
        if facet in _TEXTS:
            if facet == _LONG:
                return None
            texts.append(value.encode())
            return len(texts) - 1
        cast = _CASTS.get(facet)
        return None if cast is None else cast(value)
    if kind is Kind.DECIMAL and facet == _LONG:
        assert isinstance(value, Decimal)
        texts.append(decimal_text(value).encode())
        return len(texts) - 1
    if _OWN.get(facet) is kind:
        if isinstance(value, float):
            return float_key(value)
        if isinstance(value, int):
            return int(value)
        if isinstance(value, Decimal):
            return decimal_key(value)
        assert isinstance(value, dt.date)
        return micros(value)
    if facet == Facet.TEXT and kind in _FORMS:
        texts.append((str(value) if kind is Kind.INT else str(value).lower()).encode())
        return len(texts) - 1
    return 0 if facet == _ARRAY and kind is Kind.ARRAY else None
