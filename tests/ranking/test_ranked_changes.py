"""Changes: keys between keys, rows that are gone, readers that see one moment, nothing left by a refusal."""

from __future__ import annotations

import random
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate import Event, Subscription
from headgate.core.ids import Ids
from headgate.errors import FilterError, SubscriptionError
from headgate.ranking.filters import clause_index
from headgate.ranking.filters.index import RankedIndex
from headgate.ranking.filters.keys import GAP, LIMIT, RankKeys, rank
from headgate.ranking.rows import Moments, RowIds
from headgate.records.index.index import RecordIndex
from tests.seeds import examples

if TYPE_CHECKING:
    from collections.abc import Callable

EVENT = Event("e", {"age": 35, "topic": "news"})


class Shelf:
    """What a content room would hold: rows by key, moved as it is told; rows rank by their score."""

    def __init__(self, scores: list[float]) -> None:
        self.scores = list(scores)
        keys, rows = rank(np.array(scores))
        self.keys = RankKeys(keys, rows)
        self.held = dict(zip(keys.tolist(), rows.tolist(), strict=True))
        self.moves = 0

    def rank_of(self, row: int) -> tuple[float, int]:
        return -self.scores[row], row

    def add(self, score: float) -> None:
        self.scores.append(score)
        self.put(len(self.scores) - 1)

    def put(self, row: int) -> None:
        key, moves = self.keys.add(row, self.rank_of)
        for move in moves:
            assert self.held.pop(move.old) == move.row
        for move in moves:
            assert move.new not in self.held
            self.held[move.new] = move.row
        assert key not in self.held
        self.held[key] = row
        self.moves += len(moves)

    def remove(self, row: int) -> None:
        assert self.held.pop(self.keys.remove(row)) == row

    def check(self) -> None:
        """The keys in rising order are the rows in falling order of scores, and each knows the other."""
        keys = np.array(sorted(self.held), np.int64)
        rows = [self.held[key] for key in keys.tolist()]
        assert rows == sorted(rows, key=self.rank_of)
        assert self.keys.rows(keys).tolist() == rows
        assert [self.keys.key(row) for row in rows] == keys.tolist()
        live, owners = self.keys.live()
        assert (live.tolist(), owners.tolist()) == (keys.tolist(), rows)
        assert not len(keys) or (keys[0] >= -LIMIT and keys[-1] < 2 * LIMIT)


@examples(60)
@given(st.lists(st.sampled_from([0.0, 1.0, 2.0, 2.5]), max_size=8), st.randoms(use_true_random=False))
def test_keys_follow_random_changes(scores: list[float], rng: random.Random) -> None:
    shelf = Shelf(scores)
    for _ in range(60):
        here = sorted(shelf.held.values())
        what = rng.randrange(3)
        if what == 0 or not here:
            shelf.add(rng.choice([0.0, 1.0, 2.0, rng.random()]))
        elif what == 1:
            shelf.remove(rng.choice(here))
        else:
            row = rng.choice(here)
            shelf.remove(row)
            shelf.scores[row] = rng.choice([0.0, 1.0, 2.0])
            shelf.put(row)
    shelf.check()


@pytest.mark.parametrize(
    "next_score", [lambda i: 1 + i, lambda i: -1 - i, lambda _: 0.5], ids=["up", "down", "same"]
)
def test_a_gap_that_is_used_up_is_spread(next_score: Callable[[int], float]) -> None:
    """Between two neighbours, always at the same end: what would use up a gap after 32."""
    count = 3_000
    shelf = Shelf([1e9, -1e9, *[-2e9] * 50])
    for i in range(count):
        shelf.add(next_score(i))
        if i % 500 == 0:
            shelf.check()
    shelf.check()
    assert 0 < shelf.moves < 40 * count


def test_first_and_last_places() -> None:
    shelf = Shelf([])
    for score in (0.0, 1.0, -1.0, 2.0, -2.0):
        shelf.add(score)
    shelf.check()
    assert shelf.moves == 0
    keys = np.array([-LIMIT + 1, LIMIT - 1], np.int64)
    end = Shelf([2.0, 1.0])
    end.keys, end.held = RankKeys(keys, np.array([0, 1])), dict(zip(keys.tolist(), [0, 1], strict=True))
    for i in range(200):
        end.add(3.0 + i)
        end.add(-3.0 - i)
    end.check()


def test_rows() -> None:
    rows = RowIds(Ids.of(["b", "d", "f"]))
    assert [rows.add(each) for each in ("e", "a", "g")] == [3, 4, 5]
    assert np.argsort(rows.order()).tolist() == [4, 0, 1, 3, 2, 5]
    assert (rows.remove("d"), rows.remove("e"), rows.find("d"), len(rows)) == (1, 3, -1, 4)
    rows.add("d")
    assert (rows.find("d"), rows.id(6), rows.changed) == (6, "d", True)
    folded, kept = rows.folded()
    assert list(folded.base) == ["a", "b", "d", "f", "g"]
    assert kept.tolist() == [4, 0, 6, 2, 5]
    assert not folded.changed
    many = RowIds(Ids.of(range(200)))
    assert many.ids(np.arange(200)) == list(range(200))
    for n in range(200, 400):
        many.add(n)
    assert not many.gone.any()
    assert many.ids(np.arange(399, -1, -1)) == list(range(399, -1, -1))


