"""What builds and opens indexes of filters of several kinds, and compiles tables of them.

Each filter is written by its kind, and filed with the others of it. What a writer has written is the kind of
each filter, one byte each, and the parts of the kinds as their own writers wrote them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pyarrow.compute as pc

from headgate.contents.mixed.index import Member, MixedIndex
from headgate.contents.mixed.kind import ALWAYS, read_dialect, with_dialect
from headgate.contents.protocol import Clause, SnapshotCounts
from headgate.core.ids import Ids
from headgate.core.interning import TextPool
from headgate.core.snapshot import open_snapshot, open_with_inside
from headgate.core.subscription import MIXED, Subscription
from headgate.errors import HeadgateError, made_of, raise_first

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from headgate.contents.mixed.kind import MixedKind
    from headgate.contents.protocol import (
        CompiledFilters,
        Content,
        FilterWriter,
        Keys,
        Writers,
    )
    from headgate.core.arrays import Bytes, Ints
    from headgate.core.event import Id
    from headgate.core.values import Path as Attribute


def _with_dialects(clauses: Iterable[Clause], dialect: str) -> tuple[Clause, ...]:
    return tuple(Clause(with_dialect(each.filter, dialect), each.names) for each in clauses)


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
        number = self._kind.place_of(spoken)
        written = self._writers[number].add(plain, spoken)
        self._kinds.append(number)
        return with_dialect(written, self._dialects[number])

    def to_bytes(self) -> bytes:
        """Return all that was added."""
        used = set(self._kinds)
        parts = [writer.to_bytes() if number in used else b"" for number, writer in enumerate(self._writers)]
        return msgspec.msgpack.encode((bytes(self._kinds), parts))


def _read(payload: bytes | memoryview) -> tuple[Bytes, list[bytes]]:
    """Read what a writer has written: the kind of each filter, and the kinds' parts."""
    kinds, parts = msgspec.msgpack.decode(payload, type=tuple[bytes, list[bytes]])
    return np.frombuffer(kinds, np.uint8), parts


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
        return _with_dialects(own.clauses(plain), own.dialect)


@dataclass(frozen=True)
class MixedCompiledFilters:
    """Compiled filters by number: of which kind each is, and its number among those of its kind."""

    contents: MixedRoom
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

    def of_kind(self, number: int) -> tuple[list[int], CompiledFilters]:
        """Return the numbers of the filters of a kind, and these as that kind has them."""
        rows = np.flatnonzero(self.kinds == number)
        return rows.tolist(), self.parts[number].take(self.numbers[rows])

    def index(self, ids: Ids, texts: TextPool) -> MixedIndex:
        """Index them, in the order of their ids."""
        indexes = []
        room = self.contents
        for number, (part, own) in enumerate(zip(self.parts, room.rooms, strict=True)):
            rows = np.flatnonzero((self.kinds == number) | (self.kinds == ALL))
            taken = _taken(part, self.numbers[rows], own.always)
            plain = _plain(texts, rows, own.dialect, own.always)
            indexes.append(taken.index(Ids.from_arrow(ids.to_arrow().take(rows)), plain))
        return room.joined(indexes)


def _taken(part: CompiledFilters, numbers: Ints, always: str) -> CompiledFilters:
    """Pick filters of one kind; -1 is the one that every event matches."""
    mine = numbers >= 0
    taken = part.take(numbers[mine])
    if mine.all():
        return taken
    order = np.full(len(numbers), np.count_nonzero(mine))
    order[mine] = np.arange(np.count_nonzero(mine))
    return taken.with_filter(always).take(order)


def _plain(texts: TextPool, rows: Ints, dialect: str, always: str) -> TextPool:
    """Take texts of one kind, without their dialect."""
    if not len(rows):
        return TextPool.build(())
    taken = texts.to_arrow().take(rows)
    plain = _compute.utf8_slice_codeunits(taken, start=len(with_dialect("", dialect)))
    return TextPool.from_arrow(_compute.if_else(_compute.equal(taken, ALWAYS), always, plain))


