"""What workers do to match documents that were read: what their kind wrote in, matches out."""

from __future__ import annotations

from functools import lru_cache, partial
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from headgate.contents.registry import content_at, kind_of, room_at
from headgate.core.event import ID, Event
from headgate.core.snapshot import room_of
from headgate.graph.base import ROOM as GRAPH
from headgate.ranking.filters.base import ROOM as RANKING
from headgate.runtime.asking import known
from headgate.runtime.targets import opened_as
from headgate.spark.match.graph_matching import fit_event, opened_graph
from headgate.spark.match.graph_top import RankedGraph
from headgate.spark.match.top_matching import Subscriptions, ask_rows, numbers
from headgate.spark.tables.document_rows import PARSED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from headgate.contents.protocol import Content
    from headgate.spark.match.matching import Task
    from headgate.spark.match.top_matching import Asked


@lru_cache(maxsize=2)
def opened_patterns(path: str, digest: str) -> Content:
    """Open patterns once in a worker; the driver has verified them, and the pages are shared."""
    return opened_as(path, digest, lambda place: room_at(place).open(place, verify=False))


def match_documents(batches: Iterable[pa.RecordBatch], task: Task) -> Iterator[pa.RecordBatch]:
    """Match events that were read, against whatever the snapshot is."""
    content = content_at(Path(task.snapshot))
    return ask_rows(batches, task, _asked(task), partial(read_events, content=content))


def read_events(batch: pa.RecordBatch, content: str) -> list[Event]:
    """Make events of the columns that were read for a content room."""
    kind = kind_of(content)
    found = []
    rows = zip(
        *(batch[name].to_pylist() for name in (ID, "source_number", "source_text", PARSED)), strict=True
    )
    for identity, number, text, packed in rows:
        data, written = kind.unpack(packed)
        source = text if number is None else number
        found.append(Event(identity, data, source=source, content_type=written))
    return found


def _asked(task: Task) -> Asked:
    room = room_of(Path(task.snapshot))
    if room == RANKING:
        return Subscriptions(task)
    if room == GRAPH:
        return _Reached(task) if task.top is None else RankedGraph(task)
    return _Patterns(task)


class _Patterns:
    """Patterns without a graph."""

    def __init__(self, task: Task) -> None:
        self._index = opened_patterns(task.snapshot, task.digest)
        self.size = len(self._index)

    def of_events(self, events: Sequence[Event]) -> pa.RecordBatch:
        """Ask for events that come as Python values."""
        return self._index.match_events(events, numbers(len(events)))


class _Reached:
    """All subscriptions of a graph, or a shard of it, that get an event."""

    def __init__(self, task: Task) -> None:
        self._graph = opened_graph(task.snapshot, task.digest)
        self._task = task
        self.size = len(self._graph.base.names.subscription_ids)

    def of_events(self, events: Sequence[Event]) -> pa.RecordBatch:
        """Ask for events that come as Python values."""
        fitted = [fit_event(event, self._task) for event in events]
        here = known(self._graph, fitted)
        rows = pa.array(np.flatnonzero(here).astype(np.int64))
        return self._graph.match_events(list(compress(fitted, here)), rows)
