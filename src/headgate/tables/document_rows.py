"""What workers do to read documents: rows of JSON or files in, what was read of them or reasons out.

Documents are parsed once: what comes out is kept, and whoever matches finds it there. A feed becomes one
event for each of its items.
"""

from __future__ import annotations

import json
from contextlib import closing
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import pyarrow as pa

from headgate.contents.kind import bad_length
from headgate.contents.registry import kind_of
from headgate.core.event import CONTENT_TYPE, DATA, ID, SAME_NAMES, SOURCE, Event, is_plain, read_object
from headgate.core.ids import is_whole
from headgate.core.values import check, fold
from headgate.errors import EventError
from headgate.runtime.rows import why_broken
from headgate.tables.event_rows import NUMBERS, PARSED, REASON, ROW, TEXTS, is_record, judged
from headgate.tables.lines import BROKEN, VALUE, portions
from headgate.tables.packed import codec_of, unpack
from headgate.tables.requests import type_of_file, type_of_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from headgate.contents.kind import Kind
    from headgate.core.event import Id
    from headgate.runtime.targets import Sources
    from headgate.tables.packed import Codec


PATH, LENGTH, CONTENT = "path", "length", "content"
"""The columns of `read_files`; `CONTENT` is null for files that hold nothing, or too much to be read."""


WHOLE_TEXTS = "whole"
"""How many ids of a batch are text that looks like a whole number."""
FEEDS, LENIENT, NOTES = "feeds", "lenient", "notes"
"""How many feeds there were, how many of them were not RDF, and how much was forgiven."""
TALLY = (NUMBERS, TEXTS, WHOLE_TEXTS, FEEDS, LENIENT, NOTES)

_TYPES: dict[str, pa.DataType] = {
    ROW: pa.string(),
    REASON: pa.string(),
    "id_number": pa.int64(),
    "id_text": pa.string(),
    "source_number": pa.int64(),
    "source_text": pa.string(),
    CONTENT_TYPE: pa.string(),
    DATA: pa.binary(),
    PARSED: pa.binary(),
    **dict.fromkeys(TALLY, pa.int64()),
}
READ = pa.schema(_TYPES)
"""An event, a row that is none, or the tally of a batch."""

DOCUMENTS, BYTES = 256, 8 << 20
"""Documents parsed together, at most, and how long they are together, about."""


class ReadSettings(NamedTuple):
    """What workers must know to read events."""

    content: str
    """The content room that the documents are for."""
    content_type: str | None = None
    """The media type of rows that name none, and of all files."""
    sources: Sources | None = None
    """The nodes where events may enter a graph, if there is one."""
    keep: bool = False
    """Whether the documents themselves are wanted, too."""
    folder: str = ""
    """Where files are, as Spark writes it."""
    records: bool = False
    """Whether rows that are no documents are records."""


class _Line(NamedTuple):
    """A row: an event or the reason why it is none, and the line of JSON; of CSV if that is broken."""

    event: Event | EventError
    line: bytes | str

    def row(self) -> str:
        """Return the row as it came."""
        return self.line if isinstance(self.line, str) else self.line.decode(errors="replace")


class _File(NamedTuple):
    """A file: an event or the reason why it is none; the rest is for the rejected table."""

    event: Event | EventError
    name: str
    kind: str | None
    content: bytes | None

    def row(self) -> str:
        """Write a row of the file, as it could have come in a table."""
        text = None if self.content is None else self.content.decode(errors="replace")
        row = {ID: self.name, CONTENT_TYPE: self.kind, DATA: text}
        return json.dumps(
            {name: value for name, value in row.items() if value is not None}, ensure_ascii=False
        )


_Given: TypeAlias = "_Line | _File"


def read_rows(batches: Iterable[pa.RecordBatch], reading: ReadSettings) -> Iterator[pa.RecordBatch]:
    """Read events that come as rows of JSON; blank lines are passed over."""
    return _read(batches, reading, _rows)


def read_files(batches: Iterable[pa.RecordBatch], reading: ReadSettings) -> Iterator[pa.RecordBatch]:
    """Read events that come as files."""
    return _read(batches, reading, _documents)


def _read(
    batches: Iterable[pa.RecordBatch],
    reading: ReadSettings,
    given: Callable[[pa.RecordBatch, ReadSettings], Iterable[_Given]],
) -> Iterator[pa.RecordBatch]:
    with closing(kind_of(reading.content)):
        for batch in batches:
            for some in portions(given(batch, reading), DOCUMENTS, _size, BYTES):
                yield _events(some, reading)


def _size(given: _Given) -> int:
    return len(given.event.data) if isinstance(given.event, Event) else 0


def _rows(batch: pa.RecordBatch, reading: ReadSettings) -> Iterator[_Line]:
    kind = kind_of(reading.content)
    values: list[bytes | None] = batch[VALUE].to_pylist()
    broken: list[str | None] = batch[BROKEN].to_pylist()
    for value, line in zip(values, broken, strict=True):
        if value is None:
            yield _Line(EventError(why_broken(line)), line or "")
        elif value.strip():
            yield _Line(_event(value, kind, reading), value)


def _event(line: bytes, kind: Kind, reading: ReadSettings) -> Event | EventError:
    """Read a row; the reason why it is no event, if it is none."""
    try:
        row = read_object(line)
        return event_of_row(row, kind, reading.content_type, row if reading.records else None)
    except EventError as error:
        return error


