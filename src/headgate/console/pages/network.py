"""The network: asked how it fares, and shown by level, with what flows between sites and who is behind.

A site that hangs holds up the next picture, and no page: it shows the last one, and how old it is.
"""

from __future__ import annotations

import asyncio
import importlib
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from headgate.console.view import View, page
from headgate.errors import HeadgateError
from headgate.service.api.operation import ADMIN
from headgate.service.security.keys import check_scope

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from starlette.responses import Response

    from headgate.network.assignment import Neighbour
    from headgate.report.network_page import RunningNetwork, SiteRow, Way


_WIDTH, _HEIGHT = 150, 44
_ACROSS, _DOWN = 130, 14
"""Between two columns, and between two sites of one."""
_EDGE = 24
_TOP = 44
"""Where sites begin, below the names of the columns."""
_LONGEST = 18
"""Letters of a name that are drawn."""
_WAYS = 12
_SCALE = 620
_LABEL = 150
GOOD, SILENT = "runs", "does not answer"
LATE = 10
"""Documents that a site may be behind before it is told: some are always on their way."""


class Box(NamedTuple):
    """A site."""

    site: str
    label: str
    note: str
    kind: str
    """A class of the drawing: source, good, bad, or late, which is one that waits or is behind."""
    title: str
    x: int
    y: int


class Line(NamedTuple):
    """Who feeds whom."""

    path: str
    width: float
    kind: str
    title: str


class Column(NamedTuple):
    """A level."""

    x: int
    text: str


class Drawing(NamedTuple):
    """All of it."""

    width: int
    height: int
    columns: tuple[Column, ...]
    boxes: tuple[Box, ...]
    lines: tuple[Line, ...]
    box: tuple[int, int] = (_WIDTH, _HEIGHT)
    """The width and height of each."""


def draw(
    network: RunningNetwork, levels: Mapping[str, float], feeds: Mapping[str, Mapping[str, int]]
) -> Drawing:
    """Place sites by level; those whose level is not known any more are where they were."""
    column = {site.name: _column(row, site, levels) for row, site in enumerate(network.sites)}
    rows: dict[int, list[SiteRow]] = {}
    for site in network.sites:
        rows.setdefault(column[site.name], []).append(site)
    down = silent(network)
    tallest = max(map(len, rows.values()), default=1)
    height = tallest * (_HEIGHT + _DOWN)
    boxes: dict[str, Box] = {}
    columns = []
    for place, (level, some) in enumerate(sorted(rows.items())):
        x = _EDGE + place * (_WIDTH + _ACROSS)
        columns.append(Column(x, "publisher" if level == 0 else f"level {level}"))
        begin = _TOP + (height - len(some) * (_HEIGHT + _DOWN)) // 2
        for row, site in enumerate(some):
            y = begin + row * (_HEIGHT + _DOWN)
            boxes[site.name] = _box(site, down, x, y, source=level == 0)
    return Drawing(
        # Lines that lead back go around the last column.
        2 * _EDGE + len(rows) * (_WIDTH + _ACROSS) - _ACROSS // 2,
        _TOP + height + _EDGE,
        tuple(columns),
        tuple(boxes.values()),
        tuple(_lines(boxes, feeds)),
    )


def _column(row: int, site: SiteRow, levels: Mapping[str, float]) -> int:
    if row == 0:
        return 0
    mean = sum(site.levels) / len(site.levels) if site.levels else levels.get(site.name, 1.0)
    return max(1, round(mean))


def silent(network: RunningNetwork) -> list[str]:
    """List the sites that do not answer."""
    return [site.name for site in network.sites if site.state == SILENT]


def waits_for(site: SiteRow, down: Sequence[str]) -> str | None:
    """Tell which site that does not answer another one has lost its link to."""
    return next((name for name in down if site.state.startswith(f"{name}: ")), None)


def _box(site: SiteRow, down: Sequence[str], x: int, y: int, *, source: bool) -> Box:
    views, awaited = len(site.levels), waits_for(site, down)
    if awaited is not None:
        kind, note = "late", f"waits for {awaited}"
    elif site.state != GOOD:
        kind, note = "bad", site.state
    elif site.behind > LATE:
        kind, note = "late", f"{site.behind:,} behind"
    else:
        kind, note = ("source" if source else "good"), f"{views:,} view{'' if views == 1 else 's'}"
    title = f"{site.name}: {site.state}, {views:,} views, {site.behind:,} documents behind"
    return Box(site.name, _short(site.name), _short(note, 22), kind, title, x, y)


def _lines(boxes: Mapping[str, Box], feeds: Mapping[str, Mapping[str, int]]) -> list[Line]:
    most = max((views for fed in feeds.values() for views in fed.values()), default=1)
    lines = []
    for feeder, fed in feeds.items():
        for name, views in fed.items():
            if feeder not in boxes or name not in boxes:
                continue
            one, other = boxes[feeder], boxes[name]
            broken = "bad" in {one.kind, other.kind}
            title = f"{feeder} feeds {name}: {views:,} view{'' if views == 1 else 's'}"
            lines.append(
                Line(_path(one, other), round(1 + 3 * views / most, 1), "bad" if broken else "", title)
            )
    return lines


