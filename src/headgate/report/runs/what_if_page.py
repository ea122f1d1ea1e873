"""The page of a what-if: what a set of changed subscriptions would do, as one HTML file.

Its charts: what subscriptions gain and lose, and how noisy they are.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.ticker import FuncFormatter

from headgate.report import drawing, words
from headgate.report.drawing import ACCENT, INK, MAIN, SOFT, Chart, bare, is_narrow, note, thousands
from headgate.report.pages import Tile, template, write_whole

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from matplotlib.axes import Axes

    from headgate.backtest.cost import Cost
    from headgate.backtest.effects import Effect
    from headgate.report.runs.model import WhatIfPage


SHOWN = 20
"""Subscriptions that are drawn one by one: those with the most changes."""
_EDGES = (0.0, 0.0001, 0.001, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
"""Shares of events, as ends of bars; the first bar is for those that match nothing."""


def charts(page: WhatIfPage) -> list[Chart]:
    """List the charts."""
    return [differences(page), noise(page)]


def differences(page: WhatIfPage) -> Chart:
    """Draw what each subscription gains to the right, and what it loses to the left."""
    heading = "Gained and lost"
    moved = sorted(page.done.effects, key=lambda each: -(each.gained + each.lost))
    shown = [each for each in moved[:SHOWN] if each.gained or each.lost]
    what = f"matches among the best {page.top}" if page.top is not None else "matches"
    if not shown:
        return Chart("differences", heading, f"No {what} would come or go.")
    touched = sum(1 for each in moved if each.gained or each.lost)
    caption = (
        f"{words.count(page.done.gained)} {what} would be gained and {words.count(page.done.lost)} lost, by "
        f"{words.many(touched, 'subscription')}"
        + (f"; the {SHOWN} with the most are shown." if touched > SHOWN else ".")
        + (" Pale ones did not change themselves: others push them out or let them in." if page.top else "")
    )
    return Chart(
        "differences", heading, caption, 0.9 + 0.34 * len(shown), lambda axes: _diverging(axes, shown)
    )


def noise(page: WhatIfPage) -> Chart:
    """Draw how many changed subscriptions match which share of the events."""
    heading = "How noisy"
    alive = [each for each in page.done.effects if each.op and each.op != "unsubscribe"]
    if not alive or not page.done.events:
        return Chart("noise", heading, "There is nothing to be noisy.")
    shares = np.array([each.share for each in alive])
    silent, noisy = int((shares == 0).sum()), int((shares > page.noise).sum())
    caption = (
        "Changed subscriptions by the share of events that they would match. "
        f"{words.many(silent, 'subscription')} would match nothing, "
        f"and {words.count(noisy)} more than {words.share_of(page.noise, 1)} of the events."
    )

    def draw(axes: Axes) -> None:
        counts = [
            silent,
            *(_within(shares, low, high) for low, high in pairwise(_EDGES)),
        ]
        places = list(range(len(counts)))
        shades = [SOFT, *(ACCENT if low >= page.noise else MAIN for low in _EDGES[:-1])]
        axes.bar(places, counts, width=0.86, color=shades)
        drawing.write_values(axes, places, counts)
        names = ["nothing", *(f"≤ {100 * high:g} %" for high in _EDGES[1:])]
        axes.set_xticks(places, names)
        if is_narrow(axes):
            axes.tick_params(axis="x", labelrotation=60)
        axes.set_ylim(0, max(counts) * 1.18)
        axes.grid(visible=False, axis="x")
        axes.set_xlabel("share of the events")
        axes.set_ylabel("subscriptions")
        thousands(axes.yaxis)
        if noisy:
            note(axes, 1.0, f"more than {words.share_of(page.noise, 1)}: noisy")

    return Chart("noise", heading, caption, 3.0, draw)


def _diverging(axes: Axes, shown: Sequence[Effect]) -> None:
    most = max(max(each.gained, each.lost) for each in shown)
    for row, each in enumerate(shown):
        light = 1.0 if each.op else 0.45
        axes.barh(row, each.gained, height=0.62, color=MAIN, alpha=light)
        axes.barh(row, -each.lost, height=0.62, color=ACCENT, alpha=light)
        room = most * 0.012
        if each.gained:
            axes.text(each.gained + room, row, f"+{words.count(each.gained)}", va="center", color=INK)
        if each.lost:
            text = f"\N{MINUS SIGN}{words.count(each.lost)}"
            axes.text(-each.lost - room, row, text, va="center", ha="right", color=INK)
    names = [words.shorten(str(each.id), 14 if is_narrow(axes) else 26) for each in shown]
    axes.set_yticks(range(len(shown)), names)
    axes.tick_params(axis="y", labelcolor=INK)
    axes.set_ylim(len(shown) - 0.4, -0.6)
    left = most if any(each.lost for each in shown) else 0
    right = most if any(each.gained for each in shown) else 0
    axes.set_xlim(-left * 1.2 - most * 0.01, right * 1.2 + most * 0.01)
    axes.axvline(0, color=INK, linewidth=1)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{abs(value):,.0f}"))
    bare(axes, keep_names=True)


def _within(shares: np.ndarray, low: float, high: float) -> int:
    return int(((shares > low) & (shares <= high)).sum())


ROWS = 100
"""Subscriptions in the table of the page; the table in files has all."""


def render(page: WhatIfPage) -> str:
    """Return the page of a what-if."""
    return template("what_if_page.html.j2").render(
        page=page,
        tiles=_tiles(page),
        pictures=charts(page),
        rows=page.done.effects[:ROWS],
        left_out=max(0, len(page.done.effects) - ROWS),
    )


def write(page: WhatIfPage, path: Path) -> None:
    """Write the page of a what-if; a file that is there already is replaced at once or not at all."""
    write_whole(render(page).encode("utf-8", "replace"), path)


def _tiles(page: WhatIfPage) -> list[Tile]:
    changed = sum(count for _, count in page.done.changes.items())
    done = ", ".join(f"{words.count(count)} {_DONE.get(op, op)}" for op, count in page.done.changes.items())
    net = page.done.gained - page.done.lost
    each = f"in {words.count(page.done.events)} events"
    tiles = [
        Tile("changed subscriptions", words.count(changed), done),
        Tile(
            "matches",
            _signed(net),
            f"{_signed(page.done.gained)} gained, {_signed(-page.done.lost)} lost, {each}",
        ),
    ]
    if page.done.deliveries_a_day is not None:
        tiles.append(
            Tile(
                "deliveries a day",
                _signed(round(page.done.deliveries_a_day)),
                "more or fewer, by the times of the events",
            )
        )
    if page.done.cost is not None:
        tiles += _cost_tiles(page.done.cost)
    return tiles


_DONE = {
    "subscribe": "new",
    "replace": "replaced",
    "unsubscribe": "taken away",
    "score": "with another score",
    "weights": "with other weights",
    "add_node": "nodes added",
    "remove_node": "nodes removed",
    "add_edge": "edges added",
    "remove_edge": "edges removed",
    "set_filter": "nodes with another filter",
}


def _cost_tiles(costs: Cost) -> list[Tile]:
    size = Tile(
        "size of the snapshot",
        _more(costs.bytes_before, costs.bytes_after),
        f"{words.size(costs.bytes_before)} before, {words.size(costs.bytes_after)} after",
    )
    if costs.micros_before is None or costs.micros_after is None:
        return [size]
    took = f"{costs.micros_before:,.1f} µs before, {costs.micros_after:,.1f} after"
    return [size, Tile("time of an event", _more(costs.micros_before, costs.micros_after), took)]


def _signed(number: float) -> str:
    sign = "\N{MINUS SIGN}" if number < 0 else "+" if number > 0 else "\N{PLUS-MINUS SIGN}"
    return f"{sign}{words.count(abs(number))}"


def _more(before: float, after: float) -> str:
    """Say by how much something grows, in percent."""
    if not before:
        return "new"
    percent = 100 * (after / before - 1)
    sign = "\N{MINUS SIGN}" if percent < 0 else "+"
    return f"{sign}{abs(percent):.{0 if abs(percent) >= 9.95 else 1}f} %"
