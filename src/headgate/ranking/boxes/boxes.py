"""Boxes of intervals as flat arrays, and events as what these are asked.

    start   0     2        5   6        row r has the entries start[r] to start[r + 1]
    dim     0  2  0  1  2  1            rising inside a row
    low     25 .5 …                     closed ends; an interval that holds nothing is (inf, -inf)

Row r is the r-th by id, so equal values go by row. A dimension where a box has no interval has no entry: four
dimensions with all set and five hundred with few set are the same to it, and a box is read in one place.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.core.ranks import double
from headgate.errors import EventError, SubscriptionError
from headgate.ranking.boxes.ends import closed_ends, probe

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray

    from headgate.core.event import Id
    from headgate.ranking.model import Box

    Combine = Callable[[Sequence[float]], float]


class Boxes(NamedTuple):
    """The intervals of all boxes, their weights, and the scores of the boxes."""

    start: NDArray[np.int64]
    dim: NDArray[np.int32]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    weight: NDArray[np.float64]
    score: NDArray[np.float64]

    @property
    def size(self) -> int:
        """Count the boxes."""
        return len(self.score)

    @property
    def row(self) -> NDArray[np.int64]:
        """Return the row of each entry."""
        return np.repeat(np.arange(self.size), np.diff(self.start))

    def check(self, dimensions: int) -> None:
        """Assert the invariants."""
        assert len(self.start) == self.size + 1
        assert self.start[0] == 0
        assert self.start[-1] == len(self.dim) == len(self.low) == len(self.high) == len(self.weight)
        assert bool((np.diff(self.start) >= 0).all())
        inside = np.diff(self.row) == 0
        assert bool((np.diff(self.dim)[inside] > 0).all())
        assert not len(self.dim) or (self.dim.min() >= 0 and self.dim.max() < dimensions)
        empty = self.low > self.high
        assert bool((self.low[empty] == np.inf).all())
        assert bool((self.high[empty] == -np.inf).all())
        assert not np.isnan(self.low).any()
        assert not np.isnan(self.high).any()
        assert bool(np.isfinite(self.score).all())
        assert bool((np.isfinite(self.weight) & (self.weight >= 0)).all())


def of_boxes(boxes: Sequence[Box], dimensions: Sequence[str]) -> Boxes:
    """Write boxes into arrays, in the order given; dimensions are numbered by theirs.

    >>> from headgate.ranking.model import Box, Interval
    >>> of_boxes([Box("s1", {"age": Interval(25, 35)})], ["age"]).high.tolist()
    [35.0]
    """
    number = {name: dim for dim, name in enumerate(dimensions)}
    named = [(box, sorted(box.intervals, key=number.__getitem__)) for box in boxes]
    start = np.zeros(len(boxes) + 1, np.int64)
    np.cumsum([len(names) for _, names in named], out=start[1:])
    low, high = closed_ends(box.intervals[name] for box, names in named for name in names)
    return Boxes(
        start,
        np.array([number[name] for _, names in named for name in names], np.int32),
        *_emptied(low, high),
        np.array([box.weight(name) for box, names in named for name in names], np.float64),
        np.array([box.score for box in boxes], np.float64),
    )


def of_columns(
    ids: Sequence[Id],
    dimensions: int,
    low: ArrayLike,
    high: ArrayLike,
    weight: ArrayLike | None,
    score: ArrayLike,
) -> Boxes:
    """Write columns into arrays: ends and weights by dimension and row, NaN ends where there is no interval.

    Ends are closed. An interval whose low end is above its high end holds nothing.
    """
    shape = (dimensions, len(ids))
    try:
        lows, highs, scores = (np.asarray(column, np.float64) for column in (low, high, score))
        weights = np.ones(shape) if weight is None else np.asarray(weight, np.float64)
    except (TypeError, ValueError) as error:
        raise SubscriptionError(
            f"a column is not one of numbers ({error}): give {shape}, dimensions by ids"
        ) from None
    for name, column in (("low", lows), ("high", highs), ("weight", weights), ("score", scores)):
        wanted = shape[1:] if name == "score" else shape
        if column.shape != wanted:
            raise SubscriptionError(
                f"the column {name!r} has the shape {column.shape}: give {wanted}, dimensions by ids"
            )
    missing = np.isnan(lows)
    _refuse(missing != np.isnan(highs), ids, "has one end that is NaN: give both for no interval, or none")
    _refuse(~np.isfinite(scores), ids, "has a score that is no finite number: give one")
    given = ~missing
    wrong = given & ~((weights >= 0) & (weights < np.inf))
    _refuse(wrong, ids, "has a weight that is no finite number of 0 or more: give one")
    with np.errstate(over="ignore"):
        total = np.where(given, weights, 0.0).sum(0)
    _refuse(
        ~np.isfinite(total), ids, "has weights that add up to more than a double holds: give smaller ones"
    )
    row, dim = np.nonzero(given.T)
    start = np.zeros(len(ids) + 1, np.int64)
    np.cumsum(given.sum(0), out=start[1:])
    ends = _emptied(lows[dim, row], highs[dim, row])
    # A weight of -0 is 0.
    return Boxes(start, dim.astype(np.int32), *ends, weights[dim, row] + 0.0, scores.copy())


def _refuse(wrong: NDArray[np.bool_], ids: Sequence[Id], why: str) -> None:
    if wrong.any():
        raise SubscriptionError(f"subscription {ids[int(np.nonzero(wrong)[-1][0])]!r} {why}")


def _emptied(
    low: NDArray[np.float64], high: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Write every interval that holds nothing as (inf, -inf): no question reaches it."""
    empty = low > high
    return np.where(empty, np.inf, low), np.where(empty, -np.inf, high)


