"""A running index of patterns: the frozen base, a tail of small indexes, and how they become a new base."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headgate.contents.documents import DocumentBase, DocumentState, open_laid_out, parts_of, stored_parts
from headgate.core.ids import Ids
from headgate.core.interning import TextPool
from headgate.core.rooms import XML
from headgate.core.snapshot import write_snapshot
from headgate.xml.answers.answers import PreparedPattern, prepared
from headgate.xml.index.arrays import Forests, Tests, Trie, Units, XmlArrays
from headgate.xml.index.build import build
from headgate.xml.index.columns import Columns, compile_all, concatenate, take
from headgate.xml.index.matching import Matcher
from headgate.xml.whole.answers import PreparedExpression
from headgate.xml.whole.deciding import Decider
from headgate.xml.whole.model import EVERY_TIME, WholeFilter, XPathSettings
from headgate.xml.whole.reading import read_filter

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from headgate.contents.live import Moment
    from headgate.xml.events.document import Document
    from headgate.xml.language.model import Pattern


ROOM = XML
LAYOUT = 2
"""The layout of the arrays in a snapshot; one that was written with another must be compiled again."""
_PARTS: dict[str, Any] = {"trie": Trie, "units": Units, "tests": Tests, "forests": Forests}
_POOLS = ("labels", "texts")
_SHARED = ("tests_text_offsets", "tests_text_data")
"""Arrays of the index that are those of the columns."""
SETTINGS = XPathSettings()
_PREPARED = 1 << 14
"""Filters that are kept ready to be asked what they give, some kilobytes each."""


class Base(DocumentBase):
    """Patterns in arrays. The columns stay: compaction builds from them."""

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
        self.prepared = lru_cache(_PREPARED)(self._prepared)
        self.matcher = Decider(Matcher(self.arrays, columns.labels), columns, filters.text)

    def _prepared(self, number: int) -> PreparedPattern | PreparedExpression:
        return ready(read_filter(self.filters.text(number))[1])

    def pattern(self, number: int) -> Pattern | WholeFilter:
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
        arrays["filter_offsets"], arrays["filter_data"] = self.filters
        arrays.update(self.ids.to_arrays())
        counts = {
            "subscriptions": len(self.ids),
            "patterns": len(self.arrays.forests.need),
            "paths": len(self.arrays.trie.parent) - 1,
            "units": len(self.arrays.units.row),
            "labels": self.columns.labels.size,
            "verified": int(np.count_nonzero(self.columns.asked)),
            "unindexed": int(np.count_nonzero(self.columns.asked == EVERY_TIME)),
        }
        about = {"layout": LAYOUT, "source": dict(source or {}), "xpath": self.settings.plain()}
        write_snapshot(path, ROOM, arrays, counts=counts, about=about)

    @property
    def nbytes(self) -> int:
        """Count the bytes of the arrays, the columns among them."""
        shared = sum(array.nbytes for array in self.columns.texts)
        return self.arrays.nbytes + self.columns.nbytes - shared


LOOSE = 64
"""Filters of the last block before it is left alone."""


class Block(NamedTuple):
    """Filters from a place on."""

    begin: int
    columns: Columns
    matcher: Decider

    @property
    def size(self) -> int:
        """Count the filters."""
        return self.columns.size


class TailView(NamedTuple):
    """The filters of a tail at one moment."""

    blocks: tuple[Block, ...]

    @property
    def size(self) -> int:
        """Count the filters."""
        return self.blocks[-1].begin + self.blocks[-1].size if self.blocks else 0

    def match(self, document: Document, left_out: dict[int, str] | None = None) -> NDArray[np.int64]:
        """List the places of the filters that hold, rising; what is too much goes to `left_out`."""
        found = [np.zeros(0, np.int64)]
        for block in self.blocks:
            own: dict[int, str] = {}
            found.append(block.matcher.match(document, own) + np.int64(block.begin))
            if left_out is not None:
                left_out |= {number + block.begin: why for number, why in own.items()}
        return np.concatenate(found)


class Tail:
    """Filters by place, in the order in which they came. One writes, any number read."""

    def __init__(self) -> None:
        self._view = TailView(())
        self._patterns: list[Pattern | WholeFilter] = []

    def __len__(self) -> int:
        """Count the filters that readers can find."""
        return self._view.size

    def view(self) -> TailView:
        """Return the filters as they are now."""
        return self._view

    def pattern(self, place: int) -> Pattern | WholeFilter:
        """Return a filter."""
        return self._patterns[place]

    def add(self, pattern: Pattern | WholeFilter) -> None:
        """Append a filter."""
        blocks = self._view.blocks
        size = self._view.size
        # What an addition that failed has left.
        del self._patterns[size:]
        loose = size - _whole(blocks)
        kept = list(blocks[:-1] if loose else blocks)
        patterns = [*self._patterns, pattern]
        last = _block(size - loose, compile_all(patterns[size - loose :]), patterns)
        while last.size >= LOOSE and kept and kept[-1].size == last.size:
            before = kept.pop()
            last = _block(before.begin, concatenate([before.columns, last.columns]), patterns)
        self._patterns = patterns
        self._view = TailView((*kept, last))

    def columns(self) -> Columns:
        """Return the filters in columns."""
        blocks = self._view.blocks
        return concatenate([block.columns for block in blocks]) if blocks else compile_all([])


def ready(found: Pattern | WholeFilter) -> PreparedPattern | PreparedExpression:
    """Prepare a filter to be asked what it gives."""
    return PreparedExpression(found) if isinstance(found, WholeFilter) else prepared(found)


def ask_one(pattern: Pattern, document: Document) -> str:
    """Say why one pattern would be left out of a document, if it would."""
    left_out: dict[int, str] = {}
    _block(0, compile_all([pattern]), [pattern]).matcher.match(document, left_out)
    return left_out.get(0, "")


def _whole(blocks: tuple[Block, ...]) -> int:
    """Count the filters in blocks that are left alone."""
    return sum(block.size for block in blocks if block.size >= LOOSE)


def _block(begin: int, columns: Columns, patterns: Sequence[Pattern | WholeFilter]) -> Block:
    own = patterns[begin : begin + columns.size]

    def text(place: int) -> str:
        found = own[place]
        assert isinstance(found, WholeFilter)
        return found.text

    return Block(begin, columns, Decider(Matcher(build(columns), columns.labels), columns, text))


class State(DocumentState[Base, Tail]):
    """Base and tail."""

    def __init__(self, base: Base) -> None:
        super().__init__(base, Tail())

    def prepared(self, number: int) -> PreparedPattern | PreparedExpression:
        """Return a filter that is ready to be asked what it gives."""
        base = len(self.base.ids)
        return self.base.prepared(number) if number < base else ready(self.tail.pattern(number - base))


def compact(moment: Moment[State]) -> State:
    """Build a state whose base holds all that was left; the given one is not changed."""
    state, kept, late = moment
    old = take(state.base.columns, np.flatnonzero(kept))
    new = take(state.tail.columns(), np.flatnonzero(late))
    ids, filters, order = state.merged(kept, late)
    columns = take(concatenate([old, new]), order)
    return State(Base(ids, filters, columns, settings=state.base.settings))
