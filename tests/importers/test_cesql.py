"""CloudEvents SQL: its order of operators, its reference, and what is refused."""

from __future__ import annotations

import random
from typing import Any

import pytest

from headgate.core.subscription import CESQL
from headgate.errors import FilterError
from headgate.records.importers.cesql_parse import parse
from headgate.records.importers.cesql_reference import Wrong, evaluate, holds
from headgate.records.language.dialects import to_sql
from tests.importers.agreement import COMPUTED, agree
from tests.seeds import seeds

NAMES = ["type", "source", "subject", "hop", "flag"]
TEXTS = ["", "a", "A", "ab", "b%", "1", "12", "-1", "05", "true", "FALSE", "yes", "it's", "a\\b", "x y "]
NUMBERS = [-1, 0, 1, 2, 12, 2**31 - 1, -(2**31)]
PATTERNS = ["a%", "%b", "_", "%", r"b\%", "1%", "t%", r"a\\b", ""]


def event(rng: random.Random) -> dict[str, Any]:
    """Draw an event with the attributes that every CloudEvent has."""
    found: dict[str, Any] = {
        "id": "1",
        "specversion": "1.0",
        "type": rng.choice(TEXTS),
        "source": rng.choice(TEXTS),
    }
    for name in NAMES[2:]:
        if rng.random() < 0.75:
            found[name] = rng.choice([rng.choice(TEXTS), rng.choice(NUMBERS), rng.choice([True, False])])
    return found


