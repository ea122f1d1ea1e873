"""Feeds to events: RSS 1.0 as it should be, and as it is."""

from __future__ import annotations

import contextlib
import datetime as dt
import random
import re
from typing import TYPE_CHECKING

import pytest

from headgate import Event
from headgate.contents.feeds.reading import read_date
from headgate.contents.feeds.vocabulary import DC
from headgate.contents.feeds.vocabulary import RSS as RSS_SPACE
from headgate.core.event import RSS, SECOND_MARK
from headgate.errors import EventError
from headgate.rdf.events.feeds import CHANNEL, HAS_ITEMS, ITEM, read_feed
from headgate.rdf.events.reading import Reader, graph_of, read_graph
from headgate.rdf.events.triples import write_lines
from headgate.rdf.language.model import RDF, TYPE, iri, literal
from tests.seeds import seeds

if TYPE_CHECKING:
    from headgate.contents.feeds.reading import Feed

HERE = Reader(isolated=False)
TITLE, LINK, DESCRIPTION = (iri(RSS_SPACE + name) for name in ("title", "link", "description"))
SEQ = iri(f"{RDF}Seq")
NEWS = "<http://news.example.org/>"

FEED = """<?xml version="1.0" encoding="utf-8"?>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/"
         xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:e="http://example.org/">
  <channel rdf:about="http://news.example.org/">
    <title>News</title>
    <link>http://news.example.org/</link>
    <description>All &amp; sundry</description>
    <dc:publisher>Example</dc:publisher>
    <e:editor><rdf:Description><e:name>Ada</e:name></rdf:Description></e:editor>
    <items><rdf:Seq>
      <rdf:li rdf:resource="http://news.example.org/1"/>
      <rdf:li rdf:resource="http://news.example.org/2"/>
    </rdf:Seq></items>
  </channel>
  <item rdf:about="http://news.example.org/1">
    <title>First</title><link>http://news.example.org/1</link><dc:date>2005-05-10T09:30:00+02:00</dc:date>
    <e:about><e:Thing><e:part><e:Thing e:name="wheel"/></e:part></e:Thing></e:about>
  </item>
  <item rdf:about="http://news.example.org/2"><title xml:lang="fr">Deux</title></item>
</rdf:RDF>"""


def event_of(text: str | bytes) -> Event:
    time = dt.datetime(2005, 5, 11, tzinfo=dt.UTC)
    return Event("f", text, source="pub", time=time, content_type=RSS)


def about(event: Event, subject: str) -> dict[str, str]:
    return {p: o for s, p, o in graph_of(event).statements() if s == subject}


def test_one_event_an_item() -> None:
    feed = read_feed(event_of(FEED))
    assert feed.notes == ()
    first, second = feed.items
    assert (first.id, first.source, first.time) == (
        "f#1",
        "pub",
        dt.datetime(2005, 5, 10, 9, 30, tzinfo=dt.timezone(dt.timedelta(hours=2))),
    )
    assert (second.id, second.source, second.time) == ("f#2", "pub", event_of("").time)
    statements = graph_of(second).statements()
    (member,) = (p for _, p, o in statements if o == "<http://news.example.org/2>")
    assert member == iri(f"{RDF}_2")
    assert ("<http://news.example.org/2>", TITLE, '"Deux"@fr') in statements
    assert about(second, NEWS).items() >= {
        (TYPE, CHANNEL),
        (TITLE, '"News"'),
        (DESCRIPTION, '"All & sundry"'),
    }
    assert about(second, about(second, NEWS)[HAS_ITEMS]) == {TYPE: SEQ, member: "<http://news.example.org/2>"}
    assert about(second, about(second, NEWS)["<http://example.org/editor>"]) == {
        "<http://example.org/name>": '"Ada"'
    }
    assert not any("news.example.org/1" in term for triple in statements for term in triple)
    thing = about(first, about(first, "<http://news.example.org/1>")["<http://example.org/about>"])
    assert about(first, thing["<http://example.org/part>"])["<http://example.org/name>"] == '"wheel"'


