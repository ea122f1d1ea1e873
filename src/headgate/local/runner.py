"""Jobs in this process: rows go through the functions that workers of Spark run, one batch after the other.

What Spark might read in another way than we do is `UnsureError`, and left to Spark.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np
import pyarrow as pa

from headgate.core.event import ID
from headgate.core.machine import memory
from headgate.local.events import documents, read_columns, read_events, read_records
from headgate.local.rows import LocalRows, rows_of
from headgate.runtime.progress import step
from headgate.tables.change_set import changing
from headgate.tables.lines import LINES, TOGETHER, column_names, read_lines
from headgate.tables.places import Format, check_input

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from contextlib import AbstractContextManager

    from headgate.contents.kind import Kind
    from headgate.jobs.events import EventTable
    from headgate.jobs.match import MatchTask
    from headgate.local.events import LocalEvents
    from headgate.local.match import LocalMatching
    from headgate.runtime.progress import Timing
    from headgate.runtime.targets import Sources, Target
    from headgate.tables.change_set import ChangeSet

_Value = TypeVar("_Value")
SHARE = 4
"""A snapshot may take one part in so many of the memory."""


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
class _Here(Generic[_Value]):
    value: _Value


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

        yield LocalMatching(self, asked, whole(asked.target, self.memory))

    def records(self, path: str, mark: str) -> EventTable[LocalRows]:
        """Read a table of records."""
        return read_records(path, mark)

    def documents(self, path: str, kind: Kind, form: Format | None) -> LocalRows:
        """Read documents as they came."""
        return documents(self, path, kind, form)

    def past(
        self, path: str, target: Target, sources: Sources | None, content_type: str | None
    ) -> LocalEvents:
        """Read a table of events, or a folder of documents."""
        return read_events(self, path, target, sources, content_type)
