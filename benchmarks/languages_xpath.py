"""Whole XPath 1.0 as filters: `or` and positions, against lxml asked expression by expression.

Documents are feeds of 30 KB: some forty items, each with a company, a topic, tags in an order, a price and a
text. The baseline compiles each expression once, as `boolean(…)`, which lets lxml stop at the first node.

There are two mixes. In the first, positions mostly pick one of what was found otherwise, as people use them,
and about two of three expressions that lxml is asked hold. In the second, which has no goal, positions
decide: the index cannot see them, and four of five that lxml is asked do not hold.
"""

from __future__ import annotations

import random
import time
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from lxml import etree

from benchmarks.results import Result
from headgate.core.event import XML, Event
from headgate.core.subscription import XPATH, Subscription
from headgate.xml.events.reading import read_document
from headgate.xml.index.index import XmlIndex
from headgate.xml.whole.evaluating import tree_of
from headgate.xml.whole.reading import WholeFilter, read_filter

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SECTION = "XPath 1.0 with or and positions"
SEED = 1
TIMES = 40
"""How many times as fast as lxml alone the index shall be."""
_COMPANIES, _TOPICS, _TAGS, _NAMES, _REGIONS = 8_000, 900, 8_400, 4_000, 50
_WORDS = (
    "rates",
    "rose",
    "again",
    "after",
    "the",
    "board",
    "met",
    "and",
    "shares",
    "fell",
    "in",
    "late",
    "trade",
)


class Size(NamedTuple):
    """How much is measured."""

    filters: int
    documents: int
    alone: int
    """Documents that lxml alone is asked about."""
    rounds: int


SIZES = {"quick": Size(300, 4, 2, 1), "full": Size(10_000, 50, 4, 5)}


def document(rng: random.Random) -> str:
    """Write a feed of some 30 KB."""
    items = []
    for number in range(48):
        tags = "".join(f"<tag>t{rng.randrange(_TAGS)}</tag>" for _ in range(4))
        body = " ".join(rng.choice(_WORDS) for _ in range(70))
        items.append(
            f'<item id="i{number}" region="r{rng.randrange(_REGIONS)}">'
            f"<company>c{rng.randrange(_COMPANIES)}</company>"
            f"<topic>p{rng.randrange(_TOPICS)}</topic><price>{rng.randrange(10_000) / 100}</price>"
            f"<author><name>n{rng.randrange(_NAMES)}</name><desk>d{rng.randrange(20)}</desk></author>"
            f"{tags}<title>{rng.choice(_WORDS)} {number}</title><body><p>{body}</p></body></item>"
        )
    return f"<feed><updated>2026</updated>{''.join(items)}</feed>"


def picking(rng: random.Random) -> str:
    """Write a filter with `or`, and mostly a position that picks; about one document in a hundred matches."""
    some = " or ".join(f"company = 'c{rng.randrange(_COMPANIES)}'" for _ in range(2))
    topic = f"p{rng.randrange(_TOPICS)}"
    tag, last = (f"t{rng.randrange(_TAGS)}" for _ in range(2))
    name = f"n{rng.randrange(_NAMES)}"
    price, region = rng.randrange(60, 90), f"r{rng.randrange(_REGIONS)}"
    return rng.choice(
        (
            f"//item[{some}][1]/title",
            f"//item[tag[1] = '{tag}' or tag[last()] = '{last}']/title",
            f"//item[topic = '{topic}' and (price > {price} or @region = '{region}')]/tag[2]",
            f"(//item[company = 'c{rng.randrange(_COMPANIES)}' or author/name = '{name}'])[last()]/title",
            f"//item[{some}]/following-sibling::item[1][price < {price}]/title",
            f"//author[name = '{name}'][desk = 'd1' or desk != 'd2']/../tag[1]",
            f"//item[position() <= 20][{some}]/author/name",
            f"count(//item[{some}]/tag[position() < 3]) > 1",
        )
    )


