"""Why a filter holds for an event or not, clause by clause, with the nearest miss.

The verdict and every clause come from the reference, so an explanation is exact for every operator. What a
clause that did not hold was short of is said in words.
"""

from __future__ import annotations

import datetime as dt
import json
import math
from dataclasses import dataclass, replace
from decimal import Context, Decimal
from typing import TYPE_CHECKING

from headgate.core.casts import to_date, to_double, to_int, to_timestamp
from headgate.core.text.alphabets import words
from headgate.core.text.wording import Worded
from headgate.core.values import PRESENT, micros
from headgate.records.computed import LOWER, compute, shown, value_of
from headgate.records.language import model
from headgate.records.language.model import NULL, Expression, Literal, LiteralType, Op
from headgate.records.language.patterns import to_regex
from headgate.records.language.printing import print_filter, print_literal
from headgate.records.language.rewrite import push_not
from headgate.records.names import plain_text
from headgate.records.reference import compare, evaluate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from headgate.contents.protocol import Costs
    from headgate.core.values import Path

    Gap = Decimal | float | dt.timedelta


# The widest difference is of a decimal with 76 digits before the point and one with 76 after it.
_EXACT = Context(prec=160)
_EQUALITIES = {Op.EQ, Op.NULL_SAFE_EQ}


def note(
    predicate: model.Predicate, value: object, *, negated: bool, held: bool | None, present: bool
) -> str:
    """Say why a predicate (negated or not) was FALSE or NULL; empty where the value says it all."""
    if value is None:
        return "the attribute is NULL" if present else "the event has no such attribute"
    if held is None:
        return f"unknown: {_unknown(predicate, value)}"
    match predicate:
        case model.IsNull() | model.Comparison(Op.NULL_SAFE_EQ, _, Literal(LiteralType.NULL)):
            return "the attribute is not NULL"
        case model.Truth():
            return "it is true" if negated else "it is false"
        case model.Like():
            return _like(predicate, value, negated=negated)
        case model.HasWord(_, word):
            return _word(word, value, negated=negated)
        case model.ArrayContains() | model.ArraysOverlap():
            return _elements(literals_of(predicate), value, negated=negated)
        case model.ForAll():
            return _every(predicate, value, negated=negated)
        case model.Comparison() | model.Between() | model.In():
            return _compared(predicate, value, negated=negated)


def literals_of(predicate: model.Predicate) -> tuple[Literal, ...]:
    """List the literals of a predicate, in the type that they are compared in."""
    match predicate:
        case model.Comparison(_, _, literal) | model.ArrayContains(_, literal):
            return (literal,)
        case model.Between(_, low, high):
            return (low, high)
        case model.In(_, literals) | model.ArraysOverlap(_, literals) | model.ForAll(_, literals):
            common = model.common_type(literals)
            assert common is not None
            return tuple(model.convert(literal, common) for literal in literals)
    return ()


def _unknown(predicate: model.Predicate, value: object) -> str:
    if isinstance(predicate, model.ArrayContains | model.ArraysOverlap | model.ForAll):
        if not isinstance(value, list | tuple):
            return f"{value!r} is not an array"
        if None in value and not (isinstance(predicate, model.ForAll) and predicate.nulls):
            return "the array has a NULL element"
    if NULL in literals_of(predicate):
        return "compared with NULL"
    return f"{value!r} cannot be compared here"


def _like(predicate: model.Like, value: object, *, negated: bool) -> str:
    if negated:
        return "the text fits the pattern"
    if predicate.attribute.function == LOWER:
        return "the text does not fit the pattern in any case"
    # An escape may be a letter, which must not change its case.
    plain = predicate.escape not in predicate.pattern and isinstance(value, str)
    if plain and to_regex(predicate.pattern.lower(), "\\").fullmatch(str(value).lower()):
        return "the text fits the pattern but for case"
    return "the text does not fit the pattern"


def _word(word: str, value: object, *, negated: bool) -> str:
    if negated:
        return "the text has the word"
    longer = next((each for each in words(str(value)) if word in each), None)
    return f"the text has {longer!r}, and not the word alone" if longer else "the text does not have the word"


