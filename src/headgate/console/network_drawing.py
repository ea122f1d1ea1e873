"""A network as a drawing: sites in the column of their level, lines as wide as what flows there."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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


def draw(
    network: RunningNetwork, levels: Mapping[str, float], feeds: Mapping[str, Mapping[str, int]]
) -> Drawing:
    """Place sites by level; those whose level is not known any more are where they were."""
    column = {site.name: _column(place, site, levels) for place, site in enumerate(network.sites)}
    rows: dict[int, list[SiteRow]] = {}
    for site in network.sites:
        rows.setdefault(column[site.name], []).append(site)
    down = silent(network)
    tallest = max(map(len, rows.values()), default=1)
    order = {each: place for place, each in enumerate(sorted(rows))}
    height = tallest * (_HEIGHT + _DOWN)
    boxes: dict[str, Box] = {}
    for level, some in sorted(rows.items()):
        x = _EDGE + order[level] * (_WIDTH + _ACROSS)
        begin = _TOP + (height - len(some) * (_HEIGHT + _DOWN)) // 2
        for place, site in enumerate(some):
            y = begin + place * (_HEIGHT + _DOWN)
            boxes[site.name] = _box(site, down, x, y, source=level == 0)
    return Drawing(
        # Lines that lead back go around the last column.
        2 * _EDGE + len(rows) * (_WIDTH + _ACROSS) - _ACROSS // 2,
        _TOP + height + _EDGE,
        tuple(
            Column(_EDGE + order[level] * (_WIDTH + _ACROSS), "publisher" if level == 0 else f"level {level}")
            for level in sorted(rows)
        ),
        tuple(boxes.values()),
        tuple(_lines(boxes, feeds)),
    )


def _column(place: int, site: SiteRow, levels: Mapping[str, float]) -> int:
    if place == 0:
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
    found = []
    for feeder, fed in feeds.items():
        for name, views in fed.items():
            if feeder not in boxes or name not in boxes:
                continue
            one, other = boxes[feeder], boxes[name]
            broken = "bad" in {one.kind, other.kind}
            title = f"{feeder} feeds {name}: {views:,} view{'' if views == 1 else 's'}"
            found.append(
                Line(_path(one, other), round(1 + 3 * views / most, 1), "bad" if broken else "", title)
            )
    return found


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
    found = []
    for way in slow:
        stops, before = [], 0.0
        for site, time in way.stops:
            x = round(_LABEL + (_SCALE - _LABEL) * time / longest, 1)
            stops.append(Stop(site, _short(site, 12), time, time - before, x))
            before = time
        found.append(Drawn(way.view, tuple(stops)))
    return found
