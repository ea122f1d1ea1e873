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

from headgate.core.bits import lower, packed, upper
from headgate.core.hashing import hash_edge
from headgate.core.jit import bare, bare_inner
from headgate.rdf.index.arrays import (
    ASKED,
    AT_EDGE,
    AT_PATTERN,
    BY_HITS,
    BY_OBJECT,
    BY_SUBJECT,
    CONSTANT,
    EVERYTHING,
    FAILED,
    FULL,
    HITS,
    LONG,
    LOOPS,
    MODE,
    MOST_ASKED,
    MOST_STEPS,
    O_KNOWN,
    OBJECT,
    ONLY,
    ONLY_ROW,
    OPEN,
    P_KNOWN,
    PASS,
    PROPERTY,
    READINGS,
    ROW,
    ROWS,
    S_KNOWN,
    SELF,
    SETS,
    SLOT,
    START,
    STEPS_TAKEN,
    SUBJECT,
    TOO_MUCH,
    TOUCHED,
    VARIABLE,
)
from headgate.rdf.index.checking import enter

if TYPE_CHECKING:
    from headgate.core.arrays import Ints32
    from headgate.rdf.index.arrays import Edges, Encoded, JoinScratch, RdfArrays


@bare_inner
def _place_fits(row: Ints32, how: int, term: int) -> bool:
    """Tell whether a term fits a place of a step, and set the slot that it sets."""
    if how == CONSTANT:
        return True
    if how & SETS:
        row[how & SLOT] = term
        return True
    return bool(row[how] == term)


@bare_inner
def _fits(arrays: RdfArrays, event: Encoded, row: Ints32, step: int, t: int, hit: bool) -> bool:
    """Tell whether a triple fits a step, and set the slots that it sets."""
    patterns, edges = arrays.patterns, arrays.edges
    e = patterns.step_edge[step]
    s, p, o = event.s[t], event.p[t], event.o[t]
    if not hit:
        a, b, c = edges.s[e], edges.p[e], edges.o[e]
        if a >= 0 and event.code[s] != a:
            return False
        if b >= 0:
            if event.code[p] != b:
                return False
        elif event.virtual[t]:
            return False
        if c >= 0 and event.code[o] != c:
            return False
    code = patterns.step_code
    return (
        _place_fits(row, code[step, SUBJECT], s)
        and _place_fits(row, code[step, PROPERTY], p)
        and _place_fits(row, code[step, OBJECT], o)
    )


@bare_inner
def _apart(arrays: RdfArrays, event: Encoded, scratch: JoinScratch, first: int, depth: int) -> bool:
    """Tell whether the last triple taken is another than those before, and its nodes than theirs."""
    patterns, edges = arrays.patterns, arrays.edges
    e, t = patterns.step_edge[first + depth], scratch.taken[depth]
    for j in range(depth + 1):
        f, u = patterns.step_edge[first + j], scratch.taken[j]
        if j != depth and t == u and not event.virtual[t]:
            return False
        for side in range(2):
            how = patterns.step_code[first + depth, 2 * side]
            mine = event.o[t] if side else event.s[t]
            code = edges.o[e] if side else edges.s[e]
            # The class of a virtual triple is a node only if it is a variable.
            if side and how == CONSTANT and event.virtual[t]:
                continue
            for other in range(2):
                what = patterns.step_code[first + j, 2 * other]
                theirs = event.o[u] if other else event.s[u]
                named = edges.o[f] if other else edges.s[f]
                if mine != theirs or (other and what == CONSTANT and event.virtual[u]):
                    continue
                if how == CONSTANT and what == CONSTANT:
                    if code != named:
                        return False
                elif CONSTANT in (how, what) or (how & SLOT) != (what & SLOT):
                    return False
    return True


