"""What is ranked by scores, as it is at one moment: filters by rank, the first matches are the best.

rows, scores      subscriptions and what they are ranked by
by_event          the scores that depend on the event; 0 in `scores`
keys              whole numbers in the order of ranks, of scores that do not
content           the filters, with their keys for ids
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headgate.contents.scores import ScoresEvents, read_scoring
from headgate.core.omission import Omission, RenamedOmissions
from headgate.core.subscription import Subscription
from headgate.ranking.answers import RankedRows
from headgate.ranking.filters.keys import RankKeys
from headgate.ranking.rows import admit
from headgate.ranking.scores.table import EventScores

if TYPE_CHECKING:
    from headgate.contents.protocol import Content, ContentRoom
    from headgate.contents.scores import Scoring, TermReader
    from headgate.core.arrays import Floats64, Ints
    from headgate.core.event import Event, Id
    from headgate.core.ranks import Score
    from headgate.ranking.rows import Admitted, RowIds


BITE = 64
"""How many matches are looked at together, at least, when not all are admitted."""


class ScoreState:
    """What is asked and changed; whoever holds it sees to it that nobody asks in the middle of a change."""

    def __init__(
        self,
        rows: RowIds,
        scores: Floats64,
        keys: RankKeys,
        content: Content,
        room: ContentRoom,
        by_event: EventScores | None = None,
    ) -> None:
        self.rows = rows
        self.keys = keys
        self.content = content
        self.by_event = by_event or EventScores.build([])
        self._scores = scores
        self._room = room
        self._reader: TermReader | None = None

    @property
    def scores(self) -> Floats64:
        """Return the scores by row."""
        return self._scores[: self.rows.count]

    @property
    def changed(self) -> bool:
        """Tell whether there is anything to fold."""
        return self.rows.changed or self.keys.changed

    def key(self, identity: Id) -> int:
        """Return the key of a subscription; refuses one that is not here."""
        return self.keys.key(self.rows.get(identity))

    def naming(self) -> RenamedOmissions:
        """Give filters that the content leaves out the ids of their subscriptions."""

        def named(omission: Omission) -> Omission:
            rows = self.keys.rows(np.array([omission.subscription], np.int64))
            return omission._replace(subscription=self.rows.id(int(rows[0])))

        return RenamedOmissions(named)

    def numbers(self, event: Event, count: int | None = None, at_least: int | None = None) -> Ints:
        """List the first `count` keys from `at_least` on whose filters hold."""
        with self.naming():
            return self.content.numbers(event, count, at_least)

    def first(self, event: Event, k: int, admitted: Admitted | None) -> Ints:
        """List the rows of the best k that match."""
        if admitted is None:
            return self.keys.rows(self.numbers(event, k))
        parts, left, at_least = [np.zeros(0, np.int64)], k, None
        while left:
            asked = max(left, BITE)
            keys = self.numbers(event, asked, at_least)
            rows = self.keys.rows(keys)
            parts.append(rows[admit(self.rows, rows, admitted)][:left])
            left -= len(parts[-1])
            if len(keys) < asked:
                break
            at_least = int(keys[-1]) + 1
        return np.concatenate(parts)

    def score(self, row: int) -> Score:
        """Return the score of a row as it was given."""
        scoring = self.by_event.scoring(row)
        return float(self._scores[row]) if scoring is None else written(self._room, scoring)

    @property
    def reader(self) -> TermReader:
        """Return what computes the terms of scores for events."""
        if self._reader is None:
            self._reader = scoring_room(self._room).term_reader(self.by_event.terms)
        return self._reader

    def best(self, event: Event, k: int, admitted: Admitted | None) -> RankedRows:
        """List the rows of the best k that match, and their values; for scores that depend on the event."""
        rows = self.keys.rows(self.numbers(event))
        if admitted is not None:
            rows = rows[admit(self.rows, rows, admitted)]
        likely = self.by_event.best(rows, self.scores, self.reader.one(event), k)
        return likely.first(k, self.rows.places(likely.rows))

    def valued(self, rows: Ints, event: Event) -> RankedRows:
        """Return what rows are worth for an event."""
        if not self.by_event:
            return RankedRows(rows, self.scores[rows])
        return RankedRows(rows, self.by_event.values(rows, self.scores, self.reader.one(event)[:, None]))

    # Changing

    def prepare(self, subscription: Subscription) -> tuple[float | Scoring, Any]:
        """Read a score and compile a filter, or refuse them."""
        scoring = read_scoring(self._room, subscription.score, subscription.id)
        return scoring, self.content.prepare(subscription)

    def add(self, subscription: Subscription, scoring: float | Scoring, prepared: Any) -> None:
        """Add a subscription."""
        row = self.rows.add(subscription.id)
        self._score(row, scoring)
        self._place(row, subscription.filter, subscription.dialect, prepared)

    def remove(self, identity: Id) -> None:
        """Remove a subscription."""
        row = self.rows.get(identity)
        self.content.unsubscribe(self.keys.remove(row))
        self.rows.remove(identity)

    def rescore(self, identity: Id, score: Score) -> None:
        """Move a subscription to where another score puts it."""
        scoring = read_scoring(self._room, score, identity)
        row = self.rows.get(identity)
        text = self.content.filter(self.keys.key(row))
        self.content.unsubscribe(self.keys.remove(row))
        self._score(row, scoring)
        self._place(row, text, self._room.dialect)

    def folded(self) -> ScoreState:
        """Return a state with all rows that are left built anew; this one is not changed. Keys stay."""
        rows, kept = self.rows.folded()
        keys, old = self.keys.live()
        fresh = np.zeros(self.rows.count, np.int64)
        fresh[kept] = np.arange(len(kept))
        by_event = self.by_event.kept(kept) if self.by_event else None
        ranks = RankKeys(keys, fresh[old])
        return ScoreState(rows, self._scores[kept], ranks, self.content, self._room, by_event)

    def _place(self, row: int, text: str, dialect: str, prepared: Any = None) -> None:
        """Index a filter under a key that stands where its row ranks."""
        key, moves = self.keys.add(row, self._rank)
        texts = [self.content.filter(move.old) for move in moves]
        for move in moves:
            self.content.unsubscribe(move.old)
        for move, moved in zip(moves, texts, strict=True):
            self.content.subscribe(Subscription(move.new, moved, self._room.dialect))
        self.content.subscribe(Subscription(key, text, dialect), prepared)

    def _rank(self, row: int) -> tuple[float, Id]:
        return -float(self._scores[row]), self.rows.id(row)

    def _score(self, row: int, given: float | Scoring) -> None:
        score = given if isinstance(given, float) else 0.0
        self.by_event.put(row, None if isinstance(given, float) else given)
        self._reader = None
        if row >= len(self._scores):
            self._scores = np.concatenate([self._scores, np.zeros(max(64, len(self._scores)))])
        elif not self._scores.flags.writeable:
            self._scores = self._scores.copy()
        self._scores[row] = score


def scoring_room(room: ContentRoom) -> ScoresEvents:
    """Return the room as one whose scores may be expressions."""
    assert isinstance(room, ScoresEvents), "scores were parsed by such a room"
    return room


def written(room: ContentRoom, scoring: Scoring) -> str:
    """Write a score that depends on the event as text."""
    return scoring_room(room).scoring_text(scoring)
