"""Filter text to the model: what is taken, and what it becomes."""

from __future__ import annotations

import contextlib
import time
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headgate.errors import FilterError
from headgate.records.language import limits
from headgate.records.language.model import (
    NULL,
    And,
    ArrayContains,
    ArraysOverlap,
    Attribute,
    Between,
    Comparison,
    Constant,
    ForAll,
    In,
    IsNull,
    Like,
    Literal,
    LiteralType,
    Not,
    Op,
    Or,
    Truth,
)
from headgate.records.language.parse import parse_filter
from headgate.records.language.printing import KEYWORDS, print_filter
from headgate.records.language.rewrite import normalise
from headgate.records.programs.program import compile_program
from tests.lanes import some
from tests.records.soup import (
    FOREIGN,
    FUNCTIONS,
    LITERALS,
    NAMES,
    SIGNS,
    WORDS,
    chained,
    changed_filter,
    random_soup,
)
from tests.seeds import examples
from tests.timing import thread_time

if TYPE_CHECKING:
    import random

    from headgate.records.language.model import Expression

A, B, C = Attribute.of("a"), Attribute.of("b"), Attribute.of("c")
a, b, c = Truth(A), Truth(B), Truth(C)


def whole(value: int) -> Literal:
    return Literal(LiteralType.INT, value)


def decimal(text: str) -> Literal:
    return Literal(LiteralType.DECIMAL, Decimal(text))


def double(value: float) -> Literal:
    return Literal(LiteralType.DOUBLE, value)


def string(value: str) -> Literal:
    return Literal(LiteralType.STRING, value)


def equals(literal: Literal) -> Comparison:
    return Comparison(Op.EQ, A, literal)


