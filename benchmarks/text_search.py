"""Searching texts: many words in any case over items of a feed, and parts of texts in RDF and XML.

Times are of the processor, the best of some rounds. The scan asks each word in turn whether it is in the item
in lower case, in the compiled code of Python's texts, and if so whether it is a word of it.
"""

from __future__ import annotations

import random
import statistics
import time
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyoxigraph as ox
from lxml import etree

from benchmarks.results import Result
from headgate import Event, Subscription
from headgate.core.event import N_TRIPLES
from headgate.core.text.alphabets import words as words_of
from headgate.rdf.events.reading import make_graph
from headgate.rdf.events.triples import write_lines
from headgate.rdf.index.index import RdfIndex
from headgate.rdf.language.model import literal
from headgate.records.index.index import RecordIndex
from headgate.xml.events.reading import document_of
from headgate.xml.index.index import XmlIndex

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from headgate.rdf.language.model import Graph

LETTERS = "abcdefghijklmnopqrstuvwxyz"
WORST = ("a" * 100_000, ["a" * 5_000 + "b"])


def cases() -> dict[str, tuple[str, list[str]]]:
    """Draw texts, and what is looked for in each."""
    rng = random.Random(1)
    words = ["".join(rng.choices(LETTERS, k=rng.randint(3, 9))) for _ in range(5000)]
    return {
        "5,000 words, text of 20": (" ".join(rng.choices(words, k=20)), words),
        "5,000 words, text of 200": (" ".join(rng.choices(words, k=200)), words),
        "100,000 a, 5,000 a and b": WORST,
    }


def median(ask: Callable[[], object], times: int = 25) -> float:
    """Return the median of CPU milliseconds, after a first question."""
    ask()
    spent = []
    for _ in range(times):
        began = time.thread_time()
        ask()
        spent.append(1000 * (time.thread_time() - began))
    return statistics.median(spent)


def asked(wanted: Iterable[str], text: str) -> tuple[Callable[[], object], Callable[[], object]]:
    """Return what asks the filters of both rooms about a text."""
    rdf = RdfIndex.build(
        Subscription(number, f'ASK {{ ?x <urn:t> ?t FILTER(CONTAINS(?t, "{each}")) }}', "sparql")
        for number, each in enumerate(wanted)
    )
    xml = XmlIndex.build(
        Subscription(number, f"//a[contains(., '{each}')]", "xpath") for number, each in enumerate(wanted)
    )
    triple = Event("e", f'<urn:a> <urn:t> "{text}" .', content_type="nt")
    document = Event("e", f"<a>{text}</a>", content_type="xml")
    return lambda: rdf.match(triple), lambda: xml.match(document)


class Plan(NamedTuple):
    """What a size measures: words, items, rounds, and items that are scanned."""

    words: int
    items: int
    rounds: int
    scanned: int


SIZES = {"quick": Plan(2_000, 20, 1, 2), "full": Plan(100_000, 300, 9, 4)}
GOAL = 60.0
"""Of 100,000 words, in microseconds an item."""
ITEM = 2_000
"""Letters of an item."""
EACH = "µs an item, CPU"
XML_TYPE = "application/xml"
EXSLT = {"re": "http://exslt.org/regular-expressions"}


