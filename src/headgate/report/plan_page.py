"""The report of a dissemination network: one HTML file with charts and numbers, or the charts alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.plan.measures import levels, measures
from headgate.plan.model import SOURCE
from headgate.report import words
from headgate.report.drawing import sheet
from headgate.report.formats import check_output
from headgate.report.pages import template, write_whole
from headgate.report.plan_pictures import charts

if TYPE_CHECKING:
    from pathlib import Path

    from headgate.plan.running.network import Network


class _Tile(NamedTuple):
    label: str
    value: str
    note: str = ""


def write_report(network: Network, path: Path, *, title: str, command: str = "") -> None:
    """Write a report in the format of its file's name, whole or not at all."""
    check_output(path)
    if path.suffix == ".html":
        data = render(network, title=title, command=command).encode("utf-8", "replace")
    else:
        parts = [(chart.heading, chart.height, chart.draw) for chart in charts(network) if chart.draw]
        data = sheet(f"{title}: {sentence(network)}", parts, path.suffix[1:])
    write_whole(data, path)


def render(network: Network, *, title: str, command: str = "") -> str:
    """Return the page of a network."""
    return template("plan_page.html.j2").render(
        title=title,
        sentence=sentence(network),
        tiles=_tiles(network),
        pictures=charts(network),
        rows=_level_rows(network),
        command=command,
    )


def sentence(network: Network) -> str:
    """Say who feeds whom, in numbers."""
    views = len(network.ids)
    direct = int((network.plan.chosen == SOURCE).sum())
    share = f"{1 - direct / views:.1%}" if views else "none"
    return (
        f"{words.count(views)} views; {words.count(views - direct)} of them ({share}) are fed by others, "
        f"{words.count(direct)} by the publisher."
    )


def _tiles(network: Network) -> list[_Tile]:
    before = measures(network.before, network.rewritings, network.costs)
    after = measures(network.plan, network.rewritings, network.costs)
    views = max(len(network.ids), 1)
    less = 1 - after.latency / before.latency if before.latency else 0.0
    more = after.utilization / before.utilization - 1 if before.utilization else 0.0
    program = network.about.get("utilization", {})
    gap = f"first plan within {program['gap']:.2%} of the optimum" if "gap" in program else ""
    return [
        _Tile(
            "fed by the publisher", words.count(after.source_fed), f"{after.source_fed / views:.1%} of views"
        ),
        _Tile("levels", words.count(len(after.per_level)), f"{len(before.per_level)} before"),
        _Tile("latency", f"{less:.0%} less", "than in the plan of least utilization"),
        _Tile("utilization", f"{more:+.1%}", gap),
    ]


def _level_rows(network: Network) -> list[tuple[str, str, str, str]]:
    before, after = (levels(plan, network.rewritings) for plan in (network.before, network.plan))
    count = int(max(before.max(initial=0), after.max(initial=0)))
    old, new = (np.bincount(each, minlength=count + 1) for each in (before, after))
    total = max(len(network.ids), 1)
    return [
        (str(level), words.count(int(old[level])), words.count(int(new[level])), f"{new[level] / total:.1%}")
        for level in range(1, count + 1)
    ]
