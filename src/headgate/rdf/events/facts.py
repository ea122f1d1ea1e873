"""An event's graph with its types and what is below what, indexed: the quick sister of `reference.World`."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, TypeAlias

from headgate.rdf.language.model import (
    BELOW_PROPERTY,
    ISA,
    PLAIN,
    SUBCLASS,
    SUBPROPERTY,
    TYPE,
    is_iri,
    is_variable,
)
from headgate.rdf.taxonomy.entailing import entailed, own_order

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from headgate.rdf.language.model import Edge, Graph, Term
    from headgate.rdf.taxonomy.taxonomy import Taxonomy

    Statement: TypeAlias = tuple[Term, Term, Term]
    Binding: TypeAlias = Mapping[Term, Term]

_Mask: TypeAlias = tuple[int, ...]


class Facts:
    """What is true in an event: triples, types that the taxonomy lists, and what lies below what.

    An index is made when it is first asked for: for each choice of places (subject, property, object) the
    triples by what they have there. Triples are in the event's order everywhere.
    """

    def __init__(self, graph: Graph, taxonomy: Taxonomy | None) -> None:
        """Put an event and the taxonomy together."""
        own = entailed(graph, taxonomy).statements()
        nodes = dict.fromkeys(node for s, _, o in own for node in (s, o) if is_iri(node))
        listed = [
            (node, TYPE, each)
            for node in nodes
            for each in (() if taxonomy is None else sorted(taxonomy.types(node)))
        ]
        self.statements: list[Statement] = list(dict.fromkeys(own + listed))
        self._taxonomy = taxonomy
        self._indexes: dict[_Mask, dict[tuple[Term, ...], list[Statement]]] = {}
        self._above: dict[tuple[Term, Term], frozenset[Term]] = {}
        self._ups: dict[Term, dict[Term, list[Term]]] = {SUBCLASS: {}, SUBPROPERTY: {}}
        for s, p, o in own_order(own):
            self._ups[p].setdefault(s, []).append(o)

    def triples(self, wanted: Sequence[Term | None]) -> list[Statement]:
        """List the triples that have given terms in some places; None stands for any."""
        mask = tuple(place for place, term in enumerate(wanted) if term is not None)
        if not mask:
            return self.statements
        index = self._indexes.get(mask)
        if index is None:
            index = defaultdict(list)
            for statement in self.statements:
                index[tuple(statement[place] for place in mask)].append(statement)
            self._indexes[mask] = index
        return index.get(tuple(wanted[place] or "" for place in mask), [])

    def above(self, term: Term, relation: Term = SUBCLASS) -> frozenset[Term]:
        """List a term and all above it, by rdfs:subClassOf or rdfs:subPropertyOf."""
        found = self._above.get((term, relation))
        if found is None:
            found = self._walk(term, relation)
            self._above[term, relation] = found
        return found

    def types(self, node: Term) -> list[Term]:
        """List the types of a node, without what is above them."""
        return [each for _, _, each in self.triples((node, TYPE, None))]

    def pairs(self, subject: Term | None, above: Term | None) -> Iterable[tuple[Term, Term]]:
        """List nodes with each class that they have a type of or below; None stands for any."""
        if subject is not None:
            classes = dict.fromkeys(up for each in self.types(subject) for up in sorted(self.above(each)))
            return [(subject, each) for each in classes if above in {None, each}]
        found: dict[tuple[Term, Term], None] = {}
        for node, _, each in self.triples((None, TYPE, None)):
            ups = self.above(each)
            if above is None:
                found.update(((node, up), None) for up in sorted(ups))
            elif above in ups:
                found[node, above] = None
        return list(found)

    def below(self, edge: Edge, low: Term, high: Term) -> bool:
        """Tell whether one term is another or below it, as an edge of BELOW or BELOW_PROPERTY asks."""
        return high in self.above(low, SUBPROPERTY if edge.path == BELOW_PROPERTY else SUBCLASS)

    def _walk(self, term: Term, relation: Term) -> frozenset[Term]:
        ups = self._ups[relation]
        found = {term}
        todo = [term]
        while todo:
            one = todo.pop()
            higher = set(ups.get(one, ()))
            if self._taxonomy is not None:
                if relation == SUBCLASS:
                    higher |= self._taxonomy.ancestors(one)
                else:
                    higher |= self._taxonomy.property_ancestors(one)
            todo += higher - found
            found |= higher
        return frozenset(found)


def ways(facts: Facts, edge: Edge, binding: Binding) -> list[Statement]:
    """List the ways in which an edge can hold under a binding: what stands for subject, property and object.

    A path stands for itself.
    """
    wanted = [_known(term, binding) for term in (edge.subject, edge.property, edge.object)]
    if edge.path == PLAIN:
        found = facts.triples(wanted)
        repeated = len({edge.subject, edge.property, edge.object}) < 3
        return [each for each in found if _agrees(edge, each)] if repeated else found
    low, _, high = wanted
    if edge.path == ISA:
        found = [(node, ISA, each) for node, each in facts.pairs(low, high)]
        return [each for each in found if _agrees(edge, each)] if edge.subject == edge.object else found
    if low is None or high is None or not facts.below(edge, low, high):
        return []
    return [(low, edge.path, high)]


def _known(term: Term, binding: Binding) -> Term | None:
    return binding.get(term) if is_variable(term) else term


def _agrees(edge: Edge, found: Statement) -> bool:
    """Tell whether a variable that stands twice in an edge stands for one term."""
    pattern = (edge.subject, edge.property, edge.object)
    return all(found[i] == found[j] for i in range(3) for j in range(i) if pattern[i] == pattern[j])
