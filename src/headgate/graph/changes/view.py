"""A graph as it is at one moment: what was numbered, what changed since, and the answers of both."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from headgate.contents.protocol import alone
from headgate.core.event import JSON, SOURCE
from headgate.core.omission import Omission, RenamedOmissions
from headgate.errors import EventError, GraphError
from headgate.graph.arrays import bits_of, has_bits
from headgate.graph.base import NO_CELLS, no_planes
from headgate.graph.model import EDGE, NODE, SUBSCRIPTION
from headgate.graph.walk import walking

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from headgate.contents.protocol import Content, Encoded, Verdict
    from headgate.core.arrays import Bytes, Floats64, Ints, Ints32, Words
    from headgate.core.event import Event, Id
    from headgate.core.planes import Cells, Planes
    from headgate.graph.base import Base


FIRST_BITE, LARGEST_BITE = 8, 4096
"""How many results a search for some of them looks for at first, and at most, before it gives them."""


@dataclass(frozen=True)
class Additions:
    """Vertices, filters and names that came after the base was numbered.

    stands_for, place, serves…     by vertex, from the first new one on
    moved[node]      the vertex of a node that is new, or has a new vertex; -1 if it was removed
    node_ids, subscription_ids, edge_ends     behind those of the base: `place` counts on
    rescored[place]  the score that a subscription was given
    filters          the content room's live index; filter f belongs to vertex filter_vertex[f], or to
                     nobody any more (-1)
    """

    stands_for: Bytes
    place: Ints32
    serves: Ints32
    score: Floats64
    pass_cost: Floats64
    moved: Mapping[Id, int]
    mute: Ints
    node_ids: Sequence[Id]
    node_kinds: Sequence[str]
    subscription_ids: Sequence[Id]
    rescored: Mapping[int, float]
    edge_ends: Sequence[tuple[Id, Id]]
    filters: Content | None
    filter_vertex: Ints


class View:
    """Answers about one moment of a graph. It never changes, and threads may share it."""

    def __init__(
        self,
        base: Base,
        overlay: walking.Overlay,
        costs: Floats64,
        later: Additions | None,
        serving: Words,
        *,
        skipping: bool,
    ) -> None:
        self.base = base
        self.arrays = base.arrays
        self.overlay = overlay
        self.swap_cost = costs
        self.later = later
        self.serving = serving
        self.skipping = skipping
        self.words = len(overlay.open)
        self.vertices = len(overlay.component)
        self._everyone = np.full(self.words, ~np.uint64(0))
        self._nobody = np.zeros(self.words, np.uint64)
        self.ways = base.ways

    # Names

    def find(self, node: Id) -> int:
        """Find the vertex of a node, -1 for none."""
        if self.later is not None and node in self.later.moved:
            return self.later.moved[node]
        return self.base.find(node)

    def source(self, event: Event) -> int:
        """Find the vertex where an event enters; refuses one that does not say, or names no node."""
        which = f"event {event.id!r}" if event.id != "" else "the event"
        if event.source is None:
            given = event.data.get(SOURCE) if event.content_type == JSON else None
            what = "no source" if given is None else f"the source {given!r}"
            raise EventError(
                f"{which} has {what}: name the node where it enters the graph, by text or a whole number"
            )
        vertex = self.find(event.source)
        if vertex < 0:
            raise EventError(
                f"source {event.source!r} of {which} is not a node of the graph: give the id of one"
            )
        return vertex

    def stands_for(self, vertex: int) -> tuple[int, int]:
        """Return what a vertex stands for, and its place among those."""
        first = self.arrays.vertices
        if vertex < first:
            return int(self.arrays.stands_for[vertex]), int(self.arrays.place[vertex])
        assert self.later is not None
        return int(self.later.stands_for[vertex - first]), int(self.later.place[vertex - first])

    def node_id(self, number: int) -> Id:
        """Return the id of a node."""
        ids = self.base.names.node_ids
        if number < len(ids):
            return ids[number]
        assert self.later is not None
        return self.later.node_ids[number - len(ids)]

    @property
    def subscriptions(self) -> int:
        """Count the places of subscriptions, whether they are still served or not."""
        later = 0 if self.later is None else len(self.later.subscription_ids)
        return len(self.base.names.subscription_ids) + later

    def subscription_id(self, number: int) -> Id:
        """Return the id of a subscription."""
        ids = self.base.names.subscription_ids
        if number < len(ids):
            return ids[number]
        assert self.later is not None
        return self.later.subscription_ids[number - len(ids)]

    def edge_ends(self, number: int) -> tuple[Id, Id]:
        """Return the nodes that a split edge joins."""
        ends = self.base.names.edge_ends
        if number < len(ends):
            return self.node_id(int(ends[number, 0])), self.node_id(int(ends[number, 1]))
        assert self.later is not None
        return self.later.edge_ends[number - len(ends)]

    def name(self, vertex: int) -> str:
        """Name a vertex for people."""
        kind, number = self.stands_for(vertex)
        if kind == NODE:
            return str(self.node_id(number))
        if kind == EDGE:
            source, target = self.edge_ends(number)
            return f"{source} → {target}"
        return str(self.subscription_id(number))

    def serves(self, vertex: int) -> int:
        """Return the place of the subscription that is served at a vertex, or -1."""
        first = self.arrays.vertices
        if vertex < first:
            return int(self.arrays.serves[vertex]) if self._serves_still(vertex) else -1
        assert self.later is not None
        return int(self.later.serves[vertex - first])

    def _serves_still(self, vertex: int) -> bool:
        p = vertex - self.arrays.roots
        if p < 0:
            return self.later is None or vertex not in self.later.mute
        return bool(self.serving[p >> 6] >> np.uint64(p & 63) & np.uint64(1))

    def children(self, vertex: int) -> list[int]:
        """List the children of a vertex."""
        swap, arrays = self.overlay.swap, self.arrays
        if len(swap) and swap[vertex] >= 0:
            first, last = self.overlay.start[swap[vertex]], self.overlay.start[swap[vertex] + 1]
            children: list[int] = self.overlay.child[first:last].tolist()
        else:
            children = arrays.child[arrays.child_start[vertex] : arrays.child_start[vertex + 1]].tolist()
        return children

    def component(self, vertex: int) -> int:
        """Return the component of a vertex."""
        return int(self.overlay.component[vertex])

    def first_of(self, component: int) -> int:
        """Return the first vertex of a component."""
        return int(np.searchsorted(self.overlay.component, component))

    # Which filters hold

    def named(self, omission: Omission, *, later: bool = False) -> Omission | None:
        """Name a filter that was left out by what it belongs to; `later` is one of those that came later.

        None if it is gone.
        """
        vertex = int(omission.subscription or 0)
        if later:
            assert self.later is not None
            if vertex >= len(self.later.filter_vertex):
                return None
            vertex = int(self.later.filter_vertex[vertex])
        p = vertex - self.arrays.roots
        if vertex < 0 or (
            not later and p >= 0 and self.overlay.dirty[p >> 6] >> np.uint64(p & 63) & np.uint64(1)
        ):
            return None
        kind, number = self.stands_for(vertex)
        if kind == SUBSCRIPTION:
            return omission._replace(subscription=self.subscription_id(number))
        what = "node" if kind == NODE else "edge"
        reason = f"the filter of the {what} {self.name(vertex)}: {omission.reason}"
        return omission._replace(subscription=None, reason=reason)

    def given(self, event: Event, *, complete: bool) -> Words:
        """List positions whose filter holds: of those that came later, and if `complete` of all."""
        first, positions = self.arrays.roots, []
        if complete:
            dirty = self.overlay.dirty
            with RenamedOmissions(self.named):
                base = np.array(self.base.content.match(event), np.int64) - first
            base = base[base >= 0]
            positions.append(base[~has_bits(dirty, base)])
        if self.later is not None and self.later.filters is not None:
            with RenamedOmissions(partial(self.named, later=True)):
                filters = np.array(self.later.filters.match(event), np.int64)
            # Filters that came after this view was taken are not of it.
            filters = filters[filters < len(self.later.filter_vertex)]
            vertices = self.later.filter_vertex[filters]
            positions.append(vertices[vertices >= first] - first)
        if not positions:
            return self._nobody
        return bits_of(np.concatenate(positions), self.words)

    def holds(self, event: Event, vertex: int) -> bool:
        """Tell whether the filter of one vertex holds, or it has none."""
        p = vertex - self.arrays.roots
        if p < 0:
            return self.filter_of(vertex) is None or self.explain_filter(event, vertex).matches
        bit = np.uint64(1) << np.uint64(p & 63)
        if self.overlay.open[p >> 6] & bit:
            return True
        if self.filter_of(vertex) is None:
            return False
        return self.explain_filter(event, vertex).matches

    def filter_id(self, vertex: int) -> tuple[Content, int] | None:
        """Find where the filter of a vertex is; None if it has none, or was removed."""
        p = vertex - self.arrays.roots
        bit = np.uint64(1) << np.uint64(p & 63)
        if p >= 0 and self.overlay.open[p >> 6] & bit:
            return None
        if self.later is not None and self.later.filters is not None:
            own = np.flatnonzero(self.later.filter_vertex == vertex)
            if len(own):
                return self.later.filters, int(own[-1])
        if vertex >= self.arrays.vertices or (p >= 0 and self.overlay.dirty[p >> 6] & bit):
            return None
        return (self.base.content, vertex) if vertex in self.base.content else None

    def filter_of(self, vertex: int) -> str | None:
        """Return the text of a vertex's filter."""
        own = self.filter_id(vertex)
        return None if own is None else own[0].filter(own[1])

    def explain_filter(self, event: Event, vertex: int) -> Verdict:
        """Say why the filter of a vertex holds or not; the graph leads there, and not an index."""
        own = self.filter_id(vertex)
        assert own is not None, "only vertices with a filter have something to explain"
        return alone(own[0].explain(event, own[1]))

    # Answers

    def scratch(self) -> walking.WalkBuffers:
        """Return this thread's scratch space."""
        return self.base.scratch(self.words)

    def question(self, planes: Planes, cells: Cells, given: Words, wanted: Words) -> walking.Question:
        """Return what a walk is told."""
        return walking.Question(self.arrays, self.overlay, planes, cells, given, wanted)

    def prepare(self, event: Event, wanted: Words | None = None) -> tuple[walking.Question, Encoded | None]:
        """Encode an event, and match what cannot be matched when it is reached."""
        filter_planes = self.base.filter_planes
        wanted = self._everyone if wanted is None else wanted
        if filter_planes is None:
            return self.question(no_planes(), NO_CELLS, self.given(event, complete=True), wanted), None
        encoded, given = filter_planes.encode([event]), self.given(event, complete=False)
        return self.question(filter_planes.planes, encoded.cells, given, wanted), encoded

    def _answer(self, encoded: Encoded | None, e: int, scratch: walking.WalkBuffers) -> None:
        """Ask the content room about the positions that a walk could not decide."""
        assert self.base.filter_planes is not None
        assert encoded is not None
        asked = scratch.asked[: scratch.counts[walking.ASKED]]
        walking.answer(self.arrays, scratch, self.base.filter_planes.holds(encoded, e, asked))

    def walk(self, event: Event, wanted: Words | None = None) -> Ints:
        """Find the vertices that are reached, in rising order; `wanted` by word are those to be told."""
        q, encoded = self.prepare(event, wanted)
        scratch, source = self.scratch(), self.source(event)
        nothing = np.zeros(0, np.int64)
        while walking.walk(*q, 0, source, scratch, nothing, 0) == walking.ASKING:
            self._answer(encoded, 0, scratch)
            source = -1
        out = np.empty(64 * self.words + 64, np.int64)
        return out[: walking.collect(scratch, q.wanted, out)] + self.arrays.roots

    def walk_slowly(self, event: Event, wanted: Words | None = None) -> Iterator[int]:
        """Find the same vertices one after the other, in the order in which they are reached."""
        q, encoded = self.prepare(event, wanted)
        # Scratch of its own: the caller may begin another walk before this one ends.
        scratch = walking.scratch(self.words, len(q.planes.axis_line))
        source, bite = self.source(event), FIRST_BITE
        while True:
            out = np.empty(bite + 64, np.int64)
            why = walking.walk(*q, 0, source, scratch, out, bite)
            source, bite = -1, min(4 * bite, LARGEST_BITE)
            for position in out[: scratch.counts[walking.FOUND]].tolist():
                yield position + self.arrays.roots
            if why == walking.ASKING:
                self._answer(encoded, 0, scratch)
            elif why == walking.DONE:
                return

    def fitting(self, evaluator: str) -> str:
        """Return the evaluator itself, or what must stand in for it until the next compaction."""
        if evaluator.startswith("dag") and not self.base.acyclic:
            raise GraphError(
                f"the graph has cycles, and {evaluator!r} is for graphs without: "
                "use 'general', 'scc-skip' or 'auto'"
            )
        needs_order = evaluator in {"dag", "dag-skip", "scc-skip"}
        return "general" if needs_order and not self.skipping else evaluator
