"""The indexes of a tenant: one of subscriptions that hang at no node, and one of those in the graph.

    alone     subscriptions without `node`: they get every event that their filter matches
    routed    subscriptions at a node: they get events whose source is a node, and that find a way to theirs

So a tenant that gets its first node loses no match. An event from a source that is no node reaches nobody in
the graph.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from headgate.core.ranks import EXACT
from headgate.errors import EventError, GraphError, HeadgateError, SubscriptionError
from headgate.graph.path_cost import DECAY, MINUS
from headgate.runtime.operations import Put, Unsubscribe
from headgate.service.tenant.index import Contents, Index, Shape
from headgate.service.tenant.matches import Matches

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from headgate.core.event import Event, Id
    from headgate.core.ranks import Best
    from headgate.engine.engine import Engine
    from headgate.graph.ranked.ranked import RankedMatch
    from headgate.runtime.operations import Change
    from headgate.service.tenant.names import Names

_GRAPH = "graph"
"""What the snapshot of the graph is called, beside that of the others."""


class Shapes(NamedTuple):
    """What both engines must be able to do."""

    alone: Shape
    routed: Shape | None


class Ranking(NamedTuple):
    """How the best are asked for."""

    k: int
    mode: str = EXACT
    factors: Mapping[str, float] | None = None
    by: str = MINUS
    decay: float = DECAY
    hops: bool = False


class Indexes:
    """The indexes of a tenant, as one. They are changed by one thread and asked by any."""

    def __init__(self, alone: Index, routed: Index | None) -> None:
        self.alone = alone
        self.routed = routed

    @classmethod
    def build(cls, contents: Contents) -> Indexes:
        """Index all of it."""
        alone, routed = _split(contents)
        return cls(Index.build(alone), None if routed is None else Index.build(routed))

    @classmethod
    def collect(cls, contents: Contents) -> tuple[Indexes, dict[Id, str]]:
        """Index what can be; returns the reasons for the rest, by id."""
        alone, routed = _split(contents)
        first, reasons = Index.collect(alone)
        if routed is None:
            return cls(first, None), reasons
        second, more = Index.collect(routed)
        return cls(first, second), {**reasons, **more}

    @classmethod
    def open(cls, place: Path, *, graph: bool) -> tuple[Indexes, int] | None:
        """Open the newest snapshots, with the position of changes in both; None if one is lacking."""
        alone = Index.open(place)
        routed = Index.open(place.with_name(_GRAPH)) if graph else None
        if alone is None or (graph and routed is None):
            return None
        if routed is None:
            return cls(alone[0], None), alone[1]
        return cls(alone[0], routed[0]), min(alone[1], routed[1])

    def save(self, place: Path, position: int) -> None:
        """Write snapshots that contain all changes up to a position."""
        if self.routed is not None:
            self.routed.save(place.with_name(_GRAPH), position)
        self.alone.save(place, position)

    def places(self, place: Path) -> list[Path]:
        """List where their snapshots are."""
        return [place] if self.routed is None else [place, place.with_name(_GRAPH)]

    @property
    def shape(self) -> Shapes:
        """Return what the engines can do."""
        return Shapes(self.alone.shape, None if self.routed is None else self.routed.shape)

    @property
    def ranked(self) -> bool:
        """Tell whether clauses are indexed, so that the best are known by what holds of them."""
        return all(each.shape.ranked for each in self.parts)

    @property
    def parts(self) -> tuple[Index, ...]:
        """List the indexes that there are."""
        return (self.alone,) if self.routed is None else (self.alone, self.routed)

    @property
    def engine(self) -> Engine:
        """Return the engine of subscriptions that hang at no node."""
        return self.alone.engine

    def engine_of(self, identity: Id) -> Engine | None:
        """Return the engine that has a subscription; None if none has."""
        return next((each.engine for each in self.parts if identity in each.engine), None)

    def __contains__(self, identity: object) -> bool:
        """Tell whether a subscription is indexed."""
        return any(identity in each.engine for each in self.parts)

    def __len__(self) -> int:
        """Count the subscriptions that are indexed."""
        return sum(len(each.engine) for each in self.parts)

    # Changing

    def needs(self, change: Change) -> Shapes:
        """Return the shapes that a change needs; these if the change can be made."""
        alone, routed = self.shape
        if isinstance(change, Put) and change.subscription.node is None:
            return Shapes(self.alone.needs(change), routed)
        if self.routed is not None:
            return Shapes(alone, self.routed.needs(change))
        return Shapes(alone, None if isinstance(change, Put | Unsubscribe) else Shape(graph=True))

    def apply(self, change: Change) -> None:
        """Make a change, or refuse it and change nothing."""
        if not isinstance(change, Put | Unsubscribe):
            self._graph().apply(change)
            return
        if isinstance(change, Unsubscribe):
            home = self.routed if self.routed is not None and change.id in self.routed.engine else self.alone
            home.apply(change)
            return
        home = self.alone if change.subscription.node is None else self._graph(change.subscription.node)
        home.apply(change)
        for other in self.parts:
            if other is not home and change.subscription.id in other.engine:
                other.apply(Unsubscribe(change.subscription.id))

    def repeat(self, changes: Iterable[Change]) -> None:
        """Make changes of which some may be contained already; each was accepted once."""
        for change in changes:
            if isinstance(change, Unsubscribe) and change.id not in self:
                continue
            self.apply(change)

    def _graph(self, node: Id | None = None) -> Index:
        if self.routed is None:
            if node is None:
                raise GraphError("there is no graph here: add a node first")
            raise GraphError(f"there is no node {node!r}: add it first, or leave `node` out")
        return self.routed

    # Asking

    def match_numbers(self, events: Sequence[Event], names: Names) -> Matches:
        """Find the subscriptions that get each event, by number, or why it is refused.

        Only the thread that changes this and the names may ask.
        """
        if self.routed is None:
            return self.alone.match_numbers(events, names)
        found = self.match(events)
        return Matches.of(
            [each if isinstance(each, EventError) else names.numbers_of(each) for each in found]
        )

    def match(self, events: Sequence[Event]) -> list[list[Id] | EventError]:
        """List for each event the subscriptions that get it, or why it is refused."""
        found = self.alone.match(events)
        if self.routed is None:
            return found
        graph = self.routed.engine.graph
        rows = [row for row, event in enumerate(events) if event.source is not None and event.source in graph]
        for row, more in zip(rows, self.routed.match([events[row] for row in rows]), strict=True):
            own = found[row]
            if isinstance(more, EventError):
                found[row] = more
            elif not isinstance(own, EventError) and more:
                found[row] = sorted([*own, *more], key=str)
        return found

    def top(self, event: Event, asked: Ranking) -> list[Best | RankedMatch]:
        """List the best of the subscriptions that get an event."""
        found: list[Best | RankedMatch] = []
        if self.alone.looks_at(event):
            # No way through a graph leads to these.
            found += self.alone.engine.top(event, asked.k, asked.mode, factors=asked.factors)
        if self.routed is None:
            if (asked.by, asked.decay, asked.hops) != (MINUS, DECAY, False):
                raise SubscriptionError(
                    "`by`, `decay` and `hops` are about ways through a graph, and there is none"
                )
            return found
        if (
            self.routed.looks_at(event)
            and event.source is not None
            and event.source in self.routed.engine.graph
        ):
            found += self.routed.engine.top(event, **asked._asdict())
        return sorted(found, key=lambda each: (-each.value, str(each.subscription)))[: asked.k]

    def check_event(self, event: Event) -> None:
        """Refuse an event that cannot be read."""
        for answer in self.match([event]):
            if isinstance(answer, HeadgateError):
                raise answer


def _split(contents: Contents) -> tuple[Contents, Contents | None]:
    """Tell apart what hangs at nodes."""
    if not contents.nodes:
        if contents.edges:
            raise GraphError("there are edges and no nodes")
        return contents, None
    free = [each for each in contents.subscriptions if each.node is None]
    hung = [each for each in contents.subscriptions if each.node is not None]
    return contents._replace(subscriptions=free, nodes=(), edges=()), contents._replace(subscriptions=hung)
