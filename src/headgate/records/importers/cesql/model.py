"""Expressions of CloudEvents SQL as a small tree."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias


class Type(Enum):
    """The types of values."""

    BOOLEAN = "Boolean"
    INTEGER = "Integer"
    STRING = "String"


@dataclass(frozen=True)
class Value:
    """A literal."""

    value: bool | int | str
    at: int


@dataclass(frozen=True)
class Name:
    """An attribute of the event."""

    name: str
    at: int


@dataclass(frozen=True)
class Not:
    """`NOT x`."""

    child: Node
    at: int


@dataclass(frozen=True)
class Minus:
    """`-x`."""

    child: Node
    at: int


@dataclass(frozen=True)
class Like:
    """`x [NOT] LIKE 'pattern'`."""

    child: Node
    pattern: str
    negated: bool
    at: int


@dataclass(frozen=True)
class Exists:
    """`EXISTS name`."""

    name: str
    at: int


@dataclass(frozen=True)
class In:
    """`x [NOT] IN (y, …)`."""

    child: Node
    items: tuple[Node, ...]
    negated: bool
    at: int


@dataclass(frozen=True)
class Binary:
    """`x sign y`; the sign is one of LOGIC, COMPARISONS or MATH."""

    sign: str
    left: Node
    right: Node
    at: int


@dataclass(frozen=True)
class Call:
    """`NAME(x, …)`."""

    name: str
    arguments: tuple[Node, ...]
    at: int


Node: TypeAlias = Value | Name | Not | Minus | Like | Exists | In | Binary | Call

INTEGERS = range(-(2**31), 2**31)
LOGIC = ("AND", "OR", "XOR")
COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
ORDER = ("<", "<=", ">", ">=")
MATH = ("+", "-", "*", "/", "%")
_B, _I, _S = Type.BOOLEAN, Type.INTEGER, Type.STRING
FUNCTIONS: dict[str, tuple[tuple[Type | None, ...], int | None, Type]] = {
    "LENGTH": ((_S,), 1, _I),
    "CONCAT": ((_S,), None, _S),
    "CONCAT_WS": ((_S, _S), None, _S),
    "LOWER": ((_S,), 1, _S),
    "UPPER": ((_S,), 1, _S),
    "TRIM": ((_S,), 1, _S),
    "LEFT": ((_S, _I), 2, _S),
    "RIGHT": ((_S, _I), 2, _S),
    "SUBSTRING": ((_S, _I, _I), 3, _S),
    "ABS": ((_I,), 1, _I),
    "INT": ((_I,), 1, _I),
    "BOOL": ((_B,), 1, _B),
    "STRING": ((_S,), 1, _S),
    "IS_INT": ((None,), 1, _B),
    "IS_BOOL": ((None,), 1, _B),
}
"""Types of parameters (the last for all that follow), how many at most, and the type of the result."""
BLANKS = (
    " \t\n\v\f\r\u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006"
    "\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)
"""What TRIM takes off."""


def type_of(node: Node) -> Type | None:
    """Return the type of an expression; None for an attribute, whose value has it."""
    match node:
        case Value(value):
            return _B if isinstance(value, bool) else _I if isinstance(value, int) else _S
        case Name():
            return None
        case Minus():
            return _I
        case Binary(sign):
            return _I if sign in MATH else _B
        case Call(name):
            return FUNCTIONS[name][2]
    return _B
