"""All bindings of a filter's variables, up to a limit.

A join that goes on with the edge that has the fewest ways to hold, and looks at parts that share no variable
any more one by one: what is not asked for is looked for once, and not for each row. The answer is that of
`reference.solutions`, without the variables that were not asked for.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import islice, product
from typing import TYPE_CHECKING, NamedTuple

from headgate.errors import EventError
from headgate.rdf.events.facts import Facts, ways
from headgate.rdf.language.evaluate import holds
from headgate.rdf.language.model import ASK, ISA, PLAIN, Edge, is_variable, nodes, plain
from headgate.rdf.language.rewrite import variables

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Mapping, Sequence
    from typing import TypeAlias

    from headgate.rdf.events.facts import Statement
    from headgate.rdf.language.model import Expression, Graph, Options, Pattern, Term
    from headgate.rdf.taxonomy.taxonomy import Taxonomy

    Binding: TypeAlias = dict[Term, Term]


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

    def plain(self) -> list[dict[str, str]]:
        """Return the rows by name, without what N-Triples writes around them."""
        names = [name.removeprefix("?") for name in self.names]
        return [dict(zip(names, map(plain, row), strict=True)) for row in self.rows]


def bindings(
    pattern: Pattern, graph: Graph, taxonomy: Taxonomy | None, options: Options, limit: int
) -> Bindings:
    """List the distinct bindings of the variables that a SELECT names; for an ASK, of all that have names."""
    return PreparedPattern(pattern).bindings(Facts(graph, taxonomy), options, limit)


class PreparedPattern:
    """A filter whose bindings are asked for in many events."""

    def __init__(self, pattern: Pattern) -> None:
        """Take the filter apart."""
        named = tuple(each for each in pattern.variables if not each.startswith("?:"))
        self.names = named if pattern.form == ASK else pattern.selected
        self.titles = tuple(name.removeprefix("?") for name in self.names)
        self._wanted = frozenset(self.names)
        self._parts = parts_of(pattern)
        self._pattern = pattern

    def bindings(self, facts: Facts, options: Options, limit: int) -> Bindings:
        """List the distinct bindings in an event, which other filters may be asked about too."""
        apart = Apart(self._pattern) if options.injective else None
        join = _Join(facts, options, self._wanted, apart, STEPS * (1 + limit // 1000))
        found = join.solve(self._parts, {}, limit + 1)
        rows = tuple(tuple([each[name] for name in self.names]) for each in found[:limit])
        return Bindings(self.names, rows, len(found) <= limit)


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

    what: Edge | Expression
    variables: frozenset[Term]


def parts_of(pattern: Pattern) -> list[Part]:
    """List the edges, each once, and the filters."""
    edges = [
        Part(edge, frozenset(filter(is_variable, terms_of(edge)))) for edge in dict.fromkeys(pattern.edges)
    ]
    return [*edges, *(Part(each, frozenset(variables(each))) for each in pattern.filters)]


def groups(parts: Iterable[Part], bound: Container[Term]) -> list[list[Part]]:
    """Group the parts that share variables, directly or not, but for those that are bound."""
    given = list(parts)
    if len(given) < 2:
        return [given] if given else []
    found: list[tuple[frozenset[Term], list[Part]]] = []
    for part in given:
        free = frozenset(each for each in part.variables if each not in bound)
        touched = [each for each in found if each[0] & free]
        found = [each for each in found if not each[0] & free]
        found.append(
            (free.union(*(each[0] for each in touched)), [one for each in touched for one in each[1]])
        )
        found[-1][1].append(part)
    return [group for _, group in found]


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

    def _holds(self, what: Edge | Expression, binding: Binding) -> bool:
        if isinstance(what, Edge):
            return bool(ways(self.facts, what, binding))
        return holds(what, binding, self.options)

    def _table(self, group: list[Part], binding: Binding, limit: int) -> list[Binding]:
        able = [
            (part, edge, ways(self.facts, edge, binding))
            for part in group
            if isinstance(edge := part.what, Edge) and edge.path in {PLAIN, ISA}
        ]
        if not able:
            return []  # a check of a variable that nothing binds, which the parser refuses
        chosen, edge, found = min(able, key=lambda each: len(each[2]))
        rest = [part for part in group if part is not chosen]
        fresh = chosen.variables - binding.keys()
        rows: dict[tuple[tuple[Term, Term], ...], Binding] = {}
        for statement in found:
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
        self._nodes = nodes(pattern)
        self._edges = [edge for edge in dict.fromkeys(pattern.edges) if edge.path == PLAIN]

    def holds(self, binding: Mapping[Term, Term]) -> bool:
        """Tell whether a binding, perhaps of a part of the variables, keeps apart what it binds."""
        places = [place for node in self._nodes if (place := _image(node, binding)) is not None]
        triples = [tuple(_image(term, binding) for term in terms_of(edge)) for edge in self._edges]
        known = [triple for triple in triples if None not in triple]
        return len(set(places)) == len(places) and len(set(known)) == len(known)


def extended(edge: Edge, statement: Statement, binding: Binding) -> Binding:
    """Return a binding with what an edge binds if it stands for a statement."""
    found = zip(terms_of(edge), statement, strict=True)
    return binding | {term: one for term, one in found if is_variable(term)}


def terms_of(edge: Edge) -> tuple[Term, Term, Term]:
    """List the subject, the property and the object."""
    return edge.subject, edge.property, edge.object


def _free(group: Iterable[Part], binding: Mapping[Term, Term]) -> set[Term]:
    return {each for part in group for each in part.variables if each not in binding}


def _image(term: Term, binding: Mapping[Term, Term]) -> Term | None:
    return binding.get(term) if is_variable(term) else term
