"""A running index: base and tail, how they become a new base, and arrays back to columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headgate.contents.living import LivingState
from headgate.core.ids import Ids
from headgate.core.interning import TextPool
from headgate.rdf.index import laying
from headgate.rdf.index.base import Base
from headgate.rdf.index.build import build
from headgate.rdf.index.columns import Columns, concatenate, take
from headgate.rdf.index.tail import Tail

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.core.event import Id
    from headgate.rdf.index.arrays import RdfArrays
    from headgate.rdf.language.model import Graph, Pattern


def restore(arrays: RdfArrays, expressions: TextPool, kept: NDArray[np.int64]) -> Columns:
    """Read some filters back, given by their numbers."""
    patterns, edges, entries, groups = arrays.patterns, arrays.edges, arrays.entries, arrays.groups
    count = len(entries.number)
    code = patterns.step_code.astype(np.int32)
    terms = np.stack([side[patterns.step_edge] for side in (edges.s, edges.p, edges.o)], axis=1)
    terms = np.where(terms >= 0, terms, -1 - (code[:, :3] & 63)).astype(np.int32)
    sizes = np.diff(patterns.step_start)
    slots = np.zeros(len(sizes), np.int64)
    np.maximum.at(slots, np.repeat(np.arange(len(sizes)), sizes), -terms.min(axis=1, initial=0))
    owner = np.repeat(np.arange(len(sizes)), np.diff(patterns.entry_start))
    wide = sizes[owner]
    edge_start = _starts(wide)
    at = np.repeat(patterns.step_start[:-1][owner] - edge_start[:-1], wide) + np.arange(edge_start[-1])
    word_sizes, range_sizes = np.zeros((2, count), np.int64)
    laying.count_read(arrays.checks, entries.checks, word_sizes, range_sizes)
    inside = np.repeat(groups.entry, groups.size) + _within(groups.size)
    range_sizes[inside] += 1
    word_start, range_start = _starts(word_sizes), _starts(range_sizes)
    words = np.zeros(word_start[-1], np.int32)
    ranges = np.zeros((range_start[-1], 3), np.int8)
    ends = np.zeros((range_start[-1], 2), np.float64)
    laying.read_checks(arrays.checks, entries.checks, word_start, words, range_start, ranges, ends)
    first = range_start[inside]
    ranges[first, 0] = np.repeat(groups.slot, groups.size)
    ranges[first, 1] = np.repeat(groups.line, groups.size)
    ranges[first, 2] = groups.flags
    ends[first, 0], ends[first, 1] = groups.low, groups.high
    whole = Columns(
        slots[owner].astype(np.int8),
        edge_start,
        terms[at],
        range_start,
        ranges,
        ends,
        word_start,
        words,
        TextPool(arrays.dictionary.offsets, arrays.dictionary.data),
        TextPool(arrays.checks.text_offsets, arrays.checks.text_data),
        expressions,
    )
    place = np.empty(count, np.int64)
    place[entries.number] = np.arange(count)
    return take(whole, place[kept])


def _starts(sizes: NDArray[Any]) -> NDArray[np.int64]:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])


def _within(sizes: NDArray[np.int32]) -> NDArray[np.int64]:
    """Count from 0 within each of some runs."""
    starts = _starts(sizes)
    return np.arange(starts[-1]) - np.repeat(starts[:-1], sizes)


FEW = 16
"""Ids that are looked up one by one; more of them by Arrow, all at once."""


class State(LivingState[Base, "Pattern"]):
    """Base and tail."""

    def __init__(self, base: Base) -> None:
        super().__init__(base)
        self.tail = Tail(base.options, base.taxonomy)

    @property
    def late(self) -> int:
        """Count the filters in the tail that readers can see."""
        return len(self.tail)

    def append(self, compiled: Pattern) -> None:
        """Append a filter to the tail. Writer only."""
        self.tail.add(compiled)

    def pattern(self, number: int) -> Pattern:
        """Return a filter."""
        base = len(self.base.ids)
        return self.base.pattern(number) if number < base else self.tail.pattern(number - base)

    def match(self, graph: Graph, left_out: list[tuple[Id, str]]) -> NDArray[np.int64]:
        """List the numbers of the filters that hold: those of the base rising, then those of the tail.

        What is too much goes to `left_out`, with the reason.
        """
        # The tail as it is now, and what was removed last of all: an id that is taken away and given anew
        # meanwhile is not answered twice.
        view = self.tail.view()
        early: dict[int, str] = {}
        lately: dict[int, str] = {}
        found: NDArray[np.int64] = self.base.matcher.match(graph, early).astype(np.int64)
        late = view.match(graph, lately).astype(np.int64) if view.size else np.zeros(0, np.int64)
        if early or lately:
            left_out += self.named(early, {n: why for n, why in lately.items() if n < view.size})
        if self._gone:
            found = found[self.base.removed[found] == 0]
            late = late[self.tail_removed[late] == 0]
        return np.concatenate([found, late + len(self.base.ids)]) if len(late) else found

    def id_of(self, number: int) -> Id:
        """Return the id of a number."""
        base = len(self.base.ids)
        return self.base.ids[number] if number < base else self.tail_ids[number - base]

    def match_one(self, graph: Graph, left_out: list[tuple[Id, str]]) -> list[Id]:
        """List the ids that match, sorted; what is too much goes to `left_out`, with the reason."""
        found = self.match(graph, left_out)
        ids: list[Any] = (
            [self.id_of(number) for number in found.tolist()]
            if len(found) < FEW
            else self.id_array(found).to_pylist()
        )
        if len(found) and found[-1] >= len(self.base.ids):
            ids.sort()
        return ids


class Moment(NamedTuple):
    """What is left of a state at one moment: which filters of the base, and which of the tail."""

    state: State
    kept: NDArray[np.int64]
    late: NDArray[np.int64]


def freeze(state: State) -> Moment:
    """Note what is left of a state. Writer only: no change may come in between."""
    return Moment(state, *map(np.flatnonzero, state.left()))


def compact(moment: Moment) -> State:
    """Build a state whose base holds all that was left; the given one is not changed."""
    state, kept, late = moment
    base = state.base
    left = restore(base.arrays, base.expressions, kept)
    columns = concatenate([left, take(state.tail.columns(), late)])
    ids = [*(base.ids[number] for number in kept.tolist()), *(state.tail_ids[n] for n in late.tolist())]
    texts = [*(base.filters.text(n) for n in kept.tolist()), *(state.tail_texts[n] for n in late.tolist())]
    order = np.array(sorted(range(len(ids)), key=ids.__getitem__), np.int64)
    columns = take(columns, order)
    return State(
        Base(
            Ids.of(ids),
            TextPool.build([texts[place] for place in order.tolist()]),
            build(columns),
            columns.expressions,
            base.options,
            base.taxonomy,
        )
    )