def test_items_together_are_the_feed() -> None:
    whole = read_graph(FEED, "rdfxml").statements()
    blanks = re.compile(r"_:\w+")
    parts = [triple for event in read_feed(event_of(FEED)).items for triple in graph_of(event).statements()]
    assert {blanks.sub("_", " ".join(triple)) for triple in whole} == {
        blanks.sub("_", " ".join(triple)) for triple in parts
    }


def test_an_item_can_be_written_and_read() -> None:
    for event in read_feed(event_of(FEED)).items:
        graph = graph_of(event)
        again = read_graph(write_lines(graph), event.content_type)
        assert len(again.triples) == len(graph.triples)


def test_what_is_no_feed() -> None:
    sent = r"send application/rss\+xml or application/atom\+xml as text"
    with pytest.raises(EventError, match=rf"event 'e' is not a feed: {sent}"):
        read_feed(Event("e", "", content_type="turtle"))
    with pytest.raises(EventError, match=r"event 'f#1' is not a feed"):
        read_feed(read_feed(event_of(FEED)).items[0])
    with pytest.raises(
        EventError, match=r"no channel and no item in it; not well-formed: Start tag expected"
    ):
        read_feed(event_of("hello"))
    with pytest.raises(EventError, match=r"no channel and no item in it, but <RDF> around all$"):
        read_feed(event_of(f'<rdf:RDF xmlns:rdf="{RDF}"/>'))
    with pytest.raises(EventError, match=r"event 'f' is a feed of 2 items, and each of them is an event"):
        graph_of(event_of(FEED))


def test_a_channel_without_items_has_no_events() -> None:
    assert read_feed(event_of("<rss><channel><title>x</title></channel></rss>")).items == ()


# The lenient way

RSS_2 = """<?xml version="1.0" encoding="ISO-8859-1"?>
<rss version="2.0"><channel xml:lang="en">
  <title>News</title><link>http://news.example.org/</link><language>en-gb</language>
  <image><url>http://news.example.org/x.png</url><title>not this</title></image>
  <item><title>Caf&eacute; &amp; bar &copy; AT&T</title><guid isPermaLink="false">abc</guid>
    <link>http://news.example.org/1</link><pubDate>Tue, 10 May 2005 09:30:00 +0200</pubDate>
    <author>ada@example.org</author><category>food</category><category>drink</category>
    <enclosure url="http://news.example.org/1.mp3" type="audio/mpeg"/>
    <dc:subject>coffee</dc:subject><content:encoded><![CDATA[<p>AT&T &nbsp;</p>]]></content:encoded>
    <unknown:thing>x</unknown:thing><x:creator>Bea</x:creator>
  </item>
  <item><title>Second<link>/2</link><description>Some <b>bold</b> words</description></item>
  <item><title>Third</title>
"""


