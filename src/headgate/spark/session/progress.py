"""Show on stderr how far the tasks of Spark are, while it works.

    matching: 3 of 8 tasks, 12,400 events a second, 6 s, about 10 s left

Spark is asked now and then how many tasks are done and how many rows they have read.
"""

from __future__ import annotations

import importlib
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from headgate.runtime.progress import ProgressTask, Tasks, Timing, showing
from headgate.spark.session.workers import attended

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

_JAVA_CONTEXT = "_jsc"
_DESCRIPTION = "spark.job.description"


@contextmanager
def watch(
    session: SparkSession, title: str, *, rows: int | None = None, noun: str = "rows", quiet: bool = False
) -> Iterator[Timing]:
    """Show the tasks of the running Spark stages while the body runs; its jobs bear the title in Spark's UI.

    `rows` is how many there are to go through, if that is known, and `noun` what they are.
    """
    with (
        _described(session, title),
        attended(session, title),
        showing(ProgressTask(title, _StageCounter(session), rows, noun), quiet) as timing,
    ):
        yield timing


@contextmanager
def _described(session: SparkSession, title: str) -> Iterator[None]:
    """Give the jobs of this thread a title, for the listener and Spark's own UI."""
    before = _describe(session, title)
    try:
        yield
    finally:
        _describe(session, before)


def _py4j() -> Any:
    # By name because py4j has no types, and here because work without Spark is shown as well.
    return importlib.import_module("py4j.protocol")


def _describe(session: SparkSession, title: str | None) -> str | None:
    """Set the title of jobs; return the one before."""
    try:
        context = session.sparkContext
        before = context.getLocalProperty(_DESCRIPTION)
        context.setLocalProperty(_DESCRIPTION, title)  # type: ignore[arg-type]  # None takes it away
    except (_py4j().Py4JError, OSError, AttributeError):
        # The session ended or broke. The body will say so.
        return None
    return before


class _StageCounter:
    """Count the tasks of the stages that are active now or were when asked before."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self._seen: dict[int, Tasks] = {}

    def __call__(self) -> Tasks | None:
        try:
            tracker = self._session.sparkContext.statusTracker()
            active = set(tracker.getActiveStageIds())
            for stage in active | self._open():
                info = tracker.getStageInfo(stage)
                if info is not None:
                    self._seen[stage] = Tasks(info.numCompletedTasks, info.numTasks, self._rows(stage))
        except (_py4j().Py4JError, OSError, AttributeError):
            # The session ended or broke. The body will say so; the display only goes on without counts.
            return None
        done = sum(tasks.done if stage in active else tasks.total for stage, tasks in self._seen.items())
        total = sum(tasks.total for tasks in self._seen.values())
        return Tasks(done, total, sum(tasks.rows for tasks in self._seen.values())) if total else None

    def _open(self) -> set[int]:
        """List the stages that were not done when last asked: the last tasks are told after the end."""
        return {stage for stage, tasks in self._seen.items() if tasks.done < tasks.total}

    def _rows(self, stage: int) -> int:
        """Ask how many rows of tables a stage has read; 0 if Spark has forgotten it."""
        store: Any = getattr(self._session.sparkContext, _JAVA_CONTEXT).sc().statusStore()
        try:
            return int(store.lastStageAttempt(stage).inputRecords())
        except _py4j().Py4JJavaError:
            return 0
