"""What workers do to compile subscriptions: rows of JSON in, programs or reasons out.

The programs of a batch travel together, as one value in the batch's first row; the other rows say which of
them is theirs. What a program is, the content room knows. What rows of ranked subscriptions have besides is
in `ranked_rows`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from headgate.core.casts import INT64_MAX, INT64_MIN
from headgate.core.event import ID, read_object
from headgate.core.subscription import Subscription, dialects
from headgate.core.values import check, fold
from headgate.errors import FilterError, HeadgateError, SubscriptionError
from headgate.records.compiling import RecordWriters
from headgate.spark.compile.ranked_rows import (
    CLAUSES,
    RANKED,
    RANKS,
    SCORE,
    WEIGHTS,
    Clauses,
    read_score,
    read_weights,
)
from headgate.spark.tables.tables import BLOCK, BROKEN, FILE, ORDER, POSITION, VALUE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from headgate.contents.compiling import FilterWriter, Writers
    from headgate.core.event import Id

    Spoken: TypeAlias = str
else:
    # Whatever a content room speaks: checkers of types cannot know it.
    Spoken = Literal[dialects()]

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
    partition: int = 0,
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
    for part, batch in numbered(batches, partition):
        yield _compile_batch(batch, writers, part, dialect=dialect or writers.dialect, ranked=ranked)


def numbered(batches: Iterable[pa.RecordBatch], partition: int) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Number batches, without their blank lines."""
    for number, batch in enumerate(batches):
        values: list[bytes | None] = batch[VALUE].to_pylist()
        broken: list[str | None] = batch[BROKEN].to_pylist()
        keep = [
            line is not None or (value is not None and bool(value.strip()))
            for value, line in zip(values, broken, strict=True)
        ]
        # Partitions and the batches of one are fewer than 2**31, by far.
        yield (partition << 31) + number, batch if all(keep) else batch.filter(pa.array(keep, pa.bool_()))


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
        *([SCORE, WEIGHTS, CLAUSES] if ranked else []),
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
                given = read_row(value)
                identity = _identity(given)
                (id_texts if isinstance(identity, str) else id_numbers)[place] = identity
                subscription = _subscription(identity, given, dialect)
                written, spoken = subscription.filter, subscription.dialect
                score, weights = (given.get(name) for name in RANKS)
            if ranked:
                found[SCORE][place], weighed = read_score(score), read_weights(weights)
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


def read_row(value: bytes | None) -> dict[str, object]:
    """Read a row field by field; names are folded."""
    if value is None:
        raise SubscriptionError("the line does not have as many fields as the header")
    given = read_object(value)
    row = {fold(name): entry for name, entry in given.items()}
    if len(row) < len(given):
        raise SubscriptionError("two fields have names that differ in case only, which are the same")
    return row


def _identity(row: dict[str, object]) -> Id:
    identity = read_id(row, ID)
    if identity is None:
        raise SubscriptionError(f"the row has no {ID!r}: a subscription is an id and a filter")
    return identity


def read_id(row: dict[str, object], name: str) -> Id | None:
    """Read a field that holds an id, if the row has it."""
    identity = row.get(name)
    if identity is None:
        return None
    check(identity, (name,))
    if isinstance(identity, bool) or not isinstance(identity, str | int):
        raise SubscriptionError(f"{name} {identity!r} is not usable: give text or a whole number")
    return identity


def read_filter(row: dict[str, object]) -> str | None:
    """Read the text of a filter, if the row has one."""
    text = row.get(FILTER)
    if text is not None and not isinstance(text, str):
        raise SubscriptionError(f"the filter is {type(text).__name__} and must be text")
    return text


def _subscription(identity: Id, row: dict[str, object], default: str) -> Subscription:
    text, dialect = read_filter(row), row.get(DIALECT)
    if text is None:
        raise SubscriptionError(f"the row has no {FILTER!r}: a subscription is an id and a filter")
    return Subscription(identity, text, default if dialect is None else str(dialect))
