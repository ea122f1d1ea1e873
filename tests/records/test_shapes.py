"""Filters compiled by their shape: the same programs and the same errors as the parser gives."""

from __future__ import annotations

import itertools
import random
import re
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sqlglot.dialects.spark import Spark

from headgate.errors import FilterError
from headgate.records.language.parse import parse_filter
from headgate.records.language.printing import KEYWORDS
from headgate.records.language.rewrite import normalise
from headgate.records.programs import binding, clauses, shapes, simple_clauses
from headgate.records.programs.binding import compile_filter, compile_filters, parse_text
from headgate.records.programs.program import compile_program
from headgate.records.programs.shapes import MAX_TEXT
from headgate.workloads.records import advertising
from tests.lanes import some
from tests.records.edges import FILTERS
from tests.records.programs import bindable, in_columns, sound, spelled
from tests.records.random_filters import random_filter
from tests.records.soup import chained, changed_filter, random_soup
from tests.seeds import NIGHTLY, examples, share

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from headgate.core.text.cutting import BoundedCache
    from headgate.records.language.model import Expression
    from headgate.records.programs.tokens import Program


def by_parser(text: str) -> Program:
    return compiled(parse_filter(text))


def compiled(tree: Expression) -> Program:
    return compile_program(normalise(tree))


def outcome(work: Callable[[Any], object], given: object) -> object:
    try:
        return work(given)
    except FilterError as error:
        return str(error), error.position


def agree(texts: Iterable[str]) -> None:
    """Compile each text by its shape, when its names are new and when they are not, and by the parser."""
    given_texts = list(texts)
    trees = [outcome(parse_filter, text) for text in given_texts]
    expected = [tree if isinstance(tree, tuple) else outcome(compiled, tree) for tree in trees]
    for _ in range(3):
        for text, program, tree in zip(given_texts, expected, trees, strict=True):
            assert outcome(compile_filter, text) == program, text
            found = outcome(parse_text, text)
            assert found == tree, text
            assert repr(found) == repr(tree), text
    done = compile_filters(given_texts)
    sound(done.programs)
    good = [(text, each) for text, each in zip(given_texts, expected, strict=True) if hasattr(each, "tokens")]
    wanted = spelled(in_columns(program for _, program in good))  # type: ignore[misc]
    for (text, _), found_tokens, tokens in zip(good, spelled(done.programs), wanted, strict=True):
        assert found_tokens == tokens, text
    refused = [(place, each) for place, each in enumerate(expected) if not hasattr(each, "tokens")]
    assert [(each.place, (str(each.error), each.error.position)) for each in done.refused] == refused


