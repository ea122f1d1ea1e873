"""Which column of a picture each node or group of a graph stands in."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from headgate.graph.summary import (
    ANYWHERE,
    BEFORE,
    BEHIND,
    INTERMEDIARY,
    ISOLATED,
    PUBLISHER,
    SUBSCRIBER,
)

if TYPE_CHECKING:
    from headgate.graph.summary import Group, Groups, Outline

_COLUMNS = 7
_KIND_COLUMNS = 3


def columns_of_points(outline: Outline) -> tuple[list[int], list[int]]:
    """Put points into columns by the longest way to them; where these are too many, several steps in one."""
    layer = outline.layer.tolist()
    depth = [1 if each == INTERMEDIARY else 0 for each in layer]
    edges = list(zip(outline.source.tolist(), outline.target.tolist(), strict=True))
    place = {point: number for number, point in enumerate(_few_back(len(layer), edges))}
    for source, target in sorted(edges, key=lambda edge: place[edge[0]]):
        if place[source] < place[target] and layer[target] == INTERMEDIARY:
            depth[target] = max(depth[target], depth[source] + 1)
    deepest = max(depth, default=0)
    others = len({*layer} & {PUBLISHER, ISOLATED}) > 0, SUBSCRIBER in layer
    block = -(-deepest // max(1, _COLUMNS - sum(others)))
    columns, ranks = [], []
    for each, deep in zip(layer, depth, strict=True):
        column, rank = 0, int(each == ISOLATED)
        if each == INTERMEDIARY:
            turn, step = divmod(deep - 1, block)
            # A long way goes down one column and up the next.
            column, rank = turn + 1, step if turn % 2 == 0 else block - 1 - step
        columns.append(deepest + 1 if each == SUBSCRIBER else column)
        ranks.append(rank)
    return _dense(columns), ranks


def _few_back(points: int, edges: list[tuple[int, int]]) -> list[int]:
    """Order points so that few edges lead back, after Eades, Lin and Smyth (1993).

    Take what nothing leads to, then what leads nowhere, to the end; in a cycle, what leads to more than leads
    to it.

    >>> _few_back(4, [(3, 0), (0, 1), (1, 2), (2, 0)])
    [3, 0, 1, 2]
    """
    left = {*range(points)}
    first: list[int] = []
    last: list[int] = []
    while left:
        inside = [(a, b) for a, b in edges if a in left and b in left and a != b]
        entered, leaves = Counter(b for _, b in inside), Counter(a for a, _ in inside)
        starts = [point for point in sorted(left) if not entered[point]]
        ends = [point for point in sorted(left) if not leaves[point] and entered[point]]
        if not starts and not ends:
            starts = [max(sorted(left), key=lambda point: leaves[point] - entered[point])]
        first += starts
        last = ends + last
        left -= {*starts, *ends}
    return first + last


def columns_of_groups(found: Groups) -> list[int]:
    """Put groups into columns; without a core, intermediaries go by where their kind is on the way."""
    columns = [_column(each) for each in found.groups]
    loose = [n for n, each in enumerate(found.groups) if (each.layer, each.side) == (INTERMEDIARY, ANYWHERE)]
    # Points are numbered along the way from publishers to subscribers.
    loose.sort(key=lambda number: float(np.flatnonzero(found.of == number).mean()))
    for place, number in enumerate(loose):
        columns[number] = 1 + place * min(_KIND_COLUMNS, len(loose)) // len(loose)
    return _dense(columns)


def _column(each: Group) -> int:
    if each.layer in {PUBLISHER, ISOLATED}:
        return 0
    return 9 if each.layer == SUBSCRIBER else {BEFORE: 1, BEHIND: 3}.get(each.side, 2)


def _dense(columns: list[int]) -> list[int]:
    """Leave no column empty."""
    used = sorted({*columns})
    return [used.index(column) for column in columns]
