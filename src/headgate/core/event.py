"""What publishers send."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import msgspec

from headgate.core.rooms import discover
from headgate.core.values import EXACT, CheckedObjects, find_name, flatten, flatten_as, fold
from headgate.errors import EventError

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from headgate.core.values import Path

Id: TypeAlias = str | int
"""How users name events and subscriptions: text or an int64, one of the two within a table."""

JSON = "application/json"
TURTLE = "text/turtle"
N_TRIPLES = "application/n-triples"
RDF_XML = "application/rdf+xml"
JSON_LD = "application/ld+json"
RSS = "application/rss+xml"
ATOM = "application/atom+xml"
FEED_TYPES = {"rss": RSS, "atom": ATOM}
"""The media types of feeds, by their short names: a document of each of them is an event for each item."""
RDF_TYPES = {"turtle": TURTLE, "nt": N_TRIPLES, "rdfxml": RDF_XML, "jsonld": JSON_LD, **FEED_TYPES}
"""The media types of events that are RDF, by their short names."""
XML = "application/xml"
"""The media type of events that are XML documents of any other kind."""
XML_TYPES = {"xml": XML, **FEED_TYPES}
"""The media types of events that are XML, by their short names."""
ID = "id"
"""The field or column that holds the id, of events and of subscriptions."""
SOURCE = "source"
"""The field or column that names the node where an event enters the graph."""
CONTENT_TYPE = "datacontenttype"
"""The field or column that names the media type of `DATA`, or its short name."""
DATA = "data"
"""The field or column with the text of an event that is no record."""
TIME = "time"
"""The field or column with the time of such an event."""

SECOND_MARK = "a byte order mark stands at the very start only, and once"
"""Why a second one is refused. Some readers of CSV, JSON and XML pass over it, and others do not."""
SAME_NAMES = "two fields have names that differ in case only, which are the same"
"""Why a row with a document is refused that has two spellings of a field."""

EVENT_TIME = ("EVENT_TIME",)
"""The path of an event's time among its attributes; those of records are folded, and have no capitals."""
WRITTEN_TIME = ":event_time"
"""What it is called in filters."""

_Made = TypeVar("_Made")
_CHECKED = {"": CheckedObjects(), EXACT: CheckedObjects(EXACT.__add__)}
_KNOWN = {name: kind for short, kind in (*RDF_TYPES.items(), ("xml", XML)) for name in (short, kind)}
_KNOWN["text/xml"] = XML
_CHARSETS = ("", "utf-8", "utf8", "us-ascii")
_WIDE_TYPES = frozenset(XML_TYPES.values())
_MARKS = frozenset(
    spelled
    for name in (ID, SOURCE, DATA)
    for letters in product(*((each, each.upper()) for each in name))
    if (spelled := "".join(letters)) not in {ID, SOURCE}
)
_OTHERS: list[str] = []
"""Media types of kinds of content that others have added."""


def learn_types(types: Mapping[str, str]) -> None:
    """Learn the media types of a kind of content, by short name; those that are known stay as they are."""
    for short, kind in types.items():
        for name in (short, kind):
            if _KNOWN.setdefault(name.casefold(), kind) is kind and kind not in _OTHERS:
                _OTHERS.append(kind)


_LONE_SURROGATE = re.compile(
    r"(?<!\\)\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB]..)\\u[dD][c-fC-F][0-9a-fA-F]{2}"
)


