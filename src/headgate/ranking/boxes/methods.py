"""How boxes are ranked: the questions, and the methods that answer them, by name.

    exact      auto  dense  scan  rows          intersect:STRUCTURE
    relaxed    auto  dense  scan  rows  sparse  threshold:STRUCTURE

A method is built of the boxes of a base when it is first asked for. All of them give the same answers.
Method `scan`, once columns without blocks, is another name of `dense`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np

from headgate.core.papers import of_papers
from headgate.errors import EventError
from headgate.ranking.answers import RankedRows
from headgate.ranking.boxes.boxes import ask, check_factors, places
from headgate.ranking.boxes.dense import DenseExact, DenseRelaxed
from headgate.ranking.boxes.ends import probe
from headgate.ranking.boxes.rows import RowScan, at_least
from headgate.ranking.boxes.sparse import Sparse
from headgate.ranking.boxes.threshold import Threshold, combined, held_values
from headgate.ranking.boxes.threshold_kernels import EXACT, MAX, SUM
from headgate.ranking.intervals.structures import STRUCTURES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headgate.core.arrays import Floats64
    from headgate.ranking.boxes.boxes import Boxes, BoxQuery, Combine
    from headgate.ranking.boxes.threshold_kernels import Flags


class DenseRows:
    """Boxes in tiers and blocks over dense columns."""

    def __init__(self, boxes: Boxes, dimensions: int, how: int) -> None:
        shape, at = (dimensions, boxes.size), (boxes.dim, boxes.row)
        # Where a box has no interval, anything holds if all must hold, and nothing if any may.
        ends = np.inf if how == EXACT else -np.inf
        low, high = np.full(shape, -ends), np.full(shape, ends)
        low[at], high[at] = boxes.low, boxes.high
        self._exact: DenseExact | None = None
        self._relaxed: DenseRelaxed | None = None
        if how == EXACT:
            self._order = np.argsort(-boxes.score, kind="stable")
            self._score = boxes.score
            self._exact = DenseExact(low[:, self._order], high[:, self._order], self._order)
        else:
            weight = np.zeros(shape)
            weight[at] = boxes.weight
            self._relaxed = DenseRelaxed(low, high, weight)

    def top(self, asked: BoxQuery, k: int, how: int, gone: Flags) -> RankedRows:
        """Find the best k."""
        x, y, removed = asked.x[None, :], asked.y[None, :], gone if len(gone) else None
        if self._exact is not None:
            answers = self._exact.top_many(x, y, k, removed=removed)
            row = self._order[answers.numbers[0, : answers.counts[0]]]
            return RankedRows(row, self._score[row])
        assert self._relaxed is not None
        factors = None if bool((asked.factor == 1.0).all()) else asked.factor
        answers = self._relaxed.top_many(x, y, k, factors=factors, largest=how == MAX, removed=removed)
        count = answers.counts[0]
        return RankedRows(answers.numbers[0, :count].astype(np.int64), answers.values[0, :count])


class SparseRows:
    """Boxes with few intervals in many dimensions; sums only."""

    def __init__(self, boxes: Boxes) -> None:
        self._sparse = Sparse.build(boxes.size, boxes.start, boxes.dim, boxes.low, boxes.high, boxes.weight)

    def top(self, asked: BoxQuery, k: int, how: int, gone: Flags) -> RankedRows:  # noqa: ARG002 -- there is one way
        """Find the best k."""
        factors = None if bool((asked.factor == 1.0).all()) else asked.factor
        row, value = self._sparse.top(asked.x, asked.y, k, factors, gone if len(gone) else None)
        return RankedRows(row.astype(np.int64), value)


EXACTLY, RELAXED = MODES = ("exact", "relaxed")
"""Who matches: boxes of which every interval holds, by score; of which any holds, by the weights of those."""
AUTO, DENSE, SCAN, ROWS, SPARSE = "auto", "dense", "scan", "rows", "sparse"
INTERSECT, THRESHOLD = "intersect", "threshold"
COMBINATIONS = {"sum": SUM, "max": MAX}
NARROW, WIDE = 16, 64
"""Up to so many dimensions `auto` takes `dense` at once, and up to so many where boxes are not full."""
FULL = 0.25
"""The part of all intervals that there could be, from which on `auto` takes boxes to be full."""


class Ranker(Protocol):
    """Boxes laid out for one method."""

    def top(self, asked: BoxQuery, k: int, how: int, gone: Flags) -> RankedRows:
        """Find the best k of the rows that are there."""


def methods(mode: str) -> list[str]:
    """List the methods of a mode."""
    family = INTERSECT if mode == EXACTLY else THRESHOLD
    sparse = [] if mode == EXACTLY else [SPARSE]
    return [AUTO, DENSE, SCAN, ROWS, *sparse, *(f"{family}:{name}" for name in STRUCTURES)]


def check_method(mode: str, method: str) -> None:
    """Refuse a mode or a method that there is not."""
    if mode not in MODES:
        raise EventError(f"there is no mode {mode!r}: use {EXACTLY!r} or {RELAXED!r}")
    if method not in methods(mode):
        raise EventError(f"there is no method {method!r} of {mode} ranking: use {', '.join(methods(mode))}")


def chosen(boxes: Boxes, dimensions: int, question: Question, method: str) -> str:
    """Turn `auto` into the method that measurement prefers for these boxes and this question."""
    function = callable(question.combine)
    if method == AUTO and function:
        return f"{THRESHOLD}:{AUTO}"
    if function and method in {DENSE, SPARSE}:
        raise EventError(f"the method {method!r} combines by itself: use {THRESHOLD}:{AUTO} with a function")
    if method == SPARSE and question.how != SUM:
        raise EventError(f"the method {SPARSE!r} knows sums only: use {AUTO!r}")
    if not dimensions and method in {AUTO, DENSE, SCAN, SPARSE}:
        return ROWS
    if method != AUTO:
        return method
    if dimensions <= NARROW:
        # The best by one weight are among the first of the lists, unless factors round weights to the same.
        plain = all(factor in {0, 1} for factor in (question.factors or {}).values())
        return f"{THRESHOLD}:{AUTO}" if question.how == MAX and plain else DENSE
    if len(boxes.dim) >= FULL * boxes.size * dimensions:
        return DENSE
    if question.how == SUM:
        return SPARSE
    return DENSE if dimensions <= WIDE else ROWS


def ranker(boxes: Boxes, dimensions: int, mode: str, method: str) -> Ranker:
    """Lay boxes out for a method that was chosen."""
    how = EXACT if mode == EXACTLY else SUM
    family, _, name = method.partition(":")
    if family == INTERSECT:
        made: Ranker = of_papers("intersecting:Intersecting", boxes, dimensions, STRUCTURES[name])
        return made
    if family == THRESHOLD:
        return Threshold(boxes, dimensions, STRUCTURES[name])
    if family == SPARSE:
        return SparseRows(boxes)
    if family in {DENSE, SCAN}:
        return DenseRows(boxes, dimensions, how)
    return RowScan(boxes, how)


@dataclass(frozen=True)
class Question:
    """What is asked of boxes: an event, and how its matches are ordered. Refuses what makes no sense."""

    event: Mapping[str, object]
    mode: str
    notion: str
    factors: Mapping[str, float] | None
    combine: str | Combine
    _asked: dict[tuple[str, ...], BoxQuery] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Refuse what makes no sense."""
        probe(None, self.notion)
        for what, given in (("event", self.event), ("factors", self.factors or {})):
            if not isinstance(given, Mapping):
                raise EventError(f"the {what} is {given!r}: give a value for each name of a dimension")
        if self.mode == EXACTLY and (self.factors or self.combine != "sum"):
            raise EventError("exact ranking goes by scores: give factors and combinations to relaxed ranking")
        if not callable(self.combine) and self.combine not in list(COMBINATIONS):
            raise EventError(
                f"there is no combination {self.combine!r}: use {', '.join(COMBINATIONS)}, or give a function"
            )
        check_factors(self.factors or {})

    @property
    def how(self) -> int:
        """Return what a box is worth, for kernels; beside a function of the user's any will do."""
        if self.mode == EXACTLY:
            return EXACT
        return SUM if callable(self.combine) else COMBINATIONS[self.combine]

    def ask(self, dimensions: tuple[str, ...]) -> BoxQuery:
        """Return what is asked in some dimensions; worked out once for base and tail."""
        query = self._asked.get(dimensions)
        if query is None:
            query = self._asked[dimensions] = ask(self.event, dimensions, self.notion, self.factors)
        return query

    def function(self, some: Sequence[str], dimensions: Sequence[str]) -> Combine | None:
        """Return the function of the user's, if there is one, for values of some of the dimensions."""
        if not callable(self.combine):
            return None
        combine = self.combine
        if len(some) == len(dimensions):
            return combine
        dims = places(some, dimensions).tolist()

        def spread(values: Sequence[float]) -> float:
            wide = [0.0] * len(dimensions)
            for at, value in zip(dims, values, strict=True):
                wide[at] = value
            return combine(wide)

        return spread


def combined_rows(
    boxes: Boxes, bound: Floats64, asked: BoxQuery, combine: Combine, gone: Flags
) -> RankedRows:
    """Work out what every matching row is worth by a function of the user's, in plain Python."""
    rows = at_least(boxes, bound, asked, SUM, -np.inf, gone).rows
    values = [combined(combine, held_values(boxes, row, asked)) for row in rows.tolist()]
    return RankedRows(rows, np.array(values, np.float64)).ordered()


def matching(
    boxes: Boxes,
    bound: Floats64,
    asked: BoxQuery,
    how: int,
    combine: Combine | None,
    floor: float,
    gone: Flags,
) -> RankedRows:
    """List all rows that are worth `floor` or more, the best first."""
    if combine is None:
        return at_least(boxes, bound, asked, how, floor, gone)
    valued = combined_rows(boxes, bound, asked, combine, gone)
    return valued.where(valued.values >= floor)
