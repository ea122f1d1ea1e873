"""The frozen part of an index: filters in flat arrays, their ids and texts."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from headgate.contents.documents import DocumentBase, open_laid_out, parts_of, stored_parts
from headgate.core.ids import Ids
from headgate.core.interning import TextPool
from headgate.core.rooms import XML
from headgate.core.snapshot import write_snapshot
from headgate.xml.answers.answers import Prepared
from headgate.xml.index.arrays import Forests, Tests, Trie, Units, XmlArrays
from headgate.xml.index.build import build
from headgate.xml.index.columns import Columns
from headgate.xml.index.matching import Matcher
from headgate.xml.language.parse import parse_filter

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from headgate.xml.language.model import Pattern

ROOM = XML
LAYOUT = 1
"""The layout of the arrays in a snapshot; one that was written with another must be compiled again."""
_PARTS: dict[str, Any] = {"trie": Trie, "units": Units, "tests": Tests, "forests": Forests}
_POOLS = ("labels", "texts")
_SHARED = ("tests_text_offsets", "tests_text_data")
"""Arrays of the index that are those of the columns."""
_PREPARED = 1 << 14
"""Filters that are kept ready to be asked what they give, some kilobytes each."""


class Base(DocumentBase):
    """Patterns in arrays. The columns stay: compaction builds from them."""

    def __init__(
        self, ids: Ids, filters: TextPool, columns: Columns, arrays: XmlArrays | None = None
    ) -> None:
        super().__init__(ids, filters)
        self.columns = columns
        self.arrays = build(columns) if arrays is None else arrays
        self.prepared = lru_cache(_PREPARED)(self._prepared)
        self.matcher = Matcher(self.arrays, columns.labels)

    def _prepared(self, number: int) -> Prepared:
        return Prepared(parse_filter(self.filters.text(number)))

    def pattern(self, number: int) -> Pattern:
        """Return a filter."""
        return self.prepared(number).pattern

    @classmethod
    def open(cls, path: Path, *, verify: bool = True) -> Base:
        """Open a snapshot, memory-mapped."""
        snapshot = open_laid_out(path, ROOM, LAYOUT, verify=verify)
        found = dict(snapshot.arrays)
        pools = {name: TextPool(found[f"{name}_offsets"], found[f"{name}_data"]) for name in _POOLS}
        columns: list[Any] = [
            pools[name] if name in pools else found[f"columns_{name}"] for name in Columns._fields
        ]
        found.update(zip(_SHARED, pools["texts"], strict=True))
        return cls(
            Ids.from_arrays(found),
            TextPool(found["filter_offsets"], found["filter_data"]),
            Columns(*columns),
            XmlArrays(*parts_of(found, _PARTS)),
        )

    def save(self, path: Path, *, source: Mapping[str, object] | None = None) -> None:
        """Write a snapshot; nothing may have been removed."""
        arrays = stored_parts(self.arrays, _PARTS)
        for name in _SHARED:
            del arrays[name]
        for name, part in self.columns._asdict().items():
            if name in _POOLS:
                arrays[f"{name}_offsets"], arrays[f"{name}_data"] = part
            else:
                arrays[f"columns_{name}"] = part
        arrays["filter_offsets"], arrays["filter_data"] = self.filters
        arrays.update(self.ids.to_arrays())
        counts = {
            "subscriptions": len(self.ids),
            "patterns": len(self.arrays.forests.need),
            "paths": len(self.arrays.trie.parent) - 1,
            "units": len(self.arrays.units.row),
            "labels": self.columns.labels.size,
        }
        about = {"layout": LAYOUT, "source": dict(source or {})}
        write_snapshot(path, ROOM, arrays, counts=counts, about=about)

    @property
    def nbytes(self) -> int:
        """Count the bytes of the arrays, the columns among them."""
        shared = sum(array.nbytes for array in self.columns.texts)
        return self.arrays.nbytes + self.columns.nbytes - shared
