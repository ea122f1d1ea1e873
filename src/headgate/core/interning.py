"""Texts as numbers: a pool of sorted texts in two flat arrays."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.core.kernels import search_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray


class TextPool(NamedTuple):
    """Texts one after another: text i is `data[offsets[i]:offsets[i + 1]]`, UTF-8.

        offsets  0      4      7          10
        data     n e w s a r t e u r o p a …

    A pool may hold several sorted runs (one for each column of a room); `place` searches one run.
    """

    offsets: NDArray[np.int64]
    data: NDArray[np.uint8]

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

    def place(self, values: Sequence[str], first: int, last: int) -> NDArray[np.int64]:
        """Place texts among the sorted run `first` to `last`: 2r + 1 if equal to the r-th, 2r if before it.

        O(log(last - first)) comparisons a text.

        >>> TextPool.build(["art", "news"]).place(["art", "movies", "news", "zoo"], 0, 2).tolist()
        [1, 2, 3, 4]
        """
        other = TextPool.build(values)
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
