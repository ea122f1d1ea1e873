"""The hot loop of Algorithm 4: sets of sources that together cover what a view needs.

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

from typing import TYPE_CHECKING

import numpy as np

from headgate.core.jit import bare_inner, kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.plan.model import Embeddings

MOST_INPUTS = 16
"""What the bound on inputs may be at most: deeper searches find nothing that anybody would use."""

_FREE = 127
"""Mark of a source that is not left out; else the depth where it was left out."""


@bare_inner
def _bits(word: np.uint64) -> np.uint64:
    """Count the bits of a word."""
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (word * np.uint64(0x0101010101010101)) >> np.uint64(56)


@bare_inner
def _mixed(source: np.uint64, target: np.uint64) -> np.uint64:
    """Hash a pair, so that targets prefer different sources among those that are alike; 32 bits."""
    word = source * np.uint64(0x9E3779B97F4A7C15) + target * np.uint64(0xC2B2AE3D27D4EB4F)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word >> np.uint64(32)


@kernel
def find_covers(
    needed: NDArray[np.uint64],
    rows: Embeddings,
    ranks: NDArray[np.uint32],
    targets: NDArray[np.int32],
    k: int,
    quota: int,
    most_inputs: int,
    most_steps: int,
    counts: NDArray[np.int64],
    sizes: NDArray[np.int64],
    inputs: NDArray[np.int32],
    cut: NDArray[np.bool_],
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
    for place in range(len(targets)):
        target = targets[place]
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
        found = 0
        of_first = 0
        steps = 0
        depth = 0
        open_at[0] = need
        twice_at[0] = 0
        while depth >= 0 and found < k and need != 0:
            best = -1
            back = depth > 0 and of_first == quota
            if not back:
                if steps == most_steps:
                    cut[place] = True
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
                    key = ((_bits(new) - np.uint64(1)) << np.uint64(57)) | keys[i]
                    if best < 0 or key > best_key:
                        best = i
                        best_key = key
                # The most interesting source tells how many are needed at least.
                back = bool(reach != missing) or bool(
                    ((best_key >> np.uint64(57)) + np.uint64(1)) * np.uint64(most_inputs - depth)
                    < _bits(missing)
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
            found += 1
            of_first += 1
        counts[place] = found
    return covers, total
