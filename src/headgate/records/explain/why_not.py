"""Which subscriptions nearly matched an event, and what they were short of.

    all filters ──near.lower_bounds──► a bound each ──rising──► parsed, counted exactly ──► the nearest

Filters are taken by bound and then by number, and parsed one by one. Once the last of the nearest is no
worse than the bound of the filter to come, no other filter can be nearer. So the ranking is that of all
filters explained, and as a rule some dozens are parsed.

A filter is as near as its nearest *way*: one choice at each OR. Ways that no event can take do not count:
with a clause that never holds (`a = NULL`), or with clauses of one AND over one attribute that contradict
each other (`a > 5 AND a < 3`). The index has dropped them too. A filter that has no other way is left out.
"""

from __future__ import annotations

from bisect import insort
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.records.events.encode import encode_events
from headgate.records.explain.distance import NEVER, lower_bounds
from headgate.records.explain.explain import Clause, clause_of, fewest
from headgate.records.language.model import And, Constant, Expression, Or
from headgate.records.language.rewrite import normalise, push_not
from headgate.records.names import plain_text
from headgate.records.programs.binding import parse_text
from headgate.records.programs.program import compile_program
from headgate.records.programs.tokens import AND, FALSE, OR

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headgate.core.event import Event, Id
    from headgate.core.values import Path
    from headgate.records.index.live import State

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
    for place in np.flatnonzero(removed[:count] == 0).tolist():
        nearest.weigh(state.tail_ids[place], state.tail_texts[place])
    bounds = lower_bounds(base.built, encode_events([attributes], base.built), base.removed, most + 1)
    # Bound 0 is for filters that match.
    for bound in np.flatnonzero(np.bincount(bounds, minlength=NEVER)[1:NEVER]) + 1:
        for number in np.flatnonzero(bounds == bound).tolist():
            identity = base.ids[number]
            if not nearest.takes(int(bound), identity):
                break
            nearest.weigh(identity, base.filters.text(number))
    return [
        NearMiss(
            found.id, plain_text(found.text), tuple(clause_of(node, attributes) for node in found.failed)
        )
        for found in nearest.found
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
    return _nearest(_prune(push_not(expression)), attributes)


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


def _nearest(node: Expression, attributes: Mapping[Path, object]) -> tuple[Expression, ...] | None:
    if isinstance(node, Or):
        parts = [_nearest(child, attributes) for child in node.children]
        return min((part for part in parts if part is not None), key=len, default=None)
    if not isinstance(node, And):
        return fewest(node, attributes) if _possible(node) else None
    own = tuple(child for child in node.children if not isinstance(child, Or))
    if own and not _possible(And(own)):
        return None
    found: list[Expression] = []
    for child in node.children:
        part = _nearest(child, attributes) if isinstance(child, Or) else fewest(child, attributes)
        if part is None:
            return None
        found.extend(part)
    return tuple(found)


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
