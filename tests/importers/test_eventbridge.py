"""Event patterns of EventBridge: against their reference, and what is refused."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from headgate.core.subscription import EVENTBRIDGE
from headgate.errors import FilterError
from headgate.records.importers.registry import EXACTLY
from headgate.records.language.dialects import to_sql
from tests.importers.agreement import COMPUTED, agree
from tests.importers.eventbridge import matches
from tests.records.test_shapes import agree as compile_alike
from tests.seeds import seeds

NAMES = ["source", "detail-type", "state", "count", "tags"]
TEXTS: list[Any] = [
    "",
    "a",
    "A",
    "ab",
    "abc",
    "b%",
    "b_c",
    "1",
    "12",
    "-1",
    "true",
    "yes",
    "2024-01-01",
    "it's",
    "ß",
    "x*y",
    "\\",
]
NUMBERS: list[Any] = [-1, 0, 1, 1.0, 12, 0.5, 300, 3e2, 5e9, 1e20, 0.1, 1e-7]
ADDRESSES = ["10.0.0.1", "10.0.1.255", "10.4.0.0", "10.0.0.256", "010.0.0.1", "::1", "10.0.0.1\n"]


def scalar(rng: random.Random) -> Any:
    """Draw a value that is no array and no object."""
    return rng.choice(
        [rng.choice(TEXTS), rng.choice(NUMBERS), rng.choice([True, False]), rng.choice(ADDRESSES)]
    )


def event(rng: random.Random, depth: int = 2) -> dict[str, Any]:
    """Draw an event: arrays hold no objects."""
    found: dict[str, Any] = {}
    for name in NAMES:
        match rng.randrange(6):
            case 0:
                pool = rng.choice([TEXTS, NUMBERS, [True, False], ADDRESSES, [*TEXTS, *NUMBERS, True, None]])
                found[name] = [rng.choice(pool) for _ in range(rng.randrange(1, 4))]
            case 1 | 2 | 3:
                found[name] = scalar(rng)
    if depth:
        found["detail"] = event(rng, depth - 1)
    return found


def text_operator(rng: random.Random) -> dict[str, Any]:
    """Draw an operator of texts."""
    operator = rng.choice(["prefix", "suffix", "equals-ignore-case", "wildcard"])
    given: Any = rng.choice(TEXTS)
    if operator == "wildcard":
        given = rng.choice(["a*", "*b*", "1*", "*", r"x\*y", "a*c", r"\\", "", "t*e"])
    elif operator != "equals-ignore-case" and rng.random() < 0.3:
        given = {"equals-ignore-case": given}
    return {operator: given}


def value(rng: random.Random) -> Any:
    """Draw an alternative of a field."""
    match rng.randrange(9):
        case 0 | 1:
            return scalar(rng)
        case 2:
            return text_operator(rng)
        case 3:
            return {"exists": rng.random() < 0.5}
        case 4:
            low, high = sorted(rng.sample([-1, 0, 0.5, 1, 12, 300], 2))
            pair = [rng.choice([">", ">="]), low, rng.choice(["<", "<="]), high]
            return {
                "numeric": rng.choice([pair, [rng.choice(["=", "<", "<=", ">", ">="]), rng.choice(NUMBERS)]])
            }
        case 5:
            return {
                "cidr": rng.choice(["10.0.0.0/8", "10.0.0.0/23", "10.0.0.1/32", "0.0.0.0/0", "10.4.0.0/14"])
            }
        case 6:
            return {"anything-but": text_operator(rng)}
    pool = rng.choice([TEXTS, NUMBERS])
    return {"anything-but": rng.choice([rng.choice(pool), rng.sample(pool, 2)])}


def pattern(rng: random.Random, depth: int = 2) -> dict[str, Any]:
    """Draw a pattern."""
    found: dict[str, Any] = {}
    for name in rng.sample(NAMES, rng.randrange(1, 3)):
        found[name] = [value(rng) for _ in range(rng.choice([1, 1, 2, 3]))]
    if depth and rng.random() < 0.3:
        found["detail"] = pattern(rng, depth - 1)
    if depth and rng.random() < 0.2:
        found["$or"] = [pattern(rng, depth - 1) for _ in range(2)]
    return found


@pytest.mark.parametrize("seed", seeds(32))
def test_patterns_hold_where_the_reference_says(seed: int) -> None:
    rng = random.Random(seed)
    patterns = [json.dumps(pattern(rng)) for _ in range(70)]
    events = [event(rng) for _ in range(40)]
    found = agree(EVENTBRIDGE, patterns, events, lambda text, given: matches(json.loads(text), given))
    assert found > (100 if COMPUTED else 5)


@pytest.mark.parametrize("seed", seeds(16))
def test_patterns_are_compiled_as_the_parser_reads_them(seed: int) -> None:
    rng = random.Random(seed)
    compile_alike([to_sql(json.dumps(pattern(rng)), EVENTBRIDGE) for _ in range(25)])


TOLD_NAMES = ["source", "Source", "state", "a.b", "tags"]


def told_event(rng: random.Random, depth: int = 2) -> dict[str, Any]:
    """Draw an event with nulls, names that differ in case, names with dots, empty arrays, and objects."""
    found: dict[str, Any] = {}
    for name in TOLD_NAMES:
        match rng.randrange(9):
            case 0:
                pool = rng.choice([TEXTS, NUMBERS, [True, False]])
                found[name] = [rng.choice([*pool[:4], None]) for _ in range(rng.randrange(4))]
            case 1 | 2 | 3:
                found[name] = rng.choice([scalar(rng), None])
            case 4:
                found[name] = {"other": rng.choice([1, "a", None])}
            case 5 if name != "a.b":
                found[name] = [{"other": 1}] * rng.randrange(1, 3)
    if "a.b" in found and rng.random() < 0.5:
        found["a"] = {"b": found.pop("a.b")}
    if depth:
        found[rng.choice(["detail", "Detail"])] = told_event(rng, depth - 1)
    return found


def told_pattern(rng: random.Random, depth: int = 2) -> dict[str, Any]:
    """Draw a pattern over such events."""
    found: dict[str, Any] = {}
    for name in rng.sample(TOLD_NAMES, rng.randrange(1, 3)):
        values = [rng.choice([value(rng), None]) for _ in range(rng.choice([1, 1, 2]))]
        if name == "a.b" and rng.random() < 0.5:
            found["a"] = {"b": values}
        else:
            found[name] = values
    if depth and rng.random() < 0.4:
        found[rng.choice(["detail", "Detail"])] = told_pattern(rng, depth - 1)
    if depth and rng.random() < 0.2:
        found["$or"] = [told_pattern(rng, depth - 1) for _ in range(2)]
    return found


def expanded(given: Any) -> Any:
    """Write names with dots as objects in objects: to Event Ruler they are the same."""
    if not isinstance(given, dict):
        return given
    found: dict[str, Any] = {}
    for name, value in given.items():
        first, *rest = name.split(".")
        if rest:
            found.setdefault(first, {})[".".join(rest)] = expanded(value)
        else:
            found[first] = expanded(value)
    return found


@pytest.mark.parametrize("seed", seeds(32))
def test_patterns_tell_null_case_and_dots(seed: int) -> None:
    rng = random.Random(seed)
    patterns = [json.dumps(told_pattern(rng)) for _ in range(15)]
    events = [told_event(rng) for _ in range(15)]
    found = agree(
        EVENTBRIDGE,
        patterns,
        events,
        lambda text, given: matches(_dotless(json.loads(text)), expanded(given)),
        settings=EXACTLY[EVENTBRIDGE],
    )
    assert found > 3


def _dotless(given: Any) -> Any:
    """Do the same with a pattern, whose lists hold what is asked for."""
    if isinstance(given, list):
        return [_dotless(each) if isinstance(each, dict) and "$or" in each else each for each in given]
    if not isinstance(given, dict):
        return given
    found: dict[str, Any] = {}
    for name, each in given.items():
        if name == "$or":
            found[name] = [_dotless(one) for one in each]
        elif "." in name:
            first, rest = name.split(".", 1)
            found.setdefault(first, {})[rest] = _dotless(each)
        else:
            found[name] = _dotless(each)
    return found


REFUSED = [
    ("[]", 'an event pattern is an object: write {"source": ["…"]}', 0),
    ("{}", "an empty object matches nothing in EventBridge: name a field, or leave it out", 0),
    ('{"a": {}}', "an empty object matches nothing in EventBridge: name a field, or leave it out", 1),
    ('{"a": "x"}', 'the values of a field stand in a list: write ["x"]', 1),
    ('{"a": []}', "an empty list matches nothing: list at least one value", 1),
    ('{"a": [[1]]}', "a list in the list of a field is not part of event patterns: list its values", 7),
    (
        '{"a": [null]}',
        (
            "null is told from a missing field in EventBridge, and not by these filters: make them with "
            "nulls='told', or write {\"exists\": false} if both will do"
        ),
        7,
    ),
    ('{"$or": [{"a": [1]}]}', "$or takes a list of two patterns or more, each an object", 1),
    (
        '{"$or": [{"prefix": ["a"]}, {"a": [1]}]}',
        "prefix is an operator, and a pattern in $or names fields: write {field: [{'prefix': …}]}",
        10,
    ),
    ('{"a": [{"exists": 1}]}', "exists takes true or false", 8),
    ('{"a": [{"prefix": 1}]}', "prefix takes a text, not 1", 8),
    ('{"a": [{"prefix": {"suffix": "x"}}]}', "prefix takes a text, or {'equals-ignore-case': text}", 8),
    (
        '{"a": [{"prefix": "a", "suffix": "b"}]}',
        "an operator is an object of one name, and this has 2: write one object each",
        7,
    ),
    ('{"a": [{"wildcard": "a**b"}]}', "two * side by side are not part of event patterns: write one", 8),
    (
        '{"a": [{"wildcard": "a\\\\b"}]}',
        "a backslash in a wildcard stands before * or another backslash only",
        8,
    ),
    (
        '{"a": [{"numeric": [">", 5, "<", 1]}]}',
        'a numeric range goes from below to above: write [">", 0, "<=", 5]',
        8,
    ),
    ('{"a": [{"numeric": ["!=", 5]}]}', '"!=" is not a sign of numeric: they are =, <, <=, >, >=', 20),
    ('{"a": [{"numeric": ["=", "5"]}]}', 'numeric compares with a number, not "5"', 25),
    ('{"a": [{"cidr": "10.0.0.0/99"}]}', "'10.0.0.0/99' is not a network: write '10.0.0.0/24'", 8),
    (
        '{"a": [{"cidr": "2001:db8::/32"}]}',
        (
            "cidr of IPv6 is not converted: an address has many spellings, and records compare texts: "
            "send a field that says the network"
        ),
        8,
    ),
    (
        '{"a": [{"anything-but": [1, "x"]}]}',
        "anything-but takes a text, a number, a list of texts or of numbers, or an object of one operator",
        8,
    ),
    (
        '{"a": [{"anything-but": {"cidr": "x"}}]}',
        "anything-but takes an object of one operator: prefix, suffix, equals-ignore-case, wildcard",
        8,
    ),
    (
        '{"a": [{"starts": "x"}]}',
        (
            "'starts' is not an operator of event patterns: they are anything-but, cidr, equals-ignore-case, "
            "exists, "
            "numeric, prefix, suffix, wildcard"
        ),
        8,
    ),
    ('{"a": [1], "a": [2]}', "the name 'a' comes twice in one object: write it once", 11),
    ('{"a": [1e999]}', "the number does not fit into a double", 7),
    ('{"a": [1', "an event pattern is JSON, and this is not: expecting ',' delimiter", 8),
    ('{"a": ' * 40, "an event pattern may nest 32 deep at most: write it flatter", 192),
    (r'{"a": ["\ud800"]}', "the text holds a lone surrogate, which UTF-8 cannot carry", 7),
]


@pytest.mark.parametrize(("text", "reason", "position"), REFUSED)
def test_what_is_refused(text: str, reason: str, position: int) -> None:
    with pytest.raises(FilterError) as caught:
        to_sql(text, EVENTBRIDGE)
    assert (caught.value.reason, caught.value.position) == (reason, position)
