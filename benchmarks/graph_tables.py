"""The paper's tables and what its text says in numbers, beside the same of the generated exchange."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.graph_degrees import Degrees
from benchmarks.graph_make import SEED
from benchmarks.results import Result
from benchmarks.workload_statistics import (
    PAPER_SCALES,
    PAPER_SELECTIVITIES,
    PAPER_SHAPE,
    Reach,
    measure_reach,
    measure_shape,
)
from headgate.workloads.graphs.exchange import Exchange

if TYPE_CHECKING:
    from collections.abc import Mapping

_ROWS = {
    "valid": "N_V, valid",
    "reached": "N_R, reachable",
    "passed": "N_R ∩ N_V, results",
    "edges": "out(N_R ∩ N_V), edges",
}


def measure_table_1() -> list[Result]:
    """Print Table 1."""
    here, section = measure_shape(Exchange(), SEED), "Table 1: the graph"
    return [
        Result(name, float(value), "", section=section, column=column)
        for name, paper in PAPER_SHAPE.items()
        for column, value in (("here", here[name]), ("paper", paper))
    ]


def measure_tables_2_and_3(
    selectivities: tuple[str, ...], scales: tuple[int, ...], events: int
) -> tuple[list[Result], dict[tuple[str, int], float]]:
    """Print Tables 2 and 3; returns the results an event too, which evaluators must find."""
    found = {
        (selectivity, scale): measure_reach(Exchange(scale, selectivity), events, SEED)
        for selectivity, scale in dict.fromkeys(
            [*((each, 1) for each in selectivities), *(("1/4", each) for each in scales)]
        )
    }
    by_selectivity = {each: found[each, 1] for each in selectivities}
    by_scale = {f"size {each}": found["1/4", each] for each in scales}
    paper_scales = {f"size {each}": PAPER_SCALES[each] for each in scales}
    title = f", mean of {events:,} events"
    rows = _table(f"Table 2: sets by selectivity{title}", by_selectivity, PAPER_SELECTIVITIES)
    by_degrees = {f"size {each}": Degrees(each, "1/4").reach(events, SEED) for each in scales}
    rows += _table(f"Table 3: sets by size, selectivity 1/4{title}", by_scale, paper_scales, by_degrees)
    return rows, {key: reach.passed for key, reach in found.items()}


def _table(
    section: str,
    here: Mapping[str, Reach],
    paper: Mapping[str, Reach],
    by_degrees: Mapping[str, Reach] | None = None,
) -> list[Result]:
    sides = {"here": here, "paper": paper}
    if by_degrees is not None:
        sides["here, edges drawn by mean degrees alone"] = by_degrees
    return [
        Result(f"{title}: {who}", getattr(values[column], field), "", section=section, column=column)
        for field, title in _ROWS.items()
        for who, values in sides.items()
        for column in here
    ]


def compare_text(match_micros: float, first: Mapping[str, Mapping[str, float]]) -> list[Result]:
    """Print what the text of section 4 says in numbers; `first` is µs by selectivity and evaluator."""
    section = "What the paper's text says in numbers"
    rows = [("match() of one filter without the index, µs", match_micros, 20.0)]
    rows += [
        (
            f"selectivity {selectivity}: first result, Figure {figure} before the index baseline by, %",
            100 * (1 - micros[name] / micros["index-then-bfs"]),
            50.0,
        )
        for figure, name in ((6, "general"), (8, "scc-skip"))
        for selectivity, micros in first.items()
    ]
    return [
        Result(name, value, "", section=section, column=column)
        for name, here, paper in rows
        for column, value in (("here", here), ("paper", paper))
    ]
