"""What a writer changes and views keep: copies, and the children of vertices that changed.

    row 0        empty: that of new vertices that lead nowhere
    row 1, …     children of one vertex each, rising; appended when the vertex has changed since the last view

A vertex that changes again gets another row, and its old one is only used by older views. When such rows take
more room than the others, all are laid out anew, in arrays of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from headgate.contents.columns import Growing

if TYPE_CHECKING:
    from headgate.core.arrays import Floats64, Ints, Ints32, Words
    from headgate.graph.arrays import GraphArrays


class Copyable(Protocol):
    """A container that can be copied."""

    def copy(self: T) -> T:
        """Return another one that has the same in it."""


T = TypeVar("T", bound=Copyable)


class Copied(Generic[T]):
    """A container and the copy that views share until it is changed.

    >>> names = Copied(["a"])
    >>> before = names.copy()
    >>> names.copy() is before
    True
    >>> names.changing().append("b")
    >>> before, names.copy()
    (['a'], ['a', 'b'])
    """

    def __init__(self, value: T) -> None:
        self.value = value
        self._copy: T | None = None

    def changing(self) -> T:
        """Return the container to be changed."""
        self._copy = None
        return self.value

    def copy(self) -> T:
        """Return a copy that nobody changes."""
        if self._copy is None:
            self._copy = self.value.copy()
        return self._copy


class GrowingBits:
    """Bits by position, with room behind them.

    >>> bits = GrowingBits(np.array([1], np.uint64))
    >>> bits.set(64)
    >>> bits.clear(0)
    >>> bits.copy(2).tolist()
    [0, 1]
    """

    def __init__(self, words: Words) -> None:
        self._words = words.copy()
        self._copy: Words | None = None

    def set(self, position: int) -> None:
        """Set a bit."""
        word = position >> 6
        if word >= len(self._words):
            self._words = np.concatenate([self._words, np.zeros(word + 1, np.uint64)])
        self._words[word] |= np.uint64(1) << np.uint64(position & 63)
        self._copy = None

    def clear(self, position: int) -> None:
        """Clear a bit."""
        word = position >> 6
        if word < len(self._words):
            self._words[word] &= ~(np.uint64(1) << np.uint64(position & 63))
            self._copy = None

    def copy(self, words: int) -> Words:
        """Return the first words; bits that were never set are 0."""
        if self._copy is None or len(self._copy) != words:
            made = np.zeros(words, np.uint64)
            there = min(words, len(self._words))
            made[:there] = self._words[:there]
            self._copy = made
        return self._copy


_WASTE = 1 << 14
"""Children in rows of older views that are never worth laying out anew."""


class Row(NamedTuple):
    """Children of a vertex, rising, and what it costs to go there. Never changed in place."""

    child: Ints32
    cost: Floats64

    def __contains__(self, child: object) -> bool:
        """Tell whether a vertex is one of the children."""
        assert isinstance(child, int)
        at = int(np.searchsorted(self.child, child))
        return at < len(self.child) and bool(self.child[at] == child)

    def joined(self, child: int, cost: float) -> Row:
        """Return the row with one more child; of two edges to it the cheaper counts."""
        at = int(np.searchsorted(self.child, child))
        if at < len(self.child) and self.child[at] == child:
            costs = self.cost.copy()
            costs[at] = min(cost, costs[at])
            return Row(self.child, costs)
        return Row(
            np.concatenate([self.child[:at], np.array([child], np.int32), self.child[at:]]),
            np.concatenate([self.cost[:at], np.array([cost]), self.cost[at:]]),
        )

    def without(self, children: list[int]) -> Row:
        """Return the row without some children."""
        left = ~np.isin(self.child, children)
        return Row(self.child[left], self.cost[left])


NO_CHILDREN = Row(np.zeros(0, np.int32), np.zeros(0, np.float64))


class LaidRows(NamedTuple):
    """Rows as `Overlay` has them, and the costs of children."""

    swap: Ints32
    start: Ints
    child: Ints32
    cost: Floats64


class ChangedRows:
    """The rows of vertices that changed, by vertex. One writer."""

    def __init__(self, arrays: GraphArrays) -> None:
        self._arrays = arrays
        self._rows: dict[int, Row] = {}
        self._touched: set[int] = set()
        self._used = 0
        self._swap = np.full(arrays.vertices + 64, -1, np.int32)
        self._swap[arrays.vertices :] = 0
        self._begin()

    def _begin(self) -> None:
        self._start, self._child, self._cost = Growing(np.int64), Growing(np.int32), Growing(np.float64)
        self._start.extend([0, 0])

    def __contains__(self, vertex: int) -> bool:
        """Tell whether a vertex has a row here."""
        return vertex in self._rows

    def __getitem__(self, vertex: int) -> Row:
        """Return the children of a vertex, changed or not."""
        changed = self._rows.get(vertex)
        if changed is not None:
            return changed
        if vertex >= self._arrays.vertices:
            return NO_CHILDREN
        first, last = self._arrays.child_start[vertex], self._arrays.child_start[vertex + 1]
        return Row(self._arrays.child[first:last], self._arrays.child_cost[first:last])

    def __setitem__(self, vertex: int, row: Row) -> None:
        """Give a vertex other children."""
        before = self._rows.get(vertex)
        self._used += len(row.child) - (0 if before is None else len(before.child))
        self._rows[vertex] = row
        self._touched.add(vertex)

    def leads_to(self, child: int) -> bool:
        """Tell whether a vertex that changed leads to another one."""
        return any(child in row for row in self._rows.values())

    def lay_out(self, count: int) -> LaidRows:
        """Lay the rows out for a view of so many vertices; what older views have is not touched."""
        if count > len(self._swap):
            grown = np.zeros(2 * count, np.int32)
            grown[: len(self._swap)] = self._swap
            self._swap = grown
        touched: list[int] = sorted(self._touched)
        if self._child.size > 2 * self._used + _WASTE:
            self._begin()
            touched = sorted(self._rows)
        for vertex in touched:
            row = self._rows[vertex]
            self._swap[vertex] = self._start.size - 1
            self._child.extend(row.child)
            self._cost.extend(row.cost)
            self._start.append(self._child.size)
        self._touched.clear()
        return LaidRows(self._swap[:count].copy(), self._start.used, self._child.used, self._cost.used)


def owners(swap: Ints32, rows: int) -> Ints:
    """Tell which vertex each row belongs to: -1 for those of older views, and for the empty one."""
    owner = np.full(rows, -1, np.int64)
    swapped = np.flatnonzero(swap > 0)
    owner[swap[swapped]] = swapped
    return owner
