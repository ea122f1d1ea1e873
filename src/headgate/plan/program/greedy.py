"""A plan that keeps all bounds, by bargaining; good enough to begin with, and when time runs out.

As routers of circuits do it: every view takes its best column at present prices; a row that is asked for more
than it bears becomes dearer, and the views that use it choose again. Prices never fall, so views with
good alternatives leave crowded rows first. At the end, views return to cheaper columns where there is room.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from headgate.core.jit import kernel
from headgate.plan.program.columns import Program, ceilings, cheapest_columns, reduced_costs
from headgate.plan.program.presolving import loads

if TYPE_CHECKING:
    from headgate.core.arrays import Floats64, Ints
    from headgate.plan.program.highs import Watch

GRACE = 5.0
"""Seconds that are spent on a first plan even if there is no time: without any plan all was for nothing."""

ROUNDS = 400
"""How often crowded views choose again before bargaining is given up."""


def bargain(program: Program, prices: Floats64, watch: Watch, rounds: int = ROUNDS) -> Ints | None:
    """Look for a plan that keeps the bounds, beginning from prices; return its columns, or None."""
    if not len(program.choices):
        return np.zeros(0, np.int64)
    dear = np.ascontiguousarray(prices, np.float64).copy()
    chosen = cheapest_columns(program.offsets, reduced_costs(program, dear))
    limits = _inner(program)
    spread = program.costs - np.repeat(
        np.minimum.reduceat(program.costs, program.offsets[:-1]), np.diff(program.offsets)
    )
    # A price of one typical difference moves a typical view; a tenth of it a round separates them.
    step = max(float(spread.mean()), 1e-12) * 0.1
    units = _units(program)
    load = loads(program, chosen)
    begun = time.monotonic()
    for turn in range(rounds):
        broken = _turn(program, limits, units, dear, step, chosen, load)
        if broken == 0:
            _return(program, limits, chosen, load)
            return chosen
        watch.tick(partial("first plan: turn {}, {:,} capacities are broken".format, turn, broken))
        if turn == 0:
            begun = time.monotonic()  # behind the compiling of the loops
        elif not watch.left() and time.monotonic() - begun > GRACE:
            return None
        step *= 1.02
    return None


def settle(program: Program, chosen: Ints) -> Ints:
    """Move views of a plan that keeps the bounds to cheaper columns, where there is room."""
    chosen = np.ascontiguousarray(chosen, np.int64).copy()
    _return(program, _inner(program), chosen, loads(program, chosen))
    return chosen


def _inner(program: Program) -> Floats64:
    """Return the limits that are kept here: half the tolerance is left for the drift of running sums."""
    return (program.bounds + ceilings(program.bounds)) / 2


def _units(program: Program) -> Floats64:
    """Return what a use of each row is typically: bytes are many, fan-outs are ones."""
    count = len(program.bounds)
    total = np.bincount(program.use_rows, program.use_amounts, minlength=count)
    times = np.bincount(program.use_rows, minlength=count)
    return np.where(times > 0, total / np.maximum(times, 1), 1.0)


@kernel
def _turn(
    program: Program,
    limits: Floats64,
    units: Floats64,
    prices: Floats64,
    step: float,
    chosen: Ints,
    load: Floats64,
) -> int:
    """Let the views that use a broken row choose again, one after another; make broken rows dearer.

    Returns how many rows are broken afterwards.
    """
    sums = np.zeros(len(limits))
    for view in range(len(chosen)):
        old = chosen[view]
        crowded = False
        for use in range(program.use_offsets[old], program.use_offsets[old + 1]):
            if load[program.use_rows[use]] > limits[program.use_rows[use]]:
                crowded = True
        if not crowded:
            continue
        for use in range(program.use_offsets[old], program.use_offsets[old + 1]):
            load[program.use_rows[use]] -= program.use_amounts[use]
        best = old
        least = np.inf
        for column in range(program.offsets[view], program.offsets[view + 1]):
            cost = program.costs[column]
            for use in range(program.use_offsets[column], program.use_offsets[column + 1]):
                row = program.use_rows[use]
                amount = program.use_amounts[use]
                cost += prices[row] * amount
                # What it would break now costs once more, beside what the row's history made of its price.
                if load[row] + amount > limits[row]:
                    cost += 10.0 * step + prices[row] * amount
            if cost < least:
                least = cost
                best = column
        chosen[view] = best
        for use in range(program.use_offsets[best], program.use_offsets[best + 1]):
            load[program.use_rows[use]] += program.use_amounts[use]
    # Sums and differences of floats drift: what decides is summed anew.
    for column in chosen:
        for use in range(program.use_offsets[column], program.use_offsets[column + 1]):
            sums[program.use_rows[use]] += program.use_amounts[use]
    load[:] = sums
    broken = 0
    for row in range(len(limits)):
        if load[row] > limits[row]:
            broken += 1
            prices[row] += step / units[row] * min(10.0, 1.0 + (load[row] - limits[row]) / units[row])
    return broken


@kernel
def _return(program: Program, limits: Floats64, chosen: Ints, load: Floats64) -> None:
    """Move each view to its cheapest column that there is room for, until no view can be moved."""
    moved = True
    while moved:
        moved = False
        for view in range(len(chosen)):
            old = chosen[view]
            for use in range(program.use_offsets[old], program.use_offsets[old + 1]):
                load[program.use_rows[use]] -= program.use_amounts[use]
            best = old
            for column in range(program.offsets[view], program.offsets[view + 1]):
                if program.costs[column] >= program.costs[best]:
                    continue
                fits = True
                for use in range(program.use_offsets[column], program.use_offsets[column + 1]):
                    row = program.use_rows[use]
                    if load[row] + program.use_amounts[use] > limits[row]:
                        fits = False
                        break
                if fits:
                    best = column
            for use in range(program.use_offsets[best], program.use_offsets[best + 1]):
                load[program.use_rows[use]] += program.use_amounts[use]
            if best != old:
                chosen[view] = best
                moved = True
