"""How the expression of a shape is put together, once the terms in its slots are known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from headgate.rdf.language import words
from headgate.rdf.language.model import And, Call, Compare, Expression, Member, Not, Or, Term
from headgate.rdf.language.refusal import Refused

if TYPE_CHECKING:
    from headgate.rdf.language.grammar import Node

Maker: TypeAlias = Callable[[Sequence[Term]], Expression]
"""Makes an expression of the terms by slot."""

SIGNS = {kind: sign for sign, kind in words.SIGNS.items() if kind in ("EQ", "NE", "LT", "LE", "GT", "GE")}
_TWO = ("STRSTARTS", "STRENDS", "CONTAINS")
_SAME = {"ISURI": "ISIRI"}


def compared(sign: str, left: Maker, right: Maker) -> Maker:
    """Make a comparison."""
    return lambda terms: Compare(sign, left(terms), right(terms))


def is_member(item: Maker, options: Sequence[Maker]) -> Maker:
    """Make an IN."""
    return lambda terms: Member(item(terms), tuple([each(terms) for each in options]))


def called(function: Node, arguments: Sequence[Maker]) -> Maker:
    """Make a call, with as many arguments as the function takes."""
    name = _SAME.get(function.name, function.name)
    takes = 2 if name in _TWO else 1
    if len(arguments) != takes:
        raise Refused(f"{name} takes {takes} argument{'s' * (takes > 1)}", function.number)
    return lambda terms: Call(name, tuple([each(terms) for each in arguments]))


def both(parts: Sequence[Maker]) -> Maker:
    """Make an And."""
    return lambda terms: And(tuple([each(terms) for each in parts]))


def either(parts: Sequence[Maker]) -> Maker:
    """Make an Or."""
    return lambda terms: Or(tuple([each(terms) for each in parts]))


def negated(part: Maker) -> Maker:
    """Make a Not."""
    return lambda terms: Not(part(terms))
