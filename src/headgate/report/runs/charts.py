"""The charts of what was matched: matches per event, the busiest subscriptions, events a second."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headgate.report import words
from headgate.report.drawing import ACCENT, MAIN, PALE, SOFT, Chart, bare, is_narrow, note, thousands

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from headgate.report.runs.model import BusySubscription, Histogram, Partition, RunPage


SHOWN = 10
"""Subscriptions in the list of the busiest."""
_POINTS = 80
_TICKS, _NARROW_TICKS = 11, 5


def matches_per_event(page: RunPage) -> Chart:
    """Draw a bar for each range of matches; the events without a match stand apart at the left."""
    heading, histogram = "Matches per event", page.matches_per_event
    if histogram is None or not any(histogram.counts):
        return Chart("matches-per-event", heading, "There were no events to match.")
    median = dict(page.quantiles).get(0.5) if page.counts.matches else None
    caption = _matches_caption(page, histogram)
    return Chart("matches-per-event", heading, caption, 3.5, lambda axes: _bars(axes, histogram, median))


def busiest(page: RunPage) -> Chart:
    """Draw a bar for each of the subscriptions with the most matches, with its filter below its id."""
    shown = [each for each in page.busiest[:SHOWN] if each.matches]
    heading = "Busiest subscriptions"
    if not shown or not page.counts.matches:
        return Chart("busiest", heading, "No subscription was matched.")
    caption = _busiest_caption(page, shown)
    return Chart("busiest", heading, caption, 0.5 + 0.56 * len(shown), lambda axes: _list(axes, shown))


def throughput(page: RunPage) -> Chart:
    """Draw the events a second over the time of matching, and their mean."""
    parts, heading = page.throughput, "Throughput"
    events = sum(each.events for each in parts)
    if not events:
        return Chart("throughput", heading, "No events were handled.")
    edges, heights = rates(parts)
    span = float(edges[-1] - edges[0])
    if span < 1e-6:
        return Chart("throughput", heading, "The time of matching was not measured.")
    mean = events / span
    if float(heights.min()) > 0.99 * float(heights.max()):
        rate = f"{words.count(round(mean))} events a second from the beginning to the end"
        return Chart(
            "throughput", heading, f"{words.count(events)} events in {words.duration(span)}: {rate}."
        )
    batches = "one batch" if len(parts) == 1 else f"{words.count(len(parts))} batches"
    caption = (
        f"{words.count(events)} events in {words.duration(span)}, in {batches}: "
        f"{words.count(round(mean))} events a second on average."
    )

    def draw(axes: Axes) -> None:
        axes.stairs(heights, edges, fill=True, color=PALE)
        axes.stairs(heights, edges, color=MAIN, linewidth=1.6)
        axes.set_xlim(edges[0], edges[-1])
        axes.set_ylim(0, max(float(heights.max()), 1.0) * 1.15)
        axes.grid(visible=False, axis="x")
        axes.set_xlabel("seconds since matching began")
        axes.set_ylabel("events a second")
        thousands(axes.yaxis)
        axes.axhline(mean, color=ACCENT, linewidth=1.4)
        note(axes, 1.0, f"mean {words.count(round(mean))}")

    return Chart("throughput", heading, caption, 3.2, draw)


def rates(parts: Sequence[Partition]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Spread each batch's events evenly over its time, and sum them in equal slices of the job."""
    starts = np.array([each.start for each in parts])
    # A batch that took no measurable time still adds its events to the slice it fell in.
    lengths = np.maximum([each.seconds for each in parts], 1e-9)
    events = np.array([each.events for each in parts], dtype=np.float64)
    first, last = float(starts.min()), float((starts + lengths).max())
    slices = int(np.clip(4 * len(parts), 1, _POINTS))
    edges = np.linspace(first, last, slices + 1)
    done = np.zeros(slices + 1)
    for begin in range(0, len(parts), 1000):
        some = slice(begin, begin + 1000)
        done += (np.clip((edges[:, None] - starts[some]) / lengths[some], 0, 1) * events[some]).sum(axis=1)
    return edges - first, np.diff(done) / np.diff(edges)


