"""Predicates of Vespa: against their reference, and what is refused."""

from __future__ import annotations

import random
from typing import Any

import pytest

from headgate.core.subscription import VESPA
from headgate.errors import FilterError
from headgate.records.importers.vespa import parse
from headgate.records.language.dialects import to_sql
from tests.importers.agreement import COMPUTED, agree
from tests.importers.vespa import holds
from tests.seeds import seeds

TEXTS = ["Female", "female", "a b", "it's", "1", "05", "true", "x-y", "ö"]
NUMBERS = [-5, 0, 1, 5, 20, 30]


def event(rng: random.Random) -> dict[str, Any]:
    """Draw an event: texts, numbers and Booleans for sets, whole numbers and their texts for ranges."""
    found: dict[str, Any] = {}
    for name in ("gender", "hobby", "age", "height"):
        ranged = name in {"age", "height"}
        pools: list[list[Any]] = (
            [[*NUMBERS], ["20", "-5", "007"]] if ranged else [[*TEXTS], [1, 5, 20], [True, False]]
        )
        pool = rng.choice(pools)
        match rng.randrange(5):
            case 0:
                found[name] = [rng.choice(pool) for _ in range(rng.randrange(3))]
            case 1 | 2 | 3:
                found[name] = rng.choice(pool)
    return found


def quoted(text: str) -> str:
    """Write a value."""
    return text if text.isalnum() else "'" + text.replace("'", "\\'") + "'"


def predicate(rng: random.Random, depth: int = 3) -> str:
    """Draw a predicate."""
    if depth and rng.random() < 0.5:
        inner = [predicate(rng, depth - 1) for _ in range(2)]
        return rng.choice(
            [
                f"{inner[0]} and {inner[1]}",
                f"({inner[0]} or {inner[1]})",
                f"not ({inner[0]})",
                f"{inner[0]} or {inner[1]}",
            ]
        )
    sign = rng.choice(["in", "in", "not in"])
    if rng.random() < 0.5:
        return f"{rng.choice(['gender', 'hobby'])} {sign} [{', '.join(map(quoted, rng.sample(TEXTS, 2)))}]"
    low, high = sorted(rng.sample(NUMBERS, 2))
    bounds = rng.choice([f"{low}..{high}", f"..{high}", f"{low}..", f"{low}..{low}", ".."])
    return rng.choice(
        [f"{rng.choice(['age', 'height'])} {sign} [{bounds}]", "true", "FALSE"][: rng.choice([1, 1, 3])]
    )


@pytest.mark.parametrize("seed", seeds(32))
def test_predicates_hold_where_the_reference_says(seed: int) -> None:
    rng = random.Random(seed)
    predicates = [predicate(rng) for _ in range(70)]
    events = [event(rng) for _ in range(40)]
    found = agree(VESPA, predicates, events, lambda text, given: holds(parse(text), given))
    assert found > (200 if COMPUTED else 10)


CONVERTED = [
    ("true", "TRUE"),
    ("not (true)", "FALSE"),
    (
        "gender in [Female, 'Male']",
        "gender IN ('Female', 'Male') OR arrays_overlap(gender, array('Female', 'Male'))",
    ),
    ("id in [1]", "id LIKE '1' OR array_contains(id, '1') OR array_contains(id, 1)"),
    ("a in ['it\\'s', \"x\\x41\"]", "a IN ('it\\'s', 'xA') OR arrays_overlap(a, array('it\\'s', 'xA'))"),
    (
        "age in [..30] or 'first name' in [x]",
        "age <= 30 OR exists(age, x -> x <= 30) OR `first name` = 'x' OR array_contains(`first name`, 'x')",
    ),
    ("c not in [de]", "NOT coalesce(c = 'de' OR array_contains(c, 'de'), FALSE)"),
]


@pytest.mark.parametrize(("text", "sql"), CONVERTED)
def test_what_it_becomes(text: str, sql: str) -> None:
    assert to_sql(text, VESPA) == sql


REFUSED = [
    ("", "the predicate is empty: write true to match every event", None),
    ("age = 5", "'=' is not part of predicates", 4),
    ("age in 5", "'[' is expected here", 7),
    ("age in [5", "']' is expected here", 9),
    ("age in [x..5]", "a range goes from a whole number to a whole number: write [20..30]", 8),
    ("age in [9..5]", "the range is empty: 9 lies above 5", 11),
    ("age in [9999999999999999999..]", "the number does not fit into 64 bits", 8),
    ("in [5]", "a name is expected here: write gender in ['Female']", 0),
    ("a in [x] b in [y]", "and, or, or the end is expected here", 9),
    ("a in []", "a value is expected here: write ['Female', 'Male'] or [20..30]", 6),
    ("a in ['x]", "a text is not closed", 6),
    ("(" * 40, "predicates may nest 32 deep at most", 32),
]


@pytest.mark.parametrize(("text", "reason", "position"), REFUSED)
def test_what_is_refused(text: str, reason: str, position: int | None) -> None:
    with pytest.raises(FilterError) as caught:
        to_sql(text, VESPA)
    assert (caught.value.reason, caught.value.position) == (reason, position)
