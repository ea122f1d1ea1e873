"""Events as they are sent to the codes of an index, in one pass over their names and values.

    name     ──► Attribute          by its exact spelling; folded once
    type     ──► Codes, or None     of the attribute, by the exact type of the value
    value    ──► (place, code)      where it goes in the row of codes, and what

All three are dictionaries that fill themselves, so a value that was seen before costs three look-ups. What a
value must be (text that UTF-8 can hold, a number of 64 bits) is checked when it is first seen. Values of which
more is wanted than codes (objects, arrays, texts that LIKE looks at) wait until the pass is over.

Whatever is odd (a value of a foreign type, two names that only case tells apart, no dict at all) is left to
the flattened attributes of the event, which refuse it in their own words or have it read slowly.
`encode_events` does the same by columns, and is what this is held against.
"""

from __future__ import annotations

import datetime as dt
from array import array
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from headgate.core.event import JSON
from headgate.core.interning import TextPool
from headgate.core.values import MAX_DEPTH, Kind, check, flatten_into, fold, kind_of
from headgate.errors import EventError
from headgate.records.events.line_codes import LineCodes
from headgate.records.index.arrays import Events
from headgate.records.index.grams import GRAMS, event_grams

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from headgate.core.event import Event
    from headgate.core.values import Path
    from headgate.records.index.build import BuiltIndex

    Found = tuple[int | slice, int | tuple[int, ...]]

KEPT = 1 << 14
"""Values of one type of an attribute whose codes are kept, at most."""
LONGEST = 64
"""Letters of a text whose code is kept, at most."""
SPELLINGS = 1 << 13
"""Names of attributes that are kept, at most, all levels of objects together."""

_KEPT = (type(None), bool, int, float, str, dt.date)
"""Types of which values are kept. Of equal decimals one may be refused, and moments hardly come twice."""
_SCALARS = (*_KEPT, Decimal, dt.datetime)
_FORMS = (bool, int, str)
"""What LIKE sees."""
_NOWHERE: Found = (slice(0, 0), ())


class _Odd(Exception):  # noqa: N818 -- nothing is wrong yet
    """An event that has to be read slowly."""


class Codes(dict[Any, "Found"]):
    """Where the values of one type of an attribute go, and their codes; fills itself."""

    def __init__(self, attribute: Attribute, kind: type) -> None:
        self._attribute = attribute
        self._keep = kind in _KEPT
        self._text = kind is str

    def __missing__(self, value: Any) -> Found:
        check(value, self._attribute.path)
        found = self._attribute.find(value, kind_of(value))
        if self._keep and not (self._text and len(value) > LONGEST):
            if len(self) >= KEPT:
                self.clear()
            self[value] = found
        return found


class _Checked(dict[Any, "Found"]):
    """The values of an attribute that no filter names: they go nowhere, and are checked all the same."""

    def __missing__(self, value: Any) -> Found:
        check(value, ())
        return _NOWHERE


class Attribute(dict[type, "Codes | _Checked | None"]):
    """What to do with a value of an attribute, by its type; None is to wait until all others are read.

    `place` is where its lines are in a row. The codes of its elements, if it is an array, go to the lines
    `multi`, what LIKE sees of it to the patterns of `side` and to the line of grams `gram`. `inside` are the
    names in it, if it is an object of which filters name some.
    """

    def __init__(self, path: Path, lines: Sequence[LineCodes] = (), side: int = -1, gram: int = -1) -> None:
        self.path = path
        self.side = side
        self.gram = gram
        self.inside: Names | None = None
        self.multi = [line for line in lines if line.multi]
        self.seen = side >= 0 or gram >= 0
        """Whether LIKE looks at it."""
        self._lines = lines
        self._found: dict[tuple[int, ...], Found] = {}
        first = lines[0].number if lines else 0
        assert [line.number for line in lines] == list(range(first, first + len(lines)))
        self.place = first if len(lines) == 1 else slice(first, first + len(lines))
        self.codes: dict[type, Codes | _Checked] = {kind: Codes(self, kind) for kind in _SCALARS}
        self.update(self.codes)
        self.update(dict.fromkeys((list, tuple, dict)))
        if self.seen:
            self.update(dict.fromkeys(_FORMS))

    def __missing__(self, kind: type) -> None:
        raise _Odd

    def find(self, value: object, kind: Kind) -> Found:
        """Return the codes of a value that was checked; on a line of elements 1 if it is an array."""
        codes = tuple(
            int(kind is Kind.ARRAY) if line.multi else line.code(value, kind) for line in self._lines
        )
        found = self._found.get(codes)
        if found is None:
            # Once for all values that have them: most codes belong to many.
            found = self._found[codes] = (self.place, codes[0] if len(codes) == 1 else codes)
        return found


