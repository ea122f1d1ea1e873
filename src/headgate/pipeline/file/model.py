"""A pipeline: all that its file says, with every path where it leads to."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headgate.tables.places import is_remote, local

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headgate.pipeline.file import settings as given

DOCUMENTS = {"paper": "sparql", "stars": "sparql", "xmark": "xpath"}
"""The dialects of generated filters that look at documents."""
GRAPHS = ("exchange", "social")
"""Generated workloads that are graphs: nodes serve subscriptions by themselves, and there is no table."""


@dataclass(frozen=True)
class Pipeline:
    """What is to be done. Paths are those of the file, seen from where the command was given."""

    file: Path
    about: given.About
    spark: given.Spark
    generate: given.Generate | None
    subscriptions: given.Subscriptions | None
    graph: given.Graph | None
    shards: given.Shards
    compile: given.Compile
    events: given.Events | None
    matches: tuple[given.Match, ...]
    backtests: tuple[given.Backtest, ...]
    what_ifs: tuple[given.WhatIf, ...]
    plan: given.Plan | None
    report: given.Report
    metrics: given.Metrics | None
    stream: Mapping[str, Any] | None = None
    """What `[stream]` says, for the settings of streams."""

    @property
    def directory(self) -> Path:
        """Where outputs go."""
        return Path(self.about.directory)

    def generated(self, name: str) -> str | None:
        """Return the place of a table that `[generate]` makes, if it makes it."""
        if self.generate is None:
            return None
        graph = self.generate.workload in GRAPHS
        if name == "taxonomy":
            made = DOCUMENTS.get(self.generate.workload) == "sparql"
            return str(self.directory / "taxonomy.nt") if made else None
        if (name in {"nodes", "edges"}) != graph and name != "events":
            return None
        return str(self.directory / f"{name}.{self.generate.format}")

    @property
    def subscription_table(self) -> str | None:
        """Return the table of subscriptions, if there is one."""
        said = self.subscriptions.table if self.subscriptions else None
        return said or self.generated("subscriptions")

    @property
    def node_table(self) -> str | None:
        """Return the table of a graph's nodes, if there is one."""
        return (self.graph.nodes if self.graph else None) or self.generated("nodes")

    @property
    def edge_table(self) -> str | None:
        """Return the table of a graph's edges, if there is one."""
        return (self.graph.edges if self.graph else None) or self.generated("edges")

    @property
    def event_table(self) -> str | None:
        """Return the table of events, if there is one."""
        return (self.events.table if self.events else None) or self.generated("events")

    @property
    def said_dialect(self) -> str | None:
        """Return the dialect that the file names, or generates; None if the rows may say anything."""
        said = self.subscriptions.dialect if self.subscriptions else None
        made = self.generate and self.subscription_table == self.generated("subscriptions")
        return said or (DOCUMENTS.get(self.generate.workload, "sql") if made and self.generate else None)

    @property
    def dialect(self) -> str:
        """Return the dialect of filters whose rows name none."""
        return self.said_dialect or "sql"

    @property
    def taxonomy(self) -> tuple[str, ...]:
        """List the files of the taxonomy."""
        said = self.subscriptions.taxonomy if self.subscriptions else None
        made = self.generated("taxonomy")
        return said if said is not None else (made,) if made else ()

    @property
    def ranked(self) -> bool | None:
        """Tell whether subscriptions are to be ranked; None if their table says it."""
        return self.subscriptions.ranked if self.subscriptions else None


def beside(path: str, word: str, folder: Path) -> str:
    """Name the rejected table after an output: out/snapshot -> out/snapshot-rejected.jsonl.

    That of an output on another file system is in a folder on this machine: it is one file, and those are
    written here only.

    >>> beside("out/matches.parquet", "rejected", Path("jobs"))
    'out/matches-rejected.jsonl'
    >>> beside("hdfs:///data/matches.parquet", "rejected", Path("jobs"))
    'jobs/matches-rejected.jsonl'
    """
    place = local(path.rstrip("/"))
    name = f"{place.stem if place.suffix else place.name}-{word}.jsonl"
    return str(folder / name if is_remote(path) else place.with_name(name))
