"""XML: tree patterns over documents."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from headgate.contents.kind import DocumentEvents, Kind, Results, in_order
from headgate.core.event import XML as MEDIA_TYPE
from headgate.core.rooms import XML
from headgate.core.subscription import TREE, XPATH
from headgate.errors import EventError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from headgate.contents.kind import FilterSettings
    from headgate.contents.views import Views
    from headgate.core.event import Event, Id
    from headgate.core.ids import Ids
    from headgate.core.subscription import Subscription
    from headgate.xml.compiling import XmlContents
    from headgate.xml.events.document import Document
    from headgate.xml.index.index import XmlIndex


class Xml(Kind):
    """XML documents."""

    name = XML
    title = "XML"
    dialects = (XPATH, TREE)
    types = {"xml": MEDIA_TYPE}  # noqa: RUF012 -- never changed
    suffixes = {".xml": MEDIA_TYPE}  # noqa: RUF012 -- never changed
    options = {"tuples": "--tuples"}  # noqa: RUF012 -- never changed
    results = "tuples"

    def room(self, wanted: FilterSettings | None = None) -> type[XmlIndex]:
        """Return what builds and opens indexes."""
        del wanted
        from headgate.xml.index.index import XmlIndex

        return XmlIndex

    def compiler(self, wanted: FilterSettings, read_sample: Callable[[str], Any]) -> XmlContents:
        """Return what compiles tables of patterns."""
        del wanted, read_sample
        from headgate.xml.compiling import XmlContents

        return XmlContents()

    def read(self, events: Sequence[Event | EventError]) -> list[DocumentEvents | EventError]:
        """Read documents."""
        from headgate.xml.events.reading import read_document

        found: list[DocumentEvents | EventError] = []
        for each in events:
            try:
                if isinstance(each, EventError):
                    found.append(each)
                else:
                    found.append(DocumentEvents((replace(each, data=read_document(each.data)),)))
            except EventError as error:
                found.append(error)
        return found

    def pack(self, event: Event) -> bytes:
        """Write the document of an event."""
        from headgate.xml.events.reading import pack

        return pack(event.data)

    def unpack(self, packed: bytes) -> tuple[Document, str]:
        """Return the document of an event."""
        from headgate.xml.events.reading import unpack

        return unpack(packed), MEDIA_TYPE

    def keys(self, data: Document) -> Iterable[str]:
        """List the labels of a document."""
        return data.names

    def given(self, index: Any, event: Event, identity: Id, limit: int) -> Results:
        """Return the tuples of a pattern."""
        from headgate.xml.answers.answers import tuples_shown

        return tuples_shown(index.answer(event, identity), limit)

    def given_nothing(self, limit: int) -> Results:
        """Return that there are none."""
        from headgate.xml.answers.answers import tuples_shown

        return tuples_shown(None, limit)

    def views(
        self, subscriptions: Sequence[Subscription], *, carries: str | None = None, taxonomy: Any = None
    ) -> Views:
        """Make views."""
        del carries, taxonomy
        from headgate.xml.language.parse import parse_filter
        from headgate.xml.views.views import XmlViews

        return XmlViews.build([parse_filter(each.filter, each.dialect) for each in subscriptions])

    def views_at(
        self, path: Path, *, carries: str | None = None, order: Sequence[int] | None = None
    ) -> tuple[Ids, Views]:
        """Make views of a snapshot's patterns."""
        del carries
        from headgate.xml.index.live import Base
        from headgate.xml.language.parse import parse_filter
        from headgate.xml.views.views import XmlViews

        base = Base.open(path)
        return base.ids, XmlViews.build(
            [parse_filter(text) for text in in_order(base.filters.texts(), order)]
        )


KIND = Xml()
