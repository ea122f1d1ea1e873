"""Whole numbers that stand in the order of ranks: ids for a content room, whose first matches are the best.

    rank      1st        2nd        3rd            by falling score, equal scores by id
    key       2^32       2·2^32     3·2^32
                   ▲
                   a later one gets a number in the middle of the gap

A gap of 2^32 is used up by 32 that always come at the same end of it. Then the keys around are spread out: of
the aligned ranges of 2, 4, 8 … numbers around the place, the first that is not crowded. What is crowded falls
from range to range, so that each insertion moves a logarithmic number of keys on average (Bender, Cole,
Demaine, Farach-Colton, Zito: Two simplified algorithms for maintaining order in a list, 2002).
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from headgate.core.arrays import Floats64, Ints
    from headgate.core.event import Id

    Rank = tuple[float, Id]

GAP = 1 << 32
LIMIT = 1 << 62
"""Keys are between minus this and this."""
CROWDED = 1.5
"""A range of 2^i numbers is crowded when it holds more than (2 / this)^i."""


class Move(NamedTuple):
    """A row whose key changes."""

    row: int
    old: int
    new: int


def rank(scores: Floats64) -> tuple[Ints, Ints]:
    """Rank rows that are in the order of their ids: returns keys in rising order, and their rows.

    >>> keys, rows = rank(np.array([1.0, 5.0, 1.0]))
    >>> (keys // GAP).tolist(), rows.tolist()
    ([1, 2, 3], [1, 0, 2])
    """
    rows = np.argsort(-scores, kind="stable").astype(np.int64)
    return (np.arange(len(rows), dtype=np.int64) + 1) * GAP, rows


class RankKeys:
    """Which key belongs to which row. What was built is in arrays, changes beside them."""

    def __init__(self, keys: Ints, rows: Ints) -> None:
        self._keys = keys
        self._rows = rows
        self._late: dict[int, int] = {}
        self._moved: dict[int, int] = {}
        self._by_row: Ints | None = None
        self._order: array[int] | None = None

    @property
    def changed(self) -> bool:
        """Tell whether keys were added or taken away since."""
        return self._order is not None

    def rows(self, keys: Ints) -> Ints:
        """Return the rows of keys that are in use."""
        late = self._late
        if not late:
            return self._rows[np.searchsorted(self._keys, keys)]
        at = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        rows_ = self._rows[at] if len(self._keys) else np.zeros(len(keys), np.int64)
        if len(keys) < 256:
            for i, key in enumerate(keys.tolist()):
                if key in late:
                    rows_[i] = late[key]
            return rows_
        known = np.array(sorted(late), np.int64)
        rows = np.array([late[key] for key in known.tolist()], np.int64)
        at = np.minimum(np.searchsorted(known, keys), len(known) - 1)
        return np.where(known[at] == keys, rows[at], rows_)

    def key(self, row: int) -> int:
        """Return the key of a row."""
        key = self._moved.get(row)
        if key is None:
            if self._by_row is None:
                by_row = np.zeros(int(self._rows.max(initial=-1)) + 1, np.int64)
                by_row[self._rows] = self._keys
                self._by_row = by_row
            key = int(self._by_row[row])
        return key

    def before(self, wanted: Rank, rank_of: Callable[[int], Rank]) -> int:
        """Count the rows that rank before one."""
        return bisect_left(self._in_order(), wanted, key=lambda key: rank_of(self._row(key)))

    def add(self, row: int, rank_of: Callable[[int], Rank]) -> tuple[int, list[Move]]:
        """Give a row its key; returns it, and what must move before to make room."""
        order = self._in_order()
        at = self.before(rank_of(row), rank_of)
        below = order[at - 1] if at else max(-LIMIT, (order[at] if order else 2 * GAP) - 2 * GAP)
        above = order[at] if at < len(order) else min(LIMIT, below + 2 * GAP)
        moves: list[Move] = []
        if above - below > 1:
            key = (below + above) // 2
        else:
            key, moves = self._spread(at, below)
        order.insert(at, key)
        self._late[key] = row
        self._moved[row] = key
        return key, moves

    def remove(self, row: int) -> int:
        """Take the key of a row away; returns it."""
        key = self.key(row)
        order = self._in_order()
        del order[bisect_left(order, key)]
        self._late.pop(key, None)
        self._moved.pop(row, None)
        return key

    def live(self) -> tuple[Ints, Ints]:
        """Return all keys in use in rising order, and their rows."""
        if self._order is None:
            return self._keys, self._rows
        keys = np.array(self._order, np.int64)
        return keys, self.rows(keys)

    def _row(self, key: int) -> int:
        row = self._late.get(key)
        return int(self._rows[np.searchsorted(self._keys, key)]) if row is None else row

    def _in_order(self) -> array[int]:
        """Return all keys in use, in rising order; made by the first change."""
        if self._order is None:
            self._order = array("q", self._keys.tobytes())
        return self._order

    def _spread(self, at: int, below: int) -> tuple[int, list[Move]]:
        """Make room before the key at a place of the order: returns the new key there, and who moved."""
        order = self._in_order()
        bits = 1
        while True:
            bits += 1
            size = 1 << bits
            start = below // size * size
            first, last = bisect_left(order, start), bisect_left(order, start + size)
            count = last - first + 1
            if count <= (2 / CROWDED) ** bits or bits == 63:
                break
        fresh = [start + size * (2 * j + 1) // (2 * count) for j in range(count)]
        key = fresh.pop(at - first)
        old = order[first:last].tolist()
        moves = [Move(self._row(a), a, b) for a, b in zip(old, fresh, strict=True) if a != b]
        for move in moves:
            self._late.pop(move.old, None)
        for move in moves:
            self._late[move.new] = move.row
            self._moved[move.row] = move.new
        order[first:last] = array("q", fresh)
        return key, moves
