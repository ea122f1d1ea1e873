"""Terms, edges and bindings in words: why an edge does not hold, or why it does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.contents.kind import Results, table_lines
from headgate.rdf.events.facts import ways
from headgate.rdf.language.model import (
    BELOW_PROPERTY,
    ISA,
    PLAIN,
    RDF,
    RDFS,
    SUBCLASS,
    SUBPROPERTY,
    TYPE,
    XSD,
)
from headgate.rdf.language.terms import LANG_STRING, STRING, is_blank, is_iri, is_literal, is_variable, parts
from headgate.rdf.language.values import Moment, Number, Text, Truth, compare, value_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import TypeAlias

    from headgate.rdf.events.facts import Facts
    from headgate.rdf.index.bindings import Bindings
    from headgate.rdf.language.model import Edge, Term

    Binding: TypeAlias = Mapping[Term, Term]


_PREFIXES = {RDF: "rdf:", RDFS: "rdfs:", XSD: "xsd:"}
_BARE = {f"{XSD}integer", f"{XSD}decimal", f"{XSD}boolean"}
_LONGEST = 80
_MOST = 3


def shown(term: Term) -> str:
    """Write a term for people: numbers and truth values bare, known prefixes, giants cut.

    >>> shown('"2001"^^<http://www.w3.org/2001/XMLSchema#integer>'), shown('"2001"')
    ('2001', '"2001"')
    """
    if is_literal(term):
        lexical, datatype, _ = parts(term)
        if datatype in _BARE and value_of(term) is not None:
            term = lexical
        elif datatype not in {STRING, LANG_STRING}:
            end = term.rindex('"') + 1
            term = f"{term[:end]}^^{_short(datatype)}"
    elif is_iri(term):
        term = _short(term[1:-1])
    return term if len(term) <= _LONGEST else f"{term[: _LONGEST - 1]}…"


def listed(terms: Iterable[Term]) -> str:
    """List a few terms for people."""
    found = [shown(each) for each in dict.fromkeys(terms)]
    more = len(found) - _MOST
    return ", ".join(found[:_MOST]) + (f" and {more} more" if more > 0 else "")


def kind(term: Term) -> str:
    """Say what a term is.

    >>> kind('"2001"'), kind('"x"^^<http://www.w3.org/2001/XMLSchema#integer>'), kind("<urn:x>")
    ('a string', 'not a valid xsd:integer', 'an IRI')
    """
    if not is_literal(term):
        return "a blank node" if is_blank(term) else "an IRI"
    match value_of(term):
        case Text(_, language):
            return f"a string in the language {language}" if language else "a string"
        case Truth():
            return "a truth value"
        case Number(name, _) | Moment(name, _, _):
            return f"{'an' if name == 'integer' else 'a'} {name}"
    datatype = parts(term).datatype
    return f"{'not a valid' if datatype.startswith(XSD) else 'of the unknown datatype'} {_short(datatype)}"


def _short(name: str) -> str:
    for full, prefix in _PREFIXES.items():
        if name.startswith(full):
            return prefix + name[len(full) :]
    return f"<{name}>"


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


def bindings_shown(found: Bindings) -> Results:
    """Show bindings: for machines, and as a table for people."""
    if not found.rows:
        lines = ["no bindings"]
    elif not found.names:
        lines = ["bindings: the filter has no variables with names"]
    else:
        count = f"{len(found.rows):,}" if found.complete else f"the first {len(found.rows):,}"
        rows = [found.names, *(tuple(map(shown, row)) for row in found.rows)]
        lines = [f"bindings: {count}", *table_lines(rows)]
    return Results(found._asdict(), lines)
