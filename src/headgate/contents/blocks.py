"""The tail of a running index: filters that came since its base was built, in small indexes.

These blocks never change. When an event comes, fresh filters become a block, together with the last one if
that is loose. A block that is no longer loose takes in those before it that are not much larger. So there are
few blocks, and a filter is moved a few times only.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from headgate.contents.documents import BaseMatcher, DocumentBase
    from headgate.core.arrays import Ints

LOOSE = 64
"""Filters of the last block before it is left alone."""
MUCH_LARGER = 8
"""How many times as large a block is that is not joined with the next one."""


class Block(NamedTuple):
    """Filters from a number on."""

    begin: int
    columns: Any
    matcher: BaseMatcher

    @property
    def size(self) -> int:
        """Count the filters."""
        size: int = self.columns.size
        return size


class BlockView(NamedTuple):
    """The filters of a tail at one moment."""

    blocks: tuple[Block, ...]

    @property
    def size(self) -> int:
        """Count the filters."""
        return self.blocks[-1].begin + self.blocks[-1].size if self.blocks else 0

    def match(self, document: Any, left_out: dict[int, str]) -> Ints:
        """List the numbers of the filters that hold, rising; what is too much goes to `left_out`."""
        numbers = [np.zeros(0, np.int64)]
        for block in self.blocks:
            own: dict[int, str] = {}
            numbers.append(block.matcher.match(document, own) + np.int64(block.begin))
            left_out |= {number + block.begin: why for number, why in own.items()}
        return np.concatenate(numbers)


class BlockTail:
    """Filters in the order in which they came. One writes, any number read."""

    def __init__(self, base: DocumentBase) -> None:
        self._base = base
        self._view = BlockView(())
        self._filters: list[Any] = []
        self._size = 0
        self._begin = 0
        """Where the last block begins as long as it is loose."""
        self._writer = base.writer()
        """Compiles the filters from there on."""
        self._lock = threading.Lock()

    def __len__(self) -> int:
        """Count the filters that readers can find."""
        return self._size

    def view(self) -> BlockView:
        """Return the filters as they are now; who asks first puts fresh ones into a block."""
        if self._view.size < self._size:
            with self._lock:
                if self._view.size < self._size:
                    self._join()
        return self._view

    def pattern(self, place: int) -> Any:
        """Return a filter."""
        return self._filters[place]

    def admit(self, compiled: Any) -> None:
        """Refuse a filter that the base cannot have beside those that came late."""
        with self._lock:
            self._base.admit(compiled, self._filters)

    def add(self, compiled: Any) -> None:
        """Append a filter."""
        with self._lock:
            try:
                self._writer.add(compiled)
            except BaseException:
                # Without what it has left.
                self._writer = self._base.writer()
                for each in self._filters[self._begin :]:
                    self._writer.add(each)
                raise
            self._filters.append(compiled)
            self._size += 1

    def columns(self) -> Any:
        """Return the filters in columns."""
        return self._base.concatenate(
            [self._base.writer().columns(), *(each.columns for each in self.view().blocks)]
        )

    def _join(self) -> None:
        """Make a block of fresh filters, with those before them that are loose or not much larger."""
        writer, begin, loose, filters = self._writer, self._begin, self._begin, self._filters
        columns = writer.columns()
        blocks = [each for each in self._view.blocks if each.begin < begin]
        if columns.size >= LOOSE:
            writer, loose = self._base.writer(), self._size
            parts = [columns]
            while blocks and blocks[-1].size < MUCH_LARGER * (self._size - begin):
                begin = blocks[-1].begin
                parts.insert(0, blocks.pop().columns)
            columns = self._base.concatenate(parts)
        matcher = self._base.matcher_of(columns, lambda number: filters[begin + number])
        view = BlockView((*blocks, Block(begin, columns, matcher)))
        # Together and last: who is interrupted before has changed nothing.
        self._view, self._writer, self._begin = view, writer, loose
