"""Tables of patterns: texts to columns on workers, and columns to an index."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from headgate.contents.columns import ColumnContents, ColumnFinder, ColumnWriters
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

    from headgate.core.ids import Ids
    from headgate.core.interning import TextPool
    from headgate.core.values import Path as Attribute


@dataclass
class RdfContents(ColumnContents, RdfRoom):
    """The room of RDF, while patterns are compiled with its taxonomy and options."""

    columns = Columns
    take = staticmethod(take)
    concatenate = staticmethod(concatenate)

    taxonomy: Taxonomy = field(default_factory=Taxonomy)
    options: Options = field(default_factory=Options)

    @property
    def writers(self) -> ColumnWriters:
        """Return what workers need."""
        return ColumnWriters(SPARQL, RdfIndex.read_filter, partial(Writer, self.options), RdfIndex.clauses)

    def compiled(self, texts: Sequence[str]) -> Columns:
        """Compile filters in SPARQL."""
        return compile_all([parse_any(text) for text in texts], self.options)

    def indexed(self, ids: Ids, texts: TextPool, columns: Columns) -> RdfIndex:
        """Index patterns, in the order of their ids."""
        return RdfIndex.from_columns(ids, texts, columns, taxonomy=self.taxonomy, options=self.options)

    @property
    def listed(self) -> frozenset[str]:
        """List the classes that the taxonomy has instances of: an event may have those and not name them."""
        return frozenset(o for _, p, o in self.taxonomy.statements() if p == TYPE)

    def finder(self, path: Attribute | None) -> ColumnFinder:
        """Return what finds the keys of patterns: properties and classes."""
        del path
        return ColumnFinder(Columns, partial(rdf_keys, listed=self.listed))

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
