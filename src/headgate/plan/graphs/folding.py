"""Views that are written alike: the graph is found once for the first of them, then laid out for all.

Views that are written alike make a class; its first view stands for it. How a row of the graph between first
views becomes rows between all views:

    own class      up to `spread` + 1 members    every other member is a source, in both directions
                   more                          `spread` of the members before it, evenly spaced, the last
                                                 among them: one direction only, so there is no cycle
    other classes  up to `spread` members        every member is a source, for every member of the own class
                   more                          `spread` members, in turn: each target's begin where those
                                                 of the target before it end, so that all are used alike

So rows grow with the number of classes, not with that of views. Nothing is lost: members give the same, and
each of them can still be reached through the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.core.jit import kernel
from headgate.plan.model import Embeddings

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Classes(NamedTuple):
    """Classes of views that are written alike.

    members     those of class c are members[starts[c]:starts[c + 1]], rising
    owner       the class of each view
    place       the place of each view in its class
    """

    members: NDArray[np.int32]
    starts: NDArray[np.int64]
    owner: NDArray[np.int32]
    place: NDArray[np.int32]


def find_classes(equals: NDArray[np.int32]) -> Classes:
    """Find the classes.

    >>> classes = find_classes(np.array([0, 1, 0, 0], np.int32))
    >>> classes.members.tolist(), classes.starts.tolist(), classes.place.tolist()
    ([0, 2, 3, 1], [0, 3, 4], [0, 0, 1, 2])
    """
    _, owner, counts = np.unique(equals, return_inverse=True, return_counts=True)
    members = np.argsort(owner, kind="stable")
    starts = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=starts[1:])
    place = np.empty(len(equals), np.int32)
    place[members] = np.arange(len(equals)) - np.repeat(starts[:-1], counts)
    return Classes(members.astype(np.int32), starts, owner.astype(np.int32), place)


def unfold(
    rows: Embeddings,
    classes: Classes,
    needed: NDArray[np.uint64],
    targets: NDArray[np.int32],
    spread: int,
) -> Embeddings:
    """Lay rows between first views out for all members; only `targets` (rising) get rows."""
    counts = np.zeros(len(needed), np.int64)
    nothing = Embeddings(np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, np.uint64))
    _spread_rows(rows, classes, needed, targets, spread, counts, nothing)
    offsets = np.zeros(len(needed) + 1, np.int64)
    np.cumsum(counts, out=offsets[1:])
    laid = Embeddings(offsets, np.empty(offsets[-1], np.int32), np.empty(offsets[-1], np.uint64))
    _spread_rows(rows, classes, needed, targets, spread, counts, laid)
    sort_rows(laid, targets)
    return laid


def sort_rows(rows: Embeddings, targets: NDArray[np.int32]) -> None:
    """Sort the rows of some targets by their sources, in place."""
    for first in range(0, len(targets), _AT_ONCE):
        some = targets[first : first + _AT_ONCE]
        begin, end = int(rows.offsets[some[0]]), int(rows.offsets[some[-1] + 1])
        # Between the first and the last of some rising targets lie no rows but theirs: others are empty.
        keys = np.repeat(np.arange(len(some)), rows.offsets[some + 1] - rows.offsets[some]) << 32
        order = np.argsort(keys | rows.sources[begin:end])
        rows.sources[begin:end] = rows.sources[begin:end][order]
        rows.masks[begin:end] = rows.masks[begin:end][order]


_AT_ONCE = 4_096


@kernel
def _spread_rows(
    rows: Embeddings,
    classes: Classes,
    needed: NDArray[np.uint64],
    targets: NDArray[np.int32],
    spread: int,
    counts: NDArray[np.int64],
    out: Embeddings,
) -> None:
    """Count the sources of each target, or write them if `out` has room for them."""
    writing = len(out.offsets) > 0
    for target in targets:
        if needed[target] == 0:
            continue
        own = classes.owner[target]
        turn = np.int64(classes.place[target])
        at = out.offsets[target] if writing else 0
        begin = at
        first = classes.starts[own]
        size = classes.starts[own + 1] - first
        crowded = size > spread + 1
        taken = size
        if crowded:
            taken = min(np.int64(spread), turn)
        for i in range(taken):
            place = i
            if crowded:
                # The last of equal steps is the one just before: (i + 1) * turn // taken - 1 for the last i.
                place = (i + 1) * turn // taken - 1
            elif place == turn:
                continue
            if writing:
                out.sources[at] = classes.members[first + place]
                out.masks[at] = needed[target]
            at += 1
        head = classes.members[first]
        for edge in range(rows.offsets[head], rows.offsets[head + 1]):
            other = classes.owner[rows.sources[edge]]
            first = classes.starts[other]
            size = classes.starts[other + 1] - first
            taken = min(np.int64(spread), size)
            for i in range(taken):
                if writing:
                    out.sources[at] = classes.members[first + (turn * taken + i) % size]
                    out.masks[at] = rows.masks[edge]
                at += 1
        counts[target] = at - begin
