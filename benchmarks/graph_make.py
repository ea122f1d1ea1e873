"""Graphs of the workloads, numbered and indexed without parsing a filter, with events that are encoded."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from benchmarks.specified_programs import programs
from headgate.core.ids import Ids
from headgate.core.interning import TextPool
from headgate.graph.base import Base, Names
from headgate.graph.build.build import build
from headgate.graph.index import GraphIndex
from headgate.graph.model import Parts
from headgate.records.index.index import RecordIndex
from headgate.records.programs.programs import take

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from headgate.core.arrays import Ints
    from headgate.core.planes import Cells
    from headgate.graph.build.build import BuiltGraph
    from headgate.workloads.graphs.graphs import GraphWorkload, Structure


SEED = 1

_compute: Any = pc


class Drawn(NamedTuple):
    """A graph in columns, and the row of the workload that each of its nodes is, in the order of ids."""

    parts: Parts
    row: Ints


@dataclass(frozen=True)
class Ready:
    """An index with encoded events; `seconds` says what building took, step by step."""

    index: GraphIndex
    filters: RecordIndex
    events: pa.RecordBatch
    cells: Cells
    source: NDArray[np.int32]
    seconds: dict[str, float]


def draw(workload: GraphWorkload, change: Callable[[Structure], Structure] = lambda same: same) -> Drawn:
    """Put a workload's graph into columns, changed if need be."""
    structure = change(workload.structure(SEED))
    nodes = workload.nodes(np.arange(workload.node_count), SEED)
    row = _compute.sort_indices(nodes["id"]).to_numpy().astype(np.int64)
    place = np.empty(len(row), np.int32)
    place[row] = np.arange(len(row), dtype=np.int32)
    nodes = nodes.take(row)
    served = nodes["subscription"].is_valid().to_numpy(zero_copy_only=False)
    # A subscription has the id of its node, so both are in the same order.
    subscriptions = nodes["subscription"].drop_null()
    kinds = nodes["kind"].dictionary_encode()
    edges, texts = len(structure.edge_source), pa.large_string()
    none: Any = pa.nulls
    parts = Parts(
        node_ids=Ids.from_arrow(nodes["id"]),
        kinds=tuple(map(str, kinds.dictionary.to_pylist())),
        node_kind=kinds.indices.to_numpy().astype(np.int16),
        node_filter=nodes["filter"].cast(texts),
        node_dialect=none(len(row), texts),
        node_cost=nodes["cost"].to_numpy(),
        node_subscription=np.where(served, np.cumsum(served) - 1, -1).astype(np.int32),
        edge_source=place[structure.edge_source],
        edge_target=place[structure.edge_target],
        edge_filter=none(edges, texts),
        edge_dialect=none(edges, texts),
        edge_cost=np.ones(edges),
        subscription_ids=Ids.from_arrow(subscriptions),
        subscription_filter=none(len(subscriptions), texts),
        subscription_dialect=none(len(subscriptions), texts),
        subscription_score=nodes["score"].to_numpy()[served],
        hang_node=np.zeros(0, np.int32),
        hang_subscription=np.zeros(0, np.int32),
    )
    return Drawn(parts, row)


def acyclic(structure: Structure) -> Structure:
    """Turn the edges inside components around where they lead to a lower place."""
    source, target = structure.edge_source, structure.edge_target
    count = len(structure.kind)
    ones = np.ones(len(source), np.int8)
    _, label = connected_components(csr_array((ones, (source, target)), (count, count)), connection="strong")
    against = (label[source] == label[target]) & (source > target)
    return structure._replace(
        edge_source=np.where(against, target, source), edge_target=np.where(against, source, target)
    )


def index_filters(
    workload: GraphWorkload, drawn: Drawn, built: BuiltGraph, events: int, seconds: dict[str, float]
) -> Ready:
    """Index the filters of a numbered graph, lay out planes, and encode events."""
    parts, rows = drawn.parts, workload.filtered(SEED)
    if len(rows):
        drawn_programs = programs(workload.specification(rows, SEED))
        begun = time.perf_counter()
        order = np.searchsorted(rows, drawn.row[built.arrays.place[built.filtered]])
        texts = TextPool.from_arrow(built.filters)
        filters = RecordIndex.from_programs(Ids(built.filtered), texts, take(drawn_programs, order))
    else:
        begun = time.perf_counter()
        filters = RecordIndex.build([])
    seconds = {**seconds, "indexing filters": time.perf_counter() - begun}
    names = Names(
        parts.node_ids,
        parts.subscription_ids,
        parts.kinds,
        parts.node_kind,
        built.vertex_of_node,
        built.edge_ends,
    )
    base = Base(built.arrays, names, filters)
    begun = time.perf_counter()
    filter_planes = base.filter_planes
    assert filter_planes is not None
    assert base.planes.exact, "the evaluators of the paper do not ask the content room"
    seconds["planes"] = time.perf_counter() - begun
    place = np.empty(len(drawn.row), np.int64)
    place[drawn.row] = np.arange(len(drawn.row))
    batch = workload.events(np.arange(events), SEED)
    source = built.vertex_of_node[place[workload.sources(np.arange(events), SEED)]].astype(np.int32)
    cells = filter_planes.encode_batch(batch).cells
    return Ready(GraphIndex(base, RecordIndex), filters, batch, cells, source, seconds)


def make(
    workload: GraphWorkload,
    events: int,
    change: Callable[[Structure], Structure] = lambda same: same,
) -> Ready:
    """Number the graph of a workload, and do the rest."""
    drawn = draw(workload, change)
    built, seconds = number(drawn)
    return index_filters(workload, drawn, built, events, seconds)


def number(drawn: Drawn) -> tuple[BuiltGraph, dict[str, float]]:
    """Number a graph and lay it out; returns the seconds that it took too."""
    begun = time.perf_counter()
    built = build(drawn.parts)
    return built, {"numbering and arrays": time.perf_counter() - begun}
