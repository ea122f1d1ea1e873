"""What an expression of a FILTER says about a binding, in SPARQL's three values.

True and False are truth values, None is an error. An error in a comparison or a function spoils it; `&&` and
`||` know the answer all the same if the other side decides it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.rdf.language.model import (
    XSD,
    And,
    Call,
    Compare,
    Member,
    Not,
    Or,
    iri,
    is_blank,
    is_iri,
    is_literal,
    is_variable,
    literal,
    parts,
    plain,
)
from headgate.rdf.language.searches import search_of
from headgate.rdf.language.values import NUMERIC, Number, Text, Truth, compare, value_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from headgate.rdf.language.model import Expression, Options, Term

BOOLEAN = f"{XSD}boolean"


def holds(expression: Expression, binding: Mapping[Term, Term], options: Options) -> bool:
    """Tell whether a FILTER lets a binding pass: its effective boolean value is true.

    >>> from headgate.rdf.language.model import Options
    >>> two, three = (literal(text, f"{XSD}integer") for text in ("2", "3"))
    >>> holds(Compare("<", "?x", three), {"?x": two}, Options())
    True
    """
    return truth(evaluate(expression, binding, options)) is True


def evaluate(expression: Expression, binding: Mapping[Term, Term], options: Options) -> Term | bool | None:
    """Evaluate an expression: a term, a truth value, or None for an error."""
    match expression:
        case str():
            return binding.get(expression) if is_variable(expression) else expression
        case Compare(sign, left, right):
            return _compared(
                sign, evaluate(left, binding, options), evaluate(right, binding, options), options.coerce
            )
        case Member(item, among):
            one = evaluate(item, binding, options)
            if one is None:
                return None  # also if nothing is listed: an operator needs a term to operate on
            return _any(
                _compared("=", one, evaluate(other, binding, options), options.coerce) for other in among
            )
        case And(parts_):
            found = _any(_opposite(truth(evaluate(part, binding, options))) for part in parts_)
            return _opposite(found)
        case Or(parts_):
            return _any(truth(evaluate(part, binding, options)) for part in parts_)
        case Not(part):
            return _opposite(truth(evaluate(part, binding, options)))
        case Call(name, arguments):
            return call(name, [as_term(evaluate(argument, binding, options)) for argument in arguments])


def truth(found: Term | bool | None) -> bool | None:
    """Take the effective boolean value (SPARQL 1.1, section 17.2.2); None is an error.

    A number or truth value whose text is none of its datatype's counts as false; so says the specification.
    """
    if found is None or isinstance(found, bool):
        return found
    match value_of(found):
        case Truth(held):
            return held
        case Number(_, number):
            return bool(number) and number == number  # noqa: PLR0124 - NaN is false
        case Text(text, _):
            return text != ""
    if is_literal(found) and parts(found).datatype in {BOOLEAN, *NUMERIC}:
        return False
    return None


def as_term(found: Term | bool | None) -> Term | None:
    """Write a truth value as the literal that it is."""
    return literal("true" if found else "false", BOOLEAN) if isinstance(found, bool) else found


def call(name: str, arguments: list[Term | None]) -> Term | bool | None:
    """Call a function; an error among the arguments makes an error."""
    terms = [argument for argument in arguments if argument is not None]
    if len(terms) < len(arguments):
        return None
    first = terms[0]
    match name:
        case "ISIRI":
            return is_iri(first)
        case "ISLITERAL":
            return is_literal(first)
        case "STR":
            if is_blank(first):
                return None
            return literal(first[1:-1] if is_iri(first) else parts(first).lexical)
        case "LANG":
            return literal(parts(first).language) if is_literal(first) else None
        case "DATATYPE":
            return iri(parts(first).datatype) if is_literal(first) else None
        case "LCASE":
            value = value_of(first)
            return literal(value.text.lower(), language=value.language) if isinstance(value, Text) else None
        case "REGEX":
            return _regex(*terms)
        case "STRSTARTS":
            return _texts(first, terms[1], str.startswith)
        case "STRENDS":
            return _texts(first, terms[1], str.endswith)
        case "CONTAINS":
            return _texts(first, terms[1], str.__contains__)
    raise AssertionError(f"the grammar lets no function {name} through")


def _texts(one: Term, other: Term, test: Callable[[str, str], bool]) -> bool | None:
    """Compare two strings; the second must have no language or that of the first (section 17.4.3.1.2)."""
    match value_of(one), value_of(other):
        case Text(text, language), Text(wanted, second) if second in {"", language}:
            return test(text, wanted)
    return None


def _regex(text: Term, pattern: Term, flags: Term = '""') -> bool | None:
    value, search = value_of(text), search_of(plain(pattern), plain(flags))
    return search.found_in(value.text) if isinstance(value, Text) and search is not None else None


def _compared(sign: str, one: Term | bool | None, other: Term | bool | None, coerce: bool) -> bool | None:
    left, right = as_term(one), as_term(other)
    return None if left is None or right is None else compare(sign, left, right, coerce)


def _any(found: Iterable[bool | None]) -> bool | None:
    """Say OR of three values: an error only if no part is true."""
    unsure = False
    for one in found:
        if one is True:
            return True
        unsure |= one is None
    return None if unsure else False


def _opposite(found: bool | None) -> bool | None:
    return None if found is None else not found
