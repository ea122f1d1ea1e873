"""The integer program as flat arrays, and its relaxation, in which columns may be taken in parts.

The paper has a variable for each edge. The edges into a rewriting are all chosen or none (equation 3), so
they are the rewriting's own variable: what is left is one choice for each view, and what choices use.

    minimise    sum of costs[c] x[c]
    such that   the columns of each view sum to 1                         (equation 2)
                sum of amounts of row r times x[c] <= bounds[r]           (equation 4)

    columns of view v     offsets[v] : offsets[v + 1]          the rewritings in order, the source last
    uses of column c      use_offsets[c] : use_offsets[c + 1]  rows with amounts, each row once

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
from headgate.errors import PlanError
from headgate.plan.model import SOURCE, Rewritings, Sizes
from headgate.plan.program import highs

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.core.arrays import Floats64, Ints, Ints32
    from headgate.plan.model import Capacities, Costs
    from headgate.plan.program.highs import Watch


FAN_OUT, BANDWIDTH, CPU = 0, 1, 2
RESOURCES = ("fan-out", "bandwidth", "CPU")
"""What rows are about, by `Program.resources`."""

TOLERANCE = 1e-9
"""Loads are sums of floats: by this part of a capacity (and of 1) they may be above it."""


class Program(NamedTuple):
    """Choices with their costs, and what they use of capacities; see the module. The source is site -1."""

    offsets: Ints
    choices: Ints
    costs: Floats64
    use_offsets: Ints
    use_rows: Ints32
    use_amounts: Floats64
    bounds: Floats64
    resources: NDArray[np.int8]
    sites: Ints32


class _Amounts(NamedTuple):
    """The part of Costs that counts against capacities."""

    sent: Floats64
    sending: Floats64
    joining: Floats64
    source_sent: Floats64
    source_sending: Floats64
    source_joining: Floats64


def sizes(program: Program) -> Sizes:
    """Count what a program is made of."""
    return Sizes(len(program.offsets) - 1, len(program.choices), len(program.bounds), len(program.use_rows))


def ceilings(bounds: Floats64) -> Floats64:
    """Return up to where a load keeps within each bound."""
    return bounds + TOLERANCE * np.maximum(1.0, np.abs(bounds))


def build(
    rewritings: Rewritings, costs: Costs, capacities: Capacities, values: Floats64, source_values: Floats64
) -> Program:
    """Write the program of a graph; rewritings cost `values`, and what the source feeds `source_values`."""
    _check(rewritings, costs, capacities, values, source_values)
    views = len(rewritings.offsets) - 1
    rows, bounds, resources, sites = _rows(capacities)
    counts = np.diff(rewritings.offsets)
    offsets = np.concatenate(([0], np.cumsum(counts + 1))).astype(np.int64)
    choices = np.full(offsets[-1], SOURCE, np.int64)
    places = np.arange(len(values)) + np.repeat(np.arange(views), counts)
    choices[places] = np.arange(len(values))
    merged = np.empty(offsets[-1], np.float64)
    merged[places] = values
    merged[offsets[1:] - 1] = source_values
    use_offsets = np.zeros(offsets[-1] + 1, np.int64)
    # Three rows an input and one at the view's own site; three rows at the source and one at the own site.
    room = 3 * len(rewritings.inputs) + len(values) + 4 * views
    use_rows, use_amounts = np.empty(room, np.int32), np.empty(room, np.float64)
    used = _fill(
        Rewritings(
            np.ascontiguousarray(rewritings.offsets, np.int64),
            np.ascontiguousarray(rewritings.input_offsets, np.int64),
            np.ascontiguousarray(rewritings.inputs, np.int32),
        ),
        _Amounts(*(np.ascontiguousarray(getattr(costs, name), np.float64) for name in _Amounts._fields)),
        np.ascontiguousarray(capacities.sites, np.int32),
        rows,
        use_offsets,
        use_rows,
        use_amounts,
    )
    return Program(
        offsets,
        choices,
        merged,
        use_offsets,
        use_rows[:used].copy(),
        use_amounts[:used].copy(),
        bounds,
        resources,
        sites,
    )


def _rows(capacities: Capacities) -> tuple[Ints32, Floats64, NDArray[np.int8], Ints32]:
    """Number the finite capacities; first comes the row of (resource, site), or -1, with the source last."""
    table = np.array(
        [
            np.append(capacities.fan_out, capacities.source_fan_out),
            np.append(capacities.bandwidth, capacities.source_bandwidth),
            np.append(capacities.cpu, capacities.source_cpu),
        ],
        np.float64,
    )
    finite = np.isfinite(table)
    rows = np.full(table.shape, -1, np.int32)
    rows[finite] = np.arange(np.count_nonzero(finite))
    resources, sites = np.nonzero(finite)
    sites[sites == table.shape[1] - 1] = SOURCE
    return rows, table[finite], resources.astype(np.int8), sites.astype(np.int32)


def _check(
    rewritings: Rewritings, costs: Costs, capacities: Capacities, values: Floats64, source_values: Floats64
) -> None:
    """Refuse arrays that do not belong together, and numbers that no program can be made of."""
    views, count = len(rewritings.offsets) - 1, int(rewritings.offsets[-1])
    edges = len(rewritings.inputs)
    lengths = {
        "costs of rewritings": (len(values), count),
        "costs of the source": (len(source_values), views),
        "sent": (len(costs.sent), edges),
        "sending": (len(costs.sending), edges),
        "joining": (len(costs.joining), count),
        "source_sent": (len(costs.source_sent), views),
        "source_sending": (len(costs.source_sending), views),
        "source_joining": (len(costs.source_joining), views),
        "sites": (len(capacities.sites), views),
    }
    for name, (length, wanted) in lengths.items():
        if length != wanted:
            raise PlanError(f"{name}: {length} numbers for {wanted}: give one for each")
    if views and not (capacities.sites.min() >= 0 and capacities.sites.max() < len(capacities.fan_out)):
        raise PlanError(
            f"a view is at a site that has no capacities: sites are 0 to {len(capacities.fan_out) - 1}"
        )
    for name, numbers in (("costs of rewritings", values), ("costs of the source", source_values)):
        if not np.isfinite(numbers).all():
            raise PlanError(f"{name}: {int(np.argmin(np.isfinite(numbers)))} costs no finite number")
    for name in _Amounts._fields:
        numbers = getattr(costs, name)
        wrong = ~(np.isfinite(numbers) & (numbers >= 0))
        if wrong.any():
            raise PlanError(f"{name}: number {int(np.argmax(wrong))} is below 0 or not finite")
    for name in ("fan_out", "bandwidth", "cpu", "source_fan_out", "source_bandwidth", "source_cpu"):
        if not (np.asarray(getattr(capacities, name)) >= 0).all():
            raise PlanError(f"{name}: a capacity is below 0 or no number: infinity is no limit")


@kernel
def _add(use_rows: Ints32, use_amounts: Floats64, begin: int, end: int, row: int, amount: float) -> int:
    """Add an amount to a row of the column that is being written; return where its uses end."""
    if row < 0 or amount == 0.0:
        return end
    for use in range(begin, end):
        if use_rows[use] == row:
            use_amounts[use] += amount
            return end
    use_rows[end] = row
    use_amounts[end] = amount
    return end + 1


@kernel
def _fill(
    rewritings: Rewritings,
    costs: _Amounts,
    sites: Ints32,
    rows: Ints32,
    use_offsets: Ints,
    use_rows: Ints32,
    use_amounts: Floats64,
) -> int:
    """Write what each column uses; return how many uses there are."""
    source = rows.shape[1] - 1
    column = 0
    end = 0
    for view in range(len(rewritings.offsets) - 1):
        own = rows[CPU, sites[view]]
        for rewriting in range(rewritings.offsets[view], rewritings.offsets[view + 1]):
            begin = end
            for edge in range(rewritings.input_offsets[rewriting], rewritings.input_offsets[rewriting + 1]):
                site = sites[rewritings.inputs[edge]]
                if site == sites[view]:
                    continue
                end = _add(use_rows, use_amounts, begin, end, rows[FAN_OUT, site], 1.0)
                end = _add(use_rows, use_amounts, begin, end, rows[BANDWIDTH, site], costs.sent[edge])
                end = _add(use_rows, use_amounts, begin, end, rows[CPU, site], costs.sending[edge])
            end = _add(use_rows, use_amounts, begin, end, own, costs.joining[rewriting])
            column += 1
            use_offsets[column] = end
        begin = end
        end = _add(use_rows, use_amounts, begin, end, rows[FAN_OUT, source], 1.0)
        end = _add(use_rows, use_amounts, begin, end, rows[BANDWIDTH, source], costs.source_sent[view])
        end = _add(use_rows, use_amounts, begin, end, rows[CPU, source], costs.source_sending[view])
        end = _add(use_rows, use_amounts, begin, end, own, costs.source_joining[view])
        column += 1
        use_offsets[column] = end
    return end


class Relaxed(NamedTuple):
    """The relaxation's answer: parts of columns (None if it was stopped), prices of rows, and the bound."""

    status: str
    parts: Floats64 | None
    prices: Floats64
    bound: float
    pivots: int


