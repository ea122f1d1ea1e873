"""Why a FILTER does not let a binding pass, in words."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Context, Decimal
from typing import TYPE_CHECKING

from headgate.rdf.explain.notes import kind, shown
from headgate.rdf.language.evaluate import as_term, call, evaluate, truth
from headgate.rdf.language.model import And, Call, Compare, Member, Not, Or
from headgate.rdf.language.printing import print_expression
from headgate.rdf.language.terms import literal
from headgate.rdf.language.values import Moment, Number, Text, coerced, compare, to_double, value_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from fractions import Fraction
    from typing import TypeAlias

    from headgate.rdf.language.model import Expression, Options, Term
    from headgate.rdf.language.values import Value

    Binding: TypeAlias = Mapping[Term, Term]

_EXACT = Context(prec=9000)  # two numbers of 4,000 digits, far apart
_LONGEST = 30
_VERBS = {"STRSTARTS": "start with", "STRENDS": "end with", "CONTAINS": "contain"}


def reason(expression: Expression, binding: Binding, options: Options) -> str:
    """Say why an expression is not true: of each of its parts that stand in the way, one thing."""
    found = list(_blame(expression, binding, options, True))
    notes = [_note(leaf, binding, options, wanted) for leaf, wanted in found]
    if len(found) == 1:
        return notes[0]
    return "; ".join(
        f"{print_expression(leaf)}: {note}" for (leaf, _), note in zip(found, notes, strict=True)
    )


def _blame(
    node: Expression, binding: Binding, options: Options, wanted: bool
) -> Iterator[tuple[Expression, bool]]:
    """Yield the comparisons and functions that would have to be true, or false, and are not."""
    if truth(evaluate(node, binding, options)) is wanted:
        return
    match node:
        case Not(part):
            yield from _blame(part, binding, options, not wanted)
        case And(inner) | Or(inner):
            for part in inner:
                yield from _blame(part, binding, options, wanted)
        case _:
            yield node, wanted


def _note(leaf: Expression, binding: Binding, options: Options, wanted: bool) -> str:
    match leaf:
        case Compare(sign, left, right):
            one, other = (as_term(evaluate(each, binding, options)) for each in (left, right))
            if one is None or other is None:
                return _error(left if one is None else right, binding, options)
            return _compared(sign, one, other, options, wanted)
        case Member(item, among):
            one = as_term(evaluate(item, binding, options))
            if one is None:
                return _error(item, binding, options)
            return _member(one, among, binding, options, wanted)
        case Call():
            return _called(leaf, binding, options, wanted)
    found = as_term(evaluate(leaf, binding, options))
    if found is None:
        return _error(leaf, binding, options)
    value = truth(found)
    counts = "has no truth value" if value is None else f"counts as {'true' if value else 'false'}"
    return f"{shown(found)} is {kind(found)} and {counts}"


def _error(node: Expression, binding: Binding, options: Options) -> str:
    """Say where an error comes from."""
    if isinstance(node, str):
        return f"nothing stands for {node}"
    if not isinstance(node, Call):
        return f"{print_expression(node)} is an error"
    found = [as_term(evaluate(each, binding, options)) for each in node.arguments]
    for argument, each in zip(node.arguments, found, strict=True):
        if each is None:
            return _error(argument, binding, options)
    return f"{node.name} of {' and '.join(kind(each) for each in found if each is not None)} is an error"


def _compared(sign: str, one: Term, other: Term, options: Options, wanted: bool) -> str:
    held = compare(sign, one, other, options.coerce)
    if held is None:
        error = f"{shown(one)} is {kind(one)}: to compare it with {kind(other)} is an error"
        return error + ("" if options.coerce else _hint(sign, one, other, wanted))
    if wanted is False:
        return f"{shown(one)} {sign} {shown(other)} holds"
    left, right = value_of(one), value_of(other)
    if options.coerce:
        left, right = coerced(left, right), coerced(right, left)
    if compare("=", one, other, options.coerce):
        return f"{shown(one)} is equal to {shown(other)}"
    return _distance(sign, left, right) or f"it is {shown(one)}"


def _hint(sign: str, one: Term, other: Term, wanted: bool) -> str:
    """Say what `coerce` would make of two terms that cannot be compared."""
    held = compare(sign, one, other, True)
    if held is None:
        return ""
    value = value_of(one)
    text = value if isinstance(value, Text) else value_of(other)
    assert isinstance(text, Text)
    hold = "hold" if held is wanted else "not hold either"
    return f"; coerce=True would read it as {text.text.strip()[:_LONGEST]}, and it would {hold}"


def _distance(sign: str, left: Value | None, right: Value | None) -> str:
    """Say by how much a comparison of two different values fails; nothing where there is no scale."""
    word = {">": "short by", ">=": "short by", "<": "over by", "<=": "over by"}.get(sign, "off by")
    match left, right:
        case Number(), Number():
            gap = _gap(left, right)
            return f"{word} {gap}" if gap else "NaN is neither equal to a number nor in order with one"
        case Moment(), Moment():
            return f"{word} {_duration(abs(left.seconds - right.seconds))}"
        case Text(), Text() if sign == "=":
            if left.text.lower() == right.text.lower():
                return "it differs in case only"
            return "it differs in blanks around it only" if left.text.strip() == right.text.strip() else ""
        case Text(), Text():
            return "it comes before" if left.text < right.text else "it comes after"
    return ""


def _gap(one: Number, other: Number) -> str:
    if isinstance(one.value, float) or isinstance(other.value, float):
        gap = abs(to_double(one.value) - to_double(other.value))
        return "" if math.isnan(gap) else f"{gap:g}"
    exact = _EXACT.subtract(Decimal(one.value), Decimal(other.value)).copy_abs()
    text = f"{exact:f}"
    return text if len(text) <= _LONGEST else f"{exact:.6e}"


def _duration(seconds: Fraction) -> str:
    try:
        return str(dt.timedelta(microseconds=round(seconds * 10**6)))
    except OverflowError:
        return f"{seconds // 86400} days"


def _member(
    one: Term, among: tuple[Expression, ...], binding: Binding, options: Options, wanted: bool
) -> str:
    terms = [as_term(evaluate(each, binding, options)) for each in among]
    known = [each for each in terms if each is not None]
    answers = [compare("=", one, each, options.coerce) for each in known]
    if not wanted and True in answers:
        return f"{shown(one)} is equal to {shown(known[answers.index(True)])}"
    if not known:
        return "the list is empty" if not among else _error(among[0], binding, options)
    if None in answers:
        return _compared("=", one, known[answers.index(None)], options, wanted)
    return f"{shown(one)} is none of them"


def _called(leaf: Call, binding: Binding, options: Options, wanted: bool) -> str:
    if evaluate(leaf, binding, options) is None:
        return _error(leaf, binding, options)
    terms = [as_term(evaluate(each, binding, options)) for each in leaf.arguments]
    first = terms[0] or ""
    if leaf.name not in _VERBS:
        return f"{shown(first)} is {kind(first)}"
    verb = _VERBS[leaf.name]
    if not wanted:
        return f"{shown(first)} does {verb} {shown(terms[1] or '')}"
    return f"{shown(first)} does not {verb} {shown(terms[1] or '')}{_but_for_case(leaf.name, terms)}"


def _but_for_case(name: str, terms: list[Term | None]) -> str:
    values = [value_of(each or "") for each in terms]
    lower: list[Term | None] = [literal(each.text.lower()) for each in values if isinstance(each, Text)]
    return ", but for case" if call(name, lower) else ""
