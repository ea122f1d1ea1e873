"""Decimals: keys against fractions, columns against Python's values, all digits in filters."""

from __future__ import annotations

import random
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate import Engine, Event, Subscription
from headgate.errors import EventError
from headgate.records import reference
from headgate.records.events.columns import from_arrow, from_values
from headgate.records.events.decimals import Decimals, decimal_keys
from headgate.records.index.index import RecordIndex
from headgate.records.language.model import Literal, LiteralType
from headgate.records.language.parse import parse_filter
from headgate.records.programs.decimals import decimal_key, decimal_text, double_cuts, is_short, whole_key
from tests.seeds import examples, seeds

if TYPE_CHECKING:
    from collections.abc import Callable

DIGITS = 76


@st.composite
def decimals(draw: st.DrawFn) -> Decimal:
    """Draw a decimal of up to 76 digits: any, a short one, or one near the middle of two doubles."""
    scale = draw(st.integers(0, DIGITS))
    digits = draw(st.integers(0, draw(st.sampled_from([10**4, 10**15, 10**18, 10**38, 10**DIGITS])) - 1))
    if draw(st.booleans()):
        near = draw(st.floats(1e-30, 1e30))
        middle = (Fraction(near) + Fraction(draw(st.sampled_from([near, near * (1 + 2**-52)])))) / 2
        scale = draw(st.integers(0, 38))
        digits = min(int(middle * 10**scale) + draw(st.integers(-1, 1)), 10**DIGITS - 1)
    return Decimal((draw(st.integers(0, 1)), tuple(map(int, str(abs(digits)))), -scale))


@examples(2000)
@given(decimals(), decimals(), st.one_of(st.floats(), st.none()))
def test_keys_and_texts_are_in_the_order_of_fractions(
    one: Decimal, two: Decimal, double: float | None
) -> None:
    left, right = Fraction(one), Fraction(two)
    order = (left > right) - (left < right)
    texts = decimal_text(one), decimal_text(two)
    assert (texts[0] > texts[1]) - (texts[0] < texts[1]) == order
    keys = decimal_key(one), decimal_key(two)
    found = (keys[0] > keys[1]) - (keys[0] < keys[1])
    assert found in {order, 0}
    if is_short(one) or is_short(two):
        assert found == order
    # A decimal meets a double as Python's own cast has it, which rounds once.
    other = float(two) if double is None else double
    low, high = double_cuts(other)
    wanted = reference.compare(one, Literal(LiteralType.DOUBLE, other))
    assert (keys[0] >= high) - (keys[0] < low) == wanted


@given(st.integers(-(10**15), 10**15))
def test_whole_numbers_are_short(value: int) -> None:
    assert is_short(value)
    assert whole_key(value) == decimal_key(Decimal(value))


def column(values: list[Decimal | None], kind: Any) -> pa.Array[Any]:
    """Make an array of any scale; Arrow converts values to scales that are not negative only."""
    scale = kind.scale
    whole = pa.decimal256(76, 0) if pa.types.is_decimal256(kind) else pa.decimal128(38, 0)
    assert all(value is None or value.as_tuple().exponent == -scale for value in values)
    digits = [None if value is None else Decimal((*value.as_tuple()[:2], 0)) for value in values]
    made = pa.array(digits, whole)
    return pa.Array.from_buffers(kind, len(made), made.buffers(), made.null_count)


KINDS: list[tuple[Any, int, int]] = [(pa.decimal128, 38, scale) for scale in (0, 2, 18, 22, 23, 38, -3, -20)]
KINDS += [(pa.decimal256, DIGITS, scale) for scale in (0, 18, 38, DIGITS)]
KINDS += [(pa.decimal128, 5, 2), (pa.decimal128, 18, 6), (pa.decimal256, 40, -30)]


