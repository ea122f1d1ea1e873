"""What workers do to read events: rows of a source in, events or the reasons why they are none out.

JSON lines             a record each, or a row of a document: {id, source, time, datacontenttype, data}
.jsonl, .ndjson, .json many of these
.csv, .parquet         rows with the same columns
documents              one event each: RDF or XML, by the ending of a file or the content type of a message

A column of CSV has the type that fits all its values in the file: whole numbers, numbers, truth values, days,
times, and else text. `id` and `source` are text that is read one by one: 7 is a number, and 007 is not.

Files may be packed (.gz, .zst). Bytes that are not UTF-8 make a row none, and the dead letter shows them.
"""

from __future__ import annotations

import base64
import codecs
import datetime as dt
import json
from codecs import BOM_UTF8
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from headgate.contents.kind import bad_length
from headgate.contents.registry import kind_of
from headgate.core.event import (
    CONTENT_TYPE,
    DATA,
    ID,
    JSON,
    SECOND_MARK,
    SOURCE,
    TIME,
    Event,
    read_object,
    read_time,
)
from headgate.core.ids import is_whole
from headgate.core.text.csv_text import CsvText
from headgate.core.values import fold
from headgate.errors import EventError, TableError
from headgate.runtime import rows as table_rows
from headgate.runtime.changes import of_the_file, rows_of
from headgate.runtime.rows import NOT_UTF8
from headgate.stream.sources.logs import COLUMNS
from headgate.tables.document_rows import event_of_row, unpack_document
from headgate.tables.event_rows import MISFIT
from headgate.tables.lines import portions
from headgate.tables.packed import PACKED, codec_of, ending, read_file
from headgate.tables.packed import reading as unpacking
from headgate.tables.places import leads_out
from headgate.tables.requests import type_of_file, type_of_name
from headgate.tables.text_types import WHOLE, UnclearError, meant_kind, typed_column

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from headgate.core.text.csv_text import CsvRow

    Row = dict[str, Any]


_LEAST, _MOST = -(1 << 63), (1 << 63) - 1


class CsvFile:
    """What a file holds: the names of its columns, and its rows."""

    def __init__(self, data: bytes) -> None:
        if data.startswith(BOM_UTF8 * 2):
            raise EventError(SECOND_MARK)
        self._table = CsvText(data)
        self.names = _header(self._table.header)

    def rows(self, *, typed: bool) -> Iterator[tuple[Row | EventError, bytes]]:
        """Read the rows, each with its bytes; without `typed` all values but ids are text."""
        good: list[CsvRow] = []
        for row in self._table:
            if row.reason is None:
                good.append(row)
            else:
                yield EventError(MISFIT if row.reason == table_rows.MISFIT else row.reason), row.line
        columns = []
        for index, name in enumerate(self.names):
            values: Sequence[Any] = [row.values[index] for row in good]
            if fold(name) in {ID, SOURCE}:
                values = [int(text) if is_whole(text) else text for text in values]
            elif typed:
                values = _typed(values, name)
            columns.append(values)
        for number, given in enumerate(good):
            values = [column[number] for column in columns]
            if any(value is _BEYOND for value in values):
                yield EventError(MISFIT), given.line
            else:
                pairs = zip(self.names, values, strict=True)
                yield {name: value for name, value in pairs if value is not None and value != ""}, given.line


def _header(given: CsvRow) -> list[str]:
    if given.reason is not None:
        raise EventError(f"the header of the file cannot be read: {given.reason}")
    for name, times in Counter(map(fold, given.values)).items():
        if not name.strip():
            raise EventError("a column of the file has no name: give each one in the header")
        if times > 1:
            raise EventError(f"the header names the column {name!r} {times} times")
    return given.values


_BEYOND = object()
"""A whole number that no column holds."""


