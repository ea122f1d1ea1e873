"""A draft: changes of subscriptions and of the graph that are tried before they are made.

    rows       as a what-if reads them: `op` and its fields (`runtime/operations.py`)
    Planned    what an index would be built of, before and after, and what was refused

Rows are taken one after another, as the service would: a node goes only when nothing hangs at it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from headgate.core.subscription import SQL
from headgate.errors import GraphError, HeadgateError, SubscriptionError
from headgate.runtime.operations import (
    OP,
    REPLACE,
    SUBSCRIBE,
    AddEdge,
    AddNode,
    Put,
    RemoveEdge,
    RemoveNode,
    SetFilter,
    SetScore,
    SetWeights,
    Unsubscribe,
    read_change,
    subscription_id,
)
from headgate.runtime.rows import fields_of
from headgate.service.resources import Name, SubscriptionBody

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from headgate.core.event import Id
    from headgate.core.subscription import Subscription
    from headgate.graph.model import Edge, Node
    from headgate.runtime.operations import Change
    from headgate.service.tenant.contents import Contents

MOST = 1_000
"""Rows of a draft."""
_KEPT = ("consumer", "metadata", "limit", "expires")
"""What a row may say of a subscription beside what is matched."""

Row = dict[str, Any]


class Refused(NamedTuple):
    """A row that cannot be, and why."""

    row: Row
    reason: str


def read_row(row: Row) -> Change:
    """Read what a row asks for; ids of the service are texts."""
    change = read_change(fields_of(row), SQL)
    for name in _names(change):
        try:
            msgspec.convert(name, Name)
        except msgspec.ValidationError as error:
            raise SubscriptionError(f"{name!r} cannot be an id of the service: {error}") from None
    if isinstance(change, AddNode) and change.node.subscription is not None:
        raise GraphError("a node of the service has no `subscription`: hang one at it with its `node`")
    if isinstance(change, Put):
        body_of(row, change.subscription, None)
    return change


def _names(change: Change) -> list[Id]:
    match change:
        case Put(_, wanted):
            return [wanted.id, *([] if wanted.node is None else [wanted.node])]
        case AddNode(node):
            return [node.id]
        case AddEdge(edge):
            return [edge.source, edge.target]
        case RemoveEdge(source, target):
            return [source, target]
    return [change.id]


def body_of(row: Row, wanted: Subscription, before: SubscriptionBody | None) -> SubscriptionBody:
    """Return what the API is told of a subscription; what the row does not say stays as it was."""
    said = fields_of(row)
    kept = {} if before is None else {name: getattr(before, name) for name in (*_KEPT, "sink")}
    given = {name: said[name] for name in _KEPT if said.get(name) is not None}
    weights = wanted.weights
    fields = {
        **kept,
        **given,
        "filter": wanted.filter,
        "dialect": wanted.dialect,
        "score": wanted.score,
        "node": wanted.node,
        "weights": list(weights) if isinstance(weights, tuple) else weights,
    }
    try:
        return msgspec.convert(
            {name: value for name, value in fields.items() if value is not None},
            SubscriptionBody,
            from_attributes=True,
        )
    except msgspec.ValidationError as error:
        raise SubscriptionError(f"the row does not fit: {error}") from None


@dataclass
class Planned:
    """What would be, and what each subscription's row was."""

    before: Contents
    after: Contents
    ops: dict[str, str] = field(default_factory=dict)
    """What is done to subscriptions, by id."""
    rows: dict[str, Row] = field(default_factory=dict)
    """The last row that gave a subscription its filter, by id."""
    graph: int = 0
    """How often the graph is changed."""
    refused: list[Refused] = field(default_factory=list)


def ids_of(rows: Iterable[Row]) -> list[str]:
    """List the subscriptions that rows name."""
    found: dict[str, None] = {}
    for row in rows:
        try:
            identity = subscription_id(read_row(row))
        except HeadgateError:
            continue
        if identity is not None:
            found[str(identity)] = None
    return list(found)


