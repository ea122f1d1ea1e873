"""What builds and opens indexes of filters of several kinds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headgate.contents.mixed.index import Member, MixedIndex
from headgate.contents.mixed.texts import ALWAYS, read_dialect, with_dialect
from headgate.contents.protocol import Clause
from headgate.contents.refusing import made_of, raise_first
from headgate.core.ids import Ids
from headgate.core.snapshot import open_snapshot, open_with_inside
from headgate.core.subscription import MIXED, Subscription
from headgate.errors import HeadgateError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from headgate.contents.mixed.kind import MixedKind
    from headgate.contents.protocol import Content, ContentRoom
    from headgate.core.event import Id


class MixedRoom:
    """The rooms of some kinds as one; all that is built or opened through it shares their settings."""

    dialect = MIXED
    always = ALWAYS

    def __init__(self, kind: MixedKind, rooms: Iterable[ContentRoom]) -> None:
        self.kind = kind
        self.rooms = tuple(rooms)

    @property
    def room_name(self) -> str:
        """Name the kinds."""
        return self.kind.name

    @property
    def taxonomy(self) -> Any:
        """Return the taxonomy of the kind that has one; None if none does."""
        found = (getattr(room, "taxonomy", None) for room in self.rooms)
        return next((each for each in found if each is not None), None)

    def build(self, subscriptions: Iterable[Subscription]) -> MixedIndex:
        """Index subscriptions; refuses bad filters, and ids that are given twice, of whatever kinds."""
        given = list(subscriptions)
        Ids.of(each.id for each in given)
        parts: list[list[Subscription]] = [[] for _ in self.rooms]

        def file(each: Subscription) -> None:
            if each.filter == ALWAYS and each.dialect == MIXED:
                for part, room in zip(parts, self.rooms, strict=True):
                    part.append(Subscription(each.id, room.always, room.dialect))
                return
            text, dialect = read_dialect(each.filter, each.dialect)
            parts[self.kind.place_of(dialect)].append(Subscription(each.id, text, dialect))

        made_of(given, file)
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

        def opened(place: Path) -> MixedIndex:
            open_snapshot(place, self.room_name, verify=verify)
            places = (place / kind.name for kind in self.kind.kinds)
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
        return tuple(
            Clause(with_dialect(each.filter, room.dialect), each.names)
            for each in room.clauses(plain, spoken)
        )