def test_rss_2_with_all_that_is_wrong_with_it() -> None:
    feed = read_feed(event_of(RSS_2.encode("latin-1")))
    first, second, third = feed.items
    item = "<http://news.example.org/1>"
    found = [(p, o) for s, p, o in graph_of(first).statements() if s == item]
    assert sorted(found) == sorted(
        [
            (TYPE, ITEM),
            (TITLE, '"Café & bar © AT&T"@en'),
            (LINK, '"http://news.example.org/1"'),
            (iri(f"{DC}identifier"), '"abc"'),
            (iri(f"{DC}date"), '"2005-05-10T09:30:00+02:00"'),
            (iri(f"{DC}creator"), '"ada@example.org"'),
            (iri(f"{DC}creator"), '"Bea"'),
            (iri(f"{DC}subject"), '"food"'),
            (iri(f"{DC}subject"), '"drink"'),
            (iri(f"{DC}subject"), '"coffee"'),
            (iri("http://purl.oclc.org/net/rss_2.0/enc#enclosure"), "<http://news.example.org/1.mp3>"),
            (iri(f"{RSS_SPACE}modules/content/encoded"), '"<p>AT&T &nbsp;</p>"@en'),
        ]
    )
    assert first.time == dt.datetime(2005, 5, 10, 9, 30, tzinfo=dt.timezone(dt.timedelta(hours=2)))
    assert about(second, "<http://news.example.org/2>") == {
        TYPE: ITEM,
        TITLE: '"Second"@en',
        LINK: '"http://news.example.org/2"',
        DESCRIPTION: '"Some bold words"@en',
    }
    assert ("_:item3", TITLE, '"Third"@en') in graph_of(third).statements()
    assert about(third, NEWS)[TITLE] == '"News"@en'
    assert about(third, NEWS)[iri(f"{DC}language")] == '"en-gb"'
    assert about(third, NEWS)[iri(f"{RSS_SPACE}image")] == "<http://news.example.org/x.png>"
    assert feed.notes == (
        "not well-formed: Entity 'eacute' not defined, line 5, column 27",
        "a bare & is taken for &amp; (line 5)",
        "the entity &eacute; is that of HTML (line 5)",
        "the entity &copy; is that of HTML (line 5)",
        f"the prefix dc is not declared: taken for {DC} (line 9)",
        f"the prefix content is not declared: taken for {RSS_SPACE}modules/content/ (line 9)",
        "<unknown:thing> is left out: its prefix is not declared (line 10)",
        f"the prefix x is not declared: taken for {DC} (line 10)",
        "<title> is not closed (line 12)",
        "the feed ends inside an item (line 14)",
        "<item> is not closed (line 14)",
        "<channel> is not closed (line 14)",
    )


def forgiven(text: str | bytes) -> list[set[tuple[str, str, str]]]:
    feed = read_feed(event_of(text), HERE)
    assert feed.notes
    assert all("\n" not in note for note in feed.notes)
    return sets_of(feed)


def sets_of(feed: Feed) -> list[set[tuple[str, str, str]]]:
    return [set(graph_of(event).statements()) for event in feed.items]


def test_both_ways_say_the_same() -> None:
    """Break a sound feed in a way that changes nothing, and compare."""
    strict = [set(graph_of(event).statements()) for event in read_feed(event_of(FEED), HERE).items]
    broken = FEED.replace(' xmlns:dc="http://purl.org/dc/elements/1.1/"', "").replace(
        "&amp; sundry", "& sundry"
    )
    names = [TITLE, LINK, DESCRIPTION, iri(f"{DC}date"), iri(f"{DC}publisher")]
    for wanted, found in zip(strict, forgiven(broken), strict=True):
        assert {triple for triple in found if triple[1] in names} == {
            triple for triple in wanted if triple[1] in names
        }


def test_rdf_attributes_without_a_prefix() -> None:
    (item,) = forgiven('<channel><title>x</title></channel><item about="urn:1"><title>y</title></item>')
    assert ("<urn:1>", TITLE, '"y"') in item
    assert ("<urn:1>", TYPE, ITEM) in item


def test_rss_090() -> None:
    text = f"""<rdf:RDF xmlns:rdf="{RDF}" xmlns="http://my.netscape.com/rdf/simple/0.9/">
        <channel><title>Old</title><link>http://old.example.org/</link></channel>
        <item><title>Hi</title><link>http://old.example.org/1</link></item></rdf:RDF>"""
    feed = read_feed(event_of(text), HERE)
    assert feed.notes == ()
    (item,) = sets_of(feed)
    assert ("<http://old.example.org/1>", TITLE, '"Hi"') in item
    assert ("<http://old.example.org/>", TITLE, '"Old"') in item


def test_rss_10_that_is_not_rdf() -> None:
    """Well-formed, and yet not RDF: read by its elements, and told."""
    text = FEED.replace("<e:editor>", "<e:editor rdf:nodeID='1'>")
    feed = read_feed(event_of(text), HERE)
    assert [note.partition(":")[0] for note in feed.notes] == ["not read as RDF"]
    assert [about(each, NEWS)[TITLE] for each in feed.items] == ['"News"', '"News"']


