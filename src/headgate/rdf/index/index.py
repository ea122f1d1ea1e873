"""The room's public class: all graph patterns, ready to match and to change."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from headgate.contents.columns import ColumnContents, ColumnFinder, ColumnWriters
from headgate.contents.documents import DocumentIndex
from headgate.contents.protocol import SnapshotCounts, filters_in
from headgate.contents.results import ResultRows
from headgate.core.rooms import RDF
from headgate.core.snapshot import open_snapshot
from headgate.core.subscription import SPARQL
from headgate.errors import EventError, SubscriptionError
from headgate.rdf.events.reading import graph_of, read_graphs
from headgate.rdf.explain.explain import Explanation, explain, explain_query
from headgate.rdf.index.bindings import Bindings, Facts, TooLongError, prepared
from headgate.rdf.index.columns import Columns, Writer, compile_all, concatenate, rdf_keys, take
from headgate.rdf.index.live import ROOM, Base
from headgate.rdf.language.model import TYPE, Options, plain
from headgate.rdf.taxonomy.taxonomy import Taxonomy
from headgate.rdf.whole.clauses import split_any
from headgate.rdf.whole.evaluator import GivenUpError, answer, rows_of
from headgate.rdf.whole.query import Query, parse_any, print_any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    import pyarrow as pa

    from headgate.contents.protocol import Clause
    from headgate.core.arrays import Ints32
    from headgate.core.event import Event, Id
    from headgate.core.ids import Ids
    from headgate.core.interning import TextPool
    from headgate.core.subscription import Subscription
    from headgate.core.values import Path as Attribute
    from headgate.rdf.explain.explain import QueryExplanation
    from headgate.rdf.index.arrays import Encoded
    from headgate.rdf.index.matching import Prepared
    from headgate.rdf.language.model import Graph, Term

CHUNK = 256
"""Events whose text is read together."""

__all__ = ["ROOM", "RdfIndex", "RdfRoom"]


class RdfIndex(DocumentIndex[Base]):
    """Graph patterns: match, and subscribe and unsubscribe while others match.

    Any number of threads may read while one or more write. What a reader sees is the state at some moment of
    its call. New filters go into a tail, which `compact` folds into the base; that happens by itself, in a
    thread of its own, once the tail is a quarter of the base (`compact_after` is the least tail for it, None
    turns it off). The taxonomy may be changed at any time: `index.taxonomy.add(…)`.

    >>> from headgate import Event, Subscription
    >>> from headgate.rdf.index.index import RdfIndex
    >>> text = "PREFIX : <http://example.org/> ASK { ?x :topic :Art ; :year ?y FILTER(?y > 2000) }"
    >>> index = RdfIndex.build([Subscription("s1", text, "sparql")])
    >>> data = "@prefix : <http://example.org/> . :a :topic :Art ; :year 2001 ."
    >>> index.match(Event("e1", data, content_type="text/turtle"))
    ['s1']
    >>> index.bindings(Event("e1", data, content_type="text/turtle"), "s1").plain()
    [{'x': 'http://example.org/a', 'y': '2001'}]
    """

    room_name: ClassVar[Literal["rdf"]] = RDF
    dialect = SPARQL
    """What `filter` and `clauses` write."""
    always = "ASK {}"
    """The filter that every event matches."""
    _document = staticmethod(graph_of)
    _parse = staticmethod(parse_any)
    _print = staticmethod(print_any)

    @classmethod
    def build(
        cls,
        subscriptions: Iterable[Subscription],
        *,
        taxonomy: Taxonomy | None = None,
        options: Options | None = None,
    ) -> RdfIndex:
        """Parse and index subscriptions; refuses bad filters and repeated ids."""
        options = options or Options()
        writer = Writer(options)
        ids, filters = cls._read_all(subscriptions, writer)
        return cls.from_columns(ids, filters, writer.columns(), taxonomy=taxonomy, options=options)

    @classmethod
    def from_columns(
        cls,
        ids: Ids,
        filters: TextPool,
        columns: Columns,
        *,
        taxonomy: Taxonomy | None = None,
        options: Options | None = None,
    ) -> RdfIndex:
        """Index filters that are compiled, with these options, in the order of their ids."""
        taxonomy = Taxonomy() if taxonomy is None else taxonomy
        return cls(Base.build(ids, filters, columns, options or Options(), taxonomy))

    @staticmethod
    def clauses(text: str, dialect: str = SPARQL) -> tuple[Clause, ...]:
        """Take a filter apart into its edges and the conjuncts of its filters; refuses a bad filter."""
        return split_any(text, dialect)

    @classmethod
    def open(cls, path: Path, *, verify: bool = True, taxonomy: Taxonomy | None = None) -> RdfIndex:
        """Open a snapshot, memory-mapped; a taxonomy that is given takes the place of the one in it."""
        return cls(Base.open(path, taxonomy=taxonomy, verify=verify))

    @property
    def taxonomy(self) -> Taxonomy:
        """Return the taxonomy; what is changed there counts for the next event."""
        return self._state.base.taxonomy

    @property
    def options(self) -> Options:
        """Return what departs from SPARQL."""
        return self._state.base.options

    def encode(self, graph: Graph) -> Encoded | Prepared:
        """Encode a graph for the base."""
        encoded: Encoded | Prepared = self._state.base.matcher.encode(graph)
        return encoded

    def match_encoded(self, graph: Graph, encoded: Encoded | Prepared) -> Ints32:
        """List the numbers of the matches in the base, given what `encode` gave: places among the ids."""
        return self._state.base.matcher.match_encoded(graph, encoded, {})

    @staticmethod
    def _documents(texts: Sequence[tuple[str, str]], identities: pa.Array[Any]) -> list[Graph]:
        graphs: list[Graph] = []
        for begin in range(0, len(texts), CHUNK):
            for graph in read_graphs(texts[begin : begin + CHUNK]):
                if isinstance(graph, EventError):
                    raise EventError(f"event {identities[len(graphs)].as_py()!r}: {graph}")
                graphs.append(graph)
        return graphs

    def bindings(self, event: Event, identity: Id, limit: int = 1000) -> Bindings:
        """List the bindings under which a subscription matches an event, at most `limit`."""
        if limit < 0:
            raise SubscriptionError(f"limit {limit} is below 0: give how many bindings are wanted at most")
        state = self._state
        filter_ = state.pattern(state.number_of(identity))
        graph = graph_of(event)
        facts = Facts(graph, state.base.taxonomy)
        if isinstance(filter_, Query):
            return answer(filter_, graph, facts, state.base.options, limit)
        return prepared(filter_).bindings(facts, state.base.options, limit)

    def results(self, event: Event, ids: Sequence[Id], limit: int) -> list[ResultRows | EventError | None]:
        """Return the bindings of some filters for an event, which is read once, without types and languages.

        One that takes too long to find them has the reason in its place, and None stands for no filter.
        """
        state = self._state
        graph = graph_of(event)
        facts = Facts(graph, state.base.taxonomy)
        texts: dict[Term, str] = {}
        results: list[ResultRows | EventError | None] = []
        for number in state.find_all(ids):
            if number < 0:
                results.append(None)
                continue
            asked = state.prepared(number)
            try:
                if isinstance(asked, Query):
                    results.append(rows_of(asked, answer(asked, graph, facts, state.base.options, limit)))
                    continue
                rows = asked.bindings(facts, state.base.options, limit)
            except (TooLongError, GivenUpError) as error:
                results.append(error)
                continue
            for row in rows.rows:
                for term in row:
                    if term not in texts:
                        texts[term] = plain(term)
            plain_rows = [tuple([texts[term] for term in row]) for row in rows.rows]
            results.append(ResultRows(asked.titles, plain_rows, rows.complete))
        return results

    def explain(self, event: Event, identity: Id) -> Explanation | QueryExplanation:
        """Say why an event matches a subscription or not, edge by edge and filter by filter."""
        state = self._state
        filter_ = state.pattern(state.number_of(identity))
        if isinstance(filter_, Query):
            return explain_query(filter_, graph_of(event), state.base.taxonomy, state.base.options)
        return explain(filter_, graph_of(event), state.base.taxonomy, state.base.options)


@dataclass
class RdfRoom(ColumnContents):
    """The room with settings, for what is built over any content: a graph, a ranking, a table of patterns.

    All that is built or opened through one room shares one taxonomy; if none is given, that of the first
    snapshot that is opened.
    """

    columns = Columns
    take = staticmethod(take)
    concatenate = staticmethod(concatenate)

    room_name: ClassVar[Literal["rdf"]] = RDF

    taxonomy: Taxonomy | None = None
    options: Options | None = None
    dialect: str = SPARQL
    always: str = RdfIndex.always

    def build(self, subscriptions: Iterable[Subscription]) -> RdfIndex:
        """Index subscriptions."""
        return RdfIndex.build(subscriptions, taxonomy=self.shared, options=self.options)

    @property
    def shared(self) -> Taxonomy:
        """Return the taxonomy; an empty one is made if none is given."""
        if self.taxonomy is None:
            self.taxonomy = Taxonomy()
        return self.taxonomy

    @property
    def _set(self) -> Options:
        return self.options or Options()

    def open(self, path: Path, *, verify: bool = True) -> RdfIndex:
        """Open a snapshot, with its own options."""
        index = RdfIndex.open(path, verify=verify, taxonomy=self.taxonomy)
        self.taxonomy = index.taxonomy
        self.options = index.options
        return index

    @staticmethod
    def clauses(text: str, dialect: str) -> tuple[Clause, ...]:
        """Take a filter apart."""
        return split_any(text, dialect)

    @property
    def writers(self) -> ColumnWriters:
        """Return what workers need."""
        return ColumnWriters(SPARQL, RdfIndex.read_filter, partial(Writer, self._set), RdfIndex.clauses)

    def compiled(self, texts: Sequence[str]) -> Columns:
        """Compile filters in SPARQL."""
        return compile_all([parse_any(text) for text in texts], self._set)

    def indexed(self, ids: Ids, texts: TextPool, columns: Columns) -> RdfIndex:
        """Index patterns, in the order of their ids."""
        return RdfIndex.from_columns(ids, texts, columns, taxonomy=self.shared, options=self.options)

    @property
    def listed(self) -> frozenset[str]:
        """List the classes that the taxonomy has instances of: an event may have those and not name them."""
        return frozenset(o for _, p, o in self.shared.statements() if p == TYPE)

    def finder(self, path: Attribute | None) -> ColumnFinder:
        """Return what finds the keys of patterns: properties and classes."""
        del path
        return ColumnFinder(Columns, partial(rdf_keys, listed=self.listed))

    def counts(self, snapshot: Path) -> SnapshotCounts:
        """Count what a snapshot holds.

        Filters that differ in their ranges only, or in names of variables, share a pattern. `left_out` are
        statements of the taxonomy's files that say nothing of classes, properties and instances.
        """
        each_counts = [open_snapshot(each, RDF, verify=False).counts for each in filters_in(snapshot, RDF)]
        names = ("patterns", "terms", "verified", "unindexed")
        counts = {name: sum(each[name] for each in each_counts) for name in names}
        left_out = self.shared.ignored + self.shared.unnamed
        counts |= {"taxonomy": len(self.shared), "left_out": left_out}
        told = f"in {counts['patterns']:,} patterns over {counts['terms']:,} terms"
        if counts["verified"]:
            told += f", {counts['verified']:,} of them verified"
        if counts["unindexed"]:
            told += f" ({counts['unindexed']:,} for every event)"
        if counts["taxonomy"] or left_out:
            others = f" ({left_out:,} others left out)" if left_out else ""
            told += f" and a taxonomy of {counts['taxonomy']:,} statements{others}"
        return SnapshotCounts(counts, told)
