"""The page of a run as one HTML file that needs nothing else: no network, no script, no second file.

The charts here are of how the run went: its steps as a waterfall, and the tasks of each stage by executor.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from matplotlib.ticker import MaxNLocator

from headgate.report import words
from headgate.report.drawing import ACCENT, INK, MAIN, PALE, PANEL, SOFT, Chart, bare, is_narrow
from headgate.report.pages import Tile, template, write_whole
from headgate.report.runs.charts import (
    batches,
    busiest,
    latency,
    left_out,
    matches_per_event,
    throughput,
    versions,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from matplotlib.axes import Axes

    from headgate.report.runs.model import RunPage, Step
    from headgate.runtime.stages import StageRun, TaskRun


LANES = 32
"""Rows of tasks that are drawn; more could not be told apart."""
_FINEST = 400
"""Bars in a row, about: what lies closer together is drawn as one."""
_NAMED = 3
"""Slow tasks that get their time written beside them."""


def steps(page: RunPage) -> Chart:
    """Draw a bar for each step from its start to its end, with its time and its share."""
    shown = placed(page.steps)
    total = max((start + step.seconds for step, start in shown), default=0.0)
    if total <= 0:
        return Chart("steps", "Where the time went", "No time was measured.")
    slowest = max(page.steps, key=lambda step: step.seconds)
    caption = (
        f"The run had one step, {words.clean(slowest.name)}, of {words.duration(total)}."
        if len(shown) == 1
        else f"The run took {words.duration(total)}; the longest step, {words.clean(slowest.name)}, took "
        f"{words.share_of(slowest.seconds, total)} of it."
    )

    def draw(axes: Axes) -> None:
        name = 17 if is_narrow(axes) else 34
        for row, (step, start) in enumerate(shown):
            axes.barh(row, step.seconds, left=start, height=0.56, color=MAIN if step is slowest else PALE)
            text = f"{words.duration(step.seconds)} · {words.share_of(step.seconds, total)}"
            if step.note and not is_narrow(axes):
                text = f"{text} · {words.shorten(step.note, 40)}"
            # Beside the bar, on the side where there is more room.
            after = total - start - step.seconds >= start
            x = start + step.seconds + total * 0.01 if after else start - total * 0.01
            axes.text(x, row, text, va="center", ha="left" if after else "right")
        axes.set_yticks(range(len(shown)), [words.shorten(step.name, name) for step, _ in shown])
        axes.tick_params(axis="y", labelcolor=INK)
        axes.set_ylim(len(shown) - 0.5, -0.5)
        axes.set_xlim(0, total * (1.3 if len(shown) == 1 else 1.02))
        axes.grid(visible=False, axis="y")
        axes.xaxis.set_major_locator(MaxNLocator(nbins=4 if is_narrow(axes) else 8))
        axes.set_xlabel("seconds since the run began")
        if len(shown) == 1:
            axes.set_xlabel("")
            bare(axes, keep_names=True)

    return Chart("steps", "Where the time went", caption, 0.8 + 0.42 * len(shown), draw)


def placed(steps: Sequence[Step]) -> list[tuple[Step, float]]:
    """Give each step its start; one without follows the one before."""
    starts: list[tuple[Step, float]] = []
    end = 0.0
    for step in steps:
        start = end if step.start is None else step.start
        starts.append((step, start))
        end = start + step.seconds
    return starts


@dataclass(frozen=True)
class Lane:
    """What one slot of an executor did: tasks one after the other, each with its stage's place."""

    executor: str
    tasks: tuple[tuple[int, TaskRun], ...]


def lanes(stages: Sequence[StageRun]) -> list[Lane]:
    """Lay tasks out: those of one executor that overlap go into rows of their own."""
    rows: dict[str, list[list[tuple[int, TaskRun]]]] = {}
    every = [(stage_number, task) for stage_number, stage in enumerate(stages) for task in stage.tasks]
    for stage_number, task in sorted(every, key=lambda pair: (pair[1].start, pair[0])):
        slots = rows.setdefault(task.executor, [])
        # Starts and ends come in milliseconds; a task that begins with the end of another does not overlap.
        free = [slot for slot in slots if slot[-1][1].start + slot[-1][1].seconds <= task.start + 1e-3]
        if free:
            free[0].append((stage_number, task))
        else:
            slots.append([(stage_number, task)])
    return [
        Lane(executor, tuple(slot)) for executor in sorted(rows, key=_in_order) for slot in rows[executor]
    ]


