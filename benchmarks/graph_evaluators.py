"""The paper's evaluators compiled, over filters that are matched a word at a time, when first asked for.

Each writes positions to `out` in the order in which it finds them, until there are `limit` of them.
`headgate.papers.evaluators` has the same algorithms in plain Python over any index that knows `next`: what a
graph takes that is asked by their names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.core.bits import lowest, place_of
from headgate.core.jit import bare, bare_inner
from headgate.core.planes import YES, decide, find_rows, plane_word

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.core.planes import Cells, Planes
    from headgate.graph.arrays import GraphArrays

DAG, DAG_SKIP, GENERAL, SCC_SKIP, INDEX_THEN_BFS, BFS_THEN_MATCH = range(6)
NUMBERS = {
    "dag": DAG,
    "dag-skip": DAG_SKIP,
    "general": GENERAL,
    "scc-skip": SCC_SKIP,
    "index-then-bfs": INDEX_THEN_BFS,
    "bfs-then-match": BFS_THEN_MATCH,
}

_ONE = np.uint64(1)


class Sets(NamedTuple):
    """The sets of the figures as bits by position, and words of filters that were matched already."""

    reachable: NDArray[np.uint64]
    valid: NDArray[np.uint64]
    result: NDArray[np.uint64]
    components: NDArray[np.uint64]
    word: NDArray[np.uint64]
    known: NDArray[np.uint8]
    rows: NDArray[np.int32]
    stack: NDArray[np.int32]


def sets(words: int, components: int, axes: int) -> Sets:
    """Make room for one evaluation at a time."""
    return Sets(
        reachable=np.zeros(words, np.uint64),
        valid=np.zeros(words, np.uint64),
        result=np.zeros(words, np.uint64),
        components=np.zeros((components + 63) // 64, np.uint64),
        word=np.zeros(words, np.uint64),
        known=np.zeros(words, np.uint8),
        rows=np.zeros(axes, np.int32),
        stack=np.zeros(64 * words + 1, np.int32),
    )


class Question(NamedTuple):
    """What an evaluator is asked: a graph, an event, room to work in, and for how many results."""

    graph: GraphArrays
    planes: Planes
    cells: Cells
    event: int
    given: NDArray[np.uint64]
    sets: Sets
    out: NDArray[np.int64]
    limit: int


@bare
def evaluate(
    which: int,
    g: GraphArrays,
    planes: Planes,
    cells: Cells,
    given: NDArray[np.uint64],
    source: NDArray[np.int32],
    t: Sets,
    out: NDArray[np.int64],
    limit: int,
    counts: NDArray[np.int64],
) -> None:
    """Evaluate event after event; counts[e] says how much event e found, `out` what the last one did.

    Planes that would have to ask the content room are not taken here.
    """
    for e in range(len(source)):
        for w in range(len(t.word)):
            t.reachable[w] = 0
            t.valid[w] = 0
            t.result[w] = 0
            t.known[w] = 0
        for w in range(len(t.components)):
            t.components[w] = 0
        find_rows(planes, cells, e, t.rows)
        q = Question(g, planes, cells, e, given, t, out, limit)
        if which == DAG:
            counts[e] = _dag(q, source[e], False)
        elif which == DAG_SKIP:
            counts[e] = _dag(q, source[e], True)
        elif which == GENERAL:
            counts[e] = _general(q, source[e])
        elif which == SCC_SKIP:
            counts[e] = _scc_skip(q, source[e])
        elif which == INDEX_THEN_BFS:
            for w in range(len(t.word)):
                t.valid[w] = _match_word(q, w)
            counts[e] = _search(q, source[e], True)
        else:
            counts[e] = _search(q, source[e], False)


@bare_inner
def _has(bits: NDArray[np.uint64], p: int) -> bool:
    return bool((bits[p >> 6] >> np.uint64(p & 63)) & _ONE != 0)


@bare_inner
def _set(bits: NDArray[np.uint64], p: int) -> None:
    bits[p >> 6] |= _ONE << np.uint64(p & 63)


@bare_inner
def _at_least(bits: NDArray[np.uint64], p: int) -> int:
    """Find the first member that is at least `p`, or -1."""
    w = p >> 6
    if w >= len(bits):
        return -1
    word = bits[w] & (~np.uint64(0) << np.uint64(p & 63))
    while word == 0:
        w += 1
        if w >= len(bits):
            return -1
        word = bits[w]
    return 64 * w + place_of(lowest(word))


@bare
def _match_word(q: Question, w: int) -> np.uint64:
    """Return the valid positions of a word."""
    if not q.sets.known[w]:
        q.sets.known[w] = 1
        sure, maybe = np.uint64(0), np.uint64(0)
        if w < q.planes.present.shape[1]:
            sure, maybe = plane_word(q.planes, q.cells, q.event, q.sets.rows, w, ~np.uint64(0))
        while maybe:
            bit = lowest(maybe)
            maybe ^= bit
            if decide(q.planes, q.cells, q.event, 64 * w + place_of(bit)) == YES:
                sure |= bit
        q.sets.word[w] = sure | q.graph.open[w] | q.given[w]
    return np.uint64(q.sets.word[w])


@bare_inner
def _next_entity(q: Question, p: int) -> int:
    """Find the first valid position that is at least `p`, or -1: the paper's getNextEntity."""
    words = len(q.sets.word)
    w = p >> 6
    if w >= words:
        return -1
    word = _match_word(q, w) & (~np.uint64(0) << np.uint64(p & 63))
    while word == 0:
        w += 1
        if w >= words:
            return -1
        word = _match_word(q, w)
    return 64 * w + place_of(lowest(word))


