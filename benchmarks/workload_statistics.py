"""Statistics of workloads, and the obvious ways to evaluate filters and to find what an event reaches."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from benchmarks.rdf_data import graphs_of, patterns_of
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
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from headgate.core.arrays import Bools, Ints
    from headgate.rdf.language.model import Edge
    from headgate.workloads.graphs.exchange import Exchange
    from headgate.workloads.graphs.graphs import Structure
    from headgate.workloads.ranking import RankingWorkload
    from headgate.workloads.rdf.publications import RdfWorkload
    from headgate.workloads.records.specification import Specification
    from headgate.workloads.records.synthetic import Synthetic
    from headgate.workloads.xml.xmark import XMark
    from headgate.xml.language.model import Pattern

    Bits = NDArray[np.uint8]


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
    patterns = patterns_of(workload, np.arange(filters), seed)
    matcher = MATCHERS[_MATCHER](Taxonomy.of(workload.taxonomy(seed)))
    for number, pattern in enumerate(patterns):
        matcher.insert(number, pattern)
    graphs = graphs_of(workload, np.arange(events), seed)
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


PAPER_SHAPE = {
    "nodes": 71_097,
    "edges": 87_799,
    "publishers": 60_011,
    "networks": 282,
    "advertisers": 10_804,
    "reachable, mean": 4_802,
    "reachable, most": 5_998,
    "reachable, least": 1,
    "components": 70_969,
    "largest component": 126,
    "second component": 4,
    "out(publisher)": 1.3,
    "in(network)": 224.4,
    "out(network)": 42.1,
    "in(advertiser)": 2.3,
    "publisher to advertiser": 17_000,
}
"""Table 1 of Broder et al., WWW 2011, and what its text adds."""


class Reach(NamedTuple):
    """What an event finds: nodes whose filter holds, nodes that it comes to, both, and edges out of those."""

    valid: float
    reached: float
    passed: float
    edges: float


PAPER_SELECTIVITIES = {
    "1/16": Reach(693, 34, 3, 47),
    "1/8": Reach(1_336, 83, 11, 127),
    "1/4": Reach(3_081, 452, 125, 740),
    "1/2": Reach(7_064, 1_756, 1_126, 3_310),
    "1": Reach(11_086, 4_837, 4_837, 8_588),
}
"""Table 2."""
PAPER_SCALES = {
    1: Reach(2_751, 596, 166, 1_000),
    2: Reach(5_489, 1_153, 320, 1_934),
    3: Reach(8_263, 1_675, 466, 2_833),
    4: Reach(10_968, 2_141, 593, 3_613),
    5: Reach(13_677, 2_806, 782, 4_746),
}
"""Table 3, at the selectivity 1/4."""


def measure_shape(exchange: Exchange, seed: int) -> dict[str, float]:
    """Measure what Table 1 has."""
    graph = exchange.structure(seed)
    count, edges = len(graph.kind), len(graph.edge_source)
    publishers, networks, advertisers = np.bincount(graph.kind).tolist()
    matrix = csr_array((np.ones(edges), (graph.edge_source, graph.edge_target)), (count, count))
    components, label = connected_components(matrix, connection="strong")
    largest = np.sort(np.bincount(label))[::-1].tolist()
    begin, end = graph.kind[graph.edge_source], graph.kind[graph.edge_target]
    reachable = _reachable(graph, publishers)
    return {
        "nodes": count,
        "edges": edges,
        "publishers": publishers,
        "networks": networks,
        "advertisers": advertisers,
        "reachable, mean": reachable.mean(),
        "reachable, most": reachable.max(),
        "reachable, least": reachable.min(),
        "components": components,
        "largest component": largest[0],
        "second component": largest[1],
        "out(publisher)": np.count_nonzero(begin == 0) / publishers,
        "in(network)": np.count_nonzero(end == 1) / networks,
        "out(network)": np.count_nonzero(begin == 1) / networks,
        "in(advertiser)": np.count_nonzero(end == 2) / advertisers,
        "publisher to advertiser": np.count_nonzero((begin == 0) & (end == 2)),
    }


def measure_reach(exchange: Exchange, events: int, seed: int) -> Reach:
    """Search the graph breadth-first for some events, and take the mean of what they find."""
    graph = exchange.structure(seed)
    start = _starts(graph)
    out, is_publisher = np.diff(start), graph.kind == 0
    rows = exchange.filtered(seed)
    spec = exchange.specification(rows, seed)
    drawn = np.arange(events)
    found = []
    for source, event in zip(exchange.sources(drawn, seed), exchange.numbers(drawn, seed), strict=True):
        valid = ~is_publisher
        valid[rows] = matches(spec, event)
        reached = _search(graph, start, source, valid)
        passed = reached & valid
        found.append((valid.sum(), reached.sum(), passed.sum(), out[source] + out[passed].sum()))
    return Reach(*np.mean(found, axis=0).tolist())


def _search(graph: Structure, start: Ints, source: int, valid: Bools) -> Bools:
    """Mark the nodes that have an edge from the source or from a valid node that is marked."""
    reached = np.zeros(len(valid), np.bool_)
    front = np.array([source])
    while len(front):
        begin, size = start[front], start[front + 1] - start[front]
        edges = np.repeat(begin - np.cumsum(size) + size, size) + np.arange(size.sum())
        targets = graph.edge_target[edges]
        new = np.unique(targets[~reached[targets]])
        reached[new] = True
        front = new[valid[new]]
    return reached


def _starts(graph: Structure) -> Ints:
    return np.searchsorted(graph.edge_source, np.arange(len(graph.kind) + 1))


def _reachable(graph: Structure, publishers: int) -> Ints:
    """Count what each publisher reaches if nothing is filtered."""
    start, everything = _starts(graph), np.ones(len(graph.kind), np.bool_)

    @cache
    def after(network: int) -> Bits:
        marked = _search(graph, start, network, everything)
        marked[network] = True
        return np.packbits(marked[publishers:])

    # By what they lead to: nodes that all of a group reach are found once, and forgotten with the group.
    groups: dict[tuple[int, ...], list[tuple[int, Ints]]] = {}
    for publisher in range(publishers):
        targets = graph.edge_target[start[publisher] : start[publisher + 1]]
        networks = targets[graph.kind[targets] == 1]
        advertisers = targets[graph.kind[targets] == 2]
        groups.setdefault(tuple(networks.tolist()), []).append((publisher, advertisers))
    counts = np.zeros(publishers, np.int64)
    for leading, members in groups.items():
        packed = np.zeros(-(-(len(graph.kind) - publishers) // 8), np.uint8)
        for network in leading:
            packed |= after(network)
        marked = np.unpackbits(packed, count=len(graph.kind) - publishers)
        size = np.count_nonzero(marked)
        for publisher, advertisers in members:
            counts[publisher] = size + np.count_nonzero(marked[advertisers - publishers] == 0)
    return counts
