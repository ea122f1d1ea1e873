"""Why a subscription gets an event or not, and how far the event came.

Two paths say why not. The shortest one in the graph is what a user has in mind. The one with the fewest
vertices that block is what is easiest to mend, and may be another.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from heapq import heappop, heappush
from typing import TYPE_CHECKING

import numpy as np

from headgate.core.text.wording import Worded
from headgate.errors import SubscriptionError
from headgate.graph.arrays import flags_of, has_bits
from headgate.graph.model import EDGE, NODE, SUBSCRIPTION
from headgate.graph.ranked.ranked import find

if TYPE_CHECKING:
    from headgate.contents.protocol import Verdict
    from headgate.core.arrays import Bytes, Ints
    from headgate.core.event import Event, Id
    from headgate.graph.changes.view import View


SERVED, OWN_FILTER, NO_PATH, BLOCKED = "served", "own filter", "no path", "blocked"
"""What became of an event: it is delivered; only the filter of the subscription itself, or of the node that
serves it, fails; nothing leads there whatever the filters say; the filters of others fail on every path."""

_KINDS = {NODE: "node", EDGE: "edge", SUBSCRIPTION: "subscription"}


@dataclass(frozen=True)
class Step:
    """A node, an edge with a filter, or the subscription that hangs at the end.

    `verdict` says why the event does not pass; None if it does.
    """

    kind: str
    name: str
    filter: str | None
    verdict: Verdict | None

    @property
    def blocks(self) -> bool:
        """Tell whether the event does not pass."""
        return self.verdict is not None

    def lines(self, width: int) -> list[str]:
        """Show the step, its name as wide as others, and why it blocks."""
        sign = "blocks" if self.blocks else "passes"
        why = [] if self.verdict is None else self.verdict.lines()
        return [
            f"  {sign:8}{self.name:{width}}   {self.filter or 'no filter'}",
            *(f"{'':10}{line}" for line in why),
        ]


@dataclass(frozen=True)
class Path:
    """Steps from the source, which is not one of them, to where the subscription is served."""

    steps: tuple[Step, ...]

    @property
    def hops(self) -> int:
        """Count the edges: one leads to each node."""
        return sum(step.kind == _KINDS[NODE] for step in self.steps)

    @property
    def blocking(self) -> tuple[Step, ...]:
        """List the steps that the event does not pass."""
        return tuple(step for step in self.steps if step.blocks)

    def lines(self) -> list[str]:
        """Show the steps, and why those that block do."""
        width = max(len(step.name) for step in self.steps)
        return [line for step in self.steps for line in step.lines(width)]


@dataclass(frozen=True)
class GraphExplanation(Worded):
    """Why a subscription gets an event or not.

    reason       SERVED, OWN_FILTER, NO_PATH or BLOCKED
    path         the shortest valid path; if there is none, the shortest one in the graph, or None
    fewest       the path with the fewest steps that block, the shortest of those; None if `path` has no more
    own          the verdict on the subscription's own filter, or that of the node that serves it, if it fails
    """

    event: Id
    source: Id
    subscription: Id
    reason: str
    path: Path | None = None
    fewest: Path | None = None
    own: Verdict | None = None

    @property
    def matches(self) -> bool:
        """Tell whether the subscription gets the event."""
        return self.reason == SERVED

    def lines(self) -> list[str]:
        """Say why, line by line."""
        to = f"from {self.source} to {self.subscription}"
        if self.path is None:
            lines = [f"no match: no path leads {to}, whatever the filters say"]
            return lines if self.own is None else [*lines, "its own filter fails as well:", *self.own.lines()]
        if self.reason == SERVED:
            return [f"match: {_count(self.path.hops)} {to}", *self.path.lines()]
        if self.reason == OWN_FILTER:
            way = self.fewest or self.path
            return [f"no match: {_count(way.hops)} {to}, where its own filter fails", *way.lines()]
        lines = [f"no match: every path {to} is blocked"]
        lines += [f"the shortest, {_measure(self.path)}:", *self.path.lines()]
        if self.fewest is not None:
            lines += [f"the one with the fewest to fix, {_measure(self.fewest)}:", *self.fewest.lines()]
        return lines


def _count(hops: int) -> str:
    return "1 hop" if hops == 1 else f"{hops} hops"


def _measure(path: Path) -> str:
    return f"{_count(path.hops)}, blocked at {len(path.blocking)} of {len(path.steps)} steps"


def explain(view: View, event: Event, subscription: Id, *, from_elsewhere: bool = False) -> GraphExplanation:
    """Explain one subscription and one event; of several vertices that serve it, the best.

    An event `from_elsewhere` enters at a node of another shard, from which nothing leads here.
    """
    source = -1 if from_elsewhere else view.source(event)
    assert event.source is not None
    about, servers = (event.id, event.source, subscription), _servers(view, subscription)
    blocks, nodes = _prices(view, event)
    fewest = [] if from_elsewhere else _search(view, source, servers, blocks, nodes)
    if not fewest:
        own = _failure(view, event, min(servers, key=partial(_names, view)))
        return GraphExplanation(*about, NO_PATH, own=own)
    blocking = [vertex for vertex in fewest if blocks[vertex]]
    easiest = _path(view, event, fewest, blocks)
    if not blocking:
        return GraphExplanation(*about, SERVED, easiest)
    shortest = _path(view, event, _search(view, source, servers, nodes, blocks), blocks)
    return GraphExplanation(
        *about,
        OWN_FILTER if blocking == fewest[-1:] else BLOCKED,
        shortest,
        easiest if len(shortest.blocking) > len(blocking) else None,
        _failure(view, event, fewest[-1]),
    )


def _servers(view: View, subscription: Id) -> list[int]:
    """List the vertices that serve a subscription, rising; refuses one that is not there."""
    wanted, later = find(view, subscription), view.later
    serves = view.arrays.serves if later is None else np.concatenate([view.arrays.serves, later.serves])
    servers = [v for v in np.flatnonzero(serves == wanted).tolist() if wanted >= 0 and _serves(view, v)]
    if not servers:
        raise SubscriptionError(
            f"there is no subscription {subscription!r} in the graph: give the id of one that a node serves"
        )
    return servers


def _serves(view: View, vertex: int) -> bool:
    """Tell whether a vertex serves its subscription still: it was not removed, nor all that it hung at."""
    if view.serves(vertex) < 0:
        return False
    if view.later is None or view.stands_for(vertex)[0] == NODE:
        return _living(view, vertex)
    arrays = view.arrays
    parents = np.searchsorted(arrays.child_start, np.flatnonzero(arrays.child == vertex), side="right") - 1
    parents = np.concatenate([parents, np.flatnonzero(view.overlay.swap >= 0)])
    return any(_living(view, parent) and vertex in view.children(parent) for parent in parents.tolist())


def _living(view: View, vertex: int) -> bool:
    """Tell whether a vertex is a node of the graph as it is now, or another thing."""
    kind, number = view.stands_for(vertex)
    return kind != NODE or view.find(view.node_id(number)) == vertex


def _prices(view: View, event: Event) -> tuple[list[int], list[int]]:
    """Price every vertex: 1 if it blocks, and 1 if it is a node, which is as many as there are hops.

    Roots seem to block, but nothing leads to them.
    """
    words, roots = view.given(event, complete=True) | view.overlay.open, view.arrays.roots
    stopped = ~flags_of(words, view.vertices - roots)
    return [1] * roots + stopped.astype(np.int64).tolist(), (kinds_of(view) == NODE).astype(np.int64).tolist()


def _search(view: View, source: int, targets: list[int], first: list[int], second: list[int]) -> list[int]:
    """Find the path to one of some vertices with the least sum of first prices, then of second ones.

    Other ties go by the names on the way, which do not depend on how vertices are numbered; no path is an
    empty one. The source may be led back to, and then it is a vertex like any other.
    """
    goal, start = set(targets), -1
    least = {start: (0, 0)}
    parents: dict[int, list[int]] = {}
    ends: list[int] = []
    queue = [(0, 0, start)]
    while queue:
        a, b, at = heappop(queue)
        if ends and (a, b) > least[ends[0]]:
            break
        if least[at] != (a, b):
            continue
        if at in goal:
            ends.append(at)
            continue
        for child in view.children(source if at == start else at):
            reached = (a + first[child], b + second[child])
            if child not in least or reached < least[child]:
                least[child], parents[child] = reached, [at]
                heappush(queue, (*reached, child))
            elif reached == least[child]:
                parents[child].append(at)
    return _first_by_name(view, start, ends, parents)


def _first_by_name(view: View, start: int, ends: list[int], parents: dict[int, list[int]]) -> list[int]:
    """List the vertices of the path from the start to an end that is first by the names on it."""
    onward: dict[int, list[int]] = {}
    waiting = [*ends]
    while waiting:
        at = waiting.pop()
        for before in parents[at] if at != start else ():
            if before not in onward:
                waiting.append(before)
            onward.setdefault(before, []).append(at)
    path = []
    at = start
    while at in onward:
        at = min(onward[at], key=partial(_names, view))
        path.append(at)
    return path


def _names(view: View, vertex: int) -> tuple[str, str, int]:
    return view.name(vertex), view.filter_of(vertex) or "", view.stands_for(vertex)[0]


def _path(view: View, event: Event, vertices: list[int], blocks: list[int]) -> Path:
    return Path(
        tuple(
            Step(
                _KINDS[view.stands_for(vertex)[0]],
                view.name(vertex),
                view.filter_of(vertex),
                view.explain_filter(event, vertex) if blocks[vertex] else None,
            )
            for vertex in vertices
        )
    )


def _failure(view: View, event: Event, vertex: int) -> Verdict | None:
    """Say why the filter of a vertex fails; None if it does not."""
    return None if view.holds(event, vertex) else view.explain_filter(event, vertex)


ENTERED, PASSED, STOPPED = "entered", "passed", "stopped"
"""What became of an event at a node: it came in there; it went through; the filter failed."""


@dataclass(frozen=True)
class NodeTrace:
    """A node that the event came to."""

    id: Id
    state: str
    subscriptions: int
    """How many hang there."""
    served: int
    """How many of these get the event."""
    verdict: Verdict | None = None
    """Why the event was stopped."""


@dataclass(frozen=True)
class EdgeTrace:
    """An edge that leaves a node that the event passed, or came in at."""

    source: Id
    target: Id
    state: str
    verdict: Verdict | None = None


@dataclass(frozen=True)
class Trace:
    """An event's way, breadth first."""

    nodes: tuple[NodeTrace, ...]
    edges: tuple[EdgeTrace, ...]
    passed: int
    """Nodes that it passed, also those that are not listed."""
    served: int
    """Subscriptions that get it, also those at nodes that are not listed."""
    cut: bool
    """Whether there are more nodes than were asked for."""


