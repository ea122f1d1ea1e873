"""Why there is no plan: which capacities are short by how much, and which views have nowhere to go."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.errors import PlanError
from headgate.plan.program import highs
from headgate.plan.program.columns import (
    CPU,
    FAN_OUT,
    RESOURCES,
    Program,
    ceilings,
    cheapest_columns,
    matrix_of,
)
from headgate.plan.program.highs import Watch
from headgate.plan.program.presolving import activities, lightened

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from headgate.core.arrays import Bools, Floats64, Ints

SHOWN = 3
"""How many views or sites a message names."""

WHOLE = 6000
"""Up to so many columns the shortage is found in whole choices, else in parts of them."""

TASTE = 1e-3
"""What a typical difference of costs weighs against a use of a capacity that is not there."""

PATIENCE = 60.0
"""Seconds for finding the cause, beside those that the solve has left."""


class Shortage(NamedTuple):
    """A capacity of a site (-1: the source) that is short: what it bears, and how much it lacks at least."""

    resource: str
    site: int
    bears: float
    lacks: float


class Names(NamedTuple):
    """What people call views and sites; without, their numbers."""

    view: Callable[[int], str] = str
    site: Callable[[int], str] = str

    def place(self, site: int) -> str:
        """Name a site, or the source."""
        return "the source" if site < 0 else f"site {self.site(site)}"

    def views(self, numbers: Sequence[int]) -> str:
        """Name some views."""
        listed = ", ".join(map(self.view, numbers[:SHOWN]))
        return listed + (", …" if len(numbers) > SHOWN else "")


class InfeasibleError(PlanError):
    """No plan keeps all capacities.

    `shortages` together are one way to have a plan, with as little more as can be; `source` are those of the
    source if only that is given more, or nothing if that does not help. `views` are those that cannot avoid
    what is short.
    """

    def __init__(
        self,
        say: Callable[[Names], str],
        shortages: tuple[Shortage, ...],
        views: tuple[int, ...],
        source: tuple[Shortage, ...] = (),
        names: Names | None = None,
    ) -> None:
        self.shortages = shortages
        self.views = views
        self.source = source
        self._say = say
        super().__init__(say(names or Names()))

    def named(self, names: Names) -> InfeasibleError:
        """Say the same with the names of views and sites."""
        return InfeasibleError(self._say, self.shortages, self.views, self.source, names)


def explain(program: Program, left: float) -> InfeasibleError:
    """Say why a program has no plan; `left` are the seconds that the solve has left."""
    lows, _ = activities(program)
    over = np.flatnonzero(lows > ceilings(program.bounds))
    if len(over):
        # The source first: it is what most instances lack.
        row = int(over[np.argmin(program.sites[over])])
        return _of_row(program, row, float(lows[row]), _forced(program, row))
    return _of_overflow(lightened(program), Watch(left + PATIENCE))


def _of_row(program: Program, row: int, low: float, views: Ints) -> InfeasibleError:
    """Blame one capacity that some views cannot avoid."""
    resource, site, bears = int(program.resources[row]), int(program.sites[row]), float(program.bounds[row])
    shortage = Shortage(RESOURCES[resource], site, bears, low - bears)
    numbers = tuple(views.tolist())
    many = f"{len(views):,} {'view' if len(views) == 1 else 'views'}"

    def say(names: Names) -> str:
        who, named = names.place(site), names.views(numbers)
        if resource == FAN_OUT:
            reason = f"{who} has fan-out {bears:g}, but {many} can only be fed by it ({named})"
            if low > len(views):
                reason += f", {low:g} times in all"
        elif resource == CPU and site >= 0:
            reason = f"{who} has CPU {bears:g}, but {many} take {low:g} of it at least ({named})"
        else:
            reason = (
                f"{who} has {RESOURCES[resource]} {bears:g}, but {many} that can only be fed by it take "
                f"{low:g} at least ({named})"
            )
        return f"no plan: {reason}: give it {_up(low)} or more"

    return InfeasibleError(say, (shortage,), numbers)


def _of_overflow(program: Program, watch: Watch) -> InfeasibleError:
    """Find the least that capacities are short of in all, and where."""
    shortages, short = _shortages(program, np.ones(len(program.bounds), np.bool_), watch)
    if not shortages:
        return InfeasibleError(
            lambda _: (
                "no plan keeps all capacities; which are short was not found in time: a longer limit tells"
            ),
            (),
            (),
        )
    source, _ = _shortages(program, program.sites < 0, watch)
    views = tuple(_cornered(program, short).tolist())
    more = f", and {len(shortages) - SHOWN:,} more" if len(shortages) > SHOWN else ""
    alone = " and ".join(f"{s.resource} {_up(s.bears + s.lacks)}" for s in source)
    advice = f": raise these, or give the source alone {alone}" if source else ": raise these"

    def say(names: Names) -> str:
        parts = [
            f"{names.place(each.site)} has {each.resource} {each.bears:g} and lacks {_up(each.lacks)}"
            for each in shortages[:SHOWN]
        ]
        where = f" ({len(views):,} views have no way around: {names.views(views)})" if views else ""
        return f"no plan keeps all capacities: {'; '.join(parts)}{more}{where}{advice}"

    return InfeasibleError(say, shortages, views, source)


def _shortages(program: Program, rows: Bools, watch: Watch) -> tuple[tuple[Shortage, ...], Ints]:
    """Say what some rows lack and which these are, the source's first; nothing if it was not found."""
    spare = _overflow(program, rows, watch)
    if spare is None:
        return (), np.zeros(0, np.int64)
    # Parts of a fan-out are of no use.
    counted = program.resources == FAN_OUT
    spare[counted] = np.ceil(spare[counted] - 1e-6)
    short = np.flatnonzero(spare > 1e-6 * np.maximum(1.0, program.bounds))
    short = short[np.lexsort((-spare[short], program.sites[short] >= 0))]
    return tuple(
        Shortage(
            RESOURCES[program.resources[row]],
            int(program.sites[row]),
            float(program.bounds[row]),
            float(spare[row]),
        )
        for row in short
    ), short


