"""Arrow columns of every type against the reference on the same Python values."""

from __future__ import annotations

import datetime as dt
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from headgate import Event, Subscription
from headgate.errors import EventError
from headgate.records import reference
from headgate.records.index.index import RecordIndex
from headgate.records.language.parse import parse_filter

if TYPE_CHECKING:
    from headgate.core.values import Path

# The stubs of pyarrow know fewer ways to make an array than pyarrow.
arrow: Any = pa
NUMBERS = ["x = 5", "x > 4", "x < 5.5", "x != 5e0", "x = '5'", "x LIKE '5%'", "x IN (5, 7)"]
TEXTS = [
    "x = 'a'",
    "x > 'a'",
    "x LIKE '%long%'",
    "x = 5",
    "x = TRUE",
    "x < DATE '2024-01-02'",
    "x IN ('a', '🎈')",
]
MOMENTS = [
    "x = TIMESTAMP '2024-01-01'",
    "x < DATE '2024-01-01'",
    "x = '2024-01-01'",
    "x > TIMESTAMP '1969-12-31'",
]
ARRAYS = [
    "array_contains(x, 5)",
    "arrays_overlap(x, array(6, 7))",
    "array_contains(x, 'a')",
    "array_contains(x, 1.5)",
]
ARRAYS += ["arrays_overlap(x, array())", "array_contains(x, TRUE)", "array_contains(x, DATE '2024-01-01')"]
STRUCTS = ["x.a = 5", "x.b.c = 'a'", "x.a IS NULL", "x.b IS NULL", "x.b.c IS NULL", "x.zzz IS NULL"]
FILTERS = [*NUMBERS, *TEXTS, *MOMENTS, *ARRAYS, *STRUCTS, "x", "x IS NULL"]
FILTERS += [f"NOT ({text})" for text in FILTERS]
INDEX = RecordIndex.build(Subscription(number, text) for number, text in enumerate(FILTERS))
TREES = [parse_filter(text) for text in FILTERS]


def answers(array: pa.Array[Any], identities: list[int]) -> list[tuple[int, int]]:
    batch = pa.RecordBatch.from_arrays([pa.array(identities, pa.int64()), array], names=["id", "X"])
    found = INDEX.match_batch(batch).to_pydict()
    return list(zip(found["event_id"], found["subscription_id"], strict=True))


def check(array: pa.Array[Any], values: list[object]) -> None:
    """Compare the whole column, and slices of it with offsets."""
    expected = []
    for place, value in enumerate(values):
        attributes: dict[Path, object] = Event("e", {"x": value}).attributes
        expected += [(place, n) for n, tree in enumerate(TREES) if reference.matches(tree, attributes)]
    places = list(range(len(values)))
    assert answers(array, places) == expected
    for start, stop in ((0, 0), (1, len(values)), (1, len(values) - 1), (2, 3)):
        wanted = [pair for pair in expected if start <= pair[0] < stop]
        assert answers(array.slice(start, stop - start), places[start:stop]) == wanted


WHOLES: list[object] = [5, None, 6, 0, 7, 5, 127]
INTS = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
STRINGS: list[object] = [
    "a",
    None,
    "",
    "a rather long text, beyond twelve bytes",
    "🎈",
    "5",
    "true",
    "2024-01-01",
    "a",
]
DAY = dt.datetime(2024, 1, 1)
TIMES: list[object] = [DAY, None, DAY - dt.timedelta(seconds=1), dt.datetime(1969, 12, 31, 23, 59, 59), DAY]
LISTS: list[object] = [[5], None, [], [6, None], [None], [7, 5, 5], [1]]


@pytest.mark.parametrize("kind", INTS, ids=str)
def test_whole_numbers(kind: pa.DataType) -> None:
    check(pa.array(WHOLES, kind), WHOLES)


def test_the_edges_of_64_bits() -> None:
    index = RecordIndex.build(
        [Subscription(1, "x = 9223372036854775807"), Subscription(2, "x < -9223372036854775807")]
    )
    for kind, values in ((pa.int64(), [2**63 - 1, -(2**63), 0]), (pa.uint64(), [2**63 - 1, 0, 1])):
        batch = pa.RecordBatch.from_arrays([pa.array([0, 1, 2]), pa.array(values, kind)], names=["id", "x"])
        found = index.match_batch(batch).to_pydict()["event_id"]
        assert found == ([0, 1] if kind == pa.int64() else [0])
    with pytest.raises(EventError, match="a value of type uint64 does not fit into 64 bits"):
        answers(pa.array([5, 2**63], pa.uint64()), [0, 1])


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_floats(kind: type[np.floating[Any]]) -> None:
    values = np.array([5, 5.5, -0.0, math.inf, -math.inf, math.nan, 0.1], kind)
    check(pa.array(values), [float(value) for value in values])
    check(pa.array([5.0, None, 7.0, 1.5]).cast(arrow.from_numpy_dtype(kind)), [5.0, None, 7.0, 1.5])


