"""Where the oracle departs from the specification: each habit with its reason, and what it does instead."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING

import pyoxigraph as ox

from headgate.rdf.language.model import And, Call, Member, Not, is_blank, is_iri, is_literal, literal, parts
from headgate.rdf.language.printing import print_term
from headgate.rdf.language.values import (
    BOOLEAN,
    DECIMAL,
    INTEGER,
    NUMERIC,
    Moment,
    Number,
    Text,
    Truth,
    compare,
    value_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from headgate.rdf.language.model import Expression, Term

ORDERS = {"<", "<=", ">", ">="}


class Elsewhere:
    """The answer of a habit that has nothing to do with what it is asked about."""


ELSEWHERE = Elsewhere()
Answer = bool | None | Elsewhere


def _no_order(_sign: str, _left: Term, _right: Term) -> Answer:
    return ELSEWHERE


def _no_truth(_term: Term) -> Answer:
    return ELSEWHERE


def _no_change(term: Term) -> Term:
    return term


def _no_rewrite(expression: Expression) -> Expression:
    return expression


@dataclass(frozen=True)
class Habit:
    """What the oracle does, why that is not what the specification says, and the shortest case that shows it.

    `compare` and `truth` answer for the oracle where the habit shows; `term` and `rewrite` give what the
    oracle makes of terms and expressions. The example is the object `?o` of a triple, and a filter that only
    one of the two lets it pass.
    """

    name: str
    reason: str
    object: Term
    filter: str
    compare: Callable[[str, Term, Term], Answer] = _no_order
    truth: Callable[[Term], Answer] = _no_truth
    term: Callable[[Term], Term] = _no_change
    rewrite: Callable[[Expression], Expression] = _no_rewrite


def to_ox(term: Term) -> ox.NamedNode | ox.BlankNode | ox.Literal:
    """Write a term as the oracle's."""
    if is_iri(term):
        return ox.NamedNode(term[1:-1])
    if is_blank(term):
        return ox.BlankNode(term[2:])
    lexical, datatype, language = parts(term)
    if language:
        return ox.Literal(lexical, language=language)
    return ox.Literal(lexical, datatype=ox.NamedNode(datatype))


def from_ox(term: object) -> Term:
    """Write a term of the oracle's as ours."""
    if isinstance(term, ox.Literal):
        return literal(term.value, term.datatype.value, term.language or "")
    assert isinstance(term, ox.NamedNode | ox.BlankNode)
    return str(term)


@cache
def kept(term: Term) -> Term:
    """Return what the oracle makes of a literal: it is put into a store and taken out again."""
    if not is_literal(term):
        return term
    store = ox.Store()
    node = ox.NamedNode("urn:x")
    store.add(ox.Quad(node, node, to_ox(term)))
    return from_ox(next(iter(store)).object)


def _language(sign: str, left: Term, right: Term) -> Answer:
    one, other = value_of(left), value_of(right)
    tongues = {each.language for each in (one, other) if isinstance(each, Text)}
    if not tongues - {""} or not (is_literal(left) and is_literal(right)):
        return ELSEWHERE
    if sign in {"=", "!="}:
        return (left == right) is (sign == "=")
    if isinstance(one, Text) and isinstance(other, Text) and one.language == other.language:
        return compare(sign, literal(one.text), literal(other.text))
    return None


def _same(sign: str, left: Term, right: Term) -> Answer:
    return sign in {"<=", ">="} if sign in ORDERS and left == right else ELSEWHERE


def _large(term: Term) -> bool:
    """Tell whether a value is beyond the oracle's: 64 bits for integers, 128 for decimals with 18 places."""
    match value_of(term):
        case Number(kind, int(number)) if kind == INTEGER:
            return not -(2**63) <= number < 2**63
        case Number(kind, Decimal() as number) if kind == DECIMAL:
            scaled = Fraction(number) * 10**18
            return scaled.denominator > 1 or not -(2**127) <= scaled < 2**127
    return False


def _too_large(sign: str, left: Term, right: Term) -> Answer:
    if not (is_literal(left) and is_literal(right) and (_large(left) or _large(right))):
        return ELSEWHERE
    return (sign == "=") if sign in {"=", "!="} and left == right else None


def _too_large_truth(term: Term) -> Answer:
    return None if _large(term) else ELSEWHERE


def _booleans(sign: str, left: Term, right: Term) -> Answer:
    values = value_of(left), value_of(right)
    return None if sign in ORDERS and all(isinstance(each, Truth) for each in values) else ELSEWHERE


def _nan(sign: str, left: Term, right: Term) -> Answer:
    values = [value_of(left), value_of(right)]
    numbers = [each.value for each in values if isinstance(each, Number)]
    if sign not in ORDERS or len(numbers) < 2 or all(each == each for each in numbers):  # noqa: PLR0124
        return ELSEWHERE
    return None


def _kind(term: Term) -> object:
    value = value_of(term)
    return value.kind if isinstance(value, Moment) else type(value)


def _kinds(sign: str, left: Term, right: Term) -> Answer:
    known = value_of(left) is not None and value_of(right) is not None
    return sign == "!=" if sign in {"=", "!="} and known and _kind(left) != _kind(right) else ELSEWHERE


def _zones(sign: str, left: Term, right: Term) -> Answer:
    one, other = value_of(left), value_of(right)
    if sign not in {"=", "!="} or not isinstance(one, Moment) or not isinstance(other, Moment):
        return ELSEWHERE
    unsure = one.kind == other.kind and compare("=", left, right) is None
    return sign == "!=" if unsure else ELSEWHERE


