"""Workloads with a graph: nodes that events pass on their way from a publisher to subscriptions.

nodes    id, kind, filter (null: everything passes), subscription (null: delivers nothing), score, cost
edges    source, target (ids of nodes), filter (always null), cost
events   id "event-0000042", source (id of the node that publishes it), and the attributes

A node's place is its row number in the table of nodes. Filters, attributes, scores and costs are hashes of
their own row. Edges cannot be: that none of them comes twice, or that a part of the graph is connected, is
about all of them. So the structure is drawn as a whole, from the seed alone, once in each process.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from headgate.errors import HeadgateError
from headgate.workloads.columns import numbered
from headgate.workloads.records.specification import texts
from headgate.workloads.records.synthetic import SpecifiedWorkload

if TYPE_CHECKING:
    from collections.abc import Callable

    from headgate.core.arrays import Bytes, Ints32
    from headgate.workloads.columns import Bools, Ints, Texts


_TEXT, _DOUBLE = pa.string(), pa.float64()


def _schema(fields: dict[str, tuple[pa.DataType, bool]]) -> pa.Schema:
    return pa.schema([pa.field(name, kind, nullable=nullable) for name, (kind, nullable) in fields.items()])


NODE_SCHEMA = _schema(
    {
        "id": (_TEXT, False),
        "kind": (_TEXT, False),
        "filter": (_TEXT, True),
        "subscription": (_TEXT, True),
        "score": (_DOUBLE, False),
        "cost": (_DOUBLE, False),
    }
)
EDGE_SCHEMA = _schema(
    {"source": (_TEXT, False), "target": (_TEXT, False), "filter": (_TEXT, True), "cost": (_DOUBLE, False)}
)
_HOP = 1.0


class Structure(NamedTuple):
    """A graph as arrays; edges ascend by their source, then by their target."""

    kind: Bytes
    edge_source: Ints32
    edge_target: Ints32

    @classmethod
    def frozen(cls, kind: Ints, source: Ints, target: Ints) -> Structure:
        """Make arrays that nobody can change."""
        structure = cls(kind.astype(np.uint8), source.astype(np.int32), target.astype(np.int32))
        for array in structure:
            array.setflags(write=False)
        return structure


class GraphWorkload(SpecifiedWorkload):
    """Rows of a workload with a graph; each depends on its number and the seed alone."""

    @property
    @abstractmethod
    def node_count(self) -> int:
        """Count the nodes."""

    @property
    @abstractmethod
    def edge_count(self) -> int:
        """Count the edges."""

    @abstractmethod
    def structure(self, seed: int) -> Structure:
        """Draw the graph, or return the one that was drawn for this seed."""

    @abstractmethod
    def ids(self, places: Ints) -> Texts:
        """Write the ids of nodes."""

    @abstractmethod
    def nodes(self, rows: Ints, seed: int) -> pa.RecordBatch:
        """Make the nodes with the given row numbers."""

    @abstractmethod
    def has_filter(self, rows: Ints) -> Bools:
        """Tell which nodes have a filter."""

    @abstractmethod
    def sources(self, rows: Ints, seed: int) -> Ints:
        """Draw the places of the nodes that publish the events with the given row numbers."""

    def filtered(self, seed: int) -> Ints:  # noqa: ARG002 - which nodes have filters may depend on it
        """List the rows of nodes that have a filter, in rising order."""
        return np.flatnonzero(self.has_filter(np.arange(self.node_count)))

    def refuse_without(self, rows: Ints) -> None:
        """Raise if a node has no filter."""
        without = rows[~self.has_filter(rows)]
        if len(without):
            raise HeadgateError(f"node {without[0]} has no filter; `filtered` lists those that have one")

    def filters(self, rows: Ints, seed: int) -> Texts:
        """Write the filters of nodes, null where a node has none."""
        (have,) = np.nonzero(self.has_filter(rows))
        at = np.full(len(rows), -1, np.int64)
        at[have] = np.arange(len(have))
        return texts(self.specification(rows[have], seed)).take(pa.array(at, pa.int64(), mask=at < 0))

    def node_schema(self) -> pa.Schema:
        """Describe the columns of `nodes`."""
        return NODE_SCHEMA

    def edges(self, rows: Ints, seed: int) -> pa.RecordBatch:
        """Make the edges with the given row numbers."""
        rows = np.asarray(rows, np.int64)
        structure = self.structure(seed)
        columns: list[pa.Array[Any]] = [
            self.ids(structure.edge_source[rows].astype(np.int64)),
            self.ids(structure.edge_target[rows].astype(np.int64)),
            pa.nulls(len(rows), pa.string()),
            pa.array(np.full(len(rows), _HOP)),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=EDGE_SCHEMA)

    def edge_schema(self) -> pa.Schema:
        """Describe the columns of `edges`."""
        return EDGE_SCHEMA

    def events(self, rows: Ints, seed: int) -> pa.RecordBatch:
        """Make the events with the given row numbers."""
        rows = np.asarray(rows, np.int64)
        columns = [numbered("event-", rows, 7), self.ids(self.sources(rows, seed)), *self.values(rows, seed)]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema())

    def schema(self) -> pa.Schema:
        """Describe the columns of `events`."""
        return self.schema_with("id", "source")


def fill(given: Ints, count: int, draw: Callable[[int, int], Ints]) -> Ints:
    """Add to different numbers until there are `count`, in rising order.

    `draw(wanted, turn)` draws some; those that are negative or known are dropped, and drawn for again.

    >>> fill(np.array([5, 1]), 4, lambda wanted, turn: np.arange(wanted) + turn).tolist()
    [0, 1, 2, 5]
    """
    numbers, turn = _different(given), 0
    while len(numbers) < count:
        drawn = draw(count - len(numbers), turn)
        numbers = _different(np.concatenate((numbers, drawn[drawn >= 0])))
        turn += 1
    return numbers


def _different(numbers: Ints) -> Ints:
    # np.unique takes ten times as long.
    ordered = np.sort(numbers)
    return ordered[np.diff(ordered, prepend=-1) > 0]
