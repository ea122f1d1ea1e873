"""The paper's running example (its figures 2 to 5) step by step, and what it proves, on random intervals.

The pictures are not in the paper's text; these ends are what the text needs. Interval i has rank i - 1.

    all       Example 2: nine distinct end points; 10, 30, 45, 75, 90 are some, Example 5 has the other four
    6, 7      Example 5: lowest over [0, 30] and [75, 100], and no wider, as nobody of 1 to 7 is below them
    3         Example 5: lowest over [45, 55], not left of 45, where it would hide 1; nobody is over [55, 65]
    1         Example 5: lowest over [30, 45]; Example 1: holds 50; so it ends at 55
              Example 4: what it shares with 9 meets nobody between them, so it begins at 30
    9         Example 2: is stored at [10, 30] and [30, 45] only
    4         Example 5: lowest over [65, 75], nobody over [55, 65]
    2 4 8 10  Example 2: hold between 75 and 90; given as 10, 2, 7, 4, 8, the order from the root down if 2 is
              beside 7, which is at [75, 100], 10 above them, and 4 and 8 end at 90
    5         Example 1: holds 20; Example 5: is not over [30, 45], where it would hide 1; so it ends at 30
    10        section 3.2.2: hides the end point 30; Example 1: begins before 1

The left ends of 2 (or 75), 5 (or 0), 8 (or 55, 65) and 10 (or 0) are our choice. Three things in the text do
not fit any such intervals. 50 is called the median end point, but 9 of the 20 lie below it: the median is 55,
and divides the intervals as 50 does. A first `getnext` for 90 cannot visit all of the scored R-tree of
figure 4, as 7 holds there; all answers to 90 do. What 1 shares with 9 does meet 3, 5 and 6, though only at
its ends: hence the edges (1, 5) and (3, 9) here.
"""

from __future__ import annotations

from itertools import combinations, groupby
from typing import TYPE_CHECKING

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headgate.papers.interval_tree import NO_NODE, IntervalTree
from headgate.papers.segment_tree import SegmentTree
from headgate.ranking.intervals.rtree import RTree, TreeWalk
from headgate.ranking.intervals.sopt import SoptTree, arrangement, look, next_mark, positions
from tests.ranking.reference import top_ranks
from tests.ranking.scored_cases import many, points, table, tables
from tests.seeds import examples, seeds

if TYPE_CHECKING:
    from headgate.ranking.boxes.ends import Probe
    from headgate.ranking.intervals.scored import Scored

INTERVALS = {
    1: (30, 55),
    2: (65, 100),
    3: (45, 55),
    4: (65, 90),
    5: (10, 30),
    6: (0, 30),
    7: (75, 100),
    8: (75, 90),
    9: (10, 45),
    10: (10, 100),
}
EXAMPLE = table([(low, high, -float(i)) for i, (low, high) in INTERVALS.items()])
END_POINTS = [0, 10, 30, 45, 55, 65, 75, 90, 100]
EDGES = [
    *[(1, 3), (1, 5), (1, 9), (2, 4), (2, 7), (3, 9), (3, 10), (4, 7)],
    *[(4, 10), (5, 6), (6, 9), (7, 8), (7, 10), (8, 10), (9, 10)],
]


def edges_of(scored: Scored) -> list[tuple[int, int]]:
    """List the edges of the constraint graph; two blocks of one interval give one twice."""
    view = look(*positions(scored))
    target = np.repeat(np.arange(len(scored.low)), np.diff(view.start))
    return sorted(zip(view.source.tolist(), target.tolist(), strict=False))


def constraint_graph(scored: Scored) -> list[tuple[int, int]]:
    return sorted(set(edges_of(scored)))


