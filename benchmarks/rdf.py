"""Graph patterns over RDF: Figure 9 of Petrovic, Liu and Jacobsen, WWW 2005, and what `auto` is held to."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.rdf_data import Plan
from benchmarks.rdf_figures import Axes, measure_figures
from benchmarks.rdf_goals import Amount, measure_goals

if TYPE_CHECKING:
    from benchmarks.results import Result


class Size(NamedTuple):
    """What a size of the benchmark measures."""

    plan: Plan
    axes: Axes
    amount: Amount


SIZES = {
    "quick": Size(
        Plan(publications=10, rounds=1),
        Axes(
            counts=(200, 1_000),
            more=(2_000,),
            weighed=(100, 300),
            overlaps=(0.0, 1.0),
            sizes=((5, 6), (20, 35)),
            ratios=(0.01, 0.1),
            labels=(5, 50),
            usual=500,
        ),
        Amount(counts=(500, 2_000), sampled=50, events=2, checked=20),
    ),
    "full": Size(
        Plan(publications=50, rounds=3),
        Axes(
            counts=(3_000, 10_000, 30_000, 100_000),
            more=(300_000,),
            weighed=(2_500, 5_000, 10_000),
            overlaps=(0.0, 0.25, 0.5, 0.75, 1.0),
            sizes=((5, 4), (5, 6), (10, 16), (20, 35)),
            ratios=(0.001, 0.005, 0.01, 0.02, 0.05),
            labels=(5, 15, 50, 200),
            usual=10_000,
        ),
        Amount(counts=(30_000, 300_000), sampled=300, events=5, checked=100),
    ),
}


def run(size: str) -> list[Result]:
    """Measure what `auto` is held to, then the paper's series."""
    chosen = SIZES[size]
    # First, while little else is in memory.
    results = measure_goals(chosen.amount, chosen.plan)
    results += measure_figures(chosen.axes, chosen.plan)
    # What takes microseconds says nothing about so few filters.
    return results if size == "full" else [replace(result, goal=None) for result in results]
