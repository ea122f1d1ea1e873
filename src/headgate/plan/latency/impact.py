"""How many views each view feeds, directly or through others, under a plan: exact counts.

Two ways. Walking up from every view and counting it at all that it meets takes as many steps as there are
pairs of a view and one that feeds it: few where plans are flat. If it comes to more steps than a fixed limit,
reachable sets are passed up as bits instead, 512 views at a time: (views / 64) x (inputs in use) words,
however deep the plan is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headgate.core.jit import bare_inner, kernel
from headgate.plan.orders import chosen_inputs, plan_order

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.plan.model import Plan, Rewritings

WORDS = 8


def reach(plan: Plan, rewritings: Rewritings, *, limit: int | None = None) -> NDArray[np.int64]:
    """Count what each view feeds; `limit` is after how many steps of walking bits are taken."""
    begins, ends = chosen_inputs(plan, rewritings)
    inputs = np.ascontiguousarray(rewritings.inputs, dtype=np.int32)
    if limit is None:
        # A step of walking costs about as much as four words.
        limit = 1_000_000 + len(begins) * int((ends - begins).sum()) // 256
    counts = np.zeros(len(begins), dtype=np.int64)
    if _by_walking(begins, ends, inputs, limit, counts):
        return counts
    return _by_bits(plan_order(plan, rewritings), begins, ends, inputs)


def impact_order(latency: NDArray[np.float64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Order views by falling impact: latency times what they feed; equal ones by number."""
    return np.argsort(-(latency * counts), kind="stable").astype(np.int64)


@kernel
def _by_walking(
    begins: NDArray[np.int64],
    ends: NDArray[np.int64],
    inputs: NDArray[np.int32],
    limit: int,
    counts: NDArray[np.int64],
) -> bool:
    views = len(begins)
    seen = np.full(views, -1, dtype=np.int32)
    stack = np.empty(views, dtype=np.int32)
    steps = 0
    for view in range(views):
        stack[0] = view
        size = 1
        while size > 0:
            size -= 1
            at = stack[size]
            for place in range(begins[at], ends[at]):
                above = inputs[place]
                steps += 1
                if seen[above] != view:
                    seen[above] = view
                    counts[above] += 1
                    stack[size] = above
                    size += 1
        if steps > limit:
            return False
    return True


@bare_inner
def _ones(word: np.uint64) -> np.int64:
    """Count the bits of a word: in pairs, fours and bytes, and the bytes by a product."""
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@kernel
def _by_bits(
    order: NDArray[np.int32], begins: NDArray[np.int64], ends: NDArray[np.int64], inputs: NDArray[np.int32]
) -> NDArray[np.int64]:
    views = len(order)
    counts = np.zeros(views, dtype=np.int64)
    bits = np.zeros((views, WORDS), dtype=np.uint64)
    one = np.uint64(1)
    block = WORDS * 64
    for start in range(0, views, block):
        bits[:] = np.uint64(0)
        stop = min(views, start + block)
        # Only views before the block's last, in the order, feed any of it.
        for rank in range(stop - 1, -1, -1):
            view = order[rank]
            row = bits[view]
            for word in range(WORDS):
                counts[view] += _ones(row[word])
            if rank >= start:
                row[(rank - start) >> 6] |= one << np.uint64((rank - start) & 63)
            for place in range(begins[view], ends[view]):
                above = bits[inputs[place]]
                for word in range(WORDS):
                    above[word] |= row[word]
    return counts