def tasks(page: RunPage) -> Chart:
    """Draw each task as a bar in time, in the row of its executor; the slowest of each stage are marked."""
    heading = "Tasks"
    stages = [stage for stage in page.stages if stage.tasks]
    every = lanes(stages)
    if not every:
        return Chart("tasks", heading, "Spark reported no tasks.")
    begin = min(task.start for lane in every for _, task in lane.tasks)
    end = max(task.start + task.seconds for lane in every for _, task in lane.tasks)
    span = max(end - begin, 1e-3)
    shown = _chosen(every, stages)
    left_out = f" {len(every) - LANES} more rows are not drawn." if len(every) > LANES else ""
    return Chart(
        "tasks",
        heading,
        _tasks_caption(stages, every) + left_out,
        0.9 + 0.3 * max(len(shown), 2),
        lambda axes: _draw_tasks(axes, shown, stages, begin, span),
    )


def _chosen(every: Sequence[Lane], stages: Sequence[StageRun]) -> list[Lane]:
    """Choose the rows that are drawn: those of the slowest tasks, then the first ones."""
    slowest = {id(stage.slowest) for stage in stages}
    order = sorted(every, key=lambda lane: not any(id(task) in slowest for _, task in lane.tasks))
    chosen = {id(lane) for lane in order[:LANES]}
    return [lane for lane in every if id(lane) in chosen]


def _tasks_caption(stages: Sequence[StageRun], every: Sequence[Lane]) -> str:
    count = sum(len(stage.tasks) for stage in stages)
    failed = sum(task.failure is not None for stage in stages for task in stage.tasks)
    executors = len({lane.executor for lane in every})
    caption = (
        f"{words.many(count, 'task')} of {words.many(len(stages), 'stage')} "
        f"on {words.many(executors, 'executor')}; "
        "a row for each slot, the shade changes with the stage, and the slowest task of each is marked."
    )
    # Of a stage that was over at once it does not matter how uneven it was.
    skewed = max(
        (stage for stage in stages if stage.skew is not None),
        key=lambda stage: (stage.slowest.seconds if stage.slowest else 0.0) - stage.median_seconds,
        default=None,
    )
    if skewed is not None and skewed.skew is not None and skewed.slowest is not None:
        took = words.duration(skewed.slowest.seconds)
        caption += (
            f" The most time is lost to skew in {words.clean(skewed.title)}: its slowest task took {took}, "
            f"{skewed.skew:.1f} times as long as the one in the middle."
        )
    return caption + (f" {words.many(failed, 'task')} failed, in grey." if failed else "")


def _draw_tasks(
    axes: Axes, shown: Sequence[Lane], stages: Sequence[StageRun], begin: float, span: float
) -> None:
    # One task alone is not slower than others.
    slowest = [stage.slowest if stage.skew is not None else None for stage in stages]
    for row, lane in enumerate(shown):
        for colour, spans in _spans(lane, slowest, span / _FINEST, begin).items():
            axes.broken_barh(spans, (row - 0.36, 0.72), color=colour, linewidth=0)
    marked = [
        (row, task, task.seconds - stages[stage_number].median_seconds)
        for row, lane in enumerate(shown)
        for stage_number, task in lane.tasks
        if slowest[stage_number] is task
    ]
    for number, (row, task, _) in enumerate(sorted(marked, key=lambda found: -found[2])):
        middle = task.start - begin + task.seconds / 2
        if task.seconds > span * 0.07 and number < _NAMED:
            axes.text(middle, row, words.duration(task.seconds), ha="center", va="center", color=PANEL)
        elif task.seconds < span * 0.01:
            axes.plot([middle], [row - 0.3], marker="v", markersize=6, color=ACCENT, clip_on=False)
    names = [lane.executor for lane in shown]
    firsts = [row for row, name in enumerate(names) if row == 0 or names[row - 1] != name]
    axes.set_yticks(firsts, [words.shorten(names[row], 24) for row in firsts])
    for row in firsts[1:]:
        axes.axhline(row - 0.5, color=SOFT, linewidth=0.6)
    axes.tick_params(axis="y", labelcolor=INK)
    axes.set_ylim(max(len(shown), 2) - 0.5, -0.5)
    axes.set_xlim(0, span)
    axes.grid(visible=False, axis="y")
    axes.set_ylabel("executor")
    axes.set_xlabel("seconds since the first task")


