"""The IR-tree: as it is built, and after changes in place."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.errors import SubscriptionError
from headgate.ranking.boxes.ends import OVERLAP, WITHIN, Probe, probe
from headgate.ranking.intervals.ir_tree import IrTree
from headgate.ranking.intervals.scored import rank
from headgate.ranking.model import Interval
from tests.ranking.reference import top_ranks
from tests.ranking.scored_cases import LONG, SHORT, ask, many, questions, table, tables
from tests.seeds import examples

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from headgate.ranking.intervals.scored import Scored

ALL = 10_000
EVERYTHING = probe(Interval(), OVERLAP)


class Twin:
    """A tree, and beside it a plain list of what it must hold."""

    def __init__(self, scored: Scored, width: int) -> None:
        self.tree = IrTree(scored, width=width)
        columns = (scored.low, scored.high, scored.score, scored.row)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        self.held: dict[int, tuple[float, float, float, int]] = dict(enumerate(rows))
        self.later = max(scored.row.tolist(), default=-1) + 1

    def insert(self, low: float, high: float, score: float, order: int | None = None) -> int:
        if order is None:
            order = self.later
            self.later += 1
        item = self.tree.insert(low, high, score, order)
        assert item not in self.held
        self.held[item] = (low, high, score, order)
        return item

    def delete(self, item: int) -> None:
        self.tree.delete(item)
        del self.held[item]

    def set_score(self, item: int, score: float) -> None:
        self.tree.set_score(item, score)
        low, high, _, order = self.held[item]
        self.held[item] = (low, high, score, order)

    def ranked(self) -> list[int]:
        """List what holds something, the best first."""
        able = [item for item, (low, high, _, _) in self.held.items() if low <= high]
        return sorted(able, key=lambda item: (-self.held[item][2], self.held[item][3], item))

    def check(self, asked: Sequence[Probe], k: int = ALL) -> None:
        """Assert that the tree is whole, and answers as the list and as a new tree do."""
        self.tree.check()
        assert len(self.tree) == len(self.held)
        ranked = self.ranked()
        rows = np.array([self.held[item][:3] for item in ranked], np.float64).reshape(-1, 3)
        anew = IrTree(rank(*(rows[:, i].copy() for i in range(3))))
        xs, ys = ask(asked)
        found, fresh = (each.top_many(xs, ys, k) for each in (self.tree, anew))
        for i, (x, y) in enumerate(asked):
            expected = [item for item in ranked if self.held[item][0] <= x and self.held[item][1] >= y][:k]
            assert found.ranks[i, : found.counts[i]].tolist() == expected, (x, y)
            assert [ranked[rank] for rank in fresh.ranks[i, : fresh.counts[i]]] == expected
            out = np.empty(len(expected) + 1, np.int32)
            count = self.tree.walk(x, y).fill(out[: k + 1])
            assert out[: min(count, k)].tolist() == expected


def some_questions(rng: np.random.Generator, top: int, count: int = 6) -> list[Probe]:
    """Draw points, and events by both notions, and ask for everything once."""
    asked = [EVERYTHING, probe(None)]
    for _ in range(count):
        low = float(rng.integers(-2, 2 * top + 2)) / 2
        event = Interval(low, low + float(rng.choice([0.5, 3.0, top / 2])))
        asked += [probe(low), probe(event, OVERLAP), probe(event, WITHIN)]
    return asked


@examples(100)
@given(tables(40), st.lists(questions, max_size=6), st.sampled_from([0, 1, 3, 50]), st.sampled_from([4, 7]))
def test_narrow_trees_agree(scored: Scored, asked: list[Probe], k: int, width: int) -> None:
    tree = IrTree(scored, width=width)
    tree.check()
    xs, ys = ask(asked)
    found = tree.top_many(xs, ys, k)
    for i, (x, y) in enumerate(asked):
        assert found.ranks[i, : found.counts[i]].tolist() == top_ranks(scored, x, y, k).tolist()


@pytest.mark.parametrize("width", [4, 16, 32])
@pytest.mark.parametrize("seed", range(2))
def test_deep_trees_agree(width: int, seed: int) -> None:
    scored = many(1500, seed)
    tree = IrTree(scored, width=width)
    tree.check()
    asked = some_questions(np.random.default_rng(seed), 800, 20)
    xs, ys = ask(asked)
    for k in (1, 20, 2000):
        found = tree.top_many(xs, ys, k)
        for i, (x, y) in enumerate(asked):
            assert found.ranks[i, : found.counts[i]].tolist() == top_ranks(scored, x, y, k).tolist()


def test_a_walk_goes_on_where_it_stopped() -> None:
    scored = many(900, 1)
    walk, expected = IrTree(scored).walk(50.0, 40.0), top_ranks(scored, 50.0, 40.0, ALL).tolist()
    found = [walk.next() for _ in range(3)]
    out = np.empty(10, np.int32)
    while (count := walk.fill(out)) == len(out):
        found += out.tolist()
    assert [*found, *out[:count].tolist()] == expected
    assert walk.next() == -1
    assert walk.fill(np.empty(0, np.int32)) == 0


def test_bytes() -> None:
    """Intervals that meet are packed: 12 bytes each, and a thirty-second of that for each level above."""
    count = 20_000
    ends = np.arange(1.0, count + 1)
    tree = IrTree(rank(-ends, ends, np.zeros(count)))
    assert tree.nbytes < 12.6 * count


OPERATION = st.tuples(
    st.sampled_from(["insert", "insert", "delete", "score"]),
    st.sampled_from(LONG) | st.sampled_from(SHORT),
    st.sampled_from(SHORT),
    st.sampled_from([-2.5, 0.0, 1.0, 2.0]),
    st.integers(0, 5),
)


@pytest.mark.jit_off
@examples(150)
@given(
    tables(12), st.lists(OPERATION, max_size=60), st.lists(questions, max_size=5), st.sampled_from([2, ALL])
)
def test_any_changes(
    scored: Scored, operations: list[tuple[str, float, float, float, int]], asked: list[Probe], k: int
) -> None:
    twin = Twin(scored, 4)
    for operation, low, high, score, number in operations:
        items = sorted(twin.held)
        if operation == "insert" or not items:
            # Equal orders are decided by number.
            twin.insert(low, high, score, number)
        elif operation == "delete":
            twin.delete(items[number % len(items)])
        else:
            twin.set_score(items[number % len(items)], score)
    twin.check([*asked, EVERYTHING], k)


def draw_interval(rng: np.random.Generator, top: int) -> tuple[float, float]:
    """Draw a short or a long interval, now and then one without ends or one that holds nothing."""
    low = float(rng.integers(0, top))
    high = low + float(rng.integers(0, top if rng.random() < 0.3 else 3))
    chance = rng.random()
    if chance < 0.03:
        return -math.inf, high
    if chance < 0.06:
        return low, math.inf
    return (low, low - 1) if chance < 0.08 else (low, high)


@pytest.mark.parametrize(
    ("width", "size", "top", "scores"),
    [(4, 0, 40, 3), (4, 300, 2000, 50), (8, 500, 30, 1000), (16, 400, 100_000, 5)],
    ids=["from nothing", "many nodes", "few nodes", "disjoint"],
)
def test_thousands_of_changes(width: int, size: int, top: int, scores: int) -> None:
    """Grow and shrink by turns."""
    rng = np.random.default_rng(size)
    rows = [(*draw_interval(rng, top), float(rng.integers(scores))) for _ in range(size)]
    twin = Twin(table(rows), width)
    for turn in range(8):
        for _ in range(250):
            chance = rng.random()
            if not twin.held or chance < (0.65 if turn % 4 < 2 else 0.1):
                twin.insert(*draw_interval(rng, top), float(rng.integers(scores)))
                continue
            item = int(rng.choice(list(twin.held)))
            if chance < 0.8:
                twin.delete(item)
            else:
                twin.set_score(item, float(rng.integers(scores)))
        twin.check(some_questions(rng, top), int(rng.choice([1, 20, ALL])))


def rising(i: int) -> tuple[float, float]:
    return 2.0 * i, 2.0 * i + 1.0


def falling(i: int) -> tuple[float, float]:
    return -2.0 * i, 1.0 - 2.0 * i


def nested(i: int) -> tuple[float, float]:
    return -float(i), float(i)


def inwards(i: int) -> tuple[float, float]:
    low = 1000.0 - i if i % 2 else float(i)
    return low, low


@pytest.mark.parametrize("interval", [rising, falling, nested, inwards])
def test_what_comes_in_order_makes_no_deep_tree(interval: Callable[[int], tuple[float, float]]) -> None:
    """`check` asserts the balance, which is kept by building subtrees anew."""
    twin = Twin(table([]), 4)
    items = [twin.insert(*interval(i), float(i % 3)) for i in range(1000)]
    asked = [probe(interval(i)[0]) for i in range(0, 1000, 77)]
    twin.check([EVERYTHING, *asked])
    for item in items[:-5]:
        twin.delete(item)
    twin.check([EVERYTHING, *asked])


def test_scores_alone_may_change() -> None:
    """A new tree has full blocks only: the first scores that move into one split it."""
    twin = Twin(many(600, 0), 4)
    rng = np.random.default_rng(1)
    for item in rng.permutation(600).tolist():
        twin.set_score(item, float(rng.integers(0, 99)))
    twin.check([EVERYTHING, *some_questions(rng, 300)])


def test_room_is_used_again() -> None:
    twin = Twin(many(600, 0), 8)
    twin.set_score(0, 1.0)
    sizes = []
    for turn in range(6):
        gone = [(item, twin.held[item]) for item in list(twin.held)[turn::2]]
        for item, _ in gone:
            twin.delete(item)
        twin.tree.check()
        for _, row in gone:
            twin.insert(*row)
        sizes.append(twin.tree.nbytes)
    twin.check([EVERYTHING])
    assert len(twin.tree.score) == 600
    assert sizes[-1] == sizes[1]


def test_all_may_go_and_come() -> None:
    twin = Twin(many(300, 1), 4)
    for item in list(twin.held):
        twin.delete(item)
    twin.check([EVERYTHING, probe(3)])
    twin.insert(3.0, 3.0, 1.0)
    twin.check([EVERYTHING, probe(3), probe(4)])


def test_equal_scores_go_by_row_also_after_a_change() -> None:
    scored = table([(0, 9, 1.0), (0, 9, 2.0), (0, 9, 1.5)])
    assert scored.row.tolist() == [1, 2, 0]
    tree = IrTree(scored)
    tree.set_score(2, 2.0)
    later = tree.insert(0, 9, 2.0, 3)
    between = tree.insert(0, 9, 2.0, 1)
    assert tree.top_many(np.array([5.0]), np.array([5.0]), 9).ranks[0].tolist() == [2, 0, between, later, 1]


def test_an_order_of_ones_own_decides() -> None:
    scored = table([(0, 9, 1.0), (0, 9, 1.0)])
    tree = IrTree(scored, np.array([10, 20]))
    between = tree.insert(0, 9, 1.0, 15)
    assert tree.top_many(np.array([5.0]), np.array([5.0]), 9).ranks[0].tolist() == [0, between, 1]


def test_changes_leave_the_table_alone() -> None:
    scored = many(50, 0)
    scores = scored.score.copy()
    tree = IrTree(scored)
    tree.set_score(7, 99.0)
    tree.delete(3)
    assert tree.score[7] == 99.0
    assert (scored.score == scores).all()


@pytest.mark.parametrize("end", [0.1, 1e300, float(np.nextafter(3.0, 4.0)), 5e-324])
def test_an_end_of_8_bytes_widens_the_tree(end: float) -> None:
    twin = Twin(many(200, 0), 4)
    twin.insert(1.0, 2.0, 5.0)
    assert twin.tree.kind is np.float32
    twin.insert(end, end, 6.0)
    assert twin.tree.kind is np.float64
    near = [float(np.nextafter(end, side)) for side in (-math.inf, math.inf)]
    twin.check([EVERYTHING, *map(probe, [end, *near, 0.0, 2.0, 3.0])])
    twin.delete(0)
    twin.set_score(5, 7.0)
    twin.check([EVERYTHING, probe(end)])


def test_infinite_ends_need_no_8_bytes() -> None:
    twin = Twin(table([(0, 1, 1.0)]), 4)
    twin.insert(-math.inf, math.inf, 1.0)
    assert twin.tree.kind is np.float32
    twin.check([EVERYTHING, probe(None), probe(7), probe(math.inf), probe(-math.inf)])


def test_an_interval_that_holds_nothing_is_kept() -> None:
    twin = Twin(table([(0, 9, 1.0)]), 4)
    size = twin.tree.nbytes
    item = twin.insert(0.2, 0.1, 9.0)
    assert twin.tree.kind is np.float32
    twin.set_score(item, 10.0)
    twin.check([EVERYTHING, probe(0.15), probe(0.2)])
    twin.delete(item)
    twin.check([EVERYTHING])
    assert twin.insert(0, 1, 3.0) == item
    assert twin.tree.nbytes > size


@pytest.mark.parametrize("count", [0, 1, 100])
def test_any_k(count: int) -> None:
    twin = Twin(table([(0, i, float(i % 5)) for i in range(count)]), 4)
    twin.insert(0, 0, 1.0)
    for k in (0, 1, count, count + 1, 2**31):
        found = twin.tree.top_many(np.zeros(2), np.zeros(2), k)
        assert found.counts.tolist() == [min(k, count + 1)] * 2
        assert found.ranks[1].tolist() == twin.ranked()[:k]


@pytest.mark.parametrize(
    "change",
    [
        lambda tree: tree.insert(0, 1, 1.0, 0),
        lambda tree: tree.delete(0),
        lambda tree: tree.set_score(0, 1.0),
    ],
    ids=["insert", "delete", "score"],
)
def test_a_walk_that_was_overtaken_says_so(change: Callable[[IrTree], None]) -> None:
    tree = IrTree(many(100, 0))
    walk, unbegun = tree.walk(5.0, 5.0), tree.walk(5.0, 5.0)
    assert walk.next() >= 0
    change(tree)
    for each in (walk, unbegun):
        with pytest.raises(SubscriptionError, match="changed since this walk began: begin another"):
            each.next()
    assert tree.walk(5.0, 5.0).next() >= 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda tree: tree.insert(math.nan, 1, 1.0, 0), "the ends nan and 1: give numbers"),
        (lambda tree: tree.insert(0, math.nan, 1.0, 0), "the ends 0 and nan: give numbers"),
        (lambda tree: tree.insert(0, 1, math.nan, 0), "the score of the interval from 0 to 1 is nan"),
        (lambda tree: tree.insert(0, 1, 1.0, 2**63), "the order of the interval is 9223372036854775808"),
        (lambda tree: tree.set_score(0, math.inf), "the score of interval 0 is inf"),
        (lambda tree: tree.set_score(100, 1.0), "there is no interval 100"),
        (lambda tree: tree.delete(-1), "there is no interval -1"),
        (lambda tree: tree.delete(4), "there is no interval 4"),
    ],
)
def test_what_is_refused_changes_nothing(change: Callable[[IrTree], None], message: str) -> None:
    twin = Twin(many(100, 0), 4)
    twin.delete(4)
    version = twin.tree.version
    with pytest.raises(SubscriptionError, match=message):
        change(twin.tree)
    assert twin.tree.version == version
    twin.check([EVERYTHING])


def test_trees_that_cannot_be() -> None:
    scored = table([(0, 1, 1.0), (0, 1, 1.0)])
    with pytest.raises(SubscriptionError, match="blocks of 3 entries cannot be: give 4 to 256"):
        IrTree(scored, width=3)
    with pytest.raises(SubscriptionError, match="the order falls where scores are equal"):
        IrTree(scored, np.array([2, 1]))
    with pytest.raises(SubscriptionError, match="the order has 1 numbers for 2 intervals"):
        IrTree(scored, np.array([1]))
