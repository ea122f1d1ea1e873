"""Feeds of all formats: the same items, as RDF, as XML, and for both at once."""

from __future__ import annotations

import datetime as dt
import random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from lxml import etree

from headgate import Engine, Event
from headgate.contents.feeds.mending import NOTES
from headgate.contents.feeds.reading import FeedLimits, read_tree
from headgate.contents.registry import kind_of
from headgate.core.event import ATOM as ATOM_TYPE
from headgate.core.event import RSS as RSS_TYPE
from headgate.core.event import XML, media_type
from headgate.errors import EventError
from headgate.rdf.events.feeds import read_feed
from headgate.rdf.events.reading import Reader, graph_of
from headgate.rdf.language.model import RDF, iri, literal
from headgate.xml.events.document import Limits, SourcedDocument
from headgate.xml.events.feeds import read_feed as read_xml_feed
from headgate.xml.events.reading import read_document
from tests.contents.feeds import ATOM, DC, FORMATS, RSS, SMALL, draw, meant, write
from tests.seeds import seeds

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = Reader(isolated=False)


def feed_of(text: str | bytes, kind: str = "rss") -> Event:
    return Event("f", text, dt.datetime(2020, 1, 1, tzinfo=dt.UTC), "pub", kind)


def about(event: Event, subject: str) -> set[tuple[str, str, str]]:
    return {triple for triple in graph_of(event).statements() if triple[0] == subject}


# The same items in all formats


@pytest.mark.parametrize("seed", seeds(160))
@pytest.mark.parametrize("form", FORMATS)
def test_all_formats_mean_the_same(seed: int, form: str) -> None:
    """As RDF: what the items say, and the channel, whatever it is written in; with nothing to forgive."""
    source = draw(seed)
    feed = read_feed(feed_of(write(source, form), "atom" if seed % 2 else "rss"), HERE)
    assert feed.notes == ()
    assert [event.id for event in feed.items] == [f"f#{n + 1}" for n in range(len(source.items))]
    channel = iri(source.link)
    for item, event in zip(source.items, feed.items, strict=True):
        assert about(event, iri(item.link)) == meant(item, form)
        said = {(p, o) for _, p, o in about(event, channel)}
        assert (iri(f"{RSS}title"), literal(source.title)) in said
        assert (iri(f"{RSS}description"), literal(source.about)) in said
        assert event.source == "pub"
        assert event.time == (item.time if item.time and form not in SMALL else feed_of("").time)


@pytest.mark.parametrize("seed", seeds(160))
@pytest.mark.parametrize("form", FORMATS)
def test_documents_are_the_feed_with_one_item(seed: int, form: str) -> None:
    """As XML: lxml reads the feed, and takes the other items out."""
    text = write(draw(seed), form)
    feed = read_xml_feed(feed_of(text))
    assert feed.notes == ()

    def reference(n: int) -> Any:
        root: Any = etree.fromstring(text, etree.XMLParser(resolve_entities=False))
        items = [*root.iter("{*}item", "{*}entry")]
        kept = items[n].get(f"{{{RDF}}}about")
        for each in [*root.iter(f"{{{RDF}}}li")]:
            if each.get(f"{{{RDF}}}resource") != kept:
                each.getparent().remove(each)
        for each in items[:n] + items[n + 1 :]:
            each.getparent().remove(each)
        return root

    for n, event in enumerate(feed.items):
        assert event.content_type == XML
        assert isinstance(event.data, SourcedDocument)
        assert canonical(event.data.source) == canonical(etree.tostring(reference(n)))
        assert event.time == read_feed(feed_of(text), HERE).items[n].time


def canonical(text: bytes) -> bytes:
    """Write a document in its canonical form, without blanks between elements."""
    root = etree.fromstring(text, etree.XMLParser())
    for each in root.iter():
        each.text, each.tail = ((part or "").strip() for part in (each.text, each.tail))
    found: bytes = etree.tostring(root, method="c14n")
    return found


@pytest.mark.parametrize("seed", seeds(300))
def test_broken_feeds_are_the_same_for_both(seed: int) -> None:
    """Read or refused in one line, and with as many items as RDF and as XML."""
    rng = random.Random(seed)
    text = list(write(draw(seed), rng.choice(FORMATS)))
    for _ in range(rng.randint(1, 30)):
        at = rng.randrange(len(text))
        wrong = rng.choice(
            ["", "<", ">", '"', "&", "]]>", "<!--", "<item>", "</item>", "\x01", "<a:b>", "&eacute;"]
        )
        text[at : at + rng.randint(0, 20)] = wrong
    found = [outcome(lambda: read_feed(feed_of("".join(text)), HERE).items)]
    found.append(outcome(lambda: read_xml_feed(feed_of("".join(text))).items))
    both = [each for each in found if not isinstance(each, str)]
    assert all("\n" not in each for each in found if isinstance(each, str))
    # Items of one address are one item in RDF.
    assert len(both) < 2 or len(both[0]) <= len(both[1])


