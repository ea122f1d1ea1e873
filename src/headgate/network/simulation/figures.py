"""Figures 7, 8 and 9 of the paper for one plan: views by level, latency of views, delivery of documents."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.network.assignment import SOURCE
from headgate.network.simulation.fast import totals
from headgate.network.simulation.model import (
    Costs,
    Machines,
    Scene,
    Traffic,
    cities_of,
    layout_of_plan,
    levels_of,
    nine_cities,
    read_links,
    with_joins,
)
from headgate.plan.running.saved_plan import SavedPlan

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from headgate.core.arrays import Ints
    from headgate.network.simulation.fast import Sums, Totals
    from headgate.plan.model import Plan


class Spread(NamedTuple):
    """Seconds: on average, at least, at most."""

    mean: float
    least: float
    most: float


class Figures(NamedTuple):
    """What a simulation shows."""

    per_level: Ints
    """Figure 7: views on each level, from 1 on."""
    latency: Spread
    """Figure 8: over all views and documents, from when the first result left the source."""
    delivery: Spread
    """Figure 9: over documents, the latency of the slowest view."""
    results: int
    messages: int
    busiest: float
    """The share of the time that the busiest site worked."""


def figures_of(scene: Scene) -> Figures:
    """Simulate a scene, and take its figures."""
    whole = totals(scene)
    per_level = np.bincount(levels_of(scene.layout), minlength=1)[1:].astype(np.int64)
    return Figures(per_level, _latency(whole.sums), _delivery(whole.sums), *_sums(whole))


def _latency(sums: Sums) -> Spread:
    if not sums.view_count.any():
        return Spread(0.0, 0.0, 0.0)
    return Spread(sums.mean, sums.least, sums.most)


def _delivery(sums: Sums) -> Spread:
    slowest = sums.document_max[sums.document_count > 0]
    if not len(slowest):
        return Spread(0.0, 0.0, 0.0)
    return Spread(float(slowest.mean()), float(slowest.min()), float(slowest.max()))


def _sums(whole: Totals) -> tuple[int, int, float]:
    busiest = float(whole.sums.busy[1:].max(initial=0.0)) / whole.end if whole.end else 0.0
    return int(whole.sums.view_count.sum()), whole.messages, busiest


def simulate_plan(
    path: Path,
    links_file: Path | None = None,
    count: int | None = None,
    documents: int = 100,
    interval: float = 10.0,
    slower: float = 1.0,
) -> tuple[Figures, Figures]:
    """Simulate both plans of a directory that `headgate plan` wrote; each site is a machine of one core."""
    city_of: Mapping[str, str] = {}
    links = nine_cities()
    if links_file is not None:
        links, city_of = read_links(links_file)
    saved = SavedPlan.open(path)
    names, sites = saved.sites.texts(), np.asarray(saved.capacities.sites, np.int64)
    if count is not None:
        # As `headgate network local` spreads them.
        places = {name: place % count for place, name in enumerate(sorted(set(names)))}
        sites = np.array([places[name] for name in names], np.int64)[sites]
        names = [f"site{place:03}" for place in range(count)]
    large = saved.costs.source_sent if saved.sizes is None else saved.sizes[1]
    machines = Machines.own(cities_of([SOURCE, *names], links, city_of))
    costs = Costs().scaled(slower)

    def run(plan: Plan) -> Figures:
        layout = layout_of_plan(plan, saved.rewritings, sites, len(names))
        # Joins that run elsewhere are views more, there.
        layout, views = with_joins(layout, 1 + sites[saved.hosts(plan)])
        traffic = Traffic.of(large[views][None, :], np.zeros(1), documents, interval)
        return figures_of(Scene(layout, machines, links, traffic, costs))

    return run(saved.before), run(saved.plan)
