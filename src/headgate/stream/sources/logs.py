"""Logs of events: sources whose events have positions, so that what lies between two can be read again.

A batch of a stream ends somewhere in the log. Its end is noted in the checkpoint, by Spark or by this
process, as a JSON object that only the log reads; nothing is acknowledged. An end says of which log it is:
one that was made anew has other events at the same positions.

Whatever the source, rows have four columns:

    value         binary      one JSON line or one document; null for a file, which workers open themselves
    content_type  string      what `value` is: a media type, or null for a JSON line
    origin        string      the file or the subject, for messages; the id of a document that has no other
    arrived       timestamp   when the source got it

This module and those of logs load little: every process that Spark starts for a source loads them.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterator


VALUE, CONTENT_TYPE, ORIGIN, ARRIVED = COLUMNS = ("value", "content_type", "origin", "arrived")
DDL = f"{VALUE} binary, {CONTENT_TYPE} string, {ORIGIN} string, {ARRIVED} timestamp"
_TYPES: tuple[pa.DataType, ...] = (pa.binary(), pa.string(), pa.string(), pa.timestamp("us", "UTC"))
SCHEMA = pa.schema(dict(zip(COLUMNS, _TYPES, strict=True)))
"""The same, as Spark hands them to workers."""


End = dict[str, Any]
LEAST = 1_000
"""Positions that are worth a task."""


class Span(NamedTuple):
    """Positions of a log: from one to before another."""

    start: int
    stop: int
    log: str
    """What tells the log from one that was made anew."""

    def cut(self, parts: int) -> list[Span]:
        """Cut it into parts of about one size, none too small to be worth a task."""
        count = self.stop - self.start
        parts = max(1, min(parts, count // LEAST))
        edges = [self.start + count * part // parts for part in range(parts + 1)]
        return [Span(a, b, self.log) for a, b in pairwise(edges) if a < b]


class Log(Protocol):
    """A log of events, open."""

    max_rows: int
    """How many positions a batch has at most."""
    partitions: int
    """How many tasks share a batch; 0 is one a core."""

    def begin(self) -> End:
        """Return where a new stream begins."""

    def now(self) -> End:
        """Return the end of all that there is now."""

    def end(self, start: End, most: int | None, until: End | None = None) -> End:
        """Return how far the next batch goes: `start` if nothing is new.

        It has at most so many positions, and goes no further than `until`. Refuses to go on where the log has
        lost what is to be read next.
        """

    def span(self, start: End, end: End) -> Span:
        """Return the positions of a batch. The first batch begins where it did, whatever `begin` says now."""

    def read(self, span: Span) -> Iterator[pa.RecordBatch]:
        """Read the events at some positions: rows of the columns of a source."""

    def close(self) -> None:
        """Hang up."""
