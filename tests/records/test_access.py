"""Every way in which an index reaches a filter: that it is taken, and that it leads to the right ones."""

from __future__ import annotations

import math
import random
import re
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.specified_programs import programs
from benchmarks.workload_statistics import matches
from headgate import Event, Subscription
from headgate.core.ids import Ids
from headgate.core.interning import TextPool
from headgate.errors import FilterError
from headgate.records.index import build
from headgate.records.index.access import MOST_SPOILERS
from headgate.records.index.arrays import DUPLICATE, FLAGS, MOST_COUNTED, POINTS
from headgate.records.index.build import by_events, by_filters
from headgate.records.index.entries import full_entries, list_checks
from headgate.records.index.index import RecordIndex
from headgate.records.index.live import Base
from headgate.records.language.parse import parse_filter
from headgate.workloads.catalogue import synthetic
from tests.lanes import some
from tests.records import edges
from tests.records.crowd import (
    COMMON,
    MIDDLING,
    RARE,
    access_of,
    agree,
    check,
    holding,
    index_of,
    scaled,
    shares,
)
from tests.records.random_filters import WORDS, quote, random_event, random_filter
from tests.seeds import examples, share

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

    from headgate.records.index.arrays import BuiltIndex
    from headgate.records.index.build import Weigh
    from headgate.records.index.lines import Parts
    from headgate.records.index.terms import Terms

seeds = st.randoms(use_true_random=False)

TEXTS = [*edges.TEXTS, "\0", "\uffff", "\U0010ffff", "zoë", "A", "aa", "~", *WORDS]
NUMBERS = [*edges.WHOLES, *edges.FLOATS, *range(-3, 40), -2.5, 17.5, 39.999]


def event_of(rng: random.Random, *names: str, pool: list[object] | None = None) -> Event:
    """Draw an event of any values; an attribute may be missing."""
    pools: list[list[object]] = [edges.VALUES if pool is None else pool, [*TEXTS], [*NUMBERS]]
    return Event(
        "e",
        {name: rng.choice(rng.choice(pools)) for name in names if rng.random() < 0.9},
    )


class Way(NamedTuple):
    """Filters of one kind, how their values are weighed, and how they must be reached then."""

    name: str
    draw: Callable[[random.Random], str]
    weigh: Weigh
    access: set[str]
    size: int = 12


def one_of(*templates: str) -> Callable[[random.Random], str]:
    """Draw a template and fill its places: {x} a literal, {n} a number, {m} one from there on, {s} a text."""

    def draw(rng: random.Random) -> str:
        low = rng.randrange(-3, 40)
        fill = {
            "n": low,
            "m": low + rng.randrange(12),
            "k": rng.randrange(4),
            "s": quote(rng.choice(["", "a", "abc", "news", "zoë", "日本", "12"])),
            "list": ", ".join(rng.choice(edges.LITERALS) for _ in range(rng.randrange(1, 5))),
        }
        text = rng.choice(templates).format(**fill, x="{x}")
        while "{x}" in text:
            text = text.replace("{x}", rng.choice(edges.LITERALS), 1)
        return text

    return draw


