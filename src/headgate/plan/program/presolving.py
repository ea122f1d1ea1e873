"""Make a program smaller without losing its optimum, or find that it has no plan.

Four things are done in turns until nothing changes; each makes room for the others:

    full rows       what all plans load on a row at least. More than it bears: there is no plan
    slack rows      what a plan can load on a row at most. No more than it bears: the row can be forgotten
    heavy columns   a column asks more of a row than what all plans leave free there: it is never chosen
    dominated       another column of the view costs no more and uses no row more: it is never needed

Views with one column left are decided; their loads are taken off the bounds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.core.jit import kernel
from headgate.plan.program.columns import Program, ceilings

if TYPE_CHECKING:
    from headgate.core.arrays import Bools, Floats64, Ints

MOST_PAIRS = 2000
"""Views with more columns than this are not searched for dominated ones: pairs grow with the square."""


class PresolvedProgram(NamedTuple):
    """What is left of a program, and how its answers are read.

    `program` has only the views that are not decided, by `views`; its columns are `columns` of the original.
    `decided` is the column of each original view, or -1. If there is no plan, `full` is a row that is asked
    for more than it bears, or `stuck` a view that has no column left (else both are -1).
    """

    program: Program
    views: Ints
    columns: Ints
    decided: Ints
    full: int
    stuck: int

    def restore(self, chosen: Ints) -> Ints:
        """Turn columns that were chosen in what is left into columns of the original, one for each view."""
        result = self.decided.copy()
        result[self.views] = self.columns[chosen]
        return result


def presolve(program: Program, *, dominance: bool = True, strict: bool = True) -> PresolvedProgram:
    """Shrink a program. Without `dominance`, all plans that keep the bounds are kept.

    If not `strict`, the best plan stays also among those that exceed some bounds by as little as they choose.
    """
    count = len(program.offsets) - 1
    alive = np.ones(len(program.choices), np.bool_)
    lows, highs = np.empty_like(program.bounds), np.empty_like(program.bounds)
    limits = ceilings(program.bounds)
    binding = np.ones(len(program.bounds), np.bool_)
    full = stuck = -1
    changed = True
    while changed:
        _activities(program, alive, lows, highs)
        over = lows > limits
        if strict and over.any():
            full = int(np.argmax(over))
            break
        binding = highs > limits
        dropped = 0
        if strict:
            dropped, stuck = _drop_heavy(program, alive, binding, limits - lows)
        if stuck >= 0:
            break
        if dominance:
            dropped += _drop_dominated(program, alive, binding)
        changed = dropped > 0
    left = np.add.reduceat(alive, program.offsets[:-1], dtype=np.int64) if count else np.zeros(0, np.int64)
    if full >= 0 or stuck >= 0:
        return PresolvedProgram(
            program, np.arange(count), np.arange(len(alive)), np.full(count, -1), full, stuck
        )
    decided = np.full(count, -1, np.int64)
    for_one = np.repeat(left == 1, np.diff(program.offsets))
    decided[left == 1] = np.flatnonzero(alive & for_one)
    return _cut(program, np.flatnonzero(left > 1), np.flatnonzero(alive & ~for_one), decided, binding)


def lightened(program: Program) -> Program:
    """Leave out columns that are never needed and rows that cannot be exceeded; all views and bounds stay."""
    reduced = presolve(program, strict=False)
    keep = np.zeros(len(program.choices), np.bool_)
    keep[reduced.columns] = True
    keep[reduced.decided[reduced.decided >= 0]] = True
    count = len(program.offsets) - 1
    everyone = np.arange(count)
    lighter = restrict(program, everyone, keep, np.full(count, -1)).program
    _, highs = activities(lighter)
    columns, none = np.arange(len(lighter.choices)), np.full(count, -1)
    return _cut(lighter, everyone, columns, none, highs > ceilings(lighter.bounds)).program


def activities(program: Program) -> tuple[Floats64, Floats64]:
    """Return what plans load on each row at least and at most."""
    lows, highs = np.empty_like(program.bounds), np.empty_like(program.bounds)
    _activities(program, np.ones(len(program.choices), np.bool_), lows, highs)
    return lows, highs


def loads(program: Program, columns: Ints) -> Floats64:
    """Sum what some columns use of each row."""
    total = np.zeros(len(program.bounds))
    _load(program, np.ascontiguousarray(columns, np.int64), total)
    return total


def restrict(program: Program, views: Ints, keep: Bools, chosen: Ints) -> PresolvedProgram:
    """Cut out some views with the columns that are to be kept; the others stay at their chosen columns."""
    decided = chosen.copy()
    decided[views] = -1
    free = np.zeros(len(program.offsets) - 1, np.bool_)
    free[views] = True
    columns = np.flatnonzero(keep & np.repeat(free, np.diff(program.offsets)))
    return _cut(program, np.flatnonzero(free), columns, decided, np.ones(len(program.bounds), np.bool_))


def _cut(program: Program, views: Ints, columns: Ints, decided: Ints, rows: Bools) -> PresolvedProgram:
    """Make the program of some views, columns and rows; what is decided is taken off the bounds."""
    bounds = program.bounds - loads(program, decided[decided >= 0])
    counts = np.zeros(len(program.offsets) - 1, np.int64)
    owners = np.searchsorted(program.offsets, columns, side="right") - 1
    np.add.at(counts, owners, 1)
    uses = np.diff(program.use_offsets)
    mask = np.zeros(len(program.choices), np.bool_)
    mask[columns] = True
    kept = np.repeat(mask, uses) & rows[program.use_rows]
    places = np.concatenate(([0], np.cumsum(kept)))
    sums = np.diff(places[program.use_offsets])[columns]
    # Rows that no column of these uses are left out as well: they cannot be kept or broken any more.
    used = np.zeros(len(rows), np.bool_)
    used[program.use_rows[kept]] = True
    renamed = np.cumsum(used) - 1
    smaller = Program(
        np.concatenate(([0], np.cumsum(counts[views]))).astype(np.int64),
        program.choices[columns],
        program.costs[columns],
        np.concatenate(([0], np.cumsum(sums))).astype(np.int64),
        renamed[program.use_rows[kept]].astype(np.int32),
        program.use_amounts[kept],
        bounds[used],
        program.resources[used],
        program.sites[used],
    )
    return PresolvedProgram(smaller, views, columns, decided, -1, -1)


@kernel
def _load(program: Program, columns: Ints, total: Floats64) -> None:
    for column in columns:
        for use in range(program.use_offsets[column], program.use_offsets[column + 1]):
            total[program.use_rows[use]] += program.use_amounts[use]


@kernel
def _extremes(
    program: Program, alive: Bools, view: int, least: Floats64, most: Floats64, times: Ints, touched: Ints
) -> tuple[int, int]:
    """Find the least and the most that a view's columns use of each row that they touch.

    Returns how many columns are alive and how many rows are touched. A row that not all columns use is used 0
    at least. The caller sets `times` of the touched rows back to 0.
    """
    columns = 0
    rows = 0
    for column in range(program.offsets[view], program.offsets[view + 1]):
        if not alive[column]:
            continue
        columns += 1
        for use in range(program.use_offsets[column], program.use_offsets[column + 1]):
            row = program.use_rows[use]
            amount = program.use_amounts[use]
            if times[row] == 0:
                touched[rows] = row
                rows += 1
                least[row] = amount
                most[row] = amount
            else:
                least[row] = min(least[row], amount)
                most[row] = max(most[row], amount)
            times[row] += 1
    for i in range(rows):
        row = touched[i]
        if times[row] < columns:
            least[row] = 0.0
    return columns, rows


@kernel
def _activities(program: Program, alive: Bools, lows: Floats64, highs: Floats64) -> None:
    """Sum for each row the least and the most that each view can load on it."""
    count = len(program.bounds)
    least = np.zeros(count)
    most = np.zeros(count)
    times = np.zeros(count, np.int64)
    touched = np.zeros(count, np.int64)
    lows[:] = 0.0
    highs[:] = 0.0
    for view in range(len(program.offsets) - 1):
        _, rows = _extremes(program, alive, view, least, most, times, touched)
        for i in range(rows):
            row = touched[i]
            lows[row] += least[row]
            highs[row] += most[row]
            times[row] = 0


@kernel
def _drop_heavy(program: Program, alive: Bools, binding: Bools, free: Floats64) -> tuple[int, int]:
    """Drop columns that ask more of a row, above their view's least, than all plans leave free there.

    Returns how many were dropped, and a view that has none left, or -1.
    """
    count = len(program.bounds)
    least = np.zeros(count)
    most = np.zeros(count)
    times = np.zeros(count, np.int64)
    touched = np.zeros(count, np.int64)
    dropped = 0
    for view in range(len(program.offsets) - 1):
        columns, rows = _extremes(program, alive, view, least, most, times, touched)
        for column in range(program.offsets[view], program.offsets[view + 1]):
            if not alive[column]:
                continue
            for use in range(program.use_offsets[column], program.use_offsets[column + 1]):
                row = program.use_rows[use]
                if binding[row] and program.use_amounts[use] - least[row] > free[row]:
                    alive[column] = False
                    dropped += 1
                    columns -= 1
                    break
        for i in range(rows):
            times[touched[i]] = 0
        if columns == 0:
            return dropped, view
    return dropped, -1


@kernel
def _no_more(program: Program, binding: Bools, first: int, second: int) -> bool:
    """Say whether the first column uses no more of any binding row than the second does."""
    for use in range(program.use_offsets[first], program.use_offsets[first + 1]):
        row = program.use_rows[use]
        if not binding[row]:
            continue
        no_more = False
        for other in range(program.use_offsets[second], program.use_offsets[second + 1]):
            if program.use_rows[other] == row:
                no_more = program.use_amounts[use] <= program.use_amounts[other]
                break
        if not no_more:
            return False
    return True


@kernel
def _drop_dominated(program: Program, alive: Bools, binding: Bools) -> int:
    """Drop columns that another one of the view can always stand for; of two that are equal the later one."""
    dropped = 0
    for view in range(len(program.offsets) - 1):
        begin = program.offsets[view]
        end = program.offsets[view + 1]
        if end - begin > MOST_PAIRS:
            continue
        for second in range(begin, end):
            if not alive[second]:
                continue
            for first in range(begin, end):
                if first == second or not alive[first] or program.costs[first] > program.costs[second]:
                    continue
                # Of two that stand for each other the earlier stays.
                tie = program.costs[first] == program.costs[second] and first > second
                if tie and _no_more(program, binding, second, first):
                    continue
                if _no_more(program, binding, first, second):
                    alive[second] = False
                    dropped += 1
                    break
    return dropped
