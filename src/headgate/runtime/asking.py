"""Questions about many events at once: asked of one engine, and the answers of several put together."""

from __future__ import annotations

from operator import methodcaller
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.core.event import SOURCE, Event
from headgate.core.omission import Renamed
from headgate.graph.index import GraphIndex
from headgate.ranking.filters.index import RankedIndex
from headgate.records.index.index import EVENT_ID, SUBSCRIPTION_ID
from headgate.runtime.questions import EXACT, RANK, SCORE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from headgate.engine.engine import Engine
    from headgate.graph.ranked.ranked import Ranked
    from headgate.ranking.model import Best
    from headgate.runtime.questions import Top

    Column = pa.Array[Any]

_compute: Any = pc


def ask(engine: Engine, events: Sequence[Event], ids: Column, top: Top | None) -> pa.RecordBatch:
    """Ask a live engine for all matches of events, or the best of each."""
    index = engine.index
    if top is None:
        return index.match_events(events, ids)
    if isinstance(index, RankedIndex):
        return index.top_events(events, top.k, top.mode, factors=top.weighing, identities=ids)
    if isinstance(index, GraphIndex) and top.mode == EXACT:
        return index.top_events(events, top.k, ids).rename_columns([EVENT_ID, SUBSCRIPTION_ID, SCORE, RANK])
    rows = []
    for event, identity in zip(events, ids.to_pylist(), strict=True):
        with Renamed(methodcaller("_replace", event=identity)):
            best: Sequence[Ranked | Best] = engine.top(event, top.k, top.mode, factors=top.weighing)
        rows += [(identity, each.subscription, each.value, rank) for rank, each in enumerate(best, 1)]
    columns: list[Column] = [pa.array([row[place] for row in rows]) for place in range(4)]
    return pa.RecordBatch.from_arrays(columns, names=[EVENT_ID, SUBSCRIPTION_ID, SCORE, RANK])


def merged(answers: Sequence[pa.RecordBatch], ids: Column, top: Top | None) -> pa.RecordBatch:
    """Put answers of shards together that have rows for events: all, or the best; equal ones go by id.

    A subscription is on one shard, so nothing is there twice; and the best of all are among the best of each.

    >>> from headgate.runtime.questions import Top
    >>> answers = [
    ...     pa.RecordBatch.from_pydict({EVENT_ID: [0, 0], SUBSCRIPTION_ID: ["b", "d"], SCORE: [2.0, 1.0]}),
    ...     pa.RecordBatch.from_pydict({EVENT_ID: [0, 1], SUBSCRIPTION_ID: ["a", "c"], SCORE: [2.0, 0.5]}),
    ... ]
    >>> list(zip(*merged(answers, pa.array(["e0", "e1"]), Top(2)).to_pydict().values()))
    [('e0', 'a', 2.0, 1), ('e0', 'b', 2.0, 2), ('e1', 'c', 0.5, 1)]
    """
    names = [EVENT_ID, SUBSCRIPTION_ID] if top is None else [EVENT_ID, SUBSCRIPTION_ID, SCORE]
    # One without rows does not know the type of its ids.
    found = [each for each in answers if each.num_rows]
    columns = {name: _joined([each.column(name) for each in found]) for name in names}
    keys = [(EVENT_ID, "ascending"), (SUBSCRIPTION_ID, "ascending")]
    if top is not None:
        keys.insert(1, (SCORE, "descending"))
    whole = pa.RecordBatch.from_pydict(columns)
    whole = whole.take(_compute.sort_indices(whole, sort_keys=keys))
    if top is not None:
        row = np.asarray(whole.column(EVENT_ID))
        rank = np.arange(1, len(row) + 1) - np.searchsorted(row, row)
        whole = whole.append_column(RANK, pa.array(rank.astype(np.int32)))
        whole = whole.filter(pa.array(rank <= top.k))
    return whole.set_column(0, EVENT_ID, ids.take(whole.column(EVENT_ID)))


def _joined(columns: Sequence[Column]) -> Column:
    if not columns:
        return pa.array([], pa.int64())
    kind = columns[0].type
    return pa.concat_arrays([column.cast(kind) for column in columns])


def refused_by_all(
    events: pa.RecordBatch, shards: Iterable[Callable[[pa.RecordBatch], list[str | None]]]
) -> list[str | None]:
    """Say of each event why every shard refuses its source; None where one does not."""
    found: list[str | None] = [""] * events.num_rows
    for refused in shards:
        # A node that leads nowhere is on one shard only, the others are on all: the first mostly will do.
        rows = [row for row, reason in enumerate(found) if reason is not None]
        if not rows:
            break
        for row, reason in zip(rows, refused(events.take(pa.array(rows))), strict=True):
            found[row] = reason
    return found


def known(graph: GraphIndex, events: list[Event]) -> list[bool]:
    """Tell which events come from a node of a graph, or of this shard of it."""
    kind: pa.DataType = pa.int64() if graph.base.names.node_ids.numbered else pa.string()
    source = pa.array([event.source for event in events], kind)
    reasons = graph.sources(pa.RecordBatch.from_arrays([source], names=[SOURCE]))
    return [reason is None for reason in reasons]