def quoted(text: str) -> str:
    """Write a text."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def literal(rng: random.Random) -> str:
    """Draw a literal."""
    return rng.choice([quoted(rng.choice(TEXTS)), str(rng.choice(NUMBERS)), rng.choice(["TRUE", "false"])])


def operand(rng: random.Random, depth: int) -> str:
    """Draw a value."""
    if depth <= 0 or rng.random() < 0.5:
        return rng.choice(NAMES) if rng.random() < 0.8 else literal(rng)
    inner = [operand(rng, depth - 1) for _ in range(3)]
    place = rng.choice([1, 2, -1, -2, 0, 5])
    return rng.choice(
        [
            f"({inner[0]} {rng.choice('+-*/%')} {inner[1]})",
            f"(-{rng.choice(NAMES)})",
            f"LENGTH({inner[0]})",
            f"CONCAT({', '.join(inner)})",
            f"CONCAT_WS('-', {inner[0]}, {inner[1]})",
            f"{rng.choice(['LOWER', 'upper', 'TRIM', 'INT', 'BOOL', 'STRING', 'ABS'])}({inner[0]})",
            f"LEFT({inner[0]}, {rng.choice(['1', '0', 'hop'])})",
            f"RIGHT({inner[0]}, {rng.choice(['1', '2', 'hop'])})",
            f"SUBSTRING({inner[0]}, {place})",
            f"SUBSTRING({inner[0]}, {place}, {rng.choice([0, 1, 9])})",
            f"({condition(rng, depth - 1)})",
        ]
    )


def condition(rng: random.Random, depth: int) -> str:
    """Draw a condition."""
    if depth > 0 and rng.random() < 0.4:
        sign = rng.choice(["AND", "OR", "XOR", "and"])
        return rng.choice(
            [
                f"{condition(rng, depth - 1)} {sign} {condition(rng, depth - 1)}",
                f"({condition(rng, depth - 1)}) {sign} {condition(rng, depth - 1)}",
                f"NOT ({condition(rng, depth - 1)})",
            ]
        )
    left, right = operand(rng, depth - 1), operand(rng, depth - 1)
    return rng.choice(
        [
            f"{left} {rng.choice(['=', '!=', '<>', '<', '<=', '>', '>='])} {right}",
            f"{rng.choice(NAMES)} {rng.choice(['=', '!='])} {literal(rng)}",
            f"{left} {rng.choice(['', 'NOT '])}LIKE '{rng.choice(PATTERNS)}'",
            f"{rng.choice(NAMES)} {rng.choice(['', 'NOT '])}IN ({literal(rng)}, {literal(rng)})",
            f"EXISTS {rng.choice(NAMES)}",
            f"{rng.choice(['IS_INT', 'IS_BOOL'])}({left})",
            rng.choice(NAMES),
        ]
    )


def accepted(text: str) -> bool:
    """Tell whether a filter is converted; a refusal says that it has an error for every event."""
    try:
        to_sql(text, CESQL)
    except FilterError as refused:
        why = refused.reason
    else:
        return True
    assert "error for every event" in why, text
    return False


@pytest.mark.parametrize("seed", seeds(32))
def test_filters_hold_where_the_reference_says(seed: int) -> None:
    rng = random.Random(seed)
    drawn = [condition(rng, 3) for _ in range(130)]
    filters = [text for text in drawn if accepted(text)]
    events = [event(rng) for _ in range(50)]
    found = agree(CESQL, filters, events, lambda text, given: holds(parse(text), given), 20)
    assert found > (200 if COMPUTED else 20)


VALUES = [
    ("1 + 2 * 3", 7),
    ("(1 + 2) * 3", 9),
    ("7 / -2", -3),
    ("-7 % 2", -1),
    ("TRUE AND FALSE OR TRUE", True),
    ("FALSE AND TRUE OR TRUE", False),
    ("TRUE OR TRUE AND FALSE", True),
    ("TRUE XOR TRUE AND FALSE", True),
    ("NOT FALSE LIKE 'true'", True),
    ("1 = 1 AND 2 < 3", True),
    ("'TRUE' = true", True),
    ("true = 'TRUE'", False),
    ("INT(TRUE) + 1", 2),
    ("BOOL(-50)", True),
    ("CONCAT_WS(', ', 'a', 1, TRUE)", "a, 1, true"),
    ("SUBSTRING('abc', -2)", "bc"),
    ("SUBSTRING('abc', 2, 9)", "bc"),
    ("SUBSTRING('abc', 0)", ""),
    ("LEFT('abc', 5)", "abc"),
    ("RIGHT('abc', 2)", "bc"),
    ("TRIM(' \t a b \n')", "a b"),
    ("1 IN ('1', 2)", True),
    ("IS_INT('abc')", False),
    ("IS_BOOL('FALSE')", True),
    ("\"it's\" = 'it\\'s'", True),
    (r"'50%' LIKE '50\%'", True),
    (r"'500' LIKE '50\%'", False),
    ("ABS(-3)", 3),
    ("EXISTS id", True),
    ("EXISTS other", False),
]


@pytest.mark.parametrize(("text", "value"), VALUES)
def test_values(text: str, value: object) -> None:
    found = evaluate(parse(text), {})
    assert (type(found), found) == (type(value), value)


@pytest.mark.parametrize(
    "text",
    ["1 / 0", "5 % 0", "INT('x')", "2147483647 + 1", "LEFT('a', -1)", "SUBSTRING('a', 2)", "other = 1"],
)
def test_errors(text: str) -> None:
    with pytest.raises(Wrong):
        evaluate(parse(text), {})


REFUSED = [
    ("", "the filter is empty: write TRUE to match every event", None),
    ("a = ", "a value is missing at the end", 4),
    ("a = 'x", "a text is not closed", 4),
    ("a = 1 b", "an operator or the end is expected here", 6),
    ("a; b", "';' is not part of CloudEvents SQL", 1),
    ("Type = 'x'", "Type is no name of an attribute: CloudEvents have lower-case letters and digits", 0),
    ("a LIKE b", "LIKE takes a pattern in quotes", 7),
    ("a NOT = b", "LIKE or IN is expected after NOT here", 6),
    ("a IN 1", "'(' is expected here", 5),
    ("EXISTS 'a'", "the name of an attribute is expected here", 7),
    ("LENGTH(a, b) = 1", "LENGTH takes 1 arguments, and these are 2", 0),
    ("SUBSTRING(a) = 'x'", "SUBSTRING takes 2 to 3 arguments, and these are 1", 0),
    ("a = 3000000000", "an Integer of CloudEvents SQL has 32 bits, and this has more", 4),
    ("a = + b", "a plus sign may stand before digits only", 4),
    ("(" * 60 + "a", "expressions may nest 48 deep at most", 48),
    ("a AND INT('x') = 1", "this has an error for every event: 'x' is no Integer", 15),
    ("a = 1 / 0", "this has an error for every event: division by 0", 6),
    (
        "SUBSTRING(a, hop) = 'x'",
        "SUBSTRING takes numbers that are written out: what others give may lie outside",
        0,
    ),
    (
        "hop IN (ttl)",
        (
            "IN takes literals here: what is left of it gives the type, and an attribute's is not known; "
            "write STRING(…) or INT(…) around it"
        ),
        8,
    ),
]


@pytest.mark.parametrize(("text", "reason", "position"), REFUSED)
def test_what_is_refused(text: str, reason: str, position: int | None) -> None:
    with pytest.raises(FilterError) as caught:
        to_sql(text, CESQL)
    assert (caught.value.reason, caught.value.position) == (reason, position)


def test_a_function_that_is_none() -> None:
    with pytest.raises(
        FilterError, match="NOW is not a function of CloudEvents SQL: they are LENGTH, CONCAT"
    ):
        to_sql("now() > time", CESQL)


def test_long_chains_are_bounded() -> None:
    with pytest.raises(FilterError, match="operators at most"):
        to_sql(" XOR ".join(["a"] * 5000), CESQL)
    with pytest.raises(FilterError, match="too long"):
        to_sql(" XOR ".join(["a = b"] * 100), CESQL)
