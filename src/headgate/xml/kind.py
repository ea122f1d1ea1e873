"""XML: tree patterns over documents."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from headgate.contents.kind import DocumentEvents, Kind, Results, in_order
from headgate.core.event import ATOM, FEED_TYPES, RSS, XML_TYPES
from headgate.core.event import XML as MEDIA_TYPE
from headgate.core.rooms import XML
from headgate.core.subscription import TREE, XPATH
from headgate.errors import PlanError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from headgate.contents.kind import FilterSettings
    from headgate.contents.views import Views
    from headgate.core.event import Event, Id
    from headgate.core.ids import Ids
    from headgate.core.subscription import Subscription
    from headgate.xml.events.document import Document
    from headgate.xml.index.index import XmlRoom
    from headgate.xml.language.model import Pattern
    from headgate.xml.whole.reading import XPathSettings


class Xml(Kind):
    """XML documents, and feeds, which are one event for each item."""

    name = XML
    title = "XML"
    dialects = (XPATH, TREE)
    types = XML_TYPES
    markup = MEDIA_TYPE
    suffixes = {".xml": MEDIA_TYPE, ".rss": RSS, ".atom": ATOM}  # noqa: RUF012 -- never changed
    settings = frozenset({"namespaces", "unindexed"})
    options = ("--item", "--tuples")
    results = "tuples"

    def room(self, wanted: FilterSettings | None = None) -> XmlRoom:
        """Return what builds and opens indexes, all with one set of namespaces."""
        from headgate.xml.index.index import XmlRoom

        return XmlRoom(_settings(wanted))

    def room_at(self, path: Path) -> XmlRoom:
        """Return what opens a snapshot, with the namespaces that it was built with."""
        from headgate.contents.protocol import about_filters
        from headgate.xml.index.index import XmlRoom
        from headgate.xml.whole.reading import XPathSettings

        return XmlRoom(XPathSettings.of(about_filters(path, XML).get("xpath")))

    def verified_note(self, text: str, events: Sequence[Event]) -> str | None:
        """Say of an expression that lxml decides what of it is indexed, and what lxml does for events."""
        from headgate.xml.explain.explain import verified_note

        return verified_note(text, [each for each in events if each.content_type in self.types.values()])

    def read_one(self, event: Event) -> DocumentEvents:
        """Read a document."""
        from headgate.xml.events.feeds import read_feed
        from headgate.xml.events.reading import read_document

        if event.content_type in FEED_TYPES.values():
            feed = read_feed(event)
            return DocumentEvents(feed.items, feed=True, notes=len(feed.notes))
        return DocumentEvents((replace(event, data=read_document(event.data)),))

    def pack(self, event: Event) -> bytes:
        """Write the document of an event."""
        from headgate.xml.events.reading import pack

        return pack(event.data)

    def unpack(self, packed: bytes) -> tuple[Document, str]:
        """Return the document of an event."""
        from headgate.xml.events.reading import unpack

        return unpack(packed), MEDIA_TYPE

    def kept(self, given: Event, event: Event) -> tuple[str | bytes, str]:
        """Return the text of an event: as it came, or an item of a feed with the feed around it."""
        if given.content_type not in FEED_TYPES.values():
            return given.data, given.content_type
        return self.shown(event).data, MEDIA_TYPE

    def shown(self, event: Event) -> Event:
        """Return an event as text."""
        from headgate.xml.events.document import SourcedDocument

        if not isinstance(event.data, SourcedDocument):
            return super().shown(event)
        return replace(event, data=event.data.source.decode(), content_type=MEDIA_TYPE)

    def keys(self, event: Event) -> Iterable[str]:
        """List the labels of a document."""
        from headgate.xml.events.reading import document_of

        return document_of(event).names

    def given(self, index: Any, event: Event, identity: Id, limit: int) -> Results:
        """Return the tuples of a pattern."""
        from headgate.xml.answers.answers import tuples_shown

        return tuples_shown(index.answer(event, identity), limit)

    def views(
        self,
        subscriptions: Sequence[Subscription],
        *,
        carries: str | None = None,
        wanted: FilterSettings | None = None,
    ) -> Views:
        """Make views."""
        del carries, wanted
        from headgate.xml.views.views import XmlViews

        return XmlViews.build([_view(each.filter, each.id, each.dialect) for each in subscriptions])

    def views_at(
        self, path: Path, *, carries: str | None = None, order: Sequence[int] | None = None
    ) -> tuple[Ids, Views]:
        """Make views of a snapshot's patterns."""
        del carries
        from headgate.xml.index.live import Base
        from headgate.xml.views.views import XmlViews

        base = Base.open(path)
        rows = zip(in_order(base.filters.texts(), order), in_order(base.ids[:], order), strict=True)
        return base.ids, XmlViews.build([_view(text, identity) for text, identity in rows])


def _settings(wanted: FilterSettings | None) -> XPathSettings:
    """Return what is said of filters of XML; refuses what means nothing."""
    from headgate.contents.kind import REFUSE
    from headgate.xml.whole.reading import XPathSettings

    if wanted is None:
        return XPathSettings()
    return XPathSettings(wanted.namespaces or {}, wanted.unindexed or REFUSE)


def _view(text: str, identity: Id, dialect: str = XPATH) -> Pattern:
    """Read a filter as a view; refuses one that no plan can rewrite."""
    from headgate.xml.whole.reading import WholeFilter, read_filter

    filter_ = read_filter(text, dialect)[1]
    if isinstance(filter_, WholeFilter):
        raise PlanError(
            f"the filter of subscription {identity!r} is no tree pattern, and plans are made of those: "
            f"match it without a plan, or narrow it to a path with conditions joined by and: {_shown(text)}"
        )
    return filter_


def _shown(text: str) -> str:
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 1]}…"


_WIDEST = 100

KIND = Xml()
