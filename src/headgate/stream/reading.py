"""What workers do to read events: rows of a source in, events or the reasons why they are none out.

JSON lines             a record each, or a row of a document: {id, source, time, datacontenttype, data}
.jsonl, .ndjson, .json many of these
.csv, .parquet         rows with the same columns
documents              one event each: RDF or XML, by the ending of a file or the content type of a message

Files may be packed (.gz, .zst). Bytes that are not UTF-8 make a row none, and the dead letter shows them.
"""

from __future__ import annotations

import base64
import codecs
import datetime as dt
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from headgate.contents.kind import bad_length
from headgate.contents.registry import kind_of
from headgate.core.event import CONTENT_TYPE, DATA, EVENT_TIME, ID, JSON, SOURCE, TIME, Event, read_object
from headgate.core.values import fold
from headgate.errors import EventError, TableError
from headgate.runtime.changes import of_the_file, rows_of
from headgate.runtime.rows import NOT_UTF8
from headgate.stream.csv_rows import CsvFile
from headgate.stream.sources.columns import COLUMNS
from headgate.tables.document_rows import event_of_row, unpack_document
from headgate.tables.event_rows import read_event
from headgate.tables.packed import PACKED, codec_of, ending, read_file
from headgate.tables.packed import reading as unpacking
from headgate.tables.places import leads_out
from headgate.tables.requests import type_of_file, type_of_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


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


class ReadSettings(NamedTuple):
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


def read_given(batches: Iterable[pa.RecordBatch], reading: ReadSettings) -> Iterator[list[SourceRow]]:
    """Read the rows of a part, some at a time."""
    held: list[SourceRow] = []
    size = 0
    for given in _rows(batches, reading):
        held.append(given)
        size += len(given.row) if isinstance(given.row, bytes) else 256
        if len(held) >= ROWS or size >= BYTES:
            yield held
            held, size = [], 0
    if held:
        yield held


def _rows(batches: Iterable[pa.RecordBatch], reading: ReadSettings) -> Iterator[SourceRow]:
    for batch in batches:
        columns = (batch[name].to_pylist() for name in COLUMNS)
        for value, content_type, origin, arrived in zip(*columns, strict=True):
            found = (
                _file(origin, reading) if value is None else _message(value, content_type, origin, reading)
            )
            for event, row in found:
                yield SourceRow(event, row, origin, arrived)


_Found = tuple[Event | EventError, "bytes | Mapping[str, Any]"]


def _message(value: bytes, content_type: str | None, origin: str, reading: ReadSettings) -> Iterator[_Found]:
    if content_type is None or content_type.partition(";")[0].strip().lower() == JSON:
        yield _line(value, reading) if value.strip() else EventError("the message is empty"), value
        return
    kind = kind_of(reading.content)
    if not kind.documents:
        reason = f"content type {content_type!r} is not a record: send {JSON}"
        yield EventError(reason), value
        return
    found = type_of_name(content_type, kind)
    if found is None:
        names = ", ".join(kind.types)
        yield EventError(f"{content_type!r} is not a format of {kind.title}: send one of {names}"), value
    else:
        yield Event(origin, value, content_type=found), value


def _file(path: str, reading: ReadSettings) -> Iterator[_Found]:
    place = Path(path)
    suffix = ending(place)
    if reading.folder is not None and leads_out(place, reading.folder):
        yield EventError(f"the file lies behind a link that leads out of {reading.folder}"), path.encode()
        return
    # Where filters look at several contents, or files are said to be documents, it is one event.
    alone = suffix in kind_of(reading.content).suffixes or (suffix == ".json" and reading.content_type)
    try:
        if suffix in _LINES and not alone:
            with unpacking(place) as file:
                for number, given in enumerate(file):
                    line = given if number else given.removeprefix(codecs.BOM_UTF8)
                    if line.strip():
                        yield _line(line, reading), line.rstrip(b"\r\n")
        elif suffix == _CSV:
            yield from _csv(place, reading)
        elif suffix == _PARQUET:
            yield from _parquet(place, reading)
        else:
            yield from _document(place, reading)
    except OSError as error:
        if not of_the_file(error):
            raise
        yield EventError(f"the file cannot be read: {error.strerror or error}"), path.encode()
    except (TableError, EventError) as error:
        yield EventError(str(error)), path.encode()


