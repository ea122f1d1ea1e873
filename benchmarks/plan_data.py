"""What the benchmarks of plans share: views, what they give, the graphs of them, and checks."""

from __future__ import annotations

import gc
import sys
import time
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from benchmarks.results import Result
from benchmarks.workload_statistics import measure_views
from headgate.core.event import XML, Event
from headgate.plan.costs import costs_of
from headgate.plan.graphs.cycles import without_cycles
from headgate.plan.graphs.embeddings import embedding_graph
from headgate.plan.graphs.rewritability import Search, find_rewritings
from headgate.plan.latency.latency import loga
from headgate.plan.model import Costs, Rewritings, same_capacities
from headgate.plan.program.program import solve
from headgate.plan.running.saved_plan import disseminate
from headgate.plan.running.validate import problems
from headgate.workloads.xml.xmark import XMark
from headgate.xml.answers.answers import PreparedPattern
from headgate.xml.events.reading import read_document
from headgate.xml.events.subject import Subject
from headgate.xml.views.views import XmlViews

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from headgate.plan.model import Capacities, Embeddings, Plan
    from headgate.xml.language.model import Pattern

SEED = 1
K = 30
WAYS = 4
"""Rewritings of a view in small instances, at most."""
MARGIN = 1.2
"""What the source may feed, times the views that cannot be rewritten."""


class Graphs(NamedTuple):
    """The graphs of a set of views, and what they were made of."""

    embeddings: Embeddings
    """As found, with cycles."""
    removed: int
    rewritings: Rewritings


class Case(NamedTuple):
    """A set of views that is planned for."""

    statistics: dict[str, float]
    graphs: Graphs
    costs: Costs
    seconds: dict[str, float]
    """What each step took."""

    @property
    def views(self) -> int:
        """Count the views."""
        return len(self.graphs.rewritings.offsets) - 1

    @property
    def rewritable(self) -> int:
        """Count the views that others can feed."""
        return int(np.count_nonzero(np.diff(self.graphs.rewritings.offsets)))

    def capacities(self, bound: float) -> Capacities:
        """Give all views the same bound, and the source what must be fed by it and a fifth more."""
        return same_capacities(
            self.views, bound, source_fan_out=float(int(MARGIN * (self.views - self.rewritable)))
        )


def say(line: str) -> None:
    """Tell how far the benchmark is."""
    print(line, file=sys.stderr, flush=True)


def make_case(views: int, sampled: int, workload: XMark | None = None) -> Case:
    """Draw views, estimate what they give, and make the graphs."""
    workload = XMark() if workload is None else workload
    seconds = {}
    begun = time.perf_counter()
    patterns = workload.views(views, SEED)
    seconds["generation"] = time.perf_counter() - begun
    begun = time.perf_counter()
    rows, sizes = estimate(patterns, workload.documents(np.arange(sampled), SEED))
    seconds["estimate"] = time.perf_counter() - begun
    say(f"{views:,} views, {seconds['generation']:.1f} s; estimated, {seconds['estimate']:.1f} s")
    # A full collection takes as long as all that follows; whether one is due would be luck.
    gc.collect()
    begun = time.perf_counter()
    laid = XmlViews.build(patterns)
    found = embedding_graph(laid)
    seconds["embeddings"] = time.perf_counter() - begun
    say(f"embedding graph: {len(found.sources):,} edges, {seconds['embeddings']:.1f} s")
    begun = time.perf_counter()
    acyclic, removed = without_cycles(found, needed=laid.needed, sizes=sizes)
    ways = find_rewritings(laid.needed, acyclic, Search(K), weights=sizes).rewritings
    seconds["rewritings"] = time.perf_counter() - begun
    say(f"rewritability graph: {len(ways.input_offsets) - 1:,} rewritings, {seconds['rewritings']:.1f} s")
    statistics = measure_views(patterns)
    return Case(statistics, Graphs(found, removed, ways), costs_of(ways, rows, sizes), seconds)


