"""A filter as a tree of frozen values: an expression of XPath 1.0, with the marks of tree patterns.

Operators of one precedence are one `Chain`, so that a long row of them is no deep tree. The type of an
expression is known without a document, because filters have no variables. `at` is the number of the word at
which an expression is refused.
"""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from headgate.xml.language.model import COMPARISONS, CONTAINS, STARTS_WITH, WORD

NODES, BOOLEAN, NUMBER, STRING = "nodes", "boolean", "number", "string"
"""The types of XPath 1.0."""

NODE, COMMENT, INSTRUCTION = "node()", "comment()", "processing-instruction"
"""What stands for a label where a kind of nodes is asked for; text() is a label. An instruction may have a
target in its parentheses."""

LEVELS = {
    "or": 1,
    "and": 2,
    **dict.fromkeys(("=", "!="), 3),
    **dict.fromkeys(("<", "<=", ">", ">="), 4),
    **dict.fromkeys(("+", "-"), 5),
    **dict.fromkeys(("*", "div", "mod"), 6),
    "|": (UNION := 8),
}
"""The operators, by how tight they bind."""
NEGATIVE = 7
"""As tight binds a minus before an operand."""
COMPARING = frozenset(COMPARISONS)
TURNED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""What says the same of the operands the other way around."""

AXES = frozenset(
    (
        *("ancestor", "ancestor-or-self", "attribute", "child", "descendant", "descendant-or-self"),
        *("following", "following-sibling", "namespace", "parent", "preceding", "preceding-sibling", "self"),
    )
)


class Literal(Struct, frozen=True, gc=False):
    """A text."""

    value: str
    at: int = -1


class Number(Struct, frozen=True, gc=False):
    """A number, and how it is written."""

    value: float
    text: str
    at: int = -1


class Negative(Struct, frozen=True, gc=False):
    """A minus before an operand."""

    operand: Expression
    at: int = -1


class Chain(Struct, frozen=True, gc=False):
    """Operands with operators of one precedence between them, from left to right."""

    signs: tuple[str, ...]
    operands: tuple[Expression, ...]
    at: int = -1


class Call(Struct, frozen=True, gc=False):
    """A function with its arguments."""

    name: str
    arguments: tuple[Expression, ...]
    at: int = -1


class Step(Struct, frozen=True, gc=False):
    """An axis, a label, and conditions one after another; `returns` is what a mark says, if there is one.

    Labels are those of patterns, and `{urn:x}*`, and kinds of nodes.
    """

    axis: str
    label: str
    conditions: tuple[Expression, ...] = ()
    returns: tuple[str, ...] | None = None
    at: int = -1


class Filtered(Struct, frozen=True, gc=False):
    """What is in parentheses, with conditions: nodes are counted in document order, as in `(//a)[1]`."""

    operand: Expression
    conditions: tuple[Expression, ...]
    at: int = -1


class Path(Struct, frozen=True, gc=False):
    """Steps from a start: an expression, the document (`absolute`), or else the node at hand."""

    steps: tuple[Step, ...]
    absolute: bool = False
    start: Expression | None = None
    at: int = -1


Expression: TypeAlias = Literal | Number | Negative | Chain | Call | Filtered | Path

ANYWHERE = Step("descendant-or-self", NODE)
"""What // stands for."""

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
    WORD: (BOOLEAN, 2, 3),
}
"""The functions of XPath 1.0, and one of patterns: what they return, the fewest arguments and the most."""
PATTERN_CALLS = frozenset((CONTAINS, STARTS_WITH, WORD))
OF_NODES = frozenset(("count", "sum", "local-name", "namespace-uri", "name"))
"""Functions whose argument is a path."""


def local_name(label: str) -> str | None:
    """Return the local name of a label, with the @ of an attribute; None if any will do.

    >>> [local_name(each) for each in ("{urn:x}a", "@*:a", "{urn:x}*", "text()", "@*")]
    ['a', '@a', None, None, None]
    """
    if label[-1] in "*)":
        return None
    sign, name = ("@", label[1:]) if label[0] == "@" else ("", label)
    return sign + name.removeprefix("*:").rpartition("}")[2]


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
            return BOOLEAN if level <= 4 else NODES if level == UNION else NUMBER
        case Call(name):
            return FUNCTIONS[name][0]
        case _:
            return NODES
