"""pyoxigraph as a second opinion, and a reference that has taken on its habits.

A difference is explained if, and only if, the reference gives exactly the oracle's answer once it has the
oracle's habits. So each of them says precisely what the oracle does instead, and not merely where it may
differ.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple
from unittest.mock import patch

import pyoxigraph as ox

from headgate.rdf.events.reading import make_graph
from headgate.rdf.language import values as evaluation
from headgate.rdf.language.model import (
    ASK,
    BELOW,
    ISA,
    PLAIN,
    SELECT,
    SUBCLASS,
    SUBPROPERTY,
    TYPE,
    And,
    Call,
    Compare,
    Edge,
    Member,
    Not,
    Options,
    Or,
    Pattern,
    is_variable,
)
from headgate.rdf.language.printing import print_expression, print_pattern
from headgate.rdf.language.values import compare
from tests.rdf.habits import ELSEWHERE, HABITS, Elsewhere, from_ox, to_ox
from tests.rdf.reference import World, solutions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeAlias

    from headgate.rdf.language.model import Expression, Graph, Term
    from headgate.rdf.taxonomy.taxonomy import Taxonomy

    Rows: TypeAlias = frozenset[tuple[Term, ...]]

ONE = ox.DefaultGraph()
TAXONOMY = ox.NamedNode("urn:taxonomy")
MENTIONED = "<urn:mentioned>"


class Verdict(NamedTuple):
    """What the two say, what the reference says with the oracle's habits, and which of them showed."""

    ours: Rows
    theirs: Rows
    habitual: Rows
    habits: frozenset[str]

    @property
    def agreed(self) -> bool:
        """Tell whether the two say the same."""
        return self.ours == self.theirs

    @property
    def explained(self) -> bool:
        """Tell whether there is no difference, or it comes of the habits and of nothing else."""
        return self.agreed or (self.habitual == self.theirs and bool(self.habits))


def judge(pattern: Pattern, graph: Graph, taxonomy: Taxonomy) -> Verdict:
    """Ask the reference and the oracle for all bindings of the variables that have names."""
    mine, other = _ours(pattern, graph, taxonomy), theirs(pattern, graph, taxonomy)
    if mine == other:
        return Verdict(mine, other, mine, frozenset())
    with _habits() as (term, rewrite, shown):
        edges = [
            Edge(term(edge.subject), term(edge.property), term(edge.object), edge.path)
            for edge in pattern.edges
        ]
        filters = [_mapped(each, term, rewrite) for each in pattern.filters]
        kept = make_graph([(term(s), term(p), term(o)) for s, p, o in graph.statements()])
        habitual = _ours(replace(pattern, edges=tuple(edges), filters=tuple(filters)), kept, taxonomy)
    return Verdict(mine, other, habitual, frozenset(shown))


def judge_expression(expression: Expression) -> Verdict:
    """Ask the two for the value of an expression without variables; an error is no row."""
    found = next(iter(_solutions(ox.Store(), f"SELECT ({print_expression(expression)} AS ?r) {{}}")))[0]
    other: Rows = frozenset() if found is None else frozenset({(from_ox(found),)})
    mine = _value(expression)
    if mine == other:
        return Verdict(mine, other, mine, frozenset())
    with _habits() as (term, rewrite, shown):
        habitual = _value(_mapped(expression, term, rewrite))
    return Verdict(mine, other, habitual, frozenset(shown))


def _value(expression: Expression) -> Rows:
    found = evaluation.as_term(evaluation.evaluate(expression, {}, Options()))
    return frozenset() if found is None else frozenset({(found,)})


def theirs(pattern: Pattern, graph: Graph, taxonomy: Taxonomy) -> Rows:
    """List the bindings that the oracle finds.

    A filter without paths is asked as it is printed, of the event. One with paths is asked as printed of the
    event and the taxonomy in one graph, unless a plain edge could then see the taxonomy: that one is asked
    of two graphs.
    """
    names = _named(pattern)
    statements = World(graph, taxonomy).statements
    ups = [each for each in graph.statements() + taxonomy.statements() if each[1] in {SUBCLASS, SUBPROPERTY}]
    properties = [edge.property for edge in pattern.edges if edge.path == PLAIN]
    store = ox.Store()
    store.extend(_quad(each) for each in statements)
    if len(properties) < len(pattern.edges):
        if any(is_variable(each) or each in {SUBCLASS, SUBPROPERTY} for each in properties):
            store.extend(_quad(each, TAXONOMY) for each in ups)
            # A path of no steps leads from a term to itself only if its graph mentions the term.
            store.extend(
                _quad((MENTIONED, MENTIONED, term), TAXONOMY) for each in statements for term in each
            )
            return _rows(store, _split(pattern, names), names)
        store.extend(_quad(each) for each in ups)
    asked = replace(pattern, form=SELECT if names else ASK, selected=names)
    return _rows(store, print_pattern(asked), names)


