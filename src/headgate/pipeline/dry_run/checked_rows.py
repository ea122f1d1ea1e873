"""The first rows of each table as the jobs would judge them: which are usable, and why the others are not."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headgate.contents.registry import kind_of
from headgate.core.event import CONTENT_TYPE, ID, SOURCE, Event
from headgate.core.values import fold
from headgate.errors import EventError, HeadgateError
from headgate.pipeline.dry_run.samples import (
    Rows,
    content_at_hand,
    first_documents,
    first_rows,
    typed,
)
from headgate.tables.places import Format, format_of, is_remote, is_table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from headgate.contents.kind import Kind
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

    def read(self, most: int) -> Rows | None:
        """Read or make the first rows; None if it lies where only Spark can look."""
        if self.made is not None:
            count = min(most, self.made.rows)
            batch = self.made.make(np.arange(count, dtype=np.int64), self.seed)
            rows = [
                {name: value for name, value in row.items() if value is not None} for row in batch.to_pylist()
            ]
            size = self._size(batch, rows) * self.made.rows // max(1, count)
            return Rows(list(rows), self.made.rows, counted=True, bytes=size)
        return None if is_remote(self.path) else first_rows(self.path, most)

    def _size(self, batch: Any, rows: list[dict[str, Any]]) -> int:
        if format_of(self.path) is Format.PARQUET:
            import pyarrow as pa
            import pyarrow.parquet as pq

            sink = pa.BufferOutputStream()
            pq.write_table(pa.Table.from_batches([batch]), sink, compression="snappy")
            return sink.getvalue().size
        return sum(len(json.dumps(row, default=str)) + 1 for row in rows)


def judge_events(pipeline: Pipeline, source: Source) -> CheckedRows | None:
    """Judge the first events as matching would."""
    kind = kind_of(content_at_hand(pipeline))
    said = pipeline.format
    if source.made is None and is_remote(source.path):
        return None
    if kind.documents and source.made is None and not is_table(source.path):
        rows: Rows | None = first_documents(source.path, kind, said, DOCUMENTS)
    else:
        rows = source.read(DOCUMENTS if kind.documents else EVENTS)
    if rows is None:
        return None
    text_only = source.made is None and is_table(source.path) and format_of(source.path) is Format.CSV

    def event(row: dict[str, Any]) -> Event:
        given = typed(row, (ID, SOURCE)) if text_only and not kind.documents else row
        if kind.documents and said is not None and CONTENT_TYPE not in map(fold, given):
            given = {**given, CONTENT_TYPE: said}
        found = Event.from_row(given)
        if kind.rows and isinstance(found.data, dict):
            found.attributes  # noqa: B018 -- checks the values
        elif isinstance(found.data, dict):
            raise EventError(f"event {found.id!r} is a record, and these filters look at documents")
        return found

    judged = _judged(source, rows, event)
    return _read_documents(judged, kind) if kind.documents else judged


def _read_documents(judged: CheckedRows, kind: Kind) -> CheckedRows:
    """Parse documents; a feed is one event for each of its items."""
    try:
        read = kind.read(judged.events)
    finally:
        kind.close()
    events = tuple(event for each in read if not isinstance(each, EventError) for event in each.events)
    reasons = tuple(str(each) for each in read if isinstance(each, EventError))
    return replace(judged, usable=len(events), events=events, reasons=(*judged.reasons, *reasons))


def refuse_sources(judged: CheckedRows, reasons: Sequence[str | None]) -> CheckedRows:
    """Refuse events for which there is a reason: those that come from no node of the graph."""
    pairs = list(zip(judged.events, reasons, strict=True))
    events = tuple(event for event, reason in pairs if reason is None)
    told = tuple(reason for _, reason in pairs if reason is not None)
    return replace(judged, usable=len(events), events=events, reasons=(*judged.reasons, *told))


def _judged(source: Source, rows: Rows, read: Callable[[dict[str, Any]], Event]) -> CheckedRows:
    found, reasons = [], []
    for row in rows.rows:
        try:
            if isinstance(row, str):
                raise EventError(row)
            found.append(read(row))
        except HeadgateError as error:
            reasons.append(str(error))
        except (KeyError, TypeError, ValueError) as error:
            reasons.append(f"the row is not usable: {error}")
    made = source.made is not None
    return CheckedRows(source.path, rows, len(found), tuple(reasons), tuple(found), made)
