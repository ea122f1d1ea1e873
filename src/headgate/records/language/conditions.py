"""Filters with expressions in them: trees of expressions to the filter model.

What stands beside literals becomes a computed attribute, so that the index knows its values; what does not,
such as `a < b`, becomes one that is TRUE or FALSE.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, NoReturn

from headgate.core.casts import INT64_MAX, INT64_MIN
from headgate.core.text.words import one_word
from headgate.errors import FilterError
from headgate.records.expressions import types
from headgate.records.expressions.expression import Expression, Form
from headgate.records.expressions.model import Call, Cast, Lambda, Name, Value, Variable, names
from headgate.records.expressions.printing import COMPARISONS, print_node
from headgate.records.expressions.texts import separator_of
from headgate.records.language import patterns
from headgate.records.language.literals import fits_one_decimal
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
    HasWord,
    In,
    IsNull,
    Like,
    Literal,
    LiteralType,
    Not,
    Op,
    Or,
    Truth,
    common_type,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headgate.records.expressions.model import Node
    from headgate.records.language.model import Expression as Filter

_OPS = {op.value: op for op in Op}
_MIRROR = {Op.LT: Op.GT, Op.LE: Op.GE, Op.GT: Op.LT, Op.GE: Op.LE}
_AROUND = {"contains": "%{}%", "startswith": "{}%", "endswith": "%{}"}


class Conditions:
    """Translates the tree of one text."""

    def __init__(self, text: str) -> None:
        self._text = text

    def filter(self, node: Node) -> Filter:
        """Translate a condition."""
        match node:
            case Call("and", parts):
                return And(tuple(map(self.filter, parts)))
            case Call("or", parts):
                return Or(tuple(map(self.filter, parts)))
            case Call("not", (part,)):
                return Not(self.filter(part))
            case Value(Literal(LiteralType.BOOL | LiteralType.NULL, value), _):
                assert not isinstance(value, int | float | Decimal | str) or isinstance(value, bool)
                return Constant(value)
            case Name():
                return Truth(self.operand(node))
            case Call():
                return self._asked(node) or self._truth(node)
        return self._truth(node)

    def _asked(self, node: Call) -> Filter | None:
        """Translate what asks something of one value that literals say; None if this does not."""
        name, parts = node.name, node.arguments
        if name in COMPARISONS:
            return self._comparison(_OPS[name], *parts)
        match name, parts:
            case "is null", (part,):
                return IsNull(self.operand(part))
            case "isnotnull", (part,):
                return Not(IsNull(self.operand(part)))
            case "between", (part, low, high):
                ends = literal_of(low), literal_of(high)
                if ends[0] is None or ends[1] is None or not self._apart(part, [ends[0], ends[1]]):
                    return None
                return Between(self.operand(part), self._ordered(ends[0]), self._ordered(ends[1]))
            case "in", (part, *items):
                literals = self._literals(items)
                if literals is None or not self._apart(part, literals):
                    return None
                return In(self.operand(part), literals)
            case "like" | "ilike", (part, pattern, *escape):
                return self._like(name, part, _string(pattern), _string(escape[0]) if escape else "\\")
            case "contains" | "startswith" | "endswith", (
                part,
                Value(Literal(LiteralType.STRING, wanted), _),
            ):
                return self._like("like", part, _AROUND[name].format(patterns.escaped(str(wanted))), "\\")
            case "rlike", (Name() as part, pattern):
                return self._rlike(part, _string(pattern))
            case "array_contains", (Name() as part, item):
                literal = literal_of(item)
                return None if literal in {None, NULL} else ArrayContains(self.operand(part), literal)
            case "arrays_overlap", (Name() as part, Call("array", items)):
                literals = self._literals(items)
                return None if literals is None else ArraysOverlap(self.operand(part), literals)
            case "forall", (Name() as part, Lambda() as test):
                return self._forall(part, test)
        return None

    def _comparison(self, op: Op, left: Node, right: Node) -> Filter | None:
        low, high = literal_of(left), literal_of(right)
        if low is not None and high is not None:
            self._refuse("this compares two literals, so no event matters; write TRUE or FALSE")
        if low is not None:
            left, high, op = right, low, _MIRROR.get(op, op)
        if high is None or not self._apart(left, [high]):
            return None
        return Comparison(op, self.operand(left), self._ordered(high) if op in _MIRROR else high)

    def _ordered(self, literal: Literal) -> Literal:
        """Refuse a number beyond 64 bits beside <: Spark folds it to TRUE, or not, by a type."""
        if isinstance(literal.value, Decimal) and not INT64_MIN <= literal.value <= INT64_MAX:
            self._refuse(f"{literal.value} lies beyond 64 bits; write it as a double, such as 1e20")
        return literal

    def _apart(self, node: Node, literals: Sequence[Literal]) -> bool:
        """Tell whether values and literals meet as those of attributes do; a DATE meets a text as a DATE."""
        return not (any(literal.type is LiteralType.STRING for literal in literals) and may_be_date(node))

    def _literals(self, nodes: Sequence[Node]) -> tuple[Literal, ...] | None:
        found = [literal_of(node) for node in nodes]
        literals = tuple(literal for literal in found if literal is not None)
        if len(literals) < len(found) or common_type(literals) is None or not fits_one_decimal(literals):
            return None
        return literals

    def _like(self, name: str, part: Node, pattern: str, escape: str) -> Filter:
        if name == "ilike":
            pattern = pattern.lower()
        wrong = patterns.problem(pattern, escape)
        if wrong:
            self._refuse(wrong)
        if not isinstance(part, Name) and static_type(part) != types.STRING:
            # LIKE sees some values only; written as texts, it sees all.
            part = Cast(part, types.STRING)
        if name == "ilike":
            part = Call("lower", (part,))
        return Like(self.operand(part), pattern, escape)

    def _rlike(self, part: Name, pattern: str) -> Filter | None:
        """Translate one whole word, or a text that is no more than that; None if it is another expression."""
        word = one_word(pattern)
        if word is not None:
            return HasWord(self.operand(part), word)
        plain = separator_of(pattern)
        return None if plain is None else Like(self.operand(part), f"%{patterns.escaped(plain)}%")

    def _forall(self, part: Name, test: Lambda) -> Filter | None:
        variable = Variable(test.variable)
        body = test.body.arguments if isinstance(test.body, Call) and test.body.name == "or" else (test.body,)
        rest = [each for each in body if each != Call("is null", (variable,))]
        literals: tuple[Literal, ...] | None = ()
        match rest:
            case [Call("in", (first, *items))] if first == variable:
                literals = self._literals(items)
            case [Call("=", (first, item))] if first == variable:
                literals = self._literals([item])
            case []:
                pass
            case _:
                return None
        if literals is None:
            return None
        return ForAll(self.operand(part), literals, nulls=len(rest) < len(body))

    def _truth(self, node: Node) -> Filter:
        kind = static_type(node)
        if kind not in {types.BOOL, types.VOID} or isinstance(node, Value):
            self._refuse(f"a condition is expected, and {print_node(node)[:60]} is of type {kind}")
        return Truth(self.operand(node))

    def operand(self, node: Node) -> Attribute:
        """Return the attribute, or the computed one, that a node is."""
        match node:
            case Name(_, spelled):
                return Attribute.of(*spelled)
            case Call("lower", (Name(_, spelled),)):
                return Attribute.of(*spelled).lowered
        found = Expression.of(node, self._text)
        if not names(node):
            self._refuse(f"{found.text[:60]} names no attribute, so no event matters; write its value")
        return Attribute.computed(found)

    def _refuse(self, reason: str) -> NoReturn:
        raise FilterError(reason, self._text, None)


def literal_of(node: Node) -> Literal | None:
    """Return the literal that a node is; None if it is none."""
    return node.literal if isinstance(node, Value) else None


def _string(node: Node) -> str:
    assert isinstance(node, Value)
    return str(node.literal.value)


def static_type(node: Node) -> types.Type:
    """Return the type that an expression has whatever its attributes are; VOID if they decide it."""
    paths = names(node)
    return Form(node, paths, (types.VOID,) * len(paths)).type


def may_be_date(node: Node) -> bool:
    """Tell whether an expression may give a DATE."""
    match node:
        case Name() | Value():
            return False
        case Cast(_, to):
            return to == types.DATE
        case Call("case" | "if" | "coalesce" | "nullif" | "nvl2" | "greatest" | "least", parts):
            return any(may_be_date(part) for part in parts) or any(
                isinstance(part, Value) and part.literal.type is LiteralType.DATE for part in parts
            )
    return static_type(node) == types.DATE
