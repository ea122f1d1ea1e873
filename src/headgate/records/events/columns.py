"""Attributes of a batch of events, from Arrow or from Python, before an index encodes them."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.contents.portions import once
from headgate.core.event import JSON
from headgate.core.interning import TextPool
from headgate.core.schema import arrow_kind
from headgate.core.values import (
    EXACT_JOINED,
    JOINED,
    PRESENT,
    Kind,
    dotted,
    find_name,
    fold,
    kind_of,
    micros,
)
from headgate.errors import EventError
from headgate.records.computed import (
    expression_of,
    is_computed,
    is_expression,
    marked_as,
    sources,
)
from headgate.records.events.decimals import Decimals, decimal_keys, python_keys, widened
from headgate.records.programs.leaves import float_key, float_keys

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from headgate.core.arrays import Bools, Bytes, Ints, Ints32
    from headgate.core.event import Event
    from headgate.core.values import Path
    from headgate.records.expressions.columns import Numbers

_NO_TEXTS = TextPool.build([])
_SPLIT = "make it a struct, or give its entries columns of their own"


class Column(NamedTuple):
    """The values of one attribute, or the elements of its arrays.

    kind[i]      a `Kind`
    number[i]    the key of a BOOL, INT, FLOAT, DECIMAL or TIMESTAMP
    code[i]      the place of a STRING in `texts`, which holds each text once; -1 for all others
    start        of an ARRAY: its elements are elements[start[i]:start[i + 1]]; empty for all others
    decimals     all digits of the DECIMALs, if there are any
    """

    kind: Bytes
    number: Ints
    code: Ints32
    texts: TextPool
    start: Ints
    elements: Column | None
    decimals: Decimals | None = None


class BatchColumns:
    """The columns of an Arrow batch, each read once, and only if it is asked for."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self._batch = batch
        self._read: dict[Path, Column] = {}
        self._arrays: dict[Path, pa.Array[Any] | None] = {}
        self._known: dict[Path, Numbers | None] = {}
        self._sound: set[Path] = set()
        self.count = batch.num_rows

    def __call__(self, path: Path) -> Column:
        """Return the values of an attribute."""
        column = self._read.get(path)
        if column is None:
            column = self._read[path] = self._find(path)
        return column

    def _find(self, path: Path) -> Column:
        if is_expression(path):
            from headgate.records.events.computing import computed_batch

            return computed_batch(self, path, self._known)
        if path[0] == PRESENT:
            return _truths(find_presence(self._batch, path[1:]))
        if is_computed(path):
            from headgate.records.events.computing import computed

            return computed(path, self(path[1:]))
        array = self.array(path)
        return missing(self.count) if array is None else from_arrow(array)

    def array(self, path: Path) -> pa.Array[Any] | None:
        """Find an attribute, or whether there is one, once."""
        if path not in self._arrays:
            present = path[0] == PRESENT
            self._arrays[path] = (
                pa.array(find_presence(self._batch, path[1:])) if present else find_column(self._batch, path)
            )
        return self._arrays[path]

    def refuse_foreign(self, path: Path) -> None:
        """Refuse a column of a type that no filter can look into, such as binary, if it is no struct."""
        if path[0] == PRESENT:
            return
        for own in sources(path):
            if own in self._sound:
                continue
            array = self.array(own)
            remedy = None if array is None else _remedy(array.type)
            if array is not None and remedy is not None:
                raise EventError(
                    f"column {dotted(own)} is {array.type}, which filters cannot compare: {remedy}"
                )
            self._sound.add(own)


class EventColumns:
    """The columns of events as they were sent, flattened as the names of filters say; documents have none."""

    def __init__(self, events: Sequence[Event]) -> None:
        self._events = events
        self._read: dict[Path, Column] = {}
        self._flat: dict[str, list[Mapping[Path, object]]] = {}
        self.count = len(events)

    def __call__(self, path: Path) -> Column:
        """Return the values of an attribute."""
        column = self._read.get(path)
        if column is None:
            column = self._read[path] = self._find(path)
        return column

    def _find(self, path: Path) -> Column:
        if is_expression(path):
            expression = expression_of(path)
            return from_values([expression.of_attributes(event) for event in self._of(path)])
        if path[0] == PRESENT:
            return _truths(np.array([path[1:] in event for event in self._of(path)], np.bool_))
        if is_computed(path):
            from headgate.records.events.computing import computed

            return computed(path, self(path[1:]))
        return from_values([event.get(path) for event in self._of(path)])

    def _of(self, path: Path) -> list[Mapping[Path, object]]:
        """Return the events, flattened as a path asks for."""
        mark = marked_as((path,))
        flattened = self._flat.get(mark)
        if flattened is None:
            flattened = self._flat[mark] = [
                event.attributes_as(mark) if event.content_type == JSON else {} for event in self._events
            ]
        return flattened

    def refuse_foreign(self, path: Path) -> None:
        """Do nothing: values are checked one by one when an event is made."""


Columns: TypeAlias = BatchColumns | EventColumns
"""A batch of events, attribute by attribute."""


