"""The embedding graph: who embeds in whom (Algorithm 3 of Delta).

    1  views that are written alike are folded: the first of them stands for all
    2  pairs that labels and signatures let pass, by groups of views with the same labels
    3  the content room tells which of them embed, and what they cover
    4  rows by target, sources rising, laid out for all views again

Steps 2 and 3 go by blocks of targets, several threads at once; which thread takes which block does not show
in the result. Views without any item (`needed` is 0) are neither sources nor targets.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.plan.graphs.candidates import find_pairs, group_views
from headgate.plan.graphs.folding import find_classes, unfold
from headgate.plan.model import Embeddings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from headgate.contents.views import Views

    Progress = Callable[[int, int], None]
    """Called with the number of targets that are done, and of all."""

SPREAD = 24
"""How many of the views that are written alike are sources of one target: about as many as rewritings."""
_BLOCK = 256
_PAIRS = 1 << 18
"""Pairs that one thread asks about at once: some 10 MB in all, and work enough to hide a call."""


class Found(NamedTuple):
    """Rows of some targets, one after the other."""

    targets: NDArray[np.int32]
    counts: NDArray[np.int64]
    sources: NDArray[np.int32]
    masks: NDArray[np.uint64]


def embedding_graph(
    views: Views,
    *,
    targets: NDArray[np.int32] | None = None,
    threads: int = 2,
    spread: int = SPREAD,
    progress: Progress | None = None,
) -> Embeddings:
    """Find the rows of all views, or of some targets; the rows of others are empty.

    `spread` bounds the copies of edges between views that are written alike: see `folding`.
    """
    return EmbeddingFinder(views, spread).rows(targets, threads=threads, progress=progress)


class EmbeddingFinder:
    """Finds rows of the embedding graph; what all rows share is prepared once."""

    def __init__(self, views: Views, spread: int = SPREAD) -> None:
        if spread < 1:
            raise ValueError(
                f"spread is {spread} and must be 1 or more: views that are alike feed each other"
            )
        self.views = views
        self._spread = spread
        self._equals = np.ascontiguousarray(views.equals, np.int32)
        self._needed = np.ascontiguousarray(views.needed, np.uint64)
        self._offers = np.ascontiguousarray(views.offers, np.uint64)
        first = self._equals == np.arange(len(self._equals))
        members = np.flatnonzero(first & (self._needed != 0)).astype(np.int32)
        self._groups, groups = group_views(views, members)
        firsts = np.full(len(self._equals), -1, np.int32)
        firsts[members] = groups
        self.groups = firsts[self._equals]
        """The group of each view: the same for views with the same labels; -1 for one without items."""
        self._classes = None if first.all() else find_classes(self._equals)

    def rows(
        self,
        targets: NDArray[np.int32] | None = None,
        *,
        threads: int = 2,
        progress: Progress | None = None,
    ) -> Embeddings:
        """Find the rows of all views, or of some targets; the rows of others are empty."""
        views = len(self._equals)
        asked = np.arange(views, dtype=np.int32) if targets is None else np.unique(targets).astype(np.int32)
        heads = np.unique(self._equals[asked])
        rows = self._rows_of_firsts(heads[self._needed[heads] != 0], threads, progress)
        if self._classes is None:
            return rows
        return unfold(rows, self._classes, self._needed, asked, self._spread)

    def _rows_of_firsts(
        self, targets: NDArray[np.int32], threads: int, progress: Progress | None
    ) -> Embeddings:
        """Find the rows of targets that are the first of their class, between such views."""
        # Those of a group together: what is near it is looked up once.
        targets = targets[np.argsort(self.groups[targets], kind="stable")]
        found: list[list[Found]] = [[] for _ in range(0, len(targets), _BLOCK)]
        done = 0
        with ThreadPoolExecutor(threads) as pool:
            jobs = {
                pool.submit(self._search, targets[first : first + _BLOCK]): first // _BLOCK
                for first in range(0, len(targets), _BLOCK)
            }
            try:
                for job in as_completed(jobs):
                    found[jobs[job]] = job.result()
                    done += sum(len(each.targets) for each in found[jobs[job]])
                    if progress is not None:
                        progress(done, len(targets))
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
        # Jobs hold their results, which are to be let go one by one.
        jobs.clear()
        return assemble(len(self._equals), found)

    def _search(self, targets: NDArray[np.int32]) -> list[Found]:
        """Find the rows of a block of targets, in as many parts as pairs need."""
        room = max(_PAIRS, len(self._groups.members))
        near = np.empty(len(self._groups.starts), np.int32)
        sources, aims = np.empty(room, np.int32), np.empty(room, np.int32)
        groups = self.groups[targets]
        found = []
        first = 0
        while first < len(targets):
            begin = first
            first, count = find_pairs(self._groups, self._offers, targets, groups, begin, near, sources, aims)
            found.append(_ask(self.views, targets[begin:first], sources[:count], aims[:count]))
        return found


def _ask(
    views: Views, targets: NDArray[np.int32], sources: NDArray[np.int32], aims: NDArray[np.int32]
) -> Found:
    """Keep the pairs that embed, in rows in the order of `targets`, sources rising."""
    embeds, masks = views.coverage(sources, aims)
    places = np.empty(int(targets.max()) + 1, np.int64)
    places[targets] = np.arange(len(targets))
    kept = places[aims[embeds]]
    # A target is in one part only, so sorting within a part sorts rows.
    order = np.argsort((kept << 32) | sources[embeds])
    return Found(
        targets, np.bincount(kept, minlength=len(targets)), sources[embeds][order], masks[embeds][order]
    )


def assemble(views: int, found: list[list[Found]]) -> Embeddings:
    """Lay parts in the order of their targets; parts are let go as they are copied."""
    offsets = np.zeros(views + 1, np.int64)
    for part in _parts(found):
        offsets[part.targets + 1] = part.counts
    np.cumsum(offsets, out=offsets)
    sources, masks = np.empty(offsets[-1], np.int32), np.empty(offsets[-1], np.uint64)
    while found:
        for part in found.pop():
            ends = np.cumsum(part.counts)
            places = np.repeat(offsets[part.targets] - ends + part.counts, part.counts)
            places += np.arange(len(places))
            sources[places] = part.sources
            masks[places] = part.masks
    return Embeddings(offsets, sources, masks)


def _parts(found: list[list[Found]]) -> Iterator[Found]:
    for each in found:
        yield from each