ONE, DAY = whole(1), 86_400_000_000
TAKEN: list[tuple[str, Expression]] = [
    # Constants, names and their spellings.
    ("TRUE", Constant(value=True)),
    ("false", Constant(value=False)),
    ("NuLL", Constant(None)),
    ("a", a),
    ("(((a)))", a),
    ("a.b.c", Truth(Attribute.of("a", "b", "c"))),
    ("A . `B` .c", Truth(Attribute.of("a", "b", "c"))),
    ("`first name`", Truth(Attribute.of("first name"))),
    ("`a.b`", Truth(Attribute.of("a.b"))),
    ("`a``b`", Truth(Attribute.of("a`b"))),
    ("1a = 1", Comparison(Op.EQ, Attribute.of("1a"), ONE)),
    ("_x = 1", Comparison(Op.EQ, Attribute.of("_x"), ONE)),
    ("date = 1", Comparison(Op.EQ, Attribute.of("date"), ONE)),
    ("`and` = 1", Comparison(Op.EQ, Attribute.of("and"), ONE)),
    ("user.case = 1", Comparison(Op.EQ, Attribute.of("user", "case"), ONE)),
    # Comparisons.
    ("a = 1", equals(ONE)),
    ("a == 1", equals(ONE)),
    ("a != 1", Comparison(Op.NE, A, ONE)),
    ("a <> 1", Comparison(Op.NE, A, ONE)),
    ("a < 1", Comparison(Op.LT, A, ONE)),
    ("a <= 1", Comparison(Op.LE, A, ONE)),
    ("a > 1", Comparison(Op.GT, A, ONE)),
    ("a >= 1", Comparison(Op.GE, A, ONE)),
    ("a <=> NULL", Comparison(Op.NULL_SAFE_EQ, A, NULL)),
    ("1 < a", Comparison(Op.GT, A, ONE)),
    ("1 <= a", Comparison(Op.GE, A, ONE)),
    ("1 > a", Comparison(Op.LT, A, ONE)),
    ("1 >= a", Comparison(Op.LE, A, ONE)),
    ("1 = a", equals(ONE)),
    ("a=((1))", equals(ONE)),
    (f"a = {'0' * 400}1", equals(ONE)),
    (f"a = {'0' * 5000}1L", equals(ONE)),
    ("a = 0e2147483647", equals(Literal(LiteralType.DOUBLE, 0.0))),
    ("a = 1e-2147483647", equals(Literal(LiteralType.DOUBLE, 0.0))),
    ("a = 1 -- /*+ x */", equals(ONE)),
    ("a IS NOT DISTINCT FROM 1", Comparison(Op.NULL_SAFE_EQ, A, ONE)),
    # The other predicates, and NOT in them.
    ("a BETWEEN 1 AND 2", Between(A, ONE, whole(2))),
    ("a NOT BETWEEN 1 AND 2", Not(Between(A, ONE, whole(2)))),
    ("a BETWEEN 1 AND 2 AND b", And((Between(A, ONE, whole(2)), b))),
    ("a IN (1)", In(A, (ONE,))),
    ("a NOT IN (1, NULL)", Not(In(A, (ONE, NULL)))),
    ("a IN ((1), 2)", In(A, (ONE, whole(2)))),
    ("a IN (NULL)", In(A, (NULL,))),
    ("a IN (1.5, 1, 2)", In(A, (decimal("1.5"), ONE, whole(2)))),
    ("a IN (1, 1.5, 2e0)", In(A, (ONE, decimal("1.5"), double(2.0)))),
    ("a IS NULL", IsNull(A)),
    ("a IS NOT NULL", Not(IsNull(A))),
    ("NOT a IS NULL", Not(IsNull(A))),
    ("a LIKE 'x%'", Like(A, "x%")),
    ("a NOT LIKE 'x%'", Not(Like(A, "x%"))),
    ("a LIKE 'x!%' ESCAPE '!'", Like(A, "x!%", "!")),
    ("a NOT LIKE 'x' ESCAPE '!'", Not(Like(A, "x", "!"))),
    ("a LIKE '50\\%'", Like(A, "50\\%")),
    ("a LIKE '50\\\\%'", Like(A, "50\\%")),
    ("a LIKE r'50\\%'", Like(A, "50\\%")),
    ("a LIKE ANY ('x%', '%y')", Or((Like(A, "x%"), Like(A, "%y")))),
    ("a NOT LIKE any ('x%', '%y')", Not(And((Like(A, "x%"), Like(A, "%y"))))),
    ("a ILIKE ALL ('X', 'y')", And((Like(A.lowered, "x"), Like(A.lowered, "y")))),
    ("a NOT LIKE ALL ('x', 'y') AND b", And((Not(Or((Like(A, "x"), Like(A, "y")))), b))),
    ("a LIKE SOME ('x')", Like(A, "x")),
    ("array_contains(a, 1)", ArrayContains(A, ONE)),
    ("ARRAY_CONTAINS (a.b, 'x')", ArrayContains(Attribute.of("a", "b"), string("x"))),
    ("arrays_overlap(a, array(1, NULL))", ArraysOverlap(A, (ONE, NULL))),
    ("arrays_overlap(array('x'), a)", ArraysOverlap(A, (string("x"),))),
    ("arrays_overlap(a, array())", ArraysOverlap(A, ())),
    ("forall(a, x -> x IN (1, NULL))", ForAll(A, (ONE, NULL))),
    ("FORALL (a.b, `first x`->`first x` == 'x')", ForAll(Attribute.of("a", "b"), (string("x"),))),
    ("forall(a, X -> 1 = x)", ForAll(A, (ONE,))),
    ("forall(a, a -> ((a IN (1))))", ForAll(A, (ONE,))),
    ("forall(a, x -> x IS NULL OR x IN (1))", ForAll(A, (ONE,), nulls=True)),
    ("forall(a, x -> x = 1 OR (x IS NULL))", ForAll(A, (ONE,), nulls=True)),
    ("forall(a, x -> x IS NULL)", ForAll(A, (), nulls=True)),
    ("NOT forall(a, x -> /* y */ x = 1) AND b", And((Not(ForAll(A, (ONE,))), b))),
    ("forall = 1", Comparison(Op.EQ, Attribute.of("forall"), ONE)),
    # Precedence.
    ("a AND b OR c", Or((And((a, b)), c))),
    ("a OR b AND c", Or((a, And((b, c))))),
    ("NOT a AND b", And((Not(a), b))),
    ("NOT a = 1", Not(equals(ONE))),
    ("NOT a IN (1) OR b", Or((Not(In(A, (ONE,))), b))),
    ("! a = 1", Not(equals(ONE))),
    ("!!a", Not(Not(a))),
    ("not Not NOT a", Not(Not(Not(a)))),
    ("NOT (a AND b)", Not(And((a, b)))),
    ("a AND b AND c", And((a, b, c))),
    ("a AND (b AND c)", And((a, And((b, c))))),
    ("(a OR b) OR c", Or((Or((a, b)), c))),
    # Blanks and comments.
    ("a\u00a0=\u30001\r\n", equals(ONE)),
    ("/* x */ a /* /* y */ */ = -- z\n 1 --", equals(ONE)),
    ("a = '--' -- '", equals(string("--"))),
    ("a = '/*'", equals(string("/*"))),
    ("a = '{#'", equals(string("{#"))),
]
NUMBERS: list[tuple[str, Literal]] = [
    ("0", whole(0)),
    ("007", whole(7)),
    ("-1", whole(-1)),
    ("- 1", whole(-1)),
    ("+1", whole(1)),
    ("-(-(1))", whole(1)),
    ("9223372036854775807", whole(2**63 - 1)),
    ("-9223372036854775808", whole(-(2**63))),
    ("9223372036854775808", decimal("9223372036854775808")),
    ("-9223372036854775809", decimal("-9223372036854775809")),
    ("9" * 38, decimal("9" * 38)),
    ("-" + "9" * 38, decimal("-" + "9" * 38)),
    ("5L", whole(5)),
    ("-128Y", whole(-128)),
    ("32767s", whole(32767)),
    ("9223372036854775807L", whole(2**63 - 1)),
    ("1.5", decimal("1.5")),
    ("-1.50", decimal("-1.50")),
    (".5", decimal("0.5")),
    ("5.", decimal("5")),
    ("5BD", decimal("5")),
    ("1.5e3BD", decimal("1.5e3")),
    ("12345678901234567890.123456789012345678", decimal("12345678901234567890.123456789012345678")),
    ("-9223372036854775807.000000000000000001", decimal("-9223372036854775807.000000000000000001")),
    ("1e0", double(1.0)),
    ("-1.5E-3", double(-0.0015)),
    ("1e+22", double(1e22)),
    ("1e-400", double(0.0)),
    ("5D", double(5.0)),
    (".5f", double(0.5)),
    ("0.1F", double(0.10000000149011612)),
    ("16777217F", double(16777216.0)),
]
STRINGS: list[tuple[str, str]] = [
    (r"'\u000001'", "\x0001"),
    (r"'\U0010FFFF7'", "\U0010ffff7"),
    ("''", ""),
    ("'it\\'s'", "it's"),
    ('"it\'s"', "it's"),
    ("'a\"b'", 'a"b'),
    (r"'\n\t\r\b\0\Z'", "\n\t\r\b\0\x1a"),
    (r"'\\'", "\\"),
    (r"'\q'", "q"),
    (r"'\%\_'", "\\%\\_"),
    (r"'\u0041\u00e9'", "Aé"),
    (r"'\U0001F388'", "🎈"),
    (r"'\ud83c\udf88'", "🎈"),
    (r"'\u12'", "u12"),
    (r"'\101\060'", "A0"),
    (r"'\400'", "400"),
    (r"r'\n'", "\\n"),
    ('R"x"', "x"),
    ("'line\nbreak'", "line\nbreak"),
    ("'日本🎈'", "日本🎈"),
]
MOMENTS: list[tuple[str, Literal]] = [
    ("DATE '1970-01-02'", Literal(LiteralType.DATE, DAY)),
    ("date'1970-1-2'", Literal(LiteralType.DATE, DAY)),
    ("TIMESTAMP '1970-01-01 00:00:00.000001'", Literal(LiteralType.TIMESTAMP, 1)),
    ("TIMESTAMP '1970-01-01T01:00:00+01:00'", Literal(LiteralType.TIMESTAMP, 0)),
    ("TIMESTAMP_LTZ '1970-01-02'", Literal(LiteralType.TIMESTAMP, DAY)),
    ("TIMESTAMP '0001-01-01'", Literal(LiteralType.TIMESTAMP, -62_135_596_800_000_000)),
    ("TIMESTAMP '9999-12-31 23:59:59.999999'", Literal(LiteralType.TIMESTAMP, 253_402_300_799_999_999)),
]
LITERAL_TEXTS = [*NUMBERS, *((text, string(value)) for text, value in STRINGS), *MOMENTS]


