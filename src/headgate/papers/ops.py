"""OPS-style: filters merged by structure, with every node a variable.

What is known here of OPS (Wang, Jin and Li, "An ontology-based publish/subscribe system", Middleware 2004)
is what the paper on G-ToPSS says of it in sections 2 and 5: events and subscriptions are RDF graphs;
subscriptions that overlap are merged; matching is a general subgraph search over them, in which any node
of the event may stand for any node of a subscription. Its own structures are not followed; what is here is
our reading of that sentence:

- A filter's edges are put in an order in which each touches those before it where it can, smaller labels
  first. Nodes are numbered as they come, constants like variables. Labels of edges stay as they are.
- These sequences make a tree. Filters whose structures begin alike share the way from the root.
- An event is matched by walking the tree: a node of the tree is reached once for each way to map its
  structure into the event. The constants of a filter, its taxonomy and its filters are checked where its
  way ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from headgate.errors import SubscriptionError
from headgate.papers.published import Lineage, PublishedGraph, demand
from headgate.rdf.language.model import SPARQL, is_variable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headgate.papers.published import Demand
    from headgate.rdf.language.model import Edge, Graph, Options, Pattern, Term
    from headgate.rdf.taxonomy.taxonomy import Taxonomy

    Step: TypeAlias = tuple[int, Term | int, int]
    """Subject, property and object: numbers of places in a mapping, or the property's label."""


class Junction:
    """A node of the tree: a structure, the filters that have it, and the larger structures behind it."""

    __slots__ = ("ending", "onward")

    def __init__(self) -> None:
        self.onward: dict[Step, Junction] = {}
        self.ending: dict[int, Ending] = {}


class Ending(NamedTuple):
    """What is left to check of a filter when its structure is mapped."""

    constants: tuple[tuple[int, Term], ...]
    variables: tuple[tuple[int, Term], ...]
    wanted: Demand


class OpsStyle:
    """Filters in a tree of structures."""

    def __init__(self, taxonomy: Taxonomy | None = None, options: Options = SPARQL) -> None:
        self._lineage = Lineage(taxonomy)
        self._options = options
        self._root = Junction()
        self._ways: dict[int, tuple[Step, ...]] = {}

    def __len__(self) -> int:
        """Count the filters."""
        return len(self._ways)

    def insert(self, number: int, pattern: Pattern) -> None:
        """Add a filter under a number that is free."""
        if number in self._ways:
            raise SubscriptionError(f"subscription {number} is there already; remove it first")
        wanted = demand(pattern, self._options)
        way, places = structure(wanted.edges)
        junction = self._root
        for step in way:
            junction = junction.onward.setdefault(step, Junction())
        junction.ending[number] = Ending(
            tuple((node, term) for term, node in places.items() if not is_variable(term)),
            tuple((node, term) for term, node in places.items() if is_variable(term)),
            wanted,
        )
        self._ways[number] = way

    def remove(self, number: int) -> None:
        """Remove a filter, and what no other filter needs of the tree."""
        way = self._ways.pop(number, None)
        if way is None:
            raise SubscriptionError(f"there is no subscription {number} to remove")
        passed = [self._root]
        for step in way:
            passed.append(passed[-1].onward[step])
        del passed[-1].ending[number]
        for step, before, junction in reversed([*zip(way, passed[:-1], passed[1:], strict=True)]):
            if junction.onward or junction.ending:
                break
            del before.onward[step]

    def match(self, graph: Graph) -> list[int]:
        """List the numbers of the filters that hold, rising."""
        matches: set[int] = set()
        self._walk(self._root, (), PublishedGraph(graph, self._lineage), matches)
        return sorted(matches)

    def _walk(
        self, junction: Junction, mapped: tuple[Term, ...], published: PublishedGraph, matches: set[int]
    ) -> None:
        """Go on from a structure that is mapped: `mapped[place]` is what a place stands for."""
        for number, ending in junction.ending.items():
            if number not in matches and self._holds(ending, mapped, published):
                matches.add(number)
        known = len(mapped)
        for (s, p, o), onward in junction.onward.items():
            wanted = (
                mapped[s] if s < known else None,
                p if isinstance(p, str) else mapped[p] if p < known else None,
                mapped[o] if o < known else None,
            )
            for triple in published.find(wanted):
                larger = _extended(mapped, ((s, triple[0]), (o, triple[2]), (p, triple[1])))
                if larger is not None:
                    self._walk(onward, larger, published, matches)

    def _holds(self, ending: Ending, mapped: tuple[Term, ...], published: PublishedGraph) -> bool:
        return all(mapped[node] == term for node, term in ending.constants) and ending.wanted.accepts(
            {variable: mapped[node] for node, variable in ending.variables}, published, self._options
        )


def _extended(mapped: tuple[Term, ...], pairs: tuple[tuple[int | str, Term], ...]) -> tuple[Term, ...] | None:
    """Map more places, in the order in which `structure` numbers them; None if one stood for another term."""
    for place, term in pairs:
        if isinstance(place, str):
            continue
        if place == len(mapped):
            mapped = (*mapped, term)
        elif mapped[place] != term:
            return None
    return mapped


def structure(edges: Iterable[Edge]) -> tuple[tuple[Step, ...], dict[Term, int]]:
    """Put edges in order and number their nodes; returns the steps, and the number of each node.

    >>> from headgate.rdf.language.model import Edge
    >>> structure([Edge("?x", "<q>", "<B>"), Edge("<A>", "<p>", "?x")])
    (((0, '<p>', 1), (1, '<q>', 2)), {'<A>': 0, '?x': 1, '<B>': 2})
    """
    left = sorted(edges, key=lambda each: (is_variable(each.property), each.property))
    places: dict[Term, int] = {}
    steps_: list[Step] = []

    def distance(edge: Edge) -> int:
        return -sum(term in places for term in (edge.subject, edge.object, edge.property))

    while left:
        edge = min(left, key=distance)
        left.remove(edge)
        s, o = (places.setdefault(term, len(places)) for term in (edge.subject, edge.object))
        if is_variable(edge.property):
            steps_.append((s, places.setdefault(edge.property, len(places)), o))
        else:
            steps_.append((s, edge.property, o))
    return tuple(steps_), places
