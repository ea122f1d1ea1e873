"""The index of a tenant's subscriptions: those that hang at no node, and those in the graph.

    alone     subscriptions without `node`: they get every event that their filter matches
    routed    subscriptions at a node: they get events whose source is a node, and that find a way to theirs

So a tenant that gets its first node loses no match. An event from a source that is no node reaches nobody in
the graph. Changes are made while events are matched.

Applying a change twice does no harm: a snapshot that is written while changes come contains at least those
up to its position, and all after it are applied when it is opened.
"""

from __future__ import annotations

import logging
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from headgate.contents.live import LiveState
from headgate.contents.portions import lists_of
from headgate.core.snapshot import manifest_of
from headgate.core.versions.current import at_current
from headgate.core.versions.replacing import new_version
from headgate.engine.construction import COLLECT, RAISE
from headgate.engine.engine import Engine
from headgate.engine.inputs import FEEDS, ids_of
from headgate.errors import EventError, GraphError, HeadgateError, SnapshotError, SubscriptionError
from headgate.graph.path_cost import DECAY, MINUS
from headgate.runtime.engines import Runtime
from headgate.runtime.operations import Put, Unsubscribe
from headgate.runtime.pieces import Piece, fitted_event
from headgate.service.tenant.contents import Contents, fits, has_clauses, types_of
from headgate.service.tenant.names import NONE, Matches

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path
    from typing import Any

    from numpy.typing import NDArray

    from headgate.contents.kind import Kind
    from headgate.contents.live import FrozenBase
    from headgate.contents.portions import Portion
    from headgate.contents.protocol import Content
    from headgate.core.event import Event, Id
    from headgate.core.ranks import Best
    from headgate.graph.ranked.ranked import RankedMatch
    from headgate.runtime.operations import Change
    from headgate.service.resources import RankBody
    from headgate.service.settings import Quotas
    from headgate.service.storage.store import Store
    from headgate.service.tenant.names import Names

_LOG = logging.getLogger("headgate.service")
_POSITION = "position"
_GRAPH = "graph"
"""What the snapshot of the graph is called, beside that of the others."""
_TOGETHER = 8
"""Events from which on it is cheaper to match them together."""


