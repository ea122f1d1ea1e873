"""A pipeline: all that its file says, with every path where it leads to; or what is wrong with the file."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headgate.brokers.nats.settings import shown
from headgate.core.subscription import SQL
from headgate.errors import HeadgateError
from headgate.workloads.settings import GRAPHS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from headgate.core.settings import Problem
    from headgate.pipeline.file import settings as given
    from headgate.plan.settings import Plan
    from headgate.stream.settings import StreamSettings
    from headgate.tables.settings import Compile, Where
    from headgate.workloads.settings import Generate


_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s'\"]+")
_BROKERS = ("nats://", "kafka://")
"""Their addresses may have secrets among their settings, too."""


def without_secrets(text: str) -> str:
    """Return a text whose addresses name no users and passwords.

    >>> without_secrets("no answer from nats://ann:secret@host/EVENTS?token=secret")
    'no answer from nats://host/EVENTS'
    >>> without_secrets("url = 'http://host/?page=2'")
    "url = 'http://host/?page=2'"
    """
    return _ADDRESS.sub(lambda found: _shown(found[0]), text)


def _shown(address: str) -> str:
    return shown(address) if "@" in address or address.startswith(_BROKERS) else address


class PipelineError(HeadgateError):
    """Refuse a pipeline, with all that is wrong about it."""

    def __init__(self, file: str, problems: Sequence[Problem]) -> None:
        self.file = file
        self.problems = tuple(problems)
        first, *rest = self.lines
        more = f" (and {len(rest)} more)" if rest else ""
        super().__init__(first + more)

    @property
    def lines(self) -> list[str]:
        """List what is wrong, one line each."""
        return [
            " ".join(f"{self.file}: {without_secrets(problem.text)}".split()) for problem in self.problems
        ]


def read_overrides(entries: Mapping[str, str]) -> dict[str, Any]:
    """Read values by `table.key`; they are written as in the file, and text needs no quotes.

    >>> read_overrides({"match.top": "20", "events.table": "a b.csv", "subscriptions.ranked": "true"})
    {'match.top': 20, 'events.table': 'a b.csv', 'subscriptions.ranked': True}
    """
    values: dict[str, Any] = {}
    for name, text in entries.items():
        try:
            values[name] = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            values[name] = text
    return values


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
