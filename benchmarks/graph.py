"""Matching through a graph of intermediaries: the tables and figures of Broder et al., WWW 2011, and more."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.graph_counted import measure_counted
from benchmarks.graph_kernels import ASKED, ASKED_WORDS, DOUBTED, DOUBTED_WORDS, HELD
from benchmarks.graph_make import acyclic, make
from benchmarks.graph_series import AUTO, BFS, CLEARING, INDEX, Evaluation, by_postings, measure
from benchmarks.graph_social import held, measure_social
from benchmarks.graph_tables import compare_text, measure_table_1, measure_tables_2_and_3
from benchmarks.graph_ways import measure_ways
from benchmarks.results import Result
from headgate.workloads.graphs.exchange import Exchange

if TYPE_CHECKING:
    from collections.abc import Iterable


class Plan(NamedTuple):
    """What a size of the benchmark measures."""

    selectivities: tuple[str, ...]
    scales: tuple[int, ...]
    events: int
    compared: int
    """Events whose results are compared node by node."""
    slow: int
    """Events for the evaluators in Python."""
    rounds: int
    social: tuple[int, int, int]
    """Nodes, edges, events."""


class Setting(NamedTuple):
    """An exchange, with or without cycles."""

    selectivity: str
    scale: int = 1
    vocabulary: int | None = None
    straight: bool = False

    @property
    def label(self) -> str:
        """Say what differs from the settings beside it."""
        return self.selectivity if self.scale == 1 else f"{self.selectivity}, size {self.scale}"


class Took(NamedTuple):
    """Microseconds a query by evaluator, for all results and for the first, and what was measured."""

    total: dict[str, float]
    first: dict[str, float]
    evaluation: Evaluation

    def micros(self, what: str) -> dict[str, float]:
        """Return the figures for ALL or FIRST."""
        return self.total if what == ALL else self.first


ALL, FIRST = "all results", "first result"
SIZES = {
    "quick": Plan(("1/16", "1/4", "1"), (1,), 50, 50, 1, 1, (2_000, 20_000, 50)),
    "full": Plan(
        ("1/16", "1/8", "1/4", "1/2", "1"),
        (1, 2, 3, 4, 5),
        1_000,
        20,
        10,
        7,
        (1_000_000, 10_000_000, 200),
    ),
}
VOCABULARY = 10_000
MIDDLE, EVERYTHING = "1/4", "1"
MICROS = {EVERYTHING: 30, MIDDLE: 6}
"""For all results of a query by `auto`, by selectivity."""
FIRST_MICROS = 5
"""For the first result, at any selectivity."""


def run(size: str) -> list[Result]:
    """Measure the exchange by selectivity and size, without cycles, with more values; a social network."""
    plan = SIZES[size]
    # First, while little else is in memory.
    social, built = measure_social(*plan.social, rounds=min(plan.rounds, 3))
    _say("social network")
    tables, wanted = measure_tables_2_and_3(plan.selectivities, plan.scales, plan.events)
    _say("tables")
    settings = [Setting(each) for each in plan.selectivities]
    larger = [Setting(MIDDLE, scale) for scale in plan.scales if scale > 1]
    plain = {each: _take(each, plan, wanted[each.selectivity, each.scale]) for each in [*settings, *larger]}
    straight = {each: _take(each._replace(straight=True), plan) for each in plain}
    many = {
        each: _take(each._replace(vocabulary=VOCABULARY), plan)
        for each in settings
        if each.selectivity != EVERYTHING
    }
    middle = plain[Setting(MIDDLE)]
    by_size = {each: took for each, took in plain.items() if each.selectivity == MIDDLE}
    results = [*measure_table_1(), *tables]
    for title, took in (
        ("Figures 12 to 14, by selectivity", {each: plain[each] for each in settings}),
        ("Figures 15 and 16, by size at 1/4", by_size),
        ("Without cycles", straight),
        (f"{VOCABULARY:,} values an attribute", many),
    ):
        results += _grids(title, took)
    alone = middle.evaluation.match_alone() * 1e6
    results += compare_text(alone, {each.label: plain[each].first for each in settings})
    results += _goals(plain, "")
    results += _goals(many, f", {VOCABULARY:,} values an attribute")
    results += _doubts(many)
    if size == "full":
        # It compiles for longer than all else of the small size takes.
        results += measure_counted({each: plain[Setting(each)].evaluation for each in MICROS}, plan.rounds)
    results += social
    results += _weights([*by_size.items(), *many.items()])
    results += built
    results += measure_ways(middle.evaluation.ready, "exchange, 1/4")
    # What takes microseconds says nothing about so few events.
    return results if size == "full" else [replace(result, goal=None) for result in results]


def _take(setting: Setting, plan: Plan, wanted: float | None = None) -> Took:
    """Check and time all evaluators; `wanted` is how many results an event has, by another program."""
    exchange = Exchange(setting.scale, setting.selectivity, setting.vocabulary)
    ready = make(exchange, plan.events, acyclic) if setting.straight else make(exchange, plan.events)
    evaluation = Evaluation(ready)
    found = evaluation.check(plan.compared)
    if wanted is not None and abs(found - wanted) > 1e-6:
        raise AssertionError(f"{setting}: {found} results an event, and a plain search has {wanted}")
    total, first = measure(evaluation, plan.rounds, alone=not setting.straight)
    if setting.scale == 1 and len(ready.filters) and not setting.straight and setting.vocabulary is None:
        more = by_postings(ready, plan.slow)
        total, first = total | more[0], first | more[1]
    _say(str(setting))
    return Took(total, first, evaluation)


def _grids(title: str, took: dict[Setting, Took]) -> list[Result]:
    """Write a row for each evaluator and a column for each setting: all results, then the first."""
    return [
        Result(name, micros, "µs", section=f"{title}: {what}, µs a query", column=setting.label)
        for what in (ALL, FIRST)
        for setting, each in took.items()
        for name, micros in each.micros(what).items()
    ]


def _goals(took: dict[Setting, Took], about: str) -> list[Result]:
    """Hold `auto` to the goals, and against the baselines of the same run."""
    rows = []
    for setting, each in took.items():
        most = MICROS.get(setting.selectivity) if setting.scale == 1 else None
        for what, goal in ((ALL, most), (FIRST, FIRST_MICROS)):
            micros = each.micros(what)
            rows.append(
                Result(
                    f"{setting.label}: auto, {what}",
                    micros[AUTO],
                    "µs",
                    micros[INDEX],
                    INDEX,
                    None if about else goal,
                    section=f"Goals{about}",
                )
            )
    for setting, each in took.items():
        ratios = {
            f"{what}, {baseline} by auto": each.micros(what)[baseline] / each.micros(what)[AUTO]
            for what in (ALL, FIRST)
            for baseline in (INDEX, BFS)
        }
        # A search for one result is so short that clearing room for all of them is up to half of it.
        ratios[f"{FIRST}, {BFS} less clearing, by auto"] = (
            each.first[BFS] - each.first[CLEARING]
        ) / each.first[AUTO]
        section = f"How many times as fast as the baselines{about}"
        rows += [
            Result(name, ratio, "times", goal=1, at_least=True, section=section, column=setting.label)
            for name, ratio in ratios.items()
        ]
    return rows


def _doubts(took: dict[Setting, Took]) -> list[Result]:
    """Say how often planes cannot tell, where buckets hold more than one value."""
    rows = []
    for setting, each in took.items():
        counted = each.evaluation.doubts()
        figures = {
            "words asked for, a query": counted[ASKED_WORDS] / each.evaluation.events,
            "of them with a filter left open, %": 100 * counted[DOUBTED_WORDS] / counted[ASKED_WORDS],
            "filters asked for, a query": counted[ASKED] / each.evaluation.events,
            "of them left open, %": 100 * counted[DOUBTED] / counted[ASKED],
            "of those left open that hold, %": 100 * counted[HELD] / max(1, counted[DOUBTED]),
        }
        section = f"{VOCABULARY:,} values an attribute: what planes leave to `decide` in a walk"
        rows += [
            Result(name, float(value), "", section=section, column=setting.label)
            for name, value in figures.items()
        ]
    return rows


def _weights(took: Iterable[tuple[Setting, Took]]) -> list[Result]:
    """Say what the arrays of some settings hold, and how long they took to build."""
    rows = []
    for setting, each in took:
        if setting.selectivity == MIDDLE and setting.scale in {1, 5}:
            ready = each.evaluation.ready
            values = "" if len(ready.index.base.planes.part) == 0 else f", {VOCABULARY:,} values an attribute"
            title = f"exchange, {setting.label}{values}"
            rows += held(ready, title)
            seconds = sum(ready.seconds.values())
            rows.append(Result(f"{title}: built", seconds, "s", section="Building"))
    return rows


def _say(text: str) -> None:
    print(f"{text}: done, load {os.getloadavg()[0]:.1f}", file=sys.stderr, flush=True)
