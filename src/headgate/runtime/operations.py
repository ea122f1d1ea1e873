"""Changes of subscriptions and of the graph: one vocabulary, read by one function, done by one function.

    op             the row has                                   what must be so
    subscribe      a subscription                                its id is new
    replace        a subscription                                its id is there; nothing of the old one stays
    upsert, none   a subscription                                either
    unsubscribe    `id`                                          it is there
    score          `id`, `score`                                 it is there, and there are ranks or a graph
    weights        `id`, `weights`; without them each counts 1   it is there, and clauses are ranked
    add_node       a node                                        its id is new
    remove_node    `id`                                          it is there
    add_edge       an edge                                       its ends are there
    remove_edge    `source`, `target`                            there is one
    set_filter     `id` of a node, `filter`; none lets all pass  it is there

A what-if tries rows on one engine, a stream does them to its pieces: both with `read_change` and `apply`. A
row that is refused has changed nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from headgate.core.event import ID
from headgate.errors import GraphError, HeadgateError, SubscriptionError
from headgate.graph.index import GraphIndex
from headgate.runtime.rows import (
    DIALECT,
    NO_ID,
    NODE,
    SCORE,
    SOURCE,
    SUBSCRIPTION,
    TARGET,
    WEIGHTS,
    fit_id,
    is_nothing,
    read_edge,
    read_filter,
    read_id,
    read_node,
    read_score,
    read_subscription,
    read_text,
    read_weights,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from headgate.core.event import Id
    from headgate.core.ranks import Weights
    from headgate.core.subscription import Subscription
    from headgate.engine.engine import Engine
    from headgate.graph.model import Edge, Node
    from headgate.runtime.rows import Fields

    Change: TypeAlias = (
        "Put | Unsubscribe | SetScore | SetWeights | AddNode | RemoveNode | AddEdge | RemoveEdge | SetFilter"
    )

OP = "op"
SUBSCRIBE, REPLACE, UPSERT, UNSUBSCRIBE = "subscribe", "replace", "upsert", "unsubscribe"
ADD_NODE, REMOVE_NODE, ADD_EDGE, REMOVE_EDGE, SET_FILTER = GRAPH_OPERATIONS = (
    "add_node",
    "remove_node",
    "add_edge",
    "remove_edge",
    "set_filter",
)
OPERATIONS = (SUBSCRIBE, REPLACE, UPSERT, UNSUBSCRIBE, SCORE, WEIGHTS, *GRAPH_OPERATIONS)


@dataclass(frozen=True)
class Put:
    """Have a subscription: a new one, one in the place of another, or whichever it is."""

    op: str
    subscription: Subscription


@dataclass(frozen=True)
class Unsubscribe:
    """Take a subscription away."""

    id: Id
    op = UNSUBSCRIBE


@dataclass(frozen=True)
class SetScore:
    """Give a subscription another score."""

    id: Id
    score: float
    op = SCORE


@dataclass(frozen=True)
class SetWeights:
    """Give the clauses of a subscription other weights."""

    id: Id
    weights: Weights | None
    op = WEIGHTS


@dataclass(frozen=True)
class AddNode:
    """Add a node."""

    node: Node
    op = ADD_NODE


@dataclass(frozen=True)
class RemoveNode:
    """Remove a node, its edges, and the subscriptions that hang nowhere else."""

    id: Id
    op = REMOVE_NODE


@dataclass(frozen=True)
class AddEdge:
    """Add an edge."""

    edge: Edge
    op = ADD_EDGE


@dataclass(frozen=True)
class RemoveEdge:
    """Remove every edge from one node to another."""

    source: Id
    target: Id
    op = REMOVE_EDGE


@dataclass(frozen=True)
class SetFilter:
    """Give a node another filter, or none."""

    id: Id
    filter: str | None
    dialect: str
    op = SET_FILTER


def subscription_id(change: Change) -> Id | None:
    """Return the subscription that a change names; those of the graph name none."""
    if isinstance(change, Put):
        return change.subscription.id
    return change.id if isinstance(change, Unsubscribe | SetScore | SetWeights) else None


# Reading


def read_change(given: Fields, dialect: str) -> Change:
    """Read a change from the fields of a row; filters that name no dialect have the given one.

    >>> read_change({"op": "score", "id": "s1", "score": 2}, "sql")
    SetScore(id='s1', score=2.0)
    """
    op = operation_of(given)
    if op in {SUBSCRIBE, REPLACE, UPSERT}:
        return Put(op, read_subscription(given, dialect))
    if op == ADD_NODE:
        return AddNode(read_node(given, dialect))
    if op == ADD_EDGE:
        return AddEdge(read_edge(given, dialect))
    if op == REMOVE_EDGE:
        edge = read_edge({name: given.get(name) for name in (SOURCE, TARGET)}, dialect)
        return RemoveEdge(edge.source, edge.target)
    identity = read_id(given, ID)
    if identity is None:
        raise SubscriptionError(NO_ID)
    if op == UNSUBSCRIBE:
        return Unsubscribe(identity)
    if op == SCORE:
        if is_nothing(given.get(SCORE)):
            raise SubscriptionError(f"subscription {identity!r} is given no score: give a number")
        return SetScore(identity, read_score(given[SCORE]))
    if op == WEIGHTS:
        return SetWeights(identity, read_weights(given.get(WEIGHTS)))
    if op == REMOVE_NODE:
        return RemoveNode(identity)
    spoken = read_text(given, DIALECT)
    return SetFilter(identity, read_filter(given), dialect if spoken is None else spoken)


def operation_of(given: Fields) -> str:
    """Read what a row asks for; one that does not say it is an `upsert`."""
    op = given.get(OP)
    if is_nothing(op):
        return UPSERT
    if op not in OPERATIONS:
        raise SubscriptionError(f"op is {op!r}: use one of {', '.join(map(repr, OPERATIONS))}, or none")
    found: str = op
    return found


def typed(given: Fields, *, numbered: bool | None, numbered_nodes: bool) -> dict[str, Any]:
    """Give the ids of a row of CSV their type: there they are text, whatever they look like.

    `numbered` says what ids of subscriptions are, None if there are none yet.

    >>> typed({"op": "subscribe", "id": "7", "node": "7"}, numbered=True, numbered_nodes=False)
    {'op': 'subscribe', 'id': 7, 'node': '7'}
    """
    found = dict(given)
    about_nodes = given.get(OP) in GRAPH_OPERATIONS
    kinds = {ID: numbered_nodes if about_nodes else numbered, SUBSCRIPTION: numbered}
    for name, whole in (kinds | dict.fromkeys((NODE, SOURCE, TARGET), numbered_nodes)).items():
        text = found.get(name)
        if isinstance(text, str) and whole is not None:
            fitted = fit_id(text, numbered=whole)
            found[name] = text if fitted is None else fitted
    return found


# Doing


class Changing(Protocol):
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
    def set_score(self, identity: Id, score: float) -> None: ...
    def set_weights(self, identity: Id, weights: Weights | None) -> None: ...
    def change_graph(self, change: Callable[[GraphIndex], None]) -> None: ...


def apply(change: Change, live: Changing) -> str:
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


def _do(change: Change, op: str, live: Changing) -> None:
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


def _check_there(op: str, identity: Id, live: Changing) -> None:
    """Refuse to subscribe an id that is there, and to do anything else to one that is not."""
    there = identity in live
    if op == SUBSCRIBE and there:
        raise SubscriptionError(f"id {identity!r} is subscribed already: use the op 'replace'") from None
    if op != SUBSCRIBE and not there:
        raise SubscriptionError(f"there is no subscription {identity!r} to {_DOING[op]}") from None


def _check_type(identity: Id, live: Changing) -> None:
    if live.whole_ids is not None and isinstance(identity, int) is not live.whole_ids:
        wanted = "whole numbers" if live.whole_ids else "text"
        raise SubscriptionError(f"id {identity!r} is not one of these: ids here are {wanted}")


def _put(wanted: Subscription, op: str, live: Changing) -> None:
    if wanted.node is not None and not live.graph:
        raise SubscriptionError(
            f"subscription {wanted.id!r} hangs at node {wanted.node!r}, and there is no graph here: leave "
            "`node` out"
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


class Single:
    """One engine, as what changes are done to; `whole_ids` are known of more than it may hold."""

    def __init__(self, engine: Engine, whole_ids: bool | None = None) -> None:
        self.engine = engine
        self.whole_ids = whole_ids

    @property
    def graph(self) -> bool:
        """Tell whether there is a graph."""
        return isinstance(self.engine.index, GraphIndex)

    def __contains__(self, identity: Id) -> bool:
        """Tell whether a subscription is there."""
        index = self.engine.index
        return index.serves(identity) if isinstance(index, GraphIndex) else identity in index

    def subscribe(self, subscription: Subscription) -> None:
        """Add a subscription."""
        self.engine.subscribe(subscription)
        self.whole_ids = isinstance(subscription.id, int)

    def replace(self, subscription: Subscription) -> None:
        """Have a subscription in the place of another of its id, or refuse it and leave that one."""
        self._probe(subscription)
        self.engine.unsubscribe(subscription.id)
        self.engine.subscribe(subscription)

    def _probe(self, wanted: Subscription) -> None:
        """Find out whether a subscription will be taken, before the one that it replaces is gone."""
        probe: Id = f"{wanted.id}\N{SYMBOL FOR NULL}" if isinstance(wanted.id, str) else -(2**62)
        while probe in self:
            probe = f"{probe}\N{SYMBOL FOR NULL}" if isinstance(probe, str) else probe - 1
        try:
            self.engine.subscribe(replace(wanted, id=probe))
        except HeadgateError as error:
            # It is about the row, and the row does not know of the probe.
            raise SubscriptionError(str(error).replace(repr(probe), repr(wanted.id))) from error
        self.engine.unsubscribe(probe)

    def unsubscribe(self, identity: Id) -> None:
        """Remove a subscription."""
        self.engine.unsubscribe(identity)

    def set_score(self, identity: Id, score: float) -> None:
        """Give a subscription another score."""
        self.engine.set_score(identity, score)

    def set_weights(self, identity: Id, weights: Weights | None) -> None:
        """Give the clauses of a subscription other weights."""
        self.engine.set_weights(identity, weights)

    def change_graph(self, change: Callable[[GraphIndex], None]) -> None:
        """Change the graph."""
        change(self.engine.graph)
