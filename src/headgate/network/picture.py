"""What a report draws of a network that runs: asked of its sites, at one moment."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from headgate.client.asking import Ask
from headgate.errors import ServiceError
from headgate.network.assignment import SOURCE, Assignment
from headgate.network.deployment import look_at
from headgate.network.entry import Result, read_entry
from headgate.network.link import page_after, place_of
from headgate.report.network_page import RunningNetwork, SiteRow, Way

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headgate.network.assignment import Neighbour
    from headgate.network.site import SiteStatus

_PATIENCE = 30.0
"""Seconds that a site may take to answer."""
_PAGES = 5
"""Parts of a site's log that are looked through for one document."""


async def picture_of(sites: Mapping[str, Neighbour], document: int | None = None) -> RunningNetwork:
    """Ask all sites; the ways are those of a document, by default the last that all views have come to."""
    statuses = await look_at(sites)
    told = dict(zip(sites, await asyncio.gather(*map(_told, sites.values())), strict=True))
    last = max((each.documents for each in statuses.values() if each is not None), default=0)
    rows = [_row(name, each, last) for name, each in statuses.items()]
    rows.sort(key=lambda row: (row.name != SOURCE, row.name))
    if document is None:
        document = min(
            (view.reached for each in statuses.values() if each is not None for view in each.views), default=0
        )
    ways: list[Way] = []
    if document:
        asked = [_ways(name, sites[name], told[name], document) for name in sites if name != SOURCE]
        ways = [way for some in await asyncio.gather(*asked) for way in some]
    feeds = [
        (name, fed, len(views))
        for name, each in told.items()
        if each is not None
        for fed, views in each.feeds.items()
    ]
    known = next((each for each in told.values() if each is not None), None)
    return RunningNetwork(
        "" if known is None else known.network,
        max((each.epoch for each in told.values() if each is not None), default=0),
        last,
        tuple(rows),
        tuple(feeds),
        str(document) if ways else "",
        tuple(ways),
    )


def _row(name: str, status: SiteStatus | None, last: int) -> SiteRow:
    if status is None:
        return SiteRow(name, (), 0, 0, 0, "does not answer")
    lost = [link for link in status.links if link.state != "open"]
    state = status.failure or (f"{lost[0].site}: {lost[0].state}" if lost else "runs")
    behind = last - min((view.reached for view in status.views), default=last)
    levels = tuple(view.level for view in status.views)
    return SiteRow(name, levels, behind, len(status.links), len(status.links) - len(lost), state)


async def _told(site: Neighbour) -> Assignment | None:
    async with site.client(_PATIENCE) as client:
        try:
            told: Assignment | None = await client.send(Ask("GET", "/v1/site/assignment", Assignment | None))
        except ServiceError:
            return None
        return told


async def _ways(name: str, site: Neighbour, told: Assignment | None, document: int) -> list[Way]:
    """Find the results of a document in the log of a site."""
    if told is None or not told.views:
        return []
    views = [(view.id, max(document - 1, view.after)) for view in told.views[:1]]
    ways: list[Way] = []
    async with site.client(_PATIENCE) as client:
        try:
            after: str | None = str((await client.send(place_of(name, views))).cursor)
            for _ in range(_PAGES):
                if after is None:
                    break
                page = await client.send(page_after(after, 1_000))
                after = page.next
                entries = (read_entry(item.event) for item in page.items)
                ways += [
                    Way(str(each.view), tuple((stop, micros / 1e3) for stop, micros in each.path))
                    for each in entries
                    if isinstance(each, Result) and each.document == document
                ]
        except ServiceError:
            return ways
    return ways
