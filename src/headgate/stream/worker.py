"""What workers do with a part of a batch: read it, judge it, match it, and write what comes of it.

    rows -> events -> late? seen before? from nowhere? -> matches -> a file of matches, staged
               └──────────────┴───────────────┴────────► a file of dead letters, staged
                                                         one row for the driver: files, counts, hashes of ids

An event is read once and asked for once. What a part cannot know is whether another part of the same batch
has the same id; the driver sees it in the hashes, and has the batch done again without the second one.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from headgate.contents.registry import kind_of
from headgate.core.event import Event
from headgate.core.omission import Omissions, within
from headgate.errors import EventError
from headgate.runtime.parts import PartWriter
from headgate.runtime.pieces import Counting, sources_of
from headgate.runtime.seen import found_in, hash_ids
from headgate.runtime.statistics import pack_statistics
from headgate.stream.reading import SourceReading, SourceRow, read_given
from headgate.stream.rows import (
    DEAD,
    DUPLICATE,
    LATE,
    LEFT_OUT,
    MALFORMED,
    UNKNOWN,
    Origin,
    PartReport,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from headgate.engine.question import Question
    from headgate.runtime.engines import Runtime
    from headgate.runtime.snapshots import Version

    Column = pa.Array[Any]


class PartTask(NamedTuple):
    """What workers must know of a batch."""

    batch: int
    at: int
    """When it was pinned, in microseconds."""
    reading: SourceReading
    version: Version
    question: Question
    schema: pa.Schema
    """The columns of a match."""
    folder: str
    """Where matches are staged."""
    form: str
    dead_folder: str
    dead_form: str
    watermark: int | None
    """Events before it are late; in microseconds."""
    seen: tuple[str, ...] | None
    """Files of ids; None if duplicates are welcome."""
    oldest: int
    """The second from which on those count."""
    counts: bool = False
    """Whether statistics of subscriptions are wanted."""
    struck: Mapping[int, frozenset[int]] | None = None
    """By part, the hashes of ids that another part of the batch has, too, and that are left to it."""


def match_part(
    batches: Iterable[pa.RecordBatch], task: PartTask, number: int = 0, attempt: int = 0
) -> PartReport:
    """Do all of it for one part."""
    name = f"batch-{task.batch:010d}-{number:05d}"
    part = _Part(task, number, task.version.open())
    report = part.report
    written = PartWriter(task.folder, f"{name}.{attempt}", task.form, task.schema)
    dead = PartWriter(task.dead_folder, f"{name}.{attempt}", task.dead_form, DEAD)
    begun = time.perf_counter()
    try:
        for given in read_given(batches, task.reading):
            events, refused = part.judged(given)
            before = time.perf_counter()
            for begin in range(0, len(events), _SIZE):
                some = events[begin : begin + _SIZE]
                for matches in part.matches(some):
                    written.write(matches)
                dead.write(part.left_out(some))
            report.matching += time.perf_counter() - before
            dead.write(refused)
        report.file, report.dead_file = written.close(), dead.close()
    except BaseException:
        written.abandon()
        dead.abandon()
        raise
    finally:
        kind_of(task.reading.content).close()
    report.reading = time.perf_counter() - begun - report.matching
    report.matches = written.rows
    return part.done()


_SIZE = 2048


class _Part:
    """What is found out about a part as it is read."""

    def __init__(self, task: PartTask, number: int, engines: Runtime) -> None:
        self._task = task
        self.report = PartReport(number)
        self._struck = (task.struck or {}).get(number, frozenset())
        self._pieces = engines
        self._statistics = engines.statistics_of_part() if task.counts else None
        self._left_out = Omissions()
        self._own: set[int] = set()

    def judged(self, given: Sequence[SourceRow]) -> tuple[list[tuple[SourceRow, Event]], pa.RecordBatch]:
        """Tell the events that are to be matched from the others, which come with their reasons."""
        # Documents are read, and may be several events each.
        read = self._read(given)
        reasons = self._refused([event for _, event in read])
        events: list[tuple[SourceRow, Event]] = []
        dead = []
        hashes = hash_ids(event.id if isinstance(event, Event) else "" for _, event in read)
        seen = found_in(hashes, self._task.seen or (), self._task.oldest)
        marks, repeated = hashes.tolist(), seen.tolist()
        for (row, event), reason, mark, again in zip(read, reasons, marks, repeated, strict=True):
            kind, why = self._verdict(event, reason, mark, again or mark in self._struck)
            if kind is not None:
                self.report.dead[kind] += 1
                dead.append((row, kind, why, None))
                continue
            assert isinstance(event, Event)
            events.append((row, event))
            self._note(row, event, mark)
        return events, self._letters(dead)

    def _read(self, given: Sequence[SourceRow]) -> list[tuple[SourceRow, Event | EventError]]:
        kind = kind_of(self._task.reading.content)
        if not kind.documents:
            return [(each, each.event) for each in given]
        outcomes: list[tuple[SourceRow, Event | EventError]] = []
        for each, read in zip(given, kind.read([each.event for each in given]), strict=True):
            if isinstance(read, EventError):
                outcomes.append((each, read))
            else:
                outcomes += [(each, event) for event in read.events]
        return outcomes

    def _refused(self, events: Sequence[Event | EventError]) -> list[str | None]:
        """Say why events come from nowhere."""
        reasons: list[str | None] = [None] * len(events)
        if self._pieces.graph:
            rows = [row for row, event in enumerate(events) if isinstance(event, Event)]
            sources = sources_of([event for event in events if isinstance(event, Event)])
            for row, reason in zip(rows, self._pieces.refusals(sources), strict=True):
                reasons[row] = reason
        return reasons

    def _verdict(
        self, event: Event | EventError, nowhere: str | None, mark: int, seen: bool
    ) -> tuple[str | None, str]:
        """Say whether a row is a dead letter, and why."""
        task = self._task
        if isinstance(event, EventError):
            return MALFORMED, str(event)
        if nowhere is not None:
            return UNKNOWN, nowhere
        if task.watermark is not None and event.time is not None and _micros(event) < task.watermark:
            newest = np.datetime64(task.watermark, "us")
            return (
                LATE,
                f"event {event.id!r} is of {event.time.isoformat()}, and those before {newest}Z are late",
            )
        if task.seen is None:
            return None, ""
        own = mark in self._own
        self._own.add(mark)
        if seen or own:
            return DUPLICATE, f"event {event.id!r} was seen before, within the window"
        return None, ""

    def _note(self, row: SourceRow, event: Event, mark: int) -> None:
        report = self.report
        if event.time is not None:
            report.newest = max(report.newest or 0, _micros(event))
        if not report.origins or report.origins[-1].name != row.origin:
            arrived = None if row.arrived is None else row.arrived.timestamp()
            report.origins.append(Origin(row.origin, 0, arrived))
        report.origins[-1].events += 1
        report.hashes.append(mark)

    def matches(self, given: Sequence[tuple[SourceRow, Event]]) -> Iterator[pa.RecordBatch]:
        """Ask for some events, all at once, in portions."""
        ids = pa.array([str(event.id) for _, event in given], pa.string())
        schema = self._task.schema
        counting = None if self._statistics is None else Counting(self._statistics)
        events = [event for _, event in given]
        portions = self._pieces.ask(events, ids, self._task.question, counting)
        for portion in within(lambda: self._left_out, portions):
            columns = [portion.column(name).cast(schema.field(name).type) for name in schema.names]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    def left_out(self, given: Sequence[tuple[SourceRow, Event]]) -> pa.RecordBatch:
        """Write a letter for each filter that was too expensive for one of the events asked about last."""
        left_out, self._left_out = self._left_out, Omissions()
        rows = {str(event.id): row for row, event in given} if len(left_out) else {}
        self.report.dead[LEFT_OUT] += len(left_out)
        if self._statistics is not None:
            self._statistics.exceed(left_out)
        dead = [
            (rows[str(event)], LEFT_OUT, why, None if identity is None else str(identity))
            for event, identity, why in left_out
        ]
        return self._letters(dead)

    def _letters(self, dead: Sequence[tuple[SourceRow, str, str, str | None]]) -> pa.RecordBatch:
        batch, at = self._task.batch, self._task.at
        rows = [(row.text(), why, kind, row.origin, batch, at, identity) for row, kind, why, identity in dead]
        columns: Iterable[Any] = zip(*rows, strict=True) if rows else [()] * len(DEAD)
        arrays = [pa.array(column, field.type) for column, field in zip(columns, DEAD, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=DEAD)

    def done(self) -> PartReport:
        """Return what the driver must know."""
        if self._statistics is not None:
            self.report.statistics = pack_statistics(self._statistics.table())
        return self.report


def _micros(event: Event) -> int:
    assert event.time is not None
    return round(event.time.timestamp() * 1_000_000)
