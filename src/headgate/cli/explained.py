"""Why a subscription of a snapshot gets an event or not, wherever in the snapshot it is."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from headgate.errors import SnapshotError, SubscriptionError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headgate.contents.kind import Results
    from headgate.core.event import Event, Id
    from headgate.core.ids import Ids
    from headgate.engine.engine import Engine
    from headgate.graph.base import Names
    from headgate.graph.explain import GraphExplanation
    from headgate.ranking.filters.explain import RankExplanation
    from headgate.runtime.questions import Top


class Told(NamedTuple):
    """An answer, for machines and for people."""

    result: dict[str, Any]
    lines: list[str]

    def with_results(self, name: str, found: Results) -> Told:
        """Add what a filter gives besides that it holds."""
        return Told({**self.result, name: found.plain}, [*self.lines, *found.lines])


def explain_subscription(event: Event, snapshot: str, subscription: str, results: int | None = None) -> Told:
    """Explain a subscription; with `results`, list so many of what its filter gives if it matches."""
    from headgate.contents.registry import kind_at

    place = Path(snapshot)
    if has_graph(place):
        way, given, engine = _explain_graph(event, place, subscription)
        matches, identity = way.matches, way.subscription
        told = Told({"matches": matches, **asdict(way)}, way.lines())
    else:
        engine, identity = _without_graph(place, subscription)
        found: Any = engine.explain(event, identity)
        given, matches = event, found.matches
        told = Told(asdict(found), found.lines())
    kind = kind_at(place)
    if results is None or kind.results is None:
        return told
    gives = kind.given(engine, given, identity, results) if matches else kind.given_nothing(results)
    return told.with_results(kind.results, gives)


def explain_rank(event: Event, snapshot: str, subscription: str, top: Top) -> Told:
    """Explain a rank, where one index knows all that compete for it."""
    from headgate.core.snapshot import room_of
    from headgate.engine.engine import Engine
    from headgate.graph.base import ROOM as GRAPH
    from headgate.ranking.filters.index import ROOM as RANKING
    from headgate.runtime.checks import check_ranks

    place = Path(snapshot)
    room = room_of(place)
    check_ranks(place, room, top.mode)
    if room not in {RANKING, GRAPH}:
        raise SnapshotError(
            f"snapshot {snapshot} is in shards, where ranks are not explained: match with --top, or compile "
            "the subscriptions in one piece"
        )
    if room == RANKING:
        engine, identity = _without_graph(place, subscription)
    else:
        engine = Engine.open(place)
        names = engine.graph.base.names
        identity = _identity(subscription, numbered=names.subscription_ids.numbered)
        event, _ = _entering(event, names)
    found = engine.explain_rank(event, identity, top.k, top.mode, factors=top.weighing)
    return Told(_rank_as_json(found), found.lines())


def has_graph(place: Path) -> bool:
    """Tell whether a snapshot has a graph."""
    from headgate.core.snapshot import room_of
    from headgate.graph.base import ROOM as GRAPH
    from headgate.graph.build.sharding import ROOM as SHARDS

    return room_of(place) in {GRAPH, SHARDS}


def _without_graph(place: Path, subscription: str) -> tuple[Engine, Id]:
    """Open a snapshot, or the shard that has the subscription; returns its id in the type that ids have."""
    from headgate.core.snapshot import room_of
    from headgate.engine.engine import Engine
    from headgate.ranking.filters.base import ROOM as RANKING
    from headgate.runtime.shards import have_numbers, ids_at, shard_places

    places = shard_places(place)
    ids = [ids_at(each, ranked=room_of(each) == RANKING) for each in places]
    identity = _identity(subscription, numbered=any(map(len, ids)) and have_numbers(ids))
    return Engine.open(places[_home(identity, ids)]), identity


def _explain_graph(event: Event, snapshot: Path, subscription: str) -> tuple[GraphExplanation, Event, Engine]:
    """Explain how an event gets through a graph, on the shard that has the subscription."""
    from headgate.engine.engine import Engine
    from headgate.graph.explain import NO_PATH, GraphExplanation
    from headgate.runtime.checks import graph_places

    engines = [Engine.open(place) for place in graph_places(snapshot)]
    names = engines[0].graph.base.names
    given, source = _entering(event, names)
    identity = _identity(subscription, numbered=names.subscription_ids.numbered)
    engine = engines[_home(identity, [each.graph.base.names.subscription_ids for each in engines])]
    graph = engine.graph
    if source is not None and source not in graph and any(source in each.graph for each in engines):
        # A node that leads nowhere is on one shard only.
        return GraphExplanation(given.id, source, identity, NO_PATH), given, engine
    return graph.explain(given, identity), given, engine


def _home(identity: Id, shards: Sequence[Ids]) -> int:
    """Find the shard that has a subscription; the first if none has."""
    for number, ids in enumerate(shards):
        if len(ids) and (place := ids.place(identity)) < len(ids) and ids[place] == identity:
            return number
    return 0


def _entering(event: Event, names: Names) -> tuple[Event, Id | None]:
    """Give an event the source that it names, in the type of the graph's nodes; None if it has none of it."""
    from headgate.core.event import JSON, Event
    from headgate.runtime.rows import fit_id

    named = Event.from_row({"id": "", **event.data}) if event.content_type == JSON else event
    source = None if named.source is None else fit_id(named.source, numbered=names.node_ids.numbered)
    return replace(event, id=named.id, source=named.source if source is None else source), source


def _identity(text: str, *, numbered: bool) -> str | int:
    if not numbered:
        return text
    try:
        return int(text)
    except ValueError:
        raise SubscriptionError(
            f"there is no subscription {text!r} here: the ids of this snapshot are whole numbers"
        ) from None


def _rank_as_json(place: RankExplanation) -> dict[str, object]:
    found = asdict(place)
    for name in ("clauses", "enough"):
        if found[name] is not None:
            found[name] = [each._asdict() for each in getattr(place, name)]
    return {"rank": place.rank, "entered": place.entered, "short": place.short, **found}
