"""Hot loops of ranked reachability: the k subscriptions of highest value, and a cheapest valid path to each.

Dijkstra, with the most promising vertex first instead of the cheapest: the promise of a vertex is the value
that the best score behind it would have at its cost. Going on never raises it, because no child has a better
score behind it and no edge a negative cost; so a vertex that is taken has its final cost, as in Dijkstra's
own order. The search ends when the next promise is below the k-th value found, and a vertex whose promise is
below it is not even matched. In the order of costs it could not end there: what is dear may promise much.
Should rounding break the order of promises, a vertex is taken again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.core.bits import ones
from headgate.core.heaps import before, rise_item, sink_item
from headgate.core.jit import bare, bare_inner
from headgate.core.planes import ASK, YES, decide, find_rows, plane_word
from headgate.graph.model import NODE
from headgate.graph.walk.leading import mark, unmark

if TYPE_CHECKING:
    from headgate.core.arrays import Bools, Bytes, Floats64, Ints, Ints32, Words
    from headgate.core.planes import Cells, Planes
    from headgate.graph.arrays import GraphArrays
    from headgate.graph.walk.hits import Hits
    from headgate.graph.walk.leading import ParentLists
    from headgate.graph.walk.walking import Overlay

DONE, ASKING = range(2)
"""How a search ended: all is found; filters must be asked."""

QUEUED, FOUND, ASKED, VISITED, EPOCH, AT, SOURCE, EVENT, SIFTED, LED = range(10)
"""Places of `SearchBuffers.counts`; VISITED counts the vertices whose children were looked at.

