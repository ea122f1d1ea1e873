"""The lists of a path from the root, merged by rank: a small heap of the next rank of each.

A key is a rank and the list that it came from, in one number: rank << LIST_BITS | list. The least key, so the
best rank, is on top. No interval is in two lists of one path, so ranks differ. Whether what is on top holds
is seen when it gets there: until then the first of a list stands for all behind it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.core.heaps import pop, push, replace
from headgate.core.jit import bare_inner

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.core.arrays import Ints

    Ranks = NDArray[np.int32]

LIST_BITS = 6
LISTS = 1 << LIST_BITS
"""More than any path has: trees over fewer than 2^31 intervals are at most 34 nodes deep."""


class Heads(NamedTuple):
    """Lists that a walk merges: list i is that of node[i] and goes on at[i]; keys[:size[0]] is the heap."""

    keys: Ints
    size: Ints
    at: Ints
    node: Ints


def make_heads() -> Heads:
    """Make room for one walk."""
    return Heads(
        np.empty(LISTS, np.int64), np.zeros(1, np.int64), np.empty(LISTS, np.int64), np.empty(LISTS, np.int64)
    )


@bare_inner
def enter(heads: Heads, which: int, node: int, start: Ranks, ranks: Ranks) -> int:
    """Add the list of a node if there is one, as number `which`; returns the next number."""
    at = start[node]
    if at == start[node + 1]:
        return which
    heads.node[which], heads.at[which] = node, at
    heads.size[0] = push(heads.keys, heads.size[0], np.int64(ranks[at]) << LIST_BITS | which)
    return which + 1


@bare_inner
def go_on(heads: Heads, at: int, start: Ranks, ranks: Ranks) -> None:
    """Let the list on top go on from a place, or leave at its end."""
    which = heads.keys[0] & (LISTS - 1)
    if at < start[heads.node[which] + 1]:
        heads.at[which] = at
        replace(heads.keys, heads.size[0], np.int64(ranks[at]) << LIST_BITS | which)
    else:
        heads.size[0] = pop(heads.keys, heads.size[0])
