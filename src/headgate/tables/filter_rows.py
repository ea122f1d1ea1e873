"""What workers do to compile subscriptions and tables of a graph: rows of JSON in, programs or reasons out.

The programs of a batch travel together, as one value in the batch's first row; the other rows say which of
them is theirs. What a program is, the content room knows; what a row may hold, `runtime/rows.py`. To rank
subscriptions, filters are taken apart into clauses: the distinct ones of a batch travel in its first row.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from headgate.contents.scores import read_scoring
from headgate.core.casts import INT64_MAX, INT64_MIN
from headgate.core.values import fold
from headgate.errors import FilterError, HeadgateError
from headgate.graph.model import EDGES, NODES, SUBSCRIPTIONS
from headgate.ranking.filters.clauses import weigh
from headgate.records.compiling import RecordWriters
from headgate.runtime import rows
from headgate.runtime.rows import FILTER, SCORE, WEIGHTS, read_line, read_score, read_weights
from headgate.tables.lines import BLOCK, BROKEN, FILE, ORDER, POSITION, VALUE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from headgate.contents.protocol import FilterWriter, Writers
    from headgate.core.ranks import Weights


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
        numbers = []
        for clause in clauses:
            number = self._numbers.get(clause.filter)
            if number is None:
                self._writer.add(clause.filter, self._writers.dialect)
                number = self._numbers[clause.filter] = len(self._numbers)
                self._names.append(clause.names)
            numbers.append(number)
        return numbers, weighed

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
        lines = [line for line in likely.to_pylist() if line and _has_any(line, names)]
        yield pa.RecordBatch.from_pydict({VALUE: pa.array(lines, pa.binary())})


def mentions(batch: pa.RecordBatch, names: Sequence[str]) -> pa.Array[Any]:
    """Tell which lines of JSON may have one of some fields: names may be written with escapes."""
    hint = rf"(?i)\\u00|\"(?:{'|'.join(map(re.escape, names))})\""
    flags: pa.Array[Any] = pc.match_substring_regex(batch[VALUE], hint)
    return flags


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
"""The place of a row's program among those of its part; NULL where no filter was compiled."""
PROGRAMS = "programs"
"""The programs of a part, in its first row."""

UNUSUAL = (msgspec.DecodeError, UnicodeError, RecursionError, TypeError)
"""What decoding raises for a row that must be looked at field by field."""
Number = Annotated[int, msgspec.Meta(ge=INT64_MIN, le=INT64_MAX)]


