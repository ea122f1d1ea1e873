"""The room's public class: what it takes, gives and refuses."""

from __future__ import annotations

import random
import tracemalloc
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from benchmarks.measure import memory_of, text_memory_of
from headgate import Event, Subscription
from headgate.contents.columns import all_read_only, read_only
from headgate.errors import EventError, FilterError, SubscriptionError
from headgate.xml.answers import answers
from headgate.xml.events import serialising
from headgate.xml.events.document import Document
from headgate.xml.events.reading import read_document
from headgate.xml.events.subject import Encoder
from headgate.xml.index import kernels, matching
from headgate.xml.index.build import build
from headgate.xml.index.columns import compile_all
from headgate.xml.index.index import XmlIndex
from headgate.xml.index.scratch import DONE, OUT, PATHS, MatchScratch, make_fixed, make_lists, make_sized
from headgate.xml.language.parse import parse_filter
from tests.seeds import seeds
from tests.xml.random_patterns import random_document, random_pattern
from tests.xml.test_agreement import event_of, subscriptions

if TYPE_CHECKING:
    from headgate.contents.protocol import Content
    from headgate.core.event import Id

SHOP = "<shop><item><name>pen</name><price>12</price></item><item><name>ink</name></item></shop>"


def shop() -> XmlIndex:
    return XmlIndex.build(
        [
            Subscription("dear", "//item[price > 10]/name{val}", "xpath"),
            Subscription("all", "//item{cont}", "xpath"),
            Subscription("tree", '//item[/price]/name_{val}[val="pen"]', "tree"),
            Subscription("quiet", "//item{}[price]", "xpath"),
            Subscription("none", "//item[price > 20]/name{val}", "xpath"),
        ]
    )


def event() -> Event:
    return Event("e1", SHOP, content_type="text/xml")


def test_answers_are_those_of_matching_views_that_return_something() -> None:
    index = shop()
    assert index.match(event()) == ["all", "dear", "quiet", "tree"]
    found = index.answers(event())
    assert sorted(found) == ["all", "dear", "tree"]
    assert found["dear"].values[-1] == ("pen",)
    assert found["all"].contents[0] == (
        "<item><name>pen</name><price>12</price></item>",
        "<item><name>ink</name></item>",
    )
    assert index.answer(event(), "dear") == found["dear"]
    assert index.answer(event(), "none") is None


@pytest.mark.parametrize("seed", seeds(4))
def test_answers_are_as_one_by_one(seed: int) -> None:
    rng = random.Random(seed)
    patterns = [random_pattern(rng) for _ in range(40)]
    index = XmlIndex.build(subscriptions(patterns[:20]))
    for subscription in subscriptions(patterns)[20:]:
        index.subscribe(subscription)
    for _ in range(4):
        document = read_document(random_document(rng))
        wanted = {}
        for number, subscription in enumerate(subscriptions(patterns)):
            pattern = parse_filter(subscription.filter)
            given = answers.answer(pattern, document)
            if given is not None and pattern.returning:
                wanted[number] = given
        assert index.answers(event_of(document)) == wanted


def test_one_that_returns_too_much_leaves_the_others_their_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serialising, "LARGEST", 1_000)
    filters = {"big": "//a{val}", "great": "//a{cont}", "small": "/a{id}", "whole": "/a{cont}"}
    index = XmlIndex.build([Subscription(identity, text, "xpath") for identity, text in filters.items()])
    asked = Event("e", "<a>" * 50 + "x" * 30 + "</a>" * 50, content_type="xml")
    refused: dict[Id, str] = {}
    found = index.answers(asked, refused)
    assert sorted(found) == ["small", "whole"]
    assert found["whole"] == index.answer(asked, "whole")
    assert sorted(refused) == ["big", "great"]
    assert all("has more than 1,000 bytes" in reason for reason in refused.values())
    with pytest.raises(EventError, match=r"^subscription 'big': .*1,000 bytes"):
        index.answers(asked)


def test_texts_that_several_return_are_written_once() -> None:
    filters = ["//item{cont}", "//item{cont}[price]", "/shop/item{val,cont}"]
    index = XmlIndex.build([Subscription(place, text, "xpath") for place, text in enumerate(filters)])
    found = index.answers(event())
    first = found[0].contents[-1]
    assert first is not None
    for place in (1, 2):
        column = found[place].contents[0 if place == 1 else 1]
        assert column is not None
        assert column[0] is first[0]


def test_names_of_strangers_are_not_kept() -> None:
    index = XmlIndex.build(
        [Subscription("s", "//*:k0{cont}", "xpath"), Subscription("t", "//*{val}", "xpath")]
    )
    index.answers(Event("e", "<a/>", content_type="xml"))
    kept = []
    tracemalloc.start()
    for number in range(12):
        names = [f"{letter}{number}{'x' * 20_000}" for letter in "bcdefghi"]
        data = f"<a xmlns:n='urn:{number}'><n:k0/>{''.join(f'<{name}/>' for name in names)}</a>"
        assert sorted(index.answers(Event("e", data, content_type="xml"))) == ["s", "t"]
        kept.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    assert kept[-1] - kept[1] < 160_000, "less than the names of one document"