def feed(plan: Plan) -> tuple[list[str], list[str]]:
    """Draw the words that are looked for, and items, whose words are frequent or rare as in prose."""
    rng = random.Random(1)
    vocabulary = list(
        dict.fromkeys("".join(rng.choices(LETTERS, k=rng.randint(3, 9))) for _ in range(plan.words))
    )
    share = list(accumulate(1 / (rank + 10) for rank in range(len(vocabulary))))
    items = []
    for _ in range(plan.items):
        found = rng.choices(vocabulary, cum_weights=share, k=ITEM // 5)
        items.append(" ".join(each.title() if rng.random() < 0.15 else each for each in found)[:ITEM])
    return rng.choices(vocabulary, k=plan.words), items


def scan(wanted: list[str], item: str) -> list[int]:
    """Ask every word."""
    folded, own = item.lower(), set(words_of(item))
    return [number for number, word in enumerate(wanted) if word in folded and word in own]


def best(ask: Callable[[], object], rounds: int, items: int) -> float:
    """Return the least CPU microseconds an item."""
    spent = []
    for _ in range(rounds + 1):
        began = time.process_time()
        ask()
        spent.append(time.process_time() - began)
    return 1e6 * min(spent[1:]) / items


def run(size: str) -> list[Result]:
    """Measure words over items, in a table and one by one."""
    plan = SIZES[size]
    wanted, items = feed(plan)
    filters = (rf"text RLIKE '(?i)\\b{word}\\b'" for word in wanted)
    index = RecordIndex.build(Subscription(number, text) for number, text in enumerate(filters))
    table = pa.RecordBatch.from_pydict({"id": list(range(len(items))), "text": items})
    events = [Event(number, {"text": item}) for number, item in enumerate(items)]
    some = items[: plan.scanned]
    assert [index.match(event) for event in events[: plan.scanned]] == [scan(wanted, item) for item in some]
    scanned = best(lambda: [scan(wanted, item) for item in some], 2, len(some))
    asked: dict[str, Callable[[], object]] = {
        "`match_batch`": lambda: index.match_batch(table),
        "`match`, a dict": lambda: [index.match(event) for event in events],
    }
    goal = GOAL if plan.words == SIZES["full"].words else None
    title = f"Whole words in any case: {plan.words:,} over items of {ITEM:,} letters"
    results = [
        Result(name, best(ask, plan.rounds, len(items)), EACH, scanned, "scan", goal, section=title)
        for name, ask in asked.items()
    ]
    matched = index.match_batch(table).num_rows / len(items)
    results.append(Result("matches", matched, "an item", section=title))
    return results + run_rdf(plan, wanted, items, scanned) + run_xml(plan, wanted, items, scanned)


def run_rdf(plan: Plan, wanted: list[str], items: list[str], scanned: float) -> list[Result]:
    """Measure the same words over items that are RDF: a title, a text, a date and a link."""
    filters = (rf'ASK {{ ?x <urn:text> ?t FILTER(REGEX(?t, "\\b{word}\\b", "i")) }}' for word in wanted)
    index = RdfIndex.build(Subscription(number, text, "sparql") for number, text in enumerate(filters))
    graphs = [
        make_graph(
            [
                (f"<urn:{number}>", "<urn:text>", literal(item)),
                (f"<urn:{number}>", "<urn:title>", literal(item[:40])),
                (f"<urn:{number}>", "<urn:date>", literal("2001-01-01")),
                (f"<urn:{number}>", "<urn:link>", f"<http://example.org/{number}>"),
            ]
        )
        for number, item in enumerate(items)
    ]
    events = [Event(number, graph, content_type=N_TRIPLES) for number, graph in enumerate(graphs)]
    for event, item in zip(events[: plan.scanned], items, strict=False):
        assert index.match(event) == scan(wanted, item)
    assert_oxigraph_agrees(graphs[0], wanted, items[0])
    texts = [write_lines(graph) for graph in graphs]
    table = pa.RecordBatch.from_pydict(
        {"id": list(range(len(items))), "data": texts, "datacontenttype": [N_TRIPLES] * len(items)}
    )
    asked: dict[str, Callable[[], object]] = {
        "`match_events`, read before": lambda: index.match_batch(events),
        "`match_batch`, N-Triples": lambda: index.match_batch(table),
        "`match`, read before": lambda: [index.match(event) for event in events],
    }
    goals = {"`match_events`, read before": GOAL} if plan.words == SIZES["full"].words else {}
    title = f"The same over RDF: {plan.words:,} `REGEX` of a word"
    return [
        Result(
            name, best(ask, plan.rounds, len(items)), EACH, scanned, "scan", goals.get(name), section=title
        )
        for name, ask in asked.items()
    ]


def run_xml(plan: Plan, wanted: list[str], items: list[str], scanned: float) -> list[Result]:
    """Measure the same words over items that are XML."""
    filters = (rf"//item[re:test(text, '\b{word}\b', 'i')]" for word in wanted)
    index = XmlIndex.build(Subscription(number, text, "xpath") for number, text in enumerate(filters))
    texts = [
        f"<item id='{number}'><title>{item[:40]}</title><date>2001-01-01</date><text>{item}</text></item>"
        for number, item in enumerate(items)
    ]
    given = [Event(number, text, content_type=XML_TYPE) for number, text in enumerate(texts)]
    events = [Event(event.id, document_of(event), content_type=XML_TYPE) for event in given]
    root = etree.fromstring(texts[0])
    for event, item in zip(events[: plan.scanned], items, strict=False):
        assert index.match(event) == scan(wanted, item)
    own = set(words_of(items[0]))
    for word in wanted[:200]:
        found = root.xpath(rf"boolean(//text()[re:test(., '\b{word}\b', 'i')])", namespaces=EXSLT)
        assert found is (word in own)
    table = pa.RecordBatch.from_pydict(
        {"id": list(range(len(items))), "data": texts, "datacontenttype": [XML_TYPE] * len(items)}
    )
    asked: dict[str, Callable[[], object]] = {
        "`match_events`, read before": lambda: index.match_batch(events),
        "`match_batch`, text": lambda: index.match_batch(table),
        "`match`, read before": lambda: [index.match(event) for event in events],
    }
    goals = {"`match_events`, read before": GOAL} if plan.words == SIZES["full"].words else {}
    title = f"The same over XML: {plan.words:,} `re:test` of a word"
    return [
        Result(
            name, best(ask, plan.rounds, len(items)), EACH, scanned, "scan", goals.get(name), section=title
        )
        for name, ask in asked.items()
    ]


def assert_oxigraph_agrees(graph: Graph, wanted: list[str], item: str) -> None:
    """Ask another engine for some words."""
    store = ox.Store()
    store.load(write_lines(graph).encode(), ox.RdfFormat.N_TRIPLES)
    own = set(words_of(item))
    for word in wanted[:200]:
        asked = rf'ASK {{ ?x <urn:text> ?t FILTER(REGEX(?t, "\\b{word}\\b", "i")) }}'
        assert bool(store.query(asked)) is (word in own)


def main() -> None:
    """Print CPU milliseconds of an event."""
    print(f"{'median CPU ms of an event':28}{'RDF':>9}{'XML':>9}")
    for name, (text, wanted) in cases().items():
        found = [median(ask) for ask in asked(wanted, text)]
        print(f"{name:28}" + "".join(f"{each:9.2f}" for each in found))


if __name__ == "__main__":
    main()