def test_booleans_and_nulls() -> None:
    check(pa.array([True, None, False, True]), [True, None, False, True])
    check(pa.nulls(4), [None] * 4)


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
def test_texts(kind: pa.DataType) -> None:
    check(pa.array(STRINGS, kind), STRINGS)


def test_dictionaries_and_runs() -> None:
    check(arrow.array(STRINGS).dictionary_encode(), STRINGS)
    check(pa.array(WHOLES, pa.int64()).dictionary_encode(), WHOLES)
    # A null may also be a value of the dictionary, and values may repeat.
    odd = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 2, 3]), pa.array(["a", None, "🎈", "a"]))
    check(odd, ["a", None, None, "🎈", "a"])
    runs = arrow.RunEndEncodedArray.from_arrays([2, 3, 5], pa.array([5, None, 7]))
    check(runs, [5, 5, None, 7, 7])


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Zurich"])
def test_timestamps(unit: str, zone: str | None) -> None:
    aware = [moment.replace(tzinfo=dt.UTC) if isinstance(moment, dt.datetime) else None for moment in TIMES]
    check(pa.array(TIMES if zone is None else aware, arrow.timestamp(unit, zone)), TIMES)


def test_nanoseconds_go_down_to_microseconds() -> None:
    moments = [-1, -1000, -1001, 0, 999, 1000]
    index = RecordIndex.build(
        Subscription(micros, f"x = TIMESTAMP '{dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=micros)}'")
        for micros in (-2, -1, 0, 1)
    )
    batch = pa.RecordBatch.from_arrays(
        [pa.array(moments), pa.array(moments, pa.timestamp("ns"))], names=["id", "x"]
    )
    found = index.match_batch(batch).to_pydict()
    assert found["subscription_id"] == [-1, -1, -2, 0, 0, 1]


def test_moments_beyond_64_bits_are_refused() -> None:
    for array in (pa.array([2**62], pa.timestamp("s")), pa.array([10**9], pa.date32())):
        with pytest.raises(EventError, match="does not fit into 64 bits"):
            answers(array, [0])


@pytest.mark.parametrize("kind", [pa.date32(), pa.date64()], ids=str)
def test_dates(kind: pa.DataType) -> None:
    days: list[object] = [DAY.date(), None, dt.date(1969, 12, 31), dt.date(1, 1, 1), dt.date(9999, 12, 31)]
    check(pa.array(days, kind), days)


def test_lists() -> None:
    plain = pa.array(LISTS, pa.list_(pa.int64()))
    check(plain, LISTS)
    check(plain.cast(pa.large_list(pa.int32())), LISTS)
    view = arrow.ListViewArray.from_arrays(
        pa.array([3, 0, 0, 1], pa.int32()),
        pa.array([2, 0, 0, 3], pa.int32()),
        pa.array([5, 6, None, 7, 5]),
        mask=pa.array([False, True, False, False]),
    )
    check(view, [[7, 5], None, [], [6, None, 7]])
    fixed: list[object] = [[5, 6], None, [None, 7], [1, 1]]
    check(pa.array(fixed, pa.list_(pa.int64(), 2)), fixed)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.string(), [["a", None], None, [], ["b"], ["b", "a"]]),
        (pa.bool_(), [[True], [False, None], [], None, [False]]),
        (pa.float32(), [[1.5], [math.nan], None, [-0.0, 5.0], []]),
        (pa.timestamp("ms"), [[DAY], [None], None, [dt.datetime(1970, 1, 1)]]),
        (pa.dictionary(pa.int8(), pa.string()), [["a"], [], ["b", None, "a"], None]),
        (pa.list_(pa.int64()), [[[5]], None, [[]], [None]]),
        (pa.struct([("a", pa.int64())]), [[{"a": 5}], None, [], [None]]),
        (pa.null(), [[None], None, [], [None, None]]),
    ],
    ids=str,
)
def test_lists_of_other_things(kind: pa.DataType, values: list[object]) -> None:
    check(pa.array(values, pa.list_(kind)), values)


