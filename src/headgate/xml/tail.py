"""Filters that came since: in a few small indexes, which never change.

    blocks   filters 0 to 255   256 to 383   384 to 447   448 to 450

The last one is built anew with each filter, until it holds LOOSE of them. Then the last two blocks become one
as long as they are of one size, as in a binary counter. Readers take the tuple of blocks and keep to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.xml.build import build
from headgate.xml.columns import compile_all, concatenate
from headgate.xml.matching import Matcher

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.xml.columns import Columns
    from headgate.xml.document import Document
    from headgate.xml.model import Pattern

LOOSE = 64
"""Filters of the last block before it is left alone."""


class Block(NamedTuple):
    """Filters from a place on."""

    begin: int
    columns: Columns
    matcher: Matcher

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

    def match(self, document: Document) -> NDArray[np.int64]:
        """List the places of the filters that hold, rising."""
        found = [block.matcher.match(document) + np.int64(block.begin) for block in self.blocks]
        return np.concatenate(found) if found else np.zeros(0, np.int64)


class Tail:
    """Filters by place, in the order in which they came. One writes, any number read."""

    def __init__(self) -> None:
        self._view = TailView(())
        self._patterns: list[Pattern] = []

    def __len__(self) -> int:
        """Count the filters that readers can find."""
        return self._view.size

    def view(self) -> TailView:
        """Return the filters as they are now."""
        return self._view

    def pattern(self, place: int) -> Pattern:
        """Return a filter."""
        return self._patterns[place]

    def add(self, pattern: Pattern) -> None:
        """Append a filter."""
        blocks = self._view.blocks
        size = self._view.size
        # What an addition that failed has left.
        del self._patterns[size:]
        loose = size - _whole(blocks)
        kept = list(blocks[:-1] if loose else blocks)
        last = _block(size - loose, compile_all([*self._patterns[size - loose :], pattern]))
        while last.size >= LOOSE and kept and kept[-1].size == last.size:
            before = kept.pop()
            last = _block(before.begin, concatenate([before.columns, last.columns]))
        self._patterns.append(pattern)
        self._view = TailView((*kept, last))

    def columns(self) -> Columns:
        """Return the filters in columns."""
        blocks = self._view.blocks
        return concatenate([block.columns for block in blocks]) if blocks else compile_all([])


def _whole(blocks: tuple[Block, ...]) -> int:
    """Count the filters in blocks that are left alone."""
    return sum(block.size for block in blocks if block.size >= LOOSE)


def _block(begin: int, columns: Columns) -> Block:
    return Block(begin, columns, Matcher(build(columns), columns.labels))
