"""The log of events, in SQLite.

    append    blocks, and changes of state that belong to them: all on disk when it returns, or nothing
    read      blocks from a position on
    find      where the event of an id is
    trimming  what forgets blocks before a position

A position counts events of a tenant from 1. Positions rise; some may be missing, where an append failed.

    u32  magic and version      u32  crc of all that follows
    u32  events                 u32  matches              u32  held back
    i64  time of the commit, in microseconds
    u32  ends of the events' texts            one an event
    u32  ends of the events' matches          one an event
    u32  ends of what was held back           one an event; only if anything was
    u32  numbers of subscriptions             one a match
    u32  numbers of subscriptions held back
    the events' texts, one after another

One row of a table holds a block, whatever the number of matches: a row a match costs a hundred times as much.
"""

from __future__ import annotations

import itertools
import struct
import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.errors import StorageError
from headgate.service.storage.database import Table, one, telling, together

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import apsw
    from numpy.typing import NDArray

    from headgate.core.arrays import Ints

    Write = Callable[[apsw.Connection], object]
    """A change of state."""


MAGIC = 0x48474C01
"""`HGL`, and the version of the layout."""
_HEAD = struct.Struct("<II")
_SIZES = struct.Struct("<IIIq")
_BODY = _HEAD.size + _SIZES.size
_NO_HEAD = bytes(_HEAD.size)


@dataclass(frozen=True)
class Block:
    """Events at positions from `first` on, and the subscriptions that each matched, by their numbers."""

    first: int
    time: int
    """When it was committed, in microseconds since 1970."""
    texts: Sequence[bytes]
    ends: NDArray[np.uint32]
    """The end of each event's matches."""
    subscriptions: NDArray[np.uint32]
    held_ends: NDArray[np.uint32]
    held: NDArray[np.uint32]
    """What matched and was held back by a limit of the subscription."""
    ids: NDArray[np.uint32] = field(default_factory=lambda: np.zeros(0, np.uint32))
    """32 bits of each event's id (`hash_of`), while it is written; a block that was read has none."""

    def __len__(self) -> int:
        """Count the events."""
        return len(self.texts)

    @property
    def last(self) -> int:
        """Return the position of the last event."""
        return self.first + len(self.texts) - 1

    def matches(self, row: int) -> NDArray[np.uint32]:
        """Return the subscriptions that get an event of the block."""
        return self.subscriptions[int(self.ends[row - 1]) if row else 0 : int(self.ends[row])]

    def held_back(self, row: int) -> NDArray[np.uint32]:
        """Return the subscriptions that an event matched, and that did not get it."""
        if not len(self.held):
            return self.held
        return self.held[int(self.held_ends[row - 1]) if row else 0 : int(self.held_ends[row])]

    def rows(self) -> Ints:
        """Return for each match the event's row."""
        counts = np.diff(self.ends, prepend=np.uint32(0))
        return np.repeat(np.arange(len(self.texts)), counts)

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        """List the events' texts with their positions."""
        return enumerate(self.texts, self.first)


NONE = np.zeros(0, np.uint32)
hash_of = zlib.crc32
"""What events are found by: 32 bits of the id, as bytes."""


def pack(block: Block) -> bytearray:
    """Write a block.

    >>> ends, found = np.array([1, 1], np.uint32), np.array([7], np.uint32)
    >>> packed = bytes(pack(Block(5, 0, [b"{}", b"[]"], ends, found, NONE, NONE)))
    >>> unpack(5, packed).matches(0), unpack(5, packed).last
    (array([7], dtype=uint32), 6)
    """
    text_ends = np.cumsum(np.fromiter(map(len, block.texts), np.uint32, len(block.texts)), dtype=np.uint32)
    packed = bytearray().join(
        (
            _NO_HEAD,
            _SIZES.pack(len(block.texts), len(block.subscriptions), len(block.held), block.time),
            text_ends.tobytes(),
            block.ends.tobytes(),
            block.held_ends.tobytes() if len(block.held) else b"",
            block.subscriptions.tobytes(),
            block.held.tobytes(),
            *block.texts,
        )
    )
    _HEAD.pack_into(packed, 0, MAGIC, zlib.crc32(memoryview(packed)[_HEAD.size :]))
    return packed


