"""Tables of filters of several kinds: each filter is written by its kind, and filed with the others of it.

What a writer has written:

    number of filters, bytes of each kind's part     int64 each
    the kind of each filter                          one byte each
    the parts of the kinds                           as their own writers wrote them
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.compute as pc

from headgate.contents.mixed.room import MixedRoom
from headgate.contents.mixed.texts import ALWAYS, read_dialect, with_dialect
from headgate.contents.protocol import Clause, SnapshotCounts
from headgate.core.ids import Ids
from headgate.core.interning import TextPool
from headgate.core.subscription import MIXED

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from headgate.contents.mixed.index import MixedIndex
    from headgate.contents.mixed.kind import MixedKind
    from headgate.contents.protocol import CompiledFilters, Contents, FilterWriter, Keys, Writers
    from headgate.core.values import Path as Attribute

    Ints = NDArray[np.int64]
    Bytes = NDArray[np.uint8]

# The overloads of Arrow's functions are about types that are known before; these are not.
_compute: Any = pc
ALL = 255
"""In place of a kind: the filter that every event matches."""


class MixedWriter:
    """Compiles filters one after another, each by the writer of its kind."""

    def __init__(self, kind: MixedKind, writers: Sequence[FilterWriter], dialects: Sequence[str]) -> None:
        self._kind = kind
        self._writers = writers
        self._dialects = dialects
        self._kinds = bytearray()

    def add(self, text: str, dialect: str) -> str:
        """Compile the next filter and return it with its dialect; refuses a bad one."""
        plain, spoken = read_dialect(text, dialect)
        place = self._kind.place_of(spoken)
        written = self._writers[place].add(plain, spoken)
        self._kinds.append(place)
        return with_dialect(written, self._dialects[place])

    def to_bytes(self) -> bytes:
        """Return all that was added."""
        used = set(self._kinds)
        parts = [writer.to_bytes() if place in used else b"" for place, writer in enumerate(self._writers)]
        head = np.array([len(self._kinds), *map(len, parts)], np.int64).tobytes()
        # Arrays are read where they lie, so each begins at a multiple of their items' size.
        return b"".join([head, *(part + bytes(-len(part) % 8) for part in (bytes(self._kinds), *parts))])


def _read(payload: memoryview, kinds: int) -> tuple[Bytes, list[memoryview]]:
    """Read what a writer has written: the kind of each filter, and the kinds' parts."""
    head = np.frombuffer(payload, np.int64, 1 + kinds)
    begin = head.nbytes
    parts: list[memoryview] = []
    for size in head.tolist():
        parts.append(memoryview(payload)[begin : begin + size])
        begin += size + -size % 8
    return np.frombuffer(parts[0], np.uint8), parts[1:]


@dataclass(frozen=True)
class MixedWriters:
    """What workers need: the same of each kind."""

    kind: MixedKind
    writers: tuple[Writers, ...]
    dialect: str = MIXED

    def writer(self, *, checked: bool = True) -> MixedWriter:
        """Begin."""
        writers = [each.writer(checked=checked) for each in self.writers]
        return MixedWriter(self.kind, writers, [each.dialect for each in self.writers])

    def clauses(self, text: str) -> tuple[Clause, ...]:
        """Take a filter apart, each clause with its dialect."""
        plain, spoken = read_dialect(text, MIXED)
        own = self.writers[self.kind.place_of(spoken)]
        return tuple(
            Clause(with_dialect(each.filter, own.dialect), each.names) for each in own.clauses(plain)
        )


