"""What a solver says: the plan, how good it is, how surely, and how it ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from headgate.plan.model import Plan

OPTIMAL = "optimal"
WITHIN_GAP = "within the gap"
TIME_LIMIT = "time limit: best found"


class Sizes(NamedTuple):
    """How large a program is: choices are its columns, capacities its rows, `uses` the numbers in it."""

    views: int
    choices: int
    rows: int
    uses: int

    def __str__(self) -> str:
        """Write the sizes for people.

        >>> str(Sizes(4, 7, 4, 9))
        '4 views, 7 choices, 4 capacities, 9 uses'
        """
        return f"{self.views:,} views, {self.choices:,} choices, {self.rows:,} capacities, {self.uses:,} uses"


class Solution(NamedTuple):
    """The best plan that was found.

    `value` is what was minimised: utilization, or the `objective` that was given. No plan is below `bound`;
    `gap` is how far the value is above it, as a part of the value. `ended` is OPTIMAL, WITHIN_GAP or
    TIME_LIMIT. `before` and `after` are the sizes without and with presolving; `fractional` is how many views
    the relaxation left undecided.
    """

    plan: Plan
    utilization: float
    value: float
    bound: float
    gap: float
    seconds: float
    ended: str
    before: Sizes
    after: Sizes
    fractional: int


def gap_of(value: float, bound: float) -> float:
    """Return how far a value is above its bound, as a part of the value; 0 if both are 0.

    >>> gap_of(100.0, 99.0), gap_of(0.0, 0.0)
    (0.01, 0.0)
    """
    if value <= bound:
        return 0.0
    return (value - bound) / max(abs(value), 1e-300)
