"""Statistics of workloads with a graph, and the obvious way to find what an event reaches."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from headgate.workloads.statistics import matches

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.workloads.graphs.exchange import Exchange
    from headgate.workloads.graphs.graphs import Structure

    Ints = NDArray[np.int64]
    Bools = NDArray[np.bool_]
    Bits = NDArray[np.uint8]

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
