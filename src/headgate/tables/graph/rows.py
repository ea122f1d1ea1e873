"""What workers do to the tables of a graph: rows of JSON in, columns and programs out.

An id comes as two columns, one for whole numbers and one for text: which of them a table has is known only
when all of its rows were read. A row that is refused keeps what could be read of it, and comes with the row
itself; the others need not carry theirs to the driver.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from headgate.errors import HeadgateError
from headgate.graph.model import EDGES, NODES, SUBSCRIPTIONS
from headgate.runtime import rows
from headgate.runtime.rows import FILTER, WEIGHTS
from headgate.tables.filter_rows import (
    CLAUSES,
    NUMBER,
    PART,
    PLACE,
    PROGRAMS,
    RANKED,
    REASON,
    ROW,
    SCORING,
    UNUSUAL,
    Clauses,
    Filters,
    Number,
    numbered,
    place_of,
    rows_as_text,
)
from headgate.tables.lines import BLOCK, BROKEN, FILE, ORDER, POSITION, VALUE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from headgate.contents.protocol import Writers

__all__ = ["EDGES", "NODES", "SHAPES", "SUBSCRIPTIONS", "Shape", "compile_rows", "number_of", "text_of"]

_compute: Any = pc


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


class _Subscription(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    id: Number | str | None = None
    filter: str | None = None
    dialect: str | None = None
    node: Number | str | None = None
    score: float | None = None
    weights: Any = None


class Shape(NamedTuple):
    """What the rows of a table are made of: for rows that are as usual, and for the others."""

    row: type[_Node | _Edge | _Subscription]
    columns: rows.Columns

    def read(self, value: bytes | None, broken: str | None, row: Any) -> None:
        """Read a row column by column, and raise for the first that cannot be used; what was read stays."""
        given = rows.read_line(value, broken)
        found: dict[str, Any] = {}
        try:
            self.columns.read(given, found)
        finally:
            for name, each in found.items():
                setattr(row, name, each)
        if isinstance(row, _Subscription):
            row.weights = given.get(WEIGHTS)

    @property
    def schema(self) -> pa.Schema:
        """Return the columns that workers make of the rows."""
        kinds: dict[str, pa.DataType] = {FILE: pa.string(), BLOCK: pa.int64(), POSITION: pa.int64()}
        for name in self.columns.ids:
            kinds |= {number_of(name): pa.int64(), text_of(name): pa.string()}
        kinds |= dict.fromkeys((*self.columns.texts, FILTER, ROW, REASON), pa.string())
        kinds |= dict.fromkeys(self.columns.numbers, pa.float64())
        kinds |= dict.fromkeys((PLACE, PART, NUMBER), pa.int64())
        return pa.schema({**kinds, PROGRAMS: pa.binary()})

    @property
    def ranked_schema(self) -> pa.Schema:
        """Return the same with what clauses are ranked by."""
        return pa.unify_schemas([self.schema, RANKED])


def number_of(name: str) -> str:
    """Name the column of an id's whole numbers."""
    return f"{name}_number"


def text_of(name: str) -> str:
    """Name the column of an id's texts."""
    return f"{name}_text"


SHAPES = {
    NODES: Shape(_Node, rows.NODES),
    EDGES: Shape(_Edge, rows.EDGES),
    SUBSCRIPTIONS: Shape(_Subscription, rows.HUNG),
}


def compile_rows(
    batches: Iterable[pa.RecordBatch],
    table: str,
    writers: Writers,
    part: int = 0,
    *,
    dialect: str,
    ranked: bool = False,
) -> Iterator[pa.RecordBatch]:
    """Read rows of a graph and compile their filters; refused rows come back with the reason.

    Rows that name no dialect have `dialect`. If they are `ranked`, which subscriptions may be, their filters
    are taken apart into clauses, too.
    """
    shape = SHAPES[table]
    decoder = msgspec.json.Decoder(shape.row)
    for number, batch in numbered(batches, part):
        yield _compile_batch(batch, shape, decoder, writers, number, dialect=dialect, ranked=ranked)


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
    required, refusal = shape.columns.required, shape.columns.error
    names = [FILTER, REASON, PLACE, NUMBER, *([CLAUSES, WEIGHTS, SCORING] if ranked else [])]
    found: dict[str, list[Any]] = {name: [None] * len(values) for name in names}
    for place, value in enumerate(values):
        row: Any = None
        try:
            try:
                row = decoder.decode(value)
            except UNUSUAL:
                row = shape.row()
                shape.read(value, batch[BROKEN][place].as_py(), row)
            for name, complaint in required.items():
                if getattr(row, name) is None:
                    raise refusal(complaint)
            if row.filter is not None:
                found[FILTER][place] = parsed.add(row.filter, dialect if row.dialect is None else row.dialect)
                found[NUMBER][place] = parsed.count - 1
            if ranked:
                text, what = found[FILTER][place], f"subscription {row.id!r}"
                found[CLAUSES][place], found[WEIGHTS][place] = clauses.add(
                    text, rows.read_weights(row.weights), what
                )
        except HeadgateError as error:
            found[REASON][place], found[PLACE][place] = str(error), place_of(error)
        read.append(row)
    columns: dict[str, Any] = {**found, **{name: batch[name] for name in ORDER}}
    for name in shape.columns.ids:
        given = [getattr(row, name) for row in read]
        columns[number_of(name)] = [value if type(value) is int else None for value in given]
        columns[text_of(name)] = [value if type(value) is str else None for value in given]
    for name in (*shape.columns.texts, *shape.columns.numbers):
        columns[name] = [getattr(row, name) for row in read]
    columns[ROW] = _refused_rows(batch, found[REASON])
    columns[PART], columns[PROGRAMS] = [part] * len(values), parsed.payload(len(values))
    if ranked:
        columns |= clauses.payload(len(values))
    kinds = shape.ranked_schema if ranked else shape.schema
    arrays = [_array(columns[name], kinds.field(name).type) for name in kinds.names]
    return pa.RecordBatch.from_arrays(arrays, schema=kinds)


def _array(column: Any, kind: pa.DataType) -> pa.Array[Any]:
    return pa.array(column, kind) if isinstance(column, list) else column


def _refused_rows(batch: pa.RecordBatch, reasons: list[str | None]) -> Any:
    if not any(reasons):
        return [None] * len(reasons)
    refused = pa.array([reason is not None for reason in reasons])
    return _compute.if_else(refused, rows_as_text(batch), pa.scalar(None, pa.string()))
