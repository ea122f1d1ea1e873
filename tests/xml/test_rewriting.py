"""Views computed from others: always the same as from the document; and what the rules are needed for."""

from __future__ import annotations

import random
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
import pytest

from headgate.core.event import XML, Event
from headgate.errors import EventError, PlanError
from headgate.workloads.xml.xmark import XMark
from headgate.xml.language.model import CHILD, DESCENDANT, Node, Pattern
from headgate.xml.language.parse import parse_filter
from headgate.xml.views.rewriting import Part, Rewriting, Scan
from headgate.xml.views.views import XmlViews
from tests.seeds import seeds, share
from tests.xml.random_patterns import random_document
from tests.xml.random_views import planted_document, view_set

if TYPE_CHECKING:
    from collections.abc import Iterator


def covers_of(views: XmlViews, view: int, most: int) -> Iterator[tuple[int, ...]]:
    """List minimal sets of other views that cover one: up to a number of each size."""
    sources = np.array([each for each in range(len(views)) if each != view], np.int32)
    embeds, masks = views.coverage(sources, np.full(len(sources), view, np.int32))
    useful = [
        (each, int(mask))
        for each, mask, found in zip(sources.tolist(), masks.tolist(), embeds.tolist(), strict=True)
        if found and mask
    ]
    whole = int(views.needed[view])
    for size in (1, 2, 3, 4) if len(useful) < 40 else (1, 2):
        count = 0
        for chosen in combinations(useful, size):
            if (
                count < most
                and _covers(chosen, whole)
                and not any(_covers(chosen[:out] + chosen[out + 1 :], whole) for out in range(size))
            ):
                count += 1
                yield tuple(each for each, _ in chosen)


def _covers(chosen: tuple[tuple[int, int], ...], whole: int) -> bool:
    found = 0
    for _, mask in chosen:
        found |= mask
    return found == whole


def _events(rng: random.Random, views: XmlViews, count: int) -> list[Event]:
    texts = [
        planted_document(rng, rng.choice(views.patterns)) if rng.random() < 0.7 else random_document(rng)
        for _ in range(count)
    ]
    return [Event(number, text, content_type=XML) for number, text in enumerate(texts)]


def _compare(numbers: range) -> tuple[int, int, int]:
    """Compare rewritings with direct results: counts rewritings, results that are something, and joins."""
    made = something = joined = 0
    for seed in numbers:
        rng = random.Random(seed)
        views = XmlViews.build(view_set(rng, 16))
        events = _events(rng, views, 6)
        direct = [[views.result(view, event) for view in range(len(views))] for event in events]
        for view in range(len(views)):
            for inputs in covers_of(views, view, 6):
                made += 1
                joined += len(inputs) > 1
                plan = views.rewriting(view, inputs)
                for results in direct:
                    found = plan.run([results[each] for each in inputs])
                    assert found == results[view], (seed, view, inputs)
                    something += found is not None
    return made, something, joined


def test_rewritings_give_what_the_document_gives() -> None:
    """No difference in any rewriting of random views on random documents."""
    made, something, joined = _compare(seeds(40))
    assert made > share(1000)
    assert something > share(1000)
    assert joined > share(200)


def test_rewritings_of_auctions_give_what_the_document_gives() -> None:
    """Nor in any over the auctions of XMark, where most views hold."""
    workload = XMark()
    views = XmlViews.build(workload.views(4000, 3))
    texts = workload.documents(np.arange(3), 3)
    events = [Event(number, text, content_type=XML) for number, text in enumerate(texts)]
    made = something = joined = 0
    for view in range(share(600)):
        for inputs in covers_of(views, view, 2):
            made += 1
            joined += len(inputs) > 1
            plan = views.rewriting(view, inputs)
            for event in events:
                found = plan.run([views.result(each, event) for each in inputs])
                assert found == views.result(view, event)
                something += found is not None
    assert made > share(200)
    assert something > share(300)
    assert joined > share(100)


@pytest.mark.nightly
def test_many_rewritings_give_what_the_document_gives() -> None:
    """The same at length."""
    made, something, joined = _compare(range(1000, 1400))
    assert made > 10_000
    assert something > 10_000
    assert joined > 2000


