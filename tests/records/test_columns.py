"""Filters that differ in their numbers only: by columns they are compiled and taken apart as one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate import Event, Subscription
from headgate.core.interning import TextPool
from headgate.errors import FilterError
from headgate.records.index.coded import code_clauses
from headgate.records.index.index import RecordIndex
from headgate.records.language.clause_columns import split_columns
from headgate.records.language.splitting import split
from headgate.records.programs import families
from headgate.records.programs.binding import compile_filter, compile_filters
from headgate.records.programs.families import find_families
from headgate.records.programs.programs import Programs, take
from tests.records.programs import in_columns
from tests.seeds import examples

if TYPE_CHECKING:
    import random

seeds = st.randoms(use_true_random=False)
FORMS = (
    "a BETWEEN {} AND {}",
    "a > {} AND a<={} AND b = 'x'",
    "a >= {} and b BETWEEN {} AND {}",
    "a={} OR (b < {} AND c LIKE 'x%y')",
    "NOT a > {} AND b <> {}",
    "a NOT BETWEEN {} AND {}",
    "a IN ({}, {}) AND x1 = {}",
    "array_contains(tags, {}) AND b > {}",
    "a > {} AND a < {} AND a > {}",
    "a > {} AND b = '{}' AND c -{}",
    "(a > {}) AND (b > {} OR b IS NULL)",
    "a > {}e3 AND b > {}",
    "a BETWEEN {} AND {} OR a = 'z'",
)


def random_number(rng: random.Random) -> str:
    return rng.choice(
        [
            str(rng.randrange(20)),
            str(rng.randrange(-20, 0)),
            f"{rng.randrange(20)}.{rng.randrange(100)}",
            f"-{rng.randrange(3)}.{rng.randrange(10)}",
            rng.choice(
                ["007", "-0", "0.0", "-0.0", "999999999999999", "9007199254740993", "1.0000000000000001"]
            ),
            rng.choice(["0.1", "0.10", "123456789.012345", "1234567890.123456"]),
        ]
    )


def random_texts(rng: random.Random) -> list[str]:
    chosen = rng.sample(FORMS, 3)
    return [
        form.format(*(random_number(rng) for _ in range(form.count("{}"))))
        for form in (rng.choice(chosen) for _ in range(60))
    ]


def one_by_one(texts: list[str]) -> tuple[Programs, list[tuple[int, str]]]:
    programs, refused = [], []
    for place, text in enumerate(texts):
        try:
            programs.append(compile_filter(text))
        except FilterError as error:
            refused.append((place, str(error)))
    return in_columns(programs), refused


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take few texts for a family."""
    monkeypatch.setattr(families.find_families, "__defaults__", (2,))


@pytest.mark.usefixtures("small")
@examples(12)
@given(rng=seeds)
def test_columns_compile_as_texts_do(rng: random.Random) -> None:
    texts = random_texts(rng)
    compiled = compile_filters(texts)
    wanted, refused = one_by_one(texts)
    assert [(each.place, str(each.error)) for each in compiled.refused] == refused
    compiled.programs.check()
    # Equal leaves of several filters may be stored more than once.
    for f in range(wanted.filters):
        found, alone = (take(programs, np.array([f])) for programs in (compiled.programs, wanted))
        for name in set(Programs._fields) - {"texts", "attributes"}:
            np.testing.assert_array_equal(getattr(found, name), getattr(alone, name), err_msg=name)
        assert (found.texts.texts(), found.attributes) == (alone.texts.texts(), alone.attributes)


@pytest.mark.usefixtures("small")
@examples(8)
@given(rng=seeds)
def test_columns_are_taken_apart_as_texts_are(rng: random.Random) -> None:
    texts = random_texts(rng)
    taken = 0
    for columns in split_columns(TextPool.build(texts)):
        clauses = columns.texts.texts()
        width = len(columns.names)
        for place, row in enumerate(columns.rows.tolist()):
            found = zip(clauses[place * width : (place + 1) * width], columns.names, strict=True)
            assert tuple(found) == tuple(map(tuple, split(texts[row], "sql")))
            taken += 1
    assert taken <= len(texts)


def test_a_family_has_the_same_signs_and_points() -> None:
    texts = ["a > 1", "a > 2", "a > -1", "a > 1.5", "a > 2.25", "a > 'x1'", "a > 1 ", "a1 > 1"]
    found, rest = find_families(TextPool.build(texts), 2)
    assert sorted(family.rows.tolist() for family in found) == [[0, 1], [3, 4]]
    assert rest.tolist() == [2, 5, 6, 7]
    fractions = next(family for family in found if family.scale.any())
    assert (fractions.mantissa / 10.0**fractions.scale).ravel().tolist() == [1.5, 2.25]


@examples(6)
@given(rng=seeds)
def test_codes_say_which_clauses_hold(rng: random.Random) -> None:
    clauses = [f"{rng.choice('ab')} {rng.choice(['<', '>=', '='])} {random_number(rng)}" for _ in range(12)]
    clauses += ["a BETWEEN 0.5 AND 0.75", "a = 'x'", "b <> 'y'", "a IS NULL", "b IN (1, 2, 5)"]
    clauses += [
        "a = 1 OR a = 'x' OR a = 2.5",
        "a BETWEEN 1 AND 'x'",
        "a = 1 OR b = 2.5",
        "a < 1 OR a > 0 OR b IS NULL",
    ]
    clauses += [
        "NOT (a = 1 AND b = 'y')",
        "lower(a) IN ('x', 'y')",
        "a LIKE '%x'",
        "a = 1 OR (b = 1 AND c = 2)",
    ]
    coded = code_clauses(compile_filters(clauses).programs)
    index = RecordIndex.build(Subscription(n, text) for n, text in enumerate(clauses))
    coder = type(coded.coder).from_arrays(coded.coder.to_arrays())
    for value in (0, 1, 1.5, 0.6, 2**53 + 1, -0.5, "x", "1", "0.7", None, True):
        event = Event("e", {"a": value, "b": rng.choice([1, "y", 2.5])})
        codes = coder.codes(event)
        assert (coder.many_codes([event, event]) == codes).all()
        held = [
            n
            for n in range(len(clauses))
            if (parts := range(int(coded.start[n]), int(coded.start[n + 1])))
            and {int(coded.part[i]) for i in parts}
            == {int(coded.part[i]) for i in parts if coded.low[i] <= codes[coded.line[i]] <= coded.high[i]}
        ]
        known = np.flatnonzero(coded.coded).tolist()
        assert known == [n for n, text in enumerate(clauses) if "LIKE" not in text and "OR (" not in text]
        assert held == [n for n in index.match(event) if n in known]
