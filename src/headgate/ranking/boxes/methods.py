"""How boxes are ranked: the questions, and the methods that answer them, by name.

    exact      auto  dense  scan  rows          intersect:STRUCTURE
    relaxed    auto  dense  scan  rows  sparse  threshold:STRUCTURE

A method is built of the boxes of a base when it is first asked for. All of them give the same answers.

Frozen structures leave out rows by flags, one byte each. Making these for every question would take longer
than most answers. So flags of some moment are kept. For the rows that went since then, as many more are
asked for, and they are left out here. There are at most as many as moments; after LAG of them, flags are
made again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np

from headgate.errors import EventError
from headgate.ranking.boxes.boxes import ask, check_factors, places
from headgate.ranking.boxes.dense import DenseExact, DenseRelaxed
from headgate.ranking.boxes.ends import probe
from headgate.ranking.boxes.intersecting import Intersecting
from headgate.ranking.boxes.rows import RowScan, at_least
from headgate.ranking.boxes.scan import SlabScan
from headgate.ranking.boxes.sparse import Sparse
from headgate.ranking.boxes.threshold import Threshold, combined, held_values
from headgate.ranking.boxes.threshold_kernels import EXACT, MAX, SUM, Rows, sorted_rows
from headgate.ranking.intervals.structures import STRUCTURES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from headgate.ranking.boxes.boxes import Boxes, BoxQuery, Combine
    from headgate.ranking.boxes.threshold_kernels import Alive

    Flags = NDArray[np.uint8] | None
    Ask = Callable[[int, Flags], Rows]


LAG, SPARE = 256, 16
"""Moments after which flags are made again; rows more than wanted that are asked for at first."""


class RemovalFlags:
    """The flags of some moment, and answers as of another. `order` is that of the rows in the structure."""

    def __init__(self, order: NDArray[np.int64] | None = None) -> None:
        self._order = order
        self._kept: tuple[int, Flags] = (0, None)

    def top(self, k: int, alive: Alive, ask: Ask) -> Rows:
        """Ask for the best k; `ask` is given how many, and the flags of rows to be left out."""
        if not len(alive.gone):
            return ask(k, None)
        moment, flags = self._kept
        if not 0 <= alive.moment - moment <= LAG:
            later = alive.moment > moment
            gone = alive.gone if self._order is None else alive.gone[self._order]
            moment, flags = alive.moment, (gone <= alive.moment).astype(np.uint8)
            if later:
                self._kept = moment, flags
        lag = alive.moment - moment
        found = Rows(np.zeros(0), np.zeros(0, np.int64))
        for spare in sorted({min(lag, SPARE), lag}):
            found = ask(k + spare, flags)
            there = alive.gone[found.row] > alive.moment
            enough = len(found.row) < k + spare or int(there.sum()) >= k
            found = Rows(found.value[there][:k], found.row[there][:k])
            if enough:
                break
        return found


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
            self._flagged = RemovalFlags(self._order)
            self._score = boxes.score
            self._exact = DenseExact(low[:, self._order], high[:, self._order])
        else:
            self._flagged = RemovalFlags()
            weight = np.zeros(shape)
            weight[at] = boxes.weight
            self._relaxed = DenseRelaxed(low, high, weight)

    @property
    def nbytes(self) -> int:
        """Count the bytes of all arrays."""
        built = self._exact if self._relaxed is None else self._relaxed
        assert built is not None
        return built.nbytes

    def top(self, asked: BoxQuery, k: int, how: int, alive: Alive) -> Rows:
        """Find the best k."""
        x, y = asked.x[None, :], asked.y[None, :]

        def exact(wanted: int, flags: Flags) -> Rows:
            assert self._exact is not None
            found = self._exact.top_many(x, y, wanted, removed=flags)
            row = self._order[found.numbers[0, : found.counts[0]]]
            return Rows(self._score[row], row)

        def relaxed(wanted: int, flags: Flags) -> Rows:
            assert self._relaxed is not None
            factors = None if bool((asked.factor == 1.0).all()) else asked.factor
            found = self._relaxed.top_many(x, y, wanted, factors=factors, largest=how == MAX, removed=flags)
            count = found.counts[0]
            return Rows(found.values[0, :count], found.numbers[0, :count].astype(np.int64))

        return self._flagged.top(k, alive, exact if how == EXACT else relaxed)


class SparseRows:
    """Boxes with few intervals in many dimensions; sums only."""

    def __init__(self, boxes: Boxes) -> None:
        self._sparse = Sparse.build(boxes.size, boxes.start, boxes.dim, boxes.low, boxes.high, boxes.weight)
        self._flagged = RemovalFlags()

    @property
    def nbytes(self) -> int:
        """Count the bytes that it adds to the boxes."""
        return self._sparse.nbytes

    def top(self, asked: BoxQuery, k: int, how: int, alive: Alive) -> Rows:  # noqa: ARG002 -- there is one way
        """Find the best k."""
        factors = None if bool((asked.factor == 1.0).all()) else asked.factor

        def ask(wanted: int, flags: Flags) -> Rows:
            row, value = self._sparse.top(asked.x, asked.y, wanted, factors, flags)
            return Rows(value, row.astype(np.int64))

        return self._flagged.top(k, alive, ask)


EXACTLY, RELAXED = MODES = ("exact", "relaxed")
"""Who matches: boxes of which every interval holds, by score; of which any holds, by the weights of those."""
AUTO, DENSE, SCAN, ROWS, SPARSE = "auto", "dense", "scan", "rows", "sparse"
INTERSECT, THRESHOLD = "intersect", "threshold"
COMBINATIONS = {"sum": SUM, "max": MAX}
NARROW, WIDE = 16, 64
"""Up to so many dimensions `auto` takes `dense`, and up to so many columns that are scanned."""
FULL = 0.25
"""The part of all intervals that there could be, from which on `auto` takes boxes to be full."""


class Ranker(Protocol):
    """Boxes laid out for one method."""

    @property
    def nbytes(self) -> int:
        """Count the bytes that it adds to the boxes."""

    def top(self, asked: BoxQuery, k: int, how: int, alive: Alive) -> Rows:
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
        return f"{THRESHOLD}:{SCAN}"
    if function and method in {DENSE, SPARSE}:
        raise EventError(f"the method {method!r} combines by itself: use {THRESHOLD}:{SCAN} with a function")
    if method == SPARSE and question.how != SUM:
        raise EventError(f"the method {SPARSE!r} knows sums only: use {AUTO!r}")
    if not dimensions and method in {AUTO, DENSE, SCAN, SPARSE}:
        return ROWS
    if dimensions == 1 and method in {AUTO, DENSE} and question.factors:
        # One dimension is answered by the order of weights, and a factor may round two of them to the same.
        return SCAN
    if method != AUTO:
        return method
    if dimensions <= NARROW:
        # The best by one weight are among the first of the lists, unless factors round weights to the same.
        plain = all(factor in {0, 1} for factor in (question.factors or {}).values())
        return f"{THRESHOLD}:{AUTO}" if question.how == MAX and plain else DENSE
    full = len(boxes.dim) >= FULL * boxes.size * dimensions
    if question.how == SUM and not full:
        return SPARSE
    return SCAN if dimensions <= WIDE else ROWS


def ranker(boxes: Boxes, dimensions: int, mode: str, method: str) -> Ranker:
    """Lay boxes out for a method that was chosen."""
    how = EXACT if mode == EXACTLY else SUM
    family, _, name = method.partition(":")
    if family == INTERSECT:
        return Intersecting(boxes, dimensions, STRUCTURES[name])
    if family == THRESHOLD:
        return Threshold(boxes, dimensions, STRUCTURES[name])
    if family == SPARSE:
        return SparseRows(boxes)
    if family == DENSE:
        return DenseRows(boxes, dimensions, how)
    return SlabScan(boxes, dimensions, how) if family == SCAN else RowScan(boxes, how)


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
        found = self._asked.get(dimensions)
        if found is None:
            found = self._asked[dimensions] = ask(self.event, dimensions, self.notion, self.factors)
        return found

    def function(self, some: Sequence[str], dimensions: Sequence[str]) -> Combine | None:
        """Return the function of the user's, if there is one, for values of some of the dimensions."""
        if not callable(self.combine):
            return None
        combine = self.combine
        if len(some) == len(dimensions):
            return combine
        place = places(some, dimensions).tolist()

        def spread(values: Sequence[float]) -> float:
            wide = [0.0] * len(dimensions)
            for at, value in zip(place, values, strict=True):
                wide[at] = value
            return combine(wide)

        return spread


def combined_rows(
    boxes: Boxes, bound: NDArray[np.float64], asked: BoxQuery, combine: Combine, alive: Alive, count: int
) -> Rows:
    """Work out what every matching row is worth by a function of the user's, in plain Python."""
    rows = at_least(boxes, bound, asked, SUM, -np.inf, alive, count).row
    values = [combined(combine, held_values(boxes, row, asked)) for row in rows.tolist()]
    return sorted_rows(np.array(values, np.float64), rows)


def matching(
    boxes: Boxes,
    bound: NDArray[np.float64],
    asked: BoxQuery,
    how: int,
    combine: Combine | None,
    floor: float,
    alive: Alive,
    count: int,
) -> Rows:
    """List all of the first `count` rows that are worth `floor` or more, the best first."""
    if combine is None:
        return at_least(boxes, bound, asked, how, floor, alive, count)
    found = combined_rows(boxes, bound, asked, combine, alive, count)
    return best_of(found, floor)


def best_of(found: Rows, floor: float) -> Rows:
    """Keep the rows that are worth `floor` or more."""
    kept = found.value >= floor
    return Rows(found.value[kept], found.row[kept])