@dataclass(frozen=True)
class Event:
    """One event in the CloudEvents envelope; `content_type` says what `data` is, and so which filters fit.

    A record is a mapping. RDF and XML are text or bytes in the format that the content type names, by its
    media type or its short name; it is parsed when a filter first looks at it.

    >>> Event("e1", {"topic": "news"}).attributes
    {('topic',): 'news'}
    >>> Event("e2", "<urn:a> <urn:b> <urn:c> .", content_type="turtle").content_type
    'text/turtle'
    """

    id: Id
    data: Any
    time: dt.datetime | None = None
    source: Id | None = None
    content_type: str = JSON

    def __post_init__(self) -> None:
        """Refuse what no room looks at."""
        if self.content_type == JSON:
            return
        given: object = self.content_type
        if not isinstance(given, str):
            raise EventError(f"the content type of event {self.id!r} is {given!r}: give its name, as text")
        kind = media_type(self.content_type)
        if kind is None:
            discover()
            kind = media_type(self.content_type)
        if kind is None:
            known = ", ".join((JSON, *RDF_TYPES.values(), XML, *_OTHERS))
            raise EventError(f"content type {self.content_type!r} is not supported: send one of {known}")
        if self.data is None or isinstance(self.data, dict | list | bool | int | float):
            what = "nothing" if self.data is None else type(self.data).__name__
            raise EventError(f"event {self.id!r} is {kind}: its data is text or bytes, not {what}")
        object.__setattr__(self, "content_type", kind)

    @cached_property
    def attributes(self) -> dict[Path, object]:
        """List the values of a record by folded path, and its time if it has one (`EVENT_TIME`)."""
        return self._with_time(flatten(self._record()))

    def attributes_as(self, mark: str) -> dict[Path, object]:
        r"""List the same by paths with a mark, for filters whose names mean something else.

        >>> Event("e1", {"Age": 5, "age": 6}).attributes_as("\x01")
        {('\x01Age',): 5, ('\x01age',): 6}
        """
        if not mark:
            return self.attributes
        # Of this event, which `once` is asked of.
        return self.once(f"attributes{mark}", lambda _: self._with_time(flatten_as(self._record(), mark)))

    def check(self, mark: str = "") -> None:
        """Refuse what `attributes_as` refuses, in a third of the time where names are not joined."""
        checked = _CHECKED.get(mark)
        try:
            if checked is None or type(self.data) is not dict or self.content_type != JSON:
                self.attributes_as(mark)
            else:
                checked.check(self.data, 0)
        except EventError:
            # Flattening has the words for it.
            self.attributes_as(mark)

    def _with_time(self, attributes: dict[Path, object]) -> dict[Path, object]:
        if self.time is not None:
            attributes[EVENT_TIME] = self.time
        return attributes

    def _record(self) -> Mapping[str, object]:
        """Return the data of a record; refuses any other event."""
        if self.content_type != JSON:
            raise EventError(
                f"event {self.id!r} is {self.content_type} and these filters look at records: send {JSON}"
            )
        if not isinstance(self.data, Mapping):
            what = "nothing" if self.data is None else type(self.data).__name__
            raise EventError(f"event {self.id!r} is {JSON}: its data is a mapping of attributes, not {what}")
        return self.data

    def once(self, key: str, make: Callable[[Event], _Made]) -> _Made:
        """Return what `make` makes of this event, made when it is first asked for under this key.

        >>> event = Event("e1", {})
        >>> event.once("made", lambda _: [1]) is event.once("made", lambda _: [2])
        True
        """
        kept: dict[str, _Made] = self.__dict__.setdefault("_kept", {})
        if key not in kept:
            kept[key] = make(self)
        return kept[key]

    @classmethod
    def record(cls, identity: Id, data: dict[str, Any], source: Id | None = None) -> Event:
        """Make the event of a record, in a quarter of the time: nothing of it needs to be looked at.

        >>> Event.record("e1", {"topic": "news"}) == Event("e1", {"topic": "news"})
        True
        """
        made = object.__new__(cls)
        fields = {"id": identity, "data": data, "time": None, "source": source, "content_type": JSON}
        object.__setattr__(made, "__dict__", fields)
        return made

    @classmethod
    def from_row(cls, row: Mapping[str, object]) -> Event:
        """Make an event of a table's row: `id`, perhaps `source`, and the attributes (these are two of them).

        A row whose `datacontenttype` names RDF or XML, with text in `data`, is that, and may have a `time`.

        >>> Event.from_row({"id": 7, "topic": "news"}).id
        7
        >>> Event.from_row({"id": 8, "datacontenttype": "nt", "data": ""}).content_type
        'application/n-triples'
        """
        given: object = row
        if not isinstance(given, Mapping):
            raise EventError(f"the event is {type(row).__name__}: give a mapping with its fields")
        quick = is_plain(row)
        identity = row.get(ID) if quick else _field(row, ID)
        if isinstance(identity, bool) or not isinstance(identity, str | int):
            what = "no id" if identity is None else f"id {identity!r}"
            raise EventError(f"the event has {what}: give the field 'id' as text or a whole number")
        source = row.get(SOURCE) if quick else _field(row, SOURCE)
        if isinstance(source, bool) or not isinstance(source, str | int):
            source = None
        if quick:
            return cls(identity, row, source=source)
        kind = _field(row, CONTENT_TYPE)
        if isinstance(kind, str) and (kind := media_type(kind)) is not None:
            data = _field(row, DATA)
            if isinstance(data, str | bytes):
                if len({fold(str(name)) for name in row}) < len(row):
                    raise EventError(SAME_NAMES)
                return cls(identity, data, read_time(identity, _field(row, TIME)), source, kind)
        return cls(identity, row, source=source)

    @classmethod
    def from_json(cls, text: str | bytes) -> Event:
        """Read one JSON object: the field `id` and the attributes, or RDF or XML as in a row.

        >>> Event.from_json('{"id": "e1", "topic": "news"}').data
        {'id': 'e1', 'topic': 'news'}
        """
        given: object = text
        if not isinstance(given, str | bytes):
            raise EventError(f"the event is {type(text).__name__}: give JSON, as text or bytes")
        return cls.from_row(read_object(text))


