"""All bindings of a filter's variables, up to a limit.

A join that goes on with the edge that has the fewest ways to hold, and looks at parts that share no variable
any more one by one: what is not asked for is looked for once, and not for each row. The answer is that of
`reference.solutions`, without the variables that were not asked for.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property, lru_cache
from itertools import islice, product
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from headgate.core.text.wording import in_html, table
from headgate.errors import EventError
from headgate.rdf.language import model
from headgate.rdf.language.rewrite import variables
from headgate.rdf.language.values import holds
from headgate.rdf.taxonomy.taxonomy import entailed, own_order, reached

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Mapping, Sequence
    from typing import TypeAlias

    from headgate.rdf.language.model import Expression, Graph, Options, Pattern, Term
    from headgate.rdf.taxonomy.taxonomy import Taxonomy

    Binding: TypeAlias = dict[Term, Term]
    Statement: TypeAlias = tuple[Term, Term, Term]


_Mask: TypeAlias = tuple[int, ...]


class Facts:
    """What is true in an event: triples, types that the taxonomy lists, and what lies below what.

    An index is made when it is first asked for: for each choice of places (subject, property, object) the
    triples by what they have there. Triples are in the event's order everywhere.
    """

    def __init__(self, graph: Graph, taxonomy: Taxonomy | None) -> None:
        """Put an event and the taxonomy together."""
        self._own = entailed(graph, taxonomy).statements()
        self.taxonomy = taxonomy
        self._indexes: dict[_Mask, dict[tuple[Term, ...], list[Statement]]] = {}
        self._above: dict[tuple[Term, Term], frozenset[Term]] = {}

    @cached_property
    def statements(self) -> list[Statement]:
        """List the triples, with the types that the taxonomy lists."""
        if self.taxonomy is None:
            return list(dict.fromkeys(self._own))
        nodes = dict.fromkeys(node for s, _, o in self._own for node in (s, o) if model.is_iri(node))
        listed = [(node, model.TYPE, each) for node in nodes for each in sorted(self.taxonomy.types(node))]
        return list(dict.fromkeys(self._own + listed))

    @cached_property
    def _ups(self) -> dict[Term, dict[Term, list[Term]]]:
        ups: dict[Term, dict[Term, list[Term]]] = {model.SUBCLASS: {}, model.SUBPROPERTY: {}}
        for s, p, o in own_order(self._own):
            ups[p].setdefault(s, []).append(o)
        return ups

    def triples(self, wanted: Sequence[Term | None]) -> list[Statement]:
        """List the triples that have given terms in some places; None stands for any."""
        mask = tuple(side for side, term in enumerate(wanted) if term is not None)
        if not mask:
            return self.statements
        index = self._indexes.get(mask)
        if index is None:
            index = defaultdict(list)
            for statement in self.statements:
                index[tuple(statement[side] for side in mask)].append(statement)
            self._indexes[mask] = index
        return index.get(tuple(wanted[side] or "" for side in mask), [])

    def above(self, term: Term, relation: Term = model.SUBCLASS) -> frozenset[Term]:
        """List a term and all above it, by rdfs:subClassOf or rdfs:subPropertyOf."""
        ups = self._above.get((term, relation))
        if ups is None:
            ups = self._walk(term, relation)
            self._above[term, relation] = ups
        return ups

    def types(self, node: Term) -> list[Term]:
        """List the types of a node, without what is above them."""
        return [each for _, _, each in self.triples((node, model.TYPE, None))]

    def pairs(self, subject: Term | None, above: Term | None) -> Iterable[tuple[Term, Term]]:
        """List nodes with each class that they have a type of or below; None stands for any."""
        if subject is not None:
            classes = dict.fromkeys(up for each in self.types(subject) for up in sorted(self.above(each)))
            return [(subject, each) for each in classes if above in {None, each}]
        pairs: dict[tuple[Term, Term], None] = {}
        for node, _, each in self.triples((None, model.TYPE, None)):
            ups = self.above(each)
            if above is None:
                pairs.update(((node, up), None) for up in sorted(ups))
            elif above in ups:
                pairs[node, above] = None
        return list(pairs)

    def below(self, path: str, low: Term, high: Term) -> bool:
        """Tell whether one term is another or below it, as an edge of BELOW or BELOW_PROPERTY asks."""
        return high in self.above(low, model.SUBPROPERTY if path == model.BELOW_PROPERTY else model.SUBCLASS)

    def _walk(self, term: Term, relation: Term) -> frozenset[Term]:
        if self.taxonomy is None:
            return reached(term, self._ups[relation], lambda _: ())
        higher = self.taxonomy.ancestors if relation == model.SUBCLASS else self.taxonomy.property_ancestors
        return reached(term, self._ups[relation], higher)


def ways(facts: Facts, edge: model.Edge, binding: Mapping[Term, Term]) -> list[Statement]:
    """List the ways in which an edge can hold under a binding: what stands for subject, property and object.

    A path stands for itself.
    """
    wanted = [image(term, binding) for term in edge[:3]]
    if edge.path == model.PLAIN:
        statements = facts.triples(wanted)
        repeated = len({*edge[:3]}) < 3
        return [each for each in statements if _agrees(edge, each)] if repeated else statements
    low, _, high = wanted
    if edge.path == model.ISA:
        statements = [(node, model.ISA, each) for node, each in facts.pairs(low, high)]
        return (
            [each for each in statements if _agrees(edge, each)]
            if edge.subject == edge.object
            else statements
        )
    if low is None or high is None or not facts.below(edge.path, low, high):
        return []
    return [(low, edge.path, high)]


def image(term: Term, binding: Mapping[Term, Term]) -> Term | None:
    """Return what a term stands for under a binding; None for a variable that is open."""
    return binding.get(term) if model.is_variable(term) else term


def _agrees(edge: model.Edge, statement: Statement) -> bool:
    """Tell whether a variable that stands twice in an edge stands for one term."""
    return all(statement[i] == statement[j] for i in range(3) for j in range(i) if edge[i] == edge[j])


STEPS = 200_000
"""Edges and filters that are looked at in a search, for each 1,000 bindings: about half a second."""
LEAST_STEPS = 10_000
"""What every filter of an event has, however much others have taken of its time."""


class TooLongError(EventError):
    """A search has taken more steps than it may."""


class Bindings(NamedTuple):
    """The variables, a row of terms for each way in which the filter holds, and whether these are all."""

    names: tuple[Term, ...]
    rows: tuple[tuple[Term, ...], ...]
    complete: bool

    def lines(self) -> list[str]:
        """List the rows for people, the first twenty."""
        return table(self.names, self.rows, complete=self.complete)

    def __str__(self) -> str:
        """Say it for people: `repr` has the fields."""
        return "\n".join(self.lines())

    def _repr_html_(self) -> str:
        return in_html(str(self))

    def plain(self) -> list[dict[str, str]]:
        """Return the rows by name, without what N-Triples writes around them."""
        names = [name.removeprefix("?") for name in self.names]
        return [dict(zip(names, map(model.plain, row), strict=True)) for row in self.rows]


class PreparedPattern:
    """A filter whose bindings are asked for in many events."""

    def __init__(self, pattern: Pattern) -> None:
        """Take the filter apart."""
        named = tuple(each for each in pattern.variables if not each.startswith("?:"))
        self.names = named if pattern.form == model.ASK else pattern.selected
        self.titles = tuple(name.removeprefix("?") for name in self.names)
        self._wanted = frozenset(self.names)
        self._parts = parts_of(pattern)
        self.pattern = pattern

    def bindings(self, facts: Facts, options: Options, limit: int) -> Bindings:
        """List the distinct bindings in an event, which other filters may be asked about too."""
        apart = Apart(self.pattern) if options.injective else None
        join = _Join(facts, options, self._wanted, apart, STEPS * (1 + limit // 1000))
        bindings = join.solve(self._parts, {}, limit + 1)
        rows = tuple(tuple([each[name] for name in self.names]) for each in bindings[:limit])
        return Bindings(self.names, rows, len(bindings) <= limit)


prepared: Callable[[Pattern], PreparedPattern] = lru_cache(maxsize=4096)(PreparedPattern)
"""Prepare a filter, or find that it was lately."""


def search(
    pattern: Pattern,
    facts: Facts,
    options: Options,
    names: Iterable[Term],
    limit: int,
    steps: int | None = None,
) -> list[Binding]:
    """List up to `limit` distinct bindings of some variables under which the filter holds.

    What takes more than so many `steps` is given up with an error.
    """
    join = _Join(facts, options, frozenset(names), Apart(pattern) if options.injective else None, steps)
    return join.solve(parts_of(pattern), {}, limit)


class Part(NamedTuple):
    """An edge or a filter, with its variables."""

    what: model.Edge | Expression
    variables: frozenset[Term]


def parts_of(pattern: Pattern) -> list[Part]:
    """List the edges, each once, and the filters."""
    edges = [
        Part(edge, frozenset(filter(model.is_variable, edge[:3]))) for edge in dict.fromkeys(pattern.edges)
    ]
    return [*edges, *(Part(each, frozenset(variables(each))) for each in pattern.filters)]


def groups(parts: Iterable[Part], bound: Container[Term]) -> list[list[Part]]:
    """Group the parts that share variables, directly or not, but for those that are bound."""
    given = list(parts)
    if len(given) < 2:
        return [given] if given else []
    grouped: list[tuple[frozenset[Term], list[Part]]] = []
    for part in given:
        free = frozenset(each for each in part.variables if each not in bound)
        touched = [each for each in grouped if each[0] & free]
        grouped = [each for each in grouped if not each[0] & free]
        grouped.append(
            (free.union(*(each[0] for each in touched)), [one for each in touched for one in each[1]])
        )
        grouped[-1][1].append(part)
    return [group for _, group in grouped]


class _Join:
    def __init__(
        self,
        facts: Facts,
        options: Options,
        wanted: frozenset[Term],
        apart: Apart | None,
        steps: int | None,
    ) -> None:
        self.facts = facts
        self.options = options
        self.wanted = wanted
        self.apart = apart
        self.steps = steps
        self.taken = 0

    def solve(self, parts: Sequence[Part], binding: Binding, limit: int) -> list[Binding]:
        """List up to `limit` distinct bindings of what is wanted and not bound yet."""
        self.taken += len(parts)
        if self.steps is not None and self.taken > self.steps:
            raise TooLongError(
                f"searching for its bindings takes more than {self.steps:,} steps; send smaller events, or "
                "narrow the filter"
            )
        bound = binding.keys()
        left = []
        for part in parts:
            if not part.variables <= bound:
                left.append(part)
            elif not self._holds(part.what, binding):
                return []
        if self.apart is not None and not self.apart.holds(binding):
            return []
        if not left:
            return [{}]
        # If nodes must be different, no part is free of the others.
        grouped = groups(left, binding) if self.apart is None else [left] if left else []
        asked = [(group, not self.wanted.isdisjoint(_free(group, binding))) for group in grouped]
        # What need only exist comes first: without it there is nothing to list.
        tables: list[list[Binding]] = []
        for group, wanted in sorted(asked, key=lambda each: each[1]):
            tables.append(self._table(group, binding, limit if wanted else 1))
            if not tables[-1]:
                return []
        rows = islice(product(*tables), limit)
        return [{name: term for part in row for name, term in part.items()} for row in rows]

    def _holds(self, what: model.Edge | Expression, binding: Binding) -> bool:
        if isinstance(what, model.Edge):
            return bool(ways(self.facts, what, binding))
        return holds(what, binding, self.options)

    def _table(self, group: list[Part], binding: Binding, limit: int) -> list[Binding]:
        able = [
            (part, edge, ways(self.facts, edge, binding))
            for part in group
            if isinstance(edge := part.what, model.Edge) and edge.path in {model.PLAIN, model.ISA}
        ]
        if not able:
            return []  # a check of a variable that nothing binds, which the parser refuses
        chosen, edge, statements = min(able, key=lambda each: len(each[2]))
        rest = [part for part in group if part is not chosen]
        fresh = chosen.variables - binding.keys()
        rows: dict[tuple[tuple[Term, Term], ...], Binding] = {}
        for statement in statements:
            larger = extended(edge, statement, binding)
            own = {name: larger[name] for name in fresh & self.wanted}
            # Rows can repeat only if something is bound here that is not wanted.
            missing = limit - len(rows) if fresh <= self.wanted else limit
            for row in self.solve(rest, larger, missing):
                whole = own | row
                rows.setdefault(tuple(sorted(whole.items())), whole)
                if len(rows) == limit:
                    return list(rows.values())
        return list(rows.values())


class Apart:
    """What `injective` asks: different terms for different nodes, different triples for different edges."""

    def __init__(self, pattern: Pattern) -> None:
        """Note the nodes and the plain edges."""
        self._nodes = model.nodes(pattern)
        self._edges = [edge for edge in dict.fromkeys(pattern.edges) if edge.path == model.PLAIN]

    def holds(self, binding: Mapping[Term, Term]) -> bool:
        """Tell whether a binding, perhaps of a part of the variables, keeps apart what it binds."""
        places = [stands_for for node in self._nodes if (stands_for := image(node, binding)) is not None]
        triples = [tuple(image(term, binding) for term in edge[:3]) for edge in self._edges]
        known = [triple for triple in triples if None not in triple]
        return len(set(places)) == len(places) and len(set(known)) == len(known)


def extended(edge: model.Edge, statement: Statement, binding: Binding) -> Binding:
    """Return a binding with what an edge binds if it stands for a statement."""
    pairs = zip(edge[:3], statement, strict=True)
    return binding | {term: one for term, one in pairs if model.is_variable(term)}


def _free(group: Iterable[Part], binding: Mapping[Term, Term]) -> set[Term]:
    return {each for part in group for each in part.variables if each not in binding}
