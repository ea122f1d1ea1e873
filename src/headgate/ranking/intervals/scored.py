"""Intervals in falling order of their scores, and what an index of them can do.

A rank is a place in that order; equal scores go by id, so no two intervals have the same rank. An index
answers with ranks: the best first.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from headgate.errors import SubscriptionError
from headgate.ranking.boxes.ends import narrowed, narrowest

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.core.arrays import Floats

    Ranks = NDArray[np.int32]


class Scored(NamedTuple):
    """The interval of rank r is [low[r], high[r]], both ends in it; its score is score[r], none above it.

    row[r] is its place among the intervals that were given. Those that hold nothing are left out.
    """

    low: Floats
    high: Floats
    score: NDArray[np.float64]
    row: Ranks

    @property
    def kind(self) -> type[np.floating[Any]]:
        """Return the type of the ends."""
        return self.low.dtype.type

    def check(self) -> None:
        """Assert the invariants."""
        assert len(self.low) == len(self.high) == len(self.score) == len(self.row)
        assert self.low.dtype == self.high.dtype
        assert bool((self.low <= self.high).all())
        assert bool((np.diff(self.score) <= 0).all())


def rank(low: NDArray[np.float64], high: NDArray[np.float64], score: NDArray[np.float64]) -> Scored:
    """Put closed intervals into falling order of their scores; equal scores stay in the order given.

    >>> rank(np.array([0.0, 2.0]), np.array([5.0, 3.0]), np.array([0.5, 0.9])).row.tolist()
    [1, 0]
    """
    if len(score) >= 2**31:
        raise SubscriptionError(f"{len(score):,} intervals are more than one index holds: use several")
    if not np.isfinite(score).all():
        row = int(np.flatnonzero(~np.isfinite(score))[0])
        raise SubscriptionError(f"the score of interval {row} is {score[row]}: give a finite number")
    if np.isnan(low).any() or np.isnan(high).any():
        row = int(np.flatnonzero(np.isnan(low) | np.isnan(high))[0])
        raise SubscriptionError(f"interval {row} has the ends {low[row]} and {high[row]}: give numbers")
    order = np.argsort(-score, kind="stable")
    order = order[low[order] <= high[order]]
    kind = narrowest(low[order], high[order])
    return Scored(low[order].astype(kind), high[order].astype(kind), score[order], order.astype(np.int32))


class RankLists(NamedTuple):
    """Answers to many questions: the ranks of question i are ranks[i, :counts[i]], the best first."""

    ranks: Ranks
    counts: NDArray[np.int64]


class Walk(ABC):
    """The intervals that hold for one question, the best first, found a few at a time."""

    def next(self) -> int:
        """Return the next rank, or -1 after the last."""
        one = np.empty(1, np.int32)
        return int(one[0]) if self.fill(one) else -1

    @abstractmethod
    def fill(self, out: Ranks) -> int:
        """Write as many of the next ranks as there is room; returns how many. Fewer means: the last."""


class ScoredIndex(Protocol):
    """Scored intervals, ready to be asked; questions are those of `ends`."""

    def walk(self, x: float, y: float) -> Walk:
        """Begin to list the intervals with low <= x and high >= y."""

    def top_many(self, x: NDArray[np.float64], y: NDArray[np.float64], k: int) -> RankLists:
        """Find the best k for each of many questions."""


def question(x: float, y: float, kind: type[np.floating[Any]]) -> tuple[Any, Any]:
    """Return one question in the type of the ends."""
    xs, ys = narrowed(np.array([x], np.float64), np.array([y], np.float64), kind)
    return xs[0], ys[0]


def answers(count: int, k: int, size: int) -> RankLists:
    """Make room for the best k of each of some questions, asked of `size` intervals."""
    return RankLists(np.empty((count, min(k, size)), np.int32), np.zeros(count, np.int64))
