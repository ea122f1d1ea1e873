"""What is ranked: intervals with scores, in one dimension or in many."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headgate.core.ranks import check_score, check_weight, double
from headgate.errors import SubscriptionError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headgate.core.event import Id


def check_box_score(score: object, what: str) -> None:
    """Refuse a score of a box that is not a finite number: it has no events with attributes."""
    if isinstance(score, str):
        raise SubscriptionError(f"the score of {what} is {score!r}: give a finite number")
    check_score(score, what)


@dataclass(frozen=True)
class Interval:
    """A range of numbers; either end may be open, and infinite ends are no ends.

    Equal ends of which one is open hold nothing: such an interval is kept, and never holds.

    >>> 3 in Interval(3, 5), 3 in Interval(3, 5, low_open=True), 7 in Interval(low=3)
    (True, False, True)
    """

    low: float = -math.inf
    high: float = math.inf
    low_open: bool = False
    high_open: bool = False

    def __post_init__(self) -> None:
        """Refuse what is no interval."""
        ends: dict[str, object] = {"low": self.low, "high": self.high}
        for name, value in ends.items():
            number = double(value)
            if number is None or math.isnan(number):
                raise SubscriptionError(f"the interval's {name} end is {value!r}: give a number")
            if math.isinf(number) and value != number:
                raise SubscriptionError(f"the interval's {name} end does not fit into a double: leave it out")
            object.__setattr__(self, name, number)
        for name in ("low_open", "high_open"):
            if not isinstance(getattr(self, name), bool):
                raise SubscriptionError(f"{name} is {getattr(self, name)!r}: give True or False")
            if math.isinf(getattr(self, name.removesuffix("_open"))):
                object.__setattr__(self, name, False)
        if self.low > self.high:
            raise SubscriptionError(
                f"the interval from {self.low!r} to {self.high!r} is upside down: give the lower end first"
            )
        if self.low == self.high and math.isinf(self.low):
            raise SubscriptionError(f"the interval from {self.low!r} to {self.high!r} holds no number")

    def __contains__(self, value: float) -> bool:
        """Tell whether a number is inside."""
        above = value > self.low if self.low_open else value >= self.low
        return bool(above and (value < self.high if self.high_open else value <= self.high))


@dataclass(frozen=True)
class Box:
    """A subscription of intervals: all of them must hold (exact), or their weights add up (relaxed).

    `weights` may be one number for every dimension, or say it for each; a dimension not named weighs 1.

    >>> Box("s1", {"age": Interval(25, 35), "salary": Interval(low=50_000)}, score=2.0).weight("age")
    1.0
    """

    id: Id
    intervals: Mapping[str, Interval] = field(hash=False)
    score: float = 0.0
    weights: Mapping[str, float] | float = field(default=1.0, hash=False)

    def __post_init__(self) -> None:
        """Refuse what are no intervals, and scores and weights that nothing can be ordered by."""
        intervals: object = self.intervals
        if not isinstance(intervals, Mapping) or not all(
            isinstance(name, str) and isinstance(each, Interval) for name, each in intervals.items()
        ):
            raise SubscriptionError(
                f"the intervals of subscription {self.id!r} are {intervals!r}: give an Interval for each name"
            )
        check_box_score(self.score, f"subscription {self.id!r}")
        if isinstance(self.weights, Mapping):
            for name, weight in self.weights.items():
                if name not in self.intervals:
                    raise SubscriptionError(
                        f"subscription {self.id!r} weighs {name!r}, where it has no interval: leave it out"
                    )
                check_weight(weight, f"{name!r} of subscription {self.id!r}")
        else:
            check_weight(self.weights, f"subscription {self.id!r}")
        check_total(map(self.weight, self.intervals), f"subscription {self.id!r}")

    def weight(self, dimension: str) -> float:
        """Return what it counts that the interval of a dimension holds."""
        if isinstance(self.weights, Mapping):
            return float(self.weights.get(dimension, 1.0)) + 0.0
        return float(self.weights) + 0.0


def check_total(weights: Iterable[float], what: str) -> None:
    """Refuse weights of which the sum is infinite: it could not be told from a larger one."""
    if math.isinf(sum(weights)):
        raise SubscriptionError(
            f"the weights of {what} add up to more than a double holds: give smaller ones"
        )
