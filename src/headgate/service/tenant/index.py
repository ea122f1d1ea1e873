"""The index of a tenant's subscriptions: an engine of the shape that they need.

    shape      the kinds of content, whether anything is ranked, whether there is a graph
    change     a row of `runtime.operations`: have a subscription, have none, a node, an edge

An engine has the shape that it was built with. A change that needs a wider one has the engine built anew,
of what is stored. Every other change is made while events are matched.

Applying a change twice does no harm: a snapshot that is written while changes come contains at least those
up to its position, and all after it are applied when it is opened.
"""

from __future__ import annotations

import logging
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.contents.registry import content_at, contents_of, kind_of
from headgate.core.event import JSON
from headgate.core.rooms import MIXED_SIGN, RECORDS
from headgate.core.snapshot import manifest_of
from headgate.core.versions.current import at_current
from headgate.core.versions.replacing import new_version
from headgate.engine.answers import lists_by_place, lists_of
from headgate.engine.engine import Engine
from headgate.engine.inputs import FEEDS, ids_of
from headgate.errors import EventError, HeadgateError, SnapshotError, SubscriptionError
from headgate.runtime.live import SingleEngine, apply
from headgate.runtime.operations import AddEdge, AddNode, Put, RemoveEdge, RemoveNode, Unsubscribe
from headgate.service.tenant.matches import NONE, Matches

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path
    from typing import Any

    from numpy.typing import NDArray

    from headgate.contents.live import FrozenBase
    from headgate.core.event import Event, Id
    from headgate.core.subscription import Subscription
    from headgate.graph.model import Edge, Node
    from headgate.runtime.operations import Change
    from headgate.service.tenant.names import Names

_LOG = logging.getLogger("headgate.service")
_POSITION = "position"
_TOGETHER = 8
"""Events from which on it is cheaper to match them together."""


class Shape(NamedTuple):
    """What an engine must be able to do."""

    kinds: frozenset[str] = frozenset({RECORDS})
    ranked: bool = False
    graph: bool = False

    def with_subscription(self, wanted: Subscription) -> Shape:
        """Return the shape that has room for a subscription, too."""
        ranked = wanted.weights is not None or (wanted.score != 0 and not self.graph)
        return Shape(self.kinds | _kinds(wanted.dialect), self.ranked or ranked, self.graph)

    def with_filter(self, dialect: str | None) -> Shape:
        """Return the shape that has a graph with such a filter, too."""
        kinds = self.kinds if dialect is None else self.kinds | _kinds(dialect)
        return Shape(kinds, self.ranked, graph=True)


def _kinds(dialect: str) -> frozenset[str]:
    content = contents_of([dialect])
    return frozenset({content} if content else ())


class Contents(NamedTuple):
    """All that an engine is built of."""

    subscriptions: Sequence[Subscription]
    nodes: Sequence[Node] = ()
    edges: Sequence[Edge] = ()
    settings: Mapping[str, Any] = MappingProxyType({})
    """Arguments of `Engine.build`: the taxonomy, namespaces, what is done about filters without an index."""
    ranked: bool = False
    """Whether clauses are indexed although no subscription has weights."""

    @property
    def shape(self) -> Shape:
        """Return what an engine of these must be able to do."""
        shape = Shape(ranked=self.ranked, graph=bool(self.nodes))
        parts: list[Node | Edge] = [*self.nodes, *self.edges]
        for part in parts:
            shape = shape.with_filter(None if part.filter is None else part.dialect)
        for each in self.subscriptions:
            shape = shape.with_subscription(each)
        return shape


