"""RDF: graph patterns over triples."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from headgate.contents.kind import Kind, Results, in_order
from headgate.core.arguments import told
from headgate.core.event import ATOM, FEED_TYPES, JSON_LD, N_TRIPLES, RDF_TYPES, RDF_XML, RSS, TURTLE
from headgate.core.rooms import RDF
from headgate.core.subscription import SPARQL, TUPLES
from headgate.errors import EventError, FilterError, PlanError, SubscriptionError, TaxonomyError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from headgate.contents.kind import DocumentEvents, FilterSettings
    from headgate.contents.protocol import Access
    from headgate.contents.views import Views
    from headgate.core.event import Event, Id
    from headgate.core.ids import Ids
    from headgate.core.subscription import Subscription
    from headgate.rdf.index.bindings import Bindings
    from headgate.rdf.index.index import RdfRoom
    from headgate.rdf.language.model import Graph, Options, Pattern


class Rdf(Kind):
    """Documents that are RDF, and feeds, which are one event for each item."""

    name = RDF
    title = "RDF"
    dialects = (SPARQL, TUPLES)
    types = RDF_TYPES
    suffixes = {  # noqa: RUF012 -- never changed
        ".ttl": TURTLE,
        ".nt": N_TRIPLES,
        ".rdf": RDF_XML,
        ".owl": RDF_XML,
        ".xml": RDF_XML,
        ".jsonld": JSON_LD,
        ".rss": RSS,
        ".atom": ATOM,
    }
    settings = frozenset({"taxonomy", "options", "unindexed"})
    options = ("--item", "--bindings", "--taxonomy", "--coerce", "--injective")
    results = "bindings"

    def room(self, wanted: FilterSettings | None = None) -> RdfRoom:
        """Return what builds and opens indexes, all with one taxonomy."""
        from headgate.rdf.index.index import RdfRoom

        if wanted is None:
            return RdfRoom()
        _check_settings(wanted.taxonomy, wanted.options)
        return RdfRoom(wanted.taxonomy, _options(wanted))

    def read(self, events: Sequence[Event | EventError]) -> list[DocumentEvents | EventError]:
        """Read documents: graphs of all that are none of feeds are parsed together."""
        from headgate.rdf.events.reading import read_all

        return read_all(events)

    def pack(self, event: Event) -> bytes:
        """Write the graph of an event."""
        from headgate.rdf.events.reading import pack

        return pack(event.data)

    def unpack(self, packed: bytes) -> tuple[Graph, str]:
        """Return the graph of an event."""
        from headgate.rdf.events.reading import unpack

        return unpack(packed), N_TRIPLES

    def kept(self, given: Event, event: Event) -> tuple[str | bytes, str]:
        """Return the text of an event: as it came, or an item of a feed as N-Triples."""
        if given.content_type not in FEED_TYPES.values():
            return given.data, given.content_type
        from headgate.rdf.events.triples import write_lines

        return write_lines(event.data), N_TRIPLES

    def shown(self, event: Event) -> Event:
        """Return an event as N-Triples."""
        from headgate.rdf.events.reading import graph_of
        from headgate.rdf.events.triples import write_lines

        return replace(event, data=write_lines(graph_of(event)), content_type=N_TRIPLES)

    def close(self) -> None:
        """End the processes that parse and evaluate."""
        from headgate.rdf.events.reading import READER
        from headgate.rdf.whole.evaluator import EVALUATOR

        READER.close()
        EVALUATOR.close()

    def keys(self, event: Event) -> Iterable[str]:
        """List the properties of a graph, and the classes that something is an instance of."""
        from headgate.rdf.events.reading import graph_of
        from headgate.rdf.index.columns import graph_keys

        return graph_keys(graph_of(event))

    def access(self, contents: Any, filed: Any, events: Sequence[Event]) -> list[Access]:
        """Say by what events come to filters; of whole queries also that they are verified, and the cost."""
        from headgate.rdf.explain.explain import ways_to

        seen = [frozenset(self.keys(event)) for event in events]
        return ways_to(filed.columns, contents.listed, seen)

    def given(self, index: Any, event: Event, identity: Id, limit: int) -> Results:
        """Return the bindings of a pattern."""
        from headgate.rdf.explain.notes import bindings_shown

        return bindings_shown(index.bindings(event, identity, limit))

    def no_result(self) -> Bindings:
        """Return that there are no bindings."""
        from headgate.rdf.index.bindings import Bindings

        return Bindings((), (), complete=True)

    def views(
        self,
        subscriptions: Sequence[Subscription],
        *,
        carries: str | None = None,
        wanted: FilterSettings | None = None,
    ) -> Views:
        """Make views, which see events through a taxonomy."""
        del carries
        from headgate.rdf.views.views import RdfViews

        taxonomy = None if wanted is None else wanted.taxonomy
        _check_settings(taxonomy, None)
        return RdfViews.build([_view(each.filter, each.dialect) for each in subscriptions], taxonomy)

    def views_at(
        self, path: Path, *, carries: str | None = None, order: Sequence[int] | None = None
    ) -> tuple[Ids, Views]:
        """Make views of a snapshot's patterns, which see events through its taxonomy."""
        del carries
        from headgate.rdf.index.live import Base
        from headgate.rdf.views.views import RdfViews

        base = Base.open(path)
        if base.options.coerce or base.options.injective:
            raise PlanError(
                f"snapshot {path} was compiled with options that depart from SPARQL, and views follow it: "
                "compile it without them"
            )
        texts = in_order(base.filters.texts(), order)
        return base.ids, RdfViews.build([_view(text) for text in texts], base.taxonomy)


def _options(wanted: FilterSettings) -> Options | None:
    """Return what is said of filters, with how many are taken that nothing is indexed of."""
    from headgate.rdf.language.model import UNINDEXED, Options

    given: Options | None = wanted.options
    if wanted.unindexed != "allow":
        return given
    given = given or Options()
    return replace(given, unindexed=given.unindexed or UNINDEXED)


def _view(text: str, dialect: str = SPARQL) -> Pattern:
    """Parse a filter that becomes a view: a pattern, as views are computed from each other by joins."""
    from headgate.rdf.language.model import Pattern
    from headgate.rdf.whole.query import parse_any

    pattern = parse_any(text, dialect, tried=False)
    if not isinstance(pattern, Pattern):
        raise FilterError(
            "a plan takes filters of triples and conditions, and this query says more: leave it out",
            text,
            None,
        )
    return pattern


def _check_settings(taxonomy: object, options: object) -> None:
    """Refuse what is no taxonomy, and what are no options."""
    from headgate.rdf.language.model import Options
    from headgate.rdf.taxonomy.taxonomy import Taxonomy

    if taxonomy is not None and not isinstance(taxonomy, Taxonomy):
        raise TaxonomyError(f"the taxonomy is {told(taxonomy)}: give a Taxonomy")
    if options is not None and not isinstance(options, Options):
        raise SubscriptionError(f"the options of filters are {told(options)}: give Options")


KIND = Rdf()
