"""Ends of intervals as closed ends in floats, and events as what those are compared with.

Every question that is asked of an interval [low, high] here has the form

    low <= x and high >= y

    a point q               x = q, y = q
    an event [a, b]         within the interval: x = a, y = b; overlapping it: x = b, y = a
    no value in the event   x = -inf, y = inf: only an interval without ends holds

An open end is the closed end at the next float. Ends that all fit into 4 bytes are kept so, and x and y are
then rounded away from what they must not reach, so that answers are those of 8 bytes.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headgate.core.ranks import double
from headgate.errors import EventError
from headgate.ranking.model import Interval

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headgate.core.arrays import Floats, Floats64


OVERLAP, WITHIN = NOTIONS = ("overlap", "within")
"""When an interval holds for an event that is one: they share a number; the event lies inside."""

_LEAST = np.nextafter(-np.inf, 0.0)


class Probe(NamedTuple):
    """What an event asks of the intervals of one dimension: low <= x and high >= y."""

    x: float
    y: float


MISSING = Probe(-np.inf, np.inf)


def probe(value: object, notion: str = OVERLAP) -> Probe:
    """Turn the value of an event into a question.

    >>> probe(28), probe(Interval(20, 30)), probe(Interval(20, 30), WITHIN)
    (Probe(x=28.0, y=28.0), Probe(x=30.0, y=20.0), Probe(x=20.0, y=30.0))
    """
    if notion not in NOTIONS:
        raise EventError(f"there is no notion {notion!r}: use {OVERLAP!r} or {WITHIN!r}")
    if value is None:
        return MISSING
    if isinstance(value, Interval):
        low, high = _closed(value)
        if low > high:
            return MISSING
        # An interval that holds nothing is (inf, -inf) in some tables: no question may reach that far.
        return Probe(high, max(low, float(_LEAST))) if notion == OVERLAP else Probe(low, high)
    number = double(value)
    if number is None:
        raise EventError(f"{value!r} is neither a number nor an interval: give one of the two")
    return MISSING if math.isnan(number) else Probe(number, number)


def closed_ends(intervals: Iterable[Interval]) -> tuple[Floats64, Floats64]:
    """Write intervals as closed ones; one that holds nothing has its low end above its high end."""
    ends = [_closed(interval) for interval in intervals]
    both = np.array(ends, np.float64).reshape(len(ends), 2)
    return both[:, 0].copy(), both[:, 1].copy()


def _closed(interval: Interval) -> tuple[float, float]:
    # The next number after the largest is infinite: nothing lies there, and that is no error.
    return (
        math.nextafter(interval.low, math.inf) if interval.low_open else interval.low,
        math.nextafter(interval.high, -math.inf) if interval.high_open else interval.high,
    )


def narrowest(*columns: Floats64) -> type[np.floating[Any]]:
    """Find the smallest type of float that holds all ends as they are."""
    with np.errstate(over="ignore"):
        fits = all(bool((column == column.astype(np.float32)).all()) for column in columns)
    return np.float32 if fits else np.float64


def narrowed(x: Floats64, y: Floats64, kind: type[np.floating[Any]]) -> tuple[Floats, Floats]:
    """Round questions to the type of the ends, x down and y up: no end lies between."""
    if kind is np.float64:
        return np.asarray(x, np.float64), np.asarray(y, np.float64)
    with np.errstate(over="ignore"):
        down, up = np.array(x, np.float32), np.array(y, np.float32)
        np.nextafter(down, np.float32(-np.inf), out=down, where=down > x)
        np.nextafter(up, np.float32(np.inf), out=up, where=up < y)
    return down, up
