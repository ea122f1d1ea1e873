"""Which subscriptions nearly matched an event, and what they were short of.

    all filters ──lower_bounds──► a bound each ──rising──► parsed, counted exactly ──► the nearest

Filters are taken by bound and then by number, and parsed one by one. Once the last of the nearest is no
worse than the bound of the filter to come, no other filter can be nearer. So the ranking is that of all
filters explained, and as a rule some dozens are parsed.

A filter is as near as its nearest *way*: one choice at each OR. Ways that no event can take do not count:
with a clause that never holds (`a = NULL`), or with clauses of one AND over one attribute that contradict
each other (`a > 5 AND a < 3`). The index has dropped them too. A filter that has no other way is left out.

The *bound* of a filter is the fewest checks that fail among its conjunctions, so it is 0 exactly for filters
that match. A check that fails means that a clause of the text fails, so there are at least as many of those:
checks are clauses that were merged. Only one kind of clause may be two checks: `a BETWEEN 1 AND 2.5`, where
texts meet the two literals on different lines of the attribute. Where an attribute has several lines, two of
its failed checks therefore count as one.
"""

from __future__ import annotations

from bisect import insort
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.core.jit import bare
from headgate.records.explain.explain import Clause, clause_of, fewest
from headgate.records.index.arrays import (
    ACCEPT,
    ANY_OPS,
    FLAGS,
    HEAD_WORDS,
    LENGTH,
    LINE_MASK,
    LINE_SHIFT,
    OP_MASK,
    TREE,
    TRUE_OP,
)
from headgate.records.index.checking import check_at
from headgate.records.index.entries import full_entries
from headgate.records.language.model import And, Constant, Expression, Or
from headgate.records.language.rewrite import normalise, push_not
from headgate.records.names import plain_text
from headgate.records.programs.binding import parse_text
from headgate.records.programs.program import compile_program
from headgate.records.programs.tokens import AND, FALSE, OR

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from headgate.core.arrays import Bytes, Ints, Ints32
    from headgate.core.event import Event, Id
    from headgate.core.values import Path
    from headgate.records.index.arrays import BuiltIndex, Events, RecordArrays
    from headgate.records.index.live import State


NEVER = 32767
"""The bound of filters that no event can match, of removed ones, and of those beyond what was asked for."""


def lower_bounds(built: BuiltIndex, events: Events, removed: Bytes, most: int = NEVER) -> NDArray[np.int16]:
    """Bound the clauses that fail of each filter, for the one event that is encoded.

    Bounds of `most` and more are NEVER.
    """
    owner, several = _owners(built)
    bounds = np.full(len(removed), NEVER, np.int16)
    entries = full_entries(built.arrays)
    half = np.full(len(built.attributes), -1, np.int64)
    reach = np.empty(built.arrays.stream[entries + 1].max(initial=0), np.int32)
    most = min(most, NEVER)
    count_failures(built.arrays, events, entries, owner, several, half, reach, removed, most, bounds)
    return bounds


def _owners(built: BuiltIndex) -> tuple[Ints32, Bytes]:
    """List the attribute of each line, and whether values of that attribute are seen on several lines."""
    # A copy, so that kernels see arrays of one type whether the index was built here or opened.
    owner = np.array(built.lines.line_attribute)
    scalar = built.lines.line_multi == 0
    counts = np.bincount(owner[scalar], minlength=len(built.attributes))
    return owner, ((counts[owner] > 1) & scalar).astype(np.uint8)


@bare
def count_failures(
    index: RecordArrays,
    events: Events,
    entries: Ints,
    owner: Ints32,
    several: Bytes,
    half: Ints,
    reach: Ints32,
    removed: Bytes,
    most: int,
    bounds: NDArray[np.int16],
) -> None:
    """Go through all entries that are stored in full, and keep the lowest count of each filter, below `most`.

    half[a] is the entry that last left half a clause open on an attribute.
    """
    stream = index.stream
    for entry in entries:
        number = stream[entry] >> FLAGS
        limit = min(most, int(bounds[number]))
        if removed[number] or limit == 0:
            continue
        pc = entry + HEAD_WORDS
        end = pc + int(stream[entry + LENGTH])
        failed = 0
        if stream[entry] & TREE:
            failed = tree_failures(index, events, several, pc, end, reach)
            pc = end
        while pc < end and failed < limit:
            op, line = stream[pc] & OP_MASK, (stream[pc] >> LINE_SHIFT) & LINE_MASK
            holds, pc = check_at(index, events, 0, pc)
            if holds:
                continue
            if op < ANY_OPS and several[line]:
                if half[owner[line]] == entry:
                    half[owner[line]] = -1
                    continue
                half[owner[line]] = entry
            failed += 1
        if failed < limit:
            bounds[number] = failed


