"""The first rows of subscriptions and of a graph, compiled by the jobs that compile tables.

rows -> compiled, put together -> refused rows with their reasons
                               -> a snapshot of the others, whose size and matches say what a run will give
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headgate.contents.registry import kind_of
from headgate.jobs.compile import CompileTask, compile_table
from headgate.jobs.graph import compile_tables, is_ranked, read_tables
from headgate.local.runner import LocalRunner
from headgate.pipeline.dry_run.checked_rows import CheckedRows
from headgate.pipeline.dry_run.samples import ROWS, SampledTable, content_at_hand
from headgate.runtime.sharding import Sharding
from headgate.tables.filter_rows import REASON
from headgate.tables.graph.rows import EDGES, NODES, SUBSCRIPTIONS
from headgate.tables.graph.tables import ORDER, TABLE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headgate.contents.kind import FilterSettings
    from headgate.pipeline.dry_run.checked_rows import Source
    from headgate.pipeline.file.model import Pipeline

GRAPH_ROWS = 60_000
"""A graph with more nodes or edges than this is not read as a whole, and then it cannot be put together."""


class CompiledRows:
    """The first rows of a pipeline's tables of subscriptions, nodes and edges."""

    def __init__(self, pipeline: Pipeline, wanted: FilterSettings, sources: Mapping[str, Source]) -> None:
        self._kind = kind_of(content_at_hand(pipeline))
        self._wanted = replace(wanted, dialect=pipeline.dialect, sample=None)
        self._ranked = pipeline.compile.ranked
        self.graph = NODES in sources
        self._sources = sources
        self._read: dict[str, SampledTable] = {}
        self.elsewhere: list[str] = []
        """Tables that only Spark can look at."""
        for name in ORDER:
            if name in sources:
                rows = sources[name].read(ROWS if name == SUBSCRIPTIONS else GRAPH_ROWS)
                if rows is None:
                    self.elsewhere.append(name)
                else:
                    self._read[name] = SampledTable(sources[name].path, rows, sources[name].form)

    @property
    def whole(self) -> bool:
        """Tell whether all nodes and edges were read."""
        graph = [self._read[name] for name in (NODES, EDGES) if name in self._read]
        return not self.elsewhere and all(len(table.rows.rows) < GRAPH_ROWS for table in graph)

    def checked(self) -> dict[str, CheckedRows]:
        """Judge the rows as compiling would; of a graph that was not read as a whole, each row by itself."""
        if not self._read:
            return {}
        if self.graph and not self.whole:
            contents = self._kind.compiler(self._wanted, lambda path: path)
            ranked = is_ranked(self._read) if self._ranked is None else self._ranked
            read = read_tables(self._read, contents, self._wanted.dialect, ranked=ranked)
            reasons = {name: read[name].rows[REASON] for name in self._read}
            return {
                name: self._checked(name, each.null_count, each.drop_null().to_pylist())
                for name, each in reasons.items()
            }
        with tempfile.TemporaryDirectory(prefix="headgate-") as folder:
            usable, refused = self.save(Path(folder) / "snapshot")
        return {
            name: self._checked(name, count, [row[REASON] for row in refused if row.get(TABLE, name) == name])
            for name, count in usable.items()
            if name in self._read
        }

    def _checked(self, name: str, usable: int, refused: list[Any]) -> CheckedRows:
        """Say how many rows are usable, and why the others are not."""
        source, rows = self._sources[name], self._read[name].rows
        reasons = (*rows.unreadable, *refused)
        return CheckedRows(source.path, rows, usable, reasons, generated=source.made is not None)

    def save(self, place: Path, most: int | None = None) -> tuple[dict[str, int], list[dict[str, Any]]]:
        """Write a snapshot of what can be used, with `most` subscriptions of the table.

        Returns how many rows of each table that is, and those that were refused.
        """
        refused: list[dict[str, Any]] = []
        task = CompileTask(
            place,
            self._wanted,
            Sharding(1),
            lambda rows: refused.extend(rows.collect().to_pylist()),
            {},
            self._ranked,
        )
        tables = {
            name: replace(table, most=most) if name == SUBSCRIPTIONS else table
            for name, table in self._read.items()
        }
        runner = LocalRunner(quiet=True)
        if self.graph:
            return compile_tables(runner, tables, task).rows, refused
        return {SUBSCRIPTIONS: compile_table(runner, tables[SUBSCRIPTIONS], task).subscriptions}, refused
