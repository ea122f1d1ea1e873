"""Rows of a table of events, as workers get them: lines of JSON, columns packed into one, or documents.

lines        value: bytes                           read here, those that are no events with their reasons
columns      event: struct<id, source?, attributes> stay an Arrow batch
documents    id, source, parsed: bytes              were read before; what their kind wrote is unpacked
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from headgate.contents.registry import kind_of
from headgate.core.event import CONTENT_TYPE, DATA, ID, SOURCE, Event, media_type
from headgate.errors import EventError, TableError
from headgate.records.events.columns import find_column
from headgate.tables.lines import VALUE
from headgate.tables.utf8 import check_texts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from headgate.runtime.batch_queries import Events
    from headgate.runtime.targets import Sources

    Column = pa.Array[Any]
    Judge = Callable[[Sequence[Event]], list[str | None]]

LINES, COLUMNS, DOCUMENTS = "lines", "columns", "documents"
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

TOGETHER = {LINES: 2048, COLUMNS: 10_000, DOCUMENTS: 2048}
"""Events handed on together, at most; Python values take more room than columns."""


class Rows(NamedTuple):
    """Events of some rows, with their ids and keys; and the rows that are none, each with the reason."""

    events: Events
    ids: Column
    keys: Column | None
    refused: tuple[tuple[str, str], ...] = ()
    texts: int = 0
    """How many ids of lines are text."""


def read_rows(
    batches: Iterable[pa.RecordBatch], form: str, content: str, judge: Judge | None = None, mark: str = ""
) -> Iterator[Rows]:
    """Read events, some at a time. With `judge`, events for which it gives a reason are refused.

    `mark` says what names mean to the filters, see `core/values.py`.
    """
    for batch in batches:
        for begin in range(0, batch.num_rows, TOGETHER[form]):
            some = batch.slice(begin, TOGETHER[form])
            keys = some.column(KEY) if KEY in some.schema.names else None
            if form == COLUMNS:
                events = unpacked(some)
                check_texts(events)
                yield Rows(events, check_ids(events), keys)
            elif form == DOCUMENTS:
                yield Rows(read_events(some, content), some.column(ID), keys)
            else:
                yield _lines(some, keys, judge, mark)


def _lines(batch: pa.RecordBatch, keys: Column | None, judge: Judge | None, mark: str) -> Rows:
    lines = lines_of(batch)
    read = judged([read_event(line, mark) for line in lines], judge)
    kept = [isinstance(event, Event) for event in read]
    events = [event for event in read if isinstance(event, Event)]
    refused = tuple(
        (line.decode(errors="replace"), str(error))
        for line, error in zip(lines, read, strict=True)
        if isinstance(error, EventError)
    )
    texts = sum(isinstance(event.id, str) for event in events)
    return Rows(events, ids_of(events), None if keys is None else keys.filter(pa.array(kept)), refused, texts)


def judged(read: Sequence[Event | EventError | None], judge: Judge | None) -> list[Event | EventError | None]:
    """Refuse events for which `judge` gives a reason."""
    if judge is None:
        return list(read)
    reasons = iter(judge([event for event in read if isinstance(event, Event)]))
    found: list[Event | EventError | None] = []
    for event in read:
        reason = next(reasons) if isinstance(event, Event) else None
        found.append(event if reason is None else EventError(reason))
    return found


def ids_of(events: Sequence[Event]) -> Column:
    """Return the ids of events: whole numbers if all of them are, else text."""
    ids: list[Any] = [event.id for event in events]
    if all(isinstance(identity, int) for identity in ids):
        return pa.array(ids, pa.int64())
    return pa.array([str(identity) for identity in ids], pa.string())


def read_events(batch: pa.RecordBatch, content: str) -> list[Event]:
    """Make events of documents that were read for a kind of content."""
    kind = kind_of(content)
    found = []
    rows = zip(
        *(batch[name].to_pylist() for name in (ID, "source_number", "source_text", PARSED)), strict=True
    )
    for identity, number, text, packed in rows:
        data, written = kind.unpack(packed)
        source = text if number is None else number
        found.append(Event(identity, data, source=source, content_type=written))
    return found


def unpacked(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the columns of events that were packed into one."""
    struct = batch.column(PACKED)
    assert isinstance(struct, pa.StructArray)
    return pa.RecordBatch.from_struct_array(struct)


