"""Hot loops of the paper's evaluators, over filters that are matched a word at a time, when first asked for.

Each writes positions to `out` in the order in which it finds them, until there are `limit` of them.
`evaluators` has the same algorithms in plain Python over any index that knows `next`.
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
    from headgate.graph.walk.walking import Overlay

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


@bare
def evaluate(
    which: int,
    g: GraphArrays,
    o: Overlay,
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
        if which == DAG:
            counts[e] = _dag(g, o, planes, cells, e, given, source[e], t, out, limit, False)
        elif which == DAG_SKIP:
            counts[e] = _dag(g, o, planes, cells, e, given, source[e], t, out, limit, True)
        elif which == GENERAL:
            counts[e] = _general(g, o, planes, cells, e, given, source[e], t, out, limit)
        elif which == SCC_SKIP:
            counts[e] = _scc_skip(g, o, planes, cells, e, given, source[e], t, out, limit)
        elif which == INDEX_THEN_BFS:
            for w in range(len(t.word)):
                t.valid[w] = _match_word(o, planes, cells, e, given, t, w)
            counts[e] = _search(g, o, planes, cells, e, given, source[e], t, out, limit, True)
        else:
            counts[e] = _search(g, o, planes, cells, e, given, source[e], t, out, limit, False)


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
def _match_word(
    o: Overlay, planes: Planes, cells: Cells, e: int, given: NDArray[np.uint64], t: Sets, w: int
) -> np.uint64:
    """Return the valid positions of a word."""
    if not t.known[w]:
        t.known[w] = 1
        sure, maybe = np.uint64(0), np.uint64(0)
        if w < planes.present.shape[1]:
            sure, maybe = plane_word(planes, cells, e, t.rows, w, ~np.uint64(0))
        while maybe:
            bit = lowest(maybe)
            maybe ^= bit
            if decide(planes, cells, e, 64 * w + place_of(bit)) == YES:
                sure |= bit
        t.word[w] = (sure & ~o.dirty[w]) | o.open[w] | given[w]
    return np.uint64(t.word[w])


@bare_inner
def _next_entity(
    o: Overlay, planes: Planes, cells: Cells, e: int, given: NDArray[np.uint64], t: Sets, p: int
) -> int:
    """Find the first valid position that is at least `p`, or -1: the paper's getNextEntity."""
    words = len(t.word)
    w = p >> 6
    if w >= words:
        return -1
    word = _match_word(o, planes, cells, e, given, t, w) & (~np.uint64(0) << np.uint64(p & 63))
    while word == 0:
        w += 1
        if w >= words:
            return -1
        word = _match_word(o, planes, cells, e, given, t, w)
    return 64 * w + place_of(lowest(word))


@bare_inner
def _children(g: GraphArrays, o: Overlay, v: int) -> tuple[bool, int, int]:
    """Find the children of a vertex: whether they are in the overlay, the first, and the end."""
    if len(o.swap) and o.swap[v] >= 0:
        return True, o.start[o.swap[v]], o.start[o.swap[v] + 1]
    return False, g.child_start[v], g.child_start[v + 1]


@bare_inner
def _reach_children(g: GraphArrays, o: Overlay, t: Sets, v: int) -> None:
    changed, first, last = _children(g, o, v)
    for i in range(first, last):
        child = o.child[i] if changed else g.child[i]
        _set(t.reachable, child - g.marks[0])


@bare_inner
def _dag(
    g: GraphArrays,
    o: Overlay,
    planes: Planes,
    cells: Cells,
    e: int,
    given: NDArray[np.uint64],
    source: int,
    t: Sets,
    out: NDArray[np.int64],
    limit: int,
    skipping: bool,
) -> int:
    """Evaluate Figure 3, every valid node in topological order, or Figure 5, only the reachable ones."""
    roots = g.marks[0]
    _reach_children(g, o, t, source)
    skip = max(0, source + 1 - roots)
    if skipping:
        skip = _at_least(t.reachable, 0)
    n = 0
    while skip >= 0:
        p = _next_entity(o, planes, cells, e, given, t, skip)
        if p < 0:
            break
        if _has(t.reachable, p):
            out[n] = p
            n += 1
            if n == limit:
                break
            _reach_children(g, o, t, roots + p)
        skip = p + 1
        if skipping:
            skip = _at_least(t.reachable, skip)
    return n


