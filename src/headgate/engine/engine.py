"""The facade that joins the rooms: one object, whatever there is between publishers and subscribers.

Rooms are loaded when filters, a graph or ranks ask for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from headgate.contents.kind import FilterSettings
from headgate.contents.registry import kind_of
from headgate.core.arguments import source_of
from headgate.core.snapshot import digest_of
from headgate.core.versions.replacing import new_version
from headgate.core.versions.stores import Located, located, opened_at, title_of
from headgate.engine import construction
from headgate.engine.backend import Backend
from headgate.engine.construction import RAISE, Updates, check_way
from headgate.engine.inputs import RefusedSubscription, id_of, models_of, subscriptions_of
from headgate.engine.queries import Queries
from headgate.errors import (
    GraphError,
    SnapshotError,
    SubscriptionError,
    TaxonomyError,
)
from headgate.graph.model import Edge, Node

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike

    from headgate.core.event import Id
    from headgate.graph.index import GraphIndex
    from headgate.rdf.language.model import Options
    from headgate.rdf.taxonomy.taxonomy import Taxonomy


SHOWN = 10
"""Subscriptions in a table."""
_WIDE = 120
"""Characters of a filter that a table shows."""


class Origin(NamedTuple):
    """The snapshot that an engine was opened from, and the version of the taxonomy that it had."""

    name: str
    """What its version is found by."""
    digest: str
    taxonomy: int | None

    @property
    def title(self) -> str:
        """Return what people call it."""
        return title_of(self.name)


class Engine(Queries, Updates):
    """Subscriptions, with a graph between them and the publishers or without, ranked or not.

    A filter looks at one kind of content: at records, RDF, XML, or what others have added. One engine may
    have filters of several kinds: the content type of an event says which of them are asked.

    An event is an `Event`, a mapping of attributes, or JSON, the text of one: its `id` and `source` are those
    of the event. Many events are a list of these, or a table: of Arrow, of pandas, of Polars, or of whatever
    else has `__arrow_c_stream__`. Subscriptions, nodes and edges may be mappings and tables too, with the
    names of their fields. NumPy's scalars, decimals and pandas' timestamps count as what they are.

    Any number of threads may ask while others change. Kernels let go of the interpreter's lock, so programs
    on `asyncio` ask with `await asyncio.to_thread(engine.match, event)`.

    >>> from headgate import Edge, Engine, Event, Node, Subscription
    >>> engine = Engine.build([Subscription("s1", "age > 30")])
    >>> engine.match({"age": 35}), engine.match(Event("e1", {"age": 25}))
    (['s1'], [])
    >>> engine = Engine.build(
    ...     [Subscription("s1", "age > 30", node="net")],
    ...     nodes=[Node("pub"), Node("net", "topic = 'sport'")],
    ...     edges=[Edge("pub", "net")],
    ... )
    >>> engine.match({"age": 35, "topic": "sport", "source": "pub"})
    ['s1']
    >>> engine
    <Engine: 1 subscription over records, in a graph of 2 nodes>
    >>> engine = Engine.build(
    ...     [Subscription("s1", "age > 30", score=1), Subscription("s2", "age > 20", score=2)]
    ... )
    >>> [best.subscription for best in engine.top({"age": 35}, 2)]
    ['s2', 's1']
    >>> engine = Engine.build([Subscription("s1", "ASK { ?x a <urn:Art> }", "sparql")])
    >>> event = Event("e1", "<urn:x> a <urn:Art> .", content_type="text/turtle")
    >>> engine.match(event), engine.bindings(event, "s1").rows
    (['s1'], (('<urn:x>',),))
    """

    def __init__(
        self, backend: Backend, origin: Origin | None = None, refused: Sequence[RefusedSubscription] = ()
    ) -> None:
        if not isinstance(backend, Backend):
            raise SubscriptionError(
                f"{backend!r} is not a backend: make an engine with Engine.build, or with Engine.open"
            )
        self.backend = backend
        """What is asked: for jobs, which convert nothing."""
        self.refused = tuple(refused)
        """The subscriptions that were refused when it was built with `on_error="collect"`."""
        self._origin = origin

    @classmethod
    def build(
        cls,
        subscriptions: Any = (),
        *,
        nodes: Any = None,
        edges: Any = (),
        ranked: bool | None = None,
        taxonomy: Taxonomy | None = None,
        options: Options | None = None,
        namespaces: Mapping[str, str] | None = None,
        unindexed: str | None = None,
        nulls: str | None = None,
        names: str | None = None,
        dots: str | None = None,
        on_error: str = RAISE,
    ) -> Engine:
        """Index subscriptions; with nodes, they hang in the graph of these and the edges.

        `ranked` makes ready for the best k. If it is not said, that is done if a subscription has weights, or
        without a graph a score: a graph ranks by scores as it is.

        The dialects of the filters say whether they look at records, at XML or at RDF. Those of RDF may have
        a `taxonomy` and `options`, those of XML `namespaces` by prefix, and both `unindexed="allow"` for
        filters that must be evaluated for every event. Those of records may say what names mean:
        `nulls="told"` tells null from missing, `names="exact"` tells names apart by their case, and
        `dots="name"` takes a dot for part of a name, or `dots="either"` for that or for one that goes into an
        object.

        A subscription that is refused is told with its id. With `on_error="collect"` the engine is built of
        the others, and lists those that were refused, with their reasons, as `refused`.

        >>> Engine.build([{"id": "s1", "filter": "age > 30"}, {"id": "s2", "filter": "age < 20"}]).ids
        ['s1', 's2']
        """
        refused: list[RefusedSubscription] | None = [] if check_way(on_error) else None
        if ranked is not None and not isinstance(ranked, bool):
            raise SubscriptionError(f"ranked is {ranked!r}: give True or False, or leave it out")
        rows = subscriptions_of(subscriptions, refused)
        joined: list[Edge] = models_of(edges, Edge, "edge", GraphError)
        places: list[Node] | None = None if nodes is None else models_of(nodes, Node, "node", GraphError)
        wanted = FilterSettings(
            taxonomy=taxonomy,
            options=options,
            namespaces=namespaces,
            unindexed=unindexed,
            nulls=nulls,
            names=names,
            dots=dots,
        )
        parts = construction.Parts(places, joined, wanted)
        if refused is not None:
            backend, refused = construction.build_rest(rows, parts, ranked=ranked)
            return cls(backend, refused=refused)
        sound = [each for each in rows if not isinstance(each, RefusedSubscription)]
        return cls(construction.build(sound, parts, ranked=ranked))

    @classmethod
    def open(cls, path: str | PathLike[str], *, verify: bool = True) -> Engine:
        """Open a snapshot, with a graph or without, ranked or not, of any kind of content."""

        def opened(snapshot: Located) -> Engine:
            digest = digest_of(snapshot.place)
            backend = construction.open_at(snapshot.place, verify=verify)
            return cls(backend, Origin(snapshot.name, digest, _version(backend)))

        return opened_at(path, opened)

    def save(self, path: str | PathLike[str], *, source: Mapping[str, object] | None = None) -> None:
        """Write a new version of a snapshot; `source` says what it was built from."""
        with new_version(path) as staged:
            self.backend.save(staged, source=source_of(source))

    # What is here

    @property
    def index(self) -> Any:
        """Return the index behind it: of the content, of the ranking, or the graph."""
        return self.backend.index

    def __len__(self) -> int:
        """Count the subscriptions."""
        return len(self.backend)

    def __bool__(self) -> bool:
        """Be true, also without subscriptions."""
        return True

    def __contains__(self, identity: object) -> bool:
        """Tell whether there is a subscription of this id.

        >>> "s1" in Engine.build([{"id": "s1", "filter": "age > 30"}])
        True
        """
        try:
            return id_of(identity) in self.backend
        except SubscriptionError:
            return False

    @property
    def ids(self) -> list[Id]:
        """List the ids of the subscriptions, sorted."""
        return self.backend.ids

    def filter(self, identity: Id) -> str | None:
        """Return the filter of a subscription as it was understood; None if it has none of its own.

        >>> Engine.build([{"id": "s1", "filter": "age > 30"}]).filter("s1")
        'age > 30'
        """
        return self.backend.plain(id_of(identity))

    @property
    def graph(self) -> GraphIndex:
        """Return the graph; refuses if there is none."""
        return self.backend.graph

    @property
    def taxonomy(self) -> Taxonomy:
        """Return the taxonomy, which may be changed; refuses if there is none."""
        taxonomy = self.backend.taxonomy
        if taxonomy is None:
            raise TaxonomyError("there is no taxonomy here: only filters of RDF have one")
        return taxonomy

    def __repr__(self) -> str:
        """Say what there is, and where it comes from."""
        backend = self.backend
        parts = [f"{_count(len(backend), 'subscription')} over {kind_of(backend.room.room_name).title}"]
        if backend.routed:
            parts.append(f"in a graph of {_count(_nodes(backend.graph), 'node')}")
        if backend.ranked and not backend.routed:
            parts.append("ranked")
        if self._origin is not None:
            changed = "changed since it was " if backend.changed else ""
            parts.append(f"{changed}opened from {self._origin.title}")
        return f"<Engine: {', '.join(parts)}>"

    def _repr_html_(self) -> str:
        """Show what there is, and the first subscriptions with their filters, in a notebook."""
        from html import escape

        ids = self.ids
        rows = [
            f"<tr><td>{escape(str(each))}</td><td><code>{escape(_short(self.backend.filter(each)))}</code></td></tr>"
            for each in ids[:SHOWN]
        ]
        if len(ids) > SHOWN:
            rows.append(f'<tr><td colspan="2">and {_count(len(ids) - SHOWN, "more", "more")}</td></tr>')
        head = "<tr><th>subscription</th><th>filter</th></tr>"
        return f"<p>{escape(repr(self)[1:-1])}</p><table>{head}{''.join(rows)}</table>"

    def __reduce__(self) -> tuple[Any, ...]:
        """Be opened again from the same snapshot, which must still be there; refuses what is not on disk."""
        origin = self._origin
        if origin is None:
            raise SnapshotError("an engine that was built has no snapshot: save it, and pickle what you open")
        if self.backend.changed or origin.taxonomy != _version(self.backend):
            raise SnapshotError(
                f"this engine was changed since it was opened from {origin.title}: save it, and pickle what "
                "Engine.open gives"
            )
        return _open_again, (type(self), origin.name, origin.digest)


def _version(backend: Backend) -> int | None:
    return None if backend.taxonomy is None else backend.taxonomy.version


def _open_again(kind: type[Engine], path: str, digest: str) -> Engine:
    """Open the snapshot of an engine that was pickled."""
    if digest_of(located(path)) != digest:
        raise SnapshotError(
            f"snapshot {path} is another one than when the engine was pickled: pickle it again"
        )
    return kind.open(path)


def _nodes(graph: GraphIndex) -> int:
    """Count the nodes of a graph, with those that came later and without those that went."""
    base, later = graph.base, graph.view.later
    count = len(base.names.node_ids)
    if later is None:
        return count
    for node, vertex in later.moved.items():
        count += (vertex >= 0) - (base.find(node) >= 0)
    return count


def _count(number: int, one: str, many: str | None = None) -> str:
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def _short(text: str | None) -> str:
    text = text or ""
    return text if len(text) <= _WIDE else f"{text[: _WIDE - 1]}…"