def _elements(literals: tuple[Literal, ...], value: object, *, negated: bool) -> str:
    assert isinstance(value, list | tuple)
    if not value:
        return "the array is empty"
    if not literals:
        return "the list is empty"
    for element in value:
        equal = _equal(element, literals)
        if equal is not None and negated:
            return f"the array holds {print_literal(equal)}"
    nearest = _nearest(_gaps(value, literals))
    return f"the nearest element is off by {nearest}" if nearest else "no element is equal"


def _every(predicate: model.ForAll, value: object, *, negated: bool) -> str:
    assert isinstance(value, list | tuple)
    literals = literals_of(predicate)
    wanted = "in the list" if literals else "NULL"
    if negated:
        return f"every element is {wanted}" if value else "the array is empty"
    strange = next(one for one in value if one is not None and _equal(one, literals) is None)
    return f"the element {strange!r} is not {wanted}"


def _compared(predicate: model.Comparison | model.Between | model.In, value: object, *, negated: bool) -> str:
    literals = literals_of(predicate)
    if isinstance(predicate, model.Between):
        low, high = (compare(value, literal) for literal in literals)
        if not negated and low is not None and high is not None and low <= 0 <= high and low != high:
            return "the range is empty"
    equal = _equal(value, literals)
    if equal is not None:
        return f"equal to {print_literal(equal)}"
    if isinstance(value, str) and {literal.type for literal in literals} <= {LiteralType.STRING}:
        return _text(predicate, value, [str(literal.value) for literal in literals])
    if isinstance(value, float) and math.isnan(value):
        return "NaN is above every other number"
    distance = _nearest(_gaps([value], literals))
    if not distance:
        return ""
    return (
        f"inside, off by {distance}"
        if isinstance(predicate, model.Between) and negated
        else f"off by {distance}"
    )


def _text(predicate: model.Comparison | model.Between | model.In, value: str, wanted: list[str]) -> str:
    if isinstance(predicate, model.In) or (
        isinstance(predicate, model.Comparison) and predicate.op in _EQUALITIES
    ):
        if value.lower() in {text.lower() for text in wanted}:
            return "differs in case only"
        if value.strip() in {text.strip() for text in wanted}:
            return "differs in blanks around it only"
        return ""
    if value < min(wanted):
        return f"comes before {print_literal(Literal(LiteralType.STRING, min(wanted)))}"
    if value > max(wanted):
        return f"comes after {print_literal(Literal(LiteralType.STRING, max(wanted)))}"
    return "inside"


def _equal(value: object, literals: Iterable[Literal]) -> Literal | None:
    return next((literal for literal in literals if literal != NULL and compare(value, literal) == 0), None)


def _gaps(values: Iterable[object], literals: tuple[Literal, ...]) -> list[Gap]:
    gaps = (_gap(value, literal) for value in values for literal in literals)
    return [gap for gap in gaps if gap is not None]


def _gap(value: object, literal: Literal) -> Gap | None:
    """Measure from a number or a moment to a literal, after Spark's casts; None where there is no scale."""
    other, kind = literal.value, literal.type
    if compare(value, literal) is None or isinstance(value, bool) or other is None:
        return None
    if isinstance(value, dt.date):
        right = to_timestamp(str(other)) if kind is LiteralType.STRING else other
        return _moments(micros(value), right)
    if isinstance(value, str) and kind in model.MOMENTS:
        return _moments(to_date(value) if kind is LiteralType.DATE else to_timestamp(value), other)
    if isinstance(value, str) and kind in model.NUMBERS:
        return _numbers(to_int(value) if kind is LiteralType.INT else to_double(value), other)
    if isinstance(value, Decimal) and kind in {LiteralType.STRING, LiteralType.DOUBLE}:
        value = float(value)
    if isinstance(value, int | float | Decimal):
        if kind is LiteralType.STRING:
            return _numbers(value, to_int(str(other)) if isinstance(value, int) else to_double(str(other)))
        return _numbers(value, other)
    return None


