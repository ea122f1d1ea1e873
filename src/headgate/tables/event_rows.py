"""Rows of a table of events: which are events, and why the others are none.

In which form workers get them, and what they make of them, is in `frames/reading.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from headgate.contents.registry import kind_of
from headgate.core.event import CONTENT_TYPE, DATA, ID, SOURCE, Event, media_type
from headgate.errors import EventError
from headgate.runtime.rows import why_broken
from headgate.tables.lines import BROKEN, VALUE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from headgate.runtime.targets import Sources

    Judge = Callable[[Sequence[Event]], list[str | None]]

LINES, COLUMNS, DOCUMENTS, PARSED_BEFORE = "lines", "columns", "documents", "parsed"
"""The forms in which events come."""
PACKED, PARSED = "event", "parsed"
"""The columns of events as columns, and of what was read of a document."""
REASON, ROW, NUMBERS, TEXTS = "reason", "row", "numbers", "texts"
"""A row that is no event, and why; how many ids are whole numbers, and how many are text."""
NO_ID = "the event has no id: give the field 'id' as text or a whole number"
MISFIT = "the line does not fit the header, or a value its column's type"
"""Why a row of a table with columns is no event."""
KEY = "event_key"
"""An event's number while shards are asked: two events may have one id, and each has its own best."""


def judged(read: Sequence[Event | EventError | None], judge: Judge | None) -> list[Event | EventError | None]:
    """Refuse events for which `judge` gives a reason."""
    if judge is None:
        return list(read)
    reasons = iter(judge([event for event in read if isinstance(event, Event)]))
    outcomes: list[Event | EventError | None] = []
    for event in read:
        reason = next(reasons) if isinstance(event, Event) else None
        outcomes.append(event if reason is None else EventError(reason))
    return outcomes


def read_events(batch: pa.RecordBatch, content: str) -> list[Event]:
    """Make events of documents that were read for a kind of content."""
    kind = kind_of(content)
    events = []
    rows = zip(
        *(batch[name].to_pylist() for name in (ID, "source_number", "source_text", PARSED)), strict=True
    )
    for identity, number, text, packed in rows:
        data, written = kind.unpack(packed)
        source = text if number is None else number
        events.append(Event(identity, data, source=source, content_type=written))
    return events


def read_lines(batch: pa.RecordBatch, mark: str) -> list[Event | EventError | None]:
    """Read the lines of a batch, as `read_event` does."""
    values: list[bytes | None] = batch[VALUE].to_pylist()
    if BROKEN not in batch.schema.names:
        return [read_event(value or b"", mark) for value in values]
    broken: list[str | None] = batch[BROKEN].to_pylist()
    return [
        EventError(why_broken(line)) if value is None else read_event(value, mark)
        for value, line in zip(values, broken, strict=True)
    ]


def read_event(line: bytes, mark: str = "") -> Event | EventError | None:
    """Read one line: an event, the reason why it is none, or None for a blank line."""
    if not line.strip():
        return None
    try:
        event = Event.from_json(line)
        event.check(mark)
    except EventError as error:
        return error
    return event


def read_row(row: Mapping[str, object]) -> Event | EventError:
    """Read the columns of a row: an event, or the reason why it is none. What is NULL is not there."""
    try:
        return Event.from_row({name: value for name, value in row.items() if value is not None})
    except EventError as error:
        return error


def is_record(row: Mapping[str, object], default: str | None) -> bool:
    """Tell whether a row, by folded names, is a record and no document; `default` is the type of those.

    >>> is_record({"datacontenttype": "xml", "data": "<a/>"}, None), is_record({"data": "<a/>"}, None)
    (False, True)
    """
    named, text = row.get(CONTENT_TYPE), isinstance(row.get(DATA), str | bytes)
    if isinstance(named, str) and media_type(named) is not None:
        return not text
    return named is not None or default is None or not text


_TYPES: dict[str, pa.DataType] = {
    ROW: pa.string(),
    REASON: pa.string(),
    NUMBERS: pa.int64(),
    TEXTS: pa.int64(),
}
SURVEY = pa.schema(_TYPES)
"""A line that is no event, or how many ids of a batch are of which type."""


def list_refused(batches: Iterable[pa.RecordBatch], sources: Sources) -> Iterator[pa.RecordBatch]:
    """List the rows whose source is refused, with the reason."""
    for batch in batches:
        reasons = pa.array(sources.refusals(batch.column(SOURCE)), pa.string())
        rows = pa.RecordBatch.from_arrays([batch.column(ROW), reasons], names=[ROW, REASON])
        yield rows.filter(reasons.is_valid())
