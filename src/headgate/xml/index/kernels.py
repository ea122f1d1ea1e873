"""Hot loops: from a document to the filters that hold.

    find_paths    the distinct paths of labels; nodes of one path are alike to the trie
    walk_trie     which nodes of the trie each path leads to, from the root down
    sift          what is known of each unit at each path, from the leaves up: that it holds at no node of the
                  path, at all, at some, or perhaps at some. An anchor that holds at some is done with
    want          the units that the other anchors are made of, down to what holds for all nodes of its paths
    settle        these node by node, in reverse document order

What sift knows. A unit has parts: its tests, and the units below it. If each holds for all nodes of the path,
so does the unit. If all but one do, and that one holds for some, so does the unit. If the path has but one
node, and all parts hold for some, it is that one. Else the parts may hold at different nodes. A unit below
that holds for all nodes of its own path does so below all nodes of the path above if each of these has such a
child (`DocumentScratch.top`).

Where a unit holds below. Those behind a node in document order are done when it is looked at, and the last
that was done is the first behind it. So for descendants it is enough to know where a unit held last. For
children, the parents of the nodes where it held are kept, one each: those that still can be asked about are
above each other, the lowest last, and those behind the node that asks can be forgotten. The same is true of
paths, which are numbered as a document's nodes are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.core.jit import bare, bare_inner
from headgate.xml.index.arrays import ANCHOR, ASKED, BEGIN, END, FAR, KIND, TESTS
from headgate.xml.index.passing import NO_PAIRS, NO_ROOM, NO_TIME, NONE, ask_tests
from headgate.xml.index.paths import find_paths, walk_trie
from headgate.xml.index.scratch import (
    ALL,
    DONE,
    ENTRIES,
    EPOCH,
    FULL_ENTRIES,
    FULL_PAIRS,
    FULL_TRUTHS,
    HITS,
    MAYBE,
    MOST,
    NEVER,
    NO,
    OUT,
    PATHS,
    SOME,
    TOO_MUCH,
    WANTED,
    WHERE,
    WHERE_ALL,
    WHERE_SOME,
)

if TYPE_CHECKING:
    from headgate.core.arrays import Ints32
    from headgate.xml.events.document import Document
    from headgate.xml.index.arrays import Forests, Units, XmlArrays
    from headgate.xml.index.scratch import DocumentScratch, IndexScratch, Lists, MatchScratch

# For the axis of children, a unit's state holds a parent in WHERE, and in these what is known below it, and
# the entry for the parent above.
_KNOWN, _ENTRY = WHERE_SOME, WHERE_ALL


@bare_inner
def _parent_of_last(fixed: IndexScratch, lists: Lists, u: int, beyond: int) -> int:
    """Forget parents of a unit that are beyond a place; returns the last that is left, -1 for none."""
    state = fixed.state
    while state[u, WHERE] > beyond:
        entry = state[u, _ENTRY]
        if entry < 0:
            state[u, WHERE] = -1
        else:
            state[u, WHERE], state[u, _KNOWN] = lists.above[entry], lists.known[entry]
            state[u, _ENTRY] = lists.before[entry]
    return int(state[u, WHERE])


@bare_inner
def _known_below(
    sized: DocumentScratch, fixed: IndexScratch, lists: Lists, below: int, p: int, epoch: int
) -> int:
    """Tell what is known of a unit below a path: whether its nodes have such a child or descendant."""
    u, state = below >> 1, fixed.state
    if state[u, EPOCH] != epoch:
        return NO
    if below & FAR:
        end = sized.end[p]
        if state[u, WHERE] > end:
            return NO
        if state[u, WHERE_ALL] <= end and sized.top[state[u, WHERE_ALL]] <= p:
            return ALL
        return SOME if state[u, WHERE_SOME] <= end else MAYBE
    return int(state[u, _KNOWN]) if _parent_of_last(fixed, lists, u, p) == p else NO


@bare_inner
def _note_parent(
    fixed: IndexScratch, lists: Lists, u: int, at: int, parent: int, known: int, epoch: int
) -> bool:
    """Note that a unit holds at a place, for the parent; tells whether there is room for that."""
    state = fixed.state
    if state[u, EPOCH] != epoch:
        state[u, EPOCH], state[u, WHERE] = epoch, -1
    # Parents from this place on have asked already.
    last = _parent_of_last(fixed, lists, u, at - 1)
    if last == parent and parent >= 0:
        state[u, _KNOWN] = max(state[u, _KNOWN], known)
        return True
    entry = -1
    if last >= 0:
        entry = fixed.counts[ENTRIES]
        if entry >= len(lists.above):
            return False
        fixed.counts[ENTRIES] = entry + 1
        lists.above[entry], lists.known[entry] = last, state[u, _KNOWN]
        lists.before[entry] = state[u, _ENTRY]
    state[u, WHERE], state[u, _KNOWN], state[u, _ENTRY] = parent, known, entry
    return True


@bare_inner
def _note_path(fixed: IndexScratch, u: int, p: int, known: int, epoch: int) -> None:
    """Note what is known of a unit at a path, for those above."""
    state = fixed.state
    if state[u, EPOCH] != epoch:
        state[u, EPOCH] = epoch
        state[u, WHERE_SOME], state[u, WHERE_ALL] = NEVER, NEVER
    state[u, WHERE] = p
    if known >= SOME:
        state[u, WHERE_SOME] = p
    if known == ALL:
        state[u, WHERE_ALL] = p


@bare_inner
def _accept(units: Units, forests: Forests, fixed: IndexScratch, lists: Lists, u: int) -> bool:
    """Count an anchor for its forests, and put out the filters of those that are complete."""
    for i in range(units.forest_start[u], units.forest_start[u + 1]):
        f = units.forests[i]
        need = forests.need[f]
        if need > 1:
            slot, count = fixed.forest_place[f], fixed.counts[HITS]
            if slot >= count or lists.forest[slot] != f:
                if count >= len(lists.forest):
                    return False
                slot = count
                lists.forest[slot], lists.hits[slot] = f, 0
                fixed.forest_place[f] = slot
                fixed.counts[HITS] = count + 1
            lists.hits[slot] += 1
            if lists.hits[slot] < need:
                continue
        out = fixed.counts[OUT]
        for k in range(forests.start[f], forests.start[f + 1]):
            fixed.out[out] = forests.number[k]
            out += 1
        fixed.counts[OUT] = out
    return True


@bare
def sift(arrays: XmlArrays, document: Document, scratch: MatchScratch, epoch: int) -> int:
    """Find out about each unit at each path; lists those that may hold at nodes of a path."""
    fixed, sized, lists = scratch.fixed, scratch.sized, scratch.lists
    units, row, unit_start = arrays.units, arrays.units.row, arrays.trie.unit_start
    maybe = 0
    for p in range(fixed.counts[PATHS] - 1, 0, -1):
        first = maybe
        nodes = sized.node_start[p + 1] - sized.node_start[p]
        for i in range(sized.active_start[p], sized.active_start[p + 1]):
            t = lists.active[i]
            for u in range(unit_start[t], unit_start[t + 1]):
                kind = row[u, KIND]
                if kind & ASKED == 0 and fixed.accepted[u] == epoch:
                    continue
                least, partial = ALL, 0
                for k in range(row[u, BEGIN], row[u, END]):
                    known = _known_below(sized, fixed, lists, units.below[k], p, epoch)
                    least = min(least, known)
                    partial += known < ALL
                    if known == NO:
                        break
                if least == NO:
                    continue
                truth = NONE
                if row[u, TESTS] > 0:
                    truth, known = ask_tests(arrays.tests, document, sized, fixed, lists, row[u, TESTS], p)
                    if truth == NO_ROOM:
                        return FULL_TRUTHS
                    if truth == NO_PAIRS:
                        return FULL_PAIRS
                    if truth == NO_TIME:
                        return TOO_MUCH
                    if known == NO:
                        continue
                    least = min(least, known)
                    partial += known < ALL
                if least >= SOME and nodes == 1:
                    least = ALL
                elif least >= SOME and partial > 1:
                    least = MAYBE
                if kind & ANCHOR:
                    if least >= SOME:
                        if fixed.accepted[u] != epoch:
                            fixed.accepted[u] = epoch
                            if not _accept(units, arrays.forests, fixed, lists, u):
                                return FULL_PAIRS
                        if kind & ASKED == 0:
                            continue
                    elif fixed.wanted[u] != epoch:
                        if fixed.counts[WANTED] >= len(lists.wanted):
                            return FULL_PAIRS
                        fixed.wanted[u] = epoch
                        lists.wanted[fixed.counts[WANTED]] = u
                        fixed.counts[WANTED] += 1
                if maybe >= len(lists.maybe):
                    return FULL_PAIRS
                lists.maybe[maybe], lists.truth[maybe], lists.least[maybe] = u, truth, least
                maybe += 1
                if least < ALL:
                    fixed.partial[u] = epoch
        # Behind all questions about this path: nothing holds below itself.
        covers = sized.top[p] < p
        for k in range(first, maybe):
            u, known = lists.maybe[k], lists.least[k]
            kind = row[u, KIND]
            if kind & ASKED == 0:
                continue
            if kind & FAR:
                _note_path(fixed, u, p, known, epoch)
            elif not _note_parent(
                fixed, lists, u, p, sized.parent[p], known if covers else min(known, SOME), epoch
            ):
                return FULL_ENTRIES
        sized.maybe_start[p], sized.maybe_end[p] = first, maybe
    return DONE


@bare
def want(units: Units, scratch: MatchScratch, epoch: int) -> int:
    """Want all that wanted anchors are made of, and leave out of the lists what nobody wants.

    Returns DONE or FULL_PAIRS.
    """
    fixed, sized, lists = scratch.fixed, scratch.sized, scratch.lists
    kept = 0
    for i in range(fixed.counts[WANTED]):
        u = lists.wanted[i]
        if fixed.accepted[u] != epoch:
            lists.wanted[kept] = u
            kept += 1
        else:
            fixed.wanted[u] = 0
    i = 0
    while i < kept:
        u = lists.wanted[i]
        i += 1
        # What holds for all nodes of its paths need not be looked into.
        if fixed.partial[u] != epoch:
            continue
        for k in range(units.row[u, BEGIN], units.row[u, END]):
            below = units.below[k] >> 1
            if fixed.wanted[below] != epoch:
                if kept >= len(lists.wanted):
                    return FULL_PAIRS
                fixed.wanted[below] = epoch
                lists.wanted[kept] = below
                kept += 1
    fixed.counts[WANTED] = kept
    for p in range(1, fixed.counts[PATHS]):
        last = sized.maybe_start[p]
        for k in range(sized.maybe_start[p], sized.maybe_end[p]):
            u = lists.maybe[k]
            if fixed.wanted[u] == epoch:
                lists.maybe[last], lists.truth[last] = u, lists.truth[k]
                lists.least[last] = lists.least[k]
                last += 1
        sized.maybe_end[p] = last
    return DONE


@bare_inner
def _holds_below(fixed: IndexScratch, lists: Lists, below: int, n: int, end: int, epoch: int) -> bool:
    """Tell whether a unit holds at a child of a node, or at a descendant."""
    u = below >> 1
    if fixed.state[u, EPOCH] != epoch:
        return False
    if below & FAR:
        return bool(fixed.state[u, WHERE] <= end)
    return _parent_of_last(fixed, lists, u, n) == n


@bare
def settle(arrays: XmlArrays, document: Document, scratch: MatchScratch, before: int, epoch: int) -> int:
    """Find the wanted anchors that hold, node by node; those that sift accepted are marked `before`."""
    fixed, sized, lists = scratch.fixed, scratch.sized, scratch.lists
    units, row, state = arrays.units, arrays.units.row, scratch.fixed.state
    parents, ends = document.parents, document.ends
    for n in range(len(parents) - 1, -1, -1):
        p = sized.path[n]
        if p < 0:
            continue
        # Those that hold are noted behind all questions about this node; `active` is free by now.
        count = 0
        for k in range(sized.maybe_start[p], sized.maybe_end[p]):
            u, truth = lists.maybe[k], lists.truth[k]
            if truth >= 0 and not lists.truths[truth + sized.rank[n]]:
                continue
            if row[u, KIND] & ASKED == 0 and fixed.accepted[u] == before:
                continue
            holds = True
            if lists.least[k] < ALL:
                for i in range(row[u, BEGIN], row[u, END]):
                    if not _holds_below(fixed, lists, units.below[i], n, ends[n], epoch):
                        holds = False
                        break
            if holds:
                lists.active[count] = u
                count += 1
        for k in range(count):
            u = lists.active[k]
            kind = row[u, KIND]
            if kind & ASKED:
                if kind & FAR:
                    state[u, EPOCH], state[u, WHERE] = epoch, n
                elif not _note_parent(fixed, lists, u, n, parents[n], SOME, epoch):
                    return FULL_ENTRIES
            if kind & ANCHOR and fixed.accepted[u] != before:
                fixed.accepted[u] = before
                if not _accept(units, arrays.forests, fixed, lists, u):
                    return FULL_PAIRS
    return DONE


@bare
def match(arrays: XmlArrays, document: Document, classes: Ints32, scratch: MatchScratch, epoch: int) -> int:
    """Find the filters that hold: `counts[OUT]` of them are in `out`, not sorted.

    `epoch` and the next number must be new. `counts[HARD]` nodes were read as no number though Python may
    read one: then it is to be asked again, with these made known. Returns DONE, what there is no room for, or
    TOO_MUCH if more than `counts[MOST]` letters were searched.
    """
    fixed, sized, lists = scratch.fixed, scratch.sized, scratch.lists
    for i in range(MOST):
        fixed.counts[i] = 0
    find_paths(document, classes, sized, fixed)
    done = walk_trie(arrays.trie, classes, sized, fixed, lists)
    if done == DONE:
        done = sift(arrays, document, scratch, epoch)
    if done == DONE and fixed.counts[WANTED] > 0:
        done = want(arrays.units, scratch, epoch)
        if done == DONE and fixed.counts[WANTED] > 0:
            fixed.counts[ENTRIES] = 0
            done = settle(arrays, document, scratch, epoch, epoch + 1)
    return done
