"""Every structure of scored intervals against the obvious answer."""

from __future__ import annotations

import math
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.measure import memory_of
from headgate.errors import SubscriptionError
from headgate.papers import segment_tree
from headgate.papers.interval_tree import WIDTH, IntervalTree, IrTree
from headgate.papers.segment_tree import SegmentTree
from headgate.ranking.boxes.ends import OVERLAP, WITHIN, Probe, probe
from headgate.ranking.intervals.rtree import RTree
from headgate.ranking.intervals.scored import rank
from headgate.ranking.intervals.sopt import SoptTree
from headgate.ranking.intervals.structures import STRUCTURES, structure
from headgate.ranking.model import Interval
from tests.ranking.reference import top_ranks
from tests.ranking.scored_cases import ask, many, questions, table, tables
from tests.seeds import examples

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from headgate.ranking.intervals.scored import Scored, ScoredIndex

    Maker = Callable[[Scored], ScoredIndex]

pytestmark = pytest.mark.jit_off

# Narrow trees, too: with a few intervals the others have one node.
MAKERS: dict[str, Maker] = {
    **{name: make for name, make in STRUCTURES.items() if name not in ("scan", "cells")},
    "r-tree of fanout 2": partial(RTree, fanout=2),
    "sopt-r-tree of fanout 3": partial(SoptTree, fanout=3),
}
every_structure = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())


def check(make: Maker, scored: Scored, asked: Sequence[Probe], k: int) -> None:
    """Assert that many questions at once and walks give the best k."""
    index = make(scored)
    x, y = ask(asked)
    found = index.top_many(x, y, k)
    assert len(found.counts) == len(asked)
    out = np.empty(k, np.int32)
    for i, question in enumerate(asked):
        expected = top_ranks(scored, *question, k).tolist()
        assert found.ranks[i, : found.counts[i]].tolist() == expected, question
        assert out[: index.walk(*question).fill(out)].tolist() == expected, question


def best(make: Maker, scored: Scored, question: Probe) -> list[int]:
    """List the rows that hold, after checking them."""
    check(make, scored, [question], len(scored.low) + 1)
    return [int(scored.row[r]) for r in top_ranks(scored, *question, len(scored.low))]


@every_structure
@examples(100)
@given(tables(), st.lists(questions, max_size=6), st.sampled_from([0, 1, 2, 3, 50]))
def test_agrees(make: Maker, scored: Scored, asked: list[Probe], k: int) -> None:
    check(make, scored, asked, k)


@every_structure
@pytest.mark.parametrize(("size", "seed"), [(700, 0), (700, 1), (1500, 0)])
def test_more_than_one_node(make: Maker, size: int, seed: int) -> None:
    scored = many(size, seed)
    rng = np.random.default_rng(seed)
    low = np.round(rng.uniform(-9, 400, 40), 1)
    events = [
        Interval(a, a + length) for a, length in zip(low, rng.choice([0.0, 0.1, 20.0], 40), strict=True)
    ]
    asked = [probe(event, notion) for event in events for notion in (OVERLAP, WITHIN)]
    for k in (1, 20, 900):
        check(make, scored, [*asked, *(probe(float(a)) for a in low)], k)


@every_structure
@examples(40)
@given(tables(), questions, questions)
def test_next_in_turns(make: Maker, scored: Scored, one: Probe, other: Probe) -> None:
    index = make(scored)
    walks = {question: index.walk(*question) for question in (one, other)}
    found: dict[Probe, list[int]] = {question: [] for question in walks}
    for _ in range(len(scored.low) + 2):
        for question, walk in walks.items():
            found[question].append(walk.next())
    for question, ranks in found.items():
        expected = top_ranks(scored, *question, len(scored.low)).tolist()
        assert ranks == expected + [-1] * (len(scored.low) + 2 - len(expected))


@every_structure
@examples(40)
@given(tables(), questions, st.lists(st.integers(0, 4), max_size=12))
def test_fill_in_pieces(make: Maker, scored: Scored, question: Probe, sizes: list[int]) -> None:
    walk, expected = make(scored).walk(*question), top_ranks(scored, *question, len(scored.low)).tolist()
    for begin, end in pairwise(np.cumsum([0, *sizes])):
        out = np.empty(end - begin, np.int32)
        assert out[: walk.fill(out)].tolist() == expected[begin:end]