def take(boxes: Boxes, rows: NDArray[np.int64]) -> Boxes:
    """Return some of the boxes, in the order asked for."""
    lengths = boxes.start[rows + 1] - boxes.start[rows]
    start = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(lengths, out=start[1:])
    entry = np.repeat(boxes.start[rows] - start[:-1], lengths) + np.arange(start[-1])
    return Boxes(
        start,
        boxes.dim[entry],
        boxes.low[entry],
        boxes.high[entry],
        boxes.weight[entry],
        boxes.score[rows],
    )


def joined(first: Boxes, second: Boxes) -> Boxes:
    """Lay boxes behind others."""
    start = np.concatenate([first.start, first.start[-1] + second.start[1:]])
    return Boxes(
        start,
        np.concatenate([first.dim, second.dim]),
        np.concatenate([first.low, second.low]),
        np.concatenate([first.high, second.high]),
        np.concatenate([first.weight, second.weight]),
        np.concatenate([first.score, second.score]),
    )


def renumbered(boxes: Boxes, old: Sequence[str], new: Sequence[str]) -> Boxes:
    """Number the dimensions by a longer list that keeps their order."""
    if tuple(old) == tuple(new):
        return boxes
    return boxes._replace(dim=places(old, new)[boxes.dim])


def places(old: Sequence[str], new: Sequence[str]) -> NDArray[np.int32]:
    """Find the places of some dimensions in a longer list."""
    number = {name: dim for dim, name in enumerate(new)}
    return np.array([number[name] for name in old], np.int32)


class BoxQuery(NamedTuple):
    """What an event asks in each dimension, low <= x and high >= y, and what it counts there."""

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    factor: NDArray[np.float64]


def ask(
    event: Mapping[str, object],
    dimensions: Sequence[str],
    notion: str,
    factors: Mapping[str, float] | None = None,
) -> BoxQuery:
    """Turn an event into questions; what it says of other dimensions is not looked at.

    >>> ask({"age": 28, "height": 180}, ["age", "salary"], "overlap").x.tolist()
    [28.0, -inf]
    """
    asked = BoxQuery(*(np.ones(len(dimensions)) for _ in BoxQuery._fields))
    probe(None, notion)
    for dim, name in enumerate(dimensions):
        try:
            asked.x[dim], asked.y[dim] = probe(event.get(name), notion)
        except EventError as error:
            raise EventError(f"the event's value of {name!r}: {error}") from None
    if factors:
        check_factors(factors)
        for dim, name in enumerate(dimensions):
            asked.factor[dim] = factors.get(name, 1.0)
    return asked


def check_factors(factors: Mapping[str, object]) -> None:
    """Refuse a factor that is not a finite number of 0 or more: values must not fall when more holds."""
    for name, factor in factors.items():
        number = double(factor)
        if number is None or not 0 <= number < math.inf:
            raise EventError(
                f"the factor of {name!r} is {factor!r}: give a finite number; 0 drops the dimension"
            )
