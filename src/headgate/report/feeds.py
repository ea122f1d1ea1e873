"""Who feeds whom as a picture: boxes in columns by level if they are few, else feeds from level to level."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from matplotlib.ticker import MaxNLocator

from headgate.report import words
from headgate.report.drawing import INK, PALE, Chart, is_narrow
from headgate.report.graph.picture import chart
from headgate.report.graph.scene import MOST_EDGES, MOST_NODES, Line, Part, Scene, State, Tie

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from headgate.core.arrays import Ints

_VALUES, _NARROW_VALUES = 12, 6
"""Levels in a matrix up to which each cell has its number."""


class Feeder(NamedTuple):
    """A view or a site; the publisher has level 0 and comes first."""

    name: str
    level: int
    fails: str = ""
    """Why it does not run; empty if it does."""


def feeds_chart(
    heading: str, what: str, feeders: Sequence[Feeder], feeds: Sequence[tuple[int, int, int]]
) -> Chart:
    """Draw who feeds whom; a feed is two places and how many views it is for."""
    if len(feeders) <= MOST_NODES and len(feeds) <= MOST_EDGES:
        caption = (
            f"Each box is a {what}, in the column of its level: hops from the publisher. A line leads from "
            "the one that feeds to the one that is fed."
        )
        if any(feeder.fails for feeder in feeders):
            caption += " A dashed box does not run."
        return chart("feeds", heading, caption, _scene(feeders, feeds))
    level = np.array([feeder.level for feeder in feeders])
    return flows_chart(heading, level, np.array(feeds, np.int64).reshape(-1, 3))


def _scene(feeders: Sequence[Feeder], feeds: Sequence[tuple[int, int, int]]) -> Scene:
    used = sorted({feeder.level for feeder in feeders})
    parts = []
    for number, feeder in enumerate(feeders):
        state = State.SOURCE if number == 0 else State.STOPPED if feeder.fails else State.PLAIN
        name = words.shorten(f"✕ {feeder.name}" if feeder.fails else feeder.name, 24)
        lines = [Line(name, 10.5, bold=number == 0)]
        lines += [Line(words.shorten(feeder.fails, 30), 8.5)] * bool(feeder.fails)
        parts.append(Part(used.index(feeder.level), 0, tuple(lines), state))
    several = len({count for *_, count in feeds}) > 1 and len(feeds) <= MOST_NODES
    ties = [
        Tie(source, target, 1.6, State.PLAIN, label=words.count(count) if several else "")
        for source, target, count in feeds
        if source != target
    ]
    columns = [(number, number, f"level {level}") for number, level in enumerate(used) if level]
    return Scene(tuple(parts), tuple(ties), tuple(columns), (), grouped=False, keyed=False)


def flows_chart(heading: str, level: Ints, feeds: Ints) -> Chart:
    """Draw how many feeds lead from each level to each other."""
    count = int(level.max(initial=0))
    flows = np.zeros((count, count), np.int64)
    np.add.at(flows, (level[feeds[:, 0]], level[feeds[:, 1]] - 1), feeds[:, 2])
    caption = (
        "How many feeds lead from the level of a row to the level of a column; level 0 is the publisher. "
        f"Darker is more, up to {words.count(int(flows.max(initial=0)))}; empty is none."
    )

    def draw(axes: Axes) -> None:
        most = max(int(flows.max(initial=0)), 1)
        # Drawn as rectangles, because an image could not turn dark with the page.
        for source, target in zip(*np.nonzero(flows), strict=True):
            share = flows[source, target] / most
            axes.barh(
                source, 0.94, left=target + 0.03, height=0.9, color=PALE, alpha=0.25 + 0.75 * float(share)
            )
            if count <= (_NARROW_VALUES if is_narrow(axes) else _VALUES):
                axes.text(
                    target + 0.5, source, words.count(int(flows[source, target])), ha="center", va="center",
                    color=INK, fontsize=9.5,
                )  # fmt: skip
        axes.set_xlim(0, count)
        axes.set_ylim(count - 0.5, -0.5)
        axes.grid(visible=False)
        if count <= _VALUES and not is_narrow(axes):
            axes.set_xticks([place + 0.5 for place in range(count)], [f"level {n + 1}" for n in range(count)])
            axes.set_yticks(range(count), ["publisher", *(f"level {n}" for n in range(1, count))])
        else:
            axes.yaxis.set_major_locator(MaxNLocator(nbins=12, integer=True))
            every = max(1, -(-count // 12))
            axes.set_xticks(
                [place + 0.5 for place in range(0, count, every)],
                [str(n + 1) for n in range(0, count, every)],
            )
            axes.set_ylabel("from level")
        axes.set_xlabel("to level")

    return Chart("feeds", heading, caption, 1.0 + min(0.34 * count, 5.0), draw)