def trace(view: View, event: Event, most: int) -> Trace:
    """Follow an event from its source; lists at most so many nodes, and the edges between these."""
    return _Tracing(view, event, most).run()


def hung_at(view: View, vertex: int) -> Ints:
    """Find the vertices of the subscriptions that hang at a node."""
    children = np.array(view.children(vertex), np.int64)
    hung: Ints = children[kinds_of(view)[children] == SUBSCRIPTION]
    if view.later is not None:
        hung = hung[has_bits(view.serving, hung - view.arrays.roots)]
    return hung


def names_at(view: View, node: Id) -> list[Id]:
    """List the subscriptions that hang at a node, in the order of their ids."""
    vertex = view.find(node)
    if vertex < 0:
        return []
    places = {view.serves(each) for each in hung_at(view, vertex).tolist()} - {-1}
    return sorted((view.subscription_id(place) for place in places), key=str)


def kinds_of(view: View) -> Bytes:
    """Return what each vertex stands for."""
    kinds = view.arrays.stands_for
    return kinds if view.later is None else np.concatenate([kinds, view.later.stands_for])


class _Tracing:
    def __init__(self, view: View, event: Event, most: int) -> None:
        self._view = view
        self._event = event
        self._most = most
        self._source = view.source(event)
        self._kinds = kinds_of(view)
        self._reached = np.zeros(len(self._kinds), bool)
        self._reached[view.walk(event)] = True
        self._seen = {self._source}
        self._queue = [self._source]
        self._cut = False
        self._nodes: list[NodeTrace] = []
        self._edges: list[EdgeTrace] = []

    def run(self) -> Trace:
        for vertex in self._queue:
            self._visit(vertex)
        reached = np.flatnonzero(self._reached)
        reached = reached[reached != self._source]
        return Trace(
            tuple(self._nodes),
            tuple(self._edges),
            int(np.count_nonzero(self._kinds[reached] == NODE)),
            self._served(np.flatnonzero(self._reached)),
            self._cut,
        )

    def _served(self, vertices: Ints) -> int:
        hung = vertices[self._kinds[vertices] == SUBSCRIPTION].tolist()
        return sum(self._view.serves(vertex) >= 0 for vertex in hung)

    def _visit(self, vertex: int) -> None:
        view, own = self._view, self._name(vertex)
        hung = hung_at(view, vertex)
        entered = vertex == self._source
        if not entered and not self._reached[vertex]:
            why = view.explain_filter(self._event, vertex)
            self._nodes.append(NodeTrace(own, STOPPED, len(hung), 0, why))
            return
        served = int(np.count_nonzero(self._reached[hung]))
        self._nodes.append(NodeTrace(own, ENTERED if entered else PASSED, len(hung), served))
        for child in view.children(vertex):
            kind = self._kinds[child]
            if kind == NODE and self._lives(child) and self._wants(child):
                self._edges.append(EdgeTrace(own, self._name(child), PASSED))
            elif kind == EDGE:
                self._follow(child)

    def _follow(self, vertex: int) -> None:
        """Follow an edge that has a filter."""
        source, target = self._view.edge_ends(self._view.stands_for(vertex)[1])
        (ahead,) = self._view.children(vertex)
        if not self._lives(ahead):
            return
        if self._reached[vertex]:
            if self._wants(ahead):
                self._edges.append(EdgeTrace(source, target, PASSED))
            return
        # Where a stop leads to is not looked at: the event came no further.
        why = self._view.explain_filter(self._event, vertex)
        self._edges.append(EdgeTrace(source, target, STOPPED, why))

    def _lives(self, vertex: int) -> bool:
        """Tell whether a node is still there: what led to one that was removed may be."""
        return self._view.find(self._name(vertex)) == vertex

    def _wants(self, vertex: int) -> bool:
        """Tell whether a node is among those that are listed, and have it visited."""
        if vertex in self._seen:
            return True
        if len(self._queue) >= self._most:
            self._cut = True
            return False
        self._seen.add(vertex)
        self._queue.append(vertex)
        return True

    def _name(self, vertex: int) -> Id:
        return self._view.node_id(self._view.stands_for(vertex)[1])
