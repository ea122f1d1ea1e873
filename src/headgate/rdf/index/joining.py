"""Hot loops: the rows of a pattern, found by backtracking over its steps, a triple for each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headgate.core.hashing import hash_edge
from headgate.core.jit import bare_inner
from headgate.rdf.index.arrays import BY_HITS, BY_OBJECT, BY_SUBJECT, CONSTANT, SETS
from headgate.rdf.index.entering import enter
from headgate.rdf.index.scratch import EVERYTHING, FULL, LONG, READINGS, ROWS, TOO_MUCH

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.rdf.index.arrays import Encoded, RdfArrays
    from headgate.rdf.index.scratch import Scratch


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
    depth, spent, budget = 0, 0, scratch.counts[10]
    if again:
        depth = last - first
    else:
        scratch.counts[6] = patterns.entry_start[pattern + 1] - patterns.entry_start[pattern]
        if some:
            for entry in range(patterns.entry_start[pattern], patterns.entry_start[pattern + 1]):
                scratch.counts[6] -= scratch.seen[arrays.entries.number[entry]] == epoch
        scratch.counts[7] = 0
        scratch.blame[1] = np.uint64(0)
        # Many filters may look at the same rows and texts, each for its own: no one of them is at fault.
        scratch.blame[2] = np.uint64(budget + scratch.counts[6] * (ROWS + READINGS * len(event.text)))
        scratch.conflict[0] = np.uint64(0)
        _begin(arrays, event, scratch, first, 0)
    while depth >= 0:
        step = first + depth
        if step == last:
            settled = enter(arrays, event, scratch, pattern, epoch, some)
            scratch.counts[7] += spent
            spent = 0
            if settled < 0:
                return FULL
            scratch.counts[6] -= settled
            if scratch.counts[6] <= 0:
                return 0
            if scratch.counts[7] > budget or scratch.blame[1] > scratch.blame[2]:
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
