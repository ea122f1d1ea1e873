"""What the index of a tenant is built of, and which changes fit into it.

An engine has the kinds of content that it was built with, and clauses or none, a graph or none. A change that
needs more has the engine built anew, of what is stored.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from headgate.contents.kind import ALLOW, FilterSettings
from headgate.contents.registry import contents_of, kind_of
from headgate.core.event import JSON, TURTLE
from headgate.core.rooms import MIXED_SIGN
from headgate.engine.engine import Engine
from headgate.errors import GraphError, SubscriptionError
from headgate.runtime.operations import AddEdge, AddNode, Put, RemoveEdge, RemoveNode
from headgate.service.storage.graph import edge_of, node_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from headgate.core.subscription import Subscription
    from headgate.graph.model import Edge, Node
    from headgate.runtime.operations import Change
    from headgate.service.settings import Quotas
    from headgate.service.storage.store import Store


RANKED = "ranked"
"""What is kept once somebody asked for the best by what holds of filters."""


class Contents(NamedTuple):
    """All that an index is built of."""

    subscriptions: Sequence[Subscription]
    nodes: Sequence[Node] = ()
    edges: Sequence[Edge] = ()
    settings: FilterSettings = FilterSettings()
    ranked: bool = False
    """Whether clauses are indexed although no subscription has weights."""

    @classmethod
    def stored(cls, store: Store, quotas: Quotas, ids: Iterable[str] | None = None) -> Contents:
        """Return what an index is built of: what is stored and has not ended; some if their ids are given."""
        now = time.time_ns() // 1_000
        rows = store.subscriptions.all() if ids is None else map(store.subscriptions.get, ids)
        alive = [each.indexed for each in rows if each is not None and (each.expires or now + 1) > now]
        graph = store.graph
        nodes, edges = [node_of(each) for each in graph.nodes()], [edge_of(each) for each in graph.edges()]
        text = graph.taxonomy()
        settings = FilterSettings(
            taxonomy=None if text is None else read_taxonomy(text),
            unindexed=ALLOW if quotas.unindexed else None,
        )
        return cls(alive, nodes, edges, settings, bool(store.setting(RANKED)))

    def with_taxonomy(self, taxonomy: Any) -> Contents:
        """Return the same with another taxonomy, or none."""
        return self._replace(settings=replace(self.settings, taxonomy=taxonomy))

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
        parts: list[Subscription | Node | Edge] = [*self.subscriptions, *self.nodes, *self.edges]
        kind = kind_of(contents_of({each.dialect for each in parts if each.filter is not None}))
        known = {name: getattr(self.settings, name) for name in self.settings.said if name in kind.settings}
        routed = bool(self.nodes)
        ranked = self.ranked or any(_ranks(each, routed=routed) for each in self.subscriptions)
        graph: dict[str, Any] = {"nodes": self.nodes, "edges": self.edges} if routed else {}
        return Engine.build(self.subscriptions, ranked=ranked, on_error=on_error, **graph, **known)


def _ranks(wanted: Subscription, *, routed: bool) -> bool:
    """Tell whether a subscription needs clauses; a graph ranks by scores without them."""
    return wanted.weights is not None or (wanted.score != 0 and not routed)


def has_clauses(engine: Engine) -> bool:
    """Tell whether clauses are indexed."""
    try:
        engine.backend.relaxed()
    except SubscriptionError:
        return False
    return True


def types_of(engine: Engine) -> frozenset[str]:
    """Return the content types that there are filters for."""
    kind = kind_of(engine.backend.room.room_name)
    return frozenset({*kind.types.values(), *([JSON] if kind.rows else ())})


def fits(engine: Engine, change: Change) -> bool:
    """Tell whether an engine can make a change as it is."""
    match change:
        case Put(_, part) if _ranks(part, routed=engine.backend.routed) and not has_clauses(engine):
            return False
        case Put(_, part) | AddNode(part) | AddEdge(part):
            content = None if part.filter is None else contents_of([part.dialect])
            return content is None or content in engine.backend.room.room_name.split(MIXED_SIGN)
    return True


def changed(contents: Contents, change: Change) -> Contents:
    """Return what an index is built of, with a change of the graph; a node or an edge may replace another."""
    nodes, edges = list(contents.nodes), list(contents.edges)
    match change:
        case AddNode(node):
            nodes = [*(each for each in nodes if each.id != node.id), node]
        case RemoveNode(identity):
            nodes = [each for each in nodes if each.id != identity]
            edges = [each for each in edges if identity not in {each.source, each.target}]
        case AddEdge(edge):
            edges = [
                *(each for each in edges if (each.source, each.target) != (edge.source, edge.target)),
                edge,
            ]
        case RemoveEdge(source, target):
            edges = [each for each in edges if (each.source, each.target) != (source, target)]
    return contents._replace(nodes=nodes, edges=edges)


def read_taxonomy(text: str) -> Any:
    """Read a taxonomy; refuses what is no Turtle, and statements that no taxonomy has."""
    from headgate.rdf.taxonomy.taxonomy import Taxonomy

    return Taxonomy.read(text, TURTLE)
