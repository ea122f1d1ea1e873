"""What workers do to carry out a plan for a DataFrame of events: batches in, what views give out.

Views are computed from what other views give for the same event. So all levels of an event are computed by
the worker that has it, and nothing is exchanged between workers.
"""

from __future__ import annotations

import logging
import pickle
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import pyarrow as pa

from headgate.contents.protocol import EVENT_ID, SUBSCRIPTION_ID
from headgate.engine.planned.carried_plan import CarriedPlan, LevelCounts
from headgate.errors import EventError
from headgate.runtime.targets import in_memory, opened_as
from headgate.tables.frames.explaining import events_of
from headgate.tables.frames.reading import read_frame
from headgate.tables.frames.rows import PORTION, kept_columns

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from headgate.core.event import Event
    from headgate.engine.planned.carried_plan import Given
    from headgate.tables.frames.reading import Given as Events
    from headgate.tables.frames.task import FrameTask

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
        rows: list[tuple[int, Given]] = []
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
        given = [_delivered(plan, event, counts) for event in events_of(events)]
        refused = len(events.refused) + given.count(None)
        columns = (
            [len(given) - given.count(None), *counts.read],
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


def _delivered(plan: CarriedPlan, event: Event, counts: LevelCounts | None = None) -> list[Given] | None:
    """Carry out the plan for an event; None if it cannot be read, which is logged."""
    try:
        return plan.deliver(event, counts)
    except EventError as error:
        _LOG.warning("event %r is left out: %s", event.id, error)
        return None


def _written(
    plan: CarriedPlan, events: Events, rows: list[tuple[int, Given]], task: FrameTask
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
