"""Graphs, costs, capacities and plans as flat arrays. Views are numbers; the publisher is the source."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headgate.errors import PlanError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


SOURCE = -1
"""Stands for a rewriting: the view is fed by the publisher."""


class Embeddings(NamedTuple):
    """The embedding graph. Target v has `sources[offsets[v]:offsets[v + 1]]`, rising, without v itself.

    `masks` are the items of the target that each source covers.
    """

    offsets: NDArray[np.int64]
    sources: NDArray[np.int32]
    masks: NDArray[np.uint64]


class Rewritings(NamedTuple):
    """The rewritability graph. Rewritings of view v are the numbers `offsets[v]` to `offsets[v + 1]`.

    The inputs of rewriting r are `inputs[input_offsets[r]:input_offsets[r + 1]]`, views, rising and distinct.
    Every view can be fed by the source as well: that is not stored. There is no cycle, whatever is chosen.
    """

    offsets: NDArray[np.int64]
    input_offsets: NDArray[np.int64]
    inputs: NDArray[np.int32]


class Costs(NamedTuple):
    """What rewritings cost, by number; the fields of `source_` what it costs to feed each view by the source.

    `utilization` and `latency` are the two that the mixed cost weighs; `latency` is that of the rewriting
    itself, without what its inputs take. The others count against capacities: `sent` are the bytes that each
    input sends for the rewriting and `sending` the work that it is for the input's site (both in the order of
    `Rewritings.inputs`), `joining` the work at the site of the view that is computed. `source_sent` and
    `source_sending` are what feeding a view asks of the source, `source_joining` of the view's own site.

    `hosts` says at the site of which input a join runs, by its place among the inputs, or AT_VIEW; without it
    all run at the view. Such an input sends what the view gives, and its site has the work of the join.
    """

    utilization: NDArray[np.float64]
    latency: NDArray[np.float64]
    sent: NDArray[np.float64]
    sending: NDArray[np.float64]
    joining: NDArray[np.float64]
    source_utilization: NDArray[np.float64]
    source_latency: NDArray[np.float64]
    source_sent: NDArray[np.float64]
    source_sending: NDArray[np.float64]
    source_joining: NDArray[np.float64]
    hosts: NDArray[Any] | None = None

    def host_of(self, rewriting: int) -> int:
        """Return at the site of which input a rewriting runs, by its place, or AT_VIEW."""
        return AT_VIEW if self.hosts is None else int(self.hosts[rewriting])


AT_VIEW = -1
"""A join that runs at the site of the view that is computed."""


class Capacities(NamedTuple):
    """What sites can bear, by site; `sites` is the site of each view. Infinity is no limit.

    `fan_out` is how many views of other sites a site feeds: a rewriting that uses one of the site's views
    counts 1, one that uses two of them counts 2. `bandwidth` bounds the bytes sent, `cpu` the work of sending
    and joining. What feeds a view at its own site is not sent, and counts for nothing of these but joining.
    """

    sites: NDArray[np.int32]
    fan_out: NDArray[np.float64]
    bandwidth: NDArray[np.float64]
    cpu: NDArray[np.float64]
    source_fan_out: float
    source_bandwidth: float
    source_cpu: float


class Plan(NamedTuple):
    """The rewriting that is chosen for each view, by number, or SOURCE."""

    chosen: NDArray[np.int64]


def same_capacities(
    views: int,
    fan_out: float = math.inf,
    *,
    bandwidth: float = math.inf,
    cpu: float = math.inf,
    source_fan_out: float = math.inf,
    source_bandwidth: float = math.inf,
    source_cpu: float = math.inf,
    sites: ArrayLike | None = None,
) -> Capacities:
    """Give every site the same bounds; without `sites` each view has a site of its own, as in the paper."""
    bounds = (fan_out, bandwidth, cpu, source_fan_out, source_bandwidth, source_cpu)
    if any(math.isnan(bound) or bound < 0 for bound in bounds):
        raise PlanError(f"a capacity is negative or not a number, of {bounds}: 0 or more, inf for no limit")
    placed = (
        np.arange(views, dtype=np.int32) if sites is None else np.ascontiguousarray(sites, dtype=np.int32)
    )
    if len(placed) != views:
        raise PlanError(f"{len(placed)} sites are given for {views} views: one for each view is needed")
    if views and placed.min() < 0:
        raise PlanError(f"a site has the number {placed.min()}: sites count from 0")
    count = int(placed.max()) + 1 if views else 0
    return Capacities(
        placed,
        np.full(count, fan_out, dtype=np.float64),
        np.full(count, bandwidth, dtype=np.float64),
        np.full(count, cpu, dtype=np.float64),
        float(source_fan_out),
        float(source_bandwidth),
        float(source_cpu),
    )


def infinite_capacities(views: int) -> Capacities:
    """Limit nothing; each view has a site of its own."""
    return same_capacities(views)


def scaled_capacities(capacities: Capacities, factor: float) -> Capacities:
    """Multiply what sites can bear, and leave the source as it is.

    A plan of least utilization uses most bounds up. So the paper gives the search for low latency 1.5 times
    the bounds that it gave the solver; views are never moved to the source there.
    """
    if not factor > 0:
        raise PlanError(f"capacities cannot be scaled by {factor}: a factor is more than 0")
    return capacities._replace(
        fan_out=capacities.fan_out * factor,
        bandwidth=capacities.bandwidth * factor,
        cpu=capacities.cpu * factor,
    )


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