def outcome(read: Callable[[], Any]) -> Any:
    try:
        return read()
    except EventError as error:
        return str(error)


# What feeds have

ATOM_FEED = f"""<?xml version="1.0" encoding="utf-8"?>
<feed xmlns="{ATOM}" xml:lang="en" xml:base="http://blog.example/a/">
  <title type="text">Blog</title><link href="./"/><link rel="self" href="feed.atom"/>
  <id>urn:blog</id><updated>2005-05-12T00:00:00Z</updated><author><name>Ada</name></author>
  <logo>/logo.png</logo><generator>Hand</generator>
  <entry xml:base="b/">
    <title type="html">Fish &amp;amp; chips</title><id>urn:1</id>
    <link href="1"/><link rel="related" href="/x"/><link rel="http://r.example/see" href="2"/>
    <link rel="enclosure" type="audio/mpeg" length="7" href="1.mp3"/>
    <updated>2005-05-11T09:30:00Z</updated><category term="food" label="Food"/>
    <author><email>b@blog.example</email></author><contributor><name>Cy</name></contributor>
    <content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml">A <b>bold</b> &amp; <i>it</i></div>
    </content>
    <source><id>urn:s</id><title>Elsewhere</title></source><rights>mine</rights>
  </entry>
  <entry><title>Away</title><id>urn:2</id><content type="image/png" src="p.png"/></entry>
</feed>"""


def test_atom() -> None:
    feed = read_feed(feed_of(ATOM_FEED, "atom"), HERE)
    assert feed.notes == ()
    first, second = feed.items
    here, terms = "http://blog.example/a/b/", "http://purl.org/dc/terms/"
    enc, relation = "http://purl.oclc.org/net/rss_2.0/enc#", "http://www.iana.org/assignments/relation/"
    assert {(p, o) for _, p, o in about(first, iri(f"{here}1"))} == {
        (iri(f"{RDF}type"), iri(f"{RSS}item")),
        (iri(f"{RSS}title"), literal("Fish &amp; chips", language="en")),
        (iri(f"{RSS}link"), literal(f"{here}1")),
        (iri(f"{DC}identifier"), literal("urn:1")),
        (iri(f"{relation}related"), iri("http://blog.example/x")),
        (iri("http://r.example/see"), iri(f"{here}2")),
        (iri(f"{enc}enclosure"), iri(f"{here}1.mp3")),
        (iri(f"{terms}modified"), literal("2005-05-11T09:30:00+00:00")),
        (iri(f"{DC}date"), literal("2005-05-11T09:30:00+00:00")),
        (iri(f"{DC}subject"), literal("food")),
        (iri(f"{DC}subject"), literal("Food", language="en")),
        (iri(f"{DC}creator"), literal("b@blog.example")),
        (iri(f"{DC}contributor"), literal("Cy")),
        (iri(f"{RSS}modules/content/encoded"), literal("A <b>bold</b> &amp; <i>it</i>", language="en")),
        (iri(f"{DC}format"), literal("application/xhtml+xml")),
        (iri(f"{DC}source"), literal("Elsewhere", language="en")),
        (iri(f"{DC}rights"), literal("mine", language="en")),
    }
    sound = iri(f"{here}1.mp3")
    assert about(first, sound) == {
        (sound, iri(f"{enc}type"), literal("audio/mpeg")),
        (sound, iri(f"{enc}length"), literal("7")),
    }
    assert first.time == dt.datetime(2005, 5, 11, 9, 30, tzinfo=dt.UTC)
    assert ("<urn:2>", iri(f"{terms}hasFormat"), iri("http://blog.example/a/p.png")) in about(
        second, "<urn:2>"
    )
    channel = {(p, o) for _, p, o in about(second, iri("http://blog.example/a/"))}
    assert (iri(f"{RSS}image"), iri("http://blog.example/logo.png")) in channel
    assert (iri(f"{DC}language"), literal("en")) in channel
    assert (iri(f"{relation}self"), iri("http://blog.example/a/feed.atom")) in channel


def test_an_entry_alone_is_an_item() -> None:
    text = f'<entry xmlns="{ATOM}"><title>A</title><id>urn:1</id></entry>'
    for read in (read_feed, read_xml_feed):
        (item,) = read(feed_of(text, "atom")).items
        assert item.id == "f#1"


