"""What workers do to find the best k of a graph: of those that an event comes to.

Exact ranks by the score less what the way costs, relaxed by the weights of the clauses that hold.
Each shard answers for its own subscriptions. Its events are those whose source is a node there.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import compress
from operator import methodcaller
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from headgate.core.event import Event
from headgate.core.omission import Renamed
from headgate.core.values import kind_of
from headgate.engine.engine import Engine
from headgate.errors import EventError
from headgate.records.index.index import EVENT_ID, SUBSCRIPTION_ID
from headgate.runtime.asking import known
from headgate.runtime.questions import EXACT, RANK, SCORE
from headgate.runtime.targets import opened_as
from headgate.spark.match.graph_matching import fit_event, fit_source
from headgate.spark.match.top_matching import ask_columns, ask_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from headgate.graph.ranked.ranked import Ranked
    from headgate.ranking.model import Best
    from headgate.spark.match.matching import Task


@lru_cache(maxsize=2)
def opened_engine(path: str, digest: str) -> Engine:
    """Open a graph with its clauses once in a worker; the driver has verified it, and pages are shared."""
    return opened_as(path, digest, lambda place: Engine.open(place, verify=False))


def rank_graph_columns(batches: Iterable[pa.RecordBatch], task: Task) -> Iterator[pa.RecordBatch]:
    """Find the best for events that come as columns, packed into one: `id`, `source` and the attributes."""
    return ask_columns(batches, task, RankedGraph(task))


def rank_graph_lines(batches: Iterable[pa.RecordBatch], task: Task) -> Iterator[pa.RecordBatch]:
    """Find the best for events that come as lines of JSON; those that were refused are passed over here."""
    return ask_lines(batches, task, RankedGraph(task))


class RankedGraph:
    """A graph, or a shard of it."""

    def __init__(self, task: Task) -> None:
        assert task.top is not None
        self._engine = opened_engine(task.snapshot, task.digest)
        self._graph = self._engine.graph
        self._task = task
        self._top = task.top
        self.size = len(self._graph.base.names.subscription_ids)
        if self._top.mode == EXACT:
            # A graph finds the best of many events in portions by itself: only answers take room.
            self.size = min(self.size, self._top.k)

    def of_batch(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Ask for events that come as columns."""
        batch = fit_source(batch, self._task)
        rows = np.flatnonzero([reason is None for reason in self._graph.sources(batch)])
        batch = batch.take(rows)
        if self._top.mode != EXACT:
            return self._best(rows.tolist(), map(_event, batch.to_pylist()))
        return _scored(self._graph.top_batch(batch, self._top.k, pa.array(rows)))

    def of_events(self, events: Sequence[Event]) -> pa.RecordBatch:
        """Ask for events that come as Python values."""
        fitted = [fit_event(event, self._task) for event in events]
        here = known(self._graph, fitted)
        rows = np.flatnonzero(here)
        if self._top.mode != EXACT:
            return self._best(rows.tolist(), compress(fitted, here))
        kept = list(compress(fitted, here))
        return _scored(self._graph.top_events(kept, self._top.k, pa.array(rows)))

    def _best(self, rows: Sequence[int], events: Iterable[Event]) -> pa.RecordBatch:
        found: list[tuple[int, int, Ranked | Best]] = []
        for row, event in zip(rows, events, strict=True):
            with Renamed(methodcaller("_replace", event=row)):
                best: Sequence[Ranked | Best] = self._engine.top(
                    event, self._top.k, self._top.mode, factors=self._top.weighing
                )
            found += [(row, rank, each) for rank, each in enumerate(best, 1)]
        columns: dict[str, Any] = {
            EVENT_ID: pa.array([row for row, _, _ in found], pa.int64()),
            SUBSCRIPTION_ID: pa.array([each.subscription for *_, each in found], self._task.output.types[1]),
            SCORE: pa.array([each.value for *_, each in found], pa.float64()),
            RANK: pa.array([rank for _, rank, _ in found], pa.int32()),
        }
        return pa.RecordBatch.from_pydict(columns)


def _scored(found: pa.RecordBatch) -> pa.RecordBatch:
    """Name what a graph calls a value as the table of matches does."""
    return found.rename_columns([EVENT_ID, SUBSCRIPTION_ID, SCORE, RANK])


def _event(row: dict[str, Any]) -> Event:
    """Make an event of a row. Of values that filters cannot compare they see only that they are there."""
    return Event.from_row({name: _visible(value) for name, value in row.items()})


def _visible(value: object) -> object:
    if isinstance(value, dict):
        return {name: _visible(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_visible(each) for each in value]
    try:
        kind_of(value)
    except EventError:
        return True
    return value
