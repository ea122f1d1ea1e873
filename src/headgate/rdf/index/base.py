"""The frozen part of an index: filters in flat arrays, their ids and texts."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from headgate.contents.documents import DocumentBase, open_laid_out, parts_of, stored_parts
from headgate.core.ids import Ids
from headgate.core.interning import TextPool
from headgate.core.rooms import RDF
from headgate.core.snapshot import write_snapshot
from headgate.rdf.events.encode import Features, features_of
from headgate.rdf.index.arrays import Checks, Dictionary, Edges, Entries, Groups, Patterns, RdfArrays
from headgate.rdf.index.matching import Matcher
from headgate.rdf.language.model import Options
from headgate.rdf.language.parse import parse_filter
from headgate.rdf.taxonomy.taxonomy import Taxonomy

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from headgate.rdf.language.model import Pattern

ROOM = RDF
LAYOUT = 1
"""The layout of the arrays in a snapshot; one that was written with another must be compiled again."""
_PARTS: dict[str, Any] = {
    "dictionary": Dictionary,
    "edges": Edges,
    "patterns": Patterns,
    "entries": Entries,
    "groups": Groups,
    "checks": Checks,
}


class Base(DocumentBase):
    """Patterns in arrays, with the options and the taxonomy under which they are asked."""

    matcher: Matcher

    def __init__(
        self,
        ids: Ids,
        filters: TextPool,
        arrays: RdfArrays,
        expressions: TextPool,
        options: Options,
        taxonomy: Taxonomy,
        features: Features | None = None,
    ) -> None:
        super().__init__(ids, filters)
        self.arrays = arrays
        self.expressions = expressions
        self.options = options
        self.taxonomy = taxonomy
        self.features = features_of(arrays) if features is None else features
        self.pattern = lru_cache(1024)(self._pattern)
        self.matcher = Matcher(arrays, self.features, expressions.text, self.pattern, options, taxonomy)

    def _pattern(self, number: int) -> Pattern:
        return parse_filter(self.filters.text(number))

    @classmethod
    def open(cls, path: Path, *, taxonomy: Taxonomy | None = None, verify: bool = True) -> Base:
        """Open a snapshot, memory-mapped; with a taxonomy, that one takes the place of the one in it."""
        snapshot = open_laid_out(path, ROOM, LAYOUT, verify=verify)
        found = snapshot.arrays
        features = {**snapshot.about["features"], "hats": tuple(snapshot.about["features"]["hats"])}
        return cls(
            Ids.from_arrays(found),
            TextPool(found["filter_offsets"], found["filter_data"]),
            RdfArrays(*parts_of(found, _PARTS)),
            TextPool(found["expression_offsets"], found["expression_data"]),
            Options(**snapshot.about["options"]),
            Taxonomy.from_arrays(found) if taxonomy is None else taxonomy,
            Features(**features),
        )

    def save(self, path: Path, *, source: Mapping[str, object] | None = None) -> None:
        """Write a snapshot; nothing may have been removed."""
        arrays = stored_parts(self.arrays, _PARTS)
        arrays["filter_offsets"], arrays["filter_data"] = self.filters
        arrays["expression_offsets"], arrays["expression_data"] = self.expressions
        arrays.update(self.ids.to_arrays())
        arrays.update(self.taxonomy.to_arrays())
        about = {
            "layout": LAYOUT,
            "options": {"coerce": self.options.coerce, "injective": self.options.injective},
            "features": self.features._asdict(),
            "source": dict(source or {}),
        }
        counts = {
            "subscriptions": len(self.ids),
            "patterns": len(self.arrays.patterns.next),
            "edges": len(self.arrays.edges.s),
            "terms": len(self.arrays.dictionary.offsets) - 1,
            "taxonomy": len(self.taxonomy),
        }
        write_snapshot(path, ROOM, arrays, counts=counts, about=about)

    @property
    def nbytes(self) -> int:
        """Count the bytes of the arrays."""
        return self.arrays.nbytes + sum(array.nbytes for array in self.expressions)
