"""G-ToPSS: all filters in one graph of merged edges (Petrovic, Liu and Jacobsen, WWW 2005, section 4).

Two levels of hash tables hold the graph: pairs of node labels, then the edge's label. A merged edge lists
the subscriptions that have it and, while an event is matched, the event's edges that it stands for: its
binding table. A variable is a star *1, *2, … numbered within its subscription, so subscriptions share
stars.

Matching has two stages. Each edge of the event is looked up with either end as it is or as any star; that
counts edges for subscriptions. For those whose edges are all there, the binding tables are joined, and
constraints are checked for the rows of the join.

Where this departs from the paper's pseudocode, and why; tests show each with an event that tells the
difference:

- `S.edgeCount` counts hits: a merged edge that two edges of an event meet counts twice, so a subscription
  seems complete that lacks another edge, and is joined in vain. Here a merged edge counts once an event.
- `S.edgeCount` is set to 0 where a subscription is complete, so what others have counted stays for the
  next event. Here the counts are of one event.
- Binding tables are never cleared, so rows of earlier events join with those of this one, and with the
  counts that were left a subscription matches whose edges are in different events. Here they are cleared.
- The complete graph over both ends and all stars has no edge from a star to itself, so `?x p ?x` is never
  looked up. Here it is, for edges of the event that are loops.
- The pseudocode does not say whether two stars are joined in one direction or both (the analysis counts
  both). `*1 p *2` and `*2 p *1` are different, so all ordered pairs are looked up.
- The join is by rows rather than by whole tables, starts with the smallest table, and ends with the first
  row that satisfies the constraints: the question is whether a subscription matches.

Beyond the paper: a variable in place of a property, its future work, is a star in the second level. An
is-a constraint on a variable that no edge binds, or on a constant, is an edge of its own; the event's side
of it is a node's types and all above them. Subscriptions can be removed.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from headgate.errors import SubscriptionError
from headgate.papers.published import Lineage, PublishedGraph, demand
from headgate.rdf.language.model import ISA, SPARQL, is_variable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from headgate.papers.published import Demand
    from headgate.rdf.language.model import Graph, Options, Pattern, Term
    from headgate.rdf.taxonomy.taxonomy import Taxonomy

    Label: TypeAlias = str
    """A term, or a star."""
    Row: TypeAlias = tuple[Term, Term, Term]


class MergedEdge:
    """An edge of some subscriptions: which they are, and the binding table of the event at hand."""

    __slots__ = ("columns", "rows", "subscriptions")

    def __init__(self, columns: Row) -> None:
        self.columns: Row = columns
        """Labels of the ends and, between them, of the edge; and so of the columns of the table."""
        self.subscriptions: list[int] = []
        self.rows: list[Row] = []


class StoredSubscription(NamedTuple):
    """A subscription: its edges, its variables in the order of their stars, and what it asks for beside."""

    merged: tuple[MergedEdge, ...]
    variables: tuple[Term, ...]
    wanted: Demand


class GToPSS:
    """The paper's algorithm over Python's dictionaries."""

    def __init__(self, taxonomy: Taxonomy | None = None, options: Options = SPARQL) -> None:
        self._lineage = Lineage(taxonomy)
        self._options = options
        self._held: dict[int, StoredSubscription] = {}
        self._pairs: dict[tuple[Label, Label], dict[Label, MergedEdge]] = {}
        self._widths: Counter[int] = Counter()
        """How many subscriptions have so many stars."""
        self._property_stars: Counter[Label] = Counter()
        self._types = 0
        """How many edges ask for a node's class."""
        self._without_edges: dict[int, None] = {}

    def __len__(self) -> int:
        """Count the subscriptions."""
        return len(self._held)

    @property
    def stars(self) -> list[Label]:
        """List the stars: as many as the subscription with the most variables has."""
        return [star(number) for number in range(1, max(self._widths, default=0) + 1)]

    @property
    def nodes(self) -> set[Label]:
        """List the nodes of the merged graph."""
        return {label for pair in self._pairs for label in pair}

    @property
    def edges(self) -> dict[tuple[Label, Label], dict[Label, list[int]]]:
        """List the merged graph: which subscriptions have an edge, by its ends and its label."""
        return {
            pair: {label: merged.subscriptions.copy() for label, merged in table.items()}
            for pair, table in self._pairs.items()
        }

    def insert(self, number: int, pattern: Pattern) -> None:
        """Add a filter under a number that is free."""
        if number in self._held:
            raise SubscriptionError(f"subscription {number} is there already; remove it first")
        wanted = demand(pattern, self._options)
        stars: dict[Term, Label] = {}
        for edge in wanted.edges:
            for term in (edge.subject, edge.object, edge.property):
                if is_variable(term):
                    stars.setdefault(term, star(len(stars) + 1))
        merged_edges = []
        for edge in wanted.edges:
            v, label, w = (stars.get(term, term) for term in (edge.subject, edge.property, edge.object))
            table = self._pairs.setdefault((v, w), {})
            merged = table.get(label)
            if merged is None:
                merged = table[label] = MergedEdge((v, label, w))
            merged.subscriptions.append(number)
            merged_edges.append(merged)
        self._held[number] = held = StoredSubscription(tuple(merged_edges), tuple(stars), wanted)
        self._tally(held, 1)
        if not merged_edges:
            self._without_edges[number] = None

    def remove(self, number: int) -> None:
        """Remove a filter, and what no other filter needs of the merged graph."""
        held = self._held.pop(number, None)
        if held is None:
            raise SubscriptionError(f"there is no subscription {number} to remove")
        for merged in held.merged:
            merged.subscriptions.remove(number)
            if not merged.subscriptions:
                v, label, w = merged.columns
                del self._pairs[v, w][label]
                if not self._pairs[v, w]:
                    del self._pairs[v, w]
        self._tally(held, -1)
        self._without_edges.pop(number, None)

    def _tally(self, held: StoredSubscription, change: int) -> None:
        """Count what tells which labels an event's edges are looked up with."""
        self._widths[len(held.variables)] += change
        for merged, edge in zip(held.merged, held.wanted.edges, strict=True):
            if is_variable(edge.property):
                self._property_stars[merged.columns[1]] += change
            self._types += change * (edge.path == ISA)
        # Adding nothing leaves out what is counted no more.
        self._widths, self._property_stars = +self._widths, +self._property_stars

    def match(self, graph: Graph) -> list[int]:
        """List the numbers of the filters that hold, rising."""
        published = PublishedGraph(graph, self._lineage)
        met: list[MergedEdge] = []
        try:
            complete = self._count(published, met)
            return sorted(
                number
                for number in (*complete, *self._without_edges)
                if self._satisfied(self._held[number], published)
            )
        finally:
            _clear(met)

    def complete(self, graph: Graph) -> list[int]:
        """List the numbers of the filters whose edges are all in the event: the first stage by itself."""
        met: list[MergedEdge] = []
        try:
            return sorted((*self._count(PublishedGraph(graph, self._lineage), met), *self._without_edges))
        finally:
            _clear(met)

    def _count(self, published: PublishedGraph, met: list[MergedEdge]) -> list[int]:
        """Fill binding tables, which go to `met`; returns the filters whose edges are all there."""
        counts: Counter[int] = Counter()
        stars = self.stars
        for row in published.statements:
            self._look_up(row, stars, [row[1], *self._property_stars], counts, met)
        for row in published.isa() if self._types else ():
            self._look_up(row, stars, [ISA], counts, met)
        return [number for number, count in counts.items() if count == len(self._held[number].merged)]

    def _look_up(
        self,
        row: Row,
        stars: list[Label],
        labels: list[Label],
        counts: Counter[int],
        met: list[MergedEdge],
    ) -> None:
        """Enter an edge of the event into the binding tables of all merged edges that it may stand for."""
        v, _, w = row
        for first in (v, *stars):
            for second in (w, *stars):
                table = self._pairs.get((first, second))
                if table is None or (first == second and v != w):
                    continue
                for label in labels:
                    merged = table.get(label)
                    if merged is None:
                        continue
                    if not merged.rows:
                        met.append(merged)
                        counts.update(merged.subscriptions)
                    merged.rows.append(row)

    def _satisfied(self, held: StoredSubscription, published: PublishedGraph) -> bool:
        stars = [star(at + 1) for at in range(len(held.variables))]
        for row in join([(merged.columns, merged.rows) for merged in held.merged]):
            binding = {variable: row[label] for variable, label in zip(held.variables, stars, strict=True)}
            if held.wanted.accepts(binding, published, self._options):
                return True
        return False


