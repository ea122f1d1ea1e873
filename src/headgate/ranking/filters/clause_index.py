"""Relaxed ranking of any content: the filters' clauses, each asked once an event, and the sums of what holds.

At least one clause of a filter must hold. Its value is the sum of weight times factor over those that do, in
the order in which they are written. An event may give factors to attributes; a clause's is the product of
those of the attributes that it looks at, and one of 0 is as if it did not hold.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from headgate.contents.portions import Portion, places_within
from headgate.contents.protocol import Clause, CodesClauses
from headgate.core.ids import Ids, sorted_by_id
from headgate.core.ranks import Best, check_k, read_factors
from headgate.core.snapshot import open_with_inside
from headgate.core.subscription import Subscription
from headgate.ranking.answers import RankedMatches, RankedRows
from headgate.ranking.filters.base import (
    CODES,
    CONTENT,
    FrozenClauses,
    open_clauses,
    open_codes,
    save_clauses,
    save_codes,
)
from headgate.ranking.filters.batches import matched
from headgate.ranking.filters.clauses import hash_texts, weigh
from headgate.ranking.filters.collecting import code_rows, code_table, collect
from headgate.ranking.filters.explain import (
    BOXED,
    LISTED,
    LISTED_IN_PART,
    SUMMED,
    ClauseValue,
    RankExplanation,
    explain_relaxed,
)
from headgate.ranking.filters.state import NO_NUMBERS, ClauseState, Held
from headgate.ranking.rows import Moments, RowIds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from headgate.contents.protocol import CompiledFilters, Content, ContentRoom
    from headgate.core.arrays import Floats64, Ints
    from headgate.core.event import Event, Id
    from headgate.core.ranks import Weights
    from headgate.ranking.filters.batches import Asked
    from headgate.ranking.filters.clauses import ClauseTable
    from headgate.ranking.rows import Admitted


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
        ids, ordered = sorted_by_id(subscriptions)
        return cls.from_table(ids, collect(ordered, room), room=room)

    @classmethod
    def from_table(
        cls, ids: Ids, table: ClauseTable, *, room: ContentRoom, compiled: CompiledFilters | None = None
    ) -> ClauseIndex:
        """Index clauses that are in columns, in the order of ids; `compiled` has their programs, if there."""
        if compiled is None and isinstance(room, CodesClauses):
            compiled = room.compiled_clauses(table.texts)
        coded = None if compiled is None else code_table(table, compiled, room)
        numbers = np.arange(table.texts.size) if coded is None else coded.odd
        texts = table.texts if coded is None else table.texts.take(numbers)
        if compiled is None:
            content = room.build(
                Subscription(number, text, room.dialect)
                for number, text in zip(numbers.tolist(), texts.texts(), strict=True)
            )
        else:
            content = compiled.take(numbers).index(Ids(numbers), texts)
        hashes = np.zeros(table.texts.size, np.int64)
        hashes[numbers] = hash_texts(texts.texts())
        state = ClauseState(RowIds(ids), table.rows, table.named, hashes, content, table.texts, coded)
        return cls(state, room)

    @classmethod
    def open(cls, path: Path, *, room: ContentRoom, verify: bool = True) -> ClauseIndex:
        """Open a snapshot, memory-mapped."""
        return open_with_inside(path, lambda place: cls._open(place, room, verify=verify))

    @classmethod
    def _open(cls, path: Path, room: ContentRoom, *, verify: bool) -> ClauseIndex:
        frozen = open_clauses(path, verify=verify)
        content = room.open(path / CONTENT, verify=verify)
        coded = open_codes(path / CODES, room, frozen.table, verify=verify) if frozen.coded else None
        given = (frozen.table, frozen.named, frozen.hashes, content, frozen.texts, coded)
        return cls(ClauseState(RowIds(frozen.ids), *given), room)

    def save(self, path: Path) -> None:
        """Write a snapshot, compacted if need be."""
        with self._moments.lock:
            self.compact()
            state = self._state
            coded = state.coded
            inside: dict[str, Callable[[Path], None]] = {CONTENT: state.content.save}
            if coded is not None:
                inside[CODES] = partial(save_codes, coded)
            frozen = FrozenClauses(
                state.rows.base, state.table, state.named, state.hashes, state.texts, coded is not None
            )
            save_clauses(path, frozen, inside)

    def __len__(self) -> int:
        """Count the subscriptions."""
        return len(self._state.rows)

    def __contains__(self, identity: Id) -> bool:
        """Tell whether there is a subscription of this id."""
        return self._state.rows.find(identity) >= 0

    @property
    def rows(self) -> RowIds:
        """Return the ids by row."""
        return self._state.rows

    @property
    def distinct(self) -> int:
        """Count the distinct clauses of all rows, also of those that are gone."""
        state = self._state
        return len(np.unique(np.concatenate([state.table.clause, state.late.rows().clause])))

    @property
    def looked_at(self) -> list[Any]:
        """List what knows what clauses look at: also those of filters that can never match as a whole."""
        coded = self._state.coded
        return [self._state.content] if coded is None else [self._state.content, coded.coder]

    @property
    def asked(self) -> int:
        """Count the clauses that an event is matched with."""
        return len(self._state.content)

    @property
    def boxes(self) -> int:
        """Count the rows that are boxes."""
        coded = self._state.coded
        return 0 if coded is None or coded.boxed is None else len(coded.boxed.rows)

    @property
    def listed(self) -> int:
        """Count the rows that are in lists of codes."""
        coded = self._state.coded
        return 0 if coded is None or coded.listed is None else coded.listed.size

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
            ranked = state.best(Held(state, event), k, read, admitted)
            ids = state.rows.ids(ranked.rows)
            return list(map(Best, ids, ranked.values.tolist()))

        return self._moments.reading(ask)

    def top_many(self, asked: Asked, k: int, *, factors: Mapping[str, float] | None = None) -> Portion:
        """Rank the events of a batch."""
        check_k(k)
        read = read_factors(factors)

        def ask() -> Portion:
            state = self._state
            ranked = _coded_of(state, asked, k, read) if state.coded else _sums_of(state, asked, k, read)
            return Portion.of(ranked.events, state.rows.to_arrow(ranked.rows), ranked.values)

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
            running = state.found(held, read, admitted)
            clauses = _values(state, row, event, held, read, self._room)
            explained = explain_relaxed(running, row, clauses, k, state.rows)
            return replace(explained, through=_through(state, row))

        return self._moments.reading(ask)

    # Changing

    def prepare(self, subscription: Subscription) -> tuple[list[tuple[Clause, Any]], list[float]]:
        """Refuse a bad filter, and weights that do not fit; returns compiled clauses, and what they weigh."""
        clauses = self._room.clauses(subscription.filter, subscription.dialect)
        weights = weigh(clauses, subscription.weights, f"subscription {subscription.id!r}")
        with self._moments.lock:
            return [(each, self._state.prepare(each, self._room.dialect)) for each in clauses], weights

    def subscribe(self, subscription: Subscription, prepared: Any = None) -> None:
        """Add a subscription; refuses a bad filter, weights that do not fit, and an id that is here."""
        clauses, weights = prepared or self.prepare(subscription)
        with self._moments.lock:
            with self._moments.changing():
                self._state.rows.check_new(subscription.id)
                numbers = [self._state.number(each, self._room.dialect, own) for each, own in clauses]
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
        fresh = self._state.folded(partial(code_rows, self._room), self._room.dialect)
        with self._moments.changing():
            self._state = fresh


def _coded_of(state: ClauseState, asked: Asked, k: int, factors: Mapping[str, float]) -> RankedMatches:
    """Find the best rows through codes, and with those that came late if one may be among the best k."""
    assert state.coded is not None
    count = len(asked.ids)
    start, numbers = np.zeros(count + 1, np.int64), NO_NUMBERS
    odd = len(state.coded.odd) > 0
    if odd:
        start, numbers = _held_of(state, asked)
    answers = state.coded_many(state.coded.coder.many_codes(asked.events), start, numbers, k, factors)
    there = np.arange(answers.values.shape[1]) < answers.counts[:, None]
    events = np.repeat(np.arange(count), answers.counts)
    coded = RankedMatches(events, answers.numbers[there].astype(np.int64), answers.values[there])
    open_events = state.late_most(factors) >= _floors(coded, count, k)
    if not state.late or not k or not open_events.any():
        return coded
    if not odd:
        start, numbers = _held_of(state, asked)
    by_clause = state.factors(factors)
    kept = ~open_events[coded.events]
    parts = [coded.take(kept)]
    for event in np.flatnonzero(open_events).tolist():
        own = coded.take(coded.events == event)
        held = numbers[start[event] : start[event + 1]]
        best = state.with_late(RankedRows(own.rows, own.values), held, k, by_clause)
        parts.append(RankedMatches(np.full(len(best.rows), event), best.rows, best.values))
    both = RankedMatches(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
    return both.take(np.argsort(both.events, kind="stable"))


def _floors(ranked: RankedMatches, count: int, k: int) -> Floats64:
    """Return by event what a row must be worth to be among the best k, given those that are found."""
    floors = np.full(count, -np.inf)
    last = places_within(ranked.events) == k - 1
    floors[ranked.events[last]] = ranked.values[last]
    return floors


def _held_of(state: ClauseState, asked: Asked) -> tuple[Ints, Ints]:
    """Match events with clauses: returns starts, and clauses; of event i from start[i] up to start[i + 1]."""
    with state.naming():
        events, numbers = matched(asked, state.content)
    return np.searchsorted(events, np.arange(len(asked.ids) + 1)), numbers


def _sums_of(state: ClauseState, asked: Asked, k: int, factors: Mapping[str, float]) -> RankedMatches:
    """Find the best rows by the clauses that hold."""
    start, numbers = _held_of(state, asked)
    by_clause = state.factors(factors)
    places = np.flatnonzero(np.diff(start))
    ranked = [state.sums(numbers[start[i] : start[i + 1]], k, by_clause, None) for i in places.tolist()]
    return RankedMatches(
        np.repeat(places, [len(each.rows) for each in ranked]),
        np.concatenate([NO_NUMBERS, *(each.rows for each in ranked)]),
        np.concatenate([np.zeros(0), *(each.values for each in ranked)]),
    )


def _through(state: ClauseState, row: int) -> str:
    """Say through which structure a row is ranked."""
    if state.coded is None or row >= state.table.size:
        return SUMMED
    if state.coded.is_box(row):
        return BOXED
    odd = state.coded.sets.odd[state.row(row)[0]] >= 0
    return LISTED_IN_PART if odd.any() else LISTED


def _values(
    state: ClauseState,
    row: int,
    event: Event,
    held: Held,
    factors: Mapping[str, float],
    room: ContentRoom,
) -> list[ClauseValue]:
    """Tell of each clause of a row what it counts and whether it held."""
    known = set(held.numbers.tolist()) if _through(state, row) == SUMMED else None
    values = []
    for clause, weight in zip(*state.row(row), strict=True):
        text = state.text(clause)
        holds = clause in known if known is not None else bool(_alone(room, text).match(event))
        factor = float(np.prod([factors.get(name, 1.0) for name in state.names_of(clause)]))
        values.append(ClauseValue(text, weight, factor, holds))
    return values


def _alone(room: ContentRoom, text: str) -> Content:
    return room.build([Subscription(0, text, room.dialect)])
