"""Types and schemas, from JSON and from Arrow."""

from __future__ import annotations

import pyarrow as pa
import pytest

from headgate import Schema
from headgate.core.schema import Type, arrow_kind
from headgate.core.values import Kind
from headgate.errors import TableError

NAMES = ["null", "bool", "int64", "float64", "string", "timestamp"]
NAMES += [f"array<{name}>" for name in NAMES]


@pytest.mark.parametrize("name", NAMES)
def test_a_type_is_printed_as_it_is_read(name: str) -> None:
    assert str(Type.parse(name)) == name
    assert Type.parse(f"  {name.upper()} ") == Type.parse(name)


@pytest.mark.parametrize(
    "name", ["", "int", "int32", "array", "array<>", "array<array<int64>>", "array<int64"]
)
def test_other_types_are_refused(name: str) -> None:
    with pytest.raises(TableError, match="is not known: use one of null, bool, int64"):
        Type.parse(name)


def test_digits_of_decimals() -> None:
    for name in ("decimal", "DECIMAL(10,2)", "decimal ( 38 )", "Decimal(5, -3)", "decimal(76, 76)"):
        assert Type.parse(name) == Type(Kind.DECIMAL)
        assert Type.parse(f"array<{name}>") == Type(Kind.ARRAY, Kind.DECIMAL)
    for name in ("decimal(0)", "decimal(77, 2)", "decimal(10, 77)", "decimal(70, -7)"):
        with pytest.raises(TableError, match="is not known: a decimal has at most 76 digits"):
            Type.parse(name)
    for name in ("decimal()", "decimal(10, 2", "decimals", "decimal(1,2,3)", "numeric(10,2)"):
        with pytest.raises(TableError, match="is not known: use one of"):
            Type.parse(name)


def test_from_json() -> None:
    schema = Schema.from_json({"Age": "int64", "User": {"City": "string", "tags": "array<string>"}})
    assert {path: str(found) for path, found in schema.types.items()} == {
        ("age",): "int64",
        ("user",): "object",
        ("user", "city"): "string",
        ("user", "tags"): "array<string>",
    }


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ({"a": "int64", "A": "string"}, "attribute a is given twice"),
        ({"u": {"a": "int64", "A": "string"}}, "attribute u.a is given twice"),
        ({"a": 5}, "attribute a has 5: give a type's name or an object"),
        ({"u": {"a": None}}, "attribute u.a has None"),
        ({"a": "number"}, "type 'number' is not known"),
    ],
)
def test_bad_json_is_refused(tree: dict[str, object], message: str) -> None:
    with pytest.raises(TableError) as caught:
        Schema.from_json(tree)
    assert message in str(caught.value)


def test_nearest_names() -> None:
    schema = Schema.from_json({"age": "int64", "user": {"city": "string"}})
    assert schema.nearest(("aeg",)) == "age"
    assert schema.nearest(("user", "citty")) == "user.city"
    assert schema.nearest(("zzzzzzz",)) is None
    assert Schema({}).nearest(("a",)) is None


NUMBERS = [getattr(pa, f"{sign}int{bits}")() for sign in ("", "u") for bits in (8, 16, 32, 64)]
ARROW: list[tuple[pa.DataType, Kind]] = [
    (pa.null(), Kind.NULL),
    (pa.bool_(), Kind.BOOL),
    *((kind, Kind.INT) for kind in NUMBERS),
    *((kind, Kind.FLOAT) for kind in (pa.float16(), pa.float32(), pa.float64())),
    *((kind, Kind.STRING) for kind in (pa.string(), pa.large_string(), pa.string_view())),
    *((pa.timestamp(unit), Kind.TIMESTAMP) for unit in ("s", "ms", "us", "ns")),
    (pa.timestamp("us", "Europe/Bern"), Kind.TIMESTAMP),
    (pa.date32(), Kind.TIMESTAMP),
    (pa.date64(), Kind.TIMESTAMP),
    (pa.dictionary(pa.int32(), pa.string()), Kind.STRING),
    (pa.dictionary(pa.int8(), pa.int64()), Kind.INT),
    (pa.run_end_encoded(pa.int32(), pa.string()), Kind.STRING),
    (pa.list_(pa.int64()), Kind.ARRAY),
    (pa.large_list(pa.int64()), Kind.ARRAY),
    (pa.list_(pa.int64(), 3), Kind.ARRAY),
    (pa.list_view(pa.int64()), Kind.ARRAY),
    (pa.large_list_view(pa.int64()), Kind.ARRAY),
    (pa.struct([("a", pa.int64())]), Kind.OBJECT),
    (pa.map_(pa.string(), pa.int64()), Kind.OBJECT),
    (pa.binary(), Kind.OBJECT),
    *((kind, Kind.DECIMAL) for kind in (pa.decimal128(10, 2), pa.decimal256(40, -2), pa.decimal64(9, 2))),
    (pa.list_(pa.decimal128(10, 2)), Kind.ARRAY),
    (pa.time64("us"), Kind.OBJECT),
    (pa.duration("us"), Kind.OBJECT),
]


@pytest.mark.parametrize(("arrow", "kind"), ARROW, ids=str)
def test_arrow_types(arrow: pa.DataType, kind: Kind) -> None:
    assert arrow_kind(arrow) is kind
    found = Schema.from_arrow(pa.schema([("X", arrow)])).types["x",]
    assert found.kind is kind


def test_from_arrow_nested() -> None:
    inner = pa.struct([("B", pa.list_(pa.float32())), ("c", pa.struct([("D", pa.string())]))])
    schema = Schema.from_arrow(pa.schema([("A", inner)]))
    assert {path: str(found) for path, found in schema.types.items()} == {
        ("a",): "object",
        ("a", "b"): "array<float64>",
        ("a", "c"): "object",
        ("a", "c", "d"): "string",
    }
