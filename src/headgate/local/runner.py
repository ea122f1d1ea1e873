"""Jobs in this process: rows go through the functions that workers of Spark run, one batch after the other.

What Spark might read in another way than we do is `UnsureError`, and left to Spark.
"""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.core.event import ID, Event, read_object
from headgate.core.machine import memory
from headgate.errors import EventError
from headgate.local.events import json_lines_of, read_columns, read_documents, read_events, record_columns
from headgate.local.json_columns import columns_of
from headgate.runtime.progress import step
from headgate.tables.change_set import changing
from headgate.tables.comparing import attribute_paths
from headgate.tables.event_rows import REASON, ROW, read_event
from headgate.tables.lines import LINES, TOGETHER, VALUE, column_names, read_lines
from headgate.tables.places import Format, UnsureError, check_input, check_output
from headgate.tables.writing import writing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from contextlib import AbstractContextManager

    from headgate.backtest.difference import Differ
    from headgate.contents.kind import Feeds
    from headgate.core.values import Path
    from headgate.jobs.match import MatchTask
    from headgate.jobs.runner import Batches, Work
    from headgate.local.events import EventTable
    from headgate.local.match import LocalMatching
    from headgate.records.language.model import Expression
    from headgate.runtime.progress import Timing
    from headgate.runtime.targets import Sources, Target
    from headgate.tables.change_set import ChangeSet

_Value = TypeVar("_Value")
# The overloads of Arrow's functions are about types that are known before; these are not.
_compute: Any = pc
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

    def filtered(self, work: Work) -> LocalRows:
        """Leave out some rows of each part."""
        return self.map(work, self.schema)

    def parsed(self, title: str) -> LocalRows:
        """Return lines of JSON as columns, with the types that Spark infers."""
        given: list[Any] = self.collect()[VALUE].to_pylist()
        table = columns_of([read_object(line) for line in given], title)
        # Without any there is nothing to infer from.
        return rows_of(table if table.column_names else pa.table({ID: pa.array([], pa.string())}))

    def where(self, sql: str, tree: Expression, title: str) -> LocalRows:
        """Return the rows for which a filter holds; what Spark may see otherwise is left to it."""
        from headgate.local.records import where

        return rows_of(where(self.collect(), sql, tree, title))

    @property
    def names(self) -> list[str]:
        """List the columns."""
        return self.schema.names

    def attributes(self, mark: str = "") -> list[Path]:
        """List the columns by path, nested ones included."""
        return list(attribute_paths(self.schema, mark))

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

    def gathered(self, *columns: str) -> LocalRows:
        """Have all rows in one part."""
        del columns
        return LocalRows(self.schema, lambda: [chain.from_iterable(self.parts())])

    def firsts(self, column: str, *order: str) -> tuple[LocalRows, LocalRows]:
        """Tell the first of the rows with one value from the others."""
        table = self.collect()
        by_value = _compute.sort_indices(table, [(name, "ascending") for name in (column, *order)])
        values = table[column].take(by_value).combine_chunks()
        first = np.ones(len(values), np.bool_)
        first[1:] = _compute.not_equal(values[1:], values[:-1]).to_numpy(zero_copy_only=False)
        places = by_value.to_numpy()
        one, other = (table.take(np.sort(places[each])) for each in (first, ~first))
        return rows_of(one), rows_of(other)

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
        _check_writable(self.schema, path)
        with writing(path, self.schema) as write:
            for part in self.parts():
                for batch in part:
                    write(batch)


def _check_writable(schema: pa.Schema, path: str) -> None:
    """Leave columns to Spark that are written in several ways; CSV has no nested ones at all."""
    form = check_output(path)
    for field in schema:
        kind = field.type
        nested = isinstance(kind, pa.StructType | pa.ListType | pa.MapType)
        if (nested and form is Format.CSV) or pa.types.is_timestamp(kind) or isinstance(kind, pa.MapType):
            raise UnsureError(f"{path}: column {field.name} is {kind}")


def rows_of(table: pa.Table) -> LocalRows:
    return LocalRows(table.schema, lambda: [_batches(table)])


def _batches(table: pa.Table) -> list[pa.RecordBatch]:
    return table.combine_chunks().to_batches(TOGETHER)


def _sorted(table: pa.Table, columns: tuple[str, ...]) -> pa.Table:
    return table.sort_by([(name, "ascending") for name in columns])


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
        return rows_of(read_columns(self.name))


@dataclass(frozen=True)
class LocalRecords:
    """Records of a table, with all that they have."""

    rows: LocalRows
    count: int
    rejected: int

    @classmethod
    def read(cls, path: str, mark: str) -> LocalRecords:
        """Read a table; `mark` says what names mean."""
        form = check_input(path)
        if form is not Format.JSONL:
            table, rejected = record_columns(path, form)
            return cls(rows_of(table), table.num_rows, rejected)
        read = [(line, read_event(line, mark)) for line in json_lines_of(path)]
        good = [line for line, event in read if isinstance(event, Event)]
        rejected = sum(isinstance(event, EventError) for _, event in read)
        return cls(rows_of(pa.table({VALUE: pa.array(good, pa.binary())})), len(good), rejected)

    def forget(self) -> None:
        """Leave them to the end of the job."""


@dataclass(frozen=True)
class LocalPast:
    """Events that were read, and how they are compared."""

    table: EventTable

    @property
    def form(self) -> str:
        """Return in which form of `reading` they come."""
        return self.table.form

    @property
    def count(self) -> int:
        """Count them."""
        return self.table.count

    @property
    def rejected(self) -> int:
        """Count the rows that are none."""
        return len(self.table.refused)

    @property
    def id_type(self) -> str:
        """Return the type of their ids."""
        return self.table.id_type

    @property
    def feeds(self) -> Feeds | None:
        """Return what was read of RSS feeds, if there were any."""
        return self.table.feeds

    @property
    def refused(self) -> LocalRows:
        """List the rows that are none."""
        names = (ROW, REASON)
        rows = [dict(zip(names, each, strict=True)) for each in self.table.refused]
        return rows_of(pa.Table.from_pylist(rows, pa.schema(dict.fromkeys(names, pa.string()))))

    @property
    def rows(self) -> LocalRows:
        """Return documents as they were read."""
        return rows_of(pa.Table.from_batches(self.table.documents))

    def compared(self, differ: Differ) -> LocalRows:
        """Compare them."""
        return LocalRows(differ.schema, lambda: [differ.of_events(self.table.rows)])

    def forget(self) -> None:
        """Leave them to the end of the job."""


@dataclass(frozen=True)
class _Here(Generic[_Value]):
    value: _Value


@dataclass(frozen=True)
class LocalRunner:
    """This process."""

    quiet: bool = False
    apart: bool = False

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

    def rows(self, table: pa.Table) -> LocalRows:
        """Return the rows of a table in memory."""
        return rows_of(table)

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

    def records(self, path: str, mark: str) -> LocalRecords:
        """Read a table of records."""
        return LocalRecords.read(path, mark)

    def documents(self, path: str, content: str, content_type: str | None, *, keep: bool) -> LocalPast:
        """Read documents."""
        return LocalPast(read_documents(path, content, content_type, None, keep=keep))

    def past(self, path: str, target: Target, sources: Sources | None, content_type: str | None) -> LocalPast:
        """Read a table of events, or a folder of documents."""
        return LocalPast(read_events(path, target, sources, content_type))
