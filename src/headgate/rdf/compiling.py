"""Tables of patterns: texts to columns on workers, and columns to an index."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from headgate.contents.columns import ColumnWriter, from_bytes
from headgate.contents.protocol import SnapshotCounts, filters_in
from headgate.core.rooms import RDF
from headgate.core.snapshot import open_snapshot
from headgate.core.subscription import SPARQL
from headgate.rdf.index.columns import Columns, Writer, compile_all, concatenate, take
from headgate.rdf.index.index import RdfIndex, RdfRoom
from headgate.rdf.language.model import TYPE, Options
from headgate.rdf.language.parse import parse_filter
from headgate.rdf.taxonomy.taxonomy import Taxonomy

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from headgate.contents.protocol import Clause, Keys
    from headgate.core.ids import Ids
    from headgate.core.interning import TextPool
    from headgate.core.values import Path as Attribute
    from headgate.rdf.language.model import Graph


@dataclass(frozen=True)
class RdfWriters:
    """What workers need for patterns."""

    options: Options
    dialect: str = SPARQL

    def writer(self, *, checked: bool = True) -> ColumnWriter:
        """Begin; there is nothing to check patterns against."""
        del checked
        return ColumnWriter(RdfIndex.read_filter, Writer(self.options))

    def clauses(self, text: str) -> tuple[Clause, ...]:
        """Take a filter apart."""
        return RdfIndex.clauses(text)


@dataclass(frozen=True)
class RdfCompiledFilters:
    """Columns of patterns, and what is to be indexed with them."""

    columns: Columns
    taxonomy: Taxonomy
    options: Options
    attributes: tuple[str, ...] = ()

    def take(self, order: NDArray[np.int64]) -> RdfCompiledFilters:
        """Pick filters."""
        return replace(self, columns=take(self.columns, order))

    def with_filter(self, text: str) -> RdfCompiledFilters:
        """Append a filter."""
        more = compile_all([parse_filter(text)], self.options)
        return replace(self, columns=concatenate([self.columns, more]))

    def index(self, ids: Ids, texts: TextPool) -> RdfIndex:
        """Index them, in the order of their ids."""
        return RdfIndex.from_columns(ids, texts, self.columns, taxonomy=self.taxonomy, options=self.options)


@dataclass(frozen=True)
class RdfContents:
    """The room of RDF, with a taxonomy and options."""

    taxonomy: Taxonomy = field(default_factory=Taxonomy)
    options: Options = field(default_factory=Options)
    name: str = RDF

    @property
    def room(self) -> RdfRoom:
        """Return the room."""
        return RdfRoom(self.taxonomy, self.options)

    @property
    def writers(self) -> RdfWriters:
        """Return what workers need."""
        return RdfWriters(self.options)

    def file(self, parts: Sequence[memoryview]) -> tuple[RdfCompiledFilters, NDArray[np.int64]]:
        """Lay columns one behind another."""
        columns = [from_bytes(part, Columns) for part in parts]
        counts = np.array([len(each.slots) for each in columns], np.int64)
        # With one that is empty, so that there is one.
        whole = concatenate([compile_all([], self.options), *columns])
        return RdfCompiledFilters(whole, self.taxonomy, self.options), counts

    def finder(self, path: Attribute | None) -> RdfFinder:
        """Return what finds the keys of patterns."""
        del path
        return RdfFinder(frozenset(o for _, p, o in self.taxonomy.statements() if p == TYPE))

    def counts(self, snapshot: Path) -> SnapshotCounts:
        """Count what a snapshot holds.

        Filters that differ in their ranges only, or in names of variables, share a pattern. `left_out` are
        statements of the taxonomy's files that say nothing of classes, properties and instances.
        """
        found = [open_snapshot(each, RDF, verify=False).counts for each in filters_in(snapshot, RDF)]
        counts = {name: sum(each[name] for each in found) for name in ("patterns", "terms")}
        left_out = self.taxonomy.ignored + self.taxonomy.unnamed
        counts |= {"taxonomy": len(self.taxonomy), "left_out": left_out}
        told = f"in {counts['patterns']:,} patterns over {counts['terms']:,} terms"
        if counts["taxonomy"] or left_out:
            others = f" ({left_out:,} others left out)" if left_out else ""
            told += f" and a taxonomy of {counts['taxonomy']:,} statements{others}"
        return SnapshotCounts(counts, told)


@dataclass(frozen=True)
class RdfFinder:
    """Finds the keys of patterns: properties and classes, of which an event must have all."""

    listed: frozenset[str]
    """Classes that the taxonomy lists instances of: an event may have those without naming them."""
    demands: bool = True

    def of_bytes(self, payload: bytes) -> list[Keys]:
        """Find the keys of patterns as a writer has written them."""
        return rdf_keys(from_bytes(payload, Columns), self.listed)

    def of_compiled(self, compiled_filters: RdfCompiledFilters) -> list[Keys]:
        """Find the keys of patterns that were filed."""
        return rdf_keys(compiled_filters.columns, self.listed)


def class_key(term: str) -> str:
    """Return the key of a class that something is an instance of."""
    return f"a {term}"


def rdf_keys(columns: Columns, listed: frozenset[str]) -> list[Keys]:
    """List the properties and classes that patterns demand; not of edges that go by the taxonomy.

    >>> from headgate.rdf.index.columns import compile_all
    >>> from headgate.rdf.language.model import Options
    >>> from headgate.rdf.language.parse import parse_filter
    >>> pattern = parse_filter("ASK { ?x a <urn:Art> ; <urn:by> ?who ; a/rdfs:subClassOf* <urn:Thing> }")
    >>> [sorted(keys) for keys in rdf_keys(compile_all([pattern], Options()), frozenset())]
    [['<urn:by>', 'a <urn:Art>']]
    """
    terms = columns.terms.texts()
    found: list[Keys] = []
    starts, edges = columns.edge_start.tolist(), columns.edges.tolist()
    for begin, end in pairwise(starts):
        used: set[str] = set()
        for _, relation, target in edges[begin:end]:
            if relation < 0 or not terms[relation].startswith("<"):
                continue
            if terms[relation] != TYPE:
                used.add(terms[relation])
            elif target >= 0 and terms[target] not in listed:
                used.add(class_key(terms[target]))
        found.append(frozenset(used) or None)
    return found


def graph_keys(graph: Graph) -> Iterator[str]:
    """List the properties of a graph, and the classes that something is an instance of."""
    terms = graph.terms()
    for relation in np.unique(graph.triples[:, 1]).tolist():
        yield terms[relation]
        if terms[relation] == TYPE:
            of = graph.triples[graph.triples[:, 1] == relation, 2]
            yield from (class_key(terms[target]) for target in np.unique(of).tolist())
