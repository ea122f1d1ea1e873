"""Exact matching as the paper has it: the walks of all dimensions in the order of scores, intersected.

A box must hold in every dimension, so one without an interval there is in the walk of that dimension too. All
walks list boxes by the same order, so the first that all of them list is the best.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.core.jit import bare
from headgate.ranking.answers import RankedRows
from headgate.ranking.boxes.threshold import LEAST, MOST
from headgate.ranking.boxes.threshold_kernels import DONE, lives
from headgate.ranking.intervals.scored import rank

if TYPE_CHECKING:
    from collections.abc import Callable

    from headgate.core.arrays import Bytes, Ints, Ints32
    from headgate.ranking.boxes.boxes import Boxes, BoxQuery
    from headgate.ranking.boxes.threshold_kernels import Flags
    from headgate.ranking.intervals.scored import Scored, ScoredIndex

    Structure = Callable[[Scored], ScoredIndex]

WANTED, AGREED, TURN, FOUND = range(4)


class Heads(NamedTuple):
    """Walks that are intersected, a part of each at a time.

    places[i, at[i]]  the next place of walk i in the order of scores, if at[i] < have[i]
    last[i]           1 if what the walk has is its end
    state             the place that is looked for (WANTED), how many walks in a row have it (AGREED), the
                      walk to go on with (TURN), and how many places all had (FOUND)
    """

    places: Ints32
    at: Ints
    have: Ints
    last: Bytes
    state: Ints


class Intersecting:
    """One scored index a dimension, all by the scores of the boxes."""

    def __init__(self, boxes: Boxes, dimensions: int, structure: Structure) -> None:
        order = np.argsort(-boxes.score, kind="stable")
        self._order, self._score = order.astype(np.int32), boxes.score[order]
        rank_of = np.empty(boxes.size, np.int32)
        rank_of[order] = np.arange(boxes.size)
        row = boxes.row
        self._indexes: list[ScoredIndex] = []
        self._places: list[Ints32] = []
        for dim in range(dimensions):
            entries = np.flatnonzero(boxes.dim == dim)
            low, high = np.full(boxes.size, -np.inf), np.full(boxes.size, np.inf)
            low[row[entries]], high[row[entries]] = boxes.low[entries], boxes.high[entries]
            scored = rank(low, high, boxes.score)
            self._indexes.append(structure(scored))
            self._places.append(rank_of[scored.row])

    def top(self, asked: BoxQuery, k: int, how: int, gone: Flags) -> RankedRows:  # noqa: ARG002 -- there is one way
        """Find the best k."""
        count = len(self._indexes)
        out = np.empty(min(k, len(self._order)), np.int64)
        if not count:
            there = [place for place, row in enumerate(self._order.tolist()) if lives(gone, row)]
            return self._rows(np.array(there[:k], np.int64))
        heads = Heads(
            np.empty((count, MOST), np.int32),
            np.zeros(count, np.int64),
            np.zeros(count, np.int64),
            np.zeros(count, np.uint8),
            np.zeros(4, np.int64),
        )
        walks = [
            index.walk(x, y)
            for index, x, y in zip(self._indexes, asked.x.tolist(), asked.y.tolist(), strict=True)
        ]
        size = np.full(count, LEAST)
        ranks = np.empty(MOST, np.int32)
        while len(out) and (turn := intersect(heads, self._order, gone, out)) != DONE:
            wanted = int(size[turn])
            size[turn] = min(2 * wanted, MOST)
            got = walks[turn].fill(ranks[:wanted])
            heads.places[turn, :got] = self._places[turn][ranks[:got]]
            heads.at[turn], heads.have[turn], heads.last[turn] = 0, got, got < wanted
        return self._rows(out[: heads.state[FOUND]])

    def _rows(self, places: Ints) -> RankedRows:
        return RankedRows(self._order[places].astype(np.int64), self._score[places])


@bare
def intersect(heads: Heads, order: Ints32, gone: Flags, out: Ints) -> int:
    """List the places that all walks have until one needs more to read, and return it; DONE at the end."""
    state, count = heads.state, len(heads.at)
    wanted, agreed, turn = state[WANTED], state[AGREED], state[TURN]
    while state[FOUND] < len(out):
        at = heads.at[turn]
        while at < heads.have[turn] and heads.places[turn, at] < wanted:
            at += 1
        heads.at[turn] = at
        if at == heads.have[turn]:
            if heads.last[turn]:
                return DONE
            state[WANTED], state[AGREED], state[TURN] = wanted, agreed, turn
            return int(turn)
        head = heads.places[turn, at]
        agreed = agreed + 1 if head == wanted else 1
        wanted = head
        if agreed == count:
            if lives(gone, order[wanted]):
                out[state[FOUND]] = wanted
                state[FOUND] += 1
            wanted, agreed = wanted + 1, 0
        turn = turn + 1 if turn + 1 < count else 0
    return DONE