@pytest.mark.parametrize(("text", "model"), TAKEN)
def test_taken(text: str, model: Expression) -> None:
    assert parse_filter(text) == model


@pytest.mark.parametrize(("text", "model"), TAKEN)
def test_the_printed_form_is_the_same(text: str, model: Expression) -> None:
    assert parse_filter(print_filter(parse_filter(text))) == model


@pytest.mark.parametrize(("text", "literal"), LITERAL_TEXTS)
def test_literals(text: str, literal: Literal) -> None:
    for filter_text in (f"a = {text}", f"a={text}", f"a IN ({text})", f"array_contains(a, {text}) AND b"):
        tree = parse_filter(filter_text)
        predicate = tree.children[0] if isinstance(tree, And) else tree
        assert isinstance(predicate, Comparison | In | ArrayContains)
        found = predicate.literals[0] if isinstance(predicate, In) else predicate.literal
        assert (found.type, found.value) == (literal.type, literal.value)
        assert repr(found.value) == repr(literal.value)
        assert parse_filter(print_filter(tree)) == tree


@given(st.text(max_size=20))
def test_any_string_can_be_printed(text: str) -> None:
    tree = equals(string(text))
    assert parse_filter(print_filter(tree)) == tree


@given(st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=3))
def test_any_name_can_be_printed(names: list[str]) -> None:
    tree = Comparison(Op.LT, Attribute.of(*names), ONE)
    found = parse_filter(print_filter(tree))
    assert found == tree
    assert isinstance(found, Comparison)
    assert found.attribute.names == tree.attribute.names


