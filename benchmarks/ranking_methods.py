"""Boxes in several dimensions: Figures 7 to 9 and exact matching, by every method there is.

`dense` answers many events in one call, and is measured so: in the kernel. `auto` chooses it up to 16
dimensions, so it is measured so too, and once more as users call it, an event at a time. Others are called
once an event, which adds some microseconds of Python. Methods that take milliseconds are asked about fewer
events: as many as fit into a budget, the same for all that are compared, and two at least.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from benchmarks.graph_series import interleaved
from benchmarks.measure import memory_of
from benchmarks.ranking_data import EVERYONE, K, ask, make, models, plainly, prepared, same, say
from benchmarks.results import Result
from headgate.ranking.answers import RankedRows
from headgate.ranking.boxes.dense import DenseExact, DenseRelaxed
from headgate.ranking.boxes.methods import SCAN, DenseRows, methods
from headgate.ranking.boxes.threshold_kernels import EXACT, SUM
from tests.ranking.reference import exact, relaxed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from benchmarks.ranking_data import Data
    from headgate.ranking.answers import Answers
    from headgate.ranking.boxes.boxes import BoxQuery
    from headgate.ranking.boxes.methods import Ranker
    from headgate.ranking.boxes.threshold_kernels import Flags

    Floats = NDArray[np.float64]
    Micros = dict[str, float]

AUTO, SOPT = "auto", "sopt-r-tree"
SINGLE = "auto, one event a call"
THRESHOLD, INTERSECT = "threshold:", "intersect:"
MOST_BYTES = 2**30
"""A structure whose indexes of all dimensions would take more is left out, as in the paper at d = 8."""
RELAXED_MICROS = {2: 40, 4: 120, 8: 2_000}
EXACT_MICROS = {4: 100}
TIMES = 20
"""How many times as fast as the Threshold Algorithm `auto` shall be, at d = 4."""
_COMPARED = 3


class Plan(NamedTuple):
    """How much is measured."""

    boxes: int
    queries: int
    rounds: int
    budget: float
    """Seconds for one method that is slow."""
    reference: bool
    """Whether answers are compared with those of the reference too, which takes milliseconds a box."""


@dataclass(frozen=True)
class Series:
    """What was measured of one data set: µs an event by method, over all events and over few of them."""

    micros: Micros
    few: Micros
    events: int
    mbytes: dict[str, float]


def measure(data: Data, mode: str, plan: Plan, names: list[str]) -> Series:
    """Check and time methods; those that are slow over fewer events."""
    base, many = data.base(), Many(data, mode)
    wanted = [plainly(data.boxes, point, K, mode) for point in data.points[:_COMPARED]]
    rankers: dict[str, Ranker] = {}
    for name in names:
        if name == SCAN:
            continue
        structure = name.partition(":")[2]
        if structure == "segment-tree" and _segment_bytes(data) > MOST_BYTES:
            continue
        rankers[name] = prepared(base, mode, name)
        if isinstance(rankers[name], DenseRows):
            if name == AUTO:
                rankers[SINGLE] = rankers[name]
                _check(data, rankers[SINGLE], mode, wanted, f"{mode} {SINGLE}")
            rankers[name] = many
        _check(data, rankers[name], mode, wanted, f"{mode} {name}")
        if structure:
            say(f"  {mode}, d = {data.dimensions}: {name} built and checked")
    if plan.reference:
        _refer(data, rankers, mode)
    slow = {name: each for name, each in rankers.items() if ":" in name}
    quick = {name: each for name, each in rankers.items() if ":" not in name}
    micros = _time(data, quick, mode, plan.rounds, len(data.points))
    events = _affordable(data, slow, mode, plan)
    few = _time(data, quick, mode, 3 * plan.rounds, events)
    few |= _time(data, slow, mode, min(plan.rounds, 2), events)
    mbytes = {name: memory_of(each) / 1e6 for name, each in rankers.items()}
    return Series({**few, **micros}, few, events, mbytes)


def measure_figures_7_and_8(dimensions: tuple[int, ...], plan: Plan) -> tuple[list[Result], list[Result]]:
    """Time relaxed matching by dimensions; returns the figures, and how they stand to the goals."""
    found = {
        d: measure(make(plan.boxes, plan.queries, d), "relaxed", plan, methods("relaxed")) for d in dimensions
    }
    say("Figures 7 and 8")
    title = f"{plan.boxes:,} subscriptions, k = {K}; a blank takes over 1 GiB"
    rows = [
        Result(name, value, "µs", section=f"Figure 7: µs an event by dimensions, {title}", column=f"d = {d}")
        for d, series in found.items()
        for name, value in series.micros.items()
    ]
    rows += [
        Result(name, value / series.few[THRESHOLD + SOPT], "times", section=section, column=f"d = {d}")
        for section in (f"Figure 8: the same by the Threshold Algorithm over {SOPT}",)
        for d, series in found.items()
        for name, value in series.few.items()
    ]
    rows += [
        Result(
            name, value, "MB", section="Memory by dimensions, beside the subscriptions, MB", column=f"d = {d}"
        )
        for d, series in found.items()
        for name, value in series.mbytes.items()
    ]
    rows += [
        Result("events for the slow methods", series.events, "", section=rows[0].section, column=f"d = {d}")
        for d, series in found.items()
    ]
    return rows, _goals(found, "relaxed", RELAXED_MICROS)


def _goals(found: dict[int, Series], mode: str, most: Mapping[int, float], about: str = "") -> list[Result]:
    rows = []
    for d, series in found.items():
        if d in most and AUTO in series.micros:
            name = f"{mode}, auto, d = {d}, k = {K}{about}"
            baseline = {other: value for other, value in series.few.items() if ":" in other}
            versus = THRESHOLD + SOPT if mode == "relaxed" else min(baseline, key=lambda each: baseline[each])
            rows.append(Result(name, series.micros[AUTO], "µs", series.few[versus], versus, most[d]))
        if d == 4 and mode == "relaxed" and AUTO in series.few:
            ratio = series.few[THRESHOLD + SOPT] / series.few[AUTO]
            name = f"{mode}, auto, d = {d}: times as fast as {THRESHOLD}{SOPT}, same {series.events} events"
            rows.append(Result(name, ratio, "times", goal=TIMES, at_least=True))
    return rows


def measure_figure_9(skews: tuple[float, ...], dimensions: int, plan: Plan) -> list[Result]:
    """Time the Threshold Algorithm by how much intervals overlap, and `auto` beside it."""
    section = f"Figure 9: µs an event by skew_length, d = {dimensions}, {plan.boxes:,} subscriptions, k = {K}"
    names = [name for name in methods("relaxed") if name.startswith(THRESHOLD) or name == AUTO]
    rows = []
    for skew in skews:
        data = make(plan.boxes, plan.queries, dimensions, skew=skew)
        series = measure(data, "relaxed", plan, names)
        rows += [
            Result(name, value, "µs", section=section, column=f"{skew:g}")
            for name, value in series.few.items()
        ]
        rows.append(Result("events", series.events, "", section=section, column=f"{skew:g}"))
        say(f"Figure 9, skew {skew:g}")
    return rows


def measure_exact(dimensions: tuple[int, ...], plan: Plan) -> tuple[list[Result], list[Result]]:
    """Time exact matching with random scores, and with scores that follow the lengths."""
    section = f"Exact: µs an event, {plan.boxes:,} subscriptions, k = {K}"
    rows, goals = [], []
    for scores in ("random", "length"):
        found = {
            d: measure(make(plan.boxes, plan.queries, d, scores), "exact", plan, methods("exact"))
            for d in dimensions
        }
        say(f"exact, scores {scores}")
        rows += [
            Result(name, value, "µs", section=section, column=f"d = {d}, {scores}")
            for d, series in found.items()
            for name, value in series.micros.items()
        ]
        goals += _goals(found, "exact", EXACT_MICROS, f", scores {scores}")
    return rows, goals


def _segment_bytes(data: Data) -> float:
    """Guess what segment trees of all dimensions take: some 150 bytes an interval, as measured."""
    return 152.0 * data.boxes.size * data.dimensions


class Many:
    """Dense columns that answer many events in one call."""

    def __init__(self, data: Data, mode: str) -> None:
        boxes, shape = data.boxes, (data.boxes.size, data.dimensions)
        low, high, weight = (column.reshape(shape).T for column in (boxes.low, boxes.high, boxes.weight))
        self._relaxed = DenseRelaxed(low, high, weight) if mode == "relaxed" else None
        self._order = np.argsort(-boxes.score, kind="stable")
        self._score = boxes.score
        self._exact = DenseExact(low[:, self._order], high[:, self._order]) if mode == "exact" else None

    def top(self, asked: BoxQuery, k: int, how: int, gone: Flags) -> RankedRows:  # noqa: ARG002 - as all methods are asked
        """Find the best k for one event."""
        found = self.top_many(asked.x[None, :], k)
        row = found.numbers[0, : found.counts[0]].astype(np.int64)
        if self._relaxed is not None:
            return RankedRows(row, found.values[0, : found.counts[0]])
        return RankedRows(self._order[row], self._score[self._order[row]])

    def top_many(self, points: Floats, k: int) -> Answers:
        """Find the best k for each of many points."""
        if self._relaxed is not None:
            return self._relaxed.top_many(points, points, k)
        assert self._exact is not None
        return self._exact.top_many(points, points, k)


def _work(ranker: Ranker, points: Floats, mode: str) -> Callable[[], object]:
    """Return what asks for all points: by one call if the method has one for many events."""
    how = EXACT if mode == "exact" else SUM
    if isinstance(ranker, Many):
        return partial(ranker.top_many, points, K)
    asked = [ask(point) for point in points]
    return lambda: [ranker.top(each, K, how, EVERYONE) for each in asked]


def _time(data: Data, rankers: dict[str, Ranker], mode: str, rounds: int, events: int) -> Micros:
    """Return the microseconds an event by method; one round before the others is not counted."""
    some = data.points[:events]
    works = {name: _work(each, some, mode) for name, each in rankers.items()}
    seconds = interleaved(works, rounds)
    return {name: value / len(some) * 1e6 for name, value in seconds.items()}


def _affordable(data: Data, rankers: dict[str, Ranker], mode: str, plan: Plan) -> int:
    """Find how many events the slowest of some methods can be asked within the budget."""
    least = 2
    slowest = 0.0
    for each in rankers.values():
        work = _work(each, data.points[:least], mode)
        work()
        begun = time.perf_counter()
        work()
        slowest = max(slowest, (time.perf_counter() - begun) / least)
    wanted = int(plan.budget / max(slowest, 1e-7))
    return min(max(wanted, least), len(data.points))


def _check(data: Data, ranker: Ranker, mode: str, wanted: list[RankedRows], what: str) -> None:
    how = EXACT if mode == "exact" else SUM
    for point, rows in zip(data.points, wanted, strict=False):
        same(ranker.top(ask(point), K, how, EVERYONE), rows, what)


def _refer(data: Data, rankers: dict[str, Ranker], mode: str) -> None:
    """Assert that all methods give what the reference gives, to the last bit."""
    how = EXACT if mode == "exact" else SUM
    boxes = models(data.boxes, data.names)
    for point in data.points[:_COMPARED]:
        event = dict(zip(data.names, point.tolist(), strict=True))
        wanted = (
            exact(boxes, event, K) if mode == "exact" else relaxed(boxes, event, K, dimensions=data.names)
        )
        for name, each in rankers.items():
            found = each.top(ask(point), K, how, EVERYONE)
            pairs = list(zip(found.rows.tolist(), found.values.tolist(), strict=True))
            assert pairs == [(best.subscription, best.value) for best in wanted], f"{mode} {name}"
