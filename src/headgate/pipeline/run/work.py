"""What each kind of step does: it calls one job, and says what came of it in plain values.

What runs on Spark is imported when a step asks for Spark: small pipelines do without.
"""

from __future__ import annotations

import dataclasses
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from headgate.core.snapshot import is_snapshot
from headgate.core.versions.stores import located
from headgate.jobs.backtest import backtest
from headgate.jobs.generate import generate
from headgate.jobs.graph import compile_asked
from headgate.jobs.match import match_events
from headgate.jobs.plan import plan_subscriptions
from headgate.jobs.summary import refusals_of, summarise
from headgate.jobs.what_if import what_if
from headgate.local.small import ROWS, why_large
from headgate.pipeline.run import plan
from headgate.pipeline.run.reporting import write_what_if
from headgate.tables.places import UnsureError, is_remote
from headgate.tables.requests import read_taxonomy
from headgate.workloads.catalogue import workload_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from headgate.contents.kind import FilterSettings
    from headgate.jobs.runner import Runner
    from headgate.pipeline.file.model import Pipeline
    from headgate.pipeline.run.plan import Step
    from headgate.spark.session.session import Session

Result = dict[str, Any]
_T = TypeVar("_T")

_NOISIEST = 10
"""Subscriptions that a what-if tells one by one; all of them are in its table."""


@dataclass(frozen=True)
class Job:
    """A step that is to be done, and what it is done with."""

    spark: Callable[[], Session]
    """Starts Spark, unless it runs."""
    pipeline: Pipeline
    step: Step
    before: Mapping[str, Result]
    """The results of the steps that it needs."""
    quiet: bool
    local: bool = False
    """Whether small tables may be gone through in this process."""

    def here(self) -> Runner:
        """Return this process."""
        from headgate.local.runner import LocalRunner

        return LocalRunner(self.quiet)

    def apart(self) -> Runner:
        """Return Spark."""
        from headgate.spark.runner import SparkRunner

        return SparkRunner(self.spark(), self.quiet)

    def run_on(self, tables: Iterable[str | None], do: Callable[[Runner], _T]) -> _T:
        """Run a job over tables, here if they are small and read for certain as Spark reads them."""
        if self.local and why_large(path for path in tables if path is not None) is None:
            try:
                return do(self.here())
            except UnsureError as error:
                if not self.quiet:
                    print(f"{self.step.name}: running on Spark: {error}", file=sys.stderr, flush=True)
        return do(self.apart())


def work(job: Job) -> Result:
    """Do a step; rows that were refused are counted by their reasons, too."""
    result = _WORK[job.step.kind](job)
    if (result.get("rejected") or result.get("left_out")) and "rejected" in job.step.outputs:
        table = job.step.outputs["rejected"]
        refusals = job.run_on([table], partial(refusals_of, path=table))
        result["refusals"] = [_plain(each) for each in refusals]
    return result


def _generate(job: Job) -> Result:
    pipeline, step = job.pipeline, job.step
    assert pipeline.generate is not None
    made, seed = workload_of(pipeline.generate), pipeline.generate.seed
    few = sum(table.rows for table in made.tables.values()) <= ROWS
    for name, (make, schema, rows) in made.tables.items():
        path = step.outputs[name]
        here = job.local and few and not is_remote(path)
        generate(job.here() if here else job.apart(), make, schema, rows, path, seed=seed)
    counts: Result = {name: table.rows for name, table in made.tables.items()}
    if made.taxonomy is not None:
        from headgate.pipeline.run.state import write_whole

        write_whole(Path(step.outputs["taxonomy"]), made.taxonomy)
        counts["taxonomy"] = made.taxonomy.count("\n")
    return {"rows": counts}


def wanted(pipeline: Pipeline) -> FilterSettings:
    """Return what is said of all filters; reads the files of the schema and the taxonomy."""
    return pipeline.compile.wanted(read_taxonomy(pipeline.compile.taxonomy))


def _compile(job: Job) -> Result:
    settings = job.pipeline.compile
    compile_all = partial(compile_asked, asked=settings, wanted=wanted(job.pipeline))
    return as_plain(job.run_on([*settings.tables, settings.sample], compile_all))


