"""Results of a benchmark: a table for people, JSON for machines, Markdown for docs/benchmarks."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING

from headgate.core.machine import cores, memory

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Result:
    """One figure, and the figure of the same run that it is held against."""

    name: str
    value: float
    unit: str
    baseline: float | None = None
    """The same quantity by the slower way that `versus` names."""
    versus: str = ""
    goal: float | None = None
    """Not to be exceeded; with `at_least`, to be reached."""
    at_least: bool = False
    section: str = ""
    """The heading that the figure stands under."""
    column: str = ""
    """In a section where results have one, `name` is the row, and each row holds several figures."""

    @property
    def met(self) -> bool | None:
        """Tell whether the goal was reached; None without one."""
        if self.goal is None:
            return None
        return self.value >= self.goal if self.at_least else self.value <= self.goal

    @property
    def verdict(self) -> str:
        """Say what the goal is and whether it was reached."""
        if self.goal is None:
            return ""
        bound = "at least" if self.at_least else "at most"
        return f"{bound} {_short(self.goal)}: {'met' if self.met else 'not met'}"


_PACKAGES = ("headgate", "numba", "numpy", "pyarrow", "pyoxigraph", "pyspark", "sqlglot")


def machine() -> dict[str, object]:
    """Describe where and on what a benchmark ran."""
    return {
        "cores": cores(),
        "memory_gib": round(memory() / 2**30, 1),
        "load": [round(load, 1) for load in os.getloadavg()],
        "python": platform.python_version(),
        **{name: version(name) for name in _PACKAGES},
    }


def as_table(results: list[Result]) -> str:
    """Write the results as Markdown tables, which people can read too: one for each section."""
    sections: dict[str, list[Result]] = {}
    for result in results:
        sections.setdefault(result.section, []).append(result)
    return "\n\n".join(
        (f"## {section}\n\n" if section else "") + (_grid(found) if found[0].column else _rows(found))
        for section, found in sections.items()
    )


def _rows(results: list[Result]) -> str:
    lines = ["| what | figure | baseline in the same run | ratio | goal |", "|---|---|---|---|---|"]
    for result in results:
        baseline = ratio = ""
        if result.baseline is not None:
            baseline = f"{_short(result.baseline)} {result.unit} ({result.versus})"
            ratio = f"{_short(result.baseline / result.value)} times" if result.value else ""
        figure = f"{_short(result.value)} {result.unit}"
        lines.append(f"| {result.name} | {figure} | {baseline} | {ratio} | {result.verdict} |")
    return "\n".join(lines)


def _grid(results: list[Result]) -> str:
    """Write a row for each name and a column for each kind of figure."""
    columns = list(dict.fromkeys(result.column for result in results))
    rows: dict[str, dict[str, str]] = {}
    for result in results:
        verdict = f" ({result.verdict})" if result.verdict else ""
        rows.setdefault(result.name, {})[result.column] = _short(result.value) + verdict
    lines = [f"| | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
    for name, row in rows.items():
        lines.append(f"| {name} | {' | '.join(row.get(column, '') for column in columns)} |")
    return "\n".join(lines)


def write_json(results: list[Result], path: Path) -> None:
    """Write the results and the machine."""
    rows = [{**asdict(result), "met": result.met} for result in results]
    path.write_text(json.dumps({"machine": machine(), "results": rows}, indent=1) + "\n", "utf-8")


def write_markdown(area: str, size: str, results: list[Result], path: Path) -> None:
    """Write the page of docs/benchmarks that shows this run."""
    facts = ", ".join(f"{name} {value}" for name, value in machine().items())
    command = f"python -m benchmarks {area} --size {size} --markdown {path.as_posix()}"
    text = f"# Benchmark: {area}\n\n{as_table(results)}\n\nMachine: {facts}.\n\nPrinted by `{command}`.\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


def _short(value: float) -> str:
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"