@every_structure
def test_pieces_of_many(make: Maker) -> None:
    scored = many(700, 1)
    walk, expected = make(scored).walk(150.0, 150.0), top_ranks(scored, 150.0, 150.0, 700).tolist()
    assert len(expected) > 20
    found: list[int] = []
    for size in (1, 2, 7, 0, 300, 700, 1):
        out = np.empty(size, np.int32)
        found += out[: walk.fill(out)].tolist()
    assert found == expected
    assert walk.next() == -1


@every_structure
def test_nothing_to_find(make: Maker) -> None:
    nothing, one = table([]), table([(2, 3, 0.5)])
    for question in (probe(2.0), probe(None), probe(Interval()), probe(Interval(), WITHIN)):
        check(make, nothing, [question], 3)
        assert make(nothing).walk(*question).next() == -1
    empty = np.zeros(0)
    for scored in (nothing, one):
        assert make(scored).top_many(empty, empty, 3).counts.tolist() == []


@every_structure
@pytest.mark.parametrize("count", [0, 1, 100])
def test_any_k(make: Maker, count: int) -> None:
    scored = table([(0, i, float(i % 5)) for i in range(count)])
    for k in (0, 1, count, count + 1, 2**31):
        found = make(scored).top_many(np.zeros(2), np.zeros(2), k)
        assert found.counts.tolist() == [min(k, count)] * 2
        assert found.ranks[1].tolist() == [*range(count)][:k]


@every_structure
def test_bytes(make: Maker) -> None:
    scored = many(700, 0)
    assert memory_of(make(scored)) >= 8 * 700


@every_structure
def test_equal_scores_go_by_place(make: Maker) -> None:
    scored = table([(0, 9, 1.0), (5, 5, 1.0), (0, 9, 1.0), (5, 9, 2.0), (0, 5, 1.0)])
    assert best(make, scored, probe(5)) == [3, 0, 1, 2, 4]


@every_structure
def test_shared_ends(make: Maker) -> None:
    scored = table([(0, 3, 4.0), (3, 6, 3.0), (3, 3, 2.0), (6, 9, 1.0)])
    assert best(make, scored, probe(3)) == [0, 1, 2]
    assert best(make, scored, probe(6)) == [1, 3]
    assert best(make, scored, probe(Interval(3, 6))) == [0, 1, 2, 3]
    assert best(make, scored, probe(Interval(3, 6), WITHIN)) == [1]
    assert best(make, scored, probe(Interval(3, 6, low_open=True, high_open=True))) == [1]


@every_structure
def test_empty_intervals_are_left_out(make: Maker) -> None:
    scored = table([(3, 2, 9.0), (math.inf, -math.inf, 8.0), (2, 3, 1.0)])
    assert len(scored.low) == 1
    assert best(make, scored, probe(Interval())) == [2]


@every_structure
def test_ends_of_eight_bytes(make: Maker) -> None:
    above, below = float(np.nextafter(3.0, 4.0)), float(np.nextafter(3.0, 2.0))
    scored = table([(0, below, 4.0), (3, 3, 3.0), (above, 5, 2.0), (0.1, 1e300, 1.0)])
    assert scored.kind is np.float64
    assert best(make, scored, probe(3)) == [1, 3]
    assert best(make, scored, probe(below)) == [0, 3]
    assert best(make, scored, probe(above)) == [2, 3]
    assert best(make, scored, probe(0.1)) == [0, 3]
    assert best(make, scored, probe(float(np.nextafter(0.1, 0)))) == [0]


@every_structure
def test_event_between_two_floats(make: Maker) -> None:
    after = float(np.nextafter(np.float32(3), np.float32(4)))
    scored = table([(0, 3, 4.0), (after, 9, 3.0), (3, after, 2.0), (0, 9, 1.0)])
    assert scored.kind is np.float32
    between = 3.0 + 2.0**-30
    assert best(make, scored, probe(between)) == [2, 3]
    assert best(make, scored, probe(Interval(between, between + 2.0**-31))) == [2, 3]
    assert best(make, scored, probe(Interval(between, between + 2.0**-31), WITHIN)) == [2, 3]
    assert best(make, scored, probe(Interval(3, between), WITHIN)) == [2, 3]
    assert best(make, scored, probe(Interval(3, between))) == [0, 2, 3]


