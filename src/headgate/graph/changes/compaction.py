"""A changed graph back to parts, from which the next base is built."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from headgate.core.ids import Ids
from headgate.graph.arrays import flags_of
from headgate.graph.changes.rows import owners
from headgate.graph.model import EDGE, SUBSCRIPTION, Parts

if TYPE_CHECKING:
    from headgate.core.arrays import Floats64, Ints
    from headgate.core.event import Id
    from headgate.graph.changes.view import View


def to_parts(view: View, dialect: str) -> Parts:
    """Write down what is left of a graph, in the order of ids; `dialect` is that of the room's filters."""
    arrays, names, later = view.arrays, view.base.names, view.later
    stands_for = np.concatenate([arrays.stands_for, [] if later is None else later.stands_for])
    place = np.concatenate([arrays.place, [] if later is None else later.place]).astype(np.int64)
    pass_cost = np.concatenate([arrays.pass_cost, [] if later is None else later.pass_cost])
    score = np.concatenate([arrays.score, [] if later is None else later.score])
    serves = np.concatenate([arrays.serves, [] if later is None else later.serves]).astype(np.int64)
    serves[arrays.roots :][~flags_of(view.serving, view.vertices - arrays.roots)] = -1
    serves[[] if later is None else later.mute] = -1
    source, target, cost = _edges(view)
    vertex, node_ids = _living_nodes(view)
    node = np.full(view.vertices, -1, np.int64)
    node[vertex] = np.arange(len(vertex))
    plain = (node[source] >= 0) & (node[target] >= 0)
    into_edge = (node[source] >= 0) & (stands_for[target] == EDGE)
    out_of = np.full(view.vertices, -1, np.int64)
    leaving = (stands_for[source] == EDGE) & (node[target] >= 0)
    out_of[source[leaving]] = target[leaving]
    into_edge &= out_of[target] >= 0
    hangs = (node[source] >= 0) & (stands_for[target] == SUBSCRIPTION) & (serves[target] >= 0)
    itself = serves[vertex] >= 0
    used = np.unique(np.concatenate([serves[vertex][itself], serves[target[hangs]]]))
    ids, order = _sorted_ids([view.subscription_id(int(each)) for each in used])
    rank = np.full(int(used.max(initial=-1)) + 1, -1, np.int64)
    rank[used[order]] = np.arange(len(used))
    scores = np.full(len(used), -np.inf)
    hung_filter: list[str | None] = [None] * len(used)
    for server in np.unique(target[hangs]).tolist():
        scores[rank[serves[server]]] = score[server]
        hung_filter[rank[serves[server]]] = view.filter_of(server)
    # Several nodes may serve one subscription: the highest score counts.
    np.maximum.at(scores, rank[serves[vertex][itself]], score[vertex][itself])
    for each, given in ({} if later is None else later.rescored).items():
        if each < len(rank) and rank[each] >= 0:
            scores[rank[each]] = given
    words = dict.fromkeys((*names.kinds, *(later.node_kinds if later else ())))
    numbers = {word: number for number, word in enumerate(words)}
    kinds = np.concatenate([names.node_kind, [numbers[word] for word in (later.node_kinds if later else ())]])
    node_place = place[vertex]
    return Parts(
        node_ids=node_ids,
        kinds=tuple(words),
        node_kind=kinds[node_place].astype(np.int32),
        node_filter=_texts([view.filter_of(v) for v in vertex.tolist()]),
        node_dialect=_all(dialect, len(vertex)),
        node_cost=pass_cost[vertex],
        node_subscription=np.where(itself, rank[serves[vertex]] if len(rank) else -1, -1).astype(np.int32),
        edge_source=node[np.concatenate([source[plain], source[into_edge]])].astype(np.int32),
        edge_target=node[np.concatenate([target[plain], out_of[target[into_edge]]])].astype(np.int32),
        edge_filter=_texts([*[None] * int(plain.sum()), *map(view.filter_of, target[into_edge].tolist())]),
        edge_dialect=_all(dialect, int(plain.sum() + into_edge.sum())),
        edge_cost=np.concatenate([cost[plain], cost[into_edge]]),
        subscription_ids=ids,
        subscription_filter=_texts(hung_filter),
        subscription_dialect=_all(dialect, len(used)),
        subscription_score=scores,
        hang_node=node[source[hangs]].astype(np.int32),
        hang_subscription=rank[serves[target[hangs]]].astype(np.int32),
    )


def _edges(view: View) -> tuple[Ints, Ints, Floats64]:
    """List all edges between vertices, those of the base that were not replaced first."""
    arrays, overlay = view.arrays, view.overlay
    source = np.repeat(np.arange(arrays.vertices), np.diff(arrays.child_start))
    if not len(overlay.swap):
        return source, arrays.child.astype(np.int64), arrays.child_cost
    kept = overlay.swap[source] < 0
    rows = len(overlay.start) - 1
    owner = np.repeat(owners(overlay.swap, rows), np.diff(overlay.start))
    now = owner >= 0
    return (
        np.concatenate([source[kept], owner[now]]),
        np.concatenate([arrays.child[kept], overlay.child[now]]).astype(np.int64),
        np.concatenate([arrays.child_cost[kept], view.swap_cost[now]]),
    )


def _living_nodes(view: View) -> tuple[Ints, Ids]:
    """List the vertices of nodes that are left, in the order of their ids, and the ids."""
    names, later = view.base.names, view.later
    vertex = names.vertex_of_node.astype(np.int64)
    if later is None:
        return vertex, names.node_ids
    vertex = vertex.copy()
    for identity in later.moved:
        if view.base.find(identity) >= 0:
            vertex[names.node_ids.place(identity)] = later.moved[identity]
    new = {identity: v for identity, v in later.moved.items() if v >= 0 and view.base.find(identity) < 0}
    left = np.flatnonzero(vertex >= 0)
    ids, order = _sorted_ids([*(names.node_ids[int(n)] for n in left), *new])
    return np.concatenate([vertex[left], list(new.values())]).astype(np.int64)[order], ids


def _sorted_ids(given: list[Id]) -> tuple[Ids, Ints]:
    order = sorted(range(len(given)), key=given.__getitem__)
    return Ids.of(given), np.array(order, np.int64)


def _texts(texts: list[str | None]) -> pa.Array[Any]:
    return pa.array(texts, pa.large_string())


def _all(dialect: str, count: int) -> pa.Array[Any]:
    return pa.array([dialect] * count, pa.string())