def _moments(left: object, right: object) -> dt.timedelta:
    assert isinstance(left, int)
    assert isinstance(right, int)
    return dt.timedelta(microseconds=abs(left - right))


def _numbers(left: object, right: object) -> Decimal | float:
    assert isinstance(left, int | float | Decimal)
    assert isinstance(right, int | float | Decimal)
    if isinstance(left, int | Decimal) and isinstance(right, int | Decimal):
        return _EXACT.subtract(Decimal(left), Decimal(right)).copy_abs()
    return abs(float(left) - float(right))


def _nearest(gaps: list[Gap]) -> str:
    # NaN is far from everything, and what is equal is not off.
    able = [gap for gap in gaps if gap and not (isinstance(gap, float) and math.isnan(gap))]
    if not able:
        return ""
    nearest = min(able, key=lambda gap: gap.total_seconds() if isinstance(gap, dt.timedelta) else float(gap))
    if isinstance(nearest, dt.timedelta):
        return str(nearest)
    return f"{nearest:g}" if isinstance(nearest, float) else f"{nearest:f}"


@dataclass(frozen=True)
class Clause:
    """One predicate of the filter (negated or not), the event's value, and whether it held (None: NULL)."""

    text: str
    attribute: str
    value: object
    held: bool | None
    note: str = ""

    @property
    def seen(self) -> str:
        """Say what the event has."""
        return f"{self.attribute} = {_shown(self.value)}" if self.attribute else ""


@dataclass(frozen=True)
class Explanation(Worded):
    """The verdict, the clauses from left to right, and the fewest clauses that would have to change.

    With the clauses of the nearest miss replaced by TRUE the filter matches, and with fewer it does not. It
    is empty if the filter matches, and if it does not whatever becomes of its clauses, as in `a AND FALSE`.

    indexed_by   by what events come to the filter, as `validate` says it (`indexing.py`)
    indexed      the clauses that lead there
    verified     the clauses that are checked for the events that come; a range or letters lead there, and
                 are checked all the same
    costs        what the filter takes of the index, as `validate` says it
    notes        what is odd about it
    """

    matches: bool
    filter: str
    clauses: tuple[Clause, ...]
    nearest_miss: tuple[Clause, ...]
    indexed_by: str | None = None
    indexed: tuple[str, ...] = ()
    verified: tuple[str, ...] = ()
    costs: Costs | None = None
    notes: tuple[str, ...] = ()

    def lines(self) -> list[str]:
        """Say it for people: the verdict, a line for each clause, the nearest miss, what the index does."""
        lines = ["match" if self.matches else "no match", *clause_lines(self.clauses)]
        if not self.matches:
            missing = " AND ".join(clause.text for clause in self.nearest_miss)
            lines.append(f"nearest miss: {missing or 'none, no event can match this filter'}")
        if self.costs is not None and self.indexed_by is not None:
            lines += self.costs.lines(self.indexed_by, self.indexed, self.verified)
        return [*lines, *(f"note: {note}" for note in self.notes)]

    def alone(self) -> Explanation:
        """Return it without what the index does."""
        return replace(self, indexed_by=None, indexed=(), verified=(), costs=None, notes=())


def explain(expression: Expression, attributes: Mapping[Path, object]) -> Explanation:
    """Explain one filter and one event.

    >>> from headgate.records.language.parse import parse_filter
    >>> found = explain(parse_filter("age > 30 AND topic = 'news'"), {("age",): 35, ("topic",): "sport"})
    >>> found.matches, [clause.held for clause in found.clauses], found.nearest_miss[0].text
    (False, [True, False], "topic = 'news'")
    """
    pushed = push_not(expression)
    return Explanation(
        matches=evaluate(expression, attributes) is True,
        filter=plain_text(print_filter(expression)),
        clauses=tuple(clause_of(node, attributes) for node in leaves(pushed)),
        nearest_miss=tuple(clause_of(node, attributes) for node in fewest(pushed, attributes) or ()),
    )


