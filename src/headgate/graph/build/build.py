"""Parts to arrays: vertices numbered, then laid out.

roots      nothing leads to them (publishers), in the order given
inner      component after component in topological order; inside one, where edges enter it comes first,
           the more the earlier, then the rest breadth first: what is reached first is found first, and
           parents tend to come before their children (section 3.2.2)
sinks      nothing leads from them (subscribers), by their first parent: siblings are neighbours,
           so the children of a vertex fill few words of bits
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from headgate.core.jit import kernel
from headgate.core.machine import need
from headgate.graph.arrays import GraphArrays, bits_of
from headgate.graph.model import EDGE, NODE, SUBSCRIPTION

if TYPE_CHECKING:
    from headgate.core.arrays import Floats64, Ints, Ints32, Words
    from headgate.graph.model import Parts


class Numbering(NamedTuple):
    """Vertex i has number[i]; by number: component, rising; the first `roots` are roots, the last sinks."""

    number: Ints32
    component: Ints32
    roots: int
    sinks: int


class EdgeRows(NamedTuple):
    """Edges in compact sparse rows: those of vertex v lead to target[start[v]:start[v + 1]]."""

    start: Ints
    target: Ints32


def compact_rows(count: int, source: Ints32, target: Ints32) -> EdgeRows:
    """Sort edges by source."""
    order = np.argsort(source, kind="stable")
    start = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.bincount(source, minlength=count))])
    return EdgeRows(start, target[order].astype(np.int32))


def number_vertices(count: int, source: Ints32, target: Ints32) -> Numbering:
    """Number the vertices 0 to count - 1 of a graph.

    >>> import numpy as np
    >>> source, target = np.array([3, 0, 1, 1], np.int32), np.array([0, 1, 0, 2], np.int32)
    >>> number_vertices(4, source, target).number.tolist()
    [1, 2, 3, 0]
    """
    entering = np.bincount(target, minlength=count)
    leaving = np.bincount(source, minlength=count)
    root = entering == 0
    sink = ~root & (leaving == 0)
    inside = np.flatnonzero(~root & ~sink)
    inner_number = np.full(count, -1, np.int32)
    inner_number[inside] = np.arange(len(inside), dtype=np.int32)
    both = (inner_number[source] >= 0) & (inner_number[target] >= 0)
    rows = compact_rows(len(inside), inner_number[source[both]], inner_number[target[both]])
    labels = _components(rows, len(inside))
    crossing = inner_number[target] >= 0
    crossing[crossing] = (inner_number[source[crossing]] < 0) | (
        labels[inner_number[source[crossing]]] != labels[inner_number[target[crossing]]]
    )
    entries = np.bincount(inner_number[target[crossing]], minlength=len(inside))
    order, component = _order_inside(rows, labels, entries)
    roots, sinks = int(root.sum()), int(sink.sum())
    number = np.full(count, -1, np.int32)
    number[root] = np.arange(roots, dtype=np.int32)
    number[inside[order]] = roots + np.arange(len(inside), dtype=np.int32)
    number[_sink_order(count, np.flatnonzero(sink), source, target, number, roots)] = (
        count - sinks + np.arange(sinks, dtype=np.int32)
    )
    components = int(component[-1]) + 1 if len(component) else 0
    return Numbering(
        number,
        np.concatenate(
            [
                np.arange(roots, dtype=np.int32),
                roots + component,
                roots + components + np.arange(sinks, dtype=np.int32),
            ]
        ),
        roots,
        sinks,
    )


def _components(rows: EdgeRows, count: int) -> Ints32:
    """Label the strongly connected components."""
    if not count:
        return np.zeros(0, np.int32)
    # Numbered graphs are opened where nothing else needs scipy.
    need("graph")
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    ones = np.ones(len(rows.target), np.int8)
    graph = csr_array((ones, rows.target, rows.start), shape=(count, count))
    _, labels = connected_components(graph, directed=True, connection="strong")
    return np.asarray(labels, np.int32)


def _order_inside(rows: EdgeRows, labels: Ints32, entries: Ints) -> tuple[Ints, Ints32]:
    """Order inner vertices; returns them in order, and the number of the component of each."""
    components = int(labels.max(initial=-1)) + 1
    # Members of a component: those that most edges enter from outside come first.
    members = np.lexsort((np.arange(len(labels)), -entries, labels))
    member_start = np.concatenate(
        [np.zeros(1, np.int64), np.cumsum(np.bincount(labels, minlength=components))]
    )
    order, component = np.zeros(len(labels), np.int64), np.zeros(len(labels), np.int32)
    _fill_order(rows, labels, entries, members, member_start, order, component)
    return order, component


@kernel
def _fill_order(
    rows: EdgeRows,
    labels: Ints32,
    entries: Ints,
    members: Ints,
    member_start: Ints,
    order: Ints,
    component: Ints32,
) -> None:
    """Take components once all that lead to them are taken, and go through each breadth first."""
    start, target = rows.start, rows.target
    components = len(member_start) - 1
    waiting = np.zeros(components, np.int64)
    for v in range(len(labels)):
        for i in range(start[v], start[v + 1]):
            if labels[v] != labels[target[i]]:
                waiting[labels[target[i]]] += 1
    ready = np.empty(components, np.int64)
    head, tail = 0, 0
    for c in range(components):
        if waiting[c] == 0:
            ready[tail] = c
            tail += 1
    seen = np.zeros(len(labels), np.uint8)
    n = 0
    while head < tail:
        c = ready[head]
        first = n
        for m in range(member_start[c], member_start[c + 1]):
            v = members[m]
            # The first of a component that none enter stands for all of it.
            if entries[v] > 0 or n == first:
                seen[v] = 1
                order[n] = v
                n += 1
        at = first
        while at < n:
            u = order[at]
            component[at] = head
            at += 1
            for i in range(start[u], start[u + 1]):
                t = target[i]
                if labels[t] == c and not seen[t]:
                    seen[t] = 1
                    order[n] = t
                    n += 1
        for m in range(first, n):
            u = order[m]
            for i in range(start[u], start[u + 1]):
                t = labels[target[i]]
                if t != c:
                    waiting[t] -= 1
                    if waiting[t] == 0:
                        ready[tail] = t
                        tail += 1
        head += 1


def _sink_order(count: int, sinks: Ints, source: Ints32, target: Ints32, number: Ints32, roots: int) -> Ints:
    """Sort sinks by the first inner parent; those that only roots lead to come last."""
    first = np.full(count, 2 * count, np.int64)
    parent = number[source].astype(np.int64)
    np.minimum.at(first, target, np.where(parent < roots, count + parent, parent))
    return sinks[np.lexsort((sinks, first[sinks]))]


class BuiltGraph(NamedTuple):
    """The arrays of a graph, the vertex of each node, the ends of split edges, and who has which filter."""

    arrays: GraphArrays
    vertex_of_node: Ints32
    edge_ends: Ints32
    filtered: Ints
    filters: pa.Array[Any]
    dialects: pa.Array[Any]


def build(parts: Parts) -> BuiltGraph:
    """Number the graph and lay it out."""
    nodes, split, hung = len(parts.node_ids), parts.split, parts.hung
    count = nodes + len(split) + len(hung)
    source, target, cost = _edges(parts, split, hung)
    numbering = number_vertices(count, source, target)
    number, roots = numbering.number, numbering.roots
    stands_for = np.repeat(np.array([NODE, EDGE, SUBSCRIPTION], np.uint8), [nodes, len(split), len(hung)])
    place = np.concatenate([np.arange(nodes), np.arange(len(split)), hung]).astype(np.int32)
    serves = np.concatenate([parts.node_subscription, np.full(len(split), -1, np.int32), hung]).astype(
        np.int32
    )
    node_cost = np.concatenate([parts.node_cost, np.zeros(len(split) + len(hung))])
    back = np.argsort(number)
    filters = _by_vertex([parts.node_filter, parts.edge_filter, parts.subscription_filter], split, hung, back)
    has_filter = filters.is_valid().to_numpy(zero_copy_only=False)
    child_start, child, child_cost = _children(count, number[source], number[target], cost)
    serves = serves[back]
    score = np.where(
        serves >= 0, parts.subscription_score[serves] if len(parts.subscription_score) else 0.0, 0.0
    )
    words = (count - roots + 63) // 64
    row_start, row_word, row_bits = _rows(child_start, child, roots)
    best = np.where(serves >= 0, score, -np.inf)
    _raise_best(child_start, child, numbering.component, best)
    arrays = GraphArrays(
        marks=np.array([roots, count - roots - numbering.sinks], np.int64),
        child_start=child_start,
        child=child,
        child_cost=child_cost,
        pass_cost=node_cost[back],
        row_start=row_start,
        row_word=row_word,
        row_bits=row_bits,
        open=bits_of(np.flatnonzero(~has_filter[roots:]), words),
        component=numbering.component,
        serves=serves,
        serving=bits_of(np.flatnonzero(serves[roots:] >= 0), words),
        score=score,
        best=best,
        stands_for=stands_for[back],
        place=place[back],
    )
    filtered = np.flatnonzero(has_filter)
    dialects = _by_vertex(
        [parts.node_dialect, parts.edge_dialect, parts.subscription_dialect], split, hung, back
    )
    ends = np.stack([parts.edge_source[split], parts.edge_target[split]], axis=1).astype(np.int32)
    return BuiltGraph(
        arrays, number[:nodes].copy(), ends, filtered, filters.take(filtered), dialects.take(filtered)
    )


def _by_vertex(columns: list[pa.Array[Any]], split: Ints, hung: Ints, back: Ints) -> pa.Array[Any]:
    """Join a column of nodes, split edges and hung subscriptions, in the order of vertices."""
    node, edge, subscription = (column.cast(pa.large_string()) for column in columns)
    joined: pa.Array[Any] = pa.concat_arrays([node, edge.take(split), subscription.take(hung)])
    return joined.take(back)


def _edges(parts: Parts, split: Ints, hung: Ints) -> tuple[Ints32, Ints32, Floats64]:
    """List the edges between vertices; a split edge has its cost on the way to its middle."""
    nodes = len(parts.node_ids)
    whole = np.ones(len(parts.edge_source), np.bool_)
    whole[split] = False
    middle = nodes + np.arange(len(split), dtype=np.int32)
    hangs = nodes + len(split) + np.searchsorted(hung, parts.hang_subscription)
    source = [parts.edge_source[whole], parts.edge_source[split], middle, parts.hang_node]
    target = [parts.edge_target[whole], middle, parts.edge_target[split], hangs.astype(np.int32)]
    cost = [parts.edge_cost[whole], parts.edge_cost[split], np.zeros(len(split)), np.zeros(len(hangs))]
    return (
        np.concatenate(source).astype(np.int32),
        np.concatenate(target).astype(np.int32),
        np.concatenate(cost).astype(np.float64),
    )


def _children(count: int, source: Ints32, target: Ints32, cost: Floats64) -> tuple[Ints, Ints32, Floats64]:
    """Sort edges by source and target; of parallel ones the cheapest stays."""
    order = np.lexsort((cost, source.astype(np.int64) * count + target))
    source, target, cost = source[order], target[order], cost[order]
    kept = np.ones(len(source), np.bool_)
    kept[1:] = (source[1:] != source[:-1]) | (target[1:] != target[:-1])
    start, child = compact_rows(count, source[kept], target[kept])
    return start, child, cost[kept]


def _rows(child_start: Ints, child: Ints32, roots: int) -> tuple[Ints, Ints32, Words]:
    """Gather children into words of bits."""
    start = np.zeros(len(child_start), np.int64)
    none = np.zeros(0, np.uint64)
    _gather(child_start, child, roots, start, np.zeros(0, np.int32), none)
    word, bits = np.zeros(start[-1], np.int32), np.zeros(start[-1], np.uint64)
    _gather(child_start, child, roots, start, word, bits)
    return start, word, bits


@kernel
def _gather(child_start: Ints, child: Ints32, roots: int, start: Ints, word: Ints32, bits: Words) -> None:
    n = 0
    for v in range(len(child_start) - 1):
        before = np.int32(-1)
        for i in range(child_start[v], child_start[v + 1]):
            p = child[i] - roots
            if p >> 6 != before:
                before = p >> 6
                if len(word):
                    word[n] = before
                n += 1
            if len(word):
                bits[n - 1] |= np.uint64(1) << np.uint64(p & 63)
        start[v + 1] = n


@kernel
def _raise_best(child_start: Ints, child: Ints32, component: Ints32, best: Floats64) -> None:
    """Give every vertex the best score of what it leads to, the last component first."""
    last = len(component)
    while last > 0:
        first = last - 1
        while first > 0 and component[first - 1] == component[last - 1]:
            first -= 1
        highest = -np.inf
        for v in range(first, last):
            highest = max(highest, best[v])
            for i in range(child_start[v], child_start[v + 1]):
                highest = max(highest, best[child[i]])
        for v in range(first, last):
            best[v] = highest
        last = first
