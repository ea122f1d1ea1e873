"""The room's public class: a graph with filters, ready to be asked and to change."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from headgate.contents.portions import Asks, Portion, ids_of
from headgate.contents.protocol import PAIRS
from headgate.core.papers import of_papers
from headgate.core.rooms import GRAPH
from headgate.core.subscription import SQL
from headgate.errors import GraphError, SubscriptionError
from headgate.graph import batch
from headgate.graph.arrays import has_bits
from headgate.graph.base import ROOM, Base, Names
from headgate.graph.build.build import build
from headgate.graph.build.tables import from_models
from headgate.graph.changes.changes import Changes, frozen_view
from headgate.graph.changes.compaction import to_parts
from headgate.graph.explain import explain
from headgate.graph.model import NODE, check_score, fixed_score
from headgate.graph.path_cost import DECAY, DEFAULT_PATH_COST, MINUS, PathCost
from headgate.graph.ranked.ranked import check_wanted, hanging, score, top

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    import pyarrow as pa

    from headgate.contents.protocol import ContentRoom
    from headgate.core.arrays import Bools, Ints, Words
    from headgate.core.event import Event, Id
    from headgate.core.ranks import Score
    from headgate.core.subscription import Subscription
    from headgate.graph.changes.view import View
    from headgate.graph.explain import GraphExplanation
    from headgate.graph.model import Edge, Node, Parts
    from headgate.graph.ranked.ranked import RankedMatch

__all__ = ["EVALUATORS", "ROOM", "GraphIndex"]

EVALUATORS = ("auto", "dag", "dag-skip", "general", "scc-skip", "index-then-bfs", "bfs-then-match")
"""The walk, and those of the paper."""


class GraphIndex(Asks):
    """Who may see an event: subscriptions to which a path of valid nodes leads from its source.

    Any number of threads may ask while others change the graph; an answer is about the graph at some moment
    of the call. Changes are kept beside the numbered graph until `compact` numbers it anew.

    >>> from headgate import Edge, Event, Node
    >>> from headgate.graph.index import GraphIndex
    >>> from headgate.records.index.index import RecordIndex
    >>> nodes = [Node("pub"), Node("net", "topic = 'sport'"), Node("adv", subscription="shoes")]
    >>> graph = GraphIndex.build(nodes, [Edge("pub", "net"), Edge("net", "adv")], room=RecordIndex)
    >>> graph.match(Event("e1", {"topic": "sport"}, source="pub"))
    ['shoes']
    >>> graph.match(Event("e2", {"topic": "news"}, source="pub"))
    []
    """

    room_name: ClassVar[Literal["graph"]] = GRAPH

    def __init__(self, base: Base, room: ContentRoom) -> None:
        self._room = room
        self._writing = threading.RLock()
        self._start(base)

    def _start(self, base: Base) -> None:
        self._base = base
        self._changes: Changes | None = None
        self._unchanged: Changes | None = None
        self._view: View | None = frozen_view(base)

    @classmethod
    def build(
        cls,
        nodes: Iterable[Node],
        edges: Iterable[Edge],
        subscriptions: Iterable[Subscription] = (),
        *,
        room: ContentRoom,
    ) -> GraphIndex:
        """Number a graph and index its filters; refuses what does not fit together."""
        return cls.from_parts(from_models(nodes, edges, subscriptions), room)

    @classmethod
    def from_parts(cls, parts: Parts, room: ContentRoom) -> GraphIndex:
        """Number a graph that is in columns, and index its filters."""
        return cls(_base(parts, room), room)

    @classmethod
    def open(cls, path: Path, *, room: ContentRoom, verify: bool = True) -> GraphIndex:
        """Open a snapshot, memory-mapped; see `headgate.core.snapshot` for what is refused."""
        return cls(Base.open(path, room, verify=verify), room)

    def save(
        self,
        path: Path,
        *,
        source: Mapping[str, object] | None = None,
        inside: Mapping[str, Callable[[Path], None]] | None = None,
    ) -> None:
        """Write a snapshot, compacted if need be; `source` says what it was built from.

        `inside` are more snapshots that belong to it, each called with its place.
        """
        with self._writing:
            self.compact()
            self._base.save(path, source=source, inside=inside)

    @property
    def view(self) -> View:
        """Return the graph as it is now."""
        view = self._view
        if view is None:
            with self._writing:
                view = self._view
                if view is None:
                    assert self._changes is not None
                    view = self._view = self._changes.view()
        return view

    @property
    def base(self) -> Base:
        """Return the part that was numbered."""
        return self._base

    @property
    def skipping(self) -> bool:
        """Tell whether evaluators may skip: off from a change that breaks the numbering to a compaction."""
        return self.view.skipping

    def __len__(self) -> int:
        """Count the subscriptions that are served somewhere."""
        view = self.view
        served = np.array([view.serves(vertex) for vertex in range(view.vertices)], np.int64)
        return len(np.unique(served[served >= 0]))

    def __contains__(self, node: Id) -> bool:
        """Tell whether there is a node of this id."""
        return self.view.find(node) >= 0

    # Asking

    def match(self, event: Event, evaluator: str = "auto") -> list[Id]:
        """List the subscriptions that get an event, sorted."""
        view = self.view
        return _served(view, _reached(view, event, evaluator, view.serving))

    def nodes(self, event: Event, evaluator: str = "auto") -> list[Id]:
        """List the nodes that an event reaches, sorted."""
        view = self.view
        return _nodes(view, _reached(view, event, evaluator))

    def reach(self, event: Event, evaluator: str = "auto") -> Iterator[Id]:
        """Give the subscriptions that get an event, each as soon as it is known."""
        check_evaluator(evaluator)
        return self._reach(event, evaluator)

    def _reach(self, event: Event, evaluator: str) -> Iterator[Id]:
        view = self.view
        if evaluator == "auto":
            vertices = view.walk_slowly(event, view.serving)
        else:
            vertices = _evaluated(view, event, evaluator)
        seen: set[int] = set()
        for vertex in vertices:
            served = view.serves(vertex)
            if served >= 0 and served not in seen:
                seen.add(served)
                yield view.subscription_id(served)

    @property
    def numbered(self) -> bool:
        """Tell whether ids of subscriptions are whole numbers rather than text."""
        return self._base.names.subscription_ids.numbered

    def ask(
        self, events: pa.RecordBatch | Sequence[Event], ids: pa.Array[Any], most: int = PAIRS
    ) -> Iterator[Portion]:
        """Match events in order, in portions that fit into memory even if each of them gets to all.

        Refuses them if one has no source, or one that is no node; `sources` tells beforehand.
        """
        del most
        return batch.match(self.view, events, ids)

    def sources(self, events: pa.RecordBatch) -> list[str | None]:
        """Say of each event why its source is refused; None where it is not."""
        return batch.refusals(self.view, events)

    def known(self, events: pa.RecordBatch) -> Bools:
        """Tell which events come from a node."""
        return batch.sources(self.view, events) >= 0

    def hanging(self, event: Event) -> list[Id]:
        """List the subscriptions that an event comes to, whether or not their own filter holds, sorted."""
        view = self.view
        return sorted(view.subscription_id(place) for place in hanging(view, event).tolist())

    def explain(self, event: Event, subscription: Id, *, from_elsewhere: bool = False) -> GraphExplanation:
        """Say why a subscription gets an event, or what keeps the event from it; see `graph.explain`."""
        return explain(self.view, event, subscription, from_elsewhere=from_elsewhere)

    def serves(self, subscription: Id) -> bool:
        """Tell whether a subscription is served anywhere."""
        with self._writing:
            return self._next().serves(subscription)

    def score(self, subscription: Id) -> float:
        """Return the score of a subscription; refuses one that is not there."""
        known = score(self.view, subscription)
        if known is None:
            raise SubscriptionError(f"there is no subscription {subscription!r} here")
        return known

    def top(
        self, event: Event, k: int, *, by: str = MINUS, decay: float = DECAY, hops: bool = False
    ) -> list[RankedMatch]:
        """List the k subscriptions of highest value that get an event, equal ones by id.

        `by` "minus": the score less the cost of the cheapest path; "times": the score times `decay` to the
        power of that cost. With `hops` every edge costs 1 and nodes nothing.
        """
        return top(self.view, event, k, by=by, decay=decay, hops=hops)

    def best(
        self,
        events: pa.RecordBatch | Sequence[Event],
        ids: pa.Array[Any],
        k: int,
        path: PathCost = DEFAULT_PATH_COST,
    ) -> Portion:
        """Find the best k of each of some events, by score and way; they are told of by their `ids`."""
        check_wanted(k)
        return batch.best(self.view, events, ids, k, path)

    def top_batch(
        self,
        events: pa.RecordBatch | Sequence[Event],
        k: int,
        identities: pa.Array[Any] | None = None,
        **more: Any,
    ) -> pa.RecordBatch:
        """Do the same for a table: (event_id, subscription_id, score, rank) out, best first."""
        ids = ids_of(events) if identities is None else identities
        return self.best(events, ids, k, **more).batch(ids)

    # Changing

    def add_node(self, node: Node) -> None:
        """Add a node; refuses an id that is there, and a bad filter."""
        self._change(lambda changes: changes.add_node(node))

    def remove_node(self, identity: Id) -> None:
        """Remove a node, its edges, and the subscriptions that hang nowhere else."""
        self._change(lambda changes: changes.remove_node(identity))

    def add_edge(self, edge: Edge) -> None:
        """Add an edge between nodes that are there."""
        self._change(lambda changes: changes.add_edge(edge))

    def remove_edge(self, source: Id, target: Id) -> None:
        """Remove every edge from one node to another; refuses if there is none."""
        self._change(lambda changes: changes.remove_edge(source, target))

    def set_filter(self, node: Id, filter: str | None, dialect: str = SQL) -> None:  # noqa: A002 -- its name
        """Give a node another filter, or none."""
        self._change(lambda changes: changes.set_filter(node, filter, dialect))

    def prepare(self, subscription: Subscription) -> Any:
        """Compile the filter of a subscription for `subscribe`; refuses a bad one, and what cannot hang."""
        with self._writing:
            return self._next().prepare(subscription)

    def subscribe(self, subscription: Subscription, prepared: Any = None) -> None:
        """Hang a subscription at its node; refuses an id that is there, and a bad filter."""
        self._change(lambda changes: changes.subscribe(subscription, prepared))

    def unsubscribe(self, identity: Id) -> None:
        """Remove a subscription; refuses one that is not there."""
        self._change(lambda changes: changes.unsubscribe(identity))

    def set_score(self, identity: Id, score: Score) -> None:
        """Give a subscription another score, wherever it is served; refuses one that is not there."""
        check_score(fixed_score(score, identity), f"subscription {identity!r}")
        self._change(lambda changes: changes.set_score(identity, score))

    def compact(self) -> None:
        """Number the graph anew with all its changes. Others may ask meanwhile, and changes wait."""
        with self._writing:
            if self._changes is not None:
                self._start(_base(to_parts(self.view, self._room.dialect), self._room))

    def _change(self, change: Callable[[Changes], None]) -> None:
        with self._writing:
            changes = self._next()
            change(changes)
            self._changes, self._view = changes, None

    def _next(self) -> Changes:
        """Return what was changed, or what there is to be changed."""
        if self._unchanged is None:
            self._unchanged = Changes(self._base, self._room)
        return self._unchanged


def check_evaluator(evaluator: str) -> None:
    """Refuse an evaluator that there is not."""
    if evaluator not in EVALUATORS:
        raise GraphError(f"there is no evaluator {evaluator!r}; there are {', '.join(EVALUATORS)}")


def _reached(view: View, event: Event, evaluator: str, wanted: Words | None = None) -> Ints:
    """Find the vertices that an event reaches; `wanted` by word are those that must be told."""
    check_evaluator(evaluator)
    if evaluator == "auto":
        return view.walk(event, wanted)
    return np.array([*_evaluated(view, event, evaluator)], np.int64)


def _evaluated(view: View, event: Event, evaluator: str) -> Iterator[int]:
    """Give the same vertices by one of the paper's evaluators, as it finds them."""
    # They look at an event when they come to a filter: what cannot be read is refused as by `auto`.
    view.prepare(event)
    view.source(event)
    vertices: Iterator[int] = of_papers("evaluators:evaluate", view.fitting(evaluator), view, event)
    return vertices