def _typed(values: Sequence[str], name: str) -> Sequence[Any]:
    """Give a column the type that fits all that is in it."""
    try:
        kind, known = typed_column({text for text in values if text}, meant_kind)
    except UnclearError as error:
        raise EventError(
            f"column {name} holds {str(error)[:40]!r}, whose type is not clear beside the others: send the "
            "file as JSON lines or Parquet"
        ) from None
    typed_values = [known.get(text) for text in values]
    if kind != WHOLE:
        return typed_values
    return [number if number is None or _LEAST <= number <= _MOST else _BEYOND for number in typed_values]


_LINES, _CSV, _PARQUET = (".jsonl", ".ndjson", ".json"), ".csv", ".parquet"
BASE64 = "data_base64"
"""The field of a CloudEvent with data that is no text."""
ROWS, BYTES = 2048, 8 << 20
"""Rows read together, at most, and their bytes, about."""


class SourceRow(NamedTuple):
    """A row of the source: an event, or the reason why it is none."""

    event: Event | EventError
    row: bytes | Mapping[str, Any]
    """As it came, for the dead letters."""
    origin: str
    arrived: dt.datetime | None

    def text(self) -> str:
        """Return the row as text."""
        if isinstance(self.row, bytes):
            return self.row.decode(errors="backslashreplace")
        return json.dumps(self.row, ensure_ascii=False, default=_told)


def _told(value: object) -> str:
    return value.decode(errors="backslashreplace") if isinstance(value, bytes) else str(value)


class SourceReading(NamedTuple):
    """What workers must know to read."""

    content: str
    """The content room of the filters."""
    content_type: str | None
    """The media type of documents that name none."""
    time: str
    """The attribute of a record that holds its time."""
    folder: str | None = None
    """Where files are; those behind a link that leads out of it are refused."""
    mark: str = ""
    """What names mean to filters of records, see `core/values.py`."""


def read_given(batches: Iterable[pa.RecordBatch], reading: SourceReading) -> Iterator[list[SourceRow]]:
    """Read the rows of a part, some at a time."""
    return portions(_rows(batches, reading), ROWS, _size, BYTES)


def _size(given: SourceRow) -> int:
    return len(given.row) if isinstance(given.row, bytes) else 256


def _rows(batches: Iterable[pa.RecordBatch], reading: SourceReading) -> Iterator[SourceRow]:
    for batch in batches:
        columns = (batch[name].to_pylist() for name in COLUMNS)
        for value, content_type, origin, arrived in zip(*columns, strict=True):
            outcomes = (
                _file(origin, reading) if value is None else _message(value, content_type, origin, reading)
            )
            for event, row in outcomes:
                yield SourceRow(event, row, origin, arrived)


_Found = tuple[Event | EventError, "bytes | Mapping[str, Any]"]


def _message(value: bytes, content_type: str | None, origin: str, reading: SourceReading) -> Iterator[_Found]:
    if content_type is None or content_type.partition(";")[0].strip().lower() == JSON:
        yield _line(value, reading) if value.strip() else EventError("the message is empty"), value
        return
    kind = kind_of(reading.content)
    if not kind.documents:
        reason = f"content type {content_type!r} is not a record: send {JSON}"
        yield EventError(reason), value
        return
    media = type_of_name(content_type, kind)
    if media is None:
        names = ", ".join(kind.types)
        yield EventError(f"{content_type!r} is not a format of {kind.title}: send one of {names}"), value
    else:
        yield Event(origin, value, content_type=media), value


def _file(path: str, reading: SourceReading) -> Iterator[_Found]:
    file_path = Path(path)
    suffix = ending(file_path)
    if reading.folder is not None and leads_out(file_path, reading.folder):
        yield EventError(f"the file lies behind a link that leads out of {reading.folder}"), path.encode()
        return
    # Where filters look at several contents, or files are said to be documents, it is one event.
    alone = suffix in kind_of(reading.content).suffixes or (suffix == ".json" and reading.content_type)
    try:
        if suffix in _LINES and not alone:
            with unpacking(file_path) as file:
                for number, text in enumerate(file):
                    line = text if number else text.removeprefix(codecs.BOM_UTF8)
                    if line.strip():
                        yield _line(line, reading), line.rstrip(b"\r\n")
        elif suffix == _CSV:
            yield from _csv(file_path, reading)
        elif suffix == _PARQUET:
            yield from _parquet(file_path, reading)
        else:
            yield from _document(file_path, reading)
    except OSError as error:
        if not of_the_file(error):
            raise
        yield EventError(f"the file cannot be read: {error.strerror or error}"), path.encode()
    except (TableError, EventError) as error:
        yield EventError(str(error)), path.encode()


