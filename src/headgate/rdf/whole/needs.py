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

from headgate.rdf.language import model
from headgate.rdf.language.refusal import MAX_EDGES, MAX_VARIABLES
from headgate.rdf.language.rewrite import is_one, joined_by_and, renamed, substitute, variables
from headgate.rdf.language.searches import is_indexed, is_searched

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from headgate.rdf.language.model import Expression, Path, Term, Triple

MAX_ALTERNATIVES = 64
"""Patterns of one query; of more, what they share is taken."""
_TAXONOMY = {model.SUBCLASS: model.BELOW, model.SUBPROPERTY: model.BELOW_PROPERTY}
_NONE: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Need:
    """A pattern; `checks` are edges of the taxonomy that count if edges bind their variables."""

    edges: tuple[model.Edge, ...] = ()
    checks: tuple[model.Edge, ...] = ()
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
    if isinstance(path, model.Negated):
        return False
    if isinstance(path, model.Chain | model.Choice):
        return any(_names_taxonomy(each) for each in path[0])
    return _names_taxonomy(path.path)


def _repeats(path: Path) -> bool:
    if isinstance(path, model.Chain | model.Choice):
        return any(map(_repeats, path[0]))
    return isinstance(path, model.Repeat) or (isinstance(path, model.Inverse) and _repeats(path.path))


def needs_of(query: model.Select, words: Iterable[str]) -> tuple[list[tuple[model.Pattern, bool]], bool]:
    """Return the alternatives of a query as patterns, each with whether it is exact.

    And whether their bindings are all that the query gives.
    """
    patterns: dict[tuple[model.Pattern, bool], None] = {}
    soft = False
    for need in _Needs(words).query(query):
        patterns[_pattern(need)] = None
        soft = soft or bool(need.soft)
    changed = query.computed or query.aggregates or query.others or query.limit is not None
    carried = (
        query.form in (model.ASK, model.SELECT)
        and not soft
        and not changed
        and all(exact for _, exact in patterns)
    )
    return list(patterns), carried


def _pattern(need: Need) -> tuple[model.Pattern, bool]:
    edges, exact = list(need.edges), need.exact
    for check in need.checks:
        named = {term for term in (check.subject, check.object) if model.is_variable(term)}
        if named and named <= need.certain:
            edges.append(check)
        else:
            exact = False
    kept = edges[:MAX_EDGES]
    while len(_variables(kept)) > MAX_VARIABLES:
        kept.pop()
    bound = _variables(edge for edge in kept if edge.path in (model.PLAIN, model.ISA))
    kept = [edge for edge in kept if edge.path in (model.PLAIN, model.ISA) or _variables([edge]) <= bound]
    filters = tuple(dict.fromkeys(each for each in need.filters if set(variables(each)) <= bound))
    exact = exact and len(kept) == len(edges) and len(filters) == len(set(need.filters))
    return model.Pattern(tuple(dict.fromkeys(kept)), filters), exact


def _variables(edges: Iterable[model.Edge]) -> set[Term]:
    return {term for edge in edges for term in edge[:3] if term.startswith("?")}


def _number(term: Term | None, otherwise: int) -> int:
    """Read a whole number."""
    text = model.parts(term).lexical if term is not None and model.is_literal(term) else ""
    return int(text[:18]) if text.isdigit() else otherwise


def _edge(subject: Term, property_: Term, end: Term, path: str = model.PLAIN) -> Need:
    named = (subject, end) if path else (subject, property_, end)
    return Need(
        (model.Edge(subject, property_, end, path),), certain=frozenset(filter(model.is_variable, named))
    )


def _unknown(*terms: Term) -> Need:
    """Know nothing of some terms."""
    return Need(soft=frozenset(filter(model.is_variable, terms)), exact=False)


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
    return Need(
        tuple(renamed(each, names) for each in need.edges),
        tuple(renamed(each, names) for each in need.checks),
        tuple(substitute(each, names) for each in need.filters),
        frozenset(names.get(each, each) for each in need.certain),
        frozenset(names.get(each, each) for each in need.soft),
        need.exact,
    )