EQUAL = one_of("a = {x}", "a = {n}", "a = {s}", "a <=> {x}", "a IS NULL", "a <=> NULL")
WAYS = [
    Way("equality", EQUAL, shares(), {"code"}),
    Way("list", one_of("a IN ({n}, {m}, -1)", "a IN ({s}, 'x')", "a IN ({n}, 2.5)"), shares(), {"code"}),
    Way(
        "pair",
        one_of("a = {n} AND b = {s}", "b = {n} AND a IN ({n}, 3)"),
        shares(MIDDLING),
        {"code and code"},
    ),
    Way(
        "range",
        one_of("a BETWEEN {n} AND {m}", "a > {n} AND a <= {m}"),
        shares(0.005),
        {"code", "bucket", "unkeyed"},
        60,
    ),
    Way(
        "range of texts",
        one_of("a BETWEEN {s} AND {s}", "a > {s}", "a <= {s}"),
        shares(0.005),
        {"code", "bucket", "unkeyed"},
    ),
    Way(
        "range and equality",
        one_of("a BETWEEN {n} AND {m} AND b = {k}"),
        shares(MIDDLING / 4, b=MIDDLING * 2),
        {"code and code", "bucket and code", "bucket", "code", "unkeyed"},
        60,
    ),
    Way(
        "two ranges",
        one_of("a BETWEEN {n} AND {m} AND b BETWEEN {n} AND {m}"),
        shares(0.02),
        {"bucket and bucket", "bucket and code", "code and code", "bucket", "code", "unkeyed"},
        60,
    ),
    Way(
        "negation", one_of("a != {x}", "NOT (a <=> {x})", "a NOT IN ({n}, {m})"), shares(COMMON), {"unkeyed"}
    ),
    Way("negations", one_of("a != {x} AND NOT (b <=> {x})"), shares(COMMON), {"unkeyed"}, 30),
    Way(
        "always",
        one_of("TRUE", "a IS NOT NULL", "NOT (a <=> NULL)", "b IS NULL"),
        shares(COMMON),
        {"unkeyed"},
    ),
    Way("element", one_of("array_contains(a, {x})", "array_contains(a, {n})"), shares(), {"element"}),
    Way("elements", one_of("arrays_overlap(a, array({x}, {x}))"), shares(), {"element", "code"}),
    Way("no element", one_of("NOT array_contains(a, {x})"), shares(), {"unkeyed"}),
    Way("no elements", one_of("NOT arrays_overlap(a, array({n}, {m}, {n}))"), shares(COMMON), {"unkeyed"}),
    Way(
        "element and value", one_of("array_contains(a, {x}) AND b = {x}"), shares(RARE, b=COMMON), {"element"}
    ),
    Way("value and no element", one_of("NOT array_contains(a, {x}) AND b = {x}"), shares(), {"code"}),
    Way(
        "pattern",
        one_of("a LIKE '%ews%'", "a LIKE '1_'", "a LIKE {s}"),
        shares(),
        {"code", "gram", "unkeyed"},
    ),
    Way("no pattern", one_of("a NOT LIKE '%ews%'", "a NOT LIKE '1_'"), shares(), {"unkeyed"}),
    Way("pattern and value", one_of("a LIKE '%e%' AND b = {x}"), shares(), {"code"}),
    Way(
        "tree",
        one_of(" AND ".join(f"({c} = {{n}} OR a = {{x}})" for c in "bcdefg")),
        shares(),
        {"tree", "code", "bucket", "unkeyed"},
    ),
    Way(
        "tree for every event",
        one_of(" AND ".join(f"({c} != {{n}} OR a != {{x}})" for c in "bcdefg")),
        shares(COMMON),
        {"tree", "unkeyed"},
    ),
]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
@examples(scaled(8, 5))
@given(rng=seeds)
def test_ways(way: Way, rng: random.Random) -> None:
    texts = [_taken(way.draw, rng) for _ in range(way.size)]
    index = index_of(texts, way.weigh)
    for number, access in access_of(index.built).items():
        assert access <= way.access, texts[number]
    agree(index, texts, [event_of(rng, "a", "b", "c", "d") for _ in range(share(scaled(25, 12)))])


def _taken(draw: Callable[[random.Random], str], rng: random.Random) -> str:
    """Draw until the language takes it: some literals are not compared with some operators."""
    while True:
        text = draw(rng)
        try:
            parse_filter(text)
        except FilterError:
            continue
        return text


