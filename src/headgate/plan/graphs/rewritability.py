"""The rewritability graph: how each view can be computed from others (Algorithms 1 and 4 of Delta).

Sources that together cover all items of a view can compute it. At most k of these sets are kept for a view,
the most promising first, and none that has a member too many. Targets go by blocks, several threads at once;
which thread takes which block does not show in the result.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.plan.graphs.covering import MOST_INPUTS, find_covers
from headgate.plan.model import Embeddings, Rewritings

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Progress = Callable[[int, int], None]
    """Called with the number of targets that are done, and of all."""

_BLOCK = 512


class Search(NamedTuple):
    """How rewritings are looked for.

    k              rewritings a view, at most
    quota          of these begin with the same source, at most: else many views would have one feeder in all
                   their rewritings, and no plan could keep to capacities; None is no bound
    most_inputs    views that a rewriting takes, at most
    most_steps     choices that are tried for a view, at most
    """

    k: int = 30
    quota: int | None = 6
    most_inputs: int = 8
    most_steps: int = 5_000


class SearchResult(NamedTuple):
    """Rewritings, and the views whose search `most_steps` cut short: they may have more than these."""

    rewritings: Rewritings
    cut_short: NDArray[np.int32]


def rewritings(
    needed: NDArray[np.uint64],
    embeddings: Embeddings,
    *,
    k: int = 30,
    quota: int | None = 6,
    weights: NDArray[np.float64] | None = None,
    threads: int = 2,
) -> Rewritings:
    """Find at most k rewritings of each view; `find_rewritings` says which searches were cut short."""
    return find_rewritings(needed, embeddings, Search(k, quota), weights=weights, threads=threads).rewritings


def find_rewritings(
    needed: NDArray[np.uint64],
    embeddings: Embeddings,
    search: Search | None = None,
    *,
    targets: NDArray[np.int32] | None = None,
    weights: NDArray[np.float64] | None = None,
    threads: int = 2,
    progress: Progress | None = None,
) -> SearchResult:
    """Find rewritings of all views, or of some targets; others have none.

    `embeddings` are without cycles. Among sources that cover as much, one of a smaller weight comes first,
    such as its size; without weights, or where they differ by less than a factor of two or so, targets differ
    in which they prefer.
    """
    search = Search() if search is None else search
    check_search(search)
    asked = np.arange(len(needed), dtype=np.int32) if targets is None else np.unique(targets).astype(np.int32)
    needed = np.ascontiguousarray(needed, np.uint64)
    ranks = _ranks(weights, len(needed))
    found: list[_Part] = [_NOTHING] * -(-len(asked) // _BLOCK)
    done = 0
    with ThreadPoolExecutor(threads) as pool:
        jobs = {
            pool.submit(_search, needed, embeddings, ranks, asked[first : first + _BLOCK], search): first
            for first in range(0, len(asked), _BLOCK)
        }
        try:
            for job in as_completed(jobs):
                found[jobs[job] // _BLOCK] = part = job.result()
                done += len(part.counts)
                if progress is not None:
                    progress(done, len(asked))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return _join(len(needed), asked, found)


def check_search(search: Search) -> None:
    """Refuse bounds that are out of range."""
    for name, value, most in (
        ("k", search.k, None),
        ("quota", search.k if search.quota is None else search.quota, None),
        ("most_inputs", search.most_inputs, MOST_INPUTS),
        ("most_steps", search.most_steps, None),
    ):
        if value < 1 or (most is not None and value > most):
            upto = "" if most is None else f" to {most}"
            raise ValueError(f"{name} is {value} and must be 1{upto or ' or more'}")


class _Part(NamedTuple):
    """Rewritings of some targets, one after the other."""

    counts: NDArray[np.int64]
    sizes: NDArray[np.int64]
    inputs: NDArray[np.int32]
    cut: NDArray[np.bool_]


_NOTHING = _Part(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, np.bool_))


def _ranks(weights: NDArray[np.float64] | None, views: int) -> NDArray[np.uint32]:
    """Put weights in classes, each twice as heavy as the one before.

    Within a class targets differ in which they prefer; by the weights themselves all would prefer the same
    few.
    """
    if weights is None or not views:
        return np.zeros(views, np.uint32)
    least = np.min(weights[weights > 0], initial=np.inf)
    if not np.isfinite(least):
        return np.zeros(views, np.uint32)
    classes = np.floor(np.log2(np.maximum(weights, least) / least)) + 1
    return np.where(weights > 0, classes, 0).astype(np.uint32)


def _search(
    needed: NDArray[np.uint64],
    embeddings: Embeddings,
    ranks: NDArray[np.uint32],
    targets: NDArray[np.int32],
    search: Search,
) -> _Part:
    counts, cut = np.zeros(len(targets), np.int64), np.zeros(len(targets), np.bool_)
    sizes = np.empty(len(targets) * search.k, np.int64)
    inputs = np.empty(len(targets) * search.k * search.most_inputs, np.int32)
    covers, total = find_covers(
        needed,
        embeddings,
        ranks,
        targets,
        search.k,
        search.k if search.quota is None else search.quota,
        search.most_inputs,
        search.most_steps,
        counts,
        sizes,
        inputs,
        cut,
    )
    # Copies, because most of the room was not used.
    return _Part(counts, sizes[:covers].copy(), inputs[:total].copy(), cut)


def _join(views: int, targets: NDArray[np.int32], found: list[_Part]) -> SearchResult:
    offsets = np.zeros(views + 1, np.int64)
    parts = [_NOTHING, *found]
    offsets[targets + 1] = np.concatenate([part.counts for part in parts])
    sizes = np.concatenate([part.sizes for part in parts])
    input_offsets = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=input_offsets[1:])
    inputs = np.concatenate([part.inputs for part in parts])
    cut = targets[np.concatenate([part.cut for part in parts])]
    return SearchResult(Rewritings(np.cumsum(offsets), input_offsets, inputs), cut)
