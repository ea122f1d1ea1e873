"""What the plan job does without Spark: what views give for the events of a sample, and the network.

How much each view gives for an event, on average over a sample, in rows and bytes:

sample -> events -> workers match them, compute the results of the views that match, sum up -> sums by view
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from headgate.contents.registry import content_at, room_at
from headgate.core.event import Event
from headgate.core.interning import TextPool
from headgate.core.rooms import RANKING
from headgate.core.snapshot import digest_of, room_of
from headgate.core.versions.locating import locate, located
from headgate.engine.views import views_at
from headgate.errors import EventError
from headgate.plan.costs import averages, sums
from headgate.plan.measures import measures
from headgate.plan.running.planner import PlanInput, make_plan
from headgate.ranking.filters.index import RankedIndex
from headgate.runtime.progress import step
from headgate.runtime.rows import why_broken
from headgate.runtime.targets import opened_as
from headgate.tables.event_rows import read_events
from headgate.tables.lines import BROKEN, VALUE
from headgate.tables.places import local

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from headgate.contents.protocol import Content
    from headgate.contents.views import Views
    from headgate.core.event import Id
    from headgate.core.ids import Ids
    from headgate.plan.costs import Estimates
    from headgate.plan.placement import Links
    from headgate.plan.running.planner import FoundRewritings, MadePlan, Settings
    from headgate.tables.sites import Sites


VIEW, ROWS, BYTES, EVENTS, ROW, REASON = "view", "rows", "bytes", "events", "row", "reason"
_TYPES: dict[str, pa.DataType] = {
    VIEW: pa.int32(),
    ROWS: pa.int64(),
    BYTES: pa.int64(),
    EVENTS: pa.int64(),
    ROW: pa.string(),
    REASON: pa.string(),
}
FOUND = pa.schema(_TYPES)
"""What a view gave in all, how many events there were (without a view), or a row that is no event."""


def averages_of(found: pa.Table, count: int, rejected: int) -> Estimates:
    """Take the averages of sums by view."""
    whole = found[VIEW].is_null().to_numpy()
    views = found[VIEW].to_numpy()[~whole].astype(np.int64)
    rows, size = np.zeros(count, np.int64), np.zeros(count, np.int64)
    rows[views], size[views] = found[ROWS].to_numpy()[~whole], found[BYTES].to_numpy()[~whole]
    return averages(rows, size, int(found[EVENTS].to_numpy()[whole].sum()), rejected)


class RefusedEvent(NamedTuple):
    """A row that is no event, and why."""

    row: str
    reason: str


class OpenViews(NamedTuple):
    """The views of a snapshot, and the index that says which of them match."""

    filters: Content | RankedIndex
    views: Views
    ids: Ids
    numbers: dict[Id, int]


def open_views(snapshot: str, carries: str | None) -> OpenViews:
    """Open views, or return those that were opened last if they are the same."""
    found = locate(snapshot)
    return _opened(found.name, digest_of(found.place), carries)


@lru_cache(maxsize=1)
def _opened(snapshot: str, digest: str, carries: str | None) -> OpenViews:
    return opened_as(snapshot, digest, partial(_open, carries=carries))


def _open(place: Path, *, carries: str | None) -> OpenViews:
    room = room_at(place)
    ranked = room_of(place) == RANKING
    index = RankedIndex.open(place, room=room, verify=False) if ranked else room.open(place, verify=False)
    ids, views = views_at(place, carries=carries)
    return OpenViews(index, views, ids, {identity: number for number, identity in enumerate(ids)})


def read_records(batch: pa.RecordBatch) -> list[Event | RefusedEvent]:
    """Read events that come as rows of JSON; blank lines are passed over."""
    found: list[Event | RefusedEvent] = []
    for value, broken in zip(batch[VALUE].to_pylist(), batch[BROKEN].to_pylist(), strict=True):
        if value is None:
            found.append(RefusedEvent(broken or "", why_broken(broken)))
        elif value.strip():
            try:
                event = Event.from_json(value)
                # Read here, where a row that cannot be read is refused and not the whole sample.
                _ = event.attributes
                found.append(event)
            except EventError as error:
                found.append(RefusedEvent(value.decode(errors="replace"), str(error)))
    return found


def read_parsed(batch: pa.RecordBatch, content: str) -> list[Event | RefusedEvent]:
    """Read events that were documents."""
    return list(read_events(batch, content))


def sum_up(
    batches: Iterable[pa.RecordBatch],
    snapshot: str,
    digest: str,
    carries: str | None,
    read: Callable[[pa.RecordBatch], list[Event | RefusedEvent]],
) -> Iterator[pa.RecordBatch]:
    """Sum up the results of all events of a task."""
    filters, views, _, numbers = _opened(snapshot, digest, carries)
    refused: list[dict[str, str]] = []

    def events() -> Iterator[Event]:
        for batch in batches:
            for event in read(batch):
                if isinstance(event, RefusedEvent):
                    refused.append(event._asdict())
                else:
                    yield event

    rows, size, count = sums(
        views, lambda event: [numbers[identity] for identity in filters.match(event)], events()
    )
    some = np.flatnonzero(rows + size)
    given: list[dict[str, Any]] = [
        {VIEW: int(view), ROWS: int(rows[view]), BYTES: int(size[view])} for view in some
    ]
    yield pa.RecordBatch.from_pylist([*given, {EVENTS: count}, *refused], schema=FOUND)


@dataclass(frozen=True)
class PlanResult:
    """What the job did."""

    views: int
    events: int
    """Events of the sample."""
    rejected: int
    """Rows of the sample that are no events."""
    unseen: int
    """Views that nothing in the sample matched."""
    embeddings: int
    rewritings: int
    rewritable: int
    cut_short: int
    """Views that may have more rewritings than were looked for."""
    source_fed: int
    levels: int
    utilization_before: float
    utilization: float
    bound: float
    """No plan within the capacities, not relaxed, has less utilization."""
    gap: float
    ended: str
    latency_before: float
    latency: float
    seconds: dict[str, float]


def _planned(made: MadePlan, found: Estimates) -> PlanResult:
    saved, solution, statistics = made.saved, made.solution, made.ways.statistics
    before = measures(saved.before, saved.rewritings, saved.costs)
    after = measures(saved.plan, saved.rewritings, saved.costs)
    return PlanResult(
        views=len(saved.ids),
        events=found.events,
        rejected=found.rejected,
        unseen=found.unseen,
        embeddings=statistics.edges,
        rewritings=statistics.rewritings,
        rewritable=statistics.rewritable_views,
        cut_short=statistics.cut_short,
        source_fed=after.source_fed,
        levels=len(after.per_level),
        utilization_before=before.utilization,
        utilization=after.utilization,
        bound=solution.bound,
        gap=solution.gap,
        ended=solution.ended,
        latency_before=before.latency,
        latency=after.latency,
        seconds=made.seconds,
    )


def plan_views(
    views: OpenViews,
    snapshot: str,
    sample: str,
    output: str,
    settings: Settings,
    found: Estimates,
    placed: Sites | None,
    ways: Callable[[], FoundRewritings] | None,
    *,
    links: Links | None = None,
    carries: str | None,
    quiet: bool,
) -> tuple[PlanResult, MadePlan]:
    """Plan who feeds whom, and write the network to `output`; `ways` finds the graphs elsewhere."""
    given = PlanInput(
        views.ids,
        TextPool.build([views.filters.filter(identity) for identity in views.ids]),
        found.rows,
        found.bytes,
        None if placed is None else placed.capacities,
        None if placed is None else placed.names,
        links,
        None if placed is None else placed.weights,
    )
    about = {
        "snapshot": Path(snapshot).name,
        "content": content_at(located(snapshot)),
        "sample": {"table": Path(sample).name, "events": found.events},
        "carries": carries,
    }
    with _Steps(quiet=quiet) as steps:
        made = make_plan(
            views.views,
            given,
            settings,
            ways=ways,
            about=about,
            progress=steps.begin,
        )
        steps.begin("writing the network")
        made.saved.save(local(output))
    return _planned(made, found), made


class _Steps:
    """Show one step after another, each until the next begins."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._shown = ExitStack()

    def __enter__(self) -> _Steps:
        return self

    def begin(self, title: str) -> None:
        """Show another step from now on."""
        self._shown.close()
        self._shown.enter_context(step(title, quiet=self._quiet))

    def __exit__(self, *_: object) -> None:
        self._shown.close()