@pytest.mark.parametrize(
    ("text", "weigh", "access"),
    [
        ("a = 5", shares(), {"code"}),
        ("a IS NULL", shares(), {"code"}),
        ("a = 5 AND b = 'x'", shares(MIDDLING), {"code and code"}),
        ("a = 5 AND b = 'x'", shares(RARE, b=COMMON), {"code"}),
        ("a BETWEEN 10 AND 27", shares(0.002), {"bucket"}),
        ("a BETWEEN 10 AND 27 AND b = 1", shares(0.008, b=0.1), {"bucket and code"}),
        ("a BETWEEN 10 AND 20 AND b = 1", shares(0.008, b=0.06), {"code and code", "bucket and code"}),
        ("a BETWEEN 5 AND 15 AND w BETWEEN 5 AND 15", shares(0.01), {"bucket and bucket"}),
        ("a != 5", shares(COMMON), {"unkeyed"}),
        ("TRUE", shares(), {"unkeyed"}),
        ("array_contains(a, 5)", shares(), {"element"}),
        ("array_contains(a, 5)", shares(COMMON), {"unkeyed"}),
        ("array_contains(a, 5) AND b = 1", shares(MIDDLING), {"element", "code"}),
        ("NOT array_contains(a, 5)", shares(), {"unkeyed"}),
        ("a NOT LIKE '%news%'", shares(), {"unkeyed"}),
        ("a LIKE '_'", shares(), {"unkeyed"}),
        ("a = 5 OR b != 3", shares(RARE, b=COMMON), {"code", "unkeyed"}),
    ],
)
def test_the_way_is_taken(text: str, weigh: Weigh, access: set[str]) -> None:
    steps = [f"{name} >= {k}" for name in "aw" for k in range(40)]
    index = index_of([text, *steps], weigh)
    assert access_of(index.built)[0] <= access
    assert access_of(index.built)[0]
    rng = random.Random(text)
    agree(index, [text, *steps], [event_of(rng, "a", "b", "w") for _ in range(share(scaled(60, 30)))])


EDGE_EVENTS = [Event(n, {"a": value}) for n, value in enumerate(edges.VALUES)] + [
    Event(len(edges.VALUES), {})
]


@pytest.fixture(scope="module")
def edge_truth() -> list[list[int]]:
    return [holding(edges.FILTERS, event) for event in EDGE_EVENTS]


@pytest.mark.parametrize("weight", some([0.0, RARE, 0.01, MIDDLING, COMMON, None], 1, 3, 5))
def test_every_edge_under_every_weight(
    weight: float | None, edge_truth: list[list[int]], tmp_path: Path
) -> None:
    built = index_of(edges.FILTERS, None if weight is None else shares(weight))
    built.save(tmp_path / "s")
    opened = RecordIndex.open(tmp_path / "s")
    check(opened)
    again = index_of(edges.FILTERS, None if weight is None else shares(weight))
    again.compact()
    check(again)
    for index in (built, opened, again):
        found = index.match_batch(EDGE_EVENTS)
        by_event: list[list[int]] = [[] for _ in EDGE_EVENTS]
        for event, identity in zip(*(column.to_pylist() for column in found.columns), strict=True):
            by_event[event].append(identity)
        assert by_event == edge_truth
        assert [index.match(event) for event in EDGE_EVENTS] == edge_truth


def _renamed(text: str, name: str) -> str:
    return re.sub(r"\ba\b", name, text)


@pytest.mark.parametrize("weight", some([RARE, 0.01, MIDDLING, COMMON, None], 1, 3))
def test_edges_joined(weight: float | None) -> None:
    rng = random.Random(str(weight))
    texts = []
    for _ in range(scaled(150, 60)):
        one, two, three = (f"({_renamed(rng.choice(edges.FILTERS), name)})" for name in "aba")
        texts.append(rng.choice([f"{one} AND {two}", f"{one} OR {two}", f"{one} AND {three} AND {two}"]))
        texts.append(rng.choice([f"{one} OR {three}", f"({one} OR {two}) AND {three}", f"{one} AND {three}"]))
    index = index_of(texts, None if weight is None else shares(weight, b=max(weight, 0.02)))
    agree(index, texts, [event_of(rng, "a", "b") for _ in range(share(scaled(60, 30)))])


@examples(scaled(25, 8))
@given(seeds, st.floats(0, 1), st.floats(0, 1))
def test_any_filters_under_any_weights(rng: random.Random, low: float, high: float) -> None:
    texts = [random_filter(rng, wild=True) for _ in range(30)]
    draw = np.random.default_rng(rng.randrange(2**32))

    def weigh(built: BuiltIndex, parts: Parts, terms: Terms) -> NDArray[np.float64]:  # noqa: ARG001 -- of the type
        codes = int(built.arrays.line_base[-1])
        return np.asarray(draw.uniform(min(low, high), max(low, high), codes) ** 6)

    agree(index_of(texts, weigh), texts, [Event.from_row(random_event(rng, n)) for n in range(6)])


