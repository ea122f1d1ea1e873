"""The plan job: subscriptions and a sample of events to a network in which they feed each other."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from headgate.contents.registry import content_at
from headgate.core.interning import TextPool
from headgate.plan.graphs.cycles import without_cycles
from headgate.plan.graphs.joining import statistics_of
from headgate.plan.measures import measures
from headgate.plan.running.making import HELD, Given, Ways, make_network
from headgate.spark.plan.estimating import estimate, open_views
from headgate.spark.plan.graphs import embedding_graph, find_rewritings, joined_rewritings
from headgate.spark.plan.sites import Bounds, read_sites
from headgate.spark.session.progress import step
from headgate.spark.session.session import spark_errors
from headgate.spark.tables.places import local
from headgate.spark.tables.requests import check_plan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headgate.plan.costs import Estimates
    from headgate.plan.running.making import Made, Settings


@dataclass(frozen=True)
class Planned:
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


def plan_subscriptions(
    session: SparkSession,
    snapshot: str,
    sample: str,
    output: str,
    settings: Settings,
    *,
    rejected: str,
    sites: str | None = None,
    content_type: str | None = None,
    carries: str | None = None,
    on_spark: bool | None = None,
    quiet: bool = False,
) -> tuple[Planned, Made]:
    """Plan who feeds whom among the subscriptions of a snapshot; writes the network to `output`.

    The sample says what each subscription gives for an event. `on_spark` has workers find the graphs; if that
    is not said, they do unless Spark runs inside this process.
    """
    check_plan(
        snapshot,
        sample,
        output,
        rejected=rejected,
        sites=sites,
        content_type=content_type,
        carries=carries,
    )
    found = estimate(
        session,
        snapshot,
        sample,
        rejected=rejected,
        content_type=content_type,
        carries=carries,
        quiet=quiet,
    )
    views = open_views(snapshot, carries)
    placed = None
    if sites is not None:
        bounds = Bounds(settings.fan_out, settings.bandwidth, settings.cpu)
        with spark_errors():
            placed = read_sites(session, sites, views.ids, bounds)
    if on_spark is None:
        on_spark = not (session.sparkContext.master or "").startswith("local")

    def ways() -> Ways:
        if len(views.views) > HELD:
            joined = joined_rewritings(session, views.views, settings.search, weights=found.bytes)
            return Ways(joined.searched, statistics_of(joined.in_degrees, joined.removed, joined.searched))
        embeddings = embedding_graph(session, views.views)
        needed = views.views.needed
        acyclic, removed = without_cycles(embeddings, needed=needed, sizes=found.bytes)
        searched = find_rewritings(session, needed, acyclic, settings.search, weights=found.bytes)
        return Ways(searched, statistics_of(np.diff(embeddings.offsets), removed, searched))

    given = Given(
        views.ids,
        TextPool.build([views.filters.filter(identity) for identity in views.ids]),
        found.rows,
        found.bytes,
        None if placed is None else placed.capacities,
        None if placed is None else placed.names,
    )
    about = {
        "snapshot": Path(snapshot).name,
        "content": content_at(Path(snapshot)),
        "sample": {"table": Path(sample).name, "events": found.events},
        "carries": carries,
    }
    with spark_errors(), _Steps(quiet=quiet) as steps:
        made = make_network(
            views.views,
            given,
            settings,
            ways=ways if on_spark else None,
            about=about,
            progress=steps.begin,
        )
        steps.begin("writing the network")
        made.network.save(local(output))
    return _planned(made, found), made


def _planned(made: Made, found: Estimates) -> Planned:
    network, solution, statistics = made.network, made.solution, made.ways.statistics
    before = measures(network.before, network.rewritings, network.costs)
    after = measures(network.plan, network.rewritings, network.costs)
    return Planned(
        views=len(network.ids),
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
