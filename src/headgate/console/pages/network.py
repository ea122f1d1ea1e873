"""The network: asked how it fares, and shown by level, with what flows between sites and who is behind.

A site that hangs holds up the next picture, and no page: it shows the last one, and how old it is.
"""

from __future__ import annotations

import asyncio
import importlib
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from headgate.console.templates import packed
from headgate.console.view import View, page
from headgate.errors import HeadgateError
from headgate.report.words import many
from headgate.service.api.operation import ADMIN
from headgate.service.security.keys import check_scope

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.responses import Response

    from headgate.network.assignment import Neighbour
    from headgate.report.network_page import RunningNetwork


_WAYS = 12
"""Ways of a document that are drawn."""
GOOD, SILENT = "runs", "does not answer"
LATE = 10
"""Documents that a site may be behind before it is told: some are always on their way."""


class Fares(NamedTuple):
    """How a site does, in words."""

    state: str
    """A class of the drawing: source, good, bad, or late, which is one that waits or is behind."""
    note: str
    waits_for: str | None = None


def draw(fares: Mapping[str, Fares], feeds: Mapping[str, Mapping[str, int]]) -> str:
    """Say what is drawn: sites, and lines as wide as what one feeds another."""
    nodes = [
        {"id": name, "note": each.note, "state": each.state, "href": f"#site-{name}"}
        for name, each in fares.items()
    ]
    most = max((views for fed in feeds.values() for views in fed.values()), default=1)
    edges = [
        {
            "source": feeder,
            "target": name,
            "state": "bad" if "bad" in {fares[feeder].state, fares[name].state} else "",
            "width": round(1 + 3 * views / most, 1),
            "title": f"{feeder} feeds {name}: {many(views, 'view')}",
        }
        for feeder, fed in feeds.items()
        for name, views in fed.items()
        if feeder in fares and name in fares
    ]
    return packed({"nodes": nodes, "edges": edges, "label": "Sites, and who feeds whom"})


def silent(network: RunningNetwork) -> list[str]:
    """List the sites that do not answer."""
    return [site.name for site in network.sites if site.state == SILENT]


def fares_of(network: RunningNetwork) -> dict[str, Fares]:
    """Say how each site does: one that lost its link to another that does not answer waits for it."""
    down, fares = silent(network), dict[str, Fares]()
    for row, site in enumerate(network.sites):
        views, low, high = many(len(site.levels), "view"), *(f(site.levels, default=0) for f in (min, max))
        awaited = next((name for name in down if site.state.startswith(f"{name}: ")), None)
        if awaited is not None:
            fares[site.name] = Fares("late", f"waits for {awaited}", awaited)
        elif site.state != GOOD:
            fares[site.name] = Fares("bad", site.state)
        elif site.behind > LATE:
            fares[site.name] = Fares("late", f"{site.behind:,} behind")
        elif not row:
            fares[site.name] = Fares("source", views)
        else:
            levels = f"level {low}" if low == high else f"levels {low} to {high}"
            fares[site.name] = Fares("good", f"{views}, {levels}")
    return fares


_FRESH = 2.0
"""Seconds for which a picture counts as that of now."""
_PATIENCE = 3.0
"""Seconds that a page waits for a new one."""
_KEPT = 8
"""Documents whose pictures are kept."""


@dataclass
class Seen:
    """What is known of a network."""

    network: RunningNetwork | None = None
    """None if no picture was ever taken."""
    taken: float = 0.0
    """When, by the monotonic clock."""
    error: HeadgateError | None = None
    """Why the last look failed."""
    looking: asyncio.Task[None] | None = None

    @property
    def age(self) -> float:
        """Return the seconds since the picture was taken."""
        return time.monotonic() - self.taken


@dataclass
class Pictures:
    """The last pictures of a network, by the document whose way they show."""

    sites: Mapping[str, Neighbour]
    file: str = "sites.jsonl"
    """The file that lists them."""
    coming: bool = False
    """Whether there are none yet, and some are being started."""
    feeds: dict[str, dict[str, int]] = field(default_factory=dict)
    """How many views each site fed others, when it last told."""
    _kept: dict[int | None, Seen] = field(default_factory=dict)

    async def of(self, document: int | None = None) -> Seen:
        """Return the last picture; a new one if it comes soon enough."""
        kept = self._kept.setdefault(document, Seen())
        if self.sites and kept.looking is None and time.monotonic() - kept.taken > _FRESH:
            kept.looking = asyncio.get_running_loop().create_task(self._look(document, kept))
        if kept.looking is not None:
            await asyncio.wait([kept.looking], timeout=_PATIENCE)
        while len(self._kept) > _KEPT:
            del self._kept[next(each for each in self._kept if each not in {None, document})]
        return kept

    async def _look(self, document: int | None, kept: Seen) -> None:
        try:
            # It loads what draws reports, which takes a while the first time.
            picture = await asyncio.to_thread(importlib.import_module, "headgate.network.picture")
            network: RunningNetwork = await picture.picture_of(self.sites, document)
            kept.network, kept.taken, kept.error = network, time.monotonic(), None
            self._remember(network)
        except HeadgateError as error:
            kept.error = error
        finally:
            kept.looking = None

    def _remember(self, network: RunningNetwork) -> None:
        told: dict[str, dict[str, int]] = {}
        for feeder, fed, views in network.feeds:
            told.setdefault(feeder, {})[fed] = views
        # Of a site that does not answer it is not known any more, and drawn as it was.
        down = silent(network)
        self.feeds = told | {
            name: each for name, each in self.feeds.items() if name in down and name not in told
        }

    def close(self) -> None:
        """Look no more."""
        for kept in self._kept.values():
            if kept.looking is not None:
                kept.looking.cancel()


@page("GET", "/console/network")
async def network(view: View) -> Response:
    """Show the network, or what one is."""
    check_scope(view.key, ADMIN)
    pictures = view.console.pictures
    if not pictures.sites and not pictures.coming:
        return view.shown("network_empty.html.j2")
    file = getattr(view.server.settings, "network", None) or pictures.file
    return view.shown("network.html.j2", file=file, **await _values(view))


@page("GET", "/console/network/live")
async def live(view: View) -> Response:
    """Give the network as it is now."""
    check_scope(view.key, ADMIN)
    return view.part("network_live.html.j2", **await _values(view))


async def _values(view: View) -> dict[str, Any]:
    document = view.number("document") or None
    seen = await view.console.pictures.of(document)
    values: dict[str, Any] = {
        "seen": seen,
        "asked": document,
        "network": seen.network,
        "good": GOOD,
        "slow": LATE,
    }
    if seen.network is None:
        return values
    sites, fares = seen.network.sites, fares_of(seen.network)
    broken = [each for each in sites if fares[each.name].state == "bad"]
    late = [each for each in sites if fares[each.name].state == "late"]
    held = [each for each in sites[1:] if each.levels]
    ways = [way for way in seen.network.ways if way.stops]
    return values | {
        "drawing": draw(fares, view.console.pictures.feeds),
        "ways": sorted(ways, key=lambda way: -way.stops[-1][1])[:_WAYS],
        "waiting": {name: each.waits_for for name, each in fares.items() if each.waits_for},
        "broken": broken,
        "late": sorted(late, key=lambda each: -each.behind),
        "rest": [each for each in sites if each not in broken and each not in late],
        "views": sum(len(each.levels) for each in held),
        "levels": max((max(each.levels) for each in held), default=0),
        "feeds": sorted(seen.network.feeds, key=lambda each: -each[2]),
    }
