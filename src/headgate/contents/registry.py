"""Which content room filters belong to: by their dialects, and by the snapshot that they are in.

A room is loaded when it is asked for: each takes a part of a second, and most programs need one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from headgate.core.rooms import FILTERS, GRAPH, RANKING, RDF, RECORDS, XML
from headgate.core.snapshot import room_of
from headgate.core.subscription import LABELS, SPARQL, SQL, TREE, TUPLES, XPATH
from headgate.errors import SnapshotError, SubscriptionError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from headgate.rdf.index.index import RdfRoom
    from headgate.records.index.index import RecordIndex
    from headgate.xml.index.index import XmlIndex

    Room: TypeAlias = type[RecordIndex] | RdfRoom | type[XmlIndex]

__all__ = ["CONTENTS", "RDF", "RECORDS", "XML", "content_at", "content_of", "quoted", "room_at"]

CONTENTS = {RECORDS: (SQL, LABELS), RDF: (SPARQL, TUPLES), XML: (XPATH, TREE)}
"""The dialects of each content room."""
TITLES = {RECORDS: "records", RDF: "RDF", XML: "XML"}
"""What people call the events of each content room."""
_FIRST = "shard-000"
"""Where a graph or a ranking that was cut has its first shard."""


def content_of(dialects: Iterable[str], what: str) -> str | None:
    """Find the content room that speaks all of some dialects, none if there are none; refuses a mixture.

    >>> content_of(["sparql", "tuples"], "the filters")
    'rdf'
    """
    given = set(dialects)
    rooms = [room for room, spoken in CONTENTS.items() if given.intersection(spoken)]
    if len(rooms) > 1:
        looked = [
            f"{TITLES[room]} ({quoted(each for each in CONTENTS[room] if each in given)})" for room in rooms
        ]
        raise SubscriptionError(
            f"{what} look at {' and at '.join(looked)}, and nothing is both: keep them apart"
        )
    return rooms[0] if rooms else None


def content_at(path: Path) -> str:
    """Find the content room of a snapshot's filters, wherever in it they are."""
    room = room_of(path)
    if room in CONTENTS:
        return room
    if room in {GRAPH, RANKING}:
        return content_at(path / FILTERS)
    if room.endswith("shards"):
        return content_at(path / _FIRST)
    raise SnapshotError(
        f"snapshot {path} belongs to the room {room!r}: give one of records, of RDF, of XML, of a "
        "ranking, or of a graph"
    )


def room_at(path: Path) -> Room:
    """Return the content room of a snapshot's filters; that of RDF opens all of them with one taxonomy."""
    return room_of_content(content_at(path))


def room_of_content(content: str | None) -> Room:
    """Load a content room by its name, without settings; records if it has none."""
    if content == RDF:
        from headgate.rdf.index.index import RdfRoom

        return RdfRoom()
    if content == XML:
        from headgate.xml.index.index import XmlIndex

        return XmlIndex
    from headgate.records.index.index import RecordIndex

    return RecordIndex


def quoted(words: Iterable[str]) -> str:
    """List words for a message.

    >>> quoted(["sql", "labels"])
    "'sql' and 'labels'"
    """
    *most, last = map(repr, words)
    return f"{', '.join(most)} and {last}" if most else last
