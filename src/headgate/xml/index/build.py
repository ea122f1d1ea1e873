"""Columns to arrays: equal tests, paths, units and forests become one each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headgate.core.hashing import bloom_bit, hash_step, mix
from headgate.core.jit import bare_inner, kernel
from headgate.xml.index.arrays import (
    ANCHOR,
    ASKED,
    DESCENDANT_AXIS,
    DOCUMENT,
    FAR,
    Forests,
    Tests,
    Trie,
    Units,
    XmlArrays,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.core.arrays import Ints, Ints32, Words
    from headgate.xml.index.columns import Columns


TRIE_NODES, UNITS, FORESTS = range(3)
"""Places in `FilterLayout.counts`."""


class FilterLayout(NamedTuple):
    """Room for what is laid out, as much as can come of so many nodes; each table is twice that.

    `start` and `item` are runs of numbers. A unit is a node of the trie, a set of tests, and the units below,
    rising; a forest is its anchors, rising. `forest_of` is by filter. `counts` has TRIE_NODES, UNITS and
    FORESTS.
    """

    parent: Ints32
    axis: NDArray[np.int8]
    label: Ints32
    trie_table: Ints32
    unit_start: Ints32
    unit_item: Ints32
    unit_table: Ints32
    forest_start: Ints32
    forest_item: Ints32
    forest_table: Ints32
    forest_of: Ints32
    counts: Ints


def room_for(nodes: int, filters: int) -> FilterLayout:
    """Make room for what so many nodes of so many filters may come to."""

    def ints(size: int) -> Ints32:
        return np.zeros(size, np.int32)

    def free(count: int) -> Ints32:
        return np.full(1 << max(4, (2 * count + 1).bit_length()), -1, np.int32)

    return FilterLayout(
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
def _sort(values: Ints32, begin: int, end: int) -> int:
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
def _once(start: Ints32, item: Ints32, table: Ints32, count: int, end: int) -> int:
    """Find the run that stands behind the last one, up to `end`; returns its number, `count` if it is new."""
    begin = start[count]
    hashed = np.uint64(end - begin)
    for i in range(begin, end):
        hashed = mix(hashed, np.uint64(item[i]))
    mask = np.uint64(len(table) - 1)
    at = hashed & mask
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
def _step(laid: FilterLayout, parent: int, axis: int, label: int) -> int:
    """Find a node of the trie, which is added if it is new."""
    mask = np.uint64(len(laid.trie_table) - 1)
    at = hash_step(parent, axis, label) & mask
    while laid.trie_table[at] >= 0:
        t = laid.trie_table[at]
        if laid.parent[t] == parent and laid.axis[t] == axis and laid.label[t] == label:
            return int(t)
        at = (at + np.uint64(1)) & mask
    t = laid.counts[TRIE_NODES]
    laid.counts[TRIE_NODES] = t + 1
    laid.trie_table[at] = t
    laid.parent[t], laid.axis[t], laid.label[t] = parent, axis, label
    return int(t)


@kernel
def lay(
    node_start: Ints, label: Ints32, axis: NDArray[np.int8], parent: Ints32, tests: Ints32, laid: FilterLayout
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
    laid.counts[TRIE_NODES] = 1
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
        forest = laid.counts[FORESTS]
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
                count = laid.counts[UNITS]
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
                    laid.counts[UNITS] = count + 1
                if n > anchor:
                    up = parent[begin + n]
                    chain[n], head[up] = head[up], n
            laid.forest_item[members] = unit[anchor]
            members += 1
            end = root
        members = _sort(laid.forest_item, laid.forest_start[forest], members)
        laid.forest_of[f] = _once(laid.forest_start, laid.forest_item, laid.forest_table, forest, members)
        if laid.forest_of[f] == forest:
            laid.counts[FORESTS] = forest + 1


@kernel
def same_runs(start: Ints, item: Ints32, run: Ints32, sets: FilterLayout) -> None:
    """Number runs of numbers, each sorted: equal ones alike, from 1 on in `run`, 0 for those of nothing.

    The forests of `sets` become the distinct ones.
    """
    for n in range(len(start) - 1):
        run[n] = 0
        if start[n] == start[n + 1]:
            continue
        count = sets.counts[FORESTS]
        first = sets.forest_start[count]
        last = first
        for i in range(start[n], start[n + 1]):
            sets.forest_item[last] = item[i]
            last += 1
        last = _sort(sets.forest_item, first, last)
        number = _once(sets.forest_start, sets.forest_item, sets.forest_table, count, last)
        run[n] = number + 1
        if number == count:
            sets.counts[FORESTS] = count + 1


@kernel
def fill_bloom(parent: Ints32, axis: NDArray[np.int8], label: Ints32, bloom: Words) -> None:
    """Note at each node of the trie what leads on from it."""
    for t in range(1, len(bloom)):
        bloom[parent[t]] |= bloom_bit(int(axis[t]), int(label[t]))


@kernel
def fill_table(parent: Ints32, axis: NDArray[np.int8], label: Ints32, count: int, table: Ints32) -> None:
    """Put the nodes of a trie into a table."""
    mask = np.uint64(len(table) - 1)
    for t in range(1, count):
        at = hash_step(int(parent[t]), int(axis[t]), int(label[t])) & mask
        while table[at] >= 0:
            at = (at + np.uint64(1)) & mask
        table[at] = t


def build(columns: Columns) -> XmlArrays:
    """Lay filters out in arrays; the labels and texts in them are those of the columns."""
    node_set, tests = _tests(columns)
    patterns, nodes = columns.patterns, len(columns.label)
    laid = room_for(nodes, patterns)
    lay(columns.node_start, columns.label, columns.axis, columns.parent, node_set, laid)
    tries, count, forests = laid.counts.tolist()
    start = laid.unit_start[: count + 1].astype(np.int64)
    at, own_tests = laid.unit_item[start[:-1]], laid.unit_item[start[:-1] + 1]
    # Units in the order of their nodes of the trie.
    order = np.argsort(at, kind="stable")
    new_number = np.empty(count, np.int32)
    new_number[order] = np.arange(count, dtype=np.int32)
    below_start, below_at = _runs(start[:-1] + 2, start[1:], order)
    below = new_number[laid.unit_item[below_at]]
    # Those below that fewer ask for come first: they are the likelier to fail.
    asked = np.bincount(below, minlength=count)
    owner = np.repeat(np.arange(count), np.diff(below_start))
    below = below[np.lexsort((below, asked[below], owner))]
    forest_start = laid.forest_start[: forests + 1]
    anchors = new_number[laid.forest_item[: forest_start[-1]]]
    forest_of_anchor = np.repeat(np.arange(forests, dtype=np.int32), np.diff(forest_start))
    hanging = np.argsort(anchors, kind="stable")
    axis, label = laid.axis[:tries].copy(), laid.label[:tries].copy()
    bloom, far = np.zeros(tries, np.uint64), np.zeros(tries, np.uint8)
    far[laid.parent[1:tries][axis[1:] == DESCENDANT_AXIS]] = 1
    kind = np.where(axis[at[order]] == DESCENDANT_AXIS, FAR, 0).astype(np.int32)
    far_below = kind[below]
    kind[below] |= ASKED
    kind[anchors] |= ANCHOR
    fill_bloom(laid.parent, axis, label, bloom)
    return XmlArrays(
        Trie(
            laid.parent[:tries].copy(),
            axis,
            label,
            bloom,
            far,
            _starts(np.bincount(at, minlength=tries)),
            _table(laid.trie_table, laid.parent, laid.axis, laid.label, tries),
        ),
        Units(
            np.stack([below_start[:-1], below_start[1:], own_tests[order], kind], axis=1),
            (2 * below + far_below).astype(np.int32),
            _starts(np.bincount(anchors, minlength=count)),
            forest_of_anchor[hanging],
        ),
        tests,
        Forests(
            np.diff(forest_start).astype(np.int32),
            _starts(np.bincount(laid.forest_of, minlength=forests)),
            np.argsort(laid.forest_of, kind="stable").astype(np.int32),
        ),
    )


def _tests(columns: Columns) -> tuple[Ints32, Tests]:
    """Make sets of the tests of each node; returns the set of each node, and the sets."""
    keys = np.zeros(len(columns.sign), [("sign", np.int8), ("number", np.float64), ("text", np.int32)])
    keys["sign"], keys["number"], keys["text"] = columns.sign, columns.number, columns.text
    distinct, member = np.unique(keys, return_inverse=True)
    sets = room_for(len(keys), len(keys))
    node_set = np.zeros(len(columns.label), np.int32)
    same_runs(columns.test_start, member.astype(np.int32), node_set, sets)
    count = int(sets.counts[FORESTS])
    start = np.concatenate([np.zeros(1, np.int32), sets.forest_start[: count + 1]])
    return node_set, Tests(
        start,
        sets.forest_item[: start[-1]].copy(),
        np.ascontiguousarray(distinct["sign"]),
        np.ascontiguousarray(distinct["number"]),
        np.ascontiguousarray(distinct["text"]),
        columns.texts.offsets,
        columns.texts.data,
    )


def _starts(sizes: NDArray[Any]) -> Ints32:
    return np.concatenate([np.zeros(1, np.int32), np.cumsum(sizes, dtype=np.int32)])


def _runs(begin: Ints, end: Ints, order: Ints) -> tuple[Ints32, Ints]:
    """Return where some runs begin when they are put in an order, and the places of what is in them."""
    sizes = (end - begin)[order]
    starts = _starts(sizes)
    return starts, np.repeat(begin[order] - starts[:-1], sizes) + np.arange(starts[-1])


def _table(table: Ints32, parent: Ints32, axis: NDArray[np.int8], label: Ints32, count: int) -> Ints32:
    """Return a table no larger than need be."""
    size = 1 << max(4, (2 * count).bit_length())
    if size >= len(table):
        return table
    smaller = np.full(size, -1, np.int32)
    fill_table(parent, axis, label, count, smaller)
    return smaller
