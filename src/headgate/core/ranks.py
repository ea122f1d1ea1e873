"""What things are ranked by: scores, weights, and how many are wanted."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from headgate.core.values import fold
from headgate.errors import SubscriptionError

if TYPE_CHECKING:
    from headgate.core.event import Id

EXACT, RELAXED = MODES = ("exact", "relaxed")
"""What makes a subscription better: its score if all clauses hold, or the weights of those that hold."""

Weights: TypeAlias = Mapping[str, float] | Sequence[float]
"""What the clauses of a filter count: by the attribute that they look at, or one after the other."""

Score: TypeAlias = float | str
"""What a subscription is ranked by: a number, or an expression over the attributes of the event."""


def double(value: object) -> float | None:
    """Read a number, Python's or NumPy's, as a double; a whole number that is too large is infinite.

    >>> double(2), double(10**400), double("2"), double(True)
    (2.0, inf, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf  # type: ignore[operator]


def check_score(score: object, what: str) -> None:
    """Refuse a score that is neither a finite number nor text, which is an expression."""
    if isinstance(score, str) and score.strip():
        return
    number = double(score)
    if number is None or not math.isfinite(number):
        raise SubscriptionError(
            f"the score of {what} is {score!r}: give a finite number, or an expression over the event"
        )


def check_weight(weight: object, what: str) -> None:
    """Refuse a weight that is not a finite number of 0 or more: sums must not fall when more holds."""
    number = double(weight)
    if number is None or not 0 <= number < math.inf:
        raise SubscriptionError(f"the weight of {what} is {weight!r}: give a finite number, 0 or more")


def check_weights(weights: Weights | None, what: str) -> None:
    """Refuse weights that are neither one for each attribute nor one for each clause."""
    if isinstance(weights, Mapping):
        for name, weight in weights.items():
            if not isinstance(name, str):
                raise SubscriptionError(f"{what} weighs {name!r}: name an attribute, by text")
            check_weight(weight, f"{name!r} of {what}")
        if len(set(map(fold, weights))) < len(weights):
            raise SubscriptionError(
                f"{what} weighs two names that differ in case only, which are the same: give one"
            )
    elif isinstance(weights, Sequence) and not isinstance(weights, str | bytes):
        for number, weight in enumerate(weights):
            check_weight(weight, f"clause {number + 1} of {what}")
    elif weights is not None:
        raise SubscriptionError(
            f"the weights of {what} are {weights!r}: give a number for each attribute, or for each clause"
        )


def check_k(k: object) -> None:
    """Refuse a k that is no count. 0 is one: the best none."""
    if isinstance(k, bool) or not isinstance(k, Integral) or k < 0:
        raise SubscriptionError(f"k is {k!r}: give how many are wanted, a whole number from 0 up")


def read_factors(factors: Mapping[str, float] | None) -> dict[str, float]:
    """Read by what an event multiplies the weights of attributes: names folded, without those of 1.

    0 drops an attribute. Names that no filter looks at are allowed: an event does not know the filters.

    >>> read_factors({"Age": 2, "topic": 1.0, "salary": 0})
    {'age': 2.0, 'salary': 0.0}
    """
    if factors is None:
        return {}
    if not isinstance(factors, Mapping):
        raise SubscriptionError(f"factors are {factors!r}: give a number for each attribute that has one")
    read: dict[str, float] = {}
    given: Mapping[object, object] = factors  # type: ignore[assignment]
    for name, factor in given.items():
        if not isinstance(name, str):
            raise SubscriptionError(f"there is a factor for {name!r}: name an attribute, by text")
        number = double(factor)
        if number is None or not 0 <= number < math.inf:
            raise SubscriptionError(
                f"the factor of {name!r} is {factor!r}: give a finite number, 0 or more; 0 drops it"
            )
        if fold(name) in read:
            raise SubscriptionError(
                f"there are two factors for {fold(name)!r}: case does not tell names apart"
            )
        read[fold(name)] = number
    return {name: factor for name, factor in read.items() if factor != 1.0}


class Best(NamedTuple):
    """One of the best k: the subscription, and the value that it is ranked by."""

    subscription: Id
    value: float


def check_asked(k: int, mode: str, factors: Mapping[str, float] | None) -> None:
    """Refuse a question that makes no sense."""
    check_k(k)
    if mode not in MODES:
        raise SubscriptionError(f"there is no mode {mode!r}: use {EXACT!r} or {RELAXED!r}")
    if mode == EXACT and factors:
        raise SubscriptionError(f"factors re-weigh clauses, which mode {EXACT!r} does not: use {RELAXED!r}")
