"""Patterns to filters: what patterns decide, and what the evaluator is asked of the rest."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.contents.documents import BaseMatcher
from headgate.rdf.index.columns import verified_of
from headgate.rdf.language.model import DECIDES, EVERY
from headgate.rdf.whole.evaluator import EVALUATOR, above, seen
from headgate.rdf.whole.query import question_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from headgate.core.interning import TextPool
    from headgate.rdf.index.arrays import Encoded
    from headgate.rdf.index.matching import Matcher, Prepared
    from headgate.rdf.language.model import Graph
    from headgate.rdf.taxonomy.taxonomy import Taxonomy


class Members(NamedTuple):
    """Which patterns are those of which filter, what they say of it, and what the evaluator is asked.

    Filter f has those from start[f] on, each with its role; asks has a text for each that is verified.
    """

    start: NDArray[np.int64]
    roles: NDArray[np.int8]
    asks: TextPool

    @property
    def plain(self) -> bool:
        """Tell whether every filter is one pattern, which decides."""
        return len(self.roles) == len(self.start) - 1 and not self.roles.any()

    @property
    def unindexed(self) -> int:
        """Count the filters that the evaluator is asked of every event."""
        return int((self.roles == EVERY).sum())

    @property
    def verified(self) -> int:
        """Count the filters that the evaluator verifies."""
        return self.asks.size


class DecidingMatcher(BaseMatcher):
    """Asks patterns, then the evaluator."""

    def __init__(self, matcher: Matcher, members: Members, taxonomy: Taxonomy) -> None:
        self.inner = matcher
        self._members = members
        self._taxonomy = taxonomy
        self._plain = members.plain

    @property
    def finds_words(self) -> bool:
        """Tell whether the words of events are looked up."""
        return self.inner.finds_words

    def encode(self, graph: Graph) -> Encoded | Prepared:
        """Encode a graph."""
        return self.inner.encode(graph)

    @cached_property
    def _owner(self) -> NDArray[np.int32]:
        start = self._members.start
        return np.repeat(np.arange(len(start) - 1, dtype=np.int32), np.diff(start))

    @cached_property
    def _asked(self) -> NDArray[np.int64]:
        """Return the place of a filter's question."""
        return np.cumsum(verified_of(self._members.start, self._members.roles)) - 1

    def match_encoded(
        self, graph: Graph, event: Encoded | Prepared, left_out: dict[int, str]
    ) -> NDArray[np.int32]:
        """List the filters that hold for a graph that is encoded, rising."""
        if self._plain:
            return self.inner.match_encoded(graph, event, left_out)
        early: dict[int, str] = {}
        members = self.inner.match_encoded(graph, event, early)
        sure, asked = self._decided(members)
        left_out |= {int(self._owner[member]): why for member, why in early.items()}
        if len(asked):
            answers = ask(self._members.asks.pick(self._asked[asked]), graph, self._taxonomy)
            holds = np.array([each is True for each in answers], np.bool_)
            left_out.update(
                (number, each)
                for number, each in zip(asked.tolist(), answers, strict=True)
                if isinstance(each, str)
            )
            sure = np.union1d(sure, asked[holds])
        for number in sure.tolist() if left_out else ():
            # One of its patterns was too much, and another decided.
            left_out.pop(number, None)
        return sure.astype(np.int32)

    def _decided(self, members: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """List the filters that hold by members that do, and those that the evaluator is asked of."""
        decided = self._members.roles[members] == DECIDES
        sure = np.unique(self._owner[members[decided]])
        if decided.all():
            return sure, sure[:0]
        return sure, np.setdiff1d(self._owner[members[~decided]], sure)

    def costs(self, graph: Graph, candidates: NDArray[np.int64], work: NDArray[np.float64]) -> None:
        """Match a graph once more, and add for each filter whether it is joined, and the steps of that."""
        if self._plain:
            self.inner.costs(graph, candidates, work)
            return
        count = len(self._owner)
        some, steps = np.zeros(count, np.int64), np.zeros(count)
        self.inner.costs(graph, some, steps)
        np.add.at(work, self._owner, steps)
        met = np.zeros(len(candidates), np.bool_)
        met[self._owner[some > 0]] = True
        candidates += met
        work[self.asked(graph)] += ASKING

    def asked(self, graph: Graph) -> NDArray[np.int32]:
        """List the filters that the evaluator is asked of a graph, rising."""
        return self._decided(self.inner.match(graph))[1]


ASKING = 3_000
"""What it takes to ask the evaluator, in steps of a join: about 30 microseconds."""


def ask(questions: Sequence[str], graph: Graph, taxonomy: Taxonomy) -> list[bool | str]:
    """Ask the evaluator: true, false or the reason why nobody knows, for each question."""
    asked = [question_of(each) for each in questions]
    walked = any(roots is not None for _, roots in asked)
    whole = seen(graph, taxonomy, walked=walked)
    return EVALUATOR.ask(whole, [(text, above(roots, taxonomy) if roots else b"") for text, roots in asked])