def _clear(met: list[MergedEdge]) -> None:
    for merged in met:
        merged.rows.clear()


def star(number: int) -> Label:
    """Write the label of a variable; no term begins so."""
    return f"*{number}"


def join(tables: Sequence[tuple[tuple[Label, Label, Label], Sequence[Row]]]) -> Iterator[dict[Label, Term]]:
    """Join binding tables by the stars that they have in common; yields what each star stands for.

    >>> one = ("<A>", "<p>", "*1"), [("<A>", "<p>", end) for end in ("<B>", "<C>", "<E>")]
    >>> two = ("*1", "<p>", "<B>"), [(start, "<p>", "<B>") for start in ("<A>", "<D>", "<C>", "<E>")]
    >>> list(join([one, two]))
    [{'*1': '<C>'}, {'*1': '<E>'}]
    """
    narrowed = []
    for columns, rows in tables:
        stars = tuple(dict.fromkeys(label for label in columns if label.startswith("*")))
        if stars:
            narrowed.append(Table(stars, list(_narrow(columns, stars, rows))))
    yield from _join(_ordered(narrowed), 0, {})


class Table(NamedTuple):
    """A binding table without the columns that are no stars."""

    stars: tuple[Label, ...]
    rows: list[tuple[Term, ...]]


class IndexedTable(NamedTuple):
    """A binding table by the stars that tables before it have bound."""

    shared: tuple[Label, ...]
    stars: tuple[Label, ...]
    rows: dict[tuple[Term, ...], list[tuple[Term, ...]]]