def _csv(place: Path, reading: ReadSettings) -> Iterator[_Found]:
    kind = kind_of(reading.content)
    table = CsvFile(read_file(place))
    # As in a table of a job: columns have types if they are records.
    documents = kind.documents and (not kind.rows or CONTENT_TYPE in map(fold, table.names))
    for row, line in table.rows(typed=not documents):
        if isinstance(row, EventError):
            yield row, line
        else:
            yield _row(row, reading, records=not documents), line


def _parquet(place: Path, reading: ReadSettings) -> Iterator[_Found]:
    try:
        with pq.ParquetFile(place if codec_of(place) is None else pa.BufferReader(read_file(place))) as file:
            for batch in file.iter_batches(ROWS):
                for row in rows_of(batch):
                    yield (EventError(NOT_UTF8), row) if isinstance(row, bytes) else (_row(row, reading), row)
    except (pa.ArrowException, ValueError) as error:
        reason = " ".join(str(error).split())[:300]
        yield EventError(f"the file is not Parquet, or is damaged: {reason}"), str(place).encode()


def _document(place: Path, reading: ReadSettings) -> Iterator[_Found]:
    """Read a file that is one event; its id is its name."""
    kind = kind_of(reading.content)
    found = (reading.content_type or type_of_file(place.name, kind)) if kind.documents else None
    if found is None:
        endings = ", ".join((*_LINES, _CSV, _PARQUET, *kind.suffixes))
        packed = ", ".join(PACKED)
        reason = f"the file's name ends in none of {endings}, nor in one of them and {packed}: rename it"
        yield EventError(reason), str(place).encode()
        return
    bad = bad_length(place.stat().st_size, kind)
    if bad is not None:
        yield bad, str(place).encode()
        return
    content: bytes | None = place.read_bytes()
    codec = codec_of(place)
    if codec is not None and content is not None:
        content, bad = unpack_document(content, codec, kind)
    if bad is not None or content is None:
        yield bad or EventError("the document is empty"), str(place).encode()
        return
    yield Event(place.name, content, content_type=found), content


def _line(line: bytes, reading: ReadSettings) -> Event | EventError:
    if not kind_of(reading.content).documents:
        found = read_event(line, reading.mark)
        assert found is not None
        return found if isinstance(found, EventError) else _timed(found, reading.time)
    try:
        return _row(read_object(line), reading)
    except EventError as error:
        return error


def _row(row: Mapping[str, Any], reading: ReadSettings, *, records: bool = True) -> Event | EventError:
    """Make an event of a row with columns."""
    try:
        kind = kind_of(reading.content)
        if kind.documents and DATA not in row and BASE64 in row:
            row = {**row, DATA: _unpacked(row[BASE64])}
        event = _in_documents(row, reading, records=records) if kind.documents else Event.from_row(row)
        if isinstance(event, EventError) or (kind.documents and event.content_type != JSON):
            return event
        # Checks the values.
        event.attributes_as(reading.mark)
        return _timed(event, reading.time)
    except EventError as error:
        return error


def _in_documents(row: Mapping[str, Any], reading: ReadSettings, *, records: bool) -> Event | EventError:
    """Make an event of a row against filters of documents, with its time if it is one."""
    kind = kind_of(reading.content)
    found = event_of_row(row, kind, reading.content_type, records=records and kind.rows)
    if isinstance(found, EventError) or found.content_type == JSON:
        return found
    time = next((value for name, value in row.items() if fold(name) == TIME), None)
    fields = {ID: found.id, SOURCE: found.source, TIME: time}
    return Event.from_row({**fields, DATA: found.data, CONTENT_TYPE: found.content_type})


def _unpacked(text: object) -> bytes:
    """Read the data of a CloudEvent that is no text."""
    try:
        return base64.b64decode(str(text), validate=True)
    except ValueError:
        raise EventError(f"{BASE64} is not base64") from None


def _timed(event: Event, name: str) -> Event:
    """Give a record its time, if the attribute holds one; whatever else it holds is no time."""
    found = event.data.get(name)
    if isinstance(found, str):
        try:
            found = dt.datetime.fromisoformat(found)
        except ValueError:
            return event
    if not isinstance(found, dt.datetime):
        return event
    # Not `replace`: what was read of the attributes is kept with the event.
    object.__setattr__(event, "time", found if found.tzinfo else found.replace(tzinfo=dt.UTC))
    event.attributes[EVENT_TIME] = event.time
    return event
