"""Every evaluator over the same events: that all give the same, and what each takes, all and first results.

Figures are the mean over the events, in the kernel: events are encoded before, and a loop over all of them is
one call from Python. The quickest of some rounds counts, and a round has each evaluator once, so that what
else runs on the machine hits all alike. A first result is any node, as in the paper; an event without one
takes what it takes to know.
"""

from __future__ import annotations

import time
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from benchmarks import graph_evaluators, graph_kernels
from headgate import Event
from headgate.core.planes import Cells
from headgate.graph.walk import walking
from headgate.papers import evaluators

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from benchmarks.graph_make import Ready

    WalkEvents = Callable[..., tuple[int, int]]

AUTO, INDEX, BFS = "auto", "index-then-bfs", "bfs-then-match"
PLANES = "index alone: planes, all words"
POSTINGS = "index alone: match_batch of the record room, from Arrow to Arrow"
MATCHING = "match() of what bfs-then-match comes to, by itself"
CLEARING = "clearing sets, a part of all but auto"
SLOW = ("general", "scc-skip")
BY_NEXT = " over RecordIndex.next, in Python"
"""The paper's setting: an index by postings that is asked for one entity after the other."""


class Evaluation:
    """Room for all evaluators over the events of one graph."""

    def __init__(self, ready: Ready) -> None:
        base = ready.index.base
        self.ready, self.arrays, self.planes = ready, base.arrays, base.planes
        self.overlay = walking.unchanged(self.arrays)
        words, axes = self.arrays.words, len(self.planes.axis_line)
        self.given = np.zeros(words, np.uint64)
        everyone = np.full(words, ~np.uint64(0))
        self.question = walking.Question(
            self.arrays, self.overlay, self.planes, ready.cells, self.given, everyone
        )
        self.scratch = walking.scratch(words, axes)
        self.sets = graph_evaluators.sets(words, int(self.arrays.component[-1]) + 1, axes)
        self.out = np.zeros(64 * words + 64, np.int64)
        self.events = len(ready.source)
        self.names = (
            AUTO,
            *(name for name in graph_evaluators.NUMBERS if base.acyclic or not name.startswith("dag")),
        )
        every = np.zeros(self.events, np.int64)
        self.evaluate("bfs-then-match", len(self.out), every)
        self.all = np.zeros(int(every.sum()) + 64, np.int64)

    def total(
        self, name: str, counts: NDArray[np.int64], walk_events: WalkEvents = walking.walk_events
    ) -> None:
        """Find all results of all events."""
        if name != AUTO:
            self.evaluate(name, len(self.out), counts)
            return
        done = walk_events(*self.question, self.ready.source, 0, False, self.scratch, self.all, counts)
        assert done == (self.events, walking.DONE)

    def first(self, name: str, counts: NDArray[np.int64]) -> None:
        """Find the first result of each event."""
        if name != AUTO:
            self.evaluate(name, 1, counts)
            return
        graph_kernels.first_results(
            *self.question,
            self.ready.source,
            self.scratch,
            self.out,
            1,
            counts,
        )

    def evaluate(self, name: str, limit: int, counts: NDArray[np.int64]) -> None:
        """Run one of the paper's evaluators."""
        self._run(name, self.ready.cells, self.ready.source, limit, counts)

    def _run(
        self, name: str, cells: Cells, source: NDArray[np.int32], limit: int, counts: NDArray[np.int64]
    ) -> None:
        graph_evaluators.evaluate(
            graph_evaluators.NUMBERS[name],
            self.arrays,
            self.planes,
            cells,
            self.given,
            source,
            self.sets,
            self.out,
            limit,
            counts,
        )

    def index_alone(self) -> int:
        """Match all filters for all events by planes."""
        return graph_kernels.match_words(self.planes, self.ready.cells, self.events, self.scratch.rows)

    def match_alone(self) -> float:
        """Match filters one by one for some events; returns the seconds of one match."""
        events, filters = min(self.events, 100), len(self.ready.filters)
        works: dict[str, Callable[[], object]] = {
            "": lambda: graph_kernels.match_alone(self.planes, self.ready.cells, events)
        }
        return interleaved(works, 3)[""] / events / filters

    def reached(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """List the positions that events come to, those of one event behind those of the one before."""
        start, none = np.zeros(self.events + 1, np.int64), np.zeros(0, np.int64)
        graph_kernels.list_reached(self.question, self.ready.source, self.scratch, none, start)
        found = np.zeros(int(start[-1]), np.int64)
        graph_kernels.list_reached(self.question, self.ready.source, self.scratch, found, start)
        return start, found

    def doubts(self) -> NDArray[np.int64]:
        """Count what planes are asked and leave open; see `graph_kernels`."""
        found = np.zeros(5, np.int64)
        graph_kernels.count_doubts(
            self.question,
            self.ready.source,
            self.scratch,
            self.out,
            found,
        )
        return found

    def check(self, whole: int) -> float:
        """Assert that all evaluators agree, for the first events on the very nodes; returns the mean."""
        wanted = np.zeros(self.events, np.int64)
        self.total(AUTO, wanted)
        ends = np.cumsum(wanted)
        for name in self.names:
            counts = np.zeros(self.events, np.int64)
            self.total(name, counts)
            assert np.array_equal(counts, wanted), name
            self.first(name, counts)
            # A walk gives the results of a word together.
            assert np.array_equal(counts > 0, wanted > 0), name
        for e in range(min(whole, self.events)):
            own = np.sort(self.all[ends[e] - wanted[e] : ends[e]])
            for name in self.names[1:]:
                assert np.array_equal(self._one(name, e), own), (name, e)
        start, reached = self.reached()
        held = graph_kernels.match_reached(self.planes, self.ready.cells, self.overlay.open, start, reached)
        assert held == wanted.sum()
        return float(wanted.mean())

    def _one(self, name: str, e: int) -> NDArray[np.int64]:
        """Find the results of one event, sorted."""
        cells, count = self.ready.cells, np.zeros(1, np.int64)
        own = Cells(
            cells.codes[e : e + 1],
            np.ascontiguousarray(cells.multi_start[:, e : e + 2]),
            cells.multi_codes,
        )
        self._run(name, own, self.ready.source[e : e + 1], len(self.out), count)
        return np.sort(self.out[: count[0]])


def interleaved(works: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Return the seconds of the quickest run of each, after one that is not counted."""
    for work in works.values():
        work()
    found = dict.fromkeys(works, np.inf)
    for _ in range(rounds):
        for name, work in works.items():
            begun = time.perf_counter()
            work()
            found[name] = min(found[name], time.perf_counter() - begun)
    return found


def measure(
    evaluation: Evaluation, rounds: int, *, alone: bool = True
) -> tuple[dict[str, float], dict[str, float]]:
    """Time all evaluators, and the index `alone`; returns µs an event for all results, and for the first."""
    counts = np.zeros(evaluation.events, np.int64)
    works: dict[str, Callable[[], object]] = {}
    for name in evaluation.names:
        works[f"total {name}"] = partial(evaluation.total, name, counts)
        works[f"first {name}"] = partial(evaluation.first, name, counts)
    works[f"first {CLEARING}"] = lambda: graph_kernels.clear_sets(evaluation.sets, evaluation.events)
    ready = evaluation.ready
    if alone and len(ready.filters):
        start, reached = evaluation.reached()
        works[f"total {MATCHING}"] = lambda: graph_kernels.match_reached(
            evaluation.planes, ready.cells, evaluation.overlay.open, start, reached
        )
        works[f"total {PLANES}"] = evaluation.index_alone
        works[f"total {POSTINGS}"] = lambda: ready.filters.match_batch(ready.events)
    seconds = interleaved(works, rounds)
    total, first = (
        {
            name.removeprefix(what): value / evaluation.events * 1e6
            for name, value in seconds.items()
            if name.startswith(what)
        }
        for what in ("total ", "first ")
    )
    return total, first


def by_postings(ready: Ready, events: int) -> tuple[dict[str, float], dict[str, float]]:
    """Time the paper's evaluators as it prints them, over an index of postings, in Python."""
    view = ready.index.view
    some = [Event.from_row(row) for row in ready.events.slice(0, events).to_pylist()]

    def run(name: str, most: int | None) -> None:
        for event in some:
            for _ in islice(evaluators.evaluate(name, view, event), most):
                pass

    total, first = (
        interleaved({name + BY_NEXT: partial(run, name, most) for name in SLOW}, 1) for most in (None, 1)
    )
    return (
        {name: value / len(some) * 1e6 for name, value in total.items()},
        {name: value / len(some) * 1e6 for name, value in first.items()},
    )
