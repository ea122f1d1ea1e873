"""How long the suite takes, by file and by fixture.

    HEADGATE_DURATIONS=times ./dev test        each process writes what it measured into the directory `times`
    python -m tests.durations times            prints the tables of docs/benchmarks/suite.md

CPU seconds are those of the test's process and of processes that it started and that have ended; a shared
Spark is not among them.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

SHOWN = 40


def cpu() -> float:
    """Return the CPU seconds of this process and of those that it has waited for."""
    used = (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


class Recorder:
    """A plugin of pytest that measures."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[str, list[float]] = defaultdict(lambda: [0, 0.0, 0.0])
        self._fixtures: dict[str, list[float]] = defaultdict(lambda: [0, 0.0, 0.0])

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Measure a test with what it sets up."""
        with self._measured(self._files, item.nodeid.partition("::")[0]):
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
    ) -> Generator[None, Any, Any]:
        """Measure a fixture with those that it asks for."""
        name = f"{request.node.nodeid.partition('::')[0] or fixturedef.baseid}::{fixturedef.argname}"
        with self._measured(self._fixtures, name):
            return (yield)

    def pytest_sessionfinish(self) -> None:
        """Write what was measured."""
        self._folder.mkdir(parents=True, exist_ok=True)
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        content = {"files": self._files, "fixtures": self._fixtures, "megabytes": most}
        (self._folder / f"{os.getpid()}.json").write_text(json.dumps(content), "utf-8")

    def _measured(self, table: dict[str, list[float]], name: str) -> _Measured:
        return _Measured(table[name])


class _Measured:
    """Adds a count, wall and CPU seconds to a row."""

    def __init__(self, row: list[float]) -> None:
        self._row = row

    def __enter__(self) -> None:
        self._wall, self._cpu = time.monotonic(), cpu()

    def __exit__(self, *_: object) -> None:
        self._row[0] += 1
        self._row[1] += time.monotonic() - self._wall
        self._row[2] += cpu() - self._cpu


def tables(folder: Path) -> Iterator[str]:
    """Write the tables of a run as Markdown."""
    runs = [json.loads(file.read_text("utf-8")) for file in sorted(folder.glob("*.json"))]
    for kind, most in (("files", SHOWN), ("fixtures", 15)):
        rows: dict[str, list[float]] = defaultdict(lambda: [0, 0.0, 0.0])
        for run in runs:
            for name, row in run[kind].items():
                rows[name] = [old + new for old, new in zip(rows[name], row, strict=True)]
        ordered = sorted(rows.items(), key=lambda entry: -entry[1][1])
        rest = [sum(row[column] for _, row in ordered[most:]) for column in range(3)]
        yield f"| {kind[:-1]} | {'tests' if kind == 'files' else 'times'} | wall s | CPU s |"
        yield "|---|---|---|---|"
        for name, (count, wall, used) in ordered[:most]:
            yield f"| `{name}` | {count:.0f} | {wall:.1f} | {used:.1f} |"
        if kind == "files":
            total = [sum(row[column] for _, row in ordered) for column in range(3)]
            others = f"{max(0, len(ordered) - most)} other files"
            yield f"| {others} | {rest[0]:.0f} | {rest[1]:.1f} | {rest[2]:.1f} |"
            yield f"| **all** | {total[0]:.0f} | {total[1]:.1f} | {total[2]:.1f} |"
        yield ""
    yield f"Largest process: {max(run['megabytes'] for run in runs):,.0f} MB."


if __name__ == "__main__":
    print("\n".join(tables(Path(sys.argv[1]))))
