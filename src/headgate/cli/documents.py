"""Documents on the command line: the options for RDF and XML, and an event that is a document."""

from __future__ import annotations

import codecs
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headgate.core.event import RDF_TYPES
from headgate.core.subscription import DIALECTS
from headgate.errors import EventError, TableError

if TYPE_CHECKING:
    from collections.abc import Callable

    from headgate.core.event import Event
    from headgate.rdf.index.bindings import Bindings
    from headgate.rdf.language.model import Options
    from headgate.rdf.taxonomy.taxonomy import Taxonomy
    from headgate.spark.match.kinds import Feeds, Kind
    from headgate.xml.answers.answers import Answer

    Decorated = Callable[..., Any]

format_option = click.option(
    "--format",
    "form",
    type=click.Choice([*RDF_TYPES, "xml"]),
    help="RDF, XML: what documents are written in that do not say so.",
)
source_option = click.option(
    "--source", metavar="ID", help="RDF, XML: the node where the event enters a graph."
)
item_option = click.option(
    "--item", type=click.IntRange(1), metavar="N", help="RSS: which item of the feed is the event."
)


_FOR_DOCUMENTS = {"form": "--format", "source": "--source"}
_FOR_RDF = {
    "item": "--item",
    "bindings": "--bindings",
    "taxonomies": "--taxonomy",
    "coerce": "--coerce",
    "injective": "--injective",
}
_FOR_XML = {"tuples": "--tuples"}


def refuse_options(content: str) -> None:
    """Refuse options that mean nothing for filters of a content room."""
    from headgate.contents.registry import RDF, RECORDS, TITLES, XML

    given = click.get_current_context().params
    for whose, title, options in (
        ((RDF, XML), "RDF and XML", _FOR_DOCUMENTS),
        ((RDF,), "RDF", _FOR_RDF),
        ((XML,), "XML", _FOR_XML),
    ):
        for name, option in options.items():
            if content not in whose and given.get(name) not in {None, False, ()}:
                looked = TITLES.get(content, TITLES[RECORDS])
                raise click.UsageError(f"{option} is for filters of {title}, and these look at {looked}")


def dialect_option(text: str) -> Callable[[Decorated], Decorated]:
    """Make the option for a dialect."""
    return click.option("--dialect", type=click.Choice(DIALECTS), help=text)


def rdf_options(command: Decorated) -> Decorated:
    """Add what is said of filters of RDF."""
    for option in (
        click.option(
            "--injective", is_flag=True, help="RDF: different nodes of a filter are different nodes."
        ),
        click.option(
            "--coerce", is_flag=True, help="RDF: read strings that are compared with numbers as numbers…"
        ),
        click.option(
            "--taxonomy",
            "taxonomies",
            multiple=True,
            metavar="FILE",
            help="RDF: classes and properties, and what lies below what (.ttl, .nt, .rdf…). May be repeated.",
        ),
    ):
        command = option(command)
    return command


def read_settings(
    taxonomies: tuple[str, ...], *, coerce: bool, injective: bool
) -> tuple[Taxonomy | None, Options | None]:
    """Read what is said of filters of RDF; none where nothing is."""
    from headgate.spark.tables.taxonomy_files import read_taxonomy

    return read_taxonomy(taxonomies), read_options(coerce=coerce, injective=injective)


def read_options(*, coerce: bool, injective: bool) -> Options | None:
    """Return what departs from SPARQL; none if nothing does."""
    from headgate.rdf.language.model import Options

    return Options(coerce=coerce, injective=injective) if coerce or injective else None


def read_document(content: str, given: str, form: str | None, source: str | None, item: int | None) -> Event:
    """Read an event that is a document: a file, text, standard input, or a row of a table as JSON."""
    from headgate.core.event import RSS, Event, read_object
    from headgate.rdf.events.feeds import read_feed
    from headgate.spark.match.kinds import kind_of
    from headgate.spark.tables.document_names import check_type, type_of_file

    kind = kind_of(content)
    name, data = _data(given, kind)
    written = check_type(form, kind) or type_of_file(name, kind)
    begins = data.removeprefix(codecs.BOM_UTF8).lstrip()[:1]
    if written is None and begins == b"<" and len(kind.types) == 1:
        (written,) = kind.types.values()
    if written is None and begins == b"{":
        event = Event.from_row({"id": "", **read_object(data)})
        if event.content_type not in kind.types.values():
            found = "a record" if isinstance(event.data, dict) else event.content_type
            raise EventError(
                f"the event is {found}, and these filters look at {kind.title}: give a document, or its text "
                "in 'data' and its format in 'datacontenttype'"
            )
    elif written is None:
        raise click.UsageError(
            f"--event: say --format, or name a file that ends in {', '.join(kind.suffixes)}"
        )
    else:
        event = Event(name, data, content_type=written)
    event = event if source is None else replace(event, source=source)
    if event.content_type != RSS:
        if item is not None:
            raise click.UsageError(f"--item is for RSS feeds, and the event is {event.content_type}")
        return event
    items = read_feed(event).items
    which = 1 if item is None and len(items) == 1 else item
    if which is None or which > len(items):
        raise EventError(f"the feed has {len(items):,} items: say with --item which of them is the event")
    return items[which - 1]


def _data(given: str, kind: Kind) -> tuple[str, bytes]:
    """Find the name and the bytes of a document that is named or written out."""
    from headgate.spark.tables.document_names import type_of_file

    if given == "-":
        return "", sys.stdin.buffer.read()
    if "\n" not in given and "\0" not in given and len(given) < _LONGEST_NAME:
        place = Path(given)
        try:
            if place.is_file():
                return place.name, place.read_bytes()
        except OSError as error:
            raise TableError(f"{given} cannot be read: {error.strerror}") from None
        if type_of_file(given, kind) is not None and " " not in given:
            raise TableError(f"{given} does not exist")
    return "", given.encode(errors="surrogateescape")


_LONGEST_NAME = 1024


def feed_lines(feeds: Feeds | None) -> list[str]:
    """Say what was forgiven to feeds."""
    if feeds is None or not feeds.lenient:
        return []
    count = f"{feeds.lenient:,} of {feeds.feeds:,} feeds"
    return [f"note: {count} are no RDF and were read leniently, with {feeds.notes:,} departures"]


def binding_lines(found: Bindings) -> list[str]:
    """Show bindings as a table."""
    from headgate.rdf.explain.notes import shown

    count = f"{len(found.rows):,}" if found.complete else f"the first {len(found.rows):,}"
    if not found.rows:
        return ["no bindings"]
    if not found.names:
        return ["bindings: the filter has no variables with names"]
    return [f"bindings: {count}", *_table([found.names, *(tuple(map(shown, row)) for row in found.rows)])]


def tuple_lines(answer: Answer | None, limit: int) -> list[str]:
    """Show what a pattern returns as a table."""
    if answer is None:
        return ["no tuples"]
    found = answer.tuples(limit)
    if not found.names:
        return ["tuples: the filter returns nothing; mark what it is to return, as in //a{val}"]
    count = f"{len(found.rows):,}" if found.complete else f"the first {len(found.rows):,}"
    return [f"tuples: {count}", *_table([found.names, *(tuple(map(_shown, row)) for row in found.rows)])]


def _shown(value: object) -> str:
    """Write a value on one line."""
    text = ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
    text = " ".join(text.split())
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 1]}…"


_WIDEST = 60


def _table(rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["   ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)) for row in rows]
    return [f"  {line}".rstrip() for line in lines]
