"""What is ranked by scores, as it is at one moment: filters by rank, the first matches are the best.

rows, scores      subscriptions and what they are ranked by
keys              whole numbers in the order of ranks
content           the filters, with their keys for ids
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headgate.core.omission import Omission, RenamedOmissions
from headgate.core.subscription import Subscription
from headgate.ranking.filters.keys import RankKeys
from headgate.ranking.rows import admit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.contents.protocol import Content
    from headgate.core.event import Event, Id
    from headgate.ranking.rows import Admitted, Rows

    Ints = NDArray[np.int64]

BITE = 64
"""How many matches are looked at together, at least, when not all are admitted."""


class ScoreState:
    """What is asked and changed; whoever holds it sees to it that nobody asks in the middle of a change.

    `dialect` is what the content room writes its filters in.
    """

    def __init__(
        self, rows: Rows, scores: NDArray[np.float64], keys: RankKeys, content: Content, dialect: str
    ) -> None:
        self.rows = rows
        self.keys = keys
        self.content = content
        self._scores = scores
        self._dialect = dialect

    @property
    def scores(self) -> NDArray[np.float64]:
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

        def named(found: Omission) -> Omission:
            rows = self.keys.rows(np.array([found.subscription], np.int64))
            return found._replace(subscription=self.rows.id(int(rows[0])))

        return RenamedOmissions(named)

    def numbers(self, event: Event, count: int | None = None, at_least: int | None = None) -> Ints:
        """List the first `count` keys from `at_least` on whose filters hold."""
        with self.naming():
            return self.content.numbers(event, count, at_least)

    def first(self, event: Event, k: int, admitted: Admitted | None) -> Ints:
        """List the rows of the best k that match."""
        if admitted is None:
            return self.keys.rows(self.numbers(event, k))
        found, left, at_least = [np.zeros(0, np.int64)], k, None
        while left:
            asked = max(left, BITE)
            keys = self.numbers(event, asked, at_least)
            rows = self.keys.rows(keys)
            found.append(rows[admit(self.rows, rows, admitted)][:left])
            left -= len(found[-1])
            if len(keys) < asked:
                break
            at_least = int(keys[-1]) + 1
        return np.concatenate(found)

    # Changing

    def add(self, subscription: Subscription) -> None:
        """Add a subscription."""
        row = self.rows.add(subscription.id)
        self._score(row, subscription.score)
        try:
            self._place(row, subscription.filter, subscription.dialect)
        except BaseException:
            self.rows.remove(subscription.id)
            raise

    def remove(self, identity: Id) -> None:
        """Remove a subscription."""
        row = self.rows.get(identity)
        self.content.unsubscribe(self.keys.remove(row))
        self.rows.remove(identity)

    def rescore(self, identity: Id, score: float) -> None:
        """Move a subscription to where another score puts it."""
        row = self.rows.get(identity)
        text = self.content.filter(self.keys.key(row))
        self.content.unsubscribe(self.keys.remove(row))
        self._score(row, score)
        self._place(row, text, self._dialect)

    def folded(self) -> ScoreState:
        """Return a state with all rows that are left built anew; this one is not changed. Keys stay."""
        rows, kept = self.rows.folded()
        keys, old = self.keys.live()
        fresh = np.zeros(self.rows.count, np.int64)
        fresh[kept] = np.arange(len(kept))
        return ScoreState(rows, self._scores[kept], RankKeys(keys, fresh[old]), self.content, self._dialect)

    def _place(self, row: int, text: str, dialect: str) -> None:
        """Index a filter under a key that stands where its row ranks."""
        key, moves = self.keys.add(row, self._rank)
        texts = [self.content.filter(move.old) for move in moves]
        for move in moves:
            self.content.unsubscribe(move.old)
        for move, moved in zip(moves, texts, strict=True):
            self.content.subscribe(Subscription(move.new, moved, self._dialect))
        try:
            self.content.subscribe(Subscription(key, text, dialect))
        except BaseException:
            self.keys.remove(row)
            raise

    def _rank(self, row: int) -> tuple[float, Id]:
        return -float(self._scores[row]), self.rows.id(row)

    def _score(self, row: int, score: float) -> None:
        if row >= len(self._scores):
            self._scores = np.concatenate([self._scores, np.zeros(max(64, len(self._scores)))])
        elif not self._scores.flags.writeable:
            self._scores = self._scores.copy()
        self._scores[row] = score