def changes_graph(rows: Iterable[Row]) -> bool:
    """Tell whether a row changes nodes or edges."""
    for row in rows:
        try:
            if subscription_id(read_row(row)) is None:
                return True
        except HeadgateError:
            continue
    return False


def plan(contents: Contents, rows: Sequence[Row]) -> Planned:
    """Try rows, one after another, on what an index is built of."""
    trial = _Plan(contents)
    found = Planned(contents, contents)
    for row in rows:
        try:
            change = read_row(row)
            trial.take(change)
        except HeadgateError as error:
            found.refused.append(Refused(row, str(error)))
            continue
        identity = subscription_id(change)
        if identity is None:
            found.graph += 1
            continue
        found.ops[str(identity)] = change.op
        if isinstance(change, Put):
            found.rows[str(identity)] = row
    found.after = contents._replace(
        subscriptions=list(trial.subscriptions.values()),
        nodes=list(trial.nodes.values()),
        edges=list(trial.edges.values()),
    )
    return found


class _Plan:
    """What an index is built of, while rows are taken."""

    def __init__(self, contents: Contents) -> None:
        self.subscriptions: dict[Id, Subscription] = {each.id: each for each in contents.subscriptions}
        self.nodes: dict[Id, Node] = {each.id: each for each in contents.nodes}
        self.edges: dict[tuple[Id, Id], Edge] = {(each.source, each.target): each for each in contents.edges}

    def take(self, change: Change) -> None:
        match change:
            case Put(op, wanted):
                self._put(op, wanted)
            case Unsubscribe(identity):
                self._known(identity)
                del self.subscriptions[identity]
            case SetScore(identity, score):
                self.subscriptions[identity] = replace(self._known(identity), score=score)
            case SetWeights(identity, weights):
                self.subscriptions[identity] = replace(self._known(identity), weights=weights)
            case AddNode(node):
                if node.id in self.nodes:
                    raise GraphError(f"there is a node {node.id!r} already: use set_filter, or another id")
                self.nodes[node.id] = node
            case SetFilter(identity, text, dialect):
                self.nodes[identity] = replace(self._node(identity), filter=text, dialect=dialect)
            case RemoveNode(identity):
                self._remove_node(identity)
            case AddEdge(edge):
                self._node(edge.source)
                self._node(edge.target)
                self.edges[edge.source, edge.target] = edge
            case RemoveEdge(source, target):
                if self.edges.pop((source, target), None) is None:
                    raise GraphError(f"there is no edge from {source!r} to {target!r}")

    def _put(self, op: str, wanted: Subscription) -> None:
        there = wanted.id in self.subscriptions
        if op == SUBSCRIBE and there:
            raise SubscriptionError(f"there is a subscription {wanted.id!r} already: use replace")
        if op == REPLACE and not there:
            raise SubscriptionError(f"there is no subscription {wanted.id!r}: use subscribe")
        if wanted.node is not None:
            self._node(wanted.node)
        self.subscriptions[wanted.id] = wanted

    def _known(self, identity: Id) -> Subscription:
        if identity not in self.subscriptions:
            raise SubscriptionError(f"there is no subscription {identity!r}")
        return self.subscriptions[identity]

    def _node(self, identity: Id) -> Node:
        if identity not in self.nodes:
            raise GraphError(f"there is no node {identity!r}: add it first")
        return self.nodes[identity]

    def _remove_node(self, identity: Id) -> None:
        self._node(identity)
        hung = [each.id for each in self.subscriptions.values() if each.node == identity]
        if hung:
            raise GraphError(f"subscription {hung[0]!r} hangs at node {identity!r}: move or delete it first")
        del self.nodes[identity]
        self.edges = {ends: each for ends, each in self.edges.items() if identity not in ends}


def told(row: Row) -> str:
    """Write a row as a line of JSON."""
    return msgspec.json.encode(row).decode()


def op_of(row: Row) -> str:
    """Return what a row asks for."""
    return str(fields_of(row).get(OP) or "upsert")