def test_a_sample_of_events_decides() -> None:
    """What all events of the sample have does not lead to a filter by itself, though few filters name it."""
    texts = [f"a = {n} AND b = 0" for n in range(20)]
    rows = [{"id": n, "a": 3, "b": n} for n in range(1000)]
    sample = pa.RecordBatch.from_pylist(rows)
    for index in (
        RecordIndex.build((Subscription(n, text) for n, text in enumerate(texts)), sample=sample),
        index_of(texts, by_events(sample)),
    ):
        arrays = index.built.arrays
        names = [index.built.attributes[number] for number in index.built.lines.line_attribute.tolist()]
        first, last = arrays.line_base[names.index(("a",)) :][:2].tolist()
        assert arrays.single_start[first] == arrays.single_start[last]
        agree(index, texts, [Event.from_row(row) for row in rows[: share(scaled(100, 20))]])


def test_ranges_at_all_borders() -> None:
    """Every range between two of some numbers, for every number at, beside and between them."""
    bounds = [-(2**63), -(2**53) - 1, -7, -1, 0, 1, 3, 10, 2**31, 2**53, 2**63 - 1]
    texts = [f"a BETWEEN {low} AND {high}" for low in bounds for high in bounds]
    texts += [f"a {op} {bound}" for op in ("<", "<=", ">", ">=", "=", "!=") for bound in bounds]
    texts += [f"a {op} {bound}e0" for op in ("<", ">=") for bound in bounds]
    values: list[object] = [None, math.nan, math.inf, -math.inf, -0.0, True, "7", "x", "", [3], 5e-324]
    for bound in bounds:
        near = [bound - 1, bound, bound + 1]
        values += [float(bound), math.nextafter(bound, math.inf), str(bound), f" {bound} ", bound + 0.5]
        values += [whole for whole in near if -(2**63) <= whole < 2**63]
    events = [Event(n, {"a": value}) for n, value in enumerate(values)]
    for weight in (RARE, 0.01, COMMON):
        agree(index_of(texts, shares(weight)), texts, events)


@pytest.mark.parametrize("weight", [0.004, COMMON])
def test_ranges_of_texts_between_before_and_after(weight: float) -> None:
    words = sorted(
        ["b", "ba", "b\0", "bz", "c", "é", "日", "日本", "\uffff", "🎈", *map(chr, range(100, 120))]
    )
    texts = [f"a >= {quote(word)}" for word in words] + [f"a < {quote(word)}" for word in words]
    texts += [f"a BETWEEN {quote(a)} AND {quote(b)}" for a, b in zip(words, words[3:], strict=False)]
    texts += ["a != 'b'", "a NOT IN ('c', '日')", "a = 'é'"]
    values = [*words, "", "\0", "a", "b\0\0", "bb", "\U0010ffff", "日本語", "ba ", "B"]
    events = [Event(n, {"a": value}) for n, value in enumerate(values)]
    index = index_of(texts, shares(weight))
    ways = set().union(*access_of(index.built).values())
    assert ways == ({"bucket", "code", "unkeyed"} if weight < 1 else {"unkeyed"})
    agree(index, texts, events)


def _words_of(built: BuiltIndex, shape: int) -> list[int]:
    """List the lengths of all checks of one shape, of filters that something leads to."""
    found, stream = [], built.arrays.stream
    for at in np.setdiff1d(full_entries(built.arrays), built.arrays.unkeyed_at).tolist():
        places = np.zeros(int(stream[at + 1]) + 1, np.int64)
        count = list_checks(stream, at + 2, at + 2 + int(stream[at + 1]), 0, places)
        words = np.diff(places[: count + 1]).tolist()
        heads = stream[places[:count]]
        found += [n for n, head in zip(words, heads, strict=True) if head & 3 == shape and head & 15 < 12]
    return found


