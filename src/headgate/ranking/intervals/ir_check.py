"""What must be true of an IR-tree, checked slowly and one thing at a time."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from headgate.ranking.intervals.ir_arrays import (
    BEST,
    BLOCKS,
    BUCKET,
    FREE,
    FREE_BLOCKS,
    FREE_NODES,
    HEIGHT,
    LEFT,
    LEVELS,
    NEXT_BLOCK,
    NEXT_NODE,
    NODES,
    PARENT,
    PATH,
    RIGHT,
    ROOT,
    WEIGHT,
    before,
)

if TYPE_CHECKING:
    from headgate.ranking.intervals.ir_arrays import IrArrays, Ledger


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
