"""The graphs of Table 3, as the paper says that they were made: by the mean degrees of Table 1 alone.

Section 4.3 has graphs of a generator that maintains "the same average number of incoming and outgoing edges
for publishers, ad networks, and advertiser nodes". Its graph of the first size is not that of Table 2: fewer
nodes are valid there, and more are reachable. Drawn evenly, edges leave one node in ten without any. Such
nodes are in no graph that is given by its edges.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.workload_statistics import measure_reach
from headgate.workloads.columns import Key, integers
from headgate.workloads.graphs.exchange import ADVERTISERS, NETWORKS, PUBLISHERS, Exchange
from headgate.workloads.graphs.graphs import Structure, fill

if TYPE_CHECKING:
    from benchmarks.workload_statistics import Reach
    from headgate.core.arrays import Ints


_NODES = (PUBLISHERS, NETWORKS, ADVERTISERS)
_EDGES = {(0, 1): 58_927, (0, 2): 17_000, (1, 1): 4_354, (1, 2): 7_518}
"""Edges by the kinds that they join: what the degrees of Table 1 and its text leave."""


@lru_cache(maxsize=2)
def evenly_drawn(scale: int, seed: int) -> Structure:
    """Draw edges between nodes of each two kinds, all as likely."""
    kinds = np.array(_NODES) * scale
    first, size = np.cumsum(kinds) - kinds, int(kinds.sum())
    found = []
    for (begin, end), count in _EDGES.items():

        def draw(wanted: int, turn: int, begin: int = begin, end: int = end) -> Ints:
            key = Key(seed, "degrees", f"{begin} {end}", np.arange(wanted))
            source = first[begin] + integers(key, 0, int(kinds[begin]), 2 * turn)
            target = first[end] + integers(key, 0, int(kinds[end]), 2 * turn + 1)
            return np.where(source == target, -1, source * size + target)

        found.append(fill(np.zeros(0, np.int64), count * scale, draw))
    source, target = np.divmod(np.sort(np.concatenate(found)), size)
    return Structure(
        np.repeat(np.arange(3, dtype=np.uint8), kinds), source.astype(np.int32), target.astype(np.int32)
    )


@dataclass(frozen=True)
class Degrees(Exchange):
    """An exchange of the mean degrees alone; nodes without edges have no filter and are no source."""

    def reach(self, events: int, seed: int) -> Reach:
        """Measure what events find; nodes without edges do not count as valid."""
        found = measure_reach(self, events, seed)
        lone = (NETWORKS + ADVERTISERS) * self.scale - len(self.filtered(seed))
        return found._replace(valid=found.valid - lone)

    def structure(self, seed: int) -> Structure:
        """Draw the graph, or return the one that was drawn for this seed."""
        return evenly_drawn(self.scale, seed)

    def filtered(self, seed: int) -> Ints:
        """List the nodes that have a filter: networks and advertisers with an edge."""
        graph = self.structure(seed)
        joined = np.union1d(graph.edge_source, graph.edge_target)
        return joined[graph.kind[joined] > 0].astype(np.int64)

    def sources(self, rows: Ints, seed: int) -> Ints:
        """Draw the publishers of events among those that have an edge."""
        joined = np.unique(self.structure(seed).edge_source)
        joined = joined[joined < PUBLISHERS * self.scale]
        return joined[integers(Key(seed, "degrees", "source", rows), 0, len(joined))].astype(np.int64)
