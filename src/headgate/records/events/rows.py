"""Events as they are sent to the codes of an index, in one pass over their names and values.

    name     ──► Attribute          by its exact spelling; folded once
    type     ──► Codes, or None     of the attribute, by the exact type of the value
    value    ──► (place, code)      where it goes in the row of codes, and what

All three are dictionaries, so a value that was seen before costs three look-ups. What a value must be (text
that UTF-8 can hold, a number of 64 bits) is checked when it is first seen. Values of which more is wanted
than codes (objects, arrays, texts that LIKE looks at) wait until the pass is over.

What expressions make of one attribute is known with its value: their lines follow its own in the row, and one
code stands for all. So the row has an order of its own, and is brought into that of the lines at the end.

Whatever is odd (a value of a foreign type, two names that only case tells apart, no dict at all) is left to
the flattened attributes of the event, which refuse it in their own words or have it read slowly.
`encode` does the same by columns, and is what this is held against.
"""

from __future__ import annotations

import datetime as dt
from array import array
from decimal import Decimal
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from headgate.core.event import EVENT_TIME, JSON
from headgate.core.interning import TextPool
from headgate.core.values import (
    EXACT_JOINED,
    JOINED,
    MAX_DEPTH,
    PRESENT,
    CheckedObjects,
    Kind,
    check,
    fold,
    kind_of,
)
from headgate.errors import EventError
from headgate.records.computed import (
    EXPRESSION,
    LOWER,
    WORDS,
    compute,
    expression_of,
    is_computed,
    is_expression,
    marked_as,
    only_source,
    sources,
    value_of,
)
from headgate.records.events.encode import LineCodes
from headgate.records.index.arrays import Events
from headgate.records.index.grams import GRAMS, LineWords, event_grams

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from headgate.core.arrays import Ints32
    from headgate.core.event import Event
    from headgate.core.values import Path
    from headgate.records.expressions.expression import Expression
    from headgate.records.index.arrays import BuiltIndex

    Found = tuple[Any, int | tuple[int, ...]]
    """A place or a slice of a row, and what to write there."""

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
_ABSENT = object()
"""In place of the value of an attribute that an event has not."""


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
        entry = self._attribute.find(value, kind_of(value))
        # Of doubles, 0.0 and -0.0 are equal and not the same to expressions.
        if (
            self._keep
            and not (self._text and len(value) > LONGEST)
            and not (self._attribute.computes and type(value) is float and not value)
        ):
            if len(self) >= KEPT:
                self.clear()
            self[value] = entry
        return entry


class Attribute:
    """An attribute, and what to do with a value of it.

    types      by the type of a value, where its codes are; None is to wait until all others are read
    place      its lines in a row; of an attribute that no filter names, the place behind all lines
    multi      the lines that take the codes of its elements, if it is an array
    side       the patterns, and `gram` the line of grams, that look at its text; -1 for none
    inside     the names in it, if it is an object of which filters name some
    computed   the attributes that are computed from it one by one; `words` is the line of one that is its
               words
    """

    def __init__(
        self, path: Path, lines: Sequence[LineCodes], nowhere: int, side: int = -1, gram: int = -1
    ) -> None:
        self.path = path
        self.side = side
        self.gram = gram
        self.inside: Level | None = None
        self.computed: list[Attribute] = []
        self.words: int = -1
        self.multi = [line for line in lines if line.multi]
        self.seen = side >= 0 or gram >= 0
        """Whether LIKE looks at it."""
        self.waits = self.seen
        """Whether its text is looked at, by LIKE or for what is computed."""
        self.named = bool(lines) or self.seen
        """Whether filters look at it, and not only at what is in it."""
        self.lines = lines
        self.made: list[tuple[Path, Sequence[LineCodes]]] = []
        """What is computed from it and known with its value, with its lines."""
        self.computes = False
        """Whether there is anything of that."""
        self._found: dict[tuple[int, ...], Found] = {}
        self.place: int | slice = nowhere
        self.codes: dict[type, Codes] = {kind: Codes(self, kind) for kind in _SCALARS}
        self.types: dict[type, Codes | Checked | None] = {**self.codes, list: None, tuple: None, dict: None}
        if self.seen:
            self.types.update(dict.fromkeys(_FORMS))

    def give(self, computed: Attribute) -> None:
        """Let an attribute be computed from this one."""
        self.computed.append(computed)
        self.named = self.waits = True
        self.types.update(dict.fromkeys(_FORMS))

    def settle(self, order: list[int]) -> None:
        """Take the next places of a row; `order` has the lines whose places they are."""
        lines = [*self.lines, *(line for _, lines in self.made for line in lines)]
        if lines:
            first = len(order)
            self.place = first if len(lines) < 2 else slice(first, first + len(lines))
            order += [line.number for line in lines]

    def find(self, value: object, kind: Kind) -> Found:
        """Return the codes of a value that was checked; on a line of elements 1 if it is an array."""
        codes = tuple(
            int(kind is Kind.ARRAY) if line.multi else line.code(value, kind) for line in self.lines
        )
        for path, lines in self.made:
            made = compute(path, dict.fromkeys(sources(path), value))
            made_kind = kind_of(made)
            codes += tuple(line.code(made, made_kind) for line in lines)
        return self.found(codes)

    def found(self, codes: tuple[int, ...]) -> Found:
        """Return where codes go, and these: the same object each time."""
        entry = self._found.get(codes)
        if entry is None:
            if len(self._found) >= KEPT:
                self._found.clear()
            # Once for all values that have them: most codes belong to many.
            one = codes[0] if codes else 0
            entry = self._found[codes] = (self.place, codes if len(codes) > 1 else one)
        return entry


