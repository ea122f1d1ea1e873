"""What workers do to rank subscriptions: take filters apart into clauses.

The distinct clauses of a batch travel together, as one value in the batch's first row; the other rows say by
number which of them are theirs, and what each weighs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa

from headgate.core.values import fold
from headgate.ranking.filters.clauses import weigh
from headgate.runtime.rows import SCORE, WEIGHTS
from headgate.spark.tables.tables import VALUE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from headgate.contents.compiling import Writers
    from headgate.core.ranks import Weights

CLAUSES = "clauses"
"""The clauses of a row, as places among those of its part."""
TEXTS, NAMES, CLAUSE_PROGRAMS = "clause_texts", "clause_names", "clause_programs"
"""The distinct clauses of a part, the attributes that each looks at, and their programs, in its first row."""

_TYPES: dict[str, pa.DataType] = {
    SCORE: pa.float64(),
    WEIGHTS: pa.list_(pa.float64()),
    CLAUSES: pa.list_(pa.int64()),
    TEXTS: pa.list_(pa.string()),
    NAMES: pa.list_(pa.list_(pa.string())),
    CLAUSE_PROGRAMS: pa.binary(),
}
RANKED = pa.schema(_TYPES)
"""The columns that workers add."""


class Clauses:
    """The distinct clauses of one batch, with their programs, and the rows that have them."""

    def __init__(self, writers: Writers) -> None:
        self._writers = writers
        self._writer = writers.writer(checked=False)
        self._numbers: dict[str, int] = {}
        self._names: list[tuple[str, ...]] = []

    def add(self, text: str, weights: Weights | None, what: str) -> tuple[list[int], list[float]]:
        """Take a filter apart; returns the numbers of its clauses, and their weights. Refuses bad weights."""
        clauses = self._writers.clauses(text)
        weighed = weigh(clauses, weights, what)
        found = []
        for clause in clauses:
            number = self._numbers.get(clause.filter)
            if number is None:
                self._writer.add(clause.filter, self._writers.dialect)
                number = self._numbers[clause.filter] = len(self._numbers)
                self._names.append(clause.names)
            found.append(number)
        return found, weighed

    def payload(self, rows: int) -> dict[str, pa.Array[Any]]:
        """Return the columns of a batch that only its first row fills."""
        filled: list[Any] = [None, None, None]
        if self._numbers:
            filled = [list(self._numbers), self._names, self._writer.to_bytes()]
        return {
            name: pa.array([value, *[None] * (rows - 1)] if rows else [], RANKED.field(name).type)
            for name, value in zip((TEXTS, NAMES, CLAUSE_PROGRAMS), filled, strict=True)
        }


def find_fields(batches: Iterable[pa.RecordBatch], names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Find the lines of JSON that have one of some fields."""
    for batch in batches:
        found = [line for line in batch[VALUE].to_pylist() if line and _has_any(line, names)]
        yield pa.RecordBatch.from_pydict({VALUE: pa.array(found, pa.binary())})


def _has_any(line: bytes, names: Sequence[str]) -> bool:
    try:
        row = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False
    return isinstance(row, dict) and not {*map(fold, row)}.isdisjoint(names)
