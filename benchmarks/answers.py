"""What matches give, in bulk against one by one: bindings of RDF, tuples of XML."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from benchmarks.rdf_data import SEED, make, say, stars
from benchmarks.results import Result
from headgate import Engine, Event, Subscription
from headgate.core.event import N_TRIPLES, XML
from headgate.core.subscription import SPARQL, XPATH
from headgate.workloads.rdf.triples import Paper
from headgate.workloads.xml.xmark import XMark
from headgate.xml.language.printing import print_pattern

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from headgate.core.event import Id
    from headgate.rdf.taxonomy.taxonomy import Taxonomy
    from headgate.workloads.rdf.publications import RdfWorkload

    Rows = tuple[list[dict[str, str]], bool]

UNIT = "µs a match, CPU"


class Size(NamedTuple):
    """How much is measured."""

    filters: int
    events: int
    patterns: int
    """Of XML, where most of them match."""
    documents: int
    rounds: int


SIZES = {"quick": Size(1_000, 4, 200, 2, 1), "full": Size(30_000, 40, 3_000, 5, 5)}


def run(size: str) -> list[Result]:
    """Measure the paper's graph patterns, stars, and XMark."""
    chosen = SIZES[size]
    real, words = stars()
    return [
        *_rdf("the paper's graphs", Paper(), chosen),
        *_rdf(f"stars over {words}", real, chosen),
        *_xml(chosen),
    ]


def _rdf(title: str, workload: RdfWorkload, size: Size) -> list[Result]:
    case = make(workload, size.filters, size.events)

    def one(engine: Engine, event: Event, identity: Id) -> Rows:
        found = engine.bindings(event, identity)
        return found.plain(), found.complete

    return _measure(
        f"{title}, {size.filters:,} filters",
        [Subscription(number, text, SPARQL) for number, text in enumerate(case.texts())],
        case.documents(),
        N_TRIPLES,
        one,
        size.rounds,
        case.taxonomy,
    )


def _xml(size: Size) -> list[Result]:
    workload = XMark(sizes=(30_000, 30_000))
    texts = [print_pattern(pattern) for pattern in workload.views(size.patterns, SEED)]

    def one(engine: Engine, event: Event, identity: Id) -> Rows:
        answer = engine.answer(event, identity)
        assert answer is not None
        found = answer.tuples()
        return [dict(zip(found.names, row, strict=True)) for row in found.written()], found.complete

    return _measure(
        f"XMark, 30 KB, {size.patterns:,} patterns",
        [Subscription(number, text, XPATH) for number, text in enumerate(texts)],
        workload.documents(np.arange(size.documents), SEED),
        XML,
        one,
        size.rounds,
        None,
    )


def _measure(
    title: str,
    filters: Sequence[Subscription],
    documents: Sequence[str],
    content_type: str,
    one: Callable[[Engine, Event, Id], Rows],
    rounds: int,
    taxonomy: Taxonomy | None,
) -> list[Result]:
    """Time both by turns, from text each time; the answers are compared once."""
    engine = Engine.build(filters, taxonomy=taxonomy)

    def events() -> list[Event]:
        return [Event(number, text, content_type=content_type) for number, text in enumerate(documents)]

    def bulk() -> object:
        return engine.match_batch(events(), results=True)

    def ids() -> object:
        return engine.match_batch(events())

    def singly() -> list[Rows]:
        return [one(engine, event, each) for event in events() for each in engine.match(event)]

    found = engine.match_batch(events(), results=True).to_pylist(maps_as_pydicts="strict")
    if [(row["results"], row["complete"]) for row in found] != singly():
        raise AssertionError(f"{title}: results in bulk are not those of one match after the other")
    spent: dict[str, list[float]] = {"bulk": [], "ids": [], "singly": []}
    for _ in range(rounds):
        for name, call in (("bulk", bulk), ("ids", ids), ("singly", singly)):
            begun = time.process_time()
            call()
            spent[name].append((time.process_time() - begun) / max(1, len(found)) * 1e6)
    best = {name: min(each) for name, each in spent.items()}
    rows = sum(len(row["results"]) for row in found)
    say(title)
    return [
        Result(
            "with results", best["bulk"], UNIT, best["singly"], "one match after the other", section=title
        ),
        Result("ids alone", best["ids"], UNIT, section=title),
        Result("matches an event", len(found) / len(documents), "", section=title),
        Result("rows a match", rows / max(1, len(found)), "", section=title),
    ]
