"""Why a box has its rank for an event: what holds, what the k-th has, and what it lacks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from headgate.core.ranks import Best
from headgate.core.text.wording import Worded
from headgate.ranking.boxes.ends import MISSING, OVERLAP
from headgate.ranking.boxes.methods import AUTO, EXACTLY
from headgate.ranking.boxes.threshold import combined
from headgate.ranking.boxes.threshold_kernels import MAX
from headgate.ranking.model import Interval

if TYPE_CHECKING:
    from headgate.core.event import Id
    from headgate.ranking.boxes.boxes import Boxes, BoxQuery
    from headgate.ranking.boxes.live import BoxState
    from headgate.ranking.boxes.methods import Question


@dataclass(frozen=True)
class Side:
    """One interval of a box and the event: whether it holds, what it counts if it does, and why not.

    `counts` is its weight times the event's factor, 0 for a dimension that the event drops; exactly ranked
    nothing counts but the score. Open ends are shown as the closed ones next to them.
    """

    dimension: str
    low: float
    high: float
    holds: bool
    counts: float
    why: str


@dataclass(frozen=True)
class WhatIf:
    """What if some more intervals held: the value and the rank that the box would have."""

    dimensions: tuple[str, ...]
    value: float
    rank: int


@dataclass(frozen=True)
class BoxExplanation(Worded):
    """Why a box has its rank.

    value     what it is ranked by, None if it does not match
    rank      1 for the best, None if it does not match
    last      the k-th best; None if fewer than k match
    hopes     what it lacks: each interval alone that would change its value, then all together
    """

    subscription: Id
    mode: str
    k: int
    value: float | None
    rank: int | None
    last: Best | None
    sides: tuple[Side, ...]
    hopes: tuple[WhatIf, ...]

    @property
    def matches(self) -> bool:
        """Tell whether the box matches at all."""
        return self.rank is not None

    @property
    def entered(self) -> bool:
        """Tell whether it is among the best k."""
        return self.rank is not None and self.rank <= self.k

    @property
    def lacks(self) -> float | None:
        """Return by how much its value is below the k-th; None if it does not match, or is among the best."""
        if self.value is None or self.last is None or self.entered:
            return None
        return self.last.value - self.value

    def lines(self) -> list[str]:
        """Say why, line by line."""
        lines = [self._head()]
        width = max((len(side.dimension) for side in self.sides), default=0)
        for side in self.sides:
            counts = "" if self.mode == EXACTLY else f"   counts {_number(side.counts)}"
            lines.append(
                f"  {'holds' if side.holds else 'fails':7}{side.dimension:{width}}   {side.why}{counts}"
            )
        if self.k and self.last is None:
            lines.append(f"fewer than {self.k} match, so every match is among the best")
        elif self.last is not None:
            lines.append(f"number {self.k} is {self.last.subscription!r} with {_number(self.last.value)}")
        if not self.entered:
            lines.extend(self._lack())
        return lines

    def _head(self) -> str:
        what = "score" if self.mode == EXACTLY else "value"
        if self.rank is None or self.value is None:
            failed = sum(not side.holds for side in self.sides)
            count = (
                f"{failed} of {len(self.sides)} intervals fail" if self.mode == EXACTLY else "nothing holds"
            )
            return f"no match: {count}"
        among = "among" if self.entered else "not among"
        return f"rank {self.rank}, {among} the best {self.k}: {what} {_number(self.value)}"

    def _lack(self) -> list[str]:
        lines = []
        if self.lacks is not None and self.last is not None:
            equal = f"it has as much, and {self.last.subscription!r} goes before it by id"
            lines.append(f"it lacks {_number(self.lacks)}" if self.lacks > 0 else equal)
        for hope in self.hopes:
            enough = "enough" if hope.rank <= self.k else "not enough"
            what = " and ".join(hope.dimensions)
            lines.append(
                f"if {what} held, it would have {_number(hope.value)} and rank {hope.rank}: {enough}"
            )
        return lines


def explain(state: BoxState, question: Question, identity: Id, k: int) -> BoxExplanation:
    """Explain the rank of one box."""
    row = state.rows.get(identity)
    box, asked = state.box(row), question.ask(state.tail.dimensions)
    sides = _sides(state, question, box, asked)
    value = _value(state, question, box, sides, ())
    best = state.top(question, k, AUTO)
    last = (
        Best(state.rows.id(int(best.rows[-1])), float(best.values[-1])) if k and len(best.rows) == k else None
    )
    rank = None if value is None else _rank(state, question, row, value)
    hopes = _hopes(state, question, row, box, sides)
    return BoxExplanation(identity, question.mode, k, value, rank, last, sides, hopes)


def _sides(state: BoxState, question: Question, box: Boxes, asked: BoxQuery) -> tuple[Side, ...]:
    sides = []
    for entry, dim in enumerate(box.dim.tolist()):
        name = state.tail.dimensions[dim]
        low, high = float(box.low[entry]), float(box.high[entry])
        x, y = float(asked.x[dim]), float(asked.y[dim])
        holds = low <= x and high >= y
        counts = 0.0 if question.mode == EXACTLY else float(box.weight[entry]) * float(asked.factor[dim])
        why = _why(question, question.event.get(name), (low, high), (x, y))
        if question.mode != EXACTLY and not asked.factor[dim] > 0:
            holds, why = False, "the event drops it"
        sides.append(Side(name, low, high, holds, counts, why))
    return tuple(sides)


def _why(question: Question, value: object, ends: tuple[float, float], asked: tuple[float, float]) -> str:
    """Say how a value lies to an interval."""
    (low, high), (x, y) = ends, asked
    if low > high:
        return "the interval holds nothing"
    shown = f"[{_number(low)}, {_number(high)}]"
    if (x, y) == MISSING and not isinstance(value, Interval):
        return f"no value, and {shown} has no ends" if (low, high) == MISSING else f"no value for {shown}"
    if not isinstance(value, Interval):
        if low <= x and high >= y:
            return f"{_number(x)} is in {shown}"
        return f"{_number(x)} is {_number(low - x if x < low else y - high)} {_side(x < low)} {shown}"
    event = f"[{_number(value.low)}, {_number(value.high)}]"
    if low <= x and high >= y:
        return f"{event} {'overlaps' if question.notion == OVERLAP else 'is within'} {shown}"
    missed = [f"{_number(low - x)} below"] if x < low else []
    missed += [f"{_number(y - high)} above"] if y > high else []
    return f"{event} is {' and '.join(missed)} {shown}"


def _side(below: bool) -> str:
    return "below" if below else "above"


def _value(
    state: BoxState, question: Question, box: Boxes, sides: tuple[Side, ...], more: tuple[str, ...]
) -> float | None:
    """Return what the box is worth, if some more of its intervals held; None if it does not match."""
    held = [side for side in sides if side.holds or side.dimension in more]
    if question.mode == EXACTLY:
        return float(box.score[0]) if len(held) == len(sides) else None
    if not held:
        return None
    counts = {side.dimension: side.counts for side in held}
    values = [counts.get(name, 0.0) for name in state.tail.dimensions]
    combine = question.function(state.tail.dimensions, state.tail.dimensions)
    if combine is not None:
        return combined(combine, values)
    if question.how == MAX:
        return max(values)
    total = 0.0
    for one in values:
        total += one
    return total


def _hopes(
    state: BoxState, question: Question, row: int, box: Boxes, sides: tuple[Side, ...]
) -> tuple[WhatIf, ...]:
    """Try the intervals that fail: each alone, then all. Some hold nothing, or are dropped: they cannot."""
    failed = [side for side in sides if not side.holds]
    able = [side.dimension for side in failed if side.low <= side.high and not _dropped(question, side)]
    tries: list[tuple[str, ...]] = (
        [(name,) for name in able] if question.mode != EXACTLY or len(failed) == 1 else []
    )
    if len(able) > 1:
        tries.append(tuple(able))
    if question.mode == EXACTLY and len(able) < len(failed):
        tries = []
    hopes = []
    for more in tries:
        value = _value(state, question, box, sides, more)
        if value is not None:
            hopes.append(WhatIf(more, value, _rank(state, question, row, value)))
    return tuple(hopes)


def _dropped(question: Question, side: Side) -> bool:
    return (question.factors or {}).get(side.dimension, 1.0) == 0


def _rank(state: BoxState, question: Question, row: int, value: float) -> int:
    """Count the boxes that go before a row with this value, and it."""
    ranked, order = state.at_least(question, value), state.rows.order()
    before = (ranked.values > value) | (order[ranked.rows] < order[row])
    return 1 + int(before.sum())


def _number(value: float) -> str:
    return f"{value:.12g}"
