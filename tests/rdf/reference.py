"""What a filter means, written so that one can see it: try everything, slowly.

All other ways to match in this room have to agree with this one, which follows SPARQL 1.1 word by word.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from headgate.rdf.language.model import (
    BELOW_PROPERTY,
    ISA,
    PLAIN,
    SPARQL,
    SUBCLASS,
    SUBPROPERTY,
    TYPE,
    is_iri,
    is_variable,
    nodes,
)
from headgate.rdf.language.values import holds
from headgate.rdf.taxonomy.taxonomy import entailed, own_order

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headgate.rdf.language.model import Edge, Graph, Options, Pattern, Term
    from headgate.rdf.taxonomy.taxonomy import Taxonomy

    Statement: TypeAlias = tuple[Term, Term, Term]
    Binding: TypeAlias = dict[Term, Term]


class World:
    """What a pattern is held against: an event's graph, and what is below what.

    `statements` are the event's triples, and `x rdf:type C` for each of its nodes x that the taxonomy lists
    as an instance of C. What is below what, the taxonomy and the event say together. `instances` are pairs
    of a node and a class that it has a type of or below.
    """

    def __init__(self, graph: Graph, taxonomy: Taxonomy | None) -> None:
        """Put an event and the taxonomy together."""
        graph = entailed(graph, taxonomy)
        own = graph.statements()
        known = [] if taxonomy is None else list(taxonomy.statements())
        nodes = {node for s, _, o in own for node in (s, o) if is_iri(node)}
        listed = [(s, p, o) for s, p, o in known if p == TYPE and s in nodes]
        self.statements: list[Statement] = list(dict.fromkeys(own + listed))
        self._ups = {
            relation: [(s, o) for s, p, o in [*own_order(own), *known] if p == relation]
            for relation in (SUBCLASS, SUBPROPERTY)
        }
        typed = [(s, self.above(o, SUBCLASS)) for s, p, o in self.statements if p == TYPE]
        self.instances = list(dict.fromkeys((s, up) for s, ups in typed for up in ups))

    def above(self, term: Term, relation: Term) -> list[Term]:
        """List a term and all above it, by rdfs:subClassOf or rdfs:subPropertyOf."""
        found = [term]
        for one in found:  # which grows while it is walked, until nothing new is above
            for low, up in self._ups[relation]:
                if low == one and up not in found:
                    found.append(up)
        return found


def matches(
    pattern: Pattern, graph: Graph, taxonomy: Taxonomy | None = None, options: Options = SPARQL
) -> bool:
    """Tell whether a filter holds for an event."""
    return next(_passing(pattern, World(graph, taxonomy), options), None) is not None


def solutions(
    pattern: Pattern,
    graph: Graph,
    taxonomy: Taxonomy | None = None,
    options: Options = SPARQL,
    limit: int | None = None,
) -> list[Binding]:
    """List the bindings under which a filter holds, each once, with those of blank nodes."""
    found: dict[tuple[Term, ...], Binding] = {}
    for binding in _passing(pattern, World(graph, taxonomy), options):
        if limit is not None and len(found) >= limit:
            break
        found.setdefault(tuple(binding[name] for name in pattern.variables), binding)
    return list(found.values())


def _passing(pattern: Pattern, world: World, options: Options) -> Iterator[Binding]:
    edges = list(dict.fromkeys(pattern.edges))
    # Edges of BELOW bind nothing; the others have bound their variables before.
    edges.sort(key=lambda edge: edge.path not in {PLAIN, ISA})
    for binding in _bindings(edges, {}, world):
        if options.injective and not _injective(pattern, edges, binding):
            continue
        if all(holds(one, binding, options) for one in pattern.filters):
            yield binding


def _bindings(edges: list[Edge], binding: Binding, world: World) -> Iterator[Binding]:
    """Yield what binds all edges, and agrees with the binding."""
    if not edges:
        yield binding
        return
    for larger in _edge(edges[0], binding, world):
        yield from _bindings(edges[1:], larger, world)


def _edge(edge: Edge, binding: Binding, world: World) -> Iterator[Binding]:
    """Yield the ways in which one edge can hold, each the binding with what it binds anew."""
    if edge.path == PLAIN:
        wanted = (edge.subject, edge.property, edge.object)
        for statement in world.statements:
            yield from _unified(wanted, statement, binding)
    elif edge.path == ISA:
        for pair in world.instances:
            yield from _unified((edge.subject, edge.object), pair, binding)
    else:
        relation = SUBPROPERTY if edge.path == BELOW_PROPERTY else SUBCLASS
        low, high = (image(term, binding) for term in (edge.subject, edge.object))
        if high in world.above(low, relation):
            yield binding


def _unified(wanted: tuple[Term, ...], found: tuple[Term, ...], binding: Binding) -> Iterator[Binding]:
    larger = dict(binding)
    for term, one in zip(wanted, found, strict=True):
        if (larger.setdefault(term, one) if is_variable(term) else term) != one:
            return
    yield larger


def image(term: Term, binding: Binding) -> Term:
    """Return what a term of the pattern stands for."""
    return binding[term] if is_variable(term) else term


def _injective(pattern: Pattern, edges: list[Edge], binding: Binding) -> bool:
    places = [image(node, binding) for node in nodes(pattern)]
    triples = [
        tuple(image(term, binding) for term in (edge.subject, edge.property, edge.object))
        for edge in edges
        if edge.path == PLAIN
    ]
    return len(set(places)) == len(places) and len(set(triples)) == len(triples)
