"""Hot loops: from an encoded event to the filters that hold.

    probe     every triple asks the table for the edges that it matches; these are marked, with the triple
    hang      every marked edge has patterns that hang at it: those with all edges marked are joined
    join      backtracking over the steps of a pattern, a triple for each
    enter     a joined pattern asks its entries, for each row of the slots that checks look at

Numbers that an epoch marks belong to this event: nothing is cleared between events.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.core.jit import bare, bare_inner
from headgate.rdf.arrays import (
    BLOCK,
    BY_HIGH,
    BY_HITS,
    BY_OBJECT,
    BY_SUBJECT,
    CONSTANT,
    SELF,
    SETS,
    VARIABLE,
)
from headgate.rdf.checking import ASK_REFERENCE, FALSE, TRUE, checks_hold, range_holds
from headgate.rdf.hashing import hash_edge

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.rdf.arrays import Edges, Encoded, RdfArrays

FULL = -1
"""There is no room for more doubts: decide those that there are, and go on."""
TOO_MUCH = -2
"""A join has taken more steps than an event is worth."""
BUDGET = 50_000_000
"""Steps for one pattern: about half a second. A row in doubt counts as `DOUBT` of them."""
DOUBT = 512
LONG = 1024
"""A join of more steps remembers what failed."""
EVERYTHING = np.uint64(0xFFFFFFFFFFFFFFFF)


class Scratch(NamedTuple):
    """What one thread needs: marks by edge and filter, and room for what is found.

    `mark[e]` holds the epoch in its upper half and the edge's last hit in its lower; `hit_count` is how many
    hits there are from one on. A doubt is a filter, the
    place of its row in `rows`, and what must be asked.

    For a join: `conflict[d]` are the steps that failures behind step d depend on, a bit each; `setter` the
    step that sets a slot; `failed` keeps pairs of a step and a node from which it is known to fail.

    `counts`: 0 hits, 1 edges touched, 2 filters out, 3 doubts, 4 words of rows, 5 whether the row is among
    them, 6 entries of the pattern that are open, 7 steps taken, 8 the edge and 9 the pattern that the loop is
    at.
    """

    mark: NDArray[np.int64]
    seen: NDArray[np.int32]
    hit_next: NDArray[np.int32]
    hit_triple: NDArray[np.int32]
    hit_count: NDArray[np.int32]
    touched: NDArray[np.int32]
    at: NDArray[np.int32]
    mode: NDArray[np.int32]
    row: NDArray[np.int32]
    taken: NDArray[np.int32]
    out: NDArray[np.int32]
    doubts: NDArray[np.int32]
    rows: NDArray[np.int32]
    counts: NDArray[np.int64]
    conflict: NDArray[np.uint64]
    setter: NDArray[np.int32]
    blame: NDArray[np.uint64]
    failed: NDArray[np.int64]
    failed_when: NDArray[np.int32]


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


@bare_inner
def _fits(arrays: RdfArrays, event: Encoded, row: NDArray[np.int32], step: int, t: int, hit: bool) -> bool:
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
    how = patterns.step_code[step, 0]
    if how != CONSTANT:
        if how & SETS:
            row[how & 63] = s
        elif row[how] != s:
            return False
    how = patterns.step_code[step, 1]
    if how != CONSTANT:
        if how & SETS:
            row[how & 63] = p
        elif row[how] != p:
            return False
    how = patterns.step_code[step, 2]
    if how != CONSTANT:
        if how & SETS:
            row[how & 63] = o
        elif row[how] != o:
            return False
    return True


@bare_inner
def _apart(arrays: RdfArrays, event: Encoded, scratch: Scratch, first: int, depth: int) -> bool:
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
                elif CONSTANT in (how, what) or (how & 63) != (what & 63):
                    return False
    return True


@bare_inner
def _emit(arrays: RdfArrays, event: Encoded, scratch: Scratch, entry: int, epoch: int, answer: int) -> int:
    """Check an entry for the row, and note the answer; returns 1 if it is settled, else 0."""
    number = arrays.entries.number[entry]
    if scratch.seen[number] == epoch:
        return 0
    at = arrays.entries.checks[entry]
    if at:
        found = checks_hold(event, arrays.checks, at, scratch.row, scratch.blame)
        answer = found if found == FALSE else max(found, answer)
    if answer == FALSE:
        return 0
    if answer == TRUE:
        scratch.seen[number] = epoch
        scratch.out[scratch.counts[2]] = number
        scratch.counts[2] += 1
        return 1
    doubts, rows = scratch.counts[3], scratch.counts[4]
    if answer == ASK_REFERENCE:
        # Once is enough: the reference looks at the whole event.
        scratch.seen[number] = epoch
    else:
        scratch.blame[0] = EVERYTHING
    if scratch.counts[5] == 0:
        scratch.counts[5] = 1
        scratch.counts[4] = rows + 64
        scratch.counts[7] += DOUBT
        for slot in range(64):
            scratch.rows[rows + slot] = scratch.row[slot]
    scratch.doubts[4 * doubts] = number
    scratch.doubts[4 * doubts + 1] = scratch.counts[4] - 64
    scratch.doubts[4 * doubts + 2] = answer
    scratch.doubts[4 * doubts + 3] = at
    scratch.counts[3] = doubts + 1
    return 1 if answer == ASK_REFERENCE else 0


@bare_inner
def enter(arrays: RdfArrays, event: Encoded, scratch: Scratch, pattern: int, epoch: int) -> int:
    """Ask the entries of a pattern for the row; returns how many were settled, or FULL and asks none."""
    patterns, groups = arrays.patterns, arrays.groups
    begin, end = patterns.entry_start[pattern], patterns.entry_start[pattern + 1]
    first, last = patterns.group_start[pattern], patterns.group_start[pattern + 1]
    free = groups.entry[first] if first < last else end
    if 4 * (scratch.counts[3] + end - begin) > len(scratch.doubts) or scratch.counts[4] + 64 > len(
        scratch.rows
    ):
        return FULL
    settled = 0
    scratch.counts[5] = 0
    scratch.blame[0] = np.uint64(0)
    for entry in range(begin, free):
        settled += _emit(arrays, event, scratch, entry, epoch, TRUE)
    for g in range(first, last):
        term = scratch.row[groups.slot[g]]
        line = groups.line[g]
        scratch.blame[0] |= np.uint64(1) << np.uint64(groups.slot[g])
        if event.line[term] == 0:
            continue
        low, high = 0, groups.size[g]
        at, entry = groups.range_at[g], groups.entry[g]
        if event.line[term] == line:
            # Ranges that begin above the value, or end below it, are cut off.
            size = high
            key = event.key[term]
            slack = event.slack[term]
            if groups.order[g] == BY_HIGH:
                least = key - slack
                while low < high:
                    middle = (low + high) >> 1
                    if groups.high[at + middle] < least:
                        low = middle + 1
                    else:
                        high = middle
                high = size
            else:
                most = key + slack
                while low < high:
                    middle = (low + high) >> 1
                    if groups.low[at + middle] <= most:
                        low = middle + 1
                    else:
                        high = middle
                low = 0
        block = -1
        i = low
        while i < high:
            if i // BLOCK != block and event.line[term] == line:
                block = i // BLOCK
                if groups.top[groups.block_at[g] + block] < event.key[term] - event.slack[term]:
                    i = (block + 1) * BLOCK
                    continue
            answer = range_holds(
                event, term, line, groups.low[at + i], groups.high[at + i], groups.flags[at + i]
            )
            if answer != FALSE:
                settled += _emit(arrays, event, scratch, entry + i, epoch, answer)
            i += 1
    return settled


@bare_inner
def _begin(arrays: RdfArrays, event: Encoded, scratch: Scratch, step: int, depth: int) -> None:
    """Begin a step with the fewest triples: those that match its edge, or those of a node that is bound."""
    patterns = arrays.patterns
    head = np.int32(scratch.mark[patterns.step_edge[step]] & 0xFFFFFFFF)
    mode = patterns.step_code[step, 3]
    scratch.mode[depth] = BY_HITS
    scratch.at[depth] = head
    if mode == BY_SUBJECT:
        node = scratch.row[patterns.step_code[step, 0]]
        if event.s_start[node + 1] - event.s_start[node] < scratch.hit_count[head]:
            scratch.mode[depth] = BY_SUBJECT
            scratch.at[depth] = event.s_start[node]
    elif mode == BY_OBJECT:
        node = scratch.row[patterns.step_code[step, 2]]
        if event.o_start[node + 1] - event.o_start[node] < scratch.hit_count[head]:
            scratch.mode[depth] = BY_OBJECT
            scratch.at[depth] = event.o_start[node]


@bare_inner
def _needs(arrays: RdfArrays, scratch: Scratch, step: int, depth: int) -> np.uint64:
    """Return the steps before one that set what its edge looks at, a bit each."""
    found = np.uint64(0)
    for side in range(3):
        how = arrays.patterns.step_code[step, side]
        if how != CONSTANT and not how & SETS:
            found |= np.uint64(1) << np.uint64(scratch.setter[how])
    return found & ((np.uint64(1) << np.uint64(depth)) - np.uint64(1))


@bare_inner
def _only_slot(arrays: RdfArrays, scratch: Scratch, first: int, step: int) -> int:
    """Return the slot that a step looks at, if there is exactly one and it is all that another step sets.

    Else -1. Then what depends on that other step depends on the value of this slot and on nothing else.
    """
    found = -1
    for side in range(3):
        how = arrays.patterns.step_code[step, side]
        if how != CONSTANT and not how & SETS:
            slot = int(how)
            if found >= 0 and found != slot:
                return -1
            found = slot
    if found >= 0:
        setting = first + scratch.setter[found]
        for side in range(3):
            how = arrays.patterns.step_code[setting, side]
            if how != CONSTANT and how & SETS and (how & 63) != found:
                return -1
    return found


@bare_inner
def _memory(scratch: Scratch, step: int, node: int) -> int:
    """Return where it is remembered that a step fails from a node."""
    return int(hash_edge(step, node, 0) & np.uint64(len(scratch.failed) - 1))


@bare_inner
def _jump(scratch: Scratch, conflict: np.uint64) -> int:
    """Go back to the last step that a failure depends on, past those that could only repeat it."""
    depth = -1
    while depth < 63 and conflict >> np.uint64(depth + 1):
        depth += 1
    if depth >= 0:
        scratch.conflict[depth] |= conflict & ~(np.uint64(1) << np.uint64(depth))
    return depth


@bare_inner
def _blamed(scratch: Scratch, back: int) -> np.uint64:
    """Return the steps that set what checks have failed for."""
    blame = scratch.blame[0]
    if blame == EVERYTHING:
        # A shift by 64 is not defined.
        return EVERYTHING >> np.uint64(63 - back) if back >= 0 else np.uint64(0)
    found = np.uint64(0)
    slot = 0
    while blame:
        if blame & np.uint64(1):
            found |= np.uint64(1) << np.uint64(scratch.setter[slot])
        blame >>= np.uint64(1)
        slot += 1
    return found


@bare_inner
def join(
    arrays: RdfArrays,
    event: Encoded,
    scratch: Scratch,
    pattern: int,
    epoch: int,
    injective: bool,
    again: bool,
) -> int:
    """Find the rows of a pattern, and ask its entries for each; returns 0, FULL or TOO_MUCH.

    A step that fails goes back to the last one that this depends on: the properties of a node are searched
    one beside the other, and not all combinations of them. `again` goes on with the row at which there was no
    room.
    """
    patterns = arrays.patterns
    first, last = patterns.step_start[pattern], patterns.step_start[pattern + 1]
    at, row = scratch.at, scratch.row
    depth, spent = 0, 0
    if again:
        depth = last - first
    else:
        scratch.counts[6] = patterns.entry_start[pattern + 1] - patterns.entry_start[pattern]
        scratch.counts[7] = 0
        scratch.conflict[0] = np.uint64(0)
        _begin(arrays, event, scratch, first, 0)
    while depth >= 0:
        step = first + depth
        if step == last:
            settled = enter(arrays, event, scratch, pattern, epoch)
            scratch.counts[7] += spent
            spent = 0
            if settled < 0:
                return FULL
            scratch.counts[6] -= settled
            if scratch.counts[6] <= 0:
                return 0
            if scratch.counts[7] > BUDGET:
                return TOO_MUCH
            depth = _jump(scratch, _blamed(scratch, patterns.back[pattern]))
            continue
        mode = scratch.mode[depth]
        here = at[depth]
        end = 0
        if mode == BY_SUBJECT:
            end = event.s_start[row[patterns.step_code[step, 0]] + 1]
        elif mode == BY_OBJECT:
            end = event.o_start[row[patterns.step_code[step, 2]] + 1]
        found, t = False, 0
        while not found and (here >= 0 if mode == BY_HITS else here < end):
            if mode == BY_HITS:
                t = scratch.hit_triple[here]
                here = scratch.hit_next[here]
            else:
                t = event.by_s[here] if mode == BY_SUBJECT else event.by_o[here]
                here += 1
            spent += 1
            found = _fits(arrays, event, row, step, t, mode == BY_HITS)
        at[depth] = here
        if not found:
            conflict = scratch.conflict[depth] | _needs(arrays, scratch, step, depth)
            if spent > LONG and not injective:
                slot = _only_slot(arrays, scratch, first, step)
                if slot >= 0 and conflict == np.uint64(1) << np.uint64(scratch.setter[slot]):
                    where = _memory(scratch, step, row[slot])
                    scratch.failed[where] = (np.int64(step) << 32) | row[slot]
                    scratch.failed_when[where] = epoch
            if spent > BUDGET:
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
                scratch.setter[how & 63] = depth
        depth += 1
        step += 1
        if step < last:
            scratch.conflict[depth] = np.uint64(0)
            if spent > LONG and not injective:
                slot = _only_slot(arrays, scratch, first, step)
                if slot >= 0:
                    where = _memory(scratch, step, row[slot])
                    known = (np.int64(step) << 32) | row[slot]
                    if scratch.failed[where] == known and scratch.failed_when[where] == epoch:
                        depth = _jump(scratch, np.uint64(1) << np.uint64(scratch.setter[slot]))
                        continue
            _begin(arrays, event, scratch, step, depth)
    scratch.counts[7] += spent
    return 0


@bare
def match(
    arrays: RdfArrays, event: Encoded, scratch: Scratch, epoch: int, injective: bool, again: bool
) -> int:
    """Find the filters that hold for an event; returns 0, FULL or TOO_MUCH.

    `counts[2]` of them are in `out`, not sorted, and `counts[3]` are in doubt. After FULL, when the doubts
    are decided, `again` goes on.
    """
    edges, patterns = arrays.edges, arrays.patterns
    if not again:
        for i in range(len(scratch.counts)):
            scratch.counts[i] = 0
        probe(edges, event, scratch, epoch)
    i = scratch.counts[8]
    while i < scratch.counts[1]:
        pattern = scratch.counts[9] if again else edges.first[scratch.touched[i]]
        while pattern >= 0:
            possible = True
            if not again:
                for step in range(patterns.step_start[pattern] + 1, patterns.step_start[pattern + 1]):
                    if scratch.mark[patterns.step_edge[step]] >> 32 != epoch:
                        possible = False
                        break
            if possible:
                done = join(arrays, event, scratch, pattern, epoch, injective, again)
                again = False
                if done < 0:
                    scratch.counts[8], scratch.counts[9] = i, pattern
                    return done
            pattern = patterns.next[pattern]
        i += 1
    return 0
