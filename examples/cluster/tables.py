"""The workload W-eq, small: subscriptions with scores that hang in a graph, and events from publishers."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from headgate.workloads.catalogue import synthetic

SEED = 1
PUBLISHERS, NETWORKS = 4, 12
PARTS = 20
"""Row groups of the events, at least: Spark makes no more tasks than a file has of them."""


class Place(NamedTuple):
    """Where the tables are, and what the jobs make of them."""

    nodes: str
    edges: str
    subscriptions: str
    events: str

    @classmethod
    def under(cls, folder: Path) -> Place:
        """Name the tables in a folder."""
        return cls(*(str(folder / f"{name}.parquet") for name in cls._fields))


def write(place: Place, filters: int, events: int) -> None:
    """Write all four tables; the same whenever they are written."""
    Path(place.nodes).parent.mkdir(parents=True, exist_ok=True)
    workload = synthetic("equality", filters)
    publishers = [f"publisher-{n}" for n in range(PUBLISHERS)]
    networks = [f"network-{n}" for n in range(NETWORKS)]
    texts = [None] * PUBLISHERS + [
        None if n % 2 else f"num01 IS NULL OR num01 >= {n % 5}" for n in range(NETWORKS)
    ]
    pq.write_table(
        pa.table({"id": publishers + networks, "filter": pa.array(texts, pa.string())}), place.nodes
    )
    pairs = [(a, b) for a in range(PUBLISHERS) for b in range(NETWORKS) if (a + b) % 3]
    edges = {"source": [publishers[a] for a, _ in pairs], "target": [networks[b] for _, b in pairs]}
    pq.write_table(pa.table(edges), place.edges)
    rows = np.arange(filters)
    table = pa.Table.from_batches([workload.subscriptions(rows, SEED)])
    table = table.append_column("node", pa.array([networks[n % NETWORKS] for n in range(filters)]))
    table = table.append_column("score", pa.array((rows * 7_919 % 1_000) / 10.0))
    pq.write_table(table, place.subscriptions)
    schema = workload.schema().append(pa.field("source", pa.string()))
    with pq.ParquetWriter(place.events, schema) as writer:
        size = max(1, min(50_000, events // PARTS))
        for begin in range(0, events, size):
            rows = np.arange(begin, min(events, begin + size))
            source = pa.array([publishers[n % PUBLISHERS] for n in rows.tolist()])
            columns = [*workload.events(rows, SEED).columns, source]
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))