def test_a_second_byte_order_mark_is_not_forgiven() -> None:
    text = "\ufeff<rss><item><title>t</title></item></rss>"
    for data in (text, text.encode()):
        assert len(read_feed(Event("f", data, content_type="rss")).items) == 1
    for data in ("\ufeff" + text, ("\ufeff" + text).encode()):
        with pytest.raises(EventError, match=f"not a usable feed: {SECOND_MARK}"):
            read_feed(Event("f", data, content_type="rss"))


def test_windows_1252() -> None:
    feed = read_feed(event_of(b"<item><title>\x93quoted\x94 caf\xe9</title></item>"), HERE)
    assert "it is not UTF-8: read as windows-1252" in feed.notes
    assert ("_:item1", TITLE, literal("“quoted” café")) in graph_of(feed.items[0]).statements()


def test_entities() -> None:
    text = "&lt;&#65;&#x42;&hellip;&bogus;&#0;&#xD800;&#99999999999;&;&amp;amp;"
    (item,) = forgiven(f"<item><title>{text}</title></item>")
    assert ("_:item1", TITLE, literal("<AB…&bogus;\ufffd\ufffd&#99999999999;&;&amp;")) in item


def test_relative_links_follow_the_base() -> None:
    links = ["<channel><link>http://a.example/x/</link></channel>"]
    links += [f"<item><link>{link}</link></item>" for link in ("y z", "y")]
    links += [f"<item xml:base='http://a.b/{n}/'><link>/z</link></item>" for n in ("100%", "%zz", "x|y")]
    one, two, *odd = forgiven("".join(links))
    assert any(s == "_:item1" for s, _, _ in one), "a blank is not part of an IRI"
    assert any(s == "<http://a.example/x/y>" for s, _, _ in two)
    assert all("<http://a.b/z>" in {s for s, _, _ in each} for each in odd)


def test_an_odd_language_is_no_language() -> None:
    (item,) = sets_of(read_feed(event_of("<item xml:lang='not a language'><title>x</title></item>"), HERE))
    assert ("_:item1", TITLE, '"x"') in item


@pytest.mark.parametrize("seed", seeds(300))
def test_broken_feeds_are_read_or_refused(seed: int) -> None:
    rng = random.Random(seed)
    text = list(rng.choice([FEED, RSS_2]))
    for _ in range(rng.randint(1, 30)):
        at = rng.randrange(len(text))
        text[at : at + rng.randint(0, 20)] = rng.choice(
            ["", "<", ">", '"', "&", "]]>", "<!--", "<item>", "\x01"]
        )
    with contextlib.suppress(EventError):
        check(read_feed(event_of("".join(text)), HERE))


def check(feed: Feed) -> None:
    for event in feed.items:
        graph = graph_of(event)
        assert len(read_graph(write_lines(graph), "nt").triples) == len(graph.triples), (
            "terms are well-formed"
        )


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("2005", "2005-01-01T00:00:00+00:00"),
        ("2005-05", "2005-05-01T00:00:00+00:00"),
        (" 2005-05-10 ", "2005-05-10T00:00:00+00:00"),
        ("2005-05-10T09:30Z", "2005-05-10T09:30:00+00:00"),
        ("2005-05-10T09:30:01.5+01:00", "2005-05-10T09:30:01.500000+01:00"),
        ("Tue, 10 May 2005 09:30:00 EST", "2005-05-10T09:30:00-05:00"),
        ("10 May 2005 09:30", "2005-05-10T09:30:00+00:00"),
        ("2005-13", None),
        ("2005-05-10T25:00", None),
        ("soon", None),
        ("", None),
        ("9" * 10_000, None),
        ("Tue, 99 May 99999999999 09:30:00 +9999999", None),
    ],
)
def test_dates(text: str, wanted: str | None) -> None:
    found = read_date(text)
    assert (found and found.isoformat()) == wanted
