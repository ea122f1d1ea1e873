"""Cycles removed from a graph, after Eades, Lin and Smyth (1993).

Vertices are put in an order; edges that lead back in it are removed, so no cycle is left. Only edges within a
strongly connected component can be part of a cycle, so each component is put in order for itself:

    while vertices are left:
        sinks (nothing leaves them) go to the back, sources (nothing enters them) to the front
        then, to the front, the vertex that has the most edges leaving more than entering it

    buckets    0 sinks   1 sources   2 ... by leaving - entering, as first-in-first-out lists

It takes time in proportion to the edges. Without cycles of two edges at most |E| / 2 - |V| / 6 edges of a
component are removed. Among vertices that are alike in this the first is that of the greatest benefit. In a
clique, which is what a component of embeddings is, any order removes the same number of edges, so benefit
alone decides: a view comes first that covers a greater share of the others than they cover of it, then one of
a smaller result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.core.jit import bare_inner, kernel
from headgate.core.machine import need
from headgate.plan.model import Embeddings

if TYPE_CHECKING:
    from headgate.core.arrays import Floats64, Ints, Ints32, Words


_UNIT = 720_720.0
"""Shares are whole numbers of these parts, so that sums are exact and equal views stay equal."""


def without_cycles(
    embeddings: Embeddings, *, needed: Words | None = None, sizes: Floats64 | None = None
) -> tuple[Embeddings, int]:
    """Return the graph without cycles, and how many edges were removed.

    `needed` are the items of views; without them, all that their sources cover. `sizes` are those of results.
    """
    back = edges_back(embeddings, needed=needed, sizes=sizes)
    if not len(back):
        return embeddings, 0
    kept = np.ones(len(embeddings.sources), np.bool_)
    kept[back] = False
    removed = np.searchsorted(back, embeddings.offsets)
    return (
        Embeddings(embeddings.offsets - removed, embeddings.sources[kept], embeddings.masks[kept]),
        len(back),
    )


def edges_back(embeddings: Embeddings, *, needed: Words | None = None, sizes: Floats64 | None = None) -> Ints:
    """Find the edges to be removed, as rising places among the graph's edges."""
    vertices = len(embeddings.offsets) - 1
    if not len(embeddings.sources):
        return np.empty(0, np.int64)
    need("plan")
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import connected_components

    # One byte an edge is all that scipy needs to be given; it copies what it works on.
    matrix = csr_matrix(
        (np.ones(len(embeddings.sources), np.int8), embeddings.sources, embeddings.offsets),
        shape=(vertices, vertices),
    )
    component = connected_components(matrix, connection="strong")[1]
    targets = np.repeat(np.arange(vertices, dtype=np.int32), np.diff(embeddings.offsets))
    inner = np.flatnonzero(component[embeddings.sources] == component[targets])
    if not len(inner):
        return inner
    sources, targets = embeddings.sources[inner], targets[inner]
    needed = _covered(embeddings) if needed is None else needed
    # What is not needed counts nothing; nor does a target that needs nothing.
    covered = np.bitwise_count(embeddings.masks[inner] & needed[targets])
    share = np.rint(covered * _UNIT / np.maximum(np.bitwise_count(needed[targets]), 1))
    rank = _order(component, sources, targets, share, sizes)
    return inner[rank[sources] > rank[targets]]


def _covered(embeddings: Embeddings) -> Words:
    """Return what all sources of each target cover together."""
    covered = np.zeros(len(embeddings.offsets) - 1, np.uint64)
    # An empty row would take what is behind it; so only rows that are not empty are cut.
    filled = np.flatnonzero(np.diff(embeddings.offsets))
    covered[filled] = np.bitwise_or.reduceat(embeddings.masks, embeddings.offsets[filled])
    return covered


class _Lists(NamedTuple):
    """Vertices in buckets: each a doubly linked list, -1 at its ends; `places` are numbers of buckets."""

    heads: Ints32
    tails: Ints32
    after: Ints32
    before: Ints32
    places: Ints32


