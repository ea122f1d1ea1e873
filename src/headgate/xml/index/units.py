"""Loops that lay filters out: the trie, the units and the forests, each distinct one once."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.core.hashing import bloom_bit, hash_step, mix
from headgate.core.jit import bare_inner, kernel
from headgate.xml.index.arrays import DOCUMENT

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Layout(NamedTuple):
    """Room for what is laid out, as much as can come of so many nodes; each table is twice that.

    `start` and `item` are runs of numbers. A unit is a node of the trie, a set of tests, and the units below,
    rising; a forest is its anchors, rising. `forest_of` is by filter. `counts`: 0 nodes of the trie, 1 units,
    2 forests.
    """

    parent: NDArray[np.int32]
    axis: NDArray[np.int8]
    label: NDArray[np.int32]
    trie_table: NDArray[np.int32]
    unit_start: NDArray[np.int32]
    unit_item: NDArray[np.int32]
    unit_table: NDArray[np.int32]
    forest_start: NDArray[np.int32]
    forest_item: NDArray[np.int32]
    forest_table: NDArray[np.int32]
    forest_of: NDArray[np.int32]
    counts: NDArray[np.int64]


def room_for(nodes: int, filters: int) -> Layout:
    """Make room for what so many nodes of so many filters may come to."""

    def ints(size: int) -> NDArray[np.int32]:
        return np.zeros(size, np.int32)

    def free(count: int) -> NDArray[np.int32]:
        return np.full(1 << max(4, (2 * count + 1).bit_length()), -1, np.int32)

    return Layout(
        ints(nodes + 1),
        np.zeros(nodes + 1, np.int8),
        ints(nodes + 1),
        free(nodes),
        ints(nodes + 2),
        ints(3 * nodes + 2),
        free(nodes),
        ints(filters + 1),
        ints(nodes + 1),
        free(filters),
        ints(filters),
        np.zeros(3, np.int64),
    )


@bare_inner
def _sort(values: NDArray[np.int32], begin: int, end: int) -> int:
    """Sort a short run and leave out what is there twice; returns its end."""
    for i in range(begin + 1, end):
        value = values[i]
        j = i - 1
        while j >= begin and values[j] > value:
            values[j + 1] = values[j]
            j -= 1
        values[j + 1] = value
    last = begin
    for i in range(begin, end):
        if i == begin or values[i] != values[last - 1]:
            values[last] = values[i]
            last += 1
    return last


@bare_inner
def _once(
    start: NDArray[np.int32], item: NDArray[np.int32], table: NDArray[np.int32], count: int, end: int
) -> int:
    """Find the run that stands behind the last one, up to `end`; returns its number, `count` if it is new."""
    begin = start[count]
    found = np.uint64(end - begin)
    for i in range(begin, end):
        found = mix(found, np.uint64(item[i]))
    mask = np.uint64(len(table) - 1)
    at = found & mask
    while table[at] >= 0:
        known = table[at]
        size = start[known + 1] - start[known]
        if size == end - begin:
            same = True
            for i in range(size):
                if item[start[known] + i] != item[begin + i]:
                    same = False
                    break
            if same:
                return int(known)
        at = (at + np.uint64(1)) & mask
    table[at] = count
    start[count + 1] = end
    return count


@bare_inner
def _step(laid: Layout, parent: int, axis: int, label: int) -> int:
    """Find a node of the trie, which is added if it is new."""
    mask = np.uint64(len(laid.trie_table) - 1)
    at = hash_step(parent, axis, label) & mask
    while laid.trie_table[at] >= 0:
        t = laid.trie_table[at]
        if laid.parent[t] == parent and laid.axis[t] == axis and laid.label[t] == label:
            return int(t)
        at = (at + np.uint64(1)) & mask
    t = laid.counts[0]
    laid.counts[0] = t + 1
    laid.trie_table[at] = t
    laid.parent[t], laid.axis[t], laid.label[t] = parent, axis, label
    return int(t)


@kernel
def lay(
    node_start: NDArray[np.int64],
    label: NDArray[np.int32],
    axis: NDArray[np.int8],
    parent: NDArray[np.int32],
    tests: NDArray[np.int32],
    laid: Layout,
) -> None:
    """Lay all filters out; `tests` has the set of tests of each node."""
    most = 1
    for f in range(len(node_start) - 1):
        most = max(most, node_start[f + 1] - node_start[f])
    trie, children, head, chain, unit = (
        np.zeros(most, np.int32),
        np.zeros(most, np.int32),
        np.zeros(most, np.int32),
        np.zeros(most, np.int32),
        np.zeros(most, np.int32),
    )
    laid.parent[DOCUMENT] = -1
    laid.counts[0] = 1
    for f in range(len(node_start) - 1):
        begin = node_start[f]
        size = node_start[f + 1] - begin
        for n in range(size):
            up = parent[begin + n]
            trie[n] = _step(
                laid, DOCUMENT if up < 0 else trie[up], int(axis[begin + n]), int(label[begin + n])
            )
            children[n], head[n] = 0, -1
            if up >= 0:
                children[up] += 1
        forest = laid.counts[2]
        members = laid.forest_start[forest]
        end = size
        # Trees from the last to the first: each is a run of nodes, from its root on.
        while end > 0:
            root = end - 1
            while parent[begin + root] >= 0:
                root -= 1
            anchor = root
            while children[anchor] == 1 and tests[begin + anchor] == 0:
                anchor += 1
            for n in range(end - 1, anchor - 1, -1):
                count = laid.counts[1]
                first = laid.unit_start[count]
                laid.unit_item[first], laid.unit_item[first + 1] = trie[n], tests[begin + n]
                last = first + 2
                below = head[n]
                while below >= 0:
                    laid.unit_item[last] = unit[below]
                    last += 1
                    below = chain[below]
                last = _sort(laid.unit_item, first + 2, last)
                unit[n] = _once(laid.unit_start, laid.unit_item, laid.unit_table, count, last)
                if unit[n] == count:
                    laid.counts[1] = count + 1
                if n > anchor:
                    up = parent[begin + n]
                    chain[n], head[up] = head[up], n
            laid.forest_item[members] = unit[anchor]
            members += 1
            end = root
        members = _sort(laid.forest_item, laid.forest_start[forest], members)
        laid.forest_of[f] = _once(laid.forest_start, laid.forest_item, laid.forest_table, forest, members)
        if laid.forest_of[f] == forest:
            laid.counts[2] = forest + 1


@kernel
def same_runs(
    start: NDArray[np.int64], item: NDArray[np.int32], run: NDArray[np.int32], sets: Layout
) -> None:
    """Number runs of numbers, each sorted: equal ones alike, from 1 on in `run`, 0 for those of nothing.

    The forests of `sets` become the distinct ones.
    """
    for n in range(len(start) - 1):
        run[n] = 0
        if start[n] == start[n + 1]:
            continue
        count = sets.counts[2]
        first = sets.forest_start[count]
        last = first
        for i in range(start[n], start[n + 1]):
            sets.forest_item[last] = item[i]
            last += 1
        last = _sort(sets.forest_item, first, last)
        found = _once(sets.forest_start, sets.forest_item, sets.forest_table, count, last)
        run[n] = found + 1
        if found == count:
            sets.counts[2] = count + 1


@kernel
def fill_bloom(
    parent: NDArray[np.int32], axis: NDArray[np.int8], label: NDArray[np.int32], bloom: NDArray[np.uint64]
) -> None:
    """Note at each node of the trie what leads on from it."""
    for t in range(1, len(bloom)):
        bloom[parent[t]] |= bloom_bit(int(axis[t]), int(label[t]))


@kernel
def fill_table(
    parent: NDArray[np.int32],
    axis: NDArray[np.int8],
    label: NDArray[np.int32],
    count: int,
    table: NDArray[np.int32],
) -> None:
    """Put the nodes of a trie into a table."""
    mask = np.uint64(len(table) - 1)
    for t in range(1, count):
        at = hash_step(int(parent[t]), int(axis[t]), int(label[t])) & mask
        while table[at] >= 0:
            at = (at + np.uint64(1)) & mask
        table[at] = t