class Checked(dict[Any, "tuple[Any, int | tuple[int, ...]]"]):
    """The values of an attribute that no filter names: they go nowhere, and are checked all the same."""

    def __init__(self, nowhere: int) -> None:
        super().__init__(dict.fromkeys((None, True, False), (nowhere, 0)))
        self._found = (nowhere, 0)

    def __missing__(self, value: Any) -> tuple[Any, int | tuple[int, ...]]:
        if type(value) is not str or not value.isascii():
            check(value, ())
        return self._found


class Level:
    """The attributes at one level of objects, by their names as they are spelled.

    types         what each name's values are looked up in; learned when a name is first seen
    twice         whether an attribute was spelled in two ways: one event may have both, and is refused
    """

    def __init__(
        self,
        prefix: Path,
        known: Mapping[str, Attribute],
        unnamed: Attribute,
        part: Callable[[str], str] = fold,
    ) -> None:
        self.prefix = prefix
        self.part = part
        """Makes the part of a path of a name."""
        self.types: dict[str, dict[type, Codes | Checked | None]] = {}
        self.twice = False
        self._known = known
        self._unnamed = unnamed
        self._spelled: dict[str, str] = {}

    def attribute(self, name: str) -> Attribute:
        """Return the attribute of a name."""
        return self._known.get(self.part(name), self._unnamed)

    def inside(self, part: str) -> Level | None:
        """Return the level below an attribute, given by its part of a path."""
        return self._known.get(part, self._unnamed).inside

    def learn(self, name: object, kind: type) -> Codes | Checked | None:
        """Return what values of a name and a type are looked up in, where one of the two is new."""
        if not isinstance(name, str):
            raise _Odd
        attribute = self.attribute(name)
        if kind not in attribute.types:
            raise _Odd
        folded = self.part(name)
        if len(self.types) >= SPELLINGS and (attribute is self._unnamed or folded in self._spelled):
            self.twice = True
            return attribute.types[kind]
        if self._spelled.setdefault(folded, name) != name:
            # Before it is kept: another thread may look it up right then.
            self.twice = True
        self.types[name] = attribute.types
        return attribute.types[kind]

    def value(self, data: Mapping[str, Any], folded: str, otherwise: Any = None) -> Any:
        """Return the value of a name, given folded, in an object whose names were learned."""
        if not self.twice:
            return data.get(self._spelled.get(folded, folded), otherwise)
        return next((value for name, value in data.items() if self.part(name) == folded), otherwise)

    def distinct(self, data: Mapping[str, object]) -> bool:
        """Tell whether no two names of an object are the same but for their case."""
        return not self.twice or len({self.part(name) for name in data}) == len(data)


