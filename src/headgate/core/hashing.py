"""Hash functions of the tables in indexes: of texts, edges, steps of a trie."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headgate.core.jit import bare_inner

if TYPE_CHECKING:
    from headgate.core.arrays import Bytes

_BASIS = np.uint64(0xCBF29CE484222325)
_PRIME = np.uint64(0x100000001B3)
_ODD = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(32)
_HALF = np.uint64(29)
_TOP = np.uint64(58)


@bare_inner
def hash_bytes(data: Bytes, begin: int, end: int) -> np.uint64:
    """Hash some bytes."""
    found = _BASIS
    for i in range(begin, end):
        found = (found ^ np.uint64(data[i])) * _PRIME
    return found ^ (found >> _SHIFT)


@bare_inner
def hash_edge(s: int, p: int, o: int) -> np.uint64:
    """Hash three numbers, which may be SELF or VARIABLE."""
    found = (np.uint64(s + 2) * _ODD) ^ np.uint64(p + 2)
    found = (found ^ (found >> _SHIFT)) * _ODD
    found = (found ^ np.uint64(o + 2)) * _ODD
    return found ^ (found >> _HALF)


@bare_inner
def hash_step(parent: int, axis: int, label: int) -> np.uint64:
    """Hash a step of the trie; all are at least 0."""
    found = (np.uint64(parent) * _ODD) ^ np.uint64(2 * label + axis)
    found = (found ^ (found >> _SHIFT)) * _ODD
    return found ^ (found >> _HALF)


@bare_inner
def bloom_bit(axis: int, label: int) -> np.uint64:
    """Return the bit for a label behind an axis."""
    return np.uint64(1) << ((np.uint64(2 * label + axis + 1) * _ODD) >> _TOP)


@bare_inner
def mix(a: np.uint64, b: np.uint64) -> np.uint64:
    """Put two hashes together; the order counts."""
    found = (a ^ (b + _ODD)) * _ODD
    return found ^ (found >> _HALF)
