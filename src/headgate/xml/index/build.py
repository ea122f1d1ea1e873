"""Columns to arrays: equal tests, paths, units and forests become one each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headgate.xml.index.arrays import (
    ANCHOR,
    ASKED,
    DESCENDANT_AXIS,
    FAR,
    Forests,
    Tests,
    Trie,
    Units,
    XmlArrays,
)
from headgate.xml.index.units import fill_bloom, fill_table, lay, room_for, same_runs

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.xml.index.columns import Columns


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
    place = np.empty(count, np.int32)
    place[order] = np.arange(count, dtype=np.int32)
    below_start, below_at = _runs(start[:-1] + 2, start[1:], order)
    below = place[laid.unit_item[below_at]]
    # Those below that fewer ask for come first: they are the likelier to fail.
    asked = np.bincount(below, minlength=count)
    owner = np.repeat(np.arange(count), np.diff(below_start))
    below = below[np.lexsort((below, asked[below], owner))]
    forest_start = laid.forest_start[: forests + 1]
    anchors = place[laid.forest_item[: forest_start[-1]]]
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


def _tests(columns: Columns) -> tuple[NDArray[np.int32], Tests]:
    """Make sets of the tests of each node; returns the set of each node, and the sets."""
    keys = np.zeros(len(columns.sign), [("sign", np.int8), ("number", np.float64), ("text", np.int32)])
    keys["sign"], keys["number"], keys["text"] = columns.sign, columns.number, columns.text
    distinct, member = np.unique(keys, return_inverse=True)
    sets = room_for(len(keys), len(keys))
    node_set = np.zeros(len(columns.label), np.int32)
    same_runs(columns.test_start, member.astype(np.int32), node_set, sets)
    count = int(sets.counts[2])
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


def _starts(sizes: NDArray[Any]) -> NDArray[np.int32]:
    return np.concatenate([np.zeros(1, np.int32), np.cumsum(sizes, dtype=np.int32)])


def _runs(
    begin: NDArray[np.int64], end: NDArray[np.int64], order: NDArray[np.int64]
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Return where some runs begin when they are put in an order, and the places of what is in them."""
    sizes = (end - begin)[order]
    starts = _starts(sizes)
    return starts, np.repeat(begin[order] - starts[:-1], sizes) + np.arange(starts[-1])


def _table(
    table: NDArray[np.int32],
    parent: NDArray[np.int32],
    axis: NDArray[np.int8],
    label: NDArray[np.int32],
    count: int,
) -> NDArray[np.int32]:
    """Return a table no larger than need be."""
    size = 1 << max(4, (2 * count).bit_length())
    if size >= len(table):
        return table
    found = np.full(size, -1, np.int32)
    fill_table(parent, axis, label, count, found)
    return found
