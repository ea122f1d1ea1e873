"""Sets of points on a line, as sorted disjoint half-open intervals.

Intervals end at *cuts*, places between two points, so that one algebra serves numbers and texts:

    number(5)        the cut before the whole number 5; [number(5), number(8)) holds 5, 6 and 7
    before("news")   the cut just before the text 'news'
    after("news")    the cut just after it, before 'news0'
"""

from __future__ import annotations

from typing import TypeAlias

Cut: TypeAlias = tuple[int, str, int]
Interval: TypeAlias = tuple[Cut, Cut]
Intervals: TypeAlias = tuple[Interval, ...]


def number(value: int) -> Cut:
    """Cut before a whole number."""
    return (value, "", 0)


def before(text: str) -> Cut:
    """Cut before a text."""
    return (0, text, 0)


def after(text: str) -> Cut:
    """Cut after a text."""
    return (0, text, 1)


NUMBERS: Interval = (number(-(2**63)), number(2**63))
TEXTS: Interval = (before(""), (1, "", 0))


def union(left: Intervals, right: Intervals) -> Intervals:
    """Join two sets.

    >>> union(((number(1), number(3)),), ((number(3), number(5)),)) == ((number(1), number(5)),)
    True
    """
    merged: list[Interval] = []
    for low, high in sorted((*left, *right)):
        if merged and low <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], high))
        elif low < high:
            merged.append((low, high))
    return tuple(merged)


def complement(within: Interval, inner: Intervals) -> Intervals:
    """Take a set away from an interval that holds it.

    >>> complement((number(0), number(9)), ((number(0), number(5)),)) == ((number(5), number(9)),)
    True
    """
    low, high = within
    gaps: list[Interval] = []
    for start, stop in inner:
        if low < start:
            gaps.append((low, start))
        low = stop
    if low < high:
        gaps.append((low, high))
    return tuple(gaps)


def intersection(left: Intervals, right: Intervals) -> Intervals:
    """Keep what both sets hold.

    >>> intersection(((number(1), number(5)),), ((number(3), number(9)),)) == ((number(3), number(5)),)
    True
    """
    shared: list[Interval] = []
    i = j = 0
    while i < len(left) and j < len(right):
        low = max(left[i][0], right[j][0])
        high = min(left[i][1], right[j][1])
        if low < high:
            shared.append((low, high))
        if left[i][1] < right[j][1]:
            i += 1
        else:
            j += 1
    return tuple(shared)