def clause_lines(clauses: tuple[Clause, ...]) -> list[str]:
    """Say for people whether clauses held, one below the other."""
    signs = {True: "held", False: "failed", None: "unknown"}
    width = max((len(clause.text) for clause in clauses), default=0)
    lines = []
    for clause in clauses:
        note = f" ({clause.note})" if clause.note else ""
        lines.append(f"  {signs[clause.held]:8}{clause.text:{width}}   {clause.seen}{note}".rstrip())
    return lines


def _shown(value: object) -> str:
    return "NULL" if value is None else json.dumps(value, default=str, ensure_ascii=False)


def leaves(node: Expression) -> list[Expression]:
    """List the predicates from left to right, negated or not; only for what `push_not` has been over."""
    if isinstance(node, model.And | model.Or):
        return [leaf for child in node.children for leaf in leaves(child)]
    return [node]


def fewest(
    node: Expression,
    attributes: Mapping[Path, object],
    possible: Callable[[Expression], bool] = lambda _: True,
) -> tuple[Expression, ...] | None:
    """Find the fewest predicates whose change would make a node TRUE; None if nothing can.

    Only for expressions that `push_not` has been over: there AND needs all of its children, and OR the one
    that is nearest. `possible` tells of a predicate, or several with AND, whether they hold for some event.
    """
    if isinstance(node, model.Or):
        parts = [fewest(child, attributes, possible) for child in node.children]
        return min((part for part in parts if part is not None), key=len, default=None)
    if isinstance(node, model.And):
        own = tuple(child for child in node.children if not isinstance(child, model.Or))
        if own and not possible(model.And(own)):
            return None
        parts = [
            fewest(child, attributes, possible) if isinstance(child, model.Or) else fewest(child, attributes)
            for child in node.children
        ]
        able = [part for part in parts if part is not None]
        return tuple(leaf for part in able for leaf in part) if len(able) == len(parts) else None
    if not possible(node):
        return None
    if evaluate(node, attributes) is True:
        return ()
    return None if isinstance(node, model.Constant) else (node,)


def clause_of(node: Expression, attributes: Mapping[Path, object]) -> Clause:
    """Describe a predicate, negated or not, or a constant."""
    if isinstance(node, model.Constant):
        return Clause(print_filter(node), "", None, node.value)
    negated = isinstance(node, model.Not)
    predicate = node.child if isinstance(node, model.Not) else node
    assert not isinstance(predicate, model.And | model.Or | model.Not | model.Constant), (
        "push_not comes first"
    )
    attribute = predicate.attribute
    held = evaluate(node, attributes)
    if attribute.expression is not None:
        value = attribute.expression.of_attributes(attributes)
        missing = "" if held else _computed_note(predicate, attributes, negated=negated, held=held)
        return Clause(written(node), plain_text(attribute.expression.text), value, held, missing)
    path = attribute.path
    value = value_of(path, attributes)
    compared = compute(attribute.key, attributes) if attribute.function else value
    # A value that has no lower case is there all the same, and says more than NULL.
    seen = value if compared is None else compared
    there = path in attributes or path[0] == PRESENT
    missing = "" if held else note(predicate, seen, negated=negated, held=held, present=there)
    return Clause(written(node), shown(path), value, held, missing)


def written(node: Expression) -> str:
    """Write a predicate as people would."""
    return plain_text(print_filter(node))


def _given(path: Path, attributes: Mapping[Path, object]) -> str:
    there = path in attributes or path[0] == PRESENT
    return _shown(value_of(path, attributes)) if there else "missing"


def _computed_note(
    predicate: model.Predicate, attributes: Mapping[Path, object], *, negated: bool, held: bool | None
) -> str:
    """Say why a predicate of an expression was FALSE or NULL: what the expression was given, too."""
    expression = predicate.attribute.expression
    assert expression is not None
    value = expression.of_attributes(attributes)
    given = ", ".join(f"{shown(path)} is {_given(path, attributes)}" for path in expression.attributes)
    if value is None:
        trouble = expression.trouble(attributes)
        return f"the expression is NULL{f': {trouble}' if trouble else ''}; {given}"
    said = note(predicate, value, negated=negated, held=held, present=True)
    return f"{said}; {given}" if said else given
