"""What filters give for events besides that they hold, in bulk: as two columns of matches.

    found: event, subscription ──► results: list<map<string, string>>     a map for each way in which it holds
                                   complete: bool                         whether these are all of them

One form for all kinds of content. RDF has a map for each binding, XML for each tuple; a filter without
variables, or that returns nothing, holds in one way, which is an empty map. Filters of records give nothing:
an empty list. What is too much to give is told as a filter that is left out, and is NULL.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa

from headgate.contents.protocol import SUBSCRIPTION_ID
from headgate.core.omission import tell
from headgate.errors import EventError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from headgate.contents.portions import Portion
    from headgate.core.event import Event, Id

# The overloads are about types that are known before; these are not.
_arrow: Any = pa
RESULTS, COMPLETE = "results", "complete"
"""The columns."""
RESULTS_TYPE: pa.DataType = pa.list_(pa.map_(pa.string(), pa.string()))
RESULT_COLUMNS: dict[str, pa.DataType] = {RESULTS: RESULTS_TYPE, COMPLETE: pa.bool_()}
LARGEST = 16 << 20
"""Characters of a match, at most; texts that come again count again."""
ENOUGH = 64 << 20
"""Characters that are handed on together, about."""


class ResultRows(NamedTuple):
    """What a filter gives for an event, as text: names, a row for each way in which it holds, whether all."""

    names: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    complete: bool


NOTHING = ResultRows((), (), complete=True)


@runtime_checkable
class Gives(Protocol):
    """Filters that give more than that they hold."""

    def results(
        self, event: Event, ids: Sequence[Id], limit: int, /
    ) -> Sequence[ResultRows | EventError | None]:
        """Return what some filters give for an event, at most `limit` rows each.

        The error of one that gives too much stands in its place, and None for one that is not here.
        """


Home = tuple[Any, Any]
"""A filter: the index that has it, and its id there."""


def with_results(
    portions: Iterable[Portion],
    events: pa.RecordBatch | Sequence[Event],
    ids: pa.Array[Any],
    homes: Callable[[Sequence[Id]], Iterable[Home | None]],
    limit: int,
) -> Iterator[pa.RecordBatch]:
    """Make tables of answers with their results, in as many parts as their size asks for.

    `homes` finds filters; None is one that is gone, and whose matches are left out. Events in columns are
    records.
    """
    for portion in portions:
        if isinstance(events, pa.RecordBatch):
            yield from (_with(batch, [NOTHING] * batch.num_rows) for batch in portion.batches(ids))
            continue
        yield from _of_portion(portion, events, ids, homes, limit)


def _of_portion(
    portion: Portion,
    events: Sequence[Event],
    ids: pa.Array[Any],
    homes: Callable[[Sequence[Id]], Iterable[Home | None]],
    limit: int,
) -> Iterator[pa.RecordBatch]:
    batch = portion.batch(ids)
    results: list[ResultRows | None] = []
    kept: list[int] = []
    size = 0
    rows: list[int] = portion.rows.tolist()
    matches: list[Any] = batch.column(SUBSCRIPTION_ID).to_pylist()
    for row, each in groupby(range(len(rows)), rows.__getitem__):
        at = list(each)
        answers = _of_event(events[row], homes([matches[one] for one in at]), limit)
        for one, answer in zip(at, answers, strict=True):
            if answer is None:
                continue
            own = 0 if isinstance(answer, EventError) else _size(answer)
            if isinstance(answer, EventError) or own > LARGEST:
                why = f"it matches, but its results are too much: {_why(answer)}"
                tell(ids[row].as_py(), matches[one], why)
                results.append(None)
            else:
                size += own
                results.append(answer)
            kept.append(one)
            if size > ENOUGH:
                yield _with(batch.take(pa.array(kept, pa.int64())), results)
                results, kept, size = [], [], 0
    yield _with(batch if len(kept) == batch.num_rows else batch.take(pa.array(kept, pa.int64())), results)


def _why(answer: ResultRows | EventError) -> str:
    if isinstance(answer, EventError):
        return str(answer)
    return (
        f"they have more than {LARGEST:,} characters; ask for fewer, send smaller events, or narrow the "
        "filter"
    )


def _of_event(event: Event, homes: Iterable[Home | None], limit: int) -> list[ResultRows | EventError | None]:
    """Ask the filters of each index together."""
    results: list[ResultRows | EventError | None] = []
    by_index: dict[int, tuple[Any, list[int], list[Any]]] = {}
    for row, home in enumerate(homes):
        results.append(None if home is None else NOTHING)
        if home is not None:
            content, identity = home
            _, places, ids = by_index.get(id(content)) or by_index.setdefault(id(content), (content, [], []))
            places.append(row)
            ids.append(identity)
    for content, places, ids in by_index.values():
        if isinstance(content, Gives):
            for row, answer in zip(places, content.results(event, ids, limit), strict=True):
                results[row] = answer
    return results


def _size(answer: ResultRows) -> int:
    names = sum(map(len, answer.names)) * len(answer.rows)
    return names + sum([len(text) for row in answer.rows for text in row])


def _with(batch: pa.RecordBatch, results: Sequence[ResultRows | None]) -> pa.RecordBatch:
    columns = [*batch.columns, *result_columns(results)]
    return pa.RecordBatch.from_arrays(columns, names=[*batch.schema.names, RESULTS, COMPLETE])


def result_columns(given: Sequence[ResultRows | None]) -> tuple[pa.Array[Any], pa.Array[Any]]:
    """Return the columns; None is what was too much.

    >>> rows = ResultRows(("x", "y"), (("1", "2"), ("3", "4")), complete=False)
    >>> [column.to_pylist() for column in result_columns([rows, None, NOTHING])]
    [[[[('x', '1'), ('y', '2')], [('x', '3'), ('y', '4')]], None, []], [False, False, True]]
    """
    there = [NOTHING if each is None else each for each in given]
    counts = np.array([len(each.rows) for each in there], np.int64)
    widths = np.repeat(np.array([len(each.names) for each in there], np.int64), counts)
    names = [name for each in there for name in each.names * len(each.rows)]
    texts = [text for each in there for row in each.rows for text in row]
    maps = _arrow.MapArray.from_arrays(
        _offsets(widths), pa.array(names, pa.string()), pa.array(texts, pa.string())
    )
    missing = pa.array([each is None for each in given], pa.bool_())
    results = _arrow.ListArray.from_arrays(_offsets(counts), maps, type=RESULTS_TYPE, mask=missing)
    return results, pa.array([each is not None and each.complete for each in given], pa.bool_())


def _offsets(sizes: Any) -> pa.Array[Any]:
    return pa.array(np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)]), pa.int32())
