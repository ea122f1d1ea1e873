"""The dissemination plan: Tables 2 and 3, Figures 5 and 6 of Karanasos et al., VLDB 2014, and its goals."""

from __future__ import annotations

import gc
import math
import time
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.plan_data import check_delivery, make_case, say, small_case, warm
from benchmarks.plan_exact import measure_exact
from benchmarks.plan_growth import measure_growth
from benchmarks.plan_loga import measure_loga
from benchmarks.plan_tables import goals, measure_program, table_2

if TYPE_CHECKING:
    from benchmarks.plan_loga import Descent
    from benchmarks.plan_tables import Chosen
    from benchmarks.results import Result


class Size(NamedTuple):
    """What a size of the benchmark measures."""

    views: int
    sampled: int
    """Documents that rows and bytes of views are estimated from."""
    bounds: tuple[float, ...]
    delivered: int
    """Documents that are disseminated as a plan says; every result is compared with the direct one."""
    delivering: int
    """How many views there are then."""
    small: tuple[int, ...]
    """Views of the instances that are solved exactly."""
    seconds: float
    """The time limit of an exact solution."""


SIZES = {
    "quick": Size(3_000, 1, (30, math.inf), 1, 400, (60,), 5.0),
    "full": Size(100_000, 2, (30, 50, 100, math.inf), 2, 3_000, (100, 150, 200), 30.0),
}


def run(size: str) -> list[Result]:
    """Plan as the paper does, step by step, and check every plan."""
    chosen = SIZES[size]
    warm()
    begun = time.perf_counter()
    case = make_case(chosen.views, chosen.sampled)
    solved: dict[float, Chosen] = {}
    improved: dict[float, Descent] = {}
    for bound in chosen.bounds:
        solved[bound] = measure_program(case, bound)
        improved[bound] = measure_loga(case, bound, solved[bound])
        gc.collect()
    say(f"planned, {time.perf_counter() - begun:.0f} s")
    results = goals(case, solved, improved)
    results += table_2(case)
    for bound in chosen.bounds:
        results += solved[bound].rows
    for section in ("latency", "levels"):
        for bound in chosen.bounds:
            results += getattr(improved[bound], section)
    for views in chosen.small:
        results += measure_exact(f"{views} views", small_case(case, views), chosen.seconds)
        say(f"solved {views} views exactly")
    results += check_delivery(chosen.delivering, chosen.delivered)
    results += measure_growth(chosen.delivering)
    # Seconds say nothing about so few views, and a small set is not rewritten as a large one is.
    return results if size == "full" else [replace(result, goal=None) for result in results]