def _overflow(program: Program, may: Bools, watch: Watch) -> Floats64 | None:
    """Let some rows be exceeded, but as little as can be; return by how much each is, or None."""
    count, rows = len(program.choices), len(program.bounds)
    views = len(program.offsets) - 1
    whole = count <= WHOLE
    # Without any costs nearly all pivots would be ties; this little of them changes no shortage to speak of.
    taste = 0.0 if whole else TASTE
    matrix, scaling = matrix_of(program, whole=whole)
    relaxed = matrix._replace(
        costs=np.concatenate((matrix.costs * taste, np.ones(rows))),
        most=np.concatenate((matrix.most, np.where(may, np.inf, 0.0))),
        starts=np.concatenate((matrix.starts, matrix.starts[-1] + 1 + np.arange(rows))).astype(np.int32),
        rows=np.concatenate((matrix.rows, views + np.arange(rows))).astype(np.int32),
        amounts=np.concatenate((matrix.amounts, -np.ones(rows))),
    )
    if whole:
        outcome = highs.branch(relaxed, watch, "cause", gap=1e-3)
    else:
        basic = np.zeros(count + rows, np.bool_)
        basic[cheapest_columns(program.offsets, program.costs)] = True
        outcome = highs.relax(relaxed, highs.Start(basic, np.arange(views + rows) >= views), watch, "cause")
    return None if outcome.values is None else outcome.values[count:] / scaling.rows


def _forced(program: Program, row: int) -> Ints:
    """Return the views that cannot avoid a row: all of their columns use it."""
    columns = np.searchsorted(program.use_offsets, np.flatnonzero(program.use_rows == row), side="right") - 1
    views = np.searchsorted(program.offsets, columns, side="right") - 1
    times = np.bincount(views, minlength=len(program.offsets) - 1)
    return np.flatnonzero(times == np.diff(program.offsets))


def _cornered(program: Program, short: Ints) -> Ints:
    """Return the views all of whose columns use a capacity that is short."""
    wanted = np.zeros(len(program.bounds), np.bool_)
    wanted[short] = True
    columns = np.repeat(np.arange(len(program.choices)), np.diff(program.use_offsets))
    blocked = np.zeros(len(program.choices), np.bool_)
    blocked[columns[wanted[program.use_rows]]] = True
    return np.flatnonzero(np.logical_and.reduceat(blocked, program.offsets[:-1]))


def _up(amount: float) -> str:
    """Write an amount with six digits, never less than it is.

    >>> _up(1.30226449), _up(3.0), _up(1234567.4)
    ('1.30227', '3', '1234568')
    """
    if amount <= 0 or amount == round(amount):
        return f"{amount:.0f}"
    step = 10.0 ** min(0, math.floor(math.log10(amount)) - 5)
    return f"{math.ceil(amount / step) * step:.15g}"
