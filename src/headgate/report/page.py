"""The report as one HTML file that needs nothing else: no network, no script, no second file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from headgate.report import pictures, words
from headgate.report.pages import template, write_whole

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from headgate.report.model import RunReport

__all__ = ["render", "write"]


@dataclass(frozen=True)
class _Tile:
    label: str
    value: str
    note: str


@dataclass(frozen=True)
class _Picture:
    heading: str
    caption: str
    svg: str | None


@dataclass(frozen=True)
class _Rejected:
    what: str
    rows: str
    path: str | None


def render(report: RunReport) -> str:
    """Return the page of a report."""
    return template("page.html.j2").render(
        report=report,
        tiles=_tiles(report),
        rejected=_rejected(report),
        pictures=_pictures(report),
        total=sum(step.seconds for step in report.steps),
        count=words.count,
        duration=words.duration,
        share_of=words.share_of,
    )


def write(report: RunReport, path: Path) -> None:
    """Write the page of a report; a file that is there already is replaced at once or not at all."""
    page = render(report).encode("utf-8", "replace")
    write_whole(page, path)


def _tiles(report: RunReport) -> list[_Tile]:
    rate = report.events_per_second
    each = f"{words.count(round(report.matches / report.events, 1))} an event" if report.events else ""
    took = f"{words.duration(report.match_seconds)} of matching" if rate is not None else ""
    return [
        _Tile("subscriptions", words.count(report.subscriptions), _refused(report.rejected_subscriptions)),
        _Tile("events", words.count(report.events), _refused(report.rejected_events)),
        _Tile("matches", words.count(report.matches), each),
        _Tile("events a second", "\N{EN DASH}" if rate is None else words.count(round(rate)), took),
    ]


def _refused(rows: int) -> str:
    return f"{words.count(rows)} rejected" if rows else "none rejected"


def _rejected(report: RunReport) -> list[_Rejected]:
    tables = [
        ("subscription", report.rejected_subscriptions, report.rejected_subscriptions_path),
        ("event", report.rejected_events, report.rejected_events_path),
    ]
    return [
        _Rejected(what if rows == 1 else f"{what}s", words.count(rows), path)
        for what, rows, path in tables
        if rows
    ]


def _pictures(report: RunReport) -> list[_Picture]:
    def picture(heading: str, caption: str, draw: Callable[[RunReport], str], *, empty: bool) -> _Picture:
        return _Picture(heading, caption, None if empty else draw(report))

    return [
        picture(
            "Matches per event",
            words.matches_per_event(report),
            pictures.matches_per_event,
            empty=not any(report.matches_per_event.counts),
        ),
        picture(
            "Busiest subscriptions",
            words.busiest(report),
            pictures.busiest,
            empty=not any(each.matches for each in report.busiest),
        ),
        picture(
            "Throughput",
            words.throughput(report),
            pictures.throughput,
            empty=report.events_per_second is None,
        ),
        picture(
            "Where the time went",
            words.steps(report),
            pictures.steps,
            empty=not any(step.seconds for step in report.steps),
        ),
    ]
