"""Charts of deliveries in networks: views by level, latency of views, delivery of documents, plan by plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter

from headgate.report.drawing import INK, MAIN, PALE, SOFT, Chart, sheet
from headgate.report.pages import write_whole

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from matplotlib.axes import Axes

    from headgate.core.arrays import Ints

    Spread = tuple[float, float, float]

_MARKS = "osD^vPX*"


class Delivered(NamedTuple):
    """What a plan gave; seconds are on average, at least, at most."""

    name: str
    """What the plan is for: its bound, or its file."""
    lowered: bool
    """Whether latency was lowered."""
    per_level: Ints
    latency: Spread
    delivery: Spread


def charts(runs: Sequence[Delivered]) -> list[Chart]:
    """List the charts: Figures 7, 8 and 9 of Karanasos et al., VLDB 2014."""
    return [
        Chart("levels", "Views by level", "", 3.4, lambda axes: _levels(axes, runs)),
        Chart(
            "latency",
            "Latency of views: the mean as a bar, from the least to the most as a line",
            "",
            3.0,
            lambda axes: _spreads(axes, runs, [each.latency for each in runs]),
        ),
        Chart(
            "delivery",
            "Time until a document is with all views: the same over documents",
            "",
            3.0,
            lambda axes: _spreads(axes, runs, [each.delivery for each in runs]),
        ),
    ]


def write_charts(title: str, runs: Sequence[Delivered], path: Path) -> None:
    """Write the charts to one file: .svg or .png."""
    write_whole(sheet(title, charts(runs), path.suffix[1:]), path)


def _colour(run: Delivered) -> str:
    return MAIN if run.lowered else PALE


def _when(run: Delivered) -> str:
    return "latency lowered" if run.lowered else "least utilization"


def _names(runs: Sequence[Delivered]) -> list[str]:
    return list(dict.fromkeys(run.name for run in runs))


def _levels(axes: Axes, runs: Sequence[Delivered]) -> None:
    names = _names(runs)
    for run in runs:
        text = _when(run) if len(names) == 1 else f"{run.name}, {'after' if run.lowered else 'before'}"
        axes.plot(
            np.arange(1, len(run.per_level) + 1),
            np.where(run.per_level > 0, run.per_level, np.nan),
            color=_colour(run),
            marker=_MARKS[names.index(run.name) % len(_MARKS)],
            markersize=4,
            linewidth=1.4,
            label=text,
        )
    axes.set_yscale("log")
    axes.set_ylim(0.7, None)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.xaxis.set_major_locator(MaxNLocator(nbins=20, integer=True))
    axes.set_xlabel("level: hops from the publisher")
    axes.set_ylabel("views")
    axes.legend(frameon=False, loc="upper right", ncols=max(1, len(runs) // 4), labelcolor=INK, fontsize=9)


def _spreads(axes: Axes, runs: Sequence[Delivered], spreads: Sequence[Spread]) -> None:
    names = _names(runs)
    top = max((most for _, _, most in spreads), default=0.0)
    unit, text = (1.0, "seconds") if top >= 1 else (1e3, "milliseconds")
    told: set[bool] = set()
    for run, (mean, least, most) in zip(runs, spreads, strict=True):
        x = names.index(run.name) + (0.17 if run.lowered else -0.17)
        axes.plot([x, x], [unit * least, unit * most], color=SOFT, linewidth=1.2, zorder=3)
        label = None if run.lowered in told else _when(run)
        axes.bar(x, unit * mean, width=0.3, color=_colour(run), label=label)
        axes.text(x + 0.02, unit * mean, f"{unit * mean:.3g}", color=INK, fontsize=9, va="bottom", ha="left")
        told.add(run.lowered)
    axes.set_xticks(range(len(names)), names)
    axes.set_xlim(-0.6, len(names) - 0.4)
    axes.set_ylim(0, 1.25 * unit * top if top else 1)
    axes.grid(visible=False, axis="x")
    axes.set_ylabel(text)
    axes.legend(frameon=False, loc="upper right", ncols=2, labelcolor=INK)
