"""An expression of XPath 1.0 as a tree of frozen values.

Operators of one precedence are one `Chain`, so that a long row of them is no deep tree. The type of an
expression is known without a document, because filters have no variables.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

NODES, BOOLEAN, NUMBER, STRING = "nodes", "boolean", "number", "string"
"""The types of XPath 1.0."""

NAMED, TEXTS, ANY_NODE, COMMENTS, INSTRUCTIONS = "name", "text", "node", "comment", "processing-instruction"
"""What a step asks for: a name, or a kind of node."""

LEVELS = {
    "or": 1,
    "and": 2,
    **dict.fromkeys(("=", "!="), 3),
    **dict.fromkeys(("<", "<=", ">", ">="), 4),
    **dict.fromkeys(("+", "-"), 5),
    **dict.fromkeys(("*", "div", "mod"), 6),
    "|": 8,
}
"""The operators, by how tight they bind; a minus before an operand is 7."""
COMPARING = frozenset(("=", "!=", "<", "<=", ">", ">="))

AXES = frozenset(
    (
        *("ancestor", "ancestor-or-self", "attribute", "child", "descendant", "descendant-or-self"),
        *("following", "following-sibling", "namespace", "parent", "preceding", "preceding-sibling", "self"),
    )
)


@dataclass(frozen=True, slots=True)
class Literal:
    """A text."""

    value: str


@dataclass(frozen=True, slots=True)
class Number:
    """A number, and how it is written."""

    value: float
    text: str


@dataclass(frozen=True, slots=True)
class Negative:
    """A minus before an operand."""

    operand: Expression


@dataclass(frozen=True, slots=True)
class Chain:
    """Operands with operators of one precedence between them, from left to right."""

    signs: tuple[str, ...]
    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Call:
    """A function with its arguments."""

    name: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class NodeTest:
    """What a step asks for.

    A name has a namespace, "" for none and None for any, and a local name, None for any. An instruction may
    have a target as its name.
    """

    kind: str
    space: str | None = None
    local: str | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """An axis, what is asked for, and conditions one after another."""

    axis: str
    test: NodeTest
    conditions: tuple[Expression, ...] = ()


@dataclass(frozen=True, slots=True)
class Filtered:
    """Nodes of an expression with conditions, counted in document order: `(//a)[1]`."""

    operand: Expression
    conditions: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Path:
    """Steps from a start: an expression, the document (`absolute`), or else the node at hand."""

    steps: tuple[Step, ...]
    absolute: bool = False
    start: Expression | None = None


Expression: TypeAlias = Literal | Number | Negative | Chain | Call | Filtered | Path

ANYWHERE = Step("descendant-or-self", NodeTest(ANY_NODE))
"""What // stands for."""
HERE = Step("self", NodeTest(ANY_NODE))
ABOVE = Step("parent", NodeTest(ANY_NODE))

FUNCTIONS: dict[str, tuple[str, int, int | None]] = {
    "last": (NUMBER, 0, 0),
    "position": (NUMBER, 0, 0),
    "count": (NUMBER, 1, 1),
    "id": (NODES, 1, 1),
    "local-name": (STRING, 0, 1),
    "namespace-uri": (STRING, 0, 1),
    "name": (STRING, 0, 1),
    "string": (STRING, 0, 1),
    "concat": (STRING, 2, None),
    "starts-with": (BOOLEAN, 2, 2),
    "contains": (BOOLEAN, 2, 2),
    "substring-before": (STRING, 2, 2),
    "substring-after": (STRING, 2, 2),
    "substring": (STRING, 2, 3),
    "string-length": (NUMBER, 0, 1),
    "normalize-space": (STRING, 0, 1),
    "translate": (STRING, 3, 3),
    "boolean": (BOOLEAN, 1, 1),
    "not": (BOOLEAN, 1, 1),
    "true": (BOOLEAN, 0, 0),
    "false": (BOOLEAN, 0, 0),
    "lang": (BOOLEAN, 1, 1),
    "number": (NUMBER, 0, 1),
    "sum": (NUMBER, 1, 1),
    "floor": (NUMBER, 1, 1),
    "ceiling": (NUMBER, 1, 1),
    "round": (NUMBER, 1, 1),
}
"""The functions of XPath 1.0: the type of what they return, the fewest arguments and the most."""
OF_NODES = frozenset(("count", "sum", "local-name", "namespace-uri", "name"))
"""Functions whose argument is a path."""


def is_positional(expression: Expression) -> bool:
    """Tell whether a condition is about the place of a node among others: a number, or position(), last().

    >>> is_positional(Call("not", (Call("position", ()),))), is_positional(Literal("x"))
    (True, False)
    """
    return type_of(expression) == NUMBER or _asks_place(expression)


def _asks_place(expression: Expression) -> bool:
    """Tell whether position() or last() of the node at hand is asked for; other brackets have their own."""
    match expression:
        case Call(name, arguments):
            return name in ("position", "last") or any(map(_asks_place, arguments))
        case Chain(_, operands):
            return any(map(_asks_place, operands))
        case Negative(operand) | Filtered(operand):
            return _asks_place(operand)
        case Path(_, _, start) if start is not None:
            return _asks_place(start)
        case _:
            return False


def type_of(expression: Expression) -> str:
    """Tell the type of an expression.

    >>> type_of(Chain(("+",), (Number(1.0, "1"), Number(2.0, "2"))))
    'number'
    """
    match expression:
        case Literal():
            return STRING
        case Number() | Negative():
            return NUMBER
        case Chain(signs):
            level = LEVELS[signs[0]]
            return BOOLEAN if level <= 4 else NODES if level == 8 else NUMBER
        case Call(name):
            return FUNCTIONS[name][0]
        case _:
            return NODES