def test_structs() -> None:
    values: list[object] = [
        {"a": 5, "b": {"c": "a"}},
        None,
        {"a": None, "b": None},
        {"a": 6, "b": {"c": None}},
        {"a": 5, "b": {"c": "b"}},
    ]
    kind = pa.struct([("A", pa.int64()), ("b", pa.struct([("C", pa.string())]))])
    renamed = [None if value is None else {"A": value["a"], "b": _upper(value["b"])} for value in values]  # type: ignore[index]
    check(pa.array(renamed, kind), values)


def _upper(inner: dict[str, object] | None) -> dict[str, object] | None:
    return None if inner is None else {"C": inner["c"]}


MAP = pa.map_(pa.string(), pa.int64())
SPLIT = "make it a struct, or give its entries columns of their own"
# Columns that no filter can look into, a filter that would, and what the error says to do about them.
FOREIGN: list[tuple[pa.Array[Any], str, str]] = [
    (pa.array([b"5"]), "x LIKE '5%x%'", "cast it to string"),
    (pa.array([b"5"]).dictionary_encode(), "x > 1", "cast it to string"),
    (pa.array([{"y": b"5"}]), "x.y > 1", "cast it to string"),
    (pa.array([[b"5"]]), "arrays_overlap(x, array('5'))", "cast its elements to string"),
    (pa.array([[b"5"]]), "forall(x, y -> y = '5')", "cast its elements to string"),
    (pa.array([[[b"5"]]]), "array_contains(x, '5')", "cast its elements to string"),
    (pa.array([[b"5"]], pa.large_list(pa.binary())), "x = '5'", "cast its elements to string"),
    (pa.array([b"5"]), "x = '5'", "cast it to string"),
    (pa.array([b"5"], pa.large_binary()), "x LIKE '5%'", "cast it to string"),
    (pa.array([b"5"], pa.binary(1)), "x IN ('5')", "cast it to string"),
    (pa.array([b"5"], arrow.binary_view()), "x BETWEEN '4' AND '6'", "cast it to string"),
    (pa.array([[b"5"]]), "array_contains(x, '5')", "cast its elements to string"),
    (pa.array([dt.time(5)]), "x < '06:00'", "cast it to string"),
    (pa.array([dt.timedelta(5)]), "x > 5", "cast it to int64"),
    (pa.array([(1, 2, 3)], pa.month_day_nano_interval()), "x", "cast it to string"),
    (pa.array([[("a", 5)]], MAP), "x = 5", SPLIT),
    (pa.array([[("a", 5)]], MAP), "array_contains(x, 5)", SPLIT),
    (pa.array([[[("a", 5)]]], pa.list_(MAP)), "array_contains(x, 5)", SPLIT),
    (pa.array([{"y": [("a", 5)]}], pa.struct([("y", MAP)])), "x.y = 5", SPLIT),
]


@pytest.mark.parametrize(
    ("array", "text", "remedy"), FOREIGN, ids=[f"{text} over {array.type}" for array, text, _ in FOREIGN]
)
def test_a_column_that_filters_cannot_look_into_is_refused(
    array: pa.Array[Any], text: str, remedy: str
) -> None:
    batch = pa.RecordBatch.from_arrays([pa.array([1]), array], names=["id", "X"])
    built = RecordIndex.build([Subscription(1, text)])
    live = RecordIndex.build([])
    live.subscribe(Subscription(1, text))
    for index in (built, live):
        with pytest.raises(
            EventError, match=r"column x(\.y)? is .*, which filters cannot compare: "
        ) as raised:
            index.match_batch(batch)
        assert str(raised.value).endswith(remedy)
    # Whether something is there can be asked of any type.
    there = RecordIndex.build([Subscription(1, "x IS NOT NULL"), Subscription(2, "x IS NULL")])
    assert there.match_batch(batch).to_pydict()["subscription_id"] == [1]


@pytest.mark.parametrize("text", ["x.a = 5", "x.a IS NULL", "x.a.b = 5"])
def test_no_name_goes_into_a_map(text: str) -> None:
    batch = pa.RecordBatch.from_arrays([pa.array([1]), pa.array([[("a", 5)]], MAP)], names=["id", "x"])
    wanted = r"column x is map<string, int64>, which x\.a(\.b)? cannot go into: " + SPLIT
    with pytest.raises(EventError, match=wanted):
        RecordIndex.build([Subscription(1, text)]).match_batch(batch)


@pytest.mark.parametrize("value", [b"5", dt.time(5), dt.timedelta(5), [b"5"], {"y": b"5"}])
def test_a_value_that_filters_cannot_look_into_is_refused(value: object) -> None:
    with pytest.raises(
        EventError, match=r"attribute x(\.y)?: a value of type \w+ is not supported: use None, "
    ):
        RecordIndex.build([Subscription(1, "x = 5")]).match(Event("e", {"x": value}))
