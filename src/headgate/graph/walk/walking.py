"""Hot loops of the fastest evaluator: from the source on, 64 vertices at a time, matched when reached.

A reached word is put aside until it is its turn. Then its vertices are matched together, and the children of
those that hold are added, as words again. Inner words come before words of sinks, which are looked at once,
when all that leads to them is known; in a search for first results it is the other way round.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.core.bits import lowest, place_of
from headgate.core.jit import bare, bare_inner
from headgate.core.planes import ASK, YES, decide, find_rows, plane_word

if TYPE_CHECKING:
    from headgate.core.arrays import Bools, Bytes, Ints, Ints32, Words
    from headgate.core.planes import Cells, Planes
    from headgate.graph.arrays import GraphArrays
    from headgate.graph.walk.hits import Hits

DONE, ASKING, FULL = range(3)
"""How a walk ended: all is found; filters must be asked; there is more, but `out` has what was wanted."""

INNER, SINKS, FOUND, ASKED, CURSOR, EPOCH = range(6)
"""Places of `WalkBuffers.counts`."""


class Overlay(NamedTuple):
    """What was changed since the graph was numbered; vertices that came later have the numbers behind.

    swap[v]       where >= 0, the children of v are child[start[swap[v]]:start[swap[v] + 1]]; the array is
                  empty if nothing changed
    open          by word: positions without a filter, now
    dirty         by word: positions whose filter the planes do not have
    """

    swap: Ints32
    start: Ints
    child: Ints32
    open: Words
    dirty: Words
    component: Ints32


def unchanged(arrays: GraphArrays) -> Overlay:
    """Return the overlay of a graph that nothing changed in."""
    none = np.zeros(0, np.int32)
    dirty = np.zeros(arrays.words, np.uint64)
    return Overlay(none, np.zeros(1, np.int64), none, arrays.open, dirty, arrays.component)


class WalkBuffers(NamedTuple):
    """What one walk at a time needs; a word's values count if its stamp is that of the walk.

    reach      positions that a valid path leads to
    tested     those of them that were matched
    valid      those of them that hold
    grow       those of them whose children were not added yet
    told       positions that the content room said hold
    touched    the words that have the stamp, one bit each
    inner      the words of inner vertices that are put aside, one bit each
    sinks      those of sinks, as a stack
    """

    stamp: Ints32
    waits: Bytes
    reach: Words
    tested: Words
    valid: Words
    grow: Words
    told: Words
    inner: Words
    sinks: Ints32
    touched: Words
    rows: Ints32
    asked: Ints
    counts: Ints


def scratch(words: int, axes: int) -> WalkBuffers:
    """Make room for walks over so many words, with so many axes of planes."""
    int32, uint64 = np.dtype(np.int32), np.dtype(np.uint64)
    return WalkBuffers(
        stamp=np.zeros(words, int32),
        waits=np.zeros(words, np.uint8),
        reach=np.zeros(words, uint64),
        tested=np.zeros(words, uint64),
        valid=np.zeros(words, uint64),
        grow=np.zeros(words, uint64),
        told=np.zeros(words, uint64),
        inner=np.zeros((words + 63) // 64, uint64),
        sinks=np.zeros(words, int32),
        touched=np.zeros((words + 63) // 64, uint64),
        rows=np.zeros(axes, int32),
        asked=np.zeros(64 * words, np.int64),
        counts=np.zeros(6, np.int64),
    )


@bare_inner
def _add(s: WalkBuffers, epoch: int, inner_words: int, behind: int, w: int, bits: np.uint64) -> None:
    """Reach some positions of a word, and put it aside if that is news."""
    if s.stamp[w] != epoch:
        s.stamp[w] = epoch
        s.reach[w] = bits
        s.tested[w] = 0
        s.valid[w] = 0
        s.grow[w] = 0
        s.told[w] = 0
        s.waits[w] = 0
        s.touched[w >> 6] |= np.uint64(1) << np.uint64(w & 63)
    else:
        if bits & ~s.reach[w] == 0:
            return
        s.reach[w] |= bits
    _put(s, inner_words, behind, w)


@bare_inner
def _put(s: WalkBuffers, inner_words: int, behind: int, w: int) -> None:
    """Put a word aside. Words from `behind` on hold vertices that came later and may be anything."""
    if s.waits[w] == 0:
        s.waits[w] = 1
        if w < inner_words or w >= behind:
            s.inner[w >> 6] |= np.uint64(1) << np.uint64(w & 63)
            s.counts[INNER] += 1
        else:
            s.sinks[s.counts[SINKS]] = w
            s.counts[SINKS] += 1


class Question(NamedTuple):
    """What walks go through: a graph, which of its filters hold, and by word the positions to be told.

    `given` are positions that hold whatever the planes say of them for an event.
    """

    graph: GraphArrays
    overlay: Overlay
    planes: Planes
    cells: Cells
    given: Words
    wanted: Words


@bare_inner
def walk(
    g: GraphArrays,
    o: Overlay,
    planes: Planes,
    cells: Cells,
    given: Words,
    wanted: Words,
    e: int,
    source: int,
    s: WalkBuffers,
    out: Ints,
    limit: int,
) -> int:
    """Walk from a source, or on if it is -1, until all is found, or `limit` vertices that are wanted.

    With limit 0 all is found and `out` is not written; else it has room for 64 positions more than `limit`.
    The source's own filter does not count. The first six are those of a `Question`: as one tuple of tuples
    they made first results a third slower, and a call a microsecond longer.
    """
    row_start, row_word, row_bits = g.row_start, g.row_word, g.row_bits
    swap, swap_start, swap_child = o.swap, o.start, o.child
    is_open, dirty = o.open, o.dirty
    stamp, waits, reach, tested = s.stamp, s.waits, s.reach, s.tested
    valid, grow, told, rows = s.valid, s.grow, s.told, s.rows
    inner_waiting, sink_queue, touched, asked, counts = s.inner, s.sinks, s.touched, s.asked, s.counts
    roots, changed = g.marks[0], len(swap) > 0
    inner_words = (g.marks[1] + 63) >> 6
    behind = (len(g.child_start) - 1 - roots) >> 6
    planed = planes.present.shape[1]
    counts[FOUND] = 0
    if source >= 0:
        if counts[EPOCH] == 2**31 - 1:
            for i in range(len(stamp)):
                stamp[i] = 0
            counts[EPOCH] = 0
        counts[EPOCH] += 1
        for i in range(EPOCH):
            counts[i] = 0
        for i in range(len(touched)):
            touched[i] = 0
            inner_waiting[i] = 0
        find_rows(planes, cells, e, rows)
    epoch = counts[EPOCH]
    w = 0
    while True:
        # The first round adds the children of the source; every later one deals with a word.
        growing = np.uint64(1)
        if source < 0:
            if counts[SINKS] and (limit or counts[INNER] == 0):
                counts[SINKS] -= 1
                w = int(sink_queue[counts[SINKS]])
            elif counts[INNER]:
                counts[INNER] -= 1
                # Round after round: a word that comes up again has gathered what the others added.
                at = counts[CURSOR] >> 6
                waiting = inner_waiting[at] & (~np.uint64(0) << np.uint64(counts[CURSOR] & 63))
                while waiting == 0:
                    at += 1
                    if at == len(inner_waiting):
                        at = 0
                    waiting = inner_waiting[at]
                bit = lowest(waiting)
                inner_waiting[at] ^= bit
                w = 64 * at + place_of(bit)
                counts[CURSOR] = w
            else:
                return ASKING if counts[ASKED] else DONE
            waits[w] = 0
            fresh = reach[w] & ~tested[w]
            tested[w] |= fresh
            good = fresh & (is_open[w] | given[w] | told[w])
            doubt = np.uint64(0)
            if w < planed and fresh & ~good & ~dirty[w]:
                sure, doubt = plane_word(planes, cells, e, rows, w, fresh & ~good & ~dirty[w])
                good |= sure
            while doubt:
                bit = lowest(doubt)
                doubt ^= bit
                p = 64 * w + place_of(bit)
                verdict = decide(planes, cells, e, p)
                if verdict == YES:
                    good |= bit
                elif verdict == ASK:
                    asked[counts[ASKED]] = p
                    counts[ASKED] += 1
            valid[w] |= good
            grow[w] |= good
            if limit:
                news = good & wanted[w]
                while news:
                    bit = lowest(news)
                    news ^= bit
                    out[counts[FOUND]] = 64 * w + place_of(bit)
                    counts[FOUND] += 1
                if counts[FOUND] >= limit:
                    _put(s, inner_words, behind, w)
                    return FULL
            growing = grow[w]
            grow[w] = 0
            # Sinks lead nowhere, unless they got children since.
            if not changed and inner_words <= w < behind:
                continue
        while growing:
            v = source
            if source < 0:
                bit = lowest(growing)
                growing ^= bit
                v = roots + 64 * w + place_of(bit)
            else:
                growing = np.uint64(0)
                source = -1
            swapped = changed and swap[v] >= 0
            if swapped:
                first, last = swap_start[swap[v]], swap_start[swap[v] + 1]
            else:
                first, last = row_start[v], row_start[v + 1]
            for i in range(first, last):
                if swapped:
                    p = swap_child[i] - roots
                    reached, bits = p >> 6, np.uint64(1) << np.uint64(p & 63)
                else:
                    reached, bits = row_word[i], row_bits[i]
                _add(s, epoch, inner_words, behind, reached, bits)


@bare
def answer(g: GraphArrays, s: WalkBuffers, holds: Bools) -> None:
    """Take in what the content room said of the positions asked."""
    inner_words = (g.marks[1] + 63) >> 6
    behind = (len(g.child_start) - 1 - g.marks[0]) >> 6
    for i in range(s.counts[ASKED]):
        p = s.asked[i]
        w, bit = p >> 6, np.uint64(1) << np.uint64(p & 63)
        if holds[i]:
            s.told[w] |= bit
            s.tested[w] &= ~bit
            _put(s, inner_words, behind, w)
    s.counts[ASKED] = 0


@bare_inner
def _collect(s: WalkBuffers, wanted: Words, out: Ints, n: int) -> int:
    """Write the wanted positions that a finished walk found to out[n:], rising; -1 if there is no room."""
    touched, valid = s.touched, s.valid
    for t in range(len(touched)):
        words = touched[t]
        while words:
            bit = lowest(words)
            words ^= bit
            w = 64 * t + place_of(bit)
            word = valid[w] & wanted[w]
            if n + 64 > len(out):
                return -1
            while word:
                bit = lowest(word)
                word ^= bit
                out[n] = 64 * w + place_of(bit)
                n += 1
    return n


@bare
def collect(s: WalkBuffers, wanted: Words, out: Ints) -> int:
    """Write the wanted positions that a finished walk found, rising; -1 if there is no room."""
    return _collect(s, wanted, out, 0)


@bare
def walk_events(
    g: GraphArrays,
    o: Overlay,
    planes: Planes,
    cells: Cells,
    given: Words,
    wanted: Words,
    source: Ints32,
    first: int,
    resume: bool,
    s: WalkBuffers,
    out: Ints,
    counts: Ints,
) -> tuple[int, int]:
    """Walk for event after event from `first` on; returns the event where it stopped, and why.

    What event e found follows what the one before found in `out`; counts[e] says how much. ASKING: answer,
    and call again with `resume`. FULL: there is no room in `out` for this event.
    """
    n = 0
    for e in range(first, len(source)):
        begin = -1 if resume and e == first else source[e]
        why = walk(g, o, planes, cells, given, wanted, e, begin, s, out, 0)
        if why == ASKING:
            return e, ASKING
        after = _collect(s, wanted, out, n)
        if after < 0:
            return e, FULL
        counts[e] = after - n
        n = after
    return len(source), DONE


@bare
def walk_hits(
    q: Question, hits: Hits, source: Ints32, first: int, s: WalkBuffers, out: Ints, counts: Ints
) -> int:
    """Do the same where it is known which filters hold: those of `hits`, and the planes say nothing.

    Returns the event that there is no room for in `out`, or how many there are. `given` is empty before and
    after. Hits in the loop above made walks without them 5 % slower.
    """
    g, o, planes, cells, given, wanted = q.graph, q.overlay, q.planes, q.cells, q.given, q.wanted
    n = 0
    for e in range(first, len(source)):
        for i in range(hits.start[e], hits.start[e + 1]):
            given[hits.position[i] >> 6] |= np.uint64(1) << np.uint64(hits.position[i] & 63)
        walk(g, o, planes, cells, given, wanted, 0, source[e], s, out, 0)
        for i in range(hits.start[e], hits.start[e + 1]):
            given[hits.position[i] >> 6] = 0
        after = _collect(s, wanted, out, n)
        if after < 0:
            return e
        counts[e] = after - n
        n = after
    return len(source)
