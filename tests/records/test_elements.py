"""Sets of elements: `exists` and `typeof` as leaves of an index, against the evaluator of expressions."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from headgate import Event, Subscription
from headgate.records import reference
from headgate.records.computed import is_expression
from headgate.records.index.index import RecordIndex
from headgate.records.language.parse import parse_filter
from headgate.records.programs.binding import compile_filter
from tests.seeds import seeds

MOMENT = dt.datetime(2024, 2, 29, 12, tzinfo=dt.UTC)
POOLS: list[list[Any]] = [
    [-1, 0, 1, 5, 7, 2**40],
    [-0.5, 0.0, 1.0, 5.5, 1e300],
    ["", "1", "5", "a", "ab", "b", "true", "2024-02-29", "1.5"],
    [True, False],
    [Decimal("0.5"), Decimal("5.00"), Decimal(-1)],
    [MOMENT, MOMENT + dt.timedelta(days=1)],
    [-1, 1, 5, 0.5, 5.0],
]
LITERALS = ["0", "1", "5", "-1", "0.5", "5e0", "'1'", "'a'", "''", "'true'", "'2024-02-29'", "TRUE"]
TYPES = ["string", "bigint", "double", "boolean", "timestamp", "decimal(3,2)", "void", "array<string>"]


def condition(rng: random.Random, name: str, depth: int = 2) -> str:
    """Draw a condition on one value."""
    if depth and rng.random() < 0.6:
        parts = [condition(rng, name, depth - 1) for _ in range(rng.choice([2, 2, 3]))]
        return rng.choice(["{}", "({})", "NOT ({})"]).format(
            rng.choice([" AND ", " OR "]).join(f"({one})" for one in parts)
        )
    kinds = ", ".join(f"'{each}'" for each in rng.sample(TYPES, rng.choice([1, 2, 3])))
    return rng.choice(
        [
            f"{name} {rng.choice(['=', '!=', '<', '<=', '>', '>=', '<=>'])} {rng.choice(LITERALS)}",
            f"{name} IN ({', '.join(rng.sample(LITERALS[:4], 2))})",
            f"{name} IN ({', '.join(rng.sample(LITERALS[6:11], 2))})",
            f"exists(array({name}), y -> y IN ({', '.join(rng.sample(LITERALS, 2))}))",
            f"{name} NOT IN ({', '.join(rng.sample(LITERALS[6:11], 2))})",
            f"{name} BETWEEN {rng.choice(LITERALS[:4])} AND {rng.choice(LITERALS[:4])}",
            f"{name} IS {rng.choice(['', 'NOT '])}NULL",
            f"{name} LIKE '{rng.choice(['a%', '%b', 'ab', '1%', '%'])}'",
            f"typeof({name}) {rng.choice(['=', '<>'])} '{rng.choice(TYPES)}'",
            f"typeof({name}) {rng.choice(['', 'NOT '])}IN ({kinds})",
            f"typeof({name}) LIKE 'decimal%'",
            f"typeof({name}) <> 'string' AND {name} > 1",
        ]
    )


def value(rng: random.Random, *, mixed: bool) -> Any:
    """Draw a value: mostly an array."""
    pool = rng.choice(POOLS)
    if rng.random() < 0.25:
        return rng.choice([*pool, None, {"b": 1}])
    if mixed:
        pool = [*rng.choice(POOLS), *pool, ["a"], {"b": 1}]
    return [rng.choice([*pool, None]) for _ in range(rng.randrange(4))]


@pytest.mark.parametrize("seed", seeds(48))
def test_index_agrees_with_the_evaluator(seed: int) -> None:
    rng = random.Random(seed)
    filters = [f"{rng.choice(['', '', 'NOT '])}exists(a, x -> {condition(rng, 'x')})" for _ in range(12)]
    filters += [condition(rng, "a") for _ in range(6)] + [
        f"({condition(rng, 'a')}) OR b = 1" for _ in range(2)
    ]
    trees = [parse_filter(text) for text in filters]
    index = RecordIndex.build(Subscription(number, text) for number, text in enumerate(filters))
    for number in range(40):
        event = Event("e", {"a": value(rng, mixed=number % 2 == 0), "b": rng.choice([1, 2, None])})
        expected = [n for n, tree in enumerate(trees) if reference.matches(tree, event.attributes)]
        found = index.match(event)
        assert found == expected, (
            event,
            [text for n, text in enumerate(filters) if (n in found) != (n in expected)],
        )


@pytest.mark.parametrize(
    ("text", "value", "matches"),
    [
        # A literal that cannot be cast is NULL in an expression; with an attribute, the whole predicate is.
        ("exists(a, x -> x IN ('1', 'x'))", [1], True),
        ("exists(a, x -> x IN ('1', 'x', NULL))", [1], True),
        ("exists(a, x -> x NOT IN ('1', 'x'))", [2], False),
        ("a + 1 IN ('2', 'x')", 1, False),
        ("a IN ('1', 'x')", 1, False),
        # The type of an array whose elements have no common one is void.
        ("a IS NOT NULL AND typeof(a) <> 'void'", [1, {"b": 1}], False),
        ("a IS NOT NULL AND typeof(a) <> 'void'", [1, 2], True),
        ("a IS NOT NULL AND typeof(a) IN ('void', 'string')", [1, {"b": 1}], True),
    ],
)
def test_what_has_no_type_is_null(text: str, value: Any, matches: bool) -> None:
    event = Event("e", {"a": value})
    assert reference.matches(parse_filter(text), event.attributes) is matches
    assert bool(RecordIndex.build([Subscription(0, text)]).match(event)) is matches


@pytest.mark.parametrize("pool", POOLS[:6], ids=range(6))
def test_tables_agree_with_the_evaluator(pool: list[Any]) -> None:
    rng = random.Random(3)
    filters = [f"exists(a, x -> {condition(rng, 'x')})" for _ in range(16)]
    index = RecordIndex.build(Subscription(number, text) for number, text in enumerate(filters))
    rows = [[rng.choice([*pool, None]) for _ in range(rng.randrange(4))] for _ in range(30)]
    batch = pa.RecordBatch.from_pydict({"id": list(range(30)), "a": pa.array([*rows[:-1], None])})
    pairs = index.match_batch(batch).to_pydict()
    found = set(zip(pairs["event_id"], pairs["subscription_id"], strict=True))
    for number, text in enumerate(filters):
        tree = parse_filter(text)
        for row, given in enumerate(batch.column("a").to_pylist()):
            expected = reference.matches(tree, {("a",): given})
            assert ((row, number) in found) == expected, (text, given)


@pytest.mark.parametrize(
    "text",
    [
        "exists(a, x -> x >= 5 AND x < 7 AND typeof(x) <> 'string')",
        "exists(a, x -> typeof(x) = 'string' AND x LIKE 'b%')",
        "exists(a, x -> x IS NULL OR x != 'u' OR typeof(x) IN ('bigint', 'double', 'boolean', 'timestamp'))",
        "exists(a, x -> x = 5)",
        "a > 5 AND typeof(a) <> 'string'",
        "typeof(a) = 'boolean' AND a = TRUE",
    ],
)
def test_what_is_a_set_of_values_is_not_computed(text: str) -> None:
    assert not any(is_expression(leaf.path) for leaf in compile_filter(text).leaves)


@pytest.mark.parametrize(
    "text",
    [
        "NOT exists(a, x -> x > 5)",
        "a IS NOT NULL AND typeof(a) <> 'void'",
        "exists(a, x -> x LIKE '%b')",
        "exists(a, x -> x > b)",
        "exists(a, x -> typeof(x) = 'bigint')",
        "exists(a, x -> typeof(x) <> 'string')",
        "typeof(a) <> 'string'",
    ],
)
def test_the_others_are_computed(text: str) -> None:
    assert any(is_expression(leaf.path) for leaf in compile_filter(text).leaves)
