"""What `auto` is held to: time, memory and building at 30,000 and 300,000 filters, and text to answer."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyoxigraph

from benchmarks.measure import memory_of, once, text_memory_of
from benchmarks.rdf_data import AUTO, SEED, build, check, encoded, make, medians, say, stars, timed, warm
from benchmarks.results import Result
from headgate.core.event import N_TRIPLES, Event
from headgate.rdf.events.reading import read_graph
from headgate.rdf.language.parse import parse_filter
from headgate.workloads.rdf.triples import Paper

if TYPE_CHECKING:
    from benchmarks.rdf_data import Case, Plan
    from headgate.rdf.index.index import RdfIndex
    from headgate.workloads.rdf.publications import RdfWorkload

GOALS, BESIDE = "Goals", "Beside the goals"
_ASK = "pyoxigraph ASK"
_WHOLE = "from N-Triples to ids"
_READING = "reading of it, alone"
_ENCODING = "encoding, of a graph"


class Goal(NamedTuple):
    """Milliseconds a publication, by how many filters there are: the lesser number and the greater."""

    less: float
    more: float


PAPER_MS, STARS_MS = Goal(0.05, 0.5), Goal(0.5, 2.0)
TIMES = 10_000
"""How many times as fast as asking for each filter `auto` shall be."""
BYTES = 200
BUILD = 30.0
"""Seconds for the greater number of filters, from their texts."""
END_TO_END = 0.3
"""Milliseconds from the text of a publication, at the lesser number."""


class Amount(NamedTuple):
    """How much is asked."""

    counts: tuple[int, int]
    sampled: int
    """Filters that pyoxigraph is asked about."""
    events: int
    """Publications that it is asked about."""
    checked: int
    """Filters that the reference is asked about, for each of these."""


def measure_goals(amount: Amount, plan: Plan) -> list[Result]:
    """Measure the paper's workload and stars."""
    real, words = stars()
    rows = []
    for each in (Paper(), real):
        warm(each)
    for name, workload, goal in (("paper", Paper(), PAPER_MS), (f"stars over {words}", real, STARS_MS)):
        for count, most in zip(amount.counts, goal, strict=True):
            rows += _measure(f"{name}, {count:,} subscriptions", workload, count, most, amount, plan)
    return rows


def _measure(
    title: str, workload: RdfWorkload, count: int, most: float, amount: Amount, plan: Plan
) -> list[Result]:
    case = make(workload, count, plan.publications)
    texts = case.texts()
    begun = time.perf_counter()
    index = build(case, texts)
    building = time.perf_counter() - begun
    parsing = once(lambda: [parse_filter(text) for text in texts])
    check(index, case, case.patterns(), amount.events, amount.checked)
    documents = case.documents()
    took = medians(
        {
            AUTO: encoded(index, case),
            _ENCODING: timed(index.encode, case.graphs),
            _READING: timed(lambda text: read_graph(text, N_TRIPLES), documents),
            _WHOLE: timed(lambda text: index.match(Event("e", text, content_type=N_TRIPLES)), documents),
        },
        3 * plan.rounds,
    )
    matches = float(np.mean([len(index.match_encoded(each, index.encode(each))) for each in case.graphs]))
    asked = _ask(index, case, texts, amount) * count
    least = count == min(amount.counts)
    rows = [
        Result(f"{AUTO}, encoded", took[AUTO], "ms", asked, f"{_ASK} of each, sampled", most, section=GOALS),
        Result("memory", memory_of(index) / count, "bytes a subscription", goal=BYTES, section=GOALS),
        Result("built from texts", building, "s", goal=None if least else BUILD, section=GOALS),
        Result("parsing of it, alone", parsing, "s", section=GOALS),
        Result(_WHOLE, took[_WHOLE], "ms", goal=END_TO_END if least else None, section=GOALS),
        Result(_READING, took[_READING], "ms", section=GOALS),
        Result(_ENCODING, took[_ENCODING], "ms", section=BESIDE),
        Result("matches a publication", matches, "", section=BESIDE),
        Result("texts", text_memory_of(index) / count, "bytes a subscription", section=BESIDE),
        Result("load of the machine", os.getloadavg()[0], "", section=BESIDE),
    ]
    if least:
        ratio = f"times as fast as {_ASK} of each ({amount.sampled} of them asked)"
        rows.insert(1, Result(ratio, asked / took[AUTO], "times", goal=TIMES, at_least=True, section=GOALS))
    say(title)
    return [replace(row, name=f"{title}: {row.name}") for row in rows]


def _ask(index: RdfIndex, case: Case, texts: list[str], amount: Amount) -> float:
    """Return the milliseconds that pyoxigraph takes for one filter, and compare its answers with ours."""
    rng = np.random.default_rng(SEED)
    milliseconds = []
    for graph, document in list(zip(case.graphs, case.documents(), strict=True))[: amount.events]:
        store = pyoxigraph.Store()
        store.load(document, pyoxigraph.RdfFormat.N_TRIPLES)
        if case.taxonomy is not None:
            store.load(case.workload.taxonomy_text(SEED), pyoxigraph.RdfFormat.N_TRIPLES)
        found = {*index.match_encoded(graph, index.encode(graph)).tolist()}
        asked = rng.integers(0, case.size, amount.sampled).tolist()
        begun = time.perf_counter()
        answers = [bool(store.query(texts[each])) for each in asked]
        milliseconds.append((time.perf_counter() - begun) * 1e3 / len(asked))
        if answers != [each in found for each in asked]:
            raise AssertionError(f"auto and pyoxigraph differ on {case.workload}")
        if not all(store.query(texts[each]) for each in sorted(found)[: amount.sampled]):
            raise AssertionError(f"auto matches what pyoxigraph does not, of {case.workload}")
    return float(np.median(milliseconds))