@pytest.mark.parametrize("negated", [False, True])
def test_lists_with_more_values_than_a_check_counts_in_its_first_word(negated: bool) -> None:
    """Every number is a code of its own; lists of every other one, or of all but every fourth."""
    count, width = MOST_COUNTED + 3, 4 if negated else 2
    end = width * count
    some = f"a {'NOT ' if negated else ''}IN ({', '.join(str(v) for v in range(0, end, width))})"
    steps = [f"a >= {k}" for k in range(1, end + 1)]
    texts = [f"{some} AND b = 1", f"{some} AND NOT (b <=> 1)", *steps]
    index = index_of(texts, shares(RARE, a=COMMON))
    assert access_of(index.built)[0] == {"code"}
    lengths = _words_of(index.built, POINTS)
    # What is left out has code 0 without being named: here the first value, which nothing else asks for.
    assert set(lengths) == {2 + (count - 1 if negated else count)}
    for _ in range(2):
        for a in (-1, 0, 1, 2, 3, 4, 5.0, 2 * count, end - width, end - 1, end, "4", "x", None):
            for b in (1, 2, None):
                number = None if a in {None, "x"} else int(str(a).removesuffix(".0"))
                listed = number is not None and 0 <= number < end and number % width == 0
                inside = number is not None and listed is not negated
                wanted = [0] * (inside and b == 1) + [1] * (inside and b != 1)
                above = range(2, 2 + (0 if number is None else min(max(number, 0), end)))
                assert index.match(Event("e", {"a": a, "b": b})) == [*wanted, *above]
        index.compact()
        check(index)


def test_sparse_and_dense_spoilers() -> None:
    rng = random.Random(2)
    count = 200
    texts = [f"a != {n % 3} AND b != {n} AND c NOT IN ({n}, {n + 1})" for n in range(count)]
    texts += [f"a != 'x' AND b = {n}" for n in range(5)] + ["TRUE", "a IS NOT NULL"]
    index = index_of(texts, shares(COMMON))
    arrays = index.built.arrays
    assert set().union(*access_of(index.built).values()) == {"unkeyed"}
    assert (arrays.spoil_row >= 0).sum() >= 3
    assert len(arrays.spoiled) > count
    assert not arrays.unkeyed_words[:count].any()
    events = [event_of(rng, "a", "b", "c", pool=[*range(-1, 210), None, "x"]) for _ in range(60)]
    events += [
        Event("e", {"a": a, "b": b, "c": 4}) for a in (0, 1, 2, 3, "x", None, 0.0) for b in (0, 1, 199)
    ]
    agree(index, texts, events)


@pytest.mark.parametrize("seed", range(3))
def test_buckets_tell_of_wide_negations(seed: int) -> None:
    """Ranges that leave out many codes are decided by a value's bucket, or checked if it is at an end."""
    rng = random.Random(seed)

    def wide(name: str) -> str:
        low = rng.randrange(400)
        return f"{name} NOT BETWEEN {low} AND {low + rng.randrange(65, 300)}"

    few = ["s LIKE '%a%'", "d != 3", "array_contains(t, 1)", "(c > 5 OR d > 7)", "a IS NOT NULL"]
    texts = [
        " AND ".join([wide("a"), *([wide("b")] * (n % 3 > 0)), *rng.sample(few, n % 5 == 0)])
        for n in range(400)
    ]
    texts += [f"a > {n}" for n in range(3)] + ["TRUE", "NOT (a BETWEEN 5 AND 100 OR b < 40)"]
    index = index_of(texts, shares(COMMON))
    arrays = index.built.arrays
    assert set().union(*access_of(index.built).values()) >= {"unkeyed"}
    assert len(arrays.bucket_out) == 64
    assert arrays.bucket_out.any()
    assert arrays.bucket_open.any()
    sure = np.unpackbits(arrays.unkeyed_open.view(np.uint8), bitorder="little")[: len(arrays.unkeyed_at)] == 0
    assert (sure & (arrays.unkeyed_words > 0)).sum() > 100
    events = [
        Event(n, {"a": rng.randrange(-5, 720), "b": rng.randrange(-5, 720), "s": rng.choice("ab"), "t": [1]})
        for n in range(60)
    ]
    events += [Event(100, {"a": 300}), Event(101, {}), Event(102, {"a": 7.5, "b": None, "c": 9, "d": 1})]
    agree(index, texts, events)
    for number in range(0, 400, 7):
        index.unsubscribe(number)
    left = [n for n in holding(texts, events[0]) if n % 7 or n >= 400]
    assert index.match(events[0]) == left
    index.compact()
    check(index)
    assert index.match(events[0]) == left


