"""The plan job: subscriptions and a sample of events to a network in which they feed each other.

How much each view gives for an event, on average over a sample, in rows and bytes:

sample -> events -> workers match them, compute the results of the views that match, sum up -> sums by view
"""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from headgate.contents.registry import content_at, kind_of
from headgate.core.event import ID
from headgate.core.snapshot import digest_of
from headgate.core.versions.locating import locate, located
from headgate.jobs.events import read_documents
from headgate.jobs.plan_graphs import embedding_graph, find_rewritings, joined_rewritings
from headgate.jobs.runner import job
from headgate.plan.graphs.cycles import without_cycles
from headgate.plan.graphs.joining import statistics_of
from headgate.plan.running.planner import HELD, FoundRewritings
from headgate.tables.lines import BROKEN, ORDER, VALUE
from headgate.tables.planning import (
    BYTES,
    EVENTS,
    FOUND,
    REASON,
    ROW,
    ROWS,
    VIEW,
    averages_of,
    open_views,
    plan_views,
    read_parsed,
    read_records,
    sum_up,
)
from headgate.tables.requests import check_plan
from headgate.tables.sites import LINK_ENDS, Bounds, read_links, read_sites, site_names

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headgate.contents.views import Views
    from headgate.jobs.runner import Runner, Table
    from headgate.plan.costs import Estimates
    from headgate.plan.running.planner import MadePlan, Settings
    from headgate.tables.planning import PlanResult


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
    place = located(snapshot)
    content, sums = content_at(place), (ROWS, BYTES, EVENTS)
    work = partial(sum_up, snapshot=snapshot, digest=digest_of(place), carries=carries)
    with runner.step("estimating from the sample"), ExitStack() as held:
        documents = None
        if kind_of(content).documents:
            documents = read_documents(runner, sample, content, content_type)
            held.callback(documents.forget)
            read = documents.rows.map(partial(work, read=partial(read_parsed, content=content)), FOUND)
        else:
            read = runner.table(sample).lines(ID).map(partial(work, read=read_records), FOUND)
        found = held.enter_context(read.kept())
        totals = found.lacking(REASON).summed(VIEW, *sums).collect()
        refused = found.having(REASON).select(ROW, REASON)
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

    The sample says what each subscription gives for an event. `by_workers` has workers find the graphs; if
    that is not said, they do where they are on other machines.
    """
    said = {"content_type": content_type, "carries": carries}
    check_plan(snapshot, sample, output, rejected=rejected, sites=sites, links=links, **said)
    found = estimate(runner, snapshot, sample, rejected=rejected, **said)
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
    ways = partial(_find_ways, runner, views.views, settings, found)
    return plan_views(
        views,
        snapshot,
        sample,
        output,
        settings,
        found,
        placed,
        ways if by_workers else None,
        links=linked,
        carries=carries,
        quiet=runner.quiet,
    )


def rows_of(table: Table, *required: str) -> Iterator[tuple[bytes | None, str | None]]:
    """Read a table as lines of JSON, or lines of CSV that are broken; it must have some columns."""
    rows = table.lines(*required).sorted(*ORDER).select(VALUE, BROKEN).collect()
    yield from zip(rows[VALUE].to_pylist(), rows[BROKEN].to_pylist(), strict=True)


def _find_ways(runner: Runner, views: Views, settings: Settings, found: Estimates) -> FoundRewritings:
    """Have workers find the rewritings of views."""
    if len(views) > HELD:
        joined = joined_rewritings(runner, views, settings.search, weights=found.bytes)
        degrees, removed, searched = joined.in_degrees, joined.removed, joined.searched
    else:
        embeddings = embedding_graph(runner, views)
        acyclic, removed = without_cycles(embeddings, needed=views.needed, sizes=found.bytes)
        searched = find_rewritings(runner, views.needed, acyclic, settings.search, weights=found.bytes)
        degrees = np.diff(embeddings.offsets)
    return FoundRewritings(searched, statistics_of(degrees, removed, searched))
