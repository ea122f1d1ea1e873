"""Jobs in this process: rows go through the functions that workers of Spark run, one batch after the other.

What Spark might read in another way than we do is `UnsureError`, and left to Spark.
"""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.core.event import ID
from headgate.core.machine import memory
from headgate.local.events import read_columns, read_documents
from headgate.runtime.progress import step
from headgate.tables.change_set import changing
from headgate.tables.event_rows import REASON, ROW
from headgate.tables.lines import LINES, TOGETHER, column_names, read_lines
from headgate.tables.places import Format, check_input
from headgate.tables.writing import writing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from contextlib import AbstractContextManager

    from headgate.jobs.match import MatchTask
    from headgate.jobs.runner import Batches, Work
    from headgate.local.match import LocalMatching
    from headgate.runtime.progress import Timing
    from headgate.tables.change_set import ChangeSet

_Value = TypeVar("_Value")
# The overloads of Arrow's functions are about types that are known before; these are not.
_compute: Any = pc
REFUSED = pa.schema({ROW: pa.string(), REASON: pa.string()})
SHARE = 4
"""A snapshot may take one part in so many of the memory."""


@dataclass(frozen=True)
class LocalRows:
    """Rows in this process."""

    schema: pa.Schema
    parts: Callable[[], Iterable[Batches]]

    def map(self, work: Work, schema: pa.Schema, *, numbered: bool = False) -> LocalRows:
        """Go through each part."""

        def parts() -> Iterator[Batches]:
            for number, part in enumerate(self.parts()):
                yield work(iter(part), part=number) if numbered else work(iter(part))

        return LocalRows(schema, parts)

    def _each(self, change: Callable[[pa.RecordBatch], pa.RecordBatch], schema: pa.Schema) -> LocalRows:
        return self.map(lambda batches: map(change, batches), schema)

    def select(self, *columns: str) -> LocalRows:
        """Return some columns."""
        schema = pa.schema([self.schema.field(name) for name in columns])
        return self._each(lambda batch: batch.select(list(columns)), schema)

    def having(self, column: str) -> LocalRows:
        """Return the rows whose column is not NULL."""
        return self._each(lambda batch: batch.filter(batch[column].is_valid()), self.schema)

    def lacking(self, column: str) -> LocalRows:
        """Return the rows whose column is NULL."""
        return self._each(lambda batch: batch.filter(batch[column].is_null()), self.schema)

    def then(self, others: LocalRows) -> LocalRows:
        """Return these rows, and others after them."""
        return LocalRows(self.schema, lambda: [*self.parts(), *others.parts()])

    def sorted(self, *columns: str) -> LocalRows:
        """Sort all rows."""
        return LocalRows(self.schema, lambda: [_batches(_sorted(self.collect(), columns))])

    def parted(self, column: str, count: int, *order: str) -> LocalRows:
        """Have the rows of number n in part n, in an order."""

        def parts() -> Iterator[Batches]:
            table = _sorted(self.collect(), order)
            for number in range(count):
                yield _batches(table.filter(_compute.equal(table[column], number)))

        return LocalRows(self.schema, parts)

    def firsts(self, column: str, *order: str) -> tuple[LocalRows, LocalRows]:
        """Tell the first of the rows with one value from the others."""
        table = self.collect()
        by_value = _compute.sort_indices(table, [(name, "ascending") for name in (column, *order)])
        values = table[column].take(by_value).combine_chunks()
        first = np.ones(len(values), np.bool_)
        first[1:] = _compute.not_equal(values[1:], values[:-1]).to_numpy(zero_copy_only=False)
        places = by_value.to_numpy()
        one, other = (table.take(np.sort(places[each])) for each in (first, ~first))
        return _rows(one), _rows(other)

    def counted(self, column: str) -> LocalRows:
        """Count the rows of each value."""
        schema = pa.schema([self.schema.field(column), pa.field("count", pa.int64())])

        def parts() -> Iterator[Batches]:
            counts = Counter(
                each for part in self.parts() for batch in part for each in batch[column].to_pylist()
            )
            columns = [list(counts), list(counts.values())]
            yield _batches(pa.table(columns, schema=schema))

        return LocalRows(schema, parts)

    def summed(self, column: str, *sums: str) -> LocalRows:
        """Sum up columns of the rows of each value."""
        totals = self.collect().group_by(column).aggregate([(name, "sum") for name in sums])
        return _rows(
            totals.select([column, *(f"{name}_sum" for name in sums)]).rename_columns([column, *sums])
        )

    def count(self) -> int:
        """Count all rows."""
        return sum(batch.num_rows for part in self.parts() for batch in part)

    def head(self, count: int) -> pa.Table:
        """Return the first rows."""
        found: list[pa.RecordBatch] = []
        for part in self.parts():
            for batch in part:
                found.append(batch.slice(0, count))
                count -= found[-1].num_rows
                if not count:
                    return pa.Table.from_batches(found, self.schema)
        return pa.Table.from_batches(found, self.schema)

    def collect(self) -> pa.Table:
        """Return all rows."""
        return pa.Table.from_batches([batch for part in self.parts() for batch in part], self.schema)

    @contextmanager
    def kept(self) -> Iterator[LocalRows]:
        """Compute them once."""
        parts = [list(part) for part in self.parts()]
        yield LocalRows(self.schema, lambda: parts)

    def write(self, path: str) -> None:
        """Write a table."""
        with writing(path, self.schema) as write:
            for part in self.parts():
                for batch in part:
                    write(batch)


