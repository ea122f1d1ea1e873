"""Filters behind an engine that have no graph around them: alone, or ranked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headgate.contents.protocol import Measures
from headgate.core.ranks import EXACT, Best
from headgate.engine.backend import Backend

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from headgate.contents.portions import Portion
    from headgate.contents.protocol import CheckCosts, Content
    from headgate.contents.results import Home
    from headgate.core.event import Event, Id
    from headgate.engine.backend import Column, Events
    from headgate.engine.question import Top
    from headgate.graph.ranked.ranked import RankedMatch
    from headgate.ranking.filters.explain import RankExplanation


class PlainFilters(Backend):
    """Filters alone: all that match are equally good."""

    def alone(self, identity: Id) -> tuple[Content, Id]:
        """Return the index itself."""
        return self.index, identity

    def check_costs(self, events: Events) -> CheckCosts | None:
        """Ask the index, if it can tell."""
        return self.index.check_costs(events) if isinstance(self.index, Measures) else None

    def top(self, event: Event, top: Top) -> list[RankedMatch] | list[Best]:
        """List the first matches."""
        if top.mode != EXACT:
            self.relaxed()
        return [Best(identity, 0.0) for identity in self.match(event)[: top.k]]

    def explain_rank(self, event: Event, identity: Id, top: Top) -> RankExplanation:
        """Say which matches have a lower id."""
        from headgate.ranking.filters.explain import explain_exact

        if top.mode != EXACT:
            self.relaxed()
        verdict = self.explain(event, identity)
        found = [Best(each, 0.0) for each in self.match(event)]
        return explain_exact(found, Best(identity, 0.0), top.k, verdict)


class RankedFilters(Backend):
    """Filters with scores, and perhaps with clauses that have weights."""

    ranked = True

    @property
    def contents(self) -> list[Content]:
        """List the filters as they are indexed by rank."""
        return [self.index.content]

    def homes(self, ids: Sequence[Id]) -> Iterable[Home | None]:
        """Find filters by rank."""
        found: list[Home | None] = self.index.homes(ids)
        return found

    def top(self, event: Event, top: Top) -> list[RankedMatch] | list[Best]:
        """Ask the scores, or the clauses."""
        found: list[Best] = self.index.top(event, top.k, top.mode, factors=top.weighing)
        return found

    def explain_rank(self, event: Event, identity: Id, top: Top) -> RankExplanation:
        """Ask the scores, or the clauses."""
        found: RankExplanation = self.index.explain_rank(
            event, identity, top.k, top.mode, factors=top.weighing
        )
        return found

    def at_once(self, top: Top | None, most: int) -> int:
        """Say how many events may have all subscriptions as answers, or all clauses that are asked."""
        each = len(self.index) if top is None else min(top.k, len(self.index))
        if top is not None and top.mode != EXACT and self.index.relaxed:
            each = self.index.clauses.asked + top.k
        return max(1, most // max(1, each))

    def _best(self, events: Events, ids: Column, top: Top) -> Portion:
        found: Portion = self.index.best(events, ids, top.k, top.mode, factors=top.weighing)
        return found

    @property
    def weighs(self) -> bool:
        """Tell that clauses may have weights: an index without them passes over these."""
        return True

    def relaxed(self) -> Any:
        """Return the clauses; refuses if there are none."""
        return self.index.clauses