def _literally(view: str, query: str, text: str, places: tuple[int, ...]) -> tuple[XmlViews, object, object]:
    """Compute a query from a view by a mapping of nodes, as if nothing more were needed; and directly."""
    views = XmlViews.build([parse_filter(view), parse_filter(query)])
    event = Event(1, text, content_type=XML)
    target = views.patterns[1]
    parts = tuple(
        Part(
            node,
            (Scan(0, 0, place, views.patterns[0].nodes[place]),),
            valued=False,
            named=False,
            tests=(),
        )
        for node, place in zip(target.nodes, places, strict=True)
    )
    given = views.result(0, event)
    found = Rewriting(target, parts).run([given])
    return views, found, views.result(1, event)


def _pair(views: XmlViews) -> tuple[bool, int]:
    embeds, masks = views.coverage(np.array([0], np.int32), np.array([1], np.int32))
    return bool(embeds[0]), int(masks[0])


LITERAL = [
    pytest.param(
        "//a{id}[. = 'x']", "//a{id}", "<r><a>x</a><a>y</a></r>", (0,), False, "does not embed",
        id="a predicate that the query lacks loses results",
    ),
    pytest.param(
        "//a{id}[b = 'x']", "//a{id}[b]", "<r><a><b>x</b></a><a><b>y</b></a></r>", (0, 1), False,
        "does not embed", id="so does one below",
    ),
    pytest.param(
        "//a{id}[. > 7]", "//a{id}[. > 5]", "<r><a>6</a><a>8</a></r>", (0,), False, "does not embed",
        id="and one that is only stronger",
    ),
    pytest.param(
        "//a{id}", "//a{id}[. = 'x']", "<r><a>x</a><a>y</a></r>", (0,), True, "tests of node 0",
        id="a predicate that is not covered cannot be enforced",
    ),
    pytest.param(
        "//a{id}[. > 5]", "//a{id}[. > 7]", "<r><a>6</a><a>8</a></r>", (0,), True, "tests of node 0",
        id="nor can one that is only implied the other way",
    ),
    pytest.param(
        "//*{id}", "//a{id}", "<a><b/></a>", (0,), True, "id of node 0",
        id="a wildcard does not say which nodes have the label",
    ),
    pytest.param(
        "//*:a{id}", "//a{id}", "<a><n:a xmlns:n='urn:n'/></a>", (0,), True, "id of node 0",
        id="nor does the name in any namespace",
    ),
    pytest.param(
        "//a{id}/@*{cont}", "//a{id}/@x{id}", "<a x='1' y='1'/>", (0, 1), True, "id of node 1",
        id="the cont of an attribute does not show its name",
    ),
    pytest.param(
        "//a{id}/b{id}", "//a{id}//b{id}", "<a><b/><c><b/></c></a>", (0, 1), False, "does not embed",
        id="a child is not any descendant",
    ),
    pytest.param(
        "/a{id}", "//a{id}", "<a><a/></a>", (0,), False, "does not embed", id="a root is not any element"
    ),
]  # fmt: skip


@pytest.mark.parametrize(("view", "query", "text", "places", "embeds", "reason"), LITERAL)
def test_each_rule_is_needed(
    view: str, query: str, text: str, places: tuple[int, ...], embeds: bool, reason: str
) -> None:
    """What the rules forbid returns something else than the query; they do forbid it, and say why."""
    views, found, direct = _literally(view, query, text, places)
    assert found != direct
    assert direct is not None
    embedded, mask = _pair(views)
    assert embedded == embeds
    assert mask != int(views.needed[1])
    with pytest.raises(PlanError, match=reason):
        views.rewritten(1, [0], [None])


