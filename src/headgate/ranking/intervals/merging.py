"""The lists of a path from the root, merged by rank: a small heap of the next rank of each.

A key is a rank and the list that it came from, in one number: rank << LIST_BITS | list. The least key, so the
best rank, is on top. No interval is in two lists of one path, so ranks differ.

One path has all answers that share a point: those to points, and to events within the interval. Those that
only overlap an event need not be on one, and are found by a scan of the table in the order of ranks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headgate.core.jit import bare_inner
from headgate.ranking.boxes.ends import narrowed
from headgate.ranking.intervals.scan import Scan
from headgate.ranking.intervals.scored import Found, answers, question

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from headgate.ranking.intervals.scored import Scored, Walk

    Floats = NDArray[np.floating[Any]]
    Ranks = NDArray[np.int32]
    Ints = NDArray[np.int64]

LIST_BITS = 6
LISTS = 1 << LIST_BITS
"""More than any path has: trees over fewer than 2^31 intervals are at most 34 nodes deep."""


class Heads(NamedTuple):
    """Lists that a walk merges: list i goes on at[i], before end[i]; keys[:size[0]] is the heap."""

    keys: Ints
    size: Ints
    at: Ints
    end: Ints


def make_heads() -> Heads:
    """Make room for one walk."""
    return Heads(
        np.empty(LISTS, np.int64), np.zeros(1, np.int64), np.empty(LISTS, np.int64), np.empty(LISTS, np.int64)
    )


def walk_or_scan(scored: Scored, x: float, y: float, walk: Callable[[Any, Any], Walk]) -> Walk:
    """Begin a walk down a path if it has all answers, else a scan; `walk` takes x and y as the ends are."""
    near_x, near_y = question(x, y, scored.kind)
    return Scan(scored).walk(x, y) if near_x > near_y else walk(near_x, near_y)


def top_or_scan(
    scored: Scored,
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    k: int,
    top: Callable[[Floats, Floats, Ranks, Ints], None],
) -> Found:
    """Ask paths the questions to which they have all answers, and a scan the others.

    `top` takes questions in the type of the ends, and writes ranks and counts.
    """
    found = answers(len(x), k, len(scored.low))
    near_x, near_y = narrowed(x, y, scored.kind)
    spread = near_x > near_y
    if not spread.any():
        top(near_x, near_y, *found)
        return found
    inside = answers(int((~spread).sum()), k, len(scored.low))
    top(near_x[~spread], near_y[~spread], *inside)
    for where, part in ((~spread, inside), (spread, Scan(scored).top_many(x[spread], y[spread], k))):
        found.ranks[where], found.counts[where] = part
    return found


@bare_inner
def enter(heads: Heads, which: int, at: int, end: int, rank: int) -> None:
    """Add a list whose first rank is known and lies before `at`."""
    keys = heads.keys
    heads.at[which] = at
    heads.end[which] = end
    key = np.int64(rank) << LIST_BITS | which
    place = heads.size[0]
    heads.size[0] = place + 1
    while place > 0:
        above = (place - 1) >> 1
        if keys[above] < key:
            break
        keys[place] = keys[above]
        place = above
    keys[place] = key


@bare_inner
def leave(heads: Heads) -> None:
    """Take out the list on top."""
    size = heads.size[0] - 1
    heads.size[0] = size
    if size > 0:
        sink(heads, heads.keys[size])


@bare_inner
def sink(heads: Heads, key: int) -> None:
    """Put a key in place of the one on top."""
    keys, size = heads.keys, heads.size[0]
    place = 0
    while True:
        below = 2 * place + 1
        if below >= size:
            break
        if below + 1 < size and keys[below + 1] < keys[below]:
            below += 1
        if keys[below] > key:
            break
        keys[place] = keys[below]
        place = below
    keys[place] = key
