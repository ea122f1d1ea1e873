"""Feeds from seeds: the same items written in each format, and what they mean."""

from __future__ import annotations

import datetime as dt
import random
from dataclasses import dataclass, field
from email.utils import format_datetime
from xml.sax.saxutils import escape, quoteattr

from headgate.rdf.language.model import RDF, TYPE, iri, literal

RSS = "http://purl.org/rss/1.0/"
DC = "http://purl.org/dc/elements/1.1/"
CONTENT = "http://purl.org/rss/1.0/modules/content/"
ENCLOSURES = "http://purl.oclc.org/net/rss_2.0/enc#"
ATOM = "http://www.w3.org/2005/Atom"
SHOP = "http://shop.example/ns#"
WORDS = ("rain", "harbour", "tide & wind", "a < b", "«wheel»", "naïve", 'say "hi"', "moon", "\U0001f30a")
FORMATS = ("0.90", "0.91", "0.92", "1.0", "2.0", "atom")
SMALL = frozenset({"0.90", "0.91", "0.92"})
"""Versions of RSS in which an item has a title and a link, and little else."""


@dataclass(frozen=True)
class Item:
    """What an item says, whatever it is written in."""

    title: str
    link: str
    summary: str
    identifier: str
    time: dt.datetime | None
    authors: list[str] = field(default_factory=list)
    topics: list[str] = field(default_factory=list)
    text: str = ""
    sound: str = ""
    price: str = ""


@dataclass(frozen=True)
class Source:
    """A channel with its items."""

    title: str
    link: str
    about: str
    items: list[Item]


def draw(seed: int) -> Source:
    """Draw a feed."""
    rng = random.Random(seed)

    def words(least: int = 1) -> str:
        return " ".join(rng.choices(WORDS, k=rng.randint(least, 4)))

    items = []
    for n in range(rng.randint(0, 5)):
        time = dt.datetime(2005, 5, rng.randint(1, 28), rng.randrange(24), rng.randrange(60), 7)
        zone = dt.timezone(dt.timedelta(minutes=rng.choice([0, 120, -330])))
        items.append(
            Item(
                words(),
                f"http://news.example/{n}?a=1&b={rng.randrange(9)}",
                words(0),
                f"urn:item:{n}",
                time.replace(tzinfo=zone) if rng.random() < 0.8 else None,
                [words() for _ in range(rng.randint(0, 2))],
                list(dict.fromkeys(words() for _ in range(rng.randint(0, 3)))),
                f"<p>{words()}</p>" if rng.random() < 0.5 else "",
                f"http://news.example/{n}.mp3" if rng.random() < 0.3 else "",
                str(rng.randrange(100)) if rng.random() < 0.3 else "",
            )
        )
    return Source(words(), "http://news.example/", words(), items)


def write(source: Source, form: str) -> str:
    """Write a feed in a format, as it should be."""
    head = f"<title>{escape(source.title)}</title>"
    if form == "atom":
        entries = "\n".join(_entry(item) for item in source.items)
        return (
            f"<feed xmlns={quoteattr(ATOM)} xmlns:s={quoteattr(SHOP)}>{head}"
            f"<link href={quoteattr(source.link)}/><subtitle>{escape(source.about)}</subtitle>\n"
            f"{entries}</feed>"
        )
    head += f"<link>{source.link}</link><description>{escape(source.about)}</description>"
    items = "\n".join(_item(item, form) for item in source.items)
    spaces = f"xmlns:dc={quoteattr(DC)} xmlns:content={quoteattr(CONTENT)} xmlns:s={quoteattr(SHOP)}"
    if form == "0.90":
        own = "http://my.netscape.com/rdf/simple/0.9/"
        return (
            f"<rdf:RDF xmlns:rdf={quoteattr(RDF)} xmlns={quoteattr(own)}>"
            f"<channel>{head}</channel>{items}</rdf:RDF>"
        )
    if form == "1.0":
        listed = "".join(f"<rdf:li rdf:resource={quoteattr(item.link)}/>" for item in source.items)
        return (
            f"<rdf:RDF xmlns:rdf={quoteattr(RDF)} xmlns={quoteattr(RSS)} {spaces} "
            f"xmlns:enc={quoteattr(ENCLOSURES)}><channel rdf:about={quoteattr(source.link)}>{head}"
            f"<items><rdf:Seq>{listed}</rdf:Seq></items></channel>{items}</rdf:RDF>"
        )
    doctype = (
        '<!DOCTYPE rss PUBLIC "-//X//DTD RSS 0.91//EN" "http://x.example/rss.dtd">' if form == "0.91" else ""
    )
    return f'{doctype}<rss version="{form}" {spaces}><channel>{head}\n{items}</channel></rss>'


