"""An event as the algorithms by name see it: its triples, what they are instances of, what is above what."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from headgate.rdf.language.model import (
    BELOW_PROPERTY,
    ISA,
    PLAIN,
    SUBCLASS,
    SUBPROPERTY,
    TYPE,
    is_iri,
    is_variable,
    nodes,
)
from headgate.rdf.language.values import holds
from headgate.rdf.taxonomy.taxonomy import own_order

if TYPE_CHECKING:
    from headgate.rdf.language.model import Edge, Expression, Graph, Options, Pattern, Term
    from headgate.rdf.taxonomy.taxonomy import Taxonomy

    Statement: TypeAlias = tuple[Term, Term, Term]
    Wanted: TypeAlias = tuple[Term | None, Term | None, Term | None]


class Demand(NamedTuple):
    """What a filter asks for, in two stages."""

    edges: tuple[Edge, ...]
    """Each once. They bind all variables."""
    constraints: tuple[Edge, ...]
    """Of what is bound by then: that it lies below a class or property, or is an instance of a class."""
    filters: tuple[Expression, ...]
    apart: tuple[Term, ...]
    """What stands for different nodes, if the match shall be injective; else empty."""

    def accepts(self, binding: dict[Term, Term], published: PublishedGraph, options: Options) -> bool:
        """Tell whether constraints and filters hold for a binding under which all edges do."""
        return (
            all(_lies_below(each, binding, published) for each in self.constraints)
            and (not self.apart or self._injective(binding))
            and all(holds(each, binding, options) for each in self.filters)
        )

    def _injective(self, binding: dict[Term, Term]) -> bool:
        places = {image(node, binding) for node in self.apart}
        plain = [edge for edge in self.edges if edge.path == PLAIN]
        triples = {
            tuple(image(term, binding) for term in (edge.subject, edge.property, edge.object))
            for edge in plain
        }
        return len(places) == len(self.apart) and len(triples) == len(plain)


def image(term: Term, binding: dict[Term, Term]) -> Term:
    """Return what a term of a filter stands for."""
    return binding[term] if is_variable(term) else term


def demand(pattern: Pattern, options: Options, *, types_bind: bool = False) -> Demand:
    """Part a filter into what binds and what is checked.

    An ISA edge is a constraint, as in the paper, if plain edges bind its variables. Otherwise, or always with
    `types_bind`, it is an edge like others, over the triples of `PublishedGraph.isa`.
    """
    edges = dict.fromkeys(pattern.edges)
    bound = {
        term
        for edge in edges
        if edge.path == PLAIN
        for term in (edge.subject, edge.property, edge.object)
        if is_variable(term)
    }
    binds = {
        edge: edge.path == PLAIN or (edge.path == ISA and (types_bind or not _is_checked(edge, bound)))
        for edge in edges
    }
    binding = tuple(edge for edge in edges if binds[edge])
    return Demand(
        # The same tuple takes no memory.
        pattern.edges if binding == pattern.edges else binding,
        tuple(edge for edge in edges if not binds[edge]),
        pattern.filters,
        tuple(nodes(pattern)) if options.injective else (),
    )


def _is_checked(edge: Edge, bound: set[Term]) -> bool:
    return edge.subject in bound and (edge.object in bound or not is_variable(edge.object))


def _lies_below(edge: Edge, binding: dict[Term, Term], published: PublishedGraph) -> bool:
    low, high = image(edge.subject, binding), image(edge.object, binding)
    if edge.path == ISA:
        return high in published.classes.get(low, ())
    return high in published.above(low, SUBPROPERTY if edge.path == BELOW_PROPERTY else SUBCLASS)


class Lineage:
    """What the taxonomy of now says, remembered until the taxonomy changes."""

    def __init__(self, taxonomy: Taxonomy | None) -> None:
        self._taxonomy = taxonomy
        self._version = -1
        self._above: dict[tuple[Term, Term], frozenset[Term]] = {}
        self._types: dict[Term, frozenset[Term]] = {}

    def refresh(self) -> None:
        """Forget what was said of an earlier version; to be called once an event."""
        if self._taxonomy is not None and self._taxonomy.version != self._version:
            self._version = self._taxonomy.version
            self._above.clear()
            self._types.clear()

    def above(self, term: Term, relation: Term) -> frozenset[Term]:
        """List a term and all above it, by rdfs:subClassOf or rdfs:subPropertyOf."""
        if self._taxonomy is None:
            return frozenset((term,))
        ancestors = self._above.get((term, relation))
        if ancestors is None:
            ask = self._taxonomy.ancestors if relation == SUBCLASS else self._taxonomy.property_ancestors
            # Terms that the taxonomy knows are few; those that come and go with events are not kept.
            ancestors = ask(term)
            if len(ancestors) > 1:
                self._above[term, relation] = ancestors
        return ancestors

    def types(self, term: Term) -> frozenset[Term]:
        """List the classes that the taxonomy gives an instance."""
        if self._taxonomy is None:
            return frozenset()
        classes = self._types.get(term)
        if classes is None:
            classes = self._taxonomy.types(term)
            if classes:
                self._types[term] = classes
        return classes


class PublishedGraph:
    """An event's graph: its triples, and `x rdf:type C` for each node x that the taxonomy lists under C."""

    def __init__(self, graph: Graph, lineage: Lineage) -> None:
        lineage.refresh()
        own = graph.statements()
        nodes = dict.fromkeys(node for s, _, o in own for node in (s, o) if is_iri(node))
        listed = [(node, TYPE, of) for node in nodes for of in lineage.types(node)]
        self.statements: list[Statement] = list(dict.fromkeys(own + listed)) if listed else own
        self._lineage = lineage
        self._ups: dict[Term, dict[Term, list[Term]]] = {SUBCLASS: {}, SUBPROPERTY: {}}
        for s, p, o in own_order(own):
            self._ups[p].setdefault(s, []).append(o)

    def above(self, term: Term, relation: Term) -> frozenset[Term]:
        """List a term and all above it, by what the taxonomy and the event say together."""
        ups = self._ups[relation]
        known = self._lineage.above(term, relation)
        if not ups:
            return known
        ancestors, open_ = {*known}, [*known]
        while open_:
            for up in ups.get(open_.pop(), ()):
                new = self._lineage.above(up, relation) - ancestors
                ancestors |= new
                open_ += new
        return frozenset(ancestors)

    @cached_property
    def classes(self) -> dict[Term, frozenset[Term]]:
        """List, for each node that has a type, its types and all above them."""
        types: dict[Term, list[Term]] = {}
        for s, p, o in self.statements:
            if p == TYPE:
                types.setdefault(s, []).append(o)
        return {
            node: frozenset().union(*(self.above(one, SUBCLASS) for one in of)) for node, of in types.items()
        }

    def isa(self) -> list[Statement]:
        """Write a node's types and all above them as triples with a property that no event has."""
        return [(node, ISA, up) for node, ups in self.classes.items() for up in ups]

    @cached_property
    def _tables(self) -> dict[Wanted, list[Statement]]:
        tables: dict[Wanted, list[Statement]] = {}
        for statement in self.statements:
            for wanted in _askings(statement):
                tables.setdefault(wanted, []).append(statement)
        for statement in self.isa():
            for wanted in _askings(statement):
                # A variable in place of the property is no question for types.
                if wanted[1] is not None:
                    tables.setdefault(wanted, []).append(statement)
        return tables

    def find(self, wanted: Wanted) -> list[Statement]:
        """List the triples with some terms; None stands for any."""
        return self._tables.get(wanted, _NONE)


_NONE: list[Statement] = []


def _askings(statement: Statement) -> list[Wanted]:
    """List the eight ways to ask for a triple."""
    s, p, o = statement
    return [(a, b, c) for a in (s, None) for b in (p, None) for c in (o, None)]
