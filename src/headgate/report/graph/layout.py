"""Where the boxes and links of a picture go: columns from left to right, links between them.

A link over more than one column gets a lane of its own in each column that it passes, so it never runs behind
a box. Lanes and boxes of a column are put in an order with few crossings, then moved towards what they are
linked with. Each end of a link has its own place at the side of its box. A link back to the left leaves its
box on the left; one within a column goes straight down or up to a neighbour, or around on the right.

Lengths are in points, x to the right and y down.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    Point = tuple[float, float]

_SWEEPS = 12
_BETWEEN_BOXES, _BESIDE_LANES = 16.0, 9.0
_LABEL_GAP = 5.0
_MOST_SPARE = 110.0
_LAST = 10**6


@dataclass(frozen=True)
class Box:
    """A box to be placed; `rank` orders boxes of a column before anything else does."""

    column: int
    width: float
    height: float
    rank: int = 0


@dataclass(frozen=True)
class Link:
    """A link to be routed; the width of its label, 0 for none; whether a sign stands in its middle."""

    source: int
    target: int
    width: float
    label: float = 0.0
    sign: bool = False


@dataclass(frozen=True)
class Route:
    """A link as cubic curves: the first point, then three for each curve. `label` is the label's centre."""

    points: tuple[Point, ...]
    label: Point


@dataclass(frozen=True)
class Layout:
    """Left, top, width and height of each box; routes; the left and right of columns; the whole size."""

    boxes: tuple[tuple[float, float, float, float], ...]
    routes: tuple[Route, ...]
    columns: tuple[tuple[float, float], ...]
    width: float
    height: float


@dataclass
class _Item:
    """A box, or the lane of a link in a column; `before` and `after` are items in the next columns."""

    column: int
    height: float
    rank: int
    box: int
    before: list[int]
    after: list[int]
    y: float = 0.0


def place(boxes: Sequence[Box], links: Sequence[Link], *, width: float, gap: float, pitch: float) -> Layout:
    """Place boxes and route links.

    `width` is what the picture has at least, `gap` the room between columns beside labels, `pitch` the room
    between ends of links at the side of a box.
    """
    if not boxes:
        return Layout((), (), (), width, 0.0)
    return _Placing(boxes, links, gap, pitch).run(width)


