"""Clauses with functions and operators to the model, without the parser where they differ in literals only.

    price * 2 > 10 + 7      template   price * 2 > 0 + 0, whole numbers in place of 0

The parser is asked about a template once, with literals of its own, each another: so it is seen where in the
model each of them goes. One that stands there once, beside operators and functions which take any value of
its type, is *free*. The parser looks into the others, such as regular expressions; they belong to the
template as they are. Then a clause is the template with its own free literals.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

from headgate.errors import FilterError
from headgate.records.expressions.expression import Expression as Computed
from headgate.records.expressions.model import Call, Cast, Lambda, Value
from headgate.records.language.model import (
    Attribute,
    Between,
    Comparison,
    In,
    IsNull,
    Like,
    Literal,
    LiteralType,
    Not,
    Truth,
)
from headgate.records.programs.shapes import SLOT, BoundedCache

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from headgate.records.expressions.model import Node
    from headgate.records.language.model import Expression

    Literals = Sequence[Literal]
    Fill = Callable[[Literals], Any]

MAX_TEMPLATES = 4_096
_MAX_LENGTH = 512
"""Longer templates are left to the parser."""
_MAX_LITERALS = 16
MAX_FIXED = 256
_SPLIT = re.compile(
    r"'([^'\\\ud800-\udfff]*+)'|(`[^`]*`)|(?<![\w.`])([0-9]{1,18}(?:\.[0-9]{1,15})?)(?![\w.])"
)
_HOLES = re.compile(rf"({SLOT}['.]?)")
_FREE = frozenset(
    {"+", "-", "*", "/", "%", "=", "!=", "<", "<=", ">", ">=", "<=>", "||"}
    | {"and", "or", "not", "in", "between", "case", "if", "coalesce", "concat"}
)
"""What takes any literal of a type; `like` does, too, without ESCAPE."""


class _NoTemplateError(Exception):
    """A part of a model is none that a template may have."""


class _Hole(NamedTuple):
    """Where a literal goes: its place among those of a clause, and whether a minus stands before it."""

    place: int
    negative: bool

    def fill(self, literals: Literals) -> Literal:
        """Return the literal of a clause."""
        found = literals[self.place]
        if not self.negative:
            return found
        value = found.value
        assert isinstance(value, int | Decimal)
        return Literal(found.type, -value if isinstance(value, int) else value.copy_negate())


class _Template(NamedTuple):
    """A clause without its literals: which of them are not free, and what makes models, by these."""

    fixed: tuple[int, ...]
    fills: BoundedCache[tuple[Literal, ...], Fill | None]


templates: BoundedCache[str, _Template | None] = BoundedCache(MAX_TEMPLATES)


def template_model(clause: str) -> Expression | None:
    """Make the model of a clause; None if the parser must say what it is.

    >>> from headgate.records.language.printing import print_filter
    >>> print_filter(template_model("price * 2 > 10"))
    '(price * 2) > 10'
    """
    parts = _SPLIT.split(clause)
    key, literals = _apart(parts)
    if len(key) > _MAX_LENGTH or len(literals) > _MAX_LITERALS or SLOT in clause:
        return None
    if key not in templates:
        templates[key] = _template(key, literals)
    template = templates.get(key)
    if template is None:
        return None
    own = tuple(literals[place] for place in template.fixed)
    if own not in template.fills:
        template.fills[own] = _asked(clause, key, literals, template.fixed)
    fill = template.fills.get(own)
    return None if fill is None else fill(literals)


def _apart(parts: list[str | Any]) -> tuple[str, list[Literal]]:
    """Return a clause without its literals, and these."""
    written: list[str] = []
    literals: list[Literal] = []
    for place in range(0, len(parts) - 1, 4):
        before, text, name, number = parts[place : place + 4]
        written.append(before)
        if name is not None:
            written.append(name)
        elif text is not None:
            written.append(f"{SLOT}'")
            literals.append(Literal(LiteralType.STRING, text))
        elif "." in number:
            written.append(f"{SLOT}.")
            literals.append(Literal(LiteralType.DECIMAL, Decimal(number)))
        else:
            written.append(SLOT)
            literals.append(Literal(LiteralType.INT, int(number)))
    written.append(parts[-1])
    return "".join(written), literals


def _template(key: str, literals: Literals) -> _Template | None:
    """Find which literals are free; None if the parser refuses the template."""
    found = _find(key, literals, ())
    if found is None:
        return None
    fixed = tuple(place for place in range(len(literals)) if found.seen.count(place) != 1)
    return _Template(fixed, BoundedCache(MAX_FIXED))


def _asked(clause: str, key: str, literals: Literals, fixed: tuple[int, ...]) -> Fill | None:
    """Return what makes models of free literals; None if that is not sure."""
    from headgate.records.language.parse import parse_filter

    found = _find(key, literals, fixed)
    if found is None or sorted((*found.seen, *fixed)) != list(range(len(literals))):
        return None
    try:
        return found.fill if found.fill(literals) == parse_filter(clause) else None
    except FilterError:
        return None


def _find(key: str, literals: Literals, fixed: tuple[int, ...]) -> _Finder | None:
    """Ask the parser where the literals of a template go."""
    from headgate.records.language.parse import parse_filter

    marks = [
        literal if place in fixed else _mark(place, literal.type) for place, literal in enumerate(literals)
    ]
    pieces = _HOLES.split(key)
    pieces[1::2] = map(_written, marks)
    try:
        places = {mark.value: place for place, mark in enumerate(marks) if place not in fixed}
        return _Finder(parse_filter("".join(pieces)), places)
    except (FilterError, _NoTemplateError):
        return None


def _mark(place: int, kind: LiteralType) -> Literal:
    """Return a literal that no other is, nor its lower case."""
    if kind is LiteralType.STRING:
        return Literal(kind, f"Headgate {place}")
    number = 1_000_003 + place
    return Literal(kind, number if kind is LiteralType.INT else Decimal(f"{number}.5"))


def _written(mark: Literal) -> str:
    return f"'{mark.value}'" if mark.type is LiteralType.STRING else str(mark.value)


class _Finder:
    """Makes of a model with marks what makes models of literals; `seen` are the marks in free places."""

    def __init__(self, found: Expression, places: dict[Any, int]) -> None:
        self._places = places
        self.seen: list[int] = []
        self.fill = self._filter(found)

    def _filter(self, node: Expression) -> Fill:
        match node:
            case Not(child):
                inner = self._filter(child)
                return lambda given: Not(inner(given))
            case Comparison(op, attribute, literal):
                who, what = self._attribute(attribute), self._literal(literal)
                return lambda given: Comparison(op, who(given), what(given))
            case Between(attribute, low, high):
                who, what, most = self._attribute(attribute), self._literal(low), self._literal(high)
                return lambda given: Between(who(given), what(given), most(given))
            case In(attribute, literals):
                who, each = self._attribute(attribute), [self._literal(literal) for literal in literals]
                return lambda given: In(who(given), tuple(one(given) for one in each))
            case Like(attribute, pattern, "\\"):
                who, what = self._attribute(attribute), self._literal(Literal(LiteralType.STRING, pattern))
                return lambda given: Like(who(given), what(given).value)
            case Truth(attribute) | IsNull(attribute):
                kind, who = type(node), self._attribute(attribute)
                return lambda given: kind(who(given))
        raise _NoTemplateError

    def _attribute(self, attribute: Attribute) -> Fill:
        if attribute.expression is None:
            return lambda _given: attribute
        before = len(self.seen)
        fill = self._node(attribute.expression.node, free=False)
        if len(self.seen) == before:
            return lambda _given: attribute
        return lambda given: Attribute.computed(Computed(fill(given)))

    def _node(self, node: Node, *, free: bool) -> Fill:
        before = len(self.seen)
        fill: Fill = lambda _given: node  # noqa: E731 -- what a part without free literals is
        match node:
            case Value(literal, wide):
                if free and not wide:
                    what = self._literal(literal)
                    fill = lambda given: Value(what(given))  # noqa: E731
            case Call(name, arguments):
                takes = name in _FREE or (name == "like" and len(arguments) == 2)
                fills = [self._node(each, free=takes) for each in arguments]
                fill = lambda given: Call(name, tuple(each(given) for each in fills))  # noqa: E731
            case Cast(child, to):
                inner = self._node(child, free=False)
                fill = lambda given: Cast(inner(given), to)  # noqa: E731
            case Lambda(variable, body):
                inner = self._node(body, free=False)
                fill = lambda given: Lambda(variable, inner(given))  # noqa: E731
        return fill if len(self.seen) > before else lambda _given: node

    def _literal(self, literal: Literal) -> Fill:
        value = literal.value
        # True is 1 to a dictionary.
        number = isinstance(value, int | Decimal) and not isinstance(value, bool)
        place = self._places.get(value) if number or isinstance(value, str) else None
        negative = False
        if place is None and number:
            assert isinstance(value, int | Decimal)
            place, negative = self._places.get(-value), True
        if place is None:
            return lambda _given: literal
        self.seen.append(place)
        return _Hole(place, negative).fill
