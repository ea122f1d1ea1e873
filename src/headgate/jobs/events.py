"""Events that jobs ask for: what workers get of a table or a folder, and what is known of it."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import pyarrow as pa

from headgate.contents.kind import Feeds
from headgate.contents.registry import kind_of
from headgate.core.event import CONTENT_TYPE, DATA, ID, SOURCE, Event
from headgate.core.rooms import RECORDS
from headgate.core.values import dotted
from headgate.errors import EventError
from headgate.tables import document_rows, event_rows
from headgate.tables.frames.reading import Reading, survey_lines
from headgate.tables.lines import VALUE
from headgate.tables.places import Format, as_spark, base_of, check_input, is_remote
from headgate.tables.requests import are_documents, check_events, check_type
from headgate.tables.results import meant_by

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from headgate.jobs.runner import Rows, Runner, Table
    from headgate.runtime.targets import Sources, Target

_Rows_co = TypeVar("_Rows_co", bound="Rows", covariant=True)
SOURCES = ("source_number", "source_text")
"""The columns of an event's source."""


def _nothing() -> None:
    """Leave events to the end of the job."""


class JudgeTask(NamedTuple):
    """A table with columns whose events are to be told from rows that are none."""

    path: str
    form: Format
    sources: Sources | None = None
    """Those that do not come from one of these nodes of a graph are refused, too, if they are `placed`."""
    texts: Collection[str] | None = None
    """Columns of Parquet whose bytes may be no UTF-8, and are looked at; None is all. Of other formats all
    are."""
    placed: bool = True
    """Whether sources are looked at; else workers are left to find that an event comes from nowhere."""


@dataclass(frozen=True)
class EventTable(Generic[_Rows_co]):
    """The events of a table, and the rows that are none."""

    form: str
    """How workers get the events: one of the forms of `tables.frames.reading`."""
    rows: _Rows_co
    """Lines of JSON with bad ones among them, all columns of the events, or what workers get."""
    refused: _Rows_co
    """Rows that are none: `row` and `reason`."""
    count: int
    rejected: int
    id_type: str
    """`long` or `string`."""
    unknown: tuple[str, ...] = ()
    """Attributes that filters name and the table lacks."""
    meant: Mapping[str, str] = field(default_factory=dict)
    """Columns of it that were likeliest meant by them."""
    feeds: Feeds | None = None
    forget: Callable[[], object] = _nothing
    """Frees what was kept."""


def read_events(
    runner: Runner,
    path: str,
    target: Target,
    sources: Sources | None,
    content_type: str | None = None,
    *,
    texts: bool = True,
) -> EventTable[Any]:
    """Judge a table of events, or a folder of documents, as the content of the filters wants it.

    Without `texts`, workers are left to find that a text of Parquet is not UTF-8, and that an event comes
    from nowhere.
    """
    form, documents = form_of(runner, path, target.content, content_type)
    if documents:
        return read_documents(runner, path, target.content, content_type, sources)
    assert form is not None, "only documents come in files of their own"
    if form is Format.JSONL:
        return _read_lines(runner, path, sources, target.mark)
    looked_at = {ID, *([SOURCE] if target.graph else []), *target.columns}
    judged = runner.judged(JudgeTask(path, form, sources, looked_at if texts else (), placed=texts))
    rows, unknown = runner.packed(judged.rows, target, path)
    if not judged.count:
        unknown = ()
    meant = meant_by(unknown, map(dotted, judged.rows.attributes(target.mark)))
    return replace(judged, rows=rows, unknown=unknown, meant=meant)


def form_of(
    runner: Runner, path: str, content: str, content_type: str | None = None
) -> tuple[Format | None, bool]:
    """Tell the format of a table of events, None for files; and whether events are read as documents."""
    kind = kind_of(content)
    form = check_events(path, kind, content_type) if kind.documents else check_input(path)
    return form, are_documents(kind, form, lambda: runner.table(path).columns() or ())


def read_records(runner: Runner, path: str, mark: str) -> EventTable[Any]:
    """Judge a table of records, with all that they have; `mark` says what names mean."""
    form = check_input(path)
    return (
        _read_lines(runner, path, None, mark)
        if form is Format.JSONL
        else runner.judged(JudgeTask(path, form))
    )


