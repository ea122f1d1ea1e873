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
    from headgate.core.arrays import Ints, Ints32
    from headgate.core.ids import Ids


_Array = tuple[str, tuple[int, ...], bytes]
_PARTS: msgspec.msgpack.Decoder[list[list[_Array]]] = msgspec.msgpack.Decoder(list[list[_Array]])
ColumnsT = TypeVar("ColumnsT")


ArraysT = TypeVar("ArraysT", bound=tuple[Any, ...])


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a view that nobody can write through: built, mapped and growing arrays are one type then."""
    view = array.view()
    view.flags.writeable = False
    return view


def all_read_only(groups: ArraysT) -> ArraysT:
    """Return groups of arrays, where they lie, such that nobody can write through them."""
    return type(groups)(*[type(group)(*map(read_only, group)) for group in groups])


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
    fields: list[Any] = []
    for part in _PARTS.decode(data):
        arrays = [np.frombuffer(raw, type_).reshape(shape) for type_, shape, raw in part]
        fields.append(arrays[0] if len(arrays) == 1 else TextPool(*arrays))
    return kind(*fields)


def merged(pools: Sequence[TextPool]) -> tuple[TextPool, list[Ints32]]:
    """Make one pool of several; returns it, and where the texts of each have gone."""
    places: dict[str, int] = {}
    moved = [
        np.array([places.setdefault(text, len(places)) for text in pool.texts()], np.int32) for pool in pools
    ]
    return TextPool.build(places), moved


def starts_of(sizes: NDArray[Any]) -> Ints:
    """Return where runs of some sizes begin when they are laid end to end, and where the last one ends."""
    begins = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=begins[1:])
    return begins


def joined_starts(parts: Sequence[Ints]) -> Ints:
    """Join starts: each goes on where the one before it ended."""
    return starts_of(np.concatenate([np.diff(each) for each in parts]))


def picked(start: NDArray[Any], order: NDArray[np.integer[Any]]) -> tuple[Ints, Ints]:
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

    @property
    def attributes(self) -> tuple[str, ...]:
        """List the attributes that they name."""
        return self.contents.named(self.columns)

    def take(self, order: Ints) -> ColumnFilters:
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
    take: ClassVar[staticmethod[[Any, Ints], Any]]
    concatenate: ClassVar[staticmethod[[Sequence[Any]], Any]]

    @abstractmethod
    def compiled(self, texts: Sequence[str]) -> Any:
        """Compile filters in the kind's own dialect."""

    @abstractmethod
    def indexed(self, ids: Ids, texts: TextPool, columns: Any) -> Content:
        """Index columns, in the order of their ids."""

    def named(self, columns: Any) -> tuple[str, ...]:
        """List the attributes that filters name; patterns over documents name none."""
        del columns
        return ()

    def file(self, parts: Sequence[memoryview]) -> tuple[ColumnFilters, Ints]:
        """Lay columns one behind another."""
        columns = [from_bytes(part, self.columns) for part in parts]
        counts = np.array([each.size for each in columns], np.int64)
        # With one that is empty, so that there is one.
        return ColumnFilters(self, self.concatenate([self.compiled([]), *columns])), counts


class Growing:
    """An array with room at its end. What is in it stays; growing makes another array.

    >>> numbers = Growing(np.int64)
    >>> numbers.extend([3, 4])
    >>> numbers.append(5)
    >>> numbers.used.tolist()
    [3, 4, 5]
    """

    def __init__(self, kind: type[np.generic]) -> None:
        self.array: NDArray[Any] = np.zeros(64, kind)
        self.size = 0

    @property
    def used(self) -> NDArray[Any]:
        """Return what is in it, not copied."""
        return self.array[: self.size]

    def copy(self) -> Growing:
        """Return another one with the same in it, and no room."""
        made = Growing(self.array.dtype.type)
        made.array, made.size = self.used.copy(), self.size
        return made

    def reserve(self, more: int) -> None:
        """Make room for some more items."""
        room = len(self.array)
        if self.size + more > room:
            grown = np.zeros(max(self.size + more, 2 * room), self.array.dtype)
            grown[: self.size] = self.array[: self.size]
            self.array = grown

    def extend(self, items: Sequence[int] | NDArray[Any]) -> None:
        """Append items."""
        self.reserve(len(items))
        self.array[self.size : self.size + len(items)] = items
        self.size += len(items)

    def append(self, item: float) -> None:
        """Append one item."""
        self.reserve(1)
        self.array[self.size] = item
        self.size += 1
