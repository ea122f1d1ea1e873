"""The embedding graph and rewritings by workers: targets are shared out, all have the views.

What comes back is what one machine would find, to the bit, however targets are shared out. Cycles are removed
on the driver in between. Past some hundred thousand views embeddings are too many to be held in one place:
`joined_rewritings` finds rewritings target by target, and nothing but these comes back.

A part of the work is one row, whose fields are arrays as bytes.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from headgate.core.event import ID
from headgate.plan.graphs.embeddings import SPREAD, EmbeddingFinder, Found, assemble
from headgate.plan.graphs.joining import JoinResult, join_targets
from headgate.plan.graphs.rewritability import Search, SearchResult, check_search
from headgate.plan.graphs.rewritability import find_rewritings as find_here
from headgate.plan.model import Embeddings, Rewritings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from numpy.typing import NDArray

    from headgate.contents.views import Views
    from headgate.jobs.runner import Rows, Runner, Shared

    Arrays = Mapping[str, NDArray[Any]]

_TARGETS = 4_096
"""Targets of one row that comes back: rows of a hundred sources are then some megabytes."""
_ROWS: dict[str, Any] = {
    "targets": np.int32,
    "counts": np.int64,
    "sources": np.int32,
    "masks": np.uint64,
}
_REWRITINGS: dict[str, Any] = {
    "targets": np.int32,
    "counts": np.int64,
    "sizes": np.int64,
    "inputs": np.int32,
    "cut": np.int32,
    "in_degrees": np.int64,
    "removed": np.int64,
}


def embedding_graph(
    runner: Runner, views: Views, *, parts: int | None = None, spread: int = SPREAD
) -> Embeddings:
    """Find the embedding graph of views; `parts` is how many tasks share it out."""
    finder = EmbeddingFinder(views, spread)
    count = parts or runner.parts
    with runner.shared(finder) as shared:
        found = _collected(runner.numbers(count, count), partial(_embed, shared, count), _ROWS)
    return assemble(len(views), [[Found(**each)] for each in found])


def find_rewritings(
    runner: Runner,
    needed: NDArray[np.uint64],
    embeddings: Embeddings,
    search: Search | None = None,
    *,
    weights: NDArray[np.float64] | None = None,
    parts: int | None = None,
) -> SearchResult:
    """Find rewritings from embeddings without cycles, which go to the workers."""
    search = Search() if search is None else search
    check_search(search)
    targets = np.flatnonzero(np.diff(embeddings.offsets)).astype(np.int32)
    if not len(targets):
        return _joined(len(needed), []).searched
    size = max(1, min(_TARGETS, -(-len(targets) // (parts or runner.parts))))
    rows = [_cut_out(embeddings, targets[first : first + size]) for first in range(0, len(targets), size)]
    with runner.shared((needed, weights)) as shared:
        given = runner.rows(pa.Table.from_batches([_packed(row) for row in rows]))
        found = _collected(given, partial(_rewrite, shared, search), _REWRITINGS)
    return _joined(len(needed), found).searched


def joined_rewritings(
    runner: Runner,
    views: Views,
    search: Search | None = None,
    *,
    weights: NDArray[np.float64] | None = None,
    parts: int | None = None,
    spread: int = SPREAD,
) -> JoinResult:
    """Find rewritings without ever holding all embeddings; a fixed order of views leaves no cycle."""
    search = Search() if search is None else search
    check_search(search)
    finder = EmbeddingFinder(views, spread)
    count = parts or runner.parts
    with runner.shared((finder, weights)) as shared:
        found = _collected(runner.numbers(count, count), partial(_join, shared, count, search), _REWRITINGS)
    return _joined(len(views), found)


def _collected(
    given: Rows, work: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]], kinds: Arrays
) -> list[dict[str, NDArray[Any]]]:
    schema = pa.schema(dict.fromkeys(kinds, pa.binary()))
    return list(_unpacked(given.map(work, schema).collect().to_batches(), kinds))


def _packed(arrays: Arrays) -> pa.RecordBatch:
    columns = {
        name: pa.array([np.ascontiguousarray(each).data], pa.binary()) for name, each in arrays.items()
    }
    return pa.RecordBatch.from_pydict(columns)


def _unpacked(batches: Iterable[pa.RecordBatch], kinds: Arrays) -> Iterator[dict[str, NDArray[Any]]]:
    for batch in batches:
        for place in range(batch.num_rows):
            yield {name: np.frombuffer(batch[name][place].as_buffer(), kind) for name, kind in kinds.items()}


def _shares(finder: EmbeddingFinder, number: int, parts: int) -> Iterator[NDArray[np.int32]]:
    """Give the targets of a part, some at a time: those of the same labels, and those alike, together."""
    order = np.lexsort((finder.views.equals, finder.groups)).astype(np.int32)
    share = np.array_split(order, parts)[number]
    for first in range(0, len(share), _TARGETS):
        yield np.sort(share[first : first + _TARGETS])


def _embed(
    shared: Shared[EmbeddingFinder], parts: int, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for number in batch[ID].to_numpy():
            for targets in _shares(shared.value, number, parts):
                yield _packed(_cut_out(shared.value.rows(targets, threads=1), targets))


def _cut_out(rows: Embeddings, targets: NDArray[np.int32]) -> Arrays:
    """Take the rows of rising targets; rows between them are empty."""
    begin, end = int(rows.offsets[targets[0]]), int(rows.offsets[targets[-1] + 1])
    return {
        "targets": targets,
        "counts": np.diff(rows.offsets)[targets],
        "sources": rows.sources[begin:end],
        "masks": rows.masks[begin:end],
    }


def _rewrite(
    shared: Shared[tuple[NDArray[np.uint64], NDArray[np.float64] | None]],
    search: Search,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    needed, weights = shared.value
    for each in _unpacked(batches, _ROWS):
        rows = assemble(len(needed), [[Found(**each)]])
        found = find_here(needed, rows, search, targets=each["targets"], weights=weights, threads=1)
        yield _packed(_found(each["targets"], found, each["counts"], 0))


def _join(
    shared: Shared[tuple[EmbeddingFinder, NDArray[np.float64] | None]],
    parts: int,
    search: Search,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    finder, weights = shared.value
    for batch in batches:
        for number in batch[ID].to_numpy():
            for targets in _shares(finder, number, parts):
                done = join_targets(finder, search, targets=targets, weights=weights, threads=1)
                yield _packed(_found(targets, done.searched, done.in_degrees[targets], done.removed))


def _found(
    targets: NDArray[np.int32], found: SearchResult, in_degrees: NDArray[np.int64], removed: int
) -> Arrays:
    return {
        "targets": targets,
        "counts": np.diff(found.rewritings.offsets)[targets],
        "sizes": np.diff(found.rewritings.input_offsets),
        "inputs": found.rewritings.inputs,
        "cut": found.cut_short,
        "in_degrees": in_degrees,
        "removed": np.array([removed], np.int64),
    }


def _joined(views: int, found: list[dict[str, NDArray[Any]]]) -> JoinResult:
    """Put rewritings of parts in the order of their targets."""
    whole = {
        name: np.concatenate([np.empty(0, kind), *(each[name] for each in found)])
        for name, kind in _REWRITINGS.items()
    }
    order = np.argsort(whole["targets"])
    sizes, starts = whole["sizes"], _starts(whole["sizes"])
    rewritings = _places(_starts(whole["counts"])[:-1][order], whole["counts"][order])
    inputs = _places(starts[:-1][rewritings], sizes[rewritings])
    offsets, in_degrees = np.zeros(views, np.int64), np.zeros(views, np.int64)
    offsets[whole["targets"]] = whole["counts"]
    in_degrees[whole["targets"]] = whole["in_degrees"]
    made = Rewritings(_starts(offsets), _starts(sizes[rewritings]), whole["inputs"][inputs])
    return JoinResult(SearchResult(made, np.sort(whole["cut"])), in_degrees, int(whole["removed"].sum()))


def _starts(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    starts = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=starts[1:])
    return starts


def _places(starts: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """List the places of rows, one row after the other."""
    return np.repeat(starts - _starts(counts)[:-1], counts) + np.arange(int(counts.sum()))