EVENT is the row of the encoded events that is searched for; SIFTED is 1 if it is known which filters hold:
then whoever does not hold is not looked at. LED is 1 if it is marked who leads to somebody that is served:
then nobody else is. Whoever searches sets all three.
"""

START = -1
"""The source where the event begins, as a parent. Led back to, it is a vertex like any other."""

_SLACK = 1e-12
"""How much a promise may be below the k-th value, of which it is a part: powers need not be rounded alike."""


class Ranks(NamedTuple):
    """What a value depends on, by vertex; children in the overlay have their costs in `swap_cost`.

    best      at least the highest score to be had at a vertex or behind it; no child has more
    order     by subscription: the higher, the smaller its id
    """

    serves: Ints32
    score: Floats64
    best: Floats64
    pass_cost: Floats64
    stands_for: Bytes
    swap_cost: Floats64
    order: Floats64


class SearchBuffers(NamedTuple):
    """What one search at a time needs; values count if the stamp is that of the search.

    by position       stamp, cost, promise (negative), parent (a position, or START), taken or not; `queue` is
                      a heap of positions, and p is at its place where[p]
    by word           known: a stamp; sure, maybe: what the planes say; leads: see `leading`
    by subscription   value, and the position that serves it; `top` is a heap with the worst first
    """

    stamp: Ints32
    cost: Floats64
    promise: Floats64
    parent: Ints32
    taken: Bytes
    queue: Ints32
    where: Ints32
    known: Ints32
    sure: Words
    maybe: Words
    leads: Words
    rows: Ints32
    asked: Ints
    top: Ints32
    top_where: Ints32
    value: Floats64
    server: Ints32
    limit: Floats64
    counts: Ints


class Search(NamedTuple):
    """What is searched: a graph, which of its filters hold, and what the best k of those reached go by.

    `given` are positions that hold whatever the planes say of them for an event.
    """

    graph: GraphArrays
    overlay: Overlay
    planes: Planes
    cells: Cells
    given: Words
    ranks: Ranks
    above: ParentLists
    k: int
    times: bool
    decay: float
    hops: bool


def make_scratch(words: int, subscriptions: int, axes: int) -> SearchBuffers:
    """Make room for searches over so many words of positions."""
    int32, float64, size = np.dtype(np.int32), np.dtype(np.float64), 64 * words
    return SearchBuffers(
        stamp=np.zeros(size, int32),
        cost=np.zeros(size, float64),
        promise=np.zeros(size, float64),
        parent=np.zeros(size, int32),
        taken=np.zeros(size, np.uint8),
        queue=np.zeros(size, int32),
        where=np.full(size, -1, int32),
        known=np.zeros(words, int32),
        sure=np.zeros(words, np.uint64),
        maybe=np.zeros(words, np.uint64),
        leads=np.zeros(words, np.uint64),
        rows=np.zeros(axes, int32),
        asked=np.zeros(size, np.int64),
        top=np.zeros(subscriptions, int32),
        top_where=np.full(subscriptions, -1, int32),
        value=np.zeros(subscriptions, float64),
        server=np.zeros(subscriptions, int32),
        limit=np.zeros(1, float64),
        counts=np.zeros(10, np.int64),
    )


@bare_inner
def worth(score: float, cost: float, times: bool, decay: float) -> float:
    """Return the value of a score at a cost: it never rises with the cost, and never falls with the score."""
    if not times:
        return score - cost
    if decay == 1.0:
        return score
    power: float = decay**cost
    if score >= 0:
        return score * power
    # A score below zero would rise towards zero: it is divided instead.
    return score / power if power > 0 else -np.inf


@bare_inner
def _begin(q: Search, s: SearchBuffers, source: int) -> None:
    """Forget the search before."""
    counts = s.counts
    if counts[EPOCH] == 2**31 - 1:
        for i in range(len(s.stamp)):
            s.stamp[i] = 0
        for i in range(len(s.known)):
            s.known[i] = 0
        counts[EPOCH] = 0
    for i in range(counts[QUEUED]):
        s.where[s.queue[i]] = -1
    for i in range(counts[FOUND]):
        s.top_where[s.top[i]] = -1
    for i in range(EPOCH):
        counts[i] = 0
    counts[EPOCH] += 1
    counts[SOURCE], counts[AT] = source, START
    s.limit[0] = -np.inf
    find_rows(q.planes, q.cells, counts[EVENT], s.rows)


@bare
def _match_word(q: Search, s: SearchBuffers, w: int) -> None:
    """Note what the planes say of a word that is looked at for the first time."""
    s.known[w] = s.counts[EPOCH]
    free = q.overlay.open[w] | q.given[w]
    sure, maybe = np.uint64(0), np.uint64(0)
    if w < q.planes.present.shape[1]:
        asked = ~free & ~q.overlay.dirty[w]
        sure, maybe = plane_word(q.planes, q.cells, s.counts[EVENT], s.rows, w, asked)
    s.sure[w] = sure | free
    s.maybe[w] = maybe


@bare_inner
def _passes(q: Search, s: SearchBuffers, p: int) -> bool:
    """Tell whether a position is valid; one that must be asked is noted, and is not until it is answered."""
    w, bit = p >> 6, np.uint64(1) << np.uint64(p & 63)
    if s.known[w] != s.counts[EPOCH]:
        _match_word(q, s, w)
    if s.sure[w] & bit:
        return True
    if s.maybe[w] & bit == 0:
        return False
    s.maybe[w] &= ~bit
    verdict = decide(q.planes, q.cells, s.counts[EVENT], p)
    if verdict == YES:
        s.sure[w] |= bit
    elif verdict == ASK:
        s.asked[s.counts[ASKED]] = p
        s.counts[ASKED] += 1
    return verdict == YES


@bare_inner
def _sieve(q: Search, s: SearchBuffers, w: int) -> np.uint64:
    """Return whom of a word to look at."""
    holding: np.uint64 = q.overlay.open[w] | q.given[w]
    if s.counts[LED] == 1:
        holding &= s.leads[w] | q.above.always[w]
    return holding


@bare
def _offer(r: Ranks, s: SearchBuffers, subscription: int, value: float, p: int, k: int) -> None:
    """Let a subscription be among the best, or better than it was."""
    top, top_where, values, size = s.top, s.top_where, s.value, s.counts[FOUND]
    if top_where[subscription] >= 0:
        old = s.server[subscription]
        if value > values[subscription]:
            values[subscription] = value
            s.server[subscription] = p
            sink_item(top, top_where, values, r.order, size, top_where[subscription], subscription)
        elif value == values[subscription] and before(s.cost, s.cost, p, old):
            s.server[subscription] = p
    elif size < k:
        values[subscription] = value
        s.server[subscription] = p
        s.counts[FOUND] += 1
        rise_item(top, top_where, values, r.order, size, subscription)
    else:
        values[subscription] = value
        worst = top[0]
        if not before(values, r.order, worst, subscription):
            return
        s.server[subscription] = p
        top_where[worst] = -1
        sink_item(top, top_where, values, r.order, size, 0, subscription)
    if s.counts[FOUND] == k:
        worst_value = values[top[0]]
        s.limit[0] = worst_value - _SLACK * abs(worst_value)


@bare
def search(q: Search, s: SearchBuffers, source: int) -> int:
    """Search from a source, or on if it is -1, for the best k; ASKING: answer what was asked, and go on."""
    g, o, r, times, decay = q.graph, q.overlay, q.ranks, q.times, q.decay
    roots, changed = g.marks[0], len(o.swap) > 0
    child_start, child, child_cost = g.child_start, g.child, g.child_cost
    swap, swap_start, swap_child, swap_cost = o.swap, o.start, o.child, r.swap_cost
    stamp, cost, promise, parent, taken = s.stamp, s.cost, s.promise, s.parent, s.taken
    queue, where, limit, counts = s.queue, s.where, s.limit, s.counts
    best, pass_cost, stands_for = r.best, r.pass_cost, r.stands_for
    row_start, row_word, row_bits = g.row_start, g.row_word, g.row_bits
    sifted = counts[SIFTED] == 1
    if source >= 0:
        _begin(q, s, source)
    # Whoever was asked about is answered now: the vertex that led there is gone through again.
    counts[ASKED] = 0
    epoch, at = counts[EPOCH], counts[AT]
    while True:
        v, so_far = counts[SOURCE], 0.0
        if at != START:
            v, so_far = roots + at, cost[at]
        swapped = changed and swap[v] >= 0
        if swapped:
            first, last = swap_start[swap[v]], swap_start[swap[v] + 1]
        else:
            first, last = child_start[v], child_start[v + 1]
        after, row, until = first, 0 if swapped else row_start[v], first
        while after < last:
            if sifted and not swapped and after == until:
                # All children of a word, of whom most often none holds.
                until += ones(row_bits[row])
                w = row_word[row]
                row += 1
                if row_bits[row - 1] & _sieve(q, s, w) == 0:
                    after = until
                    continue
            i = after
            after += 1
            c = swap_child[i] if swapped else child[i]
            if sifted:
                w = (c - roots) >> 6
                if _sieve(q, s, w) >> np.uint64((c - roots) & 63) & np.uint64(1) == 0:
                    continue
            if best[c] == -np.inf or best[c] < limit[0]:
                continue
            p = c - roots
            if q.hops:
                # One edge leads to each node, whole or in halves.
                reached = so_far + (1.0 if stands_for[c] == NODE else 0.0)
            else:
                reached = so_far + (swap_cost[i] if swapped else child_cost[i]) + pass_cost[c]
            if stamp[p] == epoch and reached >= cost[p]:
                if reached == cost[p] and not taken[p] and at < parent[p]:
                    parent[p] = at
                continue
            hope = worth(best[c], reached, times, decay)
            if hope < limit[0] or not _passes(q, s, p):
                continue
            stamp[p] = epoch
            cost[p] = reached
            parent[p] = at
            taken[p] = 0
            if r.serves[c] >= 0:
                _offer(r, s, r.serves[c], worth(r.score[c], reached, times, decay), p, q.k)
            if changed and swap[c] >= 0:
                leads = swap_start[swap[c] + 1] > swap_start[swap[c]]
            else:
                leads = child_start[c + 1] > child_start[c]
            if leads:
                promise[p] = -hope
                if where[p] < 0:
                    where[p] = counts[QUEUED]
                    counts[QUEUED] += 1
                rise_item(queue, where, promise, cost, where[p], p)
        if counts[ASKED]:
            counts[AT] = at
            return ASKING
        counts[VISITED] += 1
        if counts[QUEUED] == 0 or -promise[queue[0]] < limit[0]:
            return DONE
        at = np.int64(queue[0])
        taken[at] = 1
        where[at] = -1
        counts[QUEUED] -= 1
        if counts[QUEUED]:
            sink_item(queue, where, promise, cost, counts[QUEUED], 0, queue[counts[QUEUED]])


@bare
def answer(s: SearchBuffers, holds: Bools) -> None:
    """Take in what the content room said of the positions asked."""
    for i in range(s.counts[ASKED]):
        if holds[i]:
            p = s.asked[i]
            s.sure[p >> 6] |= np.uint64(1) << np.uint64(p & 63)


@bare
def search_events(
    q: Search,
    s: SearchBuffers,
    hits: Hits,
    sources: Ints32,
    done: int,
    resume: bool,
    out_subscription: Ints32,
    out_value: Floats64,
    counts: Ints,
) -> int:
    """Search for the best k of one event after another; returns the event it ended at.

    It ends at the last, or at one whose filters must be asked: answered, that search goes on with `resume`.
    Event e has its answers in the `counts[e]` places of `out` from e * k on, in no order.

    Where it is known which filters hold, they are `hits`, and the planes say nothing; else both are empty.
    `given` is empty before and after then.
    """
    hit_start, hit, given = hits.start, hits.position, q.given
    known, marks = len(hit_start) > 0, len(q.above.start) > 0
    s.counts[LED] = led = 0
    for e in range(done, len(sources)):
        s.counts[EVENT], s.counts[SIFTED] = (0, 1) if known else (e, 0)
        source = -1 if resume and e == done else int(sources[e])
        if known:
            for i in range(hit_start[e], hit_start[e + 1]):
                given[hit[i] >> 6] |= np.uint64(1) << np.uint64(hit[i] & 63)
            if marks:
                own = hit[hit_start[e] : hit_start[e + 1]]
                # Nothing is asked where it is known what holds: there is room for marks.
                led = mark(q.above, q.overlay.open, given, q.graph.serving, own, s.leads, s.asked)
                s.counts[LED] = int(led >= 0)
        if search(q, s, source) == ASKING:
            return e
        if known:
            for i in range(hit_start[e], hit_start[e + 1]):
                given[hit[i] >> 6] = 0
            if marks:
                unmark(s.leads, s.asked, led)
        size = s.counts[FOUND]
        counts[e] = size
        for i in range(size):
            out_subscription[e * q.k + i] = s.top[i]
            out_value[e * q.k + i] = s.value[s.top[i]]
    return len(sources)