def _spans(
    lane: Lane, slowest: Sequence[TaskRun | None], finest: float, begin: float
) -> dict[str, list[tuple[float, float]]]:
    """Return a lane's bars by colour, with a hair between them; tasks too short to be seen make one bar."""
    found: dict[str, list[tuple[float, float]]] = {PALE: [], MAIN: [], SOFT: [], ACCENT: []}
    run: list[float] = []
    run_colour = ""

    def close() -> None:
        if run:
            found[run_colour].append((run[0] - begin, run[1] - run[0]))
            run.clear()

    for stage_number, task in lane.tasks:
        stop = task.start + task.seconds
        marked = slowest[stage_number] is task and task.seconds >= finest
        colour = ACCENT if marked else SOFT if task.failure else (MAIN, PALE)[stage_number % 2]
        if marked or task.seconds >= 2 * finest:
            close()
            hair = min(finest * 0.3, task.seconds * 0.2)
            found[colour].append((task.start - begin, task.seconds - hair))
            continue
        if run and (colour != run_colour or task.start - run[1] > finest):
            close()
        if run:
            run[1] = max(run[1], stop)
        else:
            run[:] = [task.start, max(stop, task.start + finest / 2)]
            run_colour = colour
    close()
    return {colour: spans for colour, spans in found.items() if spans}


def _in_order(executor: str) -> tuple[int, int, str]:
    """Sort executors by number, and the driver first."""
    return (1, int(executor), "") if executor.isdecimal() else (0, 0, executor)


STAGES = 60
"""Stages in the table; those that took longest."""


def render(page: RunPage) -> str:
    """Return the page of a run."""
    total = max((start + step.seconds for step, start in placed(page.steps)), default=0.0)
    return template("run_page.html.j2").render(
        page=page,
        tiles=_tiles(page),
        rejected=[each for each in page.rejected if each.rows],
        pictures=charts(page),
        stages=_stages(page),
        stages_left_out=max(0, len(page.stages) - STAGES),
        total=total,
    )


def write(page: RunPage, path: Path) -> None:
    """Write the page of a run; a file that is there already is replaced at once or not at all."""
    write_whole(render(page).encode("utf-8", "replace"), path)


def charts(page: RunPage) -> list[Chart]:
    """List the charts that a run has something to say for."""
    charts: list[Chart] = []
    if page.matches_per_event is not None:
        charts += [matches_per_event(page), busiest(page)]
    if page.throughput:
        charts.append(throughput(page))
    if page.batches:
        charts += [latency(page), batches(page)]
        charts += [left_out(page), versions(page)]
    if page.steps:
        charts.append(steps(page))
    if page.stages:
        charts.append(tasks(page))
    return charts


def _tiles(page: RunPage) -> list[Tile]:
    counts = page.counts
    refused = {**{each.what: each.rows for each in page.rejected}, **counts.rejected}
    tiles = []
    for name in ("subscriptions", "events"):
        number = getattr(counts, name)
        if number is not None:
            tiles.append(
                Tile(name, words.count(number), f"{_MEANING[name]}; {_refused(refused.get(name, 0))}")
            )
    if counts.matches is not None:
        each = f"; {words.count(round(counts.matches / counts.events, 1))} an event" if counts.events else ""
        tiles.append(
            Tile("matches", words.count(counts.matches), f"pairs of an event and a filter that holds{each}")
        )
    rate = counts.events_per_second
    if rate is not None and counts.seconds is not None:
        took = f"over the {words.duration(counts.seconds)} that matching took"
        tiles.append(Tile("events a second", words.count(round(rate)), took))
    return tiles


_MEANING = {
    "subscriptions": "filters that events are asked for",
    "events": "what was matched with all of them",
}


def _refused(rows: int) -> str:
    return f"{words.count(rows)} rejected" if rows else "none rejected"


def _stages(page: RunPage) -> list[tuple[str, ...]]:
    """List the stages that took longest, in the order of the run."""
    chosen = sorted(page.stages, key=lambda stage: -stage.seconds)[:STAGES]
    rows: list[tuple[str, ...]] = []
    for stage in sorted(chosen, key=lambda stage: stage.start):
        slowest, skew = stage.slowest, stage.skew
        rows.append(
            (
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
