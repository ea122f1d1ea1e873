"""The subscriptions of a snapshot, live: an engine for each of its shards, or one for all in one piece.

    ask            an event meets the shards that can match it; what they find is put together
    change         an id is on one shard, and is changed there; a new one goes to a shard that all events meet
    save           as many shards again, with what is still known of the events that meet each

What leads to a shard was proved of the subscriptions that it was compiled with. One that comes later is not
among them: from then on every event meets that shard.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from headgate.contents.registry import content_at
from headgate.contents.sharing import Sharing, slice_of
from headgate.core.event import SOURCE
from headgate.core.id_types import fit_ids
from headgate.core.ids import Ids
from headgate.core.omission import RenamedOmissions, by_row
from headgate.core.snapshot import open_snapshot, open_with_inside, room_of, write_snapshot
from headgate.core.versions.current import at_current
from headgate.engine.answers import giving, read_events
from headgate.engine.engine import Engine
from headgate.engine.statistics import Statistics
from headgate.errors import GraphError, SubscriptionError
from headgate.graph.build import sharding
from headgate.graph.build.sharding import shard_name
from headgate.runtime import shards as shard_snapshots
from headgate.runtime.batch_queries import ask, at_once, fitted, known, merged, refused_by_all
from headgate.runtime.live import SingleEngine
from headgate.runtime.questions import EXACT
from headgate.runtime.routes import Routes
from headgate.runtime.sharding import Sharding
from headgate.runtime.shards import have_numbers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from headgate.contents.results import Home
    from headgate.core.event import Id
    from headgate.core.ranks import Score, Weights
    from headgate.core.snapshot import Snapshot
    from headgate.core.subscription import Subscription
    from headgate.engine.counters import Sample
    from headgate.graph.index import GraphIndex
    from headgate.runtime.batch_queries import Counting, Events
    from headgate.runtime.questions import Top
    from headgate.runtime.routes import Route

    Column = pa.Array[Any]

SHARDED = (sharding.ROOM, *shard_snapshots.ROOMS)
"""The rooms of snapshots that are cut into shards."""


@dataclass
class _ShardEngine:
    """One shard."""

    engine: Engine
    ids: Ids
    """Those of the snapshot, whatever came and went since."""
    count: int
    """The subscriptions that are here now."""
    route: Route | None
    """What leads here; None if every event does."""

    @classmethod
    def open(cls, place: Path, route: Route | None = None, *, verify: bool) -> _ShardEngine:
        engine = Engine.open(place, verify=verify)
        ids = engine.backend.built
        return cls(engine, ids, len(ids), route)

    def had(self, identity: Id) -> bool:
        """Tell whether an id is one of the snapshot's."""
        return self.ids.find(identity) >= 0

    def has_node(self, node: Id | None) -> bool:
        """Tell whether a node is here; those that lead on are everywhere."""
        # Nodes of a graph in shards never change: what it was numbered with knows them all.
        return node is not None and self.engine.graph.base.find(node) >= 0

    def met(self, events: Events, top: Top | None) -> NDArray[np.int64]:
        """List the rows of the events that can match here; what leads here is about whole filters."""
        if not self.count:
            return np.zeros(0, np.int64)
        here = np.ones(len(events), np.bool_)
        if self.route is not None and (top is None or top.mode == EXACT):
            here = self.route.met(events)
        if self.engine.backend.routed:
            here &= known(self.engine.graph, events)
        return np.flatnonzero(here)


