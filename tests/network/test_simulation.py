"""The simulator of networks: the fast one against the slow one, and the slow one against what can be told by hand."""

from __future__ import annotations

import random
from dataclasses import fields

import numpy as np
import pytest

from headgate.errors import NetworkError
from headgate.network.simulation import fast, reference
from headgate.network.simulation.layout import hops_of, layout_of, levels_of
from headgate.network.simulation.model import NOTHING, Costs, Links, Machines, Scene, Traffic
from tests.seeds import seeds

FREE = Costs(**{field.name: 0.0 for field in fields(Costs)})


def scene_of(rng: random.Random) -> Scene:
    """Draw a scene: few numbers, so that much happens at the same time."""
    views, stations, documents = rng.randint(1, 14), rng.randint(2, 6), rng.randint(1, 8)
    inputs: list[list[int]] = []
    for view in range(views):
        before = rng.sample(range(view), rng.randint(0, min(view, 3)))
        inputs.append(sorted(before))
    offsets = np.cumsum([0, *map(len, inputs)])
    layout = layout_of(
        [rng.randrange(1, stations) for _ in range(views)],
        offsets,
        [each for some in inputs for each in some],
        stations,
    )
    kinds, cities = rng.randint(1, 3), rng.randint(1, 3)
    sizes = np.array([[rng.choice((0, 10, 20, 1000)) for _ in range(views)] for _ in range(kinds)], np.float32)
    for kind in range(kinds):
        for view in range(views):
            if any(sizes[kind, each] < 0 for each in inputs[view]) or rng.random() < 0.15:
                sizes[kind, view] = NOTHING
    costs = Costs(**{field.name: rng.choice((0.0, 1.0, 2.0, 0.1)) for field in fields(Costs)})
    links = Links(
        tuple(f"c{number}" for number in range(cities)),
        np.array([[rng.choice((1.0, 0.5, 2.0)) for _ in range(cities)] for _ in range(cities)]),
        np.array([[rng.choice((10.0, 1000.0)) for _ in range(cities)] for _ in range(cities)]),
    )
    shared = rng.random() < 0.5
    machines = Machines(
        np.array([rng.randrange(cities) for _ in range(stations)]),
        np.array([rng.randrange(2) for _ in range(stations)]) if shared else np.arange(stations),
        np.array([rng.randint(1, 2) for _ in range(2 if shared else stations)]),
    )
    traffic = Traffic.of(
        sizes, np.array([float(rng.randint(0, 50)) for _ in range(kinds)]), documents, rng.choice((0.0, 3.0, 50.0))
    )
    return Scene(layout, machines, links, traffic, costs, rng.choice((1, 2, 256)), rng.choice((1, 3, 100)))


@pytest.mark.jit_off
@pytest.mark.parametrize("seed", seeds(320))
def test_fast_is_as_slow(seed: int) -> None:
    """Every time of every document and view is the same, to the last bit; sums are those of the times."""
    scene = scene_of(random.Random(seed))
    slow, quick = reference.simulate(scene), fast.simulate(scene)
    for name, expected, found in zip(slow._fields, slow, quick, strict=True):
        np.testing.assert_array_equal(expected, found, err_msg=name)
    given = scene.traffic.result_bytes[scene.traffic.kind] >= 0
    np.testing.assert_array_equal(~np.isnan(slow.there), given)
    sums = fast.totals(scene)
    latency = slow.latency
    np.testing.assert_array_equal(sums.view_count, given.sum(axis=0))
    np.testing.assert_array_equal(sums.document_count, given.sum(axis=1))
    np.testing.assert_allclose(sums.view_sum, np.nansum(latency, axis=0))
    np.testing.assert_array_equal(sums.document_max, np.max(np.where(given, latency, 0.0), axis=1))
    np.testing.assert_array_equal(sums.view_min, np.min(np.where(given, latency, np.inf), axis=0))