def test_the_ids_of_items() -> None:
    items = "".join(f"<item><guid>{each}</guid></item>" for each in ("a", "b", "b")) + "<item/>"
    text = f"<rss><channel>{items}<item><link>http://x.example/</link></item></channel></rss>"
    wanted = ["a", "f#2", "f#3", "f#4", "http://x.example/"]
    assert [item.id for item in read_feed(feed_of(text), HERE, own_ids=True).items] == wanted
    assert [item.id for item in read_xml_feed(feed_of(text), own_ids=True).items] == wanted


def test_an_item_with_the_link_of_its_channel_is_not_the_channel() -> None:
    item = "<item><link>http://x.example/</link><guid>urn:1</guid></item>"
    feed = read_feed(feed_of(f"<rss><channel><link>http://x.example/</link>{item}</channel></rss>"), HERE)
    assert about(feed.items[0], "<urn:1>")


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "iso-8859-1", "windows-1252", "koi8-r"]
)
def test_encodings(encoding: str) -> None:
    title = "мир" if encoding == "koi8-r" else "Café"
    declared = encoding.removesuffix("-sig")
    text = f'<?xml version="1.0" encoding="{declared}"?><rss><item><title>{title}</title></item></rss>'
    feeds = read_feed(feed_of(text.encode(encoding)), HERE), read_xml_feed(feed_of(text.encode(encoding)))
    assert [feed.notes for feed in feeds] == [(), ()]
    assert title.encode() in graph_of(feeds[0].items[0]).text
    assert title.encode() in feeds[1].items[0].data.source


@pytest.mark.parametrize(
    ("data", "note"),
    [
        (b'<?xml version="1.0" encoding="utf-16"?><rss><item/></rss>', "it is not UTF-16: taken for UTF-8"),
        (
            b'<?xml version="1.0" encoding="x-no"?><rss><item/></rss>',
            "the encoding 'x-no' is not read: taken for UTF-8",
        ),
        (
            b'<?xml version="1.0" encoding="hex"?><rss><item/></rss>',
            "the encoding 'hex' is not read: taken for UTF-8",
        ),
        (
            b'<?xml version="1.0" encoding="utf-7"?><rss><item/></rss>',
            "the encoding 'utf-7' is not read: taken for UTF-8",
        ),
        (b"<rss><item>\xe9</item></rss>", "it is not UTF-8: read as windows-1252"),
        ("<rss><item>\ud800</item></rss>", "character 12 is half of a surrogate pair: read as ?"),
        ("<rss><item>x</a></item></rss>", "</a> closes nothing (line 1)"),
        ("<rss>\n<item>1 < 2</item></rss>", "a bare < is taken for &lt; (line 2)"),
        ("<rss>\n<item>\x01</item></rss>", "a control character is left out (line 2)"),
    ],
)
def test_notes(data: str | bytes, note: str) -> None:
    for read in (read_feed, read_xml_feed):
        feed = read(feed_of(data))
        assert note in feed.notes, feed.notes
        assert len(feed.items) == 1


def test_notes_are_few() -> None:
    text = "<rss><item>" + "".join(f"</x{n}>" for n in range(1000))
    assert len(read_xml_feed(feed_of(text)).notes) <= NOTES + 1


def test_as_xml_where_it_is_asked_for() -> None:
    """A feed whose media type is that of XML in general is a feed for who asks for one, else a document."""
    text = "<rss><channel><item><title>A</title></item><item/></channel></rss>"
    assert media_type("application/atom+xml") == ATOM_TYPE
    assert media_type("application/rss+xml; charset=utf-8") == RSS_TYPE
    for kind in ("application/xml", "text/xml", "rss", "atom"):
        assert len(read_xml_feed(feed_of(text, kind)).items) == 2
        assert len(read_feed(feed_of(text, kind), HERE).items) == 2
    engine = Engine.build([{"id": "two", "filter": "//item[2]", "dialect": "xpath"}])
    assert engine.match(feed_of(text, "xml")) == ["two"]
    assert engine.match(feed_of(text, "rss")) == []