@bare_inner
def _update_path(
    g: GraphArrays,
    o: Overlay,
    t: Sets,
    p: int,
    by_component: bool,
    out: NDArray[np.int64],
    n: int,
    limit: int,
) -> int:
    """Add a position and what it makes reachable to the result; the paper's recursion, with a stack."""
    roots = g.marks[0]
    _set(t.result, p)
    t.stack[0] = p
    top = 1
    while top:
        top -= 1
        p = t.stack[top]
        out[n] = p
        n += 1
        if n == limit:
            return n
        changed, first, last = _children(g, o, roots + p)
        for i in range(first, last):
            child = o.child[i] if changed else g.child[i]
            c = child - roots
            if not _has(t.result, c):
                if by_component:
                    _set(t.components, o.component[child])
                # Figure 8 as printed has no such line, and loses nodes that the index gives after this.
                _set(t.reachable, c)
                if _has(t.valid, c):
                    _set(t.result, c)
                    t.stack[top] = c
                    top += 1
    return n


@bare_inner
def _general(
    g: GraphArrays,
    o: Overlay,
    planes: Planes,
    cells: Cells,
    e: int,
    given: NDArray[np.uint64],
    source: int,
    t: Sets,
    out: NDArray[np.int64],
    limit: int,
) -> int:
    """Evaluate Figure 6: every valid node in any order."""
    _reach_children(g, o, t, source)
    n, skip = 0, 0
    while n < limit:
        p = _next_entity(o, planes, cells, e, given, t, skip)
        if p < 0:
            break
        _set(t.valid, p)
        if _has(t.reachable, p) and not _has(t.result, p):
            n = _update_path(g, o, t, p, False, out, n, limit)
        skip = p + 1
    return n


@bare_inner
def _scc_skip(
    g: GraphArrays,
    o: Overlay,
    planes: Planes,
    cells: Cells,
    e: int,
    given: NDArray[np.uint64],
    source: int,
    t: Sets,
    out: NDArray[np.int64],
    limit: int,
) -> int:
    """Evaluate Figure 8: skip in the index to the next component that is reachable."""
    roots = g.marks[0]
    changed, first, last = _children(g, o, source)
    for i in range(first, last):
        child = o.child[i] if changed else g.child[i]
        _set(t.reachable, child - roots)
        _set(t.components, o.component[child])
    n = 0
    skip = _first_of(o.component, roots, _at_least(t.components, 0))
    while n < limit and skip >= 0:
        p = _next_entity(o, planes, cells, e, given, t, skip)
        if p < 0:
            break
        component = o.component[roots + p]
        if _has(t.components, component):
            _set(t.valid, p)
            if _has(t.reachable, p) and not _has(t.result, p):
                n = _update_path(g, o, t, p, True, out, n, limit)
            skip = p + 1
        else:
            skip = _first_of(o.component, roots, _at_least(t.components, component + 1))
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
def _search(
    g: GraphArrays,
    o: Overlay,
    planes: Planes,
    cells: Cells,
    e: int,
    given: NDArray[np.uint64],
    source: int,
    t: Sets,
    out: NDArray[np.int64],
    limit: int,
    matched: bool,
) -> int:
    """Search breadth first, among the nodes that were matched, or matching each that is reached by itself.

    These are the baselines of section 3.4.
    """
    roots = g.marks[0]
    head, n = 0, 0
    v = source
    while True:
        changed, first, last = _children(g, o, v)
        for i in range(first, last):
            child = o.child[i] if changed else g.child[i]
            p = child - roots
            if _has(t.reachable, p):
                continue
            _set(t.reachable, p)
            if matched:
                passes = _has(t.valid, p)
            else:
                w = p >> 6
                bit = _ONE << np.uint64(p & 63)
                passes = (o.open[w] | given[w]) & bit != 0
                if not passes and p < len(planes.conjunction_start) - 1 and o.dirty[w] & bit == 0:
                    passes = decide(planes, cells, e, p) == YES
            if passes:
                out[n] = p
                n += 1
                if n == limit:
                    return n
        if head == n:
            return n
        v = roots + out[head]
        head += 1
