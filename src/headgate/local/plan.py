"""The plan job in this process: subscriptions and a sample of events to a network."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from headgate.contents.registry import content_at, kind_of
from headgate.core.event import ID
from headgate.core.snapshot import digest_of
from headgate.core.versions.locating import locate, located
from headgate.local.events import read_documents
from headgate.runtime.progress import step
from headgate.tables.lines import BROKEN, VALUE, read_lines
from headgate.tables.planning import (
    BYTES,
    EVENTS,
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
from headgate.tables.writing import write_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from headgate.core.event import Event
    from headgate.plan.costs import Estimates
    from headgate.plan.running.planner import MadePlan, Settings
    from headgate.tables.planning import PlanResult, RefusedEvent


def plan_subscriptions(
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
    quiet: bool = False,
) -> tuple[PlanResult, MadePlan]:
    """Plan who feeds whom among the subscriptions of a snapshot, as `spark.plan.plan_subscriptions` does."""
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
    with step("estimating from the sample", quiet=quiet):
        found = estimate(snapshot, sample, rejected=rejected, content_type=content_type, carries=carries)
    views = open_views(snapshot, carries)
    placed = None
    if sites is not None:
        bounds = Bounds(settings.fan_out, settings.bandwidth, settings.cpu)
        placed = read_sites(rows_of(sites), sites, views.ids, bounds)
    linked = None
    if links is not None:
        linked = read_links(rows_of(links, *LINK_ENDS), links, site_names(placed, views.ids))
    return plan_views(
        views,
        snapshot,
        sample,
        output,
        settings,
        found,
        placed,
        None,
        links=linked,
        carries=carries,
        quiet=quiet,
    )


def estimate(
    snapshot: str, sample: str, *, rejected: str, content_type: str | None = None, carries: str | None = None
) -> Estimates:
    """Estimate what the views of a snapshot give, from a sample of events."""
    snapshot = locate(snapshot).name
    content = content_at(located(snapshot))
    refused: list[tuple[str, str]] = []
    read: Callable[[pa.RecordBatch], list[Event | RefusedEvent]]
    batches: Iterator[pa.RecordBatch]
    if kind_of(content).documents:
        given = read_documents(sample, content, content_type, None)
        refused, batches, read = given.refused, iter(given.documents), partial(read_parsed, content=content)
    else:
        batches, read = read_lines(sample, ID), read_records
    (found,) = sum_up(batches, snapshot, digest_of(located(snapshot)), carries, read)
    told = found.filter(found[REASON].is_valid())
    pairs = zip(told[ROW].to_pylist(), told[REASON].to_pylist(), strict=True)
    refused += [(str(row), str(reason)) for row, reason in pairs]
    rows, reasons = zip(*refused, strict=True) if refused else ((), ())
    columns = [pa.array(list(column), pa.string()) for column in (rows, reasons)]
    write_table(pa.table(columns, names=[ROW, REASON]), rejected)
    totals = pa.table(found.filter(found[REASON].is_null()).select([VIEW, ROWS, BYTES, EVENTS]))
    return averages_of(totals, len(open_views(snapshot, carries).views), len(refused))


def rows_of(path: str, *wanted: str) -> Iterator[tuple[bytes | None, str | None]]:
    """Read a table as lines of JSON, or lines of CSV that are broken; it must have `wanted`, or an id."""
    for batch in read_lines(path, *(wanted or (ID,))):
        yield from zip(batch[VALUE].to_pylist(), batch[BROKEN].to_pylist(), strict=True)
