"""Any filter in clauses: a pattern as its parts, a whole query as one, as its parts mean little alone.

5-tuples with class constraints are taken apart like patterns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.contents.protocol import Clause
from headgate.core.subscription import SPARQL
from headgate.core.values import fold
from headgate.errors import FilterError
from headgate.rdf.language.model import BELOW, BELOW_PROPERTY, PLAIN, SUBCLASS, Pattern, is_variable
from headgate.rdf.language.parse import parse_filter
from headgate.rdf.language.printing import print_pattern
from headgate.rdf.language.rewrite import joined_by_and, variables
from headgate.rdf.whole.query import CLASS_PATH, parse_any, print_any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headgate.rdf.language.model import Edge, Expression, Term


_CHECKS = (BELOW, BELOW_PROPERTY)


def split(text: str, dialect: str) -> tuple[Clause, ...]:
    """Take a filter apart, in the order in which it is written; equal clauses are written alike.

    >>> text = "PREFIX : <urn:x:> ASK { ?x :year ?y ; :by ?z FILTER(?y > 2000 && isIRI(?z)) }"
    >>> for clause in split(text, "sparql"):
    ...     print(clause)
    Clause(filter='ASK { ?x <urn:x:year> ?y }', names=('urn:x:year',))
    Clause(filter='ASK { ?x <urn:x:by> ?z }', names=('urn:x:by',))
    Clause(filter='ASK { ?x <urn:x:year> ?y . FILTER(?y > 2000) }', names=('?y',))
    Clause(filter='ASK { ?x <urn:x:by> ?z . FILTER(isIRI(?z)) }', names=('?z',))
    """
    pattern = parse_filter(text, dialect)
    if not pattern.edges:
        return (_clause(Pattern(()), ()),)
    conditions = list(joined_by_and(pattern.filters))
    checks = [index for index, edge in enumerate(pattern.edges) if edge.path in _CHECKS]
    if len(conditions) + len(checks) == 1:
        alone = _condition(pattern, conditions[0]) if conditions else _edge(pattern, checks[0])
        if alone[0].edges == pattern.edges:
            return (_clause(*alone),)
    parts = [_edge(pattern, index) for index in range(len(pattern.edges))]
    parts += [_condition(pattern, each) for each in conditions]
    return tuple(_clause(*part) for part in parts)


def _edge(pattern: Pattern, index: int) -> tuple[Pattern, tuple[str, ...]]:
    """Ask for one triple pattern; for one that checks, with those that bind its variables."""
    edge = pattern.edges[index]
    plain = edge.path == PLAIN and not is_variable(edge.property)
    names = (edge.property[1:-1] if plain else edge.property,)
    if edge.path not in _CHECKS:
        return Pattern((edge,)), names
    needed = {index, *_binders(pattern, filter(is_variable, (edge.subject, edge.object)))}
    return Pattern(tuple(pattern.edges[each] for each in sorted(needed))), names


def _condition(pattern: Pattern, condition: Expression) -> tuple[Pattern, tuple[str, ...]]:
    """Ask for one condition with the triple patterns that bind its variables; the first if it has none."""
    names = tuple(dict.fromkeys(variables(condition)))
    first = next(index for index, edge in enumerate(pattern.edges) if edge.path not in _CHECKS)
    needed = _binders(pattern, names) or {first}
    return Pattern(tuple(pattern.edges[each] for each in sorted(needed)), (condition,)), names


def _clause(part: Pattern, names: tuple[str, ...]) -> Clause:
    return Clause(print_pattern(part), tuple(dict.fromkeys(map(fold, names))))


def _binders(pattern: Pattern, names: Iterable[Term]) -> set[int]:
    """Find the first triple pattern that binds all these variables, or else the first for each."""
    wanted = list(names)
    binding = [(index, {*edge[:3]}) for index, edge in enumerate(pattern.edges) if edge.path not in _CHECKS]
    for index, terms in binding:
        if wanted and terms.issuperset(wanted):
            return {index}
    return {next(index for index, terms in binding if each in terms) for each in wanted}


_BELOW = f"{SUBCLASS}*"


def split_any(text: str, dialect: str) -> tuple[Clause, ...]:
    """Take a filter apart; a whole query is named by the properties that it needs.

    >>> split_any("ASK { ?x <urn:by> ?y OPTIONAL { ?x <urn:year> ?z } }", "sparql")
    (Clause(filter='ASK { ?x <urn:by> ?y OPTIONAL { ?x <urn:year> ?z } }', names=('urn:by',)),)
    """
    filter_ = parse_any(text, dialect, tried=False)
    if isinstance(filter_, Pattern):
        return split(text, dialect)
    if CLASS_PATH in filter_.text:
        clauses = _of_tuples(print_any(filter_))
        if clauses:
            return clauses
    names = dict.fromkeys(fold(_name(edge)) for member, _ in filter_.members for edge in member.edges)
    return (Clause(filter_.text, tuple(names)),)


def _of_tuples(text: str) -> tuple[Clause, ...]:
    """Take class constraints for checks that patterns know, and put them back in the clauses."""
    try:
        clauses = split(text.replace(CLASS_PATH, _BELOW), SPARQL)
    except FilterError:
        return ()
    return tuple(Clause(each.filter.replace(_BELOW, CLASS_PATH), each.names) for each in clauses)


def _name(edge: Edge) -> str:
    plain = edge.path == PLAIN and not is_variable(edge.property)
    return edge.property[1:-1] if plain else edge.property
