"""Jobs in this process: rows go through the functions that workers of Spark run, one batch after the other.

What Spark might read in another way than we do is `UnsureError`, and left to Spark.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
import pyarrow as pa

from headgate.core.event import DATA, ID, SOURCE, column_of
from headgate.core.ids import are_whole
from headgate.core.machine import memory
from headgate.core.rooms import RECORDS
from headgate.core.values import dotted, fold
from headgate.errors import TableError
from headgate.jobs.events import EventTable, form_of, read_events
from headgate.jobs.match import FoundMatches, columns_of, matches_schema
from headgate.local.rows import LocalRows, rows_of
from headgate.runtime.progress import step
from headgate.runtime.rows import why_broken
from headgate.tables.change_set import changing
from headgate.tables.comparing import attribute_fields, check_types
from headgate.tables.document_rows import CONTENT, LENGTH, PATH
from headgate.tables.event_rows import COLUMNS, LINES, MISFIT, PACKED, REASON, ROW
from headgate.tables.frames.reading import Reading, read_frame
from headgate.tables.frames.report import Reporter
from headgate.tables.frames.rows import match_given
from headgate.tables.frames.task import FrameTask
from headgate.tables.lines import LINES as LINE_COLUMNS
from headgate.tables.lines import (
    TOGETHER,
    check_columns,
    column_names,
    is_plain,
    json_of,
    read_lines,
    read_parquet,
)
from headgate.tables.places import Format, UnsureError, as_spark, check_input, table_files
from headgate.tables.utf8 import shown, split
from headgate.tables.writing import writing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from headgate.contents.kind import Kind
    from headgate.jobs.events import JudgeTask
    from headgate.jobs.match import MatchTask
    from headgate.runtime.progress import Timing
    from headgate.runtime.targets import Group, Target
    from headgate.tables.change_set import ChangeSet
    from headgate.tables.frames.reading import Given


def _renamed(table: pa.Table, name: str, path: str) -> pa.Table:
    """Call a column by its folded name; refuses types that no id has."""
    index = [fold(each) for each in table.column_names].index(name)
    _check_id_type(table.column(index).type, table.column_names[index], path)
    return table.set_column(index, name, table.column(index))


def _typed_ids(column: pa.ChunkedArray[Any], form: Format) -> pa.ChunkedArray[Any]:
    """Make ids whole numbers if their type is, or all of CSV's are."""
    whole = pa.types.is_integer(column.type)
    if form is Format.CSV and column.null_count < len(column):
        whole = all(each.as_py() for each in are_whole(column.drop_null().combine_chunks()))
    return column.cast(pa.int64() if whole else pa.string())


def _packed(table: pa.Table) -> pa.RecordBatch:
    columns = [table[name].combine_chunks() for name in table.column_names]
    whole = pa.RecordBatch.from_arrays(columns, names=table.column_names)
    return pa.RecordBatch.from_pydict({ID: column_of(whole, ID), PACKED: whole.to_struct_array()})


def told(refused: Sequence[tuple[str, str]]) -> LocalRows:
    """Return the rows that are no events, with the reasons."""
    rows, reasons = zip(*refused, strict=True) if refused else ((), ())
    return rows_of(pa.table([pa.array(each, pa.string()) for each in (rows, reasons)], names=[ROW, REASON]))


def read_columns(path: str) -> pa.Table:
    """Read all columns of a table, with their types; lines that are none are left out."""
    return split(_columns(path, check_input(path), (ID,))[0])[0]


def _columns(path: str, form: Format, texts: tuple[str, ...]) -> tuple[pa.Table, list[str]]:
    """Read columns with their types, and the lines of CSV that do not fit."""
    files = table_files(path)
    if form is Format.PARQUET:
        return read_parquet(path, files), []
    from headgate.tables.csv_text import read_csv, typed

    table = read_csv(path, files)
    return typed(table, path, texts), table.broken


def _check_id_type(kind: pa.DataType, name: str, path: str) -> None:
    if pa.types.is_signed_integer(kind) or pa.types.is_string(kind):
        return
    if pa.types.is_floating(kind):
        called = "double" if pa.types.is_float64(kind) else "float"
        raise TableError(f"{path}: column {name} is {called}: cast it to string or bigint")
    raise UnsureError(f"{path}: column {name} is {kind}")


def _texts(table: pa.Table, path: str) -> list[str]:
    """Write rows as they came; what is NULL is left out."""
    for each, column in zip(table.schema, table.columns, strict=True):
        if not is_plain(each.type) and column.null_count < len(column):
            raise UnsureError(f"{path}: column {each.name} is {each.type}")
    return [json_of(row).decode() for row in shown(table)]


def _check_types(schema: pa.Schema, path: str, target: Target) -> tuple[str, ...]:
    """Leave columns to Spark that filters name and that are of no usual type; list those that are missing."""
    for attribute, column, _ in attribute_fields(schema, target):
        if column is not None and not _usual(column.type):
            raise UnsureError(f"{path}: {dotted(attribute)} is {column.type}")
    return check_types(schema, path, target)


def _usual(kind: pa.DataType) -> bool:
    if isinstance(kind, pa.TimestampType):
        return str(kind.unit) == "us"
    if isinstance(kind, pa.ListType):
        return _usual(kind.value_type)
    if isinstance(kind, pa.StructType):
        return all(_usual(field.type) for field in kind)
    if pa.types.is_decimal128(kind):
        return True
    return pa.types.is_float32(kind) or (is_plain(kind) and not isinstance(kind, pa.MapType))


