"""Hot loops over tiers and blocks: the best k boxes, by score or by the weights of what holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.core.heaps import put, sort_best, worse
from headgate.core.jit import bare, bare_inner
from headgate.ranking.boxes.dense_build import BLOCK, NO_ROW, Dense
from headgate.ranking.boxes.sketch import Page, Sketch, may_hold, may_reach, note_question

if TYPE_CHECKING:
    from headgate.core.arrays import Bytes, Floats, Floats64, Ints, Ints32
    from headgate.ranking.answers import Answers


SUM, MAX = range(2)
_LENGTH = np.uint64(BLOCK)
_SAFE, _TINY = 1 + 1e-9, 1e-300
"""What rounding may take from a bound that is not added up as values are, of large values and tiny ones."""


class RelaxedBuffers(NamedTuple):
    """Room for one question at a time: bounds of a tier's blocks, values of a block's rows."""

    bound: Floats64
    value: Floats64
    page: Page


class Valuation(NamedTuple):
    """How values are made: factors by dimension, and SUM or MAX.

    falling    the dimensions, the highest factor first
    plain      whether all factors are 1
    sketched   whether the sketch speaks for them
    slack      by what a sum may fall short of one of the same terms in another order, as a factor
    """

    factors: Floats64
    falling: Ints
    how: int
    plain: bool
    sketched: bool
    slack: float


class Ways(NamedTuple):
    """Orders of dimensions in which values are added up, where that is not the order of the dimensions.

    of       by row: which; 0 is the order of the dimensions. Empty if all rows are added up in that
    order    by way: its dimensions, behind them -1
    """

    of: Ints32
    order: Ints32


@bare_inner
def tier_bound(dense: Dense, tier: int, asked: Valuation) -> float:
    """Bound the value of any row of a tier: at best its weights are where the factors are highest."""
    left = dense.bound[tier]
    if asked.plain:
        return float(left)
    total = 0.0
    for j in asked.falling:
        weight = min(np.float64(dense.heaviest[j, tier]), left)
        total += weight * asked.factors[j]
        left -= weight
    return float(total * _SAFE + _TINY)


@bare_inner
def relaxed_bounds(
    dense: Dense, first: int, end: int, x: Floats, y: Floats, asked: Valuation, bound: Floats64
) -> None:
    """Bound the value of any row in each of some blocks: the best weights of the dimensions that may hold."""
    factors, how = asked.factors, asked.how
    base, count = np.uint64(first), np.uint64(end - first)
    for b in range(count):
        bound[b] = 0.0
    for j in range(len(x)):
        if factors[j] == 0.0:
            continue
        xj, yj, factor = x[j], y[j], factors[j]
        for b in range(count):
            holds = (dense.least[j, base + b] <= xj) & (dense.greatest[j, base + b] >= yj)
            worth = np.float64(dense.best[j, base + b]) * factor if holds else 0.0
            bound[b] = bound[b] + worth if how == SUM else max(bound[b], worth)


@bare_inner
def relaxed_values(
    dense: Dense, block: int, x: Floats, y: Floats, asked: Valuation, value: Floats64
) -> float:
    """Value the rows of a block; returns the highest."""
    factors, how = asked.factors, asked.how
    base = np.uint64(block * BLOCK)
    for i in range(_LENGTH):
        value[i] = 0.0
    for j in range(len(x)):
        if factors[j] == 0.0:
            continue
        xj, yj, factor = x[j], y[j], factors[j]
        for i in range(_LENGTH):
            holds = (dense.low[j, base + i] <= xj) & (dense.high[j, base + i] >= yj)
            worth = np.float64(dense.weight[j, base + i]) * factor if holds else 0.0
            value[i] = value[i] + worth if how == SUM else max(value[i], worth)
    highest = 0.0
    for i in range(_LENGTH):
        highest = max(highest, value[i])
    return highest


@bare_inner
def any_dimension_holds(dense: Dense, row: int, x: Floats, y: Floats, factors: Floats64) -> bool:
    """Tell whether a row holds in any dimension that counts: its value may be 0 all the same."""
    for j in range(len(x)):
        if factors[j] > 0.0 and dense.low[j, row] <= x[j] and dense.high[j, row] >= y[j]:
            return True
    return False


@bare_inner
def value_in_order(dense: Dense, row: int, x: Floats, y: Floats, asked: Valuation, ways: Ways) -> float:
    """Add up the weights of what holds of a row in its own order."""
    way, value = ways.of[row], 0.0
    for n in range(ways.order.shape[1]):
        j = ways.order[way, n]
        if j < 0:
            break
        if asked.factors[j] > 0.0 and dense.low[j, row] <= x[j] and dense.high[j, row] >= y[j]:
            value += np.float64(dense.weight[j, row]) * asked.factors[j]
    return value


@bare
def relaxed_many(
    dense: Dense,
    sketch: Sketch,
    ways: Ways,
    removed: Bytes,
    xs: Floats,
    ys: Floats,
    asked: Valuation,
    scratch: RelaxedBuffers,
    answers: Answers,
) -> None:
    """Find the best rows for each of many questions, by the weights of what holds."""
    slack, room = asked.slack, answers.values.shape[1]
    for question in range(len(xs)):
        x, y, values, numbers = (
            xs[question],
            ys[question],
            answers.values[question],
            answers.numbers[question],
        )
        size = 0
        if asked.sketched:
            note_question(sketch, x, y, scratch.page)
        for tier in range(len(dense.bound)):
            if room == 0 or (size == room and tier_bound(dense, tier, asked) * slack < values[0]):
                break
            first, end = dense.start[tier], dense.start[tier + 1]
            relaxed_bounds(dense, first, end, x, y, asked, scratch.bound)
            for block in range(first, end):
                if size == room:
                    bound = scratch.bound[block - first] * slack
                    if worse(bound, dense.first[block], values[0], numbers[0]):
                        continue
                    if asked.sketched and not may_reach(
                        sketch, block, asked.factors, values[0], scratch.page
                    ):
                        continue
                highest = relaxed_values(dense, block, x, y, asked, scratch.value)
                if size == room and highest * slack < values[0]:
                    continue
                for i in range(BLOCK):
                    value = scratch.value[i]
                    if size == room and value * slack < values[0]:
                        continue
                    row = block * BLOCK + i
                    number = dense.number[row]
                    if number == NO_ROW or removed[number]:
                        continue
                    if len(ways.of) and ways.of[row]:
                        value = value_in_order(dense, row, x, y, asked, ways)
                    if value > 0.0 or any_dimension_holds(dense, row, x, y, asked.factors):
                        size = put(values, numbers, size, value, number)
        sort_best(values, numbers, size)
        answers.counts[question] = size


@bare_inner
def block_holds(dense: Dense, block: int, x: Floats, y: Floats) -> bool:
    """Tell whether all dimensions of a block may hold."""
    j = 0
    while j < len(x) and dense.least[j, block] <= x[j] and dense.greatest[j, block] >= y[j]:
        j += 1
    return j == len(x)


@bare_inner
def row_holds(dense: Dense, row: int, x: Floats, y: Floats) -> bool:
    """Tell whether all dimensions of a row hold."""
    j = 0
    while j < len(x) and dense.low[j, row] <= x[j] and dense.high[j, row] >= y[j]:
        j += 1
    return j == len(x)


@bare
def exact_many(
    dense: Dense,
    sketch: Sketch,
    removed: Bytes,
    row_of: Ints,
    xs: Floats,
    ys: Floats,
    page: Page,
    answers: Answers,
) -> None:
    """Find for each of many questions the rows of which all dimensions hold, the smallest numbers first.

    Row n is marked as removed at row_of[n].
    """
    room = answers.values.shape[1]
    for question in range(len(xs)):
        x, y, values, numbers = (
            xs[question],
            ys[question],
            answers.values[question],
            answers.numbers[question],
        )
        size = 0
        note_question(sketch, x, y, page)
        for tier in range(len(dense.bound)):
            if size == room:
                # Whatever is in later tiers has a greater number.
                break
            for block in range(dense.start[tier], dense.start[tier + 1]):
                if not block_holds(dense, block, x, y) or (size == room and dense.first[block] > numbers[0]):
                    continue
                if not may_hold(sketch, block, page):
                    continue
                for i in range(BLOCK):
                    if page.units[i] == 0:
                        continue
                    row = block * BLOCK + i
                    number = dense.number[row]
                    if row_holds(dense, row, x, y) and number != NO_ROW and not removed[row_of[number]]:
                        size = put(values, numbers, size, 0.0, number)
        sort_best(values, numbers, size)
        answers.counts[question] = size