BOUND = [
    "a = 1",
    "`a` = 1",
    "a.`b.c-d`.e IN ('x', 'y')",
    "array_contains(`a b`, 1) OR `a b` = 1",
    "a = 'x' OR array_contains(a, 'x')",
    "(a = 'x' OR array_contains(a, 'x')) AND (b = 1 OR array_contains(b, 1) OR array_contains(b, 1))",
    "a LIKE 'x%' OR a LIKE 'x%' OR a LIKE 'y%' OR a = 'z'",
    "a",
    "NOT a",
    "!a",
    "a = 'x'",
    "a='x'",
    "a == -5",
    "a != 5 AND b <> 1.50",
    "a >= 0.25 and user.score < 10 And NOT (c = true)",
    "a IN (1)",
    "a IN ('x', 'y', 'x')",
    "a NOT IN ( 1 ,2,\n-3 )",
    "a BETWEEN 1 AND 2 AND b BETWEEN 'a' AND 'b'",
    "a BETWEEN 2 AND 1 AND b = 1",
    "a BETWEEN 1 AND 2 OR b = 1",
    "a NOT BETWEEN 1 AND 2.5 AND b = 1",
    "a > 1 AND a < 5 AND b = 2",
    "a = 1 OR a = 1 OR b = 1",
    "(a = 1 AND b = 2) OR (a = 1 AND b = 2)",
    "(a = 1 AND b = 2) OR (c = 1 AND d = 2)",
    "NOT (a = 1 OR NOT (b = 2 AND c IN ('x')))",
    "a LIKE 'x%' AND b NOT LIKE '%y_' OR c IS NULL AND d IS NOT NULL",
    "array_contains(tags, 'x') AND NOT arrays_overlap(user.tags, array(1, 2))",
    "a < DATE '2024-01-01' OR a >= TIMESTAMP'2024-01-01 00:00:00'",
    "a = '( AND b = 1 OR' AND b = ',, IN (' OR c = '--' AND d = '/*'",
    "A = 1 AND a = 2",
    "User.Age > 5 AND user.AGE < 7",
    "a = '1' AND b = 'true' AND c IN ('5', 'x') AND d IN ('1', '2')",
    "  a = 1\tAND\r\n( b = 2 )  ",
    "a = 'é 日本 🎈\n\x00\x1f'",
    "a = 9223372036854775 AND b <= 999999999999999999",
    "a = 007 AND b = 00.10 AND c = -0.0",
]
NOT_BOUND = [
    "a = 1 -- x",
    "a /* x */ = 1",
    "`größe` = 1",
    'a = "x"',
    "a = 'it\\'s'",
    "a = 5L",
    "a = 1e3",
    "a = 5.",
    "(a) = 5",
    "a = 1OR b = 2",
    "a < 99999999999999999999",
    "a = 0.1234567890123456789",
    "é = 1",
    "a\u00a0= 1",
    "a = 1 AND TRUE",
    "NULL OR a = 1",
    "array_contains(a, NULL)",
    "array = 1",
    "a = 1 AND (b = 2 OR c = 3",
    "a = 1 b = 2",
    "a = 1 AND",
    "",
    " ",
    "a = '\ud800'",
    "a = 1 AND \x00",
    "\x00",
    "a\x00b = 1",
    "\u212a = 1 AND \u017f = 1",
    "NOT " * 9 + "a",
    "(" * 17 + "a" + ")" * 17,
    "a = '" + "x" * MAX_TEXT + "'",
    f"a IN ({', '.join(map(str, range(10_001)))})",
    "(a + b) * 2 > 5",
    "a + 1 > 2 -- x AND b",
    "a = 5S AND b + 1 > 2",
    "a RLIKE 'x(' AND b",
    "a + 1 > 'it\\'s'",
    "exists(a, x -> x > 1",
    "CASE WHEN a THEN b AND c",
    "a BETWEEN 1 AND",
]
CLAUSES_OF_THE_PARSER = [
    "a LIKE 'x%' ESCAPE '/' AND b LIKE 'y%'",
    "arrays_overlap(a, array())",
    "a LIKE 'a/%' ESCAPE '/'",
    "a IN ('x', DATE '2024-01-01')",
    "`a``b` = 1",
    "a = .5",
    "a = - 5",
    "a=-5",
    "a<-5",
    "a = +5",
    "a = (5)",
    "1 = a",
    "a = NULL",
    "a <=> NULL",
    "a IN (1, NULL)",
    "a IN (1, 'x')",
    "a = 9223372036854775808",
    "a . b = 1",
    "a IS NOT DISTINCT FROM 1",
    ".".join("a" * 9) + " = 1",
    "a + 1 > 2 AND (b * 2 = 7 OR NOT -c BETWEEN -5 AND 3)",
    "upper(a) = 'X' OR concat(a, '!') IN ('x!', 'y!')",
    "substring(a, 1, 3) = 'abc' AND a ILIKE 'Abc%'",
    "CASE WHEN a < 5 AND b THEN a ELSE a + 0 END BETWEEN 1 AND 2 OR c",
    "exists(a, x -> typeof(x) = 'string' AND x LIKE 'b%') AND a IS NULL",
    "exists(a, x -> x IS NULL OR x > 1.50 AND x < 2) OR NOT exists(a, x -> x = -1)",
    "typeof(a) <> 'string' AND a > 5 AND b = 'x'",
    "a > 5 AND typeof(a) = 'bigint'",
    "typeof(a) IN ('boolean', 'string') AND a = TRUE",
    "split(a, ',')[0] = 'x' AND a RLIKE 'x.*y'",
    "coalesce(a, 0) >= 007 AND nullif(a, 'x') = 'y'",
]
GROUPS = [
    "(a = 'x' OR array_contains(a, 'x')) AND (b = 'y' OR array_contains(b, 'y'))",
    "(a = '1' AND a >= '' OR array_contains(a, '1')) AND b IS NULL AND (c IN ('x', 'y') OR c > 'z')",
    "(a IN ('1', 'x', '1') AND a >= '' OR arrays_overlap(a, array('1', 'x', '1'))) AND (b)",
    "(a IN ('1', '2') OR arrays_overlap(a, array('1', '2'))) AND (b)",
    "(a = '1' OR array_contains(a, '1')) AND (a = 'x' OR array_contains(a, 'x'))",
    "(a LIKE 'x%' OR exists(a, x -> typeof(x) = 'string' AND x LIKE 'x%')) AND (b LIKE '1%' OR c)",
    "(a LIKE 'x%' OR exists(a, x -> typeof(x) = 'string' AND x LIKE 'y%')) AND (b LIKE 'x_%' OR c)",
    "(a LIKE '' OR exists(a, x -> typeof(x) = 'string' AND x LIKE '')) AND (a LIKE 'x%' OR a LIKE 'y%')",
    *(
        f"(a {low} AND typeof(a) <> 'string' OR exists(a, x -> {each} AND typeof(x) <> 'string')) AND (b = 1)"
        for low, each in (
            ("= 5", "x = 5"),
            ("> 5", "x > 5"),
            (">= 5 AND a < 7", "x >= 5 AND x < 7"),
            ("> 5 AND a < 6", "x > 5 AND x < 6"),
            ("> 7 AND a <= 7", "x > 7 AND x <= 7"),
            ("< 5", "x < 6"),
            ("< 0 AND a < 7", "x < 0 AND x < 7"),
        )
    ),
    "(x > 5 AND typeof(x) <> 'string' OR exists(x, x -> x > 5 AND typeof(x) <> 'string')) AND (b)",
    "(x LIKE 'x%' OR exists(x, x -> typeof(x) = 'string' AND x LIKE 'x%')) AND (typeof(x) = 'string')",
    "(a = 'x' OR array_contains(a, 'X')) AND (A = 'y' OR array_contains(a, 'y')) AND (b)",
    "(a IN ('x', 'y') OR arrays_overlap(a, array('X', 'y'))) AND (b)",
    "(a LIKE 'x%' OR exists(a, x -> typeof(x) = 'string' AND x LIKE 'X%')) AND (b)",
    "(a) AND (a) AND (b OR c) AND (b OR c)",
    "(a > 1) AND (b = 1 OR b = 2) AND (a < 5) AND (c OR (d AND e))",
    "(a > 1 AND b) AND (c)",
    "(TRUE) AND (a OR FALSE) AND (b OR c)",
    "(NOT a BETWEEN 1 AND 2) AND (b BETWEEN 1 AND 2) AND a IS NOT NULL",
    "(a = ') AND (' OR b) AND (c = '(')",
    "(a OR b) AND (c OR d",
    "(a OR b) AND c) AND (d)",
    "(a OR b) AND (c +) AND (d)",
    "(a OR b) AND (c) OR (d)",
    "(a OR b) AND (1 = 1) AND (d)",
]


