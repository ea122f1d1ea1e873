"""The plan job: subscriptions and a sample of events to a network in which they feed each other.

How much each view gives for an event, on average over a sample, in rows and bytes:

sample -> events -> workers match them, compute the results of the views that match, sum up -> sums by view
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_schema

from headgate.contents.registry import content_at, kind_of
from headgate.core.event import ID
from headgate.core.snapshot import digest_of
from headgate.core.versions.locating import locate, located
from headgate.plan.graphs.cycles import without_cycles
from headgate.plan.graphs.joining import statistics_of
from headgate.plan.running.planner import HELD, FoundRewritings
from headgate.spark.jobs.plan.graphs import embedding_graph, find_rewritings, joined_rewritings
from headgate.spark.session.progress import watch
from headgate.spark.session.session import spark_errors
from headgate.spark.session.settings import in_own_session
from headgate.spark.tables.events import judge_documents
from headgate.spark.tables.tables import read_lines, write_table
from headgate.tables.lines import BROKEN, VALUE
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

    from pyspark.sql import SparkSession

    from headgate.plan.costs import Estimates
    from headgate.plan.running.planner import MadePlan, Settings
    from headgate.tables.planning import PlanResult


@in_own_session
def estimate(
    session: SparkSession,
    snapshot: str,
    sample: str,
    *,
    rejected: str,
    content_type: str | None = None,
    carries: str | None = None,
    quiet: bool = False,
) -> Estimates:
    """Estimate what the views of a snapshot give, from a sample of events. No shuffle but of sums.

    What is no event goes to the table `rejected`, with the reason.
    """
    # Workers are in another folder.
    snapshot = locate(snapshot).name
    content = content_at(located(snapshot))
    judged = None
    with spark_errors(), watch(session, "estimating from the sample", quiet=quiet):
        if not kind_of(content).documents:
            events, read = read_lines(session, sample, ID).select(VALUE, BROKEN), read_records
        else:
            judged = judge_documents(session, sample, content, content_type).judged
            events, read = judged.events, partial(read_parsed, content=content)
        work = partial(
            sum_up, snapshot=snapshot, digest=digest_of(located(snapshot)), carries=carries, read=read
        )
        # Kept, because it is asked twice.
        found = events.mapInArrow(work, from_arrow_schema(FOUND)).persist()
        sums = [sf.sum(name).alias(name) for name in (ROWS, BYTES, EVENTS)]
        totals = found.where(sf.col(REASON).isNull()).groupBy(VIEW).agg(*sums).toArrow()
        refused = found.where(sf.col(REASON).isNotNull()).select(ROW, REASON)
        write_table(refused if judged is None else judged.refused, rejected)
        count = refused.count() if judged is None else judged.rejected
        found.unpersist()
        if judged is not None:
            judged.forget()
    return averages_of(totals, len(open_views(snapshot, carries).views), count)


@in_own_session
def plan_subscriptions(
    session: SparkSession,
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
    on_spark: bool | None = None,
    quiet: bool = False,
) -> tuple[PlanResult, MadePlan]:
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
        links=links,
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

    def rows_of(path: str, *wanted: str) -> Iterator[tuple[bytes | None, str | None]]:
        with spark_errors():
            rows = read_lines(session, path, *wanted).select(VALUE, BROKEN).collect()
        return ((row[VALUE] and bytes(row[VALUE]), row[BROKEN]) for row in rows)

    placed = None
    if sites is not None:
        bounds = Bounds(settings.fan_out, settings.bandwidth, settings.cpu)
        placed = read_sites(rows_of(sites, ID), sites, views.ids, bounds)
    linked = None
    if links is not None:
        linked = read_links(rows_of(links, *LINK_ENDS), links, site_names(placed, views.ids))
    if on_spark is None:
        on_spark = not (session.sparkContext.master or "").startswith("local")

    def ways() -> FoundRewritings:
        if len(views.views) > HELD:
            joined = joined_rewritings(session, views.views, settings.search, weights=found.bytes)
            return FoundRewritings(
                joined.searched, statistics_of(joined.in_degrees, joined.removed, joined.searched)
            )
        embeddings = embedding_graph(session, views.views)
        needed = views.views.needed
        acyclic, removed = without_cycles(embeddings, needed=needed, sizes=found.bytes)
        searched = find_rewritings(session, needed, acyclic, settings.search, weights=found.bytes)
        return FoundRewritings(searched, statistics_of(np.diff(embeddings.offsets), removed, searched))

    with spark_errors():
        return plan_views(
            views,
            snapshot,
            sample,
            output,
            settings,
            found,
            placed,
            ways if on_spark else None,
            links=linked,
            carries=carries,
            quiet=quiet,
        )