@bare_inner
def _begin(arrays: RdfArrays, event: Encoded, scratch: JoinScratch, step: int, depth: int) -> None:
    """Begin a step with the fewest triples: those that match its edge, or those of a node that is bound."""
    patterns = arrays.patterns
    head = np.int32(lower(scratch.mark[patterns.step_edge[step]]))
    mode = patterns.step_code[step, MODE]
    scratch.mode[depth] = BY_HITS
    scratch.at[depth] = head
    if mode == BY_SUBJECT:
        node = scratch.row[patterns.step_code[step, SUBJECT]]
        if event.s_start[node + 1] - event.s_start[node] < scratch.hit_count[head]:
            scratch.mode[depth] = BY_SUBJECT
            scratch.at[depth] = event.s_start[node]
    elif mode == BY_OBJECT:
        node = scratch.row[patterns.step_code[step, OBJECT]]
        if event.o_start[node + 1] - event.o_start[node] < scratch.hit_count[head]:
            scratch.mode[depth] = BY_OBJECT
            scratch.at[depth] = event.o_start[node]


@bare_inner
def _needs(arrays: RdfArrays, scratch: JoinScratch, step: int, depth: int) -> np.uint64:
    """Return the steps before one that set what its edge looks at, a bit each."""
    steps = np.uint64(0)
    for side in range(3):
        how = arrays.patterns.step_code[step, side]
        if how != CONSTANT and not how & SETS:
            steps |= np.uint64(1) << np.uint64(scratch.setter[how])
    return steps & ((np.uint64(1) << np.uint64(depth)) - np.uint64(1))


@bare_inner
def _only_slot(arrays: RdfArrays, scratch: JoinScratch, first: int, step: int) -> int:
    """Return the slot that a step looks at, if there is exactly one and it is all that another step sets.

    Else -1. Then what depends on that other step depends on the value of this slot and on nothing else.
    """
    only = -1
    for side in range(3):
        how = arrays.patterns.step_code[step, side]
        if how != CONSTANT and not how & SETS:
            slot = int(how)
            if only >= 0 and only != slot:
                return -1
            only = slot
    if only >= 0:
        setting = first + scratch.setter[only]
        for side in range(3):
            how = arrays.patterns.step_code[setting, side]
            if how != CONSTANT and how & SETS and (how & SLOT) != only:
                return -1
    return only


@bare_inner
def _memory(scratch: JoinScratch, step: int, node: int) -> int:
    """Return where it is remembered that a step fails from a node."""
    return int(hash_edge(step, node, 0) & np.uint64(len(scratch.failed) - 1))


@bare_inner
def _jump(scratch: JoinScratch, conflict: np.uint64) -> int:
    """Go back to the last step that a failure depends on, past those that could only repeat it."""
    depth = -1
    while depth < 63 and conflict >> np.uint64(depth + 1):
        depth += 1
    if depth >= 0:
        scratch.conflict[depth] |= conflict & ~(np.uint64(1) << np.uint64(depth))
    return depth


@bare_inner
def _blamed(scratch: JoinScratch, back: int) -> np.uint64:
    """Return the steps that set what checks have failed for."""
    blame = scratch.blame[FAILED]
    if blame == EVERYTHING:
        # A shift by 64 is not defined.
        return EVERYTHING >> np.uint64(63 - back) if back >= 0 else np.uint64(0)
    steps = np.uint64(0)
    slot = 0
    while blame:
        if blame & np.uint64(1):
            steps |= np.uint64(1) << np.uint64(scratch.setter[slot])
        blame >>= np.uint64(1)
        slot += 1
    return steps