class _Computed:
    """An expression, the attribute that it gives, and the places of what it reads among all that is read."""

    def __init__(self, attribute: Attribute, expression: Expression, places: Sequence[int]) -> None:
        self.attribute = attribute
        self._of_values = expression.of_values
        self._places = places

    def of(self, values: Sequence[Any]) -> Any:
        """Compute the value."""
        return self._of_values([values[position] for position in self._places])


class Beside:
    """What a batch of events has beside a row of codes for each: elements of arrays, and texts."""

    def __init__(self) -> None:
        self.elements: dict[int, list[tuple[int, list[int]]]] = {}
        self.words: dict[int, list[tuple[int, str]]] = {}
        self.texts: list[tuple[Attribute, int, str]] = []

    @property
    def plain(self) -> bool:
        """Tell whether events have nothing but codes."""
        return not (self.elements or self.texts or self.words)

    def forget(self, e: int) -> None:
        """Take back what was read of the last event."""
        lists: list[list[Any]] = [*self.elements.values(), *self.words.values()]
        for items in lists:
            while items and items[-1][0] == e:
                items.pop()
        while self.texts and self.texts[-1][1] == e:
            self.texts.pop()


class RowScratch:
    """Where one event at a time is encoded: `codes` are those of `events`, to be written by Python."""

    def __init__(self, events: Events) -> None:
        self.events = events
        self.codes = memoryview(events.codes.data).cast("B").cast("i") if events.codes.size else array("i")


