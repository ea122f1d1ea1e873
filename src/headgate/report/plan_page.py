"""The report of a dissemination network: one HTML file with charts and numbers, or the charts alone.

The charts: who feeds whom, levels, fan-out, busy sites, latency.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.patches import PathPatch
from matplotlib.path import Path as Curve
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter

from headgate.plan.measures import input_places, levels, loads, measures
from headgate.plan.model import SOURCE
from headgate.report import words
from headgate.report.drawing import ACCENT, INK, MAIN, PALE, SOFT, Chart, bare, note, sheet, thousands
from headgate.report.pages import Tile, check_output, template, write_whole

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from headgate.plan.running.saved_plan import SavedPlan


FEW = 40
"""Views that are drawn one by one."""
SHOWN = 10
"""Sites in the list of the busiest."""
_BARS = 24


def charts(saved: SavedPlan) -> list[Chart]:
    """List the charts of a network, those that say something."""
    found = [network_chart(saved), levels_chart(saved)]
    if (saved.plan.chosen != SOURCE).any():
        found += [fan_out_chart(saved), busiest_chart(saved)]
    if len(saved.about.get("trace", ())) > 1:
        found.append(latency_chart(saved))
    return found


def network_chart(saved: SavedPlan) -> Chart:
    """Draw who feeds whom: view by view if they are few, else level by level."""
    level = levels(saved.plan, saved.rewritings)
    if len(level) <= FEW:
        caption = (
            "Each dot is a view, in the column of its level; lines lead from those that feed to those fed."
        )
        rows = int(np.bincount(level).max()) if len(level) else 1
        return Chart(
            "network", "The network", caption, 1.2 + 0.42 * rows, lambda axes: _dots(axes, saved, level)
        )
    caption = (
        "A box for each level, as high as it has views (by the logarithm); a band is as wide as the share of "
        "feeds that go from one level to another."
    )
    return Chart("network", "The network", caption, 3.6, lambda axes: _bands(axes, saved, level))


def levels_chart(saved: SavedPlan) -> Chart:
    """Draw how many views are on each level, before latency was lowered and after."""
    before = np.bincount(levels(saved.before, saved.rewritings))[1:]
    after = np.bincount(levels(saved.plan, saved.rewritings))[1:]
    count = max(len(before), len(after), 1)

    def draw(axes: Axes) -> None:
        places = np.arange(1, count + 1)
        for heights, shift, colour, text in ((before, -0.2, PALE, "before"), (after, 0.2, MAIN, "after")):
            axes.bar(places[: len(heights)] + shift, heights, width=0.38, color=colour, label=text)
        _logarithmic(axes)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=20, integer=True))
        axes.grid(visible=False, axis="x")
        axes.set_xlim(0.4, count + 0.6)
        axes.set_xlabel("level: hops from the publisher")
        axes.set_ylabel("views")
        axes.legend(frameon=False, loc="upper right", ncols=2, labelcolor=INK)

    caption = (
        f"Views by level, before latency was lowered ({len(before)} levels) and after ({len(after)}). "
        "The publisher feeds level 1. The scale is logarithmic."
    )
    return Chart("levels", "Levels", caption, 3.2, draw)


def fan_out_chart(saved: SavedPlan) -> Chart:
    """Draw how many views are fed by so many others."""
    feeding = _feeding(saved)
    most = int(feeding.max())
    edges = np.unique(np.linspace(0, most + 1, min(most + 1, _BARS) + 1).round().astype(int))

    def draw(axes: Axes) -> None:
        counts, _ = np.histogram(feeding, edges)
        places = np.arange(len(counts))
        axes.bar(places + 0.5, counts, width=0.88, color=[SOFT, *[MAIN] * (len(counts) - 1)])
        _logarithmic(axes)
        every = max(1, len(counts) // 12)
        at = list(range(0, len(counts), every))
        axes.set_xticks([place + 0.5 for place in at], [_range(edges, place) for place in at])
        axes.grid(visible=False, axis="x")
        axes.set_xlabel("views that a view feeds")
        axes.set_ylabel("views")
        bound = saved.capacities.fan_out
        if len(bound) and np.isfinite(bound[0]) and (bound == bound[0]).all() and bound[0] <= most:
            x = float(np.interp(bound[0] + 1, edges, np.arange(len(edges))))
            axes.axvline(x, color=ACCENT, linewidth=1.4)
            note(axes, x / len(counts), f"capacity {words.count(bound[0])}")

    idle = int((feeding == 0).sum())
    caption = (
        f"{words.count(idle)} of {words.count(len(feeding))} views feed none; the busiest feeds "
        f"{words.count(most)}. The scale is logarithmic."
    )
    return Chart("fan-out", "Fan-out", caption, 3.0, draw)


def busiest_chart(saved: SavedPlan) -> Chart:
    """Draw a bar for each of the sites that feed the most, with what it can bear."""
    load = loads(saved.plan, saved.rewritings, saved.costs, saved.capacities)
    order = np.argsort(-load.fan_out, kind="stable")[:SHOWN]
    order = order[load.fan_out[order] > 0]
    first = _first_views(saved)

    def draw(axes: Axes) -> None:
        right = float(load.fan_out[order[0]])
        for place, site in enumerate(order.tolist()):
            value, bound = float(load.fan_out[site]), float(saved.capacities.fan_out[site])
            axes.barh(place + 0.2, value, height=0.3, color=MAIN)
            if bound <= right * 1.05:
                axes.plot([bound, bound], [place + 0.02, place + 0.38], color=ACCENT, linewidth=1.6)
            name = words.shorten(saved.sites.text(int(site)), 28)
            text = f"{name} · {words.shorten(saved.filters.text(int(first[site])), 110 - len(name))}"
            axes.text(0, place - 0.02, text, va="bottom", fontsize=9.5, clip_on=True, in_layout=False)
            axes.text(value + right * 0.01, place + 0.2, words.count(value), va="center", color=SOFT)
        axes.set_ylim(len(order) - 0.55, -0.45)
        axes.set_xlim(0, right * 1.1)
        bare(axes)

    caption = (
        "The sites that feed the most views, with the filter of their first view. A mark is the capacity."
    )
    return Chart("busiest", "Busiest sites", caption, 0.5 + 0.56 * len(order), draw)


def latency_chart(saved: SavedPlan) -> Chart:
    """Draw how latency fell while it was lowered."""
    trace = np.array([(each[0], each[1]) for each in saved.about["trace"]])

    def draw(axes: Axes) -> None:
        share = 100 * trace[:, 1] / trace[0, 1]
        axes.plot(trace[:, 0], share, color=MAIN, linewidth=1.8)
        axes.fill_between(trace[:, 0], share, color=PALE, alpha=0.5)
        axes.set_xlim(0, max(trace[-1, 0], 1e-3))
        axes.set_ylim(0, 105)
        axes.set_xlabel("seconds")
        axes.set_ylabel("latency, % of the first plan")
        thousands(axes.yaxis)

    less = 1 - trace[-1, 1] / trace[0, 1] if trace[0, 1] else 0.0
    caption = f"The sum of all views' latencies fell by {less:.0%} in {words.duration(float(trace[-1, 0]))}."
    return Chart("latency", "Latency while it was lowered", caption, 2.8, draw)


def _feeding(saved: SavedPlan) -> NDArray[np.int64]:
    used = saved.rewritings.inputs[input_places(saved.plan, saved.rewritings)]
    return np.bincount(used, minlength=len(saved.ids))


def _first_views(saved: SavedPlan) -> NDArray[np.int64]:
    """Find the first view of each site."""
    first = np.zeros(len(saved.capacities.fan_out), np.int64)
    sites, places = np.unique(saved.capacities.sites, return_index=True)
    first[sites] = places
    return first


def _logarithmic(axes: Axes) -> None:
    """Count upwards by powers of ten, with one as the lowest that can be seen."""
    axes.set_yscale("log")
    axes.set_ylim(0.7, None)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.yaxis.set_minor_formatter(NullFormatter())


def _range(edges: NDArray[np.int64], place: int) -> str:
    low, high = int(edges[place]), int(edges[place + 1]) - 1
    return f"{low:,}" if low == high else f"{low:,}\N{EN DASH}{high:,}"


def _links(saved: SavedPlan) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """List who feeds whom."""
    fed = np.flatnonzero(saved.plan.chosen != SOURCE)
    counts = np.diff(saved.rewritings.input_offsets)[saved.plan.chosen[fed]]
    used = saved.rewritings.inputs[input_places(saved.plan, saved.rewritings)]
    return used.astype(np.int64), np.repeat(fed, counts)


def _dots(axes: Axes, saved: SavedPlan, level: NDArray[np.int32]) -> None:
    """Draw every view and every feed."""
    height = np.zeros(len(level))
    for each in np.unique(level):
        members = np.flatnonzero(level == each)
        height[members] = -np.arange(len(members)) + (len(members) - 1) / 2
    source, target = _links(saved)
    for view in np.flatnonzero(saved.plan.chosen == SOURCE).tolist():
        axes.plot([0, level[view]], [0, height[view]], color=PALE, linewidth=1, zorder=1)
    for feeder, fed in zip(source, target, strict=True):
        axes.plot(
            [level[feeder], level[fed]], [height[feeder], height[fed]], color=SOFT, linewidth=1, zorder=1
        )
    axes.scatter([0], [0], s=140, color=ACCENT, zorder=3)
    axes.text(0, 0.42, "publisher", ha="center", va="bottom", color=ACCENT)
    axes.scatter(level, height, s=50, color=MAIN, zorder=3)
    for view, identity in enumerate(saved.ids):
        text = words.shorten(str(identity), 18)
        axes.text(level[view], height[view] + 0.16, text, ha="center", va="bottom", fontsize=9, zorder=4)
    top = float(level.max()) if len(level) else 1.0
    spread = max(float(np.abs(height).max()) if len(height) else 0.0, 0.6)
    axes.set_xlim(-0.35, top + 0.75)
    axes.set_ylim(-spread - 0.6, spread + 0.9)
    bare(axes)


def _bands(axes: Axes, saved: SavedPlan, level: NDArray[np.int32]) -> None:
    """Draw a box for each level, and a band for the feeds between each two of them."""
    count = int(level.max())
    views = np.bincount(level, minlength=count + 1)
    tall = np.zeros(count + 1)
    tall[1:] = 0.25 + np.log10(np.maximum(views[1:], 1))
    tall[0] = 0.5
    source, target = _links(saved)
    flows = np.zeros((count + 1, count + 1))
    np.add.at(flows, (level[source], level[target]), 1.0)
    flows[0, 1] = (saved.plan.chosen == SOURCE).sum()
    most = flows.max()
    for begin, end in sorted(zip(*np.nonzero(flows), strict=True), key=lambda pair: -flows[pair]):
        width = max(0.6, 26.0 * flows[begin, end] / most)
        lift = 0.0 if end == begin + 1 else 0.5 * tall.max() * (1 if (begin + end) % 2 else -1)
        middle = (begin + end) / 2
        curve = Curve(
            [(begin + 0.16, 0), (middle, lift), (middle, lift), (end - 0.16, 0)],
            [Curve.MOVETO, Curve.CURVE4, Curve.CURVE4, Curve.CURVE4],
        )
        colour = ACCENT if begin == 0 else PALE
        axes.add_patch(
            PathPatch(curve, facecolor="none", edgecolor=colour, linewidth=width, alpha=0.55, zorder=1)
        )
    for place in range(count + 1):
        colour = ACCENT if place == 0 else MAIN
        axes.bar(place, tall[place], width=0.32, bottom=-tall[place] / 2, color=colour, zorder=3)
        name = "publisher" if place == 0 else f"{words.count(int(views[place]))}"
        axes.text(place, tall[place] / 2 + 0.08, name, ha="center", va="bottom", fontsize=9.5, zorder=4)
        if place:
            axes.text(
                place,
                -tall[place] / 2 - 0.08,
                f"level {place}",
                ha="center",
                va="top",
                color=SOFT,
                fontsize=9,
            )
    axes.set_xlim(-0.6, count + 0.6)
    axes.set_ylim(-tall.max() * 0.75 - 0.3, tall.max() * 0.75 + 0.3)
    bare(axes)


def write_report(saved: SavedPlan, path: Path, *, title: str, command: str = "") -> None:
    """Write a report in the format of its file's name, whole or not at all."""
    check_output(path)
    if path.suffix == ".html":
        data = render(saved, title=title, command=command).encode("utf-8", "replace")
    else:
        parts = [(chart.heading, chart.height, chart.draw) for chart in charts(saved) if chart.draw]
        data = sheet(f"{title}: {sentence(saved)}", parts, path.suffix[1:])
    write_whole(data, path)