def _matches_caption(page: RunPage, histogram: Histogram) -> str:
    """Say how many subscriptions an event matches."""
    events = page.counts.events or sum(histogram.counts)
    if not page.counts.matches:
        return f"None of the {words.count(events)} events matches a subscription."
    values = dict(page.quantiles)
    parts = []
    if 0.5 in values:
        parts.append(f"Half of the events match {words.many(values[0.5], 'subscription')} or fewer")
    high = max((share for share in values if 0.5 < share < 1), default=None)
    if high is not None:
        parts.append(f"the busiest {100 * (1 - high):.3g} % match more than {words.count(values[high])}")
    if not parts:
        parts.append(
            f"An event matches {words.many(page.counts.matches / events, 'subscription')} on average"
        )
    none = histogram.counts[0] if histogram.edges[:2] == (0, 1) else 0
    share = words.share_of(none, events)
    nothing = f" {share[:1].upper()}{share[1:]} of the events match none." if none else ""
    return "; ".join(parts) + "." + nothing


def _busiest_caption(page: RunPage, shown: Sequence[BusySubscription]) -> str:
    """Say how much the busiest subscriptions get."""
    top = shown[0]
    share = words.share_of(top.matches, page.counts.events or 0)
    alone = f"The busiest subscription, {words.clean(top.id)}, matches {share} of the events"
    if len(shown) == 1:
        return f"{alone}."
    together = words.share_of(sum(each.matches for each in shown), page.counts.matches or 0)
    return f"{alone}; the {words.count(len(shown))} shown take {together} of all matches."


def _bars(axes: Axes, histogram: Histogram, median: float | None) -> None:
    edges, counts = histogram.edges, histogram.counts
    places = np.arange(len(counts))
    zero = edges[:2] == (0, 1)
    tail = len(counts) > 2 and edges[-1] - edges[-2] > 2 * (edges[-2] - edges[-3])
    shades = [
        SOFT if place == 0 and zero else PALE if place == len(counts) - 1 and tail else MAIN
        for place in places
    ]
    axes.bar(places + 0.5, counts, width=0.88, color=shades)
    at = _bar_labels(len(counts), _NARROW_TICKS if is_narrow(axes) else _TICKS)
    axes.set_xticks([place + 0.5 for place in at], [_bar_label(edges, place, tail) for place in at])
    axes.grid(visible=False, axis="x")
    axes.set_xlim(-0.2, len(counts) + 0.2)
    axes.set_xlabel("matching subscriptions")
    axes.set_ylabel("events")
    thousands(axes.yaxis)
    if median is not None:
        x = float(np.interp(median + 0.5, edges, np.arange(len(edges))))
        axes.axvline(x, color=ACCENT, linewidth=1.4)
        note(axes, (x + 0.2) / (len(counts) + 0.4), f"median {words.count(median)}")


def _list(axes: Axes, shown: Sequence[BusySubscription]) -> None:
    places = np.arange(len(shown), dtype=np.float64)
    right = max(each.matches for each in shown)
    axes.barh(places + 0.2, [each.matches for each in shown], height=0.3, color=MAIN)
    for place, each in zip(places, shown, strict=True):
        name = words.shorten(each.id, 28)
        text = f"{name} · {words.shorten(each.filter, (50 if is_narrow(axes) else 110) - len(name))}"
        # A line of wide letters is cut at the edge; the layout must not make room for it.
        axes.text(0, place - 0.02, text, va="bottom", fontsize=9.5, clip_on=True, in_layout=False)
        axes.text(
            each.matches + right * 0.01, place + 0.2, words.count(each.matches), va="center", color=SOFT
        )
    axes.set_ylim(len(shown) - 0.55, -0.45)
    axes.set_xlim(0, right * (1.2 if is_narrow(axes) else 1.1))
    bare(axes)


def _bar_labels(bars: int, ticks: int) -> list[int]:
    """Choose the bars to label: not more than fit, the first and the last among them."""
    every = -(-bars // ticks)
    chosen = list(range(0, bars - 1, every))
    if len(chosen) > 1 and bars - 1 - chosen[-1] < every:
        chosen.pop()
    return [*chosen, bars - 1]


def _bar_label(edges: tuple[int, ...], place: int, tail: bool) -> str:
    low, high = edges[place], edges[place + 1] - 1
    if tail and place == len(edges) - 2:
        return f"{low:,}+"
    return f"{low:,}" if low == high else f"{low:,}\N{EN DASH}{high:,}"
