"""Show on stderr how far the tasks of Spark are, while it works.

    matching: 3 of 8 tasks, 12,400 events a second, 6 s, about 10 s left

Spark is asked now and then how many tasks are done and how many rows they have read. It waits without an
end for a cluster that has no workers: that is told, and ends after a while.

    matching: spark://host:7077 has had no worker for 10 s, and waits for one; it gives up after 600 s
"""

from __future__ import annotations

import importlib
import sys
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from headgate.errors import MachineError
from headgate.runtime.progress import ProgressTask, Tasks, Timing, showing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark import SparkContext
    from pyspark.sql import SparkSession


WAIT = "spark.headgate.workers.wait"
"""The setting that says after how many seconds without a worker a command gives up."""
LONGEST = 600.0
"""What that is unless it is said."""
PATIENCE = 10.0
"""Seconds until it is told first; after that, whenever it has been twice as long."""
_EVERY = 1.0
_TAG = "headgate-"


class Absence:
    """How long there was work and no worker, and what is to be told of it."""

    def __init__(self, title: str, master: str, longest: float) -> None:
        self._title = title
        self._master = master
        self._longest = longest
        self._since: float | None = None
        self._next = PATIENCE
        self.given_up = False

    def look(self, now: float, *, waiting: bool) -> str | None:
        """Take in how it is now; return a line to be told, if there is one."""
        if not waiting:
            told = self._since is not None and self._next > PATIENCE
            self._since, self._next = None, PATIENCE
            return f"{self._title}: {self._master} has a worker again" if told else None
        if self._since is None:
            self._since = now
        seconds = now - self._since
        if seconds >= self._longest:
            self.given_up = True
        if seconds < self._next:
            return None
        while self._next <= seconds:
            self._next *= 2
        return (
            f"{self._title}: {self._master} has had no worker for {seconds:.0f} s, and waits for one; "
            f"it gives up after {self._longest:.0f} s"
        )

    def refusal(self) -> MachineError:
        """Say why it was given up."""
        return MachineError(
            f"{self._master} has had no worker for {self._longest:.0f} s while there was work: start "
            f"workers, and run it again; --conf {WAIT}=SECONDS waits longer"
        )


@contextmanager
def attended(session: SparkSession, title: str) -> Iterator[None]:
    """Tell on stderr when the cluster has no workers while the body waits for Spark; give up at last."""
    master = _asked(lambda: _cluster(session))
    if not master:
        yield
        return
    context, wait = session.sparkContext, session.conf.get(WAIT, None)
    try:
        longest = LONGEST if wait is None else float(wait)
    except ValueError:
        raise MachineError(f"{WAIT} is {wait!r}: give seconds") from None
    tag, over, absence = f"{_TAG}{uuid4().hex}", threading.Event(), Absence(title, master, longest)
    context.addJobTag(tag)
    looking = threading.Thread(target=_look, args=(context, tag, absence, over), daemon=True)
    looking.start()
    try:
        yield
    except Exception as error:
        if absence.given_up:
            raise absence.refusal() from error
        raise
    finally:
        over.set()
        looking.join()
        _asked(lambda: context.removeJobTag(tag))


def _cluster(session: SparkSession) -> str | None:
    """Name the master of a session whose workers are to be looked at."""
    master = session.sparkContext.master or ""
    if master.startswith("local") and not master.startswith("local-cluster"):
        # The worker is this process.
        return None
    # What is done inside other work is looked at already.
    inside = any(tag.startswith(_TAG) for tag in session.sparkContext.getJobTags())
    return None if inside else master


def _look(context: SparkContext, tag: str, absence: Absence, over: threading.Event) -> None:
    while not over.wait(_EVERY):
        waiting = _asked(lambda: _is_waiting(context))
        if waiting is None:
            return
        line = absence.look(time.monotonic(), waiting=waiting)
        if line is not None:
            print(line, file=sys.stderr, flush=True)
        if absence.given_up:
            _asked(lambda: context.cancelJobsWithTag(tag))
            return


def _is_waiting(context: SparkContext) -> bool:
    """Tell whether there are stages to be done, and nobody to do them."""
    if not context.statusTracker().getActiveStageIds():
        return False
    # The driver is among them.
    java: Any = getattr(context, _JAVA_CONTEXT)
    return len(java.sc().statusTracker().getExecutorInfos()) <= 1


def _asked(question: Callable[[], Any]) -> Any:
    """Ask Spark; None if it has ended or broken, of which the body will tell."""
    try:
        return question()
    except (_py4j().Py4JError, OSError, AttributeError):
        return None


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

    def described() -> str | None:
        context = session.sparkContext
        before = context.getLocalProperty(_DESCRIPTION)
        context.setLocalProperty(_DESCRIPTION, title)  # type: ignore[arg-type]  # None takes it away
        return before

    title_before: str | None = _asked(described)
    return title_before


class _StageCounter:
    """Count the tasks of the stages that are active now or were when asked before."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self._seen: dict[int, Tasks] = {}

    def __call__(self) -> Tasks | None:
        active: set[int] | None = _asked(self._look)
        if active is None:
            # The display only goes on without counts.
            return None
        done = sum(tasks.done if stage in active else tasks.total for stage, tasks in self._seen.items())
        total = sum(tasks.total for tasks in self._seen.values())
        return Tasks(done, total, sum(tasks.rows for tasks in self._seen.values())) if total else None

    def _look(self) -> set[int]:
        tracker = self._session.sparkContext.statusTracker()
        active = set(tracker.getActiveStageIds())
        for stage in active | self._open():
            info = tracker.getStageInfo(stage)
            if info is not None:
                self._seen[stage] = Tasks(info.numCompletedTasks, info.numTasks, self._rows(stage))
        return active

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
