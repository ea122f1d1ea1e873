"""What workers do to carry out a plan for a DataFrame of events: batches in, what views give out.

Views are computed from what other views give for the same event. So all levels of an event are computed by
the worker that has it, and nothing is exchanged between workers.
"""

from __future__ import annotations

import logging
import pickle
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

from headgate.contents.protocol import EVENT_ID, SUBSCRIPTION_ID
from headgate.engine.views import views_in
from headgate.errors import EventError
from headgate.plan.measures import levels
from headgate.plan.model import SOURCE
from headgate.plan.running.saved_plan import SavedPlan
from headgate.runtime.targets import in_memory, opened_as
from headgate.tables.frames.reading import events_of, read_frame
from headgate.tables.frames.rows import PORTION, kept_columns

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from headgate.contents.views import Rewriting
    from headgate.core.event import Event
    from headgate.rdf.taxonomy.taxonomy import Taxonomy
    from headgate.tables.frames.reading import Given as Events
    from headgate.tables.frames.task import FrameTask


class ViewResult(NamedTuple):
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

    def deliver(self, event: Event, counts: LevelCounts | None = None) -> list[ViewResult]:
        """Return what views give for an event, those that give something, level by level."""
        if self._matching is None:
            return []
        results: dict[int, Any] = {}
        ready: list[list[int]] = [[] for _ in range(self.depth)]
        ready[0] = [self._fed[number] for number in self._matching(event)]
        waits: dict[int, int] = {}
        delivered: list[ViewResult] = []
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
                delivered.append(ViewResult(view, level, packed))
                for each in self._uses[view]:
                    waits[each] = waits.get(each, len(set(self._inputs[each]))) - 1
                    if not waits[each]:
                        ready[self.levels[each] - 1].append(each)
        return delivered

    def _computed(self, view: int, event: Event, results: dict[int, Any]) -> Any:
        if not self._inputs[view]:
            return self._views.result(view, event)
        if view not in self._rewritings:
            self._rewritings[view] = self._views.rewriting(view, self._inputs[view])
        return self._rewritings[view].run(self._taken(view, results))

    def _taken(self, view: int, results: dict[int, Any]) -> list[Any]:
        return [results[each] for each in self._inputs[view]]

    def _count(self, counts: LevelCounts, view: int, taken: list[Any]) -> None:
        level = self.levels[view] - 1
        counts.read[level] += len(taken)
        counts.bytes[level] += sum(self._views.size(each)[1] for each in taken)


_LOG = logging.getLogger("headgate")
LEVEL, RESULT = "level", "result"
COUNTED = ("read", "bytes", "results", "refused")


class PlanPlace(NamedTuple):
    """A saved plan that workers open."""

    place: str
    digest: str
    taxonomy: bytes | None = None
    """The taxonomy of views over RDF, pickled: plans are known again by it."""


@lru_cache(maxsize=1)
def opened_plan(given: PlanPlace) -> CarriedPlan:
    """Open a plan once in a process."""
    taxonomy = None if given.taxonomy is None else pickle.loads(given.taxonomy)
    with in_memory(given.place):
        return opened_as(
            given.place, given.digest, lambda place: CarriedPlan.open(place, taxonomy, verify=False)
        )


def disseminate_frame(
    batches: Iterable[pa.RecordBatch], task: FrameTask, place: PlanPlace
) -> Iterator[pa.RecordBatch]:
    """Give each view its result for each event: a row for each that gives something."""
    plan = opened_plan(place)
    for events in read_frame(batches, task):
        rows: list[tuple[int, ViewResult]] = []
        for number, event in enumerate(events_of(events)):
            rows += [(number, each) for each in _delivered(plan, event) or ()]
            if len(rows) >= PORTION:
                yield _written(plan, events, rows, task)
                rows = []
        if rows:
            yield _written(plan, events, rows, task)


def count_levels_frame(
    batches: Iterable[pa.RecordBatch], task: FrameTask, place: PlanPlace
) -> Iterator[pa.RecordBatch]:
    """Count what each level reads: results, and their bytes. Level 0 is the publisher, which reads events."""
    plan = opened_plan(place)
    for events in read_frame(batches, task):
        counts = LevelCounts(plan.depth)
        delivered = [_delivered(plan, event, counts) for event in events_of(events)]
        refused = len(events.refused) + delivered.count(None)
        columns = (
            [len(delivered) - delivered.count(None), *counts.read],
            [0, *counts.bytes],
            [0, *counts.given],
            [refused, *([0] * plan.depth)],
        )
        yield pa.RecordBatch.from_pydict(
            {
                LEVEL: pa.array(range(plan.depth + 1), pa.int32()),
                **{name: pa.array(column, pa.int64()) for name, column in zip(COUNTED, columns, strict=True)},
            }
        )


def _delivered(plan: CarriedPlan, event: Event, counts: LevelCounts | None = None) -> list[ViewResult] | None:
    """Carry out the plan for an event; None if it cannot be read, which is logged."""
    try:
        return plan.deliver(event, counts)
    except EventError as error:
        _LOG.warning("event %r is left out: %s", event.id, error)
        return None


def _written(
    plan: CarriedPlan, events: Events, rows: list[tuple[int, ViewResult]], task: FrameTask
) -> pa.RecordBatch:
    at = pa.array([number for number, _ in rows], pa.int64())
    views = [plan.ids[each.view] for _, each in rows]
    texts = [msgspec.json.encode(each.packed, enc_hook=str).decode() for _, each in rows]
    return pa.RecordBatch.from_pydict(
        {
            EVENT_ID: events.ids.take(at),
            SUBSCRIPTION_ID: pa.array(views, pa.int64() if task.numbered else pa.string()),
            LEVEL: pa.array([each.level for _, each in rows], pa.int32()),
            RESULT: pa.array(texts, pa.string()),
            **kept_columns(events, pa.array(events.rows).take(at), task),
        }
    )