def _narrow(
    columns: tuple[Label, Label, Label], stars: tuple[Label, ...], rows: Sequence[Row]
) -> Iterator[tuple[Term, ...]]:
    """Leave out what is no star; a star that is in two columns must stand for one term."""
    for row in rows:
        binding: dict[Label, Term] = {}
        if all(binding.setdefault(label, term) == term for label, term in zip(columns, row, strict=True)):
            yield tuple(binding[label] for label in stars)


def _ordered(tables: list[Table]) -> list[IndexedTable]:
    """Put the smallest first, then the smallest of those that share a star with those before."""
    left, known, ordered = list(tables), set[str](), []
    while left:
        table = min(left, key=lambda each: (known.isdisjoint(each.stars), len(each.rows)))
        left.remove(table)
        shared = tuple(name for name in table.stars if name in known)
        rows: dict[tuple[Term, ...], list[tuple[Term, ...]]] = {}
        for row in table.rows:
            key = tuple(term for name, term in zip(table.stars, row, strict=True) if name in known)
            rows.setdefault(key, []).append(row)
        ordered.append(IndexedTable(shared, table.stars, rows))
        known.update(table.stars)
    return ordered


def _join(tables: list[IndexedTable], at: int, bound: dict[Label, Term]) -> Iterator[dict[Label, Term]]:
    if at == len(tables):
        yield bound
        return
    shared, stars, rows = tables[at]
    for row in rows.get(tuple(bound[name] for name in shared), ()):
        yield from _join(tables, at + 1, bound | dict(zip(stars, row, strict=True)))
