"""Expressions as a small tree of frozen dataclasses.

    Node = Value | Name | Variable | Call | Cast | Lambda

Operators are calls, named by their sign: `a + 1` is Call("+", (Name(("a",)), Value(…))). What they mean is in
the table of functions; nothing here knows it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from headgate.core.event import WRITTEN_TIME

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headgate.core.values import Path
    from headgate.records.expressions.types import Type
    from headgate.records.language.model import Literal

MAX_NODES = 512
"""Parts of one expression: more are refused."""
MAX_DEPTH = 64
"""Parts within parts."""
MAX_LAMBDAS = 3
"""Functions of elements within each other."""


@dataclass(frozen=True)
class Value:
    """A literal; a `wide` whole number is a BIGINT though it is small, as 5L is."""

    literal: Literal
    wide: bool = False


@dataclass(frozen=True)
class Narrow(Value):
    """A number of a type that only attributes are compared with, such as 5S: no expression has one."""

    start: int = field(default=0, compare=False)


@dataclass(frozen=True)
class Name:
    """An attribute, by its folded path, and as it is written."""

    path: Path
    spelled: tuple[str, ...] = field(default=(), compare=False)


@dataclass(frozen=True)
class Variable:
    """What a function of elements is called with, and perhaps a field in it."""

    name: str


@dataclass(frozen=True)
class Call:
    """A function or an operator, and what it is applied to."""

    name: str
    arguments: tuple[Node, ...]


@dataclass(frozen=True)
class Cast:
    """`cast(child AS type)`, or `try_cast`, which is the same here."""

    child: Node
    to: Type


@dataclass(frozen=True)
class Lambda:
    """`variable -> body`."""

    variable: str
    body: Node


TIME_CALL, SHIFT_CALL = WRITTEN_TIME, ":shift"
"""The calls of the event's time, and of a time that is so many microseconds later; no text calls them so."""
Node: TypeAlias = Value | Name | Variable | Call | Cast | Lambda


def children(node: Node) -> tuple[Node, ...]:
    """List the parts of a node."""
    match node:
        case Call(_, arguments):
            return arguments
        case Cast(child, _):
            return (child,)
        case Lambda(_, body):
            return (body,)
    return ()


def walk(node: Node) -> Iterator[Node]:
    """List a node and all below it, from left to right."""
    stack = [node]
    while stack:
        node_ = stack.pop()
        yield node_
        stack.extend(reversed(children(node_)))


def names(node: Node) -> tuple[Path, ...]:
    """List the attributes that an expression reads, each once."""
    return tuple(dict.fromkeys(each.path for each in walk(node) if isinstance(each, Name)))