@bare
def tree_failures(
    index: RecordArrays, events: Events, several: Bytes, begin: int, end: int, reach: Ints32
) -> int:
    """Find the cheapest way through a tree that is accepted, where a check that fails may be passed for 1.

    Jumps lead forward only, so one pass in order finds it: reach[i] is the cost up to the check at word i, in
    half clauses. NEVER if there is no such way.
    """
    far = 4 * NEVER
    reach[: end - begin] = far
    reach[0] = 0
    best = far
    pc = begin
    while pc < end:
        word = index.stream[pc]
        op = word & OP_MASK
        cost = reach[pc - begin]
        holds, after = check_at(index, events, 0, pc)
        pc = after + 2
        if cost >= best:
            continue
        for way in range(2):
            to = index.stream[after + way]
            price = int(cost)
            if way == 0 and not holds:
                # A constant stays what it is.
                if op >= TRUE_OP:
                    continue
                price += 1 if op < ANY_OPS and several[(word >> LINE_SHIFT) & LINE_MASK] else 2
            elif way == 1 and holds:
                continue
            if to == ACCEPT:
                best = min(best, price)
            elif to >= 0 and price < reach[to]:
                reach[to] = price
    return min((best + 1) // 2, NEVER)


LIMIT = 10

_TRUE = Constant(value=True)
_FALSE = Constant(value=False)


@dataclass(frozen=True)
class NearMiss:
    """A subscription that did not match, and the fewest clauses that would have had to hold as well."""

    id: Id
    filter: str
    failed: tuple[Clause, ...]


class _Found(NamedTuple):
    """In the order of nearness; ids differ, so the rest is never compared."""

    failures: int
    id: Id
    text: str
    failed: tuple[Expression, ...]


class _Nearest:
    """The nearest filters so far, at most `limit`."""

    def __init__(self, attributes: Mapping[Path, object], limit: int, within: int) -> None:
        self.found: list[_Found] = []
        self._attributes = attributes
        self._limit = limit
        self._within = within

    def takes(self, bound: int, identity: Id) -> bool:
        """Tell whether a filter with that many failed clauses or more could still be among them."""
        if bound > self._within or self._limit < 1:
            return False
        return len(self.found) < self._limit or (bound, identity) < self.found[-1][:2]

    def weigh(self, identity: Id, text: str) -> None:
        """Parse a filter, and keep it if it is near enough and does not match."""
        failed = fewest_possible(parse_text(text), self._attributes)
        if failed and self.takes(len(failed), identity):
            insort(self.found, _Found(len(failed), identity, text, failed))
            del self.found[self._limit :]


def why_not(state: State, event: Event, limit: int = LIMIT, within: int | None = None) -> list[NearMiss]:
    """List the subscriptions that nearly matched: fewest failed clauses first, then by id.

    At most `limit` of them, and none with more than `within` failed clauses. Filters of the tail have no
    bounds and are all parsed.
    """
    base = state.base
    attributes = event.attributes_as(base.settings.mark)
    most = NEVER - 1 if within is None else min(within, NEVER - 1)
    nearest = _Nearest(attributes, limit, most)
    count, removed = state.tail.view().filters, state.tail_removed
    for row in np.flatnonzero(removed[:count] == 0).tolist():
        nearest.weigh(state.tail_ids[row], state.tail_texts[row])
    bounds = lower_bounds(base.built, base.encode([event]), base.removed, most + 1)
    # Bound 0 is for filters that match.
    for bound in np.flatnonzero(np.bincount(bounds, minlength=NEVER)[1:NEVER]) + 1:
        for number in np.flatnonzero(bounds == bound).tolist():
            identity = base.ids[number]
            if not nearest.takes(int(bound), identity):
                break
            nearest.weigh(identity, base.filters.text(number))
    return [
        NearMiss(miss.id, plain_text(miss.text), tuple(clause_of(node, attributes) for node in miss.failed))
        for miss in nearest.found
    ]


def fewest_possible(
    expression: Expression, attributes: Mapping[Path, object]
) -> tuple[Expression, ...] | None:
    """Find the fewest predicates that failed along a way that some event can take; None if there is none.

    >>> from headgate.records.language.parse import parse_filter
    >>> from headgate.records.language.printing import print_filter
    >>> found = fewest_possible(parse_filter("(a > 5 AND a < 3) OR (b AND c)"), {("a",): 6})
    >>> [print_filter(node) for node in found]
    ['b', 'c']
    """
    return fewest(_prune(push_not(expression)), attributes, _possible)


def _prune(node: Expression) -> Expression:
    """Fold constants and merge AND in AND and OR in OR as `rewrite` does, but keep the clauses as written."""
    if not isinstance(node, And | Or):
        return _FALSE if normalise(node) == _FALSE else node
    kind, neutral, final = (And, _TRUE, _FALSE) if isinstance(node, And) else (Or, _FALSE, _TRUE)
    children: list[Expression] = []
    for child in map(_prune, node.children):
        if child == final:
            return final
        if child != neutral:
            children.extend(child.children if isinstance(child, kind) else (child,))
    if kind is Or:
        # Equal alternatives are one; equal clauses of an AND fail twice.
        children = list(dict.fromkeys(children))
    if len(children) > 1:
        return kind(tuple(children))
    return children[0] if children else neutral


def _possible(node: Expression) -> bool:
    """Tell whether the index keeps a conjunction: its program, with every leaf held to be true."""
    stack: list[bool] = []
    for token in compile_program(normalise(node)).tokens:
        if token == AND:
            stack[-2:] = [stack[-2] and stack[-1]]
        elif token == OR:
            stack[-2:] = [stack[-2] or stack[-1]]
        else:
            stack.append(token != FALSE)
    return stack[0]