_FILES: dict[str, pa.DataType] = {PATH: pa.string(), LENGTH: pa.int64(), CONTENT: pa.binary()}
FILES = pa.schema(_FILES)


def file_rows(files: Iterable[Path], kind: Kind) -> Iterator[pa.RecordBatch]:
    """Read files of documents as rows."""
    for file in files:
        size = file.stat().st_size
        content = file.read_bytes() if 0 < size <= kind.most else None
        row = {PATH: as_spark(file), LENGTH: size, CONTENT: content}
        yield pa.RecordBatch.from_pylist([row], FILES)


def whole(target: Target, memory: int) -> Group:
    """Return all shards of a snapshot together; one that is too large for this process is left to Spark."""
    groups = target.groups(memory)
    if len(groups) > 1:
        raise UnsureError(
            f"{target.title} is too large for one process: its shards are asked by workers of Spark"
        )
    return groups[0]


@dataclass
class LocalMatching:
    """One run."""

    runner: LocalRunner
    asked: MatchTask
    group: Group
    given: EventTable[LocalRows] = field(init=False)
    _read: list[Given] = field(init=False)

    def read(self, events: str) -> None:
        """Read a table of events; lines of JSON once, which is most of the work."""
        target, content_type = self.asked.target, self.asked.content_type
        sources = target.sources(self.runner.memory)
        form, documents = form_of(self.runner, events, target.content, content_type)
        if documents or form is not Format.JSONL:
            self.given = read_events(self.runner, events, target, sources, content_type)
            batches = self.given.rows.collect().to_batches()
            self._read = list(read_frame(batches, Reading(self.given.form, target.content)))
            return
        reading = Reading(LINES, target.content, sources=sources, mark=target.mark)
        self._read = list(read_frame(read_lines(events), reading))
        refused = [(row or "", why) for each in self._read for row, why in each.refusals()]
        id_type = "string" if any(each.texts for each in self._read) else "long"
        count = sum(len(each.events) for each in self._read)
        lines = self.runner.table(events).lines()
        self.given = EventTable(LINES, lines, told(refused), count, len(refused), id_type)

    def match(self, output: str) -> FoundMatches:
        """Match them, and write the matches."""
        target, question, _, counts = self.asked
        given = self.given
        task = FrameTask.of(target, self.group, given.form)._replace(question=question, tells=False)
        report = Reporter(0, counts=counts)
        columns, schema, matches = columns_of(task), matches_schema(task, given.id_type), 0
        with writing(output, schema) as write:
            for answers in match_given(self._read, task, report):
                # Where another event has text for an id, all have.
                write(answers.select(list(columns)).rename_columns(list(columns.values())).cast(schema))
                matches += answers.num_rows
        return FoundMatches(given.count, matches, given.rejected, [report.done()])

    @property
    def refused(self) -> LocalRows:
        """Return the rows that are no events."""
        return self.given.refused


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
        return LocalRows(LINE_COLUMNS, lambda: [read_lines(self.name, *required)])

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
        yield LocalMatching(self, asked, whole(asked.target, self.memory))

    def documents(self, path: str, kind: Kind, form: Format | None) -> LocalRows:
        """Read documents as they came."""
        if form is None:
            return LocalRows(FILES, lambda: [file_rows(table_files(path), kind)])
        return self.table(path).lines(ID, DATA)

    def judged(self, asked: JudgeTask) -> EventTable[LocalRows]:
        """Tell events in columns from rows that are none, as workers would that match them."""
        path, form, texts = asked.path, asked.form, asked.texts
        sources = asked.sources if asked.placed else None
        wanted = (ID,) if sources is None else (ID, SOURCE)
        table, broken = _columns(path, form, wanted)
        refused = [(line, why_broken(line, MISFIT)) for line in broken]
        if not table.column_names:
            none = rows_of(pa.table({ID: pa.array([], pa.string())}), given=True)
            return EventTable(COLUMNS, none, told(refused), 0, len(refused), "string")
        check_columns(table.column_names, path, *wanted)
        for name in wanted:
            table = _renamed(table, name, path)
        ids = _typed_ids(table.column(ID), form)
        table = table.set_column(table.column_names.index(ID), ID, ids)
        looked_at = [name for name in table.column_names if texts is None or fold(name) in {*texts, *wanted}]
        batch = _packed(table.select(looked_at))
        bad: dict[int, str] = {}
        begun = 0
        for given in read_frame([batch], Reading(COLUMNS, RECORDS, sources=sources)):
            bad |= {row + begun: why for row, why in given.refused}
            begun += given.batch.num_rows
        if bad:
            rows = pa.array(list(bad), pa.int64())
            refused += zip(_texts(table.take(rows), path), bad.values(), strict=True)
            table = table.take(np.delete(np.arange(begun), list(bad)))
        id_type = "long" if pa.types.is_integer(ids.type) else "string"
        return EventTable(
            COLUMNS, rows_of(table, given=True), told(refused), table.num_rows, len(refused), id_type
        )

    def packed(self, rows: LocalRows, target: Target, title: str) -> tuple[LocalRows, tuple[str, ...]]:
        """Return the columns that filters look at as workers get them, and list those that are missing."""
        table = rows.collect()
        unknown = _check_types(table.schema, title, target)
        looked_at = {ID, *([SOURCE] if target.graph else []), *target.columns}
        some = table.select([name for name in table.column_names if fold(name) in looked_at])
        return rows_of(pa.Table.from_batches([_packed(some)])), unknown
