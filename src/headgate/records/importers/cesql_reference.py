"""What an expression of CloudEvents SQL 1.0 means, slowly and obviously.

An error ends the evaluation, and a filter with an error does not hold. AND and OR look at their right
side only if the left one does not decide.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from headgate.records.importers import cesql_parse as tree

if TYPE_CHECKING:
    from collections.abc import Mapping


REQUIRED = frozenset({"id", "source", "specversion", "type"})
"""Attributes that every CloudEvent has."""


class Wrong(Exception):  # noqa: N818 -- an error of the language, not of the program
    """An error of an expression."""


def holds(node: tree.Node, event: Mapping[str, Any]) -> bool:
    """Tell whether an event passes: the value, cast to Boolean, is true, as the Subscriptions API says.

    >>> from headgate.records.importers.cesql_parse import parse
    >>> holds(parse("hop < ttl AND EXISTS subject"), {"hop": "1", "ttl": 9, "subject": "x"})
    True
    """
    try:
        return to_bool(evaluate(node, event))
    except Wrong:
        return False


def evaluate(node: tree.Node, event: Mapping[str, Any]) -> bool | int | str:
    """Return the value of an expression; raise Wrong for an error."""
    match node:
        case tree.Value(value):
            return value
        case tree.Name(name):
            if event.get(name) is None:
                raise Wrong(f"the event has no {name}")
            value_ = event[name]
            assert isinstance(value_, bool | int | str)
            return value_
        case tree.Not(child):
            return not to_bool(evaluate(child, event))
        case tree.Minus(child):
            return _within(-to_int(evaluate(child, event)))
        case tree.Exists(name):
            return name in REQUIRED or event.get(name) is not None
        case tree.Like(child, pattern):
            return _like(to_text(evaluate(child, event)), pattern)
        case tree.In(child, items):
            left = evaluate(child, event)
            equal = [_equal(left, cast(evaluate(item, event), _type(left))) for item in items]
            return any(equal)
        case tree.Binary(sign, left, right):
            return _binary(sign, left, right, event)
        case tree.Call(name, arguments):
            types = tree.FUNCTIONS[name][0]
            given = [evaluate(each, event) for each in arguments]
            wanted = [types[min(index, len(types) - 1)] for index in range(len(given))]
            if name in {"IS_INT", "IS_BOOL"}:
                return _is(given[0], tree.Type.INTEGER if name == "IS_INT" else tree.Type.BOOLEAN)
            return _called(name, [cast(each, to) for each, to in zip(given, wanted, strict=True) if to])


def _binary(sign: str, left: tree.Node, right: tree.Node, event: Mapping[str, Any]) -> bool | int:
    first = evaluate(left, event)
    if sign in {"AND", "OR", "XOR"}:
        decided = to_bool(first)
        if (sign == "AND" and not decided) or (sign == "OR" and decided):
            return decided
        second = to_bool(evaluate(right, event))
        return decided != second if sign == "XOR" else second
    other = evaluate(right, event)
    if sign in {"=", "!="}:
        return _equal(cast(first, _type(other)), other) == (sign == "=")
    a, b = to_int(first), to_int(other)
    if sign in tree.MATH:
        return _math(sign, a, b)
    return {"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[sign]


def _math(sign: str, a: int, b: int) -> int:
    if sign in "/%":
        if b == 0:
            raise Wrong("division by 0")
        quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        return _within(quotient if sign == "/" else a - quotient * b)
    return _within({"+": a + b, "-": a - b, "*": a * b}[sign])


def _within(value: int) -> int:
    if value not in tree.INTEGERS:
        raise Wrong("the number does not fit into 32 bits")
    return value


def _type(value: bool | int | str) -> tree.Type:
    kind = tree.type_of(tree.Value(value, 0))
    assert kind is not None
    return kind


def _equal(left: bool | int | str, right: bool | int | str) -> bool:
    return type(left) is type(right) and left == right


def cast(value: bool | int | str, to: tree.Type) -> bool | int | str:
    """Cast a value."""
    if to is tree.Type.STRING:
        return to_text(value)
    return to_bool(value) if to is tree.Type.BOOLEAN else to_int(value)


def to_bool(value: bool | int | str) -> bool:
    """Cast to Boolean: a text is true or false in any case, a number is true if it is not 0."""
    if isinstance(value, str):
        if value.lower() not in {"true", "false"}:
            raise Wrong(f"{value!r} is no Boolean")
        return value.lower() == "true"
    return bool(value)


def to_int(value: bool | int | str) -> int:
    """Cast to Integer."""
    if isinstance(value, str):
        if not re.fullmatch(r"[+-]?[0-9]+", value):
            raise Wrong(f"{value!r} is no Integer")
        return _within(int(value))
    return _within(int(value))


def to_text(value: bool | int | str) -> str:
    """Cast to String."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _is(value: bool | int | str, to: tree.Type) -> bool:
    try:
        cast(value, to)
    except Wrong:
        return False
    return True


def _like(text: str, pattern: str) -> bool:
    parts = re.findall(r"\\[%_]|.", pattern, re.DOTALL)
    written = "".join({"%": ".*", "_": "."}.get(part) or re.escape(part[-1]) for part in parts)
    return re.fullmatch(written, text, re.DOTALL) is not None


def _called(name: str, given: list[Any]) -> bool | int | str:
    match name, given:
        case "LENGTH", [text]:
            return len(text)
        case "CONCAT", texts:
            return "".join(texts)
        case "CONCAT_WS", [between, *texts]:
            return str(between).join(texts)
        case "LOWER", [text]:
            return str(text.lower())
        case "UPPER", [text]:
            return str(text.upper())
        case "TRIM", [text]:
            return str(text.strip(tree.BLANKS))
        case "LEFT" | "RIGHT", [text, count]:
            if count < 0:
                raise Wrong(f"{name} takes no negative number")
            return str(text[:count] if name == "LEFT" else text[max(len(text) - count, 0) :])
        case "SUBSTRING", [text, place, *rest]:
            return _substring(text, place, *rest)
        case "ABS", [number]:
            return _within(abs(number))
    (value,) = given
    assert isinstance(value, bool | int | str)
    return value


def _substring(text: str, start: int, count: int | None = None) -> str:
    if abs(start) > len(text) or (count is not None and count < 0):
        raise Wrong("SUBSTRING begins outside of the text, or has a negative length")
    if start == 0:
        return ""
    begin = start - 1 if start > 0 else len(text) + start
    return text[begin:] if count is None else text[begin : begin + count]
