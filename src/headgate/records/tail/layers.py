"""The late filters of a running index: a short tail, and before it the tails that were, indexed.

    places      0 … 11,000      … 13,000      … 15,000    … 15,200
                layer           layer         sealed      open: `add` appends to it

A tail that has grown to `SHORT` filters is sealed, and another is opened. Aside, in a thread, the sealed one
and the layers before it that are not much larger become one layer, which takes their place. So there are few
layers, each much larger than the one behind it, and a filter is built into a layer a few times at most.

Places never change, and what is removed is told by who asks, so nobody need know what is a layer by now. A
reader keeps to the view that it took: one reference, which is put in place last.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from headgate.records.events.encode import encode
from headgate.records.index.build import build
from headgate.records.index.matcher import Matcher, Pairs
from headgate.records.programs.programs import Programs, concatenate, take
from headgate.records.tail.tail import Tail

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.core.event import Event
    from headgate.core.values import Path
    from headgate.records.events.columns import Columns
    from headgate.records.index.build import Weigh
    from headgate.records.programs.program import Program
    from headgate.records.tail.tail import TailView

    Removed: TypeAlias = NDArray[np.uint8]

SHORT = 2048
"""Filters of a tail that is sealed."""
RATIO = 4
"""A layer is built anew with what comes behind it, unless it is more than this many times as large."""


class Layer(NamedTuple):
    """Some late filters, indexed; the first of them has the place `first`."""

    first: int
    programs: Programs
    matcher: Matcher

    @property
    def filters(self) -> int:
        """Count the filters."""
        return self.programs.filters

    @property
    def attributes(self) -> list[Path]:
        """List the attributes that filters look at."""
        return list(self.programs.attributes)

    def match_columns(self, columns: Columns, removed: Removed) -> Pairs:
        """Match a batch; gives places."""
        encoded = encode(columns, self.matcher.built)
        found = self.matcher.match(encoded, columns.count, removed[self.first : self.first + self.filters])
        return Pairs(found.events, found.filters + np.int32(self.first))

    def match_one(self, event: Event, removed: Removed) -> NDArray[np.int32]:
        """Match one event; gives places."""
        own = removed[self.first : self.first + self.filters]
        return self.matcher.match_one(event, own) + np.int32(self.first)

    def kept(self, keep: NDArray[np.bool_]) -> Programs:
        """Return the kept ones of its first filters."""
        if len(keep) == self.filters and keep.all():
            return self.programs
        return take(self.programs, np.flatnonzero(keep))


class Loose(NamedTuple):
    """Some late filters in a tail, as many as there are in a view of it."""

    first: int
    tail: Tail
    view: TailView

    @property
    def filters(self) -> int:
        """Count the filters."""
        return self.view.filters

    @property
    def attributes(self) -> list[Path]:
        """List the attributes that filters look at."""
        return self.view.attributes

    def match_columns(self, columns: Columns, removed: Removed) -> Pairs:
        """Match a batch; gives places."""
        for path in self.view.compared:
            columns.refuse_foreign(path)
        counts, places = self.tail.match_columns(self.view, columns, columns.count, removed[self.first :])
        return Pairs(np.repeat(np.arange(columns.count), counts), places + np.int32(self.first))

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

    def match_columns(self, columns: Columns, removed: Removed) -> list[Pairs]:
        """Match a batch, part after part; removed[p] says that place p is passed over."""
        return [part.match_columns(columns, removed) for part in self.parts if part.filters]

    def match_one(self, event: Event, removed: Removed) -> NDArray[np.int32]:
        """Match one event; gives places, rising."""
        found = [part.match_one(event, removed) for part in self.parts if part.filters]
        return np.concatenate([np.zeros(0, np.int32), *found])


class Layers:
    """Late filters by place: 0, 1, 2, … in the order in which they are added.

    >>> from headgate.core.event import Event
    >>> from headgate.records.index.build import by_filters
    >>> from headgate.records.programs.binding import compile_filter
    >>> late = Layers(by_filters, short=2)
    >>> [late.add(compile_filter(f"age > {years}")) for years in (20, 30, 40)]
    [0, 1, 2]
    >>> late.settle()
    >>> [(type(part).__name__, part.filters) for part in late.view().parts]
    [('Layer', 2), ('Loose', 1)]
    >>> late.view().match_one(Event(1, {"age": 35}), np.zeros(3, np.uint8)).tolist()
    [0, 1]
    """

    def __init__(self, weigh: Weigh, mark: str = "", *, short: int | None = None) -> None:
        self._weigh = weigh
        self._mark = mark
        self._short = SHORT if short is None else short
        self._tail = Tail(mark)
        self._view = LateView((Loose(0, self._tail, self._tail.view()),), 0)
        # Of who puts a view in place: one that adds, and one that builds layers.
        self._placing = threading.Lock()
        self._aside: threading.Thread | None = None
        self._failure: BaseException | None = None

    def __len__(self) -> int:
        """Count the filters."""
        return self._view.filters

    def view(self) -> LateView:
        """Return the filters of this moment."""
        return self._view

    def add(self, program: Program) -> int:
        """Add a filter and return its place; for one thread only. Tells of a layer that failed before."""
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure
        with self._placing:
            last = self._view.parts[-1]
            aside = self._aside
            if last.filters >= self._short and (aside is None or not aside.is_alive()):
                last = self._seal()
            place = self._view.filters
            self._tail.add(program)
            last = Loose(last.first, self._tail, self._tail.view())
            self._view = LateView((*self._view.parts[:-1], last), place + 1)
        return place

    def _seal(self) -> Loose:
        """Open another tail, and have the one before made a layer; returns the new one."""
        view, tail = self._view, Tail(self._mark)
        opened = Loose(view.filters, tail, tail.view())
        # It waits for the view that is put in place here.
        aside = threading.Thread(target=self._index, name="headgate-layer", daemon=True)
        aside.start()
        self._tail, self._aside = tail, aside
        self._view = LateView((*view.parts, opened), view.filters)
        return opened

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

    def _index(self) -> None:
        """Make a layer of what is sealed; changes nothing if that fails."""
        try:
            with self._placing:
                sealed = self._view.parts[:-1]
            some = sealed[_first_to_merge(sealed) :]
            programs = concatenate([part.kept(np.ones(part.filters, np.bool_)) for part in some])
            layer = Layer(some[0].first, programs, Matcher(build(programs, self._weigh), self._mark))
            with self._placing:
                before = sealed[: len(sealed) - len(some)]
                self._view = LateView((*before, layer, *self._view.parts[len(sealed) :]), self._view.filters)
        except BaseException as error:  # noqa: BLE001 -- raised by the next addition, where somebody sees it
            self._failure = error


def _first_to_merge(parts: tuple[Layer | Loose, ...]) -> int:
    """Tell from which part on all become one layer: tails, and layers that are not much larger."""
    at, total = len(parts), 0
    while at and (isinstance(parts[at - 1], Loose) or parts[at - 1].filters <= RATIO * total):
        at -= 1
        total += parts[at].filters
    return at
