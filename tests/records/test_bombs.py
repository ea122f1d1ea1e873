"""Filters that are small as text and vast as a normal form: matched right, and soon."""

from __future__ import annotations

import random
from time import thread_time
from typing import Any

import pytest

from headgate import Event, Subscription
from headgate.errors import FilterError
from headgate.records.index.index import RecordIndex
from tests.lanes import some
from tests.records.crowd import access_of, check, holding, index_of
from tests.seeds import JIT, share

FACTORS = 30
LIMIT = 0.1
"""Seconds for one bomb: parse, build, match."""
EACH = 1e-4
"""Seconds for each clause of a long one, which the parser takes by far the most of."""


def product(factors: int = FACTORS, prefix: str = "") -> str:
    return " AND ".join(f"({prefix}a{n} = 1 OR {prefix}b{n} = 1)" for n in range(factors))


def nested(depth: int) -> str:
    """Alternate AND and OR, with two new leaves a level."""
    text = "a0 = 1"
    for n in range(1, depth):
        sign, other = ("AND", "OR") if n % 2 else ("OR", "AND")
        text = f"({text} {sign} (a{n % 30} = {n % 3} {other} b{n % 30} = {n % 5}))"
    return text


BOMBS = {
    "product": product(),
    "product of threes": " AND ".join(f"(a{n} = 1 OR b{n} = 1 OR a{n} = 2)" for n in range(FACTORS)),
    "negated": "NOT (" + " OR ".join(f"(a{n} = 1 AND b{n} = 1)" for n in range(FACTORS)) + ")",
    "product of ranges": " AND ".join(f"(a{n} > 0 OR b{n} BETWEEN 1 AND 3)" for n in range(FACTORS)),
    "product of negations": " AND ".join(f"(a{n} != 3 OR b{n} NOT IN (1, 2))" for n in range(FACTORS)),
    "product of arrays": " AND ".join(
        f"(array_contains(t, {n}) OR NOT array_contains(t, {n + 1}))" for n in range(FACTORS)
    ),
    "product of patterns": " AND ".join(f"(s LIKE '%{n}%' OR a{n} = 1)" for n in range(FACTORS)),
    "product over one attribute": " AND ".join(
        f"(a0 = {n} OR a0 != {n} OR b0 = {n})" for n in range(FACTORS)
    ),
    "sum of products": f"({product(15)}) OR ({product(15, 'c')}) OR z = 1",
    "product of sums of products": " AND ".join(
        "(" + " OR ".join(f"(a{n} = {k} AND b{n} = {k})" for k in range(4)) + ")" for n in range(FACTORS)
    ),
    "alternations": nested(30),
    "long OR": " OR ".join(f"a{n % 30} = {n}" for n in range(2000)),
    "long OR of ANDs": " OR ".join(f"(a{n % 30} = {n} AND b{n % 30} = {n})" for n in range(600)),
    "long AND of ORs": " AND ".join(f"(a{n % 30} != {n} OR b{n % 30} != {n})" for n in range(600)),
    "NOT over and over": "NOT (" * 30 + product(8) + ")" * 30,
}


def events() -> list[Event]:
    rng = random.Random(1)
    names = [f"{side}{n}" for n in range(FACTORS) for side in "ab"]
    ones: dict[str, object] = dict.fromkeys(names, 1)
    found: list[dict[str, object]] = [{}, {"z": 1}, ones, {name: 1 for name in names if name[0] == "a"}]
    found += [
        dict.fromkeys(names, 2),
        {**ones, "a7": 0},
        {**ones, "a7": 0, "b7": None},
        {**ones, "a29": "x", "b29": 2, "z": 1},
    ]
    found += [{**ones, "t": [*range(FACTORS + 1)], "s": "".join(map(str, range(30)))}, {"t": [], "s": ""}]
    for _ in range(share(15)):
        row: dict[str, object] = {name: rng.choice([1, 1, 1, 2, 0, None]) for name in names}
        row["t"] = rng.sample(range(FACTORS + 1), rng.choice([0, 10, 31]))
        found.append({**row, **{f"c{name}": 1 for name in rng.sample(names, 40)}})
    return [Event(n, row) for n, row in enumerate(found)]


EVENTS = events()


def leave(names: list[str]) -> list[Any]:
    """List all bombs, with some left to the nightly lane."""
    return some([*BOMBS], *(place for place, name in enumerate(BOMBS) if name not in names))


