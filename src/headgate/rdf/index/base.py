"""The frozen part of an index: filters in flat arrays, their ids and texts."""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from headgate.contents.living import find_in
from headgate.core.ids import Ids
from headgate.core.interning import TextPool
from headgate.core.rooms import RDF
from headgate.core.snapshot import open_snapshot, write_snapshot
from headgate.errors import SnapshotError
from headgate.rdf.events.encode import Features, features_of
from headgate.rdf.index.arrays import Checks, Dictionary, Edges, Entries, Groups, Patterns, RdfArrays
from headgate.rdf.index.matching import Matcher
from headgate.rdf.language.model import Options
from headgate.rdf.language.parse import parse_filter
from headgate.rdf.taxonomy.taxonomy import Taxonomy

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import pyarrow as pa

    from headgate.core.event import Id
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


class Base:
    """Filters by number, which is the place of their id; `removed` marks those that are gone."""

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
        self.ids = ids
        self.filters = filters
        self.arrays = arrays
        self.expressions = expressions
        self.options = options
        self.taxonomy = taxonomy
        self.features = features_of(arrays) if features is None else features
        self.removed = np.zeros(len(ids), np.uint8)
        self.pattern = lru_cache(1024)(self._pattern)
        self.matcher = Matcher(arrays, self.features, expressions.text, self.pattern, options, taxonomy)

    def _pattern(self, number: int) -> Pattern:
        return parse_filter(self.filters.text(number))

    @classmethod
    def open(cls, path: Path, *, taxonomy: Taxonomy | None = None, verify: bool = True) -> Base:
        """Open a snapshot, memory-mapped; with a taxonomy, that one takes the place of the one in it."""
        snapshot = open_snapshot(path, ROOM, verify=verify)
        if snapshot.about.get("layout") != LAYOUT:
            raise SnapshotError(
                f"snapshot {path} has layout {snapshot.about.get('layout')} of this room, and this Headgate "
                f"reads {LAYOUT}: compile it again"
            )
        found = snapshot.arrays
        parts = [kind(*(found[f"{name}_{field}"] for field in kind._fields)) for name, kind in _PARTS.items()]
        features = {**snapshot.about["features"], "hats": tuple(snapshot.about["features"]["hats"])}
        return cls(
            Ids.from_arrays(found),
            TextPool(found["filter_offsets"], found["filter_data"]),
            RdfArrays(*parts),
            TextPool(found["expression_offsets"], found["expression_data"]),
            Options(**snapshot.about["options"]),
            Taxonomy.from_arrays(found) if taxonomy is None else taxonomy,
            Features(**features),
        )

    def save(self, path: Path, *, source: Mapping[str, object] | None = None) -> None:
        """Write a snapshot; nothing may have been removed."""
        arrays = {
            f"{name}_{field}": array
            for (name, kind), part in zip(_PARTS.items(), self.arrays, strict=True)
            for field, array in zip(kind._fields, part, strict=True)
        }
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

    @cached_property
    def id_array(self) -> pa.Array[pa.Scalar[pa.DataType]]:
        """Return the ids for Arrow."""
        return self.ids.to_arrow()

    def find(self, identity: Id) -> int:
        """Find the number of a subscription that is here and not removed; -1 for none."""
        return find_in(self, identity)
