"""What workers do to compile subscriptions: rows of JSON in, programs or reasons out."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from headgate.core.event import ID, read_object
from headgate.core.schema import Schema
from headgate.core.subscription import SQL, Subscription
from headgate.core.values import check, fold
from headgate.errors import FilterError, HeadgateError, SubscriptionError
from headgate.records.leaves import encode_leaf
from headgate.records.parse import parse_filter
from headgate.records.program import compile_program
from headgate.records.rewrite import normalise
from headgate.records.typecheck import check_types
from headgate.spark.tables import BLOCK, BROKEN, FILE, ORDER, POSITION, VALUE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from headgate.core.event import Id
    from headgate.records.program import Program

FILTER = "filter"
DIALECT = "dialect"
REASON = "reason"
PLACE = "place"
ROW = "row"

_TYPES: dict[str, pa.DataType] = {
    FILE: pa.string(),
    BLOCK: pa.int64(),
    POSITION: pa.int64(),
    "id_number": pa.int64(),
    "id_text": pa.string(),
    FILTER: pa.string(),
    "tokens": pa.binary(),
    "leaves": pa.list_(pa.binary()),
    ROW: pa.string(),
    REASON: pa.string(),
    PLACE: pa.int64(),
}
COMPILED = pa.schema(_TYPES)
COMPILED_DDL = (
    f"{FILE} string, {BLOCK} long, {POSITION} long, id_number long, id_text string, {FILTER} string, "
    f"tokens binary, leaves array<binary>, {ROW} string, {REASON} string, {PLACE} long"
)


def compile_batches(batches: Iterable[pa.RecordBatch], schema: str | None) -> Iterator[pa.RecordBatch]:
    """Compile the subscriptions of some batches; refused rows come back with the reason, none is dropped."""
    for batch in batches:
        columns: list[list[Any]] = [batch[name].to_pylist() for name in (*ORDER, VALUE, BROKEN)]
        rows = [
            {**_compile_row(value, broken, schema), FILE: file, BLOCK: block, POSITION: position}
            for file, block, position, value, broken in zip(*columns, strict=True)
            if broken is not None or (value is not None and value.strip())
        ]
        yield pa.RecordBatch.from_pylist(rows, schema=COMPILED)


def _compile_row(value: bytes | None, broken: str | None, schema: str | None) -> dict[str, Any]:
    found: dict[str, Any] = dict.fromkeys(COMPILED.names)
    found[ROW] = broken if value is None else value.decode(errors="replace")
    try:
        if value is None:
            raise SubscriptionError("the line does not have as many fields as the header")
        row = _read_row(value)
        identity = _identity(row)
        found["id_number" if isinstance(identity, int) else "id_text"] = identity
        subscription = _subscription(identity, row)
        program = _program(subscription.filter, schema)
    except HeadgateError as error:
        found[REASON] = str(error)
        found[PLACE] = (
            error.position + 1 if isinstance(error, FilterError) and error.position is not None else None
        )
        return found
    found[FILTER] = subscription.filter
    found["tokens"] = np.array(program.tokens, np.int32).tobytes()
    found["leaves"] = [encode_leaf(leaf) for leaf in program.leaves]
    return found


def _read_row(value: bytes) -> dict[str, object]:
    given = read_object(value)
    row = {fold(name): entry for name, entry in given.items()}
    if len(row) < len(given):
        raise SubscriptionError("two fields have names that differ in case only, which are the same")
    return row


def _identity(row: dict[str, object]) -> Id:
    identity = row.get(ID)
    if identity is None:
        raise SubscriptionError(f"the row has no {ID!r}: a subscription is an id and a filter")
    check(identity, (ID,))
    if isinstance(identity, bool) or not isinstance(identity, str | int):
        raise SubscriptionError(f"id {identity!r} is not usable: give text or a whole number")
    return identity


def _subscription(identity: Id, row: dict[str, object]) -> Subscription:
    text, dialect = row.get(FILTER), row.get(DIALECT)
    if text is None:
        raise SubscriptionError(f"the row has no {FILTER!r}: a subscription is an id and a filter")
    if not isinstance(text, str):
        raise SubscriptionError(f"the filter is {type(text).__name__} and must be text")
    return Subscription(identity, text, SQL if dialect is None else str(dialect))


def _program(text: str, schema: str | None) -> Program:
    tree = parse_filter(text)
    if schema is not None:
        check_types(tree, read_schema(schema), text)
    return compile_program(normalise(tree))


@lru_cache(maxsize=4)
def read_schema(text: str) -> Schema:
    """Read the types of attributes."""
    return Schema.from_json(read_object(text))
