"""The best k: the table and figures of Machanavajjhala et al., VLDB 2008, and what the paper leaves open."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.ranking_changes import measure_changes
from benchmarks.ranking_engine import measure_engine
from benchmarks.ranking_methods import (
    Plan,
    measure_exact,
    measure_figure_9,
    measure_figures_7_and_8,
)
from benchmarks.ranking_sparse import measure_sparse
from benchmarks.ranking_sql import measure_sql
from benchmarks.ranking_structures import measure_figure_6, measure_table_2

if TYPE_CHECKING:
    from benchmarks.results import Result


class Size(NamedTuple):
    """What a size of the benchmark measures."""

    counts: tuple[int, ...]
    """Intervals, for Table 2; the last is the number of subscriptions of the figures."""
    queries: int
    rounds: int
    calls: tuple[int, ...]
    """Calls of getnext(), for Figure 6."""
    dimensions: tuple[int, ...]
    skews: tuple[float, ...]
    exact: tuple[int, ...]
    budget: float
    sparse: tuple[int, int, int]
    """Attributes, subscriptions, events."""
    changes: tuple[int, int]
    """Subscriptions, changes."""
    engine: tuple[int, int]
    """Filters, events."""
    sql: tuple[int, int]
    """Filters of intervals, events."""


SIZES = {
    "quick": Size(
        (500, 2_000),
        40,
        1,
        (1, 20, 100),
        (1, 2, 4),
        (0.0, 0.75, 2.0),
        (2, 4),
        0.02,
        (100, 2_000, 10),
        (2_000, 50),
        (500, 10),
        (2_000, 20),
    ),
    "full": Size(
        (100_000, 200_000, 500_000, 1_000_000),
        1_000,
        7,
        (1, 5, 10, 20, 50, 100, 200, 500, 1_000),
        (1, 2, 3, 4, 6, 8),
        (0.0, 0.5, 0.75, 1.0, 1.5, 2.0),
        (2, 4, 8),
        3.0,
        (500, 1_000_000, 200),
        (1_000_000, 2_000),
        (100_000, 200),
        (1_000_000, 400),
    ),
}
GOALS = "Goals"


def run(size: str) -> list[Result]:
    """Measure structures in one dimension, methods in several, sparse boxes, changes and filters in SQL."""
    chosen = SIZES[size]
    count = chosen.counts[-1]
    plan = Plan(count, chosen.queries, min(3, chosen.rounds), chosen.budget, reference=size == "quick")
    table = measure_table_2(chosen.counts, chosen.queries)
    figure_6, goals = measure_figure_6(count, chosen.queries, chosen.calls, chosen.rounds)
    figures, relaxed = measure_figures_7_and_8(chosen.dimensions, plan)
    overlap = measure_figure_9(chosen.skews, 4, plan)
    exact, exactly = measure_exact(chosen.exact, plan)
    goals = [replace(goal, section=GOALS) for goal in [*goals, *relaxed, *exactly]]
    results = [*goals, *table, *figure_6, *figures, *overlap, *exact]
    results += measure_sparse(*chosen.sparse, rounds=min(3, chosen.rounds))
    results += measure_changes(*chosen.changes, queries=min(200, chosen.queries))
    results += measure_engine(*chosen.engine)
    results += measure_sql(*chosen.sql)
    # What takes microseconds says nothing about so few boxes.
    return results if size == "full" else [replace(result, goal=None) for result in results]