def visible_blocks(scored: Scored, count: int) -> list[tuple[float, float, int]]:
    """List the blocks that are visible from below the best `count` intervals: begin, end, and who is lowest.

    Those of nobody (-1) are given with the end points around them, or infinities.
    """
    points, first, last = positions(scored)
    view = look(points, first[:count], last[:count])
    begins, at = [], 0
    while at >= 0:
        begins.append(at)
        at = int(next_mark(view.marks, at + 1))
    edges = [-np.inf, *points.tolist(), np.inf]
    # A gap reaches from the point before it to the one behind it.
    return [
        (edges[(begin + 1) // 2], edges[(end + 1) // 2], int(view.owner[begin]))
        for begin, end in zip(begins, [*begins[1:], len(view.owner)], strict=True)
    ]


def leaves_visited(tree: SoptTree, x: float, y: float, k: int) -> int:
    walk = tree.walk(x, y)
    assert isinstance(walk, TreeWalk)
    walk.fill(np.empty(k, np.int32))
    return walk.leaves


def names(ranks: np.ndarray[tuple[int], np.dtype[np.int32]]) -> list[int]:
    return [int(r) + 1 for r in ranks]


def holding(q: float) -> list[int]:
    return names(top_ranks(EXAMPLE, q, q, 10).astype(np.int32))


def test_intervals() -> None:
    assert sorted({end for ends in INTERVALS.values() for end in ends}) == END_POINTS
    assert holding(50) == [1, 3, 10]
    assert holding(20) == [5, 6, 9, 10]
    assert holding(80) == [2, 4, 7, 8, 10]
    assert sorted([1, 3, 10], key=lambda i: INTERVALS[i][0]) == [10, 1, 3]
    assert sorted([1, 3, 10], key=lambda i: INTERVALS[i][1]) == [1, 3, 10]


def test_interval_tree() -> None:
    nodes = IntervalTree(EXAMPLE).nodes
    left, right = nodes.left[0], nodes.right[0]

    def held(node: int) -> list[int]:
        return names(nodes.rank[nodes.start[node] : nodes.start[node + 1]])

    assert (held(0), held(left), held(right)) == ([1, 3, 10], [5, 6, 9], [2, 4, 7, 8])
    assert [(nodes.left[v], nodes.right[v]) for v in (left, right)] == [(NO_NODE, NO_NODE)] * 2
    # The paper draws 50, 20 and 80; ours are end points, the upper medians of 20, of 6 and of 8.
    assert nodes.centre.tolist() == [55, 90, 30]
    for node, drawn in ((0, 50), (left, 20), (right, 80)):
        assert set(held(node)) <= set(holding(drawn))
    assert [(nodes.least[v], nodes.most[v]) for v in (0, left, right)] == [(10, 100), (0, 45), (65, 100)]


def extent(node: int) -> list[float]:
    """Return where a node of the segment tree begins, and what it ends before; a point has one number."""
    segments = SegmentTree(EXAMPLE).segments
    first = last = node
    while first < segments.leaves:
        first, last = 2 * first, 2 * last + 1
    begin, end = first - segments.leaves, last - segments.leaves + 1
    if end == begin + 1:
        return [float(segments.points[begin // 2])]
    ends = [*segments.points.tolist(), np.inf]
    return [ends[begin // 2], ends[min(end // 2, len(END_POINTS))]]


def test_segment_tree() -> None:
    segments = SegmentTree(EXAMPLE).segments
    assert segments.points.tolist() == END_POINTS
    held = {i: [v for v in range(2 * segments.leaves) if i - 1 in segments.list(v)] for i in INTERVALS}
    # Atomic segments are without their right ends here, so an interval has a point more than in the paper.
    assert sorted(extent(v) for v in held[9]) == [[10, 30], [30, 45], [45]]
    assert [extent(v // 2) for v in held[9] if len(extent(v)) == 2] == [[0, 30], [30, 55]]
    leaf = segments.leaves + 2 * END_POINTS.index(75) + 1
    path = [leaf >> up for up in range(segments.leaves.bit_length() - 1, -1, -1)]
    lists = [(extent(v), names(segments.list(v))) for v in path if len(segments.list(v))]
    assert lists == [([55, 100], [10]), ([75, 100], [2, 7]), ([75, 90], [4, 8])]
    out = np.empty(10, np.int32)
    for q in (75.5, 80, 89.5):
        assert names(out[: SegmentTree(EXAMPLE).walk(q, q).fill(out)]) == [2, 4, 7, 8, 10]


def test_r_trees() -> None:
    # Figure 3: 35 is in the extents of all three leaves, so each may have one of these.
    assert holding(35) == [1, 9, 10]
    tree = RTree(EXAMPLE, fanout=4)
    assert tree.tree.node_low.tolist() == [30, 0, 10]
    assert tree.tree.node_high.tolist() == [100, 100, 100]
    walk = tree.walk(90, 90)
    out = np.empty(10, np.int32)
    assert names(out[: walk.fill(out)]) == [2, 4, 7, 8, 10]
    assert walk.leaves == 3


def test_constraint_graph() -> None:
    edges = [(a + 1, b + 1) for a, b in constraint_graph(EXAMPLE)]
    assert edges == EDGES
    assert {(1, 3), (1, 9), (3, 10)} <= set(edges)
    assert (1, 10) not in edges


def test_arrangement() -> None:
    steps = [
        ([1, 2], 1),
        ([2, 3, 5], 5),
        ([2, 3, 6], 6),
        ([2, 3], 3),
        ([2, 9], 9),
        ([2], 2),
        ([4], 4),
        ([7], 7),
        ([8], 8),
        ([10], 10),
    ]
    left = set(INTERVALS)
    for free, taken in steps:
        assert [i for i in sorted(left) if not any(b == i and a in left for a, b in EDGES)] == free
        assert min(free, key=lambda i: INTERVALS[i][0]) == taken
        left.remove(taken)
    assert names(arrangement(EXAMPLE)) == [taken for _, taken in steps]
    tree = SoptTree(EXAMPLE, fanout=4)
    assert tree.tree.node_low.tolist() == [0, 10, 10]
    assert tree.tree.node_high.tolist() == [55, 100, 100]
    assert [leaves_visited(tree, q, q, 1) for q in (20, 60, 95)] == [1, 2, 1]


def test_visible_blocks() -> None:
    blocks = [(begin, end, owner + 1) for begin, end, owner in visible_blocks(EXAMPLE, 7)]
    inf = np.inf
    assert blocks == [
        (-inf, 0, 0),
        (0, 30, 6),
        (30, 45, 1),
        (45, 55, 3),
        (55, 65, 0),
        (65, 75, 4),
        (75, 100, 7),
        (100, inf, 0),
    ]
    assert visible_blocks(EXAMPLE, 0) == [(-inf, inf, -1)]
    assert 30 in {begin for begin, _, _ in visible_blocks(EXAMPLE, 8)}
    assert 30 not in {begin for begin, _, _ in visible_blocks(EXAMPLE, 10)}


def stretches(scored: Scored) -> tuple[list[float], list[set[int]]]:
    """Return the end points, and for each interval which points (even) and gaps behind them (odd) it has."""
    ends = sorted({*scored.low.tolist(), *scored.high.tolist()})
    place = {end: 2 * i for i, end in enumerate(ends)}
    both = zip(scored.low.tolist(), scored.high.tolist(), strict=True)
    return ends, [set(range(place[low], place[high] + 1)) for low, high in both]


@examples(200)
@given(tables(20))
def test_edges_are_those_of_the_definition(scored: Scored) -> None:
    _, has = stretches(scored)
    expected = [
        (a, b)
        for a, b in combinations(range(len(has)), 2)
        if (has[a] & has[b]).difference(*(has[c] for c in range(a + 1, b)))
    ]
    assert constraint_graph(scored) == expected
    assert len(expected) <= len(edges_of(scored)) <= 3 * len(has)


@examples(200)
@given(tables(20))
def test_leftmost_of_the_free_comes_next(scored: Scored) -> None:
    _, has = stretches(scored)
    order = arrangement(scored).tolist()
    left = set(range(len(has)))
    for taken in order:
        free = [b for b in left if not any(a < b and has[a] & has[b] for a in left)]
        assert taken == min(free, key=lambda r: (scored.low[r], r))
        left.remove(taken)
    assert not left
    assert all(
        order.index(a) < order.index(b) for a, b in combinations(range(len(has)), 2) if has[a] & has[b]
    )


@examples(200)
@given(tables(20), st.integers(0, 20))
def test_blocks_are_what_is_seen_from_below(scored: Scored, count: int) -> None:
    ends, has = stretches(scored)
    seen = has[:count]
    # Before the first end point nobody is, and behind the last one neither.
    owners = [-1] + [
        max((r for r, of in enumerate(seen) if p in of), default=-1) for p in range(2 * len(ends))
    ]
    expected = []
    edges = [-np.inf, *ends, np.inf]
    for owner, run in groupby(enumerate(owners), key=lambda pair: pair[1]):
        places = [place for place, _ in run]
        expected.append((edges[(places[0] + 1) // 2], edges[places[-1] // 2 + 1], owner))
    assert visible_blocks(scored, count) == expected


@examples(200)
@given(tables(40), points)
def test_leaves_visited(scored: Scored, question: Probe) -> None:
    tree = SoptTree(scored, fanout=4)
    there = len(top_ranks(scored, *question, len(scored.low)))
    for k in range(there + 1):
        assert leaves_visited(tree, *question, k) <= 2 * k
    # To know that there is no more, one hole behind the last at most.
    assert leaves_visited(tree, *question, there + 1) <= 2 * there + 1


def test_leaves_visited_of_many() -> None:
    for seed in seeds(4):
        scored = many(500, seed)
        assert len(edges_of(scored)) <= 3 * 500
        tree = SoptTree(scored, fanout=4)
        for q in np.arange(0.0, 300.0, 7.3).tolist():
            there = len(top_ranks(scored, q, q, 500))
            assert all(leaves_visited(tree, q, q, k) <= 2 * k for k in range(0, there + 1, 3))
