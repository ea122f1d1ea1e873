"""Changes done: to one engine, as a what-if does them, or to what a stream has, by one function.

A change that is refused has changed nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from headgate.errors import GraphError, HeadgateError, SubscriptionError
from headgate.runtime.operations import (
    REPLACE,
    SUBSCRIBE,
    UNSUBSCRIBE,
    UPSERT,
    AddEdge,
    AddNode,
    Put,
    RemoveEdge,
    RemoveNode,
    SetFilter,
    SetScore,
    SetWeights,
    Unsubscribe,
    subscription_id,
)
from headgate.runtime.rows import SCORE, WEIGHTS

if TYPE_CHECKING:
    from collections.abc import Callable

    from headgate.core.event import Id
    from headgate.core.ranks import Score, Weights
    from headgate.core.subscription import Subscription
    from headgate.engine.engine import Engine
    from headgate.graph.index import GraphIndex
    from headgate.runtime.operations import Change


class ChangeTarget(Protocol):
    """What changes are done to. A method that refuses has changed nothing."""

    @property
    def whole_ids(self) -> bool | None:
        """Tell whether ids of subscriptions are whole numbers; None if there are none yet."""

    @property
    def graph(self) -> bool:
        """Tell whether there is a graph."""

    def __contains__(self, identity: Id) -> bool: ...
    def subscribe(self, subscription: Subscription) -> None: ...
    def replace(self, subscription: Subscription) -> None: ...
    def unsubscribe(self, identity: Id) -> None: ...
    def set_score(self, identity: Id, score: Score) -> None: ...
    def set_weights(self, identity: Id, weights: Weights | None) -> None: ...
    def change_graph(self, change: Callable[[GraphIndex], None]) -> None: ...


def apply(change: Change, live: ChangeTarget) -> str:
    """Do a change, or refuse it and change nothing; returns the operation, what was meant by `upsert`."""
    identity = subscription_id(change)
    if identity is None:
        if not live.graph:
            raise GraphError(
                f"there is no graph here for the op {change.op!r}: compile the subscriptions with nodes and "
                "edges"
            )
        live.change_graph(_graph_change(change))
        return change.op
    _check_type(identity, live)
    op = change.op
    if op == UPSERT:
        op = REPLACE if identity in live else SUBSCRIBE
    elif op == REPLACE:
        _check_there(op, identity, live)
    try:
        _do(change, op, live)
    except HeadgateError:
        # Only then is it asked what is there: a graph has to look for it.
        _check_there(op, identity, live)
        raise
    return op


def _do(change: Change, op: str, live: ChangeTarget) -> None:
    if isinstance(change, Put):
        _put(change.subscription, op, live)
    elif isinstance(change, SetScore):
        live.set_score(change.id, change.score)
    elif isinstance(change, SetWeights):
        live.set_weights(change.id, change.weights)
    elif isinstance(change, Unsubscribe):
        live.unsubscribe(change.id)


_DOING = {
    REPLACE: "replace",
    UNSUBSCRIBE: "take away",
    SCORE: "give a score to",
    WEIGHTS: "give weights to",
}


def _check_there(op: str, identity: Id, live: ChangeTarget) -> None:
    """Refuse to subscribe an id that is there, and to do anything else to one that is not."""
    there = identity in live
    if op == SUBSCRIBE and there:
        raise SubscriptionError(f"id {identity!r} is subscribed already: use the op 'replace'") from None
    if op != SUBSCRIBE and not there:
        raise SubscriptionError(f"there is no subscription {identity!r} to {_DOING[op]}") from None


def _check_type(identity: Id, live: ChangeTarget) -> None:
    if live.whole_ids is not None and isinstance(identity, int) is not live.whole_ids:
        wanted = "whole numbers" if live.whole_ids else "text"
        raise SubscriptionError(f"id {identity!r} has the wrong type: ids here are {wanted}")


def _put(wanted: Subscription, op: str, live: ChangeTarget) -> None:
    if wanted.node is not None and not live.graph:
        raise SubscriptionError(
            f"subscription {wanted.id!r} is attached to node {wanted.node!r}, and there is no graph here: "
            "leave `node` out"
        )
    if op == REPLACE:
        live.replace(wanted)
    else:
        live.subscribe(wanted)


def _graph_change(change: Change) -> Callable[[GraphIndex], None]:
    """Return what a change does to a graph."""
    match change:
        case AddNode(node):
            return lambda graph: graph.add_node(node)
        case RemoveNode(identity):
            return lambda graph: graph.remove_node(identity)
        case AddEdge(edge):
            return lambda graph: graph.add_edge(edge)
        case RemoveEdge(source, target):
            return lambda graph: graph.remove_edge(source, target)
        case SetFilter(identity, text, dialect):
            return lambda graph: graph.set_filter(identity, text, dialect)
    raise AssertionError(change)


class SingleEngine:
    """One engine, as what changes are done to; `whole_ids` are known of more than it may hold."""

    def __init__(self, engine: Engine, whole_ids: bool | None = None) -> None:
        self.engine = engine
        self.whole_ids = whole_ids

    @property
    def graph(self) -> bool:
        """Tell whether there is a graph."""
        return self.engine.backend.routed

    def __contains__(self, identity: Id) -> bool:
        """Tell whether a subscription is there."""
        return identity in self.engine.backend

    def subscribe(self, subscription: Subscription) -> None:
        """Add a subscription."""
        self.engine.backend.subscribe(subscription)
        self.whole_ids = isinstance(subscription.id, int)

    def replace(self, subscription: Subscription) -> None:
        """Have a subscription in the place of another of its id, or refuse it and leave that one."""
        self.engine.replace(subscription)

    def unsubscribe(self, identity: Id) -> None:
        """Remove a subscription."""
        self.engine.unsubscribe(identity)

    def set_score(self, identity: Id, score: Score) -> None:
        """Give a subscription another score."""
        self.engine.set_score(identity, score)

    def set_weights(self, identity: Id, weights: Weights | None) -> None:
        """Give the clauses of a subscription other weights."""
        self.engine.set_weights(identity, weights)

    def change_graph(self, change: Callable[[GraphIndex], None]) -> None:
        """Change the graph."""
        change(self.engine.graph)