class _Alone(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A row as usual: it has nothing but the columns of its table. Others are looked at field by field."""

    id: Number | str | None = None
    filter: str | None = None
    dialect: str | None = None
    score: Any = None
    weights: Any = None


class _Hung(_Alone, forbid_unknown_fields=True, gc=False):
    node: Number | str | None = None
    score: float | None = None


class _Node(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    id: Number | str | None = None
    kind: str | None = None
    filter: str | None = None
    dialect: str | None = None
    subscription: Number | str | None = None
    score: float | None = None
    cost: float | None = None


class _Edge(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    source: Number | str | None = None
    target: Number | str | None = None
    filter: str | None = None
    dialect: str | None = None
    cost: float | None = None


class Shape(NamedTuple):
    """What the rows of a table are made of: for rows that are as usual, and for the others."""

    row: type[_Alone | _Node | _Edge]
    columns: rows.Columns

    def read(self, value: bytes | None, broken: str | None, row: Any) -> None:
        """Read a row column by column, and raise for the first that cannot be used; what was read stays."""
        line = read_line(value, broken)
        fields: dict[str, Any] = {}
        try:
            self.columns.read(line, fields)
            self.columns.check(fields, line)
        finally:
            for name, each in fields.items():
                setattr(row, name, each)
        if isinstance(row, _Alone):
            row.weights = line.get(WEIGHTS)
            row.score = fields.get(SCORE, line.get(SCORE))

    def schema(self, *, ranked: bool) -> pa.Schema:
        """Return the columns that workers make of the rows; if they are ranked, with what clauses have."""
        kinds: dict[str, pa.DataType] = {FILE: pa.string(), BLOCK: pa.int64(), POSITION: pa.int64()}
        for name in self.columns.ids:
            kinds |= {number_of(name): pa.int64(), text_of(name): pa.string()}
        kinds |= dict.fromkeys((*self.columns.texts, FILTER, ROW, REASON), pa.string())
        kinds |= dict.fromkeys(self.columns.numbers, pa.float64())
        kinds |= dict.fromkeys((PLACE, PART, NUMBER), pa.int64())
        made = pa.schema({**kinds, PROGRAMS: pa.binary()})
        return pa.unify_schemas([made, RANKED]) if ranked else made


def number_of(name: str) -> str:
    """Name the column of an id's whole numbers."""
    return f"{name}_number"


def text_of(name: str) -> str:
    """Name the column of an id's texts: which of the two a table has is known when all rows were read."""
    return f"{name}_text"


ALONE = "alone"
"""Subscriptions without a graph."""
SHAPES = {
    ALONE: Shape(_Alone, rows.SUBSCRIPTIONS),
    NODES: Shape(_Node, rows.NODES),
    EDGES: Shape(_Edge, rows.EDGES),
    SUBSCRIPTIONS: Shape(_Hung, rows.HUNG),
}


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
    table: str = ALONE,
    dialect: str | None = None,
    ranked: bool = False,
) -> Iterator[pa.RecordBatch]:
    """Compile the filters of a table's rows; refused rows come back with the reason, none is dropped.

    `writers` are those of the filters' room, of records by default; `dialect` is that of rows that name none,
    by default the room's own. Only subscriptions may be `ranked`: their filters are taken apart into clauses,
    too. Else weights, and scores without a graph, are fields like any other, and passed over.
    """
    writers = writers or RecordWriters()
    shape = SHAPES[table]
    decoder = msgspec.json.Decoder(shape.row)
    for number, batch in numbered(batches, part):
        usual = dialect or writers.dialect
        yield _compile_batch(batch, shape, decoder, writers, number, dialect=usual, ranked=ranked)


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
    batch: pa.RecordBatch,
    shape: Shape,
    decoder: Any,
    writers: Writers,
    part: int,
    *,
    dialect: str,
    ranked: bool,
) -> pa.RecordBatch:
    values: list[bytes | None] = batch[VALUE].to_pylist()
    parsed, clauses, read = Filters(writers.writer()), Clauses(writers), []
    required, refusal, alone = shape.columns.required, shape.columns.error, shape.row is _Alone
    names = [FILTER, REASON, PLACE, NUMBER, *([SCORE, SCORING, WEIGHTS, CLAUSES] if ranked else [])]
    more: dict[str, list[Any]] = {name: [None] * len(values) for name in names}
    filters, numbers = more[FILTER], more[NUMBER]
    weights = None
    for index, value in enumerate(values):
        row: Any = None
        try:
            try:
                row = decoder.decode(value)
            except UNUSUAL:
                row = shape.row()
                shape.read(value, batch[BROKEN][index].as_py() if value is None else None, row)
            for name, complaint in required.items():
                if getattr(row, name) is None:
                    raise refusal(complaint)
            if ranked:
                weights = read_weights(row.weights)
                if alone:
                    more[SCORE][index], more[SCORING][index] = _score(writers, row)
            if row.filter is not None:
                filters[index] = parsed.add(row.filter, dialect if row.dialect is None else row.dialect)
                numbers[index] = parsed.count - 1
            if ranked:
                what = f"subscription {row.id!r}"
                more[CLAUSES][index], more[WEIGHTS][index] = clauses.add(filters[index], weights, what)
        except HeadgateError as error:
            more[REASON][index], more[PLACE][index] = str(error), place_of(error)
        read.append(row)
    columns: dict[str, Any] = {**{name: batch[name] for name in ORDER}, PART: [part] * len(values), **more}
    for name in shape.columns.ids:
        ids = [getattr(row, name) for row in read]
        columns[number_of(name)] = [value if type(value) is int else None for value in ids]
        columns[text_of(name)] = [value if type(value) is str else None for value in ids]
    for name in (*shape.columns.texts, *shape.columns.numbers):
        columns[name] = [getattr(row, name) for row in read]
    columns[ROW] = rows_as_text(batch) if alone else _refused_rows(batch, more[REASON])
    columns[PROGRAMS] = parsed.payload(len(values))
    if ranked:
        columns |= clauses.payload(len(values))
    kinds = shape.schema(ranked=ranked)
    arrays = [_array(columns[name], kinds.field(name).type) for name in kinds.names]
    return pa.RecordBatch.from_arrays(arrays, schema=kinds)


def _score(writers: Writers, row: _Alone) -> tuple[float, str | None]:
    """Read a score: a number, or an expression."""
    score = read_score(row.score)
    if isinstance(score, float):
        return score, None
    assert row.id is not None
    read_scoring(writers, score, row.id)
    return 0.0, score


def _array(column: Any, kind: pa.DataType) -> pa.Array[Any]:
    return pa.array(column, kind) if isinstance(column, list) else column


def _refused_rows(batch: pa.RecordBatch, reasons: list[str | None]) -> Any:
    """Return refused rows as they came: the others need not carry theirs to the driver."""
    if not any(reasons):
        return [None] * len(reasons)
    refused: Any = pa.array([reason is not None for reason in reasons])
    none: Any = pa.scalar(None, pa.string())
    return pc.if_else(refused, rows_as_text(batch), none)


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
