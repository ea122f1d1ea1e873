"""Which vertices lead to a subscription whose filter holds: found from below, before a search from above.

    source ─► a, b, c (hold) ─► a1 … a300 (hold) ─► 100,000 subscriptions, of which 17 hold

From above, a search would go through all of a1 … a300 to come to the 17. Marked from below, it goes only
where something is to be found. Marks are a bound, no answer: whoever is marked may still not be reached.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.core.jit import bare, bare_inner
from headgate.graph.arrays import bits_of, flags_of

if TYPE_CHECKING:
    from headgate.core.arrays import Bools, Ints, Ints32, Words
    from headgate.graph.arrays import GraphArrays

MOST = 1 << 12
"""Edges to look at for one event: past that, marking may cost more than it saves."""


class ParentLists(NamedTuple):
    """The graph upside down, by position; roots are nobody's parents here, because nothing leads to them.

    parent    of position p: parent[start[p]:start[p + 1]], positions
    always    by word: positions that lead to a subscription without a filter, whatever holds between
    """

    start: Ints
    parent: Ints32
    always: Words


NO_PARENTS = ParentLists(np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0, np.uint64))
"""Of a graph that has changed: nothing is marked there, and all is searched."""


def above(g: GraphArrays) -> ParentLists:
    """Turn a graph upside down."""
    roots, positions = g.roots, g.vertices - g.roots
    source = np.repeat(np.arange(g.vertices), np.diff(g.child_start)) - roots
    kept = source >= 0
    target = g.child[kept] - roots
    start = np.zeros(positions + 1, np.int64)
    np.cumsum(np.bincount(target, minlength=positions), out=start[1:])
    parent = source[kept][np.argsort(target, kind="stable")].astype(np.int32)
    marked = np.zeros(positions, np.bool_)
    open_ends = np.flatnonzero(flags_of(g.open & g.serving, positions))
    _climb(start, parent, open_ends, marked, np.zeros(positions, np.int64))
    return ParentLists(start, parent, bits_of(np.flatnonzero(marked), g.words))


@bare
def _climb(start: Ints, parent: Ints32, below: Ints, marked: Bools, stack: Ints) -> None:
    """Mark positions, and all that lead to them."""
    n = 0
    for p in below:
        marked[p] = True
        stack[n] = p
        n += 1
    while n:
        n -= 1
        for i in range(start[stack[n]], start[stack[n] + 1]):
            q = parent[i]
            if not marked[q]:
                marked[q] = True
                stack[n] = q
                n += 1


@bare_inner
def mark(
    up: ParentLists, holding: Words, given: Words, serving: Words, hit: Ints, leads: Words, marked: Ints
) -> int:
    """Mark whoever holds and leads to one of `hit` that serves; returns how many of `marked` are used.

    Those are to be unmarked after the search. -1: too many edges lead there, and nothing is marked.
    """
    n, looked = 0, 0
    for p in hit:
        w, bit = p >> 6, np.uint64(1) << np.uint64(p & 63)
        if serving[w] & bit and leads[w] & bit == 0:
            leads[w] |= bit
            marked[n] = p
            n += 1
    at = 0
    while at < n:
        p = marked[at]
        at += 1
        looked += up.start[p + 1] - up.start[p]
        if looked > MOST:
            unmark(leads, marked, n)
            return -1
        for i in range(up.start[p], up.start[p + 1]):
            q = up.parent[i]
            w, bit = q >> 6, np.uint64(1) << np.uint64(q & 63)
            if leads[w] & bit == 0 and (holding[w] | given[w]) & bit:
                leads[w] |= bit
                marked[n] = q
                n += 1
    return n


@bare_inner
def unmark(leads: Words, marked: Ints, count: int) -> None:
    """Forget what was marked."""
    for i in range(count):
        leads[marked[i] >> 6] = 0