def test_readers_ask_again_until_nothing_was_changed() -> None:
    moments, asked = Moments(), []

    def ask() -> int:
        asked.append(moments.count)
        if len(asked) == 1:
            with moments.changing(), moments.changing():
                pass
        if len(asked) == 2:
            moments.count += 2
            raise KeyError("half of a change")
        return moments.count

    assert moments.reading(ask) == 4
    assert asked == [0, 2, 4]
    with pytest.raises(ValueError, match="wrong in itself"):
        moments.reading(lambda: int("wrong in itself"))


def test_threads_see_every_subscription_at_every_moment() -> None:
    """Scores and weights change all the time: all still match, each once, in order."""
    count = 30
    index = RankedIndex.build(
        [Subscription(n, "age > 30 AND topic = 'news'", score=float(n % 3)) for n in range(count)],
        room=RecordIndex,
    )
    done = threading.Event()
    wrong: list[object] = []

    def read() -> None:
        while not done.is_set():
            for mode in ("exact", "relaxed"):
                found = index.top(EVENT, 100, mode)
                order = [(-best.value, best.subscription) for best in found]
                if len({best.subscription for best in found}) != count or order != sorted(order):
                    wrong.append(found)
            if index.match(EVENT) != list(range(count)):
                wrong.append(index.match(EVENT))

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    rng = random.Random(1)
    for step in range(400):
        index.set_score(rng.randrange(count), rng.choice([0.0, 1.0, rng.random()]))
        index.set_weights(rng.randrange(count), [rng.random(), 1.0])
        if step % 100 == 50:
            index.compact()
    done.set()
    for thread in threads:
        thread.join()
    assert not wrong


def test_later_rows_are_folded_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clause_index, "FOLD_AFTER", 10)
    index = RankedIndex.build([Subscription(0, "age > 30")], room=RecordIndex)
    for n in range(1, 60):
        index.subscribe(Subscription(n, f"age > {n}", score=n))
        if n % 3 == 0:
            index.unsubscribe(n)
    expected = [n for n in range(60) if n < 35 and (n % 3 or n == 0)]
    assert [best.subscription for best in index.top(EVENT, 100, "relaxed")] == expected
    assert [best.subscription for best in index.top(EVENT, 100)] == sorted(expected, reverse=True)


def test_clauses_that_no_filter_has_are_dropped_by_compaction() -> None:
    index = RankedIndex.build(
        [Subscription(n, f"age > {n} AND topic = 'news'") for n in range(5)], room=RecordIndex
    )
    assert index.clauses.distinct == 6
    for n in (1, 3):
        index.unsubscribe(n)
    assert index.clauses.distinct == 6
    index.compact()
    assert index.clauses.distinct == 4
    index.subscribe(Subscription(9, "age > 1 AND age > 2"))
    assert index.clauses.distinct == 5
    assert [best.value for best in index.top(EVENT, 10, "relaxed")] == [2.0] * 4
    index.compact()
    assert [best.value for best in index.top(EVENT, 10, "relaxed", factors={"topic": 0})] == [
        2.0,
        1.0,
        1.0,
        1.0,
    ]


@pytest.mark.parametrize(
    ("refused", "error"),
    [
        (Subscription("b", "age +"), FilterError),
        (Subscription("b", "age > 3", weights=[1, 2]), SubscriptionError),
        (Subscription("a", "age > 3"), SubscriptionError),
        (Subscription(3, "age > 3"), SubscriptionError),
        (Subscription("\ud800", "age > 3"), SubscriptionError),
    ],
)
def test_a_refusal_leaves_nothing_behind(refused: Subscription, error: type[Exception]) -> None:
    index = RankedIndex.build([Subscription("a", "age > 30", score=1.0)], room=RecordIndex)
    with pytest.raises(error):
        index.subscribe(refused)
    index.subscribe(Subscription("b", "age > 30", score=5.0))
    assert len(index) == 2
    for mode in ("exact", "relaxed"):
        assert sorted(best.subscription for best in index.top(EVENT, 5, mode)) == ["a", "b"]
    index.compact()
    assert [best.value for best in index.top(EVENT, 5)] == [5.0, 1.0]


class Failing(RecordIndex):
    """A room that refuses some filters only when they are subscribed."""

    def prepare(self, subscription: Subscription) -> tuple[str, Any]:
        """Refuse one text as a whole, and take its clauses."""
        if subscription.filter == "age > 3 AND age > 4":
            raise FilterError("no room", subscription.filter, None)
        return super().prepare(subscription)


def test_a_filter_that_the_content_room_refuses_late() -> None:
    index = RankedIndex.build([Subscription("a", "age > 30", score=1.0)], room=Failing)
    with pytest.raises(FilterError, match="no room"):
        index.subscribe(Subscription("b", "age > 3 AND age > 4", score=5.0))
    assert (len(index), "b" in index, "b" in index.clauses) == (1, False, False)
    index.subscribe(Subscription("b", "age > 3", score=0.5))
    assert [best.subscription for best in index.top(EVENT, 5)] == ["a", "b"]


def test_a_score_moves_one_subscription_only() -> None:
    index = RankedIndex.build([Subscription(n, "age > 30", score=n) for n in range(4)], room=RecordIndex)
    for score, order in ((1.5, [3, 2, 0, 1]), (9.0, [0, 3, 2, 1]), (-9.0, [3, 2, 1, 0]), (2.0, [3, 0, 2, 1])):
        index.set_score(0, score)
        assert [best.subscription for best in index.top(EVENT, 5)] == order
        assert index.score(0) == score
    assert GAP == 2**32
