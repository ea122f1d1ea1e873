"""Charts of runs and of streams."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headgate.report import drawing, words
from headgate.report.drawing import ACCENT, INK, MAIN, PALE, SOFT, Chart, is_narrow, note, thousands

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from headgate.core.arrays import Floats64
    from headgate.report.runs.model import BusySubscription, Histogram, Partition, RunPage, StreamBatch


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
    rows = [drawing.Ranked(each.id, each.filter, each.matches) for each in shown]
    return Chart(
        "busiest", heading, caption, 0.5 + 0.56 * len(rows), lambda axes: drawing.list_bars(axes, rows)
    )


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


def rates(parts: Sequence[Partition]) -> tuple[Floats64, Floats64]:
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


def _bar_labels(bars: int, ticks: int) -> list[int]:
    """Choose the bars to label: not more than fit, the first and the last among them."""
    every = -(-bars // ticks)
    chosen = list(range(0, bars - 1, every))
    if len(chosen) > 1 and bars - 1 - chosen[-1] < every:
        chosen.pop()
    return [*chosen, bars - 1]


def _bar_label(edges: tuple[int, ...], bar: int, tail: bool) -> str:
    low, high = edges[bar], edges[bar + 1] - 1
    if tail and bar == len(edges) - 2:
        return f"{low:,}+"
    return words.range_of(low, high)


SLICES = 240
"""Points of a chart, at most: a stream may run for days."""
_SHADES = (MAIN, SOFT, ACCENT)
_FEW = 80
_LOWEST = 1e-3
"""Seconds; what is quicker is drawn as this."""


def sliced(every: Sequence[StreamBatch], slices: int = SLICES) -> list[list[StreamBatch]]:
    """Cut the time of a stream into equal slices, those with batches; few batches are one each."""
    if len(every) <= slices:
        return [[batch] for batch in every]
    first, last = every[0].start, every[-1].start
    width = (last - first) / slices or 1.0
    by_slice: dict[int, list[StreamBatch]] = {}
    for batch in every:
        by_slice.setdefault(min(int((batch.start - first) / width), slices - 1), []).append(batch)
    return [by_slice[place] for place in sorted(by_slice)]


def latency(page: RunPage) -> Chart:
    """Draw quantiles of latency over time; in a slice of several batches, the worst of them."""
    heading = "Latency"
    told = [batch for batch in page.batches if batch.latency]
    if not told:
        return Chart("latency", heading, "Latency was not measured.")
    shares = sorted({share for batch in told for share, _ in batch.latency})
    parts = sliced(told)
    times = [part[0].start for part in parts]
    lines = {
        share: [max(dict(batch.latency).get(share, 0.0) for batch in part) for part in parts]
        for share in shares
    }
    middle = float(np.median(lines[shares[0]]))
    worst = max(lines[shares[-1]])
    if all(min(line) == max(line) for line in lines.values()):
        told_as = ", ".join(f"{_percentile(share)} {words.duration(lines[share][0])}" for share in shares)
        batches_told = "the one batch" if len(told) == 1 else f"each of {words.count(len(told))} batches"
        return Chart(
            "latency",
            heading,
            f"From an event's arrival to the commit of its matches, in {batches_told}: {told_as}.",
        )
    caption = (
        f"From an event's arrival to the commit of its matches, by batch. {_percentile(shares[0])} is "
        f"{words.duration(middle)} in the middle batch; the highest {_percentile(shares[-1])} is "
        f"{words.duration(worst)}. The scale is logarithmic." + _slice_words(told, parts)
    )

    def draw(axes: Axes) -> None:
        for share, colour in zip(reversed(shares), _colours(len(shares)), strict=True):
            values = np.maximum(lines[share], _LOWEST)
            mark = "o" if len(parts) < 40 else None
            axes.plot(
                times,
                values,
                color=colour,
                linewidth=1.5,
                marker=mark,
                markersize=3,
                label=_percentile(share),
            )
        axes.set_yscale("log")
        low = float(np.floor(np.log10(max(min(lines[shares[0]]), _LOWEST))))
        high = float(np.ceil(np.log10(max(worst, _LOWEST) * 1.1)))
        axes.set_ylim(10**low, 10 ** max(high, low + 1))
        axes.yaxis.set_major_formatter(lambda value, _: words.duration(value))
        axes.yaxis.set_minor_formatter(lambda _value, _place: "")
        _over_time(axes, times)
        axes.legend(frameon=False, loc="upper right", ncols=len(shares), labelcolor=INK)

    return Chart("latency", heading, caption, 3.2, draw)


def batches(page: RunPage) -> Chart:
    """Draw the time that each batch took, and its events a second."""
    heading = "Micro-batches"
    if not page.batches:
        return Chart("batches", heading, "There was no micro-batch.")
    parts = sliced(page.batches)
    times = [part[0].start for part in parts]
    took = [max(batch.seconds for batch in part) for part in parts]
    middle = float(np.median([batch.seconds for batch in page.batches]))
    longest = max(page.batches, key=lambda batch: batch.seconds)
    events = sum(batch.events for batch in page.batches)
    count = f"{words.count(len(page.batches))} micro-batch{'' if len(page.batches) == 1 else 'es'}"
    caption = (
        f"{count} with {words.count(events)} events. One in the middle took {words.duration(middle)}; the "
        f"longest, batch {longest.number}, {words.duration(longest.seconds)}."
        + _slice_words(page.batches, parts)
    )
    if len(page.batches) == 1:
        one = f"One micro-batch with {words.count(events)} events took {words.duration(middle)}."
        return Chart("batches", heading, one)

    def draw(axes: Axes) -> None:
        width, line = _width(times), 0.4 if len(times) <= _FEW else 0.0
        axes.bar(times, took, width=width, align="edge", color=PALE, edgecolor=MAIN, linewidth=line)
        slowest = took.index(max(took))
        axes.bar([times[slowest]], [took[slowest]], width=width, align="edge", color=ACCENT)
        axes.axhline(middle, color=INK, linewidth=1)
        axes.set_ylim(0, max(took) * 1.15 or 1.0)
        axes.set_ylabel("seconds a batch")
        _over_time(axes, times)
        note(axes, 1.0, f"longest {words.duration(max(took))}")

    return Chart("batches", heading, caption, 2.8, draw)


def left_out(page: RunPage) -> Chart:
    """Draw the events that were left out over time: duplicates, late and malformed ones."""
    heading = "Left out"
    kinds = {
        name: sum(getattr(batch, name) for batch in page.batches)
        for name in ("duplicates", "late", "malformed")
    }
    if not any(kinds.values()):
        return Chart("left-out", heading, "No event was a duplicate, late or malformed.")
    parts = sliced(page.batches)
    times = [part[0].start for part in parts]
    caption = (
        f"{words.count(kinds['duplicates'])} duplicate, {words.count(kinds['late'])} late and "
        f"{words.count(kinds['malformed'])} malformed events were left out and are in the dead-letter table."
        + _slice_words(page.batches, parts)
    )

    def draw(axes: Axes) -> None:
        below = np.zeros(len(parts))
        for (name, total), colour in zip(kinds.items(), (PALE, MAIN, ACCENT), strict=True):
            heights = np.array([sum(getattr(batch, name) for batch in part) for part in parts])
            if total:
                axes.bar(
                    times, heights, bottom=below, width=_width(times), align="edge", color=colour, label=name
                )
            below = below + heights
        axes.set_ylim(0, float(below.max()) * 1.25)
        axes.set_ylabel("events")
        thousands(axes.yaxis)
        _over_time(axes, times)
        axes.legend(frameon=False, loc="upper right", ncols=3, labelcolor=INK)

    return Chart("left-out", heading, caption, 2.8, draw)


def versions(page: RunPage) -> Chart:
    """Draw which version of the subscriptions each batch used."""
    heading = "Version of the subscriptions"
    if not page.batches:
        return Chart("versions", heading, "There was no micro-batch.")
    steps = [page.batches[0]]
    steps += [
        now
        for before, now in zip(page.batches, page.batches[1:], strict=False)
        if now.version != before.version
    ]
    if len(steps) == 1:
        return Chart("versions", heading, f"All batches used version {words.count(steps[0].version)}.")
    end = max(batch.start + batch.seconds for batch in page.batches)
    caption = (
        f"It changed {words.count(len(steps) - 1)} times, from version {words.count(steps[0].version)} to "
        f"{words.count(page.batches[-1].version)}; a batch uses one version from its start to its end."
    )
    first = page.batches[0].start
    # Where there are more steps than dots on the screen, the line keeps the last of each dot.
    kept = [part[-1] for part in sliced(steps, 4 * SLICES)]

    def draw(axes: Axes) -> None:
        times = [batch.start for batch in kept]
        levels = [batch.version for batch in kept]
        edges = [*times, max(end, times[-1] + 1e-3)]
        axes.stairs(levels, edges, baseline=None, color=MAIN, linewidth=1.8)
        room = max(0.5, (max(levels) - min(levels)) * 0.1)
        axes.set_ylim(min(levels) - room / 2, max(levels) + room)
        axes.set_ylabel("version")
        thousands(axes.yaxis)
        _over_time(axes, [first, end], 0.0)

    return Chart("versions", heading, caption, 2.2, draw)


def _over_time(axes: Axes, times: Sequence[float], width: float | None = None) -> None:
    width = _width(times) if width is None else width
    # One batch alone gets room on both sides.
    before, after = (width, 2 * width) if len(times) == 1 else (0.0, width)
    axes.set_xlim(times[0] - before, max(times[-1] + after, times[0] + 1e-3))
    axes.grid(visible=False, axis="x")
    axes.set_xlabel("seconds since the stream began")


def _width(times: Sequence[float]) -> float:
    """Choose the width of bars: the usual distance between them, less a hair where there are few."""
    if len(times) == 1:
        return 1.0
    return float(np.median(np.diff(times))) * (0.9 if len(times) <= _FEW else 1.0)


def _colours(lines: int) -> list[str]:
    """Choose the colours of lines, the highest first."""
    return [_SHADES[::-1][place] if place < len(_SHADES) else PALE for place in range(lines)]


def _percentile(share: float) -> str:
    return f"p{share * 100:g}"


def _slice_words(every: Sequence[StreamBatch], parts: Sequence[Sequence[StreamBatch]]) -> str:
    return (
        ""
        if len(parts) == len(every)
        else f" A point is the worst of about {len(every) // len(parts)} batches."
    )
