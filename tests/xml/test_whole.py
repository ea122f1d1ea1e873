"""Expressions of the whole of XPath 1.0: lxml says what is right, whatever way leads to the answer."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from lxml import etree

from headgate import Engine, Event, Node, Omissions, Subscription
from headgate.contents.columns import from_bytes
from headgate.core.event import XML as MEDIA_TYPE
from headgate.errors import FilterError, HeadgateError, PlanError, SubscriptionError
from headgate.xml.events.reading import pack, read_document, unpack
from headgate.xml.index.columns import Columns
from headgate.xml.index.index import XmlIndex, XmlRoom, xml_keys
from headgate.xml.kind import KIND
from headgate.xml.language.grammar import parse_expression
from headgate.xml.language.words import cut
from headgate.xml.whole.evaluating import compiled, tree_of
from headgate.xml.whole.reading import WholeFilter, XPathSettings, clauses, read_filter
from headgate.xml.whole.writing import Written
from tests.seeds import seeds
from tests.xml.random_expressions import NAMESPACES, random_expression, random_source

if TYPE_CHECKING:
    from pathlib import Path

ALL = XPathSettings(NAMESPACES, "allow")
FILTERS, DOCUMENTS = 16, 5


def event_of(source: str | bytes) -> Event:
    return Event("e", source, content_type="xml")


def right(texts: list[str], source: str) -> list[int]:
    """List the expressions that lxml says are true."""
    root = etree.fromstring(source.encode())
    found = [etree.XPath(f"boolean({text})", namespaces=NAMESPACES)(root) for text in texts]
    return [number for number, held in enumerate(found) if held]


def expressions(rng: random.Random, count: int) -> list[str]:
    """Draw expressions that lxml decides."""
    found: list[str] = []
    while len(found) < count:
        text = random_expression(rng)
        if isinstance(read_filter(text, settings=ALL)[1], WholeFilter):
            found.append(text)
    return found


def subscriptions(texts: list[str], first: int = 0) -> list[Subscription]:
    return [Subscription(first + number, text, "xpath") for number, text in enumerate(texts)]


@pytest.mark.jit_off
@pytest.mark.parametrize("seed", seeds(96))
def test_every_way_to_ask_agrees_with_lxml(seed: int, tmp_path: Path) -> None:
    """Built, late, compacted, saved; one by one and in a batch; with a tree pattern among them."""
    rng = random.Random(seed)
    texts = expressions(rng, FILTERS)
    sources = [random_source(rng) for _ in range(DOCUMENTS)]
    wanted = [right(texts, source) for source in sources]
    half = FILTERS // 2
    index = XmlIndex.build(subscriptions(texts[:half]), settings=ALL)
    for each in subscriptions(texts[half:], half):
        index.subscribe(each)
    assert [index.match(event_of(source)) for source in sources] == wanted, texts
    index.subscribe(Subscription(FILTERS, "//*", "xpath"))
    index.unsubscribe(0)
    index.compact()
    wanted = [[*(number for number in each if number), FILTERS] for each in wanted]
    assert [index.match(event_of(source)) for source in sources] == wanted, texts
    index.save(tmp_path / "snapshot")
    opened = XmlIndex.open(tmp_path / "snapshot")
    assert opened.settings == ALL
    columns: list[pa.Array[Any]] = [
        pa.array([f"e{number}" for number in range(DOCUMENTS)]),
        pa.array(sources),
        pa.array([MEDIA_TYPE] * DOCUMENTS),
    ]
    batch = pa.RecordBatch.from_arrays(columns, names=["id", "data", "datacontenttype"])
    found = opened.match_batch(batch).to_pydict()
    pairs = [(f"e{place}", number) for place, each in enumerate(wanted) for number in each]
    assert list(zip(found["event_id"], found["subscription_id"], strict=True)) == pairs
    carried = [unpack(pack(read_document(source))) for source in sources]
    assert [[int(n) + 1 for n in opened.match_document(each)] for each in carried] == wanted


@pytest.mark.nightly
def test_a_hundred_thousand_pairs_agree_with_lxml() -> None:
    pairs = 0
    for seed in range(1_000_000, 1_000_260):
        rng = random.Random(seed)
        texts = expressions(rng, 40)
        index = XmlIndex.build(subscriptions(texts), settings=ALL)
        for _ in range(10):
            source = random_source(rng)
            assert index.match(event_of(source)) == right(texts, source), (texts, source)
            pairs += len(texts)
    assert pairs > 100_000


@pytest.mark.parametrize("seed", seeds(32, 500))
def test_what_is_written_for_lxml_means_what_was_read(seed: int) -> None:
    """All values, not only whether they are true."""
    rng = random.Random(seed)
    for _ in range(20):
        text = random_expression(rng)
        words = cut(read_filter(text, settings=ALL)[0])
        written = Written(parse_expression(words, "xpath"))
        root = etree.fromstring(random_source(rng).encode())
        mine, yours = (
            etree.XPath(f"string({each})", namespaces=spaces, smart_strings=False)(root)
            for each, spaces in ((text, NAMESPACES), (written.text, written.namespaces or None))
        )
        assert mine == yours, text


@pytest.mark.parametrize(
    "text",
    [
        "//a[1",
        "//a/",
        "//a[",
        "//a[b or]",
        "//a)",
        "(//a",
        "//a[b c]",
        "//a[concat('x')]",
        "//a[true(1)]",
        "//a[substring('x')]",
        "//a[translate('x', 'y')]",
        "//a[count('x')]",
        "//a['x' | b]",
        "//a['x'/b]",
        "//a[1][b + ]",
        "//a/@@b",
        "//a/attribute::@b",
        "//a/..[b]",
        "//a[processing-instruction(b)]",
        "//a[node(b)]",
        "//a[or]or",
    ],
)
def test_what_lxml_refuses_is_refused(text: str) -> None:
    with pytest.raises(etree.XPathError):
        etree.XPath(text)(etree.fromstring("<a><b/></a>"))
    with pytest.raises(FilterError):
        read_filter(text, settings=ALL)


def test_tree_patterns_keep_their_way() -> None:
    for text in (
        "//a[b]/c",
        "//a[(b)]",
        "//a[3 < b]",
        "/a/child::b",
        "//a{val}",
        "//a = 'x'",
        "//a[b and c]",
    ):
        assert not isinstance(read_filter(text)[1], WholeFilter), text


def test_words_of_xpath_are_names_where_a_name_is_due() -> None:
    text = "//or[and or div][mod * 2 = 4]/div"
    source = "<x><or><and/><mod>2</mod><div/></or></x>"
    assert right([text], source) == [0]
    assert XmlIndex.build(subscriptions([text])).match(event_of(source)) == [0]


def test_namespaces_are_those_of_the_set(tmp_path: Path) -> None:
    spaces = {"p": "urn:p"}
    engine = Engine.build(
        [Subscription("s", "//p:a[@p:b or p:*]", "xpath"), Subscription("t", "//p:a", "xpath")],
        namespaces=spaces,
    )
    event = event_of('<r><x:a xmlns:x="urn:p" x:b="1"/></r>')
    assert engine.match(event) == ["s", "t"]
    assert engine.filter("s") == "//Q{urn:p}a[@Q{urn:p}b or Q{urn:p}*]"
    engine.save(tmp_path / "snapshot")
    opened = Engine.open(tmp_path / "snapshot")
    opened.subscribe(Subscription("u", "//p:a[not(b)]", "xpath"))
    assert opened.match(event) == ["s", "t", "u"]
    with pytest.raises(FilterError, match="the prefix q: is not declared"):
        opened.subscribe(Subscription("v", "//q:*[1]", "xpath"))
    for wrong in ({"": "urn:x"}, {"a b": "urn:x"}, {"a": ""}, {"p:q": "urn:x"}, ["a"]):
        with pytest.raises(SubscriptionError):
            Engine.build([Subscription("s", "//a", "xpath")], namespaces=wrong)  # type: ignore[arg-type]
    with pytest.raises(SubscriptionError, match="namespaces"):
        Engine.build([Subscription("s", "a > 1")], namespaces=spaces)


def test_filters_that_nothing_leads_to_need_leave(tmp_path: Path) -> None:
    filters = [Subscription("s", "not(//a)", "xpath"), Subscription("t", "//a[1]", "xpath")]
    with pytest.raises(FilterError, match=r"nothing in the filter can be indexed"):
        Engine.build(filters)
    engine = Engine.build(filters, unindexed="allow")
    assert [engine.match(event_of(each)) for each in ("<a/>", "<b/>")] == [["t"], ["s"]]
    engine.save(tmp_path / "snapshot")
    counts = XmlRoom().counts(tmp_path / "snapshot")
    assert (counts.counts["verified"], counts.counts["unindexed"]) == (2, 1)
    assert "(lxml decides 2, 1 of them for every event)" in counts.sentence
    Engine.open(tmp_path / "snapshot").subscribe(Subscription("u", "not(//b)", "xpath"))
    with pytest.raises(SubscriptionError, match="unindexed is 'yes'"):
        Engine.build(filters, unindexed="yes")


def test_what_is_selected_is_given() -> None:
    texts = [
        "//b[2]",
        "//@n[. > 1 or false()]",
        "count(//b)",
        "//b[2] or //c",
        "concat(//b, 'é')",
        "//comment()",
        "//b[3]",
    ]
    index = XmlIndex.build(subscriptions(texts), settings=ALL)
    event = event_of('<a><b n="1">x</b><b n="2">y<!-- z --></b></a>')
    found = index.results(event, list(range(len(texts))), 10)
    rows = [
        each.rows and [*each.rows] for each in found if each is not None and not isinstance(each, Exception)
    ]
    assert rows == [
        [('<b n="2">y</b>',)],
        [("2",)],
        [("2",)],
        [()],
        [("xé",)],
        [("<!-- z -->",)],
        (),
    ]
    assert index.match(event) == [0, 1, 2, 3, 4, 5]
    given = index.answers(event)
    assert [given[number].tuples(5).rows for number in (0, 2)] == [(('<b n="2">y</b>',),), (("2",),)]
    assert 3 not in given
    assert KIND.given(index, event, 1, 5).plain == {"rows": [{"value": "2"}], "complete": True}
    (cut_short,) = index.results(event_of("<a><b/><b/><b/></a>"), [5], 1)
    assert cut_short is not None
    assert not cut_short.rows  # type: ignore[union-attr]


def test_names_are_written_as_content_is() -> None:
    index = XmlIndex.build(subscriptions(["//*[1]/*[last()]"]), settings=ALL)
    event = event_of('<a><b xmlns="urn:x" c="1">x<!-- y --></b></a>')
    (found,) = index.results(event, [0], 10)
    assert found is not None
    assert found.rows == [('<n0:b xmlns:n0="urn:x" c="1">x</n0:b>',)]  # type: ignore[union-attr]


def test_explanations() -> None:
    index = XmlIndex.build(subscriptions(["//a[b or c][2]", "not(//a)", "//a[self::b]"]), settings=ALL)
    held = index.explain(event_of("<r><a><b/></a><a><c/></a></r>"), 0)
    assert held.matches
    assert held.lines() == [
        "match",
        "  indexed     //a/b",
        "  or          //a/c",
        "  verified    //a[b or c][2]   (true by lxml)",
    ]
    near = index.explain(event_of("<r><a><b/></a></r>"), 0)
    assert near.lines()[0] == "no match: the indexed part holds, but the expression as a whole is false"
    far = index.explain(event_of("<r><a><B/></a></r>"), 0)
    assert far.lines()[0] == "no match: the indexed part does not hold"
    assert far.lines()[-1] == "  missing   /b   (/r/a has no child b, but B: names differ in case)"
    assert far.plain()["reached"] is False
    assert index.explain(event_of("<b/>"), 1).lines() == [
        "match",
        "  indexed     nothing: every document is asked",
        "  verified    not(//a)   (true by lxml)",
    ]
    assert index.explain(event_of("<a/>"), 2).lines()[0] == "no match: the expression can never be true"


def test_plans_refuse_what_they_cannot_rewrite() -> None:
    with pytest.raises(PlanError, match=r"the filter of subscription 's' is no tree pattern"):
        KIND.views([Subscription("s", "//a[b or c]", "xpath")])


def test_shards_know_what_is_demanded() -> None:
    writer = XmlRoom(ALL).writers.writer()
    for text in ("//a[b or c]", "//a[2]/d", "not(//a)", "//a[b]", "//a | //b"):
        writer.add(text, "xpath")
    keys = xml_keys(from_bytes(writer.to_bytes(), Columns))
    assert keys == [{"a"}, {"a", "d"}, None, {"a", "b"}, None]


def test_ranking_takes_an_expression_for_one_clause() -> None:
    found = clauses("//a[b = 'x' or @c] and //d", settings=ALL)
    assert [(each.filter, each.names) for each in found] == [("//a[b = 'x' or @c] and //d", ("b", "d", "@c"))]
    engine = Engine.build(
        [
            Subscription("s", "//a[b or c]", "xpath", score=2.0),
            Subscription("t", "//a[1]", "xpath", score=1.0),
        ]
    )
    assert [each.subscription for each in engine.top(event_of("<a><b/></a>"), 2)] == ["s", "t"]


def test_mixed_sets_take_settings_of_each_kind() -> None:
    engine = Engine.build(
        [Subscription("s", "//p:a[2]", "xpath"), Subscription("t", "a > 1")], namespaces={"p": "urn:p"}
    )
    assert engine.match(event_of('<r xmlns="urn:p"><a/><a/></r>')) == ["s"]
    assert engine.match(Event("e", {"a": 2})) == ["t"]


BOMBS = {
    "cross products": "//*[//*[//*[//*[//*]]]]",
    "following, again and again": "count(//*/following::*/preceding::*/following::*)",
    "sets of sets": "//*//*//*//*[position() > 1]//*[position() > 1]",
    "texts of texts": f"string-length(concat({', '.join(['string(/)'] * 900)})) > 5",
    "letters by letters": f"//a[translate(., '{'z' * 20_000}', '') = 'x']",
    "nodes by nodes": "//*[. = //*] = //*[. = //*]",
    "counted": "//*[count(preceding::*) > count(following::*)][count(//*) > 5]",
}


def test_bombs_are_left_out_and_the_others_answered() -> None:
    source = "<r>" + "<a>" * 100 + "x" * 40_000 + "</a>" * 100 + "<a><b>12</b><c/></a>" * 3000 + "</r>"
    texts = [*BOMBS.values(), "//a[b = 12][2]"]
    index = XmlIndex.build(subscriptions(texts), settings=ALL)
    event = event_of(source)
    with Omissions() as left_out:
        assert index.match(event) == [len(BOMBS)]
    told = {each.subscription: each.reason for each in left_out}
    assert set(told) == set(range(len(BOMBS)))
    assert all("it may take more than 33,554,432 steps" in reason for reason in told.values())
    assert index.explain(event, 0).lines()[0].startswith("left out: it may take more than")
    (refused,) = index.results(event, [0], 5)
    assert isinstance(refused, HeadgateError)
    # Small documents are asked.
    small = "<r><a><b>12</b></a><a><b>12</b></a></r>"
    assert index.match(event_of(small)) == right(texts, small)


def test_deep_and_long_expressions_are_refused_or_taken() -> None:
    deep = "//a" + "[a" * 63 + "]" * 63
    assert not isinstance(read_filter(deep)[1], WholeFilter)
    for text in (
        "//a" + "[not(a" * 40 + ")]" * 40,
        "(" * 70 + "//a or //b" + ")" * 70,
        "//a[" + "not(" * 70 + "b" + ")" * 70 + "]",
    ):
        with pytest.raises(FilterError, match="nests deeper than 64"):
            read_filter(text, settings=ALL)
    wide = "//a[" + " or ".join(f"b{number}" for number in range(400)) + "]"
    found = read_filter(wide, settings=ALL)[1]
    assert isinstance(found, WholeFilter)
    assert found.needs is not None
    assert len(found.needs) == 1
    index = XmlIndex.build(subscriptions([wide, "//a[1" + " + 1" * 1500 + " = 1501]"]), settings=ALL)
    assert index.match(event_of("<a><b399/></a>")) in ([0], [0, 1])


def test_numbers_are_read_as_lxml_reads_them() -> None:
    """Exponents, and more digits than a float has."""
    texts = [
        f"//a[. {sign} {number} or b]" for sign in ("=", "<", ">") for number in ("1000", "0.1", "3", "33.3")
    ]
    index = XmlIndex.build(subscriptions(texts))
    values = ("1e3", "1E3", "1e", "0.1", "0.10000000000000000000001", " 3 ", "2.9999999999999999999", "33.30")
    for value in (*values, "-1", "+3", "1e-1", "", "NaN", "0" * 400 + "3", "1" * 400):
        source = f"<a>{value}</a>"
        assert index.match(event_of(source)) == right(texts, source), value


@pytest.mark.parametrize(
    "encoding",
    ["iso-8859-1", "windows-1252", "utf-16", "utf-16-le", "koi8-r", "shift_jis", "gb18030", "utf-32"],
)
def test_encodings_are_those_that_lxml_reads(encoding: str) -> None:
    text = {"koi8-r": "Привет", "shift_jis": "日本語", "gb18030": "中文"}.get(encoding, "häuser")
    declared = encoding.removesuffix("-le")
    data = f'<?xml version="1.0" encoding="{declared}"?><!--x--><a n="1">{text}</a>'.encode(encoding)
    assert etree.fromstring(data).text == text
    index = XmlIndex.build(
        subscriptions([f"//a = '{text}'", f"/a[. = '{text}'][1]", "/comment()"]), settings=ALL
    )
    assert index.match(event_of(data)) == [0, 1, 2]


def test_a_tree_is_made_once_a_document() -> None:
    document = read_document("<a><b/></a>")
    assert tree_of(document) is tree_of(document)
    assert compiled("//b[1]") is compiled("//b[1]")
    large = [read_document(f"<a>{'x' * 1_500_000}{number}</a>") for number in range(4)]
    first = [tree_of(each) for each in large]
    assert tree_of(large[3]) is first[3]
    assert tree_of(large[0]) is not first[0]


def test_costs_count_what_lxml_does() -> None:
    index = XmlIndex.build(subscriptions(["//a[2]", "//a[b]", "not(//c)", "//z[1]"]), settings=ALL)
    found = index.check_costs([event_of("<r><a/><a><b/></a></r>")] * 2)
    assert found.candidates.tolist() == [2, 2, 2, 0]
    assert found.work[0] > 0
    assert found.work[3] == 0


def test_rooms_have_settings() -> None:
    room = XmlRoom(XPathSettings({"p": "urn:p"}))
    assert room.clauses("//p:a[1]", "xpath")[0].filter == "//Q{urn:p}a[1]"
    assert room.build(subscriptions(["//p:a[1]"])).match(event_of('<a xmlns="urn:p"/>')) == [0]


def test_patterns_are_loosened_where_lxml_reads_otherwise() -> None:
    """A comment parts a text, and an exponent makes a number: only then."""
    texts = ["//a[text() = 'x'][1]", "//a[text() > 5 or b]", "//a[. > 5][1]", "//a[text() != 'xy'][1]"]
    index = XmlIndex.build(subscriptions(texts))
    for source in (
        "<a>x<!-- -->y</a>",
        "<a>xy</a>",
        "<a>1<?p?>7</a>",
        "<a>1e1</a>",
        "<a>4</a>",
        "<a>1<b/>e1</a>",
        "<!-- --><a>x</a>",
    ):
        assert index.match(event_of(source)) == right(texts, source), source
    assert index.verified(event_of("<a>4</a>")) == [3]
    assert index.verified(event_of("<a>4e1</a>")) == [1, 2, 3]
    assert index.verified(event_of("<a>x<!-- -->y</a>")) == [0, 1, 3]


def test_late_filters_of_ranks_and_graphs_know_the_namespaces(tmp_path: Path) -> None:
    spaces = {"p": "urn:p"}
    ranked = Engine.build([Subscription("s", "//p:a[1]", "xpath", score=1.0)], namespaces=spaces)
    hung = Engine.build(
        [Subscription("s", "//p:a[1]", "xpath", node="n")],
        nodes=[Node("n", "//p:a[last()]", dialect="xpath")],
        namespaces=spaces,
    )
    event = Event("e", '<a xmlns="urn:p"/>', source="n", content_type="xml")
    for name, engine in (("ranked", ranked), ("graph", hung)):
        engine.save(tmp_path / name)
        opened = Engine.open(tmp_path / name)
        more = {"node": "n"} if engine is hung else {"score": 2.0}
        opened.subscribe(Subscription("t", "//p:a[not(p:b)]", "xpath", **more))
        assert sorted(opened.match(event)) == ["s", "t"], name
