"""What workers do to compile subscriptions: rows of JSON in, programs or reasons out.

The programs of a batch travel together, as one value in the batch's first row; the other rows say which of
them is theirs. What a program is, the content room knows; what a row may hold, `runtime/rows.py`. To rank
subscriptions, filters are taken apart into clauses: the distinct ones of a batch travel in its first row.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from headgate.contents.scores import read_scoring
from headgate.core.casts import INT64_MAX, INT64_MIN
from headgate.core.event import ID
from headgate.core.subscription import dialects
from headgate.core.values import fold
from headgate.errors import FilterError, HeadgateError
from headgate.ranking.filters.clauses import weigh
from headgate.records.compiling import RecordWriters
from headgate.runtime.rows import (
    FILTER,
    RANKS,
    SCORE,
    WEIGHTS,
    read_id,
    read_line,
    read_score,
    read_subscription,
    read_weights,
)
from headgate.tables.lines import BLOCK, BROKEN, FILE, ORDER, POSITION, VALUE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from headgate.contents.protocol import FilterWriter, Writers
    from headgate.core.ranks import Weights

    Spoken: TypeAlias = str
else:
    # Whatever a content room speaks: checkers of types cannot know it.
    Spoken = Literal[dialects()]

SCORING = "scoring"
"""A score that is an expression."""
CLAUSES = "clauses"
"""The clauses of a row, as places among those of its part."""
TEXTS, NAMES, CLAUSE_PROGRAMS = "clause_texts", "clause_names", "clause_programs"
"""The distinct clauses of a part, the attributes that each looks at, and their programs, in its first row."""

_CLAUSE_TYPES: dict[str, pa.DataType] = {
    SCORE: pa.float64(),
    SCORING: pa.string(),
    WEIGHTS: pa.list_(pa.float64()),
    CLAUSES: pa.list_(pa.int64()),
    TEXTS: pa.list_(pa.string()),
    NAMES: pa.list_(pa.list_(pa.string())),
    CLAUSE_PROGRAMS: pa.binary(),
}
RANKED = pa.schema(_CLAUSE_TYPES)
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
        likely = batch[VALUE].filter(mentions(batch, names))
        found = [line for line in likely.to_pylist() if line and _has_any(line, names)]
        yield pa.RecordBatch.from_pydict({VALUE: pa.array(found, pa.binary())})


def mentions(batch: pa.RecordBatch, names: Sequence[str]) -> pa.Array[Any]:
    """Tell which lines of JSON may have one of some fields: names may be written with escapes."""
    hint = rf"(?i)\\u00|\"(?:{'|'.join(map(re.escape, names))})\""
    found: pa.Array[Any] = pc.match_substring_regex(batch[VALUE], hint)
    return found


def _has_any(line: bytes, names: Sequence[str]) -> bool:
    try:
        row = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False
    return isinstance(row, dict) and not {*map(fold, row)}.isdisjoint(names)


REASON = "reason"
PLACE = "place"
ROW = "row"
PART = "part"
"""The number of a batch."""
NUMBER = "number"
"""The place of an accepted row's program among those of its part; NULL for refused rows."""
PROGRAMS = "programs"
"""The programs of a part, in its first row."""

_TYPES: dict[str, pa.DataType] = {
    FILE: pa.string(),
    BLOCK: pa.int64(),
    POSITION: pa.int64(),
    "id_number": pa.int64(),
    "id_text": pa.string(),
    FILTER: pa.string(),
    ROW: pa.string(),
    REASON: pa.string(),
    PLACE: pa.int64(),
    PART: pa.int64(),
    NUMBER: pa.int64(),
    PROGRAMS: pa.binary(),
}
COMPILED = pa.schema(_TYPES)
COMPILED_RANKED = pa.unify_schemas([COMPILED, RANKED])
"""The same where subscriptions are ranked."""


UNUSUAL = (msgspec.DecodeError, UnicodeError, RecursionError, TypeError)
"""What decoding raises for a row that must be looked at field by field."""
Number = Annotated[int, msgspec.Meta(ge=INT64_MIN, le=INT64_MAX)]


