"""Large instances of the planning problem: some feeders stand in thousands of rewritings, most in few."""

from __future__ import annotations

import numpy as np

from headgate.plan.model import Capacities, Costs, Rewritings, same_capacities


def large_instance(
    views: int, fan_out: float, *, seed: int = 0, most: int = 30, steepness: float = 3.0
) -> tuple[Rewritings, Costs, Capacities]:
    """Draw an instance of the paper's shape: up to `most` rewritings of 1 to 4 inputs for 95 % of views.

    Inputs come from views before the view, the first ones much more often, the more so the greater
    `steepness`; these send more bytes, too. The source has room for a fifth more views than it must feed.
    """
    rng = np.random.default_rng(seed)
    bare = rng.random(views) < 0.05
    bare[: max(10, views // 500)] = True
    counts = np.where(bare, 0, rng.integers(most // 2, most + 1, views))
    owners = np.repeat(np.arange(views), counts)
    widths = rng.choice([1, 2, 3, 4], len(owners), p=[0.25, 0.4, 0.25, 0.1])
    targets = np.repeat(owners, widths)
    drawn = (targets * rng.random(len(targets)) ** steepness).astype(np.int64)
    # Inputs of a rewriting rise and differ: sort by (rewriting, input) and leave repetitions out.
    numbers = np.repeat(np.arange(len(owners)), widths)
    keys = np.unique(numbers * views + drawn)
    numbers, inputs = np.divmod(keys, views)
    offsets = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
    input_offsets = np.searchsorted(numbers, np.arange(len(owners) + 1)).astype(np.int64)
    rewritings = Rewritings(offsets, input_offsets, inputs.astype(np.int32))
    sizes = rng.lognormal(5.0, 1.0, views) * (1 + 4 * np.exp(-np.arange(views) / views * 5))
    sent = sizes[inputs]
    utilization = np.add.reduceat(sent, input_offsets[:-1]) * rng.uniform(0.9, 1.1, len(owners))
    source = sizes * rng.uniform(5.0, 10.0, views)
    costs = Costs(
        utilization,
        rng.uniform(1.0, 3.0, len(owners)),
        sent,
        np.ones(len(inputs)),
        np.ones(len(owners)),
        source,
        rng.uniform(1.0, 3.0, views),
        sizes,
        np.ones(views),
        np.zeros(views),
    )
    limit = float(np.ceil(1.2 * bare.sum()))
    return rewritings, costs, same_capacities(views, fan_out, source_fan_out=limit)
