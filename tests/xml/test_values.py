"""Numbers, tests, and which tests follow from others."""

from __future__ import annotations

import math
import random
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import pytest
from lxml import etree

from headgate.core.jit import kernel
from headgate.xml.index.passing import FAILS, PASSES, UNDECIDED, lay_tests, read_number, sift
from headgate.xml.language.model import CONTAINS, DESCENDANT, STARTS_WITH, WORD, Node, Pattern
from headgate.xml.language.model import Test as Condition
from headgate.xml.language.values import holds, implies, number
from tests.seeds import seeds
from tests.xml.random_patterns import random_test

if TYPE_CHECKING:
    from numpy.typing import NDArray

NUMBERS = [
    "1",
    " 1 ",
    "-1",
    "- 1",
    "+1",
    "1e3",
    ".5",
    "5.",
    ".",
    "-.5",
    "",
    " ",
    "0",
    "-0",
    "007",
    "1.50",
    "1 2",
    "NaN",
]
NUMBERS += [
    "Infinity",
    "0x1",
    "1,5",
    "\n2\t",
    "\u00a01",
    "1_000",
    "٣",
    "9007199254740993",
    "1" * 30,
    "0." + "0" * 30 + "1",
]
VALUES = [
    "",
    "0",
    "1",
    "1.0",
    "01",
    " 2 ",
    "2",
    "2.5",
    "3",
    "-1",
    "12",
    "x",
    "xy",
    "y",
    "1x",
    "x1",
    "NaN",
    "21",
    "5",
    "1e3",
]
COMPARED = ("=", "!=", "<", "<=", ">", ">=")


@pytest.mark.parametrize("text", NUMBERS)
def test_numbers_are_those_of_xpath(text: str) -> None:
    root = etree.Element("a")
    root.text = text
    # The library reads exponents too, which XPath 1.0 does not have.
    expected = root.xpath("number(translate(., 'e', 'x'))")
    assert isinstance(expected, float)
    found = number(text)
    # The library adds digits one by one; beyond a double's 15 digits it is off in the last place.
    assert math.isclose(found, expected, rel_tol=1e-15) or (math.isnan(found) and math.isnan(expected))


@kernel
def _read_number(text: NDArray[np.uint8]) -> tuple[float, bool]:
    return read_number(text, 0, len(text))


@pytest.mark.parametrize("seed", seeds(20))
def test_the_hot_loop_reads_the_same_numbers(seed: int) -> None:
    rng = random.Random(seed)
    texts = [*NUMBERS, *("".join(rng.choices("0123456789.- ", k=rng.randrange(1, 20))) for _ in range(200))]
    texts += [f"{rng.random() * 10 ** rng.randrange(-5, 9):.{rng.randrange(1, 12)}f}" for _ in range(200)]
    decided = 0
    for text in texts:
        found, exact = _read_number(np.frombuffer(bytearray(text.encode()), np.uint8))
        expected = number(text)
        decided += exact
        assert not exact or found == expected or (math.isnan(found) and math.isnan(expected)), text
    assert decided > 0.9 * len(texts)


def test_tests_hold_as_the_model_says() -> None:
    assert holds(Condition("=", "1"), "1")
    assert not holds(Condition("=", "1"), "1.0")
    assert holds(Condition("=", 1.0), " 1.0 ")
    assert holds(Condition("!=", 1.0), "x")
    assert not any(holds(Condition(sign, 1.0), "x") for sign in COMPARED if sign != "!=")
    assert holds(Condition(CONTAINS, ""), "")
    assert holds(Condition(STARTS_WITH, "x"), "xy")
    assert not holds(Condition(STARTS_WITH, "y"), "xy")
    with pytest.raises(ValueError, match="texts have no order"):
        holds(Condition("<", "a"), "b")
    with pytest.raises(ValueError, match="functions take texts"):
        holds(Condition(CONTAINS, 1.0), "1")


@pytest.mark.parametrize("seed", seeds(100))
def test_the_hot_loop_passes_the_same_values(seed: int) -> None:
    rng = random.Random(seed)
    tests = tuple(random_test(rng) for _ in range(rng.randint(1, 3)))
    laid = lay_tests(Pattern((Node("a"), Node("b", DESCENDANT, 0, tests))))
    pool = bytearray()
    begins, stops = [], []
    for value in VALUES:
        begins.append(len(pool))
        pool += value.encode()
        stops.append(len(pool))
    found = np.arange(len(VALUES), dtype=np.int32)
    text = np.frombuffer(pool, np.uint8)
    end, decided = sift(
        laid, 1, text, np.array(begins, np.int32), np.array(stops, np.int32), found, 0, len(VALUES)
    )
    # Words are looked for later.
    plain = [test for test in tests if test.sign != WORD]
    expected = [place for place, value in enumerate(VALUES) if all(holds(test, value) for test in plain)]
    assert found[:end].tolist() == expected
    assert decided is (len(plain) == len(tests) or not expected)
    assert (FAILS, PASSES, UNDECIDED) == (0, 1, 2), "the order in which verdicts are joined"


