"""What the language lacks is refused with its reason, and the message points at the right place."""

from __future__ import annotations

import pytest

from headgate.errors import FilterError
from headgate.records.language.parse import parse_filter

LAMBDAS = "forall takes an attribute and x -> x IN ('…', …), x -> x = '…' or x -> x IS NULL OR x IN ('…', …)"

# ⟪ stands before the character that the error must point at; without one, it points at none.
REFUSED: list[tuple[str, str]] = [
    # Nothing, or not only an expression.
    ("", "the filter is empty: write TRUE to match every event"),
    (" \n\t", "the filter is empty"),
    ("-- only a comment", "the filter holds no expression"),
    ("⟪SELECT a FROM b", "not a Boolean expression"),
    ("a ⟪WHERE b", "not a Boolean expression"),
    ("a = 1 ⟪ORDER BY a", "not a Boolean expression: ORDER is part of a query"),
    ("a = 1 ⟪LIMIT 5", "not a Boolean expression"),
    ("a = 1⟪;", "';' is not part of the filter language"),
    ("a ⟪\ud800= 1", "the filter holds a lone surrogate"),
    # Halves.
    ("a ⟪=", "a value or a condition is missing after this"),
    ("a = 1 ⟪AND", "a value or a condition is missing after this"),
    ("⟪AND a", "nothing stands before AND"),
    ("a AND ⟪OR (b)", "nothing stands before OR"),
    ("a AND (⟪OR b)", "nothing stands before OR"),
    ("⟪IS NOT NULL", "nothing stands before IS; an attribute of that name is `IS`"),
    ("a OR ⟪LIKE 'x'", "nothing stands before LIKE"),
    ("NOT ⟪IN (1)", "nothing stands before IN"),
    ("a BETWEEN 1 ⟪2", "AND, OR or an operator is missing before this"),
    ("a BETWEEN 1 ⟪2 AND b", "AND, OR or an operator is missing before this"),
    ("a BETWEEN 5L ⟪DATE '2024-01-01'", "AND, OR or an operator is missing before this"),
    ("a = 1 ⟪(b)", "AND, OR or an operator is missing before this"),
    ("(a) ⟪(b)", "AND, OR or an operator is missing before this"),
    ("(a = 1⟪", "a parenthesis is still open at the end"),
    ("a = 1⟪)", "this parenthesis was never opened"),
    ("a = 'x⟪", "a quote or a comment is still open at the end"),
    ("a = 'x\\'⟪", "a quote or a comment is still open at the end"),
    ("`a = 1⟪", "a quote or a comment is still open at the end"),
    ("a = 1 /* x⟪", "a quote or a comment is still open at the end"),
    ("a IN (1⟪,)", "a literal is missing after this comma"),
    ("a IN (⟪, 1)", "a literal is missing before this comma"),
    ("a IN (1, ⟪, 2)", "a literal is missing before this comma"),
    ("array_contains(a, 1⟪,)", "a literal is missing after this comma"),
    ("⟪a IN ()", "IN takes at least one literal"),
    # What the parser takes, or drops, and Spark does not.
    ("array_contains(a, ⟪ALL 0)", "ALL may stand before the first argument only; `all` is an attribute"),
    ("arrays_overlap(a, array(1, ⟪ALL 2))", "ALL may stand before the first argument only"),
    ("arrays_overlap(a ⟪AS, array(1))", "AS is not part of the filter language; `as` is an attribute"),
    ("a = ⟪. 2", "a number is cut in two by a blank or a comment"),
    ("a IN (1, -⟪./* x */2)", "a number is cut in two by a blank or a comment"),
    ("a OR b⟪.!=", "a name is missing after this dot"),
    ("⟪/*+ x */ a = 1", "a hint is not part of the filter language: write /* … */"),
    ("a = 1 ⟪/*+*/", "a hint is not part of the filter language"),
    ("a = 1 /* /*+ x */ *⟪/", "a value or a condition is missing before this"),
    ("DOUBLE ⟪PRECISION = 1", "AND, OR or an operator is missing before this"),
    ("a OR ADD\t⟪JAR.b", "AND, OR or an operator is missing before this"),
    ("a = ⟪MAP(1)", "there is no function map"),
    (
        "a = ⟪TIMESTAMP_NTZ '2024-01-01'",
        "TIMESTAMP_NTZ is not part of the filter language: write TIMESTAMP '…'",
    ),
    ("a = ⟪TIMESTAMPTZ '2024-01-01'", "TIMESTAMPTZ is not part of the filter language"),
    ("a = ⟪timestamp with time zone '2024-01-01'", "timestamp with is not part of the filter language"),
    ("a = ⟪TIMESTAMP WITHOUT TIME ZONE '2024-01-01'", "TIMESTAMP WITHOUT is not part of the filter language"),
    ("a = ⟪TIMESTAMP_LTZ('2024-01-01')", "there is no function timestamp_ltz (did you mean to_timestamp?)"),
    ("a = ⟪1e99999999999", "the exponent is beyond 2147483647, and Spark refuses it too"),
    ("a = ⟪0e-2147483648", "the exponent is beyond 2147483647"),
    ("a = ⟪1.5e-2147483647D", "the exponent is beyond 2147483647"),
    ("a = ⟪1e99999999999999999999BD", "the exponent is beyond 2147483647"),
    ("a = ⟪1.7976931348623158e308", "the number does not fit into a double"),
    ("a = ⟪3.4028235e38F", "the number does not fit into a float"),
    # Signs.
    ("a⟪:b = 1", "':' is not part of the filter language"),
    ("a = ⟪:x", "':' is not part of the filter language"),
    ("a = ⟪?", "'?' is not part of the filter language"),
    ("a = ⟪$1", "'$' is not part of the filter language"),
    ("x ⟪-> x = 1", "'->' is not part of the filter language"),
    ("a ⟪&& b", "'&&' is not part of the filter language"),
    ("a ⟪& 1 = 1", "'&' is not part of the filter language"),
    ("a = 1 AND\u2028b AND\nc ⟪d e", "AND, OR or an operator is missing before this"),
    ("a = 1 AND\x0bb AND\r\nc ⟪d e", "AND, OR or an operator is missing before this"),
    ("a = '\n\n' AND b ⟪c d", "AND, OR or an operator is missing before this"),
    # Blanks and comments that Spark reads otherwise.
    ("a = 1 ⟪{# x #}", "'{' is not part of the filter language"),
    ("a = 1 -- x ⟪\\\nAND b", "a comment ends with a backslash"),
    ("a = 1 -- x\r⟪b AND c\n", "AND, OR or an operator is missing before this"),
    ("a =⟪\x1f1", "'\\x1f' is not part of the filter language"),
    ("a =⟪\x851", "'\\x85' is not part of the filter language"),
    ("a = 1⟪\x1a", "'\\x1a' is not part of the filter language"),
    ("a⟪\x00 = 1", "'\\x00' is not part of the filter language"),
    ("⟪\ufeffa = 1", "'\\ufeff' is not part of the filter language"),
    ("⟪größe = 1", "the name größe needs backticks: `größe`"),
    # Operands.
    ("⟪1 = 1", "this compares two literals, so no event matters; write TRUE or FALSE"),
    ("a AND ⟪5", "a Boolean expression is expected here, not a literal"),
    ("NOT ⟪'x'", "a Boolean expression is expected here, not a literal"),
    ("a = 1 ⟪= 1", "put parentheses around one of two comparisons"),
    ("⟪5 IN (1)", "an attribute is expected here"),
    ("⟪5 IS NULL", "an attribute is expected here"),
    ("⟪'x' BETWEEN 'a' AND 'b'", "an attribute is expected here"),
    ("⟪a = 1 IS NULL", "put parentheses around this comparison: it is an operand of another operator"),
    ("a = ⟪NOT b", "put parentheses around NOT here"),
    ("⟪+ (a = 1)", "a plus sign may stand before a number only"),
    ("a = ⟪+ 'x'", "a plus sign may stand before a number only"),
    ("a ⟪NOT NULL", "NOT stands before IN, LIKE, BETWEEN or a whole expression"),
    ("a ⟪NOT IS NULL", "NOT stands before IN, LIKE, BETWEEN or a whole expression"),
    ("a ⟪NOT = 1", "NOT stands before IN, LIKE, BETWEEN or a whole expression"),
    ("a ⟪! IN (1)", "NOT stands before IN, LIKE, BETWEEN or a whole expression"),
    ("a IS ⟪! NULL", "'!' stands before a whole expression only; write IS NOT NULL"),
    # Words.
    ("a ⟪ISNULL", "ISNULL is not part of the filter language; IS NULL is"),
    ("a ⟪NOTNULL", "NOTNULL is not part of the filter language; IS NOT NULL is"),
    (
        "a REGEXP ⟪r'\\bword\\b'",
        "RLIKE: \\b is taken around one whole word only: '(?i)\\\\bword\\\\b', at character 3 ",
    ),
    (
        "a RLIKE ⟪r'(?i)\\bw.rd\\b'",
        "RLIKE: \\b is taken around one whole word only: '(?i)\\\\bword\\\\b', at character 7 ",
    ),
    (
        "a RLIKE ⟪r'(?i)\\btwo words\\b'",
        "RLIKE: \\b is taken around one whole word only: '(?i)\\\\bword\\\\b', at character 7 ",
    ),
    ("a RLIKE ⟪'(?i)\\bword\\b'", r"\b in a string is a backspace, and \\b a word's edge"),
    ("a RLIKE ⟪b", "RLIKE takes a pattern in quotes"),
    ("a ILIKE ⟪b", "ILIKE takes a pattern in quotes"),
    ("a ILIKE ⟪'x!y' ESCAPE '!'", "'y' stands after the escape character"),
    ("a ILIKE ⟪ANY 'x'", "ANY takes patterns in parentheses: write ILIKE ANY ('x%', 'y%')"),
    ("a LIKE ALL (⟪)", "LIKE ALL takes at least one pattern"),
    ("a LIKE ANY ('x', ⟪b)", "LIKE takes patterns in quotes"),
    ("a LIKE ANY ('x', ⟪'y\\\\')", "the pattern ends with its escape character"),
    ("a RLIKE ⟪ANY ('x')", "RLIKE takes one pattern: write a RLIKE 'x' OR a RLIKE 'y'"),
    ("⟪ilike(a, 'x')", "nothing stands before ilike"),
    ("⟪lower(a)", "a condition is expected, and lower(a) is of type string"),
    ("a = ⟪INTERVAL 1 DAY", "INTERVAL is not part of the filter language"),
    ("CASE WHEN a = 1 THEN b⟪", "CASE is still open at the end: write END"),
    (
        "CAST(x AS INT) = 1 AND n > ⟪TIMESTAMP_NTZ '2024-01-01'",
        "TIMESTAMP_NTZ is not part of the filter language",
    ),
    ("a = CAST(x AS ⟪BINARY)", "a cast goes to INT, BIGINT, DOUBLE"),
    ("cast(a ⟪INT) = 1", "CAST takes a type: write cast(a AS INT)"),
    ("a = ⟪foo(1)", "there is no function foo (did you mean floor?)"),
    ("⟪current_date = a", "current_date is not part of the filter language: it asks the clock, and an event"),
    ("a = 1 AND EXISTS (⟪SELECT 1)", "a subquery is not part of the filter language"),
    ("a ⟪COLLATE UTF8_LCASE = 'x'", "COLLATE is not part of the filter language"),
    ("⟪arrays_overlap(a)", "arrays_overlap takes 2 arguments"),
    ("⟪array_contains(a, NULL)", "argument 2 is NULL, which Spark refuses, too"),
    # Functions within forall.
    ("⟪forall()", "forall takes 2 arguments"),
    ("⟪forall(a)", "forall takes 2 arguments"),
    ("⟪forall(a, x)", "forall: argument 2 is a function of an element: write x -> x > 1"),
    ("⟪forall(a, x -> x = 1, y -> y = 1)", "forall takes 2 arguments"),
    ("forall(⟪'a', x -> x = 1)", "an attribute is expected here"),
    ("forall(a, (x) ⟪-> x = 1)", "'->' is not part of the filter language"),
    ("forall(a, (x⟪, y) -> x = 1)", "a comma stands between arguments and in lists only"),
    ("forall(a, x.y ⟪-> x = 1)", "'->' is not part of the filter language"),
    ("forall(a, x -> y ⟪-> x = 1)", "'->' is not part of the filter language"),
    ("forall(a, ⟪-> x = 1)", "'->' is not part of the filter language"),
    ("a IN (1, b ⟪-> 'c')", "'->' is not part of the filter language here"),
    # Literals.
    ("a = 'it'⟪'s'", "two strings stand side by side: write one, with \\' for a quote in it"),
    ('a = "x" ⟪"y"', "two strings stand side by side"),
    ("a = ⟪'\\ud83c'", "the string holds a lone surrogate"),
    ("a = ⟪'x\\U00110000'", "the string has an escape beyond \\U0010FFFF"),
    ("a = ⟪'\\UFFFFFFFF'", "the string has an escape beyond \\U0010FFFF"),
    ("a = ⟪X'1F'", "a hexadecimal literal is not part of the filter language"),
    ("a = ⟪0x1F", "a hexadecimal literal is not part of the filter language"),
    ("a = ⟪n'x'", "N'…' is not part of the filter language"),
    ("a = ⟪1e400", "the number does not fit into a double"),
    ("a = ⟪1e39F", "the number does not fit into a float"),
    ("a = ⟪128Y", "128 does not fit the type that its suffix names"),
    ("a = -⟪129Y", "-129 does not fit the type that its suffix names"),
    ("a = ⟪9223372036854775808L", "9223372036854775808 does not fit the type that its suffix names"),
    ("a = ⟪1.5L", "1.5 cannot have this suffix"),
    ("a = ⟪1e", "1e is not a number"),
    ("a = ⟪" + "9" * 39, "the number has more than 38 digits"),
    ("a = ⟪0." + "0" * 18 + "1", "the number has more than 18 digits after the point"),
    ("a = ⟪1e100BD", "the number has more than 38 digits"),
    ("a > ⟪9223372036854775808", "this number lies beyond 64 bits; write it as a double, such as 1e20"),
    ("a BETWEEN 0 AND ⟪99999999999999999999", "this number lies beyond 64 bits"),
    ("a BETWEEN -⟪99999999999999999999 AND 0", "this number lies beyond 64 bits"),
    ("a = DATE ⟪'2024-02-30'", "'2024-02-30' is not a date; write DATE '2024-12-31'"),
    ("a = TIMESTAMP ⟪'now'", "'now' is not a timestamp; write TIMESTAMP '2024-12-31'"),
    ("a = TIMESTAMP ⟪'0001-01-01 00:00:00+18:00'", "is not a timestamp"),
    ("a = TIMESTAMP ⟪'9999-12-31 23:59:59-18:00'", "is not a timestamp"),
    ("a LIKE ⟪5", "LIKE takes a pattern in quotes"),
    ("a LIKE ⟪b", "LIKE takes a pattern in quotes"),
    ("a LIKE ⟪'x!' ESCAPE '!'", "the pattern ends with its escape character"),
    ("a LIKE ⟪r'\\n'", "'n' stands after the escape character; only %, _ and itself may"),
    ("a LIKE ⟪'x' ESCAPE 'xy'", "ESCAPE takes one character"),
    ("a LIKE ⟪'x' ESCAPE ''", "ESCAPE takes one character"),
]


@pytest.mark.parametrize(("marked", "reason"), REFUSED)
def test_refused(marked: str, reason: str) -> None:
    text = marked.replace("⟪", "")
    with pytest.raises(FilterError) as caught:
        parse_filter(text)
    error = caught.value
    assert error.reason.startswith(reason) or reason in error.reason
    assert error.position == (marked.index("⟪") if "⟪" in marked else None)
    assert len(str(error).splitlines()) == 1


def test_the_message_shows_the_place() -> None:
    with pytest.raises(FilterError) as caught:
        parse_filter("age > 30 AND topic = 'news' AND sise(tags) = 2 AND colour = 'red'")
    assert str(caught.value) == (
        "there is no function sise (did you mean size?), at character 33: "
        "… topic = 'news' AND ⟪sise(tags) = 2 AND c…"
    )