class _Row(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A row that is a subscription and nothing else; others are looked at field by field."""

    id: Number | str
    filter: str
    dialect: Spoken | None = None
    score: Any = None
    weights: Any = None


_ROWS = msgspec.json.Decoder(_Row)


class Filters:
    """The filters of one batch, compiled one after the other."""

    def __init__(self, writer: FilterWriter) -> None:
        self._writer = writer
        self.count = 0

    def add(self, written: str, dialect: str) -> str:
        """Compile the next filter and return it as its room writes it; refuses a bad one."""
        text = self._writer.add(written, dialect)
        self.count += 1
        return text

    def payload(self, rows: int) -> pa.Array[Any]:
        """Return the column `PROGRAMS` of the batch."""
        values = [self._writer.to_bytes(), *[None] * (rows - 1)] if rows and self.count else [None] * rows
        return pa.array(values, pa.binary())


def compile_batches(
    batches: Iterable[pa.RecordBatch],
    writers: Writers | None = None,
    part: int = 0,
    *,
    dialect: str | None = None,
    ranked: bool = False,
) -> Iterator[pa.RecordBatch]:
    """Compile the subscriptions of some batches; refused rows come back with the reason, none is dropped.

    `writers` are those of the filters' room, of records by default; `dialect` is that of rows that name none,
    by default the room's own. Unless they are `ranked`, scores and weights are fields like any other, and
    passed over.
    """
    writers = writers or RecordWriters()
    for number, batch in numbered(batches, part):
        yield _compile_batch(batch, writers, number, dialect=dialect or writers.dialect, ranked=ranked)


def numbered(batches: Iterable[pa.RecordBatch], part: int) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Number the batches of a part, without their blank lines."""
    for number, batch in enumerate(batches):
        values: list[bytes | None] = batch[VALUE].to_pylist()
        broken: list[str | None] = batch[BROKEN].to_pylist()
        keep = [
            line is not None or (value is not None and bool(value.strip()))
            for value, line in zip(values, broken, strict=True)
        ]
        # Parts and the batches of one are fewer than 2**31, by far.
        yield (part << 31) + number, batch if all(keep) else batch.filter(pa.array(keep, pa.bool_()))


def _compile_batch(
    batch: pa.RecordBatch, writers: Writers, part: int, *, dialect: str, ranked: bool
) -> pa.RecordBatch:
    values: list[bytes | None] = batch[VALUE].to_pylist()
    parsed, clauses = Filters(writers.writer()), Clauses(writers)
    names = [
        "id_number",
        "id_text",
        FILTER,
        REASON,
        PLACE,
        NUMBER,
        *([SCORE, SCORING, WEIGHTS, CLAUSES] if ranked else []),
    ]
    found: dict[str, list[Any]] = {name: [None] * len(values) for name in names}
    id_numbers, id_texts, filters, numbers = (
        found[name] for name in ("id_number", "id_text", FILTER, NUMBER)
    )
    weighed = None
    for place, value in enumerate(values):
        try:
            try:
                row = _ROWS.decode(value)  # type: ignore[arg-type]
                identity, written, spoken = row.id, row.filter, row.dialect or dialect
                score, weights = row.score, row.weights
                (id_texts if type(identity) is str else id_numbers)[place] = identity
            except UNUSUAL:
                given = read_line(value, batch[BROKEN][place].as_py() if value is None else None)
                named = read_id(given, ID)
                (id_texts if isinstance(named, str) else id_numbers)[place] = named
                subscription = read_subscription(given, dialect, ranked=False, graph=False)
                identity, written, spoken = subscription.id, subscription.filter, subscription.dialect
                score, weights = (given.get(name) for name in RANKS)
            if ranked:
                read, weighed = read_score(score), read_weights(weights)
                found[SCORE][place] = read if isinstance(read, float) else 0.0
                if isinstance(read, str):
                    read_scoring(writers, read, identity)
                    found[SCORING][place] = read
            filters[place] = text = parsed.add(written, spoken)
            if ranked:
                what = f"subscription {identity!r}"
                found[CLAUSES][place], found[WEIGHTS][place] = clauses.add(text, weighed, what)
        except HeadgateError as error:
            found[REASON][place] = str(error)
            found[PLACE][place] = place_of(error)
            continue
        numbers[place] = parsed.count - 1
    kinds = COMPILED_RANKED if ranked else COMPILED
    columns: dict[str, Any] = {
        name: pa.array(column, kinds.field(name).type) for name, column in found.items()
    }
    columns.update({name: batch[name] for name in ORDER})
    columns[ROW] = rows_as_text(batch)
    columns[PART] = pa.array([part] * len(values), pa.int64())
    columns[PROGRAMS] = parsed.payload(len(values))
    if ranked:
        columns |= clauses.payload(len(values))
    return pa.RecordBatch.from_arrays([columns[name] for name in kinds.names], schema=kinds)


def place_of(error: HeadgateError) -> int | None:
    """Return the character of a filter that is at fault, counted from 1."""
    at = error.position if isinstance(error, FilterError) else None
    return None if at is None else at + 1


def rows_as_text(batch: pa.RecordBatch) -> Any:
    """Return the rows as they came, as text."""
    try:
        rows = batch[VALUE].cast(pa.string())
    except pa.ArrowInvalid:
        values: list[bytes | None] = batch[VALUE].to_pylist()
        texts = [None if value is None else value.decode(errors="replace") for value in values]
        rows = pa.array(texts, pa.string())
    return pc.coalesce(rows, batch[BROKEN]) if rows.null_count else rows