def columns_of(events: pa.RecordBatch | Sequence[Event]) -> Columns:
    """Return the columns of events in either form; indexes that are asked together share them."""
    return once(events, _columns)


def _columns(events: pa.RecordBatch | Sequence[Event]) -> Columns:
    if isinstance(events, pa.RecordBatch):
        return BatchColumns(events)
    return EventColumns(events)


def _remedy(kind: Any) -> str | None:
    """Say what to do about a type that is not one of ours, nor arrays of such; None if there is no need."""
    types = pa.types
    whole = kind
    while arrow_kind(kind) is Kind.ARRAY or types.is_dictionary(kind) or types.is_run_end_encoded(kind):
        kind = kind.value_type
    if arrow_kind(kind) is not Kind.OBJECT or types.is_struct(kind):
        return None
    if types.is_map(kind):
        return _SPLIT
    into = "int64" if types.is_duration(kind) else "string"
    return f"cast {'its elements' if arrow_kind(whole) is Kind.ARRAY else 'it'} to {into}"


def missing(count: int) -> Column:
    """Make the column of an attribute that no event has."""
    return plain_column(np.zeros(count, np.uint8), np.zeros(count, np.int64))


def from_values(values: Sequence[object]) -> Column:
    """Read Python values, each of its own kind."""
    count = len(values)
    kind = np.fromiter((kind_of(value) for value in values), np.uint8, count)
    number = np.zeros(count, np.int64)
    code = np.full(count, -1, np.int32)
    texts: dict[str, int] = {}
    lengths = np.zeros(count, np.int64)
    elements: list[object] = []
    decimals: dict[int, Decimal] = {}
    for i, value in enumerate(values):
        if isinstance(value, str):
            code[i] = texts.setdefault(value, len(texts))
        elif isinstance(value, float):
            number[i] = float_key(value)
        elif isinstance(value, int):
            number[i] = value
        elif isinstance(value, dt.date):
            number[i] = micros(value)
        elif isinstance(value, Decimal):
            decimals[i] = value
        elif isinstance(value, list | tuple):
            lengths[i] = len(value)
            elements.extend(value)
    start = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    inner = from_values(elements) if (kind == Kind.ARRAY).any() else None
    digits = None
    if decimals:
        rows = np.fromiter(decimals, np.int64, len(decimals))
        digits = Decimals(rows, list(decimals.values()))
        number[rows] = python_keys(list(decimals.values()))
    return Column(kind, number, code, TextPool.build(texts), start, inner, digits)


def from_arrow(array: pa.Array[Any]) -> Column:
    """Read an Arrow array, all of one kind but for nulls."""
    kind = arrow_kind(array.type)
    if pa.types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    elif pa.types.is_run_end_encoded(array.type):
        array = pc.call_function("run_end_decode", [array])
    kinds = np.where(np.asarray(array.is_valid()), np.uint8(kind), np.uint8(Kind.NULL)).astype(np.uint8)
    if kind is Kind.STRING:
        return _from_texts(array, kinds)
    if kind is Kind.ARRAY:
        return _from_lists(array, kinds)
    if kind is Kind.DECIMAL:
        return _from_decimals(array, kinds)
    if kind in {Kind.NULL, Kind.OBJECT}:
        return plain_column(kinds, np.zeros(len(array), np.int64))
    try:
        return plain_column(kinds, _numbers(array, kind))
    except pa.ArrowInvalid as error:
        raise EventError(f"a value of type {array.type} does not fit into 64 bits: {error}") from None


def python_values(array: pa.Array[Any]) -> list[Any]:
    """Return the values of an Arrow array as an event has them; nanoseconds are cut to microseconds."""
    if pa.types.is_timestamp(array.type) and array.type.unit == "ns":
        cut = np.asarray(array.view(pa.int64()).fill_null(0), np.int64) // 1000
        array = pa.array(cut, pa.int64(), mask=np.asarray(array.is_null())).view(
            pa.timestamp("us", array.type.tz)
        )
    return array.to_pylist()


def text_forms(column: Column) -> tuple[Ints32, TextPool]:
    """Return what LIKE sees: texts as they are, whole numbers and Booleans written out."""
    written = (column.kind == Kind.INT) | (column.kind == Kind.BOOL)
    if not written.any():
        return column.code, column.texts
    places = {text: place for place, text in enumerate(column.texts.texts())}
    code = column.code.copy()
    for i in np.flatnonzero(written):
        number = int(column.number[i])
        text = str(number) if column.kind[i] == Kind.INT else str(bool(number)).lower()
        code[i] = places.setdefault(text, len(places))
    return code, TextPool.build(places)


