"""The first rows of each table as the jobs would judge them: which are usable, and why the others are not."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from headgate.contents.registry import kind_of
from headgate.core.event import ID, SOURCE, Event
from headgate.core.values import fold
from headgate.errors import EventError
from headgate.local.events import file_rows
from headgate.local.rows import rows_of
from headgate.pipeline.dry_run.samples import Rows, content_at_hand, first_rows, without_nulls
from headgate.tables.document_rows import READ, ReadSettings, read_files, read_rows
from headgate.tables.event_rows import PARSED, REASON, read_event, read_events, read_row
from headgate.tables.places import Format, format_of, is_remote, is_table, table_files
from headgate.tables.requests import are_documents, check_type
from headgate.tables.text_types import UnclearError, meant_kind, typed_column

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from headgate.contents.kind import Kind
    from headgate.pipeline.dry_run.samples import Row
    from headgate.pipeline.file.model import Pipeline
    from headgate.pipeline.run.generating import GeneratedTable

EVENTS, DOCUMENTS = 1_000, 200
"""Events of a sample: each is matched, and documents are parsed as well."""


@dataclass(frozen=True)
class CheckedRows:
    """What the first rows of a table are, and what they say of the table."""

    path: str
    rows: Rows
    usable: int
    """How many subscriptions, nodes, edges or events they are."""
    reasons: tuple[str, ...]
    """Why the others are refused."""
    events: tuple[Event, ...] = ()
    """Those that they are, if they are events."""
    generated: bool = False

    @property
    def looked_at(self) -> int:
        """Count the rows that were read."""
        return len(self.rows.rows)

    @property
    def total(self) -> int:
        """Estimate how many rows of the table are usable."""
        share = self.usable / self.looked_at if self.looked_at else 1.0
        return round(self.rows.total * share)


class Source(NamedTuple):
    """Where a table comes from: a place, and perhaps how it will be made."""

    path: str
    made: GeneratedTable | None
    seed: int = 1

    @property
    def form(self) -> Format:
        """Return the format; rows that are generated have the types of JSON."""
        return Format.JSONL if self.made is not None else format_of(self.path)

    def read(self, most: int) -> Rows | None:
        """Read or make the first rows; None if it lies where only Spark can look."""
        if self.made is not None:
            count = min(most, self.made.rows)
            batch = self.made.make(np.arange(count, dtype=np.int64), self.seed)
            rows = [without_nulls(row) for row in batch.to_pylist()]
            size = self._size(batch, rows) * self.made.rows // max(1, count)
            return Rows(list(rows), self.made.rows, counted=True, bytes=size)
        return None if is_remote(self.path) else first_rows(self.path, most)

    def _size(self, batch: Any, rows: list[dict[str, Any]]) -> int:
        if format_of(self.path) is Format.PARQUET:
            import pyarrow.parquet as pq

            sink = pa.BufferOutputStream()
            pq.write_table(pa.Table.from_batches([batch]), sink, compression="snappy")
            return sink.getvalue().size
        return sum(len(json.dumps(row, default=str)) + 1 for row in rows)


def judge_events(pipeline: Pipeline, source: Source) -> CheckedRows | None:
    """Judge the first events as matching would."""
    kind = kind_of(content_at_hand(pipeline))
    if source.made is None and is_remote(source.path):
        return None
    written = check_type(pipeline.format, kind)
    if kind.documents and source.made is None and not is_table(source.path):
        files = table_files(source.path)
        size = sum(file.stat().st_size for file in files)
        found = Rows([file.name for file in files[:DOCUMENTS]], len(files), counted=True, bytes=size)
        read = read_files(file_rows(files[:DOCUMENTS], kind), ReadSettings(kind.name, written))
        return _of_documents(source, found, read, kind)
    rows = source.read(DOCUMENTS if kind.documents else EVENTS)
    if rows is None:
        return None
    form = source.form
    names = {name for row in rows.rows if isinstance(row, dict) for name in row}
    if are_documents(kind, form, lambda: names):
        reading = ReadSettings(kind.name, written, records=kind.rows and form is Format.JSONL)
        return _of_documents(source, rows, read_rows(rows.lines(), reading), kind, rows.unreadable)
    judged = [event_of(row) for row in (typed(rows.rows) if form is Format.CSV else rows.rows)]
    events = tuple(each for each in judged if isinstance(each, Event))
    reasons = tuple(str(each) for each in judged if isinstance(each, EventError))
    return CheckedRows(source.path, rows, len(events), reasons, events, source.made is not None)


def event_of(row: Row) -> Event | EventError | None:
    """Read a row as matching would."""
    if isinstance(row, str):
        return EventError(row)
    return read_event(row) if isinstance(row, bytes) else read_row(row)


def typed(rows: Sequence[Row]) -> list[Row]:
    """Give the columns of CSV the types that Spark infers, as far as these rows say; ids are text."""
    columns: dict[str, set[str]] = {}
    for row in rows:
        for name, value in row.items() if isinstance(row, dict) else ():
            if isinstance(value, str) and fold(name) not in {ID, SOURCE}:
                columns.setdefault(name, set()).add(value)
    known = {}
    for name, texts in columns.items():
        with suppress(UnclearError):
            known[name] = typed_column(texts, meant_kind)[1]
    return [
        {name: known.get(name, {}).get(value, value) for name, value in row.items()}
        if isinstance(row, dict)
        else row
        for row in rows
    ]


def _of_documents(
    source: Source, rows: Rows, read: Iterable[pa.RecordBatch], kind: Kind, unreadable: Iterable[str] = ()
) -> CheckedRows:
    """Take what was read of documents; a feed is one event for each of its items."""
    found = rows_of(pa.Table.from_batches(read, READ))
    reasons: list[Any] = [*unreadable, *found.having(REASON).collect()[REASON].to_pylist()]
    parsed = found.having(PARSED).coalesced(ID, pa.string(), "id_text", "id_number").collect()
    events = [event for batch in parsed.to_batches() for event in read_events(batch, kind.name)]
    return CheckedRows(source.path, rows, len(events), tuple(reasons), tuple(events), source.made is not None)


def refuse_sources(judged: CheckedRows, reasons: Sequence[str | None]) -> CheckedRows:
    """Refuse events for which there is a reason: those that come from no node of the graph."""
    pairs = list(zip(judged.events, reasons, strict=True))
    events = tuple(event for event, reason in pairs if reason is None)
    told = tuple(reason for _, reason in pairs if reason is not None)
    return replace(judged, usable=len(events), events=events, reasons=(*judged.reasons, *told))
