"""What RDF Schema adds to an event besides what lies above what: containers, domains and ranges.

A container's properties rdf:_1, rdf:_2 and so on are each below rdfs:member, in every event, whatever the
taxonomy says. A taxonomy that was asked to mind domains and ranges gives types to the subjects and objects of
properties: they count as triples of the event, like types that it lists.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from headgate.rdf.language.model import MEMBER, RDF, SUBCLASS, SUBPROPERTY, TYPE, Graph, is_literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from headgate.rdf.language.model import Term
    from headgate.rdf.taxonomy.taxonomy import Statement, Taxonomy

_NUMBERED = re.compile(rf"<{re.escape(RDF)}_[1-9][0-9]*>")
_BEGIN = f"<{RDF}_"
CONTAINERS = _BEGIN.encode()
"""What stands in the text of an event that may have containers."""


def is_numbered(term: Term) -> bool:
    """Tell whether a property is one of a container's.

    >>> is_numbered(f"<{RDF}_12>"), is_numbered(f"<{RDF}_0>"), is_numbered(f"<{RDF}type>")
    (True, False, False)
    """
    return term.startswith(_BEGIN) and _NUMBERED.fullmatch(term) is not None


def own_order(statements: Iterable[Statement]) -> Iterator[Statement]:
    """List what an event itself says, or implies, of classes and properties below others."""
    met: set[Term] = set()
    for each in statements:
        if each[1] in (SUBCLASS, SUBPROPERTY):
            yield each
        for term in each:
            # Hardly any does: the rest is not called for each term.
            if term.startswith(_BEGIN) and term not in met and is_numbered(term):
                met.add(term)
                yield term, SUBPROPERTY, MEMBER


def entailed(graph: Graph, taxonomy: Taxonomy | None) -> Graph:
    """Add the types that follow from domains and ranges; the graph itself if there are none.

    A property gives what those above it give, too, by the taxonomy and by what the event says.
    """
    if taxonomy is None or not taxonomy.schemas:
        return graph
    statements = graph.statements()
    own: dict[Term, list[Term]] = {}
    for low, relation, high in own_order(statements):
        if relation == SUBPROPERTY:
            own.setdefault(low, []).append(high)
    given = {
        term: [taxonomy.schemas[up] for up in _above(term, own, taxonomy) if up in taxonomy.schemas]
        for term in {p for _, p, _ in statements}
    }
    if not any(given.values()):
        return graph
    found = dict.fromkeys(statements)
    for subject, property_, end in statements:
        for domains, ranges in given[property_]:
            found.update(((subject, TYPE, each), None) for each in domains)
            if not is_literal(end):
                found.update(((end, TYPE, each), None) for each in ranges)
    return _with(graph, [each for each in found if each not in set(statements)])


def _with(graph: Graph, more: list[Statement]) -> Graph:
    terms = graph.terms()
    places = {term: place for place, term in enumerate(terms)}
    rows = [[places.setdefault(term, len(places)) for term in each] for each in more]
    text = "\n".join(places).encode()
    triples = np.concatenate([graph.triples, np.array(rows, np.int32).reshape(-1, 3)])
    return Graph(text, triples)


def _above(term: Term, own: dict[Term, list[Term]], taxonomy: Taxonomy) -> set[Term]:
    found: set[Term] = set()
    waiting = [term]
    while waiting:
        for up in taxonomy.property_ancestors(waiting.pop()):
            if up not in found:
                found.add(up)
                waiting += own.get(up, ())
    return found
