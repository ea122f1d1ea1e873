"""Intervals with scores for tests: few distinct ends and scores, so that most are shared."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from hypothesis import strategies as st

from headgate.ranking.boxes.ends import NOTIONS, Probe, probe
from headgate.ranking.intervals.scored import Scored, rank
from headgate.ranking.model import Interval

if TYPE_CHECKING:
    from collections.abc import Sequence

WHOLE = [float(n) for n in range(9)]
SHORT = [*WHOLE, -0.0, 2.5, float(np.nextafter(np.float32(3), np.float32(4))), -math.inf, math.inf]
"""Ends that fit into 4 bytes."""
LONG = [*SHORT, 0.1, 1 / 3, float(np.nextafter(3.0, 4.0)), float(np.nextafter(3.0, 2.0)), -1e300, 1e300]
"""Ends of which some do not."""
VALUES = [*LONG, 0.5, -1.0, 99.0, 3.0 + 2.0**-30, 3.0 - 2.0**-30, 1e39, -1e39, 5e-324]
"""What events have: ends, their neighbours in 4 and in 8 bytes, what lies between and far out."""

Row = tuple[float, float, float]


def table(rows: Sequence[Row]) -> Scored:
    """Rank rows of low, high, score."""
    columns = np.array(rows, np.float64).reshape(len(rows), 3)
    scored = rank(columns[:, 0], columns[:, 1], columns[:, 2])
    scored.check()
    return scored


@st.composite
def tables(draw: st.DrawFn, size: int = 14) -> Scored:
    """Draw intervals: points, unbounded and empty ones among them."""
    ends = st.sampled_from(draw(st.sampled_from([WHOLE, SHORT, LONG])))
    pair = (
        st.tuples(ends, ends).map(sorted) | st.tuples(ends, ends).map(list) | ends.map(lambda end: [end, end])
    )
    scores = st.sampled_from([0.0, 1.0, 1.0, -2.5])
    rows = draw(st.lists(st.tuples(pair, scores), max_size=size))
    return table([(low, high, score) for (low, high), score in rows])


points = st.sampled_from(VALUES).map(probe)


@st.composite
def spans(draw: st.DrawFn) -> Probe:
    """Draw a question about an event that is an interval, open or closed, by either notion."""
    values = st.sampled_from(VALUES)
    low, high = sorted((draw(values), draw(values)))
    if low == high and math.isinf(low):
        low, high = -math.inf, math.inf
    return probe(
        Interval(low, high, draw(st.booleans()), draw(st.booleans())), draw(st.sampled_from(NOTIONS))
    )


questions = points | spans() | st.just(probe(None))


def many(size: int, seed: int) -> Scored:
    """Draw more intervals than fit into one node: short and long ones, that share ends and scores."""
    rng = np.random.default_rng(seed)
    low = rng.integers(0, 4 * size, size) / 8.0
    length = (
        np.where(rng.random(size) < 0.8, rng.integers(0, 40, size), rng.integers(0, 4 * size, size)) / 8.0
    )
    scores = np.round(-length) if seed % 2 else rng.integers(0, 9, size).astype(np.float64)
    return rank(low, low + length, scores)


def ask(asked: Sequence[Probe]) -> tuple[np.ndarray[tuple[int], np.dtype[np.float64]], ...]:
    """Turn questions into columns."""
    both = np.array(asked, np.float64).reshape(len(asked), 2)
    return both[:, 0].copy(), both[:, 1].copy()
