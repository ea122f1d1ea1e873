"""A graph from afar: its layers, its components, groups of its nodes, and the edges between these.

    publishers ──► before ──► core ──► behind ──► subscribers
         │                                            ▲
         └───────────────► aside ─────────────────────┘

The core is the largest component, if it has more than one node. Intermediaries that lead to it are before it,
those that it leads to are behind it, the others aside (the bow-tie of section 4.1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.core.machine import need
from headgate.errors import GraphError
from headgate.graph.model import EDGE, NODE

if TYPE_CHECKING:
    from headgate.core.arrays import Bools, Ints
    from headgate.core.event import Event
    from headgate.graph.changes.view import View


PUBLISHER, INTERMEDIARY, SUBSCRIBER, ISOLATED = range(4)
"""Layers: nothing leads to it; something leads to it and from it; nothing leads from it; neither."""
ANYWHERE, BEFORE, CORE, BEHIND, ASIDE = range(5)
"""Where an intermediary is, seen from the core; `ANYWHERE` where there is no core, and for other layers."""
HANGING = -1
"""The kind of subscriptions that hang at nodes."""
SEVERAL = -2
"""The kind of a group whose nodes have several kinds."""
_MOST_GROUPS, _MOST_PAIRS = 12, 24


class Outline(NamedTuple):
    """Points and edges: points are nodes and subscriptions that hang at nodes.

    vertex[p]         the vertex of point p, rising
    kind[p]           of kinds, or HANGING
    layer, side[p]    see above
    component[p]      the number of its strongly connected component
    source, target    by edge: points. An edge with a filter is one edge
    via               by edge: the vertex that stands for its filter, or -1
    """

    vertex: Ints
    kinds: tuple[str, ...]
    kind: Ints
    layer: Ints
    side: Ints
    component: Ints
    source: Ints
    target: Ints
    via: Ints

    @property
    def sizes(self) -> Ints:
        """Count the nodes of each component; a subscription that hangs at nodes is one without nodes."""
        sizes = np.bincount(self.component)
        sizes[self.component[self.kind == HANGING]] = 0
        return sizes

    @property
    def components(self) -> int:
        """Count the components of nodes."""
        return int(np.count_nonzero(self.sizes))

    @property
    def nodes(self) -> int:
        """Count the points that are nodes."""
        return int(np.count_nonzero(self.kind != HANGING))

    @property
    def edges(self) -> int:
        """Count the edges that lead to nodes."""
        return int(np.count_nonzero(self.kind[self.target] != HANGING))


class Group(NamedTuple):
    """Points of one layer, side and kind, either all alone in their component or all in larger ones."""

    layer: int
    side: int
    cyclic: bool
    kind: int
    points: int
    components: int
    largest: int


class Groups(NamedTuple):
    """Groups, the group of each point, and for pairs of groups (source, target) the number of edges."""

    groups: tuple[Group, ...]
    of: Ints
    edges: dict[tuple[int, int], int]


class Degrees(NamedTuple):
    """How many edges lead to and from the points of one layer and kind."""

    layer: int
    kind: int
    points: int
    mean_in: float
    most_in: int
    mean_out: float
    most_out: int


class Journey(NamedTuple):
    """One event in a graph.

    source            the point where it enters
    reached[p]        it came to p and passed; the source only if it came back to it
    stopped[p]        it came to p, and the filter of p failed
    travelled[e]      edge e led it to a point that it passed
    tried[e]          edge e led it no further: a filter failed, of the edge or of its target
    refused[e]        of these, the filter of the edge itself
    served            numbers of the subscriptions that get it, rising
    """

    source: int
    reached: Bools
    stopped: Bools
    travelled: Bools
    tried: Bools
    refused: Bools
    served: Ints


def outline(view: View) -> Outline:
    """Draw the outline of a graph in which nothing changed since it was numbered."""
    if view.later is not None or len(view.overlay.swap):
        raise GraphError("the graph has changed since it was numbered: compact it, then sum it up")
    arrays, names = view.arrays, view.base.names
    vertex = np.flatnonzero(arrays.stands_for != EDGE)
    point = np.full(arrays.vertices, -1, np.int64)
    point[vertex] = np.arange(len(vertex))
    source, target, via = _edges(view, point)
    is_node = arrays.stands_for[vertex] == NODE
    kind = np.full(len(vertex), HANGING, np.int64)
    kind[is_node] = names.node_kind[arrays.place[vertex[is_node]]]
    entered = np.bincount(target, minlength=len(vertex)) > 0
    left = np.bincount(source, minlength=len(vertex)) > 0
    layer = np.select([entered & left, entered, left], [INTERMEDIARY, SUBSCRIBER, PUBLISHER], ISOLATED)
    component = np.unique(arrays.component[vertex], return_inverse=True)[1]
    side = _sides(component, layer, source, target)
    return Outline(vertex, names.kinds, kind, layer, side, component, source, target, via)


def _edges(view: View, point: Ints) -> tuple[Ints, Ints, Ints]:
    """List the edges between points in their order, and join again those that were split for their filter."""
    arrays = view.arrays
    tail, head = np.repeat(np.arange(arrays.vertices), np.diff(arrays.child_start)), arrays.child
    whole = (point[tail] >= 0) & (point[head] >= 0)
    split = np.flatnonzero(point < 0)
    first, last = np.zeros(len(point), np.int64), np.zeros(len(point), np.int64)
    first[head[point[head] < 0]] = point[tail[point[head] < 0]]
    last[tail[point[tail] < 0]] = point[head[point[tail] < 0]]
    source = np.concatenate([point[tail[whole]], first[split]])
    target = np.concatenate([point[head[whole]], last[split]])
    via = np.concatenate([np.full(np.count_nonzero(whole), -1), split])
    order = np.lexsort((via, target, source))
    return source[order], target[order], via[order]


def _sides(component: Ints, layer: Ints, source: Ints, target: Ints) -> Ints:
    """Tell where intermediaries are, seen from the core."""
    count, sizes = len(component), np.bincount(component)
    side = np.full(count, ANYWHERE, np.int64)
    if sizes.max(initial=0) < 2:
        return side
    need("graph")
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import breadth_first_order

    core = component == np.argmax(sizes)
    start = int(np.flatnonzero(core)[0])
    side[layer == INTERMEDIARY] = ASIDE
    for side_there, ends in ((BEHIND, (source, target)), (BEFORE, (target, source))):
        graph = csr_array((np.ones(len(source), np.int8), ends), shape=(count, count))
        reached = breadth_first_order(graph, start, directed=True, return_predecessors=False)
        side[reached[layer[reached] == INTERMEDIARY]] = side_there
    side[core] = CORE
    return side


def group(graph: Outline) -> Groups:
    """Group the points; kinds that few points have are put together where there would be too many groups."""
    groups = _group(graph, 4)
    for kinds in (2, 1, 0):
        if len(groups.groups) > _MOST_GROUPS or len(groups.edges) > _MOST_PAIRS:
            groups = _group(graph, kinds)
    return groups


def _group(graph: Outline, kinds: int) -> Groups:
    """Group the points, with so many kinds in a layer."""
    sizes = graph.sizes
    cyclic = sizes[graph.component] > 1
    keys, of = _distinct(graph.layer, graph.side, cyclic.astype(np.int64), _common(graph, kinds))
    groups = []
    for number, (layer, side, in_cycle, kind) in enumerate(keys):
        parts = np.bincount(graph.component[of == number])
        largest = int(sizes[np.flatnonzero(parts)].max())
        points, components = int(parts.sum()), int(np.count_nonzero(parts))
        groups.append(Group(layer, side, bool(in_cycle), kind, points, components, largest))
    return Groups(tuple(groups), of, _between(len(groups), of[graph.source], of[graph.target]))


def between(graph: Outline, groups: Groups, edges: Bools) -> dict[tuple[int, int], int]:
    """Count some of the edges, by the groups that they join."""
    of = groups.of
    return _between(len(groups.groups), of[graph.source[edges]], of[graph.target[edges]])


def _between(groups: int, source: Ints, target: Ints) -> dict[tuple[int, int], int]:
    pairs, counts = np.unique(source * groups + target, return_counts=True)
    return {divmod(pair, groups): count for pair, count in zip(pairs.tolist(), counts.tolist(), strict=True)}


def _common(graph: Outline, kinds: int) -> Ints:
    """Return the kind of each point, SEVERAL for nodes whose kind is not common in their layer."""
    kind = graph.kind.copy()
    for layer in range(4):
        there = (graph.layer == layer) & (kind != HANGING)
        most = 0 if layer == ISOLATED else kinds
        kinds_there, counts = np.unique(graph.kind[there], return_counts=True)
        if len(kinds_there) > max(most, 1):
            kept = kinds_there[np.lexsort((kinds_there, -counts))][:most]
            kind[there & ~np.isin(kind, kept)] = SEVERAL
    return kind


def _distinct(*columns: Ints) -> tuple[list[tuple[int, ...]], Ints]:
    """List the different rows in rising order, and the place of each row among them.

    >>> _distinct(np.array([1, 0, 1]), np.array([-2, 5, -2]))
    ([(0, 5), (1, -2)], array([1, 0, 1]))
    """
    # np.unique takes more than ten times as long over rows as over numbers.
    key = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        low = int(column.min(initial=0))
        key = key * (int(column.max(initial=0)) - low + 1) + column - low
    _, first, of = np.unique(key, return_index=True, return_inverse=True)
    return list(zip(*(column[first].tolist() for column in columns), strict=True)), of


def degrees(graph: Outline) -> list[Degrees]:
    """Count the edges of points, by layer and kind."""
    kind = _common(graph, 8)
    entering = np.bincount(graph.target, minlength=len(kind))
    leaving = np.bincount(graph.source, minlength=len(kind))
    rows = []
    keys, of = _distinct(graph.layer, kind)
    for number, (layer, each) in enumerate(keys):
        there = of == number
        into, out = entering[there], leaving[there]
        means = float(into.mean()), float(out.mean())
        rows.append(Degrees(layer, each, len(into), means[0], int(into.max()), means[1], int(out.max())))
    return rows


def follow(view: View, graph: Outline, event: Event) -> Journey:
    """Find what an event reaches, and where it is stopped."""
    source = view.source(event)
    passed = np.zeros(view.arrays.vertices, np.bool_)
    reached = view.walk(event)
    passed[reached] = True
    there = passed.copy()
    there[source] = True
    begun = there[graph.vertex[graph.source]]
    split = graph.via >= 0
    came = begun & (~split | passed[graph.via])
    travelled = came & passed[graph.vertex[graph.target]]
    stopped = np.zeros(len(graph.vertex), np.bool_)
    stopped[graph.target[came & ~travelled]] = True
    served = np.unique(view.arrays.serves[reached]).astype(np.int64)
    return Journey(
        int(np.searchsorted(graph.vertex, source)),
        passed[graph.vertex],
        stopped,
        travelled,
        begun & ~travelled,
        begun & ~came,
        served[served >= 0],
    )