def _named(pattern: Pattern) -> tuple[Term, ...]:
    return tuple(each for each in pattern.variables if not each.startswith("?:"))


def _ours(pattern: Pattern, graph: Graph, taxonomy: Taxonomy) -> Rows:
    found = solutions(pattern, graph, taxonomy, Options())
    return frozenset(tuple(binding[name] for name in _named(pattern)) for binding in found)


def _quad(statement: tuple[Term, Term, Term], graph: ox.NamedNode | ox.DefaultGraph = ONE) -> ox.Quad:
    subject, name, item = (to_ox(term) for term in statement)
    assert not isinstance(subject, ox.Literal)
    assert isinstance(name, ox.NamedNode)
    return ox.Quad(subject, name, item, graph)


def _rows(store: ox.Store, text: str, names: tuple[Term, ...]) -> Rows:
    if not names:
        return frozenset({()} if store.query(text) else set())
    return frozenset(tuple(from_ox(row[name[1:]]) for name in names) for row in _solutions(store, text))


def _solutions(store: ox.Store, text: str) -> ox.QuerySolutions:
    found = store.query(text)
    assert isinstance(found, ox.QuerySolutions)
    return found


def _split(pattern: Pattern, names: tuple[Term, ...]) -> str:
    """Write a filter whose paths are walked in the taxonomy's graph, and the rest is not."""
    lines = []
    for number, edge in enumerate(pattern.edges):
        # One label of a blank node must not stand in two graphs, so those are variables here.
        subject, name, item = (
            each.replace("?:", "?blank_") for each in (edge.subject, edge.property, edge.object)
        )
        if edge.path == ISA:
            lines.append(f"{subject} {TYPE} ?type_{number} .")
            subject, name = f"?type_{number}", f"{SUBCLASS}*"
        elif edge.path:
            name = f"{SUBCLASS if edge.path == BELOW else SUBPROPERTY}*"
        lines.append(
            f"GRAPH {TAXONOMY} {{ {subject} {name} {item} }}" if edge.path else f"{subject} {name} {item} ."
        )
    lines += [f"FILTER({print_expression(each)})" for each in pattern.filters]
    what = f"SELECT DISTINCT {' '.join(names)}" if names else "ASK"
    return f"{what} WHERE {{ {' '.join(lines)} }}"


@contextmanager
def _habits() -> Iterator[tuple[Callable[[Term], Term], Callable[[Expression], Expression], set[str]]]:
    """Give the reference the oracle's habits; yields what becomes of terms, and the habits that showed."""
    shown: set[str] = set()
    truth = evaluation.truth

    def their_compare(sign: str, left: Term, right: Term, coerce: bool = False) -> bool | None:
        exact = compare(sign, left, right, coerce)
        for habit in HABITS:
            found = habit.compare(sign, left, right)
            if not isinstance(found, Elsewhere):
                shown.update({habit.name} if found is not exact else ())
                return found
        return exact

    def their_truth(found: Term | bool | None) -> bool | None:
        exact = truth(found)
        for habit in HABITS:
            answer = habit.truth(found) if isinstance(found, str) else ELSEWHERE
            if not isinstance(answer, Elsewhere):
                shown.update({habit.name} if answer is not exact else ())
                return answer
        return exact

    def their_term(term: Term) -> Term:
        for habit in HABITS:
            changed = habit.term(term)
            shown.update({habit.name} if changed != term else ())
            term = changed
        return term

    def their_expression(expression: Expression) -> Expression:
        for habit in HABITS:
            changed = habit.rewrite(expression)
            shown.update({habit.name} if changed != expression else ())
            expression = changed
        return expression

    with patch.object(evaluation, "compare", their_compare), patch.object(evaluation, "truth", their_truth):
        yield their_term, their_expression, shown


def _mapped(
    expression: Expression, term: Callable[[Term], Term], rewrite: Callable[[Expression], Expression]
) -> Expression:
    """Rewrite an expression and its parts, from the inside."""

    def each(parts: tuple[Expression, ...]) -> tuple[Expression, ...]:
        return tuple(_mapped(part, term, rewrite) for part in parts)

    match expression:
        case str():
            return rewrite(term(expression))
        case Compare(sign, left, right):
            return rewrite(Compare(sign, *each((left, right))))
        case Member(item, options):
            return rewrite(Member(_mapped(item, term, rewrite), each(options)))
        case Call(name, arguments):
            return rewrite(Call(name, each(arguments)))
        case And(parts) | Or(parts):
            return rewrite(type(expression)(each(parts)))
        case Not(part):
            return rewrite(Not(_mapped(part, term, rewrite)))
