"""IR-tree: an interval tree whose nodes keep their intervals in R-trees by score. It is changed in place.

`ir_arrays` draws it. An item is the number of an interval. Those of a new tree are ranks; what is inserted
later gets other numbers, and that of a deleted interval is used again. Items are ordered by score, then by
`order` (the smaller first), then by number.

As long as nothing is changed the tree borrows the scores of its table, and has no more than skeleton and
blocks. What changes need beside is made by the first of them.

Against the paper, a node is searched no sooner than its best item could be the next: until then that item
stands for it in the heap. Scores that follow the lengths are best in the lowest nodes, so most of a path is
never searched.
"""

from __future__ import annotations

import math
from ctypes import c_float
from typing import TYPE_CHECKING, Any

import numpy as np

from headgate.errors import SubscriptionError
from headgate.ranking.boxes.ends import narrowed
from headgate.ranking.intervals.ir_arrays import (
    BLOCKS,
    FREE_BLOCKS,
    FREE_NODES,
    GONE,
    LEVELS,
    NODES,
    NOWHERE,
    WEIGHT,
    IrArrays,
    Ledger,
    check_tree,
)
from headgate.ranking.intervals.ir_build import (
    blocks_of,
    clear,
    clear_room,
    make_plan,
    note_items,
    pack,
    plan_room,
)
from headgate.ranking.intervals.ir_changes import delete, insert, move
from headgate.ranking.intervals.ir_kernels import room_for, walk_many, walk_some
from headgate.ranking.intervals.scored import Found, Scored, answers, question
from headgate.ranking.model import check_box_score

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.floating[Any]]
    Ranks = NDArray[np.int32]

WIDTH = 32
"""Entries of a block. 16 take 4 % more bytes and as much time, 64 save 1 %; wide blocks are dear to split."""

_SPLITS = LEVELS + 2


