"""Scored intervals in one dimension: Table 2, building, and Figure 6, for every structure there is.

Figures of queries are means in the kernel: `top_many` is one call from Python for all of them. The quickest
of some rounds counts, and a round has each structure once, so that what else runs hits all alike.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.graph_series import interleaved
from benchmarks.measure import memory_of
from benchmarks.ranking_data import K, say, scored
from benchmarks.results import Result
from headgate.ranking.intervals.structures import STRUCTURES
from tests.ranking.reference import top_ranks

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from headgate.ranking.intervals.scored import Scored, ScoredIndex

    Floats = NDArray[np.float64]
    Micros = dict[str, dict[int, float]]

AUTO, SOPT = "auto", "sopt-r-tree"
MICROS, BYTES, SECONDS = 3, 13, 3
"""Goals of the SOPT-R-tree: a query with k = 20, an interval, to build."""
RATIO = 1.2
"""How much slower than the best structure `auto` may be, at any k."""
COUNTS = (100_000, 200_000, 500_000, 1_000_000)
PAPER = {
    "interval-tree": (0.92, 1.7, 4.2, 8.3),
    "r-tree": (1.2, 2.4, 6, 12),
    "segment-tree": (40, 89, 214, 429),
    "ir-tree": (1.76, 3.43, 8.35, 16.5),
}
"""Table 2, MB by COUNTS. It has no row for the SOPT-R-tree, which is an R-tree."""
_COMPARED = 20


def measure_table_2(counts: tuple[int, ...], queries: int) -> list[Result]:
    """Build all structures of several sizes; say what they hold."""
    section, rows, build = "Table 2: memory of an index, MB", [], []
    for count in counts:
        table, _, _ = scored(count, queries)
        for name, make in STRUCTURES.items():
            index, seconds = _built(make, table)
            column = f"{count:,}"
            rows.append(Result(name, memory_of(index) / 1e6, "MB", section=section, column=column))
            if name in PAPER and count in COUNTS:
                paper = PAPER[name][COUNTS.index(count)]
                rows.append(Result(f"{name}, paper", paper, "MB", section=section, column=column))
            build.append(Result(name, seconds, "s", section="Building an index, s", column=column))
            if name == SOPT and count == max(counts):
                per = memory_of(index) / count
                rows.append(Result(f"{name}, bytes an interval", per, "", section=section, column=column))
        say(f"Table 2, {count:,} intervals")
    return [*rows, *build]


def measure_figure_6(
    count: int, queries: int, calls: tuple[int, ...], rounds: int
) -> tuple[list[Result], list[Result]]:
    """Time all structures for several k; returns the figure, and how it stands to the goals."""
    table, warm, points = scored(count, queries)
    indexes, seconds = {}, {}
    for name, make in STRUCTURES.items():
        indexes[name], seconds[name] = _built(make, table)
    _check(table, indexes, points, calls)
    micros: Micros = {name: {} for name in indexes}
    for k in calls:
        works: dict[str, Callable[[], object]] = {
            name: partial(index.top_many, points, points, k) for name, index in indexes.items()
        }
        for index in indexes.values():
            index.top_many(warm, warm, k)
        for name, value in interleaved(works, rounds).items():
            micros[name][k] = value / len(points) * 1e6
    say(f"Figure 6, {count:,} intervals")
    section = f"Figure 6: µs a query by getnext() calls, {count:,} intervals"
    rows = [
        Result(name, value, "µs", section=section, column=f"{k:,}")
        for name, by_k in micros.items()
        for k, value in by_k.items()
    ]
    return rows, _goals(indexes, seconds, micros, count)


def _goals(
    indexes: dict[str, ScoredIndex], seconds: dict[str, float], micros: Micros, count: int
) -> list[Result]:
    goals = []
    if SOPT in indexes:
        best, name = min((by_k[K], name) for name, by_k in micros.items() if name not in {SOPT, AUTO})
        goals = [
            Result(f"{SOPT}, d = 1, k = {K}", micros[SOPT][K], "µs", best, name, MICROS),
            Result(f"{SOPT}, memory", memory_of(indexes[SOPT]) / count, "bytes an interval", goal=BYTES),
            Result(f"{SOPT}, built", seconds[SOPT], "s", goal=SECONDS),
        ]
    if AUTO in indexes and len(indexes) > 1:
        ratios = {k: _ratio(micros, k) for k in micros[AUTO]}
        worst = max(ratios, key=lambda k: ratios[k])
        label = (
            f"auto by the best structure, d = 1, worst of k = {min(ratios)} to {max(ratios):,} (at {worst:,})"
        )
        goals.append(Result(label, ratios[worst], "times", goal=RATIO))
    return goals


def _ratio(micros: Micros, k: int) -> float:
    return micros[AUTO][k] / min(by_k[k] for name, by_k in micros.items() if name != AUTO)


def _built(make: Callable[[Scored], ScoredIndex], table: Scored) -> tuple[ScoredIndex, float]:
    """Build twice: the first time may have to compile."""
    make(table)
    begun = time.perf_counter()
    index = make(table)
    return index, time.perf_counter() - begun


def _check(table: Scored, indexes: dict[str, ScoredIndex], points: Floats, calls: tuple[int, ...]) -> None:
    """Assert that all structures give what the reference gives, by walks too."""
    some = points[:_COMPARED]
    for k in {*calls, 0}:
        wanted = [top_ranks(table, x, x, k) for x in some.tolist()]
        for name, index in indexes.items():
            found = index.top_many(some, some, k)
            for i, ranks in enumerate(wanted):
                assert np.array_equal(found.ranks[i, : found.counts[i]], ranks), f"{name}: point {i}, k {k}"
    for name, index in indexes.items():
        walk, wanted_ranks = index.walk(some[0], some[0]), top_ranks(table, some[0], some[0], 3)
        assert [walk.next() for _ in wanted_ranks] == wanted_ranks.tolist(), f"{name}: a walk"
