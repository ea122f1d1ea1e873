"""The integer program as flat arrays: one column for each choice, one row for each finite capacity.

The paper has a variable for each edge. The edges into a rewriting are all chosen or none (equation 3), so
they are the rewriting's own variable: what is left is one choice for each view, and what choices use.

    minimise    sum of costs[c] x[c]
    such that   the columns of each view sum to 1                         (equation 2)
                sum of amounts of row r times x[c] <= bounds[r]           (equation 4)

    columns of view v     offsets[v] : offsets[v + 1]          the rewritings in order, the source last
    uses of column c      use_offsets[c] : use_offsets[c + 1]  rows with amounts, each row once
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.core.jit import kernel
from headgate.errors import PlanError
from headgate.plan.model import SOURCE, Rewritings, Sizes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.plan.model import Capacities, Costs

FAN_OUT, BANDWIDTH, CPU = 0, 1, 2
RESOURCES = ("fan-out", "bandwidth", "CPU")
"""What rows are about, by `Program.resources`."""

TOLERANCE = 1e-9
"""Loads are sums of floats: by this part of a capacity (and of 1) they may be above it."""


class Program(NamedTuple):
    """Choices with their costs, and what they use of capacities; see the module. The source is site -1."""

    offsets: NDArray[np.int64]
    choices: NDArray[np.int64]
    costs: NDArray[np.float64]
    use_offsets: NDArray[np.int64]
    use_rows: NDArray[np.int32]
    use_amounts: NDArray[np.float64]
    bounds: NDArray[np.float64]
    resources: NDArray[np.int8]
    sites: NDArray[np.int32]


class _Amounts(NamedTuple):
    """The part of Costs that counts against capacities."""

    sent: NDArray[np.float64]
    sending: NDArray[np.float64]
    joining: NDArray[np.float64]
    source_sent: NDArray[np.float64]
    source_sending: NDArray[np.float64]
    source_joining: NDArray[np.float64]


def sizes(program: Program) -> Sizes:
    """Count what a program is made of."""
    return Sizes(len(program.offsets) - 1, len(program.choices), len(program.bounds), len(program.use_rows))


def view_of(program: Program) -> NDArray[np.int64]:
    """Return the view of each column."""
    return np.repeat(np.arange(len(program.offsets) - 1), np.diff(program.offsets))


def ceilings(bounds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return up to where a load keeps within each bound."""
    return bounds + TOLERANCE * np.maximum(1.0, np.abs(bounds))


def build(
    rewritings: Rewritings,
    costs: Costs,
    capacities: Capacities,
    values: NDArray[np.float64],
    source_values: NDArray[np.float64],
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


def _rows(
    capacities: Capacities,
) -> tuple[NDArray[np.int32], NDArray[np.float64], NDArray[np.int8], NDArray[np.int32]]:
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
    rewritings: Rewritings,
    costs: Costs,
    capacities: Capacities,
    values: NDArray[np.float64],
    source_values: NDArray[np.float64],
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
    for name, (found, wanted) in lengths.items():
        if found != wanted:
            raise PlanError(f"{name}: {found} numbers for {wanted}: give one for each")
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
def _add(
    use_rows: NDArray[np.int32],
    use_amounts: NDArray[np.float64],
    begin: int,
    end: int,
    row: int,
    amount: float,
) -> int:
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
    sites: NDArray[np.int32],
    rows: NDArray[np.int32],
    use_offsets: NDArray[np.int64],
    use_rows: NDArray[np.int32],
    use_amounts: NDArray[np.float64],
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
