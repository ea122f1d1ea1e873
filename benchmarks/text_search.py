"""Searching texts in filters of RDF and XML: `python -m benchmarks.text_search`."""

from __future__ import annotations

import random
import statistics
import time
from typing import TYPE_CHECKING

from headgate import Event, Subscription
from headgate.rdf.index.index import RdfIndex
from headgate.xml.index.index import XmlIndex

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

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


def main() -> None:
    """Print CPU milliseconds of an event."""
    print(f"{'median CPU ms of an event':28}{'RDF':>9}{'XML':>9}")
    for name, (text, wanted) in cases().items():
        found = [median(ask) for ask in asked(wanted, text)]
        print(f"{name:28}" + "".join(f"{each:9.2f}" for each in found))


if __name__ == "__main__":
    main()
