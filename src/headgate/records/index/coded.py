"""Clauses as sets of codes, and events as codes on lines: what rankings ask, without an index of filters."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

from headgate.contents.sharing import slice_of
from headgate.core.interning import TextPool
from headgate.core.values import dotted
from headgate.records.events.columns import columns_of
from headgate.records.events.encode import encode
from headgate.records.events.rows import RowEncoder
from headgate.records.index.build import BuiltIndex, without_filters
from headgate.records.index.lines import Lines, make_lines
from headgate.records.index.sides import split_leaves
from headgate.records.programs.programs import VALUE, starts, take

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from headgate.core.event import Event
    from headgate.records.programs.programs import Programs

    Ints32 = NDArray[np.int32]

CHUNK = 10_000
"""Events encoded together, at most."""
_PATHS = msgspec.json.Decoder(tuple[tuple[str, ...], ...])
_LINES, _ATTRIBUTES, _OFFSETS, _TEXTS = "lines_", "attributes", "text_offsets", "text_data"


class RecordCoder:
    """Finds the codes of events on the lines of clauses."""

    def __init__(self, built: BuiltIndex) -> None:
        self._built = built
        self.names = tuple(
            dotted(built.attributes[attribute]) for attribute in built.lines.line_attribute.tolist()
        )

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> RecordCoder:
        """Read what `to_arrays` gave."""
        lines = Lines(**{name: arrays[_LINES + name] for name in Lines._fields})
        attributes = _PATHS.decode(arrays[_ATTRIBUTES].tobytes())
        return cls(without_filters(attributes, 0, lines, TextPool(arrays[_OFFSETS], arrays[_TEXTS])))

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return it as arrays, for a snapshot."""
        arrays: dict[str, NDArray[Any]] = {
            _LINES + name: array for name, array in self._built.lines._asdict().items()
        }
        arrays[_OFFSETS], arrays[_TEXTS] = self._built.texts
        arrays[_ATTRIBUTES] = np.frombuffer(msgspec.json.encode(self._built.attributes), np.uint8)
        return arrays

    @cached_property
    def _rows(self) -> RowEncoder:
        return RowEncoder(self._built)

    def codes(self, event: Event) -> Ints32:
        """Return the code of an event on each line."""
        found: Ints32 = self._rows.encode((event,)).codes[0]
        return found

    def many_codes(self, events: pa.RecordBatch | Sequence[Event]) -> Ints32:
        """Return the codes of many events, one row each."""
        if not isinstance(events, pa.RecordBatch):
            return self._rows.encode(events).codes
        found = [
            encode(columns_of(slice_of(events, first, first + CHUNK)), self._built).codes
            for first in range(0, len(events), CHUNK)
        ]
        return np.concatenate([np.zeros((0, len(self.names)), np.int32), *found])


class CodedRecordClauses(NamedTuple):
    """Clauses that are sets of codes: see `contents.protocol.CodedClauses`."""

    line: Ints32
    start: NDArray[np.int64]
    low: Ints32
    high: Ints32
    coder: RecordCoder


def code_clauses(programs: Programs) -> CodedRecordClauses:
    """Find the codes of clauses, each a program: of those that are one leaf over a value, seen in one way.

    >>> from headgate.records.programs.binding import compile_filters
    >>> found = code_clauses(compile_filters(["a > 1", "a BETWEEN 2 AND 3", "a = 1 OR b = 2"]).programs)
    >>> found.line.tolist(), found.low.tolist(), found.high.tolist()
    ([0, 0, -1], [1, 2], [2, 2])
    """
    alone = np.diff(programs.token_start) == 1
    token = np.where(alone, programs.tokens[programs.token_start[:-1]], -1)
    value = programs.leaf_kind == VALUE
    ways = np.diff(split_leaves(programs).part_start)
    chosen = np.flatnonzero((token >= 0) & (value & (ways == 1))[token])
    some = take(programs, chosen)
    lines, parts, texts = make_lines(some)
    part = parts.part_start[some.tokens]
    line = np.full(programs.filters, -1, np.int32)
    line[chosen] = parts.part_line[part]
    counts = np.zeros(programs.filters, np.int64)
    own = np.diff(parts.set_start)[part]
    counts[chosen] = own
    at = np.arange(own.sum()) + np.repeat(parts.set_start[part] - starts(own)[:-1], own)
    coder = RecordCoder(without_filters(some.attributes, len(chosen), lines, texts))
    return CodedRecordClauses(line, starts(counts), parts.set_low[at], parts.set_high[at], coder)