class _Needs:
    def __init__(self, words: Iterable[str]) -> None:
        self._words = frozenset(words)
        self._fresh = 0

    def fresh(self) -> Term:
        """Return a variable that the query does not name."""
        self._fresh += 1
        while f"?n{self._fresh}" in self._words or f"$n{self._fresh}" in self._words:
            self._fresh += 1
        return f"?n{self._fresh}"

    def query(self, query: model.Select) -> list[Need]:
        """Find what a query needs."""
        group = query.group
        if query.values is not None and not query.aggregates:
            group = model.Group((*group.parts, query.values))
        needs = self.group(group)
        exact = not query.having and _number(query.offset, 0) == 0 and _number(query.limit, 1) != 0
        if query.values is not None and query.aggregates:
            exact = False
        if query.aggregates and query.group_by is None:
            exact = False
            if not any(self._counts(each) for each in query.having):
                return [Need(exact=False)]
        return needs if exact else [replace(each, exact=False) for each in needs]

    def _counts(self, condition: Expression) -> bool:
        """Tell whether a condition of HAVING asks for at least one solution."""
        for each in joined_by_and([condition]):
            match each:
                case model.Compare(">", model.Call("COUNT"), str() as number):
                    return _number(number, -1) >= 0
                case model.Compare(">=" | "=", model.Call("COUNT"), str() as number):
                    return _number(number, -1) >= 1
        return False

    def group(self, group: model.Group, given: frozenset[Term] = _NONE) -> list[Need]:
        """Find what a group needs; `given` are variables that conditions can see from outside."""
        needs = [Need()]
        filters: list[Expression] = []
        tables: list[model.Values] = []
        for part in group.parts:
            if isinstance(part, model.Block):
                for triple in part.triples:
                    needs = _joined(needs, self.triple(triple))
            elif isinstance(part, model.Filter):
                filters += joined_by_and([part.condition])
            elif isinstance(part, model.Optional):
                more = frozenset(model.visible(part.group))
                needs = [replace(each, soft=each.soft | more - each.certain) for each in needs]
            elif isinstance(part, model.Minus):
                needs = [replace(each, exact=False) for each in needs]
            elif isinstance(part, model.Either):
                needs = _joined(needs, [each for one in part.groups for each in self.group(one)])
            elif isinstance(part, model.Bind):
                needs = [replace(each, soft=each.soft | {part.variable}) for each in needs]
            elif isinstance(part, model.Values):
                tables.append(part)
            elif isinstance(part, model.Group):
                needs = _joined(needs, self.group(part))
            else:
                needs = _joined(needs, self.inner(part))
        for table in tables:
            needs = [self.table(each, table) for each in needs]
        for condition in filters:
            needs = [more for each in needs for more in self.condition(each, condition, given)]
        return needs if len(needs) <= MAX_ALTERNATIVES else [_shared(needs)]

    def inner(self, query: model.Select) -> list[Need]:
        """Find what a query within a query needs: what it does not give is its own."""
        given = set(model.selected_of(query)) - query.computed
        if query.group_by is not None:
            given &= set(query.group_by)
        elif query.aggregates:
            given = set()
        needs = []
        for need in self.query(query):
            own = (need.certain | need.soft) - given
            hidden = _renamed(need, {name: self.fresh() for name in sorted(own)})
            needs.append(
                replace(
                    hidden,
                    soft=hidden.soft | query.computed,
                    exact=hidden.exact and query.limit is None,
                )
            )
        return needs

    def table(self, need: Need, table: model.Values) -> Need:
        """Let a variable be one of the terms that VALUES gives it."""
        exact, filters = need.exact and bool(table.rows), list(need.filters)
        loose = frozenset(table.variables) - need.certain
        for index, name in enumerate(table.variables):
            terms = dict.fromkeys(row[index] for row in table.rows)
            if name in loose or None in terms:
                exact = exact and name not in need.soft and None not in terms
                continue
            known = tuple(each for each in terms if each is not None)
            filters.append(model.Member(name, known))
            if len(table.variables) > 1 or not all(is_one(each, model.Options()) for each in known):
                exact = False
        return replace(need, filters=tuple(filters), soft=need.soft | loose, exact=exact)

    def condition(self, need: Need, condition: Expression, given: frozenset[Term]) -> list[Need]:
        """Add a condition to a need, if the index knows it and its variables are bound."""
        if isinstance(condition, model.Exists):
            return self.exists(need, condition.group, given)
        named = frozenset(variables(condition))
        known = is_indexed(condition) and is_searched(condition)
        if not known or not named or not named <= need.certain | given:
            return [replace(need, exact=False)]
        return [replace(need, filters=(*need.filters, condition))]

    def exists(self, need: Need, group: model.Group, given: frozenset[Term]) -> list[Need]:
        """Add what EXISTS asks for; variables that nothing outside binds are its own."""
        known = need.certain | given
        needs = []
        for inner in self.group(group, known):
            own = (inner.certain | inner.soft) - known
            mixed = bool((inner.certain | inner.soft) & need.soft)
            hidden = _renamed(inner, {name: self.fresh() for name in sorted(own)})
            both = _both(need, hidden)
            needs.append(replace(both, exact=both.exact and not mixed))
        return needs

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
            return [_unknown(end)] if model.is_literal(subject) else [_edge(subject, path, end)]
        if isinstance(path, model.Inverse):
            return self.path(end, path.path, subject, walking=walking)
        if isinstance(path, model.Choice):
            return [
                each for option in path.options for each in self.path(subject, option, end, walking=walking)
            ]
        if isinstance(path, model.Chain):
            return self.chain(subject, path, end, walking=walking)
        if isinstance(path, model.Negated):
            forward, back = path.ways
            needs = [_edge(subject, self.fresh(), end)] if forward and not model.is_literal(subject) else []
            needs += [_edge(end, self.fresh(), subject)] if back and not model.is_literal(end) else []
            return [replace(each, exact=False) for each in needs or [_unknown(subject, end)]]
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
        if model.is_literal(subject) or model.is_literal(end):
            return _unknown(subject, end)
        return Need(checks=(model.Edge(subject, path, end, path),))

    def chain(self, subject: Term, path: model.Chain, end: Term, *, walking: bool) -> list[Need]:
        """Part a chain into its steps, with variables between them."""
        steps: list[Path] = []
        for step in path.steps:
            if step == model.Repeat(model.SUBCLASS, "*") and steps and steps[-1] == model.TYPE:
                steps[-1] = model.ISA
            else:
                steps.append(step)
        needs = [Need()]
        for index, step in enumerate(steps):
            last = index == len(steps) - 1
            behind = end if last else self.fresh()
            if step == model.ISA:
                isa = (
                    _unknown(subject, behind)
                    if model.is_literal(behind)
                    else _edge(subject, model.ISA, behind, model.ISA)
                )
                needs = _joined(needs, [isa])
            else:
                needs = _joined(needs, self.path(subject, step, behind, walking=walking))
            subject = behind
        return needs
