"""Columns of decimals as keys: column by column, in NumPy, with the digits of Arrow's 128 or 256 bits.

A number of at most 15 digits becomes a double by one division, which rounds as a cast does. Of a longer one
the first 15 digits are taken, and its own double is read from its text, by Arrow.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from headgate.core.interning import TextPool
from headgate.core.values import MAX_DECIMAL
from headgate.errors import EventError
from headgate.records.programs.decimals import SHORT, SHORT_LIMIT, decimal_key, decimal_text, double_numbers

if TYPE_CHECKING:
    from collections.abc import Sequence
    from decimal import Decimal

    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Words = NDArray[np.uint64]

_EXACT = 22
"""Powers of ten up to it are doubles without rounding."""
_POWERS = np.array([10.0**power for power in range(_EXACT + 1)])
_BASE = np.uint64(10**9)
_TENS = 10 ** np.arange(19, dtype=np.int64)


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
        found = [places.setdefault(decimal_text(value), len(places)) for value in self._values]
        return np.array(found, np.int64), TextPool.build(places)


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
        return 3 * double_numbers(_scaled(low, np.int64(-kind.scale))) + 1
    keys = np.empty(len(low), np.int64)
    keys[plain] = 3 * double_numbers(_scaled(low[plain], np.int64(-kind.scale))) + 1
    rest = np.flatnonzero(~plain)
    keys[rest] = _long_keys(words[rest], kind.scale, array.take(rest))
    return keys


def _words(array: pa.Array[Any]) -> Words:
    """Return the 64-bit words of decimals, one row a value, lowest first, where they lie."""
    width = array.type.bit_width // 64
    data = array.buffers()[1]
    if data is None or not len(array):
        return np.zeros((0, width), np.uint64)
    begin = array.offset * width
    found = np.frombuffer(memoryview(data), np.uint64)[begin : begin + len(array) * width]
    return found.reshape(-1, width)


def _scaled(digits: Ints, exponent: Ints | np.int64) -> NDArray[np.float64]:
    """Return digits times a power of ten, rounded once: both are doubles without rounding."""
    power = _POWERS[np.minimum(np.abs(exponent), _EXACT)]
    found: NDArray[np.float64] = np.where(exponent < 0, digits / power, digits * power)
    return found


def _long_keys(words: Words, scale: int, values: pa.Array[Any]) -> Ints:
    """Return the keys of decimals that are not 0, whatever their size."""
    negative = words[:, -1] >> np.uint64(63) == 1
    limbs = _magnitude(words, negative)
    digits, size, more = _first_digits(limbs)
    exponent = size - SHORT - scale
    doubles = _scaled(digits, exponent)
    for row in np.flatnonzero(np.abs(exponent) > _EXACT).tolist():
        doubles[row] = float(f"{digits[row]}e{exponent[row]}")
    state = np.ones(len(words), np.int64)
    longer = np.flatnonzero(more)
    if len(longer):
        own = _parsed(values.take(longer))
        # The short decimal below is that of the same double, or that double's is above, or it has none.
        state[longer] = np.where(doubles[longer] == own, 2, 0)
        doubles[longer] = own
    number = double_numbers(doubles)
    return np.where(negative, 2 - state - 3 * number, state + 3 * number)


def _parsed(values: pa.Array[Any]) -> NDArray[np.float64]:
    """Return the doubles of decimals, without their signs; Arrow's own cast of decimals rounds twice."""
    return np.abs(np.asarray(values.cast(pa.string()).cast(pa.float64()), np.float64))


def _magnitude(words: Words, negative: NDArray[np.bool_]) -> Words:
    """Return numbers without their signs as halves of words, lowest first."""
    found = np.where(negative[:, None], ~words, words)
    carry = negative.copy()
    for place in range(words.shape[1]):
        found[:, place] += carry.astype(np.uint64)
        carry &= found[:, place] == 0
    return np.ascontiguousarray(found).view(np.uint32).astype(np.uint64)


def _first_digits(halves: Words) -> tuple[Ints, Ints, NDArray[np.bool_]]:
    """Return the first 15 digits of numbers above 0, how many digits they have, and whether others follow."""
    count = halves.shape[1]
    # Nine digits each, lowest first, after two places of zeros so that short numbers have 15 too.
    nines = np.zeros((len(halves), count + 3), np.int64)
    for place in range(2, count + 3):
        rest = np.zeros(len(halves), np.uint64)
        for half in range(count - 1, -1, -1):
            rest = rest << np.uint64(32) | halves[:, half]
            halves[:, half] = rest // _BASE
            rest %= _BASE
        nines[:, place] = rest
    filled = nines != 0
    top = nines.shape[1] - 1 - np.argmax(filled[:, ::-1], axis=1)
    row = np.arange(len(nines))
    high, middle, low = nines[row, top], nines[row, top - 1], nines[row, top - 2]
    below = np.cumsum(filled, axis=1)[row, top - 2] - (low != 0)
    head = np.searchsorted(_TENS, high, side="right")
    both = high * 10**9 + middle
    drop, add = _TENS[np.maximum(head - 6, 0)], np.maximum(6 - head, 0)
    kept = _TENS[9 - add]
    digits = both // drop * _TENS[add] + np.where(add > 0, low // kept, 0)
    more = (both % drop != 0) | np.where(add > 0, low % kept != 0, low != 0) | (below != 0)
    return digits, 9 * (top - 2) + head, more