def small_case(case: Case, views: int) -> Case:
    """Take so many views: the one with the most rewritings, what they need, what that needs, and so on.

    A few views drawn at random have next to nothing in common. Each keeps a few rewritings: with all of them
    the best plan cannot be proved to be it.
    """
    ways, costs = case.graphs.rewritings, case.costs
    counts = np.diff(ways.offsets)
    taken: dict[int, None] = {}
    waiting = np.argsort(-counts, kind="stable").tolist()[::-1]
    while len(taken) < min(views, case.views):
        view = waiting.pop()
        if view not in taken:
            taken[view] = None
            begin, end = ways.input_offsets[ways.offsets[[view, view + 1]]]
            waiting.extend(reversed(list(dict.fromkeys(ways.inputs[begin:end].tolist()))))
    kept = np.array(sorted(taken), np.int64)
    place = np.full(case.views, -1, np.int32)
    place[kept] = np.arange(len(kept))
    inside = np.logical_and.reduceat(place[ways.inputs] >= 0, ways.input_offsets[:-1])
    numbers = np.flatnonzero(inside & np.repeat(place >= 0, counts))
    owners = np.repeat(np.arange(case.views), counts)[numbers]
    first = np.searchsorted(owners, owners)
    numbers = numbers[np.arange(len(numbers)) - first < WAYS]
    uses = np.concatenate([np.arange(*ways.input_offsets[[each, each + 1]]) for each in numbers])
    part = Rewritings(
        np.append(
            0,
            np.cumsum(
                np.bincount(place[np.repeat(np.arange(case.views), counts)[numbers]], minlength=len(kept))
            ),
        ),
        np.append(0, np.cumsum(np.diff(ways.input_offsets)[numbers])),
        place[ways.inputs[uses]],
    )
    by = {"utilization": numbers, "latency": numbers, "joining": numbers, "sent": uses, "sending": uses}
    own = Costs(
        *(column[by.get(name, kept)] for name, column in costs._asdict().items() if column is not None)
    )
    return Case(case.statistics, case.graphs._replace(rewritings=part), own, case.seconds)


def estimate(
    patterns: Sequence[Pattern], documents: Sequence[str]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Count the rows and bytes that each view gives for a document, on average."""
    places: dict[Pattern, int] = {}
    of = np.array([places.setdefault(pattern, len(places)) for pattern in patterns], np.int64)
    rows, sizes = np.zeros(len(places)), np.zeros(len(places))
    read = [read_document(text) for text in documents]
    for pattern, number in places.items():
        prepared = PreparedPattern(pattern)
        for document in read:
            given = prepared.ask(Subject(document))
            if given is not None:
                rows[number] += given.rows()
                sizes[number] += given.nbytes
    return rows[of] / len(read), sizes[of] / len(read)


def check_plan(title: str, plan: Plan, case: Case, capacities: Capacities) -> None:
    """Stop the benchmark if a plan is not valid."""
    wrong = problems(plan, case.graphs.rewritings, case.costs, capacities)
    if wrong:
        raise AssertionError(f"{title}: {wrong[0]}, and {len(wrong) - 1} more")


def check_delivery(count: int, documents: int) -> list[Result]:
    """Disseminate documents as a plan says; every view must get what the document itself would give it."""
    case = make_case(count, 1)
    ways = case.graphs.rewritings
    capacities = case.capacities(np.inf)
    plan = loga(solve(ways, case.costs, capacities).plan, ways, case.costs, capacities).plan
    check_plan("delivery", plan, case, capacities)
    views = XmlViews.build(XMark().views(count, SEED))
    source, sent = [], []
    for number, text in enumerate(XMark().documents(np.arange(100, 100 + documents), SEED)):
        event = Event(f"e{number}", text, content_type=XML)
        got = disseminate(views, plan, ways, event)
        for view, result in enumerate(got.results):
            if result != views.result(view, event):
                raise AssertionError(f"view {view} does not get for document {number} what it should")
        source.append(got.source_bytes)
        sent.append(got.bytes)
    section = f"Delivery by the plan, {documents} documents, {count:,} views: every result as it should be"
    fed = 100 * np.count_nonzero(plan.chosen >= 0) / count
    return [
        Result("views not fed by the publisher", float(fed), "%", section=section),
        Result("sent by the publisher, a document", float(np.mean(source)), "bytes", section=section),
        Result("sent by other views, a document", float(np.mean(sent)), "bytes", section=section),
    ]


def warm() -> None:
    """Compile whatever is compiled, so that no time holds it."""
    case = make_case(1_000, 1)
    ways = case.graphs.rewritings
    for bound in (np.inf, 3.0):
        capacities = case.capacities(bound)
        plan = solve(ways, case.costs, capacities).plan
        for swaps in (False, True):
            loga(plan, ways, case.costs, capacities, swaps=swaps)
        check_plan("warming up", plan, case, capacities)
