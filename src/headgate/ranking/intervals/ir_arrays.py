r"""Arrays of an IR-tree: a skeleton of nodes, and blocks of entries in a pool.

    skeleton of nodes                   R-tree of one node, in blocks of `width` entries (low, high, ref)

           50                           inner       [5, 90]           [12, 77]           ref: a block
          /  \                                        │                  │
        20    bucket                    leaf   [5, 60] [40, 90]   [12, 55] [50, 77]      ref: an item

The skeleton is an interval tree: the intervals of a node all hold its centre, those wholly below the centre
are in its left subtree, and those wholly above in the right one. The R-tree of a node has its intervals
from left to right, the best first. Any two of them share the centre, so a point inside the extent of a
block is inside one of its intervals (Lemma 3.1 of the paper): a walk for a point meets no dead ends.

A subtree of at most `width` intervals is a bucket: a node with one leaf, in which intervals need not meet. It
costs one look at one block; nodes of their own would take a block for each interval.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headgate.core.jit import bare, bare_inner

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.floating[Any]]
    Ints = NDArray[np.int32]


LEFT, RIGHT, PARENT, ROOT, HEIGHT, WEIGHT, BUCKET, BEST = range(8)
"""Fields of a node: subtrees and the node above (-1: none); the first block of its R-tree (-1: it has no
interval) and the levels below that; intervals in the whole subtree; whether it is a bucket; its best item."""

LEVELS = 24
"""More levels than an R-tree can have: blocks that are hardly used are joined."""
PATH = 64
"""More nodes than a path can have: a child has at most 7 tenths of the intervals of its parent."""


class IrArrays(NamedTuple):
    """What walks need. `order` is empty while items are ranks, which need no scores to be compared."""

    ref: Ints
    ends: Floats
    size: NDArray[np.int16]
    node: Ints
    centre: Floats
    score: NDArray[np.float64]
    order: NDArray[np.int64]


class Ledger(NamedTuple):
    """What changes need beside: the best item under each block, the node of each item, what is free.

    `first` and `home` are empty while nothing was changed. The home of an interval that holds nothing is
    NOWHERE, and that of a number without interval GONE.
    """

    first: Ints
    home: Ints
    heads: NDArray[np.int64]


NOWHERE, GONE = -1, -2

BLOCKS, FREE_BLOCKS, NEXT_BLOCK, NODES, FREE_NODES, NEXT_NODE = range(6)
"""Heads: blocks of the pool that were ever used, how many of them are free, the first of the list of those
(-1: none; each has the next as its first ref); the same of nodes (each has the next as its LEFT)."""

FREE = -1
"""The size of a free block, and the weight of a free node."""


@bare_inner
def key_of(t: IrArrays, item: int) -> float:
    """Return what an item is compared by first: the larger comes first."""
    return float(t.score[item]) if len(t.order) else -float(item)


@bare_inner
def before(t: IrArrays, a: int, b: int) -> bool:
    """Tell whether item a is better than b: by score, by order, then by number."""
    key, other = key_of(t, a), key_of(t, b)
    if key != other:
        return key > other
    if len(t.order) and t.order[a] != t.order[b]:
        return bool(t.order[a] < t.order[b])
    return a < b


@bare_inner
def take_block(t: IrArrays, c: Ledger) -> int:
    """Get an empty block. Whoever calls has seen that there is one."""
    block = c.heads[NEXT_BLOCK]
    if block < 0:
        block = c.heads[BLOCKS]
        c.heads[BLOCKS] += 1
    else:
        c.heads[NEXT_BLOCK] = t.ref[block, 0]
        c.heads[FREE_BLOCKS] -= 1
    t.size[block] = 0
    return int(block)


@bare_inner
def give_block(t: IrArrays, c: Ledger, block: int) -> None:
    """Put a block onto the list of free ones."""
    t.size[block] = FREE
    t.ref[block, 0] = c.heads[NEXT_BLOCK]
    c.heads[NEXT_BLOCK] = block
    c.heads[FREE_BLOCKS] += 1


@bare_inner
def take_node(t: IrArrays, c: Ledger, parent: int) -> int:
    """Get an empty bucket below a node. Whoever calls has seen that there is one."""
    node = c.heads[NEXT_NODE]
    if node < 0:
        node = c.heads[NODES]
        c.heads[NODES] += 1
    else:
        c.heads[NEXT_NODE] = t.node[node, LEFT]
        c.heads[FREE_NODES] -= 1
    empty_node(t, node, parent)
    return int(node)


@bare_inner
def empty_node(t: IrArrays, node: int, parent: int) -> None:
    """Make a node an empty bucket."""
    t.node[node, LEFT] = -1
    t.node[node, RIGHT] = -1
    t.node[node, PARENT] = parent
    t.node[node, ROOT] = -1
    t.node[node, HEIGHT] = 0
    t.node[node, WEIGHT] = 0
    t.node[node, BUCKET] = 1
    t.node[node, BEST] = -1
    t.centre[node] = 0


@bare_inner
def give_node(t: IrArrays, c: Ledger, node: int) -> None:
    """Put a node onto the list of free ones."""
    t.node[node, WEIGHT] = FREE
    t.node[node, LEFT] = c.heads[NEXT_NODE]
    c.heads[NEXT_NODE] = node
    c.heads[FREE_NODES] += 1


@bare
def cover(t: IrArrays, parent: int, j: int, block: int) -> None:
    """Make a block entry j of its parent, with its extent: the least low end to the greatest high end."""
    low, high = t.ends[block, 0, 0], t.ends[block, 1, 0]
    for i in range(1, t.size[block]):
        low = min(low, t.ends[block, 0, i])
        high = max(high, t.ends[block, 1, i])
    t.ref[parent, j] = block
    t.ends[parent, 0, j] = low
    t.ends[parent, 1, j] = high


class _Seen:
    """Blocks, nodes and items that were met: none may be met twice."""

    def __init__(self, t: IrArrays, c: Ledger) -> None:
        self.t, self.c = t, c
        self.blocks: set[int] = set()
        self.nodes: set[int] = set()
        self.items: set[int] = set()

    def node(self, node: int, parent: int, depth: int, below: float, above: float) -> int:
        """Check a subtree, all of whose intervals are inside (below, above); returns how many they are."""
        t = self.t
        assert depth < PATH
        assert node not in self.nodes
        self.nodes.add(node)
        fields = t.node[node]
        assert fields[PARENT] == parent
        centre, bucket = float(t.centre[node]), bool(fields[BUCKET])
        own: list[tuple[int, float, float]] = []
        if fields[ROOT] >= 0:
            assert 0 <= fields[HEIGHT] < LEVELS
            own = self.block(int(fields[ROOT]), int(fields[HEIGHT]))
            assert fields[BEST] == own[0][0]
        else:
            assert (fields[HEIGHT], fields[BEST]) == (0, -1)
        assert all(before(t, a[0], b[0]) for a, b in pairwise(own))
        for item, low, high in own:
            assert bucket or low <= centre <= high
            assert low <= high
            assert below < low or below == low == -np.inf
            assert high < above or high == above == np.inf
            assert item not in self.items
            self.items.add(item)
            assert not len(self.c.home) or self.c.home[item] == node
        weight, heavier = len(own), 0
        for side in (LEFT, RIGHT):
            child = int(fields[side])
            if child >= 0:
                assert not bucket
                inside = (below, centre) if side == LEFT else (centre, above)
                held = self.node(child, node, depth + 1, *inside)
                assert held > 0
                weight += held
                heavier = max(heavier, held)
        assert fields[WEIGHT] == weight
        width = t.ref.shape[1]
        assert weight <= width if bucket else 2 * weight > width
        assert 10 * heavier <= 7 * weight
        return weight

    def block(self, block: int, level: int) -> list[tuple[int, float, float]]:
        """Check the blocks below one; returns their intervals in order."""
        t = self.t
        assert block not in self.blocks
        self.blocks.add(block)
        size = int(t.size[block])
        assert 0 < size <= t.ref.shape[1]
        low, high = t.ends[block, 0, :size].tolist(), t.ends[block, 1, :size].tolist()
        found = []
        for j, ref in enumerate(t.ref[block, :size].tolist()):
            if level == 0:
                found.append((ref, low[j], high[j]))
                continue
            below = self.block(ref, level - 1)
            assert low[j] == min(each[1] for each in below)
            assert high[j] == max(each[2] for each in below)
            found += below
        assert not len(self.c.first) or self.c.first[block] == found[0][0]
        return found


def check_tree(t: IrArrays, c: Ledger) -> int:
    """Assert that skeleton, R-trees and free lists are whole; returns the number of intervals in nodes."""
    seen = _Seen(t, c)
    count = seen.node(0, -1, 0, -np.inf, np.inf)
    free_blocks = _chain(int(c.heads[NEXT_BLOCK]), t.ref[:, 0])
    free_nodes = _chain(int(c.heads[NEXT_NODE]), t.node[:, LEFT])
    assert len(free_blocks) == c.heads[FREE_BLOCKS]
    assert len(free_nodes) == c.heads[FREE_NODES]
    assert seen.blocks.isdisjoint(free_blocks)
    assert seen.nodes.isdisjoint(free_nodes)
    assert sorted([*seen.blocks, *free_blocks]) == list(range(c.heads[BLOCKS]))
    assert sorted([*seen.nodes, *free_nodes]) == list(range(c.heads[NODES]))
    assert all(t.size[block] == FREE for block in free_blocks)
    assert all(t.node[node, WEIGHT] == FREE for node in free_nodes)
    return count


def _chain(first: int, following: np.ndarray) -> list[int]:
    """List what hangs on a list."""
    found = []
    while first >= 0:
        found.append(first)
        assert len(found) <= len(following)
        first = int(following[first])
    return found
