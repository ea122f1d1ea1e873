"""The late filters of a running index: a short tail, and before it the tails that were, indexed.

    places      0 … 11,000      … 13,000      … 15,000    … 15,200
                layer           layer         sealed      open: `add` appends to it

A tail that has grown to `SHORT` filters is sealed, and another is opened. Aside, in a thread, the sealed one
and the layers before it that are not much larger become one layer, which takes their place. So there are few
layers, each much larger than the one behind it, and a filter is built into a layer a few times at most.

An event costs more in a tail than in a layer. So one that was asked about so many events that a layer would
have been worth its making is sealed as well, however short it is, and several layers become one in time.

Places never change, and what is removed is told by who asks, so nobody need know what is a layer by now. A
reader keeps to the view that it took: one reference, which is put in place last.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from headgate.records.events.columns import Columns
from headgate.records.index.matcher import Matcher, Pairs
from headgate.records.programs.programs import Programs, concatenate, take

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from headgate.core.event import Event
    from headgate.core.values import Path
    from headgate.records.index.build import Weigh
    from headgate.records.programs.tokens import Program
    from headgate.records.tail.tail import Tail, TailView

    Removed: TypeAlias = NDArray[np.uint8]

SHORT = 2048
"""Filters of a tail that is sealed."""
ASKED = 3_000
"""Events of a batch that a tail was asked about when it is sealed."""
MERGED = 1
"""Events of a batch, for each of their filters, that several layers were asked about when they become one."""
ALONE = 15
"""Events of a batch that one event by itself is as good as."""
FEW = 32
"""Events given as Python values that a tail is asked about one by one; for more, it is indexed."""
RATIO = 4
"""A layer is built anew with what comes behind it, unless it is more than this many times as large."""


_NOTHING = np.zeros(0, np.uint8)


class Layer(NamedTuple):
    """Some late filters, indexed; the first of them has the place `first`."""

    first: int
    programs: Programs
    matcher: Matcher
    own: list[tuple[Removed, Removed]]
    """What was last told of all that is removed, and of that what concerns these filters."""

    @property
    def filters(self) -> int:
        """Count the filters."""
        return self.programs.filters

    @property
    def attributes(self) -> list[Path]:
        """List the attributes that filters look at."""
        return list(self.programs.attributes)

    def match_many(self, events: Columns | Sequence[Event], removed: Removed) -> Pairs:
        """Match events; gives places."""
        pairs = self.matcher.match(self.matcher.encode(events), self.removed(removed))
        return Pairs(pairs.events, pairs.filters + np.int32(self.first))

    def match_one(self, event: Event, removed: Removed) -> NDArray[np.int32]:
        """Match one event; gives places."""
        return self.matcher.match_one(event, self.removed(removed)) + np.int32(self.first)

    def removed(self, removed: Removed) -> Removed:
        """Return what concerns these filters, as the same array each time: matchers know it again."""
        told, own = self.own[0]
        if told is not removed:
            own = removed[self.first : self.first + self.filters]
            self.own[0] = removed, own
        return own

    def kept(self, keep: NDArray[np.bool_]) -> Programs:
        """Return the kept ones of its first filters."""
        if len(keep) == self.filters and keep.all():
            return self.programs
        return take(self.programs, np.flatnonzero(keep))


def layer_of(first: int, programs: Programs, weigh: Weigh | None, mark: str) -> Layer:
    """Index some late filters."""
    from headgate.records.index.build import build

    return Layer(first, programs, Matcher(build(programs, weigh), mark), [(_NOTHING, _NOTHING)])


class Loose(NamedTuple):
    """Some late filters in a tail, as many as there are in a view of it; a tail is asked about one event."""

    first: int
    tail: Tail
    view: TailView
    made: list[Layer]
    """The same filters as a layer, once a batch has asked."""

    @property
    def filters(self) -> int:
        """Count the filters."""
        return self.view.filters

    @property
    def attributes(self) -> list[Path]:
        """List the attributes that filters look at."""
        return self.view.attributes

    def indexed(self) -> Layer:
        """Return the same filters as a layer: for the first batch that asks, one is built."""
        if not self.made:
            programs = self.tail.programs(np.ones(self.filters, np.bool_))
            self.made.append(layer_of(self.first, programs, None, self.tail.mark))
        return self.made[0]

    def match_many(self, events: Columns | Sequence[Event], removed: Removed) -> Pairs:
        """Match events; gives places."""
        if isinstance(events, Columns) or len(events) > FEW:
            return self.indexed().match_many(events, removed)
        matches = [self.match_one(event, removed) for event in events]
        rows = np.repeat(np.arange(len(matches)), [len(each) for each in matches])
        return Pairs(rows, np.concatenate([np.zeros(0, np.int32), *matches]))

    def match_one(self, event: Event, removed: Removed) -> NDArray[np.int32]:
        """Match one event; gives places."""
        flat = event.attributes_as(self.tail.mark)
        return self.tail.match_one(self.view, flat, removed[self.first :]) + np.int32(self.first)

    def kept(self, keep: NDArray[np.bool_]) -> Programs:
        """Return the kept ones of its first filters."""
        return self.tail.programs(keep)


class LateView(NamedTuple):
    """The late filters of one moment, part after part."""

    parts: tuple[Layer | Loose, ...]
    filters: int

    @property
    def attributes(self) -> list[Path]:
        """List the attributes that filters look at."""
        return list(dict.fromkeys(path for part in self.parts for path in part.attributes))

    def match_many(self, events: Columns | Sequence[Event], removed: Removed) -> list[Pairs]:
        """Match events, part after part; removed[p] says that place p is passed over."""
        return [part.match_many(events, removed) for part in self.parts if part.filters]

    def match_one(self, event: Event, removed: Removed) -> NDArray[np.int32]:
        """Match one event; gives places, rising."""
        places = [part.match_one(event, removed) for part in self.parts if part.filters]
        return np.concatenate([np.zeros(0, np.int32), *places])


class Layers:
    """Late filters by place: 0, 1, 2, … in the order in which they are added.

    >>> from headgate.core.event import Event
    >>> from headgate.records.programs.binding import compile_filter
    >>> late = Layers(short=2)
    >>> [late.add(compile_filter(f"age > {years}")) for years in (20, 30, 40)]
    [0, 1, 2]
    >>> late.settle()
    >>> [(type(part).__name__, part.filters) for part in late.view().parts]
    [('Layer', 2), ('Loose', 1)]
    >>> late.view().match_one(Event(1, {"age": 35}), np.zeros(3, np.uint8)).tolist()
    [0, 1]
    """

    def __init__(self, weigh: Weigh | None = None, mark: str = "", *, short: int | None = None) -> None:
        self._weigh = weigh
        self._mark = mark
        self._short = SHORT if short is None else short
        self._view = LateView((), 0)
        # Of who puts a view in place: one that adds, and one that builds layers.
        self._placing = threading.Lock()
        self._aside: threading.Thread | None = None
        self._asked = 0
        self._failure: BaseException | None = None

    def __len__(self) -> int:
        """Count the filters."""
        return self._view.filters

    def view(self) -> LateView:
        """Return the filters of this moment."""
        return self._view

    def admit(self, _program: Program) -> None:
        """Tell of a layer that failed before, and refuse no filter."""
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def add(self, program: Program) -> int:
        """Add a filter and return its place; for one thread only."""
        with self._placing:
            last: Layer | Loose
            if not self._view.parts:
                self._tail, last = self._opened()
            else:
                last = self._view.parts[-1]
                if last.filters >= self._short and not self._busy:
                    last = self._seal()
            position = self._view.filters
            self._tail.add(program)
            last = Loose(last.first, self._tail, self._tail.view(), [])
            self._view = LateView((*self._view.parts[:-1], last), position + 1)
        return position

    def note(self, events: int) -> None:
        """Count events that were asked about; any thread may tell, and some events may get lost."""
        view = self._view
        if not view.parts:
            return
        loose, layers = view.parts[-1].filters > 0, len(view.parts) > 2
        if not loose and not layers:
            return
        self._asked += events
        if self._asked < (ASKED if loose else MERGED * view.filters) or self._busy:
            return
        if self._placing.acquire(blocking=False):
            try:
                if self._view is view and not self._busy:
                    self._seal(together=not loose)
            finally:
                self._placing.release()

    @property
    def _busy(self) -> bool:
        """Tell whether a layer is being built."""
        return self._aside is not None and self._aside.is_alive()

    def _seal(self, *, together: bool = False) -> Loose:
        """Open another tail, and have the one before made a layer, all layers `together` or not.

        Returns the new one.
        """
        self._asked = 0
        view = self._view
        tail, opened = self._opened()
        # It waits for the view that is put in place here.
        aside = threading.Thread(target=self._index, args=(together,), name="headgate-layer", daemon=True)
        aside.start()
        self._tail, self._aside = tail, aside
        self._view = LateView((*view.parts, opened), view.filters)
        return opened

    def _opened(self) -> tuple[Tail, Loose]:
        """Make a tail for what comes behind all filters; what tails are made of is loaded with the first."""
        from headgate.records.tail.tail import Tail

        tail = Tail(self._mark)
        return tail, Loose(self._view.filters, tail, tail.view(), [])

    def settle(self) -> None:
        """Wait until no layer is being built."""
        aside = self._aside
        if aside is not None:
            aside.join()

    def programs(self, keep: NDArray[np.bool_]) -> Programs:
        """Return the kept ones of the first `len(keep)` filters, in columns; any thread may ask."""
        view = self._view
        assert len(keep) <= view.filters
        return concatenate([part.kept(keep[part.first : part.first + part.filters]) for part in view.parts])

    def _index(self, together: bool) -> None:
        """Make a layer of what is sealed; changes nothing if that fails."""
        try:
            with self._placing:
                sealed = self._view.parts[:-1]
            some = sealed[0 if together else _first_to_merge(sealed) :]
            programs = concatenate([part.kept(np.ones(part.filters, np.bool_)) for part in some])
            layer = layer_of(some[0].first, programs, self._weigh, self._mark)
            with self._placing:
                before = sealed[: len(sealed) - len(some)]
                self._view = LateView((*before, layer, *self._view.parts[len(sealed) :]), self._view.filters)
        except BaseException as error:  # noqa: BLE001 -- raised before the next addition, where somebody sees it
            self._failure = error


def _first_to_merge(parts: tuple[Layer | Loose, ...]) -> int:
    """Tell from which part on all become one layer: tails, and layers that are not much larger."""
    at, total = len(parts), 0
    while at and (isinstance(parts[at - 1], Loose) or parts[at - 1].filters <= RATIO * total):
        at -= 1
        total += parts[at].filters
    return at
