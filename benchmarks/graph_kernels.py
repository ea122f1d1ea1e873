"""Loops over events that the benchmark of graphs times, so that no call from Python is in a figure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headgate.core.bits import lowest, place_of
from headgate.core.jit import bare
from headgate.core.planes import YES, decide, find_rows, plane_word
from headgate.graph.walk.walking import EPOCH, FOUND, walk

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from benchmarks.graph_evaluators import Sets
    from headgate.core.planes import Cells, Planes
    from headgate.graph.arrays import GraphArrays
    from headgate.graph.walk.walking import Overlay, Question, WalkBuffers

ASKED_WORDS, DOUBTED_WORDS, ASKED, DOUBTED, HELD = range(5)
"""Places of what `count_doubts` counts."""


@bare
def first_results(
    g: GraphArrays,
    o: Overlay,
    planes: Planes,
    cells: Cells,
    given: NDArray[np.uint64],
    wanted: NDArray[np.uint64],
    source: NDArray[np.int32],
    s: WalkBuffers,
    out: NDArray[np.int64],
    limit: int,
    counts: NDArray[np.int64],
) -> None:
    """Walk for each event until `limit` results are found; counts[e] says how many there were."""
    for e in range(len(source)):
        # Into this loop: a call that passes the tuples takes longer than most first results do.
        s.counts[FOUND] = 0
        walk(g, o, planes, cells, given, wanted, e, source[e], s, out, limit)
        counts[e] = s.counts[FOUND]


@bare
def clear_sets(t: Sets, events: int) -> None:
    """Clear the sets for each event, as `graph_evaluators.evaluate` does; a walk has stamps instead."""
    for e in range(events):
        t.stack[0] = e
        for w in range(len(t.word)):
            t.reachable[w] = 0
            t.valid[w] = 0
            t.result[w] = 0
            t.known[w] = 0
        for w in range(len(t.components)):
            t.components[w] = 0


@bare
def match_words(planes: Planes, cells: Cells, events: int, rows: NDArray[np.int32]) -> int:
    """Match all filters by planes for each event; returns how many hold."""
    found = 0
    for e in range(events):
        find_rows(planes, cells, e, rows)
        for w in range(planes.present.shape[1]):
            sure, maybe = plane_word(planes, cells, e, rows, w, ~np.uint64(0))
            while maybe:
                bit = lowest(maybe)
                maybe ^= bit
                if decide(planes, cells, e, 64 * w + place_of(bit)) == YES:
                    sure |= bit
            while sure:
                sure &= sure - np.uint64(1)
                found += 1
    return found


@bare
def match_alone(planes: Planes, cells: Cells, events: int) -> int:
    """Match all filters one by one by their checks for each event; returns how many hold."""
    found = 0
    for e in range(events):
        for p in range(len(planes.conjunction_start) - 1):
            if decide(planes, cells, e, p) == YES:
                found += 1
    return found


@bare
def list_reached(
    q: Question,
    source: NDArray[np.int32],
    s: WalkBuffers,
    out: NDArray[np.int64],
    start: NDArray[np.int64],
) -> None:
    """List the positions that each event comes to: what `bfs-then-match` matches. Or only counts."""
    g, o, planes, cells, given, wanted = q.graph, q.overlay, q.planes, q.cells, q.given, q.wanted
    n = 0
    for e in range(len(source)):
        walk(g, o, planes, cells, given, wanted, e, source[e], s, out, 0)
        for w in range(len(s.stamp)):
            if s.stamp[w] != s.counts[EPOCH]:
                continue
            reached = s.reach[w]
            while reached:
                bit = lowest(reached)
                reached ^= bit
                if len(out):
                    out[n] = 64 * w + place_of(bit)
                n += 1
        start[e + 1] = n


@bare
def match_reached(
    planes: Planes,
    cells: Cells,
    is_open: NDArray[np.uint64],
    start: NDArray[np.int64],
    reached: NDArray[np.int64],
) -> int:
    """Match for each event the positions that it comes to, one by one; returns how many hold."""
    found = 0
    for e in range(len(start) - 1):
        for i in range(start[e], start[e + 1]):
            p = reached[i]
            if is_open[p >> 6] >> np.uint64(p & 63) & np.uint64(1) or decide(planes, cells, e, p) == YES:
                found += 1
    return found


@bare
def count_doubts(
    q: Question,
    source: NDArray[np.int32],
    s: WalkBuffers,
    out: NDArray[np.int64],
    found: NDArray[np.int64],
) -> None:
    """Count the words that walks ask planes about, and the filters that planes leave open."""
    g, o, planes, cells, given, wanted = q.graph, q.overlay, q.planes, q.cells, q.given, q.wanted
    for e in range(len(source)):
        walk(g, o, planes, cells, given, wanted, e, source[e], s, out, 0)
        for w in range(planes.present.shape[1]):
            if s.stamp[w] != s.counts[EPOCH] or not s.tested[w] & ~o.open[w]:
                continue
            asked = s.tested[w] & ~o.open[w]
            doubt = plane_word(planes, cells, e, s.rows, w, asked)[1]
            found[ASKED_WORDS] += 1
            found[DOUBTED_WORDS] += 1 if doubt else 0
            while asked:
                asked &= asked - np.uint64(1)
                found[ASKED] += 1
            while doubt:
                bit = lowest(doubt)
                doubt ^= bit
                found[DOUBTED] += 1
                found[HELD] += 1 if s.valid[w] & bit else 0