@every_structure
def test_unbounded_and_infinite(make: Maker) -> None:
    scored = table([(-math.inf, 3, 4.0), (3, math.inf, 3.0), (-math.inf, math.inf, 2.0), (0, 9, 1.0)])
    assert best(make, scored, probe(-math.inf)) == [0, 2]
    assert best(make, scored, probe(math.inf)) == [1, 2]
    assert best(make, scored, probe(1e300)) == [1, 2]
    assert best(make, scored, probe(None)) == [2]
    assert best(make, scored, probe(Interval(low=9.5))) == [1, 2]
    assert best(make, scored, probe(Interval(), WITHIN)) == [2]
    assert best(make, scored, probe(Interval())) == [0, 1, 2, 3]


@every_structure
@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_one_zero(make: Maker, zero: float) -> None:
    scored = table([(zero, 1, 3.0), (-1, -zero, 2.0), (-zero, zero, 1.0)])
    for question in (probe(0.0), probe(-0.0), probe(Interval(-0.0, 0.0)), probe(Interval(0.0, -0.0), WITHIN)):
        assert best(make, scored, question) == [0, 1, 2]


def test_by_name() -> None:
    assert structure("scan") is structure("cells") is structure("auto")
    assert isinstance(structure("segment-tree")(table([(0, 3, 4.0)])), SegmentTree)
    with pytest.raises(SubscriptionError, match=r"no structure 'tree': use .*segment-tree"):
        structure("tree")


@examples(100)
@given(tables())
def test_segment_tree_covers_each_interval_once(scored: Scored) -> None:
    segments = SegmentTree(scored).segments
    segments.check()
    held: dict[int, set[int]] = {r: set() for r in range(len(scored.low))}
    for node in range(1, 2 * segments.leaves):
        for r in segments.list(node):
            below = {node}
            while min(below) < segments.leaves:
                below = {child for v in below for child in (2 * v, 2 * v + 1)}
            assert not held[r] & below
            held[r] |= below
    for r, leaves in held.items():
        first, last = np.searchsorted(segments.points, [scored.low[r], scored.high[r]])
        assert leaves == {segments.leaves + p for p in range(2 * first, 2 * last + 1)}


def test_segment_tree_refuses_more_than_it_can_number(monkeypatch: pytest.MonkeyPatch) -> None:
    scored = table([(0, 1, 1.0), (0, 2, 2.0)])
    entries = len(SegmentTree(scored).segments.ranks)
    monkeypatch.setattr(segment_tree, "ENTRIES", entries)
    SegmentTree(scored)
    monkeypatch.setattr(segment_tree, "ENTRIES", entries - 1)
    with pytest.raises(SubscriptionError, match=f"2 intervals has {entries} entries, above {entries - 1}"):
        SegmentTree(scored)


@examples(100)
@given(tables())
def test_interval_tree_halves(scored: Scored) -> None:
    IntervalTree(scored).nodes.check()


@pytest.mark.parametrize("seed", range(2))
def test_invariants_of_many(seed: int) -> None:
    scored = many(300, seed)
    SegmentTree(scored).segments.check()
    nodes = IntervalTree(scored).nodes
    nodes.check()
    assert len(nodes.centre) > 10


@pytest.mark.parametrize("count", [WIDTH, WIDTH + 1, 5 * WIDTH**2])
def test_an_ir_tree_has_extents_above_long_lists(count: int) -> None:
    rng = np.random.default_rng(count)
    low, high = -rng.integers(0, 3000, count) / 2, rng.integers(0, 3000, count) / 2
    scored = rank(low, high, rng.integers(0, 99, count).astype(float))
    tree = IrTree(scored)
    tree.extents.check(tree.nodes)
    assert (len(tree.extents.low) > 0) is (count > WIDTH)
    assert memory_of(tree) < 13 * count + 100
    asked = [probe(float(at)) for at in rng.integers(-1600, 1600, 20)]
    asked += [probe(Interval(x, x + 50), WITHIN) for x, _ in asked]
    for k in (1, 20, 10_000):
        check(IrTree, scored, asked, k)
