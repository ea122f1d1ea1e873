"""The page of a what-if: what a set of changed subscriptions would do, as one HTML file."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from headgate.report import words
from headgate.report.pages import template, write_whole
from headgate.report.runs.what_if_pictures import charts

if TYPE_CHECKING:
    from pathlib import Path

    from headgate.report.runs.model import Costs, WhatIfPage

__all__ = ["render", "write"]

ROWS = 100
"""Subscriptions in the table of the page; the table in files has all."""


class _Tile(NamedTuple):
    label: str
    value: str
    note: str


def render(page: WhatIfPage) -> str:
    """Return the page of a what-if."""
    return template("what_if_page.html.j2").render(
        page=page,
        tiles=_tiles(page),
        pictures=charts(page),
        rows=page.subscriptions[:ROWS],
        left_out=max(0, len(page.subscriptions) - ROWS),
        count=words.count,
        share_of=words.share_of,
    )


def write(page: WhatIfPage, path: Path) -> None:
    """Write the page of a what-if; a file that is there already is replaced at once or not at all."""
    write_whole(render(page).encode("utf-8", "replace"), path)


def _tiles(page: WhatIfPage) -> list[_Tile]:
    changed = sum(count for _, count in page.changes)
    done = ", ".join(f"{words.count(count)} {_DONE.get(op, op)}" for op, count in page.changes)
    net = page.gained - page.lost
    each = f"in {words.count(page.events)} events"
    tiles = [
        _Tile("changed subscriptions", words.count(changed), done),
        _Tile("matches", _signed(net), f"{_signed(page.gained)}, {_signed(-page.lost)}, {each}"),
    ]
    if page.deliveries_a_day is not None:
        tiles.append(_Tile("deliveries a day", _signed(round(page.deliveries_a_day)), "by the events' times"))
    if page.costs is not None:
        tiles += _cost_tiles(page.costs)
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


def _cost_tiles(costs: Costs) -> list[_Tile]:
    size = _Tile(
        "size of the snapshot",
        _more(costs.bytes_before, costs.bytes_after),
        f"{_bytes(costs.bytes_before)} before, {_bytes(costs.bytes_after)} after",
    )
    if costs.micros_before is None or costs.micros_after is None:
        return [size]
    took = f"{costs.micros_before:,.1f} µs before, {costs.micros_after:,.1f} after"
    return [size, _Tile("time of an event", _more(costs.micros_before, costs.micros_after), took)]


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


def _bytes(number: int) -> str:
    """Write a size.

    >>> _bytes(812), _bytes(12_345), _bytes(3 << 30)
    ('812 B', '12.1 KiB', '3.0 GiB')
    """
    size = float(number)
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"
