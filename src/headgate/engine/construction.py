"""How an engine comes to what stands behind it: built of subscriptions, or opened from a snapshot."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from headgate.contents.refusing import made_of
from headgate.contents.registry import (
    contents_of,
    is_content,
    kind_of,
    quoted,
    room_at,
    room_of_content,
    strange,
    titles,
    titles_of,
)
from headgate.core.rooms import CLAUSES, GRAPH, RANKING
from headgate.core.snapshot import is_snapshot, open_with_inside, room_of
from headgate.core.versions.current import called
from headgate.engine.filters import PlainFilters, RankedFilters
from headgate.engine.graph_filters import GraphFilters
from headgate.engine.refusals import RefusedSubscription, check_node, ids_checked, named
from headgate.errors import GraphError, HeadgateError, SnapshotError, SubscriptionError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from headgate.contents.kind import FilterSettings
    from headgate.contents.protocol import ContentRoom
    from headgate.core.subscription import Subscription
    from headgate.engine.backend import Backend
    from headgate.graph.model import Edge, Node


class Parts(NamedTuple):
    """What an engine is built of besides subscriptions."""

    nodes: Sequence[Node] | None
    edges: Sequence[Edge]
    wanted: FilterSettings

    @property
    def filtered(self) -> list[Node | Edge]:
        """List what may have a filter."""
        return [*(self.nodes or ()), *self.edges]


def build(subscriptions: Sequence[Subscription], parts: Parts, *, ranked: bool | None) -> Backend:
    """Index subscriptions, alone or in a graph; `ranked` is found out if it is not said."""
    try:
        return _build(subscriptions, parts, _room(subscriptions, parts), ranked=ranked)
    except HeadgateError as error:
        if not error.refused:
            raise
        refused = {each.id: error.refused[each.id] for each in subscriptions if each.id in error.refused}
        first = next(iter(refused))
        told = named(refused[first], first)
        told.refused = refused
        raise told from None


def _build(
    subscriptions: Sequence[Subscription], parts: Parts, room: ContentRoom, *, ranked: bool | None
) -> Backend:
    weighed = any(each.weights is not None for each in subscriptions)
    if parts.nodes is None:
        _check_without_graph(subscriptions, parts.edges)
        if ranked is None:
            ranked = weighed or any(each.score != 0 for each in subscriptions)
        if not ranked:
            return PlainFilters(room.build(subscriptions), room)
        from headgate.ranking.filters.index import RankedIndex

        return RankedFilters(RankedIndex.build(subscriptions, room=room), room)
    from headgate.graph.index import GraphIndex

    graph = GraphIndex.build(parts.nodes, parts.edges, subscriptions, room=room)
    if not (weighed if ranked is None else ranked):
        return GraphFilters(graph, room)
    from headgate.engine.reached import ReachedClauses

    return GraphFilters(graph, room, ReachedClauses.build(parts.nodes, subscriptions, room=room))


def build_rest(
    rows: Sequence[Subscription | RefusedSubscription], parts: Parts, *, ranked: bool | None
) -> tuple[Backend, list[RefusedSubscription]]:
    """Index the subscriptions that are not refused; returns those that are, too."""
    taken, refused = ids_checked(rows)
    while True:
        try:
            backend = build([each for _, each in taken.values()], parts, ranked=ranked)
        except HeadgateError as error:
            if not error.refused:
                raise
            for identity, why in error.refused.items():
                row, _ = taken.pop(identity)
                refused.append(RefusedSubscription(row, identity, str(named(why, identity))))
        else:
            return backend, sorted(refused, key=lambda each: each.row)


def _check_without_graph(subscriptions: Sequence[Subscription], edges: Sequence[Edge]) -> None:
    if edges:
        raise GraphError("there are edges and no nodes: give both, or neither")
    made_of(subscriptions, lambda row: check_node(row, routed=False))


def open_at(path: Path, *, verify: bool) -> Backend:
    """Open a snapshot, with a graph or without, ranked or not, of any kind of content."""
    kind = room_of(path)
    if kind not in {GRAPH, RANKING} and not is_content(kind):
        raise SnapshotError(
            f"snapshot {called(path)} is a snapshot of {kind!r}: give one of {titles()}, of a ranking, or of "
            "a graph in one piece"
        )
    room = room_at(path)
    if kind == GRAPH:
        return open_with_inside(path, lambda place: _open_graph(place, room, verify=verify))
    if kind == RANKING:
        from headgate.ranking.filters.index import RankedIndex

        return RankedFilters(RankedIndex.open(path, room=room, verify=verify), room)
    return PlainFilters(room.open(path, verify=verify), room)


def _open_graph(path: Path, room: ContentRoom, *, verify: bool) -> Backend:
    from headgate.graph.index import GraphIndex

    clauses = None
    if is_snapshot(path / CLAUSES):
        from headgate.ranking.filters.clause_index import ClauseIndex

        clauses = ClauseIndex.open(path / CLAUSES, room=room, verify=verify)
    return GraphFilters(GraphIndex.open(path, room=room, verify=verify), room, clauses)


def _room(subscriptions: Iterable[Subscription | Node | Edge], parts: Parts) -> ContentRoom:
    """Find the kinds that the dialects of filters ask for; without any, their settings say."""
    filtered = (*subscriptions, *parts.filtered)
    dialects = {each.dialect for each in filtered if each.filter is not None}
    content = contents_of(dialects)
    wrong = strange(kind_of(content), parts.wanted)
    if wrong is None:
        return room_of_content(content, parts.wanted)
    owners, settings = wrong
    if content is None:
        return owners[0].room(parts.wanted)
    raise SubscriptionError(
        f"{settings} are for filters of {titles_of(owners)}, and these are {quoted(sorted(dialects))}: leave "
        "them out, or give the filters their dialect"
    )
