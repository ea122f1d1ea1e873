"""The report of a network that runs: levels, who feeds whom, who is behind, the way of one document."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from matplotlib.ticker import MaxNLocator

from headgate.report import drawing, words
from headgate.report.drawing import ACCENT, INK, MAIN, PALE, SOFT, Chart, bare, is_narrow, sheet
from headgate.report.feeds import Feeder, feeds_chart
from headgate.report.pages import Tile, template, write_as

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes

SHOWN = 12
"""Sites that are behind, and ways of a document, that are drawn one by one."""


class SiteRow(NamedTuple):
    """A site, as it fares."""

    name: str
    levels: tuple[int, ...]
    """The level of each of its views."""
    behind: int
    """Documents that the view which is farthest behind has not come to."""
    links: int
    open: int
    """Links that stand."""
    state: str
    """`runs`, or what is wrong."""


class Way(NamedTuple):
    """How a result of one document came to a view: the sites, and when each had it, in milliseconds."""

    view: str
    stops: tuple[tuple[str, float], ...]


class RunningNetwork(NamedTuple):
    """A network at one moment."""

    name: str
    epoch: int
    documents: int
    """The last document."""
    sites: tuple[SiteRow, ...]
    """The source comes first."""
    feeds: tuple[tuple[str, str, int], ...]
    """Who feeds whom, and how many views."""
    document: str
    """The document whose ways are shown; empty if there is none."""
    ways: tuple[Way, ...]


def charts(network: RunningNetwork) -> list[Chart]:
    """List the charts that say something."""
    charts = [who_feeds_whom(network), levels_chart(network)]
    if any(site.behind for site in network.sites):
        charts.append(behind_chart(network))
    if network.ways:
        charts.append(ways_chart(network))
    return charts


def who_feeds_whom(network: RunningNetwork) -> Chart:
    """Draw each site in the column of the mean level of its views, and lines to those that it feeds."""
    row_of = {site.name: number for number, site in enumerate(network.sites)}
    feeders = []
    for number, site in enumerate(network.sites):
        mean = sum(site.levels) / len(site.levels) if site.levels else 1.0
        fails = "" if site.state == "runs" else site.state
        feeders.append(Feeder(site.name, max(1, round(mean)) if number else 0, fails))
    feeds = [(row_of[a], row_of[b], count) for a, b, count in network.feeds if a in row_of and b in row_of]
    return feeds_chart("Who feeds whom", "site", feeders, feeds)


def levels_chart(network: RunningNetwork) -> Chart:
    """Draw how many views are on each level."""
    counts = Counter(level for site in network.sites[1:] for level in site.levels)

    def draw(axes: Axes) -> None:
        axes.bar(list(counts), list(counts.values()), width=0.7, color=MAIN)
        drawing.write_values(axes, counts.keys(), counts.values())
        axes.xaxis.set_major_locator(MaxNLocator(nbins=20, integer=True))
        axes.yaxis.set_major_locator(MaxNLocator(integer=True))
        axes.grid(visible=False, axis="x")
        axes.set_xlabel("level: hops from the publisher")
        axes.set_ylabel("views")

    caption = f"Views by level. The publisher feeds the {words.count(counts[1])} views of level 1."
    return Chart("levels", "Levels", caption, 2.8, draw)


def behind_chart(network: RunningNetwork) -> Chart:
    """Draw the sites that are behind the most."""
    late = sorted((site for site in network.sites if site.behind), key=lambda site: -site.behind)[:SHOWN]

    def draw(axes: Axes) -> None:
        for row, site in enumerate(late):
            axes.barh(row, site.behind, height=0.5, color=ACCENT if site.state != "runs" else MAIN)
            room = 24 if is_narrow(axes) else 60
            state = f": {words.shorten(site.state, room)}" if site.state != "runs" else ""
            text = f"{words.count(site.behind)} · {words.shorten(site.name, 24)}{state}"
            shift = 0.02 * late[0].behind
            axes.text(site.behind + shift, row, text, va="center", fontsize=9.5, color=INK)
        axes.set_xlim(0, (3.4 if is_narrow(axes) else 2.2) * late[0].behind)
        axes.set_ylim(len(late) - 0.4, -0.6)
        bare(axes)

    caption = (
        f"Documents that the slowest view of a site has not come to, of {words.count(network.documents)}."
    )
    return Chart("behind", "Who is behind", caption, 0.7 + 0.34 * len(late), draw)


def ways_chart(network: RunningNetwork) -> Chart:
    """Draw when a document was at each site on its way to the views that got it last."""
    slow = sorted(network.ways, key=lambda way: -way.stops[-1][1])[:SHOWN]

    def draw(axes: Axes) -> None:
        right = max(way.stops[-1][1] for way in slow) or 1.0
        for row, way in enumerate(slow):
            times = [time for _, time in way.stops]
            axes.plot(times, [row] * len(times), color=PALE, linewidth=2.5, zorder=1)
            axes.scatter(times, [row] * len(times), s=34, color=MAIN, zorder=3, clip_on=False)
            for turn, (site, time) in enumerate(way.stops):
                side = "left" if time < 0.02 * right else "center"
                shift = -0.22 if turn % 2 else 0.46
                name = words.shorten(site, 8 if is_narrow(axes) else 12)
                axes.text(time, row + shift, name, ha=side, fontsize=8.5, color=SOFT)
            name = words.shorten(way.view, 12 if is_narrow(axes) else 24)
            axes.text(times[-1] + 0.02 * right, row, name, va="center", fontsize=9.5)
        axes.set_xlim(0, (1.4 if is_narrow(axes) else 1.25) * right)
        axes.set_ylim(len(slow) - 0.3, -0.7)
        axes.set_yticks([])
        axes.set_xlabel("milliseconds since the source took it up")

    caption = (
        f"The ways of document {network.document} to the {len(slow)} views of {len(network.ways):,} that got "
        "it last: a dot is a site that had what the next one needed."
    )
    return Chart("ways", "The way of one document", caption, 1.0 + 0.5 * len(slow), draw)


def write_report(network: RunningNetwork, path: Path, *, title: str, command: str = "") -> None:
    """Write a report in the format of its file's name, whole or not at all."""
    drawn = charts(network)

    def page() -> str:
        return template("network_page.html.j2").render(
            title=title,
            sentence=sentence(network),
            tiles=_tiles(network),
            pictures=drawn,
            rows=network.sites,
            command=command,
        )

    write_as(path, page, lambda form: sheet(f"{title}: {sentence(network)}", drawn, form))