def _path(one: Box, other: Box) -> str:
    """Write a curve from the right of one to the left of another, or around if it does not lie behind."""
    y, end = one.y + _HEIGHT // 2, other.y + _HEIGHT // 2
    if other.x > one.x:
        x, last = one.x + _WIDTH, other.x
        bend = (last - x) // 2
        return f"M{x} {y}C{x + bend} {y} {last - bend} {end} {last} {end}"
    x, last = one.x + _WIDTH, other.x + _WIDTH
    return f"M{x} {y}C{x + _ACROSS // 2} {y} {last + _ACROSS // 2} {end} {last} {end}"


def _short(text: str, longest: int = _LONGEST) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"


class Stop(NamedTuple):
    """A site on the way of a document."""

    site: str
    label: str
    milliseconds: float
    since: float
    """Milliseconds since the stop before."""
    x: float


class Drawn(NamedTuple):
    """The way of a document to a view."""

    view: str
    stops: tuple[Stop, ...]


def draw_ways(ways: Sequence[Way]) -> list[Drawn]:
    """Place the stops of the ways that took longest on one scale of time."""
    slow = sorted((way for way in ways if way.stops), key=lambda way: -way.stops[-1][1])[:_WAYS]
    longest = max((way.stops[-1][1] for way in slow), default=0.0) or 1.0
    drawn = []
    for way in slow:
        stops, before = [], 0.0
        for site, moment in way.stops:
            x = round(_LABEL + (_SCALE - _LABEL) * moment / longest, 1)
            stops.append(Stop(site, _short(site, 12), moment, moment - before, x))
            before = moment
        drawn.append(Drawn(way.view, tuple(stops)))
    return drawn


_FRESH = 2.0
"""Seconds for which a picture counts as that of now."""
_PATIENCE = 3.0
"""Seconds that a page waits for a new one."""
_KEPT = 8
"""Documents whose pictures are kept."""


class Seen(NamedTuple):
    """What is known of a network."""

    network: RunningNetwork | None
    """None if no picture was ever taken."""
    age: float
    """Seconds."""
    error: HeadgateError | None
    """Why the last look failed."""


@dataclass
class _Kept:
    network: RunningNetwork | None = None
    taken: float = 0.0
    error: HeadgateError | None = None
    looking: asyncio.Task[None] | None = None


@dataclass
class Pictures:
    """The last pictures of a network, by the document whose way they show."""

    sites: Mapping[str, Neighbour]
    levels: dict[str, float] = field(default_factory=dict)
    """The mean level of each site's views when it last had some."""
    feeds: dict[str, dict[str, int]] = field(default_factory=dict)
    """How many views each site fed others, when it last told."""
    _kept: dict[int | None, _Kept] = field(default_factory=dict)

    async def of(self, document: int | None = None) -> Seen:
        """Return the last picture; a new one if it comes soon enough."""
        kept = self._kept.setdefault(document, _Kept())
        if kept.looking is None and time.monotonic() - kept.taken > _FRESH:
            kept.looking = asyncio.get_running_loop().create_task(self._look(document, kept))
        if kept.looking is not None:
            await asyncio.wait([kept.looking], timeout=_PATIENCE)
        while len(self._kept) > _KEPT:
            del self._kept[next(each for each in self._kept if each not in {None, document})]
        return Seen(kept.network, time.monotonic() - kept.taken if kept.taken else 0.0, kept.error)

    async def _look(self, document: int | None, kept: _Kept) -> None:
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
        for site in network.sites:
            if site.levels:
                self.levels[site.name] = sum(site.levels) / len(site.levels)
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
    if not view.console.pictures.sites:
        return view.shown("network_empty.html.j2")
    file = getattr(view.server.settings, "network", None) or "sites.jsonl"
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
    kept, sites = view.console.pictures, seen.network.sites
    down = silent(seen.network)
    waiting = {each.name: name for each in sites if (name := waits_for(each, down)) is not None}
    broken = [each for each in sites if each.state != GOOD and each.name not in waiting]
    late = [each for each in sites if each.name in waiting or (each.state == GOOD and each.behind > LATE)]
    held = [each for each in sites[1:] if each.levels]
    return values | {
        "drawing": draw(seen.network, kept.levels, kept.feeds),
        "ways": draw_ways(seen.network.ways),
        "waiting": waiting,
        "broken": broken,
        "late": sorted(late, key=lambda each: -each.behind),
        "rest": [each for each in sites if each not in broken and each not in late],
        "views": sum(len(each.levels) for each in held),
        "levels": max((max(each.levels) for each in held), default=0),
        "feeds": sorted(seen.network.feeds, key=lambda each: -each[2]),
    }
