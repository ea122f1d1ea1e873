"""The best of many questions: heaps with the worst on top while they are looked for, sorted at the end.

What is worth more is better; of equal ones the smaller number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headgate.core.jit import bare_inner

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Values = NDArray[np.float64]
    Numbers = NDArray[np.integer[Any]]


class Answers(NamedTuple):
    """The best of question i: rows numbers[i, :counts[i]] and what they are worth, the best first."""

    numbers: NDArray[np.int32]
    values: Values
    counts: NDArray[np.int64]


def no_answers(questions: int, width: int) -> Answers:
    """Make room for so many answers to each question."""
    return Answers(
        np.zeros((questions, width), np.int32), np.zeros((questions, width)), np.zeros(questions, np.int64)
    )


@bare_inner
def worse(value: float, number: int, other_value: float, other_number: int) -> bool:
    """Tell whether the first comes after the other."""
    return bool(value < other_value or (value == other_value and number > other_number))


@bare_inner
def sink(values: Values, numbers: Numbers, size: int, value: float, number: int) -> None:
    """Put a row in the place of the worst of a heap of so many."""
    at = 0
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and worse(values[child + 1], numbers[child + 1], values[child], numbers[child]):
            child += 1
        if not worse(values[child], numbers[child], value, number):
            break
        values[at], numbers[at] = values[child], numbers[child]
        at = child
    values[at], numbers[at] = value, number


@bare_inner
def put(values: Values, numbers: Numbers, size: int, value: float, number: int) -> int:
    """Put a row into a heap of so many if it is among the best there is room for; returns how many then."""
    if size == len(values):
        if worse(values[0], numbers[0], value, number):
            sink(values, numbers, size, value, number)
        return size
    at = size
    while at > 0:
        above = (at - 1) >> 1
        if not worse(value, number, values[above], numbers[above]):
            break
        values[at], numbers[at] = values[above], numbers[above]
        at = above
    values[at], numbers[at] = value, number
    return size + 1


@bare_inner
def sort_best(values: Values, numbers: Numbers, size: int) -> None:
    """Put what is in a heap in order, the best first."""
    for last in range(size - 1, 0, -1):
        value, number = values[last], numbers[last]
        values[last], numbers[last] = values[0], numbers[0]
        sink(values, numbers, last, value, number)
