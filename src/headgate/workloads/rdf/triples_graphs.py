"""Random graphs as the paper on G-ToPSS makes them, and random subgraphs of these; a row each.

A graph of k nodes and m edges is a path through its nodes and m - k + 1 edges between random pairs of
them. Edges are different triples, and join different nodes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.workloads.hashing import integers, uniform
from headgate.workloads.records.drawing import distinct

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.workloads.hashing import Key

    Ints = NDArray[np.int64]
    Bools = NDArray[np.bool_]

EVERY_THIRD = 3
"""With values, each third node of a path is a literal: a number that is a multiple of this."""


class Universe(NamedTuple):
    """What names are drawn from."""

    nodes: int
    labels: int
    values: bool
    """Whether some nodes are whole numbers; these are objects only, and none is next to another."""


class Graphs(NamedTuple):
    """Graphs of one size: a row each. Ends of edges are columns of `nodes`."""

    nodes: Ints
    source: Ints
    label: Ints
    target: Ints
    real: Bools
    """Which edges there are; a subgraph may have fewer than it could."""

    def take(self, rows: Ints) -> Graphs:
        """Return some of the rows."""
        nodes, source, label, target, real = self
        return Graphs(nodes[rows], source[rows], label[rows], target[rows], real[rows])


def draw_graphs(universe: Universe, size: tuple[int, int], key: Key) -> Graphs:
    """Draw a graph of `size`, nodes and edges, for each row of the key."""
    count, edges = size
    nodes = distinct(_column(key, "nodes"), count, universe.nodes)
    if universe.values:
        # A number is a literal's if it is a multiple of three; numbers stay different.
        third = np.arange(count) % EVERY_THIRD == EVERY_THIRD - 1
        nodes = nodes * EVERY_THIRD + np.where(third, 0, 1)
    source, label, target = (np.empty((len(key.rows), edges), np.int64) for _ in range(3))
    for i in range(edges):
        if i < count - 1:
            source[:, i], target[:, i] = i, i + 1
            label[:, i] = integers(_column(key, "label"), 0, universe.labels, i)
            _orient(universe, source, target, i)
            continue
        open_, turn = np.arange(len(key.rows)), 0
        while len(open_):
            own = key._replace(rows=key.rows[open_])
            ends = distinct(_column(own, f"ends {i} {turn}"), 2, count)
            source[open_, i], target[open_, i] = ends[:, 0], ends[:, 1]
            label[open_, i] = integers(_column(own, f"label {turn}"), 0, universe.labels, i)
            _orient(universe, source, target, i)
            same = (source[open_, :i] == source[open_, i, None]) & (
                target[open_, :i] == target[open_, i, None]
            )
            again = (same & (label[open_, :i] == label[open_, i, None])).any(axis=1)
            open_, turn = open_[again], turn + 1
    return Graphs(nodes, source, label, target, np.ones_like(source, np.bool_))


def _orient(universe: Universe, source: Ints, target: Ints, i: int) -> None:
    """Turn edges from a literal around; of two literals one gives way to the node before it on the path."""
    if not universe.values:
        return
    literal = EVERY_THIRD - 1
    both = (source[:, i] % EVERY_THIRD == literal) & (target[:, i] % EVERY_THIRD == literal)
    source[:, i] -= both
    turned = source[:, i] % EVERY_THIRD == literal
    source[turned, i], target[turned, i] = target[turned, i], source[turned, i]


def draw_subgraphs(graphs: Graphs, size: tuple[int, int], key: Key) -> Graphs:
    """Draw a connected subgraph of the graph in the same row: so many nodes, and up to so many edges.

    It starts with a random edge, grows by random edges to nodes it does not have, and then takes random edges
    between the nodes it has.
    """
    count, edges = size
    chosen = np.full((len(graphs.nodes), edges), -1, np.int64)
    inside = np.zeros(graphs.nodes.shape, np.bool_)
    used = ~graphs.real
    for i in range(edges):
        at_source = np.take_along_axis(inside, graphs.source, axis=1)
        at_target = np.take_along_axis(inside, graphs.target, axis=1)
        free = (at_source ^ at_target) if i < count - 1 else (at_source & at_target)
        free = (np.ones_like(used) if i == 0 else free) & ~used
        ranks = np.cumsum(free, axis=1, dtype=np.int32)
        wanted = np.floor(uniform(_column(key, "subgraph"), i) * ranks[:, -1]).astype(np.int32)
        edge = np.argmax(ranks > wanted[:, None], axis=1)
        (some,) = np.nonzero(ranks[:, -1])
        chosen[some, i] = edge[some]
        used[some, edge[some]] = True
        inside[some, graphs.source[some, edge[some]]] = True
        inside[some, graphs.target[some, edge[some]]] = True
    real = chosen >= 0
    place = np.cumsum(inside, axis=1) - 1
    at = np.maximum(chosen, 0)
    source, label, target = (
        np.take_along_axis(each, at, axis=1) for each in (graphs.source, graphs.label, graphs.target)
    )
    return Graphs(
        graphs.nodes[inside].reshape(len(graphs.nodes), count),
        np.take_along_axis(place, source, axis=1),
        label,
        np.take_along_axis(place, target, axis=1),
        real,
    )


def _column(key: Key, column: str) -> Key:
    return key._replace(column=f"{key.column} {column}")
