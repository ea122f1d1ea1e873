"""Patterns over documents in columns: laid one behind another, picked, carried from one process to another.

Columns are a NamedTuple of arrays and pools of texts. What belongs to filter f stands in an array from
start[f] to start[f + 1].
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import numpy as np

from headgate.core.interning import TextPool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

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