def check_ids(batch: pa.RecordBatch) -> Column:
    """Return the ids of events that come as columns: each has one."""
    identities = find_column(batch, (ID,))
    assert identities is not None
    if identities.null_count:
        raise TableError("an event has no id, though the footer of its Parquet file says otherwise")
    return identities


def lines_of(batch: pa.RecordBatch) -> list[Any]:
    """Return the lines of a batch."""
    return batch[VALUE].to_pylist()


def read_event(line: bytes, mark: str = "") -> Event | EventError | None:
    """Read one line: an event, the reason why it is none, or None for a blank line."""
    if not line.strip():
        return None
    try:
        event = Event.from_json(line)
        # Checks the values.
        event.attributes_as(mark)
    except EventError as error:
        return error
    return event


def is_record(row: Mapping[str, object], default: str | None) -> bool:
    """Tell whether a row, by folded names, is a record and no document; `default` is the type of those.

    >>> is_record({"datacontenttype": "xml", "data": "<a/>"}, None), is_record({"data": "<a/>"}, None)
    (False, True)
    """
    named, text = row.get(CONTENT_TYPE), isinstance(row.get(DATA), str | bytes)
    if isinstance(named, str) and media_type(named) is not None:
        return not text
    return named is not None or default is None or not text


def keep_events(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Drop the lines that are no events, and blank ones."""
    for batch in batches:
        kept = [isinstance(read_event(line), Event) for line in lines_of(batch)]
        yield batch.filter(pa.array(kept, pa.bool_()))


SURVEY_DDL = f"{ROW} string, {REASON} string, {NUMBERS} long, {TEXTS} long"
_TYPES: dict[str, pa.DataType] = {
    ROW: pa.string(),
    REASON: pa.string(),
    NUMBERS: pa.int64(),
    TEXTS: pa.int64(),
}
_SURVEY = pa.schema(_TYPES)


def survey_lines(
    batches: Iterable[pa.RecordBatch], judge: Judge | None = None, mark: str = ""
) -> Iterator[pa.RecordBatch]:
    """List the lines that are no events, with the reason, and count the ids by type."""
    for batch in batches:
        yield tally(_lines(batch, None, judge, mark))


def tally(rows: Rows) -> pa.RecordBatch:
    """Write the rows that are no events, and how many ids there are of each type."""
    refused = [{ROW: row, REASON: reason} for row, reason in rows.refused]
    counts = {NUMBERS: len(rows.ids) - rows.texts, TEXTS: rows.texts}
    return pa.RecordBatch.from_pylist([*refused, counts], schema=_SURVEY)


def count_refused(batches: Iterable[pa.RecordBatch], sources: Sources) -> Iterator[pa.RecordBatch]:
    """Count the sources that are refused."""
    for batch in batches:
        check_texts(batch)
        refused = sum(reason is not None for reason in sources.refusals(batch.column(SOURCE)))
        yield pa.RecordBatch.from_pydict({ROW: pa.array([refused], pa.int64())})


def list_refused(batches: Iterable[pa.RecordBatch], sources: Sources) -> Iterator[pa.RecordBatch]:
    """List the rows whose source is refused, with the reason."""
    for batch in batches:
        reasons = pa.array(sources.refusals(batch.column(SOURCE)), pa.string())
        found = pa.RecordBatch.from_arrays([batch.column(ROW), reasons], names=[ROW, REASON])
        yield found.filter(reasons.is_valid())
