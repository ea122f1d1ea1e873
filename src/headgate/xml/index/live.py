"""A running index of patterns: the frozen base, whose columns stay."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headgate.contents.documents import DocumentBase, open_laid_out, parts_of, stored_parts
from headgate.core.ids import Ids
from headgate.core.interning import TextPool
from headgate.core.rooms import XML
from headgate.xml.answers.answers import PreparedPattern, prepared
from headgate.xml.index.arrays import Forests, Tests, Trie, Units, XmlArrays
from headgate.xml.index.build import build
from headgate.xml.index.columns import Columns, Writer, compile_all, concatenate, take
from headgate.xml.index.matching import Matcher
from headgate.xml.whole.deciding import Decider
from headgate.xml.whole.evaluating import PreparedExpression
from headgate.xml.whole.reading import EVERY_TIME, WholeFilter, XPathSettings, read_filter

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path
    from typing import Self

    from headgate.core.arrays import Ints
    from headgate.xml.events.document import Document
    from headgate.xml.language.model import Pattern


ROOM = XML
LAYOUT = 2
_PARTS: dict[str, Any] = {"trie": Trie, "units": Units, "tests": Tests, "forests": Forests}
_POOLS = ("labels", "texts")
_SHARED = ("tests_text_offsets", "tests_text_data")
"""Arrays of the index that are those of the columns."""
SETTINGS = XPathSettings()


class Base(DocumentBase):
    """Patterns in arrays. The columns stay: compaction builds from them."""

    room = ROOM
    layout = LAYOUT
    take = staticmethod(take)
    concatenate = staticmethod(concatenate)
    matcher: Decider

    def __init__(
        self,
        ids: Ids,
        filters: TextPool,
        columns: Columns,
        arrays: XmlArrays | None = None,
        settings: XPathSettings = SETTINGS,
    ) -> None:
        super().__init__(ids, filters)
        self.columns = columns
        self.settings = settings
        self.arrays = build(columns) if arrays is None else arrays
        self.matcher = Decider(Matcher(self.arrays, columns.labels), columns, filters.text)

    @staticmethod
    def parse(text: str) -> Pattern | WholeFilter:
        """Read a filter that was taken before."""
        return read_filter(text)[1]

    @staticmethod
    def ready(filter_: Pattern | WholeFilter) -> PreparedPattern | PreparedExpression:
        """Prepare a filter to be asked what it gives."""
        return PreparedExpression(filter_) if isinstance(filter_, WholeFilter) else prepared(filter_)

    def pattern(self, number: int) -> Pattern | WholeFilter:
        """Return a filter."""
        pattern: Pattern | WholeFilter = self.prepared(number).pattern
        return pattern

    def writer(self) -> Writer:
        """Return what compiles filters to columns."""
        return Writer()

    def matcher_of(self, columns: Columns, pattern: Callable[[int], Pattern | WholeFilter]) -> Decider:
        """Return what asks filters in columns."""
        return _matcher_of(columns, pattern)

    def columns_of(self, numbers: Ints) -> Columns:
        """Return some filters in columns."""
        return take(self.columns, numbers)

    def with_filters(self, ids: Ids, filters: TextPool, columns: Columns) -> Self:
        """Build a base of other filters, with the settings of this one."""
        return type(self)(ids, filters, columns, settings=self.settings)

    @classmethod
    def open(cls, path: Path, *, verify: bool = True) -> Base:
        """Open a snapshot, memory-mapped."""
        snapshot = open_laid_out(path, ROOM, LAYOUT, verify=verify)
        arrays = dict(snapshot.arrays)
        pools = {name: TextPool(arrays[f"{name}_offsets"], arrays[f"{name}_data"]) for name in _POOLS}
        columns: list[Any] = [
            pools[name] if name in pools else arrays[f"columns_{name}"] for name in Columns._fields
        ]
        arrays.update(zip(_SHARED, pools["texts"], strict=True))
        return cls(
            Ids.from_arrays(arrays),
            TextPool(arrays["filter_offsets"], arrays["filter_data"]),
            Columns(*columns),
            XmlArrays(*parts_of(arrays, _PARTS)),
            XPathSettings.of(snapshot.about.get("xpath")),
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
        counts = {
            "patterns": len(self.arrays.forests.need),
            "paths": len(self.arrays.trie.parent) - 1,
            "units": len(self.arrays.units.row),
            "labels": self.columns.labels.size,
            "verified": int(np.count_nonzero(self.columns.asked)),
            "unindexed": int(np.count_nonzero(self.columns.asked == EVERY_TIME)),
        }
        self._write(path, source, arrays, counts, {"xpath": self.settings.plain()})


def _matcher_of(columns: Columns, pattern: Callable[[int], Pattern | WholeFilter]) -> Decider:
    def text(number: int) -> str:
        filter_ = pattern(number)
        assert isinstance(filter_, WholeFilter)
        return filter_.text

    return Decider(Matcher(build(columns), columns.labels), columns, text)


def ask_one(pattern: Pattern, document: Document) -> str:
    """Say why one pattern would be left out of a document, if it would."""
    left_out: dict[int, str] = {}
    _matcher_of(compile_all([pattern]), lambda _: pattern).match(document, left_out)
    return left_out.get(0, "")
