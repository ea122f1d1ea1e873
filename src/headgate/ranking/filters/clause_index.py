"""Relaxed ranking of any content: the filters' clauses, each asked once an event, and the sums of what holds.

At least one clause of a filter must hold. Its value is the sum of weight times factor over those that do, in
the order in which they are written. An event may give factors to attributes; a clause's is the product of
those of the attributes that it looks at, and one of 0 is as if it did not hold.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headgate.contents.protocol import Clause
from headgate.core.ids import Ids
from headgate.core.ranks import check_k, read_factors
from headgate.core.snapshot import open_with_inside
from headgate.core.subscription import Subscription
from headgate.ranking.filters.base import CONTENT, open_clauses, save_clauses
from headgate.ranking.filters.clauses import Collector, hash_texts, weigh
from headgate.ranking.filters.explain import ClauseValue, RankExplanation, explain_relaxed
from headgate.ranking.filters.state import ClauseState
from headgate.ranking.model import Best
from headgate.ranking.rows import Moments, Rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    import pyarrow as pa
    from numpy.typing import NDArray

    from headgate.contents.protocol import Content, ContentRoom
    from headgate.core.event import Event, Id
    from headgate.core.ranks import Weights
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
        collector = Collector()
        for each in map(by_id.__getitem__, ids):
            clauses = room.clauses(each.filter, each.dialect)
            collector.add(clauses, weigh(clauses, each.weights, f"subscription {each.id!r}"))
        return cls.from_table(ids, collector.finish(), room=room)

    @classmethod
    def from_table(
        cls, ids: Ids, table: ClauseTable, *, room: ContentRoom, content: Content | None = None
    ) -> ClauseIndex:
        """Index clauses that are in columns, in the order of ids; `content` has them by number, if built."""
        if content is None:
            content = room.build(
                Subscription(number, text, room.dialect) for number, text in enumerate(table.texts.texts())
            )
        hashes = hash_texts(table.texts.texts())
        return cls(ClauseState(Rows(ids), table.rows, table.named, hashes, content), room)

    @classmethod
    def open(cls, path: Path, *, room: ContentRoom, verify: bool = True) -> ClauseIndex:
        """Open a snapshot, memory-mapped."""
        return open_with_inside(path, lambda place: cls._open(place, room, verify=verify))

    @classmethod
    def _open(cls, path: Path, room: ContentRoom, *, verify: bool) -> ClauseIndex:
        ids, table, named, hashes = open_clauses(path, verify=verify)
        content = room.open(path / CONTENT, verify=verify)
        return cls(ClauseState(Rows(ids), table, named, hashes, content), room)

    def save(self, path: Path) -> None:
        """Write a snapshot, compacted if need be."""
        with self._moments.lock:
            self.compact()
            state = self._state
            inside = {CONTENT: state.content.save}
            save_clauses(path, state.rows.base, state.table, state.named, state.hashes, inside)

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
        """Count the distinct clauses that are indexed."""
        return len(self._state.content)

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
            with state.naming():
                numbers = state.content.numbers(event)
            found = state.best(numbers, k, state.factors(read), admitted)
            ids = state.rows.ids(found.rows)
            return [Best(each, value) for each, value in zip(ids, found.values.tolist(), strict=True)]

        return self._moments.reading(ask)

    def top_many(
        self,
        clauses: Callable[[Content], pa.RecordBatch],
        k: int,
        *,
        factors: Mapping[str, float] | None = None,
    ) -> tuple[Ints, pa.Array[Any], NDArray[np.float64]]:
        """Rank the events of a batch: returns the places of the events, subscriptions' ids, and values.

        `clauses` matches the batch, with the places of the events as their ids.
        """
        check_k(k)
        read = read_factors(factors)

        def ask() -> tuple[Ints, pa.Array[Any], NDArray[np.float64]]:
            state = self._state
            with state.naming():
                matched = clauses(state.content)
            events, numbers = (np.asarray(column, np.int64) for column in matched.columns)
            cuts = np.flatnonzero(np.diff(events)) + 1
            by_clause = state.factors(read)
            places = events[np.concatenate([np.zeros(1, np.int64), cuts])] if len(events) else events
            found = [state.best(held, k, by_clause, None) for held in np.split(numbers, cuts) if len(held)]
            rows = np.concatenate([np.zeros(0, np.int64), *(each.rows for each in found)])
            values = np.concatenate([np.zeros(0), *(each.values for each in found)])
            at = np.repeat(places, [len(each.rows) for each in found])
            return at, state.rows.to_arrow(rows), values

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
            with state.naming():
                numbers = state.content.numbers(event)
            by_clause = state.factors(read)
            found = state.found(numbers, by_clause, admitted)
            clauses = _values(state, row, numbers, by_clause)
            return explain_relaxed(found, row, clauses, k, state.rows)

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
        fresh = self._state.folded()
        with self._moments.changing():
            self._state = fresh


def _values(
    state: ClauseState, row: int, numbers: Ints, factors: NDArray[np.float64] | None
) -> list[ClauseValue]:
    """Tell of each clause of a row what it counts and whether it held."""
    held = set(numbers.tolist())
    return [
        ClauseValue(
            state.content.filter(clause),
            weight,
            1.0 if factors is None else float(factors[clause]),
            clause in held,
        )
        for clause, weight in zip(*state.row(row), strict=True)
    ]