@bare_inner
def join(
    arrays: RdfArrays,
    event: Encoded,
    scratch: JoinScratch,
    pattern: int,
    epoch: int,
    injective: bool,
    again: bool,
    some: bool,
) -> int:
    """Find the rows of a pattern, and ask its entries for each; returns 0, FULL or TOO_MUCH.

    A step that fails goes back to the last one that this depends on: the properties of a node are searched
    one beside the other, and not all combinations of them. `again` goes on with the row at which there was no
    room; `some` asks those entries only that nothing is known of.
    """
    patterns = arrays.patterns
    first, last = patterns.step_start[pattern], patterns.step_start[pattern + 1]
    at, row = scratch.at, scratch.row
    depth, spent, budget = 0, 0, scratch.counts[MOST_STEPS]
    if again:
        depth = last - first
    else:
        scratch.counts[OPEN] = patterns.entry_start[pattern + 1] - patterns.entry_start[pattern]
        if some:
            for entry in range(patterns.entry_start[pattern], patterns.entry_start[pattern + 1]):
                scratch.counts[OPEN] -= scratch.seen[arrays.entries.number[entry]] == epoch
        scratch.counts[STEPS_TAKEN] = 0
        scratch.blame[ASKED] = np.uint64(0)
        # Many filters may look at the same rows and texts, each for its own: no one of them is at fault.
        scratch.blame[MOST_ASKED] = np.uint64(
            budget + scratch.counts[OPEN] * (ROWS + READINGS * len(event.text))
        )
        scratch.conflict[0] = np.uint64(0)
        _begin(arrays, event, scratch, first, 0)
    while depth >= 0:
        step = first + depth
        if step == last:
            settled = enter(arrays, event, scratch, pattern, epoch, some)
            scratch.counts[STEPS_TAKEN] += spent
            spent = 0
            if settled < 0:
                return FULL
            scratch.counts[OPEN] -= settled
            if scratch.counts[OPEN] <= 0:
                return 0
            if scratch.counts[STEPS_TAKEN] > budget or scratch.blame[ASKED] > scratch.blame[MOST_ASKED]:
                return TOO_MUCH
            depth = _jump(scratch, _blamed(scratch, patterns.back[pattern]))
            continue
        mode = scratch.mode[depth]
        here = at[depth]
        end = 0
        if mode == BY_SUBJECT:
            end = event.s_start[row[patterns.step_code[step, SUBJECT]] + 1]
        elif mode == BY_OBJECT:
            end = event.o_start[row[patterns.step_code[step, OBJECT]] + 1]
        fits, t = False, 0
        while not fits and (here >= 0 if mode == BY_HITS else here < end):
            if mode == BY_HITS:
                t = scratch.hit_triple[here]
                here = scratch.hit_next[here]
            else:
                t = event.by_s[here] if mode == BY_SUBJECT else event.by_o[here]
                here += 1
            spent += 1
            fits = _fits(arrays, event, row, step, t, mode == BY_HITS)
        at[depth] = here
        if not fits:
            conflict = scratch.conflict[depth] | _needs(arrays, scratch, step, depth)
            if spent > LONG and not injective:
                slot = _only_slot(arrays, scratch, first, step)
                if slot >= 0 and conflict == np.uint64(1) << np.uint64(scratch.setter[slot]):
                    where = _memory(scratch, step, row[slot])
                    scratch.failed[where] = packed(step, row[slot])
                    scratch.failed_when[where] = epoch
            if spent > budget:
                return TOO_MUCH
            depth = _jump(scratch, conflict)
            continue
        scratch.taken[depth] = t
        if injective and not _apart(arrays, event, scratch, first, depth):
            scratch.conflict[depth] |= (np.uint64(1) << np.uint64(depth)) - np.uint64(1)
            continue
        for side in range(3):
            how = patterns.step_code[step, side]
            if how != CONSTANT and how & SETS:
                scratch.setter[how & SLOT] = depth
        depth += 1
        step += 1
        if step < last:
            scratch.conflict[depth] = np.uint64(0)
            if spent > LONG and not injective:
                slot = _only_slot(arrays, scratch, first, step)
                if slot >= 0:
                    where = _memory(scratch, step, row[slot])
                    known = packed(step, row[slot])
                    if scratch.failed[where] == known and scratch.failed_when[where] == epoch:
                        depth = _jump(scratch, np.uint64(1) << np.uint64(scratch.setter[slot]))
                        continue
            _begin(arrays, event, scratch, step, depth)
    scratch.counts[STEPS_TAKEN] += spent
    return 0


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
def _hit(scratch: JoinScratch, e: int, t: int, epoch: int) -> None:
    """Note that a triple matches an edge."""
    hits = scratch.counts[HITS]
    scratch.counts[HITS] = hits + 1
    mark = scratch.mark[e]
    if upper(mark) != epoch:
        scratch.touched[scratch.counts[TOUCHED]] = e
        scratch.counts[TOUCHED] += 1
        scratch.hit_next[hits] = -1
        scratch.hit_count[hits] = 1
    else:
        before = np.int32(lower(mark))
        scratch.hit_next[hits] = before
        scratch.hit_count[hits] = scratch.hit_count[before] + 1
    scratch.hit_triple[hits] = t
    scratch.mark[e] = packed(epoch, hits)


