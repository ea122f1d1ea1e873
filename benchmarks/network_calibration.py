"""What things cost, found from what a real network did: the costs with which the simulator tells the same.

Known of a real run is how long each result took from the source to its view. Two numbers are searched for on
a grid: what a batch costs a site, whatever is in it, and what a message costs it, which is shared out evenly
between taking, keeping and sending. What the source takes for a result, and what evaluating a view takes, is
measured by itself, and given.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.network.simulation.fast import simulate, totals
from headgate.network.simulation.model import Links, layout_of, steps_behind

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from headgate.core.arrays import Ints
    from headgate.engine.dissemination import PlacedView
    from headgate.network.simulation.model import Costs, Floats, Layout, Scene

_STEPS, _ROUNDS = 7, 4
_SLOWEST, _HALVES = 1e4, 12


def one_place(delay: float = 1e-4, speed: float = 1e9) -> Links:
    """Return the wires of sites that are all in one place: by default on one machine."""
    return Links(("here",), np.full((1, 1), delay), np.full((1, 1), speed))


def hops_of(layout: Layout) -> tuple[Ints, Ints]:
    """Count the messages on the way to each view, by its shortest and by its longest way.

    What goes from one view to another at the same station is no message.
    """
    owners = np.repeat(np.arange(layout.views), np.diff(layout.input_offsets))
    moved = (layout.station[owners] != layout.station[layout.inputs]).astype(np.int64)
    return steps_behind(layout, moved, np.minimum), steps_behind(layout, moved, np.maximum)


class Observed(NamedTuple):
    """A part of a real run: its scene, and how long results took, by document and view (NaN is never).

    Latency is counted from when the source had computed the document.
    """

    scene: Scene
    latency: Floats


def predicted(part: Observed, costs: Costs) -> Floats:
    """Simulate a part of a run; returns what corresponds to `latency`."""
    times = simulate(part.scene._replace(costs=costs))
    found: Floats = times.there - times.computed[:, None]
    return found


def error(part: Observed, costs: Costs) -> float:
    """Return by which part of itself the mean latency is predicted too high, or too low."""
    known = ~np.isnan(part.latency)
    return float(predicted(part, costs)[known].mean() / part.latency[known].mean()) - 1.0


def calibrate(parts: Sequence[Observed], costs: Costs) -> Costs:
    """Search for the costs of a batch and of a message that fit all parts best; the other costs stay."""
    batches, units = (3e-4, 3e-2), (3e-6, 1e-3)
    best = (math.inf, costs)
    for _ in range(_ROUNDS):
        tried = [
            costs._replace(batch=batch, take=unit, keep=unit, send=unit)
            for batch in _between(*batches)
            for unit in _between(*units)
        ]
        best = min([best, *((_distance(parts, each), each) for each in tried)], key=lambda each: each[0])
        batches, units = _around(batches, best[1].batch), _around(units, best[1].take)
    return best[1]


def _distance(parts: Iterable[Observed], costs: Costs) -> float:
    return sum(math.log1p(error(part, costs)) ** 2 for part in parts)


def _between(least: float, most: float) -> list[float]:
    return [float(each) for each in np.geomspace(least, most, _STEPS)]


def _around(bounds: tuple[float, float], at: float) -> tuple[float, float]:
    """Narrow a range down to a third, by ratios, around a place."""
    third = (bounds[1] / bounds[0]) ** (1 / 6)
    return at / third, at * third


def slowed_to(scene: Scene, mean: float, least: float) -> Costs:
    """Return costs by which latency is so many seconds on average, and at least.

    All costs are multiplied by one number, but for that of a batch, which makes up the rest of the least: a
    first hop is a wire, a batch and a message that is taken. The wires stay as they are.
    """

    def costs(factor: float) -> Costs:
        found = scene.costs.scaled(factor)
        return found._replace(batch=max(0.0, least - float(scene.links.delay.min()) - found.take))

    low, high = 0.0, 1.0
    while totals(scene._replace(costs=costs(high))).sums.mean < mean and high < _SLOWEST:
        low, high = high, 2 * high
    for _ in range(_HALVES):
        middle = (low + high) / 2
        if totals(scene._replace(costs=costs(middle))).sums.mean < mean:
            low = middle
        else:
            high = middle
    return costs(high)


def layout_of_placed(placed: Sequence[PlacedView]) -> tuple[Layout, list[str]]:
    """Lay out placed views, in their order; returns the names of the stations, too, without the source's."""
    names = sorted({view.site for view in placed})
    stations = {name: number for number, name in enumerate(names, 1)}
    numbers = {view.id: number for number, view in enumerate(placed)}
    inputs = [[numbers[each] for each in view.inputs] for view in placed]
    offsets = np.cumsum([0, *(len(each) for each in inputs)])
    flat = np.array([each for some in inputs for each in some], np.int64)
    return layout_of([stations[view.site] for view in placed], offsets, flat, len(names) + 1), names