def _unnamed() -> Attribute:
    """Make what stands for all attributes that no filter names."""
    made = Attribute(())
    made.codes = {kind: _Checked() for kind in _SCALARS}
    made.update(made.codes)
    for value in (None, True, False):
        made.codes[type(value)][value] = _NOWHERE
    return made


class Names(dict[str, Attribute]):
    """The attributes at one level of objects by their names as they are spelled; fills itself."""

    def __init__(self, prefix: Path, known: Mapping[str, Attribute], unnamed: Attribute) -> None:
        self.prefix = prefix
        self.twice = False
        """Whether an attribute was spelled in two ways: one event may have both, and must be refused."""
        self._known = known
        self._unnamed = unnamed
        self._spelled: dict[str, str] = {}

    def __missing__(self, name: object) -> Attribute:
        if not isinstance(name, str):
            raise _Odd
        folded = fold(name)
        found = self._known.get(folded, self._unnamed)
        if len(self) >= SPELLINGS and (found is self._unnamed or folded in self._spelled):
            self.twice = True
            return found
        if self._spelled.setdefault(folded, name) != name:
            # Before it is kept: another thread may look it up right then.
            self.twice = True
        self[name] = found
        return found

    def distinct(self, data: Mapping[str, object]) -> bool:
        """Tell whether no two names of an object are the same but for their case."""
        return not self.twice or len({fold(name) for name in data}) == len(data)


class _Batch:
    """What a batch of events has beside a row of codes for each: elements of arrays, and texts."""

    def __init__(self) -> None:
        self.elements: dict[int, list[tuple[int, list[int]]]] = {}
        self.texts: list[tuple[Attribute, int, str]] = []

    def forget(self, e: int) -> None:
        """Take back what was read of the last event."""
        for found in self.elements.values():
            while found and found[-1][0] == e:
                found.pop()
        while self.texts and self.texts[-1][1] == e:
            self.texts.pop()


