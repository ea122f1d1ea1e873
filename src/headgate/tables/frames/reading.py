"""The events of batches: what is one, and why a row is none, is decided here for every job and DataFrame.

    lines        value: bytes                               a line of JSON each
    columns      id, event: struct<source?, attributes>     stay columns
    documents    id, source, data, datacontenttype, event?  parsed here; a row that is a record has its
                                                            attributes in `event`
    parsed       id, source_number, source_text, parsed     were parsed before, and are unpacked

    batch -> events, and rows that are none with their reasons

Beside them may stand `kept`, what is wanted of rows with their matches, and `event_key`.
"""

from __future__ import annotations

import json
from contextlib import closing
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from headgate.contents.registry import kind_of
from headgate.core.event import CONTENT_TYPE, DATA, ID, SOURCE, Event
from headgate.core.rooms import RECORDS
from headgate.engine.answers import visible
from headgate.engine.question import ALL
from headgate.errors import EventError
from headgate.runtime.rows import NOT_UTF8
from headgate.tables.document_rows import event_of_row
from headgate.tables.event_rows import (
    COLUMNS,
    DOCUMENTS,
    LINES,
    NO_ID,
    NUMBERS,
    PACKED,
    PARSED_BEFORE,
    REASON,
    ROW,
    SURVEY,
    TEXTS,
    judged,
    read_events,
    read_lines,
)
from headgate.tables.lines import BROKEN, VALUE
from headgate.tables.utf8 import as_bytes, bad_rows, is_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from headgate.contents.kind import Kind
    from headgate.core.event import Id
    from headgate.engine.backend import Events
    from headgate.engine.question import Question
    from headgate.runtime.targets import Sources
    from headgate.tables.frames.task import FrameTask

    Column = pa.Array[Any]
    RowNumbers = NDArray[np.int64]

KEPT = "kept"
TOGETHER = {LINES: 2048, COLUMNS: 10_000, DOCUMENTS: 10_000, PARSED_BEFORE: 2048}
"""Events asked about together, at most; Python values take more room than columns."""
FEED_IDS = "items of a feed have ids that are text: cast the id to string"


class Reading(NamedTuple):
    """What must be known to read events; a task of matching says it, too."""

    form: str
    content: str
    content_type: str | None = None
    sources: Sources | None = None
    mark: str = ""
    question: Question = ALL


class Given(NamedTuple):
    """The events of a batch: each is of a row, and a row may hold several."""

    batch: pa.RecordBatch
    events: Events
    ids: Column
    rows: RowNumbers
    refused: list[tuple[int, str]]
    """Rows that are none, with the reasons."""

    @property
    def texts(self) -> bool:
        """Tell whether some ids are text."""
        return len(self.ids) > 0 and not pa.types.is_integer(self.ids.type)

    def refusals(self) -> list[tuple[str | None, str]]:
        """List the rows that are no events as they came, with the reasons."""
        rows = self.written([row for row, _ in self.refused])
        return [(row, why) for row, (_, why) in zip(rows, self.refused, strict=True)]

    def written(self, rows: Sequence[int]) -> list[str | None]:
        """Write some rows: lines as they came, or what is kept of them, as JSON; None if nothing is."""
        at = pa.array(rows, pa.int64())
        if VALUE in self.batch.schema.names:
            lines: list[Any] = self.batch.column(VALUE).take(at).to_pylist()
            broken = [None] * len(lines)
            if BROKEN in self.batch.schema.names:
                broken = self.batch.column(BROKEN).take(at).to_pylist()
            return [
                other if line is None else line.decode(errors="replace")
                for line, other in zip(lines, broken, strict=True)
            ]
        if KEPT not in self.batch.schema.names:
            return [None] * len(rows)
        whole: Any = self.batch.column(KEPT).take(at)
        # Texts that are not UTF-8 are shown as far as they are.
        kept = (whole if is_text(whole) else as_bytes(whole)).to_pylist()
        return [json.dumps(row, ensure_ascii=False, default=_text) for row in kept]


