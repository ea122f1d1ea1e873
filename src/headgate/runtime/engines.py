"""The subscriptions of a snapshot, live: an engine for each of its shards, or one for all in one piece.

    ask            an event meets the shards that can match it; what they find is put together
    change         an id is on one shard, and is changed there; a new one goes to a shard that all events meet
    save           as many shards again, with what is still known of the events that meet each

What leads to a shard was proved of the subscriptions that it was compiled with. One that comes later is not
among them: from then on every event meets that shard.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headgate.contents.portions import Sharing
from headgate.contents.protocol import take_of
from headgate.contents.registry import content_at
from headgate.core.arguments import check_like, did_you_mean
from headgate.core.event import JSON, SOURCE, Event
from headgate.core.ids import Ids, fit_id, fit_ids
from headgate.core.rooms import FILTER_SHARDS, GRAPH_SHARDS, RANKING_SHARDS
from headgate.core.snapshot import open_snapshot, open_with_inside, room_of, shard_name, write_snapshot
from headgate.core.versions.current import at_current
from headgate.engine.backend import in_slices
from headgate.engine.engine import Engine
from headgate.engine.question import ALL
from headgate.engine.statistics import Statistics
from headgate.errors import GraphError, HeadgateError, SubscriptionError
from headgate.runtime.operations import (
    REPLACE,
    SUBSCRIBE,
    UNSUBSCRIBE,
    UPSERT,
    Put,
    SetScore,
    SetWeights,
    Unsubscribe,
    subscription_id,
)
from headgate.runtime.pieces import PAIRS, Piece, fitted, merged, refused_by_all
from headgate.runtime.rows import SCORE, WEIGHTS
from headgate.runtime.sharding import Sharding
from headgate.runtime.shards import Routes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from headgate.contents.portions import Portion
    from headgate.contents.protocol import Verdict
    from headgate.contents.results import Home
    from headgate.core.event import Id
    from headgate.core.snapshot import Snapshot
    from headgate.core.subscription import Subscription
    from headgate.engine.backend import Backend, Events
    from headgate.engine.counters import Sample
    from headgate.engine.question import Question
    from headgate.runtime.operations import Change
    from headgate.runtime.pieces import Counting

    Column = pa.Array[Any]

_DOING = {
    REPLACE: "replace",
    UNSUBSCRIBE: "take away",
    SCORE: "give a score to",
    WEIGHTS: "give weights to",
}
_FEW = 20_000
"""Ids among which the likeliest is looked for: of a million it would take seconds."""
SHARDED = (GRAPH_SHARDS, RANKING_SHARDS, FILTER_SHARDS)
"""The rooms of snapshots that are cut into shards."""


class Runtime:
    """Subscriptions in one shard or in many, which answer, change and are saved as one engine."""

    def __init__(
        self, pieces: Sequence[Piece], outer: Snapshot | None = None, routes: Routes | None = None
    ) -> None:
        self._pieces = list(pieces)
        self._outer = outer
        self.routes = routes
        """Which events meet which shards, as the snapshot says it; None if all meet all."""
        self._samples: dict[int, Sample] = {}
        self.met = 0
        """How often an event met a shard, since this was opened."""
        self.whole_ids = next((piece.ids.numbered for piece in pieces if len(piece.ids)), None)
        """Whether ids are whole numbers; None if there was none yet."""
        self.numbered = bool(self.whole_ids)
        """Whether ids of the snapshot are whole numbers; if it has none, they are text."""

    @classmethod
    def of(cls, *backends: Backend, whole_ids: bool | None = None) -> Runtime:
        """Take over what was built; `whole_ids` is known of more than it may hold."""
        made = cls([Piece(each) for each in backends])
        if whole_ids is not None:
            made.whole_ids = whole_ids
        return made

    @classmethod
    def open(cls, path: Path, *, only: Sequence[int] | None = None, verify: bool = True) -> Runtime:
        """Open a snapshot, in one piece or in shards; `only` some of them, to be asked and not changed."""
        return at_current(path, lambda found: cls._open(found, only, verify=verify))

    @classmethod
    def _open(cls, path: Path, only: Sequence[int] | None, *, verify: bool) -> Runtime:
        if room_of(path) not in SHARDED:
            return cls([Piece.open(path, verify=verify)])
        return open_with_inside(path, lambda found: cls._open_shards(found, only, verify=verify))

    @classmethod
    def _open_shards(cls, path: Path, only: Sequence[int] | None, *, verify: bool) -> Runtime:
        outer = open_snapshot(path, room_of(path), verify=verify)
        routes = Routes.read(path, outer.room, content_at(path))
        count = outer.counts["shards"]
        engines = [
            Piece.open(
                path / shard_name(number),
                None if routes is None else routes.route(number),
                verify=verify,
            )
            for number in (range(count) if only is None else only)
        ]
        return cls(engines, outer, routes)

    def __len__(self) -> int:
        """Count the subscriptions."""
        return sum(map(len, self._pieces))

    @property
    def backends(self) -> list[Backend]:
        """List what stands behind each shard."""
        return [piece.backend for piece in self._pieces]

    @property
    def _graphs(self) -> list[Piece]:
        return [piece for piece in self._pieces if piece.routed]

    @property
    def graph(self) -> bool:
        """Tell whether there is a graph."""
        return bool(self._graphs)

    @property
    def numbered_nodes(self) -> bool:
        """Tell whether ids of nodes are whole numbers."""
        return self._graphs[0].backend.graph.base.names.node_ids.numbered

    # Asking

    def refusals(self, sources: Column) -> list[str | None]:
        """Say why sources of events are refused, as they were given; None where one is a node here."""
        batch = pa.RecordBatch.from_arrays([fit_ids(sources, numbered=self.numbered_nodes)], names=[SOURCE])
        reasons = refused_by_all(batch, (piece.backend.graph.sources for piece in self._graphs))
        if batch.column(0).null_count > sources.null_count:
            for row, reason in enumerate(reasons):
                if reason is not None and sources[row].is_valid:
                    reasons[row] = (
                        f"source {sources[row].as_py()!r} is not a node of the graph: give the id of one"
                    )
        return reasons

    def filter(self, identity: Id) -> str | None:
        """Return the filter of a subscription; None if it has none of its own."""
        return self._known(identity).backend.plain(identity)

    def statistics(self) -> Statistics:
        """Return counters for the subscriptions that are here."""
        return Statistics(self.built)

    def statistics_of_part(self) -> Statistics:
        """Return counters for some of the events; which are measured goes on from those before."""
        return Statistics(self.built, self._samples)

    @property
    def built(self) -> list[Ids]:
        """List the ids of the snapshot, by shard."""
        return [piece.ids for piece in self._pieces]

    @property
    def ids(self) -> list[Ids]:
        """List the ids of the subscriptions that are here now, by shard."""
        return [Ids.of(piece.backend.ids) for piece in self._pieces]

    def ask(
        self, events: Events, ids: Column, question: Question = ALL, counting: Counting | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Ask for all matches of events, or the best of each, in portions; `ids` stand for theirs.

        Sources that are no nodes, or none of the shards that are here, lead nowhere: `refusals` tells them.
        The best of an event are all in one portion, unless what they give is large.
        """
        find = partial(self.portions, ids=ids, question=question, counting=counting)
        return question.batches(find, events, ids, self._pieces[0].backend, self._homes)

    def _homes(self, ids: Sequence[Id]) -> Iterator[Home | None]:
        """Find the filters of subscriptions on their shards."""
        for identity in ids:
            yield from self._known(identity).backend.homes([identity])

    def portions(
        self, events: Events, ids: Column, question: Question = ALL, counting: Counting | None = None
    ) -> Iterator[Portion]:
        """Ask the same, for places: all matches shard by shard, the best of all shards together."""
        if self.graph:
            events = fitted(events, numbered=self.numbered_nodes)
        size = min(piece.backend.at_once(question.top, PAIRS) for piece in self._pieces)
        if question.top is not None:
            size = max(1, size // len(self._pieces))
        for begin, some, own in in_slices(events, ids, size):
            for portion in self._ask(some, own, question, counting):
                yield portion.moved(begin)

    def _ask(
        self, events: Events, ids: Column, question: Question, counting: Counting | None
    ) -> Iterator[Portion]:
        # Shards of one memory encode events together.
        sharing, top = Sharing(), question.top
        best: list[Portion] = []
        names = ids if counting is None or counting.names is None else counting.names.take(ids)
        for piece in self._pieces:
            with sharing:
                rows = piece.met(events, top)
            self.met += len(rows)
            if not len(rows):
                continue
            met, own = (events, ids) if len(rows) == len(events) else (take_of(events, rows), ids.take(rows))
            answers = sharing.each(piece.backend.ask(met, own, question, PAIRS))
            portions = (each.among(rows) for each in answers)
            if top is not None and len(self._pieces) > 1:
                best += portions
            elif counting is None:
                yield from portions
            else:
                yield from counting.statistics.counting(portions, names)
                counting.statistics.measure(piece.backend, met)
        if best:
            assert top is not None
            portion = merged(best, top, top.wanted(events))
            if counting is not None:
                counting.statistics.add(portion, names)
            yield portion

    # Explaining

    def named(self, identity: Id) -> Id:
        """Take the id of a subscription that is here; one that is a whole number may be given as text."""
        try:
            typed: Id = int(identity) if self.numbered else str(identity)
        except ValueError:
            raise SubscriptionError(
                f"there is no subscription {identity!r} here: the ids of this snapshot are whole numbers"
            ) from None
        if typed not in self:
            known = [str(each) for ids in self.built for each in ids] if len(self) <= _FEW else []
            raise SubscriptionError(
                f"there is no subscription {typed!r} here{did_you_mean(str(typed), known)}"
            )
        return typed

    def engine_with(self, identity: Id) -> Engine:
        """Return the shard that has a subscription, as an engine."""
        return Engine(self._known(identity).backend)

    def entered(self, event: Event) -> Event:
        """Return an event as it is asked about: with a source of the type of nodes."""
        if not self.graph:
            return event
        record = event.content_type == JSON and event.source is None
        named = Event.from_row({"id": "", **event.data}) if record else event
        identity = named.id if event.id == "" else event.id
        if named.source is None:
            return replace(event, id=identity)
        fitted_source = fit_id(named.source, numbered=self.numbered_nodes)
        return replace(event, id=identity, source=named.source if fitted_source is None else fitted_source)

    def explain(self, event: Event, identity: Id) -> Verdict:
        """Say why an event matches a subscription, or why not; with a graph, how it gets there."""
        backend = self._known(identity).backend
        if not self.graph:
            return backend.explain(event, identity)
        event = self.entered(event)
        # A node that leads nowhere is on one shard only.
        graphs = [piece.backend.graph for piece in self._graphs]
        source = event.source
        from_elsewhere = (
            source is not None and source not in backend.graph and any(source in each for each in graphs)
        )
        return backend.graph.explain(event, identity, from_elsewhere=from_elsewhere)

    # Changing

    def __contains__(self, identity: Id) -> bool:
        """Tell whether a subscription is there."""
        return self._home(identity) is not None

    def _home(self, identity: Id) -> Piece | None:
        """Find the shard that has an id, if one does."""
        return next((piece for piece in self._pieces if identity in piece.backend), None)

    def _known(self, identity: Id) -> Piece:
        """Find the shard that has an id; whichever does not have it says so itself."""
        return self._pieces[0] if len(self._pieces) == 1 else self._home(identity) or self._pieces[0]

    def apply(self, change: Change) -> str:
        """Do a change, or refuse it and change nothing; returns the operation, what was meant by `upsert`."""
        identity, op = subscription_id(change), change.op
        if identity is None:
            self._change_graph(change)
            return op
        if self.whole_ids is not None:
            check_like(identity, numbered=self.whole_ids)
        if op == UPSERT:
            op = REPLACE if identity in self else SUBSCRIBE
        elif op == REPLACE:
            self._check_there(op, identity)
        try:
            match change:
                case Put(_, subscription):
                    self._put(subscription, op)
                case Unsubscribe():
                    self._known(identity).unsubscribe(identity)
                case SetScore(_, score):
                    self._known(identity).backend.set_score(identity, score)
                case SetWeights(_, weights):
                    self._known(identity).backend.set_weights(identity, weights)
        except HeadgateError:
            # Only then is it asked what is there: a graph has to look for it.
            self._check_there(op, identity)
            raise
        return op

    def _check_there(self, op: str, identity: Id) -> None:
        """Refuse to subscribe an id that is there, and to do anything else to one that is not."""
        there = identity in self
        if op == SUBSCRIBE and there:
            raise SubscriptionError(f"id {identity!r} is subscribed already: use the op 'replace'") from None
        if op != SUBSCRIBE and not there:
            raise SubscriptionError(f"there is no subscription {identity!r} to {_DOING[op]}") from None

    def _put(self, wanted: Subscription, op: str) -> None:
        """Add a subscription, or have it in the place of another.

        It stays on its shard unless all events meet another one only, or its node is not there.
        """
        if wanted.node is not None and not self.graph:
            raise SubscriptionError(
                f"subscription {wanted.id!r} is attached to node {wanted.node!r}, and there is no graph "
                "here: leave `node` out"
            )
        home = self._known(wanted.id) if op == REPLACE or len(self._pieces) == 1 else self._home(wanted.id)
        piece = home
        if home is None or (op == REPLACE and (home.route is not None or not self._fits(home, wanted))):
            piece = self._place(wanted)
        assert piece is not None
        if op == REPLACE and piece is home:
            piece.replace(wanted)
            return
        piece.subscribe(wanted)
        self.whole_ids = isinstance(wanted.id, int)
        if op == REPLACE and home is not None:
            home.unsubscribe(wanted.id)

    def _fits(self, piece: Piece, wanted: Subscription) -> bool:
        """Tell whether a subscription may be in a piece, by its node."""
        if not piece.routed:
            return wanted.node is None
        if wanted.node is None or len(self._graphs) == 1:
            return wanted.node is not None
        # Nodes of a graph in shards never change: what it was numbered with knows them all.
        return piece.backend.graph.base.find(wanted.node) >= 0

    def _place(self, wanted: Subscription) -> Piece:
        """Choose a shard for a new one: that all events meet, with the fewest, and that has its node."""
        # A node that is nowhere is refused by whichever is asked.
        some = [piece for piece in self._pieces if self._fits(piece, wanted)] or self._pieces
        return min(some, key=lambda piece: (piece.route is not None, len(piece)))

    def _change_graph(self, change: Change) -> None:
        """Change nodes and edges of a graph in one piece; refuses to in shards.

        A node is on all shards or on one, by what it led to when they were cut, and what leads to a shard was
        proved of the filters on the way: a change may undo either.
        """
        if not self.graph:
            raise GraphError(
                f"there is no graph here for the op {change.op!r}: compile the subscriptions with nodes and "
                "edges"
            )
        if self._outer is not None:
            raise GraphError(
                "the graph is cut into shards, and its nodes and edges stay as they are: compile it again "
                "with the change, or in one piece to change it live"
            )
        (piece,) = self._graphs
        piece.change_graph(change)

    # Saving

    def save(self, path: Path, *, source: Mapping[str, object]) -> None:
        """Write a snapshot in as many shards; `source` says what it was built from."""
        outer = self._outer
        if outer is None:
            self._pieces[0].backend.save(path, source=source)
            return
        inside = {
            shard_name(number): partial(piece.backend.save, source=source)
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
        if self.routes is None:
            return None
        routes = [piece.route for piece in self._pieces]
        return Routes.of_shards(
            self.routes.content,
            self.routes.path,
            [*map(len, self._pieces)],
            [route is None for route in routes],
            [[] if route is None else sorted(route.keys) for route in routes],
        )
