"""The paper's evaluators as it prints them, over any index that knows `next`.

Each is a generator: a result is given as soon as it is known. `watch`, if given, is called with the node
returned by the index and the sets as they are after it was dealt with, like a row of the paper's tables.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Protocol

import numpy as np

from headgate.core.omission import RenamedOmissions
from headgate.graph.arrays import flags_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from headgate.core.event import Event
    from headgate.graph.changes.view import View


class Index(Protocol):
    """Valid vertices, by number."""

    def next(self, at_least: int) -> int | None:
        """Find the first valid vertex that is at least `at_least`: getNextEntity."""

    def all(self) -> list[int]:
        """List all valid vertices."""

    def match(self, vertex: int) -> bool:
        """Tell whether one vertex is valid."""


class Graph(Protocol):
    """Children and components of vertices, by number."""

    def children(self, vertex: int) -> Sequence[int]:
        """List the children of a vertex."""

    def component(self, vertex: int) -> int:
        """Return the component of a vertex."""

    def first_of(self, component: int) -> int:
        """Return the first vertex of a component."""


@dataclass
class Sets:
    """The sets of the paper's tables."""

    valid: set[int] = field(default_factory=set)
    reachable: set[int] = field(default_factory=set)
    result: set[int] = field(default_factory=set)
    components: set[int] = field(default_factory=set)


def dag(
    graph: Graph, index: Index, source: int, watch: Callable[[int, Sets], None] | None = None
) -> Iterator[int]:
    """Evaluate Figure 3. Children have higher numbers than their parents."""
    sets = Sets(reachable=set(graph.children(source)))
    _show(watch, source, sets)
    skip = source + 1
    while (n := index.next(skip)) is not None:
        sets.valid.add(n)
        if n in sets.reachable:
            sets.result.add(n)
            yield n
            sets.reachable.update(graph.children(n))
        _show(watch, n, sets)
        skip = n + 1


def dag_skip(
    graph: Graph, index: Index, source: int, watch: Callable[[int, Sets], None] | None = None
) -> Iterator[int]:
    """Evaluate Figure 5: as Figure 3, and skip to the next vertex that is reachable."""
    sets = Sets(reachable=set(graph.children(source)))
    ahead = _Ahead(sets.reachable)
    _show(watch, source, sets)
    skip = ahead.more_than(-1)
    while skip is not None and (n := index.next(skip)) is not None:
        sets.valid.add(n)
        if n in sets.reachable:
            sets.result.add(n)
            yield n
            for child in graph.children(n):
                sets.reachable.add(child)
                ahead.add(child)
        _show(watch, n, sets)
        skip = ahead.more_than(n)


def general(
    graph: Graph, index: Index, source: int, watch: Callable[[int, Sets], None] | None = None
) -> Iterator[int]:
    """Evaluate Figure 6. Numbers may be in any order."""
    sets = Sets(reachable=set(graph.children(source)))
    _show(watch, source, sets)
    skip = 0
    while (n := index.next(skip)) is not None:
        sets.valid.add(n)
        if n in sets.reachable and n not in sets.result:
            yield from _update_path(graph, sets, n)
        _show(watch, n, sets)
        skip = n + 1


def scc_skip(
    graph: Graph, index: Index, source: int, watch: Callable[[int, Sets], None] | None = None
) -> Iterator[int]:
    """Evaluate Figure 8: as Figure 6, and skip to the next component that is reachable."""
    sets = Sets(reachable=set(graph.children(source)))
    sets.components = {graph.component(child) for child in sets.reachable}
    ahead = _Ahead(sets.components)
    _show(watch, source, sets)
    skip = _first_of(graph, ahead.more_than(-1))
    while skip is not None and (n := index.next(skip)) is not None:
        component = graph.component(n)
        if component in sets.components:
            sets.valid.add(n)
            if n in sets.reachable and n not in sets.result:
                yield from _update_path(graph, sets, n, ahead)
            skip = n + 1
        else:
            skip = _first_of(graph, ahead.more_than(component))
        _show(watch, n, sets)


def index_then_bfs(
    graph: Graph, index: Index, source: int, watch: Callable[[int, Sets], None] | None = None
) -> Iterator[int]:
    """Take all valid vertices from the index, then search among them."""
    return _search(graph, set(index.all()).__contains__, source, watch)


