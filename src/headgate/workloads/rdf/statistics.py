"""Statistics of workloads of RDF."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headgate.papers.matchers import MATCHERS
from headgate.rdf.language.terms import is_variable
from headgate.rdf.taxonomy.taxonomy import Taxonomy

if TYPE_CHECKING:
    from headgate.rdf.language.model import Edge
    from headgate.workloads.rdf.publications import RdfWorkload

_MATCHER = "naive"
"""It takes longer with many filters, and not much longer with many matches."""


def measure_rdf(workload: RdfWorkload, filters: int, events: int, seed: int) -> dict[str, float]:
    """Count what filters have in common, and how many of them events match."""
    patterns = workload.patterns(np.arange(filters), seed)
    matcher = MATCHERS[_MATCHER](Taxonomy.of(workload.taxonomy(seed)))
    for number, pattern in enumerate(patterns):
        matcher.insert(number, pattern)
    graphs = workload.graphs(np.arange(events), seed)
    matches = np.array([len(matcher.match(graph)) for graph in graphs])
    edges = [_starred(edge) for pattern in patterns for edge in pattern.edges]
    structures = {frozenset(_starred(edge) for edge in pattern.edges) for pattern in patterns}
    texts = [len(str(text)) for text in workload.filters(np.arange(min(filters, 1_000)), seed).to_pylist()]
    return {
        "edges a filter": len(edges) / filters,
        "variables a filter": sum(len(pattern.variables) for pattern in patterns) / filters,
        "bounds a filter": sum(len(pattern.filters) for pattern in patterns) / filters,
        "different edges by edges": len(set(edges)) / len(edges),
        "different structures by filters": len(structures) / filters,
        "characters a filter": float(np.mean(texts)),
        "triples an event": float(np.mean([len(graph.triples) for graph in graphs])),
        "matches an event, %": 100 * matches.mean() / filters,
        "least, %": 100 * matches.min() / filters,
        "most, %": 100 * matches.max() / filters,
    }


def _starred(edge: Edge) -> tuple[str, ...]:
    """Write an edge without the names of its variables."""
    return tuple("*" if is_variable(term) else term for term in (edge.subject, edge.property, edge.object))
