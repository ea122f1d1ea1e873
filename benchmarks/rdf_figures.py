"""The series of Figure 9 (a) to (h), and what they say of properties, which the paper does not vary."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.measure import memory_of, text_memory_of
from benchmarks.rdf_data import AUTO, FIRST_STAGE, GTOPSS, NAIVE, OPS, build, make, measure, say, traced
from benchmarks.results import Result
from headgate.workloads.rdf.triples import Paper

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from benchmarks.rdf_data import Plan

PAPER = Paper()
_TIMES = "ms a publication, median"
_MATRIX, _WHOLE = "gtopss, merged graph", "gtopss, with filters"
_ARRAYS, _TEXTS = "auto, arrays", "auto, with texts"


class Axes(NamedTuple):
    """What is varied."""

    counts: tuple[int, ...]
    """Subscriptions, for all ways to match."""
    more: tuple[int, ...]
    """Subscriptions, for `gtopss` and `auto` only."""
    weighed: tuple[int, ...]
    """Subscriptions whose memory is traced, which makes Python slow; the last is for overlap and size."""
    overlaps: tuple[float, ...]
    sizes: tuple[tuple[int, int], ...]
    ratios: tuple[float, ...]
    labels: tuple[int, ...]
    usual: int
    """Subscriptions where something else is varied."""


def measure_figures(axes: Axes, plan: Plan) -> list[Result]:
    """Measure all series."""
    found = [
        *_by_count(axes, plan),
        *_weigh(axes),
        *_by_size(axes, plan),
        *_by_ratio(axes, plan),
        *_by_labels(axes, plan),
    ]
    return sorted(found, key=lambda each: each.section.partition(":")[0])


def _by_count(axes: Axes, plan: Plan) -> list[Result]:
    """Measure (b), (g) and (h), which are of one run here."""
    found: dict[str, dict[str, float]] = {}
    matches: dict[str, float] = {}
    for count in (*axes.counts, *axes.more):
        names = (GTOPSS, OPS, NAIVE) if count in axes.counts else (GTOPSS,)
        case = make(PAPER, count, plan.publications)
        found[f"{count:,}"], matches[f"{count:,}"] = measure(case, names, plan.rounds, stage=True)
        say(f"{count:,} subscriptions")
    about = f"{plan.publications} publications of 90 triples"
    times = f"matching time by number of subscriptions, {_TIMES} of {about}"
    rows = _grid(f"Figure 9(b): {times}", found, (GTOPSS, FIRST_STAGE, AUTO))
    rows += [
        Result("matches a publication", value, "", section=rows[0].section, column=column)
        for column, value in matches.items()
    ]
    few = {column: row for column, row in found.items() if OPS in row}
    rows += _grid(f"Figure 9(g): G-ToPSS and OPS-style, {times}", few, (GTOPSS, OPS, AUTO))
    rows += _grid(f"Figure 9(h): OPS-style and naive, {times}", few, (OPS, NAIVE, AUTO))
    return rows


def _by_labels(axes: Axes, plan: Plan) -> list[Result]:
    """Measure how the ways to match compare if there are more properties, or fewer."""
    found = {}
    for labels in axes.labels:
        case = make(replace(PAPER, labels=labels), axes.usual, plan.publications)
        found[f"{labels} properties"], _ = measure(case, (GTOPSS, OPS, NAIVE), plan.rounds)
        say(f"{labels} properties")
    title = f"Figure 9(g), by number of properties instead: {axes.usual:,} subscriptions, {_TIMES}"
    return _grid(title, found, (GTOPSS, OPS, NAIVE, AUTO))


def _by_size(axes: Axes, plan: Plan) -> list[Result]:
    """Measure (e)."""
    found = {}
    for size in axes.sizes:
        case = make(replace(PAPER, subscription=size), axes.usual, plan.publications)
        found[_size(size)], _ = measure(case, (GTOPSS,), plan.rounds)
        say(f"{_size(size)}")
    title = f"Figure 9(e): matching time by size (nodes, edges), {axes.usual:,} subscriptions, {_TIMES}"
    return _grid(title, found, (GTOPSS, AUTO))


def _by_ratio(axes: Axes, plan: Plan) -> list[Result]:
    """Measure (f), with as many publications as the largest ratio allows."""
    publications = min(plan.publications, int(1 / max(axes.ratios)))
    found = {}
    for ratio in axes.ratios:
        workload = replace(PAPER, ratio=ratio, publications=publications)
        case = make(workload, axes.usual, publications)
        found[f"{100 * ratio:g} %"], _ = measure(case, (GTOPSS,), plan.rounds, stage=True)
        say(f"ratio {ratio:g}")
    title = (
        f"Figure 9(f): matching time by matching ratio, {axes.usual:,} subscriptions, "
        f"{_TIMES} of {publications} publications"
    )
    return _grid(title, found, (GTOPSS, FIRST_STAGE, AUTO))


def _weigh(axes: Axes) -> list[Result]:
    """Measure (a), (c) and (d)."""
    last = axes.weighed[-1]
    series = {
        "Figure 9(a): memory by number of subscriptions, MB": {
            f"{count:,}": (PAPER, count) for count in axes.weighed
        },
        f"Figure 9(c): memory by overlap, {last:,} subscriptions, MB": {
            f"{100 * overlap:g} %": (replace(PAPER, overlap=overlap), last) for overlap in axes.overlaps
        },
        f"Figure 9(d): memory by size (nodes, edges), {last:,} subscriptions, MB": {
            _size(size): (replace(PAPER, subscription=size), last) for size in axes.sizes
        },
    }
    rows = []
    for title, columns in series.items():
        found = {}
        for column, (workload, count) in columns.items():
            case = make(workload, count, 1)
            matrix, whole = traced(case)
            index = build(case, case.texts())
            found[column] = {
                _MATRIX: matrix,
                _WHOLE: whole,
                _ARRAYS: memory_of(index) / 1e6,
                _TEXTS: (memory_of(index) + text_memory_of(index)) / 1e6,
            }
            say(f"{title}, {column}")
        rows += _grid(title, found, (_MATRIX, _WHOLE, _ARRAYS, _TEXTS), "MB")
    return rows


def _size(size: tuple[int, int]) -> str:
    return f"({size[0]}, {size[1]})"


def _grid(
    title: str, found: Mapping[str, Mapping[str, float]], names: Iterable[str], unit: str = "ms"
) -> list[Result]:
    """Write a row for each name and a column for each setting."""
    return [
        Result(name, row[name], unit, section=title, column=column)
        for name in names
        for column, row in found.items()
        if name in row
    ]
