"""Filters back to text that parses to the same tree."""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import replace
from typing import assert_never

from headgate.core.casts import INT64_MAX, INT64_MIN
from headgate.records.computed import LOWER
from headgate.records.language import model

KEYWORDS = frozenset(
    re.findall(
        r"\w+",
        """alter and any array as between call case cast create cross current_date current_path
        current_timestamp current_user distinct drop else escape except execute exists explain false
        fetch for from glob grant having if ilike in inner insert intersect interval into is isnull join
        lateral like list map minus not notnull null nullable object on optimize or outer
        partitioned_by prepare qualify range regexp rename returning revoke rlike rollback select
        serdeproperties session_user show struct tablesample then true uncache union using vacuum
        values when where with xor""",
    )
)
"""Words that the parser or Spark reads as something else than a name; in backticks they are names."""

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_ESCAPES = {
    "\\": "\\\\",
    "'": "\\'",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    # Of three digits: those that follow would be taken for its own.
    "\0": "\\000",
    "\x1a": "\\Z",
    "\b": "\\b",
}
_ESCAPED = str.maketrans(_ESCAPES)
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def print_filter(expression: model.Expression) -> str:
    """Write a filter so that parsing gives the same tree.

    >>> from headgate.records.language.model import NULL, Attribute, In, Literal, LiteralType, Not
    >>> print_filter(Not(In(Attribute.of("age"), (Literal(LiteralType.INT, 1), NULL))))
    'age NOT IN (1, NULL)'
    """
    match expression:
        case model.And(children):
            return " AND ".join(_operand(child, (model.And, model.Or)) for child in children)
        case model.Or(children):
            return " OR ".join(_operand(child, (model.Or,)) for child in children)
        case model.Not(model.In(attribute, literals)):
            return f"{print_attribute(attribute)} NOT IN ({_list(literals)})"
        case model.Not(model.Between(attribute, low, high)):
            return f"{print_attribute(attribute)} NOT BETWEEN {print_literal(low)} AND {print_literal(high)}"
        case model.Not(model.IsNull(attribute)):
            return f"{print_attribute(attribute)} IS NOT NULL"
        case model.Not(model.Like() as like):
            return _like(like, "NOT ")
        case model.Not(model.HasWord() as has):
            return _word(has, "NOT ")
        case model.Not(child):
            return f"NOT {_operand(child, (model.And, model.Or, model.Not))}"
        case model.Constant(value):
            return "NULL" if value is None else str(value).upper()
        case model.Comparison(op, attribute, literal):
            return f"{print_attribute(attribute)} {op.value} {print_literal(literal)}"
        case model.Between(attribute, low, high):
            return f"{print_attribute(attribute)} BETWEEN {print_literal(low)} AND {print_literal(high)}"
        case model.In(attribute, literals):
            return f"{print_attribute(attribute)} IN ({_list(literals)})"
        case model.Like():
            return _like(expression, "")
        case model.HasWord():
            return _word(expression, "")
        case model.IsNull(attribute):
            return f"{print_attribute(attribute)} IS NULL"
        case model.Truth(attribute):
            return print_attribute(attribute)
        case model.ArrayContains(attribute, literal):
            return f"array_contains({print_attribute(attribute)}, {print_literal(literal)})"
        case model.ArraysOverlap(attribute, literals):
            return f"arrays_overlap({print_attribute(attribute)}, array({_list(literals)}))"
        case model.ForAll(attribute, literals, nulls):
            tests = (["x IS NULL"] if nulls else []) + ([f"x IN ({_list(literals)})"] if literals else [])
            return f"forall({print_attribute(attribute)}, x -> {' OR '.join(tests)})"
    assert_never(expression)


def print_attribute(attribute: model.Attribute) -> str:
    """Write a dotted name, quoted where it must be.

    >>> print_attribute(model.Attribute.of("user", "first name"))
    'user.`first name`'
    """
    if attribute.expression is not None:
        return attribute.expression.operand
    name = ".".join(name_text(name) for name in attribute.names)
    return f"{attribute.function.lower()}({name})" if attribute.function else name


def print_literal(literal: model.Literal) -> str:
    """Write a literal of the same type and value.

    >>> print_literal(model.Literal(model.LiteralType.TIMESTAMP, 1_500_000))
    "TIMESTAMP '1970-01-01 00:00:01.500000Z'"
    """
    value = literal.value
    match literal.type:
        case model.LiteralType.NULL:
            return "NULL"
        case model.LiteralType.BOOL:
            return "TRUE" if value else "FALSE"
        case model.LiteralType.DECIMAL:
            text = f"{value:f}"
            # A whole number within 64 bits would be read as INT.
            whole = "." not in text and INT64_MIN <= int(text) <= INT64_MAX
            return f"{text}BD" if whole else text
        case model.LiteralType.DOUBLE:
            text = repr(float(value)) if isinstance(value, float) else str(value)
            return text if "e" in text else f"{text}e0"
        case model.LiteralType.INT:
            return str(value)
        case model.LiteralType.STRING:
            return _quote(str(value))
        case model.LiteralType.DATE | model.LiteralType.TIMESTAMP:
            assert isinstance(value, int)
            moment = _EPOCH + dt.timedelta(microseconds=value)
            if literal.type is model.LiteralType.DATE:
                return f"DATE '{moment.year:04}-{moment:%m-%d}'"
            return f"TIMESTAMP '{moment.year:04}-{moment:%m-%d %H:%M:%S.%f}Z'"
    assert_never(literal.type)


def _operand(child: model.Expression, weaker: tuple[type, ...]) -> str:
    text = print_filter(child)
    return f"({text})" if isinstance(child, weaker) else text


def name_text(name: str) -> str:
    """Write one part of a name, in backticks where it needs them."""
    if _PLAIN.match(name) and name.lower() not in KEYWORDS:
        return name
    return "`" + name.replace("`", "``") + "`"


def _list(literals: tuple[model.Literal, ...]) -> str:
    return ", ".join(print_literal(literal) for literal in literals)


def _like(like: model.Like, sign: str) -> str:
    """Write LIKE, or ILIKE where that says the same."""
    folded = like.attribute.function == LOWER and like.pattern == like.pattern.lower()
    name = print_attribute(replace(like.attribute, function="") if folded else like.attribute)
    return f"{name} {sign}{'ILIKE' if folded else 'LIKE'} {_pattern(like.pattern, like.escape)}"


def _word(has: model.HasWord, sign: str) -> str:
    # A word has no character that needs an escape.
    return f"{print_attribute(has.attribute)} {sign}RLIKE '(?i)\\\\b{has.word}\\\\b'"


def _pattern(pattern: str, escape: str) -> str:
    quoted = _quote(pattern)
    return quoted if escape == "\\" else f"{quoted} ESCAPE {_quote(escape)}"


def _quote(text: str) -> str:
    return f"'{text.translate(_ESCAPED)}'"
