"""Structural semijoins: what of some nodes takes part in an embedding, by structural ids alone.

The nodes that could stand for each node of a pattern come sorted by `pre`. A tree has no other constraints
than its edges, so one pass from the leaves up and one from the roots down leave exactly what takes part. Each
edge is a merge of two sorted lists, in one pass over both:

- below: what ends last among those that began before must not have ended yet;
- child: so must what began last one level up.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.core.jit import kernel
from headgate.xml.language.model import CHILD

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from headgate.xml.language.model import Pattern


class Ids(NamedTuple):
    """Structural ids, sorted by `pre`, each once."""

    pre: NDArray[np.int32]
    post: NDArray[np.int32]
    level: NDArray[np.int32]

    def take(self, which: NDArray[np.bool_] | NDArray[np.int64]) -> Ids:
        """Return some of them."""
        return Ids(self.pre[which], self.post[which], self.level[which])


class Flat(NamedTuple):
    """Candidates of all nodes of a pattern: those of node n are from offsets[n] to offsets[n + 1].

    `ends` is the last node of the subtree, `post + level`.
    """

    offsets: NDArray[np.int64]
    pre: NDArray[np.int32]
    ends: NDArray[np.int32]
    level: NDArray[np.int32]


class Shape(NamedTuple):
    """The edges of a pattern as arrays: the parent of each node, and whether it is a child of it."""

    parents: NDArray[np.int32]
    child: NDArray[np.bool_]


@lru_cache(maxsize=1024)
def shape_of(pattern: Pattern) -> Shape:
    """Return the edges of a pattern as arrays."""
    return Shape(
        np.array([node.parent for node in pattern.nodes], np.int32),
        np.array([node.axis == CHILD for node in pattern.nodes], np.bool_),
    )


def kept(pattern: Pattern, candidates: Sequence[Ids]) -> list[NDArray[np.bool_]] | None:
    """Tell for each node of a pattern which candidates take part in an embedding; None if there is none.

    Candidates have the labels and satisfy the tests already; only axes are looked at.
    """
    flat = flattened(candidates)
    keep = np.ones(len(flat.pre), np.bool_)
    if not reduce_flat(shape_of(pattern), flat, keep):
        return None
    return [keep[start:stop] for start, stop in pairwise(flat.offsets.tolist())]


def flattened(candidates: Sequence[Ids]) -> Flat:
    """Put candidates one behind the other."""
    offsets = np.zeros(len(candidates) + 1, np.int64)
    np.cumsum([len(ids.pre) for ids in candidates], out=offsets[1:])
    none = [np.empty(0, np.int32)]
    pre, post, level = (
        np.concatenate([*none, *(ids[column] for ids in candidates)]).astype(np.int32, copy=False)
        for column in range(3)
    )
    return Flat(offsets, pre, post + level, level)


@kernel
def reduce_flat(
    shape: Shape,
    flat: Flat,
    keep: NDArray[np.bool_],
) -> bool:
    """Clear `keep` where a candidate takes part in no embedding of what is kept; false if there is none."""
    parents, child = shape.parents, shape.child
    offsets, pre, ends, level = flat.offsets, flat.pre, flat.ends, flat.level
    deepest = 0
    for each in level:
        deepest = max(deepest, each)
    latest = np.empty(deepest + 2, np.int64)  # the last one that began, by level
    marked = np.zeros(len(keep), np.bool_)
    for node in range(len(parents) - 1, -1, -1):
        start, stop = offsets[node], offsets[node + 1]
        if parents[node] < 0 and child[node]:
            for low in range(start, stop):
                keep[low] &= level[low] == 0
        some = False
        for low in range(start, stop):
            some |= keep[low]
        if not some:
            return False
        if parents[node] < 0:
            continue
        above, above_stop = offsets[parents[node]], offsets[parents[node] + 1]
        if child[node]:
            latest[:] = -1
            high = above
            for low in range(start, stop):
                if not keep[low]:
                    continue
                while high < above_stop and pre[high] < pre[low]:
                    latest[level[high]] = high
                    marked[high] = False
                    high += 1
                one = latest[level[low] - 1] if level[low] > 0 else -1
                if one >= 0 and ends[one] >= pre[low]:
                    marked[one] = True
            for one in range(high, above_stop):
                marked[one] = False
            for one in range(above, above_stop):
                keep[one] &= marked[one]
        else:
            low = start
            for high in range(above, above_stop):
                while low < stop and (not keep[low] or pre[low] <= pre[high]):
                    low += 1
                keep[high] &= low < stop and pre[low] <= ends[high]
    for node in range(len(parents)):
        if parents[node] < 0:
            continue
        start, stop = offsets[node], offsets[node + 1]
        high, above_stop = offsets[parents[node]], offsets[parents[node] + 1]
        last = -1
        if child[node]:
            latest[:] = -1
        for low in range(start, stop):
            while high < above_stop and pre[high] < pre[low]:
                if keep[high]:
                    last = max(last, ends[high])
                    latest[level[high]] = high
                high += 1
            if child[node]:
                one = latest[level[low] - 1] if level[low] > 0 else -1
                keep[low] &= one >= 0 and ends[one] >= pre[low]
            else:
                keep[low] &= last >= pre[low]
    return True