def test_what_the_hot_loop_cannot_decide_it_leaves() -> None:
    laid = lay_tests(Pattern((Node("a", tests=(Condition("=", 9007199254740993.0),)),)))
    text = np.frombuffer(bytearray(b"9007199254740993"), np.uint8)
    found = np.zeros(1, np.int32)
    ends = np.zeros(1, np.int32), np.full(1, len(text), np.int32)
    assert sift(laid, 0, text, *ends, found, 0, 1) == (1, False)


SOME = [Condition(sign, value) for sign in COMPARED for value in (0.0, 1.0, 2.0)]
SOME += [Condition(sign, value) for sign in ("=", "!=") for value in ("1", "2", "x", "xy", "1.0")]
SOME += [Condition(sign, value) for sign in (CONTAINS, STARTS_WITH) for value in ("", "x", "xy", "1", "y")]
SOME += [Condition(WORD, value) for value in ("x", "1", "xy")]
SAMPLES = [*VALUES, "0.5", "1.5", "-0", "0.0", "2.0", "yx", "xyz", "10", "x2", "1y", "-x", "zz"]


def _followed(tests: tuple[Condition, ...], test: Condition) -> bool:
    """Tell whether no sample refutes that a test follows."""
    return all(holds(test, value) for value in SAMPLES if all(holds(each, value) for each in tests))


def test_implies_is_sound_for_all_pairs_of_tests() -> None:
    wrong = [
        (tests, test)
        for tests in (*((each,) for each in SOME), *product(SOME, SOME), ())
        for test in SOME
        if implies(tests, test) and not _followed(tests, test)
    ]
    assert wrong == []


def test_implies_misses_nothing_of_equalities_and_intervals() -> None:
    exact = [test for test in SOME if test.sign not in {CONTAINS, STARTS_WITH, WORD}]
    # The samples lie in all gaps between the constants, so what they do not refute follows.
    missed = [
        (tests, test)
        for tests in (*((each,) for each in exact), *product(exact, exact), ())
        for test in exact
        if _followed(tests, test) and not implies(tests, test)
    ]
    assert missed == []


@pytest.mark.parametrize(
    ("tests", "test", "follows"),
    [
        ((Condition(">", 7.0),), Condition(">", 5.0), True),
        ((Condition(">", 5.0),), Condition(">=", 5.0), True),
        ((Condition(">=", 5.0),), Condition(">", 5.0), False),
        ((Condition(">=", 5.0), Condition("!=", 5.0)), Condition(">", 5.0), True),
        ((Condition(">=", 5.0), Condition("<=", 5.0)), Condition("=", 5.0), True),
        ((Condition(">", 5.0), Condition("<", 4.0)), Condition("=", "x"), True),
        ((Condition("=", "b"),), Condition("!=", "a"), True),
        ((Condition("=", "cat"),), Condition(CONTAINS, "a"), True),
        ((Condition("=", "7"),), Condition(">", 5.0), True),
        ((Condition("=", 7.0),), Condition("=", "7"), False),
        ((Condition(">", 5.0),), Condition("!=", "x"), True),
        ((Condition(CONTAINS, "x"),), Condition("!=", 5.0), True),
        ((Condition(CONTAINS, "1"),), Condition("!=", 5.0), False),
        ((Condition("!=", 5.0),), Condition("!=", 5.0), True),
        ((Condition(STARTS_WITH, "cat"),), Condition(CONTAINS, "at"), True),
        ((Condition(CONTAINS, "cat"),), Condition(STARTS_WITH, "c"), False),
        ((Condition(">", math.inf),), Condition("=", "x"), True),
        ((Condition("<", 0.0),), Condition("<=", -0.0), True),
        ((), Condition(CONTAINS, ""), True),
        ((), Condition("!=", "a"), False),
    ],
)
def test_implications(tests: tuple[Condition, ...], test: Condition, follows: bool) -> None:
    assert implies(tests, test) is follows
