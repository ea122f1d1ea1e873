"""The report as one HTML file that needs nothing else: no network, no script, no second file."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from jinja2 import Environment, PackageLoader, StrictUndefined

from headgate.errors import TableError
from headgate.report import pictures, words

if TYPE_CHECKING:
    from collections.abc import Callable

    from jinja2 import Template

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
    return _template().render(
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
    try:
        handle, beside = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(page)
            # mkstemp's mode is for its owner only; a report is like any other file.
            Path(beside).chmod(0o644)
            Path(beside).replace(path)
        except BaseException:
            with suppress(OSError):
                Path(beside).unlink()
            raise
    except OSError as error:
        raise TableError(f"cannot write the report to {path}: {error.strerror or error}") from error


@lru_cache(maxsize=1)
def _template() -> Template:
    environment = Environment(
        loader=PackageLoader("headgate.report", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html.j2")


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