def _match(job: Job) -> Result:
    match = next(each for each in job.pipeline.matches if each.name == job.step.of)

    done = job.run_on(
        [match.events, match.output, match.rejected],
        lambda runner: match_events(runner, **match.arguments),
    )
    return as_plain(done)


def _summary(job: Job) -> Result:
    step = job.step
    events = job.before[step.needs[0]]["events"]
    top, output = step.settings["busiest"], step.inputs["output"]
    summary = job.run_on([output], partial(summarise, matches=output, events=events, top=top))
    filters = _filters(located(step.inputs["snapshot"]), [identity for identity, _ in summary.busiest])
    return {
        "events_by_matches": {str(matches): count for matches, count in summary.events_by_matches.items()},
        "busiest": [
            [identity, text, count] for (identity, count), text in zip(summary.busiest, filters, strict=True)
        ],
    }


def _filters(snapshot: Path, identities: list[Any]) -> list[str]:
    """Return the texts of filters of a snapshot that is not cut; of others none, for the ids are told."""
    from headgate.contents.registry import is_content, room_at
    from headgate.core.snapshot import room_of

    if not is_snapshot(snapshot) or not is_content(room_of(snapshot)):
        return [""] * len(identities)
    index = room_at(snapshot).open(snapshot, verify=False)
    # Lines of JSON and CSV are read as text.
    numbered = index.ids.numbered
    return [index.filter(int(identity) if numbered else identity) for identity in identities]


def _backtest(job: Job) -> Result:
    settings = next(each for each in job.pipeline.backtests if each.name == job.step.of)
    return as_plain(job.run_on([settings.events], lambda runner: backtest(runner, **settings.arguments)))


def _plan(job: Job) -> Result:
    from headgate.plan.running.planner import Settings

    plan_asked = job.pipeline.plan
    assert plan_asked is not None
    settings = Settings.of(plan_asked.rewritings, plan_asked.bounds)

    plan_all = partial(plan_subscriptions, settings=settings, **plan_asked.arguments)
    done, made = job.run_on([plan_asked.sample, plan_asked.sites, plan_asked.links], plan_all)
    if plan_asked.page is not None:
        from headgate.report.plan_page import write_report

        page = Path(plan_asked.page)
        page.parent.mkdir(parents=True, exist_ok=True)
        title = f"The network of {job.pipeline.about.name}"
        write_report(made.saved, page, title=title, command=f"headgate run {job.pipeline.file}")
    return as_plain(done)


def _what_if(job: Job) -> Result:
    settings = next(each for each in job.pipeline.what_ifs if each.name == job.step.of)
    question = settings.request(str(settings.snapshot))
    refused = str(settings.rejected)
    outputs: dict[str, Any] = {"rejected": refused, "output": settings.output, "effects": settings.effects}

    tables = [question.changes, question.events]
    done = job.run_on(tables, lambda runner: what_if(runner, question, **outputs))
    page = Path(str(settings.page))
    page.parent.mkdir(parents=True, exist_ok=True)
    write_what_if(
        done,
        question,
        page,
        title=settings.name,
        command=f"headgate run {job.pipeline.file}",
        rejected=refused if done.rejected or done.rejected_events else None,
    )
    result = as_plain(done)
    noisiest = result.pop("effects")[:_NOISIEST]
    return {**result, "rejected": done.rejected + done.rejected_events, "noisiest": noisiest}


def as_plain(done: Any) -> Result:
    """Return the fields of a result as JSON has them; what there is none of is left out."""
    result = {}
    for field in dataclasses.fields(done):
        value = getattr(done, field.name)
        if value is not None:
            result[field.name] = _plain(value)
    return result


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return as_plain(value)
    if hasattr(value, "_asdict"):
        return {name: _plain(each) for name, each in value._asdict().items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {str(name): _plain(each) for name, each in value.items()}
    return value


_WORK: dict[str, Callable[[Job], Result]] = {
    plan.GENERATE: _generate,
    plan.COMPILE: _compile,
    plan.MATCH: _match,
    plan.SUMMARY: _summary,
    plan.BACKTEST: _backtest,
    plan.PLAN: _plan,
    plan.WHAT_IF: _what_if,
}
