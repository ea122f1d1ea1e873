"""The log of events: what another store of events must do, and how SQLite does it.

    append    blocks, and changes of state that belong to them: all on disk when it returns, or nothing
    read      blocks from a position on
    find      where the event of an id is
    trimming  what forgets blocks before a position

A position counts events of a tenant from 1. Positions rise; some may be missing, where an append failed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from headgate.service.storage.block import hash_of, pack, unpack
from headgate.service.storage.database import telling

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import apsw

    from headgate.service.storage.block import Block
    from headgate.service.storage.database import Database

    Write = Callable[[apsw.Connection], None]
    """A change of state."""


_INSERT = "INSERT INTO blocks VALUES (?, ?, ?, ?, ?)"


class Bounds(NamedTuple):
    """The positions from which on events are kept, and of the last one; that is one less if there are none.

    All before `first` were forgotten. There may be no event at `first`, where an append failed.
    """

    first: int
    last: int


class Log(Protocol):
    """Where events are kept. Blocks are appended by one thread and read by any."""

    def append(self, blocks: Sequence[Block], also: Sequence[Write]) -> None:
        """Keep blocks and changes of state; all of it is on disk when this returns, or nothing is."""

    def read(self, first: int, most: int) -> Iterator[Block]:
        """Read blocks that have events at a position or after it, until they hold `most` events."""

    def bounds(self) -> Bounds:
        """Return what is kept now."""

    def find(self, identity: str) -> Iterator[int]:
        """List positions, the newest first, where the event of an id may be."""

    def at_time(self, time: int) -> int:
        """Return the first position of events that were committed at a time or later, in microseconds."""

    def trimming(self, before: int) -> Write:
        """Return the change that forgets blocks that end before a position."""

    def size(self) -> int:
        """Return how many bytes events take."""


_BLOCKS, _BYTES = 64, 1 << 20
"""Blocks that are read together, and about how many bytes of them."""


class SqliteLog:
    """Events in a table of blocks."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def append(self, blocks: Sequence[Block], also: Sequence[Write]) -> None:
        """Keep blocks and changes of state, in one transaction."""
        writer = self._database.writer
        rows = [(each.first, each.last, each.time, each.ids.tobytes(), pack(each)) for each in blocks]
        with telling(self._database.path):
            if len(rows) == 1 and not also:
                # One statement is a transaction by itself.
                writer.execute(_INSERT, rows[0])
                return
            with writer:
                writer.executemany(_INSERT, rows)
                for write in also:
                    write(writer)

    def read(self, first: int, most: int) -> Iterator[Block]:
        """Read blocks."""
        # A block is found by its first position: the one before may reach over the given one.
        begin = self._database.row("SELECT max(first) FROM blocks WHERE first <= ?", first)
        place = first if begin is None or begin[0] is None else begin[0]
        step = 1
        while most > 0:
            rows = self._database.rows(
                "SELECT first, last, block FROM blocks WHERE first >= ? ORDER BY first LIMIT ?", place, step
            )
            for start, last, packed in rows:
                place = last + 1
                if last < first:
                    continue
                block = unpack(start, packed)
                yield block
                most -= len(block) - max(0, first - start)
                if most <= 0:
                    return
            if len(rows) < step:
                return
            # Blocks may be of a hundred bytes or of megabytes; what is next is probably like these.
            step = max(1, min(_BLOCKS, _BYTES * len(rows) // sum(len(packed) for _, _, packed in rows)))

    def bounds(self) -> Bounds:
        """Return what is kept now."""
        first, last, kept = self._database.row(
            "SELECT (SELECT min(first) FROM blocks), (SELECT last FROM blocks ORDER BY first DESC LIMIT 1), "
            "(SELECT value FROM meta WHERE name = 'position')"
        ) or (None, None, None)
        if first is None:
            return Bounds((kept or 0) + 1, kept or 0)
        # A block that reaches over what was forgotten is there as a whole.
        return Bounds(min(first, (kept or 0) + 1), max(last, kept or 0))

    def find(self, identity: str) -> Iterator[int]:
        """List positions where the event of an id may be."""
        wanted = np.uint32(hash_of(identity.encode()))
        end = 1 << 62
        while True:
            rows = self._database.rows(
                "SELECT first, ids FROM blocks WHERE first < ? ORDER BY first DESC LIMIT 1000", end
            )
            for first, ids in rows:
                for place in np.flatnonzero(np.frombuffer(ids, np.uint32) == wanted)[::-1]:
                    yield first + int(place)
                end = first
            if len(rows) < 1_000:
                return

    def at_time(self, time: int) -> int:
        """Return the first position of events that were committed at a time or later."""
        found = self._database.row("SELECT min(first) FROM blocks WHERE time >= ?", time)
        return self.bounds().last + 1 if found is None or found[0] is None else int(found[0])

    def trimming(self, before: int) -> Write:
        """Return the change that forgets blocks that end before a position."""

        def write(writer: apsw.Connection) -> None:
            writer.execute("DELETE FROM blocks WHERE last < ?", (before,))
            # Without any block, this says where to go on.
            writer.execute(
                "INSERT INTO meta VALUES ('position', ?) "
                "ON CONFLICT DO UPDATE SET value = max(value, excluded.value)",
                (before - 1,),
            )

        return write

    def size(self) -> int:
        """Return how many bytes events take."""
        found = self._database.row("SELECT sum(length(block)) FROM blocks")
        return int(found[0] or 0) if found else 0
