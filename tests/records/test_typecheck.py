"""Filters against a schema."""

from __future__ import annotations

import pytest

from headgate import Schema
from headgate.errors import FilterError
from headgate.records.compiling import check_types
from headgate.records.language.parse import parse_filter

SCHEMA = Schema.from_json(
    {
        "age": "int64",
        "page": "int64",
        "price": "float64",
        "cost": "Decimal( 10, 2 )",
        "costs": "array<decimal(38,18)>",
        "topic": "string",
        "spam": "bool",
        "at": "timestamp",
        "tags": "array<string>",
        "sizes": "array<int64>",
        "days": "array<timestamp>",
        "nothing": "null",
        "unknowns": "array<null>",
        "user": {"age": "int64", "first name": "string"},
    }
)

ABLE = [
    "age > 5 AND age < 5.5 AND age != 5e0 AND age = '5'",
    "price > 5 AND price = '1.5' AND price = 'NaN'",
    "cost > 5 AND cost = 0.1 AND cost = 1e0 AND cost = '1.5' AND cost = 99999999999999999999999999.5",
    "array_contains(costs, 0.1) AND forall(costs, x -> x IN (1, 12345678901234567))",
    "topic = 'x' AND topic > 5 AND topic = TRUE AND topic < DATE '2024-01-01' AND topic LIKE '%x%'",
    "spam AND spam = 'yes' AND NOT spam AND spam LIKE 'tr%'",
    "at > TIMESTAMP '2024-01-01' AND at = '2024' AND at BETWEEN DATE '2024-01-01' AND DATE '2024-01-02'",
    "array_contains(tags, 'x') AND arrays_overlap(sizes, array(1, 2)) AND arrays_overlap(tags, array())",
    "array_contains(sizes, 1.5) AND array_contains(sizes, 1e0) AND array_contains(days, DATE '2024-01-01')",
    "age = 1.5 OR age = 99999999999999999999 OR age BETWEEN 5 AND 1",
    "age = NULL OR age <=> NULL OR topic IN (NULL) OR spam BETWEEN NULL AND NULL",
    "nothing = 5 AND nothing = 'x' AND nothing AND array_contains(nothing, 1) AND nothing LIKE '%x'",
    "array_contains(unknowns, 1) AND array_contains(unknowns, 'x')",
    "user IS NULL AND user.age > 5 AND USER.`First Name` LIKE 'x%' AND tags IS NOT NULL",
    "age LIKE '1%' AND age NOT LIKE '%1'",
    "forall(tags, x -> x IN ('x')) AND forall(sizes, x -> x = '5') AND forall(tags, x -> x = 5)",
    "forall(sizes, x -> x IS NULL) AND forall(days, x -> x IS NULL OR x = '2024')",
    "forall(unknowns, x -> x = 1) AND forall(nothing, x -> x = 'x')",
    "TRUE OR NULL",
]


@pytest.mark.parametrize("text", ABLE)
def test_able(text: str) -> None:
    check_types(parse_filter(text), SCHEMA, text)


# ⟪ stands before the character that the error must point at.
UNABLE = [
    ("⟪aeg > 30", "attribute aeg is not in the schema; age is"),
    ("⟪zzzzzz IS NULL", "attribute zzzzzz is not in the schema"),
    ("age > 5 AND ⟪user.agee > 5", "attribute user.agee is not in the schema; user.age is"),
    ("⟪age.x > 5", "attribute age.x is not in the schema"),
    ("age > 5 AND ⟪ag = 5", "attribute ag is not in the schema; age is"),
    ("topic = 'aeg' AND ⟪aeg = 5", "attribute aeg is not in the schema"),
    ('topic = "it\'s aeg" AND ⟪`AEG` = 5', "attribute aeg is not in the schema"),
    ("user.age = 1 AND (⟪age = TRUE)", "age is int64, so age = TRUE can never hold"),
    ("page = 1 AND ⟪age = TRUE", "age is int64, so age = TRUE can never hold"),
    ("age = 1 AND ⟪age = TRUE", "age is int64, so age = TRUE can never hold"),
    ("age BETWEEN 1 AND 2 AND age = 5 AND NOT ⟪age = 'x'", "age is int64, so age = 'x' can never hold"),
    ("age = 1 AND ⟪`user` . AGE = 'x'", "user.age is int64, so"),
    ("⟪age = '1.5'", "age is int64, so age = '1.5' can never hold"),
    ("⟪age IN ('1', 'x')", "age is int64, so age IN ('1', 'x') can never hold"),
    ("⟪age BETWEEN 1 AND 'x'", "age is int64, so age <= 'x' can never hold"),
    ("⟪age", "age is int64, so age can never hold"),
    ("⟪price LIKE '1%'", "price is float64, so price LIKE '1%' can never hold"),
    ("⟪price NOT LIKE '%1'", "price is float64, so price LIKE '%1' can never hold"),
    ("⟪price = DATE '2024-01-01'", "price is float64, so"),
    ("⟪cost LIKE '1%'", "cost is decimal, so cost LIKE '1%' can never hold"),
    ("⟪cost = 'x'", "cost is decimal, so cost = 'x' can never hold"),
    ("array_contains(⟪costs, '1')", "costs is array<decimal>, so array_contains(costs, '1') can never hold"),
    ("⟪spam > 5", "spam is bool, so spam > 5 can never hold"),
    ("⟪spam = 'maybe'", "spam is bool, so spam = 'maybe' can never hold"),
    ("⟪at > 5", "at is timestamp, so at > 5 can never hold"),
    ("⟪at = 'yesterday'", "at is timestamp, so at = 'yesterday' can never hold"),
    ("⟪tags = 'x'", "tags is array<string>, so tags = 'x' can never hold"),
    ("array_contains(⟪topic, 'x')", "topic is string, so array_contains(topic, 'x') can never hold"),
    ("array_contains(⟪tags, 5)", "tags is array<string>, so array_contains(tags, 5) can never hold"),
    ("array_contains(⟪sizes, '5')", "sizes is array<int64>, so array_contains(sizes, '5') can never hold"),
    ("arrays_overlap(⟪topic, array())", "topic is string, so arrays_overlap(topic, array()) can never hold"),
    ("⟪user = 5", "user is object, so user = 5 can never hold"),
    ("forall(⟪topic, x -> x = 'x')", "topic is string, so forall(topic, x -> x IN ('x')) can never hold"),
    (
        "forall(⟪sizes, x -> x = 'x')",
        "sizes is array<int64>, so forall(sizes, x -> x IN ('x')) can never hold",
    ),
    ("forall(⟪user, x -> x IS NULL)", "user is object, so forall(user, x -> x IS NULL) can never hold"),
    (
        "forall(tags, age -> age IN ('(age', \"')\")) AND ⟪age = TRUE",
        "age is int64, so age = TRUE can never hold",
    ),
    ("age > 5 OR NOT (⟪user LIKE 'x')", "user is object, so"),
]


@pytest.mark.parametrize(("marked", "reason"), UNABLE)
def test_unable(marked: str, reason: str) -> None:
    text = marked.replace("⟪", "")
    with pytest.raises(FilterError) as caught:
        check_types(parse_filter(text), SCHEMA, text)
    assert reason in caught.value.reason
    assert caught.value.position == marked.index("⟪")
