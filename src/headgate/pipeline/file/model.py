"""A pipeline: all that its file says, with every path where it leads to."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from headgate.core.subscription import SQL
from headgate.workloads.settings import GRAPHS

if TYPE_CHECKING:
    from headgate.pipeline.file import settings as given
    from headgate.plan.settings import Plan
    from headgate.stream.settings import StreamSettings
    from headgate.tables.settings import Compile, Where
    from headgate.workloads.settings import Generate

DOCUMENTS = {"paper": "sparql", "stars": "sparql", "xmark": "xpath"}
"""The dialects of generated filters that look at documents."""


@dataclass(frozen=True)
class Pipeline:
    """What is to be done: the request of each job. Paths are seen from where the command was given."""

    file: Path
    about: given.About
    spark: Where
    generate: Generate | None
    compile: Compile
    events: str | None
    """The table of events, or their files."""
    format: str | None
    """What documents are written in that do not say so."""
    matches: tuple[given.Match, ...]
    backtests: tuple[given.Backtest, ...]
    what_ifs: tuple[given.WhatIf, ...]
    plan: Plan | None
    report: given.Report
    metrics: given.Metrics | None
    stream: StreamSettings | None = None

    @property
    def directory(self) -> Path:
        """Where outputs go."""
        return Path(self.about.directory)

    def generated(self, name: str) -> str | None:
        """Return the place of a table that `[generate]` makes, if it makes it."""
        return generated(self.generate, self.directory, name)

    @property
    def dialect(self) -> str:
        """Return the dialect of filters whose rows name none."""
        return self.compile.dialect or SQL


def generated(generate: Generate | None, directory: Path, name: str) -> str | None:
    """Return the place of a table that is generated, if it is."""
    if generate is None:
        return None
    if name == "taxonomy":
        return str(directory / "taxonomy.nt") if DOCUMENTS.get(generate.workload) == "sparql" else None
    if (name in {"nodes", "edges"}) != (generate.workload in GRAPHS) and name != "events":
        return None
    return str(directory / f"{name}.{generate.format}")
