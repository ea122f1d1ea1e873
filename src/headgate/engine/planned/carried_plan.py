"""A saved plan carried out for one event after another, level by level, in one process.

    level 1   the views that the source feeds are computed from the event
    level n   a view is computed from what its inputs give, which are of lower levels

A view that one of its inputs gives nothing gives nothing itself. So an index finds what the event gives at
level 1, and from there on only views are looked at all of whose inputs gave something.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headgate.engine.planned.view_maker import views_in
from headgate.plan.measures import levels
from headgate.plan.model import SOURCE
from headgate.plan.running.saved_plan import SavedPlan

if TYPE_CHECKING:
    from pathlib import Path

    from headgate.contents.views import Rewriting
    from headgate.core.event import Event
    from headgate.rdf.taxonomy.taxonomy import Taxonomy


class Given(NamedTuple):
    """What a view gives for an event, packed for JSON; views are named by their number."""

    view: int
    level: int
    packed: Any


class LevelCounts:
    """What the views of each level took in, and gave; counted from level 1, which takes from the source."""

    def __init__(self, depth: int) -> None:
        self.read = [0] * depth
        """Results that views took in."""
        self.bytes = [0] * depth
        """Bytes of these."""
        self.given = [0] * depth
        """Results that views gave."""


class CarriedPlan:
    """A plan, and what computes its views."""

    def __init__(self, saved: SavedPlan, taxonomy: Taxonomy | None = None) -> None:
        given, maker = views_in(saved, taxonomy)
        self.ids = saved.ids
        self._views = maker.views(given)
        self._fed: list[int] = np.flatnonzero(saved.plan.chosen == SOURCE).tolist()
        self._matching = maker.matching([given[view] for view in self._fed]) if self._fed else None
        self.levels: list[int] = levels(saved.plan, saved.rewritings).tolist()
        self._inputs: list[list[int]] = [[] for _ in given]
        self._uses: list[list[int]] = [[] for _ in given]
        for view, chosen in enumerate(saved.plan.chosen.tolist()):
            if chosen != SOURCE:
                span = slice(*saved.rewritings.input_offsets[chosen : chosen + 2])
                self._inputs[view] = saved.rewritings.inputs[span].tolist()
                for each in set(self._inputs[view]):
                    self._uses[each].append(view)
        self._rewritings: dict[int, Rewriting] = {}

    @classmethod
    def open(cls, path: Path, taxonomy: Taxonomy | None = None, *, verify: bool = True) -> CarriedPlan:
        """Open a plan that was saved; views over RDF need their taxonomy."""
        return cls(SavedPlan.open(path, verify=verify), taxonomy)

    @property
    def depth(self) -> int:
        """Return the highest level."""
        return max(self.levels, default=0)

    def deliver(self, event: Event, counts: LevelCounts | None = None) -> list[Given]:
        """Return what views give for an event, those that give something, level by level."""
        if self._matching is None:
            return []
        results: dict[int, Any] = {}
        ready: list[list[int]] = [[] for _ in range(self.depth)]
        ready[0] = [self._fed[number] for number in self._matching(event)]
        waits: dict[int, int] = {}
        found: list[Given] = []
        for level, views in enumerate(ready, 1):
            for view in views:
                result = self._computed(view, event, results)
                if counts is not None:
                    self._count(counts, view, [result] if level == 1 else self._taken(view, results))
                packed = self._views.pack(result)
                if packed is None:
                    continue
                if counts is not None:
                    counts.given[level - 1] += 1
                results[view] = result
                found.append(Given(view, level, packed))
                for each in self._uses[view]:
                    waits[each] = waits.get(each, len(set(self._inputs[each]))) - 1
                    if not waits[each]:
                        ready[self.levels[each] - 1].append(each)
        return found

    def _computed(self, view: int, event: Event, results: dict[int, Any]) -> Any:
        if not self._inputs[view]:
            return self._views.result(view, event)
        if view not in self._rewritings:
            self._rewritings[view] = self._views.rewriting(view, self._inputs[view])
        return self._rewritings[view].run(self._taken(view, results))

    def _taken(self, view: int, results: dict[int, Any]) -> list[Any]:
        return [results[each] for each in self._inputs[view]]

    def _count(self, counts: LevelCounts, view: int, taken: list[Any]) -> None:
        place = self.levels[view] - 1
        counts.read[place] += len(taken)
        counts.bytes[place] += sum(self._views.size(each)[1] for each in taken)