class ShardEngines:
    """Engines that answer and change as one."""

    def __init__(
        self, engines: Sequence[_ShardEngine], outer: Snapshot | None = None, routes: Routes | None = None
    ) -> None:
        self._pieces = list(engines)
        self._outer = outer
        self._routes = routes
        self._samples: dict[int, Sample] = {}
        self.met = 0
        """How often an event met a shard, since this was opened."""
        self._moved: dict[Id, _ShardEngine | None] = {}
        """Where ids are since, if not where the snapshot has them; nowhere if they are gone."""
        some = any(len(piece.ids) for piece in engines)
        self.numbered = some and have_numbers([piece.ids for piece in engines])
        """Whether ids of the snapshot are whole numbers; if it has none, they are text."""
        self._type: type | None = (int if self.numbered else str) if some else None

    @classmethod
    def of(cls, engine: Engine) -> ShardEngines:
        """Take over an engine that was built."""
        ids = engine.backend.built
        return cls([_ShardEngine(engine, ids, len(ids), None)])

    @classmethod
    def open(cls, place: Path, *, only: Sequence[int] | None = None, verify: bool = True) -> ShardEngines:
        """Open a snapshot, in one piece or in shards; `only` some of them, to be asked and not changed."""
        return at_current(place, lambda found: cls._open(found, only, verify=verify))

    @classmethod
    def _open(cls, place: Path, only: Sequence[int] | None, *, verify: bool) -> ShardEngines:
        if room_of(place) not in SHARDED:
            return cls([_ShardEngine.open(place, verify=verify)])
        return open_with_inside(place, lambda found: cls._open_shards(found, only, verify=verify))

    @classmethod
    def _open_shards(cls, place: Path, only: Sequence[int] | None, *, verify: bool) -> ShardEngines:
        outer = open_snapshot(place, room_of(place), verify=verify)
        routes = Routes.read(place, outer.room, content_at(place))
        count = outer.counts["shards"]
        engines = [
            _ShardEngine.open(
                place / shard_name(number),
                None if routes is None else routes.route(number),
                verify=verify,
            )
            for number in (range(count) if only is None else only)
        ]
        return cls(engines, outer, routes)

    def __len__(self) -> int:
        """Count the subscriptions."""
        return sum(piece.count for piece in self._pieces)

    @property
    def graph(self) -> bool:
        """Tell whether there is a graph."""
        return self._pieces[0].engine.backend.routed

    @property
    def numbered_nodes(self) -> bool:
        """Tell whether ids of nodes are whole numbers."""
        return self._pieces[0].engine.graph.base.names.node_ids.numbered

    # Asking

    def refusals(self, sources: Column) -> list[str | None]:
        """Say why sources of events are refused, as they were given; None where one is a node here."""
        batch = pa.RecordBatch.from_arrays([fit_ids(sources, numbered=self.numbered_nodes)], names=[SOURCE])
        found = refused_by_all(batch, (piece.engine.graph.sources for piece in self._pieces))
        if batch.column(0).null_count > sources.null_count:
            for row, reason in enumerate(found):
                if reason is not None and sources[row].is_valid:
                    found[row] = (
                        f"source {sources[row].as_py()!r} is not a node of the graph: give the id of one"
                    )
        return found

    def filter(self, identity: Id) -> str | None:
        """Return the filter of a subscription; None if it has none of its own."""
        return self._known(identity).engine.filter(identity)

    def statistics(self) -> Statistics:
        """Return counters for the subscriptions that are here."""
        return Statistics(piece.ids for piece in self._pieces)

    def statistics_of_part(self) -> Statistics:
        """Return counters for some of the events; which are measured goes on from those before."""
        return Statistics((piece.ids for piece in self._pieces), self._samples)

    @property
    def ids(self) -> list[Ids]:
        """List the ids of the subscriptions that are here now, by shard."""
        return [Ids.of(piece.engine.ids) for piece in self._pieces]

    def ask(
        self,
        events: Events,
        ids: Column,
        top: Top | None,
        counting: Counting | None = None,
        results: int | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Ask for all matches of events, or the best of each, in portions; `ids` stand for theirs.

        Sources that are no nodes, or none of the shards that are here, lead nowhere: `refusals` tells them.
        The best of an event are all in one portion, unless what they give is large: with `results` there is
        what each match gives, in so many rows at most.
        """
        if results is not None:
            events = read_events(self._pieces[0].engine.backend, events, ids)
            if counting is not None:
                counting = counting._replace(names=ids if counting.names is None else counting.names)
            rows: Column = pa.array(np.arange(len(events)))
            found = self.ask(events, rows, top, counting)
            yield from giving(found, events, ids, self._homes, results)
            return
        if self.graph:
            events = fitted(events, numbered=self.numbered_nodes)
        size = min(at_once(piece.engine, top) for piece in self._pieces)
        if top is not None:
            size = max(1, size // len(self._pieces))
        for begin in range(0, len(events), size):
            some = slice_of(events, begin, begin + size)
            yield from self._ask(some, ids.slice(begin, len(some)), top, counting)

    def _homes(self, ids: Sequence[Id]) -> Iterator[Home | None]:
        """Find the filters of subscriptions on their shards."""
        for identity in ids:
            yield from self._known(identity).engine.backend.homes([identity])

    def _ask(
        self, events: Events, ids: Column, top: Top | None, counting: Counting | None
    ) -> Iterator[pa.RecordBatch]:
        # Shards of one memory encode events together.
        sharing = Sharing()
        best: list[pa.RecordBatch] = []
        for piece in self._pieces:
            rows = piece.met(events, top)
            self.met += len(rows)
            if not len(rows):
                continue
            every = len(rows) == len(events)
            given = events if every else _taken(events, rows)
            if top is None or (len(self._pieces) == 1 and every):
                own = ids if every else ids.take(rows)
                yield from sharing.each(ask(piece.engine, given, own, top, counting))
            else:
                with RenamedOmissions(by_row(ids)):
                    best += sharing.each(ask(piece.engine, given, pa.array(rows), top))
        if best:
            found = merged(best, ids, top, None if top is None else top.wanted(events))
            if counting is not None:
                counting.statistics.add(found, counting.names)
            yield found

    # Changing

    @property
    def whole_ids(self) -> bool | None:
        """Tell whether ids are whole numbers; None if there was none yet."""
        return None if self._type is None else self._type is int

    def __contains__(self, identity: Id) -> bool:
        """Tell whether a subscription is there."""
        if len(self._pieces) == 1:
            return identity in self._pieces[0].engine.backend
        return self._home(identity) is not None

    def subscribe(self, subscription: Subscription) -> None:
        """Add a subscription; refuses an id that any shard has."""
        self._enter(self._home(subscription.id) or self._place(subscription), subscription)

    def replace(self, subscription: Subscription) -> None:
        """Have a subscription in the place of another of its id, or refuse it and leave that one.

        It goes to another shard unless all events meet the one where it is, and its node is there.
        """
        home = piece = self._known(subscription.id)
        if home.route is not None or (self.graph and not home.has_node(subscription.node)):
            piece = self._place(subscription)
        if piece is home:
            SingleEngine(piece.engine).replace(subscription)
            piece.route = None
            return
        self._enter(piece, subscription)
        home.engine.unsubscribe(subscription.id)
        home.count -= 1

    def _enter(self, piece: _ShardEngine, subscription: Subscription) -> None:
        piece.engine.backend.subscribe(subscription)
        self._type = type(subscription.id)
        piece.count += 1
        piece.route = None
        self._note(subscription.id, piece)

    def unsubscribe(self, identity: Id) -> None:
        """Remove a subscription; refuses one that is not there."""
        piece = self._known(identity)
        piece.engine.unsubscribe(identity)
        piece.count -= 1
        self._note(identity, None)

    def set_score(self, identity: Id, score: Score) -> None:
        """Give a subscription another score."""
        self._known(identity).engine.set_score(identity, score)

    def set_weights(self, identity: Id, weights: Weights | None) -> None:
        """Give the clauses of a subscription other weights."""
        self._known(identity).engine.set_weights(identity, weights)

    def change_graph(self, change: Callable[[GraphIndex], None]) -> None:
        """Change nodes and edges of a graph in one piece; refuses to in shards.

        A node is on all shards or on one, by what it led to when they were cut, and what leads to a shard was
        proved of the filters on the way: a change may undo either.
        """
        if self._outer is not None:
            raise GraphError(
                "the graph is cut into shards, and its nodes and edges stay as they are: compile it again "
                "with the change, or in one piece to change it live"
            )
        (piece,) = self._pieces
        change(piece.engine.graph)
        # With a node go subscriptions that hang nowhere else, and one may come.
        piece.count = len(piece.engine)

    def _home(self, identity: Id) -> _ShardEngine | None:
        """Find the shard that has an id, if one does."""
        if len(self._pieces) == 1:
            return self._pieces[0]
        if identity in self._moved:
            return self._moved[identity]
        return next((piece for piece in self._pieces if piece.had(identity)), None)

    def _known(self, identity: Id) -> _ShardEngine:
        """Find the shard that has an id; whichever does not have it says so itself."""
        return self._home(identity) or self._pieces[0]

    def _place(self, subscription: Subscription) -> _ShardEngine:
        """Choose a shard for a new one: that all events meet, with the fewest, and that has its node."""
        if self._type is not None and type(subscription.id) is not self._type:
            wanted = "whole numbers" if self._type is int else "text"
            raise SubscriptionError(f"id {subscription.id!r} has the wrong type: ids here are {wanted}")
        some = self._pieces
        if self.graph:
            # A node that is nowhere is refused by whichever is asked.
            some = [piece for piece in some if piece.has_node(subscription.node)] or some
        return min(some, key=lambda piece: (piece.route is not None, piece.count))

    def _note(self, identity: Id, piece: _ShardEngine | None) -> None:
        if len(self._pieces) == 1:
            return
        if piece is None and not any(each.had(identity) for each in self._pieces):
            del self._moved[identity]
        else:
            self._moved[identity] = piece

    # Saving

    def save(self, path: Path, *, source: Mapping[str, object]) -> None:
        """Write a snapshot in as many shards; `source` says what it was built from."""
        outer = self._outer
        if outer is None:
            self._pieces[0].engine.backend.save(path, source=source)
            return
        inside = {
            shard_name(number): partial(piece.engine.backend.save, source=source)
            for number, piece in enumerate(self._pieces)
        }
        counts = {**outer.counts, "subscriptions": len(self)}
        about: dict[str, Any] = {"source": dict(source)}
        routes = self._routes_now()
        if routes is not None:
            about |= routes.about(Sharding(len(self._pieces), **outer.about["sharding"]))
        arrays = {} if routes is None else routes.arrays()
        write_snapshot(path, outer.room, arrays, counts=counts, about=about, inside=inside)

    def _routes_now(self) -> Routes | None:
        """Sum up what leads to each shard."""
        if self._routes is None:
            return None
        found = [piece.route for piece in self._pieces]
        return Routes.of_shards(
            self._routes.content,
            self._routes.path,
            [piece.count for piece in self._pieces],
            [route is None for route in found],
            [[] if route is None else sorted(route.keys) for route in found],
        )


def _taken(events: Events, rows: NDArray[np.int64]) -> Events:
    if isinstance(events, pa.RecordBatch):
        return events.take(rows)
    return [events[row] for row in rows.tolist()]