def event_of_row(
    given: Mapping[str, Any], kind: Kind, default: str | None, record: dict[str, Any] | None
) -> Event:
    """Make an event of a row against filters of documents; refuses one that is none.

    `default` is the media type of rows that name none, and `record` has the attributes of the row, if it may
    be a record.
    """
    plain = record is not None and is_plain(given)
    row = given if plain else {fold(name): value for name, value in given.items()}
    if record is not None and (plain or is_record(row, default)):
        event = Event.from_row(given)
        return Event.record(event.id, record, event.source)
    if len(row) < len(given):
        raise EventError(SAME_NAMES)
    event = Event.from_row({ID: row.get(ID), SOURCE: row.get(SOURCE)})
    for name, value in ((ID, event.id), (SOURCE, row.get(SOURCE))):
        check(value, (name,))
    data = _data(row, kind)
    return Event(event.id, data, source=event.source, content_type=_type(row, kind, default))


def _type(row: Mapping[str, object], kind: Kind, default: str | None) -> str:
    named = row.get(CONTENT_TYPE)
    if named is None and default is not None:
        return default
    names = ", ".join(kind.types)
    if named is None:
        raise EventError(f"the event has no {CONTENT_TYPE!r}: name the format of its data, one of {names}")
    media = type_of_name(named, kind)
    if media is None:
        raise EventError(f"{CONTENT_TYPE} {named!r} is not a format of {kind.title}: give one of {names}")
    return media


def _data(row: Mapping[str, object], kind: Kind) -> str | bytes:
    data = row.get(DATA)
    if data is None:
        raise EventError(f"the event has no {DATA!r}: give its {kind.title} there, as text")
    if not isinstance(data, str | bytes):
        raise EventError(f"{DATA} is {type(data).__name__} and must be text")
    return data


def _documents(batch: pa.RecordBatch, reading: ReadSettings) -> Iterator[_File]:
    kind = kind_of(reading.content)
    for path, length, held in zip(*(batch[name] for name in (PATH, LENGTH, CONTENT)), strict=True):
        name = _name(path.as_py(), reading.folder)
        codec = codec_of(name)
        content: bytes | None = held.as_py()
        bad = bad_length(length.as_py(), kind)
        if bad is None and codec is not None and content is not None:
            content, bad = unpack_document(content, codec, kind)
        written = reading.content_type or type_of_file(name, kind)
        if written is None:
            reason = f"its name ends in none of {', '.join(kind.suffixes)}: rename it, or say --format"
            yield _File(EventError(reason), name, None, None)
        elif bad is not None:
            yield _File(bad, name, written, None)
        else:
            assert content is not None
            yield _File(Event(name, content, content_type=written), name, written, content)


def unpack_document(data: bytes, codec: Codec, kind: Kind) -> tuple[bytes | None, EventError | None]:
    """Unpack a document; the reason why it is none, if it is damaged or too long."""
    try:
        content = unpack(data, codec, kind.most)
    except OSError as error:
        return None, EventError(f"it is no sound {codec} file ({error})")
    if len(content) > kind.most:
        return None, EventError(f"the document has more than {kind.most:,} bytes, which are allowed")
    return content, bad_length(len(content), kind)


def _name(path: str, folder: str) -> str:
    """Name a file by its place in the folder that was given; one that was given itself, by its own name.

    >>> _name("file:/feeds/old/a.rss", "file:/feeds/"), _name("file:/feeds/a.rss", "")
    ('old/a.rss', 'a.rss')
    """
    return path.removeprefix(folder) if folder and path.startswith(folder) else path.rpartition("/")[2]


def _events(given: Sequence[_Given], reading: ReadSettings) -> pa.RecordBatch:
    """Parse what is parsed together: rows of events, of what is none, and the tally."""
    kind = kind_of(reading.content)
    # Documents that come from a node of the graph, if there is one, are parsed.
    judge = None if reading.sources is None else reading.sources.of_events
    read = kind.read([each for each in judged([each.event for each in given], judge) if each is not None])
    rows: list[dict[str, Any]] = []
    tally = dict.fromkeys(TALLY, 0)
    for each, outcome in zip(given, read, strict=True):
        if isinstance(outcome, EventError):
            rows.append({ROW: each.row(), REASON: str(outcome)})
            continue
        tally[FEEDS] += outcome.feed
        tally[LENIENT] += outcome.notes > 0
        tally[NOTES] += outcome.notes
        for event in outcome.events:
            tally[NUMBERS if isinstance(event.id, int) else TEXTS] += 1
            tally[WHOLE_TEXTS] += isinstance(event.id, str) and is_whole(event.id)
            rows.append(_row(event, each.event if reading.keep else None, kind))
    return pa.RecordBatch.from_pylist([*rows, tally], schema=READ)


def _row(event: Event, given: Event | EventError | None, kind: Kind) -> dict[str, Any]:
    """Write an event that was read; `given` is the document that it was in, if that is kept."""
    row: dict[str, Any] = {f"{ID}_{_column(event.id)}": event.id, PARSED: kind.pack(event)}
    if event.source is not None:
        row[f"{SOURCE}_{_column(event.source)}"] = event.source
    if isinstance(given, Event):
        data, row[CONTENT_TYPE] = kind.kept(given, event)
        row[DATA] = data.encode() if isinstance(data, str) else data
    return row


def _column(identity: Id) -> str:
    return "number" if isinstance(identity, int) else "text"