class RowEncoder:
    """Encodes events that are given as Python values, one or many; any number of threads may ask it."""

    def __init__(self, built: BuiltIndex) -> None:
        lines = built.lines
        owned: list[list[LineCodes]] = [[] for _ in built.attributes]
        gram: dict[int, int] = {}
        self._nulls = [0] * lines.size
        for line in range(lines.size):
            attribute = int(lines.line_attribute[line])
            if lines.line_multi[line] == GRAMS:
                gram[attribute] = line
                continue
            made = LineCodes(built, line)
            owned[attribute].append(made)
            self._nulls[line] = 0 if made.multi else made.null
        sides = {attribute: side for side, attribute in enumerate(built.arrays.glob_attribute.tolist())}
        self._attributes = {
            path: Attribute(path, owned[number], sides.get(number, -1), gram.get(number, -1))
            for number, path in enumerate(built.attributes)
        }
        self._grams = {
            line: lines.grams[lines.gram_start[line] : lines.gram_start[line + 1]] for line in gram.values()
        }
        self._names = self._levels()
        self._lines, self._sides = lines.size, len(sides)
        self._one = self._packed(_Batch(), np.zeros((1, lines.size), np.int32))
        """What has no codes, no elements and no texts."""

    def _levels(self) -> Names:
        """Make the names of all levels of objects that filters name; returns those of the uppermost."""
        unnamed = _unnamed()
        known: dict[Path, dict[str, Attribute]] = {(): {}}
        for path in list(self._attributes):
            for size in range(len(path), 0, -1):
                # An object of which filters name some, and not itself, has no lines.
                own = self._attributes.setdefault(path[:size], Attribute(path[:size]))
                known.setdefault(path[: size - 1], {})[path[size - 1]] = own
        names = {prefix: Names(prefix, each, unnamed) for prefix, each in known.items()}
        for prefix, each in names.items():
            if prefix:
                self._attributes[prefix].inside = each
        return names[()]

    def encode(self, events: Sequence[Event]) -> Events:
        """Encode events; refuses one that is no record, or has what no column could hold."""
        batch = _Batch()
        codes = array("i")
        for e, event in enumerate(events):
            codes.fromlist(self._row(event, e, batch))
        rows = np.frombuffer(codes, np.int32).reshape(len(events), self._lines) if codes else None
        if rows is None:
            rows = np.zeros((len(events), self._lines), np.int32)
        elif len(rows) == 1 and not batch.elements and not batch.texts:
            return self._one._replace(codes=rows)
        return self._packed(batch, rows)

    def _row(self, event: Event, e: int, batch: _Batch) -> list[int]:
        data, row = event.data, self._nulls.copy()
        if type(data) is dict and event.content_type == JSON:
            try:
                self._read(data, self._names, row, e, batch)
            except (_Odd, EventError):
                row = self._nulls.copy()
                batch.forget(e)
            else:
                return row
        self._read_flat(event.attributes, row, e, batch)
        return row

    def _read(self, data: dict[str, Any], names: Names, row: list[Any], e: int, batch: _Batch) -> None:
        """Read a record, or an object in one."""
        late = []
        for name, value in data.items():
            codes = names[name][type(value)]
            if codes is None:
                late.append((name, value))
            else:
                place, code = codes[value]
                row[place] = code
        if not names.distinct(data):
            raise _Odd
        for name, value in late:
            attribute = names[name]
            if type(value) is dict:
                self._read_object(value, attribute, names.prefix, row, e, batch)
            else:
                check(value, attribute.path)
                self._add(value, attribute, row, e, batch)

    def _read_object(
        self, value: dict[str, Any], attribute: Attribute, prefix: Path, row: list[Any], e: int, batch: _Batch
    ) -> None:
        place, code = attribute.find(value, Kind.OBJECT)
        row[place] = code
        if attribute.inside is None:
            flatten_into({}, value, (*prefix, ""))
        elif len(prefix) >= MAX_DEPTH:
            raise _Odd
        else:
            self._read(value, attribute.inside, row, e, batch)

    def _read_flat(self, attributes: Mapping[Path, object], row: list[Any], e: int, batch: _Batch) -> None:
        """Read the flattened attributes of an event, which were checked."""
        for path, value in attributes.items():
            attribute = self._attributes.get(path)
            if attribute is not None:
                self._add(value, attribute, row, e, batch)

    def _add(self, value: Any, attribute: Attribute, row: list[Any], e: int, batch: _Batch) -> None:
        """Read one value that was checked."""
        kind = kind_of(value)
        place, code = attribute.find(value, kind)
        row[place] = code
        if kind is Kind.ARRAY:
            kinds = [kind_of(item) for item in value]
            for line in attribute.multi:
                found = [line.code(item, own) for item, own in zip(value, kinds, strict=True)]
                batch.elements.setdefault(line.number, []).append((e, found))
        elif attribute.seen and type(value) in _FORMS:
            batch.texts.append((attribute, e, str(value).lower() if kind is Kind.BOOL else str(value)))

    def _packed(self, batch: _Batch, codes: NDArray[np.int32]) -> Events:
        """Lay out what a batch has."""
        count = len(codes)
        text_of = np.full((self._sides, count), -1, np.int32)
        pool = TextPool.build(text for _, _, text in batch.texts)
        by_gram: dict[int, NDArray[np.int32]] = {}
        for number, (attribute, e, _) in enumerate(batch.texts):
            if attribute.side >= 0:
                text_of[attribute.side, e] = number
            if attribute.gram >= 0:
                by_gram.setdefault(attribute.gram, np.full(count, -1, np.int32))[e] = number
        multi_start = np.zeros((self._lines, count + 1), np.int64)
        parts, total = [np.zeros(0, np.int32)], 0
        for line, elements in batch.elements.items():
            sizes = np.zeros(count + 1, np.int64)
            sizes[[e + 1 for e, _ in elements]] = [len(found) for _, found in elements]
            multi_start[line] = total + np.cumsum(sizes)
            parts.append(np.array([code for _, found in elements for code in found], np.int32))
            total += len(parts[-1])
        for line, places in by_gram.items():
            begin, grams = event_grams(places, pool, self._grams[line])
            multi_start[line] = total + begin
            parts.append(grams)
            total += len(grams)
        return Events(codes, multi_start, np.concatenate(parts), text_of, pool.offsets, pool.data)