def test_a_negation_that_leaves_out_many_codes_is_checked() -> None:
    rng = random.Random(3)
    points = [f"a = {n}" for n in range(3 * MOST_SPOILERS)]
    wide = f"a NOT IN ({', '.join(str(2 * n) for n in range(MOST_SPOILERS + 5))})"
    narrow = f"a NOT IN ({', '.join(str(2 * n) for n in range(MOST_SPOILERS - 5))})"
    texts = [wide, narrow, f"{wide} AND b != 1", *points]
    index = index_of(texts, shares(COMMON))
    words = dict(
        zip(
            (index.built.arrays.stream[index.built.arrays.unkeyed_at] >> FLAGS).tolist(),
            index.built.arrays.unkeyed_words.tolist(),
            strict=True,
        )
    )
    assert words[0] > 0
    assert words[1] == 0
    assert words[2] > 0
    pool: list[object] = [*range(-2, 3 * MOST_SPOILERS + 2), None, 3.5, "7", "x", True]
    agree(index, texts, [event_of(rng, "a", "b", pool=pool) for _ in range(share(scaled(200, 60)))])


@pytest.mark.parametrize("weight", [RARE, 0.2])
def test_more_lines_than_a_mask_has_bits(weight: float) -> None:
    """Lines 0 and 64 share a bit of the mask of partners."""
    rng = random.Random(4)
    names = [f"x{n}" for n in range(150)]
    texts = [
        " AND ".join(f"{name} = {rng.randrange(3)}" for name in rng.sample(names, rng.choice([2, 2, 3])))
        for _ in range(scaled(600, 150))
    ]
    texts += [f"x{n} = 1 AND x{n + 64} = 2" for n in range(80)]
    texts += [f"x{n} = 1 AND x{n + 64} = 1 AND x{n + 20} = 1" for n in range(40)]
    index = index_of(texts, shares(weight))
    ways = set().union(*access_of(index.built).values())
    assert ("code and code" in ways) is (weight > 0.1)
    assert ways <= {"code", "code and code", "unkeyed"}
    for few in (False, True):
        agree(
            index,
            texts,
            [
                Event("e", {name: rng.randrange(3) for name in names if not few or rng.random() < 0.2})
                for _ in range(share(scaled(30, 8)))
            ],
        )


def test_buckets_on_more_lines_than_a_mask_has_bits() -> None:
    rng = random.Random(5)
    names = [f"x{n}" for n in range(66)]
    texts = [f"{name} >= {k}" for name in names for k in range(40)]
    ranges = [
        " AND ".join(
            f"{name} >= {low} AND {name} < {low + 11}"
            for name in rng.sample(names, 2)
            for low in [rng.randrange(28)]
        )
        for _ in range(100)
    ]
    index = index_of([*ranges, *texts], shares(0.016))
    taken = access_of(index.built)
    assert sum(taken[n] == {"bucket and bucket"} for n in range(100)) > 10
    events = [
        Event("e", {name: rng.randrange(-1, 41) for name in names}) for _ in range(share(scaled(20, 3)))
    ]
    agree(index, [*ranges, *texts], events)


@pytest.mark.parametrize("weight", [RARE, MIDDLING, COMMON, None])
@pytest.mark.parametrize("count", [1, 90, 96, 97, 128, 300])
def test_filters_that_name_many_attributes(count: int, weight: float | None) -> None:
    names = [f"x{n}" for n in range(count)]
    texts = [
        " AND ".join(f"{name} = 1" for name in names),
        " OR ".join(f"{name} = 1" for name in names),
        " AND ".join(f"{name} != 1" for name in names),
        " AND ".join(f"{name} > 0" for name in names) + " AND y = 2",
    ]
    index = index_of(texts, None if weight is None else shares(weight))
    taken = access_of(index.built)
    assert ("tree" in taken[0]) == (count > 96)
    assert ("tree" in taken[1]) == (count > 16)
    every: dict[str, object] = dict.fromkeys(names, 1)
    last = names[-1]
    events = [Event("e", data) for data in (every, {**every, last: 2}, {**every, last: None}, {last: 1}, {})]
    events += [Event("e", {**every, "y": 2}), Event("e", {**dict.fromkeys(names, 2), "y": 2.0, last: "1"})]
    agree(index, texts, events)