class RowEncoder:
    """Encodes events that are given as Python values, one or many; any number of threads may ask it."""

    def __init__(self, built: BuiltIndex, mark: str | None = None) -> None:
        lines = built.lines
        self._begin(marked_as(built.attributes) if mark is None else mark)
        owned: list[list[LineCodes]] = [[] for _ in built.attributes]
        gram: dict[int, int] = {}
        self._nowhere = lines.size
        words: dict[int, int] = {}
        # One place more, for values that go nowhere.
        nulls = [0] * (lines.size + 1)
        for line in range(lines.size):
            attribute = int(lines.line_attribute[line])
            if lines.line_multi[line] == GRAMS:
                gram[attribute] = line
                continue
            if built.attributes[attribute][:1] == (WORDS,):
                words[attribute] = line
                self._words[line] = LineWords.of(built, line)
                continue
            made = LineCodes(built, line)
            owned[attribute].append(made)
            nulls[line] = 0 if made.multi else made.null
        sides = {attribute: side for side, attribute in enumerate(built.arrays.glob_attribute.tolist())}
        self.attributes = {
            path: Attribute(path, owned[number], lines.size, sides.get(number, -1), gram.get(number, -1))
            for number, path in enumerate(built.attributes)
        }
        bundled = self._bundle()
        for path in built.attributes:
            if is_expression(path) and path not in bundled:
                self._give(path)
        for number, path in enumerate(built.attributes):
            if is_computed(path) and path[0] not in (EXPRESSION, PRESENT) and path not in bundled:
                self.attributes[path].words = words.get(number, -1)
                own = self.attributes.setdefault(path[1:], Attribute(path[1:], (), lines.size))
                own.give(self.attributes.pop(path))
        for path in [path for path in self.attributes if path[0] == PRESENT]:
            self._present.append((path[1:], self.attributes.pop(path)))
            self.attributes.setdefault(path[1:], Attribute(path[1:], (), lines.size))
        for line in gram.values():
            self._grams[line] = lines.grams[lines.gram_start[line] : lines.gram_start[line + 1]]
        waiting = words or sides or any(attribute.computed for attribute in self.attributes.values())
        self.plain = not (lines.line_multi.any() or waiting or self._computed or self._present)
        """Whether events have nothing but codes, each from one value."""
        self._settle(lines.size, len(sides), nulls)

    def _begin(self, mark: str) -> None:
        """Say what names mean, and that nothing is computed yet."""
        self.mark = mark
        """What names mean, see `core/values.py`: that of the paths."""
        self._flat = self.mark in (JOINED, EXACT_JOINED)
        self._part: Callable[[str], str] = self.mark.__add__ if self.mark else fold
        self._unnamed = CheckedObjects(self._part)
        self._words: dict[int, LineWords] = {}
        self._grams: dict[int, NDArray[Any]] = {}
        self._computed: list[_Computed] = []
        self._sources: list[Path] = []
        self._timed: int | None = None
        """The place of the event's time among them, if an expression asks for it."""
        self._present: list[tuple[Path, Attribute]] = []

    def _settle(self, lines: int, sides: int, nulls: list[Any]) -> None:
        """Give all attributes their places; `nulls` has the code of NULL on each line."""
        self._lines, self._sides, self._nowhere, self._nulls = lines, sides, lines, nulls
        self._order()
        self.level = self._levels()
        self._one = self._packed(Beside(), np.zeros((1, lines), np.int32))
        """An event without elements and texts; nobody writes to what it has."""

    @property
    def size(self) -> int:
        """Count the lines."""
        return self._lines

    def with_codes(self, codes: Ints32) -> Events:
        """Return events that have codes and nothing else."""
        return self._one._replace(codes=codes) if len(codes) == 1 else self._packed(Beside(), codes)

    def _bundle(self) -> set[Path]:
        """Let what is computed from one attribute go with its values, but for arrays and texts for LIKE."""
        by_source: dict[Path, list[Path]] = {}
        waiting: set[Path] = set()
        for path, attribute in self.attributes.items():
            if attribute.seen and not is_computed(path):
                waiting.add(path)
            own = only_source(path)
            if own is not None and not attribute.seen and not attribute.multi:
                by_source.setdefault(own, []).append(path)
            elif path[0] in {LOWER, WORDS}:
                waiting.update(sources(path))
        for own, paths in by_source.items():
            if own not in waiting:
                source = self.attributes.setdefault(own, Attribute(own, (), self._nowhere))
                source.named = source.computes = True
                source.made = [(path, self.attributes.pop(path).lines) for path in paths]
        return {path for own, paths in by_source.items() if own not in waiting for path in paths}

    def _order(self) -> None:
        """Give all attributes their places in a row, and find the way from it to the order of lines."""
        order: list[int] = []
        computed = [each.attribute for each in self._computed] + [each for _, each in self._present]
        outer = [*self.attributes.values(), *computed]
        inner = [each for attribute in outer for each in attribute.computed]
        for attribute in (*outer, *inner):
            attribute.settle(order)
        settled = set(order)
        order += [line for line in range(self._lines) if line not in settled]
        self._places = {line: position for position, line in enumerate(order)}
        self._nulls = [self._nulls[line] for line in (*order, self._nowhere)]
        for attribute in self.attributes.values():
            if attribute.computes:
                position, code = attribute.find(None, Kind.NULL)
                self._nulls[position] = code
        back = [self._places[line] for line in range(self._lines)]
        self._in_order = None if back == list(range(self._lines)) else itemgetter(*back)

    def _give(self, path: Path) -> None:
        """Let an expression be computed from the attributes that it reads."""
        expression, places = expression_of(path), []
        for own in expression.attributes:
            if own == EVENT_TIME and self._timed is None:
                self._timed = len(self._sources)
            elif own != EVENT_TIME:
                self.attributes.setdefault(own, Attribute(own, (), self._nowhere))
            if own not in self._sources:
                self._sources.append(own)
            places.append(self._sources.index(own))
        self._computed.append(_Computed(self.attributes.pop(path), expression, places))

    def _levels(self) -> Level:
        """Make the levels of objects that filters name; returns the uppermost."""
        unnamed = Attribute((), (), self._lines)
        unnamed.types.update({kind: Checked(self._lines) for kind in _SCALARS})
        known: dict[Path, dict[str, Attribute]] = {(): {}}
        for path in list(self.attributes):
            for size in range(len(path), 0, -1):
                # An object of which filters name some, and not itself, has no lines.
                own = self.attributes.setdefault(path[:size], Attribute(path[:size], (), self._lines))
                known.setdefault(path[: size - 1], {})[path[size - 1]] = own
        levels = {prefix: Level(prefix, each, unnamed, self._part) for prefix, each in known.items()}
        for prefix, each in levels.items():
            if prefix:
                self.attributes[prefix].inside = each
        return levels[()]

    def encode(self, events: Sequence[Event]) -> Events:
        """Encode events; refuses one that is no record, or has what no column could hold."""
        batch = Beside()
        codes = array("i")
        for e, event in enumerate(events):
            codes.extend(self._row(event, e, batch))
        rows = np.frombuffer(codes, np.int32) if codes else np.zeros(0, np.int32)
        rows = rows.reshape(len(events), self._lines)
        return self.with_codes(rows) if batch.plain else self._packed(batch, rows)

    def scratch(self) -> RowScratch:
        """Make scratch space for one event at a time; each thread needs its own."""
        return RowScratch(self._one._replace(codes=np.zeros((1, self._lines), np.int32)))

    def encode_one(self, event: Event, scratch: RowScratch) -> Events:
        """Encode one event; in `scratch` if it has nothing but codes, until that is used again."""
        batch = Beside()
        scratch.codes[:] = array("i", self._row(event, 0, batch))
        if not batch.plain:
            return self._packed(batch, scratch.events.codes)
        return scratch.events

    def _row(self, event: Event, e: int, batch: Beside) -> Sequence[int]:
        """Return the codes of an event; the rest goes to the batch."""
        data, row = event.data, self._nulls.copy()
        if type(data) is dict and event.content_type == JSON and not self._flat:
            try:
                self._read(data, self.level, row, e, batch)
                for path, attribute in self._present:
                    self._add(self._look_up(data, path, _ABSENT) is not _ABSENT, attribute, row, e, batch)
                if self._computed:
                    values = [self._given(data, path) for path in self._sources]
                    if self._timed is not None:
                        values[self._timed] = event.time
                    self._compute(values, row, e, batch)
            except (_Odd, EventError):
                row = self._nulls.copy()
                batch.forget(e)
            else:
                return row[:-1] if self._in_order is None else self._in_order(row)
        flat = event.attributes_as(self.mark)
        self._read_flat(flat, row, e, batch)
        for path, attribute in self._present:
            self._add(path in flat, attribute, row, e, batch)
        if self._computed:
            self._compute([value_of(path, flat) for path in self._sources], row, e, batch)
        return row[:-1] if self._in_order is None else self._in_order(row)

    def _read(self, data: dict[str, Any], level: Level, row: list[Any], e: int, batch: Beside) -> None:
        """Read a record, or an object in one."""
        late, types = [], level.types
        for name, value in data.items():
            try:
                codes = types[name][type(value)]
            except KeyError:
                codes = level.learn(name, type(value))
            if codes is None:
                late.append((name, value))
            else:
                position, code = codes[value]
                row[position] = code
        if level.twice and not level.distinct(data):
            raise _Odd
        for name, value in late:
            attribute = level.attribute(name)
            if type(value) is dict:
                self._read_object(value, attribute, level.prefix, row, e, batch)
            else:
                check(value, attribute.path)
                self._add(value, attribute, row, e, batch)

    def _given(self, data: dict[str, Any], path: Path) -> Any:
        """Find what an expression reads of a record that was read."""
        if path[0] == PRESENT:
            return self._look_up(data, path[1:], _ABSENT) is not _ABSENT
        return self._look_up(data, path)

    def _look_up(self, data: dict[str, Any], path: Path, otherwise: Any = None) -> Any:
        """Find the value of an attribute in a record that was read."""
        level: Level | None = self.level
        value: Any = data
        for name in path:
            if type(value) is not dict or level is None:
                return otherwise
            inner = level.value(value, name, otherwise)
            level = level.inside(name)
            value = inner
        return value

    def _compute(self, values: Sequence[Any], row: list[Any], e: int, batch: Beside) -> None:
        """Read what expressions give, as if the event had it."""
        for each in self._computed:
            value = each.of(values)
            codes = each.attribute.types[type(value)]
            if codes is None:
                self._add(value, each.attribute, row, e, batch)
                continue
            position, code = codes[value]
            row[position] = code

    def _read_object(
        self, value: dict[str, Any], attribute: Attribute, prefix: Path, row: list[Any], e: int, batch: Beside
    ) -> None:
        position, code = attribute.find(value, Kind.OBJECT)
        row[position] = code
        if attribute.inside is None:
            self._unnamed.check(value, len(prefix))
        elif len(prefix) >= MAX_DEPTH:
            raise _Odd
        else:
            self._read(value, attribute.inside, row, e, batch)

    def _read_flat(self, attributes: Mapping[Path, object], row: list[Any], e: int, batch: Beside) -> None:
        """Read the flattened attributes of an event, which were checked."""
        for path, value in attributes.items():
            attribute = self.attributes.get(path)
            if attribute is not None and attribute.named:
                self._add(value, attribute, row, e, batch)

    def _add(self, value: Any, attribute: Attribute, row: list[Any], e: int, batch: Beside) -> None:
        """Read one value that was checked."""
        kind = kind_of(value)
        position, code = attribute.find(value, kind)
        row[position] = code
        if kind is Kind.ARRAY:
            kinds = [kind_of(item) for item in value]
            for line in attribute.multi:
                item_codes = [line.code(item, own) for item, own in zip(value, kinds, strict=True)]
                batch.elements.setdefault(line.number, []).append((e, item_codes))
        elif attribute.waits and type(value) in _FORMS:
            text = str(value).lower() if kind is Kind.BOOL else str(value)
            if attribute.seen:
                batch.texts.append((attribute, e, text))
            for each in attribute.computed:
                if each.words < 0:
                    self._add(text.lower(), each, row, e, batch)
                else:
                    row[self._places[each.words]] = 1
                    batch.words.setdefault(each.words, []).append((e, text))

    def _with_words(self, batch: Beside, codes: Ints32) -> Events:
        """Lay out one event that has words and nothing else beside its codes."""
        multi_start = np.zeros((self._lines, 2), np.int64)
        parts, total = [], 0
        for line, ((_, text),) in batch.words.items():
            word_codes = self._words[line].find_one(text)
            multi_start[line] = total, total + len(word_codes)
            parts.append(word_codes)
            total += len(word_codes)
        multi_codes = parts[0] if len(parts) == 1 else np.concatenate(parts)
        return self._one._replace(codes=codes, multi_start=multi_start, multi_codes=multi_codes)

    def _packed(self, batch: Beside, codes: Ints32) -> Events:
        """Lay out what a batch has."""
        count = len(codes)
        if count == 1 and batch.words and not (batch.elements or batch.texts):
            return self._with_words(batch, codes)
        text_of = np.full((self._sides, count), -1, np.int32)
        pool = TextPool.build(text for _, _, text in batch.texts)
        by_gram: dict[int, Ints32] = {}
        for number, (attribute, e, _) in enumerate(batch.texts):
            if attribute.side >= 0:
                text_of[attribute.side, e] = number
            if attribute.gram >= 0:
                by_gram.setdefault(attribute.gram, np.full(count, -1, np.int32))[e] = number
        multi_start = np.zeros((self._lines, count + 1), np.int64)
        parts, total = [np.zeros(0, np.int32)], 0
        for line, elements in batch.elements.items():
            sizes = np.zeros(count + 1, np.int64)
            sizes[[e + 1 for e, _ in elements]] = [len(item_codes) for _, item_codes in elements]
            multi_start[line] = total + np.cumsum(sizes)
            parts.append(np.array([code for _, item_codes in elements for code in item_codes], np.int32))
            total += len(parts[-1])
        for line, texts in batch.words.items():
            start, codes_of = self._words[line].find(TextPool.build(text for _, text in texts))
            sizes = np.zeros(count + 1, np.int64)
            sizes[[e + 1 for e, _ in texts]] = np.diff(start)
            multi_start[line] = total + np.cumsum(sizes)
            parts.append(codes_of)
            total += len(codes_of)
        for line, places in by_gram.items():
            begin, grams = event_grams(places, pool, self._grams[line])
            multi_start[line] = total + begin
            parts.append(grams)
            total += len(grams)
        # A copy, because kernels are not compiled for texts that are read-only here and writable elsewhere.
        return Events(codes, multi_start, np.concatenate(parts), text_of, pool.offsets, pool.data.copy())