def find_column(batch: pa.RecordBatch, path: Path) -> pa.Array[Any] | None:
    """Find an attribute in a batch by its path, through nested structs."""
    if path[0][:1] in (JOINED, EXACT_JOINED):
        arrays = _joined(list(zip(batch.schema.names, batch.columns, strict=True)), path[0][1:], path[0][0])
        if all(pa.types.is_struct(each.type) for each in arrays):
            # An object around others may be a column as well, and is that one then.
            arrays = [each for each in arrays if each.type.num_fields] or arrays[:1]
        if len(arrays) > 1:
            raise EventError(
                f"there are {len(arrays)} columns for {dotted(path)}: a dot in a name is as good as one that "
                "goes into a struct, so give one"
            )
        return arrays[0] if arrays else None
    index = find_name(path[:1], batch.schema.names)
    if index is None:
        return None
    array: pa.Array[Any] = batch.column(index)
    for end in range(2, len(path) + 1):
        if pa.types.is_map(array.type):
            what = f"column {dotted(path[: end - 1])} is {array.type}"
            raise EventError(f"{what}, which {dotted(path)} cannot go into: {_SPLIT}")
        if not pa.types.is_struct(array.type):
            return None
        fields = [array.type.field(i).name for i in range(array.type.num_fields)]
        index = find_name(path[:end], fields)
        if index is None:
            return None
        array = pc.struct_field(array, [index])
    return array


def _joined(columns: Sequence[tuple[str, pa.Array[Any]]], rest: str, mark: str) -> list[pa.Array[Any]]:
    """Find the columns of a name whose dots may be its own, or go into structs."""
    arrays = []
    for given, array in columns:
        name = given if mark == EXACT_JOINED else fold(given)
        if name == rest:
            arrays.append(array)
        elif name.startswith(f"{rest}."):
            # Only the object around it: it has no values, and is there.
            arrays.append(pa.array([{}] * len(array), pa.struct([])))
        elif rest.startswith(f"{name}.") and pa.types.is_struct(array.type):
            fields = [
                (array.type.field(i).name, pc.struct_field(array, [i])) for i in range(array.type.num_fields)
            ]
            arrays += _joined(fields, rest[len(name) + 1 :], mark)
    return arrays


def find_presence(batch: pa.RecordBatch, path: Path) -> Bools:
    """Tell which rows have an attribute: all, if there is such a column, and a struct that it is in."""
    if find_column(batch, path) is None:
        return np.zeros(batch.num_rows, np.bool_)
    parts = path[0][1:].split(".") if path[0][:1] in (JOINED, EXACT_JOINED) else path
    around: Any = None
    for end in range(len(parts) - 1, 0, -1):
        above = path[:end] if parts is path else (path[0][0] + ".".join(parts[:end]),)
        around = find_column(batch, above)
        if around is not None and pa.types.is_struct(around.type) and around.type.num_fields:
            return np.asarray(around.is_valid())
    return np.ones(batch.num_rows, np.bool_)


def _truths(values: Bools) -> Column:
    return plain_column(np.full(len(values), np.uint8(Kind.BOOL)), values.astype(np.int64))


def plain_column(kind: Bytes, number: Ints) -> Column:
    """Make a column of numbers."""
    count = len(kind)
    return Column(kind, number, np.full(count, -1, np.int32), _NO_TEXTS, np.zeros(count + 1, np.int64), None)


def _numbers(array: pa.Array[Any], kind: Kind) -> Ints:
    if kind is Kind.FLOAT:
        return float_keys(np.asarray(array.cast(pa.float64()).fill_null(0.0), np.float64))
    if kind is Kind.TIMESTAMP:
        if getattr(array.type, "unit", None) == "ns":
            # Down to the microsecond before; a cast would go towards 1970.
            return np.asarray(array.view(pa.int64()).fill_null(0), np.int64) // 1000
        array = array.cast(pa.timestamp("us", getattr(array.type, "tz", None))).view(pa.int64())
    elif kind is Kind.BOOL:
        array = array.cast(pa.uint8())
    return np.asarray(array.cast(pa.int64()).fill_null(0), np.int64)


def _from_texts(array: pa.Array[Any], kinds: Bytes) -> Column:
    coded = array.dictionary_encode()
    code = np.asarray(coded.indices.fill_null(-1), np.int32)
    count = len(kinds)
    texts = TextPool.from_arrow(coded.dictionary)
    return Column(kinds, np.zeros(count, np.int64), code, texts, np.zeros(count + 1, np.int64), None)


def _from_decimals(array: pa.Array[Any], kinds: Bytes) -> Column:
    numbers = np.zeros(len(kinds), np.int64)
    rows = np.flatnonzero(kinds)
    values = widened(array.drop_null() if len(rows) < len(kinds) else array)
    numbers[rows] = decimal_keys(values)
    return plain_column(kinds, numbers)._replace(decimals=Decimals(rows, values))


def _from_lists(array: pa.Array[Any], kinds: Bytes) -> Column:
    lengths = np.asarray(pc.list_value_length(array).fill_null(0), np.int64)
    start = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    count = len(kinds)
    # Null lists are skipped, so the elements lie end to end.
    inner = from_arrow(pc.list_flatten(array))
    return Column(kinds, np.zeros(count, np.int64), np.full(count, -1, np.int32), _NO_TEXTS, start, inner)
