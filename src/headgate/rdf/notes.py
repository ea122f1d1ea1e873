"""Why an edge does not hold, or why it does, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.rdf.facts import ways
from headgate.rdf.model import BELOW_PROPERTY, ISA, PLAIN, SUBCLASS, SUBPROPERTY, TYPE
from headgate.rdf.terms import is_literal, is_variable, parts
from headgate.rdf.values import compare
from headgate.rdf.wording import kind, listed, shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import TypeAlias

    from headgate.rdf.facts import Facts
    from headgate.rdf.model import Edge, Term

    Binding: TypeAlias = Mapping[Term, Term]


def edge_note(edge: Edge, facts: Facts, binding: Binding, *, complete: bool) -> str:
    """Say why an edge does not hold under a binding, which may leave its variables open.

    If it could hold, its nodes stand for other nodes of the filter, or the search was not complete.
    """
    if edge.path in {PLAIN, ISA} and ways(facts, edge, binding):
        return "what would fit stands for another part of the filter" if complete else "not looked at"
    low, name, high = (_known(term, binding) for term in (edge.subject, edge.property, edge.object))
    if edge.path == PLAIN:
        return _no_triple(facts, low, name, high)
    if edge.path == ISA:
        return _no_type(facts, low, high)
    if low is None or high is None:
        return f"nothing stands for {edge.subject if low is None else edge.object}"
    relation = SUBPROPERTY if edge.path == BELOW_PROPERTY else SUBCLASS
    above = sorted(facts.above(low, relation) - {low})
    return f"above {shown(low)} there is {'only ' + listed(above) if above else 'nothing'}"


def held_note(edge: Edge, facts: Facts, binding: Binding) -> str:
    """Say through which type a node is of a class, if not directly."""
    low, high = _known(edge.subject, binding), _known(edge.object, binding)
    if edge.path != ISA or low is None or high is None or high in facts.types(low):
        return ""
    through = next(each for each in facts.types(low) if high in facts.above(each))
    return f"{shown(low)} is a {shown(through)}, which is below it"


def _no_triple(facts: Facts, low: Term | None, name: Term | None, high: Term | None) -> str:
    if name is None:
        if low is not None and high is not None:
            return f"no property leads from {shown(low)} to {shown(high)}"
        if low is not None or high is not None:
            one, role = (low, "subject") if low is not None else (high, "object")
            return f"{shown(one or '')} is the {role} of no triple"
        return "no triple has the same term in both places" if facts.statements else "the event is empty"
    able = facts.triples((None, name, None))
    if not able:
        return "the event has no triple with this property"
    if low is None and high is None:
        return "no triple with this property has the same term in both places"
    if low is not None:
        own = [each for _, _, each in facts.triples((low, name, None))]
        if not own:
            return f"{shown(low)} does not have this property; {listed(s for s, _, _ in able)} {_does(able)}"
        return f"{shown(low)} has it with {listed(own)}{_alike(high, own)}"
    others = [each for _, _, each in able]
    return f"the event has it with {listed(others)}{_alike(high, others)}"


def _does(able: list[tuple[Term, Term, Term]]) -> str:
    return "does" if len({s for s, _, _ in able}) == 1 else "do"


def _alike(wanted: Term | None, found: Iterable[Term]) -> str:
    """Point at a literal that is equal to a constant, or looks so, and is another term."""
    if wanted is None or not is_literal(wanted):
        return ""
    for each in found:
        if is_literal(each):
            same = parts(each).lexical == parts(wanted).lexical
            if same or compare("=", each, wanted) is True:
                return f"; {shown(each)} is {kind(each)}, and a constant matches by text, type and language"
    return ""


def _no_type(facts: Facts, node: Term | None, wanted: Term | None) -> str:
    if node is None:
        types = [each for _, _, each in facts.triples((None, TYPE, None))]
        start = "nothing in the event is one: it has"
    else:
        types = facts.types(node)
        start = f"{shown(node)} is of type"
    if not types:
        return "the event has no types" if node is None else f"{shown(node)} has no type"
    text = f"{start} {listed(types)}"
    if wanted is None or len(set(types)) > 1:
        return text
    if types[0] in facts.above(wanted):
        return f"{text}, which is above {shown(wanted)} and not below it"
    above = sorted(facts.above(types[0]) - {types[0]})
    return f"{text}, which is below {listed(above)}" if above else f"{text}, which is below nothing"


def _known(term: Term, binding: Binding) -> Term | None:
    return binding.get(term) if is_variable(term) else term
