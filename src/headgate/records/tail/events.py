"""An event to the keys of a tail's columns, which are numbered as filters name them."""

from __future__ import annotations

from array import array
from decimal import Decimal
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

import numpy as np

from headgate.core.values import Kind, kind_of
from headgate.records.computed import compute, is_computed, text_form
from headgate.records.events.encode import CASTS, number_key
from headgate.records.programs.decimals import decimal_text
from headgate.records.programs.leaves import OWN, TEXT_FACETS, Facet
from headgate.records.tail.kernels import COLUMNS, ELEMENTS, HAS, OTHER, TailEvent

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headgate.core.values import Path

_OWN = {int(facet): kind for facet, kind in OWN.items()}
_TEXTS = tuple(int(facet) for facet in TEXT_FACETS)
_PRESENT, _ARRAY, _TEXT = int(Facet.PRESENT), int(Facet.ARRAY), int(Facet.TEXT)
_STRING, _LONG = int(Facet.STRING), int(Facet.LONG_DECIMAL)
_CASTS = {int(facet): cast for facet, cast in CASTS.items()}


class Side(NamedTuple):
    """One attribute, and the facets that filters ask of its values and elements; lists only grow.

    Whether there is a value, and which elements are NULL, is always told.
    """

    number: int
    values: list[int]
    elements: list[int]


class Sides:
    """The attributes of a tail. One thread adds; a reader leaves out attributes beyond its number."""

    def __init__(self) -> None:
        self.of: dict[Path, Side] = {}
        self.computed: list[Path] = []

    def side(self, path: Path) -> Side:
        """Return an attribute, new or known."""
        side = self.of.get(path)
        if side is None:
            side = self.of[path] = Side(len(self.of), [], [])
            if is_computed(path):
                self.computed.append(path)
        return side


ALL_BITS = 2**63 - 1


def text_hash(text: bytes) -> int:
    """Stand for a text in guards."""
    return crc32(text)


def hash_bit(code: int) -> int:
    """Return the bit of a hash; no sign is among them."""
    return 1 << code % 63


def encode_one(sides: Sides, named: int, attributes: Mapping[Path, object]) -> TailEvent:
    """Encode one event for the first attributes that the tail names; others are not looked at."""
    has_array = np.zeros(COLUMNS * named, np.uint8)
    key_array, bit_array, place_array = np.zeros((3, COLUMNS * named), np.int64)
    bit_array.fill(ALL_BITS)
    has, keys, bits, places = has_array.data, key_array.data, bit_array.data, place_array.data
    multi_has, multi_keys = bytearray(), array("q")
    texts: list[bytes] = []
    known = sides.of
    given = attributes.items()
    if sides.computed:
        more = [(path, compute(path, attributes)) for path in list(sides.computed)]
        given = chain(given, more)  # type: ignore[assignment]
    for path, value in given:
        side = known.get(path)
        if side is None or value is None or side.number >= named:
            continue
        kind, base = kind_of(value), COLUMNS * side.number
        has[base + _PRESENT] = HAS
        for facet in side.values:
            column = base + facet
            # Most columns of numbers are of another kind than the value.
            key = _key(value, kind, facet, texts) if _OWN.get(facet, kind) is kind else None
            if key is None:
                has[column] = OTHER
                continue
            has[column] = HAS
            if facet in _TEXTS:
                places[column] = key
                key = text_hash(texts[key])
                bits[column] = hash_bit(key)
            keys[column] = key
        if kind is Kind.ARRAY:
            assert isinstance(value, list | tuple)
            for facet in side.elements:
                column = base + ELEMENTS + facet
                has[column], places[column] = HAS, len(multi_keys)
                item_keys = [_key(item, kind_of(item), facet, texts) for item in value]
                multi_has.extend([0, *(key is not None for key in item_keys)])
                multi_keys.extend([len(value), *(key or 0 for key in item_keys)])
                if facet in _TEXTS:
                    there = [key for key in item_keys if key is not None]
                    bits[column] = sum({hash_bit(text_hash(texts[key])) for key in there})
    offsets = array("q", [0])
    for text in texts:
        offsets.append(offsets[-1] + len(text))
    return TailEvent(
        has_array,
        key_array,
        bit_array,
        place_array,
        np.frombuffer(multi_has, np.uint8),
        np.frombuffer(multi_keys, np.int64),
        np.frombuffer(offsets, np.int64),
        # Of a bytearray, because bytes would make an array that cannot be written: another type to the JIT.
        np.frombuffer(bytearray().join(texts), np.uint8),
    )


def _key(value: object, kind: Kind, facet: int, texts: list[bytes]) -> int | None:
    """Return the key of a value on a facet, or None if it has none."""
    if facet == _PRESENT:
        return None if kind is Kind.NULL else 0
    if facet == _ARRAY:
        return 0 if kind is Kind.ARRAY else None
    if _OWN.get(facet) is kind:
        return number_key(value)
    if facet in _CASTS:
        return _CASTS[facet](value) if isinstance(value, str) else None
    text: str | None = None
    if facet == _LONG:
        text = decimal_text(value) if isinstance(value, Decimal) else None
    elif facet == _TEXT or (facet == _STRING and kind is Kind.STRING):
        text = text_form(value)
    if text is None:
        return None
    texts.append(text.encode())
    return len(texts) - 1