class Scaling(NamedTuple):
    """How a program goes over to the solver: cost = offset + sum of `value / costs`; rows are multiplied."""

    costs: float
    rows: Floats64
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


def bound_of(program: Program, prices: Floats64) -> float:
    """Return what no plan is below, from prices of rows that are 0 or more."""
    reduced = reduced_costs(program, prices)
    if not len(reduced):
        return 0.0
    return float(np.minimum.reduceat(reduced, program.offsets[:-1]).sum() - prices @ program.bounds)


def reduced_costs(program: Program, prices: Floats64) -> Floats64:
    """Add to the cost of each column the prices of what it uses."""
    result = program.costs.copy()
    _add_prices(program, np.ascontiguousarray(prices, np.float64), result)
    return result


def cheapest_columns(offsets: Ints, costs: Floats64) -> Ints:
    """Return the first of the cheapest columns of each view; every view must have one."""
    result = np.empty(len(offsets) - 1, np.int64)
    _cheapest(offsets, costs, result)
    return result


@kernel
def _cheapest(offsets: Ints, costs: Floats64, result: Ints) -> None:
    for view in range(len(offsets) - 1):
        best = offsets[view]
        for column in range(offsets[view] + 1, offsets[view + 1]):
            if costs[column] < costs[best]:
                best = column
        result[view] = best


@kernel
def _add_prices(program: Program, prices: Floats64, result: Floats64) -> None:
    for column in range(len(program.choices)):
        for use in range(program.use_offsets[column], program.use_offsets[column + 1]):
            result[column] += prices[program.use_rows[use]] * program.use_amounts[use]
