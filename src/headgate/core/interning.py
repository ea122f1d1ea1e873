"""Texts as numbers: a pool of sorted texts in two flat arrays."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from headgate.core.jit import kernel

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from headgate.core.arrays import Bytes, Ints


@kernel
def search_text(pool: TextPool, first: int, last: int, texts: TextPool, out: Ints) -> None:
    """Place each text among the sorted texts `first` to `last` of a pool.

    out[i] = 2r + 1 where text i equals the pool's r-th of that range, 2r where it would stand before
    the r-th. Bytes of UTF-8 sort as code points do, which is the order of Spark.
    """
    for i in range(len(texts.offsets) - 1):
        start, stop = texts.offsets[i], texts.offsets[i + 1]
        low, high = first, last
        found = False
        while low < high:
            middle = (low + high) // 2
            a, b = pool.offsets[middle], pool.offsets[middle + 1]
            j, k = a, start
            while j < b and k < stop and pool.data[j] == texts.data[k]:
                j += 1
                k += 1
            if j == b and k == stop:
                low = middle
                found = True
                break
            if k == stop or (j < b and texts.data[k] < pool.data[j]):
                high = middle
            else:
                low = middle + 1
        out[i] = 2 * (low - first) + (1 if found else 0)


class TextPool(NamedTuple):
    """Texts one after another: text i is `data[offsets[i]:offsets[i + 1]]`, UTF-8.

        offsets  0      4      7          10
        data     n e w s a r t e u r o p a …

    A pool may hold several sorted runs (one for each column of a room); `place` searches one run.
    """

    offsets: Ints
    data: Bytes

    @classmethod
    def build(cls, texts: Iterable[str]) -> TextPool:
        """Lay texts one after another, in the order given.

        >>> pool = TextPool.build(["art", "news"])
        >>> pool.text(1), pool.size
        ('news', 2)
        """
        parts = [text.encode() for text in texts]
        offsets = np.zeros(len(parts) + 1, np.int64)
        np.cumsum([len(part) for part in parts], out=offsets[1:])
        return cls(offsets, np.frombuffer(b"".join(parts), np.uint8))

    @classmethod
    def from_arrow(cls, texts: pa.Array[Any]) -> TextPool:
        """Take over the texts of an Arrow array without nulls, where they lie.

        >>> import pyarrow as pa
        >>> TextPool.from_arrow(pa.array(["art", "news"])[1:]).texts()
        ['news']
        """
        texts = texts.cast(pa.large_string())
        _, ends, data = texts.buffers()
        if ends is None:
            return cls.build([])
        offsets = np.frombuffer(memoryview(ends), np.int64)[texts.offset : texts.offset + len(texts) + 1]
        given = np.frombuffer(memoryview(data), np.uint8) if data is not None else np.zeros(0, np.uint8)
        return cls(offsets - offsets[0], given[offsets[0] : offsets[-1]])

    def to_arrow(self) -> pa.Array[Any]:
        """Return the texts for Arrow, where they lie."""
        buffers = [None, pa.py_buffer(self.offsets.data), pa.py_buffer(self.data.data)]
        return pa.Array.from_buffers(pa.large_string(), self.size, buffers)

    def take(self, places: NDArray[np.integer[Any]]) -> TextPool:
        """Pick texts, in the order given.

        >>> TextPool.build(["art", "news"]).take(np.array([1, 1])).texts()
        ['news', 'news']
        """
        return (
            TextPool.from_arrow(self.to_arrow().take(pa.array(places))) if len(places) else TextPool.build(())
        )

    def with_(self, texts: Iterable[str]) -> TextPool:
        """Put more texts behind."""
        more = TextPool.build(texts)
        offsets = np.concatenate([self.offsets, more.offsets[1:] + self.offsets[-1]])
        return TextPool(offsets, np.concatenate([self.data, more.data]))

    @property
    def size(self) -> int:
        """Count the texts."""
        return len(self.offsets) - 1

    def text(self, index: int) -> str:
        """Return one text."""
        start, stop = self.offsets[index], self.offsets[index + 1]
        return self.data[start:stop].tobytes().decode()

    def texts(self) -> list[str]:
        """Return all texts."""
        data, ends = self.data.tobytes(), self.offsets.tolist()
        return [data[a:b].decode() for a, b in pairwise(ends)]

    def pick(self, places: NDArray[Any]) -> list[str]:
        """Return the texts at some places.

        >>> TextPool.build(["art", "news", "zoo"]).pick(np.array([2, 0]))
        ['zoo', 'art']
        """
        data = memoryview(self.data.data)
        begin, end = self.offsets[places].tolist(), self.offsets[places + 1].tolist()
        return [str(data[a:b], "utf-8") for a, b in zip(begin, end, strict=True)]

    def some(self, first: int, last: int) -> TextPool:
        """Return the texts from one to another, where they lie.

        >>> TextPool.build(["art", "news", "zoo"]).some(1, 3).texts()
        ['news', 'zoo']
        """
        offsets = self.offsets[first : last + 1]
        return TextPool(offsets - offsets[0], self.data[offsets[0] : offsets[-1]])

    def place(self, values: Sequence[str], first: int, last: int) -> Ints:
        """Place texts among the sorted run `first` to `last`: 2r + 1 if equal to the r-th, 2r if before it.

        O(log(last - first)) comparisons a text.

        >>> TextPool.build(["art", "news"]).place(["art", "movies", "news", "zoo"], 0, 2).tolist()
        [1, 2, 3, 4]
        """
        return self.place_pool(TextPool.build(values), first, last)

    def place_pool(self, other: TextPool, first: int, last: int) -> Ints:
        """Place the texts of another pool."""
        out = np.empty(other.size, np.int64)
        search_text(self, first, last, other, out)
        return out

    def check(self) -> None:
        """Assert the invariants: offsets rise from 0 to the end of the data."""
        assert self.offsets.dtype == np.int64
        assert self.data.dtype == np.uint8
        assert self.offsets[0] == 0
        assert self.offsets[-1] == len(self.data)
        assert bool((np.diff(self.offsets) >= 0).all())
