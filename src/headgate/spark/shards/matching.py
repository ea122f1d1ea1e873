"""What workers do before they match a shard: drop the events that cannot match there."""

from __future__ import annotations

import resource
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa

from headgate.contents.registry import kind_of
from headgate.errors import MachineError, SnapshotError
from headgate.spark.match.matching import PACKED, lines_of, unpacked
from headgate.spark.tables.document_rows import PARSED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import numpy as np
    from numpy.typing import NDArray

    from headgate.runtime.routes import Route
    from headgate.spark.match.matching import Task
    from headgate.spark.tables.events import Work

_NO_MEMORY = ("Cannot allocate memory", "out of memory", "malloc of size")
"""What is said by those who are refused memory and do not raise MemoryError."""


def match_routed(
    batches: Iterable[pa.RecordBatch],
    work: Work,
    task: Task,
    route: Route | None,
) -> Iterator[pa.RecordBatch]:
    """Match a shard, or a snapshot in one piece, against the events that can match there."""
    with in_memory(task.snapshot):
        yield from work(batches if route is None else _routed(batches, route), task=task)


def _routed(batches: Iterable[pa.RecordBatch], route: Route) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        kept = _kept(batch, route)
        part = batch if kept.all() else batch.filter(pa.array(kept))
        if part.num_rows:
            yield part


def _kept(batch: pa.RecordBatch, route: Route) -> NDArray[np.bool_]:
    names = batch.schema.names
    if PACKED in names:
        return route.of_columns(unpacked(batch))
    if PARSED in names:
        kind = kind_of(route.content)
        documents: list[Any] = batch[PARSED].to_pylist()
        return route.of_documents(kind.unpack(packed)[0] for packed in documents)
    return route.of_values(map(_decoded, lines_of(batch)))


def _decoded(line: bytes) -> Any:
    """Read a line; what is none becomes nothing that could be passed over."""
    try:
        return msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return ()


@contextmanager
def in_memory(snapshot: str) -> Iterator[None]:
    """Say in one line that a snapshot is too large for a worker."""
    try:
        yield
    except (MemoryError, OSError, SnapshotError) as error:
        if not isinstance(error, MemoryError) and not any(sign in str(error) for sign in _NO_MEMORY):
            raise
        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        most = "" if limit == resource.RLIM_INFINITY else f" of {limit >> 20:,} MB"
        raise MachineError(
            f"{snapshot} does not fit into the memory{most} of a worker: compile it in more shards "
            "(--shards), or give workers more (spark.executor.pyspark.memory)"
        ) from error
