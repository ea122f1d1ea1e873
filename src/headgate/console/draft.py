"""A draft: changes of subscriptions and of the graph that are tried before they are made, and then made.

    rows       as a what-if reads them: `op` and its fields (`runtime/operations.py`)
    Planned    what an index would be built of, before and after, and what was refused

Rows are taken one after another, as the service would: a node goes only when nothing hangs at it.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from headgate.console.session import ABSENT
from headgate.core.subscription import SQL
from headgate.errors import GraphError, HeadgateError, SubscriptionError
from headgate.runtime import operations
from headgate.runtime.rows import fields_of
from headgate.service.resources import EdgeBody, Name, Part, SubscriptionBody, misfit

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from headgate.console.view import View
    from headgate.core.event import Id
    from headgate.core.subscription import Subscription
    from headgate.graph.model import Edge, Node
    from headgate.service.storage.store import Store
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


def read_row(row: Row) -> operations.Change:
    """Read what a row asks for; ids of the service are texts."""
    change = operations.read_change(fields_of(row), SQL)
    for name in _names(change):
        try:
            msgspec.convert(name, Name)
        except msgspec.ValidationError as error:
            raise SubscriptionError(f"{name!r} cannot be an id of the service: {misfit(error)}") from None
    if isinstance(change, operations.AddNode) and change.node.subscription is not None:
        raise GraphError("a node of the service has no `subscription`: hang one at it with its `node`")
    if isinstance(change, operations.Put):
        body_of(row, change.subscription, None)
    return change


def _names(change: operations.Change) -> list[Id]:
    match change:
        case operations.Put(_, wanted):
            return [wanted.id, *([] if wanted.node is None else [wanted.node])]
        case operations.AddNode(node):
            return [node.id]
        case operations.AddEdge(edge):
            return [edge.source, edge.target]
        case operations.RemoveEdge(source, target):
            return [source, target]
    return [change.id]


def body_of(row: Row, wanted: Subscription, before: SubscriptionBody | None) -> SubscriptionBody:
    """Return what the API is told of a subscription; what the row does not say stays as it was."""
    values = fields_of(row)
    kept = {} if before is None else {name: getattr(before, name) for name in (*_KEPT, "sink")}
    own = {name: values[name] for name in _KEPT if values.get(name) is not None}
    weights = wanted.weights
    fields = {
        **kept,
        **own,
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
    return list(dict.fromkeys(str(each) for each in _subjects(rows) if each is not None))


def changes_graph(rows: Iterable[Row]) -> bool:
    """Tell whether a row changes nodes or edges."""
    return any(each is None for each in _subjects(rows))


def _subjects(rows: Iterable[Row]) -> Iterator[Id | None]:
    """List the subscription of each row that can be read; None for one that changes the graph."""
    for row in rows:
        with suppress(HeadgateError):
            yield operations.subscription_id(read_row(row))


def plan(contents: Contents, rows: Sequence[Row]) -> Planned:
    """Try rows, one after another, on what an index is built of."""
    trial = _Plan(contents)
    planned = Planned(contents, contents)
    for row in rows:
        try:
            change = read_row(row)
            trial.take(change)
        except HeadgateError as error:
            planned.refused.append(Refused(row, str(error)))
            continue
        identity = operations.subscription_id(change)
        if identity is None:
            planned.graph += 1
            continue
        planned.ops[str(identity)] = change.op
        if isinstance(change, operations.Put):
            planned.rows[str(identity)] = row
    planned.after = contents._replace(
        subscriptions=list(trial.subscriptions.values()),
        nodes=list(trial.nodes.values()),
        edges=list(trial.edges.values()),
    )
    return planned


class _Plan:
    """What an index is built of, while rows are taken."""

    def __init__(self, contents: Contents) -> None:
        self.subscriptions: dict[Id, Subscription] = {each.id: each for each in contents.subscriptions}
        self.nodes: dict[Id, Node] = {each.id: each for each in contents.nodes}
        self.edges: dict[tuple[Id, Id], Edge] = {(each.source, each.target): each for each in contents.edges}

    def take(self, change: operations.Change) -> None:
        match change:
            case operations.Put(op, wanted):
                self._put(op, wanted)
            case operations.Unsubscribe(identity):
                self._known(identity)
                del self.subscriptions[identity]
            case operations.SetScore(identity, score):
                self.subscriptions[identity] = replace(self._known(identity), score=score)
            case operations.SetWeights(identity, weights):
                self.subscriptions[identity] = replace(self._known(identity), weights=weights)
            case operations.AddNode(node):
                if node.id in self.nodes:
                    raise GraphError(f"there is a node {node.id!r} already: use set_filter, or another id")
                self.nodes[node.id] = node
            case operations.SetFilter(identity, text, dialect):
                self.nodes[identity] = replace(self._node(identity), filter=text, dialect=dialect)
            case operations.RemoveNode(identity):
                self._remove_node(identity)
            case operations.AddEdge(edge):
                self._node(edge.source)
                self._node(edge.target)
                self.edges[edge.source, edge.target] = edge
            case operations.RemoveEdge(source, target):
                if self.edges.pop((source, target), None) is None:
                    raise GraphError(f"there is no edge from {source!r} to {target!r}")

    def _put(self, op: str, wanted: Subscription) -> None:
        there = wanted.id in self.subscriptions
        if op == operations.SUBSCRIBE and there:
            raise SubscriptionError(f"there is a subscription {wanted.id!r} already: use replace")
        if op == operations.REPLACE and not there:
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
    return str(fields_of(row).get(operations.OP) or "upsert")


class Ask(NamedTuple):
    """A request of the API, as a session keeps it: operation, path, body, query, headers."""

    operation: str
    path: dict[str, str]
    body: Any = None
    query: dict[str, str] | None = None
    headers: dict[str, str] | None = None
    back: tuple[Ask, ...] = ()
    """What takes it back."""

    @property
    def what(self) -> str:
        """Say what it is about."""
        about = self.path.get("id") or " to ".join((self.query or {}).values())
        if not about and isinstance(self.body, EdgeBody):
            about = f"{self.body.source} to {self.body.target}"
        return f"{self.operation.replace('_', ' ')} {about}"


_ORDER = ("put_node", "put_edge", "replace_subscription", "delete_subscription", "delete_edge", "delete_node")


def in_order(asks: Iterable[Ask]) -> list[Ask]:
    """Order requests so that each finds what it needs: ends before edges, nodes after what hangs there."""
    return sorted(asks, key=lambda each: _ORDER.index(each.operation))


def requests_of(planned: Planned, store: Store, revisions: dict[str, int]) -> list[Ask]:
    """List the requests that make a plan so; `revisions` are those of subscriptions when it was tried."""
    return in_order([*_of_subscriptions(planned, store, revisions), *_of_graph(planned, store)])


def _of_subscriptions(planned: Planned, store: Store, revisions: dict[str, int]) -> list[Ask]:
    asks = []
    after = {str(each.id): each for each in planned.after.subscriptions}
    for identity in planned.ops:
        stored, path = store.subscriptions.get(identity), {"id": identity}
        before = None if stored is None else stored.said
        wanted = after.get(identity)
        headers = {"If-Match": f'"{revisions[identity]}"'} if identity in revisions else ABSENT
        if wanted is not None:
            back = Ask("replace_subscription", path, before) if before else Ask("delete_subscription", path)
            body = body_of(planned.rows.get(identity, {}), wanted, before)
            asks.append(Ask("replace_subscription", path, body, None, headers, (back,)))
        elif before is not None:
            again = Ask("replace_subscription", path, before)
            asks.append(Ask("delete_subscription", path, None, None, headers, (again,)))
    return asks


def _of_graph(planned: Planned, store: Store) -> list[Ask]:
    asks = []
    old = {each.id: each for each in planned.before.nodes}
    new = {each.id: each for each in planned.after.nodes}
    for identity in dict.fromkeys([*old, *new]):
        if old.get(identity) == new.get(identity):
            continue
        path, stored = {"id": str(identity)}, store.graph.node(str(identity))
        again = () if stored is None else (Ask("put_node", path, stored),)
        if identity in new:
            undo = again or (Ask("delete_node", path),)
            asks.append(Ask("put_node", path, _part(new[identity], stored), back=undo))
        else:
            edges = tuple(Ask("put_edge", {}, each) for each in store.graph.ends_at(str(identity)))
            asks.append(Ask("delete_node", path, back=(*again, *edges)))
    old_edges = {(each.source, each.target): each for each in planned.before.edges}
    new_edges = {(each.source, each.target): each for each in planned.after.edges}
    for ends in dict.fromkeys([*old_edges, *new_edges]):
        if old_edges.get(ends) == new_edges.get(ends) or not {*ends} <= {*new}:
            continue
        query, known = {"source": str(ends[0]), "target": str(ends[1])}, store.graph.edge(*map(str, ends))
        before = () if known is None else (Ask("put_edge", {}, known),)
        if ends in new_edges:
            undone = before or (Ask("delete_edge", {}, None, query),)
            asks.append(Ask("put_edge", {}, _edge(new_edges[ends]), back=undone))
        else:
            asks.append(Ask("delete_edge", {}, None, query, back=before))
    return asks


def _part(node: Node, stored: Part | None) -> Part:
    kind, cost, score = node.kind or None, node.cost or None, node.score or None
    if stored is not None:
        return msgspec.structs.replace(stored, filter=node.filter, dialect=node.dialect)
    return Part(filter=node.filter, dialect=node.dialect, kind=kind, score=score, cost=cost)


def _edge(edge: Edge) -> EdgeBody:
    return EdgeBody(
        source=str(edge.source),
        target=str(edge.target),
        filter=edge.filter,
        dialect=edge.dialect,
        cost=edge.cost,
    )


class Made(NamedTuple):
    """What became of requests."""

    done: int
    refused: list[str]
    """What was refused, and why."""
    back: list[Ask]
    """What takes the others back."""


def _as_made(back: Ask, made: Any) -> Ask:
    """Have a request that takes something back be refused where others have changed it since."""
    if back.operation not in {"replace_subscription", "delete_subscription"}:
        return back
    known = ABSENT if made is None else {"If-Match": f'"{made.revision}"'}
    return back._replace(headers=known)


async def make(view: View, asks: Iterable[Ask]) -> Made:
    """Ask one after the other; what is refused does not keep the rest from being made."""
    done = 0
    refused: list[str] = []
    back: list[Ask] = []
    for ask in asks:
        try:
            answer = await view.ask(ask.operation, ask.path, ask.query, ask.body, ask.headers)
        except HeadgateError as error:
            refused.append(f"{ask.what}: {error}")
            continue
        done += 1
        back += [_as_made(each, answer) for each in ask.back]
    return Made(done, refused, in_order(back))