class IrTree:
    """Scored intervals that can be asked and changed. One writer at a time."""

    def __init__(self, scored: Scored, order: NDArray[np.int64] | None = None, *, width: int = WIDTH) -> None:
        """Build from a table. `order` decides between equal scores; without it, the rows of the table do."""
        if not 4 <= width <= 256:
            raise SubscriptionError(f"blocks of {width} entries cannot be: give 4 to 256")
        count = len(scored.low)
        self._order = scored.row if order is None else order
        self._check_order(scored)
        self._size = self._numbers = count
        self._free: list[int] = []
        self._version = 0
        self._path = np.empty((LEVELS + 1, 2), np.int64)
        self._t = IrArrays(
            np.empty((0, width), np.int32),
            np.empty((0, 2, width), scored.kind),
            np.empty(0, np.int16),
            np.full((1, 8), -1, np.int32),
            np.zeros(1, scored.kind),
            scored.score,
            np.empty(0, np.int64),
        )
        self._c = Ledger(np.empty(0, np.int32), np.empty(0, np.int32), np.array([0, 0, -1, 1, 0, -1]))
        self._plant(0, np.arange(count, dtype=np.int32), scored.low, scored.high)

    def __len__(self) -> int:
        """Count the intervals."""
        return self._size

    @property
    def nbytes(self) -> int:
        """Count the bytes of all arrays but the scores, with what they have in reserve."""
        return sum(a.nbytes for a in (*self._t, *self._c)) - self._t.score.nbytes

    @property
    def kind(self) -> type[np.floating[Any]]:
        """Return the type of the ends."""
        return self._t.centre.dtype.type

    @property
    def version(self) -> int:
        """Count the changes."""
        return self._version

    @property
    def score(self) -> NDArray[np.float64]:
        """Return the scores by item; those of deleted items mean nothing."""
        return self._t.score[: self._numbers]

    def walk(self, x: float, y: float) -> IrWalk:
        """Begin to list the intervals with low <= x and high >= y, unless the tree is changed."""
        return IrWalk(self, self._t, x, y)

    def top_many(self, x: NDArray[np.float64], y: NDArray[np.float64], k: int) -> Found:
        """Find the best k for each of many questions."""
        found = answers(len(x), k, self._size)
        xs, ys = narrowed(x, y, self.kind)
        walk_many(self._t, room_for(self._t, bool((xs <= ys).all())), xs, ys, *found)
        return found

    def insert(self, low: float, high: float, score: float, order: int) -> int:
        """Add the closed interval from low to high; returns its number.

        One with its low end above its high end holds nothing, and is kept. The first end that does not fit
        into 4 bytes makes all ends 8 bytes wide.
        """
        if math.isnan(low) or math.isnan(high):
            raise SubscriptionError(f"the interval has the ends {low} and {high}: give numbers")
        check_box_score(score, f"the interval from {low} to {high}")
        if not -(2**63) <= order < 2**63:
            raise SubscriptionError(f"the order of the interval is {order}: give a number of 8 bytes")
        self._thaw()
        item = self._free.pop() if self._free else self._new_number()
        self._t.score[item] = score
        self._t.order[item] = order
        self._c.home[item] = NOWHERE
        self._size += 1
        self._version += 1
        if low <= high:
            if self.kind is np.float32 and not (_fits(low) and _fits(high)):
                self._widen()
            self._reserve(_SPLITS, 1)
            self._balance(insert(self._t, self._c, item, float(low), float(high), self._path))
        return item

    def delete(self, item: int) -> None:
        """Take an interval out; its number may be used again."""
        self._check_item(item)
        if self._c.home[item] == NOWHERE:
            self._c.home[item] = GONE
        else:
            self._balance(delete(self._t, self._c, item, self._path))
        self._free.append(item)
        self._size -= 1
        self._version += 1

    def set_score(self, item: int, score: float) -> None:
        """Give an interval another score."""
        check_box_score(score, f"interval {item}")
        self._check_item(item)
        self._version += 1
        if self._c.home[item] == NOWHERE:
            self._t.score[item] = score
        else:
            self._reserve(_SPLITS, 0)
            move(self._t, self._c, item, float(score), self._path)

    def check(self) -> None:
        """Assert the invariants."""
        held = check_tree(self._t, self._c)
        if len(self._c.home):
            home = self._c.home[: self._numbers]
            assert held == int((home >= 0).sum())
            assert self._size == int((home != GONE).sum())
            assert sorted(self._free) == np.flatnonzero(home == GONE).tolist()
        else:
            assert held == self._size

    def _check_order(self, scored: Scored) -> None:
        if len(self._order) != len(scored.low):
            raise SubscriptionError(
                f"the order has {len(self._order)} numbers for {len(scored.low)} intervals: give one for each"
            )
        tied = scored.score[1:] == scored.score[:-1]
        if bool((self._order[1:][tied] < self._order[:-1][tied]).any()):
            raise SubscriptionError("the order falls where scores are equal: rank the intervals by both")

    def _check_item(self, item: int) -> None:
        self._thaw()
        if not 0 <= item < self._numbers or self._c.home[item] == GONE:
            raise SubscriptionError(f"there is no interval {item}: give a number that `insert` returned")

    def _thaw(self) -> None:
        """Make what changes need, before the first of them."""
        if len(self._t.order):
            return
        room = self._numbers + 64
        t, c = self._t, self._c
        self._t = t._replace(score=_longer(t.score, room), order=_longer(self._order.astype(np.int64), room))
        self._c = c._replace(first=np.empty(len(t.size), np.int32), home=np.full(room, GONE, np.int32))
        note_items(self._t, self._c, clear_room(t.ref.shape[1]))

    def _new_number(self) -> int:
        item = self._numbers
        if item == len(self._t.order):
            if item == 2**31 - 1:
                raise SubscriptionError(f"{item:,} intervals are as many as one index holds: use several")
            room = min(item + item // 4 + 64, 2**31 - 1)
            self._t = self._t._replace(score=_longer(self._t.score, room), order=_longer(self._t.order, room))
            self._c = self._c._replace(home=_longer(self._c.home, room))
        self._numbers += 1
        return item

    def _balance(self, node: int) -> None:
        """Build a subtree anew, if there is one to be."""
        if node < 0:
            return
        t = self._t
        weight = int(t.node[node, WEIGHT])
        items = np.empty(weight, np.int32)
        low, high = np.empty(weight, self.kind), np.empty(weight, self.kind)
        clear(t, self._c, node, items, low, high, clear_room(t.ref.shape[1]))
        by = np.lexsort((items, t.order[items], -t.score[items]))
        self._plant(node, items[by], low[by], high[by])

    def _plant(self, node: int, items: Ranks, low: Floats, high: Floats) -> None:
        """Make a cleared node the root of some intervals, which are in falling order."""
        width = self._t.ref.shape[1]
        plan = plan_room(len(items), width, self.kind)
        steps = make_plan(plan, low, high, width)
        self._reserve(blocks_of(plan, steps, width), steps - 1)
        pack(self._t, self._c, plan, steps, items, low, high, node)

    def _reserve(self, blocks: int, nodes: int) -> None:
        """See that there is room for so many more blocks and nodes."""
        t, c = self._t, self._c
        lacking = blocks - (len(t.size) - c.heads[BLOCKS] + c.heads[FREE_BLOCKS])
        if lacking > 0:
            room = len(t.size) + max(int(lacking), len(t.size) // 4)
            self._t = t = t._replace(
                ref=_longer(t.ref, room), ends=_longer(t.ends, room), size=_longer(t.size, room)
            )
            if len(t.order):
                self._c = c = c._replace(first=_longer(c.first, room))
        lacking = nodes - (len(t.centre) - c.heads[NODES] + c.heads[FREE_NODES])
        if lacking > 0:
            room = len(t.centre) + max(int(lacking), len(t.centre) // 4)
            self._t = t._replace(node=_longer(t.node, room), centre=_longer(t.centre, room))

    def _widen(self) -> None:
        """Make all ends 8 bytes wide. No end changes, so nothing moves."""
        t = self._t
        # Where nothing is yet is whatever was in memory: some of it is no number that can be cast.
        with np.errstate(invalid="ignore"):
            self._t = t._replace(ends=t.ends.astype(np.float64), centre=t.centre.astype(np.float64))


class IrWalk:
    """A walk through the nodes that may hold answers."""

    def __init__(self, tree: IrTree, arrays: IrArrays, x: float, y: float) -> None:
        self._tree, self._version = tree, tree.version
        self._arrays = arrays
        self._x, self._y = question(x, y, tree.kind)
        self._cursors = room_for(arrays, bool(self._x <= self._y))
        self._one = np.empty(1, np.int32)

    def next(self) -> int:
        """Return the next item, or -1 after the last."""
        return int(self._one[0]) if self.fill(self._one) else -1

    def fill(self, out: Ranks) -> int:
        """Write as many of the next items as there is room."""
        if self._tree.version != self._version:
            raise SubscriptionError("the intervals were changed since this walk began: begin another")
        return walk_some(self._arrays, self._cursors, self._x, self._y, out)


def _fits(end: float) -> bool:
    """Tell whether an end is the same in 4 bytes. Scalars of numpy take ten times as long."""
    return c_float(end).value == end


def _longer(array: NDArray[Any], room: int) -> NDArray[Any]:
    longer = np.empty((room, *array.shape[1:]), array.dtype)
    longer[: len(array)] = array
    return longer