@bare_inner
def _reach_children(q: Question, v: int) -> None:
    first, last = q.graph.child_start[v], q.graph.child_start[v + 1]
    for i in range(first, last):
        child = q.graph.child[i]
        _set(q.sets.reachable, child - q.graph.marks[0])


@bare_inner
def _dag(q: Question, source: int, skipping: bool) -> int:
    """Evaluate Figure 3, every valid node in topological order, or Figure 5, only the reachable ones."""
    roots = q.graph.marks[0]
    _reach_children(q, source)
    skip = max(0, source + 1 - roots)
    if skipping:
        skip = _at_least(q.sets.reachable, 0)
    n = 0
    while skip >= 0:
        p = _next_entity(q, skip)
        if p < 0:
            break
        if _has(q.sets.reachable, p):
            q.out[n] = p
            n += 1
            if n == q.limit:
                break
            _reach_children(q, roots + p)
        skip = p + 1
        if skipping:
            skip = _at_least(q.sets.reachable, skip)
    return n


@bare_inner
def _update_path(q: Question, p: int, by_component: bool, n: int) -> int:
    """Add a position and what it makes reachable to the result; the paper's recursion, with a stack."""
    roots = q.graph.marks[0]
    _set(q.sets.result, p)
    q.sets.stack[0] = p
    top = 1
    while top:
        top -= 1
        p = q.sets.stack[top]
        q.out[n] = p
        n += 1
        if n == q.limit:
            return n
        v = roots + p
        first, last = q.graph.child_start[v], q.graph.child_start[v + 1]
        for i in range(first, last):
            child = q.graph.child[i]
            c = child - roots
            if not _has(q.sets.result, c):
                if by_component:
                    _set(q.sets.components, q.graph.component[child])
                # Figure 8 as printed has no such line, and loses nodes that the index gives after this.
                _set(q.sets.reachable, c)
                if _has(q.sets.valid, c):
                    _set(q.sets.result, c)
                    q.sets.stack[top] = c
                    top += 1
    return n


@bare_inner
def _general(q: Question, source: int) -> int:
    """Evaluate Figure 6: every valid node in any order."""
    _reach_children(q, source)
    n, skip = 0, 0
    while n < q.limit:
        p = _next_entity(q, skip)
        if p < 0:
            break
        _set(q.sets.valid, p)
        if _has(q.sets.reachable, p) and not _has(q.sets.result, p):
            n = _update_path(q, p, False, n)
        skip = p + 1
    return n


@bare_inner
def _scc_skip(q: Question, source: int) -> int:
    """Evaluate Figure 8: skip in the index to the next component that is reachable."""
    roots = q.graph.marks[0]
    first, last = q.graph.child_start[source], q.graph.child_start[source + 1]
    for i in range(first, last):
        child = q.graph.child[i]
        _set(q.sets.reachable, child - roots)
        _set(q.sets.components, q.graph.component[child])
    n = 0
    skip = _first_of(q.graph.component, roots, _at_least(q.sets.components, 0))
    while n < q.limit and skip >= 0:
        p = _next_entity(q, skip)
        if p < 0:
            break
        component = q.graph.component[roots + p]
        if _has(q.sets.components, component):
            _set(q.sets.valid, p)
            if _has(q.sets.reachable, p) and not _has(q.sets.result, p):
                n = _update_path(q, p, True, n)
            skip = p + 1
        else:
            skip = _first_of(q.graph.component, roots, _at_least(q.sets.components, component + 1))
    return n


@bare_inner
def _first_of(component: NDArray[np.int32], roots: int, wanted: int) -> int:
    """Find the first position of a component, or -1 if there is none."""
    if wanted < 0:
        return -1
    low, high = roots, len(component)
    while low < high:
        middle = (low + high) >> 1
        if component[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low - roots


@bare_inner
def _search(q: Question, source: int, matched: bool) -> int:
    """Search breadth first, among the nodes that were matched, or matching each that is reached by itself.

    These are the baselines of section 3.4.
    """
    roots = q.graph.marks[0]
    head, n = 0, 0
    v = source
    while True:
        first, last = q.graph.child_start[v], q.graph.child_start[v + 1]
        for i in range(first, last):
            child = q.graph.child[i]
            p = child - roots
            if _has(q.sets.reachable, p):
                continue
            _set(q.sets.reachable, p)
            if matched:
                passes = _has(q.sets.valid, p)
            else:
                w = p >> 6
                bit = _ONE << np.uint64(p & 63)
                passes = (q.graph.open[w] | q.given[w]) & bit != 0
                if not passes and p < len(q.planes.conjunction_start) - 1:
                    passes = decide(q.planes, q.cells, q.event, p) == YES
            if passes:
                q.out[n] = p
                n += 1
                if n == q.limit:
                    return n
        if head == n:
            return n
        v = roots + q.out[head]
        head += 1