@dataclass(frozen=True)
class MixedCompiledFilters:
    """Compiled filters by number: of which kind each is, and its number among those of its kind."""

    contents: MixedContents
    parts: tuple[CompiledFilters, ...]
    kinds: Bytes
    numbers: Ints

    @property
    def attributes(self) -> tuple[str, ...]:
        """List the attributes that filters name."""
        return tuple(sorted({name for part in self.parts for name in part.attributes}))

    def take(self, order: Ints) -> MixedCompiledFilters:
        """Pick filters."""
        return replace(self, kinds=self.kinds[order], numbers=self.numbers[order])

    def with_filter(self, text: str) -> MixedCompiledFilters:
        """Append the filter that every event matches: no other is ever appended."""
        assert text == ALWAYS
        return replace(self, kinds=np.append(self.kinds, np.uint8(ALL)), numbers=np.append(self.numbers, -1))

    def of_kind(self, place: int) -> tuple[list[int], CompiledFilters]:
        """Return the numbers of the filters of a kind, and these as that kind has them."""
        rows = np.flatnonzero(self.kinds == place)
        return rows.tolist(), self.parts[place].take(self.numbers[rows])

    def index(self, ids: Ids, texts: TextPool) -> MixedIndex:
        """Index them, in the order of their ids."""
        found = []
        room = self.contents
        for place, (part, own) in enumerate(zip(self.parts, room.rooms, strict=True)):
            rows = np.flatnonzero((self.kinds == place) | (self.kinds == ALL))
            taken = _taken(part, self.numbers[rows], own.always)
            plain = _plain(texts, rows, own.dialect, own.always)
            found.append(taken.index(_taken_ids(ids, rows), plain))
        return room.joined(found)


def _taken(part: CompiledFilters, numbers: Ints, always: str) -> CompiledFilters:
    """Pick filters of one kind; -1 is the one that every event matches."""
    mine = numbers >= 0
    taken = part.take(numbers[mine])
    if mine.all():
        return taken
    order = np.full(len(numbers), np.count_nonzero(mine))
    order[mine] = np.arange(np.count_nonzero(mine))
    return taken.with_filter(always).take(order)


def _taken_ids(ids: Ids, rows: Ints) -> Ids:
    return Ids.from_arrow(ids.to_arrow().take(rows))


def _plain(texts: TextPool, rows: Ints, dialect: str, always: str) -> TextPool:
    """Take texts of one kind, without their dialect."""
    if not len(rows):
        return TextPool.build(())
    taken = texts.to_arrow().take(rows)
    plain = _compute.utf8_slice_codeunits(taken, start=len(with_dialect("", dialect)))
    return TextPool.from_arrow(_compute.if_else(_compute.equal(taken, ALWAYS), always, plain))


class MixedContents(MixedRoom):
    """Some kinds while tables of their filters are compiled; the same object finds no keys of them."""

    demands = False
    rooms: tuple[Contents, ...]

    def __init__(self, kind: MixedKind, parts: Iterable[Contents]) -> None:
        super().__init__(kind, parts)

    @property
    def writers(self) -> MixedWriters:
        """Return what workers need."""
        return MixedWriters(self.kind, tuple(part.writers for part in self.rooms))

    def file(self, parts: Sequence[memoryview]) -> tuple[MixedCompiledFilters, Ints]:
        """Lay what writers made one behind another, by kind."""
        read = [_read(memoryview(part), len(self.rooms)) for part in parts]
        compiled_filters = [
            own.file([each[place] for _, each in read if len(each[place])])[0]
            for place, own in enumerate(self.rooms)
        ]
        kinds = np.concatenate([np.zeros(0, np.uint8), *(each for each, _ in read)])
        numbers = np.zeros(len(kinds), np.int64)
        for place in range(len(self.rooms)):
            here = kinds == place
            numbers[here] = np.arange(np.count_nonzero(here))
        counts = np.array([len(each) for each, _ in read], np.int64)
        return MixedCompiledFilters(self, tuple(compiled_filters), kinds, numbers), counts

    def finder(self, path: Attribute | None) -> MixedContents:
        """Return what finds the keys of filters: itself, and there are none."""
        del path
        return self

    def of_bytes(self, payload: bytes) -> list[Keys]:
        """Say that every filter is open."""
        return [None] * len(_read(memoryview(payload), len(self.rooms))[0])

    def of_compiled(self, compiled_filters: MixedCompiledFilters) -> list[Keys]:
        """Say that every filter is open."""
        return [None] * len(compiled_filters.kinds)

    def counts(self, snapshot: Path) -> SnapshotCounts:
        """Count what a snapshot holds, kind by kind."""
        counts: dict[str, int] = {}
        told = []
        for kind, part in zip(self.kind.kinds, self.rooms, strict=True):
            found = part.counts(snapshot)
            if found is not None:
                counts |= found.counts
                told.append(f"those of {kind.title} {found.sentence}")
        return SnapshotCounts(
            counts, f"of {self.kind.title}: {', '.join(told)}" if told else f"of {self.kind.title}"
        )
