"""Tables to the parts of a graph. What does not fit is refused row by row, and the rest is a graph."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.core.arguments import check_id
from headgate.core.ids import Ids
from headgate.core.subscription import SQL
from headgate.errors import FilterError, GraphError, SubscriptionError, made_of, raise_first
from headgate.graph.model import EDGES, NODES, SUBSCRIPTIONS, Parts, fixed_score

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from headgate.core.arrays import Bools, Floats64, Ints, Ints32
    from headgate.core.event import Id
    from headgate.core.subscription import Subscription
    from headgate.graph.model import Edge, Node

    Column = pa.Array[Any]

# The overloads of Arrow's functions are about types that are known before; these are not.
_nulls: Any = pa.nulls
_compute: Any = pc


@dataclass(frozen=True)
class RefusedRow:
    """A row that is not in the graph, and why."""

    table: str
    row: int
    id: str
    reason: str


@dataclass(frozen=True)
class GraphTables:
    """Parts of a graph, the rows that were refused, and for each part of it the row that it came from."""

    parts: Parts
    refused: list[RefusedRow]
    node_row: Ints
    edge_row: Ints
    subscription_row: Ints


def from_models(
    nodes: Iterable[Node], edges: Iterable[Edge], subscriptions: Iterable[Subscription] = ()
) -> Parts:
    """Put a graph into columns; raises for the first part that does not fit.

    >>> from headgate.graph.model import Edge, Node
    >>> parts = from_models([Node("b"), Node("a")], [Edge("a", "b")])
    >>> list(parts.node_ids), parts.edge_source.tolist(), parts.edge_target.tolist()
    (['a', 'b'], [0], [1])
    """
    nodes, edges, subscriptions = list(nodes), list(edges), list(subscriptions)
    for node in nodes:
        _check_ids("node", node.id, node.subscription)
    for subscription in subscriptions:
        _check_ids("subscription", subscription.id)
    made_of(subscriptions, lambda row: fixed_score(row.score, row.id))
    read = read_tables(
        _table(nodes, ("id", "filter", "kind", "subscription", "dialect", "score", "cost")),
        _table(edges, ("source", "target", "filter", "dialect", "cost")),
        _hung(subscriptions, numbered=any(isinstance(node.id, int) for node in nodes)),
    )
    for refused in read.refused:
        if refused.table != SUBSCRIPTIONS:
            raise GraphError(refused.reason)
    raise_first({subscriptions[each.row].id: GraphError(each.reason) for each in read.refused})
    return read.parts


def _check_ids(noun: str, *ids: Id | None) -> None:
    for identity in ids:
        if identity is not None:
            try:
                check_id(identity)
            except SubscriptionError as error:
                raise GraphError(f"{noun}: {error}") from None


def _hung(subscriptions: Sequence[Subscription], *, numbered: bool) -> pa.Table:
    """Put subscriptions into a table; tells of all that fit into none."""
    try:
        return _table(subscriptions, ("id", "filter", "dialect", "node", "score"))
    except GraphError:
        made_of(subscriptions, partial(_check_fits, numbered=numbered))
        raise


def _check_fits(row: Subscription, *, numbered: bool) -> None:
    """Refuse a node of another type than those that there are, and a filter that is not UTF-8."""
    whose, node = f"subscription {row.id!r}", row.node
    if node is not None and (isinstance(node, bool) or not isinstance(node, str | int)):
        raise GraphError(f"{whose}: node {node!r} is not usable: give text or a whole number")
    if node is not None and (isinstance(node, int) is not numbered or not _is_id(node)):
        raise GraphError(f"{whose}: there is no node {node!r}")
    try:
        row.filter.encode()
    except UnicodeEncodeError as error:
        why = "the filter holds a lone surrogate, which UTF-8 cannot carry"
        raise GraphError(f"{whose}: {FilterError(why, row.filter, error.start)}") from None


def _is_id(given: Id) -> bool:
    try:
        check_id(given)
    except SubscriptionError:
        return False
    return True


def _table(rows: Sequence[object], names: Sequence[str]) -> pa.Table:
    try:
        return pa.table({name: [getattr(row, name) for row in rows] for name in names})
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, UnicodeEncodeError) as error:
        raise GraphError(f"ids must be all text or all whole numbers: {error}") from None


def read_tables(nodes: pa.Table, edges: pa.Table, subscriptions: pa.Table | None = None) -> GraphTables:
    """Put tables into columns, and refuse rows that do not fit.

    A column `refusal` says why a row must be refused for what is not known here, such as its filter; null for
    the others. A node is refused for what is wrong with itself; then its edges lead nowhere and are refused.
    """
    refused: list[RefusedRow] = []
    node_rows, node_ids, node_table = _unique(nodes, NODES, "node", refused)
    places = _Places(node_ids, nodes)
    edge_rows, edge_table, edge_source, edge_target = _edges(edges, places, refused)
    none = pa.table({"id": _nulls(0, node_ids.type)})
    given = none if subscriptions is None else subscriptions
    if not given.num_rows and len(node_table) and "subscription" in nodes.column_names:
        given = pa.table({"id": _nulls(0, _plain(nodes, "subscription").type)})
    sub_rows, sub_ids, sub_table = _unique(given, SUBSCRIPTIONS, "subscription", refused)
    hang_node, hang_sub, kept = _hang(sub_ids, sub_table, sub_rows, node_table, places, refused)
    sub_ids, sub_rows, sub_table = sub_ids.filter(kept), sub_rows[kept], sub_table.filter(kept)
    moved = np.cumsum(kept) - 1
    serving = _plain(node_table, "subscription", sub_ids.type)
    # One that was refused is not served at all: without its filter, it would get everything.
    given_ids = _plain(given, "id", sub_ids.type)
    itself = serving.is_valid().to_numpy(zero_copy_only=False) & ~_member(serving, given_ids)
    if given_ids.null_count and itself.any():
        # A row whose id cannot be read may be the filter of any subscription that only a node names.
        _refuse_unread(node_table, node_rows, itself, refused)
        itself[:] = False
    own_ids = _compute.unique(serving.filter(pa.array(itself)))
    all_ids = pa.concat_arrays([sub_ids, own_ids.cast(sub_ids.type)])
    order = _compute.sort_indices(all_ids).to_numpy()
    rank = np.empty(len(order), np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    ordered = all_ids.take(order)
    node_subscription = _places_in(serving, ordered)
    node_subscription[~itself] = -1
    score = np.zeros(len(order))
    score[rank[: len(sub_ids)]] = _numbers(sub_table, "score", 0.0)
    # Several nodes may serve one subscription: the highest score counts.
    highest = np.full(len(order), -np.inf)
    np.maximum.at(highest, node_subscription[itself], _numbers(node_table, "score", 0.0)[itself])
    score = np.where(np.isfinite(highest), highest, score)
    kinds, node_kind = _kinds(_plain(node_table, "kind", pa.string()))
    texts = pa.concat_arrays(
        [_plain(sub_table, "filter", pa.large_string()), _nulls(len(own_ids), pa.large_string())]
    )
    dialects = pa.concat_arrays([_dialects(sub_table), pa.array([SQL] * len(own_ids), pa.string())])
    parts = Parts(
        node_ids=Ids.from_arrow(node_ids),
        kinds=kinds,
        node_kind=node_kind,
        node_filter=_plain(node_table, "filter", pa.large_string()),
        node_dialect=_dialects(node_table),
        node_cost=_numbers(node_table, "cost", 0.0),
        node_subscription=node_subscription,
        edge_source=edge_source,
        edge_target=edge_target,
        edge_filter=_plain(edge_table, "filter", pa.large_string()),
        edge_dialect=_dialects(edge_table),
        edge_cost=_numbers(edge_table, "cost", 1.0),
        subscription_ids=Ids.from_arrow(ordered),
        subscription_filter=texts.take(order),
        subscription_dialect=dialects.take(order),
        subscription_score=score,
        hang_node=hang_node,
        hang_subscription=rank[moved[hang_sub]] if len(hang_sub) else hang_sub,
    )
    return GraphTables(parts, refused, node_rows, edge_rows, sub_rows)


def _refuse_unread(nodes: pa.Table, rows: Ints, itself: Bools, refused: list[RefusedRow]) -> None:
    for at in np.flatnonzero(itself).tolist():
        node, named = nodes["id"][at].as_py(), nodes["subscription"][at].as_py()
        reason = (
            f"node {node!r} does not serve {named!r}: a row of the subscriptions has no id that can be read, "
            "and may be its filter"
        )
        refused.append(RefusedRow(NODES, int(rows[at]), str(node), reason))


class _Places:
    """Where nodes are, by id."""

    def __init__(self, ids: Column, nodes: pa.Table) -> None:
        self.ids = ids
        self._given = nodes

    def find(self, column: Column) -> Ints32:
        """Find the places of nodes, -1 where there is no such node."""
        if _numbered(column) is not _numbered(self.ids):
            return np.full(len(column), -1, np.int32)
        return _places_in(column.cast(self.ids.type), self.ids)

    def missing(self, identity: object) -> str:
        """Say why a node is not there."""
        if identity is None:
            return "no node is named"
        known = identity in self._given_ids
        return f"node {identity!r} was refused" if known else f"there is no node {identity!r}"

    @cached_property
    def _given_ids(self) -> set[object]:
        return set(_plain(self._given, "id").to_pylist())


def _numbered(column: Column) -> bool:
    return pa.types.is_integer(column.type)


def _plain(table: pa.Table, name: str, kind: pa.DataType | None = None) -> Column:
    """Return a column as one array, nulls if the table does not have it; ids of any width become int64."""
    column: Any = None
    if name in table.column_names:
        chunks = table.column(name).chunks
        column = pa.concat_arrays(chunks) if chunks else None
    if column is None or pa.types.is_null(column.type):
        missing: Column = _nulls(table.num_rows, kind or pa.string())
        return missing
    if kind is None:
        kind = pa.int64() if pa.types.is_integer(column.type) else pa.string()
    try:
        plain: Column = column.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise GraphError(f"column {name!r} holds {column.type}, which does not go with {kind}") from None
    return plain


def _dialects(table: pa.Table) -> Column:
    return _plain(table, "dialect", pa.string()).fill_null(SQL)


def _numbers(table: pa.Table, name: str, default: float) -> Floats64:
    return _plain(table, name, pa.float64()).fill_null(default).to_numpy(zero_copy_only=False).copy()


def _member(column: Column, ids: Column) -> Bools:
    inside = _compute.is_in(column, value_set=ids).to_numpy(zero_copy_only=False)
    return np.asarray(inside & column.is_valid().to_numpy(zero_copy_only=False), np.bool_)


def _places_in(column: Column, ids: Column) -> Ints32:
    places = _compute.index_in(column, value_set=ids, skip_nulls=True).fill_null(-1)
    return np.array(places.to_numpy(zero_copy_only=False), np.int32)


def _kinds(column: Column) -> tuple[tuple[str, ...], Ints32]:
    coded = column.fill_null("").dictionary_encode()
    return tuple(map(str, coded.dictionary.to_pylist())), coded.indices.to_numpy(zero_copy_only=False).astype(
        np.int32
    )


def _unique(
    table: pa.Table, name: str, noun: str, refused: list[RefusedRow]
) -> tuple[Ints, Column, pa.Table]:
    """Take the rows with a usable id, sorted by it; returns their row numbers, the ids and the rows."""
    ids = _plain(table, "id")
    rows = np.arange(table.num_rows)
    refusal = _plain(table, "refusal", pa.string())
    cost, score = _numbers(table, "cost", 0.0), _numbers(table, "score", 0.0)
    bad = (
        ids.is_null().to_numpy(zero_copy_only=False)
        | refusal.is_valid().to_numpy(zero_copy_only=False)
        | ~(cost >= 0)
        | ~np.isfinite(cost)
        | ~np.isfinite(score)
    )
    for row in np.flatnonzero(bad).tolist():
        identity = ids[row].as_py()
        reason = refusal[row].as_py()
        if identity is None:
            reason = f"the {noun} has no id: give text or a whole number"
        elif reason is None and not np.isfinite(score[row]):
            reason = f"{noun} {identity!r} has score {score[row]}: give a finite number"
        elif reason is None:
            reason = f"{noun} {identity!r} has cost {cost[row]}: give a number from 0 up"
        refused.append(RefusedRow(name, row, "" if identity is None else str(identity), reason))
    rows = rows[~bad]
    sound = ids.take(rows)
    order = _compute.sort_indices(sound).to_numpy().astype(np.int64)
    # Equal ids in the order of their rows: the first one stays.
    order = order[np.lexsort((rows[order], _compute.rank(sound, tiebreaker="min").to_numpy()[order]))]
    rows, sound = rows[order], sound.take(order)
    again = np.zeros(len(rows), np.bool_)
    if len(rows) > 1:
        again[1:] = _compute.equal(sound[1:], sound[:-1]).to_numpy(zero_copy_only=False)
    for row in np.sort(rows[again]).tolist():
        reason = f"{noun} {ids[row].as_py()!r} is given again: an id can be used once"
        refused.append(RefusedRow(name, row, str(ids[row].as_py()), reason))
    rows, sound = rows[~again], sound.filter(pa.array(~again))
    return rows, sound, table.take(rows)


def _edges(
    table: pa.Table, places: _Places, refused: list[RefusedRow]
) -> tuple[Ints, pa.Table, Ints32, Ints32]:
    """Take the edges whose ends are nodes; returns their rows, and their ends as places."""
    source, target = _plain(table, "source"), _plain(table, "target")
    begin, end = places.find(source), places.find(target)
    refusal = _plain(table, "refusal", pa.string())
    cost = _numbers(table, "cost", 1.0)
    bad = (begin < 0) | (end < 0) | refusal.is_valid().to_numpy(zero_copy_only=False)
    bad |= ~(cost >= 0) | ~np.isfinite(cost)
    for row in np.flatnonzero(bad).tolist():
        ends = source[row].as_py(), target[row].as_py()
        edge = f"edge from {ends[0]!r} to {ends[1]!r}"
        if begin[row] < 0 or end[row] < 0:
            reason = f"{edge}: {places.missing(ends[0] if begin[row] < 0 else ends[1])}"
        else:
            reason = refusal[row].as_py() or f"{edge} has cost {cost[row]}: give a number from 0 up"
        refused.append(RefusedRow(EDGES, row, f"{ends[0]} → {ends[1]}", reason))
    rows = np.flatnonzero(~bad)
    return rows, table.take(rows), begin[rows], end[rows]


def _hang(
    ids: Column, table: pa.Table, rows: Ints, nodes: pa.Table, places: _Places, refused: list[RefusedRow]
) -> tuple[Ints32, Ints32, Bools]:
    """Find where subscriptions hang: at their own node, and at nodes that name them.

    Returns nodes and subscriptions that belong together, and which subscriptions hang anywhere.
    """
    named = _plain(table, "node")
    own = places.find(named)
    serving = _plain(nodes, "subscription", ids.type)
    back = _places_in(serving, ids)
    hang_node = np.concatenate([own[own >= 0], np.flatnonzero(back >= 0)]).astype(np.int32)
    hang_sub = np.concatenate([np.flatnonzero(own >= 0), back[back >= 0]]).astype(np.int32)
    kept = np.zeros(len(ids), np.bool_)
    kept[hang_sub] = True
    lost = named.is_valid().to_numpy(zero_copy_only=False) & (own < 0)
    for at in np.flatnonzero(~kept | lost).tolist():
        identity, node = ids[at].as_py(), named[at].as_py()
        nowhere = "it is attached to no node: name one as its 'node'"
        why = places.missing(node) if node is not None else nowhere
        refused.append(
            RefusedRow(SUBSCRIPTIONS, int(rows[at]), str(identity), f"subscription {identity!r}: {why}")
        )
    kept &= ~lost
    both = kept[hang_sub]
    return hang_node[both], hang_sub[both], kept