class MixedRoom:
    """The rooms of some kinds as one; all that is built or opened through it shares their settings.

    While tables of filters are compiled, the same object finds no keys of them.
    """

    dialect = MIXED
    always = ALWAYS
    demands = False

    def __init__(self, kind: MixedKind, rooms: Iterable[Any]) -> None:
        self.kind = kind
        self.rooms = tuple(rooms)

    @property
    def room_name(self) -> str:
        """Name the kinds."""
        return self.kind.name

    @property
    def taxonomy(self) -> Any:
        """Return the taxonomy of the kind that has one; None if none does."""
        taxonomies = (getattr(room, "taxonomy", None) for room in self.rooms)
        return next((each for each in taxonomies if each is not None), None)

    def build(self, subscriptions: Iterable[Subscription]) -> MixedIndex:
        """Index subscriptions; refuses bad filters, and ids that are given twice, of whatever kinds."""
        rows = list(subscriptions)
        Ids.of(each.id for each in rows)
        parts: list[list[Subscription]] = [[] for _ in self.rooms]

        def file(each: Subscription) -> None:
            if each.filter == ALWAYS and each.dialect == MIXED:
                for part, room in zip(parts, self.rooms, strict=True):
                    part.append(Subscription(each.id, room.always, room.dialect))
                return
            text, dialect = read_dialect(each.filter, each.dialect)
            parts[self.kind.place_of(dialect)].append(Subscription(each.id, text, dialect))

        made_of(rows, file)
        built: list[Content] = []
        refused: dict[Id, HeadgateError] = {}
        for room, part in zip(self.rooms, parts, strict=True):
            try:
                built.append(room.build(part))
            except HeadgateError as error:
                if not error.refused:
                    raise
                refused |= error.refused
        raise_first(refused)
        return self.joined(built)

    def open(self, path: Path, *, verify: bool = True) -> MixedIndex:
        """Open a snapshot: that of each kind lies inside it."""

        def opened(path: Path) -> MixedIndex:
            open_snapshot(path, self.room_name, verify=verify)
            places = (path / kind.name for kind in self.kind.kinds)
            return self.joined(
                [room.open(own, verify=verify) for room, own in zip(self.rooms, places, strict=True)]
            )

        return open_with_inside(path, opened)

    def joined(self, indexes: Sequence[Content]) -> MixedIndex:
        """Make one index of those of the kinds."""
        return MixedIndex(self.kind, map(Member, self.kind.kinds, self.rooms, indexes))

    def clauses(self, text: str, dialect: str) -> tuple[Clause, ...]:
        """Take a filter apart, each clause with its dialect; refuses a bad one."""
        if text == ALWAYS and dialect == MIXED:
            return (Clause(ALWAYS, ()),)
        plain, spoken = read_dialect(text, dialect)
        room = self.rooms[self.kind.place_of(spoken)]
        return _with_dialects(room.clauses(plain, spoken), room.dialect)

    # Compiling

    @property
    def writers(self) -> MixedWriters:
        """Return what workers need."""
        return MixedWriters(self.kind, tuple(part.writers for part in self.rooms))

    def file(self, parts: Sequence[memoryview]) -> tuple[MixedCompiledFilters, Ints]:
        """Lay what writers made one behind another, by kind."""
        read = [_read(part) for part in parts]
        compiled_filters = [
            own.file([memoryview(each[number]) for _, each in read if each[number]])[0]
            for number, own in enumerate(self.rooms)
        ]
        kinds = np.concatenate([np.zeros(0, np.uint8), *(each for each, _ in read)])
        numbers = np.zeros(len(kinds), np.int64)
        for number in range(len(self.rooms)):
            here = kinds == number
            numbers[here] = np.arange(np.count_nonzero(here))
        counts = np.array([len(each) for each, _ in read], np.int64)
        return MixedCompiledFilters(self, tuple(compiled_filters), kinds, numbers), counts

    def finder(self, path: Attribute | None) -> MixedRoom:
        """Return what finds the keys of filters: itself, and there are none."""
        del path
        return self

    def of_bytes(self, payload: bytes) -> list[Keys]:
        """Say that every filter is open."""
        return [None] * len(_read(payload)[0])

    def of_compiled(self, compiled_filters: MixedCompiledFilters) -> list[Keys]:
        """Say that every filter is open."""
        return [None] * len(compiled_filters.kinds)

    def counts(self, snapshot: Path) -> SnapshotCounts:
        """Count what a snapshot holds, kind by kind."""
        counts: dict[str, int] = {}
        sentences = []
        for kind, part in zip(self.kind.kinds, self.rooms, strict=True):
            part_counts = part.counts(snapshot)
            if part_counts is not None:
                counts |= part_counts.counts
                sentences.append(f"those of {kind.title} {part_counts.sentence}")
        return SnapshotCounts(
            counts, f"of {self.kind.title}: {', '.join(sentences)}" if sentences else f"of {self.kind.title}"
        )