def _ill(term: Term) -> Answer:
    typed = is_literal(term) and parts(term).datatype in {BOOLEAN, *NUMERIC}
    return None if typed and value_of(term) is None else ELSEWHERE


def _language_truth(term: Term) -> Answer:
    value = value_of(term)
    return None if isinstance(value, Text) and value.language else ELSEWHERE


def _nothing_listed(expression: Expression) -> Expression:
    match expression:
        case Member(item, ()):
            return And((item, Not(item)))
    return expression


def _minus(expression: Expression) -> Expression:
    bare = print_term(expression) if isinstance(expression, str) else ""
    if isinstance(expression, str) and bare.startswith("-"):
        lexical, datatype, _ = parts(expression)
        if _large(literal(lexical[1:], datatype)):
            return Call("LANG", ("<urn:no-literal>",))  # which is an error
    return expression


def _xsd(lexical: str, name: str) -> Term:
    return literal(lexical, f"http://www.w3.org/2001/XMLSchema#{name}")


_LOWEST = _xsd("-9223372036854775808", "integer")

HABITS = (
    Habit(
        "kept by value",
        "a number, a truth value or a time is kept by its value and not by its text: what is read back, "
        "and what a pattern and STR see, is another term; integers of a derived type become xsd:integer, "
        "whatever their range. RDF 1.1 Concepts 3.3: literals are the same term if text, datatype and "
        "language are.",
        _xsd("01", "integer"),
        'STR(?o) = "01"',
        term=kept,
    ),
    Habit(
        "same terms are in order",
        "two terms that are the same are <= and >= each other, also where there is no order: IRIs, unknown "
        "datatypes, NaN. SPARQL 1.1 17.3: no operator, so a type error; for NaN, false.",
        "<urn:x>",
        "?o <= <urn:x>",
        compare=_same,
    ),
    Habit(
        "languages compare",
        "literals with a language are unequal to all others, and in order if the language is the same. "
        "SPARQL 1.1 17.4.1.7: two literals that are not the same term are a type error; 17.3 orders none "
        "with a language. (17.3.1 allows it as an extension; the W3C's tests of it are marked "
        "LangTagAwareness, so not asked of all.)",
        literal("chat", language="fr"),
        '?o != "cat"@en',
        compare=_language,
    ),
    Habit(
        "numbers have limits",
        "an integer beyond 64 bits, or a decimal beyond 128 with 18 places, has no value. XML Schema 1.1 "
        "asks for 16 digits at least, and all of these have more, so this is allowed; ours have no such "
        "limit.",
        _xsd("18446744073709551617", "integer"),
        "?o > 1",
        compare=_too_large,
        truth=_too_large_truth,
    ),
    Habit(
        "truth values have no order",
        "to compare two xsd:boolean by < is an error. SPARQL 1.1 17.3 has op:boolean-less-than and "
        "-greater-than.",
        _xsd("true", "boolean"),
        "?o > false",
        compare=_booleans,
    ),
    Habit(
        "NaN has no order",
        "to compare NaN by < is an error. XPath's op:numeric-less-than and -greater-than say false.",
        _xsd("NaN", "double"),
        "!(?o < 1)",
        compare=_nan,
    ),
    Habit(
        "kinds are unequal",
        "literals of different kinds, such as a string and a number, are unequal. SPARQL 1.1 17.4.1.7: a "
        "type error. (17.3.1 allows it as an extension; the W3C's tests of it are marked "
        "KnownTypesDefault2Neq.)",
        literal("a"),
        "?o != 1",
        compare=_kinds,
    ),
    Habit(
        "unsure times are unequal",
        "a time with a zone and one without, less than 14 hours apart, are unequal. XML Schema 1.1 says so "
        "too, but that < and > have no answer there either; XPath would take a zone from the context, and "
        "SPARQL has none. We make it an error for all six signs.",
        _xsd("2001-01-01T00:00:00Z", "dateTime"),
        '?o != "2001-01-01T00:00:00"^^<http://www.w3.org/2001/XMLSchema#dateTime>',
        compare=_zones,
    ),
    Habit(
        "ill-typed is an error",
        "the effective boolean value of a number or truth value with a text that is none is an error. "
        "SPARQL 1.1 17.2.2: it is false.",
        _xsd("abc", "integer"),
        "!?o",
        truth=_ill,
    ),
    Habit(
        "languages are no truth",
        "the effective boolean value of a string with a language is an error. SPARQL 1.1 17.2.2: a plain "
        "literal, which those are, is true if it is not empty.",
        literal("chat", language="fr"),
        "?o",
        truth=_language_truth,
    ),
    Habit(
        "IN () asks for a truth value",
        "a term IN an empty list is an error if the term has no effective boolean value. SPARQL 1.1 "
        "17.4.1.9: an empty list is legal, and no term is found in it.",
        "<urn:x>",
        "!(?o IN ())",
        rewrite=_nothing_listed,
    ),
    Habit(
        "minus is an operator",
        "a negative number in an expression is read as a minus before a positive one, so the lowest "
        "integer of 64 bits is an error. SPARQL 1.1, grammar: INTEGER_NEGATIVE is one token.",
        _LOWEST,
        "?o = -9223372036854775808",
        rewrite=_minus,
    ),
)
