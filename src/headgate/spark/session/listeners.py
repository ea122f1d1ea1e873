"""Hear from Spark what tasks and micro-batches did: listeners on Spark's own bus, called back from Java.

    with listening(session) as activity:
        ...                             any jobs
    for stage in activity.stages:
        print(stage.title, len(stage.tasks), stage.skew)

An event comes over as one JSON text, in Spark's own form of its event log, because every question to an
object in Java is a way there and back. The listener has a queue of its own on the bus: if we are slow, nobody
waits. Measured on two busy cores: 1 ms of the driver's time for a task.
"""

from __future__ import annotations

import importlib
import json
import re
import sys
import threading
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from math import isfinite
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from pyspark.sql.streaming.listener import StreamingQueryListener

from headgate.runtime.stages import StageRun, TaskRun

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.listener import (
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
        StreamingQueryProgress,
    )

    from headgate.stream.metrics import Metrics


_MS = 1000
_LONGEST = 400
_RAISED = re.compile(r"(?:\w+\.)*\w*(?:Error|Exception|Interrupt|Exit): ")


class StageKey(NamedTuple):
    """A stage and which attempt at it."""

    number: int
    attempt: int


def task_of(event: dict[str, Any]) -> TaskRun:
    """Read the event of a task's end, in the form of Spark's event log."""
    info = event["Task Info"]
    # A task that was lost with its executor has no metrics.
    metrics = event.get("Task Metrics") or {}
    inside, read = metrics.get("Input Metrics") or {}, metrics.get("Shuffle Read Metrics") or {}
    return TaskRun(
        executor=info["Executor ID"],
        start=info["Launch Time"] / _MS,
        seconds=max(0, info["Finish Time"] - info["Launch Time"]) / _MS,
        rows=inside.get("Records Read", 0) + read.get("Total Records Read", 0),
        failure=_reason(event["Task End Reason"]),
        number=info["Task ID"],
        index=info["Index"],
        run_seconds=metrics.get("Executor Run Time", 0) / _MS,
    )


def failure_of(text: str | None) -> str | None:
    r"""Keep the line of a failure that says something: of a worker's traceback, the error itself.

    >>> failure_of("Job aborted due to stage failure: x\nDriver stacktrace:")
    'Job aborted due to stage failure: x'
    >>> failure_of("[P] Traceback (most recent call last):\n  File\nValueError: no\n\tat org.apache.X: y")
    'ValueError: no'
    """
    if text is None:
        return None
    lines = [line.strip() for line in text.split("\n\tat ", 1)[0].splitlines() if line.strip()]
    own = [line for line in lines if _RAISED.match(line)]
    traced = any("Traceback (most recent call last)" in line for line in lines)
    return (own[-1] if own and traced else lines[0] if lines else "no reason given")[:_LONGEST]


def _reason(reason: dict[str, Any]) -> str | None:
    """Say why a task ended, if it was not that it was done."""
    if reason["Reason"] == "Success":
        return None
    texts = [reason.get(name) for name in ("Full Stack Trace", "Description", "Kill Reason", "Loss Reason")]
    words = next((failure_of(text) for text in texts if text), None)
    return words or str(reason["Reason"])


# By name because py4j has no types.
_PY4J: Any = importlib.import_module("py4j.protocol")
_GATEWAYS: Any = importlib.import_module("pyspark.java_gateway")
_GATEWAY, _JAVA_CONTEXT = "_gateway", "_jsc"

QUEUE = "headgate"
_numbers = count(1)
FLUSH_SECONDS = 30
"""How long the end waits for events that are on their way."""


