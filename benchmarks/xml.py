"""Patterns over XMark's documents: the index against compiled XPath, one by one."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from lxml import etree

from benchmarks.measure import memory_of, once, text_memory_of
from benchmarks.rdf_data import medians, say, timed
from benchmarks.results import Result
from benchmarks.xml_paths import xpath_of
from headgate.core.event import XML, Event
from headgate.core.subscription import XPATH, Subscription
from headgate.workloads.xml.xmark import XMark
from headgate.xml.events.reading import read_document
from headgate.xml.index.index import XmlIndex
from headgate.xml.language.parse import parse_filter
from headgate.xml.language.printing import print_pattern

if TYPE_CHECKING:
    from headgate.xml.language.model import Pattern

SEED = 1
WORKLOAD = XMark(sizes=(30_000, 30_000))
GOALS, BESIDE = "Goals", "Beside the goals"
TIMES = 20
"""How many times as fast as compiled XPath the index shall be, at the least number of patterns."""
_MATCHED, _TEXT, _READ = "matched", "from text to ids", "reading of it, alone"


class Size(NamedTuple):
    """How much is measured."""

    counts: tuple[int, ...]
    documents: int
    rounds: int
    sampled: int
    """Patterns that lxml is asked about, for each document."""


SIZES = {
    "quick": Size(counts=(1_000,), documents=4, rounds=1, sampled=100),
    "full": Size(counts=(10_000, 100_000), documents=20, rounds=5, sampled=500),
}


def run(size: str) -> list[Result]:
    """Measure each number of patterns; `quick` holds nothing to its goal."""
    chosen = SIZES[size]
    documents = WORKLOAD.documents(np.arange(chosen.documents), SEED)
    _warm(documents[0])
    results: list[Result] = []
    for count in chosen.counts:
        rows = _measure(chosen, count, documents)
        results += [replace(row, name=f"{count:,} patterns: {row.name}") for row in rows]
        say(f"{count:,} patterns")
    return results if size == "full" else [replace(result, goal=None) for result in results]


def _warm(document: str) -> None:
    """Compile what is compiled once, so that nobody measures it."""
    index = _build([print_pattern(pattern) for pattern in WORKLOAD.views(50, SEED)])
    index.answers(Event("e", document, content_type=XML))


def _build(texts: list[str]) -> XmlIndex:
    return XmlIndex.build([Subscription(number, text, XPATH) for number, text in enumerate(texts)])


def _measure(size: Size, count: int, texts: list[str]) -> list[Result]:
    patterns = WORKLOAD.views(count, SEED)
    filters = [print_pattern(pattern) for pattern in patterns]
    begun = time.perf_counter()
    index = _build(filters)
    building = time.perf_counter() - begun
    parsing = once(lambda: [parse_filter(text) for text in filters])
    documents = [read_document(text) for text in texts]
    asked, compiling = _ask(index, patterns, texts, size.sampled)
    took = medians(
        {
            _MATCHED: timed(index.match_document, documents),
            _READ: timed(read_document, texts),
            _TEXT: timed(lambda text: index.match(Event("e", text, content_type=XML)), texts),
        },
        size.rounds,
    )
    matches = float(np.mean([len(index.match_document(document)) for document in documents]))
    least = count == min(size.counts)
    every = asked * count
    versus = "compiled XPath each, sampled"
    rows = [
        Result("matched, from a read document", took[_MATCHED], "ms", every, versus, section=GOALS),
        Result(_TEXT, took[_TEXT], "ms", section=GOALS),
        Result(_READ, took[_READ], "ms", section=GOALS),
        Result("memory", memory_of(index) / count, "bytes a pattern", section=BESIDE),
        Result("texts", text_memory_of(index) / count, "bytes a pattern", section=BESIDE),
        Result("built from texts", building, "s", section=BESIDE),
        Result("parsing of it, alone", parsing, "s", section=BESIDE),
        Result("compiling of XPath, alone", compiling * count / 1e3, "s", section=BESIDE),
        Result("matches a document", matches, "", section=BESIDE),
        Result("load of the machine", os.getloadavg()[0], "", section=BESIDE),
    ]
    if least:
        ratio = f"times as fast as compiled XPath ({size.sampled} a document asked)"
        times = Result(ratio, every / took[_MATCHED], "times", goal=TIMES, at_least=True, section=GOALS)
        rows.insert(1, times)
        rows.insert(-1, _answer(index, texts[0]))
    return rows


def _answer(index: XmlIndex, text: str) -> Result:
    """Time what the matches of one document give; the filters are parsed for that once."""
    event = Event("e", text, content_type=XML)
    given = len(index.answers(event))
    return Result(
        f"what {given:,} of them give", 1e3 * once(lambda: index.answers(event)), "ms", section=BESIDE
    )


def _ask(index: XmlIndex, patterns: list[Pattern], texts: list[str], sampled: int) -> tuple[float, float]:
    """Return the milliseconds that lxml takes to ask one pattern, and to compile it; compares the answers."""
    rng = np.random.default_rng(SEED)
    asking, compiling = [], []
    for number, text in enumerate(texts):
        tree = etree.fromstring(text.encode()).getroottree()
        found = {*index.match(Event("e", text, content_type=XML))}
        chosen = rng.integers(0, len(patterns), sampled).tolist()
        begun = time.perf_counter()
        compiled = [etree.XPath(xpath_of(patterns[each])) for each in chosen]
        between = time.perf_counter()
        answers = [each(tree) for each in compiled]
        asking.append((time.perf_counter() - between) * 1e3 / sampled)
        compiling.append((between - begun) * 1e3 / sampled)
        if answers != [each in found for each in chosen]:
            raise AssertionError(f"the index and lxml differ on document {number}")
    return float(np.median(asking)), float(np.median(compiling))