@bare_inner
def probe(edges: Edges, event: Encoded, scratch: JoinScratch, epoch: int) -> None:
    """Mark the edges that triples match."""
    masks = edges.masks[0]
    for t in range(len(event.s)):
        s, p, o = event.code[event.s[t]], event.code[event.p[t]], event.code[event.o[t]]
        virtual = event.virtual[t] != 0
        for mask in range(8):
            if masks >> mask & 1 == 0:
                continue
            if mask & P_KNOWN == 0 and virtual:
                continue
            a, b, c = VARIABLE, VARIABLE, VARIABLE
            if mask & S_KNOWN:
                a = s
                if s < 0:
                    continue
            if mask & P_KNOWN:
                b = p
                if p < 0:
                    continue
            if mask & O_KNOWN:
                c = o
                if o < 0:
                    continue
            e = find_edge(edges, a, b, c)
            if e >= 0:
                _hit(scratch, e, t, epoch)
        if masks & LOOPS and event.s[t] == event.o[t]:
            if p >= 0:
                e = find_edge(edges, SELF, p, SELF)
                if e >= 0:
                    _hit(scratch, e, t, epoch)
            if not virtual:
                e = find_edge(edges, SELF, VARIABLE, SELF)
                if e >= 0:
                    _hit(scratch, e, t, epoch)


@bare
def match(
    arrays: RdfArrays, event: Encoded, scratch: JoinScratch, epoch: int, injective: bool, how: int
) -> int:
    """Find the filters that hold for an event; returns 0, FULL or TOO_MUCH.

    `counts[FOUND]` of them are in `out`, not sorted, and `counts[DOUBTS]` are in doubt. After FULL, when the
    doubts are decided, and after TOO_MUCH it is called again: `how` says with what it goes on.
    """
    edges, patterns = arrays.edges, arrays.patterns
    if how == START:
        for i in range(MOST_STEPS):
            scratch.counts[i] = 0
        probe(edges, event, scratch, epoch)
    only = how >= ONLY
    i = scratch.counts[AT_EDGE]
    while i < scratch.counts[TOUCHED]:
        pattern = edges.first[scratch.touched[i]] if how == START else scratch.counts[AT_PATTERN]
        if how == PASS:
            pattern = patterns.next[pattern]
            how = START
        while pattern >= 0:
            possible = True
            if how == START:
                for step in range(patterns.step_start[pattern] + 1, patterns.step_start[pattern + 1]):
                    if upper(scratch.mark[patterns.step_edge[step]]) != epoch:
                        possible = False
                        break
            if possible:
                again = how in (ROW, ONLY_ROW)
                done = join(arrays, event, scratch, pattern, epoch, injective, again, only)
                if done < 0:
                    scratch.counts[AT_EDGE], scratch.counts[AT_PATTERN] = i, pattern
                if done < 0 or only:
                    return done
            how = START
            pattern = patterns.next[pattern]
        how = START
        i += 1
    return 0
