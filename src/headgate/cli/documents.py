"""Documents on the command line: the options for RDF and XML, and an event that is a document."""

from __future__ import annotations

import codecs
import errno
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headgate.cli.standard import STANDARD
from headgate.contents.settings import Documents
from headgate.core.settings import setting
from headgate.errors import EventError, TableError
from headgate.tables.packed import ending, read_file

if TYPE_CHECKING:
    from headgate.contents.kind import Feeds, Kind
    from headgate.core.event import Event


@dataclass(frozen=True, kw_only=True)
class OneEvent(Documents):
    """What is said of an event that is written out or named on the command line."""

    source: str | None = setting("RDF, XML: the node where the event enters a graph", metavar="ID")
    item: int | None = setting("RSS, Atom: which item of the feed is the event", least=1)


_FOR_DOCUMENTS = ("--format", "--source")


def refuse_options(content: str) -> None:
    """Refuse options that mean nothing for filters of a kind of content."""
    from headgate.contents.registry import kind_of, kinds, titles_of

    kind, known = kind_of(content), kinds().values()
    context = click.get_current_context()
    given = {
        each.opts[0]
        for each in context.command.params
        if context.params.get(each.name or "") not in {None, False, ()}
    }
    documents = " and ".join(each.title for each in known if each.documents)
    wrong = {} if kind.documents else dict.fromkeys(_FOR_DOCUMENTS, documents)
    for text in dict.fromkeys(text for other in known for text in other.flags):
        if text not in kind.flags:
            wrong[text] = titles_of(other for other in known if text in other.flags)
    for option, title in wrong.items():
        if option in given:
            raise click.UsageError(f"{option} is for filters of {title}, and these look at {kind.title}")


def read_document(content: str, text: str, asked: OneEvent) -> Event:
    """Read an event that is a document: a file, text, standard input, or a row of a table as JSON."""
    from headgate.contents.registry import kind_of
    from headgate.core.event import FEED_TYPES, ID, Event, read_object
    from headgate.core.values import fold
    from headgate.tables.document_rows import event_of_row
    from headgate.tables.event_rows import is_record
    from headgate.tables.requests import check_type, type_of_file

    kind = kind_of(content)
    name, data = _data(text, kind)
    written = check_type(asked.format, kind) or type_of_file(name, kind)
    plain = data.removeprefix(codecs.BOM_UTF8)
    begins = plain.lstrip()[:1]
    if written is None and begins == b"<":
        written = kind.markup
    if written is None and begins == b"{":
        row = read_object(plain)
        names = {fold(name): value for name, value in row.items()}
        if not kind.rows and is_record(names, None):
            raise EventError(
                f"the event is a record, and these filters look at {kind.title}: give a document, or its "
                "text in 'data' and its format in 'datacontenttype'"
            )
        named = row if ID in names else {ID: "", **row}
        event = event_of_row(named, kind, None, row if kind.rows else None)
    elif written is None:
        raise click.UsageError(
            f"--event: say --format, or name a file that ends in {', '.join(kind.suffixes)}"
        )
    else:
        event = Event(name, data, content_type=written)
    event = event if asked.source is None else replace(event, source=asked.source)
    if asked.item is not None and event.content_type not in FEED_TYPES.values():
        raise click.UsageError(f"--item is for feeds, and the event is {event.content_type}")
    return kind.one(event, asked.item)


def read_record(text: str) -> Event:
    """Read an event that is a record, as the library does; it needs no id, because it is the only one."""
    from headgate.engine.inputs import event_of

    return event_of(_object_in(text), "")


def _object_in(text: str) -> dict[str, object]:
    """Read a file with one JSON object, the object itself, or standard input."""
    from headgate.core.event import read_object
    from headgate.tables.places import ENDINGS

    if text == STANDARD:
        return read_object(sys.stdin.buffer.read())
    if text.lstrip().startswith("{"):
        return read_object(text)
    path = Path(text)
    if not _is_file(text):
        if " " not in text and ending(text) in ENDINGS:
            raise TableError(f"{text} does not exist")
        return read_object(text)
    lines = [line for line in read_file(path).removeprefix(codecs.BOM_UTF8).splitlines() if line.strip()]
    if len(lines) > 1 and lines[0].rstrip().endswith(b"}"):
        raise TableError(f"{text} has {len(lines):,} lines: give a file with one event, or one of its lines")
    return read_object(b"\n".join(lines))


def _data(text: str, kind: Kind) -> tuple[str, bytes]:
    """Find the name and the bytes of a document that is named or written out."""
    from headgate.tables.requests import type_of_file

    if text == STANDARD:
        return "", sys.stdin.buffer.read()
    if _is_file(text):
        path = Path(text)
        try:
            return path.name, read_file(path)
        except OSError as error:
            raise TableError(f"{text} cannot be read: {error.strerror}") from None
    if len(text.splitlines()) == 1 and type_of_file(text, kind) is not None and " " not in text:
        raise TableError(f"{text} does not exist")
    return "", text.encode(errors="surrogateescape")


def _is_file(text: str) -> bool:
    """Tell the name of a file from an event that is written out, which may be no name at all."""
    try:
        return bool(text) and Path(text).is_file()
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            return False
        raise TableError(f"{text} cannot be read: {error.strerror}") from None


def feed_lines(feeds: Feeds | None) -> list[str]:
    """Say what was forgiven to feeds."""
    if feeds is None or not feeds.lenient:
        return []
    count = f"{feeds.lenient:,} of {feeds.feeds:,} feeds"
    return [f"note: {count} are not well-formed and were read leniently, with {feeds.notes:,} departures"]
