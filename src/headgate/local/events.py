"""Tables and folders of events, read in this process: which are events, and why the others are not.

All events are in memory before the first is matched, so that the type of their ids is known.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headgate.contents.registry import kind_of
from headgate.core.event import DATA, ID, SOURCE, Event, column_of
from headgate.core.id_types import are_whole
from headgate.core.values import dotted, fold, top_names
from headgate.errors import EventError, TableError
from headgate.jobs.events import EventTable, read_documents
from headgate.local.rows import LocalRows, rows_of
from headgate.runtime.rows import NOT_UTF8, why_broken
from headgate.tables.comparing import attribute_fields, attribute_paths, check_types
from headgate.tables.document_rows import CONTENT, LENGTH, PATH
from headgate.tables.event_rows import (
    COLUMNS,
    LINES,
    MISFIT,
    NO_ID,
    PACKED,
    PARSED_BEFORE,
    REASON,
    ROW,
    read_event,
    read_row,
)
from headgate.tables.event_rows import read_events as read_parsed
from headgate.tables.frames.reading import Reading, read_frame
from headgate.tables.lines import (
    VALUE,
    check_columns,
    column_names,
    is_plain,
    json_of,
    read_lines,
    read_parquet,
)
from headgate.tables.places import Format, UnsureError, as_spark, check_input, table_files
from headgate.tables.requests import are_documents, check_events
from headgate.tables.results import meant_by
from headgate.tables.utf8 import shown, split

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence
    from pathlib import Path

    from headgate.contents.kind import Kind
    from headgate.local.runner import LocalRunner
    from headgate.runtime.targets import Sources, Target
    from headgate.tables.frames.reading import Given

Refused = list[tuple[str, str]]


@dataclass(frozen=True)
class LocalEvents(EventTable[LocalRows]):
    """The events of a table that were read."""

    read: Sequence[Given] = ()

    @classmethod
    def of(
        cls,
        form: str,
        batches: Sequence[pa.RecordBatch],
        read: Sequence[Given],
        refused: Refused,
        id_type: str,
        **more: Any,
    ) -> LocalEvents:
        """Put together what is known."""
        given = LocalRows(batches[0].schema if batches else pa.schema([]), lambda: [batches])
        count = sum(len(each.events) for each in read)
        return cls(form, given, _told(refused), count, len(refused), id_type, read=read, **more)


def _told(refused: Refused) -> LocalRows:
    rows, reasons = zip(*refused, strict=True) if refused else ((), ())
    return rows_of(pa.table([pa.array(each, pa.string()) for each in (rows, reasons)], names=[ROW, REASON]))


def first_events(
    runner: LocalRunner, path: str, content: str, content_type: str | None, most: int, mark: str = ""
) -> tuple[list[Event], int]:
    """Read the first events of a table, or documents, as Python values; and count what is none of them."""
    kind = kind_of(content)
    form = check_events(path, kind, content_type) if kind.documents else check_input(path)
    if are_documents(kind, form, partial(column_names, path)):
        table = read_documents(runner, path, content, content_type)
        batches = table.rows.head(most).to_batches()
        return [event for batch in batches for event in read_parsed(batch, content)], table.rejected
    assert form is not None, "only documents come in files of their own"
    if form is Format.JSONL:
        read = [read_event(line, mark) for line in json_lines_of(path)[:most]]
    else:
        columns, broken = _columns(path, form, (ID,))
        check_columns(columns.column_names, path, ID)
        columns, bad = split(columns)
        read = [read_row(row) for row in columns.slice(0, most).to_pylist()]
        read += [EventError(NOT_UTF8)] * bad.num_rows
        read += [EventError(why_broken(line, MISFIT)) for line in broken]
    events = [event for event in read if isinstance(event, Event)]
    return events, sum(isinstance(each, EventError) for each in read)


def json_lines_of(path: str) -> list[bytes]:
    """Read the lines of a table of JSON lines."""
    return [line or b"" for batch in read_lines(path) for line in batch[VALUE].to_pylist()]


def _one_batch(table: pa.Table) -> pa.RecordBatch:
    columns = [table[name].combine_chunks() for name in table.column_names]
    return pa.RecordBatch.from_arrays(columns, names=table.column_names)


def read_events(
    runner: LocalRunner, path: str, target: Target, sources: Sources | None, content_type: str | None
) -> LocalEvents:
    """Read a table of events, or a folder of documents, as the content of the filters wants it."""
    kind = kind_of(target.content)
    form = check_events(path, kind, content_type) if kind.documents else check_input(path)
    if are_documents(kind, form, partial(column_names, path)):
        found = read_documents(runner, path, target.content, content_type, sources)
        batches = found.rows.collect().to_batches()
        read = list(read_frame(batches, Reading(PARSED_BEFORE, target.content)))
        return LocalEvents(**{**vars(found), "read": read})
    assert form is not None, "only documents come in files of their own"
    if form is Format.JSONL:
        reading = Reading(LINES, target.content, sources=sources, mark=target.mark)
        read = list(read_frame(read_lines(path), reading))
        refused = [(row or "", why) for each in read for row, why in each.refusals()]
        id_type = "string" if any(each.texts for each in read) else "long"
        return LocalEvents.of(LINES, [each.batch for each in read], read, refused, id_type)
    return _of_columns(path, form, target, sources)


def _of_columns(path: str, form: Format, target: Target, sources: Sources | None) -> LocalEvents:
    wanted = (ID,) if sources is None else (ID, SOURCE)
    needed = {name for attribute in target.attributes for name in top_names(attribute)} | set(wanted)
    table, refused, id_type = _judged(path, form, wanted, needed)
    if not table.column_names:
        return LocalEvents.of(COLUMNS, [], [], refused, id_type)
    if sources is not None:
        table = _from_nodes(table, path, sources, refused)
    unknown = _check_types(table.schema, path, target)
    meant = meant_by(unknown, map(dotted, attribute_paths(table.schema, target.mark)))
    table = table.select([name for name in table.column_names if fold(name) in needed])
    whole = _one_batch(table)
    columns = {ID: column_of(whole, ID), PACKED: whole.to_struct_array()}
    batch = pa.RecordBatch.from_pydict(columns)
    read = list(read_frame([batch], Reading(COLUMNS, target.content)))
    if not table.num_rows:
        unknown, meant = (), {}
    return LocalEvents.of(COLUMNS, [batch], read, refused, id_type, unknown=unknown, meant=meant)


def read_columns(path: str) -> pa.Table:
    """Read all columns of a table, with their types; lines that are none are left out."""
    return split(_columns(path, check_input(path), (ID,))[0])[0]


def read_records(path: str, mark: str) -> EventTable[LocalRows]:
    """Read the records of a table, with all that they have; `mark` says what names mean."""
    form = check_input(path)
    if form is Format.JSONL:
        read = [(line, read_event(line, mark)) for line in json_lines_of(path)]
        events = [(line, event) for line, event in read if isinstance(event, Event)]
        refused = [
            (line.decode(errors="replace"), str(why)) for line, why in read if isinstance(why, EventError)
        ]
        id_type = "string" if any(isinstance(event.id, str) for _, event in events) else "long"
        table = pa.table({VALUE: pa.array([line for line, _ in events], pa.binary())})
    else:
        table, refused, id_type = _judged(path, form, (ID,))
        if not table.column_names:
            table = pa.table({ID: pa.array([], pa.string())})
    rows, kept_as = rows_of(table, given=True), LINES if form is Format.JSONL else COLUMNS
    return EventTable(kept_as, rows, _told(refused), table.num_rows, len(refused), id_type)


def _judged(
    path: str, form: Format, wanted: tuple[str, ...], looked_at: Collection[str] | None = None
) -> tuple[pa.Table, Refused, str]:
    """Tell events in columns from rows that are none; texts are looked at in some of the columns, or all."""
    table, broken = _columns(path, form, wanted)
    refused: Refused = [(line, why_broken(line, MISFIT)) for line in broken]
    if not table.column_names:
        return table, refused, "string"
    check_columns(table.column_names, path, *wanted)
    if looked_at is None:
        looked_at = {*map(fold, table.column_names)}
    table = _of_texts(table, looked_at, refused)
    table, id_type = _with_ids(table, path, form, refused)
    return table, refused, id_type


def _columns(path: str, form: Format, texts: tuple[str, ...]) -> tuple[pa.Table, list[str]]:
    """Read columns with their types, and the lines of CSV that do not fit."""
    files = table_files(path)
    if form is Format.PARQUET:
        return read_parquet(path, files), []
    from headgate.tables.csv_text import read_csv, typed

    table = read_csv(path, files)
    return typed(table, path, texts), table.broken


def _of_texts(table: pa.Table, names: Collection[str], refused: Refused) -> pa.Table:
    """Refuse rows of Parquet that have bytes which are not UTF-8 in some columns."""
    table, bad = split(table, [name for name in table.column_names if fold(name) in names])
    refused += [(json_of(row).decode(), NOT_UTF8) for row in shown(bad)]
    return table


def _with_ids(table: pa.Table, path: str, form: Format, refused: Refused) -> tuple[pa.Table, str]:
    """Refuse rows without an id; the others' are whole numbers if their type is, or all of CSV's are."""
    place = [fold(name) for name in table.column_names].index(ID)
    column = table.column(place)
    _check_id_type(column.type, table.column_names[place], path)
    if column.null_count:
        missing = column.is_null()
        refused += [(text, NO_ID) for text in _texts(table.filter(missing), path)]
        table = table.filter(column.is_valid())
        column = table.column(place)
    whole = pa.types.is_integer(column.type)
    if form is Format.CSV and len(column):
        whole = all(each.as_py() for each in are_whole(column.combine_chunks()))
    kind: pa.DataType = pa.int64() if whole else pa.string()
    name = table.column_names[place]
    return table.set_column(place, name, column.cast(kind)), "long" if whole else "string"


def _check_id_type(kind: pa.DataType, name: str, path: str) -> None:
    if pa.types.is_signed_integer(kind) or pa.types.is_string(kind):
        return
    if pa.types.is_floating(kind):
        called = "double" if pa.types.is_float64(kind) else "float"
        raise TableError(f"{path}: column {name} is {called}: cast it to string or bigint")
    raise UnsureError(f"{path}: column {name} is {kind}")


def _from_nodes(table: pa.Table, path: str, sources: Sources, refused: Refused) -> pa.Table:
    """Refuse events that come from no node of the graph."""
    place = [fold(name) for name in table.column_names].index(SOURCE)
    column = table.column(place)
    _check_id_type(column.type, table.column_names[place], path)
    reasons = sources.refusals(column.combine_chunks())
    kept = pa.array([reason is None for reason in reasons], pa.bool_())
    bad = pa.array([reason is not None for reason in reasons], pa.bool_())
    told = [reason for reason in reasons if reason is not None]
    if told:
        refused += zip(_texts(table.filter(bad), path), told, strict=True)
    return table.filter(kept).set_column(place, SOURCE, column.filter(kept))


def _texts(table: pa.Table, path: str) -> list[str]:
    """Write rows as they came; what is NULL is left out."""
    for each, column in zip(table.schema, table.columns, strict=True):
        if not is_plain(each.type) and column.null_count < len(column):
            raise UnsureError(f"{path}: column {each.name} is {each.type}")
    return [json_of(row).decode() for row in table.to_pylist()]


def _check_types(schema: pa.Schema, path: str, target: Target) -> tuple[str, ...]:
    """Leave columns to Spark that filters name and that are of no usual type; list those that are missing."""
    for attribute, found, _ in attribute_fields(schema, target):
        if found is not None and not _usual(found.type):
            raise UnsureError(f"{path}: {dotted(attribute)} is {found.type}")
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


def documents(runner: LocalRunner, path: str, kind: Kind, form: Format | None) -> LocalRows:
    """Read documents as they came."""
    if form is None:
        return LocalRows(FILES, lambda: [file_rows(table_files(path), kind)])
    return runner.table(path).lines(ID, DATA)


def file_rows(files: Iterable[Path], kind: Kind) -> Iterator[pa.RecordBatch]:
    """Read files of documents as rows."""
    for file in files:
        size = file.stat().st_size
        content = file.read_bytes() if 0 < size <= kind.most else None
        row = {PATH: as_spark(file), LENGTH: size, CONTENT: content}
        yield pa.RecordBatch.from_pylist([row], FILES)
