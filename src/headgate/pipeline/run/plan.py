"""What a pipeline does, as a list of steps: plain values, with what each reads and writes."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from headgate import __version__
from headgate.errors import HeadgateError
from headgate.pipeline.file.setting import nearest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from headgate.pipeline.file.model import Pipeline

GENERATE, COMPILE, MATCH, SUMMARY, BACKTEST, WHAT_IF, PLAN = KINDS = (
    "generate",
    "compile",
    "match",
    "summary",
    "backtest",
    "what_if",
    "plan",
)


@dataclass(frozen=True)
class Step:
    """A part of a pipeline that is done as a whole, or not at all."""

    name: str
    """`compile`, or `match.best` where there may be several."""
    inputs: Mapping[str, str]
    """What it reads, by the part that it plays."""
    outputs: Mapping[str, str]
    """What it writes."""
    settings: Mapping[str, Any]
    """All else that its result depends on."""
    needs: tuple[str, ...] = ()
    """Steps whose results it looks at, beside their outputs."""

    @property
    def kind(self) -> str:
        """Return what is done, without the name of the one of several."""
        return self.name.partition(".")[0]

    @property
    def of(self) -> str:
        """Return the name of the one of several; empty if there is one only."""
        return self.name.partition(".")[2]

    def fingerprint(self, directory: Path) -> str:
        """Sum up what is asked for: the same settings and places give the same, wherever the directory is."""
        asked = {
            "version": __version__,
            "step": self.name,
            "settings": self.settings,
            "inputs": {role: named(path, directory) for role, path in self.inputs.items()},
            "outputs": {role: named(path, directory) for role, path in self.outputs.items()},
        }
        return hashlib.sha256(json.dumps(asked, sort_keys=True, default=str).encode()).hexdigest()[:32]


def named(path: str, directory: Path) -> str:
    """Name a place as seen from the pipeline's directory, so that both may be moved."""
    return path if "://" in path else os.path.relpath(path, directory)


def steps_of(pipeline: Pipeline) -> list[Step]:
    """List the steps of a pipeline in their order."""
    steps: list[Step] = []
    if pipeline.generate is not None:
        tables = ("subscriptions", "nodes", "edges", "events", "taxonomy")
        outputs = {name: path for name in tables if (path := pipeline.generated(name)) is not None}
        steps.append(Step(GENERATE, {}, outputs, asdict(pipeline.generate)))
    steps.append(_compile(pipeline))
    steps += _matches(pipeline)
    events = {"events": str(pipeline.event_table)}
    form: dict[str, Any] = {"format": pipeline.events.format if pipeline.events else None}
    for each in pipeline.backtests:
        dialect = each.dialect or pipeline.dialect
        asked: dict[str, Any] = {**form, "filter": each.filter, "dialect": dialect, **_options(pipeline)}
        outputs = _given(output=each.output)
        steps.append(Step(f"{BACKTEST}.{each.name}", {**events, **_taxonomy(pipeline)}, outputs, asked))
    snapshot = {"snapshot": pipeline.compile.snapshot}
    for one in pipeline.what_ifs:
        inputs = {**snapshot, **events, "changes": one.changes}
        outputs = _given(output=one.output, effects=one.effects, rejected=one.rejected, page=one.page)
        asked = {**form, "top": one.top, "noise": one.noise, "cost": one.cost}
        steps.append(Step(f"{WHAT_IF}.{one.name}", inputs, outputs, asked))
    if pipeline.plan is not None:
        plan = pipeline.plan
        inputs = {**snapshot, "sample": plan.sample or events["events"], **_given(sites=plan.sites)}
        outputs = _given(output=plan.output, rejected=plan.rejected, page=plan.page)
        places = {"sample", "output", "rejected", "page", "sites"}
        asked = {name: value for name, value in asdict(plan).items() if name not in places}
        steps.append(Step(PLAN, inputs, outputs, {**asked, **form}))
    return steps


def until(steps: Sequence[Step], last: str | None) -> list[Step]:
    """Cut the list after a step; the name of a kind stands for the last of that kind."""
    if last is None:
        return list(steps)
    ends = [place for place, step in enumerate(steps) if last in {step.name, step.kind}]
    if not ends:
        raise HeadgateError(f"there is no step {last!r}: {nearest(last, [step.name for step in steps])}")
    return list(steps[: ends[-1] + 1])


def _compile(pipeline: Pipeline) -> Step:
    given = pipeline.subscriptions
    inputs = _given(
        subscriptions=pipeline.subscription_table,
        nodes=pipeline.node_table,
        edges=pipeline.edge_table,
        schema=given.schema if given else None,
        sample=given.sample if given else None,
    )
    asked = {
        "dialect": pipeline.dialect,
        "ranked": pipeline.ranked,
        **_options(pipeline),
        **asdict(pipeline.shards),
    }
    outputs = _given(snapshot=pipeline.compile.snapshot, rejected=pipeline.compile.rejected)
    return Step(COMPILE, {**inputs, **_taxonomy(pipeline)}, outputs, asked)


def _matches(pipeline: Pipeline) -> list[Step]:
    steps = []
    for match in pipeline.matches:
        inputs = {"snapshot": pipeline.compile.snapshot, "events": str(pipeline.event_table)}
        outputs = _given(output=match.output, rejected=match.rejected, tuples=match.tuples)
        asked = {
            "top": match.top,
            "mode": match.mode,
            "factors": dict(match.factors or {}),
            "format": pipeline.events.format if pipeline.events else None,
        }
        name = f"{MATCH}.{match.name}"
        steps.append(Step(name, inputs, outputs, asked))
        if match.busiest:
            found = {"output": str(match.output), "snapshot": pipeline.compile.snapshot}
            steps.append(Step(f"{SUMMARY}.{match.name}", found, {}, {"busiest": match.busiest}, (name,)))
    return steps


def _options(pipeline: Pipeline) -> dict[str, bool]:
    given = pipeline.subscriptions
    return {"coerce": bool(given and given.coerce), "injective": bool(given and given.injective)}


def _taxonomy(pipeline: Pipeline) -> dict[str, str]:
    return {f"taxonomy {number}": path for number, path in enumerate(pipeline.taxonomy, 1)}


def _given(**places: str | None) -> dict[str, str]:
    return {name: path for name, path in places.items() if path is not None}