SEVERAL_SIDES = [
    "a = '5' OR a > 3",
    "a = '5' AND a > 3",
    "a > '5' AND a > 30",
    "a != '5' AND a != 5 AND a != TRUE",
    "a > 5 AND a < 6",
    "a >= 5 AND a < 5.5",
    "a = '12345'",
    "a < '12345' OR a = 12345",
    "a = 1 OR a = 2.5",
    "a IN (1, 2.5) AND a <= 9223372036854775807",
    "a = TRUE OR a = 'yes' OR a = 1",
    "a = DATE '1970-01-01' OR a = '1970-01-01' OR a = 0",
    "a > DATE '1970-01-01' AND a != '1970-01-02'",
    "a = 'x' OR array_contains(a, 'x') OR a LIKE 'x%'",
    "a IS NULL OR a > 3 OR a = 'x'",
    "a IS NOT NULL AND NOT array_contains(a, 1) AND a != 'x'",
    "NOT array_contains(a, 1) AND NOT array_contains(a, 'x')",
    "array_contains(a, 1) AND array_contains(a, 'x')",
    "a <= 9223372036854775807",
    "a >= -9223372036854775808e0",
    "a = 1e0 OR a = '1'",
    "a = '1.5' OR a > 100",
    "a > 'n' AND a < 'o' AND a != 1.5",
]


@pytest.mark.parametrize("weight", [RARE, MIDDLING, COMMON, None])
def test_one_attribute_on_several_sides(weight: float | None) -> None:
    texts = [*SEVERAL_SIDES, *(f"NOT ({text})" for text in SEVERAL_SIDES)]
    texts += [f"({text}) AND b = {n % 3}" for n, text in enumerate(SEVERAL_SIDES)]
    more = [
        "5",
        "5.5",
        "6",
        5,
        5.5,
        6,
        3,
        4,
        "12345",
        12345,
        "4",
        "yes",
        "x",
        "xy",
        ["x"],
        ["x", 1],
        [1],
        2.5,
        [2],
    ]
    values = [*edges.VALUES, *more, "1970-01-02", "nothing"]
    events = [Event("e", {"a": value, "b": n % 4}) for n, value in enumerate(values)] + [Event("e", {})]
    index = index_of(texts, None if weight is None else shares(weight))
    agree(index, texts, events)
    index.compact()
    check(index)
    agree(index, texts, events)


def test_a_filter_is_found_once() -> None:
    texts = [
        "array_contains(tags, 'x')",
        "arrays_overlap(tags, array('x', 'y', 'z'))",
        "array_contains(tags, 'x') OR array_contains(tags, 'y') OR a = 1",
        "a = 1 OR b = 1 OR c = 1",
        "a = 1 OR a IS NOT NULL",
        "a != 2 OR b != 2",
        " AND ".join(f"(a = 1 OR {name} = 1)" for name in "bcdefg"),
        "s LIKE '%aaa%'",
        "s LIKE '%aaa%' OR s LIKE '%baa%'",
    ]
    event = Event("e", {"tags": ["x", "x", "y", "x", None, "y"], "a": 1, "b": 1, "c": 1, "s": "aaaaabaaab"})
    for weigh in (shares(), shares(MIDDLING), shares(COMMON), None):
        index = index_of(texts, weigh)
        assert index.match(event) == [*range(len(texts))]
        agree(
            index, texts, [event, event, Event("e", {"tags": []}), Event("e", {"tags": ["y", "y"], "b": 1})]
        )
    heads = index_of(texts, shares()).built.arrays.stream
    assert heads[0] & DUPLICATE


