"""The rewritability graph: how each view can be computed from others (Algorithms 1 and 4 of Delta).

Sources that together cover all items of a view can compute it. At most k of these sets are kept for a view,
the most promising first, and none that has a member too many. Targets go by blocks, several threads at once;
which thread takes which block does not show in the result.

A search in depth. At each depth the source is taken that covers most of what is still uncovered, then each
other in turn. It differs from the algorithm as printed in what makes it exact and short:

    a source that was tried at a depth is left out below its later siblings: each set is found once
    a cover that is complete is not extended
    a source that would make one that was taken before superfluous is left out below: covers are minimal
    if all that is left cannot cover what is uncovered, or not with the inputs that are left, it turns back

So without limits each minimal cover is found exactly once: its members are taken in the order in which they
come.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.core.bits import ones
from headgate.core.jit import bare_inner, kernel
from headgate.plan.graphs.blocks import search_blocks
from headgate.plan.model import Embeddings, Rewritings

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.core.arrays import Bools, Floats64, Ints, Ints32, Words


MOST_INPUTS = 16
"""What the bound on inputs may be at most: deeper searches find nothing that anybody would use."""

_FREE = 127
"""Mark of a source that is not left out; else the depth where it was left out."""


@bare_inner
def _mixed(source: np.uint64, target: np.uint64) -> np.uint64:
    """Hash a pair, so that targets prefer different sources among those that are alike; 32 bits."""
    word = source * np.uint64(0x9E3779B97F4A7C15) + target * np.uint64(0xC2B2AE3D27D4EB4F)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word >> np.uint64(32)


@kernel
def find_covers(
    needed: Words,
    rows: Embeddings,
    ranks: NDArray[np.uint32],
    targets: Ints32,
    k: int,
    quota: int,
    most_inputs: int,
    most_steps: int,
    counts: Ints,
    sizes: Ints,
    inputs: Ints32,
    cut: Bools,
) -> tuple[int, int]:
    """Find at most k covers of each target, most interesting first; returns how many, and of how many inputs.

    Among sources that cover as much, a smaller rank comes first (below 2**25), then a hash. At most `quota`
    covers begin with the same source. `counts` are covers of each target, `sizes` inputs of each cover, and
    `cut` tells whether the search of a target ended after `most_steps` choices, before it was complete.
    """
    widest = 0
    for target in targets:
        widest = max(widest, rows.offsets[target + 1] - rows.offsets[target])
    sources = np.empty(widest, np.int32)
    masks = np.empty(widest, np.uint64)
    keys = np.empty(widest, np.uint64)
    out_at = np.empty(widest, np.int8)
    # At depth d: what is uncovered, what is covered twice or more, and the source that was taken there.
    open_at = np.empty(MOST_INPUTS + 1, np.uint64)
    twice_at = np.empty(MOST_INPUTS + 1, np.uint64)
    taken = np.empty(MOST_INPUTS + 1, np.int64)
    covers = 0
    total = 0
    for row in range(len(targets)):
        target = targets[row]
        need = needed[target]
        width = 0
        for edge in range(rows.offsets[target], rows.offsets[target + 1]):
            mask = rows.masks[edge] & need
            if mask != 0:
                source = rows.sources[edge]
                sources[width] = source
                masks[width] = mask
                # Greater is better: a word of interest, rank and hash, of which the scan fills in the first.
                keys[width] = (np.uint64(0x1FFFFFF) - np.uint64(ranks[source])) << np.uint64(32) | _mixed(
                    np.uint64(source), np.uint64(target)
                )
                out_at[width] = _FREE
                width += 1
        own_covers = 0
        of_first = 0
        steps = 0
        depth = 0
        open_at[0] = need
        twice_at[0] = 0
        while depth >= 0 and own_covers < k and need != 0:
            best = -1
            back = depth > 0 and of_first == quota
            if not back:
                if steps == most_steps:
                    cut[row] = True
                    break
                steps += 1
                missing = open_at[depth]
                reach = np.uint64(0)
                best_key = np.uint64(0)
                for i in range(width):
                    new = masks[i] & missing
                    if new == 0 or out_at[i] != _FREE:
                        continue
                    reach |= new
                    # Interest is 1 to 64; one less has room in the bits above rank and hash.
                    key = ((np.uint64(ones(new)) - np.uint64(1)) << np.uint64(57)) | keys[i]
                    if best < 0 or key > best_key:
                        best = i
                        best_key = key
                # The most interesting source tells how many are needed at least.
                back = bool(reach != missing) or bool(
                    ((best_key >> np.uint64(57)) + np.uint64(1)) * np.uint64(most_inputs - depth)
                    < np.uint64(ones(missing))
                )
            if back:
                # What was left out at this depth counts no more; the source above has had its turn.
                for i in range(width):
                    if out_at[i] == depth:
                        out_at[i] = _FREE
                depth -= 1
                if depth >= 0:
                    out_at[taken[depth]] = depth
                continue
            mask = masks[best]
            twice = twice_at[depth] | (mask & need & ~open_at[depth])
            superfluous = False
            for d in range(depth):
                superfluous = superfluous or masks[taken[d]] & ~twice == 0
            if superfluous:
                out_at[best] = depth
                continue
            if depth == 0:
                of_first = 0
            taken[depth] = best
            rest = open_at[depth] & ~mask
            if rest != 0:
                depth += 1
                open_at[depth] = rest
                twice_at[depth] = twice
                continue
            out_at[best] = depth
            sizes[covers] = depth + 1
            for d in range(depth + 1):
                # Inputs rise: each is put in its place among those before it.
                at = total + d
                source = sources[taken[d]]
                while at > total and inputs[at - 1] > source:
                    inputs[at] = inputs[at - 1]
                    at -= 1
                inputs[at] = source
            total += depth + 1
            covers += 1
            own_covers += 1
            of_first += 1
        counts[row] = own_covers
    return covers, total


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
    cut_short: Ints32


def find_rewritings(
    needed: Words,
    embeddings: Embeddings,
    search: Search | None = None,
    *,
    targets: Ints32 | None = None,
    weights: Floats64 | None = None,
    threads: int = 2,
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
    parts = search_blocks(partial(_search, needed, embeddings, ranks, search), asked, _BLOCK, threads)
    return _join(len(needed), asked, parts)


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

    counts: Ints
    sizes: Ints
    inputs: Ints32
    cut: Bools


_NOTHING = _Part(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, np.bool_))


def _ranks(weights: Floats64 | None, views: int) -> NDArray[np.uint32]:
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
    needed: Words, embeddings: Embeddings, ranks: NDArray[np.uint32], search: Search, targets: Ints32
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


def _join(views: int, targets: Ints32, found: list[_Part]) -> SearchResult:
    offsets = np.zeros(views + 1, np.int64)
    parts = [_NOTHING, *found]
    offsets[targets + 1] = np.concatenate([part.counts for part in parts])
    sizes = np.concatenate([part.sizes for part in parts])
    input_offsets = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=input_offsets[1:])
    inputs = np.concatenate([part.inputs for part in parts])
    cut = targets[np.concatenate([part.cut for part in parts])]
    return SearchResult(Rewritings(np.cumsum(offsets), input_offsets, inputs), cut)
