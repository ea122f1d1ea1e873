"""Heaps in arrays, for hot loops.

keys     whole numbers, the least on top
pairs    values and numbers: the lowest value on top, of equal ones the largest number
items    numbers that know their place, so that one may move up or down while it is in a heap
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headgate.core.jit import bare_inner

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Keys = NDArray[np.integer[Any]]
    Key = int | np.integer[Any]
    Values = NDArray[np.float64]
    Items = NDArray[np.int32]


# Keys


@bare_inner
def push(keys: Keys, size: int, key: Key) -> int:
    """Put a key into a heap of so many; returns how many there are then."""
    at = size
    while at > 0:
        above = (at - 1) >> 1
        if keys[above] <= key:
            break
        keys[at] = keys[above]
        at = above
    keys[at] = key
    return size + 1


@bare_inner
def replace(keys: Keys, size: int, key: Key) -> None:
    """Put a key in the place of the least."""
    at = 0
    while True:
        below = 2 * at + 1
        if below >= size:
            break
        if below + 1 < size and keys[below + 1] < keys[below]:
            below += 1
        if keys[below] >= key:
            break
        keys[at] = keys[below]
        at = below
    keys[at] = key


@bare_inner
def pop(keys: Keys, size: int) -> int:
    """Take the least key out; returns how many are left."""
    size -= 1
    if size > 0:
        replace(keys, size, keys[size])
    return size


# Pairs


@bare_inner
def worse(value: float, number: Key, other_value: float, other_number: Key) -> bool:
    """Tell whether the first pair has a lower value than the other, or the same and a larger number."""
    return bool(value < other_value or (value == other_value and number > other_number))


@bare_inner
def rise(values: Values, numbers: Keys, at: int, value: float, number: Key) -> None:
    """Put a pair into a heap at a place, or further up."""
    while at > 0:
        parent = (at - 1) >> 1
        if not worse(value, number, values[parent], numbers[parent]):
            break
        values[at], numbers[at] = values[parent], numbers[parent]
        at = parent
    values[at], numbers[at] = value, number


@bare_inner
def sink(values: Values, numbers: Keys, size: int, value: float, number: Key) -> None:
    """Put a pair in the place of the one on top."""
    at = 0
    while True:
        below = 2 * at + 1
        if below >= size:
            break
        if below + 1 < size and worse(values[below + 1], numbers[below + 1], values[below], numbers[below]):
            below += 1
        if not worse(values[below], numbers[below], value, number):
            break
        values[at], numbers[at] = values[below], numbers[below]
        at = below
    values[at], numbers[at] = value, number


@bare_inner
def put(values: Values, numbers: Keys, size: int, value: float, number: Key) -> int:
    """Put a pair into a heap of so many if it is among the best there is room for; returns how many then.

    The best have the highest values, of equal ones the smallest numbers: the worst of them is on top.
    """
    if size == len(values):
        if worse(values[0], numbers[0], value, number):
            sink(values, numbers, size, value, number)
        return size
    rise(values, numbers, size, value, number)
    return size + 1


@bare_inner
def sort_best(values: Values, numbers: Keys, size: int) -> None:
    """Put what is in a heap in order, the best first."""
    for last in range(size - 1, 0, -1):
        value, number = values[last], numbers[last]
        values[last], numbers[last] = values[0], numbers[0]
        sink(values, numbers, last, value, number)


# Items, by two keys and then by number; `where[item]` is its place, which whoever takes one out sets to -1


@bare_inner
def before(first: Values, second: Values, a: int, b: int) -> bool:
    """Tell whether a comes before b: by two keys, then by number."""
    if first[a] != first[b]:
        return bool(first[a] < first[b])
    if second[a] != second[b]:
        return bool(second[a] < second[b])
    return a < b


@bare_inner
def rise_item(heap: Items, where: Items, first: Values, second: Values, at: int, item: int) -> None:
    """Put an item into a heap at a place, or further up."""
    while at > 0:
        above = (at - 1) >> 1
        other = heap[above]
        if not before(first, second, item, other):
            break
        heap[at] = other
        where[other] = at
        at = above
    heap[at] = item
    where[item] = at


@bare_inner
def sink_item(
    heap: Items, where: Items, first: Values, second: Values, size: int, at: int, item: int
) -> None:
    """Put an item into a heap at a place, or further down."""
    while True:
        below = 2 * at + 1
        if below >= size:
            break
        if below + 1 < size and before(first, second, heap[below + 1], heap[below]):
            below += 1
        other = heap[below]
        if not before(first, second, other, item):
            break
        heap[at] = other
        where[other] = at
        at = below
    heap[at] = item
    where[item] = at
