"""A running index of records: base and tail, and how they become a new base."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

import numpy as np

from headgate.contents.living import LivingState
from headgate.records.events.encode import encode
from headgate.records.index.base import Base, Pairs
from headgate.records.index.build import build
from headgate.records.index.restoring import read_programs
from headgate.records.programs.binding import compile_filter
from headgate.records.programs.programs import concatenate, in_columns, take
from headgate.records.tail.tail import Tail

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.contents.living import Moment
    from headgate.core.event import Event, Id
    from headgate.records.events.columns import Columns
    from headgate.records.index.build import Weigh
    from headgate.records.tail.tail import TailView


class State(LivingState[Base, Tail]):
    """Base and tail. A writer publishes a filter by the tail's count, raised last."""

    def __init__(self, base: Base) -> None:
        super().__init__(base, Tail())

    def match(self, columns: Columns) -> Pairs:
        """Match a batch of events."""
        view, removed = self.tail.view(), self.tail_removed
        found = self.base.match(encode(columns, self.base.built), columns.count)
        if not view.filters:
            return found
        for path in view.compared:
            columns.refuse_foreign(path)
        counts, places = self.tail.match_columns(view, columns, columns.count, removed)
        events = np.concatenate([found.events, np.repeat(np.arange(columns.count), counts)])
        numbers = np.concatenate([found.filters, places + np.int32(len(self.base.ids))])
        order = np.argsort(events, kind="stable")
        return Pairs(events[order], numbers[order])

    def match_one(self, event: Event) -> list[Id]:
        """List the ids that match one event, sorted."""
        base = self.base
        view, removed = self.tail.view(), self.tail_removed
        found = base.match(base.encoder.encode(event.attributes), 1)
        ids = [base.ids[number] for number in found.filters.tolist()]
        if view.filters:
            ids.extend(self._of_tail(view, event, removed))
            ids.sort()
        return ids

    def next(self, event: Event, at_least: Id) -> Id | None:
        """Find the first match whose id is at least the given one."""
        base = self.base
        self.check_type(at_least)
        view, removed = self.tail.view(), self.tail_removed
        first = None
        if len(base.ids):
            number = base.cursor(event).next(base.ids.place(at_least))
            first = None if number < 0 else base.ids[number]
        if view.filters:
            found = sorted(self._of_tail(view, event, removed))
            later = found[bisect_left(found, at_least) :][:1]
            return min([*later, *([] if first is None else [first])], default=None)
        return first

    def numbers(self, event: Event, count: int | None, at_least: int | None) -> NDArray[np.int64]:
        """List the first matches from `at_least` on, if ids are whole numbers, in rising order."""
        base = self.base
        view, removed = self.tail.view(), self.tail_removed
        first = 0 if at_least is None or not len(base.ids) else base.ids.place(at_least)
        found = base.first(event, len(base.ids) if count is None else count, first)
        ids: NDArray[np.int64] = base.numbers[found]
        if view.filters:
            late = np.array(self._of_tail(view, event, removed), np.int64)
            ids = np.sort(np.concatenate([ids, late if at_least is None else late[late >= at_least]]))
        return ids[:count]

    def _of_tail(self, view: TailView, event: Event, removed: NDArray[np.uint8]) -> list[Id]:
        found = self.tail.match_one(view, event.attributes, removed)
        return [self.tail_ids[place] for place in found.tolist()]


def compact(moment: Moment[State], weigh: Weigh) -> State:
    """Build a state whose base holds all that was left; the given one is not changed.

    The base is read back from its arrays. Only filters that it keeps as trees are compiled again.
    """
    state, keep, late = moment
    base = state.base
    left = read_programs(base.built, keep, lambda f: in_columns([compile_filter(base.filters.text(f))]))
    programs = concatenate([left, state.tail.programs(late)])
    ids, filters, order = state.merged(keep, late)
    return State(Base(ids, filters, build(take(programs, order), weigh)))