def bfs_then_match(
    graph: Graph, index: Index, source: int, watch: Callable[[int, Sets], None] | None = None
) -> Iterator[int]:
    """Search, and match every vertex that is reached by itself."""
    return _search(graph, index.match, source, watch)


def _search(
    graph: Graph, holds: Callable[[int], bool], source: int, watch: Callable[[int, Sets], None] | None
) -> Iterator[int]:
    sets = Sets()
    frontier = deque([source])
    while frontier:
        n = frontier.popleft()
        for child in graph.children(n):
            if child not in sets.reachable:
                sets.reachable.add(child)
                if holds(child):
                    sets.valid.add(child)
                    sets.result.add(child)
                    yield child
                    frontier.append(child)
        _show(watch, n, sets)


def _update_path(graph: Graph, sets: Sets, n: int, ahead: _Ahead | None = None) -> Iterator[int]:
    """Add a vertex and what it makes reachable to the result; the paper's recursion, with a stack.

    Figure 8 as printed does not add the child to the reachable set, and then misses vertices that the index
    gives later. The lost line is here.
    """
    sets.result.add(n)
    stack = [n]
    while stack:
        n = stack.pop()
        yield n
        for child in graph.children(n):
            if child not in sets.result:
                sets.reachable.add(child)
                if ahead is not None:
                    sets.components.add(graph.component(child))
                    ahead.add(graph.component(child))
                if child in sets.valid:
                    sets.result.add(child)
                    stack.append(child)


def _show(watch: Callable[[int, Sets], None] | None, n: int, sets: Sets) -> None:
    if watch is not None:
        watch(n, sets)


class _Ahead:
    """The members of a growing set from which the least one beyond a rising mark is wanted: minMoreThan."""

    def __init__(self, members: Iterable[int]) -> None:
        self._heap = list(members)
        heapify(self._heap)

    def add(self, member: int) -> None:
        heappush(self._heap, member)

    def more_than(self, mark: int) -> int | None:
        """Find the least member that is more than a mark, which must not be below the mark before."""
        while self._heap and self._heap[0] <= mark:
            heappop(self._heap)
        return self._heap[0] if self._heap else None


def _first_of(graph: Graph, component: int | None) -> int | None:
    return None if component is None else graph.first_of(component)


BY_NAME = {
    "dag": dag,
    "dag-skip": dag_skip,
    "general": general,
    "scc-skip": scc_skip,
    "index-then-bfs": index_then_bfs,
    "bfs-then-match": bfs_then_match,
}


def evaluate(evaluator: str, view: View, event: Event) -> Iterator[int]:
    """Give the vertices of a graph that an event reaches, each as soon as it is known."""
    return BY_NAME[evaluator](view, Valid(view, event), view.source(event))


class Valid:
    """The valid vertices of a view for one event, as the paper's evaluators ask for them."""

    def __init__(self, view: View, event: Event) -> None:
        self._view = view
        self._event = event
        given = view.given(event, complete=False) | view.overlay.open
        self._others = np.flatnonzero(flags_of(given, 64 * len(given))) + view.arrays.roots

    def next(self, at_least: int) -> int | None:
        """Find the first valid vertex that is at least `at_least`: of the index, or one without a filter."""
        at_least = max(at_least, self._view.arrays.roots)
        at = int(np.searchsorted(self._others, at_least))
        other = int(self._others[at]) if at < len(self._others) else None
        indexed = self._from_base(at_least)
        return min((each for each in (other, indexed) if each is not None), default=None)

    def _from_base(self, at_least: int) -> int | None:
        """Ask the index of the base, past filters that were replaced."""
        view = self._view
        if not len(view.base.content):
            return None
        while True:
            with RenamedOmissions(view.named):
                vertex = view.base.content.next(self._event, at_least)
            if vertex is None:
                return None
            assert isinstance(vertex, int)
            p = vertex - view.arrays.roots
            if not view.overlay.dirty[p >> 6] >> np.uint64(p & 63) & np.uint64(1):
                return vertex
            at_least = vertex + 1

    def all(self) -> list[int]:
        """List all valid vertices."""
        given = self._view.given(self._event, complete=True) | self._view.overlay.open
        vertices = np.flatnonzero(flags_of(given, 64 * len(given))) + self._view.arrays.roots
        listed: list[int] = vertices.tolist()
        return listed

    def match(self, vertex: int) -> bool:
        """Tell whether one vertex is valid."""
        return self._view.holds(self._event, vertex)
