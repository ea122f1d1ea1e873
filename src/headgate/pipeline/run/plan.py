"""What a pipeline does, as a list of steps: plain values, with what each reads and writes."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from headgate import __version__
from headgate.core.settings import SettingKind, nearest, settings_of
from headgate.errors import HeadgateError

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
        parts = {
            "version": __version__,
            "step": self.name,
            "settings": self.settings,
            "inputs": {role: named(path, directory) for role, path in self.inputs.items()},
            "outputs": {role: named(path, directory) for role, path in self.outputs.items()},
        }
        return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()[:32]


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
    steps.append(step_of(COMPILE, pipeline.compile))
    for match in pipeline.matches:
        step = step_of(f"{MATCH}.{match.name}", match)
        steps.append(step)
        if match.busiest:
            table = {"output": match.output, "snapshot": match.snapshot}
            steps.append(Step(f"{SUMMARY}.{match.name}", table, {}, {"busiest": match.busiest}, (step.name,)))
    steps += [step_of(f"{BACKTEST}.{each.name}", each) for each in pipeline.backtests]
    steps += [step_of(f"{WHAT_IF}.{each.name}", each) for each in pipeline.what_ifs]
    if pipeline.plan is not None:
        steps.append(step_of(PLAN, pipeline.plan))
    return steps


_TOLD = ("name", "busiest")
"""Settings that no result depends on."""


def step_of(name: str, request: object) -> Step:
    """Make the step of a request: what it reads, what it writes, and all else."""
    inputs: dict[str, str] = {}
    outputs: dict[str, str] = {}
    settings: dict[str, Any] = {}
    for each in settings_of(type(request)):
        value = getattr(request, each.name)
        if each.kind is SettingKind.INPUTS:
            inputs |= {f"{each.name} {number}": path for number, path in enumerate(value, 1)}
        elif each.kind.is_path and value is not None:
            (inputs if each.kind is SettingKind.INPUT else outputs)[each.name] = value
        elif not each.kind.is_path and each.name not in _TOLD:
            settings[each.name] = value
    return Step(name, inputs, outputs, settings)


def until(steps: Sequence[Step], last: str | None) -> list[Step]:
    """Cut the list after a step; the name of a kind stands for the last of that kind."""
    if last is None:
        return list(steps)
    ends = [index for index, step in enumerate(steps) if last in {step.name, step.kind}]
    if not ends:
        raise HeadgateError(f"there is no step {last!r}: {nearest(last, [step.name for step in steps])}")
    return list(steps[: ends[-1] + 1])