def _base(parts: Parts, room: ContentRoom) -> Base:
    built = build(parts)
    names = Names(
        parts.node_ids,
        parts.subscription_ids,
        parts.kinds,
        parts.node_kind,
        built.vertex_of_node,
        built.edge_ends,
    )
    return Base.build(built, names, room)


def _served(view: View, vertices: Ints) -> list[Id]:
    """List the subscriptions that some vertices serve, sorted by id."""
    if view.later is None:
        places = view.arrays.serves[vertices]
    else:
        first = view.arrays.vertices
        vertices = vertices[has_bits(view.serving, vertices - view.arrays.roots)]
        old = vertices < first
        late = view.later.serves[vertices[~old] - first]
        places = np.concatenate([view.arrays.serves[vertices[old]], late])
    places = np.unique(places[places >= 0])
    # Places of the base are in the order of ids.
    known = len(view.base.names.subscription_ids)
    early: Any = view.base.subscription_array.take(places[places < known])
    ids: list[Id] = early.to_pylist()
    if len(ids) < len(places):
        ids = sorted([*ids, *(view.subscription_id(int(place)) for place in places[len(ids) :])])
    return ids


def _nodes(view: View, vertices: Ints) -> list[Id]:
    """List the nodes that some vertices stand for, sorted by id."""
    if view.later is not None:
        names = (view.stands_for(vertex) for vertex in vertices.tolist())
        return sorted(view.node_id(place) for stands_for, place in names if stands_for == NODE)
    vertices = vertices[view.arrays.stands_for[vertices] == NODE]
    ids: Any = view.base.node_array.take(np.sort(view.arrays.place[vertices]))
    return list(ids.to_pylist())
