"""The pieces that answer as one: what stands behind each, what leads there, and their answers together."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.contents.portions import Portion, joined
from headgate.core.event import SOURCE
from headgate.core.ids import fit_id, fit_ids
from headgate.core.ranks import EXACT
from headgate.core.values import fold
from headgate.engine.engine import Engine
from headgate.runtime.operations import AddEdge, AddNode, RemoveEdge, RemoveNode, SetFilter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from headgate.core.arrays import Bools, Ints
    from headgate.core.event import Event, Id
    from headgate.core.subscription import Subscription
    from headgate.engine.backend import Backend, Events
    from headgate.engine.question import Top
    from headgate.engine.statistics import Statistics
    from headgate.graph.index import GraphIndex
    from headgate.runtime.operations import Change
    from headgate.runtime.shards import Route

    Column = pa.Array[Any]
    Given = TypeVar("Given", pa.RecordBatch, Column)


class Piece:
    """A shard, or all in one piece."""

    def __init__(
        self, backend: Backend, route: Route | None = None, types: frozenset[str] | None = None
    ) -> None:
        self.backend = backend
        self.route = route
        """What leads here; None if every event does."""
        self.types = types
        """The content types that events have which come here as Python values; None if all do."""
        self.ids = backend.built
        """Those of the snapshot, whatever came and went since."""
        self._count: int | None = len(self.ids)

    @classmethod
    def open(cls, path: Path, route: Route | None = None, *, verify: bool) -> Piece:
        """Open a snapshot in one piece."""
        return cls(Engine.open(path, verify=verify).backend, route)

    @property
    def routed(self) -> bool:
        """Tell whether there is a graph."""
        return self.backend.routed

    def __len__(self) -> int:
        """Count the subscriptions that are here now."""
        if self._count is None:
            self._count = len(self.backend)
        return self._count

    def met(self, events: Events, top: Top | None) -> Ints:
        """List the rows of the events that can match here; what leads here is about whole filters."""
        here = np.ones(len(events), np.bool_)
        if self.types is None:
            if not len(self):
                return np.zeros(0, np.int64)
        elif (
            not isinstance(events, pa.RecordBatch)
            and not {each.content_type for each in events} <= self.types
        ):
            here = np.array([each.content_type in self.types for each in events], np.bool_)
        if self.route is not None and (top is None or top.mode == EXACT):
            here = self.route.met(events)
        if self.routed:
            here &= _known(self.backend.graph, events)
        return np.flatnonzero(here)

    # Changing

    def subscribe(self, subscription: Subscription) -> None:
        """Add a subscription: from now on every event comes here."""
        self.backend.subscribe(subscription)
        self._counted(1)
        self.route = None

    def replace(self, subscription: Subscription) -> None:
        """Have a subscription in the place of another of its id."""
        self.backend.replace(subscription)
        self.route = None

    def unsubscribe(self, identity: Id) -> None:
        """Remove a subscription."""
        self.backend.unsubscribe(identity)
        self._counted(-1)

    def _counted(self, more: int) -> None:
        if self._count is not None:
            self._count += more

    def change_graph(self, change: Change) -> None:
        """Change nodes and edges."""
        graph = self.backend.graph
        match change:
            case AddNode(node):
                graph.add_node(node)
            case RemoveNode(identity):
                graph.remove_node(identity)
            case AddEdge(edge):
                graph.add_edge(edge)
            case RemoveEdge(source, target):
                graph.remove_edge(source, target)
            case SetFilter(identity, text, dialect):
                graph.set_filter(identity, text, dialect)
        # With a node go subscriptions that hang nowhere else, and one may come.
        self._count = None


def _known(graph: GraphIndex, events: Events) -> Bools:
    """Tell which events come from a node of a graph, or of this shard of it."""
    if not isinstance(events, pa.RecordBatch):
        kind: pa.DataType = pa.int64() if graph.base.names.node_ids.numbered else pa.string()
        source: pa.Array[Any] = pa.array([event.source for event in events], kind)
        events = pa.RecordBatch.from_arrays([source], names=[SOURCE])
    return graph.known(events)


PAIRS = 1 << 24
"""What holds, in memory, at most: fewer events are asked about together if each may have much."""
_compute: Any = pc


class Counting(NamedTuple):
    """Where answers are counted, and the ids of the events if others stand for them."""

    statistics: Statistics
    names: Column | None = None


def merged(answers: Iterable[Portion], top: Top, wanted: Ints | None = None) -> Portion:
    """Put the best of shards together: the best of all; equal ones go by id.

    `wanted` says of each event how many, if that is not the same for all.

    A subscription is on one shard, so nothing is there twice; and the best of all are among the best of each.

    >>> from headgate.engine.question import Top
    >>> answers = [
    ...     Portion.of(np.array([0, 0]), pa.array(["b", "d"]), np.array([2.0, 1.0])),
    ...     Portion.of(np.array([0, 1]), pa.array(["a", "c"]), np.array([2.0, 0.5])),
    ... ]
    >>> found = merged(answers, Top(2)).batch(pa.array(["e0", "e1"]))
    >>> list(zip(*found.to_pydict().values()))
    [('e0', 'a', 2.0, 1), ('e0', 'b', 2.0, 2), ('e1', 'c', 0.5, 1)]
    """
    whole = joined(answers, pa.string())
    assert whole.values is not None
    keys = [pa.array(whole.rows), pa.array(-whole.values), whole.ids]
    names = ["row", "value", "id"]
    order = np.asarray(
        _compute.sort_indices(
            pa.RecordBatch.from_arrays(keys, names=names), sort_keys=[(name, "ascending") for name in names]
        )
    )
    portion = Portion.of(whole.rows[order], whole.ids.take(order), whole.values[order])
    return portion.some(portion.ranks <= (top.k if wanted is None else wanted[portion.rows]))


def refused_by_all(sources: Given, shards: Iterable[Callable[[Given], list[str | None]]]) -> list[str | None]:
    """Say of sources why every shard refuses them; None where one does not."""
    reasons: list[str | None] = [""] * len(sources)
    for refused in shards:
        # A node that leads nowhere is on one shard only, the others are on all: the first mostly will do.
        rows = [row for row, reason in enumerate(reasons) if reason is not None]
        if not rows:
            break
        for row, reason in zip(rows, refused(sources.take(pa.array(rows))), strict=True):
            reasons[row] = reason
    return reasons


def sources_of(events: Iterable[Event]) -> Column:
    """Return the sources of events as they were given; whole numbers among texts become text."""
    sources = [event.source for event in events]
    if not any(isinstance(source, str) for source in sources):
        return pa.array(sources, pa.int64())
    return pa.array([None if source is None else str(source) for source in sources], pa.string())


def fitted(events: Events, *, numbered: bool) -> Events:
    """Give sources the type that ids of nodes have."""
    if isinstance(events, pa.RecordBatch):
        position = _place(events)
        return events.set_column(position, SOURCE, fit_ids(events.column(position), numbered=numbered))
    return [fitted_event(event, numbered=numbered) for event in events]


def fitted_event(event: Event, *, numbered: bool) -> Event:
    """Do the same for one event."""
    if event.source is None or isinstance(event.source, int) is numbered:
        return event
    return replace(event, source=fit_id(event.source, numbered=numbered))


def _place(batch: pa.RecordBatch) -> int:
    return [fold(name) for name in batch.schema.names].index(SOURCE)
