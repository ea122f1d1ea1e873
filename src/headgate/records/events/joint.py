"""Events as they are sent to the codes of several indexes, in one pass over their names and values.

An index and what came later to it look at the same attributes, mostly. What a value means to each of them is
kept together, and written by one look-up; it is put together from what each has kept for itself, so that a
new index among them costs the others nothing.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.records.events.rows import Attribute, Beside, RowEncoder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headgate.core.event import Event
    from headgate.core.values import Kind, Path
    from headgate.records.events.line_codes import LineCodes
    from headgate.records.events.rows import Found
    from headgate.records.index.arrays import Events


class JointAttribute(Attribute):
    """An attribute, and what several indexes do with a value of it: their lines, index after index."""

    def __init__(self, own: Sequence[tuple[Attribute, int]], nowhere: int) -> None:
        """Put attributes together; each has the number of lines of the indexes before its own."""
        first = own[0][0]
        super().__init__(first.path, (), nowhere)
        self._own = [attribute for attribute, _ in own]
        self.lines = [line.moved(behind) for each, behind in own for line in _lines(each)]
        self.named = any(each.named for each in self._own)
        self.computes = any(each.computes for each in self._own)

    def find(self, value: object, kind: Kind) -> Found:
        """Return the codes of a value that was checked."""
        codes: list[int] = []
        for each in self._own:
            kept = each.codes.get(type(value))
            code = (each.find(value, kind) if kept is None else kept[value])[1]
            if isinstance(code, tuple):
                codes += code
            elif each.lines or each.made:
                codes.append(code)
        return self.found(tuple(codes))


def _lines(attribute: Attribute) -> list[LineCodes]:
    """List the lines of an attribute in the order of its codes."""
    return [*attribute.lines, *(line for _, lines in attribute.made for line in lines)]


def together(encoders: Sequence[RowEncoder]) -> bool:
    """Tell whether events have nothing but codes for all of some indexes, and names mean the same to them."""
    return len({each.mark for each in encoders}) == 1 and all(each.plain for each in encoders)


class JointEncoder(RowEncoder):
    """Encodes events for several indexes at once; only where `together` says that this can be done."""

    def __init__(self, encoders: Sequence[RowEncoder]) -> None:
        self._begin(encoders[0].mark)
        self._own = encoders
        self.starts = [0, *np.cumsum([each.size for each in encoders]).tolist()]
        """Where the lines of each index begin, and where the last ones end."""
        size = self.starts[-1]
        owned: dict[Path, list[tuple[Attribute, int]]] = {}
        for each, behind in zip(encoders, self.starts, strict=False):
            for path, attribute in each.attributes.items():
                owned.setdefault(path, []).append((attribute, behind))
        self.attributes = {path: JointAttribute(own, size) for path, own in owned.items()}
        self.plain = True
        self._nothing = Beside()
        nulls = [0] * (size + 1)
        for attribute in self.attributes.values():
            for line in attribute.lines:
                nulls[line.number] = line.null
        self._settle(size, 0, nulls)

    def encode_all(self, events: Sequence[Event]) -> list[Events]:
        """Encode events, for each of the indexes."""
        codes = self.encode(events).codes
        return [
            each.with_codes(np.ascontiguousarray(codes[:, first:last]))
            for each, first, last in zip(self._own, self.starts, self.starts[1:], strict=False)
        ]

    def rooms(self) -> JointRoom:
        """Make room for one event at a time; each thread needs its own."""
        codes = np.zeros((1, self.size), np.int32)
        own = [
            each.with_codes(codes[:, first:last])
            for each, first, last in zip(self._own, self.starts, self.starts[1:], strict=False)
        ]
        return JointRoom(memoryview(codes.data).cast("B").cast("i"), own)

    def write_one(self, event: Event, room: JointRoom) -> None:
        """Encode one event in a room."""
        room.codes[:] = array("i", self._row(event, 0, self._nothing))


class JointRoom(NamedTuple):
    """Where one event at a time is encoded: `codes` are those of all, `own` what each index sees of them."""

    codes: memoryview
    own: list[Events]
