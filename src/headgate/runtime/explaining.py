"""One subscription of a snapshot explained, wherever in it that is: for one event, or for many."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from headgate.core.event import JSON, Event
from headgate.core.id_types import fit_id
from headgate.core.likeliest import did_you_mean
from headgate.core.rooms import GRAPH, GRAPH_SHARDS
from headgate.core.snapshot import room_of
from headgate.engine.engine import Engine
from headgate.errors import SubscriptionError
from headgate.graph.explain import NO_PATH, GraphExplanation
from headgate.runtime.questions import graph_places
from headgate.runtime.shards import have_numbers, ids_at, shard_places

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from headgate.core.event import Id
    from headgate.core.ids import Ids
    from headgate.graph.base import Names

_FEW = 20_000
"""Ids among which the likeliest is looked for: of a million it would take seconds."""


def has_graph(place: Path) -> bool:
    """Tell whether a snapshot has a graph."""
    return room_of(place) in {GRAPH, GRAPH_SHARDS}


class Explained(NamedTuple):
    """Why, and the event as it was asked about: with a source of the type that nodes have."""

    verdict: Any
    """A `Verdict`, or a `GraphExplanation`."""
    event: Event


class Explainer:
    """A subscription that is there, in the shard that has it."""

    def __init__(self, engine: Engine, identity: Id, shards: Sequence[Engine] = ()) -> None:
        self.engine = engine
        self.identity = identity
        self._shards = shards

    @classmethod
    def open(cls, place: Path, subscription: Id, *, verify: bool = True) -> Explainer:
        """Open a snapshot; ids that are whole numbers may be given as text. Refuses one that is not there."""
        if not has_graph(place):
            places = shard_places(place)
            found = [ids_at(each) for each in places]
            identity = _typed(subscription, numbered=any(map(len, found)) and have_numbers(found))
            return cls(Engine.open(places[_home(identity, found)], verify=verify), identity)
        engines = [Engine.open(each, verify=verify) for each in graph_places(place)]
        ids = [each.graph.base.names.subscription_ids for each in engines]
        identity = _typed(subscription, numbered=ids[0].numbered)
        return cls(engines[_home(identity, ids)], identity, engines)

    def entered(self, event: Event) -> Event:
        """Return an event as it is asked about: with a source of the type that nodes have."""
        return entering(event, self.engine.graph.base.names)[0] if self._shards else event

    def explain(self, event: Event) -> Explained:
        """Say why an event matches, or why not; with a graph, how it gets there."""
        if not self._shards:
            return Explained(self.engine.explain(event, self.identity), event)
        graph = self.engine.graph
        given, source = entering(event, graph.base.names)
        if source is not None and source not in graph and any(source in each.graph for each in self._shards):
            # A node that leads nowhere is on one shard only.
            return Explained(GraphExplanation(given.id, source, self.identity, NO_PATH), given)
        return Explained(graph.explain(given, self.identity), given)


def entering(event: Event, names: Names) -> tuple[Event, Id | None]:
    """Give an event the source that it names, in the type of the graph's nodes; None if it has none of it."""
    record = event.content_type == JSON and event.source is None
    named = Event.from_row({"id": "", **event.data}) if record else event
    source = None if named.source is None else fit_id(named.source, numbered=names.node_ids.numbered)
    identity = named.id if event.id == "" else event.id
    return replace(event, id=identity, source=named.source if source is None else source), source


def _home(identity: Id, shards: Sequence[Ids]) -> int:
    """Find the shard that has a subscription."""
    for number, ids in enumerate(shards):
        if ids.find(identity) >= 0:
            return number
    known = [str(each) for ids in shards for each in ids] if sum(map(len, shards)) <= _FEW else []
    raise SubscriptionError(f"there is no subscription {identity!r} here{did_you_mean(str(identity), known)}")


def _typed(given: Id, *, numbered: bool) -> Id:
    if not numbered:
        return str(given)
    try:
        return int(given)
    except ValueError:
        raise SubscriptionError(
            f"there is no subscription {given!r} here: the ids of this snapshot are whole numbers"
        ) from None
