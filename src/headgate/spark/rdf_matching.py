"""What workers do to match RDF events that were read: graphs in, matches out."""

from __future__ import annotations

from functools import lru_cache
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from headgate.core.event import ID, N_TRIPLES, Event
from headgate.core.snapshot import room_of
from headgate.graph.base import ROOM as GRAPH
from headgate.ranking.base import ROOM as RANKING
from headgate.rdf.index import RdfIndex
from headgate.rdf.model import Graph
from headgate.spark.graph_matching import fit_event, known, opened_graph
from headgate.spark.graph_top import RankedGraph
from headgate.spark.rdf_rows import TERMS, TRIPLES
from headgate.spark.top_matching import Subscriptions, ask_rows, numbers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from headgate.spark.matching import Task
    from headgate.spark.top_matching import Asked


@lru_cache(maxsize=2)
def opened_patterns(path: str, digest: str) -> RdfIndex:  # noqa: ARG001 -- tells a replaced snapshot apart
    """Open patterns once in a worker; the driver has verified them, and the pages are shared."""
    return RdfIndex.open(Path(path), verify=False)


def match_documents(batches: Iterable[pa.RecordBatch], task: Task) -> Iterator[pa.RecordBatch]:
    """Match events that were read, against whatever the snapshot is."""
    return ask_rows(batches, task, _asked(task), read_events)


def read_events(batch: pa.RecordBatch) -> list[Event]:
    """Make events of the columns that were read."""
    names = (ID, "source_number", "source_text", TERMS, TRIPLES)
    rows = zip(*(batch[name].to_pylist() for name in names), strict=True)
    return [
        Event(
            identity,
            # A copy can be written to, as every other graph's triples: kernels are compiled for that.
            Graph(terms, np.frombuffer(triples, np.int32).reshape(-1, 3).copy()),
            source=text if number is None else number,
            content_type=N_TRIPLES,
        )
        for identity, number, text, terms, triples in rows
    ]


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
