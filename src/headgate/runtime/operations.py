"""Changes of subscriptions and of the graph: one vocabulary, and one function that reads it.

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

A what-if and a stream read rows with `read_change`, and do them with `Runtime.apply`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headgate.core.event import ID
from headgate.core.ids import fit_id
from headgate.errors import SubscriptionError
from headgate.runtime.rows import (
    DIALECT,
    NO_ID,
    NODE,
    SCORE,
    SOURCE,
    SUBSCRIPTION,
    TARGET,
    WEIGHTS,
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
    from typing import TypeAlias

    from headgate.core.event import Id
    from headgate.core.ranks import Score, Weights
    from headgate.core.subscription import Subscription
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
    score: Score
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


def read_change(row: Fields, dialect: str) -> Change:
    """Read a change from the fields of a row; filters that name no dialect have the given one.

    >>> read_change({"op": "score", "id": "s1", "score": 2}, "sql")
    SetScore(id='s1', score=2.0)
    """
    op = operation_of(row)
    if op in {SUBSCRIBE, REPLACE, UPSERT}:
        return Put(op, read_subscription(row, dialect))
    if op == ADD_NODE:
        return AddNode(read_node(row, dialect))
    if op == ADD_EDGE:
        return AddEdge(read_edge(row, dialect))
    if op == REMOVE_EDGE:
        edge = read_edge({name: row.get(name) for name in (SOURCE, TARGET)}, dialect)
        return RemoveEdge(edge.source, edge.target)
    identity = read_id(row, ID)
    if identity is None:
        raise SubscriptionError(NO_ID)
    if op == UNSUBSCRIBE:
        return Unsubscribe(identity)
    if op == SCORE:
        if is_nothing(row.get(SCORE)):
            raise SubscriptionError(
                f"subscription {identity!r} is given no score: give a number, or an expression"
            )
        return SetScore(identity, read_score(row[SCORE]))
    if op == WEIGHTS:
        return SetWeights(identity, read_weights(row.get(WEIGHTS)))
    if op == REMOVE_NODE:
        return RemoveNode(identity)
    spoken = read_text(row, DIALECT)
    return SetFilter(identity, read_filter(row), dialect if spoken is None else spoken)


def operation_of(row: Fields) -> str:
    """Read what a row asks for; one that does not say it is an `upsert`."""
    op = row.get(OP)
    if is_nothing(op):
        return UPSERT
    if op not in OPERATIONS:
        raise SubscriptionError(f"op is {op!r}: use one of {', '.join(map(repr, OPERATIONS))}, or none")
    operation: str = op
    return operation


def typed(row: Fields, *, numbered: bool | None, numbered_nodes: bool) -> dict[str, Any]:
    """Give the ids of a row of CSV their type: there they are text, whatever they look like.

    `numbered` says what ids of subscriptions are, None if there are none yet.

    >>> typed({"op": "subscribe", "id": "7", "node": "7"}, numbered=True, numbered_nodes=False)
    {'op': 'subscribe', 'id': 7, 'node': '7'}
    """
    fields = dict(row)
    about_nodes = row.get(OP) in GRAPH_OPERATIONS
    kinds = {ID: numbered_nodes if about_nodes else numbered, SUBSCRIPTION: numbered}
    for name, whole in (kinds | dict.fromkeys((NODE, SOURCE, TARGET), numbered_nodes)).items():
        text = fields.get(name)
        if isinstance(text, str) and whole is not None:
            fitted = fit_id(text, numbered=whole)
            fields[name] = text if fitted is None else fitted
    return fields
