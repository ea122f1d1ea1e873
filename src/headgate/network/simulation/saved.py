"""A saved plan simulated, before latency was lowered and after."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headgate.network.assignment import SOURCE
from headgate.network.simulation.cities import cities_of, nine_cities, read_links
from headgate.network.simulation.figures import figures_of
from headgate.network.simulation.layout import layout_of_plan, with_joins
from headgate.network.simulation.model import Costs, Machines, Scene, Traffic
from headgate.plan.running.saved_plan import SavedPlan

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from headgate.network.simulation.figures import Figures
    from headgate.plan.model import Plan


def simulate_plan(
    path: Path,
    links_file: Path | None = None,
    count: int | None = None,
    documents: int = 100,
    interval: float = 10.0,
    slower: float = 1.0,
) -> tuple[Figures, Figures]:
    """Simulate both plans of a directory that `headgate plan` wrote; each site is a machine of one core."""
    given: Mapping[str, str] = {}
    links = nine_cities()
    if links_file is not None:
        links, given = read_links(links_file)
    saved = SavedPlan.open(path)
    names, sites = saved.sites.texts(), np.asarray(saved.capacities.sites, np.int64)
    if count is not None:
        # As `headgate network local` spreads them.
        places = {name: place % count for place, name in enumerate(sorted(set(names)))}
        sites = np.array([places[name] for name in names], np.int64)[sites]
        names = [f"site{place:03}" for place in range(count)]
    large = saved.costs.source_sent if saved.sizes is None else saved.sizes[1]
    machines = Machines.own(cities_of([SOURCE, *names], links, given))
    costs = Costs().scaled(slower)

    def run(plan: Plan) -> Figures:
        layout = layout_of_plan(plan, saved.rewritings, sites, len(names))
        # Joins that run elsewhere are views more, there.
        layout, views = with_joins(layout, 1 + sites[saved.hosts(plan)])
        traffic = Traffic.of(large[views][None, :], np.zeros(1), documents, interval)
        return figures_of(Scene(layout, machines, links, traffic, costs))

    return run(saved.before), run(saved.plan)