def render(saved: SavedPlan, *, title: str, command: str = "") -> str:
    """Return the page of a plan."""
    return template("plan_page.html.j2").render(
        title=title,
        sentence=sentence(saved),
        tiles=_tiles(saved),
        pictures=charts(saved),
        rows=_level_rows(saved),
        command=command,
    )


def sentence(saved: SavedPlan) -> str:
    """Say who feeds whom, in numbers."""
    views = len(saved.ids)
    direct = int((saved.plan.chosen == SOURCE).sum())
    share = f"{1 - direct / views:.1%}" if views else "none"
    return (
        f"{words.count(views)} views; {words.count(views - direct)} of them ({share}) are fed by others, "
        f"{words.count(direct)} by the publisher."
    )


def _tiles(saved: SavedPlan) -> list[Tile]:
    before = measures(saved.before, saved.rewritings, saved.costs)
    after = measures(saved.plan, saved.rewritings, saved.costs)
    views = max(len(saved.ids), 1)
    less = 1 - after.latency / before.latency if before.latency else 0.0
    more = after.utilization / before.utilization - 1 if before.utilization else 0.0
    program = saved.about.get("utilization", {})
    gap = f"first plan within {program['gap']:.2%} of the optimum" if "gap" in program else ""
    moved = int((saved.capacities.sites[saved.hosts()] != saved.capacities.sites).sum())
    elsewhere = [Tile("joins elsewhere", words.count(moved), "at the site of an input")] if moved else []
    return [
        Tile(
            "fed by the publisher", words.count(after.source_fed), f"{after.source_fed / views:.1%} of views"
        ),
        Tile("levels", words.count(len(after.per_level)), f"{len(before.per_level)} before"),
        Tile("latency", f"{less:.0%} less", "than in the plan of least utilization"),
        Tile("utilization", f"{more:+.1%}", gap),
        *elsewhere,
    ]


def _level_rows(saved: SavedPlan) -> list[tuple[str, str, str, str]]:
    before, after = (levels(plan, saved.rewritings) for plan in (saved.before, saved.plan))
    count = int(max(before.max(initial=0), after.max(initial=0)))
    old, new = (np.bincount(each, minlength=count + 1) for each in (before, after))
    total = max(len(saved.ids), 1)
    return [
        (str(level), words.count(int(old[level])), words.count(int(new[level])), f"{new[level] / total:.1%}")
        for level in range(1, count + 1)
    ]
