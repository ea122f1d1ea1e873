"""How an engine comes to what stands behind it, built of subscriptions or opened, and how it changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple, overload

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
from headgate.core.arguments import check_id, check_like
from headgate.core.rooms import CLAUSES, GRAPH, RANKING
from headgate.core.snapshot import is_snapshot, open_with_inside, room_of
from headgate.core.versions.current import called
from headgate.engine.backend import PlainFilters, RankedFilters
from headgate.engine.inputs import RefusedSubscription, id_of, subscriptions_of
from headgate.errors import FilterError, GraphError, HeadgateError, SnapshotError, SubscriptionError, made_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from headgate.contents.kind import FilterSettings
    from headgate.contents.protocol import ContentRoom
    from headgate.core.event import Id
    from headgate.core.ranks import Score, Weights
    from headgate.core.subscription import Subscription
    from headgate.engine.backend import Backend
    from headgate.engine.statistics import Statistics
    from headgate.graph.model import Edge, Node


RAISE, COLLECT = WAYS = ("raise", "collect")
"""What is done about a subscription that is refused: nothing goes on, or the others do."""


def check_way(on_error: object) -> bool:
    """Refuse a way that there is not; tells whether refusals are collected."""
    if on_error not in WAYS:
        raise SubscriptionError(f"on_error is {on_error!r}: give {' or '.join(map(repr, WAYS))}")
    return on_error == COLLECT


def named(error: HeadgateError, identity: object) -> HeadgateError:
    """Say of which subscription an error is, if it does not say so.

    >>> print(named(FilterError("a subquery is not part of the filter language", "a IN (SELECT 1)", 6), "s7"))
    subscription 's7': a subquery is not part of the filter language, at character 7: a IN (⟪SELECT 1)
    """
    if error.names_it:
        return error
    what = f"subscription {identity!r}"
    made: HeadgateError
    if isinstance(error, FilterError):
        # The place is part of the text already.
        made = FilterError(f"{what}: {error}", "", None)
        made.position = error.position
    else:
        made = type(error)(f"{what}: {error}")
    made.names_it = True
    return made


def add(backend: Backend, subscription: Subscription, *, replacing: bool = False) -> None:
    """Subscribe one; refuses a node where there is no graph, and tells of all that is refused whose it is."""
    try:
        check_node(subscription, routed=backend.routed)
        (backend.replace if replacing else backend.subscribe)(subscription)
    except HeadgateError as error:
        raise named(error, subscription.id) from error


def check_node(subscription: Subscription, *, routed: bool) -> None:
    """Refuse a node that is none, or where there is no graph."""
    node = subscription.node
    if node is not None and (isinstance(node, bool) or not isinstance(node, str | int)):
        raise GraphError(
            f"subscription {subscription.id!r}: node {node!r} is not usable: give text or a whole number"
        )
    if node is not None and not routed:
        raise GraphError(
            f"subscription {subscription.id!r} is attached to node {node!r}, and there is no graph: "
            "give nodes, or leave `node` out"
        )


def ids_checked(
    rows: Sequence[Subscription | RefusedSubscription],
) -> tuple[dict[Any, tuple[int, Subscription]], list[RefusedSubscription]]:
    """Return the subscriptions whose ids can be together, with their rows, and all that are refused."""
    taken: dict[Any, tuple[int, Subscription]] = {}
    refused: list[RefusedSubscription] = []
    for row, each in enumerate(rows):
        if isinstance(each, RefusedSubscription):
            refused.append(each)
            continue
        try:
            _check_beside(each.id, taken)
        except HeadgateError as error:
            refused.append(RefusedSubscription(row, each.id, str(error)))
        else:
            taken[each.id] = row, each
    return taken, refused


def _check_beside(identity: Any, taken: Mapping[Any, object]) -> None:
    check_id(identity)
    if identity in taken:
        raise SubscriptionError(f"id {identity!r} is given twice: the first one is taken")
    check_like(identity, numbered=isinstance(next(iter(taken), identity), int))


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
        named_error = named(refused[first], first)
        named_error.refused = refused
        raise named_error from None


def _build(
    subscriptions: Sequence[Subscription], parts: Parts, room: ContentRoom, *, ranked: bool | None
) -> Backend:
    weighed = any(each.weights is not None for each in subscriptions)
    if parts.nodes is None:
        if parts.edges:
            raise GraphError("there are edges and no nodes: give both, or neither")
        made_of(subscriptions, lambda row: check_node(row, routed=False))
        if ranked is None:
            ranked = weighed or any(each.score != 0 for each in subscriptions)
        if not ranked:
            return PlainFilters(room.build(subscriptions), room)
        from headgate.ranking.filters.index import RankedIndex

        return RankedFilters(RankedIndex.build(subscriptions, room=room), room)
    from headgate.engine.graph_filters import GraphFilters, RankedGraph
    from headgate.graph.index import GraphIndex

    graph = GraphIndex.build(parts.nodes, parts.edges, subscriptions, room=room)
    if not (weighed if ranked is None else ranked):
        return GraphFilters(graph, room)
    return RankedGraph.build(graph, parts.nodes, subscriptions, room)


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
    from headgate.engine.graph_filters import GraphFilters, RankedGraph
    from headgate.graph.index import GraphIndex

    index = GraphIndex.open(path, room=room, verify=verify)
    if not is_snapshot(path / CLAUSES):
        return GraphFilters(index, room)
    from headgate.ranking.filters.clause_index import ClauseIndex

    return RankedGraph(index, room, ClauseIndex.open(path / CLAUSES, room=room, verify=verify))


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


class Updates:
    """The calls of an engine that change it."""

    backend: Backend
    _statistics: Statistics | None = None

    @overload
    def subscribe(self, subscriptions: Any, *, on_error: Literal["raise"] = "raise") -> None: ...

    @overload
    def subscribe(self, subscriptions: Any, *, on_error: Literal["collect"]) -> list[RefusedSubscription]: ...

    def subscribe(self, subscriptions: Any, *, on_error: str = RAISE) -> list[RefusedSubscription] | None:
        """Add a subscription, or some: all of them or, if one is refused, none. They match from now on.

        With `on_error="collect"` the others are added, and those that are refused are returned.

        >>> from headgate import Engine
        >>> engine = Engine.build()
        >>> some = [{"id": "s1", "filter": "age NOT"}, {"id": "s2", "filter": "age > 30"}]
        >>> [(each.row, each.id) for each in engine.subscribe(some, on_error="collect")]
        [(0, 's1')]
        >>> engine.ids
        ['s2']
        """
        refused: list[RefusedSubscription] | None = [] if check_way(on_error) else None
        added: list[Id] = []
        try:
            for row, each in enumerate(subscriptions_of(subscriptions, refused)):
                if isinstance(each, RefusedSubscription):
                    continue
                try:
                    add(self.backend, each)
                except HeadgateError as error:
                    if refused is None:
                        raise
                    refused.append(RefusedSubscription(row, each.id, str(error)))
                else:
                    added.append(each.id)
        except HeadgateError:
            for identity in added:
                self.backend.unsubscribe(identity)
            raise
        if self._statistics is not None:
            for identity in added:
                self._statistics.begin(identity)
        return None if refused is None else sorted(refused, key=lambda each: each.row)

    def unsubscribe(self, identity: Id) -> None:
        """Remove a subscription; it matches no more."""
        own = id_of(identity)
        self.backend.unsubscribe(own)
        if self._statistics is not None:
            self._statistics.begin(own, gone=True)

    def replace(self, subscription: Subscription | Mapping[str, Any]) -> None:
        """Have a subscription in the place of the one of its id; if it is refused, that one stays.

        Whoever asks at this very moment may find neither.

        >>> from headgate import Engine
        >>> engine = Engine.build([{"id": "s1", "filter": "age > 30"}])
        >>> engine.replace({"id": "s1", "filter": "age > 40"})
        >>> engine.match({"age": 35})
        []
        """
        subscriptions = subscriptions_of(subscription)
        if len(subscriptions) != 1:
            raise SubscriptionError(f"{len(subscriptions)} subscriptions are given: give one")
        (wanted,) = subscriptions
        if id_of(wanted.id) not in self.backend:
            raise SubscriptionError(f"there is no subscription {wanted.id!r} here")
        add(self.backend, wanted, replacing=True)
        if self._statistics is not None:
            self._statistics.begin(wanted.id)

    def set_score(self, identity: Id, score: Score) -> None:
        """Give a subscription another score."""
        self.backend.set_score(id_of(identity), score)

    def set_weights(self, identity: Id, weights: Weights | None) -> None:
        """Give the clauses of a subscription other weights."""
        self.backend.set_weights(id_of(identity), weights)

    def compact(self) -> None:
        """Fold all changes into what was built: it is as quick then as if it were built anew."""
        self.backend.compact()
