"""The algorithms by name, for comparison; `auto` is the index.

Each holds filters under numbers and answers with those that hold for a graph. None is built for speed in
Python: they say what an algorithm does, and count what it costs.

The first goes filter after filter: each is searched for in the event by itself.

The search is a good one: the event's triples are in hash tables by all that can be asked of them, the
edges of a filter are in an order in which each leaves little open, and the search ends with the first
binding. What it lacks is only what filters could share.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from headgate.errors import SubscriptionError
from headgate.papers.gtopss import GToPSS
from headgate.papers.ops import OpsStyle
from headgate.papers.published import Lineage, PublishedGraph, demand
from headgate.rdf.language.model import SPARQL, is_variable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headgate.papers.published import Demand
    from headgate.rdf.language.model import Edge, Graph, Options, Pattern, Term
    from headgate.rdf.taxonomy.taxonomy import Taxonomy


class Step(NamedTuple):
    """One edge of a search: what to look up, and what that binds."""

    wanted: tuple[Term | None, Term | None, Term | None]
    """A constant, a variable that is bound by then, or None."""
    binds: tuple[tuple[Term, int], ...]
    """Variables, and where in the triple they are found; a variable may come twice."""


class Naive:
    """Check filters one by one."""

    def __init__(self, taxonomy: Taxonomy | None = None, options: Options = SPARQL) -> None:
        self._lineage = Lineage(taxonomy)
        self._options = options
        self._held: dict[int, tuple[Demand, tuple[Step, ...]]] = {}

    def __len__(self) -> int:
        """Count the filters."""
        return len(self._held)

    def insert(self, number: int, pattern: Pattern) -> None:
        """Add a filter under a number that is free."""
        if number in self._held:
            raise SubscriptionError(f"subscription {number} is there already; remove it first")
        wanted = demand(pattern, self._options, types_bind=True)
        self._held[number] = wanted, steps(wanted.edges)

    def remove(self, number: int) -> None:
        """Remove a filter."""
        if self._held.pop(number, None) is None:
            raise SubscriptionError(f"there is no subscription {number} to remove")

    def match(self, graph: Graph) -> list[int]:
        """List the numbers of the filters that hold, rising."""
        published = PublishedGraph(graph, self._lineage)
        return sorted(
            number
            for number, (wanted, order) in self._held.items()
            if self._search(wanted, order, 0, {}, published)
        )

    def _search(
        self,
        wanted: Demand,
        order: tuple[Step, ...],
        at: int,
        binding: dict[Term, Term],
        published: PublishedGraph,
    ) -> bool:
        """Try the edges from `at` on, given those before it."""
        if at == len(order):
            return wanted.accepts(binding, published, self._options)
        (s, p, o), binds = order[at]
        get = binding.get
        # What earlier attempts have left in the binding is written over before it is read.
        for statement in published.find((s and get(s, s), p and get(p, p), o and get(o, o))):
            for variable, position in binds:
                binding[variable] = statement[position]
            if all(binding[variable] == statement[position] for variable, position in binds) and self._search(
                wanted, order, at + 1, binding, published
            ):
                return True
        return False


def steps(edges: Iterable[Edge]) -> tuple[Step, ...]:
    """Put edges in order: next the one with the fewest variables that are open, first the first written."""
    left = list(edges)
    bound: set[Term] = set()
    ordered = []
    while left:
        edge = min(left, key=lambda each: len({*_variables(each)} - bound))
        left.remove(edge)
        places = [
            (term, position)
            for position, term in enumerate((edge.subject, edge.property, edge.object))
            if is_variable(term) and term not in bound
        ]
        s, p, o = (
            None if any(position == at for _, position in places) else term
            for at, term in enumerate((edge.subject, edge.property, edge.object))
        )
        ordered.append(Step((s, p, o), tuple(places)))
        bound.update(_variables(edge))
    return tuple(ordered)


def _variables(edge: Edge) -> list[Term]:
    return [term for term in (edge.subject, edge.property, edge.object) if is_variable(term)]


class Matcher(Protocol):
    """Filters under numbers."""

    def __len__(self) -> int:
        """Count the filters."""

    def insert(self, number: int, pattern: Pattern) -> None:
        """Add a filter under a number that is free."""

    def remove(self, number: int) -> None:
        """Remove a filter."""

    def match(self, graph: Graph) -> list[int]:
        """List the numbers of the filters that hold, rising."""


class Make(Protocol):
    """A matcher's class."""

    def __call__(self, taxonomy: Taxonomy | None = None, options: Options = ...) -> Matcher:
        """Make a matcher without filters."""


MATCHERS: dict[str, Make] = {"naive": Naive, "ops": OpsStyle, "gtopss": GToPSS}