@pytest.mark.parametrize("text", BOUND)
def test_the_plain_forms_get_by_without_the_parser(text: str) -> None:
    assert bindable(text)
    agree([text])


@pytest.mark.parametrize("text", NOT_BOUND, ids=range(len(NOT_BOUND)))
def test_the_others_go_to_the_parser(text: str) -> None:
    assert not bindable(text)
    agree([text])


@pytest.mark.parametrize("text", CLAUSES_OF_THE_PARSER)
def test_clauses_of_no_plain_form(text: str) -> None:
    """The parser reads such a clause alone; the others of its text are read by their pieces."""
    assert bindable(text)
    others = [re.sub(r"(?<![\w.(])[0-9]+(?![\w.])", number, text) for number in ("3", "12", "999999999999")]
    agree([text, *others, text.replace("'x", "'y"), text.replace("'x", "'1"), text])


@pytest.mark.parametrize("text", GROUPS, ids=range(len(GROUPS)))
def test_conditions_in_parentheses(text: str) -> None:
    agree([text, text.replace("5", "3"), text.replace("'x'", "'true'"), text, "(z) AND (z OR a)"])


def test_real_filters_get_by_without_the_parser() -> None:
    texts = [
        str(text) for text in advertising.subscriptions(np.arange(share(2_000)), 3)["filter"].to_pylist()
    ]
    agree(texts)
    assert all(map(bindable, texts))


CLAUSES = [
    "w",
    "w = 1",
    "w = -1.5",
    "w<'x'",
    "w IN (1, 2)",
    "w IN('x')",
    "w NOT IN (1.5)",
    "w BETWEEN 1 AND 2",
    "w NOT BETWEEN 'x' AND 'y'",
    "w LIKE 'x%'",
    "w NOT LIKE '_'",
    "w IS NULL",
    "w IS NOT NULL",
    "w = TRUE",
    "w > DATE '2024-01-01'",
    "array_contains(w, 1)",
    "arrays_overlap(w, array('x'))",
    "w * 2 > 5",
    "upper(w) IN ('X', 'Y')",
    "typeof(w) <> 'string'",
    "exists(w, x -> x > 1 AND x < 5)",
    "CASE WHEN w OR b THEN 1 ELSE 2 END BETWEEN 1 AND 2",
]
BEFORE = [
    "",
    "(",
    "NOT ",
    "!",
    "! ",
    "NOT (",
    "b AND ",
    "b OR ",
    "b AND NOT ",
    "c = 1 OR (",
    "b = 'x' AND NOT(",
]
AFTER = ["", ")", " AND c", " OR c", ") AND c", ")OR c = 1", "\nAND NOT c", " AND w", ") OR w = 1", " and(c)"]


