"""Carry a pipeline out: step after step on one Spark session, going on where an earlier run was stopped."""

from __future__ import annotations

import datetime as dt
import sys
import time
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headgate.core.machine import need
from headgate.errors import HeadgateError, TableError
from headgate.local.small_streams import why_stream
from headgate.pipeline.dry_run.check import check
from headgate.pipeline.file.model import without_secrets
from headgate.pipeline.file.together import places
from headgate.pipeline.run import reporting
from headgate.pipeline.run.plan import COMPILE, steps_of, until
from headgate.pipeline.run.reporting import DONE, SKIPPED
from headgate.pipeline.run.state import RunState, locked, remove_leftovers
from headgate.pipeline.run.stream_history import run_told
from headgate.pipeline.run.work import Job, work
from headgate.runtime.progress import step as shown
from headgate.stream.request import check_request
from headgate.tables.places import is_remote, local

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager

    from headgate.pipeline.file.model import Pipeline
    from headgate.pipeline.run.plan import Step
    from headgate.report.runs.model import RunPage
    from headgate.spark.session.listeners import SparkActivity
    from headgate.spark.session.session import Session
    from headgate.stream.reporting import StreamResult


_LEFT_OUT = {"batches", "events_by_matches", "busiest"}
"""What came of a step that is for pictures."""


@dataclass(frozen=True)
class RunOptions:
    """What is said of one run, beside the file."""

    fresh: bool = False
    """Do everything anew."""
    until: str | None = None
    """The last step."""
    engine: str | None = None
    """`spark`, or `local` for tables that are small; None if it may be chosen."""
    master: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    quiet: bool = False
    command: str = ""
    """How it was asked for, for the report."""
    stopping: Callable[[], AbstractContextManager[threading.Event]] | None = None
    """Is entered while a stream runs, and yields what ends it when it is set."""


@dataclass(frozen=True)
class StepDone:
    """A step of a run: what came of it, now or in an earlier run."""

    name: str
    status: str
    """`DONE` or `SKIPPED`."""
    why: str
    """Why it was done; empty if it was skipped."""
    seconds: float
    """What it took when it was done."""
    result: Mapping[str, Any]

    @property
    def as_json(self) -> dict[str, Any]:
        """Return it for machines, without what is for pictures, and too long."""
        about = {"name": self.name, "status": self.status, "why": self.why, "seconds": round(self.seconds, 3)}
        return about | {name: value for name, value in self.result.items() if name not in _LEFT_OUT}


@dataclass(frozen=True)
class Outcome:
    """What a run did."""

    pipeline: Pipeline
    steps: tuple[StepDone, ...]
    seconds: float
    page: Path | None
    """The report; None if the run ended before, at the step it was asked to."""
    json: Path
    report: RunPage
    """What the page shows."""
    streamed: StreamResult | None = None
    """What the stream did, if there was one."""

    @property
    def results(self) -> dict[str, Mapping[str, Any]]:
        """Return what came of each step, by its name."""
        return {each.name: each.result for each in self.steps}

    @property
    def refused(self) -> int:
        """Count the rows that were refused; an event that several steps refused is one."""
        counts = {each.name: int(each.result.get("rejected", 0)) for each in self.steps}
        compiled = counts.pop(COMPILE, 0)
        return compiled + max(counts.values(), default=0)


def run_pipeline(pipeline: Pipeline, asked: RunOptions | None = None) -> Outcome:
    """Run a pipeline; what is done already and has not changed is passed over."""
    asked = asked or RunOptions()
    steps = until(steps_of(pipeline), asked.until)
    directory = pipeline.directory
    outputs = [each.path for each in places(pipeline) if each.output]
    if directory.exists() and not directory.is_dir():
        check(pipeline)
    with locked(directory) as died, _Running(pipeline, asked) as running:
        try:
            state = running.remember()
            if died is not None:
                remove_leftovers([*outputs, str(directory / ".headgate" / "state.json")], died)
            state.clear_halves()
            check(pipeline)
            running.begin()
            for step in steps:
                running.do(step)
            return running.end(whole=asked.until is None)
        except BaseException as error:
            running.fail(error)
            raise
        finally:
            if died is not None:
                # What its Java was still writing when it died is over by now.
                remove_leftovers(outputs, died)


def _remembered(directory: Path, *, fresh: bool) -> RunState:
    try:
        state = RunState.open(directory)
    except TableError:
        if not fresh:
            raise
        return RunState(directory)
    if fresh:
        state.steps.clear()
    return state


def _why(error: BaseException) -> str:
    """Say why a run did not come to its end."""
    if isinstance(error, KeyboardInterrupt):
        return "the run was interrupted"
    text = str(error) if isinstance(error, HeadgateError) else f"{type(error).__name__}: {error}"
    return without_secrets(text)


