"""Expressions back to text that parses to the same tree; the text is the identity of a computed attribute."""

from __future__ import annotations

from typing import assert_never

from headgate.records.expressions import model
from headgate.records.language.printing import name_text, print_literal

COMPARISONS = frozenset({"=", "!=", "<", "<=", ">", ">=", "<=>"})
SIGNS = COMPARISONS | {"+", "-", "*", "/", "%", "div", "||", "and", "or"}
"""Operators that stand between two operands."""
INTERVALS = {
    "week": 604_800_000_000,
    "day": 86_400_000_000,
    "hour": 3_600_000_000,
    "minute": 60_000_000,
    "second": 1_000_000,
    "millisecond": 1000,
    "microsecond": 1,
}
"""Microseconds of the units of intervals; a day has as many hours everywhere, because the zone is UTC."""
_WORDS = frozenset({"not", "negative", "is null", "in", "between", "like", "ilike", "rlike"})
_AROUND = _WORDS | {"element", "field"}
"""What is written around its first operand."""
_LOOSE = SIGNS | _WORDS | {model.SHIFT_CALL}


_MORE_KEYWORDS = {"div", "end", "else", "full", "order", "regexp"}
_MORE_KEYWORDS |= {"current_date", "current_timestamp", "current_user", "session_user", "localtimestamp"}
"""Words that are names in filters, and none in expressions."""


def print_node(node: model.Node) -> str:
    """Write an expression.

    >>> from headgate.records.expressions.parse import parse_node
    >>> print_node(parse_node("Price*2 > ( a+1 )"))
    '(price * 2) > (a + 1)'
    """
    match node:
        case model.Value(literal, wide):
            return f"{print_literal(literal)}{'L' * wide}"
        case model.Name(path):
            return ".".join(map(_name, path))
        case model.Variable(name):
            return _name(name)
        case model.Lambda(variable, body):
            return f"{_name(variable)} -> {print_node(body)}"
        case model.Cast(child, to):
            return f"cast({print_node(child)} AS {str(to).upper()})"
        case model.Call(name, arguments):
            return _call(name, arguments)
    assert_never(node)


def _call(name: str, arguments: tuple[model.Node, ...]) -> str:
    if name in SIGNS:
        return f" {name.upper()} ".join(map(print_operand, arguments))
    if name == model.TIME_CALL:
        return model.TIME_CALL
    if name == model.SHIFT_CALL:
        return f"{print_node(arguments[0])} {_interval(arguments[1])}"
    if name == "case":
        return _case(arguments)
    if name not in _AROUND or (name == "negative" and isinstance(arguments[0], model.Value)):
        # A minus before a number would be part of it.
        return f"{name}({', '.join(map(print_node, arguments))})"
    return _around(name, print_operand(arguments[0]), arguments)


def _around(name: str, first: str, arguments: tuple[model.Node, ...]) -> str:
    """Write an operator with its first operand, which is printed once, or time would double each level."""
    match name:
        case "not":
            return f"NOT {first}"
        case "negative":
            return f"- {first}"
        case "is null":
            return f"{first} IS NULL"
        case "in":
            return f"{first} IN ({', '.join(map(print_node, arguments[1:]))})"
        case "between":
            return f"{first} BETWEEN {print_operand(arguments[1])} AND {print_operand(arguments[2])}"
        case "element":
            return f"{first}[{print_node(arguments[1])}]"
        case "field":
            field = arguments[1]
            assert isinstance(field, model.Value)
            return f"{first}.{_name(str(field.literal.value))}"
    tail = f" ESCAPE {print_node(arguments[2])}" if len(arguments) > 2 else ""
    return f"{first} {name.upper()} {print_operand(arguments[1])}{tail}"


def _interval(node: model.Node) -> str:
    """Write microseconds as an interval of the greatest unit that holds them."""
    assert isinstance(node, model.Value)
    micros = node.literal.value
    assert isinstance(micros, int)
    unit = next(unit for unit, size in INTERVALS.items() if micros % size == 0 and unit != "week")
    return f"{'-' if micros < 0 else '+'} INTERVAL {abs(micros) // INTERVALS[unit]} {unit.upper()}"


def _case(arguments: tuple[model.Node, ...]) -> str:
    pairs = zip(arguments[::2], arguments[1::2], strict=False)
    parts = [f"WHEN {print_node(when)} THEN {print_node(then)}" for when, then in pairs]
    if len(arguments) % 2:
        parts.append(f"ELSE {print_node(arguments[-1])}")
    return f"CASE {' '.join(parts)} END"


def _name(name: str) -> str:
    return f"`{name}`" if name in _MORE_KEYWORDS else name_text(name)


def print_operand(node: model.Node) -> str:
    """Write an expression as an operand of another."""
    text = print_node(node)
    return f"({text})" if isinstance(node, model.Call) and node.name in _LOOSE else text
