"""The dry run: everything is checked, the first rows are really read, and the plan is printed with sizes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headgate.brokers.nats.settings import shown as without_secrets
from headgate.contents.kind import FilterSettings
from headgate.core.machine import memory
from headgate.pipeline.dry_run.check import check
from headgate.pipeline.dry_run.estimate import Sizes, estimate
from headgate.pipeline.run.plan import COMPILE, GENERATE, MATCH, steps_of, until
from headgate.pipeline.run.state import RunState
from headgate.pipeline.run.work import wanted
from headgate.report.words import shorten
from headgate.runtime.progress import step as shown

if TYPE_CHECKING:
    from headgate.pipeline.dry_run.samples import CheckedRows
    from headgate.pipeline.file.model import Pipeline
    from headgate.pipeline.run.plan import Step

_EXAMPLES = 3


@dataclass(frozen=True)
class PlannedStep:
    """A step, and why it would be done; None if it would be passed over."""

    step: Step
    why: str | None


@dataclass(frozen=True)
class DryRun:
    """What a run would do."""

    pipeline: Pipeline
    steps: tuple[PlannedStep, ...]
    sizes: Sizes

    @property
    def as_json(self) -> dict[str, Any]:
        """Return it for machines."""
        sizes = self.sizes
        return {
            "pipeline": self.pipeline.about.name,
            "directory": str(self.pipeline.directory),
            "tables": {
                name: {
                    "path": judged.table.name,
                    "rows": judged.table.total,
                    "counted": judged.table.counted,
                    "bytes": judged.table.size,
                    "looked_at": judged.looked_at,
                    "refused": len(judged.reasons),
                    "reasons": judged.reasons[:_EXAMPLES],
                }
                for name, judged in sizes.tables.items()
                if judged is not None
            },
            "steps": [
                {
                    "name": each.step.name,
                    "status": "skip" if each.why is None else "run",
                    "why": each.why or "",
                    "inputs": dict(each.step.inputs),
                    "outputs": dict(each.step.outputs),
                }
                for each in self.steps
            ],
            "snapshot_bytes": sizes.snapshot,
            "driver_bytes": sizes.driver,
            "matches": {name: output._asdict() for name, output in (sizes.outputs or {}).items()},
            "note": sizes.note,
        }

    @property
    def lines(self) -> list[str]:
        """Return it for people."""
        return [
            f"pipeline {self.pipeline.about.name}: outputs go to {self.pipeline.directory}",
            *(line for name, judged in self.sizes.tables.items() for line in _table(name, judged)),
            *(line for number, each in enumerate(self.steps, 1) for line in self._step(number, each)),
            *self._ending(),
        ]

    def _step(self, number: int, planned: PlannedStep) -> list[str]:
        step = planned.step
        what = "done before, nothing has changed" if planned.why is None else f"to be done: {planned.why}"
        lines = [f"{number}. {step.name}: {what}"]
        lines += [f"     reads {role} {path}" for role, path in step.inputs.items()]
        lines += [f"     writes {role} {path}{self._size(step, role)}" for role, path in step.outputs.items()]
        return lines

    def _size(self, step: Step, role: str) -> str:
        sizes = self.sizes
        if step.kind == GENERATE and (judged := sizes.tables.get(role)) is not None:
            return f", {judged.table.total:,} rows, about {in_bytes(judged.table.size)}"
        if step.kind == COMPILE and role == "snapshot" and sizes.snapshot is not None:
            return f", about {in_bytes(sizes.snapshot)}"
        if step.kind == MATCH and role == "output" and sizes.outputs is not None:
            output = sizes.outputs[step.of]
            word = "at most" if output.at_most else "about"
            return f", {word} {rounded(output.matches):,} matches, {in_bytes(output.bytes)}"
        return ""

    def _ending(self) -> list[str]:
        sizes = self.sizes
        lines = []
        if sizes.snapshot is not None and sizes.driver is not None:
            short = " (more than it has)" if sizes.driver > memory() else ""
            lines.append(
                f"memory: about {in_bytes(sizes.driver)} on the driver to compile{short}, beside Python and "
                f"Java; about {in_bytes(sizes.snapshot)} on each machine to match, shared by its workers"
            )
        if sizes.note:
            lines.append(f"no sizes: {sizes.note}")
        if self.pipeline.stream is not None:
            address = without_secrets(self.pipeline.stream.events)
            lines.append(f"then a stream, of events that arrive at {address}")
        busy = sum(each.why is not None for each in self.steps)
        lines.append(f"{busy} of {len(self.steps)} steps would be done; nothing was written")
        return lines


def rehearse(
    pipeline: Pipeline, last: str | None = None, *, fresh: bool = False, quiet: bool = False
) -> DryRun:
    """Check a pipeline, and say what a run would do; refuses it with all that is wrong."""
    steps = until(steps_of(pipeline), last)
    fresh = fresh or not pipeline.directory.is_dir()
    state = RunState(pipeline.directory) if fresh else RunState.open(pipeline.directory)
    check(pipeline, ours=[str(pipeline.directory / name) for name in state.begun])
    with shown("reading the first rows", quiet=quiet):
        sizes = estimate(pipeline, _wanted(pipeline))
    return DryRun(pipeline, tuple(_planned(steps, state)), sizes)


def _wanted(pipeline: Pipeline) -> FilterSettings:
    """Return what is said of filters, with a taxonomy that is yet to be generated."""
    made = pipeline.generated("taxonomy")
    if made is None or pipeline.compile.taxonomy != (made,) or pipeline.generate is None:
        return wanted(pipeline)
    from headgate.rdf.events.reading import Reader
    from headgate.rdf.taxonomy.taxonomy import Taxonomy
    from headgate.workloads.catalogue import workload_of

    text = workload_of(pipeline.generate).taxonomy or ""
    graph = Reader(isolated=False).read(text.encode(), "application/n-triples")
    return FilterSettings(pipeline.dialect, taxonomy=Taxonomy.of(graph.statements()))


def _planned(steps: list[Step], state: RunState) -> list[PlannedStep]:
    """Find out which steps would be done: one whose inputs will be written anew is, too."""
    planned: list[PlannedStep] = []
    written: dict[str, str] = {}
    for step in steps:
        renewed = next((written[path] for path in step.inputs.values() if path in written), None)
        again = next((each.step.name for each in planned if each.why and each.step.name in step.needs), None)
        why = state.why_not_done(step)
        if why is None and (renewed or again):
            why = f"{renewed or again} is done before it"
        planned.append(PlannedStep(step, why))
        if why is not None:
            written |= dict.fromkeys(step.outputs.values(), step.name)
    return planned


def _table(name: str, judged: CheckedRows | None) -> list[str]:
    if judged is None:
        return [f"{name}: on another file system, which is not checked"]
    rows = judged.table
    count = f"{rows.total:,} rows" if rows.counted else f"about {rounded(rows.total):,} rows"
    about = "about " if rows.generated else ""
    made = "to be generated" if rows.generated else judged.table.name
    lines = [
        f"{name}: {count}, {about}{in_bytes(rows.size)}, {made}; of the first {judged.looked_at:,} "
        + (f"{len(judged.reasons):,} would be refused" if judged.reasons else "none would be refused")
    ]
    return lines + [f"     {shorten(reason, 100)}" for reason in judged.reasons[:_EXAMPLES]]


def in_bytes(size: float) -> str:
    """Write a size for people.

    >>> in_bytes(512), in_bytes(12_345_678), in_bytes(3_400_000_000)
    ('512 B', '12 MB', '3.4 GB')
    """
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= factor:
            number = size / factor
            return f"{number:.1f} {unit}" if number < 10 else f"{number:,.0f} {unit}"
    return f"{size:,.0f} B"


def rounded(count: int) -> int:
    """Keep two figures: an estimate has no more.

    >>> rounded(412_345), rounded(87)
    (410000, 87)
    """
    digits = len(str(count)) - 2
    return round(count, -digits) if digits > 0 else count
