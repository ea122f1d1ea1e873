"""The graph as its users write it down, and in columns before it is numbered."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from headgate.core.subscription import SQL
from headgate.errors import GraphError

if TYPE_CHECKING:
    import pyarrow as pa

    from headgate.core.arrays import Floats64, Ints, Ints32
    from headgate.core.event import Id
    from headgate.core.ids import Ids
    from headgate.core.ranks import Score


NODES, EDGES, SUBSCRIPTIONS = "nodes", "edges", "subscriptions"
"""The tables of a graph."""
MOST_SHARDS = 1000
"""Of one graph; the names of their directories have three digits."""


@dataclass(frozen=True)
class Node:
    """A publisher, an intermediary, a subscriber, or all of them.

    An event passes the node if `filter` holds, or if there is none. `subscription` names who is served when
    the event gets here. `cost` is what passing the node takes off the score.

    >>> Node("net-1", "topic = 'sport'", kind="network").cost
    0.0
    """

    id: Id
    filter: str | None = None
    kind: str = ""
    subscription: Id | None = None
    dialect: str = SQL
    score: float = 0.0
    cost: float = 0.0

    def __post_init__(self) -> None:
        """Refuse costs that no path can have."""
        check_cost(self.cost, f"node {self.id!r}")
        check_score(self.score, f"node {self.id!r}")


@dataclass(frozen=True)
class Edge:
    """A way from one node to another; an event passes if `filter` holds, or if there is none.

    >>> Edge("pub-1", "net-1").cost
    1.0
    """

    source: Id
    target: Id
    filter: str | None = None
    dialect: str = SQL
    cost: float = 1.0

    def __post_init__(self) -> None:
        """Refuse costs that no path can have."""
        check_cost(self.cost, f"edge from {self.source!r} to {self.target!r}")


def check_cost(cost: float, what: str) -> None:
    """Refuse a cost that is negative or no number: with such, the best path may not exist."""
    if not _is_number(cost) or not 0 <= cost < math.inf:
        raise GraphError(f"{what} has cost {cost!r}: give a number from 0 up")


def fixed_score(score: Score, identity: Id) -> float:
    """Return the score of a subscription in a graph; refuses one that depends on the event."""
    if isinstance(score, str):
        raise GraphError(
            f"the score of subscription {identity!r} is {score!r}, and in a graph it must not depend on the "
            "event: give a finite number"
        )
    return score


def check_score(score: float, what: str) -> None:
    """Refuse a score that cannot be put in order."""
    if not _is_number(score) or not math.isfinite(score):
        raise GraphError(f"{what} has score {score!r}: give a finite number")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def check_count(count: int) -> None:
    """Refuse a number of shards that cannot be."""
    if not 1 <= count <= MOST_SHARDS:
        raise GraphError(f"{count} shards: give a number from 1 to {MOST_SHARDS:,}")


NODE, EDGE, SUBSCRIPTION = range(3)
"""What a vertex stands for."""


@dataclass(frozen=True)
class Parts:
    """Nodes in the order of their ids, edges between their places, subscriptions in the order of their ids.

    Vertices are the nodes, then the edges that have a filter (split: source, edge, target), then the
    subscriptions that hang at nodes. Nodes may also serve a subscription themselves, without another filter.

        node_kind[n]             of kinds
        node_subscription[n]     the subscription that node n serves itself, or -1
        hang_node, hang_subscription     subscription hang_subscription[i] hangs at node hang_node[i]
        *_filter, *_dialect      texts, null for none, and how to read them
    """

    node_ids: Ids
    kinds: tuple[str, ...]
    node_kind: Ints32
    node_filter: pa.Array[Any]
    node_dialect: pa.Array[Any]
    node_cost: Floats64
    node_subscription: Ints32
    edge_source: Ints32
    edge_target: Ints32
    edge_filter: pa.Array[Any]
    edge_dialect: pa.Array[Any]
    edge_cost: Floats64
    subscription_ids: Ids
    subscription_filter: pa.Array[Any]
    subscription_dialect: pa.Array[Any]
    subscription_score: Floats64
    hang_node: Ints32
    hang_subscription: Ints32

    @property
    def split(self) -> Ints:
        """List the edges that have a filter."""
        return np.flatnonzero(self.edge_filter.is_valid().to_numpy(zero_copy_only=False))

    @property
    def hung(self) -> Ints:
        """List the subscriptions that hang at nodes."""
        return np.unique(self.hang_subscription).astype(np.int64)
