"""Clauses, cut out of filters by `shapes`, to the model and to leaves.

One of a plain form is read by its pieces, without the parser: the name, which is safe (`shapes`), and the
literals, which are read by `literal`. The parser reads the others, each alone and once.
"""

from __future__ import annotations

import re
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from headgate.core.text.cutting import BoundedCache
from headgate.errors import FilterError
from headgate.records.language import model
from headgate.records.language.rewrite import normalise
from headgate.records.programs.program import compile_program
from headgate.records.programs.shapes import CLAUSE, parts_of, path_of
from headgate.records.programs.tokens import AND, OR

if TYPE_CHECKING:
    from headgate.records.programs.leaves import Leaf

MAX_LENGTH = 512
"""Longer clauses are not remembered."""

_OPS = {**{op.value: op for op in model.Op}, "==": model.Op.EQ, "<>": model.Op.NE}
_STRINGS = re.compile(r"'([^']*)'")
_NUMBERS = re.compile(r"[-0-9.]+")


class Atom(NamedTuple):
    """A clause as one leaf.

    `sign` is AND or OR if the clause is several predicates joined by it, as BETWEEN is, and 0 if it is one:
    only among neighbours that are joined by the same sign do they merge as they do alone.
    """

    leaf: Leaf
    sign: int


def _lower(text: str, *, negated: bool) -> Atom | None:
    """Make one leaf of a clause or its negation; None if that is no leaf, or for the parser to say."""
    tree = model_of[text]
    if tree is None:
        return None
    normal = normalise(model.Not(tree) if negated else tree)
    program = compile_program(normal)
    if program.tokens != (0,):
        return None
    sign = AND if isinstance(normal, model.And) else OR if isinstance(normal, model.Or) else 0
    return Atom(program.leaves[0], sign)


atom_of = {
    negated: BoundedCache(partial(_lower, negated=negated), longest=MAX_LENGTH) for negated in (False, True)
}


def _read(text: str) -> model.Expression | None:
    """Make the model of a clause; None if the parser must say what it is."""
    pieces = CLAUSE.fullmatch(text)
    if pieces is None:
        return _parse(text)
    name = pieces["name"] or pieces["array"] or pieces["other"]
    if path_of[name] is None:
        return None
    return _make(pieces, model.Attribute.of(*parts_of(name))) or _parse(text)


model_of = BoundedCache(_read, longest=MAX_LENGTH)


def _parse(text: str) -> model.Expression | None:
    """Ask the parser; an error is left to whoever parses the whole filter, and knows its places."""
    from headgate.records.language.parse import parse_filter

    try:
        return parse_filter(text)
    except FilterError:
        return None


def _make(pieces: re.Match[str], attribute: model.Attribute) -> model.Expression | None:
    """Make the model of the pieces, or None if one of them is not read here."""
    predicate: model.Expression | None
    if pieces["op"]:
        value = literal(pieces["literal"])
        predicate = None if value is None else model.Comparison(_OPS[pieces["op"]], attribute, value)
    elif pieces["list"]:
        predicate = model.In(attribute, _literals(pieces["list"]))
    elif pieces["low"]:
        low, high = literal(pieces["low"]), literal(pieces["high"])
        predicate = None if low is None or high is None else model.Between(attribute, low, high)
    elif pieces["pattern"]:
        pattern, folded = pieces["pattern"][1:-1], pieces["folded"]
        predicate = model.Like(
            attribute.lowered if folded else attribute, pattern.lower() if folded else pattern
        )
    elif pieces["word"]:
        predicate = model.HasWord(attribute, pieces["word"].lower())
    elif pieces["null"]:
        predicate = model.Not(model.IsNull(attribute)) if pieces["present"] else model.IsNull(attribute)
    elif pieces["array"]:
        value = literal(pieces["element"])
        predicate = None if value is None else model.ArrayContains(attribute, value)
    elif pieces["other"]:
        predicate = model.ArraysOverlap(attribute, _literals(pieces["elements"]))
    else:
        predicate = model.Truth(attribute)
    return model.Not(predicate) if predicate is not None and pieces["negated"] else predicate


def literal(text: str) -> model.Literal | None:
    """Read a plain literal as `literals` reads it; None if it is a date or a timestamp.

    >>> literal("-5").value, literal("1.50").type.name, literal("'a b'").value, literal("true").value
    (-5, 'DECIMAL', 'a b', True)
    """
    first = text[0]
    if first == "'":
        return model.Literal(model.LiteralType.STRING, text[1:-1])
    if first.isalpha():
        word = text.lower()
        return model.Literal(model.LiteralType.BOOL, word == "true") if word in {"true", "false"} else None
    if "." in text:
        return model.Literal(model.LiteralType.DECIMAL, Decimal(text))
    return model.Literal(model.LiteralType.INT, int(text))


def _literals(text: str) -> tuple[model.Literal, ...]:
    """Read a list, whose literals are all strings or all numbers."""
    if text[0] == "'":
        return tuple(model.Literal(model.LiteralType.STRING, item) for item in _STRINGS.findall(text))
    return tuple(read for item in _NUMBERS.findall(text) if (read := literal(item)) is not None)
