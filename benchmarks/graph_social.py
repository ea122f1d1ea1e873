"""A social network of a million persons: building, memory, and matching where an event reaches few or all."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from benchmarks.graph_make import draw, index_filters, number
from benchmarks.graph_series import Evaluation, measure
from benchmarks.results import Result
from headgate.core.plane_build import Conjunctions
from headgate.workloads.graphs.social import Social

if TYPE_CHECKING:
    from benchmarks.graph_make import Drawn, Ready

MOST_SECONDS = 60
SELECTIVITY = "1/16"
EVERYTHING = "1"
FEW = 4
"""Events where each of them reaches nearly everyone."""


def measure_social(nodes: int, edges: int, events: int, rounds: int) -> tuple[list[Result], list[Result]]:
    """Build and match; returns the rows of matching, and those of memory and building."""
    title = f"social, {nodes:,} nodes, {edges:,} edges"
    workload = Social(nodes, edges, SELECTIVITY)
    drawn = draw(workload)
    reset_peak()
    built, seconds = number(drawn)
    ready = index_filters(workload, drawn, built, events, seconds)
    building = peak_gib()
    rows = [
        Result(f"{title}: {step}", value, "s", section="Building") for step, value in ready.seconds.items()
    ]
    rows += [
        Result(f"{title}: built", sum(ready.seconds.values()), "s", goal=MOST_SECONDS, section="Building"),
        Result(f"{title}: peak resident memory while building", building, "GiB", section="Building"),
        *held(ready, title),
    ]
    reset_peak()
    followers = np.diff(built.arrays.child_start)
    popular = np.argsort(-followers, kind="stable")[:events].astype(np.int32)
    section = f"Social network, {nodes:,} nodes and {edges:,} edges, µs an event"
    found = _match(ready, f"{SELECTIVITY}, anyone's posts", section, rounds)
    found += _match(replace(ready, source=popular), f"{SELECTIVITY}, the most followed", section, rounds)
    rows.append(Result(f"{title}: peak while matching", peak_gib(), "GiB", section="Building"))
    del ready, built
    found += _match(_without_filters(workload, drawn), f"{EVERYTHING}, no filters", section, rounds)
    return found, rows


def _without_filters(workload: Social, drawn: Drawn) -> Ready:
    nothing: Any = pa.nulls(workload.node_count, pa.large_string())
    drawn = drawn._replace(parts=replace(drawn.parts, node_filter=nothing))
    built, seconds = number(drawn)
    everything = Social(workload.node_count, workload.edge_count, EVERYTHING)
    return index_filters(everything, drawn, built, FEW, seconds)


def _match(ready: Ready, column: str, section: str, rounds: int) -> list[Result]:
    evaluation = Evaluation(ready)
    results = evaluation.check(1)
    total, first = measure(evaluation, rounds, alone=False)
    figures = {
        "results an event": results,
        **{f"{name}, all results": value for name, value in total.items()},
        **{f"{name}, first result": value for name, value in first.items()},
    }
    return [Result(name, value, "µs", column=column, section=section) for name, value in figures.items()]


def held(ready: Ready, title: str) -> list[Result]:
    """Say what the arrays hold: what there is for each node, for each edge, and the planes."""
    arrays, planes = ready.index.base.arrays, ready.index.base.planes
    by_edge = (arrays.child, arrays.child_cost, arrays.row_word, arrays.row_bits)
    edges = sum(array.nbytes for array in by_edge)
    nodes = sum(array.nbytes for array in arrays) - edges
    filters = max(1, len(ready.filters))
    checking = sum(getattr(planes, name).nbytes for name in Conjunctions._fields if name != "line_codes")
    rest = sum(array.nbytes for array in planes) - checking
    figures = {
        "graph, arrays by node": (nodes / arrays.vertices, "bytes a node"),
        "graph, arrays by edge": (edges / max(1, len(arrays.child)), "bytes an edge"),
        "planes": (rest / filters, "bytes a filter"),
        "checks beside the planes": (checking / filters, "bytes a filter"),
    }
    return [
        Result(f"{title}: {name}", value, unit, section="Memory") for name, (value, unit) in figures.items()
    ]


def reset_peak() -> None:
    """Let the peak of resident memory begin here."""
    Path("/proc/self/clear_refs").write_text("5", "ascii")


def peak_gib() -> float:
    """Return the most memory that was resident since."""
    status = Path("/proc/self/status").read_text("ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) / 2**20