def _csv(path: Path, reading: SourceReading) -> Iterator[_Found]:
    kind = kind_of(reading.content)
    table = CsvFile(read_file(path))
    # As in a table of a job: columns have types if they are records.
    documents = kind.documents and (not kind.rows or CONTENT_TYPE in map(fold, table.names))
    for row, line in table.rows(typed=not documents):
        if isinstance(row, EventError):
            yield row, line
        else:
            yield _row(row, reading, records=not documents), line


def _parquet(path: Path, reading: SourceReading) -> Iterator[_Found]:
    try:
        with pq.ParquetFile(path if codec_of(path) is None else pa.BufferReader(read_file(path))) as file:
            for batch in file.iter_batches(ROWS):
                for row in rows_of(batch):
                    yield (EventError(NOT_UTF8), row) if isinstance(row, bytes) else (_row(row, reading), row)
    except (pa.ArrowException, ValueError) as error:
        reason = " ".join(str(error).split())[:300]
        yield EventError(f"the file is not Parquet, or is damaged: {reason}"), str(path).encode()


def _document(path: Path, reading: SourceReading) -> Iterator[_Found]:
    """Read a file that is one event; its id is its name."""
    kind = kind_of(reading.content)
    media = (reading.content_type or type_of_file(path.name, kind)) if kind.documents else None
    if media is None:
        endings = ", ".join((*_LINES, _CSV, _PARQUET, *kind.suffixes))
        packed = ", ".join(PACKED)
        reason = f"the file's name ends in none of {endings}, nor in one of them and {packed}: rename it"
        yield EventError(reason), str(path).encode()
        return
    bad = bad_length(path.stat().st_size, kind)
    if bad is not None:
        yield bad, str(path).encode()
        return
    content: bytes | None = path.read_bytes()
    codec = codec_of(path)
    if codec is not None and content is not None:
        content, bad = unpack_document(content, codec, kind)
    if bad is not None or content is None:
        yield bad or EventError("the document is empty"), str(path).encode()
        return
    yield Event(path.name, content, content_type=media), content


def _line(line: bytes, reading: SourceReading) -> Event | EventError:
    try:
        return _row(read_object(line), reading)
    except EventError as error:
        return error


def _row(row: dict[str, Any], reading: SourceReading, *, records: bool = True) -> Event | EventError:
    """Make an event of a row with columns."""
    try:
        kind = kind_of(reading.content)
        if not kind.documents:
            event = Event.from_row(row)
        else:
            if DATA not in row and BASE64 in row:
                row = {**row, DATA: _unpacked(row[BASE64])}
            record = row if records and kind.rows else None
            event = event_of_row(row, kind, reading.content_type, record)
            if event.content_type != JSON:
                time = next((value for name, value in row.items() if fold(name) == TIME), None)
                return replace(event, time=read_time(event.id, time))
        if event.content_type == JSON:
            event = _timed(event, reading.time)
        # Refuses a document: these filters look at records.
        event.check(reading.mark)
        return event
    except EventError as error:
        return error


def _unpacked(text: object) -> bytes:
    """Read the data of a CloudEvent that is no text."""
    try:
        return base64.b64decode(str(text), validate=True)
    except ValueError:
        raise EventError(f"{BASE64} is not base64") from None


def _timed(event: Event, name: str) -> Event:
    """Give a record its time, if the attribute holds one; whatever else it holds is no time."""
    moment = event.data.get(name)
    if isinstance(moment, str):
        try:
            moment = dt.datetime.fromisoformat(moment)
        except ValueError:
            return event
    if not isinstance(moment, dt.datetime):
        return event
    time = moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)
    return Event(event.id, event.data, time, event.source)
