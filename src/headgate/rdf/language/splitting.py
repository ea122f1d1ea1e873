"""A filter in clauses, each a filter of its own: for ranking, where not all of them must hold.

One clause for each triple pattern, asked alone; then one for each condition that FILTERs join by &&, asked
together with the triple patterns that bind its variables. A path that only checks, such as
`?p rdfs:subPropertyOf* :q`, is asked with those that bind its variables too. To bind variables, the first
triple pattern is taken that has all of them, or else the first for each.

A filter with one condition or check, and no other triple patterns than those that bind it, is one clause: so
a clause taken apart is itself again.

A clause is named by the IRI of its property, by its path, or by the variables of its condition, in lower case
as all names that are weighed. A filter that asks for nothing is one clause without a name.

When the filter holds, all of its clauses do. The converse is not true of a join: `?x :a ?y . ?y :b ?z` asks
for one `?y`, where its two clauses may find two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.contents.protocol import Clause
from headgate.core.values import fold
from headgate.rdf.language.model import BELOW, BELOW_PROPERTY, PLAIN, And, Pattern, is_variable
from headgate.rdf.language.parse import parse_filter
from headgate.rdf.language.printing import print_pattern
from headgate.rdf.language.rewrite import variables

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from headgate.rdf.language.model import Expression, Term

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
    conditions = list(_joined(pattern.filters))
    checks = [place for place, edge in enumerate(pattern.edges) if edge.path in _CHECKS]
    if len(conditions) + len(checks) == 1:
        alone = _condition(pattern, conditions[0]) if conditions else _edge(pattern, checks[0])
        if alone[0].edges == pattern.edges:
            return (_clause(*alone),)
    parts = [_edge(pattern, place) for place in range(len(pattern.edges))]
    parts += [_condition(pattern, each) for each in conditions]
    return tuple(_clause(*part) for part in parts)


def _edge(pattern: Pattern, place: int) -> tuple[Pattern, tuple[str, ...]]:
    """Ask for one triple pattern; for one that checks, with those that bind its variables."""
    edge = pattern.edges[place]
    plain = edge.path == PLAIN and not is_variable(edge.property)
    names = (edge.property[1:-1] if plain else edge.property,)
    if edge.path not in _CHECKS:
        return Pattern((edge,)), names
    needed = {place, *_binders(pattern, filter(is_variable, (edge.subject, edge.object)))}
    return Pattern(tuple(pattern.edges[each] for each in sorted(needed))), names


def _condition(pattern: Pattern, condition: Expression) -> tuple[Pattern, tuple[str, ...]]:
    """Ask for one condition with the triple patterns that bind its variables; the first if it has none."""
    names = tuple(dict.fromkeys(variables(condition)))
    first = next(place for place, edge in enumerate(pattern.edges) if edge.path not in _CHECKS)
    needed = _binders(pattern, names) or {first}
    return Pattern(tuple(pattern.edges[each] for each in sorted(needed)), (condition,)), names


def _clause(part: Pattern, names: tuple[str, ...]) -> Clause:
    return Clause(print_pattern(part), tuple(dict.fromkeys(map(fold, names))))


def _binders(pattern: Pattern, names: Iterable[Term]) -> set[int]:
    """Find the first triple pattern that binds all these variables, or else the first for each."""
    wanted = list(names)
    binding = [
        (place, {edge.subject, edge.property, edge.object})
        for place, edge in enumerate(pattern.edges)
        if edge.path not in _CHECKS
    ]
    for place, terms in binding:
        if wanted and terms.issuperset(wanted):
            return {place}
    return {next(place for place, terms in binding if each in terms) for each in wanted}


def _joined(filters: Iterable[Expression]) -> Iterator[Expression]:
    """List what && joins, from left to right."""
    for each in filters:
        if isinstance(each, And):
            yield from _joined(each.parts)
        else:
            yield each