LONG = [name for name in BOMBS if name.startswith("long")]


@pytest.mark.parametrize("name", leave(LONG[:2]))
def test_a_bomb_is_matched_right(name: str) -> None:
    text = BOMBS[name]
    expected = [bool(holding([text], event)) for event in EVENTS]
    assert any(expected) or name in {"long AND of ORs", "alternations"}
    crowd = [text, "a0 = 1", text, "TRUE", f"({text}) AND z = 1", f"({text}) OR a3 = 2"]
    index = index_of(crowd)
    live = RecordIndex.build([])
    for number, each in enumerate(crowd):
        live.subscribe(Subscription(number, each))
    tail = [live.match(event) for event in EVENTS]
    live.compact()
    check(live)
    for event, wanted, late in zip(EVENTS, expected, tail, strict=True):
        found = index.match(event)
        assert found == holding(crowd, event)
        assert found == late == live.match(event)
        assert (0 in found) is wanted
        assert index.next(event, 0) == (found[0] if found else None)


def test_bombs_are_kept_as_trees() -> None:
    taken = access_of(index_of([*BOMBS.values()]).built)
    flat = {name for number, name in enumerate(BOMBS) if "tree" not in taken.get(number, set())}
    assert flat <= {"long OR", "product over one attribute", "alternations", "NOT over and over"}
    assert "product" not in flat


@pytest.mark.skipif(not JIT, reason="of compiled kernels")
@pytest.mark.parametrize("name", leave(LONG[1:]))
def test_a_bomb_takes_no_time(name: str) -> None:
    text = BOMBS[name]
    event = EVENTS[2]
    # Thousands of predicates take the parser's time, whatever joins them.
    limit = 3 * LIMIT if name.startswith("long") else LIMIT

    def once(number: int) -> float:
        # Another text each time, so that nothing is remembered.
        fresh = text.replace("= 1", f"= {1000 + number}")
        begin = thread_time()
        index = RecordIndex.build([Subscription(0, fresh)])
        index.match(event)
        index.next(event, 0)
        return thread_time() - begin

    def late(number: int) -> float:
        fresh = text.replace("= 1", f"= {2000 + number}")
        index = RecordIndex.build([])
        begin = thread_time()
        index.subscribe(Subscription(0, fresh))
        index.match(event)
        return thread_time() - begin

    for work in (once, late):
        work(0)
        assert any(work(number) < limit for number in range(1, 6))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(" * 65 + "a = 1" + ")" * 65, "the filter nests deeper than 64"),
        ("NOT " * 65 + "a", "the filter nests deeper than 64"),
        (nested(80), "the filter nests deeper than 64"),
        (" OR ".join(f"a{n} = 1" for n in range(10_001)), "the filter has more than 10,000 clauses"),
        (f"a IN ({', '.join(map(str, range(10_001)))})", "the list is longer than 10,000"),
        ("a = '" + "x" * 262_144 + "'", "characters and at most 262,144 are taken"),
    ],
)
def test_what_is_too_large_is_refused(text: str, message: str) -> None:
    index = RecordIndex.build([Subscription(1, "a = 1")])
    with pytest.raises(FilterError, match=message):
        RecordIndex.build([Subscription(0, text)])
    with pytest.raises(FilterError, match=message):
        index.subscribe(Subscription(0, text))
    assert len(index) == 1
    assert index.match(Event("e", {"a": 1})) == [1]


@pytest.mark.nightly
def test_the_largest_that_is_taken() -> None:
    texts = [
        "(" * 64 + "a0 = 1" + ")" * 64,
        "NOT " * 64 + "(a0 <=> 1)",
        nested(60),
        " OR ".join(f"x{n} = {n}" for n in range(10_000)),
        " AND ".join(f"x{n} = {n}" for n in range(10_000)),
        f"a0 IN ({', '.join(map(str, range(10_000)))})",
    ]
    index = index_of(texts)
    every = Event("e", {f"x{n}": n for n in range(10_000)})
    assert index.match(every) == [3, 4]
    assert index.match(Event("e", {"x9999": 9999})) == [3]
    assert index.match(Event("e", {**every.data, "x5000": 0})) == [3]
    assert index.match(Event("e", {"a0": 1})) == [*holding(texts[:3], Event("e", {"a0": 1})), 5]
    assert index.match(Event("e", {"a0": 9999})) == [5]
