"""The keys of filters: properties and classes that an event must have for them to hold."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from headgate.rdf.language.model import TYPE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headgate.contents.protocol import Keys
    from headgate.rdf.index.columns import Columns
    from headgate.rdf.language.model import Graph


def class_key(term: str) -> str:
    """Return the key of a class that something is an instance of."""
    return f"a {term}"


def rdf_keys(columns: Columns, listed: frozenset[str]) -> list[Keys]:
    """List the properties and classes that patterns demand; not of edges that go by the taxonomy.

    >>> from headgate.rdf.index.columns import compile_all
    >>> from headgate.rdf.language.model import Options
    >>> from headgate.rdf.language.parse import parse_filter
    >>> pattern = parse_filter("ASK { ?x a <urn:Art> ; <urn:by> ?who ; a/rdfs:subClassOf* <urn:Thing> }")
    >>> [sorted(keys) for keys in rdf_keys(compile_all([pattern], Options()), frozenset())]
    [['<urn:by>', 'a <urn:Art>']]
    """
    members = member_keys(columns, listed)
    if columns.members == columns.size:
        return members
    # Of a whole query any pattern may hold: an event has what they share.
    return [
        frozenset.intersection(*(each or frozenset() for each in members[begin:end])) or None
        for begin, end in pairwise(columns.member_start.tolist())
    ]


def member_keys(columns: Columns, listed: frozenset[str]) -> list[Keys]:
    """List the same of each pattern of filters."""
    terms = columns.terms.texts()
    found: list[Keys] = []
    starts, edges = columns.edge_start.tolist(), columns.edges.tolist()
    for begin, end in pairwise(starts):
        used: set[str] = set()
        for _, relation, target in edges[begin:end]:
            if relation < 0 or not terms[relation].startswith("<"):
                continue
            if terms[relation] != TYPE:
                used.add(terms[relation])
            elif target >= 0 and terms[target] not in listed:
                used.add(class_key(terms[target]))
        found.append(frozenset(used) or None)
    return found


def graph_keys(graph: Graph) -> Iterator[str]:
    """List the properties of a graph, and the classes that something is an instance of."""
    terms = graph.terms()
    for relation in np.unique(graph.triples[:, 1]).tolist():
        yield terms[relation]
        if terms[relation] == TYPE:
            of = graph.triples[graph.triples[:, 1] == relation, 2]
            yield from (class_key(terms[target]) for target in np.unique(of).tolist())
