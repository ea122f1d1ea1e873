"""A block: the events of one group commit and their matches, as flat numbers.

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
from typing import TYPE_CHECKING

import numpy as np

from headgate.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

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

    def rows(self) -> NDArray[np.int64]:
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
    place = _BODY
    columns = []
    for count in (events, events, events if held else 0, matches, held):
        columns.append(np.frombuffer(packed, np.uint32, count, place))
        place += 4 * count
    text_ends, ends, held_ends, subscriptions, found_held = columns
    cuts = [place, *(place + text_ends.astype(np.int64)).tolist()]
    texts = [packed[begin:end] for begin, end in itertools.pairwise(cuts)]
    return Block(first, time, texts, ends, subscriptions, held_ends, found_held)


def _damaged(first: int, why: str) -> str:
    return (
        f"the block of events at position {first} is damaged: {why}; `headgate service check` lists what is, "
        "and a backup has it whole"
    )
