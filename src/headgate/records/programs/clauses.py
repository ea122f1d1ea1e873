"""Clauses, cut out of filters by `shapes`, to the model and to leaves without the parser.

A clause is a name, literals, and the rest of its text: its *manner*, blanks and case included. The parser is
asked about a manner once, with the first clause that has it; it must find what is made here of the pieces.
Then the pieces decide: the name, which is safe (`shapes`), and the literals, which are read by `literal`.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING, NamedTuple

from headgate.errors import FilterError
from headgate.records.language.model import (
    And,
    ArrayContains,
    ArraysOverlap,
    Attribute,
    Between,
    Comparison,
    Expression,
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
)
from headgate.records.language.rewrite import normalise
from headgate.records.programs import simple_clauses
from headgate.records.programs.program import compile_program
from headgate.records.programs.shapes import CLAUSE, SLOT, BoundedCache, parts_of, path_of
from headgate.records.programs.tokens import AND, OR

if TYPE_CHECKING:
    from headgate.records.programs.leaves import Leaf
    from headgate.records.programs.simple_clauses import SimpleClause

MAX_CLAUSES = 65_536
MAX_MANNERS = 4_096
_MAX_LENGTH = 512
"""Longer clauses are not remembered, nor longer manners."""

_OPS = {**{op.value: op for op in Op}, "==": Op.EQ, "<>": Op.NE}
_STRINGS = re.compile(r"'([^']*)'")
_NUMBERS = re.compile(r"[-0-9.]+")
_NAMES = ("name", "array", "other")
_BARE = {*_NAMES, "word"}
_PIECES = (*_NAMES, "literal", "element", "low", "high", "pattern", "word", "list", "elements")


class Atom(NamedTuple):
    """A clause as one leaf.

    `sign` is AND or OR if the clause is several predicates joined by it, as BETWEEN is, and 0 if it is one:
    only among neighbours that are joined by the same sign do they merge as they do alone.
    """

    leaf: Leaf
    sign: int


models: BoundedCache[str, Expression] = BoundedCache(MAX_CLAUSES)
atoms: dict[bool, BoundedCache[str, Atom]] = {negated: BoundedCache(MAX_CLAUSES) for negated in (False, True)}
manners: BoundedCache[str, bool] = BoundedCache(MAX_MANNERS)
plain_manners: BoundedCache[str, bool] = BoundedCache(MAX_MANNERS)


def atom(text: str, *, negated: bool) -> Atom | None:
    """Make one leaf of a clause or its negation; None if that is no leaf, or for the parser to say."""
    found = atoms[negated].get(text)
    if found is None:
        found = _lower(text, negated=negated)
        if found is not None and len(text) <= _MAX_LENGTH:
            atoms[negated][text] = found
    return found


def common(text: str, *, negated: bool) -> SimpleClause | None:
    """Take a clause or its negation apart if it is one of the commonest; None if `atom` must see to it."""
    found = simple_clauses.read(text, negated=negated)
    if found is None or found.manner in plain_manners:
        return found
    # The manner of `found` is that of the model, written shorter.
    if model(text) is None:
        return None
    plain_manners[found.manner] = True
    return found


def _lower(text: str, *, negated: bool) -> Atom | None:
    tree = model(text)
    if tree is None:
        return None
    normal = normalise(Not(tree) if negated else tree)
    program = compile_program(normal)
    if program.tokens != (0,):
        return None
    sign = AND if isinstance(normal, And) else OR if isinstance(normal, Or) else 0
    return Atom(program.leaves[0], sign)


def model(text: str) -> Expression | None:
    """Make the model of a clause; None if the parser must say what it is."""
    found = models.get(text)
    if found is None:
        found = _read(text)
        if found is not None and len(text) <= _MAX_LENGTH:
            models[text] = found
    return found


def _read(text: str) -> Expression | None:
    pieces = CLAUSE.fullmatch(text)
    if pieces is None:
        # What only matches an opened index has no use for the functions, which take a while to load.
        from headgate.records.programs.templates import template_model

        return template_model(text)
    name = pieces["name"] or pieces["array"] or pieces["other"]
    if path_of(name) is None:
        return None
    made = _make(pieces, Attribute.of(*parts_of(name)))
    if made is None:
        return _parse(text)
    manner = _manner(pieces)
    if manner not in manners:
        if len(manner) > _MAX_LENGTH or _parse(text) != made:
            return None
        manners[manner] = True
    return made


def _parse(text: str) -> Expression | None:
    """Ask the parser; an error is left to whoever parses the whole filter, and knows its places."""
    from headgate.records.language.parse import parse_filter

    try:
        return parse_filter(text)
    except FilterError:
        return None


def _manner(pieces: re.Match[str]) -> str:
    """Write a clause with its name and literals cut out, and the kinds of the literals in their place."""
    text = pieces.string
    parts: list[str] = []
    place = 0
    for group in _PIECES:
        start, stop = pieces.span(group)
        if start >= 0:
            parts += (text[place:start], "" if group in _BARE else _kind(text[start:stop]))
            place = stop
    return SLOT.join((*parts, text[place:]))


def _kind(piece: str) -> str:
    """Tell what there is to know of a literal, or of a list of them, but for its value."""
    if piece[0] == "'":
        return "'"
    return piece if piece[0].isalpha() else "0" + "-" * ("-" in piece) + "." * ("." in piece)


def _make(pieces: re.Match[str], attribute: Attribute) -> Expression | None:
    """Make the model of the pieces, or None if one of them is not read here."""
    found: Expression | None
    if pieces["op"]:
        value = literal(pieces["literal"])
        found = None if value is None else Comparison(_OPS[pieces["op"]], attribute, value)
    elif pieces["list"]:
        found = In(attribute, _literals(pieces["list"]))
    elif pieces["low"]:
        low, high = literal(pieces["low"]), literal(pieces["high"])
        found = None if low is None or high is None else Between(attribute, low, high)
    elif pieces["pattern"]:
        pattern = pieces["pattern"][1:-1]
        found = Like(attribute.lowered, pattern.lower()) if pieces["folded"] else Like(attribute, pattern)
    elif pieces["word"]:
        found = HasWord(attribute, pieces["word"].lower())
    elif pieces["null"]:
        found = Not(IsNull(attribute)) if pieces["present"] else IsNull(attribute)
    elif pieces["array"]:
        value = literal(pieces["element"])
        found = None if value is None else ArrayContains(attribute, value)
    elif pieces["other"]:
        found = ArraysOverlap(attribute, _literals(pieces["elements"]))
    else:
        found = Truth(attribute)
    return Not(found) if found is not None and pieces["negated"] else found


def literal(text: str) -> Literal | None:
    """Read a plain literal as `literals` reads it; None if it is a date or a timestamp.

    >>> literal("-5").value, literal("1.50").type.name, literal("'a b'").value, literal("true").value
    (-5, 'DECIMAL', 'a b', True)
    """
    first = text[0]
    if first == "'":
        return Literal(LiteralType.STRING, text[1:-1])
    if first.isalpha():
        word = text.lower()
        return Literal(LiteralType.BOOL, word == "true") if word in {"true", "false"} else None
    if "." in text:
        return Literal(LiteralType.DECIMAL, Decimal(text))
    return Literal(LiteralType.INT, int(text))


def _literals(text: str) -> tuple[Literal, ...]:
    """Read a list, whose literals are all strings or all numbers."""
    if text[0] == "'":
        return tuple(Literal(LiteralType.STRING, item) for item in _STRINGS.findall(text))
    return tuple(read for item in _NUMBERS.findall(text) if (read := literal(item)) is not None)
