"""Patterns to filters: what patterns decide, and what the evaluator is asked of the rest."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.contents.documents import DecidingMatcher
from headgate.rdf.index.columns import verified_of
from headgate.rdf.language.model import DECIDES, EVERY
from headgate.rdf.whole.evaluator import EVALUATOR, above, seen
from headgate.rdf.whole.query import question_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from headgate.core.arrays import Ints, Ints32
    from headgate.core.interning import TextPool
    from headgate.rdf.index.matching import Matcher
    from headgate.rdf.language.model import Graph
    from headgate.rdf.taxonomy.taxonomy import Taxonomy


class Members(NamedTuple):
    """Which patterns are those of which filter, what they say of it, and what the evaluator is asked.

    Filter f has those from start[f] on, each with its role; asks has a text for each that is verified.
    """

    start: Ints
    roles: NDArray[np.int8]
    asks: TextPool

    @property
    def unindexed(self) -> int:
        """Count the filters that the evaluator is asked of every event."""
        return int((self.roles == EVERY).sum())

    @property
    def verified(self) -> int:
        """Count the filters that the evaluator verifies."""
        return self.asks.size


class Decider(DecidingMatcher):
    """Asks patterns, then the evaluator."""

    def __init__(self, matcher: Matcher, members: Members, taxonomy: Taxonomy) -> None:
        super().__init__(matcher, members.start, members.roles == DECIDES)
        self._members = members
        self._taxonomy = taxonomy

    @cached_property
    def _question(self) -> Ints:
        """Return the number of each filter's question."""
        return np.cumsum(verified_of(self._members.start, self._members.roles)) - 1

    def _ask(self, graph: Graph, numbers: Ints32, left_out: dict[int, str]) -> Ints32:
        answers = ask(self._members.asks.pick(self._question[numbers]), graph, self._taxonomy)
        rows = zip(numbers.tolist(), answers, strict=True)
        left_out |= {number: each for number, each in rows if isinstance(each, str)}
        return numbers[[each is True for each in answers]]

    def _asking(self, graph: Graph, numbers: Ints32) -> float:
        del graph, numbers
        return ASKING


ASKING = 3_000
"""What it takes to ask the evaluator, in steps of a join: about 30 microseconds."""


def ask(questions: Sequence[str], graph: Graph, taxonomy: Taxonomy) -> list[bool | str]:
    """Ask the evaluator: true, false or the reason why nobody knows, for each question."""
    asked = [question_of(each) for each in questions]
    walked = any(roots is not None for _, roots in asked)
    whole = seen(graph, taxonomy, walked=walked)
    return EVALUATOR.ask(whole, [(text, above(roots, taxonomy) if roots else b"") for text, roots in asked])
