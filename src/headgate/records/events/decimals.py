"""Columns of decimals as keys: column by column, in NumPy, with the digits of Arrow's 128 or 256 bits.

A number of at most 15 digits becomes a double by one division, which rounds as a cast does. Of longer
ones Arrow reads the doubles, and those of their first 15 digits, from texts, which it rounds once.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.core.interning import TextPool
from headgate.core.values import MAX_DECIMAL
from headgate.errors import EventError
from headgate.records.programs.decimals import SHORT, SHORT_LIMIT, decimal_key, decimal_text, double_numbers

if TYPE_CHECKING:
    from collections.abc import Sequence
    from decimal import Decimal

    from headgate.core.arrays import Floats64, Ints, Words


_EXACT = 22
"""Powers of ten up to it are doubles without rounding."""


class Decimals:
    """Decimals of one column, for literals of many digits: rows[i] is the row of the i-th."""

    def __init__(self, rows: Ints, values: pa.Array[Any] | Sequence[Decimal]) -> None:
        self.rows = rows
        self._values = values

    @cached_property
    def texts(self) -> tuple[Ints, TextPool]:
        """Write them out, each once: the place of each in the pool, and the pool."""
        if isinstance(self._values, pa.Array):
            coded = self._values.dictionary_encode()
            code = np.asarray(coded.indices, np.int64)
            values: list[Any] = coded.dictionary.to_pylist()
            return code, TextPool.build(map(decimal_text, values))
        places: dict[str, int] = {}
        codes = [places.setdefault(decimal_text(value), len(places)) for value in self._values]
        return np.array(codes, np.int64), TextPool.build(places)


def python_keys(values: Sequence[Decimal]) -> Ints:
    """Return the keys of decimals of Python."""
    return np.fromiter(map(decimal_key, values), np.int64, len(values))


def widened(array: pa.Array[Any]) -> pa.Array[Any]:
    """Return decimals with 128 bits at least: of fewer, Arrow knows little."""
    kind: Any = array.type
    return array.cast(pa.decimal128(kind.precision, kind.scale)) if kind.bit_width < 128 else array


def decimal_keys(array: pa.Array[Any]) -> Ints:
    """Return the keys of an Arrow array of decimals without nulls, of 128 bits or 256.

    >>> from decimal import Decimal
    >>> given = [Decimal("0.10"), Decimal("-12345678901234567890.25"), Decimal(0)]
    >>> decimal_keys(pa.array(given, pa.decimal128(38, 2))).tolist() == [decimal_key(each) for each in given]
    True
    """
    kind: Any = array.type
    if kind.scale > MAX_DECIMAL or kind.precision - kind.scale > MAX_DECIMAL:
        raise EventError(f"decimals of type {kind} have more than {MAX_DECIMAL} digits: cast them to string")
    words = _words(array)
    low = words[:, 0].view(np.int64) if len(words) else np.zeros(0, np.int64)
    # The higher words repeat the sign of the lowest.
    plain = (
        (low >= -SHORT_LIMIT)
        & (low <= SHORT_LIMIT)
        & (words[:, 1:].view(np.int64) == (low >> 63)[:, None]).all(axis=1)
    )
    if abs(kind.scale) > _EXACT:
        plain &= low == 0
    if plain.all():
        return 3 * double_numbers(_scaled(low, kind.scale)) + 1
    keys = np.empty(len(low), np.int64)
    keys[plain] = 3 * double_numbers(_scaled(low[plain], kind.scale)) + 1
    rest = np.flatnonzero(~plain)
    keys[rest] = _long_keys(array.take(rest))
    return keys


def _long_keys(array: pa.Array[Any]) -> Ints:
    """Return the keys of decimals that are not 0, whatever their size."""
    kind: Any = array.type
    written = array.view(pa.decimal128(38) if kind.bit_width == 128 else pa.decimal256(76)).cast(pa.string())
    digits: Any = pc.utf8_ltrim(written, "-")
    size = pc.binary_length(digits)
    own = _parsed(digits, pa.scalar(-kind.scale))
    short = _parsed(pc.utf8_slice_codeunits(digits, 0, SHORT), pc.subtract(size, SHORT + kind.scale))
    some: Any = pc.utf8_rtrim(digits, "0")
    more = np.asarray(pc.binary_length(some)) > SHORT
    # The short decimal below is that of the same double, or that double's is above, or it has none.
    keys = 3 * double_numbers(own) + np.where(more, np.where(short == own, 2, 0), 1)
    return np.where(np.asarray(pc.starts_with(written, "-")), 2 - keys, keys)


def _parsed(digits: Any, exponent: Any) -> Floats64:
    """Read doubles from digits and exponents of ten."""
    return np.asarray(pc.binary_join_element_wise(digits, exponent.cast(pa.string()), "e").cast(pa.float64()))


def _words(array: pa.Array[Any]) -> Words:
    """Return the 64-bit words of decimals, one row a value, lowest first, where they lie."""
    width = array.type.bit_width // 64
    data = array.buffers()[1]
    if data is None or not len(array):
        return np.zeros((0, width), np.uint64)
    begin = array.offset * width
    words = np.frombuffer(memoryview(data), np.uint64)[begin : begin + len(array) * width]
    return words.reshape(-1, width)


def _scaled(digits: Ints, scale: int) -> Floats64:
    """Put the point before so many digits, rounding once: both are doubles without rounding."""
    power = np.float64(10.0 ** min(abs(scale), _EXACT))
    scaled: Floats64 = digits / power if scale > 0 else digits * power
    return scaled