def _order(
    component: Ints32, sources: Ints32, targets: Ints32, weights: Floats64, sizes: Floats64 | None
) -> Ints:
    """Put the vertices of some edges in order; returns places, which count within a component only."""
    vertices = len(component)
    benefit = np.bincount(sources, weights, vertices) - np.bincount(targets, weights, vertices)
    members = np.unique(sources)
    large = np.zeros(len(members)) if sizes is None else sizes[members]
    members = members[np.lexsort((members, large, -benefit[members], component[members]))]
    number = np.zeros(vertices, np.int64)
    number[members] = np.arange(len(members))
    starts = np.flatnonzero(np.diff(component[members], prepend=-1))
    order = np.empty(len(members), np.int64)
    _arrange(
        np.append(starts, len(members)),
        *_rows(number[sources], number[targets], len(members)),
        *_rows(number[targets], number[sources], len(members)),
        order,
    )
    rank = np.zeros(vertices, np.int64)
    rank[members[order]] = np.arange(len(members))
    return rank


def _rows(owners: Ints, others: Ints, count: int) -> tuple[Ints, Ints]:
    starts = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(owners, minlength=count), out=starts[1:])
    return starts, others[np.lexsort((others, owners))]


@bare_inner
def _unlink(lists: _Lists, vertex: int) -> None:
    before, after = lists.before[vertex], lists.after[vertex]
    if before >= 0:
        lists.after[before] = after
    else:
        lists.heads[lists.places[vertex]] = after
    if after >= 0:
        lists.before[after] = before
    else:
        lists.tails[lists.places[vertex]] = before
    lists.places[vertex] = -1


@bare_inner
def _link(lists: _Lists, vertex: int, leaving: int, entering: int, middle: int) -> int:
    """Append a vertex to its bucket; returns the bucket."""
    bucket = 0 if leaving == 0 else 1 if entering == 0 else leaving - entering + middle
    lists.places[vertex] = bucket
    last = lists.tails[bucket]
    lists.before[vertex] = last
    lists.after[vertex] = -1
    if last >= 0:
        lists.after[last] = vertex
    else:
        lists.heads[bucket] = vertex
    lists.tails[bucket] = vertex
    return bucket


@kernel
def _arrange(starts: Ints, out_starts: Ints, outs: Ints, in_starts: Ints, ins: Ints, order: Ints) -> None:
    """Write the order of each component. Vertices of a component are together, best first."""
    count = len(order)
    largest = 0
    for c in range(len(starts) - 1):
        largest = max(largest, starts[c + 1] - starts[c])
    leaving, entering = np.empty(count, np.int64), np.empty(count, np.int64)
    lists = _Lists(
        np.full(2 * largest + 3, -1, np.int32),
        np.full(2 * largest + 3, -1, np.int32),
        np.empty(count, np.int32),
        np.empty(count, np.int32),
        np.full(count, -1, np.int32),
    )
    for c in range(len(starts) - 1):
        front, back = starts[c], starts[c + 1]
        # leaving - entering is within -(size - 2) and size - 2, so buckets are 3 to 2 * size - 1 or less.
        middle = back - front + 1
        top = 2
        for vertex in range(front, back):
            leaving[vertex] = out_starts[vertex + 1] - out_starts[vertex]
            entering[vertex] = in_starts[vertex + 1] - in_starts[vertex]
            top = max(top, _link(lists, vertex, leaving[vertex], entering[vertex], middle))
        while front < back:
            while top > 1 and lists.heads[top] < 0:
                top -= 1
            bucket = 0 if lists.heads[0] >= 0 else 1 if lists.heads[1] >= 0 else top
            vertex = lists.heads[bucket]
            _unlink(lists, vertex)
            if bucket == 0:
                back -= 1
                order[back] = vertex
            else:
                order[front] = vertex
                front += 1
            for i in range(out_starts[vertex], out_starts[vertex + 1]):
                other = outs[i]
                if lists.places[other] >= 0:
                    _unlink(lists, other)
                    entering[other] -= 1
                    top = max(top, _link(lists, other, leaving[other], entering[other], middle))
            for i in range(in_starts[vertex], in_starts[vertex + 1]):
                other = ins[i]
                if lists.places[other] >= 0:
                    _unlink(lists, other)
                    leaving[other] -= 1
                    top = max(top, _link(lists, other, leaving[other], entering[other], middle))
