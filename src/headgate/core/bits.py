"""Words of 64 bits."""

from __future__ import annotations

import numpy as np

from headgate.core.jit import bare_inner

_DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
_PLACES = np.zeros(64, np.uint8)
for _place in range(64):
    with np.errstate(over="ignore"):
        _PLACES[((np.uint64(1) << np.uint64(_place)) * _DE_BRUIJN) >> np.uint64(58)] = _place


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
