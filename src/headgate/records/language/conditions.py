"""Filters with expressions in them: trees of expressions to the filter model.

What stands beside literals becomes a computed attribute, so that the index knows its values; what does not,
such as `a < b`, becomes one that is TRUE or FALSE.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, ClassVar, NoReturn

from headgate.core.casts import INT64_MAX, INT64_MIN
from headgate.core.text.alphabets import one_word
from headgate.errors import FilterError
from headgate.records.expressions import types
from headgate.records.expressions.expression import Expression, Form
from headgate.records.expressions.model import Call, Cast, Lambda, Name, Value, Variable, names
from headgate.records.expressions.parse import check_size
from headgate.records.expressions.printing import print_node
from headgate.records.expressions.texts import separator_of
from headgate.records.language import model, patterns
from headgate.records.language.literals import LiteralError, fits_one_decimal, moment_of, negated

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from headgate.records.expressions.model import Node

_OPS = {op.value: op for op in model.Op}
_MIRROR = {_OPS[sign]: _OPS[other] for sign, other in (("<", ">"), ("<=", ">="), (">", "<"), (">=", "<="))}
_AROUND = {"contains": "%{}%", "startswith": "{}%", "endswith": "%{}"}


class Conditions:
    """Translates the tree of one text."""

    def __init__(self, text: str, place: Callable[[Node], int | None]) -> None:
        self._text = text
        self._place = place

    def filter(self, node: Node) -> model.Expression:
        """Translate a condition."""
        if isinstance(node, Call):
            asked = self._ASKED.get(node.name)
            translated = None if asked is None else asked(self, node.name, *node.arguments)
            return self._truth(node) if translated is None else translated
        if isinstance(node, Name):
            return model.Truth(self.operand(node))
        if isinstance(node, Value):
            kind, value = node.literal.type, node.literal.value
            if kind is not model.LiteralType.BOOL and kind is not model.LiteralType.NULL:
                self.refuse("a Boolean expression is expected here, not a literal", node)
            return model.Constant(None if value is None else bool(value))
        return self._truth(node)

    def _and(self, _name: str, *parts: Node) -> model.Expression:
        return model.And(tuple(map(self.filter, parts)))

    def _or(self, _name: str, *parts: Node) -> model.Expression:
        return model.Or(tuple(map(self.filter, parts)))

    def _not(self, _name: str, part: Node) -> model.Expression:
        return model.Not(self.filter(part))

    def _comparison(self, name: str, left: Node, right: Node) -> model.Expression | None:
        op = _OPS[name]
        low, high = literal_of(left), literal_of(right)
        if low is not None:
            if high is not None:
                self.refuse("this compares two literals, so no event matters; write TRUE or FALSE", left)
            left, right, high, op = right, left, low, _MIRROR.get(op, op)
        if high is None or not self._apart(left, high):
            return None
        if op in _MIRROR:
            self._check_order(high, right)
        return model.Comparison(op, self.operand(left), high)

    def _check_order(self, literal: model.Literal, node: Node) -> None:
        """Refuse a number beyond 64 bits to the right of <, <=, >, >= or in BETWEEN.

        Spark folds `bigint < 99999999999999999999` to TRUE, also for NULL; whether it would depends on a
        type that we do not know, so we refuse to guess.
        """
        if isinstance(literal.value, Decimal) and not INT64_MIN <= literal.value <= INT64_MAX:
            self.refuse("this number lies beyond 64 bits; write it as a double, such as 1e20", node)

    def _apart(self, node: Node, *literals: model.Literal) -> bool:
        """Tell whether values and literals meet as those of attributes do; a DATE meets a text as a DATE."""
        return isinstance(node, Name) or not (
            any(literal.type is model.LiteralType.STRING for literal in literals) and self._may_be_date(node)
        )

    def _null(self, _name: str, part: Node) -> model.Expression:
        return model.IsNull(self.operand(part))

    def _not_null(self, _name: str, part: Node) -> model.Expression:
        return model.Not(model.IsNull(self.operand(part)))

    def _between(self, _name: str, part: Node, low: Node, high: Node) -> model.Expression | None:
        first, last = literal_of(low), literal_of(high)
        if first is None or last is None or not self._apart(part, first, last):
            return None
        self._check_order(first, low)
        self._check_order(last, high)
        return model.Between(self.operand(part), first, last)

    def _in(self, _name: str, part: Node, *items: Node) -> model.Expression | None:
        literals = self._literals(items)
        return (
            None
            if literals is None or not self._apart(part, *literals)
            else model.In(self.operand(part), literals)
        )

    def _literals(self, nodes: Sequence[Node]) -> tuple[model.Literal, ...] | None:
        literals = tuple([literal for node in nodes if (literal := literal_of(node)) is not None])
        if (
            len(literals) < len(nodes)
            or model.common_type(literals) is None
            or not fits_one_decimal(literals)
        ):
            return None
        return literals

    def _like(self, name: str, part: Node, pattern: Node, escape: Node | None = None) -> model.Expression:
        return self._pattern(name, part, _string(pattern), "\\" if escape is None else _string(escape))

    def _around(self, name: str, part: Node, wanted: Node) -> model.Expression | None:
        if not isinstance(wanted, Value) or wanted.literal.type is not model.LiteralType.STRING:
            return None
        return self._pattern("like", part, _AROUND[name].format(patterns.escaped(_string(wanted))), "\\")

    def _pattern(self, name: str, part: Node, pattern: str, escape: str) -> model.Expression:
        self._check_attribute(part)
        if not isinstance(part, Name) and self._type(part) != types.STRING:
            # LIKE sees some values only; written as texts, it sees all.
            part = Cast(part, types.STRING)
        attribute = self.operand(part)
        if name == "ilike":
            pattern = pattern.lower()
            if attribute.expression is None:
                attribute = attribute.lowered
            else:
                attribute = self.operand(Call("lower", (part,)))
        return model.Like(attribute, pattern, escape)

    def _rlike(self, _name: str, part: Node, pattern: Node) -> model.Expression | None:
        """Translate one whole word, or a text that is no more than that; None if it is another expression."""
        if not isinstance(part, Name):
            return None
        word = one_word(_string(pattern))
        if word is not None:
            return model.HasWord(self.operand(part), word)
        plain = separator_of(_string(pattern))
        return None if plain is None else model.Like(self.operand(part), f"%{patterns.escaped(plain)}%")

    def _array_contains(self, _name: str, part: Node, item: Node) -> model.Expression | None:
        literal = literal_of(item)
        self._check_attribute(part)
        if not isinstance(part, Name) or literal is None or literal == model.NULL:
            return None
        return model.ArrayContains(self.operand(part), literal)

    def _arrays_overlap(self, _name: str, part: Node, items: Node) -> model.Expression | None:
        if isinstance(part, Call):
            part, items = items, part
        if not (isinstance(part, Name) and isinstance(items, Call) and items.name == "array"):
            return None
        literals = self._literals(items.arguments)
        return None if literals is None else model.ArraysOverlap(self.operand(part), literals)

    def _forall(self, _name: str, part: Node, test: Node) -> model.Expression | None:
        self._check_attribute(part)
        if not isinstance(part, Name) or not isinstance(test, Lambda):
            return None
        variable = Variable(test.variable)
        body = test.body.arguments if isinstance(test.body, Call) and test.body.name == "or" else (test.body,)
        rest = [each for each in body if each != Call("is null", (variable,))]
        literals: tuple[model.Literal, ...] | None = ()
        match rest:
            case [Call("in", (first, *items))] if first == variable:
                literals = self._literals(items)
            case [Call("=", (first, item))] if first == variable:
                literals = self._literals([item])
            case [Call("=", (item, last))] if last == variable:
                literals = self._literals([item])
            case []:
                pass
            case _:
                return None
        if literals is None:
            return None
        return model.ForAll(self.operand(part), literals, nulls=len(rest) < len(body))

    def _truth(self, node: Node) -> model.Expression:
        kind = self._type(node)
        if kind not in {types.BOOL, types.VOID}:
            self.refuse(f"a condition is expected, and {print_node(node)[:60]} is of type {kind}", node)
        return model.Truth(self.operand(node))

    def operand(self, node: Node) -> model.Attribute:
        """Return the attribute, or the computed one, that a node is."""
        if isinstance(node, Name):
            return model.Attribute(node.path, node.spelled)
        if isinstance(node, Call) and node.name == "lower" and isinstance(node.arguments[0], Name):
            return self.operand(node.arguments[0]).lowered
        self._check_attribute(node)
        computed = Expression.of(node, self._text)
        if not names(node):
            self.refuse(
                f"{computed.text[:60]} names no attribute, so no event matters; write its value", node
            )
        return model.Attribute.computed(computed)

    def _check_attribute(self, node: Node) -> None:
        if isinstance(node, Value):
            self.refuse("an attribute is expected here", node)

    def _type(self, node: Node) -> types.Type:
        """Return the type that an expression has whatever its attributes are; VOID if they decide it."""
        check_size(node, self._text)
        paths = names(node)
        return Form(node, paths, (types.VOID,) * len(paths)).type

    def _may_be_date(self, node: Node) -> bool:
        """Tell whether an expression may give a DATE."""
        match node:
            case Name() | Value():
                return False
            case Cast(_, to):
                return to == types.DATE
            case Call("case" | "if" | "coalesce" | "nullif" | "nvl2" | "greatest" | "least", parts):
                check_size(node, self._text)
                return any(self._may_be_date(part) for part in parts) or any(
                    isinstance(part, Value) and part.literal.type is model.LiteralType.DATE for part in parts
                )
        return self._type(node) == types.DATE

    def refuse(self, reason: str, node: Node) -> NoReturn:
        """Refuse the text for a part of it."""
        raise FilterError(reason, self._text, self._place(node))

    _ASKED: ClassVar[dict[str, Callable[..., model.Expression | None]]] = {
        "and": _and,
        "or": _or,
        "not": _not,
        **dict.fromkeys(_OPS, _comparison),
        "is null": _null,
        "isnotnull": _not_null,
        "between": _between,
        "in": _in,
        "like": _like,
        "ilike": _like,
        **dict.fromkeys(_AROUND, _around),
        "rlike": _rlike,
        "array_contains": _array_contains,
        "arrays_overlap": _arrays_overlap,
        "forall": _forall,
    }
    """What becomes a predicate of the model, where it asks something of one value that literals say."""


def literal_of(node: Node) -> model.Literal | None:
    """Return the literal that a node is, signs before it and DATE('…') included; None if it is none."""
    if isinstance(node, Value):
        return node.literal
    match node:
        case Call("negative", (part,)):
            literal = literal_of(part)
            return None if literal is None else negated(literal)
        case Cast(Value(model.Literal(model.LiteralType.STRING, str(content))), to) if to in types.MOMENTS:
            try:
                return moment_of(content, model.LiteralType(to.name))
            except LiteralError:
                return None
    return None


def _string(node: Node) -> str:
    assert isinstance(node, Value)
    return str(node.literal.value)
