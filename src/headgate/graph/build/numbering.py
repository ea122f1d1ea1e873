"""Numbers for the vertices of a graph: edges lead to higher numbers, but for those inside a component.

roots      nothing leads to them (publishers), in the order given
inner      component after component in topological order; inside one, where edges enter it comes first,
           the more the earlier, then the rest breadth first: what is reached first is found first, and
           parents tend to come before their children (section 3.2.2)
sinks      nothing leads from them (subscribers), by their first parent: siblings are neighbours,
           so the children of a vertex fill few words of bits
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.core.jit import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]


class Numbering(NamedTuple):
    """Vertex i has number[i]; by number: component, rising; the first `roots` are roots, the last sinks."""

    number: NDArray[np.int32]
    component: NDArray[np.int32]
    roots: int
    sinks: int


class Rows(NamedTuple):
    """Edges in compact sparse rows: those of vertex v lead to target[start[v]:start[v + 1]]."""

    start: Ints
    target: NDArray[np.int32]


def compact_rows(count: int, source: NDArray[np.int32], target: NDArray[np.int32]) -> Rows:
    """Sort edges by source."""
    order = np.argsort(source, kind="stable")
    start = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.bincount(source, minlength=count))])
    return Rows(start, target[order].astype(np.int32))


def number_vertices(count: int, source: NDArray[np.int32], target: NDArray[np.int32]) -> Numbering:
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
    place = np.full(count, -1, np.int32)
    place[inside] = np.arange(len(inside), dtype=np.int32)
    both = (place[source] >= 0) & (place[target] >= 0)
    rows = compact_rows(len(inside), place[source[both]], place[target[both]])
    labels = _components(rows, len(inside))
    crossing = place[target] >= 0
    crossing[crossing] = (place[source[crossing]] < 0) | (
        labels[place[source[crossing]]] != labels[place[target[crossing]]]
    )
    entries = np.bincount(place[target[crossing]], minlength=len(inside))
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


def _components(rows: Rows, count: int) -> NDArray[np.int32]:
    """Label the strongly connected components."""
    if not count:
        return np.zeros(0, np.int32)
    # Numbered graphs are opened where nothing else needs scipy.
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    ones = np.ones(len(rows.target), np.int8)
    graph = csr_array((ones, rows.target, rows.start), shape=(count, count))
    _, labels = connected_components(graph, directed=True, connection="strong")
    return np.asarray(labels, np.int32)


def _order_inside(rows: Rows, labels: NDArray[np.int32], entries: Ints) -> tuple[Ints, NDArray[np.int32]]:
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
    rows: Rows,
    labels: NDArray[np.int32],
    entries: Ints,
    members: Ints,
    member_start: Ints,
    order: Ints,
    component: NDArray[np.int32],
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


def _sink_order(
    count: int,
    sinks: Ints,
    source: NDArray[np.int32],
    target: NDArray[np.int32],
    number: NDArray[np.int32],
    roots: int,
) -> Ints:
    """Sort sinks by the first inner parent; those that only roots lead to come last."""
    first = np.full(count, 2 * count, np.int64)
    parent = number[source].astype(np.int64)
    np.minimum.at(first, target, np.where(parent < roots, count + parent, parent))
    return sinks[np.lexsort((sinks, first[sinks]))]
