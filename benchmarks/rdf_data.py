"""What the benchmarks of RDF share: filters and events, all ways to match them, and timing."""

from __future__ import annotations

import gc
import os
import sys
import time
import tracemalloc
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyoxigraph

from headgate.core.event import N_TRIPLES, Event
from headgate.core.subscription import SPARQL, Subscription
from headgate.papers.gtopss import GToPSS
from headgate.papers.matchers import MATCHERS
from headgate.rdf.events.reading import make_graph
from headgate.rdf.index.index import RdfIndex
from headgate.rdf.language.model import RDFS, SUBCLASS, TYPE
from headgate.rdf.language.parse import parse_filter
from headgate.rdf.taxonomy.taxonomy import Taxonomy
from headgate.workloads.rdf.stars import Classes, Stars
from headgate.workloads.rdf.triples import Paper
from tests.rdf import reference

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import TypeVar

    from numpy.typing import NDArray

    from headgate.papers.matchers import Matcher
    from headgate.rdf.language.model import Graph, Pattern
    from headgate.workloads.rdf.publications import RdfWorkload, Statement

    Item = TypeVar("Item")

SEED = 1
AUTO, GTOPSS, OPS, NAIVE = "auto", "gtopss", "ops", "naive"
FIRST_STAGE = "gtopss, first stage"
_SLOW = 0.1
"""Seconds a publication that are not spent again and again."""
_SCHEMA_ORG = Path(os.environ.get("HEADGATE_DATA", "data")) / "schemaorg" / "schemaorg-all-https.nt"
"""The vocabulary of schema.org, a public file: used if it is there."""


class Plan(NamedTuple):
    """How much is measured."""

    publications: int
    rounds: int
    """For what takes milliseconds; `auto` gets three times as many, and a tenth of a second or more one."""


class Case(NamedTuple):
    """Filters, and events to match them with."""

    workload: RdfWorkload
    size: int
    """How many filters there are."""
    graphs: list[Graph]
    taxonomy: Taxonomy | None

    def patterns(self) -> list[Pattern]:
        """Read the filters."""
        return patterns_of(self.workload, np.arange(self.size), SEED)

    def texts(self) -> list[str]:
        """Write the filters."""
        return [str(text) for text in self.workload.filters(np.arange(self.size), SEED).to_pylist()]

    def documents(self) -> list[str]:
        """Write the events as N-Triples."""
        rows = np.arange(len(self.graphs))
        return [str(text) for text in self.workload.events(rows, SEED)["data"].to_pylist()]


def patterns_of(workload: RdfWorkload, rows: NDArray[np.int64], seed: int) -> list[Pattern]:
    """Make the filters with the given row numbers."""
    return [parse_filter(str(text)) for text in workload.filters(rows, seed).to_pylist()]


def graphs_of(workload: RdfWorkload, rows: NDArray[np.int64], seed: int) -> list[Graph]:
    """Make the events with the given row numbers, without a parser."""
    start, *columns = workload.triples(rows, seed)
    statements = list(zip(*(column.to_pylist() for column in columns), strict=True))
    return [make_graph(statements[first:last]) for first, last in pairwise(start.tolist())]


def read_classes(statements: Iterable[Statement]) -> Classes:
    """Number the classes of a vocabulary, by name: those that it says to be classes, if it says so of any."""
    known = list(statements)
    pairs = {(low, high) for low, relation, high in known if relation == SUBCLASS}
    said = {low for low, relation, high in known if (relation, high) == (TYPE, f"<{RDFS}Class>")}
    names = sorted(said or {term for pair in pairs for term in pair})
    number = {name: at for at, name in enumerate(names)}
    parents: list[list[int]] = [[] for _ in names]
    for low, high in sorted(pairs):
        if low in number and high in number:
            parents[number[low]].append(number[high])
    return Classes(tuple(names), tuple(tuple(above) for above in parents))


def make(workload: RdfWorkload, count: int, publications: int) -> Case:
    """Draw a case."""
    statements = workload.taxonomy(SEED)
    return Case(
        workload,
        count,
        graphs_of(workload, np.arange(publications), SEED),
        Taxonomy.of(statements) if statements else None,
    )


def stars() -> tuple[Stars, str]:
    """Return stars over the classes of schema.org if they are on this machine, and say which they are."""
    if not _SCHEMA_ORG.is_file():
        return Stars(), "1,014 made-up classes"
    classes = read_classes(
        (str(triple.subject), str(triple.predicate), str(triple.object))
        for triple in pyoxigraph.parse(path=str(_SCHEMA_ORG), format=pyoxigraph.RdfFormat.N_TRIPLES)
    )
    # Some of its classes stand alone, so that fewer filters ask for what events have.
    return Stars(classes, (0.01, 0.28)), f"{len(classes.names):,} classes of schema.org"


def fill(name: str, case: Case, patterns: Sequence[Pattern]) -> Matcher:
    """Insert filters into a matcher by its name."""
    matcher = MATCHERS[name](case.taxonomy)
    for number, pattern in enumerate(patterns):
        matcher.insert(number, pattern)
    return matcher


