"""The charts of a stream over time: latency, batches, what was left out, which subscriptions there were."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headgate.report import words
from headgate.report.drawing import ACCENT, INK, MAIN, PALE, SOFT, Chart, note, thousands

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from headgate.report.runs.model import RunPage, StreamBatch


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
    found: dict[int, list[StreamBatch]] = {}
    for batch in every:
        found.setdefault(min(int((batch.start - first) / width), slices - 1), []).append(batch)
    return [found[place] for place in sorted(found)]


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
        place = took.index(max(took))
        axes.bar([times[place]], [took[place]], width=width, align="edge", color=ACCENT)
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
