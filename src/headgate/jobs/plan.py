"""The plan job: subscriptions and a sample of events to a network in which they feed each other.

How much each view gives for an event, on average over a sample, in rows and bytes:

sample -> events -> workers match them, compute the results of the views that match, sum up -> sums by view

Past some hundred thousand views embeddings are too many to be held in one place. Then workers find the
rewritings, target by target: targets are shared out, all have the views, and nothing but rewritings comes
back. They are those that one machine would find, to the bit, however targets are shared out. Fewer views
take this machine less time than workers take to start.
"""

from __future__ import annotations

import pickle
from contextlib import ExitStack
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from headgate.contents.registry import content_at, kind_of, room_at
from headgate.core.event import ID
from headgate.core.interning import TextPool
from headgate.core.rooms import RANKING
from headgate.core.snapshot import digest_of, room_of
from headgate.core.versions.stores import locate, located
from headgate.engine.views import views_at
from headgate.jobs.events import read_documents
from headgate.jobs.runner import job
from headgate.plan.costs import averages, sums
from headgate.plan.graphs.embeddings import SPREAD, EmbeddingFinder
from headgate.plan.graphs.joining import JoinResult, join_targets
from headgate.plan.graphs.rewritability import Search, SearchResult, check_search
from headgate.plan.measures import measures
from headgate.plan.model import Rewritings
from headgate.plan.running.planner import HELD, FoundRewritings, PlanInput, make_plan
from headgate.ranking.filters.index import RankedIndex
from headgate.records.programs.programs import starts
from headgate.runtime.progress import step
from headgate.runtime.targets import opened_as
from headgate.tables.event_rows import LINES, REASON, ROW
from headgate.tables.frames.reading import Reading, events_of, read_frame
from headgate.tables.lines import BROKEN, ORDER, VALUE
from headgate.tables.places import local
from headgate.tables.requests import check_plan
from headgate.tables.sites import LINK_ENDS, Bounds, read_links, read_sites, site_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from headgate.contents.protocol import Content
    from headgate.contents.views import Views
    from headgate.core.arrays import Floats64, Ints, Ints32
    from headgate.core.event import Event, Id
    from headgate.core.ids import Ids
    from headgate.jobs.runner import Runner, Shared, Table
    from headgate.plan.costs import Estimates
    from headgate.plan.running.planner import MadePlan, Settings


_TARGETS = 4_096
"""Targets of one row that comes back: rows of a hundred sources are then some megabytes."""
PART = "part"


class FoundPart(NamedTuple):
    """What was found for some targets; workers send it pickled."""

    targets: Ints32
    counts: Ints
    """How many rewritings each target has."""
    sizes: Ints
    """How many inputs each rewriting has."""
    inputs: Ints32
    cut: Ints32
    in_degrees: Ints
    removed: int


def joined_rewritings(
    runner: Runner,
    views: Views,
    search: Search | None = None,
    *,
    weights: Floats64 | None = None,
    parts: int | None = None,
    spread: int = SPREAD,
) -> JoinResult:
    """Find rewritings without ever holding all embeddings; a fixed order of views leaves no cycle."""
    search = Search() if search is None else search
    check_search(search)
    finder = EmbeddingFinder(views, spread)
    count = parts or runner.parts
    with runner.shared((finder, weights)) as shared:
        work, schema = partial(_join, shared, count, search), pa.schema({PART: pa.binary()})
        found_parts = runner.numbers(count, count).map(work, schema).collect()[PART]
    return _joined(len(views), [pickle.loads(each.as_buffer()) for each in found_parts])


def _shares(finder: EmbeddingFinder, number: int, parts: int) -> Iterator[Ints32]:
    """Give the targets of a part, some at a time: those of the same labels, and those alike, together."""
    order = np.lexsort((finder.views.equals, finder.groups)).astype(np.int32)
    share = np.array_split(order, parts)[number]
    for first in range(0, len(share), _TARGETS):
        yield np.sort(share[first : first + _TARGETS])


