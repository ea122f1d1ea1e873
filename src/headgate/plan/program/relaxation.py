"""The relaxation of a program: columns may be taken in parts. Its optimum is a bound for all plans.

Dual simplex starts from the cheapest column of each view, with all capacities slack: that is what would be
best without capacities, so no reduced cost is below 0, and only capacities that are broken remain to be
mended. Costs go over as differences to the cheapest of their view, scaled so that they are about 1.

The bound is computed again from the prices of the rows, because it must hold whatever the solver's tolerances
are, and wherever it was stopped:

    for any prices y >= 0:   sum over views of min (cost + y · uses)  -  y · bounds   <=   any plan's cost
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.core.jit import kernel
from headgate.plan.program import highs
from headgate.plan.program.columns import FAN_OUT, Program

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.plan.program.highs import Watch


class Relaxed(NamedTuple):
    """The relaxation's answer: parts of columns (None if it was stopped), prices of rows, and the bound."""

    status: str
    parts: NDArray[np.float64] | None
    prices: NDArray[np.float64]
    bound: float
    pivots: int


class Scaling(NamedTuple):
    """How a program goes over to the solver: cost = offset + sum of `value / costs`; rows are multiplied."""

    costs: float
    rows: NDArray[np.float64]
    offset: float


def relax(program: Program, watch: Watch) -> Relaxed:
    """Solve the relaxation."""
    matrix, scaling = matrix_of(program)
    cheapest = cheapest_columns(program.offsets, program.costs)
    views, rows = len(program.offsets) - 1, len(program.bounds)
    basic = np.zeros(len(program.choices), np.bool_)
    basic[cheapest] = True
    start = highs.Start(basic, np.arange(views + rows) >= views)
    outcome = highs.relax(matrix, start, watch, "relaxation")
    if outcome.status == highs.INFEASIBLE:
        return Relaxed(outcome.status, None, np.zeros(rows), np.inf, outcome.iterations)
    prices = np.zeros(rows)
    if len(outcome.duals):
        prices = np.maximum(0.0, -outcome.duals[views:]) * scaling.rows / scaling.costs
    bound = bound_of(program, prices)
    return Relaxed(outcome.status, outcome.values, prices, bound, outcome.iterations)


def matrix_of(program: Program, *, whole: bool = False) -> tuple[highs.Matrix, Scaling]:
    """Lay out a program for the solver: first a row for each view, then one for each capacity."""
    views, columns = len(program.offsets) - 1, len(program.choices)
    least = program.costs[cheapest_columns(program.offsets, program.costs)]
    above = program.costs - np.repeat(least, np.diff(program.offsets))
    typical = float(above.mean()) if columns else 0.0
    factor = 1.0 / typical if typical > 0 else 1.0
    rows = np.ones(len(program.bounds))
    if len(program.use_rows):
        np.maximum.at(rows, program.use_rows, 0.0)
        largest = np.zeros(len(rows))
        np.maximum.at(largest, program.use_rows, program.use_amounts)
        # Fan-outs are whole numbers: they stay what they are.
        scaled = (program.resources != FAN_OUT) & (largest > 0)
        rows[scaled] = 1.0 / largest[scaled]
    starts = program.use_offsets + np.arange(columns + 1)
    index = np.empty(starts[-1], np.int32)
    amounts = np.empty(starts[-1], np.float64)
    owner = np.ones(starts[-1], np.bool_)
    owner[
        np.arange(len(program.use_rows)) + np.repeat(np.arange(columns), np.diff(program.use_offsets)) + 1
    ] = False
    index[owner] = np.repeat(np.arange(views), np.diff(program.offsets))
    amounts[owner] = 1.0
    index[~owner] = program.use_rows + views
    amounts[~owner] = program.use_amounts * rows[program.use_rows]
    matrix = highs.Matrix(
        costs=above * factor,
        most=np.ones(columns),
        starts=starts.astype(np.int32),
        rows=index,
        amounts=amounts,
        lower=np.concatenate((np.ones(views), np.full(len(rows), -np.inf))),
        upper=np.concatenate((np.ones(views), program.bounds * rows)),
        whole=columns if whole else 0,
    )
    return matrix, Scaling(factor, rows, float(least.sum()))


def bound_of(program: Program, prices: NDArray[np.float64]) -> float:
    """Return what no plan is below, from prices of rows that are 0 or more."""
    reduced = reduced_costs(program, prices)
    if not len(reduced):
        return 0.0
    return float(np.minimum.reduceat(reduced, program.offsets[:-1]).sum() - prices @ program.bounds)


def reduced_costs(program: Program, prices: NDArray[np.float64]) -> NDArray[np.float64]:
    """Add to the cost of each column the prices of what it uses."""
    result = program.costs.copy()
    _add_prices(program, np.ascontiguousarray(prices, np.float64), result)
    return result


def cheapest_columns(offsets: NDArray[np.int64], costs: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the first of the cheapest columns of each view; every view must have one."""
    result = np.empty(len(offsets) - 1, np.int64)
    _cheapest(offsets, costs, result)
    return result


@kernel
def _cheapest(offsets: NDArray[np.int64], costs: NDArray[np.float64], result: NDArray[np.int64]) -> None:
    for view in range(len(offsets) - 1):
        best = offsets[view]
        for column in range(offsets[view] + 1, offsets[view + 1]):
            if costs[column] < costs[best]:
                best = column
        result[view] = best


@kernel
def _add_prices(program: Program, prices: NDArray[np.float64], result: NDArray[np.float64]) -> None:
    for column in range(len(program.choices)):
        for use in range(program.use_offsets[column], program.use_offsets[column + 1]):
            result[column] += prices[program.use_rows[use]] * program.use_amounts[use]
