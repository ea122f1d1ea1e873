"""Filters that came since the base was built: their patterns in a tail, and which are whose."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.core.interning import TextPool
from headgate.rdf.index.tail import Tail
from headgate.rdf.language.model import Pattern
from headgate.rdf.whole.deciding import decide
from headgate.rdf.whole.query import DECIDES, Query, check_count, check_options

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.rdf.index.columns import Columns
    from headgate.rdf.index.tail import TailView
    from headgate.rdf.language.model import Graph, Options
    from headgate.rdf.taxonomy.taxonomy import Taxonomy
    from headgate.rdf.whole.query import AnyFilter


class WholeTailView(NamedTuple):
    """The first filters of a tail."""

    tail: WholeTail
    inner: TailView
    size: int

    def match(self, graph: Graph, left_out: dict[int, str] | None = None) -> NDArray[np.int32]:
        """List the places of the filters that hold, rising; what is too much goes to `left_out`."""
        if not self.tail.queries:
            # A pattern may be among those of the tail, and its filter not counted yet.
            held = self.inner.match(graph, left_out)
            return held[held < self.size]
        left_out = {} if left_out is None else left_out
        early: dict[int, str] = {}
        found = self.inner.match(graph, early)
        count = self.inner.size
        owner, roles = (np.array(each[:count]) for each in (self.tail.owner, self.tail.roles))
        found = found[owner[found] < self.size]
        return decide(found, early, owner, roles, self.tail.questions, graph, self.tail.taxonomy, left_out)


class WholeTail:
    """Filters by place, in the order in which they came. One writes, any number read."""

    def __init__(self, options: Options, taxonomy: Taxonomy, unindexed: int) -> None:
        self.taxonomy = taxonomy
        self.queries = 0
        """How many filters are whole queries; readers see it before their patterns."""
        self.owner: list[int] = []
        self.roles: list[int] = []
        self._options = options
        self._unindexed = unindexed
        self._inner = Tail(options, taxonomy)
        self._filters: list[AnyFilter] = []
        self._asks: list[str] = []
        self._starts = [0]
        self._count = 0

    def __len__(self) -> int:
        """Count the filters that readers can find."""
        return self._count

    def view(self) -> WholeTailView:
        """Return the filters as they are now."""
        count = self._count
        return WholeTailView(self, self._inner.view(), count)

    def pattern(self, place: int) -> AnyFilter:
        """Return a filter."""
        return self._filters[place]

    def columns(self) -> Columns:
        """Return the filters in columns."""
        return self._inner.columns()._replace(
            member_start=np.array(self._starts, np.int64),
            roles=np.array(self.roles, np.int8),
            asks=TextPool.build(self._asks),
        )

    def questions(self, places: NDArray[np.int32]) -> list[str]:
        """List what the evaluator is asked for some filters."""
        found = (self._filters[place] for place in places.tolist())
        return [each.question for each in found if isinstance(each, Query)]

    def add(self, found: AnyFilter) -> None:
        """Append a filter."""
        if isinstance(found, Query):
            check_options(found, self._options)
            check_count(self._unindexed + found.unindexed, self._options)
            self._unindexed += found.unindexed
            self.queries += 1
            if found.verified:
                self._asks.append(found.question)
        place = self._count
        if len(self._inner) != self._starts[-1]:
            self._begin_again()
        self._filters.append(found)
        for pattern, role in _members(found):
            self.owner.append(place)
            self.roles.append(role)
            self._inner.add(pattern)
        self._starts.append(len(self.roles))
        self._count = place + 1

    def _begin_again(self) -> None:
        """Take out what an addition that failed has left."""
        del self._filters[self._count :], self.owner[self._starts[-1] :], self.roles[self._starts[-1] :]
        fresh = Tail(self._options, self.taxonomy)
        for each in self._filters:
            for pattern, _ in _members(each):
                fresh.add(pattern)
        self._inner = fresh


def _members(found: AnyFilter) -> tuple[tuple[Pattern, int], ...]:
    return ((found, DECIDES),) if isinstance(found, Pattern) else found.members
