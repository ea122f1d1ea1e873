"""The four pictures of a report, as SVG text to put inside the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headgate.report import words
from headgate.report.drawing import bare, note, svg, thousands
from headgate.report.style import ACCENT, INK, MAIN, PALE, SOFT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from headgate.report.model import RunReport

__all__ = ["busiest", "matches_per_event", "rates", "steps", "throughput"]

_POINTS = 80
_SHOWN = 10
_TICKS = 11


def matches_per_event(report: RunReport) -> str:
    """Draw a bar for each range of matches; the events without a match stand apart at the left."""

    def draw(axes: Axes) -> None:
        edges, counts = report.matches_per_event.edges, report.matches_per_event.counts
        places = np.arange(len(counts))
        zero = edges[:2] == (0, 1)
        tail = len(counts) > 2 and edges[-1] - edges[-2] > 2 * (edges[-2] - edges[-3])
        shades = [
            SOFT if place == 0 and zero else PALE if place == len(counts) - 1 and tail else MAIN
            for place in places
        ]
        axes.bar(places + 0.5, counts, width=0.88, color=shades)
        at = _bar_labels(len(counts))
        axes.set_xticks([place + 0.5 for place in at], [_bar_label(edges, place, tail) for place in at])
        axes.grid(visible=False, axis="x")
        axes.set_xlim(-0.2, len(counts) + 0.2)
        axes.set_xlabel("matching subscriptions")
        axes.set_ylabel("events")
        thousands(axes.yaxis)
        median = dict(report.quantiles).get(0.5)
        if median is not None and report.matches:
            x = float(np.interp(median + 0.5, edges, np.arange(len(edges))))
            axes.axvline(x, color=ACCENT, linewidth=1.4)
            note(axes, (x + 0.2) / (len(counts) + 0.4), f"median {words.count(median)}")

    return svg("matches-per-event", "Events by the number of matching subscriptions", 3.5, draw)


def busiest(report: RunReport) -> str:
    """Draw a bar for each of the subscriptions with the most matches, with its filter below its id."""
    shown = report.busiest[:_SHOWN]

    def draw(axes: Axes) -> None:
        places = np.arange(len(shown), dtype=np.float64)
        right = max(each.matches for each in shown)
        axes.barh(places + 0.2, [each.matches for each in shown], height=0.3, color=MAIN)
        for place, each in zip(places, shown, strict=True):
            name = words.shorten(each.id, 28)
            text = f"{name} · {words.shorten(each.filter, 122 - len(name))}"
            # A line of wide letters is cut at the edge; the layout must not make room for it.
            axes.text(0, place - 0.02, text, va="bottom", fontsize=9.5, clip_on=True, in_layout=False)
            axes.text(
                each.matches + right * 0.01, place + 0.2, words.count(each.matches), va="center", color=SOFT
            )
        axes.set_ylim(len(shown) - 0.55, -0.45)
        axes.set_xlim(0, right * 1.1)
        bare(axes)

    return svg("busiest", "Subscriptions with the most matches", 0.5 + 0.56 * len(shown), draw)


def throughput(report: RunReport) -> str:
    """Draw the events a second over the time of the match job, and their mean."""

    def draw(axes: Axes) -> None:
        edges, heights = rates(report)
        axes.stairs(heights, edges, fill=True, color=PALE)
        axes.stairs(heights, edges, color=MAIN, linewidth=1.6)
        axes.set_xlim(edges[0], edges[-1])
        axes.set_ylim(0, max(float(heights.max()), 1.0) * 1.15)
        axes.grid(visible=False, axis="x")
        axes.set_xlabel("seconds since the match job began")
        axes.set_ylabel("events a second")
        thousands(axes.yaxis)
        mean = report.events_per_second
        if mean is not None:
            axes.axhline(mean, color=ACCENT, linewidth=1.4)
            note(axes, 1.0, f"mean {words.count(round(mean))}")

    return svg("throughput", "Events a second over the time of the match job", 3.2, draw)


def steps(report: RunReport) -> str:
    """Draw a bar for each step of the run, with its time and its share."""
    total = sum(step.seconds for step in report.steps)

    def draw(axes: Axes) -> None:
        places = np.arange(len(report.steps), dtype=np.float64)
        longest = max(step.seconds for step in report.steps)
        for place, step in zip(places, report.steps, strict=True):
            axes.barh(place, step.seconds, height=0.56, color=MAIN if step.seconds == longest else PALE)
            text = f"{words.duration(step.seconds)} · {words.share_of(step.seconds, total)}"
            axes.text(step.seconds + longest * 0.012, place, text, va="center")
        axes.set_yticks(places, [words.shorten(step.name, 34) for step in report.steps])
        axes.tick_params(axis="y", labelcolor=INK)
        axes.set_ylim(len(report.steps) - 0.5, -0.5)
        axes.set_xlim(0, longest * 1.25)
        bare(axes, keep_names=True)

    return svg("steps", "The time of each step", 0.4 + 0.42 * len(report.steps), draw)


def rates(report: RunReport) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Spread each batch's events evenly over its time, and sum them in equal slices of the job."""
    parts = report.throughput
    starts = np.array([each.start for each in parts])
    # A batch that took no measurable time still adds its events to the slice it fell in.
    lengths = np.maximum([each.seconds for each in parts], 1e-9)
    events = np.array([each.events for each in parts], dtype=np.float64)
    first, last = float(starts.min()), float((starts + lengths).max())
    slices = int(np.clip(4 * len(parts), 1, _POINTS))
    edges = np.linspace(first, last, slices + 1)
    done = (np.clip((edges[:, None] - starts) / lengths, 0, 1) * events).sum(axis=1)
    return edges - first, np.diff(done) / np.diff(edges)


def _bar_labels(bars: int) -> list[int]:
    """Choose the bars to label: not more than fit, the first and the last among them."""
    every = -(-bars // _TICKS)
    chosen = list(range(0, bars - 1, every))
    if len(chosen) > 1 and bars - 1 - chosen[-1] < every:
        chosen.pop()
    return [*chosen, bars - 1]


def _bar_label(edges: tuple[int, ...], place: int, tail: bool) -> str:
    low, high = edges[place], edges[place + 1] - 1
    if tail and place == len(edges) - 2:
        return f"{low:,}+"
    return f"{low:,}" if low == high else f"{low:,}\N{EN DASH}{high:,}"