def sentence(network: RunningNetwork) -> str:
    """Say how it fares, in numbers."""
    views = sum(len(site.levels) for site in network.sites[1:])
    wrong = [site for site in network.sites if site.state != "runs"]
    fares = f"{len(wrong):,} do{'es' * (len(wrong) == 1)} not run" if wrong else "all run"
    return (
        f"{words.count(views)} views at {words.count(len(network.sites) - 1)} sites, of which {fares}; "
        f"{words.count(network.documents)} documents so far."
    )


def _tiles(network: RunningNetwork) -> list[Tile]:
    levels = [level for site in network.sites[1:] for level in site.levels]
    source = network.sites[0].name
    fed = sum(count for feeder, _, count in network.feeds if feeder == source)
    feeds = sum(count for *_, count in network.feeds)
    times = sorted(way.stops[-1][1] for way in network.ways)
    tiles = [
        Tile(
            "levels",
            words.count(max(levels, default=0)),
            f"hops to the farthest of {words.count(len(levels))} views",
        ),
        Tile(
            "fed by the publisher",
            words.count(fed),
            f"{fed / max(feeds, 1):.1%} of {words.count(feeds)} feeds; sites give the others",
        ),
        Tile(
            "behind",
            words.count(max(site.behind for site in network.sites)),
            "documents that the slowest view has not come to",
        ),
        Tile("plan", words.count(network.epoch), "how often sites were told whom to feed"),
    ]
    if times:
        tiles.append(
            Tile(
                "last document",
                f"{times[-1]:,.1f} ms",
                f"until the last view had it; {times[len(times) // 2]:,.1f} ms for half of them",
            )
        )
    return tiles
