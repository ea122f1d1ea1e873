"""Hot loops: whether conjunctions embed in conjunctions, and which of their clauses they cover."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.core.jit import bare, bare_inner

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ODD = np.uint64(0x9E3779B97F4A7C15)
_HIGH = np.uint64(57)
_ONE = np.uint64(1)


class Conjunctions(NamedTuple):
    """The clauses of view v are `clauses[starts[v]:starts[v + 1]]`, by number.

    Clause c implies itself and `implied[offsets[c]:offsets[c + 1]]`, which rise. `needed` are the items of
    each view: a bit for each clause, bit 0 alone if it has none, no bit if it takes no part in plans.
    """

    starts: NDArray[np.int64]
    clauses: NDArray[np.int32]
    needed: NDArray[np.uint64]
    offsets: NDArray[np.int64]
    implied: NDArray[np.int32]


@bare_inner
def _implies(views: Conjunctions, strong: int, weak: int) -> bool:
    if strong == weak:
        return True
    low, high = views.offsets[strong], views.offsets[strong + 1]
    while low < high:
        middle = (low + high) >> 1
        if views.implied[middle] < weak:
            low = middle + 1
        else:
            high = middle
    return bool(low < views.offsets[strong + 1] and views.implied[low] == weak)


@bare_inner
def _embeds(views: Conjunctions, source: int, target: int) -> bool:
    """Tell whether each clause of a view is implied by one of another."""
    for i in range(views.starts[source], views.starts[source + 1]):
        found = False
        for j in range(views.starts[target], views.starts[target + 1]):
            if _implies(views, views.clauses[j], views.clauses[i]):
                found = True
                break
        if not found:
            return False
    return True


@bare
def cover(
    views: Conjunctions,
    whole: bool,
    sources: NDArray[np.int32],
    targets: NDArray[np.int32],
    embeds: NDArray[np.bool_],
    masks: NDArray[np.uint64],
) -> None:
    """Answer for pairs of views; with `whole`, what a view gives is enough to test all clauses again."""
    for i in range(len(sources)):
        source, target = sources[i], targets[i]
        masks[i] = 0
        taking_part = views.needed[source] != 0 and views.needed[target] != 0
        embeds[i] = taking_part and _embeds(views, source, target)
        if not embeds[i]:
            continue
        first, end = views.starts[target], views.starts[target + 1]
        if whole or first == end:
            masks[i] = views.needed[target]
            continue
        found = np.uint64(0)
        for j in range(first, end):
            for k in range(views.starts[source], views.starts[source + 1]):
                if _implies(views, views.clauses[k], views.clauses[j]):
                    found |= _ONE << np.uint64(j - first)
                    break
        masks[i] = found


@bare_inner
def _mark(words: NDArray[np.uint64], view: int, clause: int) -> None:
    bit = (np.uint64(clause + 1) * _ODD) >> _HIGH
    words[2 * view + np.int64(bit >> np.uint64(6))] |= _ONE << (bit & np.uint64(63))


@bare
def sign(views: Conjunctions, demands: NDArray[np.uint64], offers: NDArray[np.uint64]) -> None:
    """Mark the clauses that each view demands of a target, and those that it implies as one."""
    for view in range(len(views.starts) - 1):
        for i in range(views.starts[view], views.starts[view + 1]):
            clause = views.clauses[i]
            _mark(demands, view, clause)
            _mark(offers, view, clause)
            for j in range(views.offsets[clause], views.offsets[clause + 1]):
                _mark(offers, view, views.implied[j])
