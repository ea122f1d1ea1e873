"""What every answer of a query needs: patterns that the index can match, one of which must hold.

A need is a pattern with the variables of the query. What solutions join is joined here too; each branch of a
UNION and of a path `p|q` is an alternative. What may be absent adds nothing. A need is exact if its pattern
holds for just the events for which that alternative has an answer; then nothing is left to verify.

Variables are of three kinds: certain ones, which an edge of the need binds; soft ones, which something else
may bind, so that what is joined with them is not decided by the need; and others, which it does not know.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from headgate.rdf.language.model import (
    ASK,
    BELOW,
    BELOW_PROPERTY,
    ISA,
    PLAIN,
    SELECT,
    SUBCLASS,
    SUBPROPERTY,
    TYPE,
    Edge,
    Member,
    Options,
    Pattern,
    is_literal,
    is_variable,
)
from headgate.rdf.language.parse import expression_of
from headgate.rdf.language.refusal import MAX_EDGES, MAX_VARIABLES, RefusedFilterError
from headgate.rdf.language.rewrite import is_one, substitute, variables
from headgate.rdf.whole.tree import (
    Bind,
    Block,
    Chain,
    Choice,
    Either,
    Filter,
    Group,
    Inverse,
    Minus,
    Negated,
    Optional,
    Repeat,
    Select,
    Values,
    selected_of,
    visible,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from headgate.rdf.language.model import Expression, Term
    from headgate.rdf.whole.parser import Parsed
    from headgate.rdf.whole.tree import Expression as Condition
    from headgate.rdf.whole.tree import Path, Triple

MAX_ALTERNATIVES = 64
"""Patterns of one query; of more, what they share is taken."""
_TAXONOMY = {SUBCLASS: BELOW, SUBPROPERTY: BELOW_PROPERTY}
_NONE: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Need:
    """A pattern; `checks` are edges of the taxonomy that count if edges bind their variables."""

    edges: tuple[Edge, ...] = ()
    checks: tuple[Edge, ...] = ()
    filters: tuple[Expression, ...] = ()
    certain: frozenset[Term] = _NONE
    soft: frozenset[Term] = _NONE
    exact: bool = True


def walks(path: Path) -> bool:
    """Tell whether a path goes over the taxonomy: it is more than a property, and names one of its two."""
    return not isinstance(path, str) and _names_taxonomy(path)


def _names_taxonomy(path: Path) -> bool:
    if isinstance(path, str):
        return path in _TAXONOMY
    if isinstance(path, Negated):
        return False
    if isinstance(path, Chain | Choice):
        return any(_names_taxonomy(each) for each in path[0])
    return _names_taxonomy(path.path)


def _repeats(path: Path) -> bool:
    if isinstance(path, Chain | Choice):
        return any(map(_repeats, path[0]))
    return isinstance(path, Repeat) or (isinstance(path, Inverse) and _repeats(path.path))


def needs_of(parsed: Parsed, words: Sequence[str]) -> tuple[list[tuple[Pattern, bool]], bool]:
    """Return the alternatives of a query as patterns, each with whether it is exact.

    And whether their bindings are all that the query gives.
    """
    query = parsed.query
    found: dict[tuple[Pattern, bool], None] = {}
    soft = False
    for need in _Needs(parsed, words).query(query):
        found[_pattern(need)] = None
        soft = soft or bool(need.soft)
    changed = query.computed or query.aggregates or query.others or query.limit is not None
    carried = query.form in (ASK, SELECT) and not soft and not changed and all(exact for _, exact in found)
    return list(found), carried


def _pattern(need: Need) -> tuple[Pattern, bool]:
    edges, exact = list(need.edges), need.exact
    for check in need.checks:
        named = {term for term in (check.subject, check.object) if is_variable(term)}
        if named and named <= need.certain:
            edges.append(check)
        else:
            exact = False
    kept = edges[:MAX_EDGES]
    while len(_variables(kept)) > MAX_VARIABLES:
        kept.pop()
    bound = _variables(edge for edge in kept if edge.path in (PLAIN, ISA))
    kept = [edge for edge in kept if edge.path in (PLAIN, ISA) or _variables([edge]) <= bound]
    filters = tuple(dict.fromkeys(each for each in need.filters if set(variables(each)) <= bound))
    exact = exact and len(kept) == len(edges) and len(filters) == len(set(need.filters))
    return Pattern(tuple(dict.fromkeys(kept)), filters), exact


def _variables(edges: Iterable[Edge]) -> set[Term]:
    return {
        term for edge in edges for term in (edge.subject, edge.property, edge.object) if term.startswith("?")
    }


def _edge(subject: Term, property_: Term, end: Term, path: str = PLAIN) -> Need:
    named = (subject, end) if path else (subject, property_, end)
    return Need((Edge(subject, property_, end, path),), certain=frozenset(filter(is_variable, named)))


def _unknown(*terms: Term) -> Need:
    """Know nothing of some terms."""
    return Need(soft=frozenset(filter(is_variable, terms)), exact=False)


def _joined(one: Sequence[Need], other: Sequence[Need]) -> list[Need]:
    """Join alternatives, each with each."""
    if len(one) * len(other) > MAX_ALTERNATIVES:
        one, other = (one, [_shared(other)]) if len(other) >= len(one) else ([_shared(one)], other)
    return [_both(a, b) for a in one for b in other]


def _both(one: Need, other: Need) -> Need:
    mixed = one.soft & (other.certain | other.soft) or other.soft & one.certain
    return Need(
        one.edges + other.edges,
        one.checks + other.checks,
        one.filters + other.filters,
        one.certain | other.certain,
        one.soft | other.soft,
        one.exact and other.exact and not mixed,
    )


def _shared(needs: Sequence[Need]) -> Need:
    """Return what alternatives have in common."""
    first, *rest = needs
    edges = tuple(each for each in first.edges if all(each in other.edges for other in rest))
    certain = frozenset(_variables(edges))
    filters = tuple(
        each
        for each in first.filters
        if set(variables(each)) <= certain and all(each in other.filters for other in rest)
    )
    every = frozenset(name for need in needs for name in need.certain | need.soft)
    return Need(edges, (), filters, certain, every - certain, exact=False)


def _renamed(need: Need, names: Mapping[Term, Term]) -> Need:
    def edge(each: Edge) -> Edge:
        subject, property_, end = (
            names.get(term, term) for term in (each.subject, each.property, each.object)
        )
        return Edge(subject, property_, end, each.path)

    return Need(
        tuple(map(edge, need.edges)),
        tuple(map(edge, need.checks)),
        tuple(substitute(each, dict(names)) for each in need.filters),
        frozenset(names.get(each, each) for each in need.certain),
        frozenset(names.get(each, each) for each in need.soft),
        need.exact,
    )


class _Needs:
    def __init__(self, parsed: Parsed, words: Sequence[str]) -> None:
        self._words = [
            term if term is not None and term[0] == "<" and word != "a" else word
            for word, term in zip(words, parsed.terms, strict=True)
        ]
        self._fresh = 0

    def fresh(self) -> Term:
        """Return a variable that the query does not name."""
        self._fresh += 1
        while f"?n{self._fresh}" in self._words or f"$n{self._fresh}" in self._words:
            self._fresh += 1
        return f"?n{self._fresh}"

    def query(self, query: Select) -> list[Need]:
        """Find what a query needs."""
        group = query.group
        if query.values is not None and not query.aggregates:
            group = Group((*group.parts, query.values))
        found = self.group(group)
        exact = not query.having and not query.offset and query.limit != 0
        if query.values is not None and query.aggregates:
            exact = False
        if query.aggregates and query.group_by is None:
            exact = False
            if not any(self._counts(each) for each in query.having):
                return [Need(exact=False)]
        return found if exact else [replace(each, exact=False) for each in found]

    def _counts(self, condition: Condition) -> bool:
        """Tell whether a condition of HAVING asks for at least one solution."""
        if condition.joined:
            return any(self._counts(each) for each in condition.joined)
        words = self._words[condition.begin : condition.end]
        while words[0] == "(" and words[-1] == ")":
            words = words[1:-1]
        if len(words) < 5 or words[0].upper() != "COUNT" or words[-3] != ")" or not words[-1].isdigit():
            return False
        least = int(words[-1][:18])
        return (words[-2] == ">" and least >= 0) or (words[-2] in (">=", "=") and least >= 1)

    def group(self, group: Group, given: frozenset[Term] = _NONE) -> list[Need]:
        """Find what a group needs; `given` are variables that conditions can see from outside."""
        found = [Need()]
        filters: list[Condition] = []
        tables: list[Values] = []
        for part in group.parts:
            if isinstance(part, Block):
                for triple in part.triples:
                    found = _joined(found, self.triple(triple))
            elif isinstance(part, Filter):
                filters += part.condition.joined or (part.condition,)
            elif isinstance(part, Optional):
                more = frozenset(visible(part.group))
                found = [replace(each, soft=each.soft | more - each.certain) for each in found]
            elif isinstance(part, Minus):
                found = [replace(each, exact=False) for each in found]
            elif isinstance(part, Either):
                found = _joined(found, [each for one in part.groups for each in self.group(one)])
            elif isinstance(part, Bind):
                found = [replace(each, soft=each.soft | {part.variable}) for each in found]
            elif isinstance(part, Values):
                tables.append(part)
            elif isinstance(part, Group):
                found = _joined(found, self.group(part))
            else:
                found = _joined(found, self.inner(part))
        for table in tables:
            found = [self.table(each, table) for each in found]
        for condition in filters:
            found = [more for each in found for more in self.condition(each, condition, given)]
        return found if len(found) <= MAX_ALTERNATIVES else [_shared(found)]

    def inner(self, query: Select) -> list[Need]:
        """Find what a query within a query needs: what it does not give is its own."""
        given = set(selected_of(query)) - query.computed
        if query.group_by is not None:
            given &= set(query.group_by)
        elif query.aggregates:
            given = set()
        found = []
        for need in self.query(query):
            own = (need.certain | need.soft) - given
            hidden = _renamed(need, {name: self.fresh() for name in own})
            found.append(
                replace(
                    hidden,
                    soft=hidden.soft | query.computed,
                    exact=hidden.exact and query.limit is None,
                )
            )
        return found

    def table(self, need: Need, table: Values) -> Need:
        """Let a variable be one of the terms that VALUES gives it."""
        exact, filters = need.exact and bool(table.rows), list(need.filters)
        loose = frozenset(table.variables) - need.certain
        for place, name in enumerate(table.variables):
            terms = dict.fromkeys(row[place] for row in table.rows)
            if name in loose or None in terms:
                exact = exact and name not in need.soft and None not in terms
                continue
            known = tuple(each for each in terms if each is not None)
            filters.append(Member(name, known))
            if len(table.variables) > 1 or not all(is_one(each, Options()) for each in known):
                exact = False
        return replace(need, filters=tuple(filters), soft=need.soft | loose, exact=exact)

    def condition(self, need: Need, condition: Condition, given: frozenset[Term]) -> list[Need]:
        """Add a condition to a need, if the index knows it and its variables are bound."""
        inexact = replace(need, exact=False)
        if condition.exists is not None:
            if condition.absent:
                return [inexact]
            return self.exists(need, condition.exists, given)
        if condition.groups or not condition.variables or not condition.variables <= need.certain | given:
            return [inexact]
        try:
            found = expression_of(self._words[condition.begin : condition.end])
        except RefusedFilterError:
            return [inexact]
        return [replace(need, filters=(*need.filters, found))]

    def exists(self, need: Need, group: Group, given: frozenset[Term]) -> list[Need]:
        """Add what EXISTS asks for; variables that nothing outside binds are its own."""
        known = need.certain | given
        found = []
        for inner in self.group(group, known):
            own = (inner.certain | inner.soft) - known
            mixed = bool((inner.certain | inner.soft) & need.soft)
            hidden = _renamed(inner, {name: self.fresh() for name in own})
            both = _both(need, hidden)
            found.append(replace(both, exact=both.exact and not mixed))
        return found

    def triple(self, triple: Triple) -> list[Need]:
        """Find what a triple pattern needs."""
        subject, path, end = triple
        if isinstance(path, str):
            return [_edge(subject, path, end)]
        return self.path(subject, path, end, walking=walks(path))

    def path(self, subject: Term, path: Path, end: Term, *, walking: bool) -> list[Need]:
        """Find what a path needs; one that walks over the taxonomy may find there what the event lacks."""
        if isinstance(path, str):
            if walking and path in _TAXONOMY:
                return [_unknown(subject, end)]
            # An edge cannot begin at a literal, and a path may.
            return [_unknown(end)] if is_literal(subject) else [_edge(subject, path, end)]
        if isinstance(path, Inverse):
            return self.path(end, path.path, subject, walking=walking)
        if isinstance(path, Choice):
            return [
                each for option in path.options for each in self.path(subject, option, end, walking=walking)
            ]
        if isinstance(path, Chain):
            return self.chain(subject, path, end, walking=walking)
        if isinstance(path, Negated):
            forward, back = path.ways
            found = [_edge(subject, self.fresh(), end)] if forward and not is_literal(subject) else []
            found += [_edge(end, self.fresh(), subject)] if back and not is_literal(end) else []
            return [replace(each, exact=False) for each in found or [_unknown(subject, end)]]
        if path.sign == "+":
            first = self.path(subject, path.path, self.fresh(), walking=walking)
            # Looked at twice, what is repeated within what is repeated would be twice as much each time.
            last = [_unknown(end)]
            if not _repeats(path.path):
                last = self.path(self.fresh(), path.path, end, walking=walking)
            return [replace(each, exact=False) for each in _joined(first, last)]
        if path.sign == "*" and isinstance(path.path, str) and path.path in _TAXONOMY:
            return [self.below(subject, _TAXONOMY[path.path], end)]
        return [_unknown(subject, end)]

    def below(self, subject: Term, path: str, end: Term) -> Need:
        if is_literal(subject) or is_literal(end):
            return _unknown(subject, end)
        return Need(checks=(Edge(subject, path, end, path),))

    def chain(self, subject: Term, path: Chain, end: Term, *, walking: bool) -> list[Need]:
        """Part a chain into its steps, with variables between them."""
        steps: list[Path] = []
        for step in path.steps:
            if step == Repeat(SUBCLASS, "*") and steps and steps[-1] == TYPE:
                steps[-1] = ISA
            else:
                steps.append(step)
        found = [Need()]
        for place, step in enumerate(steps):
            last = place == len(steps) - 1
            behind = end if last else self.fresh()
            if step == ISA:
                isa = _unknown(subject, behind) if is_literal(behind) else _edge(subject, ISA, behind, ISA)
                found = _joined(found, [isa])
            else:
                found = _joined(found, self.path(subject, step, behind, walking=walking))
            subject = behind
        return found
