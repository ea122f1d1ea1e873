"""Words of 64 bits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headgate.core.jit import bare_inner

if TYPE_CHECKING:
    from headgate.core.arrays import Bytes

_DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
_PLACES = np.zeros(64, np.uint8)
for _place in range(64):
    with np.errstate(over="ignore"):
        _PLACES[((np.uint64(1) << np.uint64(_place)) * _DE_BRUIJN) >> np.uint64(58)] = _place

EACH = np.uint64(0x0101010101010101)
"""Times a byte: a word that has it eight times."""
HALF = 32
_LOW, _TOP = EACH * np.uint64(0x7F), EACH * np.uint64(0x80)


@bare_inner
def lowest(word: np.uint64) -> np.uint64:
    """Keep the lowest bit of a word that is not 0."""
    return word & (~word + np.uint64(1))


@bare_inner
def place_of(bit: np.uint64) -> int:
    """Return the place of a lone bit."""
    return int(_PLACES[(bit * _DE_BRUIJN) >> np.uint64(58)])


@bare_inner
def ones(word: np.uint64) -> int:
    """Count the bits of a word that are set.

    >>> ones(np.uint64(0b1011)), ones(~np.uint64(0))
    (3, 64)
    """
    word -= word >> np.uint64(1) & np.uint64(0x5555555555555555)
    word = (word & np.uint64(0x3333333333333333)) + (word >> np.uint64(2) & np.uint64(0x3333333333333333))
    word = word + (word >> np.uint64(4)) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return int(word * np.uint64(0x0101010101010101) >> np.uint64(56))


@bare_inner
def eight_bytes(data: Bytes, at: int) -> np.uint64:
    """Read eight bytes as a word, the first as the lowest: one load to the machine, wherever it begins.

    >>> hex(eight_bytes(np.arange(9, dtype=np.uint8), 1))
    '0x807060504030201'
    """
    # An index with a sign may count from the end, and looking whether it does would keep the loads apart.
    first = np.uint64(at)
    word = np.uint64(data[first])
    word |= np.uint64(data[first + np.uint64(1)]) << np.uint64(8)
    word |= np.uint64(data[first + np.uint64(2)]) << np.uint64(16)
    word |= np.uint64(data[first + np.uint64(3)]) << np.uint64(24)
    word |= np.uint64(data[first + np.uint64(4)]) << np.uint64(32)
    word |= np.uint64(data[first + np.uint64(5)]) << np.uint64(40)
    word |= np.uint64(data[first + np.uint64(6)]) << np.uint64(48)
    word |= np.uint64(data[first + np.uint64(7)]) << np.uint64(56)
    return word


@bare_inner
def zero_bytes(word: np.uint64) -> np.uint64:
    """Set the top bit of each byte that is 0, and no other bit.

    >>> hex(zero_bytes(np.uint64(0x0100FF00800012FF)))
    '0x80008000800000'
    """
    return ~(((word & _LOW) + _LOW) | word | _LOW)


@bare_inner
def packed(high: int | np.int64, low: int | np.int64) -> np.int64:
    """Put two numbers of 32 bits into one word: an epoch, say, and what it holds for.

    >>> word = packed(np.int64(7), 9)
    >>> upper(word), lower(word)
    (7, 9)
    """
    return (np.int64(high) << HALF) | np.int64(low)


@bare_inner
def upper(word: np.int64) -> np.int64:
    """Return the upper half of a word."""
    return word >> HALF


@bare_inner
def lower(word: np.int64) -> np.int64:
    """Return the lower half of a word."""
    return word & 0xFFFFFFFF
