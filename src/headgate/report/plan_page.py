"""The report of a dissemination network: one HTML file with charts and numbers, or the charts alone.

The charts: who feeds whom, levels, fan-out, busy sites, latency. Axes are linear, and bars have their values.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.ticker import MaxNLocator

from headgate.plan.measures import input_places, levels, loads, measures
from headgate.plan.model import SOURCE
from headgate.report import drawing, words
from headgate.report.drawing import ACCENT, INK, MAIN, PALE, SOFT, Chart, is_narrow, note, sheet, thousands
from headgate.report.feeds import Feeder, feeds_chart
from headgate.report.pages import Tile, template, write_as

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from headgate.core.arrays import Ints
    from headgate.plan.running.saved_plan import SavedPlan


SHOWN = 10
"""Sites in the list of the busiest."""
_BARS = 24
_STEPS = 3
"""Points of a trace from which on it is drawn."""


def charts(saved: SavedPlan) -> list[Chart]:
    """List the charts of a network, those that say something."""
    charts = [network_chart(saved), levels_chart(saved)]
    if (saved.plan.chosen != SOURCE).any():
        charts += [fan_out_chart(saved), busiest_chart(saved)]
    if len(saved.about.get("trace", ())) > 1:
        charts.append(latency_chart(saved))
    return charts


def network_chart(saved: SavedPlan) -> Chart:
    """Draw who feeds whom."""
    level = levels(saved.plan, saved.rewritings)
    feeders = [
        Feeder("publisher", 0),
        *(Feeder(str(name), int(on)) for name, on in zip(saved.ids, level, strict=True)),
    ]
    source, target = _links(saved)
    direct = np.flatnonzero(saved.plan.chosen == SOURCE)
    feeds = [(0, int(view) + 1, 1) for view in direct]
    feeds += [(int(a) + 1, int(b) + 1, 1) for a, b in zip(source, target, strict=True)]
    return feeds_chart("Who feeds whom", "view", feeders, feeds)


def levels_chart(saved: SavedPlan) -> Chart:
    """Draw how many views are on each level, before latency was lowered and after."""
    before = np.bincount(levels(saved.before, saved.rewritings))[1:]
    after = np.bincount(levels(saved.plan, saved.rewritings))[1:]
    count = max(len(before), len(after), 1)
    same = np.array_equal(before, after)
    series = (
        [(after, 0.0, MAIN, "")] if same else [(before, -0.2, PALE, "before"), (after, 0.2, MAIN, "after")]
    )

    def draw(axes: Axes) -> None:
        places = np.arange(1, count + 1)
        for heights, shift, colour, text in series:
            axes.bar(
                places[: len(heights)] + shift,
                heights,
                width=0.76 / len(series),
                color=colour,
                label=text or None,
            )
            _values(axes, places[: len(heights)] + shift, heights, count * len(series))
        axes.xaxis.set_major_locator(MaxNLocator(nbins=10 if is_narrow(axes) else 20, integer=True))
        axes.grid(visible=False, axis="x")
        axes.set_xlim(0.4, count + 0.6)
        axes.set_xlabel("level: hops from the publisher")
        axes.set_ylabel("views")
        thousands(axes.yaxis)
        if not same:
            axes.legend(frameon=False, loc="upper right", ncols=2, labelcolor=INK)

    caption = (
        f"Views by level; lowering latency left them as they were ({len(after)} levels)."
        if same
        else f"Views by level, before latency was lowered ({len(before)} levels) and after ({len(after)})."
    )
    return Chart("levels", "Levels", f"{caption} The publisher feeds level 1.", 3.2, draw)


def fan_out_chart(saved: SavedPlan) -> Chart:
    """Draw how many views are fed by so many others."""
    feeding = _feeding(saved)
    most = int(feeding.max())
    edges = np.unique(np.linspace(0, most + 1, min(most + 1, _BARS) + 1).round().astype(int))

    def draw(axes: Axes) -> None:
        counts, _ = np.histogram(feeding, edges)
        places = np.arange(len(counts))
        axes.bar(places + 0.5, counts, width=0.88, color=[SOFT, *[MAIN] * (len(counts) - 1)])
        _values(axes, places + 0.5, counts, len(counts))
        thousands(axes.yaxis)
        every = max(1, -(-len(counts) // (5 if is_narrow(axes) else 12)))
        at = list(range(0, len(counts), every))
        texts = [words.range_of(low, high - 1) for low, high in pairwise(edges.tolist())]
        axes.set_xticks([place + 0.5 for place in at], texts[::every])
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
        f"{words.count(most)}. A bar is how many views feed so many others."
    )
    return Chart("fan-out", "Fan-out", caption, 3.0, draw)


def busiest_chart(saved: SavedPlan) -> Chart:
    """Draw a bar for each of the sites that feed the most, with what it can bear."""
    load = loads(saved.plan, saved.rewritings, saved.costs, saved.capacities)
    order = np.argsort(-load.fan_out, kind="stable")[:SHOWN]
    order = order[load.fan_out[order] > 0]
    first = _first_views(saved)

    rows = [
        drawing.Ranked(
            saved.sites.text(site), saved.filters.text(int(first[site])), float(load.fan_out[site])
        )
        for site in order.tolist()
    ]

    def draw(axes: Axes) -> None:
        drawing.list_bars(axes, rows)
        for row, site in enumerate(order.tolist()):
            bound = float(saved.capacities.fan_out[site])
            if bound <= rows[0].value * 1.05:
                axes.plot([bound, bound], [row + 0.02, row + 0.38], color=ACCENT, linewidth=1.6)

    caption = (
        "The sites that feed the most views, with the filter of their first view. A mark is how many it can "
        "bear; where there is none it can bear more than is drawn."
    )
    return Chart("busiest", "Busiest sites", caption, 0.5 + 0.56 * len(order), draw)


def latency_chart(saved: SavedPlan) -> Chart:
    """Draw how latency fell while it was lowered; without steps in between two numbers say it."""
    heading = "Latency while it was lowered"
    trace = np.array([(each[0], each[1]) for each in saved.about["trace"]])
    first, last, took = trace[0, 1], trace[-1, 1], words.duration(float(trace[-1, 0]))
    if len(np.unique(trace[:, 1])) == 1:
        text = f"The sum of all views' latencies stayed as it was: in {took} nothing better was found."
        return Chart("latency", heading, text)
    less = 1 - last / first if first else 0.0
    caption = f"The sum of all views' latencies fell by {less:.0%} in {took}"
    if len(trace) < _STEPS:
        return Chart("latency", heading, f"{caption}, in {words.many(len(trace) - 1, 'step')}.")

    def draw(axes: Axes) -> None:
        share = 100 * trace[:, 1] / first
        axes.step(trace[:, 0], share, where="post", color=MAIN, linewidth=1.8)
        axes.fill_between(trace[:, 0], share, step="post", color=PALE, alpha=0.5)
        axes.set_xlim(0, max(trace[-1, 0], 1e-3))
        axes.set_ylim(0, 105)
        axes.set_xlabel("seconds")
        axes.set_ylabel("latency, % of the first plan")
        thousands(axes.yaxis)
        note(axes, 1.0, f"{100 * last / first:.0f} %")

    return Chart("latency", heading, f"{caption}. A step is a better plan.", 2.8, draw)


def _feeding(saved: SavedPlan) -> Ints:
    used = saved.rewritings.inputs[input_places(saved.plan, saved.rewritings)]
    return np.bincount(used, minlength=len(saved.ids))


def _first_views(saved: SavedPlan) -> Ints:
    """Find the first view of each site."""
    first = np.zeros(len(saved.capacities.fan_out), np.int64)
    sites, places = np.unique(saved.capacities.sites, return_index=True)
    first[sites] = places
    return first


def _values(axes: Axes, places: NDArray[np.floating], heights: Ints, bars: int) -> None:
    """Write above each bar how high it is, unless there are too many to be read."""
    if bars <= (10 if is_narrow(axes) else 28):
        drawing.write_values(axes, places.tolist(), heights.tolist())
        axes.margins(y=0.12)


def _links(saved: SavedPlan) -> tuple[Ints, Ints]:
    """List who feeds whom."""
    fed = np.flatnonzero(saved.plan.chosen != SOURCE)
    counts = np.diff(saved.rewritings.input_offsets)[saved.plan.chosen[fed]]
    used = saved.rewritings.inputs[input_places(saved.plan, saved.rewritings)]
    return used.astype(np.int64), np.repeat(fed, counts)


def write_report(saved: SavedPlan, path: Path, *, title: str, command: str = "") -> None:
    """Write a report in the format of its file's name, whole or not at all."""
    write_as(
        path,
        lambda: render(saved, title=title, command=command),
        lambda form: sheet(f"{title}: {sentence(saved)}", charts(saved), form),
    )


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
    gap = f"; that is within {program['gap']:.2%} of the optimum" if "gap" in program else ""
    return [
        Tile(
            "fed by the publisher",
            words.count(after.source_fed),
            f"{after.source_fed / views:.1%} of views; the others are fed by views",
        ),
        Tile(
            "levels",
            words.count(len(after.per_level)),
            f"hops to the farthest view; {len(before.per_level)} before latency was lowered",
        ),
        Tile(
            "latency",
            f"{abs(less):.0%} {'more' if less < 0 else 'less'}",
            "summed over views, than in the plan of least utilization",
        ),
        Tile("utilization", f"{more:+.1%}", f"work of all sites, against the plan of least of it{gap}"),
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