def is_plain(row: Mapping[Any, object]) -> bool:
    """Tell whether a row is no document, and has no `id` or `source` but in these very letters.

    >>> is_plain({"id": 7, "topic": "news"}), is_plain({"ID": 7}), is_plain({"id": 7, "Data": "<a/>"})
    (True, False, False)
    """
    return _MARKS.isdisjoint(row)


def column_of(events: pa.RecordBatch, name: str) -> pa.Array[Any]:
    """Find a column whatever the case of its name; refuse a batch without it, or with two of them."""
    names = events.schema.names
    position = find_name((name,), names)
    if position is None:
        raise EventError(f"the events have no column {name!r}; the columns are {', '.join(names)}")
    return events.column(position)


def media_type(name: str) -> str | None:
    """Find the media type of RDF or XML that a content type means, if it means one; a short name is as good.

    >>> media_type("Text/Turtle; charset=UTF-8"), media_type("jsonld"), media_type("text/html")
    ('text/turtle', 'application/ld+json', None)
    >>> media_type("text/xml"), media_type("image/svg+xml"), media_type("atom")
    ('application/xml', 'application/xml', 'application/atom+xml')
    """
    kind = _KNOWN.get(name)
    if kind is not None:
        return kind
    head, *parameters = (part.strip() for part in name.casefold().split(";"))
    kind = _KNOWN.get(head) or (XML if "/" in head and head.endswith("+xml") else None)
    charsets = [part[8:].strip('"') for part in parameters if part.startswith("charset=")]
    allowed = (*_CHARSETS, "utf-16") if kind in _WIDE_TYPES else _CHARSETS
    return kind if all(charset in allowed for charset in charsets) else None


def _field(row: Mapping[Any, object], name: str) -> object:
    """Find a field by its name, without regard to case."""
    field = row.get(name)
    if field is None:
        size = len(name)
        for given, value in row.items():
            # Folding keeps the length of whatever folds to a name of ours.
            if isinstance(given, str) and len(given) == size and fold(given) == name:
                return value
    return field


def read_time(identity: Id, moment: object) -> dt.datetime | None:
    """Read the time of an event; one without a zone is in UTC."""
    if moment is None:
        return None
    try:
        time = moment if isinstance(moment, dt.datetime) else dt.datetime.fromisoformat(str(moment))
    except ValueError:
        raise EventError(
            f"event {identity!r} has the time {moment!r}: give one like 2005-05-10T09:30:00Z"
        ) from None
    return time if time.tzinfo else time.replace(tzinfo=dt.UTC)


def read_object(text: str | bytes) -> dict[str, object]:
    """Read a JSON object; refuse anything else in one line."""
    try:
        value = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        written = text if isinstance(text, str) else text.decode(errors="replace")
        lone = _LONE_SURROGATE.search(written)
        reason = f"the escape {lone[0]} is a lone surrogate" if lone else str(error)
        if written.startswith("\ufeff"):
            # The one at the start of a file is taken off by whoever reads the file.
            reason = SECOND_MARK
        raise EventError(f"not valid JSON: {reason}") from None
    except UnicodeError as error:
        raise EventError(f"not valid JSON: {error}") from None
    except RecursionError:
        raise EventError("not usable JSON: it nests too deep") from None
    if not isinstance(value, dict):
        raise EventError(f"expected a JSON object, found {type(value).__name__}")
    return value
