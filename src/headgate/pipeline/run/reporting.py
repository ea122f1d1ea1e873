"""What is told of a run: a line for each step, pages, a file for machines, metrics."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headgate.jobs.summary import Refusal
from headgate.pipeline.run import plan
from headgate.pipeline.run.state import write_whole
from headgate.report.runs import model
from headgate.spark.session.java import find_java

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from headgate.backtest.effects import WhatIf
    from headgate.pipeline.file.model import Pipeline
    from headgate.pipeline.run.run import StepDone
    from headgate.runtime.stages import StageRun
    from headgate.spark.session.listeners import SparkActivity
    from headgate.tables.requests import WhatIfRequest


DONE, SKIPPED = "done", "skipped"


@dataclass(frozen=True)
class FinishedRun:
    """A run that is over."""

    pipeline: Pipeline
    steps: tuple[StepDone, ...]
    activity: SparkActivity | None
    starting: float
    seconds: float
    began: float
    """When, in seconds since 1970."""
    command: str

    def results(self, kind: str) -> list[tuple[str, Mapping[str, Any]]]:
        """List what came of the steps of a kind, by the name of each."""
        return [
            (each.name.partition(".")[2], each.result)
            for each in self.steps
            if each.name.partition(".")[0] == kind
        ]


def told(step: plan.Step, result: Mapping[str, Any]) -> str:
    """Say what came of a step, in a few words.

    >>> told(plan.Step("match.all", {}, {}, {}), {"events": 2000, "matches": 7, "rejected": 1})
    ': 2,000 events, 7 matches, 1 refused'
    """
    words = {
        plan.COMPILE: ("nodes", "edges", "subscriptions"),
        plan.MATCH: ("events", "matches"),
        plan.BACKTEST: ("events", "matches"),
        plan.WHAT_IF: ("events", "gained", "lost"),
        plan.PLAN: ("views", "rewritings"),
    }.get(step.kind, ())
    parts = [f"{result[name]:,} {name}" for name in words if name in result]
    if step.kind == plan.GENERATE:
        parts = [f"{count:,} {name}" for name, count in result["rows"].items()]
    if result.get("rejected"):
        parts.append(f"{result['rejected']:,} refused")
    return f": {', '.join(parts)}" if parts else ""


def write_json(run: FinishedRun, *, error: str | None = None) -> Path:
    """Write what a run did for machines."""
    report = {
        "pipeline": run.pipeline.about.name,
        "file": str(run.pipeline.file),
        "created": dt.datetime.now(dt.UTC).isoformat(),
        "ok": error is None,
        "error": error,
        "seconds": round(run.seconds, 3),
        "steps": [each.as_json for each in run.steps],
        "stages": _stages(run.activity),
    }
    path = Path(run.pipeline.report.json)
    write_whole(path, json.dumps(report, indent=1, ensure_ascii=False, default=str) + "\n")
    return path


def _stages(activity: SparkActivity | None) -> list[dict[str, Any]]:
    return [
        {
            "step": stage.title,
            "stage": stage.number,
            "tasks": len(stage.tasks),
            "seconds": round(stage.seconds, 3),
            "median_task_seconds": round(stage.median_seconds, 3),
            "skew": stage.skew,
            "failed": sum(task.failure is not None for task in stage.tasks),
        }
        for stage in (activity.stages if activity else ())
    ]


def page_of(run: FinishedRun) -> model.RunPage:
    """Put together what the page shows; tiles and pictures are those of the first matches."""
    compiled = dict(run.results(plan.COMPILE)).get("", {})
    matched = run.results(plan.MATCH)
    first = matched[0][1] if matched else {}
    summary = dict(run.results(plan.SUMMARY)).get(matched[0][0], {}) if matched else {}
    spread = {int(matches): count for matches, count in summary.get("events_by_matches", {}).items()}
    batches = first.get("batches", [])
    begun = min((batch["start"] for batch in batches), default=0.0)
    ended = max((batch["start"] + batch["seconds"] for batch in batches), default=0.0)
    return model.RunPage(
        title=run.pipeline.about.name,
        created=dt.datetime.now(dt.UTC),
        counts=model.Counts(
            subscriptions=compiled.get("subscriptions"),
            events=first.get("events"),
            matches=first.get("matches"),
            seconds=ended - begun if batches else first.get("match_seconds"),
            rejected={
                "subscriptions": compiled.get("refused", {}).get(
                    "subscriptions", compiled.get("rejected", 0)
                ),
                "events": first.get("rejected", 0),
            },
        ),
        steps=tuple(steps_told(run)),
        stages=stages_of(run.activity.stages, run.began) if run.activity else (),
        throughput=tuple(_throughput(first, begun)),
        rejected=tuple(_refused(run)),
        matches_per_event=model.Histogram.of(spread) if spread else None,
        quantiles=tuple((share, model.quantile(spread, share)) for share in (0.5, 0.9, 0.99))
        if spread
        else (),
        busiest=tuple(
            model.BusySubscription(str(identity), text, count)
            for identity, text, count in summary.get("busiest", [])
        ),
        machine=model.this_machine(str(find_java().version)),
        command=run.command,
        troubles=run.activity.troubles if run.activity else (),
    )


def stages_of(heard: Iterable[StageRun], began: float) -> tuple[StageRun, ...]:
    """Count the times of stages from when the run began, in seconds since 1970; name each of them."""
    return tuple(
        replace(
            stage,
            title=f"{stage.title or stage.name} ({stage.number})",
            start=stage.start - began,
            end=stage.start + stage.seconds - began,
            tasks=tuple(replace(task, start=task.start - began) for task in stage.tasks),
        )
        for stage in heard
    )


def _throughput(matched: Mapping[str, Any], begun: float) -> Iterator[model.Partition]:
    """List the batches of workers; an event that met several shards is shared out among them."""
    batches = matched.get("batches", [])
    met = sum(batch["events"] for batch in batches)
    events = matched["events"] if matched.get("shards", 1) > 1 else met
    passed = 0
    for batch in batches:
        before, passed = passed, passed + batch["events"]
        share = passed * events // met - before * events // met if met else 0
        yield model.Partition(batch["task"], batch["start"] - begun, batch["seconds"], share)


def _refused(run: FinishedRun) -> Iterator[model.RefusedRows]:
    """List the tables of refused rows, each with its kinds of reasons."""
    places = {step.name: step.outputs.get("rejected") for step in plan.steps_of(run.pipeline)}
    for each in run.steps:
        kind, _, of = each.name.partition(".")
        if "rejected" in each.result and kind != plan.BACKTEST:
            what = {plan.COMPILE: "subscriptions", plan.MATCH: "events"}.get(kind, kind.replace("_", "-"))
            what = f"{what} ({of})" if len(run.pipeline.matches) > 1 and of else what
            what = _of_graph(each.result["refused"]) if "refused" in each.result else what
            rows = each.result["rejected"]
            reasons = [
                Refusal(refusal["reason"], refusal["rows"], tuple(refusal["examples"]))
                for refusal in each.result.get("refusals", [])
            ]
            yield model.RefusedRows(what, rows, places[each.name] if rows else None, tuple(reasons))


def _of_graph(refused: Mapping[str, int]) -> str:
    """Say what refused rows of a graph are of.

    >>> _of_graph({"nodes": 0, "edges": 3, "subscriptions": 0})
    'edges'
    >>> _of_graph({"nodes": 2, "edges": 3, "subscriptions": 0})
    'rows of the graph (2 of nodes, 3 of edges)'
    """
    some = {name: count for name, count in refused.items() if count}
    if len(some) == 1:
        return next(iter(some))
    return f"rows of the graph ({', '.join(f'{count:,} of {name}' for name, count in some.items())})"


def steps_told(run: FinishedRun) -> list[model.Step]:
    """List the parts of a run with their times, the parts of jobs apart."""
    parts = {
        plan.COMPILE: (("parse the filters", "parse_seconds"), ("build the index", "build_seconds")),
        plan.MATCH: (("survey the events", "survey_seconds"), ("match", "match_seconds")),
    }
    names = {plan.GENERATE: "generate the workload", plan.SUMMARY: "sum up"}
    steps = [model.Step("start Spark", run.starting)] if run.starting else []
    several = len(run.pipeline.matches) > 1
    for each in run.steps:
        kind, _, of = each.name.partition(".")
        suffix = f" ({of})" if several and of else ""
        if each.status == SKIPPED:
            note = f"done in an earlier run, in {each.seconds:.1f} s"
            steps.append(model.Step(each.name, 0.0, note=note))
        elif kind in parts:
            steps += [model.Step(words + suffix, each.result[name]) for words, name in parts[kind]]
        else:
            steps.append(model.Step(names.get(kind, kind) + suffix, each.seconds))
    return steps


def write_metrics(run: FinishedRun, path: Path) -> None:
    """Write counts and times for Prometheus; counts are those of the first matches, as on the page."""
    from headgate.stream.metrics import Metrics

    metrics = Metrics()
    for each in run.steps:
        metrics.gauge("headgate_step_seconds", each.seconds, step=each.name)
    for _, result in run.results(plan.COMPILE):
        metrics.gauge("headgate_subscriptions", result["subscriptions"])
        metrics.count("headgate_rejected_total", result["rejected"], reason=plan.COMPILE)
    for _, result in run.results(plan.MATCH)[:1]:
        metrics.count("headgate_events_total", result["events"])
        metrics.count("headgate_matches_total", result["matches"])
        metrics.count("headgate_rejected_total", result["rejected"], reason=plan.MATCH)
    if run.activity is not None:
        run.activity.count(metrics)
    path.parent.mkdir(parents=True, exist_ok=True)
    metrics.write(path)


def write_what_if(
    done: WhatIf, question: WhatIfRequest, path: Path, *, title: str, command: str, rejected: str | None
) -> None:
    """Draw what changes would do; `rejected` is where refused rows are, if there are any."""
    from headgate.report.runs import what_if_page

    page = model.WhatIfPage(
        title=f"What if: {title}",
        created=dt.datetime.now(dt.UTC),
        done=done,
        noise=question.noise,
        top=question.top.k if question.top else None,
        rejected_path=rejected,
        command=command,
    )
    what_if_page.write(page, path)
