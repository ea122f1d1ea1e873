"""Equal patterns get equal numbers: edges in one order, variables in the order in which they come.

Variables are coloured by the edges that they are on, the edges by their constants and the colours, some
times over; then edges are sorted. Where that leaves two variables alike that are not, equal patterns may stay
apart, which costs time and never an answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headgate.core.hashing import mix
from headgate.core.jit import kernel
from headgate.rdf.index.arrays import SLOTS

if TYPE_CHECKING:
    from numpy.typing import NDArray

ROUNDS = 3


@kernel
def canonicalise(
    edge_start: NDArray[np.int64],
    edges: NDArray[np.int32],
    slot_of: NDArray[np.int8],
    key: NDArray[np.uint64],
) -> None:
    """Reorder the edges of each filter and rename its slots; `slot_of[f, s]` becomes the new name of slot s.

    `key` becomes a hash of the edges: equal for equal patterns.
    """
    colour = np.zeros(SLOTS, np.uint64)
    fresh = np.zeros(SLOTS, np.uint64)
    rank = np.zeros(256, np.uint64)
    named = np.zeros((256, 3), np.int32)
    for f in range(len(edge_start) - 1):
        begin, size = edge_start[f], edge_start[f + 1] - edge_start[f]
        for slot in range(SLOTS):
            colour[slot] = np.uint64(1)
            slot_of[f, slot] = -1
        for turn in range(ROUNDS + 1):
            for slot in range(SLOTS):
                fresh[slot] = np.uint64(0)
            for i in range(size):
                s, p, o = edges[begin + i, 0], edges[begin + i, 1], edges[begin + i, 2]
                a = np.uint64(2 * s + 1) if s >= 0 else mix(colour[-1 - s], np.uint64(2))
                b = np.uint64(2 * p + 1) if p >= 0 else mix(colour[-1 - p], np.uint64(3))
                c = np.uint64(2 * o + 1) if o >= 0 else mix(colour[-1 - o], np.uint64(5))
                whole = mix(mix(mix(a, b), c), np.uint64((s == o) + 2 * (s == p) + 4 * (p == o)))
                rank[i] = whole
                if s < 0:
                    fresh[-1 - s] += mix(whole, np.uint64(7))
                if p < 0:
                    fresh[-1 - p] += mix(whole, np.uint64(11))
                if o < 0:
                    fresh[-1 - o] += mix(whole, np.uint64(13))
            if turn < ROUNDS:
                for slot in range(SLOTS):
                    colour[slot] = mix(colour[slot], fresh[slot])
        for i in range(size):
            named[i, 0], named[i, 1], named[i, 2] = (
                edges[begin + i, 0],
                edges[begin + i, 1],
                edges[begin + i, 2],
            )
        # Insertion: patterns are small.
        for i in range(1, size):
            whole = rank[i]
            s, p, o = named[i, 0], named[i, 1], named[i, 2]
            j = i - 1
            while j >= 0 and rank[j] > whole:
                rank[j + 1] = rank[j]
                named[j + 1, 0], named[j + 1, 1], named[j + 1, 2] = named[j, 0], named[j, 1], named[j, 2]
                j -= 1
            rank[j + 1] = whole
            named[j + 1, 0], named[j + 1, 1], named[j + 1, 2] = s, p, o
        count = 0
        whole = np.uint64(size)
        for i in range(size):
            for side in range(3):
                term = named[i, side]
                if term < 0:
                    slot = -1 - term
                    if slot_of[f, slot] < 0:
                        slot_of[f, slot] = count
                        count += 1
                    term = -1 - slot_of[f, slot]
                edges[begin + i, side] = term
                whole = mix(whole, np.uint64(term + SLOTS))
        key[f] = whole


@kernel
def share(
    edge_start: NDArray[np.int64],
    edges: NDArray[np.int32],
    order: NDArray[np.int64],
    key: NDArray[np.uint64],
    pattern: NDArray[np.int32],
    leader: NDArray[np.int64],
) -> int:
    """Number the distinct patterns, given filters in the order of their keys; returns how many there are."""
    count = 0
    for i in range(len(order)):
        f = order[i]
        same = False
        if i > 0 and key[order[i - 1]] == key[f]:
            g = leader[count - 1]
            size = edge_start[f + 1] - edge_start[f]
            same = size == edge_start[g + 1] - edge_start[g]
            for j in range(size if same else 0):
                for side in range(3):
                    if edges[edge_start[f] + j, side] != edges[edge_start[g] + j, side]:
                        same = False
        if not same:
            leader[count] = f
            count += 1
        pattern[f] = count - 1
    return count
