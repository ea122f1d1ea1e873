"""Expressions without their terms, and the terms: filters as atoms."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from headgate.rdf.model import And, Call, Compare, Member, Not, Or

if TYPE_CHECKING:
    from headgate.rdf.model import Expression, Term

Shape: TypeAlias = "tuple[object, ...]"


def shape_of(expression: Expression) -> tuple[Shape, tuple[Term, ...]]:
    """Take the terms out of an expression, from left to right.

    Two expressions are equal if and only if both parts are.

    >>> shape_of(Compare("<", "?x", Call("STR", ("?y",))))
    ((('Compare', '<', '', ('Call', 'STR', '')),), ('?x', '?y'))
    """
    terms: list[Term] = []
    return (_walk(expression, terms),), tuple(terms)


def _walk(expression: Expression, terms: list[Term]) -> object:
    match expression:
        case str():
            terms.append(expression)
            return ""
        case Compare(sign, left, right):
            return "Compare", sign, _walk(left, terms), _walk(right, terms)
        case Member(item, options):
            return "Member", _walk(item, terms), *[_walk(each, terms) for each in options]
        case Call(name, inner):
            return "Call", name, *[_walk(each, terms) for each in inner]
        case And(inner):
            return "And", *[_walk(each, terms) for each in inner]
        case Or(inner):
            return "Or", *[_walk(each, terms) for each in inner]
        case Not(part):
            return "Not", _walk(part, terms)