@pytest.mark.parametrize("word", sorted(KEYWORDS | {"date", "user", "type", "end", "left", "all", "array<"}))
@pytest.mark.parametrize("op", [Op.LT, Op.EQ])
def test_any_word_can_be_a_name(word: str, op: Op) -> None:
    for tree in (Comparison(op, Attribute.of(word), ONE), Comparison(op, Attribute.of("x", word), ONE)):
        assert parse_filter(print_filter(tree)) == tree
        assert parse_filter(f"b AND NOT ({print_filter(tree)})") == And((b, Not(tree)))


def timed(text: str) -> str:
    """Parse; return 'taken' or the reason. Whatever the text, it takes no second of this thread's time."""
    with thread_time() as spent:
        try:
            parse_filter(text)
            outcome = "taken"
        except FilterError as error:
            outcome = error.reason
    assert spent.seconds < 1
    return outcome


NESTED = f"the filter nests deeper than {limits.MAX_DEPTH}"
LIMITS = [
    ("a = '" + "x" * 10_000_000 + "'", "the filter has 10,000,006 characters and at most 262,144 are taken"),
    ("a = '" + "x" * (262_144 - 6) + "'", "taken"),
    ("a = '" + "x" * (262_144 - 5) + "'", "the filter has 262,145 characters and at most 262,144 are taken"),
    ("(" * 64 + "a" + ")" * 64, "taken"),
    ("(" * 65 + "a" + ")" * 65, NESTED),
    ("(" * 10_000 + "a" + ")" * 10_000, NESTED),
    ("(" * 100_000, NESTED),
    ("NOT " * 64 + "a", "taken"),
    ("NOT " * 65 + "a", NESTED),
    ("NOT " * 5_000 + "a", NESTED),
    ("!" * 5_000 + "a", NESTED),
    ("(NOT " * 60 + "a" + ")" * 60, "taken"),
    ("a = " + "- " * 64 + "1", "taken"),
    ("a = " + "- " * 5_000 + "1", NESTED),
    ("a = " + "-" * 5_000 + "1", "a value or a condition is missing after this"),
    ("a = " + "+ " * 5_000 + "1", NESTED),
    ("a IN (" + "1," * 9_999 + "1)", "taken"),
    ("a IN (" + "1," * 10_000 + "1)", "the list is longer than 10,000"),
    ("a IN (" + "1," * 99_999 + "1)", "the list is longer than 10,000"),
    ("arrays_overlap(a, array(" + "1," * 99_999 + "1))", "the list is longer than 10,000"),
    ("a AND " * 9_999 + "a", "taken"),
    ("a OR " * 9_999 + "a", "taken"),
    ("a AND " * 10_000 + "a", "the filter has more than 10,000 clauses"),
    ("a OR " * 50_000 + "a", "the filter has more than 10,000 clauses"),
    ("a AND b OR " * 4_999 + "a", "taken"),
    ("a." * 31 + "a = 1", "taken"),
    ("a." * 32 + "a = 1", "the name has more than 32 parts"),
    ("a." * 100_000 + "a = 1", "the name has more than 32 parts"),
    ("`a` . " * 32 + "a = 1", "the name has more than 32 parts"),
    ("a = NOT " * 30_000, "put parentheses around NOT here"),
    ("a < " * 60_000, "put parentheses around one of two comparisons"),
    ("a " * 100_000, "AND, OR or an operator is missing before this"),
    ("a LIKE 'x' ESCAPE " * 10_000, "ESCAPE takes one character in quotes"),
    ("ARRAY<" * 40_000, "types are not part of the filter language; an attribute of that name is `ARRAY`"),
    (
        "a = STRUCT<b, " * 10_000,
        "put parentheses around one of two comparisons",
    ),
    ("CASE WHEN a THEN " * 10_000, NESTED),
    ("a AND CASE WHEN " * 10_000, NESTED),
    ("ANY " * 50_000, "ANY is not part of the filter language here; an attribute of that name is `ANY`"),
    ("INTERVAL " * 20_000, "INTERVAL is not part of the filter language; date_add and add_months are"),
    ("CAST(" * 50_000, NESTED),
    ("a + " * 60_000 + "a > 1", "an expression has 120,001 parts, and at most 512 are computed for an event"),
    ("(" * 60 + ("a + " * 300 + "a)") + " + a)" * 59 + " > 1", "an expression has"),
    ("a" + "[0]" * 60_000 + " > 1", "an expression has"),
    ("upper(" * 63 + "a" + ")" * 63 + " = 1", "taken"),
    ("upper(" * 64 + "a" + ")" * 64 + " = 1", "an expression nests deeper than 64"),
    ("'\\'" * 80_000, "a quote or a comment is still open at the end"),
    ("9" * 200_000 + "x = 1", "taken"),
    ("1." * 100_000 + " = a", "1.1.1"),
    ("." * 200_000, "a value or a condition is missing before this"),
    ("a" + " " * 200_000, "taken"),
    ("foo(" * 60_000, NESTED),
    ("a = " + "9" * 200_000, "the number has more than 38 digits; write a double such as 1.5e0"),
    ("a = 0." + "9" * 200_000, "the number has more than 38 digits; write a double such as 1.5e0"),
    ("a = 1e" + "9" * 200_000, "the exponent is beyond 2147483647"),
    ("a = 1e-" + "0" * 200_000 + "1BD AND a", "taken"),
    ("a LIKE '" + "%_" * 100_000 + "'", "taken"),
    ("/*" * 100_000, "a quote or a comment is still open at the end"),
    ("a = 1 " + "/* c */" * 30_000, "taken"),
    ("a = 1 " + "-- c\n" * 50_000, "taken"),
    ("`" * 262_143, "a quote or a comment is still open at the end"),
    ("'" * 262_144, "two strings stand side by side: write one, with \\' for a quote in it"),
]