def test_a_node_of_the_trie_is_gone_on_from_once() -> None:
    # It is reached at each level anew, and would be listed as often.
    columns = compile_all(
        map(parse_filter, ["//*" * 30, "/*" + "//*" * 29, "//*/*" + "//*" * 28, "//b" * 50])
    )
    arrays = all_read_only(build(columns))
    document = read_document("<a><b/>" * 60 + "</a>" * 60)
    classes = read_only(Encoder(columns.labels.texts()).encode(document.names))
    document = Document((), *map(read_only, document[1:]))  # type: ignore[arg-type]
    pairs = 1 << 14
    scratch = MatchScratch(make_fixed(arrays), make_sized(200), make_lists(pairs, pairs, pairs))
    assert kernels.match(arrays, document, classes, scratch, 3) == DONE
    assert sorted(scratch.fixed.out[: scratch.fixed.counts[OUT]].tolist()) == [0, 1, 2]
    assert scratch.sized.depth[: scratch.fixed.counts[PATHS]].max() <= len(arrays.trie.parent)


def test_what_would_fill_the_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "MOST_PAIRS", 1 << 13)
    index = XmlIndex.build([Subscription(place, "//*" * 60 + "/a" * place, "xpath") for place in range(2)])
    few, many = (f"<a>{'<b/><a>' * depth}{'</a>' * depth}</a>" for depth in (70, 120))
    for _ in range(2):
        assert index.match(Event("e", few, content_type="xml")) == [0, 1]
        with pytest.raises(EventError, match="the filters meet in more than 8,192 places"):
            index.match(Event("e", many, content_type="xml"))


def test_a_filter_in_tree_notation_is_kept_as_xpath() -> None:
    index = shop()
    assert parse_filter(index.filter("tree")) == parse_filter('//item[/price]/name_{val}[val="pen"]', "tree")
    assert index.filter("all") == "//item{cont}"


def test_always_matches_and_returns_nothing() -> None:
    index = XmlIndex.build([Subscription("always", XmlIndex.always, "xpath")])
    for data in ("<a/>", "<x:a xmlns:x='urn:x'>t</x:a>"):
        asked = Event("e", data, content_type="xml")
        assert index.match(asked) == ["always"]
        assert index.answers(asked) == {}


def test_explain_says_why() -> None:
    index = shop()
    assert index.explain(event(), "dear").matches
    assert not index.explain(event(), "none").matches
    assert index.explain(event(), "none").lines()


def test_numbers_and_next() -> None:
    index = XmlIndex.build([Subscription(n, f"//a[. > {n}]", "xpath") for n in range(10)])
    asked = Event("e", "<a>5</a>", content_type="xml")
    assert index.numbers(asked).tolist() == [0, 1, 2, 3, 4]
    assert index.numbers(asked, 2, 1).tolist() == [1, 2]
    assert index.next(asked, 4) == 4
    assert index.next(asked, 5) is None
    index.unsubscribe(3)
    assert index.numbers(asked, at_least=2).tolist() == [2, 4]
    with pytest.raises(SubscriptionError, match="ids here are text"):
        shop().numbers(event())


def test_batches_refuse_what_cannot_be_read() -> None:
    index = shop()
    good = pa.RecordBatch.from_pydict({"id": ["e"], "data": [SHOP], "datacontenttype": ["xml"]})
    assert index.match_batch(good).column(1).to_pylist() == ["all", "dear", "quiet", "tree"]
    assert index.match_batch([event()]).num_rows == 4
    bad: list[tuple[dict[str, list[object]], str]] = [
        ({"id": ["e"], "data": ["<a>"], "datacontenttype": ["xml"]}, "event 'e'"),
        ({"id": ["e"], "data": [SHOP], "datacontenttype": ["turtle"]}, "look at XML"),
        ({"id": ["e"], "data": [SHOP]}, "no column 'datacontenttype'"),
        ({"id": ["e"], "data": [None], "datacontenttype": ["xml"]}, "null: give text"),
        ({"id": ["e"], "data": [1], "datacontenttype": ["xml"]}, "int64: give text"),
    ]
    for columns, message in bad:
        with pytest.raises(EventError, match=message):
            index.match_batch(pa.RecordBatch.from_pydict(columns))


def test_what_is_refused() -> None:
    with pytest.raises(FilterError):
        XmlIndex.build([Subscription("bad", "//a[", "xpath")])
    index = shop()
    with pytest.raises(SubscriptionError, match="subscribed already"):
        index.subscribe(Subscription("all", "//a", "xpath"))
    with pytest.raises(SubscriptionError, match="there is no subscription 'nobody' here"):
        index.unsubscribe("nobody")
    with pytest.raises(EventError, match="look at XML"):
        index.match(Event("e", {"a": 1}))
    content: Content = index
    assert content.filter_planes(0, 1) is None


def test_sizes_are_told() -> None:
    index = shop()
    assert memory_of(index) > 0
    assert text_memory_of(index) > 0
    assert [clause.filter for clause in XmlIndex.clauses("//a[b]/c")] == ["//a/b{}", "//a/c{}"]
