"""The page of a run as one HTML file that needs nothing else: no network, no script, no second file."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from headgate.report import words
from headgate.report.pages import template, write_whole
from headgate.report.runs import matches as match_pictures
from headgate.report.runs import pictures as run_pictures
from headgate.report.runs import streams as stream_pictures

if TYPE_CHECKING:
    from pathlib import Path

    from headgate.report.drawing import Chart
    from headgate.report.runs.run_model import RunPage

STAGES = 60
"""Stages in the table; those that took longest."""


class _Tile(NamedTuple):
    label: str
    value: str
    note: str


class _StageRow(NamedTuple):
    title: str
    tasks: str
    rows: str
    seconds: str
    median: str
    slowest: str
    skew: str


def render(page: RunPage) -> str:
    """Return the page of a run."""
    total = max((start + step.seconds for step, start in run_pictures.placed(page.steps)), default=0.0)
    return template("run_page.html.j2").render(
        page=page,
        tiles=_tiles(page),
        rejected=[each for each in page.rejected if each.rows],
        pictures=charts(page),
        stages=_stages(page),
        stages_left_out=max(0, len(page.stages) - STAGES),
        total=total,
        count=words.count,
        duration=words.duration,
        share_of=words.share_of,
    )


def write(page: RunPage, path: Path) -> None:
    """Write the page of a run; a file that is there already is replaced at once or not at all."""
    write_whole(render(page).encode("utf-8", "replace"), path)


def charts(page: RunPage) -> list[Chart]:
    """List the charts that a run has something to say for."""
    found: list[Chart] = []
    if page.matches_per_event is not None:
        found += [match_pictures.matches_per_event(page), match_pictures.busiest(page)]
    if page.throughput:
        found.append(match_pictures.throughput(page))
    if page.batches:
        found += [stream_pictures.latency(page), stream_pictures.batches(page)]
        found += [stream_pictures.left_out(page), stream_pictures.versions(page)]
    if page.steps:
        found.append(run_pictures.steps(page))
    if page.stages:
        found.append(run_pictures.tasks(page))
    return found


def _tiles(page: RunPage) -> list[_Tile]:
    counts = page.counts
    refused = {**{each.what: each.rows for each in page.rejected}, **counts.rejected}
    tiles = []
    for name in ("subscriptions", "events"):
        number = getattr(counts, name)
        if number is not None:
            tiles.append(_Tile(name, words.count(number), _refused(refused.get(name, 0))))
    if counts.matches is not None:
        each = f"{words.count(round(counts.matches / counts.events, 1))} an event" if counts.events else ""
        tiles.append(_Tile("matches", words.count(counts.matches), each))
    rate = counts.events_per_second
    if rate is not None and counts.seconds is not None:
        took = f"{words.duration(counts.seconds)} of matching"
        tiles.append(_Tile("events a second", words.count(round(rate)), took))
    return tiles


def _refused(rows: int) -> str:
    return f"{words.count(rows)} rejected" if rows else "none rejected"


def _stages(page: RunPage) -> list[_StageRow]:
    """List the stages that took longest, in the order of the run."""
    chosen = sorted(page.stages, key=lambda stage: -stage.seconds)[:STAGES]
    rows = []
    for stage in sorted(chosen, key=lambda stage: stage.start):
        slowest, skew = stage.slowest, stage.skew
        rows.append(
            _StageRow(
                stage.title,
                words.count(len(stage.tasks)),
                words.count(sum(task.rows for task in stage.tasks)),
                words.duration(stage.seconds),
                words.duration(stage.median_seconds) if slowest else "",
                words.duration(slowest.seconds) if slowest else "",
                "" if skew is None else f"{skew:.1f}",
            )
        )
    return rows
