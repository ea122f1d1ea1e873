"""Say so when a cluster has no workers while there is work, and end after a while.

Spark itself waits without an end: workers may come back, or be on their way.

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
_JAVA_CONTEXT = "_jsc"


class Absence:
    """How long there was work and no worker, and what is to be told of it."""

    def __init__(self, title: str, master: str, longest: float, patience: float = PATIENCE) -> None:
        self._title = title
        self._master = master
        self._longest = longest
        self._patience = patience
        self._since: float | None = None
        self._next = patience
        self.given_up = False

    def look(self, now: float, *, waiting: bool) -> str | None:
        """Take in how it is now; return a line to be told, if there is one."""
        if not waiting:
            told = self._since is not None and self._next > self._patience
            self._since, self._next = None, self._patience
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
    context, given = session.sparkContext, session.conf.get(WAIT, None)
    try:
        longest = LONGEST if given is None else float(given)
    except ValueError:
        raise MachineError(f"{WAIT} is {given!r}: give seconds") from None
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


def _py4j() -> Any:
    # By name because py4j has no types.
    return importlib.import_module("py4j.protocol")