class _Running:
    """One run: starts Spark when a step needs it, and notes what is done."""

    def __init__(self, pipeline: Pipeline, asked: RunOptions) -> None:
        self._pipeline = pipeline
        self._asked = asked
        self._state = RunState(pipeline.directory)
        self._stack = ExitStack()
        self._listening = ExitStack()
        self._session: Session | None = None
        self._activity: SparkActivity | None = None
        self._begun = time.monotonic()
        self._began = time.time()
        self.starting = 0.0
        self.done: list[StepDone] = []

    def __enter__(self) -> _Running:
        return self

    def __exit__(self, *error: object) -> None:
        self._listening.close()
        self._stack.close()

    def remember(self) -> RunState:
        """Find out what earlier runs have done."""
        self._state = _remembered(self._pipeline.directory, fresh=self._asked.fresh)
        return self._state

    def begin(self) -> None:
        """Leave word for machines that the run is not over: one that is killed cannot do it later."""
        reporting.write_json(self._told(), error="the run has not ended")

    def do(self, step: Step) -> None:
        """Do a step, unless it is done already."""
        why = self._state.why_not_done(step)
        redone = {each.name for each in self.done if each.status == DONE}
        if why is None and redone.intersection(step.needs):
            why = f"{step.needs[0]} was done again"
        if why is None:
            record = self._state.steps[step.name]
            self._say(f"{step.name}: done before, nothing has changed")
            self.done.append(StepDone(step.name, SKIPPED, "", record.seconds, record.result))
            return
        inputs = self._state.stamps(step.inputs)
        self._state.begin(step)
        self._say(f"{step.name}: begun, since {why}")
        began = time.monotonic()
        before = {each.name: dict(each.result) for each in self.done}

        def spark() -> Session:
            session = self._observed_session()
            session.sparkContext.setJobDescription(step.name)
            return session

        result = work(Job(spark, self._pipeline, step, before, self._asked.quiet, self._local))
        seconds = time.monotonic() - began
        self._state.finish(step, inputs, result, seconds, dt.datetime.now(dt.UTC).isoformat())
        self._say(f"{step.name}: done in {seconds:.1f} s{reporting.told(step, result)}")
        self.done.append(StepDone(step.name, DONE, why, seconds, result))

    @property
    def _local(self) -> bool:
        """Whether small tables may be gone through in this process: nothing is said about Spark."""
        spark, asked = self._pipeline.spark, self._asked
        if asked.engine is not None:
            return asked.engine == "local"
        return not (asked.master or spark.master or asked.settings or spark.conf)

    def _opened(self) -> Session:
        if self._session is None:
            spark = self._pipeline.spark
            master = self._asked.master or spark.master
            settings = {**spark.conf, **self._asked.settings}
            need("spark")
            from headgate.spark.session.session import close_session, open_session

            with shown("starting Spark", quiet=self._asked.quiet) as starting:
                self._session = open_session(
                    master, app=f"headgate {self._pipeline.about.name}", settings=settings
                )
            self.starting = starting.seconds
            self._stack.callback(close_session, self._session)
        return self._session

    def _observed_session(self) -> Session:
        """Open the session for steps, which are listened to; a stream is not, for it may run for months."""
        session = self._opened()
        if self._activity is None:
            from headgate.spark.session.listeners import listening

            self._activity = self._listening.enter_context(listening(session))
        return session

    def _say(self, line: str) -> None:
        if not self._asked.quiet:
            print(line, file=sys.stderr, flush=True)

    def end(self, *, whole: bool) -> Outcome:
        """End Spark, write the report, and say what was done."""
        # All that Spark reported is in by then.
        self._listening.close()
        finished = self._told()
        report = reporting.page_of(finished)
        page = Path(self._pipeline.report.page) if whole else None
        busy = any(each.status == DONE for each in self.done)
        if page is not None and (busy or not page.exists()):
            with shown("drawing the report", quiet=self._asked.quiet):
                from headgate.report.runs import page as run_page

                page.parent.mkdir(parents=True, exist_ok=True)
                run_page.write(report, page)
        metrics = self._pipeline.metrics
        if whole and metrics is not None and (busy or not Path(metrics.file).exists()):
            reporting.write_metrics(finished, Path(metrics.file))
        seconds = time.monotonic() - self._begun
        json = reporting.write_json(finished)
        done = Outcome(self._pipeline, tuple(self.done), seconds, page, json, report)
        stream = self._pipeline.stream
        if whole and stream is not None:
            session = None if self._local and why_stream(stream) is None else self._opened()
            self._say("stream: begun")
            # Only now: steps are to end at once when they are asked to.
            with self._asked.stopping() if self._asked.stopping else nullcontext() as stop:
                check_request(stream)
                ended = run_told(session, stream, stop=stop, quiet=self._asked.quiet, command=self._command)
            return replace(done, streamed=ended)
        return done

    def fail(self, error: BaseException) -> None:
        """Leave word of a run that did not come to its end, for machines."""
        path = self._pipeline.report.json
        if is_remote(path) or local(path).is_dir():
            # That is what is wrong with it.
            return
        with suppress(OSError):
            reporting.write_json(self._told(), error=_why(error))

    def _told(self) -> reporting.FinishedRun:
        return reporting.FinishedRun(
            pipeline=self._pipeline,
            steps=tuple(self.done),
            activity=self._activity,
            starting=self.starting,
            seconds=time.monotonic() - self._begun,
            began=self._began,
            command=self._command,
        )

    @property
    def _command(self) -> str:
        return self._asked.command or f"headgate run {self._pipeline.file}"
