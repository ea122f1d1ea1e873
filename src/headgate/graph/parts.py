"""A graph in columns, before it is numbered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from headgate.core.ids import Ids

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
    node_kind: NDArray[np.int32]
    node_filter: pa.Array[Any]
    node_dialect: pa.Array[Any]
    node_cost: NDArray[np.float64]
    node_subscription: NDArray[np.int32]
    edge_source: NDArray[np.int32]
    edge_target: NDArray[np.int32]
    edge_filter: pa.Array[Any]
    edge_dialect: pa.Array[Any]
    edge_cost: NDArray[np.float64]
    subscription_ids: Ids
    subscription_filter: pa.Array[Any]
    subscription_dialect: pa.Array[Any]
    subscription_score: NDArray[np.float64]
    hang_node: NDArray[np.int32]
    hang_subscription: NDArray[np.int32]

    @property
    def split(self) -> NDArray[np.int64]:
        """List the edges that have a filter."""
        return np.flatnonzero(self.edge_filter.is_valid().to_numpy(zero_copy_only=False))

    @property
    def hung(self) -> NDArray[np.int64]:
        """List the subscriptions that hang at nodes."""
        return np.unique(self.hang_subscription).astype(np.int64)
