"""What the language lacks is refused with its reason, and the message points at the right place."""

from __future__ import annotations

import pytest

from headgate import FilterError, parse_filter

LAMBDAS = "forall takes an attribute and x -> x IN ('…', …), x -> x = '…' or x -> x IS NULL OR x IN ('…', …)"

# ⟪ stands before the character that the error must point at; without one, it points at none.
REFUSED: list[tuple[str, str]] = [
    # Nothing, or not only an expression.
    ("", "the filter is empty: write TRUE to match every event"),
    (" \n\t", "the filter is empty"),
    ("-- only a comment", "the filter holds no expression"),
    ("⟪SELECT a FROM b", "not a Boolean expression"),
    ("a ⟪WHERE b", "not a Boolean expression"),
    ("a = 1 ⟪ORDER BY a", "not a Boolean expression"),
    ("a = 1 ⟪LIMIT 5", "not a Boolean expression"),
    ("a = 1⟪;", "';' is not part of the filter language"),
    ("a ⟪\ud800= 1", "the filter holds a lone surrogate"),
    # Halves.
    ("a ⟪=", "not a Boolean expression"),
    ("a = 1 ⟪AND", "not a Boolean expression"),
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
    # Signs.
    ("a ⟪+ 1 = 2", "'+' is not part of the filter language here"),
    ("a ⟪- 1 = 2", "'-' is not part of the filter language here"),
    ("a ⟪* 2 = 2", "'*' is not part of the filter language"),
    ("a ⟪% 2 = 0", "'%' is not part of the filter language"),
    ("a ⟪|| 'x' = 'y'", "'||' is not part of the filter language"),
    ("a⟪[0] = 1", "'[' is not part of the filter language"),
    ("a⟪::int = 1", "'::' is not part of the filter language"),
    ("a⟪:b = 1", "':' is not part of the filter language"),
    ("a = ⟪:x", "':' is not part of the filter language"),
    ("a = ⟪?", "'?' is not part of the filter language"),
    ("a = ⟪$1", "'$' is not part of the filter language"),
    ("x ⟪-> x = 1", "'->' is not part of the filter language"),
    ("a ⟪&& b", "'&&' is not part of the filter language"),
    ("a ⟪& 1 = 1", "'&' is not part of the filter language"),
    ("a ⟪DIV 2 = 1", "'DIV' is not part of the filter language here"),
    ("a = '日本' AND '🎈' = b AND c ⟪+ 1 = 2", "'+' is not part of the filter language here"),
    ("a = 1\r\nAND\n\n b ⟪+ 2 = 3", "'+' is not part of the filter language here"),
    ("a = 1 AND\u2028b AND\nc ⟪d e", "not a Boolean expression"),
    ("a = 1 AND\x0bb AND\r\nc ⟪d e", "not a Boolean expression"),
    ("a = '\n\n' AND b ⟪c d", "not a Boolean expression"),
    # Blanks and comments that Spark reads otherwise.
    ("a = 1 ⟪{# x #}", "'{' is not part of the filter language"),
    ("a = 1 -- x ⟪\\\nAND b", "a comment ends with a backslash"),
    ("a = 1 -- x\r⟪b AND c\n", "not a Boolean expression"),
    ("a =⟪\x1f1", "'\\x1f' is not part of the filter language"),
    ("a =⟪\x851", "'\\x85' is not part of the filter language"),
    ("a = 1⟪\x1a", "'\\x1a' is not part of the filter language"),
    ("⟪a\x00 = 1", "'a\\x00' is not part of the filter language"),
    ("⟪\ufeffa = 1", "'\\ufeffa' is not part of the filter language"),
    ("⟪größe = 1", "the name größe needs backticks: `größe`"),
    # Operands.
    ("⟪a = b", "this compares two attributes; one side must be a literal"),
    ("⟪1 = 1", "this compares two literals, so no event matters; write TRUE or FALSE"),
    ("a AND ⟪5", "a Boolean expression is expected here, not a literal"),
    ("NOT ⟪'x'", "a Boolean expression is expected here, not a literal"),
    ("a ⟪= 1 = 1", "'=' is not part of the filter language here"),
    ("(a ⟪= 1) = TRUE", "'=' is not part of the filter language here"),
    ("a IN (1, ⟪b)", "a literal is expected here, not an attribute"),
    ("a BETWEEN 1 AND ⟪b", "a literal is expected here, not an attribute"),
    ("array_contains(a, ⟪b)", "a literal is expected here, not an attribute"),
    ("arrays_overlap(a, array(1, ⟪b))", "a literal is expected here, not an attribute"),
    ("⟪5 IN (1)", "an attribute is expected here"),
    ("⟪5 IS NULL", "an attribute is expected here"),
    ("⟪'x' BETWEEN 'a' AND 'b'", "an attribute is expected here"),
    ("⟪a = 1 IS NULL", "an attribute is expected here"),
    ("a = NOT ⟪b", "NOT is not part of the filter language here"),
    ("-⟪a = 1", "a minus sign may stand before a number only"),
    ("a = -⟪'x'", "a minus sign may stand before a number only"),
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
    ("⟪a IS TRUE", "IS takes NULL or NOT NULL only"),
    ("⟪a IS NOT FALSE", "IS takes NULL or NOT NULL only"),
    ("⟪a IS DISTINCT FROM 5", "IS DISTINCT FROM is not part of the filter language; write NOT (a <=> b)"),
    ("⟪a RLIKE 'x'", "RLIKE is not part of the filter language; LIKE is"),
    ("⟪a ILIKE 'x'", "ILIKE is not part of the filter language; LIKE is"),
    ("a LIKE ⟪ANY ('x')", "ANY is not part of the filter language"),
    ("⟪CASE WHEN a THEN b END", "CASE is not part of the filter language; AND and OR are"),
    ("⟪IF(a, b, c)", "IF is not part of the filter language; an attribute of that name is `if`"),
    ("a = ⟪INTERVAL 1 DAY", "INTERVAL is not part of the filter language"),
    ("⟪map < 5", "types are not part of the filter language; an attribute of that name is `map`"),
    ("a = ⟪CAST('2024-01-01' AS DATE)", "CAST is not part of the filter language"),
    ("a = ⟪CAST(1.57 AS DECIMAL(10, 1))", "CAST is not part of the filter language"),
    ("a = ⟪try_cast(.57 AS DECIMAL)", "CAST is not part of the filter language"),
    ("⟪coalesce(a, 1) = 1", "the function coalesce is not part of the filter language"),
    ("a = 1 AND ⟪lower(b) = 'x'", "the function lower is not part of the filter language"),
    ("a = ⟪foo(1)", "the function foo is not part of the filter language"),
    ("⟪current_date = a", "the function current_date is not part of the filter language"),
    ("a = 1 AND ⟪EXISTS (SELECT 1)", "the function exists is not part of the filter language"),
    ("a ⟪COLLATE UTF8_LCASE = 'x'", "'COLLATE' is not part of the filter language here"),
    ("⟪arrays_overlap(a, b)", "arrays_overlap takes an attribute and array('…', …)"),
    ("⟪arrays_overlap(a)", "arrays_overlap takes two arguments"),
    ("⟪array_contains(a, NULL)", "array_contains takes no NULL"),
    # Functions within forall.
    ("a AND forall(a, ⟪x -> x > 1)", LAMBDAS),
    ("forall(a, ⟪x -> x NOT IN (1))", LAMBDAS),
    ("forall(a, ⟪x -> x <=> 1)", LAMBDAS),
    ("forall(a, ⟪x -> x IS NOT NULL)", LAMBDAS),
    ("forall(a, ⟪x -> x LIKE 'x')", LAMBDAS),
    ("forall(a, ⟪x -> x)", LAMBDAS),
    ("forall(a, ⟪x -> TRUE)", LAMBDAS),
    ("forall(a, ⟪x -> b = 1)", LAMBDAS),
    ("forall(a, ⟪x -> x.b = 1)", LAMBDAS),
    ("forall(a, ⟪x -> x = 1 AND x IS NULL)", LAMBDAS),
    ("forall(a, ⟪x -> x = 1 OR x = 2)", LAMBDAS),
    ("forall(a, ⟪x -> x IS NULL OR b IS NULL)", LAMBDAS),
    ("forall(a, ⟪x -> x IS NULL OR x = 1 OR b)", LAMBDAS),
    ("⟪forall()", LAMBDAS),
    ("forall(⟪a)", LAMBDAS),
    ("forall(a, ⟪x)", LAMBDAS),
    ("forall(a, x -> x = 1, ⟪y -> y = 1)", LAMBDAS),
    ("forall(⟪'a', x -> x = 1)", "an attribute is expected here"),
    ("forall(a, x -> x IN (⟪b))", "a literal is expected here, not an attribute"),
    ("forall(a, x -> ⟪x IN (1, 'x'))", "the list mixes whole number and string"),
    ("forall(a, (x) ⟪-> x = 1)", "'->' is not part of the filter language"),
    ("forall(a, (x, y) ⟪-> x = 1)", "'->' is not part of the filter language"),
    ("forall(a, x.y ⟪-> x = 1)", "'->' is not part of the filter language"),
    ("forall(a, x -> y ⟪-> x = 1)", "'->' is not part of the filter language"),
    ("forall(a, ⟪-> x = 1)", "'->' is not part of the filter language"),
    ("a IN (1, b ⟪-> 'c')", "'->' is not part of the filter language here"),
    ("⟪exists(a, x -> x = 1)", "the function exists is not part of the filter language"),
    # Literals.
    ("a = 'it'⟪'s'", "two strings stand side by side: write one, with \\' for a quote in it"),
    ('a = "x" ⟪"y"', "two strings stand side by side"),
    ("a = ⟪'\\ud83c'", "the string holds a lone surrogate"),
    ("a = ⟪X'1F'", "a hexadecimal literal is not part of the filter language"),
    ("a = ⟪0x1F", "a hexadecimal literal is not part of the filter language"),
    ("a = ⟪n'x'", "N'…' is not part of the filter language"),
    ("a = ⟪1e400", "the number does not fit into a double"),
    ("a = ⟪1e39F", "the number does not fit into a float"),
    ("a = ⟪128Y", "128 does not fit the type that its suffix names"),
    ("a = -⟪129Y", "-129 does not fit the type that its suffix names"),
    ("a = ⟪9223372036854775808L", "9223372036854775808 does not fit the type that its suffix names"),
    ("a = ⟪1.5L", "1.5 cannot have this suffix"),
    ("a = ⟪1e", "1e is no number"),
    ("a = ⟪" + "9" * 39, "the number has more than 38 digits"),
    ("a = ⟪0." + "0" * 18 + "1", "the number has more than 18 digits after the point"),
    ("a = 1e100BD", "the number has more than 38 digits"),
    ("a > ⟪9223372036854775808", "this number lies beyond 64 bits; write it as a double, such as 1e20"),
    ("a BETWEEN 0 AND ⟪99999999999999999999", "this number lies beyond 64 bits"),
    ("a BETWEEN -⟪99999999999999999999 AND 0", "this number lies beyond 64 bits"),
    ("⟪a IN (1, 'x')", "the list mixes whole number and string; write all of them in one type"),
    ("⟪a IN (TRUE, NULL, 1)", "the list mixes boolean and whole number"),
    ("⟪arrays_overlap(a, array('x', DATE '2024-01-01'))", "the list mixes string and date"),
    (
        "⟪a IN (" + "9" * 30 + ".5, 0.000000000000001)",
        "no decimal of 38 digits holds all numbers of the list",
    ),
    ("a = DATE ⟪'2024-02-30'", "'2024-02-30' is no date; write DATE '2024-12-31'"),
    ("a = TIMESTAMP ⟪'now'", "'now' is no timestamp; write TIMESTAMP '2024-12-31'"),
    ("a = TIMESTAMP ⟪'0001-01-01 00:00:00+18:00'", "is no timestamp"),
    ("a = TIMESTAMP ⟪'9999-12-31 23:59:59-18:00'", "is no timestamp"),
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
        parse_filter("age > 30 AND topic = 'news' AND size + 1 = 2 AND colour = 'red'")
    assert str(caught.value) == (
        "'+' is not part of the filter language here, at character 38: "
        "…c = 'news' AND size ⟪+ 1 = 2 AND colour =…"
    )
