"""Statistics of workloads, and the obvious way to evaluate a specification."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from headgate.core.ids import Ids
from headgate.core.interning import TextPool
from headgate.papers.matchers import MATCHERS
from headgate.rdf.language.model import is_variable
from headgate.rdf.taxonomy.taxonomy import Taxonomy
from headgate.workloads.records.specification import Operator
from headgate.xml.events.reading import read_document
from headgate.xml.index.columns import compile_all
from headgate.xml.index.index import XmlIndex
from headgate.xml.language.model import ANY, DESCENDANT
from headgate.xml.language.printing import print_pattern

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.workloads.records.specification import Specification
    from headgate.workloads.records.synthetic import Synthetic

    Ints = NDArray[np.int64]
    Bools = NDArray[np.bool_]
    from collections.abc import Sequence

    from headgate.rdf.language.model import Edge
    from headgate.workloads.boxes.ranking import RankingWorkload
    from headgate.workloads.rdf.publications import RdfWorkload
    from headgate.workloads.xml.xmark import XMark
    from headgate.xml.language.model import Pattern


def matches(spec: Specification, event: Ints) -> Bools:
    """Tell which filters an event matches, given as its row of `Synthetic.numbers`.

    Looks at every operand of every filter.
    """
    if not spec.filters:
        return np.zeros(0, np.bool_)
    first = spec.operand_start[:-1]
    value = event[spec.attribute]
    low, high = spec.operands[first], spec.operands[spec.operand_start[1:] - 1]
    listed = np.logical_or.reduceat(spec.operands == np.repeat(value, np.diff(spec.operand_start)), first)
    inside = (value >= low) & (value <= high)
    inside |= spec.is_operator(Operator.GE) & (value >= low)
    inside |= spec.is_operator(Operator.LE) & (value <= high)
    ranges = spec.is_operator(*(each for each in Operator if each.is_range))
    negations = spec.is_operator(*(each for each in Operator if each.is_negation))
    # A predicate over an attribute that is missing is NULL, negated or not.
    holds = (np.where(ranges, inside, listed) != negations) & (value >= 0)
    conjunctions = np.logical_and.reduceat(holds, spec.predicate_start[:-1])
    return np.asarray(np.logical_or.reduceat(conjunctions, spec.conjunction_start[:-1]), np.bool_)


def measure(workload: Synthetic, filters: int, events: int, seed: int) -> dict[str, float]:
    """Measure a workload: its filters, its events, and how many filters an event matches."""
    spec = workload.specification(np.arange(filters), seed)
    drawn = workload.numbers(np.arange(events), seed)
    shares = np.bincount(spec.operator, minlength=len(Operator)) / spec.predicates
    ranges = spec.is_operator(*(each for each in Operator if each.is_range))
    negations = spec.is_operator(*(each for each in Operator if each.is_negation))
    first = spec.predicate_start[spec.conjunction_start[:-1]]
    lists = spec.is_operator(Operator.IN, Operator.NOT_IN)
    found = np.array([np.count_nonzero(matches(spec, event)) for event in drawn])
    return {
        "matches an event": found.mean(),
        "matches, standard error": found.std() / np.sqrt(events),
        "matches, median": float(np.median(found)),
        "attributes an event": (drawn >= 0).sum(axis=1).mean(),
        "predicates a conjunction": spec.predicates / (len(spec.predicate_start) - 1),
        "filters with OR": (np.diff(spec.conjunction_start) > 1).mean(),
        "filters with ranges only": np.logical_and.reduceat(ranges, first).mean(),
        "filters with negations only": np.logical_and.reduceat(negations, first).mean(),
        "values a list": np.diff(spec.operand_start)[lists].mean() if lists.any() else 0.0,
        **{f"predicates with {each.name}": share for each, share in zip(Operator, shares, strict=True)},
    }


def measure_boxes(workload: RankingWorkload, boxes: int, events: int, seed: int) -> dict[str, float]:
    """Measure boxes, and how many intervals of them hold for an event.

    An interval over an attribute that the event lacks does not hold.
    """
    drawn = workload.lists(np.arange(boxes), seed)
    counts = np.diff(drawn.start)
    held, some, every = [], [], []
    for point in workload.points(np.arange(events), seed):
        value = point[drawn.attribute]
        holds = (drawn.low <= value) & (drawn.high >= value)
        by_box = np.add.reduceat(holds.astype(np.int64), drawn.start[:-1])
        held.append(holds.mean())
        some.append((by_box > 0).mean())
        every.append((by_box == counts).mean())
    width = drawn.high - drawn.low
    return {
        "intervals a box": counts.mean(),
        "mean length of an interval": width.mean(),
        "median length": float(np.median(width)),
        "different ends by intervals": len(np.unique((drawn.low, drawn.high))) / len(width),
        "intervals that hold": float(np.mean(held)),
        "least of the events": float(np.min(held)),
        "most of the events": float(np.max(held)),
        "boxes of which some interval holds": float(np.mean(some)),
        "boxes of which all intervals hold": float(np.mean(every)),
    }


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


PAPER_VIEWS = {
    "predicates a view": 0.72,
    "predicates a node": 0.11,
    "nodes a view": 6.13,
    "return nodes a view": 2.52,
}


def measure_views(patterns: Sequence[Pattern]) -> dict[str, float]:
    """Measure what Table 2 says of views."""
    nodes = [node for pattern in patterns for node in pattern.nodes]
    tests = sum(len(node.tests) for node in nodes)
    return {
        "predicates a view": tests / len(patterns),
        "predicates a node": tests / len(nodes),
        "nodes a view": len(nodes) / len(patterns),
        "return nodes a view": sum(bool(node.returns) for node in nodes) / len(patterns),
    }


def measure_xml(workload: XMark, views: int, events: int, seed: int) -> dict[str, float]:
    """Measure views, documents, and how many of the views each document answers."""
    patterns = workload.views(views, seed)
    nodes = [node for pattern in patterns for node in pattern.nodes]
    texts = workload.documents(np.arange(events), seed)
    documents = [read_document(text) for text in texts]
    index = XmlIndex.from_columns(
        Ids.from_arrow(pa.array(np.arange(views))), TextPool.build(()), compile_all(patterns)
    )
    answered = np.array([len(index.match_document(each)) for each in documents])
    return {
        **measure_views(patterns),
        "unique views, %": 100 * len({*patterns}) / views,
        "// by nodes, %": 100 * sum(node.axis == DESCENDANT for node in nodes) / len(nodes),
        "* by nodes, %": 100 * sum(node.label == ANY for node in nodes) / len(nodes),
        "characters a view": float(np.mean([len(print_pattern(each)) for each in patterns[:1_000]])),
        "bytes a document": float(np.mean([len(text.encode()) for text in texts])),
        "nodes a document": float(np.mean([len(each.labels) for each in documents])),
        "views that a document answers, %": 100 * float(answered.mean()) / views,
        "least, %": 100 * float(answered.min()) / views,
        "most, %": 100 * float(answered.max()) / views,
    }