# Limits


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ("<rss>" + "<item/>" * 10_001 + "</rss>", "the feed has 10,001 items: 10,000 are allowed"),
        (
            "<rss><item>" + "<a>" * 200 + "</a>" * 200 + "</item></rss>",
            "not a usable feed: item 1: the elements in",
        ),
        ("<item>" + "<a>" * 200, "elements nest more than 128 deep in line 1"),
        (
            "<rss><channel><title>" + "x" * 50_000 + "</title>" + "<item/>" * 1000 + "</channel></rss>",
            "its items have more than 41,943,040 bytes together",
        ),
        ("<!DOCTYPE a [<!ENTITY b 'c'>]><rss><item>&b;</item></rss>", "the DOCTYPE in line 1 can declare"),
        (b" " * (9 << 20), "the document has 9,437,184 bytes: 8,388,608 are allowed"),
    ],
)
def test_limits(data: str | bytes, reason: str) -> None:
    with pytest.raises(EventError) as refused:
        read_xml_feed(feed_of(data))
    assert reason in str(refused.value)


def test_limits_can_be_set() -> None:
    with pytest.raises(EventError, match="the feed has 2 items: 1 are allowed"):
        read_tree(feed_of("<rss><item/><item/></rss>"), FeedLimits(items=1))
    with pytest.raises(EventError, match="item 1: the elements in line 1 nest too deep: 1 levels"):
        read_xml_feed(feed_of("<rss><item/><item/></rss>"), Limits(depth=1))


# Where events come in

BOTH = [
    {"id": "rdf", "dialect": "sparql", "filter": f'ASK {{ ?i a <{RSS}item> ; <{RSS}title> "A" }}'},
    {"id": "xml", "dialect": "xpath", "filter": "//item[title = 'B']"},
    {"id": "all", "dialect": "xpath", "filter": "/rss/channel[title = 'News']"},
]
ITEMS = "<item><title>A</title></item><item><title>B</title></item>"
NEWS = f"<rss><channel><title>News</title>{ITEMS}</channel></rss>"


def test_filters_of_rdf_and_xml_look_at_the_same_items() -> None:
    engine = Engine.build(BOTH)
    items = engine.read(feed_of(NEWS))
    assert [item.id for item in items] == ["f#1", "f#2"]
    assert engine.match_events(items) == [["all", "rdf"], ["all", "xml"]]
    assert engine.match(feed_of(NEWS)) == ["all", "rdf", "xml"]
    assert engine.match_events([feed_of(NEWS), items[0]]) == [["all", "rdf", "xml"], ["all", "rdf"]]
    wanted = {"event_id": ["f#1", "f#1", "f#2", "f#2"], "subscription_id": ["all", "rdf", "all", "xml"]}
    assert engine.match_batch([feed_of(NEWS)]).to_pydict() == wanted
    table = pa.table({"id": ["f"], "datacontenttype": ["application/rss+xml"], "data": [NEWS]})
    assert engine.match_batch(table).to_pydict() == wanted
    assert [row["rank"] for row in engine.top_batch(table, 1).to_pylist()] == [1, 1]
    assert engine.explain(items[0], "rdf").matches
    assert not engine.explain(items[1], "rdf").matches
    with pytest.raises(EventError, match=r"event 'f' is a feed of 2 items, and each of them is an event"):
        engine.explain(feed_of(NEWS), "rdf")


@pytest.mark.parametrize("content", ["rdf", "xml", "rdf+xml", "records+xml"])
def test_items_travel(content: str) -> None:
    """What workers do with a feed: read, packed, kept as text, chosen by its number."""
    kind = kind_of(content)
    (read,) = kind.read([feed_of(NEWS)])
    assert not isinstance(read, EventError)
    assert (read.feed, read.notes, len(read.events)) == (True, 0, 2)
    room = kind.room()
    index = room.build([])
    for event in read.events:
        data, written = kind.unpack(kind.pack(event))
        assert index.match(Event(event.id, data, content_type=written)) == []
        text, written = kind.kept(feed_of(NEWS), event)
        again = Event(event.id, text, content_type=written)
        assert len(kind.read([again])) == 1
        assert isinstance(kind.shown(event).data, str)
    assert kind.one(feed_of(NEWS), 2).id == "f#2"
    with pytest.raises(EventError, match="the feed has 2 items: say with --item which of them"):
        kind.one(feed_of(NEWS), None)
    kind.close()


def test_items_that_are_one_in_rdf_are_asked_apart() -> None:
    item = '<item rdf:about="urn:1"><title>A</title></item>'
    text = f'<rdf:RDF xmlns:rdf="{RDF}" xmlns="{RSS}"><channel rdf:about="urn:c"/>{item}{item}</rdf:RDF>'
    (read,) = kind_of("rdf+xml").read([feed_of(text)])
    assert str(read) == (
        "the document is not as many events for each kind, but 1 for RDF and 2 for XML: ask them apart"
    )


def test_an_item_is_one_document() -> None:
    assert read_document(NEWS).names == ("rss", "channel", "title", "text()", "item")