def deciding(rng: random.Random) -> str:
    """Write a filter in which a position or a number of nodes decides."""
    company, other = (f"c{rng.randrange(_COMPANIES)}" for _ in range(2))
    topic = f"p{rng.randrange(_TOPICS)}"
    tag, last = (f"t{rng.randrange(_TAGS)}" for _ in range(2))
    return rng.choice(
        (
            f"/feed/item[last()][topic = '{topic}' or tag = '{tag}' or company = '{company}']",
            f"//item[tag[1] = '{tag}' or tag[last()] = '{last}'][price > 50]",
            f"//item[position() <= 10][topic = '{topic}' or company = '{company}']/author/name",
            f"//item[topic = '{topic}' or tag[2] = '{tag}']/following-sibling::item[1][price < 50]/title",
            f"count(//item[company = '{company}' or company = '{other}' or topic = '{topic}']) > 1",
        )
    )


def run(size: str) -> list[Result]:
    """Measure both mixes."""
    chosen, full = SIZES[size], size == "full"
    mixes = (("positions pick", picking, TIMES if full else None), ("positions decide", deciding, None))
    return [
        replace(result, name=f"{title}: {result.name}")
        for title, mix, goal in mixes
        for result in _measure(chosen, mix, goal)
    ]


def _measure(chosen: Size, mix: Callable[[random.Random], str], goal: float | None) -> list[Result]:
    rng = random.Random(SEED)
    texts = [mix(rng) for _ in range(chosen.filters)]
    sources = [document(rng) for _ in range(chosen.documents)]
    begun = time.process_time()
    index = XmlIndex.build([Subscription(number, text, XPATH) for number, text in enumerate(texts)])
    building = time.process_time() - begun
    assert all(isinstance(read_filter(text)[1], WholeFilter) for text in texts[:100])
    begun = time.process_time()
    compiled = [etree.XPath(f"boolean({text})") for text in texts]
    compiling = time.process_time() - begun
    found = [index.match(event) for event in _again(sources)]
    few = sources[: chosen.alone]
    for each, source in zip(found, few, strict=False):
        assert each == _alone(compiled, source), "lxml alone finds other matches"
    asked = float(np.mean([len(index.verified(event)) for event in _again(sources)]))
    ours = _best(lambda: [index.match(event) for event in _again(sources)], chosen.rounds) / len(sources)
    reading = _best(lambda: [read_document(source) for source in sources], chosen.rounds) / len(sources)
    tree = _best(lambda: [tree_of(read_document(source)) for source in sources], chosen.rounds) / len(sources)
    alone = _best(lambda: [_alone(compiled, source) for source in few], max(1, chosen.rounds // 2)) / len(few)
    matched = sum(map(len, found)) / len(found)
    size = len(sources[0]) / 1000
    title = f"{chosen.filters:,} expressions over {size:.0f} KB, {matched / len(texts):.1%} match"
    rows = [
        Result(title, ours, "ms of CPU", alone, "lxml, one by one"),
        Result("times lxml alone", alone / ours, "times", goal=goal, at_least=True),
        Result("reading of it, alone", reading, "ms of CPU"),
        Result("making lxml's tree, alone", tree - reading, "ms of CPU"),
        Result("expressions that lxml is asked", 100 * asked / len(texts), "%"),
        Result("built from texts", 1e3 * building / len(texts), "ms a filter"),
        Result("compiling by lxml, alone", 1e3 * compiling / len(texts), "ms a filter"),
    ]
    return [replace(row, section=SECTION) for row in rows]


def _again(sources: Sequence[str]) -> list[Event]:
    """Make events anew: what was read of others is kept with them."""
    return [Event("e", source, content_type=XML) for source in sources]


def _alone(compiled: Sequence[etree.XPath], source: str) -> list[int]:
    """List the expressions that hold, asked one by one; the document is parsed once."""
    tree = etree.fromstring(source.encode())
    return [number for number, each in enumerate(compiled) if each(tree)]


def _best(run: Callable[[], object], rounds: int) -> float:
    """Return the milliseconds of CPU of the best of some runs."""
    took = []
    for _ in range(rounds):
        begun = time.process_time()
        run()
        took.append(time.process_time() - begun)
    return 1e3 * min(took)
