"""The first rows of subscriptions and of a graph, compiled as the jobs do it.

rows -> compiled, put together -> refused rows with their reasons
                               -> a snapshot of the others, whose size and matches say what a run will give
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headgate.contents.registry import kind_of
from headgate.pipeline.dry_run.checked_rows import CheckedRows
from headgate.pipeline.dry_run.samples import ROWS, content_at_hand
from headgate.runtime.rows import RANKS, WEIGHTS
from headgate.tables.accepted import number_rows, save_index
from headgate.tables.filter_rows import COMPILED, COMPILED_RANKED, REASON, compile_batches
from headgate.tables.graph.rows import EDGES, NODES, SHAPES, SUBSCRIPTIONS, compile_rows
from headgate.tables.graph.tables import ORDER, TABLE, GraphWriter, ReadTable, assemble
from headgate.tables.places import Format, format_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from headgate.contents.kind import FilterSettings
    from headgate.contents.protocol import Contents
    from headgate.pipeline.dry_run.checked_rows import Source
    from headgate.pipeline.dry_run.samples import Rows
    from headgate.pipeline.file.model import Pipeline
    from headgate.tables.graph.tables import AssembledGraph

GRAPH_ROWS = 60_000
"""A graph with more nodes or edges than this is not read as a whole, and then it cannot be put together."""


@dataclass(frozen=True)
class SampledTable:
    """The first rows of a table, and where they come from."""

    source: Source
    rows: Rows

    @property
    def form(self) -> Format:
        """Return the format; rows that are generated have the types of JSON."""
        return Format.JSONL if self.source.made is not None else format_of(self.source.path)

    def checked(self, usable: int, refused: list[Any]) -> CheckedRows:
        """Say how many rows are usable, and why the others are not."""
        reasons = (*self.rows.unreadable, *refused)
        return CheckedRows(
            self.source.path, self.rows, usable, reasons, generated=self.source.made is not None
        )


class CompiledRows:
    """The first rows of a pipeline's tables of subscriptions, nodes and edges."""

    def __init__(self, pipeline: Pipeline, wanted: FilterSettings, sources: Mapping[str, Source]) -> None:
        self._dialect = pipeline.dialect
        self._kind = kind_of(content_at_hand(pipeline))
        self._wanted = replace(wanted, sample=None)
        self.graph = NODES in sources
        self._read: dict[str, SampledTable] = {}
        self.elsewhere: list[str] = []
        """Tables that only Spark can look at."""
        for name in ORDER:
            if name in sources:
                rows = sources[name].read(ROWS if name == SUBSCRIPTIONS else GRAPH_ROWS)
                if rows is None:
                    self.elsewhere.append(name)
                else:
                    self._read[name] = SampledTable(sources[name], rows)
        ranked, hung = pipeline.compile.ranked, self._read.get(SUBSCRIPTIONS)
        if ranked is None:
            ranked = hung is not None and hung.rows.has((WEIGHTS,) if self.graph else RANKS)
        self._ranked = ranked

    @property
    def whole(self) -> bool:
        """Tell whether all nodes and edges were read."""
        graph = [self._read[name] for name in (NODES, EDGES) if name in self._read]
        return not self.elsewhere and all(len(table.rows.rows) < GRAPH_ROWS for table in graph)

    @cached_property
    def _contents(self) -> Contents:
        return self._kind.compiler(self._wanted, lambda path: path)

    def checked(self) -> dict[str, CheckedRows]:
        """Judge the rows as compiling would; of a graph that was not read as a whole, each row by itself."""
        if not self.graph:
            table = self._read.get(SUBSCRIPTIONS)
            if table is None:
                return {}
            numbered = number_rows(self._compiled(), table.form)
            return {SUBSCRIPTIONS: table.checked(len(numbered.ids), numbered.refused[REASON].to_pylist())}
        if not self.whole:
            return {name: self._one_by_one(name) for name in self._read}
        assembled = self._assembled()
        told = assembled.rejected.select([TABLE, REASON]).to_pylist()
        return {
            name: table.checked(assembled.accepted[name], [row[REASON] for row in told if row[TABLE] == name])
            for name, table in self._read.items()
        }

    def _one_by_one(self, name: str) -> CheckedRows:
        reasons = self._graph_rows(name)[REASON]
        return self._read[name].checked(reasons.null_count, reasons.drop_null().to_pylist())

    def save(self, place: Path, most: int | None = None) -> None:
        """Write a snapshot of what can be used, with `most` subscriptions of the table."""
        if self.graph:
            assembled = self._assembled(most)
            GraphWriter(assembled, self._contents).save(assembled.parts, place)
            return
        compiled = self._compiled(most)
        form = self._read[SUBSCRIPTIONS].form
        save_index(compiled, number_rows(compiled, form), self._contents, place, ranked=self._ranked)

    def _compiled(self, most: int | None = None) -> pa.Table:
        lines = self._read[SUBSCRIPTIONS].rows.lines(most)
        batches = compile_batches(lines, self._contents.writers, dialect=self._dialect, ranked=self._ranked)
        return pa.Table.from_batches(batches, COMPILED_RANKED if self._ranked else COMPILED)

    def _assembled(self, most: int | None = None) -> AssembledGraph:
        read = {name: self._graph_table(name, most if name == SUBSCRIPTIONS else None) for name in ORDER}
        return assemble(read, self._contents)

    def _graph_table(self, name: str, most: int | None) -> ReadTable:
        table = self._read.get(name)
        return ReadTable(self._graph_rows(name, most), Format.JSONL if table is None else table.form)

    def _graph_rows(self, name: str, most: int | None = None) -> pa.Table:
        ranked = self._ranked and name == SUBSCRIPTIONS
        made = SHAPES[name].ranked_schema if ranked else SHAPES[name].schema
        if name not in self._read:
            return made.empty_table()
        lines = self._read[name].rows.lines(most)
        writers = self._contents.writers
        batches = compile_rows(lines, name, writers, dialect=self._dialect, ranked=ranked)
        return pa.Table.from_batches(batches, made)