def unpack(first: int, packed: bytes) -> Block:
    """Read a block that begins at a position; refuses one that is damaged."""
    if len(packed) < _BODY:
        raise StorageError(_damaged(first, f"it has {len(packed)} bytes"))
    magic, crc = _HEAD.unpack_from(packed)
    if magic != MAGIC:
        raise StorageError(_damaged(first, f"it begins with {magic:#010x}, and not with {MAGIC:#010x}"))
    if zlib.crc32(memoryview(packed)[_HEAD.size :]) != crc:
        raise StorageError(_damaged(first, "its checksum does not fit"))
    events, matches, held, time = _SIZES.unpack_from(packed, _HEAD.size)
    offset = _BODY
    columns = []
    for count in (events, events, events if held else 0, matches, held):
        columns.append(np.frombuffer(packed, np.uint32, count, offset))
        offset += 4 * count
    text_ends, ends, held_ends, subscriptions, found_held = columns
    cuts = [offset, *(offset + text_ends.astype(np.int64)).tolist()]
    texts = [packed[begin:end] for begin, end in itertools.pairwise(cuts)]
    return Block(first, time, texts, ends, subscriptions, held_ends, found_held)


def _damaged(first: int, why: str) -> str:
    return (
        f"the block of events at position {first} is damaged: {why}; `headgate service check` lists what is, "
        "and a backup has it whole"
    )


_INSERT = "INSERT INTO blocks VALUES (?, ?, ?, ?, ?)"


class Bounds(NamedTuple):
    """The positions from which on events are kept, and of the last one; that is one less if there are none.

    All before `first` were forgotten. There may be no event at `first`, where an append failed.
    """

    first: int
    last: int


_BLOCKS, _BYTES = 64, 1 << 20
"""Blocks that are read together, and about how many bytes of them."""


class Log(Table):
    """Events in a table of blocks, which are appended by one thread and read by any."""

    def append(self, blocks: Sequence[Block], also: Sequence[Write]) -> None:
        """Keep blocks and changes of state; all of it is on disk when this returns, or nothing is."""
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
        """Read blocks that have events at a position or after it, until they hold `most` events."""
        # A block is found by its first position: the one before may reach over the given one.
        begin = self._database.value("SELECT max(first) FROM blocks WHERE first <= ?", first)
        least = first if begin is None else begin
        step = 1
        while most > 0:
            rows = self._database.rows(
                "SELECT first, last, block FROM blocks WHERE first >= ? ORDER BY first LIMIT ?", least, step
            )
            for start, last, packed in rows:
                least = last + 1
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
        """List positions, the newest first, where the event of an id may be."""
        wanted = np.uint32(hash_of(identity.encode()))
        end = 1 << 62
        while True:
            rows = self._database.rows(
                "SELECT first, ids FROM blocks WHERE first < ? ORDER BY first DESC LIMIT 1000", end
            )
            for first, ids in rows:
                for row in np.flatnonzero(np.frombuffer(ids, np.uint32) == wanted)[::-1]:
                    yield first + int(row)
                end = first
            if len(rows) < 1_000:
                return

    def at_time(self, time: int) -> int:
        """Return the first position of events that were committed at a time or later, in microseconds."""
        first = self._database.value("SELECT min(first) FROM blocks WHERE time >= ?", time)
        return self.bounds().last + 1 if first is None else int(first)

    def trimming(self, before: int) -> Write:
        """Return the change that forgets blocks that end before a position."""
        # Without any block, this says where to go on.
        position = (
            "INSERT INTO meta VALUES ('position', ?) "
            "ON CONFLICT DO UPDATE SET value = max(value, excluded.value)"
        )
        return together(one("DELETE FROM blocks WHERE last < ?", before), one(position, before - 1))

    def size(self) -> int:
        """Return how many bytes events take."""
        return self._database.value("SELECT sum(length(block)) FROM blocks") or 0