def keep_lines(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Drop the lines that are no events, and blank ones."""
    for given in read_frame(batches, Reading(LINES, RECORDS)):
        rows: Any = pa.array(given.rows)
        yield given.batch.take(rows)


def survey_lines(batches: Iterable[pa.RecordBatch], reading: Reading) -> Iterator[pa.RecordBatch]:
    """List the lines that are no events, with the reason, and count the ids by type."""
    for given in read_frame(batches, reading):
        refused = [{ROW: row, REASON: why} for row, why in given.refusals()]
        texts = sum(isinstance(event.id, str) for event in events_of(given))
        counts = {NUMBERS: len(given.events) - texts, TEXTS: texts}
        yield pa.RecordBatch.from_pylist([*refused, counts], schema=SURVEY)


def _text(value: object) -> str:
    """Write what JSON has no form for."""
    return value.decode(errors="backslashreplace") if isinstance(value, bytes) else str(value)


def events_of(given: Given) -> Sequence[Event]:
    """Return events as Python values."""
    if not isinstance(given.events, pa.RecordBatch):
        return given.events
    ids: list[Any] = given.ids.to_pylist()
    rows: list[dict[str, Any]] = [
        {name: visible(value) for name, value in row.items()} for row in given.events.to_pylist()
    ]
    # The id is told apart: a filter may look at an attribute of this name.
    return [Event(each, row, source=row.get(SOURCE)) for each, row in zip(ids, rows, strict=True)]


def read_frame(batches: Iterable[pa.RecordBatch], task: Reading | FrameTask) -> Iterator[Given]:
    """Read the events of batches, some at a time."""
    size = task.question.together(TOGETHER[task.form])
    with closing(kind_of(task.content)):
        for whole in batches:
            for begin in range(0, whole.num_rows, size):
                yield _given(whole.slice(begin, size), task)


def _given(batch: pa.RecordBatch, task: Reading | FrameTask) -> Given:
    """Read the events of a batch; rows with texts that are not UTF-8 are none."""
    read = _READERS[task.form]
    strange = bad_rows(batch.column(name) for name in batch.schema.names if name != KEPT)
    if strange is None:
        return read(batch, task)
    sound = np.flatnonzero(~strange)
    read_sound = read(batch.take(pa.array(sound, pa.int64())), task)
    refused = [(int(sound[row]), why) for row, why in read_sound.refused]
    refused += [(row, NOT_UTF8) for row in np.flatnonzero(strange).tolist()]
    return read_sound._replace(batch=batch, rows=sound[read_sound.rows], refused=sorted(refused))


def _columns(batch: pa.RecordBatch, task: Reading | FrameTask) -> Given:
    """Tell events from rows without an id, or from nowhere; all stay columns."""
    ids, packed = batch.column(ID), batch.column(PACKED)
    assert isinstance(packed, pa.StructArray)
    refused = dict.fromkeys(np.flatnonzero(np.asarray(ids.is_null())).tolist(), NO_ID)
    if task.sources is not None:
        reasons = task.sources.refusals(packed.field(SOURCE))
        refused = {row: why for row, why in enumerate(reasons) if why is not None} | refused
    events = pa.RecordBatch.from_struct_array(packed)
    rows = np.arange(batch.num_rows)
    if refused:
        rows = np.delete(rows, list(refused))
        kept: Any = pa.array(rows)
        events, ids = events.take(kept), ids.take(kept)
    return Given(batch, events, ids, rows, sorted(refused.items()))


def _lines(batch: pa.RecordBatch, task: Reading | FrameTask) -> Given:
    """Read lines of JSON; blank ones are no rows."""
    read = read_lines(batch, task.mark)
    outcomes = judged(read, None if task.sources is None else task.sources.of_events)
    rows = [row for row, event in enumerate(outcomes) if isinstance(event, Event)]
    events = [event for event in outcomes if isinstance(event, Event)]
    refused = [(row, str(why)) for row, why in enumerate(outcomes) if isinstance(why, EventError)]
    return Given(batch, events, ids_of(events), np.array(rows, np.int64), refused)


def _parsed(batch: pa.RecordBatch, task: Reading | FrameTask) -> Given:
    """Take the events of documents that were read before."""
    events = read_events(batch, task.content)
    return Given(batch, events, batch.column(ID), np.arange(batch.num_rows), [])


def _documents(batch: pa.RecordBatch, task: Reading | FrameTask) -> Given:
    """Parse documents, in this process or in one of their kind; a row may be a record."""
    kind = kind_of(task.content)
    names = [ID, SOURCE, DATA, CONTENT_TYPE]
    records: list[Any] = [None] * batch.num_rows
    if PACKED in batch.schema.names:
        records = [record and _present(record) for record in batch.column(PACKED).to_pylist()]
    read = [
        _event(row, kind, task.content_type, record)
        for row, record in zip(batch.select(names).to_pylist(), records, strict=True)
    ]
    checked = judged(read, None if task.sources is None else task.sources.of_events)
    events: list[Event] = []
    rows: list[int] = []
    refused: list[tuple[int, str]] = []
    text = not pa.types.is_integer(batch.schema.field(ID).type)
    for row, outcome in enumerate(kind.read([each for each in checked if each is not None])):
        if isinstance(outcome, EventError):
            refused.append((row, str(outcome)))
        elif text or all(isinstance(event.id, int) for event in outcome.events):
            events += outcome.events
            rows += [row] * len(outcome.events)
        else:
            refused.append((row, FEED_IDS))
    ids: list[Id] = [event.id for event in events]
    return Given(batch, events, pa.array(ids, batch.schema.field(ID).type), np.array(rows, np.int64), refused)


def _event(
    row: dict[str, Any], kind: Kind, default: str | None, record: dict[str, Any] | None
) -> Event | EventError:
    try:
        return event_of_row(row, kind, default, record)
    except EventError as error:
        return error


def _present(record: dict[str, Any]) -> dict[str, Any]:
    """List the attributes of a record: what is NULL is not there. Its kind checks the values."""
    return {name: visible(value) for name, value in record.items() if value is not None}


_READERS: Mapping[str, Callable[[pa.RecordBatch, Reading | FrameTask], Given]] = {
    LINES: _lines,
    COLUMNS: _columns,
    DOCUMENTS: _documents,
    PARSED_BEFORE: _parsed,
}


def ids_of(events: Sequence[Event]) -> Column:
    """Return the ids of events: whole numbers if all of them are, else text."""
    ids: list[Any] = [event.id for event in events]
    if all(isinstance(identity, int) for identity in ids):
        return pa.array(ids, pa.int64())
    return pa.array([str(identity) for identity in ids], pa.string())