def _item(item: Item, form: str) -> str:
    found = [f"<title>{escape(item.title)}</title><link>{escape(item.link)}</link>"]
    if item.summary and form != "0.90":
        found.append(f"<description>{escape(item.summary)}</description>")
    if form in SMALL:
        return f"<item>{''.join(found)}</item>"
    rdf = form == "1.0"
    names = (
        ("dc:identifier", "dc:date", "dc:creator", "dc:subject")
        if rdf
        else ("guid", "pubDate", "author", "category")
    )
    identifier, date, author, topic = names
    found.append(f"<{identifier}>{item.identifier}</{identifier}>")
    if item.time is not None:
        written = item.time.isoformat() if rdf else format_datetime(item.time)
        found.append(f"<{date}>{written}</{date}>")
    found += [f"<{author}>{escape(each)}</{author}>" for each in item.authors]
    found += [f"<{topic}>{escape(each)}</{topic}>" for each in item.topics]
    if item.text:
        found.append(f"<content:encoded>{escape(item.text)}</content:encoded>")
    if item.sound:
        address = quoteattr(item.sound)
        found.append(f"<enc:enclosure rdf:resource={address}/>" if rdf else f"<enclosure url={address}/>")
    if item.price:
        found.append(f"<s:Price>{item.price}</s:Price>")
    about = f" rdf:about={quoteattr(item.link)}" if rdf else ""
    return f"<item{about}>{''.join(found)}</item>"


def _entry(item: Item) -> str:
    found = [f"<title>{escape(item.title)}</title><link href={quoteattr(item.link)}/>"]
    found.append(f"<id>{item.identifier}</id>")
    if item.summary:
        found.append(f"<summary>{escape(item.summary)}</summary>")
    if item.time is not None:
        found.append(f"<published>{item.time.isoformat()}</published>")
    found += [f"<author><name>{escape(each)}</name></author>" for each in item.authors]
    found += [f"<category term={quoteattr(each)}/>" for each in item.topics]
    if item.text:
        found.append(f'<content type="html">{escape(item.text)}</content>')
    if item.sound:
        found.append(f'<link rel="enclosure" href={quoteattr(item.sound)}/>')
    if item.price:
        found.append(f"<s:Price>{item.price}</s:Price>")
    return f"<entry>{''.join(found)}</entry>"


def meant(item: Item, form: str) -> set[tuple[str, str, str]]:
    """List the triples about an item in a format: slowly, and obviously."""
    subject = iri(item.link)
    found = {
        (subject, TYPE, iri(f"{RSS}item")),
        (subject, iri(f"{RSS}title"), literal(item.title)),
        (subject, iri(f"{RSS}link"), literal(item.link)),
    }
    if item.summary and form != "0.90":
        found.add((subject, iri(f"{RSS}description"), literal(item.summary)))
    if form in SMALL:
        return found
    found.add((subject, iri(f"{DC}identifier"), literal(item.identifier)))
    if item.time is not None:
        found.add((subject, iri(f"{DC}date"), literal(item.time.isoformat())))
    found |= {(subject, iri(f"{DC}creator"), literal(each)) for each in item.authors}
    found |= {(subject, iri(f"{DC}subject"), literal(each)) for each in item.topics}
    if item.text:
        found.add((subject, iri(f"{CONTENT}encoded"), literal(item.text)))
        if form == "atom":
            found.add((subject, iri(f"{DC}format"), literal("text/html")))
    if item.sound:
        found.add((subject, iri(f"{ENCLOSURES}enclosure"), iri(item.sound)))
    if item.price:
        found.add((subject, iri(f"{SHOP}Price"), literal(item.price)))
    return found