def build(case: Case, texts: Sequence[str]) -> RdfIndex:
    """Index filters under their numbers."""
    subscriptions = [Subscription(number, text, SPARQL) for number, text in enumerate(texts)]
    return RdfIndex.build(subscriptions, taxonomy=case.taxonomy)


def warm(workload: RdfWorkload) -> None:
    """Compile what is compiled once, so that nobody measures it."""
    case = make(workload, 200, 2)
    index = build(case, case.texts())
    answers_of(index, case)


def medians(calls: Mapping[str, Callable[[], Iterable[float]]], rounds: int) -> dict[str, float]:
    """Return milliseconds by name: the median of each round, and the best of the rounds.

    A call times many things and gives the seconds of each. Those of different names take turns, so that
    what else the machine does hits all alike. To have done all once before is left to the caller.
    """
    found: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            found[name].append(float(np.median(list(call()))) * 1e3)
    return {name: min(each) for name, each in found.items()}


def timed(call: Callable[[Item], object], items: Sequence[Item]) -> Callable[[], Iterator[float]]:
    """Return what times a call of each item."""

    def seconds() -> Iterator[float]:
        for item in items:
            begun = time.perf_counter()
            call(item)
            yield time.perf_counter() - begun

    return seconds


def encoded(index: RdfIndex, case: Case) -> Callable[[], Iterator[float]]:
    """Return what times the matching of publications that are encoded already."""
    ready = [(graph, index.encode(graph)) for graph in case.graphs]
    return timed(lambda each: index.match_encoded(*each), ready)


def answers_of(index: RdfIndex, case: Case) -> list[list[int]]:
    """Match all publications, from their graphs."""
    found = []
    for graph in case.graphs:
        answer = index.match_encoded(graph, index.encode(graph)).tolist()
        # What users call gives the same.
        assert index.match(Event("e", graph, content_type=N_TRIPLES)) == answer
        found.append(answer)
    return found


def measure(
    case: Case, names: Iterable[str], rounds: int, *, stage: bool = False
) -> tuple[dict[str, float], float]:
    """Time ways to match that must all give the same; returns ms a publication by way, and matches of one."""
    index = build(case, case.texts())
    answers = answers_of(index, case)
    _expect(case, answers)
    calls = {}
    slow = False
    # Millions of objects that stay would be gone through again and again.
    gc.disable()
    patterns = case.patterns()
    for name in names:
        matcher = fill(name, case, patterns)
        begun = time.perf_counter()
        for number, (graph, wanted) in enumerate(zip(case.graphs, answers, strict=True)):
            if matcher.match(graph) != wanted:
                raise AssertionError(f"{name} and auto differ on publication {number} of {case.workload}")
        slow |= (time.perf_counter() - begun) / len(case.graphs) > _SLOW
        calls[name] = timed(matcher.match, case.graphs)
        if stage and isinstance(matcher, GToPSS):
            calls[FIRST_STAGE] = timed(matcher.complete, case.graphs)
    found = medians(calls, 1 if slow else rounds)
    found |= medians({AUTO: encoded(index, case)}, 3 * rounds)
    gc.enable()
    return found, float(np.mean([len(each) for each in answers]))


def _expect(case: Case, answers: list[list[int]]) -> None:
    """Check that the filters that are made of a publication match it; the others hardly ever do."""
    if isinstance(case.workload, Paper):
        kinds = case.workload.kinds(np.arange(case.size), SEED)
        for number, found in enumerate(answers):
            if not {*np.flatnonzero(kinds == number % case.workload.publications).tolist()} <= {*found}:
                raise AssertionError(f"auto misses filters that are made of publication {number}")


def check(index: RdfIndex, case: Case, patterns: Sequence[Pattern], events: int, others: int) -> None:
    """Compare with the reference: all that match some events, and as many others as asked for."""
    _expect(case, answers_of(index, case))
    rng = np.random.default_rng(SEED)
    for number, graph in enumerate(case.graphs[:events]):
        found = {*index.match_encoded(graph, index.encode(graph)).tolist()}
        asked = (
            {*rng.choice(sorted(found), min(others, len(found)), replace=False).tolist()} if found else set()
        )
        asked |= {*rng.integers(0, case.size, others).tolist()}
        for each in asked:
            if reference.matches(patterns[each], graph, case.taxonomy) != (each in found):
                raise AssertionError(f"auto and the reference differ on publication {number}, filter {each}")


def traced(case: Case) -> tuple[float, float]:
    """Return the megabytes of the merged graph of G-ToPSS, and of it with the filters."""
    gc.collect()
    tracemalloc.start()
    try:
        patterns = case.patterns()
        gc.collect()
        filters = tracemalloc.get_traced_memory()[0]
        matcher = fill(GTOPSS, case, patterns)
        gc.collect()
        whole = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert len(matcher) == case.size
    return (whole - filters) / 1e6, whole / 1e6


def say(text: str) -> None:
    """Tell how far it is, and what else the machine does."""
    print(f"{text}: done, load {os.getloadavg()[0]:.1f}", file=sys.stderr, flush=True)