@pytest.mark.parametrize(("text", "outcome"), LIMITS, ids=range(len(LIMITS)))
def test_limits(text: str, outcome: str) -> None:
    assert timed(text).startswith(outcome)


@pytest.mark.parametrize(
    ("clause", "sign"), some([("a != {}", "AND"), ("a = '{}'", "OR"), ("a LIKE '{}%'", "OR")], 1)
)
def test_the_longest_chains_compile_quickly(clause: str, sign: str) -> None:
    tree = parse_filter(f" {sign} ".join(clause.format(number) for number in range(10_000)))
    started = time.thread_time()
    assert len(compile_program(normalise(tree)).leaves) == 1
    # Merged one after another they took a minute and more.
    assert time.thread_time() - started < 10


TOKENS = st.sampled_from(
    [*NAMES, *LITERALS, *WORDS, *SIGNS, *FUNCTIONS, *FOREIGN, "''", "/*", "*/", "--", "`", "'"]
)


@examples(400)
@example("a = 0.0.1F")
@example("a = DATE 120240")
@example("a = 1e5e5")
@example("²")
@example("a\x00= 5")
@given(st.text() | st.lists(TOKENS, max_size=12).map(" ".join) | st.lists(TOKENS, max_size=12).map("".join))
def test_any_text_is_a_filter_or_a_filter_error(text: str) -> None:
    with contextlib.suppress(FilterError):
        parse_filter(text)


@examples(300)
@given(st.randoms(use_true_random=False))
def test_almost_filters(rng: random.Random) -> None:
    for make in (random_soup, changed_filter, chained):
        text = make(rng)
        with contextlib.suppress(FilterError):
            tree = parse_filter(text)
            printed = print_filter(tree)
            assert outcome(printed) == tree, text


def outcome(text: str) -> object:
    """Parse a text that must be a filter, where FilterError is suppressed."""
    try:
        return parse_filter(text)
    except FilterError as error:
        return error
