"""Both graphs, from views to rewritings: one after the other, or joined target by target.

One after the other, all embeddings are held at once; they grow with the square of the views. Joined, only
those of a block of targets are. Which edges of a cycle to leave out must then be known without seeing it:

    u is a source of v    if u embeds in v, and v does not embed in u or u comes first in a fixed order

Embedding is a preorder, so on a cycle all embed in each other, and along it the order would have to rise for
ever: there is none. The order is that of `order_of`: views with more items first, because they cover more of
the others, then by number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.plan.graphs.cycles import without_cycles
from headgate.plan.graphs.embeddings import SPREAD, EmbeddingFinder, embedding_graph
from headgate.plan.graphs.rewritability import Search, SearchResult, find_rewritings
from headgate.plan.model import Embeddings, Rewritings

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headgate.contents.views import Views
    from headgate.core.arrays import Floats64, Ints, Ints32

BLOCK = 8_192
"""Targets whose embeddings are held at once."""


@dataclass(frozen=True, slots=True)
class GraphStatistics:
    """The figures of Table 2. `rewriting_edges` are those of a graph with AND nodes and the source."""

    views: int
    edges: int
    edges_removed: int
    views_embedded_in: int
    rewritings: int
    rewriting_edges: int
    rewritable_views: int
    average_inputs: float
    average_out_degree: float
    cut_short: int


class Graphs(NamedTuple):
    """Both graphs of some views; embeddings are without cycles."""

    embeddings: Embeddings
    searched: SearchResult
    statistics: GraphStatistics

    @property
    def rewritings(self) -> Rewritings:
        """Return the rewritings."""
        return self.searched.rewritings


def graphs_of(
    views: Views,
    search: Search | None = None,
    *,
    weights: Floats64 | None = None,
    threads: int = 2,
    spread: int = SPREAD,
) -> Graphs:
    """Make both graphs, one after the other. `weights` are those of views as sources, smaller first."""
    embeddings = embedding_graph(views, threads=threads, spread=spread)
    acyclic, removed = without_cycles(embeddings, needed=views.needed, sizes=weights)
    searched = find_rewritings(views.needed, acyclic, search, weights=weights, threads=threads)
    return Graphs(
        acyclic,
        searched,
        statistics_of(np.diff(embeddings.offsets), removed, searched),
    )


def statistics_of(in_degrees: Ints, removed: int, searched: SearchResult) -> GraphStatistics:
    """Count what Table 2 counts. `in_degrees` are those of the embedding graph with its cycles."""
    views, count = len(in_degrees), len(searched.rewritings.input_offsets) - 1
    inputs = len(searched.rewritings.inputs)
    return GraphStatistics(
        views=views,
        edges=int(in_degrees.sum()),
        edges_removed=removed,
        views_embedded_in=int(np.count_nonzero(in_degrees)),
        rewritings=count,
        rewriting_edges=inputs + count + views,
        rewritable_views=int(np.count_nonzero(np.diff(searched.rewritings.offsets))),
        average_inputs=inputs / max(1, count),
        average_out_degree=inputs / max(1, views),
        cut_short=len(searched.cut_short),
    )


class JoinResult(NamedTuple):
    """What joined graphs leave: the embeddings of each target are counted only."""

    searched: SearchResult
    in_degrees: Ints
    removed: int


def join_targets(
    finder: EmbeddingFinder,
    search: Search | None = None,
    *,
    targets: Ints32 | None = None,
    weights: Floats64 | None = None,
    threads: int = 2,
) -> JoinResult:
    """Find the rewritings of all targets, or of some, with what was prepared for their embeddings."""
    views = finder.views
    asked = np.arange(len(views), dtype=np.int32) if targets is None else np.unique(targets).astype(np.int32)
    order = order_of(views)
    in_degrees = np.zeros(len(views), np.int64)
    removed = 0
    parts: list[SearchResult] = []
    for first in range(0, len(asked), BLOCK):
        some = asked[first : first + BLOCK]
        rows = finder.rows(some, threads=threads)
        in_degrees += np.diff(rows.offsets)
        ordered = only_earlier(views, rows, finder.groups, order)
        removed += len(rows.sources) - len(ordered.sources)
        parts.append(
            find_rewritings(views.needed, ordered, search, targets=some, weights=weights, threads=threads)
        )
    return JoinResult(join_searched(len(views), parts), in_degrees, removed)


def only_earlier(views: Views, rows: Embeddings, groups: Ints32, order: Ints) -> Embeddings:
    """Leave out sources in which the target embeds too, unless they come first in the order.

    `groups` are the same for views with the same labels: no others can embed in each other.
    """
    targets = np.repeat(np.arange(len(views), dtype=np.int32), np.diff(rows.offsets))
    later = order[rows.sources] > order[targets]
    suspects = np.flatnonzero(later & (groups[rows.sources] == groups[targets]))
    mutual, _ = views.coverage(targets[suspects], rows.sources[suspects])
    gone = suspects[mutual]
    kept = np.ones(len(rows.sources), np.bool_)
    kept[gone] = False
    return Embeddings(
        rows.offsets - np.searchsorted(gone, rows.offsets), rows.sources[kept], rows.masks[kept]
    )


def order_of(views: Views) -> Ints:
    """Return each view's place in the fixed order: more items first, then by number."""
    items = np.bitwise_count(views.needed).astype(np.int64)
    places = np.empty(len(views), np.int64)
    places[np.argsort(-items, kind="stable")] = np.arange(len(views))
    return places


def join_searched(views: int, parts: Iterable[SearchResult]) -> SearchResult:
    """Join the rewritings of different targets, given in the order of these."""
    counts = np.zeros(views + 1, np.int64)
    sizes, inputs = [np.zeros(1, np.int64)], [np.empty(0, np.int32)]
    cut = [np.empty(0, np.int32)]
    for part in parts:
        counts[1:] += np.diff(part.rewritings.offsets)
        sizes.append(np.diff(part.rewritings.input_offsets))
        inputs.append(part.rewritings.inputs)
        cut.append(part.cut_short)
    joined = Rewritings(np.cumsum(counts), np.cumsum(np.concatenate(sizes)), np.concatenate(inputs))
    return SearchResult(joined, np.concatenate(cut))
