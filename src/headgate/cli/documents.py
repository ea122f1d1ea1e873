"""RDF on the command line: the options for it, and an event that is a document."""

from __future__ import annotations

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
    from headgate.rdf.bindings import Bindings
    from headgate.rdf.model import Options
    from headgate.rdf.taxonomy import Taxonomy
    from headgate.spark.rdf_events import Feeds

    Decorated = Callable[..., Any]

format_option = click.option(
    "--format",
    "form",
    type=click.Choice([*RDF_TYPES]),
    help="RDF: what documents are written in that do not say so.",
)
source_option = click.option("--source", metavar="ID", help="RDF: the node where the event enters a graph.")
item_option = click.option(
    "--item", type=click.IntRange(1), metavar="N", help="RSS: which item of the feed is the event."
)


_FOR_RDF = {
    "form": "--format",
    "source": "--source",
    "item": "--item",
    "bindings": "--bindings",
    "taxonomies": "--taxonomy",
    "coerce": "--coerce",
    "injective": "--injective",
}


def refuse_rdf_options() -> None:
    """Refuse options that mean nothing for filters of records."""
    given = click.get_current_context().params
    for name, option in _FOR_RDF.items():
        if given.get(name) not in {None, False, ()}:
            raise click.UsageError(f"{option} is for filters of RDF, and these look at records")


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
    from headgate.rdf.model import Options
    from headgate.spark.rdf_files import read_taxonomy

    options = Options(coerce=coerce, injective=injective)
    return read_taxonomy(taxonomies), options if coerce or injective else None


def read_document(given: str, form: str | None, source: str | None, item: int | None) -> Event:
    """Read an event that is RDF: a file, text, standard input, or a row of a table as JSON."""
    from headgate.core.event import RSS, Event, read_object
    from headgate.rdf.feeds import read_feed
    from headgate.spark.rdf_files import SUFFIXES, check_type, type_of_file

    name, data = _data(given)
    kind = check_type(form) or type_of_file(name)
    if kind is None and data.lstrip()[:1] == b"{":
        event = Event.from_row({"id": "", **read_object(data)})
        if event.content_type not in RDF_TYPES.values():
            raise EventError(
                "the event is a record, and these filters look at RDF: give a document, or its text in "
                "'data' and its format in 'datacontenttype'"
            )
    elif kind is None:
        raise click.UsageError(f"--event: say --format, or name a file that ends in {', '.join(SUFFIXES)}")
    else:
        event = Event(name, data, content_type=kind)
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


def _data(given: str) -> tuple[str, bytes]:
    """Find the name and the bytes of a document that is named or written out."""
    from headgate.spark.rdf_files import type_of_file

    if given == "-":
        return "", sys.stdin.buffer.read()
    if "\n" not in given and "\0" not in given and len(given) < _LONGEST_NAME:
        place = Path(given)
        try:
            if place.is_file():
                return place.name, place.read_bytes()
        except OSError as error:
            raise TableError(f"{given} cannot be read: {error.strerror}") from None
        if type_of_file(given) is not None and " " not in given:
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
    from headgate.rdf.wording import shown

    count = f"{len(found.rows):,}" if found.complete else f"the first {len(found.rows):,}"
    if not found.rows:
        return ["no bindings"]
    if not found.names:
        return ["bindings: the filter has no variables with names"]
    rows = [found.names, *(tuple(map(shown, row)) for row in found.rows)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["   ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)) for row in rows]
    return [f"bindings: {count}", *(f"  {line}".rstrip() for line in lines)]
