"""Whole SPARQL queries as filters: OPTIONAL, UNION and NOT EXISTS, against pyoxigraph query by query."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyoxigraph

from benchmarks.rdf_data import SEED, make
from benchmarks.results import Result
from headgate.core.event import N_TRIPLES, Event
from headgate.core.subscription import SPARQL, Subscription
from headgate.rdf.index.index import RdfIndex
from headgate.rdf.whole.evaluator import EVALUATOR
from headgate.workloads.rdf.triples import Paper

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SECTION = "SPARQL with OPTIONAL, UNION or NOT EXISTS"
_BODY = re.compile(r"(PREFIX \S+ <\S+>) ASK \{ (.*) \}")
_VARIABLE = re.compile(r"\?v\d+")


class Size(NamedTuple):
    """How much is measured."""

    filters: int
    events: int
    alone: int
    """Events that pyoxigraph alone is asked of."""
    rounds: int


SIZES = {"quick": Size(300, 4, 4, 1), "full": Size(10_000, 50, 3, 5)}


def run(size: str) -> list[Result]:
    """Measure queries over the events of the paper: 90 triples, one filter in 200 matches."""
    chosen = SIZES[size]
    case = make(Paper(ratio=0.005), chosen.filters, chosen.events)
    texts = queries(case.texts())
    index = RdfIndex.build(Subscription(number, text, SPARQL) for number, text in enumerate(texts))
    events = [Event(str(n), graph, content_type=N_TRIPLES) for n, graph in enumerate(case.graphs)]
    documents = case.documents()
    found = [index.match(event) for event in events]
    for each, document in zip(found[: chosen.alone], documents, strict=False):
        assert each == alone(texts, document), "pyoxigraph alone finds other matches"
    times = {"index": float("inf"), "alone": float("inf")}
    for _ in range(chosen.rounds):
        # In turns, so that what else the machine does hits both alike.
        for name, call, given in (
            ("index", index.match, events),
            ("alone", lambda document: alone(texts, document), documents[: chosen.alone]),
        ):
            times[name] = min(times[name], spent(call, given))
    full = size == "full"
    matched = sum(map(len, found)) / len(found)
    title = f"{chosen.filters:,} queries over 90 triples"
    return [
        Result(
            f"{title}, {matched / chosen.filters:.1%} match",
            times["index"],
            "ms an event, CPU",
            times["alone"],
            "pyoxigraph, query by query",
            goal=6.0 if full else None,
            section=SECTION,
        ),
        Result(
            f"{title}: how many times as fast",
            times["alone"] / times["index"],
            "times pyoxigraph alone",
            goal=100.0 if full else None,
            at_least=True,
            section=SECTION,
        ),
        Result(
            f"{title}: verified",
            float(np.mean([len(index.verified(event)) for event in events])),
            "queries an event",
            section=SECTION,
        ),
    ]


def queries(texts: Sequence[str]) -> list[str]:
    """Make whole queries of patterns, in six kinds, three of which need no more than the index."""
    rng = np.random.default_rng(SEED)
    found = []
    for number, text in enumerate(texts):
        match = _BODY.fullmatch(text)
        assert match is not None
        prefix, body = match.groups()
        named = _VARIABLE.search(body)
        subject = named[0] if named else body.split()[0]
        properties, nodes = rng.integers(15, size=4), rng.integers(10_000, size=2)
        one = f"{subject} :p{properties[0]} ?more"
        kinds = (
            f"{body} . OPTIONAL {{ {one} }}",
            f"{body} . OPTIONAL {{ {one} }} FILTER(!bound(?more) || isIRI(?more))",
            f"{{ {body} }} UNION {{ {one} . ?more :p{properties[1]} :n{nodes[0]} }}",
            f"{{ {body} }} UNION {{ {one} . ?more :p{properties[2]}+ :n{nodes[1]} }}",
            f"{body} . FILTER NOT EXISTS {{ {subject} :p{properties[3]} :n{nodes[0]} }}",
            f"{body} . FILTER NOT EXISTS {{ {one} . ?more :p{properties[1]} :n{nodes[1]} }}",
        )
        found.append(f"{prefix} ASK {{ {kinds[number % len(kinds)]} }}")
    return found


def spent(call: Callable[[Any], object], given: Sequence[Any]) -> float:
    """Return the milliseconds of processors for each of some things, those of the evaluator included."""
    begun = _processors()
    for each in given:
        call(each)
    return (_processors() - begun) * 1e3 / len(given)


def _processors() -> float:
    evaluator = Path(f"/proc/{EVALUATOR.pid}/schedstat")
    other = int(evaluator.read_text().split()[0]) / 1e9 if EVALUATOR.pid and evaluator.exists() else 0.0
    return time.process_time() + other


def alone(texts: Sequence[str], document: str) -> list[int]:
    """Ask pyoxigraph one query after another."""
    store = pyoxigraph.Store()
    store.load(document.encode(), pyoxigraph.RdfFormat.N_TRIPLES)
    return [number for number, text in enumerate(texts) if store.query(text)]