def test_every_clause_among_all_neighbours() -> None:
    """A clause is read alone and its joints without it; together they are what the parser finds."""
    texts = [
        before + clause + after
        for before, clause, after in itertools.product(BEFORE, CLAUSES, AFTER)
        if (before + after).count("(") == (before + after).count(")")
    ]
    # Nightly all; else one of four, with every clause, and what is before and after it, among them.
    texts = texts[:: 1 if NIGHTLY else 4]
    agree(texts)
    assert all(map(bindable, texts))


def test_pairs_of_clauses_over_one_attribute_or_two() -> None:
    texts = [
        f"{left} {sign} {right}"
        for left, right in itertools.product(CLAUSES, CLAUSES)
        for sign in ("AND", "OR")
    ][:: 1 if NIGHTLY else 3]
    agree(texts)
    agree(text.replace("w", "v", 1) for text in texts)


def words() -> list[str]:
    """List every word that the parser or its tokenizer treats in a way of its own, and some more."""
    dialect = Spark()
    found = {word for key in dialect.tokenizer_class.KEYWORDS for word in key.lower().split()}
    found |= {key.lower() for key in dialect.parser_class.FUNCTIONS}
    found |= {key.lower() for key in dialect.parser_class.NO_PAREN_FUNCTION_PARSERS}
    found |= {key.lower() for key in dialect.parser_class.FUNCTION_PARSERS}
    found |= {
        "r",
        "n",
        "x",
        "b",
        "e",
        "u",
        "_utf8",
        "date",
        "timestamp",
        "timestamp_ltz",
        "day",
        "zone",
        "of",
    }
    return sorted(word for word in found | KEYWORDS if word.isidentifier())


@pytest.mark.parametrize("part", some(range(24), 0))
def test_any_word_as_a_name(part: int) -> None:
    """In every form, at the beginning and further on, alone and dotted, whether it is safe or not."""
    for word in words()[part::24]:
        forms = [clause.replace("w", word, 1) for clause in CLAUSES[:14]]
        forms += [f"array_contains({word}, 1)", f"b AND {word}=1", f"NOT {word} OR b", f"({word}.x = 1)"]
        forms += [
            f"x.{word} IN (1)",
            f"{word.upper()} = 1",
            f"b = 1 AND {word} AND c",
            f"{word} AND {word} OR b",
        ]
        for text in forms:
            expected = outcome(by_parser, text)
            for _ in range(3):
                assert outcome(compile_filter, text) == expected, text


def test_most_words_are_names() -> None:
    names = ["a", "user.age", "Country", "date", "end", "type", "name", "time", "x1.y_2", "x.and", "`and`"]
    assert all(shapes.path_of[name] for name in names)
    words = ["and", "NULL", "array", "case", "interval", "Select.x", "current_date"]
    assert not any(shapes.path_of[word] for word in words)


@examples(150)
@given(st.randoms(use_true_random=False))
def test_random_filters(rng: random.Random) -> None:
    agree(random_filter(rng, depth=rng.choice([0, 1, 2, 3]), wild=rng.random() < 0.5) for _ in range(10))


@examples(150)
@given(st.randoms(use_true_random=False))
def test_almost_filters(rng: random.Random) -> None:
    agree(make(rng) for make in (random_soup, changed_filter, chained) for _ in range(4))


PIECES = [
    *("a", "b", "c.d", "A", "_x", "NOT", "NOT ", "!", "(", ")", "(", ")", " AND ", " OR ", "AND", "or"),
    *("=", " = ", "<", " <= ", "<=>", "!=", "<>", " IN (", " NOT IN (", ",", ", ", " LIKE ", " IS NULL"),
    *(" IS NOT NULL", " BETWEEN ", "1", "-1", "2.5", "12345678901234567890", "'x'", "'1'", "''", "TRUE"),
    *("NULL", " ", "\n", "\t", "--", "/*", ".", "DATE '2024-01-01'", "array_contains(", "array(", "\x00"),
]


@examples(400)
@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join) | st.text(max_size=12))
@example("\x00AND\x00")
@example("a = 'x'AND b = 1")
def test_any_text(text: str) -> None:
    agree([text])


