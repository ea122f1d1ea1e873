"""What workers do to compile subscriptions: rows of JSON in, programs or reasons out.

The programs of a batch travel together, as one value in the batch's first row (`transport`); the other rows
say which of them is theirs.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from headgate.core.casts import INT64_MAX, INT64_MIN
from headgate.core.event import ID, read_object
from headgate.core.schema import Schema
from headgate.core.subscription import SQL, Subscription
from headgate.core.values import check, fold
from headgate.errors import FilterError, HeadgateError, SubscriptionError
from headgate.records.binding import Binder, parse_text
from headgate.records.transport import to_bytes
from headgate.records.typecheck import check_types
from headgate.spark.tables import BLOCK, BROKEN, FILE, ORDER, POSITION, VALUE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from headgate.core.event import Id

FILTER = "filter"
DIALECT = "dialect"
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
COMPILED_DDL = (
    f"{FILE} string, {BLOCK} long, {POSITION} long, id_number long, id_text string, {FILTER} string, "
    f"{ROW} string, {REASON} string, {PLACE} long, {PART} long, {NUMBER} long, {PROGRAMS} binary"
)


class _Row(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A row that is an id and a filter and nothing else; others are looked at field by field."""

    id: Annotated[int, msgspec.Meta(ge=INT64_MIN, le=INT64_MAX)] | str
    filter: str


_ROWS = msgspec.json.Decoder(_Row)


def compile_batches(
    batches: Iterable[pa.RecordBatch], schema: str | None, partition: int = 0
) -> Iterator[pa.RecordBatch]:
    """Compile the subscriptions of some batches; refused rows come back with the reason, none is dropped."""
    for number, batch in enumerate(batches):
        values: list[bytes | None] = batch[VALUE].to_pylist()
        broken: list[str | None] = batch[BROKEN].to_pylist()
        keep = [
            line is not None or (value is not None and bool(value.strip()))
            for value, line in zip(values, broken, strict=True)
        ]
        if not all(keep):
            batch = batch.filter(pa.array(keep, pa.bool_()))  # noqa: PLW2901
            values = [value for value, kept in zip(values, keep, strict=True) if kept]
        # Partitions and the batches of one are fewer than 2**31, by far.
        yield _compile_batch(batch, values, schema, (partition << 31) + number)


def _compile_batch(
    batch: pa.RecordBatch, values: list[bytes | None], schema: str | None, part: int
) -> pa.RecordBatch:
    binder = Binder()
    found: dict[str, list[Any]] = {
        name: [None] * len(values) for name in ("id_number", "id_text", FILTER, REASON, PLACE, NUMBER)
    }
    id_numbers, id_texts, filters, numbers = (
        found[name] for name in ("id_number", "id_text", FILTER, NUMBER)
    )
    accepted = 0
    for place, value in enumerate(values):
        try:
            try:
                row = _ROWS.decode(value)  # type: ignore[arg-type]
                identity, text = row.id, row.filter
                (id_texts if type(identity) is str else id_numbers)[place] = identity
            except (msgspec.DecodeError, UnicodeError, RecursionError, TypeError):
                given = _read_row(value)
                identity = _identity(given)
                (id_texts if isinstance(identity, str) else id_numbers)[place] = identity
                text = _subscription(identity, given).filter
            if schema is not None:
                check_types(parse_text(text), read_schema(schema), text)
            binder.add(text)
        except HeadgateError as error:
            found[REASON][place] = str(error)
            if isinstance(error, FilterError) and error.position is not None:
                found[PLACE][place] = error.position + 1
            continue
        filters[place] = text
        numbers[place] = accepted
        accepted += 1
    columns = {name: pa.array(column, COMPILED.field(name).type) for name, column in found.items()}
    columns.update({name: batch[name] for name in ORDER})
    columns[ROW] = _rows(batch)
    columns[PART] = pa.array([part] * len(values), pa.int64())
    payload = [to_bytes(binder.finish()), *[None] * (len(values) - 1)] if values else []
    columns[PROGRAMS] = pa.array(payload, pa.binary())
    return pa.RecordBatch.from_arrays([columns[name] for name in COMPILED.names], schema=COMPILED)


def _rows(batch: pa.RecordBatch) -> Any:
    """Return the rows as they came, as text."""
    try:
        rows = batch[VALUE].cast(pa.string())
    except pa.ArrowInvalid:
        values: list[bytes | None] = batch[VALUE].to_pylist()
        texts = [None if value is None else value.decode(errors="replace") for value in values]
        rows = pa.array(texts, pa.string())
    return pc.coalesce(rows, batch[BROKEN]) if rows.null_count else rows


def _read_row(value: bytes | None) -> dict[str, object]:
    if value is None:
        raise SubscriptionError("the line does not have as many fields as the header")
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


@lru_cache(maxsize=4)
def read_schema(text: str) -> Schema:
    """Read the types of attributes."""
    return Schema.from_json(read_object(text))
