"""Clauses as sets of codes, and events as codes on lines: what rankings ask, without an index of filters."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

from headgate.contents.columns import picked
from headgate.contents.protocol import slice_of
from headgate.core.interning import TextPool
from headgate.records.events.columns import columns_of
from headgate.records.events.encode import encode
from headgate.records.events.rows import RowEncoder
from headgate.records.index.build import without_filters
from headgate.records.index.lines import Lines, make_lines
from headgate.records.programs.programs import VALUE, starts, take
from headgate.records.programs.tokens import AND, FALSE, OR

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from headgate.core.arrays import Bools, Ints, Ints32
    from headgate.core.event import Event
    from headgate.records.index.arrays import BuiltIndex
    from headgate.records.programs.programs import Programs


CHUNK = 10_000
"""Events encoded together, at most."""
_PATHS = msgspec.json.Decoder(tuple[tuple[str, ...], ...])
_LINES, _ATTRIBUTES, _OFFSETS, _TEXTS = "lines_", "attributes", "text_offsets", "text_data"


class RecordCoder:
    """Finds the codes of events on the lines of clauses."""

    def __init__(self, built: BuiltIndex) -> None:
        self.built = built
        self.lines = built.lines.size

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> RecordCoder:
        """Read what `to_arrays` gave."""
        lines = Lines(**{name: arrays[_LINES + name] for name in Lines._fields})
        attributes = _PATHS.decode(arrays[_ATTRIBUTES].tobytes())
        return cls(without_filters(attributes, 0, lines, TextPool(arrays[_OFFSETS], arrays[_TEXTS])))

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return it as arrays, for a snapshot."""
        arrays: dict[str, NDArray[Any]] = {
            _LINES + name: array for name, array in self.built.lines._asdict().items()
        }
        arrays[_OFFSETS], arrays[_TEXTS] = self.built.texts
        arrays[_ATTRIBUTES] = np.frombuffer(msgspec.json.encode(self.built.attributes), np.uint8)
        return arrays

    @cached_property
    def _rows(self) -> RowEncoder:
        return RowEncoder(self.built)

    def codes(self, event: Event) -> Ints32:
        """Return the code of an event on each line."""
        codes: Ints32 = self._rows.encode((event,)).codes[0]
        return codes

    def many_codes(self, events: pa.RecordBatch | Sequence[Event]) -> Ints32:
        """Return the codes of many events, one row each."""
        if not isinstance(events, pa.RecordBatch):
            return self._rows.encode(events).codes
        codes = [
            encode(columns_of(slice_of(events, first, first + CHUNK)), self.built).codes
            for first in range(0, len(events), CHUNK)
        ]
        return np.concatenate([np.zeros((0, self.lines), np.int32), *codes])


class CodedRecordClauses(NamedTuple):
    """Clauses that are sets of codes: see `contents.protocol.CodedClauses`."""

    coded: Bools
    start: Ints
    part: Ints32
    line: Ints32
    low: Ints32
    high: Ints32
    coder: RecordCoder


def code_clauses(programs: Programs) -> CodedRecordClauses:
    """Find the codes of clauses, each a program: of those that are leaves over values with OR, or with AND.

    A leaf that sees strings in several ways is on as many lines, and so is one that is true of NULL there.

    >>> from headgate.records.programs.binding import compile_filters
    >>> texts = ["a > 1", "a = 1 OR b = 2", "NOT (a = 1 OR b = 2)", "a LIKE '%x'"]
    >>> found = code_clauses(compile_filters(texts).programs)
    >>> found.coded.tolist(), found.start.tolist(), found.part.tolist(), found.line.tolist()
    ([True, True, True, False], [0, 1, 3, 6, 6], [0, 0, 0, 0, 0, 1], [0, 0, 1, 0, 0, 1])
    """
    value = np.append(programs.leaf_kind == VALUE, [False] * -FALSE)
    first = programs.token_start[:-1]
    plain = [
        np.logical_and.reduceat(value[programs.tokens] | (programs.tokens == join), first)
        for join in (AND, OR)
    ]
    coded = plain[0] | plain[1]
    chosen = np.flatnonzero(coded)
    some = take(programs, chosen)
    lines, parts, texts = make_lines(some)
    leaf = some.tokens >= 0
    clause = np.repeat(np.arange(len(chosen)), np.diff(some.token_start))[leaf]
    each = np.bincount(clause, minlength=len(chosen))
    number = np.where(plain[1][chosen][clause], 0, np.arange(len(clause)) - starts(each)[:-1][clause])
    part, owner = _inside(parts.part_start, some.tokens[leaf])
    clause, number = clause[owner], number[owner]
    at, owner = _inside(parts.set_start, part)
    intervals = _disjoint(
        _Intervals(
            clause[owner],
            number[owner].astype(np.int32),
            parts.part_line[part][owner],
            parts.set_low[at],
            parts.set_high[at],
        )
    )
    intervals = intervals.take(_able(intervals, np.where(plain[1][chosen], 1, each)))
    counts = np.zeros(programs.filters, np.int64)
    counts[chosen] = np.bincount(intervals.clause, minlength=len(chosen))
    coder = RecordCoder(without_filters(some.attributes, len(chosen), lines, texts))
    return CodedRecordClauses(coded, starts(counts), *intervals[1:], coder)


class _Intervals(NamedTuple):
    clause: Ints
    part: Ints32
    line: Ints32
    low: Ints32
    high: Ints32

    def take(self, kept: NDArray[Any]) -> _Intervals:
        return _Intervals(*(column[kept] for column in self))


def _able(intervals: _Intervals, parts: Ints) -> Bools:
    """Tell the intervals of clauses that may hold: all of whose parts have some."""
    begins = np.ones(len(intervals.clause), np.bool_)
    begins[1:] = (intervals.clause[1:] != intervals.clause[:-1]) | (intervals.part[1:] != intervals.part[:-1])
    there = np.bincount(intervals.clause[begins], minlength=len(parts))
    able: Bools = (there == parts)[intervals.clause]
    return able


def _inside(start: Ints, chosen: NDArray[np.integer[Any]]) -> tuple[Ints, Ints]:
    """List what the chosen ones have, start[c] up to start[c + 1] each, and which of them has it."""
    begins, positions = picked(start, chosen)
    return positions, np.repeat(np.arange(len(chosen)), np.diff(begins))


def _disjoint(intervals: _Intervals) -> _Intervals:
    """Sort intervals by clause, part and line, and join those that meet: leaves may share a line."""
    clause, part, line, low, high = intervals
    same = (clause[1:] == clause[:-1]) & (part[1:] == part[:-1])
    apart = (line[1:] > line[:-1]) | ((line[1:] == line[:-1]) & (low[1:] > high[:-1] + 1))
    if bool((~same | apart).all()):
        return intervals
    intervals = intervals.take(np.lexsort((low, line, part, clause)))
    clause, part, line, low, high = intervals
    other = np.ones(len(clause), np.bool_)
    other[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in (clause, part, line)])
    # What goes before is below: each line of each part has codes of its own.
    shift = np.cumsum(other) * (np.int64(high.max()) + 2)
    reached = np.maximum.accumulate(high + shift)
    begins = np.append(True, (low + shift)[1:] > reached[:-1] + 1) | other
    ends = np.append(begins[1:], True)
    return intervals.take(begins)._replace(high=(reached - shift)[ends].astype(np.int32))