class _Placing:
    def __init__(self, boxes: Sequence[Box], links: Sequence[Link], gap: float, pitch: float) -> None:
        self.boxes, self.links, self.gap, self.pitch = boxes, links, gap, pitch
        self.items = [_Item(box.column, box.height, box.rank, i, [], []) for i, box in enumerate(boxes)]
        self.ranked = {box.column for box in boxes if box.rank}
        self.chains = [self._chain(link) for link in links]
        self.columns: list[list[int]] = [[] for _ in range(max(box.column for box in boxes) + 1)]
        for number, item in enumerate(self.items):
            self.columns[item.column].append(number)
        for column in self.columns:
            column.sort(key=lambda number: self.items[number].rank)

    def _chain(self, link: Link) -> list[int]:
        """List the items of a link from left to right: a box, lanes, a box."""
        ends = sorted((link.source, link.target), key=lambda box: self.boxes[box].column)
        first, last = (self.boxes[end].column for end in ends)
        if first == last:
            return [link.source, link.target]
        chain = [ends[0]]
        for column in range(first + 1, last):
            rank = _LAST if column in self.ranked else 0
            self.items.append(_Item(column, link.width, rank, -1, [], []))
            chain.append(len(self.items) - 1)
        chain.append(ends[1])
        for left, right in pairwise(chain):
            self.items[left].after.append(right)
            self.items[right].before.append(left)
        return chain

    def run(self, width: float) -> Layout:
        """Order, move, and route."""
        self._order()
        ports = self._ports()
        for (box, _), ends in ports.items():
            self.items[box].height = max(self.items[box].height, self.pitch * len(ends) + 4)
        self._move()
        # The order of ends follows from where everything is now.
        ports = self._ports()
        xs, total = self._across(width)
        at: dict[tuple[int, int, bool], float] = {}
        for (box, right), ends in ports.items():
            item = self.items[box]
            step = item.height / len(ends)
            for place, (link, is_source) in enumerate(ends):
                at[link, is_source, right] = item.y - item.height / 2 + step * (place + 0.5)
        routes = tuple(self._route(number, xs, at) for number in range(len(self.links)))
        top = min(item.y - item.height / 2 for item in self.items)
        bottom = max(item.y + item.height / 2 for item in self.items)
        placed = tuple(
            (xs[item.column][0], item.y - item.height / 2 - top, xs[item.column][1] - xs[item.column][0],
             item.height)
            for item in self.items[: len(self.boxes)]
        )  # fmt: skip
        moved = tuple(
            Route(tuple((x, y - top) for x, y in route.points), (route.label[0], route.label[1] - top))
            for route in routes
        )
        return Layout(placed, moved, tuple(xs), total, bottom - top)

    def _order(self) -> None:
        """Sort each column by where its neighbours are, forth and back, and keep the best order."""
        best, fewest = [list(column) for column in self.columns], self._crossings()
        for sweep in range(_SWEEPS):
            forth = sweep % 2 == 0
            numbers = range(len(self.columns)) if forth else reversed(range(len(self.columns)))
            for number in numbers:
                where = self._places()
                keys = {}
                for item in self.columns[number]:
                    near = self.items[item].before if forth else self.items[item].after
                    middle = sum(where[each] for each in near) / len(near) if near else where[item]
                    keys[item] = (self.items[item].rank, middle, item)
                self.columns[number].sort(key=keys.__getitem__)
            crossings = self._crossings()
            if crossings < fewest:
                best, fewest = [list(column) for column in self.columns], crossings
        self.columns = best

    def _places(self) -> dict[int, float]:
        """Say where each item is in its column, from 0 to 1."""
        return {
            item: (place + 0.5) / len(column)
            for column in self.columns
            for place, item in enumerate(column)
        }  # fmt: skip

    def _crossings(self) -> int:
        where = self._places()
        count = 0
        for column in self.columns:
            lines = [(where[left], where[right]) for left in column for right in self.items[left].after]
            for i, (a, b) in enumerate(lines):
                count += sum((a - c) * (b - d) < 0 for c, d in lines[i + 1 :])
        return count

    def _move(self) -> None:
        """Move items towards their neighbours; their order and the room between them stay."""
        for column in self.columns:
            at = 0.0
            for before, item in zip([None, *column], column, strict=False):
                at += 0.0 if before is None else self._apart(before, item)
                self.items[item].y = at
            for item in column:
                self.items[item].y -= at / 2
        for sweep in range(_SWEEPS):
            for number in range(len(self.columns))[:: 1 if sweep % 2 == 0 else -1]:
                column, offsets, wanted = self.columns[number], [0.0], []
                for before, item in pairwise(column):
                    offsets.append(offsets[-1] + self._apart(before, item))
                for item, offset in zip(column, offsets, strict=True):
                    entry = self.items[item]
                    near = entry.before + entry.after
                    middle = sum(self.items[each].y for each in near) / len(near) if near else entry.y
                    wanted.append(middle - offset)
                # What is in order of rank is a way from one to the next, and stays together.
                tops = [sum(wanted) / len(wanted)] * len(wanted) if number in self.ranked else _rising(wanted)
                for item, offset, y in zip(column, offsets, tops, strict=True):
                    self.items[item].y = y + offset

    def _apart(self, upper: int, lower: int) -> float:
        a, b = self.items[upper], self.items[lower]
        room = _BETWEEN_BOXES if a.box >= 0 and b.box >= 0 else _BESIDE_LANES
        return (a.height + b.height) / 2 + room

    def _ports(self) -> dict[tuple[int, bool], list[tuple[int, bool]]]:
        """List the ends of links at the left and right of boxes, from the top: (link, is its source)."""
        ends_at: dict[tuple[int, bool], list[tuple[float, int, bool]]] = defaultdict(list)
        for number, (link, chain) in enumerate(zip(self.links, self.chains, strict=True)):
            first, last = chain[0], chain[-1]
            same = self.items[first].column == self.items[last].column
            if same and self._straight(link):
                continue
            ends_at[first, True].append((self.items[chain[1]].y, number, first == link.source))
            ends_at[last, same].append((self.items[chain[-2]].y, number, last == link.source))
        return {side: [(link, end) for _, link, end in sorted(ends)] for side, ends in ends_at.items()}

    def _straight(self, link: Link) -> bool:
        """Tell whether a link within a column joins neighbours, between which there is no room for more."""
        column = self.columns[self.items[link.source].column]
        bare = not link.label and not link.sign
        return bare and abs(column.index(link.source) - column.index(link.target)) == 1

    def _across(self, width: float) -> tuple[list[tuple[float, float]], float]:
        """Give columns their left and right, with room for labels between them."""
        gaps = [self.gap] * (len(self.columns) - 1) + [0.0]
        rightwards, leftwards = [0.0] * len(gaps), [0.0] * len(gaps)
        for link in self.links:
            a, b = self.boxes[link.source].column, self.boxes[link.target].column
            if a > b:
                leftwards[a - 1] = max(leftwards[a - 1], link.label)
            else:
                rightwards[a] = max(rightwards[a], link.label)
            if a == b == len(gaps) - 1 and not self._straight(link):
                gaps[-1] = self.gap
        gaps = [gap + one + two for gap, one, two in zip(gaps, rightwards, leftwards, strict=True)]
        widths = [max(self.boxes[i].width for i in column if i < len(self.boxes)) for column in self.columns]
        spare = max(0.0, width - sum(widths) - sum(gaps))
        between = min(_MOST_SPARE, spare / max(1, len(gaps) - 1))
        # What is not needed between columns is left at both sides.
        at, xs = (spare - between * (len(gaps) - 1)) / 2, []
        for wide, gap in zip(widths, gaps, strict=True):
            xs.append((at, at + wide))
            at += wide + gap + between
        return xs, max(width, xs[-1][1] + gaps[-1])

    def _route(
        self, number: int, xs: list[tuple[float, float]], at: dict[tuple[int, int, bool], float]
    ) -> Route:
        link, chain = self.links[number], self.chains[number]
        source, target = self.items[link.source], self.items[link.target]
        left, right = xs[source.column]
        if source.column == target.column:
            if self._straight(link):
                down = 1 if target.y > source.y else -1
                start = source.y + down * source.height / 2
                stop = target.y - down * target.height / 2
                # Two neighbours that lead to each other get a line each.
                x = (left + right) / 2 + down * 10
                middle = (start + stop) / 2
                return Route(((x, start), (x, middle), (x, middle), (x, stop)), (x, middle))
            start, stop = at[number, True, True], at[number, False, True]
            bulge = right + min(0.8 * self.gap, 12 + 0.12 * abs(stop - start)) + link.label
            label = (right + _LABEL_GAP + link.label / 2, start)
            return Route(((right, start), (bulge, start), (bulge, stop), (right, stop)), label)
        back = source.column > target.column
        knots = [(xs[self.items[chain[0]].column][1], at[number, not back, True])]
        for lane in chain[1:-1]:
            item = self.items[lane]
            knots += [(x, item.y) for x in xs[item.column]]
        knots.append((xs[self.items[chain[-1]].column][0], at[number, back, False]))
        points = _curves(knots[::-1] if back else knots)
        away = _LABEL_GAP + link.label / 2
        return Route(tuple(points), (points[0][0] + (-away if back else away), points[0][1]))


def _curves(knots: list[Point]) -> list[Point]:
    """Join points by curves that are level where they meet."""
    points = [knots[0]]
    for (x0, y0), (x1, y1) in pairwise(knots):
        middle = (x0 + x1) / 2
        points += [(middle, y0), (middle, y1), (x1, y1)]
    return points


def _rising(values: list[float]) -> list[float]:
    """Find the rising numbers that are nearest to some numbers, in squares.

    >>> _rising([1.0, 5.0, 3.0, 7.0])
    [1.0, 4.0, 4.0, 7.0]
    """
    runs: list[tuple[float, int]] = []
    for value in values:
        total, count = value, 1
        while runs and runs[-1][0] / runs[-1][1] > total / count:
            before, size = runs.pop()
            total, count = total + before, count + size
        runs.append((total, count))
    return [total / count for total, count in runs for _ in range(count)]