class SparkActivity:
    """What Spark told of its stages; complete after `listening` has ended, and growing while it runs."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stages: dict[StageKey, StageRun] = {}
        self._tasks: dict[StageKey, list[TaskRun]] = {}
        self._troubles: list[str] = []

    @property
    def stages(self) -> tuple[StageRun, ...]:
        """List the stages that ran, in the order in which they were submitted; each attempt is one."""
        with self._lock:
            stages = [
                replace(stage, tasks=tuple(sorted(self._tasks.get(key, ()), key=_began)))
                for key, stage in self._stages.items()
            ]
        return tuple(sorted(stages, key=lambda stage: (stage.start, stage.number, stage.attempt)))

    @property
    def troubles(self) -> tuple[str, ...]:
        """List in words what was not received; usually nothing."""
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
                self._stages[key] = StageRun(
                    title=known.title if known and not title else title,
                    start=info.get("Submission Time", 0) / _MS,
                    end=info["Completion Time"] / _MS if "Completion Time" in info else None,
                    failure=failure_of(info.get("Failure Reason")),
                    number=key.number,
                    attempt=key.attempt,
                    name=info["Stage Name"],
                    planned=info["Number of Tasks"],
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
def listening(session: SparkSession) -> Iterator[SparkActivity]:
    """Hear all jobs of the application while the body runs.

    What goes wrong while listening never touches a job: it is in `activity.troubles` and one line on stderr.
    """
    activity = SparkActivity()
    context: Any = getattr(session.sparkContext, _JAVA_CONTEXT).sc()
    listener = _attach(session, context, activity)
    try:
        yield activity
    finally:
        try:
            _detach(context, listener, activity)
        except (_PY4J.Py4JError, OSError) as error:
            # Spark ended inside the body; if that was not meant, the body's own error says why.
            activity.tell(f"Spark was gone before all of its events arrived: {_line(error)}")
        for missing in (stage for stage in activity.stages if stage.missing):
            activity.tell(
                f"stage {missing.number}: {missing.missing} of {missing.planned} tasks were not reported"
            )
        if activity.troubles:
            more = f" (and {len(activity.troubles) - 1} more)" if len(activity.troubles) > 1 else ""
            print(f"listening to Spark: {activity.troubles[0]}{more}", file=sys.stderr, flush=True)


def _attach(session: SparkSession, context: Any, activity: SparkActivity) -> Any:
    """Add a listener to the bus; return its Java side."""
    gateway: Any = getattr(session.sparkContext, _GATEWAY)
    _GATEWAYS.ensure_callback_server_started(gateway)
    listener = _Listener(gateway.jvm.org.apache.spark.util.JsonProtocol.sparkEventToJsonString, activity)
    # Py4J makes a new proxy each time that the object crosses; to be removed, it must stay the same one.
    holder = gateway.jvm.java.util.ArrayList()
    holder.add(listener)
    proxy = holder.get(0)
    # A queue each: within one, Java would ask the proxies whether they are equal.
    context.listenerBus().addToQueue(proxy, f"{QUEUE}-{next(_numbers)}")
    return proxy


def _detach(context: Any, proxy: Any, activity: SparkActivity) -> None:
    """Wait for what is on its way, then leave."""
    bus = context.listenerBus()
    try:
        bus.waitUntilEmpty(FLUSH_SECONDS * 1000)
    except _PY4J.Py4JJavaError as error:
        activity.tell(f"events were still on their way after {FLUSH_SECONDS} s: {_line(error)}")
    bus.removeListener(proxy)


class _Listener:
    """The Python side: Java calls a method for every event; only those of tasks and stages matter."""

    class Java:
        """What Py4J asks for."""

        implements: ClassVar = ["org.apache.spark.scheduler.SparkListenerInterface"]

    _WANTED = frozenset({"onTaskEnd", "onStageSubmitted", "onStageCompleted"})

    def __init__(self, as_json: Callable[[Any], str], activity: SparkActivity) -> None:
        self._as_json = as_json
        self._activity = activity

    def __getattr__(self, name: str) -> Callable[[Any], None]:
        if not name.startswith("on"):
            raise AttributeError(name)
        return self._take if name in self._WANTED else _pass_over

    def _take(self, event: Any) -> None:
        try:
            self._activity.take(json.loads(self._as_json(event)))
        except Exception as error:  # noqa: BLE001 -- told at the end: raised, it would go to Spark's log only
            self._activity.tell(f"an event could not be read: {type(error).__name__}: {_line(error)}")


def _pass_over(_event: Any) -> None:
    return None


def _began(task: TaskRun) -> tuple[float, int]:
    return task.start, task.number


def _line(error: BaseException) -> str:
    """Return the first line of what an error says."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


class StreamMeter(StreamingQueryListener):
    """Set gauges from the progress of queries: rates, phases, and what the query itself observes.

    Events and matches are not counted here: a batch may be told twice, and is committed once.
    """

    def __init__(self, metrics: Metrics) -> None:
        self.metrics = metrics
        self.batches = 0
        self.troubles: list[str] = []

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 -- Spark's name
        """Nothing is known yet."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802, ARG002 -- Spark's
        """Nothing comes in any more."""
        self.metrics.gauge("headgate_input_rows_per_second", 0)
        self.metrics.gauge("headgate_processed_rows_per_second", 0)

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802 -- Spark's name
        """Take in what a micro-batch did."""
        try:
            self.take(event.progress)
        except Exception as error:  # noqa: BLE001 -- told at the end: raised, it would go to Spark's log only
            self.troubles.append(f"progress could not be read: {type(error).__name__}: {error}")

    def take(self, progress: StreamingQueryProgress) -> None:
        """Take in the progress of one micro-batch."""
        self.batches += 1
        self.metrics.gauge("headgate_input_rows_per_second", _rate(progress.inputRowsPerSecond))
        self.metrics.gauge("headgate_processed_rows_per_second", _rate(progress.processedRowsPerSecond))
        for phase, milliseconds in progress.durationMs.items():
            self.metrics.gauge("headgate_phase_seconds", milliseconds / 1000, phase=phase)
        for query, row in progress.observedMetrics.items():
            for name, value in row.asDict().items():
                if isinstance(value, int | float):
                    self.metrics.gauge("headgate_observed", value, name=f"{query}.{name}")


@contextmanager
def metering(session: SparkSession, metrics: Metrics) -> Iterator[StreamMeter]:
    """Feed metrics from all queries of a session while the body runs."""
    meter = StreamMeter(metrics)
    session.streams.addListener(meter)
    try:
        yield meter
    finally:
        session.streams.removeListener(meter)
        if meter.troubles:
            print(f"listening to Spark: {meter.troubles[0]}", file=sys.stderr, flush=True)


def _rate(rate: Any) -> float:
    """Return a rate; the first one of a query has no time to be divided by."""
    return float(rate) if isinstance(rate, int | float) and isfinite(rate) else 0.0