ENOUGH = [
    pytest.param("//a{val}", "//a{id}[. = 'x']", id="a predicate is tested again on val"),
    pytest.param("//a{cont}", "//a{val}[. = 'x']", id="or on cont, which has val too"),
    pytest.param("//*{cont}", "//a{val}[. = 'x']", id="the name is read from cont"),
    pytest.param(
        "//a{val}[. != 'q']//b{val}", "//a{id}[. = 'x1']//b{id}[. = 1]", id="what is implied, and another"
    ),
    pytest.param("//a[.//b{id}]", "//a//b{id}", id="a branch is as good as a step"),
    pytest.param("//a{id}//a{id}", "//a{id}//a{id}//a{id}", id="one view through several embeddings"),
    pytest.param("//text(){cont}", "//text(){val}[starts-with(., 'x')]", id="the cont of a text is its val"),
    pytest.param("//@x{cont}", "//@x{val}[. = '1']", id="so is that of an attribute"),
    pytest.param("//a{id}[. >= 1][. <= 1]", "//a{id}[. = 1]", id="tests that say the same"),
]
DOCUMENT = """<r><a x="1">x<a>x<b>1</b><a x="2">x</a></a></a><b>1</b>
<n:a xmlns:n="urn:n">x</n:a><a>1</a><a>x<b>1</b></a><a>x</a><a x="&gt;">x<b>2</b></a><c>x</c></r>"""


@pytest.mark.parametrize(("view", "query"), ENOUGH)
def test_what_covers_is_enough(view: str, query: str) -> None:
    """One view computes another, with the same result."""
    views = XmlViews.build([parse_filter(view), parse_filter(query)])
    assert _pair(views) == (True, int(views.needed[1]))
    event = Event(1, DOCUMENT, content_type=XML)
    direct = views.result(1, event)
    assert direct is not None
    assert views.rewritten(1, [0], [views.result(0, event)]) == direct


def test_a_plan_can_be_read() -> None:
    """Lines say what is scanned, intersected, selected, reduced and kept."""
    views = XmlViews.build(
        [parse_filter(each) for each in ("//a//b{val}", "//a{id}[c]", "//a{id}[c]//b{val}[. = 'x']")]
    )
    assert views.plan_of(2, [0, 1]) == [
        "node 0 a:",
        "  intersect",
        "    scan view 0 node 0 a (id)",
        "    scan view 1 node 0 a (id)",
        "  project id",
        "node 1 c:",
        "  scan view 1 node 1 c (id)",
        "  project id",
        "node 2 b:",
        "  scan view 0 node 1 b (id val)",
        "  select val = 'x'",
        "  project id val",
        "reduce along //0 0/1 0//2",
    ]


def test_what_is_missing_is_named() -> None:
    """All items that nothing covers are listed, in one line."""
    views = XmlViews.build([parse_filter("//a"), parse_filter("//a{val}//b{cont}[. = 1]")])
    with pytest.raises(PlanError) as refused:
        views.plan_of(1, [0])
    assert str(refused.value) == (
        "view 1 cannot be computed from views [0]: nothing covers id of node 1 (b), cont of node 1 (b), "
        "tests of node 1 (b); add a view that does"
    )


def test_a_large_view_is_refused() -> None:
    """More than 16 nodes are not planned for."""
    chain = [Node("a", DESCENDANT), *(Node("a", CHILD, place) for place in range(16))]
    views = XmlViews.build([Pattern(tuple(chain)), Pattern(tuple(chain[:1]))])
    with pytest.raises(PlanError, match="view 0 has 17 nodes"):
        views.plan_of(0, [1])
    with pytest.raises(PlanError, match="does not embed"):
        views.plan_of(1, [0])


def test_an_input_that_gives_nothing_gives_nothing() -> None:
    """A view whose input does not hold does not hold; and a result that is nothing costs nothing to send."""
    views = XmlViews.build([parse_filter("//a{val}"), parse_filter("//a{val}[. = 'x']")])
    assert views.rewritten(1, [0], [None]) is None
    assert views.size(None) == (0, 0)


def test_size_counts_ids_and_texts() -> None:
    """A node is one row and 12 bytes, and its texts as UTF-8."""
    views = XmlViews.build([parse_filter("//a{id}//b{val}")])
    found = views.result(0, Event(1, "<a><b>zo\u00eb</b><b/></a>", content_type=XML))
    assert views.size(found) == (3, 3 * 12 + 4)


def test_views_look_at_xml_only() -> None:
    """A record is no document."""
    with pytest.raises(EventError):
        XmlViews.build([parse_filter("//a")]).result(0, Event(1, {"a": 1}))