class Index:
    """An engine, changed by one thread and asked by any."""

    def __init__(self, engine: Engine, shape: Shape) -> None:
        self.engine = engine
        self.shape = shape
        self._target = SingleEngine(engine)
        kinds = [kind_of(name) for name in shape.kinds]
        self._records = any(kind.rows for kind in kinds)
        self._types = frozenset(name for kind in kinds for name in kind.types.values())
        self._feeds = not FEEDS.isdisjoint(self._types)
        self._numbers: tuple[FrozenBase, NDArray[np.uint32] | None] | None = None

    @classmethod
    def build(cls, contents: Contents) -> Index:
        """Index all of it."""
        shape = contents.shape
        engine = _engine(contents, shape)
        return cls(engine, _known(shape, engine))

    @classmethod
    def collect(cls, contents: Contents) -> tuple[Index, dict[Id, str]]:
        """Index what can be; returns the reasons for the rest, by id."""
        shape = contents.shape
        engine = _engine(contents, shape, on_error="collect")
        reasons = {each.id: each.reason for each in engine.refused if each.id is not None}
        return cls(engine, _known(shape, engine)), reasons

    @classmethod
    def open(cls, place: Path) -> tuple[Index, int] | None:
        """Open the newest snapshot, with the position of changes that it contains; None if there is none."""
        if not place.exists():
            return None
        try:
            engine = Engine.open(place, verify=False)
            noted = at_current(place, manifest_of).get("changes") or {}
            names = at_current(place, content_at).split(MIXED_SIGN)
        except (SnapshotError, OSError) as error:
            _LOG.warning("the snapshot of the index cannot be used, it is built again: %s", error)
            return None
        shape = Shape(frozenset(names), _has_clauses(engine), engine.backend.routed)
        return cls(engine, shape), int(noted.get(_POSITION, 0))

    def save(self, place: Path, position: int) -> None:
        """Write a snapshot that contains all changes up to a position."""
        with new_version(place, {_POSITION: position}) as staged:
            self.engine.backend.save(staged, source={"service": "subscriptions"})

    # Changing

    def needs(self, change: Change) -> Shape:
        """Return the shape that a change needs; this one's if the change can be made."""
        match change:
            case Put(_, wanted):
                return self.shape.with_subscription(wanted)
            case AddNode(part) | AddEdge(part):
                return self.shape.with_filter(None if part.filter is None else part.dialect)
        return self.shape

    def apply(self, change: Change) -> None:
        """Make a change, or refuse it and change nothing."""
        apply(change, self._target)

    def repeat(self, changes: Iterable[Change]) -> None:
        """Make changes of which some may be contained already; each was accepted once."""
        for change in changes:
            match change:
                case Unsubscribe(identity) if identity not in self.engine:
                    continue
                case AddNode(node) if self._has_node(node.id):
                    self.engine.graph.remove_node(node.id)
                case RemoveNode(identity) if not self._has_node(identity):
                    continue
                case AddEdge(edge):
                    self._remove_edge(edge.source, edge.target)
                case RemoveEdge(source, target):
                    self._remove_edge(source, target)
                    continue
            self.apply(change)

    def _has_node(self, identity: Id) -> bool:
        return self.shape.graph and self.engine.graph.base.find(identity) >= 0

    def _remove_edge(self, source: Id, target: Id) -> None:
        try:
            self.engine.graph.remove_edge(source, target)
        except HeadgateError:
            return

    # Asking

    def looks_at(self, event: Event) -> bool:
        """Tell whether there are filters of the kind that an event is."""
        return self._records if event.content_type == JSON else event.content_type in self._types

    def match_numbers(self, events: Sequence[Event], names: Names) -> Matches:
        """Find the subscriptions that get each event, by number, or why it is refused.

        Only the thread that changes this and the names may ask.
        """
        if len(events) >= _TOGETHER and not self._feeds and all(map(self.looks_at, events)):
            try:
                found = self._by_place(events, names)
            except HeadgateError:
                # One of them was refused, and the others are not to blame.
                found = None
            if found is not None:
                return found
        return Matches.of(
            [each if isinstance(each, EventError) else names.numbers_of(each) for each in self.match(events)]
        )

    def _by_place(self, events: Sequence[Event], names: Names) -> Matches | None:
        """Find matches as places in a base, to which numbers belong; None where there are no such places."""
        parts = self.engine.backend.match_numbers(events)
        if parts is None:
            return self._by_place_with_late(events, names)
        counts, found = np.zeros(len(events), np.int64), [NONE]
        for base, rows, places in parts:
            numbers = self._numbers_of(base, names)
            if numbers is None:
                return None
            counts += np.bincount(rows, minlength=len(events))
            found.append(numbers[places])
        return Matches(counts, np.concatenate(found), {})

    def _by_place_with_late(self, events: Sequence[Event], names: Names) -> Matches | None:
        """Do the same where there are late subscriptions beside the base."""
        parts = self.engine.backend.match_places(events)
        if parts is None:
            return None
        counts, found = np.zeros(len(events), np.int64), [NONE]
        for state, rows, places in parts:
            known, size = self._numbers_of(state.base, names), len(state.base.ids)
            if known is None:
                return None
            late = places >= size
            numbers = known[np.where(late, 0, places)] if size else np.zeros(len(places), np.uint32)
            if late.any():
                ids = [state.tail_ids[place - size] for place in places[late].tolist()]
                given = [names.numbers.get(each, -1) for each in ids]
                if min(given) < 0:
                    return None
                numbers[late] = given
                for row in np.unique(rows[late]).tolist():
                    first, last = np.searchsorted(rows, (row, row + 1))
                    own = numbers[first:last]
                    order = sorted(zip(names.ids_of(own.tolist()), own.tolist(), strict=True))
                    numbers[first:last] = [number for _, number in order]
            counts += np.bincount(rows, minlength=len(events))
            found.append(numbers)
        return Matches(counts, np.concatenate(found), {})

    def _numbers_of(self, base: FrozenBase, names: Names) -> NDArray[np.uint32] | None:
        """Return the numbers of a base's subscriptions; None if one has none.

        A subscription that gets another number is put anew, and is in the base no more.
        """
        if self._numbers is None or self._numbers[0] is not base:
            given = names.numbers
            known = np.array([given.get(each, -1) for each in base.ids[:]], np.int64)
            gone = (known < 0) & (base.removed == 0)
            self._numbers = base, None if gone.any() else known.astype(np.uint32)
        return self._numbers[1]

    def match(self, events: Sequence[Event]) -> list[list[Id] | EventError]:
        """List for each event the subscriptions that get it, or why it is refused."""
        if all(map(self.looks_at, events)):
            return self._match_seen(events)
        rows = [row for row, event in enumerate(events) if self.looks_at(event)]
        found: list[list[Id] | EventError] = [[] for _ in events]
        if rows:
            for row, answer in zip(rows, self._match_seen([events[row] for row in rows]), strict=True):
                found[row] = answer
        return found

    def _match_seen(self, events: Sequence[Event]) -> list[list[Id] | EventError]:
        """List the same for events that there are filters for."""
        if len(events) >= _TOGETHER:
            try:
                return [*self._match_together(events)]
            except HeadgateError:
                # One of them was refused, and the others are not to blame.
                pass
        return [self._match_one(event) for event in events]

    def _match_together(self, events: Sequence[Event]) -> list[list[Id]]:
        """Match events at once. They were read from JSON or are documents: no value of them is foreign."""
        if self._feeds:
            return self.engine.match_events(events)
        found = lists_by_place(self.engine.backend, events)
        return lists_of(self.engine.backend, [(events, ids_of(events))]) if found is None else found

    def _match_one(self, event: Event) -> list[Id] | EventError:
        """Match an event by itself."""
        try:
            return self.engine.match(event) if self._feeds else self.engine.backend.match(event)
        except HeadgateError as error:
            return error if isinstance(error, EventError) else EventError(str(error))


def _engine(contents: Contents, shape: Shape, **more: Any) -> Engine:
    graph: dict[str, Any] = {"nodes": contents.nodes, "edges": contents.edges} if shape.graph else {}
    known = {name: value for name, value in contents.settings.items() if _concerns(name, shape.kinds)}
    return Engine.build(contents.subscriptions, ranked=shape.ranked, **graph, **known, **more)


def _has_clauses(engine: Engine) -> bool:
    """Tell whether clauses are indexed; a graph ranks by scores without them."""
    try:
        engine.backend.relaxed()
    except SubscriptionError:
        return False
    return True


def _known(shape: Shape, engine: Engine) -> Shape:
    """Return a shape with the kinds that an engine really has: those that its filters asked for."""
    return shape._replace(kinds=frozenset(engine.backend.room.room_name.split(MIXED_SIGN)))


def _concerns(setting: str, kinds: Iterable[str]) -> bool:
    return any(setting in kind_of(name).settings for name in kinds)