class Index(Runtime):
    """Both engines as one, changed by one thread and asked by any."""

    def __init__(self, engines: Sequence[Engine]) -> None:
        super().__init__([Piece(each.backend, types=types_of(each)) for each in engines])
        self.engines = tuple(engines)
        """That of subscriptions that hang at no node, and that of the graph if there is one."""
        self._numbers: tuple[FrozenBase, NDArray[np.uint32] | None] | None = None

    @classmethod
    def build(cls, contents: Contents) -> Index:
        """Index all of it."""
        return cls([each.engine(RAISE) for each in contents.split()])

    @classmethod
    def collect(cls, contents: Contents) -> tuple[Index, dict[Id, str]]:
        """Index what can be; returns the reasons for the rest, by id."""
        index = cls([each.engine(COLLECT) for each in contents.split()])
        refused = [each for engine in index.engines for each in engine.refused]
        return index, {each.id: each.reason for each in refused if each.id is not None}

    @classmethod
    def read(cls, place: Path, *, graph: bool) -> tuple[Index, int] | None:
        """Open the newest snapshots, with the position of changes in both; None if one is lacking."""
        places = [place, place.with_name(_GRAPH)] if graph else [place]
        if not all(each.exists() for each in places):
            return None
        try:
            index = cls([Engine.open(each, verify=False) for each in places])
            noted = [at_current(each, manifest_of).get("changes") or {} for each in places]
        except (SnapshotError, OSError) as error:
            _LOG.warning("the snapshot of the index cannot be used, it is built again: %s", error)
            return None
        return index, min(int(each.get(_POSITION, 0)) for each in noted)

    def write(self, place: Path, position: int) -> None:
        """Write snapshots that contain all changes up to a position."""
        for engine, each in reversed([*zip(self.engines, self.places(place), strict=True)]):
            with new_version(each, {_POSITION: position}) as staged:
                engine.backend.save(staged, source={"service": "subscriptions"})

    def places(self, place: Path) -> list[Path]:
        """List where their snapshots are."""
        return [place, place.with_name(_GRAPH)][: len(self.engines)]

    @property
    def routed(self) -> Engine | None:
        """Return the engine of the graph, if there is one."""
        return self.engines[1] if len(self.engines) > 1 else None

    @property
    def ranked(self) -> bool:
        """Tell whether clauses are indexed, so that the best are known by what holds of them."""
        return all(map(has_clauses, self.engines))

    def engine_of(self, identity: Id) -> Engine | None:
        """Return the engine that has a subscription; None if none has."""
        return next((each for each in self.engines if identity in each), None)

    def filters_of(self, kind: Kind) -> Content | None:
        """Return the running filters that one of a kind would be among, at no node; None without any."""
        (content,) = self.engines[0].backend.contents
        contents = (content, *(each.content for each in getattr(content, "members", ())))
        return next((each for each in contents if each.room_name == kind.name), None)

    def comers(self, events: Iterable[Event]) -> Counter[Id]:
        """Count the events that come to each node of the graph."""
        if self.routed is None:
            return Counter()
        graph = self.routed.graph
        entering = (each for each in events if each.source is not None and each.source in graph)
        return Counter(node for each in entering for node in graph.nodes(each))

    # Changing

    def fits(self, change: Change) -> bool:
        """Tell whether a change can be made as this is: for a graph by its engine; any thread may ask."""
        if isinstance(change, Put) and change.subscription.node is None:
            return fits(self.engines[0], change)
        if self.routed is not None:
            return fits(self.routed, change)
        return isinstance(change, Put | Unsubscribe)

    def apply(self, change: Change) -> str:
        """Make a change, or refuse it and change nothing."""
        if self.routed is None and not isinstance(change, Unsubscribe):
            if not isinstance(change, Put):
                raise GraphError("there is no graph here: add a node first")
            if change.subscription.node is not None:
                raise GraphError(
                    f"there is no node {change.subscription.node!r}: add it first, or leave `node` out"
                )
        return super().apply(change)

    def repeat(self, changes: Iterable[Change]) -> None:
        """Make changes of which some may be contained already; each was accepted once."""
        for change in changes:
            if not isinstance(change, Unsubscribe) or change.id in self:
                self.apply(change)

    # Asking

    def match_numbers(self, events: Sequence[Event], names: Names) -> Matches:
        """Find the subscriptions that get each event, by number, or why it is refused.

        Only the thread that changes this and the names may ask.
        """
        portions = self._together(events)
        if portions is not None and len(self.engines) == 1:
            counts, parts = np.zeros(len(events), np.int64), [NONE]
            for portion in portions:
                numbers = self._numbers_at(portion, names)
                if numbers is None:
                    break
                counts += np.bincount(portion.rows, minlength=len(events))
                parts.append(numbers)
            else:
                return Matches(counts, np.concatenate(parts), {})
        lists = self._lists(events, portions)
        return Matches.of(
            [each if isinstance(each, EventError) else names.numbers_of(each) for each in lists]
        )

    def _numbers_at(self, portion: Portion, names: Names) -> NDArray[np.uint32] | None:
        """Return the numbers of matches that are places in a base, and perhaps behind it; None for others."""
        state, places, rows = portion.state, portion.places, portion.rows
        known = self._numbers_of(state.base, names) if isinstance(state, LiveState) else None
        if known is None or not isinstance(state, LiveState):
            return None
        if state.in_order(places):
            return known[places]
        late, size = places >= len(known), len(known)
        numbers = known[np.where(late, 0, places)] if size else np.zeros(len(places), np.uint32)
        given = [names.numbers.get(state.tail_ids[place - size], -1) for place in places[late].tolist()]
        if min(given) < 0:
            return None
        numbers[late] = given
        for row in np.unique(rows[late]).tolist():
            first, last = np.searchsorted(rows, (row, row + 1))
            own = numbers[first:last]
            order = sorted(zip(names.ids_of(own.tolist()), own.tolist(), strict=True))
            numbers[first:last] = [number for _, number in order]
        return numbers

    def _numbers_of(self, base: FrozenBase, names: Names) -> NDArray[np.uint32] | None:
        """Return the numbers of a base's subscriptions; None if one has none.

        A subscription that gets another number is put anew, and is in the base no more.
        """
        if self._numbers is None or self._numbers[0] is not base:
            numbers = names.numbers
            known = np.array([numbers.get(each, -1) for each in base.ids[:]], np.int64)
            gone = (known < 0) & (base.removed == 0)
            self._numbers = base, None if gone.any() else known.astype(np.uint32)
        return self._numbers[1]

    def match(self, events: Sequence[Event]) -> list[list[Id] | EventError]:
        """List for each event the subscriptions that get it, or why it is refused."""
        return self._lists(events, self._together(events))

    def _lists(
        self, events: Sequence[Event], portions: Sequence[Portion] | None
    ) -> list[list[Id] | EventError]:
        if portions is not None:
            return [*lists_of(portions, len(events))]
        return [self._match_one(event) for event in events]

    def _together(self, events: Sequence[Event]) -> list[Portion] | None:
        """Match events at once: no value of them is foreign. None if each is to be matched by itself."""
        if len(events) < _TOGETHER or not FEEDS.isdisjoint({each.content_type for each in events}):
            return None
        try:
            return [*self.portions(events, ids_of(events))]
        except HeadgateError:
            # One of them was refused, and the others are not to blame.
            return None

    def _match_one(self, event: Event) -> list[Id] | EventError:
        """Match an event by itself."""
        ids: list[Any] = []
        event = self._entering(event)
        try:
            for engine in self._met_by(event):
                feed = event.content_type in FEEDS
                ids += engine.match(event) if feed else engine.backend.match(event)
        except HeadgateError as error:
            return error if isinstance(error, EventError) else EventError(str(error))
        return sorted(ids) if len(self.engines) > 1 else ids

    def _entering(self, event: Event) -> Event:
        """Return an event with a source of the type that nodes have."""
        return fitted_event(event, numbered=self.numbered_nodes) if self.graph else event

    def _met_by(self, event: Event) -> list[Engine]:
        """List the engines that have filters of the kind that an event is, and where it enters."""
        pieces = zip(self._pieces, self.engines, strict=True)
        return [
            engine
            for piece, engine in pieces
            if (piece.types is None or event.content_type in piece.types)
            and (not piece.routed or (event.source is not None and event.source in engine.graph))
        ]

    def top(self, event: Event, asked: RankBody) -> list[Best | RankedMatch]:
        """List the best of the subscriptions that get an event."""
        way = (asked.by, asked.decay, asked.hops) != (MINUS, DECAY, False)
        if self.routed is None and way:
            raise SubscriptionError(
                "`by`, `decay` and `hops` are about ways through a graph, and there is none"
            )
        event = self._entering(event)
        best: list[Best | RankedMatch] = []
        for engine in self._met_by(event):
            # No way through a graph leads to those that hang at no node.
            if engine is self.routed:
                best += engine.top(event, **asked.said)
            else:
                best += engine.top(event, asked.k, asked.mode, factors=asked.factors)
        if self.routed is None:
            return best
        return sorted(best, key=lambda each: (-each.value, str(each.subscription)))[: asked.k]


def open_index(store: Store, quotas: Quotas) -> Index:
    """Open the snapshot and make the changes since, or build the index again."""
    graph = bool(store.graph.nodes(most=1))
    opened = None if store.must_build else Index.read(store.index, graph=graph)
    if opened is None:
        return Index.build(Contents.stored(store, quotas))
    index, position = opened
    changes = store.subscriptions.changes(position)
    try:
        if all(map(index.fits, changes)):
            index.repeat(changes)
            return index
    except HeadgateError as error:
        _LOG.warning("changes since the snapshot cannot be applied, the index is built again: %s", error)
    return Index.build(Contents.stored(store, quotas))
