"""Relaxed ranking of any content: the filters' clauses, each asked once an event, and the sums of what holds.

At least one clause of a filter must hold. Its value is the sum of weight times factor over those that do, in
the order in which they are written. An event may give factors to attributes; a clause's is the product of
those of the attributes that it looks at, and one of 0 is as if it did not hold.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headgate.contents.protocol import Clause, CodesClauses
from headgate.core.ids import Ids
from headgate.core.ranks import check_k, read_factors
from headgate.core.snapshot import open_with_inside
from headgate.core.subscription import Subscription
from headgate.ranking.filters.base import (
    BOXES,
    CONTENT,
    FrozenClauses,
    open_boxes,
    open_clauses,
    save_boxes,
    save_clauses,
)
from headgate.ranking.filters.batches import matched, places_within
from headgate.ranking.filters.clauses import hash_texts, weigh
from headgate.ranking.filters.collecting import box_rows, box_table, collect
from headgate.ranking.filters.explain import BOXED, SUMMED, ClauseValue, RankExplanation, explain_relaxed
from headgate.ranking.filters.state import NO_NUMBERS, ClauseState, Held
from headgate.ranking.model import Best
from headgate.ranking.rows import Moments, Rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    import pyarrow as pa
    from numpy.typing import NDArray

    from headgate.contents.protocol import CompiledFilters, Content, ContentRoom
    from headgate.core.event import Event, Id
    from headgate.core.ranks import Weights
    from headgate.ranking.filters.batches import EventBatch
    from headgate.ranking.filters.clauses import ClauseTable
    from headgate.ranking.rows import Admitted

    Ints = NDArray[np.int64]

FOLD_AFTER = 16_384
"""How many later rows are kept beside the others, at least; a quarter of them if that is more."""


class ClauseIndex:
    """Subscriptions as rows of weighted clauses: the best k of those of which anything holds.

    >>> from headgate import Event, Subscription
    >>> from headgate.records.index.index import RecordIndex
    >>> filters = [Subscription("s1", "age > 30 AND topic = 'news'"), Subscription("s2", "age > 20")]
    >>> index = ClauseIndex.build(filters, room=RecordIndex)
    >>> index.top(Event("e1", {"age": 35, "topic": "news"}), 5)
    [Best(subscription='s1', value=2.0), Best(subscription='s2', value=1.0)]
    """

    def __init__(self, state: ClauseState, room: ContentRoom) -> None:
        self._room = room
        self._moments = Moments()
        self._state = state
        self._stale = False

    @classmethod
    def build(cls, subscriptions: Iterable[Subscription], *, room: ContentRoom) -> ClauseIndex:
        """Take filters apart and index their clauses; refuses bad filters, and weights that do not fit."""
        given = list(subscriptions)
        ids = Ids.of(subscription.id for subscription in given)
        by_id = {subscription.id: subscription for subscription in given}
        return cls.from_table(ids, collect([by_id[identity] for identity in ids.to_list()], room), room=room)

    @classmethod
    def from_table(
        cls, ids: Ids, table: ClauseTable, *, room: ContentRoom, compiled: CompiledFilters | None = None
    ) -> ClauseIndex:
        """Index clauses that are in columns, in the order of ids; `compiled` has their programs, if there."""
        if compiled is None and isinstance(room, CodesClauses):
            compiled = room.compiled_clauses(table.texts)
        boxed = None if compiled is None else box_table(table, compiled, room)
        asked = np.ones(table.texts.size, np.bool_)
        if boxed is not None:
            others = np.ones(table.rows.size, np.bool_)
            others[boxed.rows] = False
            asked[:] = False
            asked[table.rows.take(np.flatnonzero(others)).clause] = True
        numbers = np.flatnonzero(asked)
        texts = table.texts if asked.all() else table.texts.take(numbers)
        if compiled is None:
            content = room.build(
                Subscription(number, text, room.dialect)
                for number, text in zip(numbers.tolist(), texts.texts(), strict=True)
            )
        else:
            content = compiled.take(numbers).index(Ids(numbers), texts)
        hashes = np.zeros(table.texts.size, np.int64)
        hashes[numbers] = hash_texts(texts.texts())
        state = ClauseState(Rows(ids), table.rows, table.named, hashes, content, table.texts, boxed)
        return cls(state, room)

    @classmethod
    def open(cls, path: Path, *, room: ContentRoom, verify: bool = True) -> ClauseIndex:
        """Open a snapshot, memory-mapped."""
        return open_with_inside(path, lambda place: cls._open(place, room, verify=verify))

    @classmethod
    def _open(cls, path: Path, room: ContentRoom, *, verify: bool) -> ClauseIndex:
        frozen = open_clauses(path, verify=verify)
        content = room.open(path / CONTENT, verify=verify)
        boxed = open_boxes(path / BOXES, room, verify=verify) if frozen.boxed else None
        given = (frozen.table, frozen.named, frozen.hashes, content, frozen.texts, boxed)
        return cls(ClauseState(Rows(frozen.ids), *given), room)

    def save(self, path: Path) -> None:
        """Write a snapshot, compacted if need be."""
        with self._moments.lock:
            self.compact()
            state = self._state
            boxed = state.boxed
            inside: dict[str, Callable[[Path], None]] = {CONTENT: state.content.save}
            if boxed is not None:
                inside[BOXES] = partial(save_boxes, boxed)
            frozen = FrozenClauses(
                state.rows.base, state.table, state.named, state.hashes, state.texts, boxed is not None
            )
            save_clauses(path, frozen, inside)

    def __len__(self) -> int:
        """Count the subscriptions."""
        return len(self._state.rows)

    def __contains__(self, identity: Id) -> bool:
        """Tell whether there is a subscription of this id."""
        return self._state.rows.find(identity) >= 0

    @property
    def rows(self) -> Rows:
        """Return the ids by row."""
        return self._state.rows

    @property
    def distinct(self) -> int:
        """Count the distinct clauses of all rows, also of those that are gone."""
        state = self._state
        return len(np.unique(np.concatenate([state.table.clause, state.late.rows().clause])))

    @property
    def asked(self) -> int:
        """Count the clauses that an event is matched with."""
        return len(self._state.content)

    @property
    def boxes(self) -> int:
        """Count the rows that are boxes."""
        boxed = self._state.boxed
        return 0 if boxed is None else len(boxed.rows)

    @property
    def moments(self) -> Moments:
        """Return the count of changes."""
        return self._moments

    # Asking

    def top(
        self,
        event: Event,
        k: int,
        *,
        factors: Mapping[str, float] | None = None,
        admitted: Admitted | None = None,
    ) -> list[Best]:
        """List the best k of the subscriptions of which anything holds, equal values by id.

        `admitted` tells of an id whether it may be in the answer.
        """
        check_k(k)
        read = read_factors(factors)

        def ask() -> list[Best]:
            state = self._state
            found = state.best(Held(state, event), k, read, admitted)
            ids = state.rows.ids(found.rows)
            return [Best(each, value) for each, value in zip(ids, found.values.tolist(), strict=True)]

        return self._moments.reading(ask)

    def top_many(
        self, asked: EventBatch, k: int, *, factors: Mapping[str, float] | None = None
    ) -> tuple[Ints, pa.Array[Any], NDArray[np.float64]]:
        """Rank the events of a batch: returns the places of the events, subscriptions' ids, and values."""
        check_k(k)
        read = read_factors(factors)

        def ask() -> tuple[Ints, pa.Array[Any], NDArray[np.float64]]:
            state = self._state
            found = _boxes_of(state, asked, k, read)
            if state.summing:
                summed_up = _sums_of(state, asked, k, read, _floors(found, len(asked.identities), k))
                found = summed_up if state.boxed is None else _merged(found, summed_up, k, state.rows)
            return found.events, state.rows.to_arrow(found.rows), found.values

        return self._moments.reading(ask)

    def explain(
        self,
        event: Event,
        identity: Id,
        k: int,
        *,
        factors: Mapping[str, float] | None = None,
        admitted: Admitted | None = None,
    ) -> RankExplanation:
        """Say why a subscription has its rank, and what it lacked to enter the best k."""
        check_k(k)
        read = read_factors(factors)

        def ask() -> RankExplanation:
            state = self._state
            row = state.rows.get(identity)
            held = Held(state, event)
            found = state.found(held, read, admitted)
            clauses = _values(state, row, event, held, read, self._room)
            explained = explain_relaxed(found, row, clauses, k, state.rows)
            return replace(explained, through=BOXED if state.is_box(row) else SUMMED)

        return self._moments.reading(ask)

    # Changing

    def check(self, subscription: Subscription) -> tuple[tuple[Clause, ...], list[float]]:
        """Refuse a bad filter, and weights that do not fit; returns the clauses and what they weigh."""
        clauses = self._room.clauses(subscription.filter, subscription.dialect)
        return clauses, weigh(clauses, subscription.weights, f"subscription {subscription.id!r}")

    def subscribe(self, subscription: Subscription) -> None:
        """Add a subscription; refuses a bad filter, weights that do not fit, and an id that is here."""
        clauses, weights = self.check(subscription)
        with self._moments.lock:
            with self._moments.changing():
                self._state.rows.check_new(subscription.id)
                numbers = [self._state.number(clause, self._room.dialect) for clause in clauses]
                self._state.add(subscription.id, numbers, weights)
            self._changed()

    def unsubscribe(self, identity: Id) -> None:
        """Remove a subscription; refuses an id that is not here."""
        with self._moments.changing():
            self._state.rows.remove(identity)

    def set_weights(self, identity: Id, weights: Weights | None) -> None:
        """Give a subscription other weights."""
        with self._moments.lock:
            with self._moments.changing():
                state = self._state
                numbers, _ = state.row(state.rows.get(identity))
                for number in numbers:
                    state.index(number, self._room.dialect)
                clauses = [Clause("", state.names_of(number)) for number in numbers]
                fresh = weigh(clauses, weights, f"subscription {identity!r}")
                state.rows.remove(identity)
                state.add(identity, numbers, fresh)
            self._changed()

    def compact(self) -> None:
        """Fold what came later into the arrays, and drop clauses that no filter has any more."""
        with self._moments.lock:
            if not self._state.rows.changed and not self._stale:
                return
            self._fold()
            with self._moments.changing():
                dropped = self._state.drop_unused()
            if dropped or self._stale:
                self._state.content.compact()
            self._stale = False

    def _changed(self) -> None:
        """Note a change, and fold when there are many. Others ask the old rows meanwhile."""
        self._stale = True
        if len(self._state.late) > max(FOLD_AFTER, self._state.table.size // 4):
            self._fold()

    def _fold(self) -> None:
        fresh = self._state.folded(partial(box_rows, self._room))
        with self._moments.changing():
            self._state = fresh


class _Found(NamedTuple):
    """Rows and values of events, given by place: by event, and for each the best first."""

    events: Ints
    rows: Ints
    values: NDArray[np.float64]

    def take(self, places: NDArray[Any]) -> _Found:
        """Pick some, by place or by flag."""
        return _Found(self.events[places], self.rows[places], self.values[places])


def _boxes_of(state: ClauseState, asked: EventBatch, k: int, factors: Mapping[str, float]) -> _Found:
    if state.boxed is None:
        return _Found(NO_NUMBERS, NO_NUMBERS, np.zeros(0))
    found = state.boxes(asked.codes(state.boxed.coder), k, factors)
    there = np.arange(found.values.shape[1]) < found.counts[:, None]
    events = np.repeat(np.arange(len(found.counts)), found.counts)
    return _Found(events, found.numbers[there].astype(np.int64), found.values[there])


def _floors(found: _Found, count: int, k: int) -> NDArray[np.float64]:
    """Return by event what a row must be worth to be among the best k, given those that are found."""
    floors = np.full(count, -np.inf)
    last = places_within(found.events) == k - 1
    floors[found.events[last]] = found.values[last]
    return floors


def _sums_of(
    state: ClauseState,
    asked: EventBatch,
    k: int,
    factors: Mapping[str, float],
    floors: NDArray[np.float64],
) -> _Found:
    """Find the best of the rows that are no boxes, for the events in which one may be among the best k."""
    open_events = state.most(factors) >= floors
    if not open_events.any():
        return _Found(NO_NUMBERS, NO_NUMBERS, np.zeros(0))
    with state.naming():
        matched_pairs = matched(asked, state.content)
    events, numbers = (np.asarray(column, np.int64) for column in matched_pairs.columns)
    kept = open_events[events]
    events, numbers = events[kept], numbers[kept]
    cuts = np.flatnonzero(np.diff(events)) + 1
    by_clause = state.factors(factors)
    places = events[np.concatenate([np.zeros(1, np.int64), cuts])] if len(events) else events
    found = [state.sums(held, k, by_clause, None) for held in np.split(numbers, cuts) if len(held)]
    return _Found(
        np.repeat(places, [len(each.rows) for each in found]),
        np.concatenate([NO_NUMBERS, *(each.rows for each in found)]),
        np.concatenate([np.zeros(0), *(each.values for each in found)]),
    )


def _merged(first: _Found, second: _Found, k: int, rows: Rows) -> _Found:
    """Keep the best k of each event; equal values by id."""
    both = _Found(
        np.concatenate([first.events, second.events]),
        np.concatenate([first.rows, second.rows]),
        np.concatenate([first.values, second.values]),
    )
    both = both.take(np.lexsort((rows.places(both.rows), -both.values, both.events)))
    return both.take(places_within(both.events) < k)


def _values(
    state: ClauseState,
    row: int,
    event: Event,
    held: Held,
    factors: Mapping[str, float],
    room: ContentRoom,
) -> list[ClauseValue]:
    """Tell of each clause of a row what it counts and whether it held."""
    known = None if state.is_box(row) else set(held.numbers.tolist())
    found = []
    for clause, weight in zip(*state.row(row), strict=True):
        text = state.text(clause)
        holds = clause in known if known is not None else bool(_alone(room, text).match(event))
        factor = float(np.prod([factors.get(name, 1.0) for name in state.names_of(clause)]))
        found.append(ClauseValue(text, weight, factor, holds))
    return found


def _alone(room: ContentRoom, text: str) -> Content:
    return room.build([Subscription(0, text, room.dialect)])
