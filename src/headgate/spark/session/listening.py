"""Hear from Spark what each task did: a listener on Spark's own bus, called back from Java.

    with listening(session) as heard:
        ...                             any jobs
    for stage in heard.stages:
        print(stage.title, len(stage.tasks), stage.skew)

An event comes over as one JSON text, in Spark's own form of its event log, because every question to an
object in Java is a way there and back. The listener has a queue of its own on the bus: if we are slow, nobody
waits. Measured on two busy cores: 1 ms of the driver's time for a task.
"""

from __future__ import annotations

import importlib
import json
import sys
import threading
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any, ClassVar

from headgate.spark.session.heard import Stage, StageKey, Task, failure_of, task_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

    from headgate.spark.session.metrics import Metrics

# By name because py4j has no types.
_PY4J: Any = importlib.import_module("py4j.protocol")
_GATEWAYS: Any = importlib.import_module("pyspark.java_gateway")
_GATEWAY, _JAVA_CONTEXT = "_gateway", "_jsc"

QUEUE = "headgate"
_numbers = count(1)
FLUSH_SECONDS = 30
"""How long the end waits for events that are on their way."""


class Heard:
    """What was heard; whole after `listening` has ended, and growing while it runs."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stages: dict[StageKey, Stage] = {}
        self._tasks: dict[StageKey, list[Task]] = {}
        self._troubles: list[str] = []

    @property
    def stages(self) -> tuple[Stage, ...]:
        """List the stages that ran, in the order in which they were submitted; each attempt is one."""
        with self._lock:
            found = [
                replace(stage, tasks=tuple(sorted(self._tasks.get(key, ()), key=_began)))
                for key, stage in self._stages.items()
            ]
        return tuple(sorted(found, key=lambda stage: (stage.submitted, stage.number, stage.attempt)))

    @property
    def troubles(self) -> tuple[str, ...]:
        """List what could not be heard, in words; most often nothing."""
        with self._lock:
            return tuple(self._troubles)

    def take(self, event: dict[str, Any]) -> None:
        """Take in one event, in the form of Spark's event log."""
        kind = event["Event"]
        with self._lock:
            if kind == "SparkListenerTaskEnd":
                key = StageKey(event["Stage ID"], event["Stage Attempt ID"])
                self._tasks.setdefault(key, []).append(task_of(event))
            else:
                info = event["Stage Info"]
                key = StageKey(info["Stage ID"], info["Stage Attempt ID"])
                known = self._stages.get(key)
                title = (event.get("Properties") or {}).get("spark.job.description") or ""
                self._stages[key] = Stage(
                    *key,
                    name=info["Stage Name"],
                    title=known.title if known and not title else title,
                    planned=info["Number of Tasks"],
                    submitted=info.get("Submission Time", 0) / 1000,
                    completed=info["Completion Time"] / 1000 if "Completion Time" in info else None,
                    failure=failure_of(info.get("Failure Reason")),
                )

    def tell(self, trouble: str) -> None:
        """Keep what went wrong while hearing."""
        with self._lock:
            self._troubles.append(trouble)

    def count(self, metrics: Metrics) -> None:
        """Put all tasks and the skew of each stage into metrics."""
        for stage in self.stages:
            for task in stage.tasks:
                metrics.count("headgate_tasks_total", status="failed" if task.failure else "done")
                metrics.observe("headgate_task_seconds", task.run_seconds)
            if stage.skew is not None:
                metrics.gauge("headgate_stage_skew", stage.skew, stage=stage.title or stage.name)


@contextmanager
def listening(session: SparkSession) -> Iterator[Heard]:
    """Hear all jobs of the application while the body runs.

    What goes wrong in hearing never touches a job: it is in `heard.troubles` and one line on stderr.
    """
    heard = Heard()
    context: Any = getattr(session.sparkContext, _JAVA_CONTEXT).sc()
    listener = _attach(session, context, heard)
    try:
        yield heard
    finally:
        try:
            _detach(context, listener, heard)
        except (_PY4J.Py4JError, OSError) as error:
            # Spark ended inside the body; if that was not meant, the body's own error says why.
            heard.tell(f"Spark was gone before all of its events were heard: {_line(error)}")
        for missing in (stage for stage in heard.stages if stage.missing):
            heard.tell(f"stage {missing.number}: {missing.missing} of {missing.planned} tasks were not heard")
        if heard.troubles:
            more = f" (and {len(heard.troubles) - 1} more)" if len(heard.troubles) > 1 else ""
            print(f"listening to Spark: {heard.troubles[0]}{more}", file=sys.stderr, flush=True)


def _attach(session: SparkSession, context: Any, heard: Heard) -> Any:
    """Add a listener to the bus; return its Java side."""
    gateway: Any = getattr(session.sparkContext, _GATEWAY)
    _GATEWAYS.ensure_callback_server_started(gateway)
    listener = _Listener(gateway.jvm.org.apache.spark.util.JsonProtocol.sparkEventToJsonString, heard)
    # Py4J makes a new proxy each time that the object crosses; to be removed, it must stay the same one.
    holder = gateway.jvm.java.util.ArrayList()
    holder.add(listener)
    proxy = holder.get(0)
    # A queue each: within one, Java would ask the proxies whether they are equal.
    context.listenerBus().addToQueue(proxy, f"{QUEUE}-{next(_numbers)}")
    return proxy


def _detach(context: Any, proxy: Any, heard: Heard) -> None:
    """Wait for what is on its way, then leave."""
    bus = context.listenerBus()
    try:
        bus.waitUntilEmpty(FLUSH_SECONDS * 1000)
    except _PY4J.Py4JJavaError as error:
        heard.tell(f"events were still on their way after {FLUSH_SECONDS} s: {_line(error)}")
    bus.removeListener(proxy)


class _Listener:
    """The Python side: Java calls a method for every event; only those of tasks and stages matter."""

    class Java:
        """What Py4J asks for."""

        implements: ClassVar = ["org.apache.spark.scheduler.SparkListenerInterface"]

    _WANTED = frozenset({"onTaskEnd", "onStageSubmitted", "onStageCompleted"})

    def __init__(self, as_json: Callable[[Any], str], heard: Heard) -> None:
        self._as_json = as_json
        self._heard = heard

    def __getattr__(self, name: str) -> Callable[[Any], None]:
        if not name.startswith("on"):
            raise AttributeError(name)
        return self._take if name in self._WANTED else _pass_over

    def _take(self, event: Any) -> None:
        try:
            self._heard.take(json.loads(self._as_json(event)))
        except Exception as error:  # noqa: BLE001 -- told at the end: raised, it would go to Spark's log only
            self._heard.tell(f"an event could not be read: {type(error).__name__}: {_line(error)}")


def _pass_over(_event: Any) -> None:
    return None


def _began(task: Task) -> tuple[float, int]:
    return task.start, task.number


def _line(error: BaseException) -> str:
    """Return the first line of what an error says."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]
