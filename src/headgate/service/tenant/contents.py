"""What the index of a tenant is built of, and the shape that it needs.

    shape      the kinds of content, whether anything is ranked, whether there is a graph

An engine has the shape that it was built with. A change that needs a wider one has the engine built anew,
of what is stored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from headgate.contents.kind import FilterSettings
from headgate.contents.registry import contents_of, kind_of
from headgate.core.event import JSON
from headgate.core.rooms import MIXED_SIGN, RECORDS
from headgate.engine.engine import Engine
from headgate.errors import GraphError, SubscriptionError
from headgate.runtime.operations import AddEdge, AddNode, Put, Unsubscribe

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from headgate.core.subscription import Subscription
    from headgate.graph.model import Edge, Node
    from headgate.runtime.operations import Change


class Shape(NamedTuple):
    """What an engine must be able to do."""

    kinds: frozenset[str] = frozenset({RECORDS})
    ranked: bool = False
    graph: bool = False

    @classmethod
    def of(cls, engine: Engine) -> Shape:
        """Return what an engine can do."""
        kinds = frozenset(engine.backend.room.room_name.split(MIXED_SIGN))
        return cls(kinds, _has_clauses(engine), engine.backend.routed)

    def with_subscription(self, wanted: Subscription) -> Shape:
        """Return the shape that has room for a subscription, too."""
        ranked = wanted.weights is not None or (wanted.score != 0 and not self.graph)
        return Shape(self.kinds | _kinds(wanted.dialect), self.ranked or ranked, self.graph)

    def with_filter(self, dialect: str | None) -> Shape:
        """Return the shape that has a graph with such a filter, too."""
        kinds = self.kinds if dialect is None else self.kinds | _kinds(dialect)
        return Shape(kinds, self.ranked, graph=True)

    def with_change(self, change: Change) -> Shape:
        """Return the shape in which a change can be made."""
        match change:
            case Put(_, wanted):
                return self.with_subscription(wanted)
            case AddNode(part) | AddEdge(part):
                return self.with_filter(None if part.filter is None else part.dialect)
        return self

    @property
    def types(self) -> frozenset[str]:
        """Return the content types that there are filters for."""
        kinds = [kind_of(name) for name in self.kinds]
        types = {name for kind in kinds for name in kind.types.values()}
        return frozenset(types | {JSON} if any(kind.rows for kind in kinds) else types)


class Shapes(NamedTuple):
    """What both engines must be able to do: of what hangs at no node, and of the graph."""

    alone: Shape
    routed: Shape | None = None

    def with_change(self, change: Change) -> Shapes:
        """Return the shapes in which a change can be made."""
        if isinstance(change, Put) and change.subscription.node is None:
            return self._replace(alone=self.alone.with_change(change))
        if self.routed is not None:
            return self._replace(routed=self.routed.with_change(change))
        return self if isinstance(change, Put | Unsubscribe) else self._replace(routed=Shape(graph=True))


class Contents(NamedTuple):
    """All that an index is built of."""

    subscriptions: Sequence[Subscription]
    nodes: Sequence[Node] = ()
    edges: Sequence[Edge] = ()
    settings: FilterSettings = FilterSettings()
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

    def split(self) -> list[Contents]:
        """Tell apart what hangs at no node, and the graph if there is one."""
        if not self.nodes:
            if self.edges:
                raise GraphError("there are edges and no nodes")
            return [self]
        free = [each for each in self.subscriptions if each.node is None]
        hung = [each for each in self.subscriptions if each.node is not None]
        return [self._replace(subscriptions=free, nodes=(), edges=()), self._replace(subscriptions=hung)]

    def engine(self, on_error: str) -> Engine:
        """Index all of it, or what can be."""
        shape = self.shape
        graph: dict[str, Any] = {"nodes": self.nodes, "edges": self.edges} if shape.graph else {}
        said = self.settings.said
        known = {name: getattr(self.settings, name) for name in said if _concerns(name, shape.kinds)}
        return Engine.build(self.subscriptions, ranked=shape.ranked, on_error=on_error, **graph, **known)


def _kinds(dialect: str) -> frozenset[str]:
    content = contents_of([dialect])
    return frozenset({content} if content else ())


def _concerns(setting: str, kinds: Iterable[str]) -> bool:
    return any(setting in kind_of(name).settings for name in kinds)


def _has_clauses(engine: Engine) -> bool:
    """Tell whether clauses are indexed; a graph ranks by scores without them."""
    try:
        engine.backend.relaxed()
    except SubscriptionError:
        return False
    return True
