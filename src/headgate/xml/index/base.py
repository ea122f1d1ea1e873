"""The frozen part of an index: filters in flat arrays, their ids and texts."""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from headgate.contents.living import find_in
from headgate.core.ids import Ids
from headgate.core.interning import TextPool
from headgate.core.rooms import XML
from headgate.core.snapshot import open_snapshot, write_snapshot
from headgate.errors import SnapshotError
from headgate.xml.answers.answers import Prepared
from headgate.xml.index.arrays import Forests, Tests, Trie, Units, XmlArrays
from headgate.xml.index.build import build
from headgate.xml.index.columns import Columns
from headgate.xml.index.matching import Matcher
from headgate.xml.language.parse import parse_filter

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    import pyarrow as pa
    from numpy.typing import NDArray

    from headgate.core.event import Id
ROOM = XML
LAYOUT = 1
"""The layout of the arrays in a snapshot; one that was written with another must be compiled again."""
_PARTS: dict[str, Any] = {"trie": Trie, "units": Units, "tests": Tests, "forests": Forests}
_POOLS = ("labels", "texts")
_SHARED = ("tests_text_offsets", "tests_text_data")
"""Arrays of the index that are those of the columns."""
_PREPARED = 1 << 14
"""Filters that are kept ready to be asked what they give, some kilobytes each."""


class Base:
    """Filters by number, which is the place of their id; `removed` marks those that are gone.

    The columns stay: compaction builds from them.
    """

    def __init__(
        self, ids: Ids, filters: TextPool, columns: Columns, arrays: XmlArrays | None = None
    ) -> None:
        self.ids = ids
        self.filters = filters
        self.columns = columns
        self.arrays = build(columns) if arrays is None else arrays
        self.removed = np.zeros(len(ids), np.uint8)
        self.prepared = lru_cache(_PREPARED)(self._prepared)
        self.matcher = Matcher(self.arrays, columns.labels)

    def _prepared(self, number: int) -> Prepared:
        return Prepared(parse_filter(self.filters.text(number)))

    @classmethod
    def open(cls, path: Path, *, verify: bool = True) -> Base:
        """Open a snapshot, memory-mapped."""
        snapshot = open_snapshot(path, ROOM, verify=verify)
        if snapshot.about.get("layout") != LAYOUT:
            raise SnapshotError(
                f"snapshot {path} has layout {snapshot.about.get('layout')} of this room, and this Headgate "
                f"reads {LAYOUT}: compile it again"
            )
        found = dict(snapshot.arrays)
        pools = {name: TextPool(found[f"{name}_offsets"], found[f"{name}_data"]) for name in _POOLS}
        columns: list[Any] = [
            pools[name] if name in pools else found[f"columns_{name}"] for name in Columns._fields
        ]
        found.update(zip(_SHARED, pools["texts"], strict=True))
        parts = [kind(*(found[f"{name}_{field}"] for field in kind._fields)) for name, kind in _PARTS.items()]
        return cls(
            Ids.from_arrays(found),
            TextPool(found["filter_offsets"], found["filter_data"]),
            Columns(*columns),
            XmlArrays(*parts),
        )

    def save(self, path: Path, *, source: Mapping[str, object] | None = None) -> None:
        """Write a snapshot; nothing may have been removed."""
        parts: Iterable[Any] = self.arrays
        arrays: dict[str, NDArray[Any]] = {
            f"{name}_{field}": array
            for name, part in zip(_PARTS, parts, strict=True)
            for field, array in part._asdict().items()
        }
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

    @cached_property
    def id_array(self) -> pa.Array[pa.Scalar[pa.DataType]]:
        """Return the ids for Arrow."""
        return self.ids.to_arrow()

    def find(self, identity: Id) -> int:
        """Find the number of a subscription that is here and not removed; -1 for none."""
        return find_in(self, identity)