def test_more_matches_than_there_is_room_for_at_first() -> None:
    """Of many events together, and of one."""
    count = scaled(12_000, 300)
    index = RecordIndex.build(Subscription(n, f"a = 1 AND b != {n % 7}") for n in range(count))
    event = Event("e", {"a": 1, "b": 3})
    wanted = [n for n in range(count) if n % 7 != 3]
    assert index.match(event) == wanted
    together = index.match_batch([event, Event("f", {"a": 2}), *[event] * 6])
    assert together.column(1).to_pylist() == wanted * 7


def test_more_clusters_than_there_is_room_for_at_first() -> None:
    """Of one event and of some together, where what was found of the first is kept."""
    names = [f"a{n}" for n in range(24)]
    texts = [f"{a} = 1 AND {b} = 1" for a, b in combinations(names, 2)]
    index = index_of(texts, shares(MIDDLING))
    event = Event("e", dict.fromkeys(names, 1))
    assert index.match(event) == [*range(len(texts))]
    other = index_of(texts, shares(MIDDLING))
    together = other.match_batch([Event("f", {"a0": 1, "a1": 1}), event, event])
    assert together.column(1).to_pylist() == [0, *range(len(texts)), *range(len(texts))]


@pytest.mark.nightly
def test_more_matches_of_one_event_than_there_is_room_for_at_first() -> None:
    count = scaled(70_000, 300)
    everyone = RecordIndex.build(Subscription(n, "TRUE") for n in range(count))
    assert everyone.match(Event("e", {"a": 1})) == [*range(count)]


def test_an_event_leads_to_more_clusters_than_there_is_room_for_at_first() -> None:
    count = 700
    texts = [f"array_contains(tags, {n})" for n in range(count)]
    texts += [f"x{n} = 1 AND x{n + 1} = 1" for n in range(60)]
    index = index_of(texts, shares(RARE, **{f"x{n}": MIDDLING for n in range(61)}))
    event = Event("e", {"tags": [*range(count)], **{f"x{n}": 1 for n in range(61)}})
    assert index.match(event) == [*range(len(texts))]
    assert index.next(event, count + 3) == count + 3
    assert index.next(event, 5) == 5


@pytest.mark.parametrize("load", [0.3, 0.6, 0.97])
def test_a_crowded_hash(monkeypatch: pytest.MonkeyPatch, load: float) -> None:
    """However full the hash of pairs is: long runs of slots, fingerprints that occur twice, and its end."""
    monkeypatch.setattr(build, "LOAD", load)
    workload = synthetic("equality", 3_000)
    spec = workload.specification(np.arange(3_000), 1)
    built = build.build(programs(spec), by_filters)
    prints = built.arrays.slot_print
    assert (prints > 0).mean() == pytest.approx(load, abs=0.01)
    rows = np.arange(300)
    base = Base(Ids.from_arrow(pa.array(np.arange(3_000))), TextPool.build(()), built)
    found = base.match(base.encode(workload.events(rows, 1)))
    for row, event in enumerate(workload.numbers(rows, 1)):
        wanted = np.flatnonzero(matches(spec, event))
        assert found.filters[found.events == row].tolist() == wanted.tolist()
    assert len(found.filters) > 100


@pytest.mark.parametrize(("names", "are_told"), [("abcd", True), ("abcdefghijklmno", False)])
def test_weak_ranges_are_unkeyed_where_buckets_rule_most_of_them_out(names: str, are_told: bool) -> None:
    """Buckets have rows of bits on lines that many filters look at; elsewhere two ranges lead to a filter."""
    rng = random.Random(f"weak {names}")
    texts = []
    for _ in range(200):
        lows = [(name, rng.randint(0, 700)) for name in rng.sample(names, 4)]
        texts.append(" AND ".join(f"{name} BETWEEN {low} AND {low + 300}" for name, low in lows))
    index = index_of(texts)
    unkeyed = [n for n, ways in access_of(index.built).items() if "unkeyed" in ways]
    assert (len(unkeyed) > 100) is are_told
    assert (len(index.built.arrays.bucket_out) > 0) is are_told
    events = [
        Event(n, {name: rng.randint(0, 1000) for name in names if rng.random() < 0.95})
        for n in range(scaled(60, 10))
    ]
    agree(index, texts, events)
