"""Columns of workloads: numbers drawn by hashing, and texts written of numbers, without a loop over rows.

Randomness does not depend on partitioning: a value is a hash of its own address. That is (seed, table,
column, draw, row). The first four are hashed once into the start of a splitmix64 sequence, and the row is
the position in it:

    value = finalise(start + row * GAMMA)

Two columns are then two windows on one sequence of period 2**64, at places that a cryptographic
hash chose; windows of a million rows meet with probability 1e-13. `draw` tells apart the several
independent values that one row of one column may need.

The mixing is splitmix64: Steele, Lea and Flood, "Fast splittable pseudorandom number generators",
OOPSLA 2014, with the finaliser that Java's SplittableRandom uses.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.errors import HeadgateError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Ints: TypeAlias = NDArray[np.int64]
    Floats: TypeAlias = NDArray[np.float64]
    Bools: TypeAlias = NDArray[np.bool_]
    Texts: TypeAlias = pa.Array[pa.Scalar[pa.lib.StringType]]


_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_EXACT = 1 << 53  # a float64 holds every integer up to here


class Key(NamedTuple):
    """Name the cells to draw for: the rows of one column of one table."""

    seed: int
    table: str
    column: str
    rows: Ints


def bits(key: Key, draw: int = 0) -> NDArray[np.uint64]:
    """Draw 64 random bits for each row.

    >>> key = Key(7, "events", "age", np.array([5, 6]))
    >>> bits(key).tolist()
    [8761365496244036349, 6548977145806752302]
    """
    words = np.atleast_1d(key.rows).astype(np.uint64)
    words *= _GAMMA
    words += _start(key, draw)
    words ^= words >> np.uint64(30)
    words *= _MIX_1
    words ^= words >> np.uint64(27)
    words *= _MIX_2
    words ^= words >> np.uint64(31)
    return words


def uniform(key: Key, draw: int = 0) -> Floats:
    """Draw a number in [0, 1) for each row, a multiple of 2**-53."""
    return (bits(key, draw) >> np.uint64(11)).astype(np.float64) / _EXACT


def integers(key: Key, low: int, high: int, draw: int = 0) -> Ints:
    """Draw an integer for each row, at least `low` and below `high`."""
    if not 0 < high - low <= _EXACT:
        raise HeadgateError(f"cannot draw integers from {low} up to {high}: need 1 to 2**53 of them")
    steps = np.floor(uniform(key, draw) * (high - low))
    return steps.astype(np.int64) + low


def weighted(key: Key, weights: Sequence[float], draw: int = 0) -> Ints:
    """Draw a position in `weights` for each row, each as often as its weight says."""
    total = np.cumsum(np.asarray(weights, np.float64))
    if not len(total) or not total[-1] > 0 or min(weights) < 0:
        raise HeadgateError("cannot draw by weights: need some that are not negative, with a sum above 0")
    return _invert(total / total[-1], uniform(key, draw))


def zipf_rank(key: Key, n: int, exponent: float, draw: int = 0) -> Ints:
    """Draw a rank from 0 up to `n` for each row, rank r as often as (r + 1) ** -exponent says."""
    if n < 1:
        raise HeadgateError(f"cannot draw a rank out of {n}: need at least 1")
    return _invert(_zipf_table(n, exponent), uniform(key, draw))


def _start(key: Key, draw: int) -> np.uint64:
    # repr keeps ("a", "bc") and ("ab", "c") apart.
    address = repr((int(key.seed), key.table, key.column, draw)).encode()
    return np.uint64(int.from_bytes(blake2b(address, digest_size=8).digest(), "little"))


@lru_cache(maxsize=64)
def harmonic(n: int, exponent: float) -> Floats:
    """Sum the weights of the first 1, 2, … `n` ranks by Zipf's law."""
    total: Floats = np.cumsum(np.arange(1, n + 1, dtype=np.float64) ** -exponent)
    total.setflags(write=False)
    return total


@lru_cache(maxsize=64)
def _zipf_table(n: int, exponent: float) -> Floats:
    total = harmonic(n, exponent)
    table: Floats = total / total[-1]
    return table


def _invert(cumulative: Floats, points: Floats) -> Ints:
    # The last entry is exactly 1 and points are below it, so a position is always inside.
    return np.searchsorted(cumulative, points, side="right").astype(np.int64)


def glue(*pieces: Texts | str, between: str = "") -> Texts:
    """Write pieces behind each other, row by row; a piece that is a single text is the same in all rows.

    >>> import numpy as np
    >>> glue("p", digits(np.array([7, 12])), ";").to_pylist()
    ['p7;', 'p12;']
    """
    join: Any = pc.binary_join_element_wise
    texts: Texts = join(*(pa.scalar(each) if isinstance(each, str) else each for each in pieces), between)
    return texts


def digits(numbers: Ints) -> Texts:
    """Write whole numbers."""
    texts: Texts = pc.cast(pa.array(numbers, pa.int64()), pa.string())
    return texts


def numbered(prefix: str | Texts, numbers: Ints, width: int = 1) -> Texts:
    """Write numbers after a prefix, with zeros before them."""
    return glue(prefix, pc.utf8_lpad(digits(numbers), width, "0"))


def choose(texts: Sequence[str], at: Ints, hidden: Bools | None = None) -> Texts:
    """Take the text at a place, for each row; null where it is hidden."""
    chosen: Texts = pa.array(texts, pa.string()).take(pa.array(at, pa.int64(), mask=hidden))
    return chosen


def either(where: Bools, one: Texts | str, other: Texts | str) -> Texts:
    """Take one text or the other, for each row."""
    pick: Any = pc.if_else
    chosen: Texts = pick(pa.array(where, pa.bool_()), one, other)
    return chosen


def joined(start: Ints, items: Texts, between: str | Texts) -> Texts:
    """Join the items of each list; those of list n are start[n] : start[n + 1].

    >>> import numpy as np
    >>> joined(np.array([0, 2, 2]), pa.array(["a", "b"]), " . ").to_pylist()
    ['a . b', '']
    """
    join: Any = pc.binary_join
    texts: Texts = join(pa.ListArray.from_arrays(pa.array(start, pa.int32()), items), between)
    return texts
