"""What the index does for a filter, beside why it holds: which predicates lead there, which are verified.

The words and figures are those of `access`, which `validate` prints; here they are put to the predicates as
people wrote them. By what an index comes to a filter depends on the others. Up to MOST of them are looked at,
which of a larger set are as good as all: they say which values are rare.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from headgate.records.explain.access import find_access, range_of, word_of
from headgate.records.explain.explain import leaves, written
from headgate.records.language.rewrite import normalise, push_not
from headgate.records.programs.binding import compile_filters
from headgate.records.programs.elements import typeof_path
from headgate.records.programs.leaves import SetLeaf
from headgate.records.programs.program import compile_program
from headgate.records.programs.programs import GLOB, VALUE, concatenate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headgate.contents.protocol import Access
    from headgate.records.explain.explain import Explanation
    from headgate.records.index.build import Weigh
    from headgate.records.index.live import State
    from headgate.records.language.model import Expression

MOST = 1_000
"""Filters among which one is looked at: those of a larger set at equal distances."""


class IndexUse:
    """What the index does for the filters of a state, as it is now; what was asked is kept."""

    def __init__(self, state: State, weigh: Weigh | None) -> None:
        self._state = state
        self._weigh = weigh
        self._changes = state.changes
        early, late = state.left()
        numbers = np.concatenate([np.flatnonzero(early), len(early) + np.flatnonzero(late)])
        self._whole = len(numbers) <= MOST
        if not self._whole:
            numbers = numbers[np.linspace(0, len(numbers) - 1, MOST).astype(np.int64)]
        self._places = {number: place for place, number in enumerate(numbers.tolist())}
        self._programs = compile_filters([state.text(number) for number in self._places]).programs
        self._found: dict[int, Access] = {}

    def is_of(self, state: State) -> bool:
        """Tell whether a state has not changed since."""
        return state is self._state and state.changes == self._changes

    def access(self, number: int) -> Access:
        """Say by what events come to a filter, and what it costs."""
        found = self._found.get(number)
        if found is None:
            found = self._found[number] = self._find(number)
        return found

    def _find(self, number: int) -> Access:
        programs, place = self._programs, self._places.get(number)
        if place is None:
            own = compile_filters([self._state.text(number)]).programs
            programs, place = concatenate([programs, own]), programs.filters
        (found,) = find_access(programs, None, self._weigh, [place])
        assert found.costs is not None, "records have them"
        return found if self._whole else found._replace(costs=replace(found.costs, shared=None))


def with_access(told: Explanation, expression: Expression, access: Access) -> Explanation:
    """Add to an explanation of a filter what the index does for it."""
    costs = access.costs
    assert costs is not None, "records have them"
    leading, checked = {*costs.indexed}, {*costs.verified}
    indexed, verified = [], []
    for node in leaves(push_not(expression)):
        words = {*_words(node)}
        if not leading.isdisjoint(words | {*map(range_of, words)}):
            indexed.append(written(node))
        if not checked.isdisjoint(words):
            verified.append(written(node))
    return replace(
        told,
        indexed_by=access.by,
        indexed=tuple(dict.fromkeys(indexed)),
        verified=tuple(dict.fromkeys(verified)),
        costs=costs,
        notes=() if access.note is None else (access.note,),
    )


def _words(node: Expression) -> Iterator[str]:
    """List the words by which `access` may name a predicate, negated or not."""
    for leaf in compile_program(normalise(node)).leaves:
        kind = int(leaf.quantifier) if isinstance(leaf, SetLeaf) else GLOB
        yield word_of(leaf.path, kind)
        typed = typeof_path(leaf.path)
        if typed is not None:
            # What is asked of the type may have been merged with what is asked of the value.
            yield word_of(typed, VALUE)