@examples(200)
@given(st.lists(st.text(max_size=8), min_size=1, max_size=4))
def test_any_string_in_a_clause(texts: list[str]) -> None:
    items = ", ".join(f"'{text}'" for text in texts)
    agree(
        [
            f"a = '{texts[0]}' AND b IN ({items})",
            f"a LIKE '{texts[0]}'",
            f"a BETWEEN '{texts[0]}' AND '{texts[-1]}'",
        ]
    )


@examples(200)
@given(
    st.lists(st.integers(-(2**66), 2**66) | st.decimals(-(10**19), 10**19, places=17), min_size=1, max_size=4)
)
def test_any_number_in_a_clause(numbers: list[object]) -> None:
    first, last = f"{numbers[0]:f}" if not isinstance(numbers[0], int) else str(numbers[0]), str(numbers[-1])
    agree(
        [
            f"a = {first} AND b IN ({', '.join(map(str, numbers))})",
            f"a BETWEEN {first} AND {last}",
            f"a < {last}",
        ]
    )


def test_edges_of_every_type() -> None:
    agree(FILTERS)


@examples(60)
@given(st.lists(st.sampled_from(FILTERS), min_size=2, max_size=4), st.randoms(use_true_random=False))
def test_edges_joined(texts: list[str], rng: random.Random) -> None:
    other = [text.replace("a ", "b ", 1) if rng.random() < 0.5 else text for text in texts]
    agree([f" {sign} ".join(other) for sign in ("AND", "OR")])


@pytest.mark.parametrize("size", some([1_000, 5_400, 10_000, 10_001], 0))
def test_lists_up_to_the_limit(size: int) -> None:
    agree([f"a IN ({','.join(['7'] * size)})", f"a IN ({','.join(f'{n % 97}' for n in range(size))}) AND b"])


@pytest.mark.nightly
def test_deep_and_wide_texts_up_to_the_limits() -> None:
    for depth in (1, 15, 16, 17, 62, 63, 64, 65):
        agree(["(" * depth + clause + ")" * depth for clause in CLAUSES])
        agree(["NOT " * depth + clause for clause in CLAUSES])
        agree(["(NOT ! " * depth + ".".join(["w"] * 8) + " IN (1)" + ")" * depth])
    agree([" AND ".join(["a = 1"] * count) for count in (100, 170, 2_000)])


def test_caches_stay_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    caches: list[BoundedCache[Any]] = [
        shapes.skeletons,
        shapes.path_of,
        simple_clauses.is_plain,
        clauses.model_of,
        *clauses.atom_of.values(),
    ]
    for cache in caches:
        monkeypatch.setattr(cache, "limit", 5)
        cache.clear()
    rng = random.Random(1)
    texts = []
    for number in range(60):
        gaps = [" " * rng.randrange(1, 9) for _ in range(4)]
        texts.append(f"n{number % 9}{gaps[0]}={gaps[1]}'t{number}'{gaps[2]}AND{gaps[3]}NOT m > {number}")
    agree(texts)
    assert all(len(cache) <= 5 for cache in caches)


def test_long_texts_are_not_remembered() -> None:
    long = "x" * 5_000
    agree([f"a = '{long}' AND b > '{long}'" + " " * 3_000, f"{'a' * 64} = '{long}'"])
    assert long not in simple_clauses.is_plain
    assert not any(len(text) > 1_024 for cache in (clauses.model_of, shapes.skeletons) for text in cache)


def test_threads_share_the_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    for cache in (shapes.skeletons, shapes.path_of, clauses.model_of, *clauses.atom_of.values()):
        monkeypatch.setattr(cache, "limit", 20)
    texts = [str(text) for text in advertising.subscriptions(np.arange(60), 9)["filter"].to_pylist()]
    expected = spelled(in_columns(map(by_parser, texts)))
    with ThreadPoolExecutor(4) as pool:
        for done in pool.map(compile_filters, [texts] * 6):
            assert spelled(done.programs) == expected
            assert not done.refused


def test_nothing_in_nothing_out() -> None:
    done = compile_filters([])
    sound(done.programs)
    assert (done.programs.filters, done.refused) == (0, [])
    assert compile_filters(["a +"]).programs.filters == 0


def test_equal_leaves_have_one_number() -> None:
    texts = ["a = 'x'", "a IN ('x')", "NOT a != 'x'", "b = 1 AND a = 'x'", 'a = "x"', "b BETWEEN 1 AND 1"]
    assert compile_filters(texts).programs.leaves == 2
    assert binding.compile_filter("(a = 'x' OR b = 1) AND (NOT a != 'x' OR c = 1)").tokens == (
        0,
        1,
        -2,
        0,
        2,
        -2,
        -1,
    )