def _rows(table: pa.Table) -> LocalRows:
    return LocalRows(table.schema, lambda: [_batches(table)])


def _batches(table: pa.Table) -> list[pa.RecordBatch]:
    return table.combine_chunks().to_batches(TOGETHER)


def _sorted(table: pa.Table, columns: tuple[str, ...]) -> pa.Table:
    down = {name: name.startswith("-") for name in columns}
    return table.sort_by(
        [(name[1:], "descending") if down[name] else (name, "ascending") for name in columns]
    )


@dataclass(frozen=True)
class LocalTable:
    """A table in files of this machine."""

    name: str
    """Its path."""

    @property
    def form(self) -> Format:
        """Return the format of the files."""
        return check_input(self.name)

    def columns(self) -> list[str] | None:
        """List its columns; None for JSON lines."""
        return None if self.form is Format.JSONL else column_names(self.name)

    def lines(self, *required: str, even: bool = False) -> LocalRows:
        """Read it as one JSON object a row."""
        del even
        return LocalRows(LINES, lambda: [read_lines(self.name, *required)])

    def typed(self) -> LocalRows:
        """Read the columns of CSV or Parquet with their types."""
        return _rows(read_columns(self.name))


@dataclass(frozen=True)
class _Here(Generic[_Value]):
    value: _Value


class LocalDocuments(NamedTuple):
    """Documents that were read."""

    events: LocalRows
    refused: LocalRows


@dataclass(frozen=True)
class LocalRunner:
    """This process."""

    quiet: bool = False
    apart: bool = False
    parts: int = 1

    @property
    def memory(self) -> int:
        """Return how many bytes of snapshots there should be in memory at once."""
        return memory() // SHARE

    @property
    def building_memory(self) -> int:
        """Return how many bytes a shard may take to be built."""
        return memory() // 2

    @contextmanager
    def working(self) -> Iterator[LocalRunner]:
        """Yield the runner: nothing has to be set."""
        yield self

    def step(
        self, title: str, *, rows: int | None = None, noun: str = "rows"
    ) -> AbstractContextManager[Timing]:
        """Show that the body is running."""
        del rows, noun
        return step(title, quiet=self.quiet)

    def table(self, path: str) -> LocalTable:
        """Return a table in files."""
        return LocalTable(path)

    @contextmanager
    def documents(self, path: str, content: str, content_type: str | None) -> Iterator[LocalDocuments]:
        """Read documents."""
        read = read_documents(path, content, content_type, None)
        refused = pa.Table.from_pylist([{ROW: row, REASON: reason} for row, reason in read.refused], REFUSED)
        schema = read.documents[0].schema if read.documents else pa.schema([])
        yield LocalDocuments(LocalRows(schema, lambda: [read.documents]), _rows(refused))

    def rows(self, table: pa.Table) -> LocalRows:
        """Return the rows of a table in memory."""
        return _rows(table)

    def numbers(self, count: int, parts: int | None = None) -> LocalRows:
        """Return the numbers from 0 on; in one part, unless it is said."""
        schema = pa.schema({ID: pa.int64()})
        ends = np.linspace(0, count, (parts or 1) + 1).astype(np.int64).tolist()

        def batches(begin: int, end: int) -> Iterator[pa.RecordBatch]:
            for first in range(begin, end, TOGETHER):
                numbers = np.arange(first, min(end, first + TOGETHER), dtype=np.int64)
                yield pa.record_batch([pa.array(numbers)], schema=schema)

        return LocalRows(schema, lambda: [batches(*each) for each in pairwise(ends)])

    @contextmanager
    def shared(self, value: _Value) -> Iterator[_Here[_Value]]:
        """Give work a value."""
        yield _Here(value)

    def changing(self, paths: Iterable[str | None]) -> AbstractContextManager[ChangeSet]:
        """Have tables that are written take their places together after the block."""
        return changing(paths)

    @contextmanager
    def matching(self, asked: MatchTask) -> Iterator[LocalMatching]:
        """Yield what the match job does here."""
        from headgate.local.match import LocalMatching, whole

        yield LocalMatching(asked, whole(asked.target, self.memory), self.memory)
