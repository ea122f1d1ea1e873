"""The obvious slow answers: the definition of right."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from headgate.plan.model import Embeddings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from headgate.contents.views import Views


def embedding_graph(views: Views) -> Embeddings:
    """Ask about every pair of views."""
    offsets, sources, masks = [0], [np.empty(0, np.int32)], [np.empty(0, np.uint64)]
    everybody = np.arange(len(views), dtype=np.int32)
    needed = views.needed
    for target in everybody:
        embeds, covered = views.coverage(everybody, np.full(len(views), target, np.int32))
        kept = embeds & (everybody != target) & (needed != 0) & (needed[target] != 0)
        sources.append(everybody[kept])
        masks.append(covered[kept])
        offsets.append(offsets[-1] + int(kept.sum()))
    return Embeddings(np.array(offsets), np.concatenate(sources), np.concatenate(masks))


Trie: TypeAlias = "dict[int, Trie]"
_END = -1


def make_trie(sets: Iterable[tuple[int, Sequence[int]]]) -> Trie:
    """Make the paper's trie of numbered label sets; labels rise from the root on."""
    root: Trie = {}
    for number, labels in sets:
        at = root
        for label in labels:
            at = at.setdefault(label, {})
        at.setdefault(_END, {})[number] = {}
    return root


def subsets(trie: Trie, labels: Sequence[int]) -> Iterator[int]:
    """Find the sets in a trie whose labels are among some rising labels.

    >>> sorted(subsets(make_trie(enumerate([(1, 2), (2, 3), (), (3,)])), (1, 2, 4)))
    [0, 2]
    """
    yield from trie.get(_END, ())
    for place, label in enumerate(labels):
        if label in trie:
            yield from subsets(trie[label], labels[place + 1 :])


def minimal_covers(
    needed: int, row: Sequence[tuple[int, int]], most_inputs: int | None = None
) -> set[tuple[int, ...]]:
    """Find all sets of sources that together cover what is needed, none of which can be left out.

    `row` is pairs of a source and its mask. By trying all sets, small ones first.

    >>> sorted(minimal_covers(0b111, [(4, 0b110), (5, 0b011), (6, 0b111), (7, 0b001)]))
    [(4, 5), (4, 7), (6,)]
    """
    found: set[tuple[int, ...]] = set()
    for size in range(1, min(len(row), most_inputs or len(row)) + 1):
        for some in combinations(row, size):
            chosen = tuple(sorted(source for source, _ in some))
            covered = 0
            for _, mask in some:
                covered |= mask
            if needed & ~covered == 0 and not any(set(each) < set(chosen) for each in found):
                found.add(chosen)
    return found


def fewest_removed(vertices: int, edges: Sequence[tuple[int, int]]) -> int:
    """Count the edges that must be removed, at least, to leave no cycle: over all sets of vertices.

    The best order of a set of vertices ends with one of them, which has behind it whatever it leads to.

    >>> fewest_removed(3, [(0, 1), (1, 2), (2, 0), (0, 2)])
    1
    """
    leads = [0] * vertices
    for source, target in edges:
        leads[source] |= 1 << target
    best = [0] + [len(edges)] * ((1 << vertices) - 1)
    for some in range(1, 1 << vertices):
        for last in range(vertices):
            if some >> last & 1:
                before = some & ~(1 << last)
                best[some] = min(best[some], best[before] + (leads[last] & before).bit_count())
    return best[-1]
