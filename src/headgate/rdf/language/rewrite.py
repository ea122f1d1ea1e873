"""From a pattern to one that is easier to index and holds for the same events, in the order of `PASSES`.

What bindings there are may change: variables that must be one term are replaced by it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from headgate.rdf.language.model import (
    BELOW_PROPERTY,
    LANG_STRING,
    STRING,
    And,
    Call,
    Compare,
    Edge,
    Member,
    Not,
    Or,
    is_iri,
    is_literal,
    is_variable,
    parts,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from headgate.rdf.language.model import Expression, Options, Pattern, Term

HAT = "^"
"""Before an IRI: the property or one below it."""


def rewrite(pattern: Pattern, options: Options) -> Pattern:
    """Apply all passes."""
    for each in PASSES:
        pattern = each(pattern, options)
    return pattern


def split_filters(pattern: Pattern, options: Options) -> Pattern:
    """Let each filter be one that is no conjunction: a filter holds if it is true, and then both sides are.

    `!(a || b)` is true if both are false, and `!!a` if `a` is true.
    """
    del options
    if all(isinstance(each, Compare) for each in pattern.filters):
        return pattern
    found = dict.fromkeys(part for each in pattern.filters for part in _conjuncts(each))
    return replace(pattern, filters=tuple(found))


def _conjuncts(expression: Expression) -> Iterator[Expression]:
    match expression:
        case And(inner):
            for part in inner:
                yield from _conjuncts(part)
        case Not(Or(inner)):
            for part in inner:
                yield from _conjuncts(Not(part))
        case Not(Not(part)):
            yield from _conjuncts(part)
        case _:
            yield expression


def replace_equal(pattern: Pattern, options: Options) -> Pattern:
    """Put a term in place of a variable that must be equal to it, where equal means the same term.

    That is so for IRIs and strings, not for numbers; with `coerce` strings may equal numbers. If nodes must
    be different, a variable that became a constant would no longer be told from the same constant elsewhere.
    """
    if options.injective or not pattern.filters:
        return pattern
    given: dict[Term, Term] = {}
    left: list[Expression] = []
    for each in pattern.filters:
        pair = _equal(each, options)
        if pair is not None and pair[0] not in given:
            given[pair[0]] = pair[1]
        else:
            left.append(each)
    if not given:
        return pattern
    return replace(
        pattern,
        edges=tuple(
            Edge(
                given.get(edge.subject, edge.subject),
                given.get(edge.property, edge.property),
                given.get(edge.object, edge.object),
                edge.path,
            )
            for edge in pattern.edges
        ),
        filters=tuple(substitute(each, given) for each in left),
    )


def _equal(expression: Expression, options: Options) -> tuple[Term, Term] | None:
    if not isinstance(expression, Compare) or expression.sign != "=":
        return None
    for one, other in ((expression.left, expression.right), (expression.right, expression.left)):
        if isinstance(one, str) and isinstance(other, str) and is_variable(one) and is_one(other, options):
            return one, other
    return None


def is_one(term: Term, options: Options) -> bool:
    """Tell whether only this very term is equal to a term."""
    if is_iri(term):
        return True
    if not is_literal(term):
        return False
    kind = parts(term).datatype
    return kind == LANG_STRING or (kind == STRING and not options.coerce)


def substitute(expression: Expression, given: dict[Term, Term]) -> Expression:
    """Put terms in place of variables."""
    match expression:
        case str():
            return given.get(expression, expression)
        case Compare(sign, left, right):
            return Compare(sign, substitute(left, given), substitute(right, given))
        case Member(item, options):
            return Member(substitute(item, given), tuple(substitute(each, given) for each in options))
        case Call(name, arguments):
            return Call(name, tuple(substitute(each, given) for each in arguments))
        case And(inner):
            return And(tuple(substitute(each, given) for each in inner))
        case Or(inner):
            return Or(tuple(substitute(each, given) for each in inner))
        case Not(part):
            return Not(substitute(part, given))


def variables(expression: Expression) -> Iterator[Term]:
    """List the variables of an expression as they come, perhaps again and again."""
    match expression:
        case str():
            if is_variable(expression):
                yield expression
        case Compare(_, left, right):
            yield from variables(left)
            yield from variables(right)
        case Member(item, options):
            for each in (item, *options):
                yield from variables(each)
        case Call(_, inner) | And(inner) | Or(inner):
            for each in inner:
                yield from variables(each)
        case Not(part):
            yield from variables(part)


def hat_properties(pattern: Pattern, options: Options) -> Pattern:
    """Let `?x ?p ?y . ?p rdfs:subPropertyOf* q` be one edge of property `^q`, if ?p is nowhere else."""
    if all(edge.path != BELOW_PROPERTY for edge in pattern.edges) or options.injective:
        return pattern
    used = [name for each in pattern.filters for name in variables(each)]
    used += [term for edge in pattern.edges for term in (edge.subject, edge.property, edge.object)]
    hats = {
        edge.subject: HAT + edge.object
        for edge in pattern.edges
        if edge.path == BELOW_PROPERTY and is_variable(edge.subject) and is_iri(edge.object)
        and used.count(edge.subject) == 2
        and any(each.property == edge.subject for each in pattern.edges)
    }  # fmt: skip
    edges = (
        Edge(edge.subject, hats.get(edge.property, edge.property), edge.object, edge.path)
        for edge in pattern.edges
        if edge.path != BELOW_PROPERTY or edge.subject not in hats
    )
    return replace(pattern, edges=tuple(edges))


def drop_repeated(pattern: Pattern, options: Options) -> Pattern:
    """Write each edge once: a pattern is a set of them."""
    del options
    edges = tuple(dict.fromkeys(pattern.edges))
    return pattern if len(edges) == len(pattern.edges) else replace(pattern, edges=edges)


PASSES: tuple[Callable[[Pattern, Options], Pattern], ...] = (
    split_filters,
    replace_equal,
    hat_properties,
    drop_repeated,
)