@pytest.mark.parametrize(("make", "precision", "scale"), KINDS)
def test_columns_have_the_keys_of_their_values(make: Callable[..., Any], precision: int, scale: int) -> None:
    rng = random.Random(precision * 100 + scale)
    sizes = [size for size in (1, 2, 9, 15, 16, 17, 18, 19, 20, 37, 38, 39, 75, 76) if size <= precision]
    for _ in seeds(64):
        values: list[Decimal | None] = []
        for size in sizes:
            zeros = rng.choice([0, 0, size // 2, size - 1])
            digits = rng.randrange(10 ** (size - zeros)) * 10**zeros
            edge = rng.choice([digits, digits, 10**size - 1, 10 ** (size - 1), 2**53 % 10**size, 0])
            values += [Decimal((rng.randrange(2), tuple(map(int, str(edge))), -scale)), None]
        array = column(values, make(precision, scale))
        keys = [decimal_key(value) for value in values if value is not None]
        assert decimal_keys(array.drop_null()).tolist() == keys
        ours, theirs = from_arrow(array[1:]), from_values(values[1:])
        assert ours.number.tolist() == theirs.number.tolist()
        assert ours.kind.tolist() == theirs.kind.tolist()
        assert ours.decimals is not None
        assert theirs.decimals is not None
        assert written(ours.decimals) == written(theirs.decimals)


def written(found: Decimals) -> list[tuple[int, str]]:
    code, pool = found.texts
    return list(zip(found.rows.tolist(), map(pool.text, code.tolist()), strict=True))


def test_narrow_decimals_nulls_and_what_is_too_wide() -> None:
    values = [Decimal("12.50"), None, Decimal("-0.01")]
    wanted = from_values(values).number.tolist()
    for kind in (pa.decimal32(5, 2), pa.decimal64(9, 2), pa.decimal128(10, 2), pa.decimal256(40, 2)):
        assert from_arrow(pa.array(values, kind)).number.tolist() == wanted
        inside = pa.array([0, None, 1], pa.int8())
        coded = pa.DictionaryArray.from_arrays(inside, pa.array(values, kind).drop_null())
        assert from_arrow(coded).number.tolist() == wanted
    assert from_arrow(pa.nulls(2, pa.decimal128(5, 2))).kind.tolist() == [0, 0]
    assert from_arrow(pa.array([], pa.decimal128(5, 2))).number.tolist() == []
    wide = column([Decimal("1e80")], pa.decimal128(5, -80))
    batch = pa.RecordBatch.from_arrays([pa.array([1]), wide], ["id", "a"])
    with pytest.raises(EventError, match=r"decimals of type decimal128\(5, -80\) have more than 76 digits"):
        RecordIndex.build([Subscription(1, "a > 1")]).match_batch(batch)


# Filters over one attribute that mix short literals, long ones, doubles and texts, so that they share lines.
PARTS = ["a = 1", "a > 0.1", "a < 0.100000000000000001", "a = 99999999999999999999999999999999999998"]
PARTS += [
    "a IN (1, 12345678901234567)",
    "a NOT IN (0.1, 0.100000000000000001)",
    "a >= 0.1e0",
    "a = '0.1'",
    "a = 'x'",
]
PARTS += [
    "a BETWEEN 0.1 AND 1234567890123456.5",
    "a <> 9007199254740993",
    "a <= 9007199254740993",
    "a IS NULL",
]
PARTS += ["array_contains(a, 0.1)", "arrays_overlap(a, array(1, 9007199254740993))", "a LIKE '1%'"]
PARTS += ["forall(a, x -> x IN (0.1, 0.100000000000000001))", "NOT array_contains(a, 9007199254740993)"]
NUMBERS = "0 0.1 0.10 0.100000000000000001 0.1000000000000000000001 1 1.00 12345678901234567 9007199254740993"
NUMBERS += (
    " 9007199254740992 9007199254740993.5 1234567890123456.5 1234567890123456.51 -1 "
    + "9" * 38
    + " "
    + "9" * 37
    + "8"
)
VALUES: list[object] = [None, 1, 0.1, "0.1", "x", True, *map(Decimal, NUMBERS.split())]
VALUES += [
    [Decimal("0.10"), None],
    [Decimal("0.100000000000000001")],
    [Decimal(9007199254740993), 1],
    [],
    [None],
]


def test_long_and_short_literals_together() -> None:
    rng = random.Random(7)
    joined = [
        f" {rng.choice(['AND', 'OR'])} ".join(f"({part})" for part in rng.sample(PARTS, 3))
        for _ in range(150)
    ]
    filters = [*PARTS, *(f"NOT ({part})" for part in PARTS), *joined]
    trees = [parse_filter(text) for text in filters]
    events = [Event(number, {"a": value, "b": {"a": value}}) for number, value in enumerate(VALUES)]
    wanted = [
        [n for n, tree in enumerate(trees) if reference.matches(tree, each.attributes)] for each in events
    ]
    subscriptions = [Subscription(number, text) for number, text in enumerate(filters)]
    built, live = RecordIndex.build(subscriptions), RecordIndex.build([])
    for subscription in subscriptions:
        live.subscribe(subscription)
    compacted = RecordIndex.build(subscriptions[::2])
    for subscription in subscriptions[1::2]:
        compacted.subscribe(subscription)
    compacted.compact()
    for index in (built, live, compacted):
        assert [sorted(index.match(event)) for event in events] == wanted
        found = index.match_batch(events).to_pydict()
        pairs = sorted(zip(found["event_id"], found["subscription_id"], strict=True))
        assert pairs == [(number, name) for number, names in enumerate(wanted) for name in names]
    inner = [text.replace("a ", "b.a ").replace("(a,", "(b.a,") for text in PARTS]
    nested = RecordIndex.build(Subscription(number, text) for number, text in enumerate(inner))
    for event, names in zip(events, wanted, strict=True):
        assert nested.match(event) == [name for name in names if name < len(PARTS)]


def test_explanations_have_exact_gaps() -> None:
    filters = ["a > 0.1", "a = 0.5e0", "a = 'x'"]
    engine = Engine.build([{"id": number, "filter": text} for number, text in enumerate(filters)])
    event = {"a": Decimal("0.0999999999999999999999")}
    notes = [engine.explain(event, number).lines()[1] for number in range(3)]
    assert 'a = "0.0999999999999999999999" (off by 0.0000000000000000000001)' in notes[0]
    assert "(off by 0.4)" in notes[1]
    assert "cannot be compared here" in notes[2]


def test_the_best_by_decimals() -> None:
    subscriptions = [
        {"id": "low", "filter": "price BETWEEN 0.10 AND 0.199999999999999999", "score": 2},
        {"id": "high", "filter": "price >= 0.2", "score": 1},
    ]
    engine = Engine.build(subscriptions, ranked=True)
    for price, best in (("0.20", "high"), ("0.1", "low"), ("0.199999999999999999", "low")):
        assert [each.subscription for each in engine.top({"price": Decimal(price)}, 2)] == [best]
    assert engine.top({"price": Decimal("0.1999999999999999999")}, 2) == []
    assert engine.top({"price": Decimal("0.2")}, 2, "relaxed")[0].subscription == "high"