def _read_lines(runner: Runner, path: str, sources: Sources | None, mark: str) -> EventTable[Any]:
    """Judge lines of JSON; bad ones stay among them."""
    lines = runner.table(path).lines().select(VALUE)
    work = partial(survey_lines, reading=Reading(event_rows.LINES, RECORDS, sources=sources, mark=mark))
    with ExitStack() as held:
        # Kept, because it is asked twice and is small: one row a batch and the refused lines.
        survey = held.enter_context(lines.map(work, event_rows.SURVEY).kept())
        tally = _tallied(survey, (event_rows.NUMBERS, event_rows.TEXTS))
        return EventTable(
            event_rows.LINES,
            lines,
            survey.having(event_rows.REASON).select(event_rows.ROW, event_rows.REASON),
            tally[event_rows.NUMBERS] + tally[event_rows.TEXTS],
            tally[event_rows.REASON],
            "string" if tally[event_rows.TEXTS] else "long",
            forget=held.pop_all().close,
        )


def first_events(
    runner: Runner, path: str, content: str, content_type: str | None, most: int, mark: str = ""
) -> tuple[list[Event], int]:
    """Read the first events of a table, or documents, as Python values; and count what is none of them."""
    form, documents = form_of(runner, path, content, content_type)
    if documents:
        given = read_documents(runner, path, content, content_type)
        batches = given.rows.head(most).to_batches()
        events = [event for batch in batches for event in event_rows.read_events(batch, content)]
        given.forget()
        return events, given.rejected
    assert form is not None, "only documents come in files of their own"
    if form is Format.JSONL:
        read, bad = first_read(runner.table(path), most, mark), 0
    else:
        judged = runner.judged(JudgeTask(path, form))
        read, bad = [*map(event_rows.read_row, judged.rows.head(most).to_pylist())], judged.rejected
    refused = sum(isinstance(each, EventError) for each in read)
    return [event for event in read if isinstance(event, Event)], bad + refused


def first_read(table: Table, most: int, mark: str = "") -> list[Event | EventError | None]:
    """Read the first rows of a table of records as Python values; a blank line is None."""
    if table.columns() is not None:
        return [*map(event_rows.read_row, table.typed().head(most).to_pylist())]
    lines: list[Any] = table.lines().head(most)[VALUE].to_pylist()
    return [event_rows.read_event(line, mark) for line in lines]


def read_documents(
    runner: Runner,
    path: str,
    content: str,
    content_type: str | None = None,
    sources: Sources | None = None,
    *,
    keep: bool = False,
) -> EventTable[Any]:
    """Read documents for a content, and tell events from what is none.

    With `sources`, those that do not come from a node of the graph are refused, too. `keep` keeps the
    documents beside what was read of them.
    """
    kind = kind_of(content)
    form = check_events(path, kind, content_type)
    records = kind.rows and form is not Format.CSV
    folder = f"{path.rstrip('/') if is_remote(path) else as_spark(base_of(path))}/"
    reading = document_rows.ReadSettings(
        content, check_type(content_type, kind), sources, keep, folder, records
    )
    work = partial(document_rows.read_files if form is None else document_rows.read_rows, reading=reading)
    with ExitStack() as held:
        # Kept, because parsing is most of the work.
        read = held.enter_context(runner.documents(path, kind, form).map(work, document_rows.READ).kept())
        tally = _tallied(read, document_rows.TALLY)
        # CSV has text only, so it is read.
        whole = form is Format.CSV and tally[document_rows.WHOLE_TEXTS] == tally[event_rows.TEXTS]
        id_type = "long" if whole or not tally[event_rows.TEXTS] else "string"
        typed = pa.int64() if id_type == "long" else pa.string()
        events = read.having(event_rows.PARSED).coalesced(ID, typed, "id_text", "id_number")
        feeds = Feeds(tally[document_rows.FEEDS], tally[document_rows.LENIENT], tally[document_rows.NOTES])
        return EventTable(
            event_rows.PARSED_BEFORE,
            events.select(ID, *SOURCES, event_rows.PARSED, *((CONTENT_TYPE, DATA) if keep else ())),
            read.having(event_rows.REASON).select(event_rows.ROW, event_rows.REASON),
            tally[event_rows.NUMBERS] + tally[event_rows.TEXTS],
            tally[event_rows.REASON],
            id_type,
            feeds=feeds if feeds.feeds else None,
            forget=held.pop_all().close,
        )


def _tallied(read: Rows, names: Sequence[str]) -> dict[str, int]:
    """Sum up what was read, and count what was refused."""
    schema = pa.schema([pa.field(name, pa.int64()) for name in (*names, event_rows.REASON)])
    counts = read.select(*schema.names).map(partial(_count, schema=schema), schema).collect().to_pylist()
    return {name: sum(each[name] for each in counts) for name in schema.names}


def _count(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    counts = dict.fromkeys(schema.names, 0)
    for batch in batches:
        counts[event_rows.REASON] += batch.num_rows - batch[event_rows.REASON].null_count
        for name in schema.names[:-1]:
            counts[name] += sum(each or 0 for each in batch[name].to_pylist())
    yield pa.RecordBatch.from_pylist([counts], schema)
