"""Patterns over documents in columns: laid one behind another, picked, carried from one process to another.

Columns are a NamedTuple of arrays and pools of texts. What belongs to filter f stands in an array from
start[f] to start[f + 1].
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import msgspec
import numpy as np

from headgate.core.interning import TextPool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from headgate.contents.protocol import Clause, Content, Keys
    from headgate.core.ids import Ids

_Array = tuple[str, tuple[int, ...], bytes]
_PARTS: msgspec.msgpack.Decoder[list[list[_Array]]] = msgspec.msgpack.Decoder(list[list[_Array]])
ColumnsT = TypeVar("ColumnsT")


def to_bytes(columns: Iterable[Any]) -> bytes:
    """Write columns; texts are two arrays."""
    parts = [part if isinstance(part, TextPool) else (part,) for part in columns]
    return msgspec.msgpack.encode(
        [[(each.dtype.str, each.shape, each.tobytes()) for each in part] for part in parts]
    )


def from_bytes(data: bytes | memoryview, kind: Callable[..., ColumnsT]) -> ColumnsT:
    """Read what `to_bytes` wrote of columns of a kind.

    >>> from_bytes(to_bytes((np.arange(2), TextPool.build(["a"]))), lambda *parts: parts)[1].texts()
    ['a']
    """
    found: list[Any] = []
    for part in _PARTS.decode(data):
        arrays = [np.frombuffer(raw, type_).reshape(shape) for type_, shape, raw in part]
        found.append(arrays[0] if len(arrays) == 1 else TextPool(*arrays))
    return kind(*found)


def merged(pools: Sequence[TextPool]) -> tuple[TextPool, list[NDArray[np.int32]]]:
    """Make one pool of several; returns it, and where the texts of each have gone."""
    places: dict[str, int] = {}
    found = [
        np.array([places.setdefault(text, len(places)) for text in pool.texts()], np.int32) for pool in pools
    ]
    return TextPool.build(places), found


def starts_of(sizes: NDArray[Any]) -> NDArray[np.int64]:
    """Return where runs of some sizes begin; one more at the end."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])


def joined_starts(parts: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Join starts: each goes on where the one before it ended."""
    return starts_of(np.concatenate([np.diff(each) for each in parts]))


def picked(start: NDArray[Any], order: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return where the picked runs begin, and the places of what is in them."""
    sizes = np.diff(start)[order]
    ends = starts_of(sizes)
    return ends, np.repeat(start[:-1][order] - ends[:-1], sizes) + np.arange(ends[-1])


class ColumnWriter:
    """Compiles filters one after another, for the compile jobs; `read` and `writer` are the room's own."""

    def __init__(self, read: Callable[[str, str], tuple[str, Any]], writer: Any) -> None:
        self._read = read
        self._writer = writer

    def add(self, text: str, dialect: str) -> str:
        """Compile the next filter and return it in the room's own dialect."""
        written, pattern = self._read(text, dialect)
        self._writer.add(pattern)
        return written

    def to_bytes(self) -> bytes:
        """Return all that was added."""
        return to_bytes(self._writer.columns())


@dataclass(frozen=True)
class ColumnWriters:
    """What workers need: how a filter is read, what begins to write columns, and how it is taken apart."""

    dialect: str
    read: Callable[[str, str], tuple[str, Any]]
    begin: Callable[[], Any]
    split: Callable[[str], tuple[Clause, ...]]

    def writer(self, *, checked: bool = True) -> ColumnWriter:
        """Begin; there is nothing to check patterns against."""
        del checked
        return ColumnWriter(self.read, self.begin())

    def clauses(self, text: str) -> tuple[Clause, ...]:
        """Take a filter apart."""
        return self.split(text)


@dataclass(frozen=True)
class ColumnFilters:
    """Filters in columns, and what indexes them."""

    contents: ColumnContents
    columns: Any
    attributes: tuple[str, ...] = ()

    def take(self, order: NDArray[np.int64]) -> ColumnFilters:
        """Pick filters."""
        return replace(self, columns=self.contents.take(self.columns, order))

    def with_filter(self, text: str) -> ColumnFilters:
        """Append a filter."""
        more = self.contents.compiled([text])
        return replace(self, columns=self.contents.concatenate([self.columns, more]))

    def index(self, ids: Ids, texts: TextPool) -> Content:
        """Index them, in the order of their ids."""
        return self.contents.indexed(ids, texts, self.columns)


@dataclass(frozen=True)
class ColumnFinder:
    """Finds the keys of patterns, of which an event must have all."""

    kind: Callable[..., Any]
    """Of the columns."""
    keys: Callable[[Any], list[Keys]]
    demands: bool = True

    def of_bytes(self, payload: bytes) -> list[Keys]:
        """Find the keys of patterns as a writer has written them."""
        return self.keys(from_bytes(payload, self.kind))

    def of_compiled(self, compiled_filters: ColumnFilters) -> list[Keys]:
        """Find the keys of patterns that were filed."""
        return self.keys(compiled_filters.columns)


class ColumnContents(ABC):
    """A kind whose filters are compiled to columns: what these are, and how they are picked and joined."""

    columns: ClassVar[Callable[..., Any]]
    take: ClassVar[staticmethod[[Any, NDArray[np.int64]], Any]]
    concatenate: ClassVar[staticmethod[[Sequence[Any]], Any]]

    @abstractmethod
    def compiled(self, texts: Sequence[str]) -> Any:
        """Compile filters in the kind's own dialect."""

    @abstractmethod
    def indexed(self, ids: Ids, texts: TextPool, columns: Any) -> Content:
        """Index columns, in the order of their ids."""

    def file(self, parts: Sequence[memoryview]) -> tuple[ColumnFilters, NDArray[np.int64]]:
        """Lay columns one behind another."""
        columns = [from_bytes(part, self.columns) for part in parts]
        counts = np.array([each.size for each in columns], np.int64)
        # With one that is empty, so that there is one.
        return ColumnFilters(self, self.concatenate([self.compiled([]), *columns])), counts
