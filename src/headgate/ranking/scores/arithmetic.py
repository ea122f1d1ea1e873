"""The arithmetic of forms: scores of many rows at once, and bounds for blocks of rows.

A bound is had by the same steps over ranges of numbers instead of numbers. Rounding keeps the order of
doubles, so that it is right to the last bit. NaN stands for NULL and for what is no number; `least` and
`greatest` pass it over. A score that is no finite number in the end counts as 0, as that of a subscription
without a score.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headgate.contents.scores import NEGATE, NUMBER, TERM

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from headgate.contents.scores import Form

    Doubles = NDArray[np.float64]


def _divide(left: Any, right: Any) -> Any:
    """Divide as Spark does: by 0 it is NULL."""
    return np.where(right == 0, np.nan, np.divide(left, right))


_OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": _divide,
    "least": np.fmin,
    "greatest": np.fmax,
}


class Range(NamedTuple):
    """From low to high, both included; NaN at both ends for what is certainly NaN."""

    low: Doubles
    high: Doubles


def scores(form: Form, numbers: Doubles, terms: Doubles) -> Doubles:
    """Compute the scores of some rows: one line of `numbers` for each number of the form, and so for terms.

    >>> from headgate.contents.scores import Form, Step
    >>> double = Form((Step(NUMBER), Step(TERM), Step("*")), ("price",), 1)
    >>> scores(double, np.array([[0.5, 2.0]]), np.array([[3.0]])).tolist()
    [1.5, 6.0]
    >>> scores(double, np.array([[0.5, 2.0]]), np.array([[np.nan]])).tolist()
    [0.0, 0.0]
    """
    stack: list[Any] = []
    with np.errstate(all="ignore"):
        for what, operand in form.steps:
            if what == NUMBER:
                stack.append(numbers[operand])
            elif what == TERM:
                stack.append(terms[operand])
            elif what == NEGATE:
                stack.append(-stack.pop())
            else:
                right, left = stack.pop(), stack.pop()
                stack.append(_OPERATIONS[what](left, right))
    values = np.broadcast_to(stack.pop(), numbers.shape[1:])
    return np.where(np.isfinite(values), values, 0.0)


def most(form: Form, numbers: Range, terms: Doubles) -> Doubles:
    """Bound the scores of blocks of rows, whose numbers are within ranges, from above.

    >>> from headgate.contents.scores import Form, Step
    >>> double = Form((Step(NUMBER), Step(TERM), Step("*")), ("price",), 1)
    >>> most(double, Range(np.array([[0.5, -2.0]]), np.array([[2.0, -1.0]])), np.array([3.0])).tolist()
    [6.0, -3.0]
    """
    stack: list[Range] = []
    with np.errstate(all="ignore"):
        for what, operand in form.steps:
            if what == NUMBER:
                stack.append(Range(numbers.low[operand], numbers.high[operand]))
            elif what == TERM:
                term = np.full(numbers.low.shape[1:], terms[operand])
                stack.append(Range(term, term))
            elif what == NEGATE:
                given = stack.pop()
                stack.append(Range(-given.high, -given.low))
            else:
                right, left = stack.pop(), stack.pop()
                stack.append(_RANGES[what](left, right))
    low, high = (np.broadcast_to(end, numbers.low.shape[1:]) for end in stack.pop())
    certain = np.isfinite(low) & np.isfinite(high)
    # fmax: what is certainly NaN is 0.
    return np.where(certain, high, np.fmax(high, 0.0))


def _corners(left: Range, right: Range, operation: Callable[[Any, Any], Any]) -> Range:
    corners = np.stack([operation(one, other) for one in left for other in right])
    low, high = corners.min(axis=0), corners.max(axis=0)
    nothing = np.isnan(corners).all(axis=0) & (np.isnan(left.low) | np.isnan(right.low))
    # What is no number at a corner may be anything, unless it is no number anywhere.
    anything = np.isnan(low) & ~nothing
    return Range(np.where(anything, -np.inf, low), np.where(anything, np.inf, high))


def _quotient(left: Range, right: Range) -> Range:
    low, high = _corners(left, right, np.divide)
    # By 0 it is NULL, and near it anything.
    around = (right.low <= 0) & (right.high >= 0) & ~np.isnan(left.low)
    return Range(np.where(around, -np.inf, low), np.where(around, np.inf, high))


_RANGES: dict[str, Callable[[Range, Range], Range]] = {
    "+": lambda left, right: _corners(left, right, np.add),
    "-": lambda left, right: _corners(left, right, np.subtract),
    "*": lambda left, right: _corners(left, right, np.multiply),
    "/": _quotient,
    "least": lambda left, right: Range(np.fmin(left.low, right.low), np.fmin(left.high, right.high)),
    "greatest": lambda left, right: Range(np.fmax(left.low, right.low), np.fmax(left.high, right.high)),
}