def _join(
    shared: Shared[tuple[EmbeddingFinder, Floats64 | None]],
    parts: int,
    search: Search,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    finder, weights = shared.value
    for batch in batches:
        for number in batch[ID].to_numpy():
            for targets in _shares(finder, number, parts):
                done = join_targets(finder, search, targets=targets, weights=weights, threads=1)
                rewritings = done.searched.rewritings
                part = FoundPart(
                    targets,
                    np.diff(rewritings.offsets)[targets],
                    np.diff(rewritings.input_offsets),
                    rewritings.inputs,
                    done.searched.cut_short,
                    done.in_degrees[targets],
                    done.removed,
                )
                yield pa.RecordBatch.from_pydict({PART: pa.array([pickle.dumps(part)], pa.binary())})


def _joined(views: int, parts: list[FoundPart]) -> JoinResult:
    """Put rewritings of parts in the order of their targets."""
    *columns, removed = zip(*parts, strict=True) if parts else ((),) * len(FoundPart._fields)
    targets, counts, sizes, inputs, cut, degrees = (
        np.concatenate([np.empty(0, np.int32), *column]) for column in columns
    )
    order = np.argsort(targets)
    rewritings = _places(starts(counts)[:-1][order], counts[order])
    taken = inputs[_places(starts(sizes)[:-1][rewritings], sizes[rewritings])]
    offsets, in_degrees = np.zeros(views, np.int64), np.zeros(views, np.int64)
    offsets[targets], in_degrees[targets] = counts, degrees
    made = Rewritings(starts(offsets), starts(sizes[rewritings]), taken)
    return JoinResult(SearchResult(made, np.sort(cut)), in_degrees, sum(removed))


def _places(first: Ints, counts: Ints) -> Ints:
    """List the places of rows, one row after the other."""
    return np.repeat(first - starts(counts)[:-1], counts) + np.arange(int(counts.sum()))


VIEW, ROWS, BYTES, EVENTS = "view", "rows", "bytes", "events"
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


def averages_of(totals: pa.Table, count: int, rejected: int) -> Estimates:
    """Take the averages of sums by view."""
    whole = totals[VIEW].is_null().to_numpy()
    views = totals[VIEW].to_numpy()[~whole].astype(np.int64)
    rows, size = np.zeros(count, np.int64), np.zeros(count, np.int64)
    rows[views], size[views] = totals[ROWS].to_numpy()[~whole], totals[BYTES].to_numpy()[~whole]
    return averages(rows, size, int(totals[EVENTS].to_numpy()[whole].sum()), rejected)


class OpenViews(NamedTuple):
    """The views of a snapshot, and the index that says which of them match."""

    filters: Content | RankedIndex
    views: Views
    ids: Ids
    numbers: dict[Id, int]


def open_views(snapshot: str, carries: str | None) -> OpenViews:
    """Open views, or return those that were opened last if they are the same."""
    snapshot_found = locate(snapshot)
    return _opened(snapshot_found.name, digest_of(snapshot_found.place), carries)


@lru_cache(maxsize=1)
def _opened(snapshot: str, digest: str, carries: str | None) -> OpenViews:
    return opened_as(snapshot, digest, partial(_open, carries=carries))


def _open(path: Path, *, carries: str | None) -> OpenViews:
    room = room_at(path)
    ranked = room_of(path) == RANKING
    index = RankedIndex.open(path, room=room, verify=False) if ranked else room.open(path, verify=False)
    ids, views = views_at(path, carries=carries)
    return OpenViews(index, views, ids, {identity: number for number, identity in enumerate(ids)})


def sum_up(
    batches: Iterable[pa.RecordBatch],
    snapshot: str,
    digest: str,
    carries: str | None,
    reading: Reading,
) -> Iterator[pa.RecordBatch]:
    """Sum up the results of all events of a task."""
    filters, views, _, numbers = _opened(snapshot, digest, carries)
    refused: list[dict[str, Any]] = []

    def events() -> Iterator[Event]:
        for given in read_frame(batches, reading):
            refused.extend({ROW: row, REASON: why} for row, why in given.refusals())
            yield from events_of(given)

    rows, size, count = sums(
        views, lambda event: [numbers[identity] for identity in filters.match(event)], events()
    )
    some = np.flatnonzero(rows + size)
    sums_by_view: list[dict[str, Any]] = [
        {VIEW: int(view), ROWS: int(rows[view]), BYTES: int(size[view])} for view in some
    ]
    yield pa.RecordBatch.from_pylist([*sums_by_view, {EVENTS: count}, *refused], schema=FOUND)


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


def _planned(made: MadePlan, estimates: Estimates) -> PlanResult:
    saved, solution, statistics = made.saved, made.solution, made.ways.statistics
    before = measures(saved.before, saved.rewritings, saved.costs)
    after = measures(saved.plan, saved.rewritings, saved.costs)
    return PlanResult(
        views=len(saved.ids),
        events=estimates.events,
        rejected=estimates.rejected,
        unseen=estimates.unseen,
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


@job
def estimate(
    runner: Runner,
    snapshot: str,
    sample: str,
    *,
    rejected: str,
    content_type: str | None = None,
    carries: str | None = None,
) -> Estimates:
    """Estimate what the views of a snapshot give, from a sample of events. No shuffle but of sums.

    What is no event goes to the table `rejected`, with the reason.
    """
    # Workers are in another folder.
    snapshot = locate(snapshot).name
    path = located(snapshot)
    content = content_at(path)
    work = partial(sum_up, snapshot=snapshot, digest=digest_of(path), carries=carries)
    with runner.step("estimating from the sample"), ExitStack() as held:
        documents = None
        if kind_of(content).documents:
            documents = read_documents(runner, sample, content, content_type)
            held.callback(documents.forget)
            read = documents.rows.map(partial(work, reading=Reading(documents.form, content)), FOUND)
        else:
            read = runner.table(sample).lines(ID).map(partial(work, reading=Reading(LINES, content)), FOUND)
        sums_found = held.enter_context(read.kept())
        totals = sums_found.lacking(REASON).summed(VIEW, ROWS, BYTES, EVENTS).collect()
        refused = sums_found.having(REASON).select(ROW, REASON)
        if documents is not None:
            refused = documents.refused.then(refused)
        refused.write(rejected)
        count = refused.count()
    return averages_of(totals, len(open_views(snapshot, carries).views), count)


@job
def plan_subscriptions(
    runner: Runner,
    snapshot: str,
    sample: str,
    output: str,
    settings: Settings,
    *,
    rejected: str,
    sites: str | None = None,
    links: str | None = None,
    content_type: str | None = None,
    carries: str | None = None,
    by_workers: bool | None = None,
) -> tuple[PlanResult, MadePlan]:
    """Plan who feeds whom among the subscriptions of a snapshot; writes the network to `output`.

    The sample says what each subscription gives for an event. `by_workers` has workers find the graphs of
    very many views; if that is not said, they do where they are on other machines.
    """
    options = {"content_type": content_type, "carries": carries}
    check_plan(snapshot, sample, output, rejected=rejected, sites=sites, links=links, **options)
    estimates = estimate(runner, snapshot, sample, rejected=rejected, **options)
    views = open_views(snapshot, carries)
    placed = None
    if sites is not None:
        bounds = Bounds(settings.fan_out, settings.bandwidth, settings.cpu)
        placed = read_sites(rows_of(runner.table(sites), ID), sites, views.ids, bounds)
    linked = None
    if links is not None:
        rows = rows_of(runner.table(links), *LINK_ENDS)
        linked = read_links(rows, links, site_names(placed, views.ids))
    if by_workers is None:
        by_workers = runner.apart
    by_workers = by_workers and len(views.views) > HELD
    inputs = PlanInput(
        views.ids,
        TextPool.build([views.filters.filter(identity) for identity in views.ids]),
        estimates.rows,
        estimates.bytes,
        None if placed is None else placed.capacities,
        None if placed is None else placed.names,
        linked,
        None if placed is None else placed.weights,
    )
    about = {
        "snapshot": Path(snapshot).name,
        "content": content_at(located(snapshot)),
        "sample": {"table": Path(sample).name, "events": estimates.events},
        "carries": carries,
    }
    with ExitStack() as shown:

        def begin(title: str) -> None:
            shown.close()
            shown.enter_context(step(title, quiet=runner.quiet))

        ways = partial(_find_ways, runner, views.views, settings, estimates) if by_workers else None
        made = make_plan(views.views, inputs, settings, ways=ways, about=about, progress=begin)
        begin("writing the network")
        made.saved.save(local(output))
    return _planned(made, estimates), made


def rows_of(table: Table, *required: str) -> Iterator[tuple[bytes | None, str | None]]:
    """Read a table as lines of JSON, or lines of CSV that are broken; it must have some columns."""
    rows = table.lines(*required).sorted(*ORDER).select(VALUE, BROKEN).collect()
    yield from zip(rows[VALUE].to_pylist(), rows[BROKEN].to_pylist(), strict=True)


def _find_ways(runner: Runner, views: Views, settings: Settings, estimates: Estimates) -> FoundRewritings:
    """Have workers find the rewritings of views."""
    return FoundRewritings.of(joined_rewritings(runner, views, settings.search, weights=estimates.bytes))
