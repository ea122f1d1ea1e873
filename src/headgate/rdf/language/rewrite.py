"""From a pattern to one that is easier to index and holds for the same events.

What bindings there are may change: variables that must be one term are replaced by it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from headgate.rdf.language import model

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from headgate.rdf.language.model import Expression, Options, Pattern, Term

HAT = "^"
"""Before an IRI: the property or one below it."""


def rewrite(pattern: Pattern, options: Options) -> Pattern:
    """Apply all passes."""
    return drop_repeated(hat_properties(replace_equal(split_filters(pattern), options), options))


def split_filters(pattern: Pattern) -> Pattern:
    """Let each filter be one that is no conjunction: a filter holds if it is true, and then both sides are.

    `!(a || b)` is true if both are false, and `!!a` if `a` is true.
    """
    if all(isinstance(each, model.Compare) for each in pattern.filters):
        return pattern
    filters = dict.fromkeys(part for each in pattern.filters for part in _conjuncts(each))
    return replace(pattern, filters=tuple(filters))


def joined_by_and(filters: Iterable[Expression]) -> Iterator[Expression]:
    """List what && joins, from left to right."""
    for each in filters:
        if isinstance(each, model.And):
            yield from joined_by_and(each.parts)
        else:
            yield each


def _conjuncts(expression: Expression) -> Iterator[Expression]:
    match expression:
        case model.And(inner):
            for part in inner:
                yield from _conjuncts(part)
        case model.Not(model.Or(inner)):
            for part in inner:
                yield from _conjuncts(model.Not(part))
        case model.Not(model.Not(part)):
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
        edges=tuple(renamed(edge, given) for edge in pattern.edges),
        filters=tuple(substitute(each, given) for each in left),
    )


def _equal(expression: Expression, options: Options) -> tuple[Term, Term] | None:
    if not isinstance(expression, model.Compare) or expression.sign != "=":
        return None
    for one, other in ((expression.left, expression.right), (expression.right, expression.left)):
        if (
            isinstance(one, str)
            and isinstance(other, str)
            and model.is_variable(one)
            and is_one(other, options)
        ):
            return one, other
    return None


def is_one(term: Term, options: Options) -> bool:
    """Tell whether only this very term is equal to a term."""
    if model.is_iri(term):
        return True
    if not model.is_literal(term):
        return False
    kind = model.parts(term).datatype
    return kind == model.LANG_STRING or (kind == model.STRING and not options.coerce)


def renamed(edge: model.Edge, given: Mapping[Term, Term]) -> model.Edge:
    """Put terms in place of the variables of an edge."""
    subject, property_, end = (given.get(term, term) for term in edge[:3])
    return model.Edge(subject, property_, end, edge.path)


def substitute(expression: Expression, given: Mapping[Term, Term]) -> Expression:
    """Put terms in place of variables."""
    # Parsing fills in templates by this: asking for types one by one is quicker than matching.
    if isinstance(expression, str):
        return given.get(expression, expression)
    if isinstance(expression, model.Compare):
        left, right = substitute(expression.left, given), substitute(expression.right, given)
        return model.Compare(expression.sign, left, right)
    if isinstance(expression, model.Call):
        return model.Call(expression.name, tuple([substitute(each, given) for each in expression.arguments]))
    if isinstance(expression, model.Member):
        options = tuple([substitute(each, given) for each in expression.options])
        return model.Member(substitute(expression.item, given), options)
    if isinstance(expression, model.Not):
        return model.Not(substitute(expression.part, given))
    return type(expression)(tuple([substitute(each, given) for each in expression.parts]))


def variables(expression: Expression) -> Iterator[Term]:
    """List the variables of an expression as they come, perhaps again and again."""
    return (each for each in model.within(expression) if isinstance(each, str) and model.is_variable(each))


def hat_properties(pattern: Pattern, options: Options) -> Pattern:
    """Let `?x ?p ?y . ?p rdfs:subPropertyOf* q` be one edge of property `^q`, if ?p is nowhere else."""
    if all(edge.path != model.BELOW_PROPERTY for edge in pattern.edges) or options.injective:
        return pattern
    used = [name for each in pattern.filters for name in variables(each)]
    used += [term for edge in pattern.edges for term in edge[:3]]
    hats = {
        edge.subject: HAT + edge.object
        for edge in pattern.edges
        if edge.path == model.BELOW_PROPERTY and model.is_variable(edge.subject) and model.is_iri(edge.object)
        and used.count(edge.subject) == 2
        and any(each.property == edge.subject for each in pattern.edges)
    }  # fmt: skip
    edges = (
        model.Edge(edge.subject, hats.get(edge.property, edge.property), edge.object, edge.path)
        for edge in pattern.edges
        if edge.path != model.BELOW_PROPERTY or edge.subject not in hats
    )
    return replace(pattern, edges=tuple(edges))


def drop_repeated(pattern: Pattern) -> Pattern:
    """Write each edge once: a pattern is a set of them."""
    edges = tuple(dict.fromkeys(pattern.edges))
    return pattern if len(edges) == len(pattern.edges) else replace(pattern, edges=edges)
