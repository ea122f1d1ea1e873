"""Hot loops: from an encoded event to the filters that hold.

    probe     every triple asks the table for the edges that it matches; these are marked, with the triple
    hang      every marked edge has patterns that hang at it: those with all edges marked are joined
    join      backtracking over the steps of a pattern, a triple for each (`joining`)
    enter     a joined pattern asks its entries, for each row of the slots that checks look at (`entering`)

Numbers that an epoch marks belong to this event: nothing is cleared between events.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headgate.core.hashing import hash_edge
from headgate.core.jit import bare, bare_inner
from headgate.rdf.index.arrays import SELF, VARIABLE
from headgate.rdf.index.joining import join
from headgate.rdf.index.scratch import ONLY, ONLY_ROW, PASS, ROW, START

if TYPE_CHECKING:
    from headgate.rdf.index.arrays import Edges, Encoded, RdfArrays
    from headgate.rdf.index.scratch import Scratch


@bare_inner
def find_edge(edges: Edges, s: int, p: int, o: int) -> int:
    """Find an edge, -1 for none."""
    mask = np.uint64(len(edges.table) - 1)
    at = hash_edge(s, p, o) & mask
    while True:
        e = edges.table[at]
        if e < 0:
            return -1
        if edges.s[e] == s and edges.p[e] == p and edges.o[e] == o:
            return int(e)
        at = (at + np.uint64(1)) & mask


@bare_inner
def _hit(scratch: Scratch, e: int, t: int, epoch: int) -> None:
    """Note that a triple matches an edge."""
    hits = scratch.counts[0]
    scratch.counts[0] = hits + 1
    mark = scratch.mark[e]
    if mark >> 32 != epoch:
        scratch.touched[scratch.counts[1]] = e
        scratch.counts[1] += 1
        scratch.hit_next[hits] = -1
        scratch.hit_count[hits] = 1
    else:
        before = np.int32(mark & 0xFFFFFFFF)
        scratch.hit_next[hits] = before
        scratch.hit_count[hits] = scratch.hit_count[before] + 1
    scratch.hit_triple[hits] = t
    scratch.mark[e] = (np.int64(epoch) << 32) | hits


@bare_inner
def probe(edges: Edges, event: Encoded, scratch: Scratch, epoch: int) -> None:
    """Mark the edges that triples match."""
    masks = edges.masks[0]
    for t in range(len(event.s)):
        s, p, o = event.code[event.s[t]], event.code[event.p[t]], event.code[event.o[t]]
        virtual = event.virtual[t] != 0
        for mask in range(8):
            if masks >> mask & 1 == 0:
                continue
            if mask & 2 == 0 and virtual:
                continue
            a, b, c = VARIABLE, VARIABLE, VARIABLE
            if mask & 4:
                a = s
                if s < 0:
                    continue
            if mask & 2:
                b = p
                if p < 0:
                    continue
            if mask & 1:
                c = o
                if o < 0:
                    continue
            e = find_edge(edges, a, b, c)
            if e >= 0:
                _hit(scratch, e, t, epoch)
        if masks >> 8 and event.s[t] == event.o[t]:
            if p >= 0:
                e = find_edge(edges, SELF, p, SELF)
                if e >= 0:
                    _hit(scratch, e, t, epoch)
            if not virtual:
                e = find_edge(edges, SELF, VARIABLE, SELF)
                if e >= 0:
                    _hit(scratch, e, t, epoch)


@bare
def match(arrays: RdfArrays, event: Encoded, scratch: Scratch, epoch: int, injective: bool, how: int) -> int:
    """Find the filters that hold for an event; returns 0, FULL or TOO_MUCH.

    `counts[2]` of them are in `out`, not sorted, and `counts[3]` are in doubt. After FULL, when the doubts
    are decided, and after TOO_MUCH it is called again: `how` says with what it goes on.
    """
    edges, patterns = arrays.edges, arrays.patterns
    if how == START:
        for i in range(10):
            scratch.counts[i] = 0
        probe(edges, event, scratch, epoch)
    only = how >= ONLY
    i = scratch.counts[8]
    while i < scratch.counts[1]:
        pattern = edges.first[scratch.touched[i]] if how == START else scratch.counts[9]
        if how == PASS:
            pattern = patterns.next[pattern]
            how = START
        while pattern >= 0:
            possible = True
            if how == START:
                for step in range(patterns.step_start[pattern] + 1, patterns.step_start[pattern + 1]):
                    if scratch.mark[patterns.step_edge[step]] >> 32 != epoch:
                        possible = False
                        break
            if possible:
                again = how in (ROW, ONLY_ROW)
                done = join(arrays, event, scratch, pattern, epoch, injective, again, only)
                if done < 0:
                    scratch.counts[8], scratch.counts[9] = i, pattern
                if done < 0 or only:
                    return done
            how = START
            pattern = patterns.next[pattern]
        how = START
        i += 1
    return 0
