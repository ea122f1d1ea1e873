"""Random views over RDF that have to do with each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.rdf.language.model import ISA, PLAIN, Edge, Pattern, is_variable
from headgate.rdf.language.rewrite import substitute, variables
from tests.rdf.random_patterns import planted_pattern, random_pattern

if TYPE_CHECKING:
    import random

    from headgate.rdf.language.model import Expression, Graph, Term


def wider(rng: random.Random, pattern: Pattern) -> Pattern:
    """Draw a view that often embeds in another: fewer edges and filters, more variables, other names."""
    edges, filters = list(pattern.edges), list(pattern.filters)
    if not edges:
        return pattern
    for _ in range(rng.randrange(5)):
        draw = rng.random()
        if draw < 0.5 and len(edges) > 1:
            edges.pop(rng.randrange(len(edges)))
        elif draw < 0.7 and filters:
            filters.pop(rng.randrange(len(filters)))
        else:
            place = rng.randrange(len(edges))
            edges[place] = _freed(rng, edges[place])
    if rng.random() < 0.4:
        names = dict.fromkeys(term for edge in edges for term in _terms(edge) if is_variable(term))
        fresh = {name: f"{name}{rng.randrange(3)}" for name in names}
        edges = [_named(edge, fresh) for edge in edges]
        filters = [substitute(each, fresh) for each in filters]
    rng.shuffle(edges)
    return _sound(edges, filters)


def view_set(rng: random.Random, graph: Graph, size: int) -> list[Pattern]:
    """Draw views: some by themselves, the others wider than one that is there."""
    views: list[Pattern] = []
    while len(views) < size:
        draw = rng.random()
        if not views or draw < 0.1:
            views.append(planted_pattern(rng, graph))
        elif draw < 0.2:
            views.append(random_pattern(rng))
        else:
            views.append(wider(rng, rng.choice(views)))
    return views


def _sound(edges: list[Edge], filters: list[Expression]) -> Pattern:
    """Leave out what looks at variables that nothing binds any more."""
    bound = {
        term for edge in edges if edge.path in (PLAIN, ISA) for term in _terms(edge) if is_variable(term)
    }
    kept = [edge for edge in edges if all(term in bound or not is_variable(term) for term in _terms(edge))]
    return Pattern(tuple(kept), tuple(each for each in filters if set(variables(each)) <= bound))


def _freed(rng: random.Random, edge: Edge) -> Edge:
    """Put a variable in a place of an edge."""
    terms = list(_terms(edge))
    place = rng.choice((0, 1, 2) if edge.path == PLAIN else (0, 2))
    terms[place] = f"?new{rng.randrange(4)}"
    return Edge(terms[0], terms[1], terms[2], edge.path)


def _named(edge: Edge, fresh: dict[Term, Term]) -> Edge:
    subject, middle, target = (fresh.get(term, term) for term in _terms(edge))
    return Edge(subject, middle, target, edge.path)


def _terms(edge: Edge) -> tuple[Term, Term, Term]:
    return edge.subject, edge.property, edge.object
