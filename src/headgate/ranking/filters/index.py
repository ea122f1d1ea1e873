"""The room's class for any content: the best k of the filters that match, or that nearly do."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from headgate.contents.portions import Asks, Portion
from headgate.contents.protocol import PAIRS, slice_of
from headgate.contents.scores import read_scoring
from headgate.core.ids import Ids, sorted_by_id
from headgate.core.ranks import EXACT, MODES, RELAXED, Best, check_asked, check_score
from headgate.core.rooms import CLAUSES, RANKING
from headgate.core.snapshot import open_with_inside
from headgate.core.subscription import Subscription
from headgate.errors import HeadgateError, SubscriptionError, made_of, raise_first
from headgate.ranking.answers import RankedMatches
from headgate.ranking.filters import base, batches
from headgate.ranking.filters.base import ROOM
from headgate.ranking.filters.batches import Asked
from headgate.ranking.filters.clause_index import ClauseIndex
from headgate.ranking.filters.explain import BY_RANK, RankExplanation, explain_exact
from headgate.ranking.filters.keys import RankKeys, rank
from headgate.ranking.filters.score_state import ScoreState
from headgate.ranking.rows import Moments, RowIds
from headgate.ranking.scores.table import split

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    import pyarrow as pa

    from headgate.contents.protocol import Content, ContentRoom, Verdict
    from headgate.core.arrays import Floats64
    from headgate.core.event import Event, Id
    from headgate.core.ranks import Score, Weights
    from headgate.ranking.rows import Admitted
    from headgate.ranking.scores.table import EventScores


__all__ = ["EXACT", "MODES", "RELAXED", "ROOM", "RankedIndex"]


class RankedIndex(Asks):
    """Subscriptions with scores and weights over any content room: match, and the best k.

    Mode "exact": of the subscriptions that match, those of the highest scores. Mode "relaxed": of those of
    which at least one clause holds, those whose clauses that hold weigh most. Equal ones go by id.

    Any number of threads may ask while others change subscriptions, scores and weights.

    >>> from headgate import Event, Subscription
    >>> from headgate.records.index.index import RecordIndex
    >>> index = RankedIndex.build(
    ...     [
    ...         Subscription("s1", "age > 30", score=1.0),
    ...         Subscription("s2", "age > 20 AND topic = 'news'", score=2.0, weights={"topic": 3.0}),
    ...     ],
    ...     room=RecordIndex,
    ... )
    >>> event = Event("e1", {"age": 35, "topic": "sport"})
    >>> index.top(event, 5)
    [Best(subscription='s1', value=1.0)]
    >>> index.top(event, 5, "relaxed")
    [Best(subscription='s1', value=1.0), Best(subscription='s2', value=1.0)]
    """

    room_name: ClassVar[Literal["ranking"]] = RANKING

    def __init__(self, state: ScoreState, clauses: ClauseIndex | None, room: ContentRoom) -> None:
        self._state = state
        self._clauses = clauses
        self._room = room
        self._moments = Moments()
        self._stale = False

    @classmethod
    def build(
        cls, subscriptions: Iterable[Subscription], *, room: ContentRoom, relaxed: bool = True
    ) -> RankedIndex:
        """Index subscriptions; refuses bad filters, repeated ids and weights that do not fit.

        Without `relaxed` the clauses are left out, which take as much room and time again.
        """
        ids, ordered = sorted_by_id(subscriptions)
        scorings = made_of(ordered, lambda row: read_scoring(room, row.score, row.id))
        scores, by_event = split(scorings)
        keys, rows = rank(scores)
        by_key = {key: ordered[row] for key, row in zip(keys.tolist(), rows.tolist(), strict=True)}
        try:
            content = room.build(Subscription(key, each.filter, each.dialect) for key, each in by_key.items())
        except HeadgateError as error:
            raise_first({by_key[key].id: why for key, why in error.refused.items()})
            raise
        clauses = ClauseIndex.build(ordered, room=room) if relaxed else None
        return cls.from_contents(ids, scores, content, clauses, room=room, by_event=by_event)

    @classmethod
    def from_contents(
        cls,
        ids: Ids,
        scores: Floats64,
        content: Content,
        clauses: ClauseIndex | None,
        *,
        room: ContentRoom,
        by_event: EventScores | None = None,
    ) -> RankedIndex:
        """Take over filters that are indexed by rank: `content` has the ids that `keys.rank(scores)` gives.

        `scores` are in the order of `ids`, and so are the rows of `clauses` and of `by_event`.
        """
        state = ScoreState(RowIds(ids), scores, RankKeys(*rank(scores)), content, room, by_event)
        return cls(state, clauses, room)

    @classmethod
    def open(cls, path: Path, *, room: ContentRoom, verify: bool = True) -> RankedIndex:
        """Open a snapshot, memory-mapped; see `headgate.core.snapshot` for what is refused."""
        return open_with_inside(path, lambda place: cls._open(place, room, verify=verify))

    @classmethod
    def _open(cls, path: Path, room: ContentRoom, *, verify: bool) -> RankedIndex:
        frozen = base.open_frozen(path, verify=verify)
        content = room.open(path / base.CONTENT, verify=verify)
        clauses = ClauseIndex.open(path / CLAUSES, room=room, verify=verify) if frozen.relaxed else None
        keys = RankKeys(frozen.keys, frozen.rows)
        rows = RowIds(frozen.ids)
        return cls(ScoreState(rows, frozen.scores, keys, content, room, frozen.by_event), clauses, room)

    def save(self, path: Path, *, source: Mapping[str, object] | None = None) -> None:
        """Write a snapshot, compacted if need be; `source` says what it was built from."""
        with self._moments.lock:
            self.compact()
            state = self._state
            keys, rows = state.keys.live()
            inside: dict[str, Callable[[Path], None]] = {base.CONTENT: state.content.save}
            if self._clauses is not None:
                inside[CLAUSES] = self._clauses.save
            relaxed = self._clauses is not None
            frozen = base.Frozen(state.rows.base, state.scores, keys, rows, relaxed, state.by_event)
            base.save_frozen(path, frozen, inside, source)

    def __len__(self) -> int:
        """Count the subscriptions."""
        return len(self._state.rows)

    def __contains__(self, identity: Id) -> bool:
        """Tell whether there is a subscription of this id."""
        return self._moments.reading(lambda: self._state.rows.find(identity) >= 0)

    @property
    def ids(self) -> Ids:
        """Return the ids, in order."""

        def ask() -> Ids:
            rows = self._state.rows
            return rows.folded()[0].base if rows.changed else rows.base

        return self._moments.reading(ask)

    @property
    def content(self) -> Content:
        """Return the filters, which have their ranks in the place of ids."""
        return self._state.content

    @property
    def score_attributes(self) -> set[tuple[str, ...]]:
        """Return what scores that depend on the event look at."""
        return self._state.reader.attributes if self._state.by_event else set()

    @property
    def relaxed(self) -> bool:
        """Tell whether clauses are indexed, too."""
        return self._clauses is not None

    @property
    def clauses(self) -> ClauseIndex:
        """Return the clauses; refuses if there are none."""
        if self._clauses is None:
            raise SubscriptionError("the clauses are not indexed: build the index with relaxed=True")
        return self._clauses

    def score(self, identity: Id) -> Score:
        """Return the score of a subscription: a number, or an expression."""
        return self._moments.reading(lambda: self._state.score(self._state.rows.get(identity)))

    def filter(self, identity: Id) -> str:
        """Return the text of a subscription's filter."""
        return self._moments.reading(lambda: self._state.content.filter(self._state.key(identity)))

    def homes(self, ids: Sequence[Id]) -> list[tuple[Content, Id] | None]:
        """Find the filters of subscriptions in the content: by their ranks; None for one that is not here."""

        def ask() -> list[tuple[Content, Id] | None]:
            state = self._state
            return [
                (state.content, state.key(identity)) if state.rows.find(identity) >= 0 else None
                for identity in ids
            ]

        return self._moments.reading(ask)

    # Asking

    def match(self, event: Event) -> list[Id]:
        """List the ids of the matching subscriptions, sorted."""

        def ask() -> list[Id]:
            state = self._state
            rows = state.keys.rows(state.numbers(event))
            return state.rows.ids(rows[np.argsort(state.rows.places(rows))])

        return self._moments.reading(ask)

    @property
    def numbered(self) -> bool:
        """Tell whether ids are whole numbers rather than text."""
        return self.ids.numbered

    def ask(
        self, events: pa.RecordBatch | Sequence[Event], ids: pa.Array[Any], most: int = PAIRS
    ) -> Iterator[Portion]:
        """Match events in order, so few at a time that no more than `most` pairs can come of them."""
        for begin, end in self._steps(len(events), most):
            some = Asked(slice_of(events, begin, end), ids.slice(begin, end - begin))
            yield self._moments.reading(partial(self._matches, some)).moved(begin)

    def _matches(self, asked: Asked) -> Portion:
        state = self._state
        with state.naming():
            matched = batches.matched(asked, state.content)
        places, rows = batches.ranked(matched, state.keys)
        order = np.lexsort((state.rows.order()[rows], places))
        return Portion.of(places[order], state.rows.to_arrow(rows[order]))

    def top(
        self,
        event: Event,
        k: int,
        mode: str = EXACT,
        *,
        factors: Mapping[str, float] | None = None,
        admitted: Admitted | None = None,
    ) -> list[Best]:
        """List the best k for an event, equal ones by id.

        `factors` re-weigh attributes for this event, in mode "relaxed": 0 drops them. `admitted` tells of
        an id whether it may be in the answer.
        """
        check_asked(k, mode, factors)
        if mode == RELAXED:
            return self.clauses.top(event, k, factors=factors, admitted=admitted)

        def ask() -> list[Best]:
            state = self._state
            if state.by_event:
                rows, values = state.best(event, k, admitted)
            else:
                rows = state.first(event, k, admitted)
                values = state.scores[rows]
            scores: list[float] = values.tolist()
            return list(map(Best, state.rows.ids(rows), scores))

        return self._moments.reading(ask)

    def best(
        self,
        events: pa.RecordBatch | Sequence[Event],
        ids: pa.Array[Any],
        k: int,
        mode: str = EXACT,
        *,
        factors: Mapping[str, float] | None = None,
    ) -> Portion:
        """List the best k for each of some events, which are told of by their `ids`."""
        check_asked(k, mode, factors)
        asked = Asked(events, ids)
        if mode == RELAXED:
            return self.clauses.top_many(asked, k, factors=factors)

        def ask() -> Portion:
            state = self._state
            with state.naming():
                if state.by_event:
                    places, rows = batches.ranked(batches.matched(asked, state.content), state.keys)
                    terms = state.reader.many(asked.events)[:, places]
                    values = state.by_event.values(rows, state.scores, terms)
                    every = RankedMatches(places, rows, values)
                    ranked = batches.best(every, state.rows.order(), k)
                else:
                    places, rows = batches.first(asked, state.content, state.keys, k)
                    ranked = RankedMatches(places, rows, state.scores[rows])
            return Portion.of(ranked.events, state.rows.to_arrow(ranked.rows), ranked.values)

        return self._moments.reading(ask)

    def explain(self, event: Event, identity: Id) -> Verdict:
        """Say why an event matches a subscription or not, clause by clause."""
        return self._moments.reading(lambda: self._state.content.explain(event, self._state.key(identity)))

    def why_not(self, event: Event, limit: int = 10, within: int | None = None) -> list[Any]:
        """List the subscriptions that nearly matched, fewest failed clauses first; equal ones by rank."""

        def ask() -> list[Any]:
            state = self._state
            content: Any = state.content
            if not hasattr(content, "why_not"):
                raise SubscriptionError("near misses are known of filters over records only")
            misses = content.why_not(event, limit, within)
            rows = state.keys.rows(np.array([each.id for each in misses], np.int64))
            return [replace(each, id=state.rows.id(int(row))) for each, row in zip(misses, rows, strict=True)]

        return self._moments.reading(ask)

    def explain_rank(
        self,
        event: Event,
        identity: Id,
        k: int,
        mode: str = EXACT,
        *,
        factors: Mapping[str, float] | None = None,
    ) -> RankExplanation:
        """Say why a subscription has its rank, and what it lacked to enter the best k."""
        check_asked(k, mode, factors)
        if mode == RELAXED:
            return self.clauses.explain(event, identity, k, factors=factors)

        def ask() -> RankExplanation:
            state = self._state
            row = state.rows.get(identity)
            rows = state.keys.rows(state.numbers(event))
            ranked = state.valued(rows, event).first(len(rows), state.rows.places(rows))
            matching = [*map(Best, state.rows.ids(ranked.rows), ranked.values.tolist())]
            own = Best(identity, float(state.valued(np.array([row]), event).values[0]))
            verdict = state.content.explain(event, state.key(identity))
            return replace(explain_exact(matching, own, k, verdict), through=BY_RANK)

        return self._moments.reading(ask)

    # Changing

    def prepare(self, subscription: Subscription) -> tuple[Any, Any]:
        """Compile a filter for `subscribe`; refuses a bad one, and weights that do not fit its clauses."""
        with self._moments.lock:
            clauses = None if self._clauses is None else self._clauses.prepare(subscription)
            return clauses, self._state.prepare(subscription)

    def subscribe(self, subscription: Subscription, prepared: tuple[Any, Any] | None = None) -> None:
        """Add a subscription; refuses a bad filter, weights that do not fit, and an id that is here."""
        clauses, own = prepared or self.prepare(subscription)
        with self._moments.lock:
            self._state.rows.check_new(subscription.id)
            if self._clauses is not None:
                self._clauses.subscribe(subscription, clauses)
            with self._changing():
                self._state.add(subscription, *own)

    def unsubscribe(self, identity: Id) -> None:
        """Remove a subscription; refuses an id that is not here."""
        with self._moments.lock:
            with self._changing():
                self._state.remove(identity)
            if self._clauses is not None:
                self._clauses.unsubscribe(identity)

    def set_score(self, identity: Id, score: Score) -> None:
        """Give a subscription another score, and the place among the others that goes with it."""
        check_score(score, f"subscription {identity!r}")
        with self._changing():
            self._state.rescore(identity, score)

    def set_weights(self, identity: Id, weights: Weights | None) -> None:
        """Give the clauses of a subscription other weights."""
        self.clauses.set_weights(identity, weights)

    def compact(self) -> None:
        """Fold all changes into the arrays. Others may ask meanwhile, and changes wait."""
        with self._moments.lock:
            if self._clauses is not None:
                self._clauses.compact()
            if not self._stale:
                return
            self._state.content.compact()
            fresh = self._state.folded()
            with self._moments.changing():
                self._state = fresh
            self._stale = False

    @contextmanager
    def _changing(self) -> Iterator[None]:
        with self._moments.changing():
            self._stale = True
            yield
