"""Tables of patterns: texts to columns on workers, and columns to an index."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from headgate.contents.columns import ColumnWriter, from_bytes
from headgate.contents.protocol import SnapshotCounts, filters_in
from headgate.core.rooms import RDF
from headgate.core.snapshot import open_snapshot
from headgate.core.subscription import SPARQL
from headgate.rdf.index.columns import Columns, Writer, compile_all, concatenate, take
from headgate.rdf.index.index import RdfIndex, RdfRoom
from headgate.rdf.keys import rdf_keys
from headgate.rdf.language.model import TYPE, Options
from headgate.rdf.taxonomy.taxonomy import Taxonomy
from headgate.rdf.whole.query import parse_any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from headgate.contents.protocol import Clause, Keys
    from headgate.core.ids import Ids
    from headgate.core.interning import TextPool
    from headgate.core.values import Path as Attribute


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
        more = compile_all([parse_any(text)], self.options)
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
        counts = np.array([each.size for each in columns], np.int64)
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
        names = ("patterns", "terms", "verified", "unindexed")
        counts = {name: sum(each[name] for each in found) for name in names}
        left_out = self.taxonomy.ignored + self.taxonomy.unnamed
        counts |= {"taxonomy": len(self.taxonomy), "left_out": left_out}
        told = f"in {counts['patterns']:,} patterns over {counts['terms']:,} terms"
        if counts["verified"]:
            told += f", {counts['verified']:,} of them verified"
        if counts["unindexed"]:
            told += f" ({counts['unindexed']:,} for every event)"
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
