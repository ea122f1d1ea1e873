"""Events that jobs ask for: what workers get of a table or a folder, and what is known of it."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import pyarrow as pa

from headgate.contents.kind import Feeds
from headgate.contents.registry import kind_of
from headgate.core.event import CONTENT_TYPE, DATA, ID
from headgate.tables.document_rows import (
    FEEDS,
    LENIENT,
    NOTES,
    READ,
    TALLY,
    WHOLE_TEXTS,
    ReadSettings,
    read_files,
    read_rows,
)
from headgate.tables.event_rows import NUMBERS, PARSED, PARSED_BEFORE, REASON, ROW, TEXTS
from headgate.tables.places import Format, as_spark, base_of, is_remote
from headgate.tables.requests import check_events, check_type

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from headgate.jobs.runner import Rows, Runner
    from headgate.runtime.targets import Sources

_Rows_co = TypeVar("_Rows_co", bound="Rows", covariant=True)
SOURCES = ("source_number", "source_text")
"""The columns of an event's source."""
_COUNTS = pa.schema([pa.field(name, pa.int64()) for name in (*TALLY, REASON)])


def _nothing() -> None:
    """Leave events to the end of the job."""


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
    reading = ReadSettings(content, check_type(content_type, kind), sources, keep, folder, records)
    work = partial(read_files if form is None else read_rows, reading=reading)
    with ExitStack() as held:
        # Kept, because parsing is most of the work.
        read = held.enter_context(runner.documents(path, kind, form).map(work, READ).kept())
        counts = read.select(*TALLY, REASON).map(_count, _COUNTS).collect().to_pylist()
        tally = {name: sum(each[name] for each in counts) for name in _COUNTS.names}
        # CSV has text only, so it is read.
        whole = form is Format.CSV and tally[WHOLE_TEXTS] == tally[TEXTS]
        id_type = "long" if whole or not tally[TEXTS] else "string"
        typed = pa.int64() if id_type == "long" else pa.string()
        events = read.having(PARSED).coalesced(ID, typed, "id_text", "id_number")
        feeds = Feeds(tally[FEEDS], tally[LENIENT], tally[NOTES])
        return EventTable(
            PARSED_BEFORE,
            events.select(ID, *SOURCES, PARSED, *((CONTENT_TYPE, DATA) if keep else ())),
            read.having(REASON).select(ROW, REASON),
            tally[NUMBERS] + tally[TEXTS],
            tally[REASON],
            id_type,
            feeds=feeds if feeds.feeds else None,
            forget=held.pop_all().close,
        )


def _count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Sum up what was read, and count what was refused."""
    counts = dict.fromkeys(_COUNTS.names, 0)
    for batch in batches:
        counts[REASON] += batch.num_rows - batch[REASON].null_count
        for name in TALLY:
            counts[name] += sum(each or 0 for each in batch[name].to_pylist())
    yield pa.RecordBatch.from_pylist([counts], _COUNTS)
