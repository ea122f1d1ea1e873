"""The paper's figures 4, 7, 9 and 10, step by step.

The pictures are not in the paper's text, so the edges here are those that its tables and captions need.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from headgate.papers.evaluators import BY_NAME, dag, dag_skip, general, scc_skip

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headgate.papers.evaluators import Sets


@dataclass
class Drawing:
    """A graph with numbers as in a figure; `components` has the first number of each component."""

    edges: dict[int, list[int]]
    components: list[int] = field(default_factory=list)

    def children(self, vertex: int) -> list[int]:
        return self.edges.get(vertex, [])

    def component(self, vertex: int) -> int:
        return max(i for i, first in enumerate(self.components) if first <= vertex)

    def first_of(self, component: int) -> int:
        return self.components[component]


@dataclass
class Labels:
    """An index over label sets that notes which nodes it gave."""

    labels: dict[int, set[str]]
    query: set[str]
    how: str
    given: list[int] = field(default_factory=list)

    def match(self, vertex: int) -> bool:
        labels = self.labels[vertex]
        return labels <= self.query if self.how == "subset" else bool(labels & self.query)

    def all(self) -> list[int]:
        return [vertex for vertex in sorted(self.labels) if self.match(vertex)]

    def next(self, at_least: int) -> int | None:
        found = next((vertex for vertex in self.all() if vertex >= at_least), None)
        if found is not None:
            self.given.append(found)
        return found


class Table:
    """The rows of a figure's table as an evaluator goes through them."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, set[int], set[int], set[int]]] = []

    def __call__(self, n: int, sets: Sets) -> None:
        self.rows.append((n, set(sets.valid), set(sets.reachable), set(sets.result)))


def labelled(valid: Iterable[int], count: int, how: str) -> Labels:
    good, bad = ({"A", "B"}, {"D", "E"}) if how == "intersects" else ({"A", "C"}, {"A", "D"})
    return Labels({n: good if n in set(valid) else bad for n in range(count)}, {"A", "B", "C"}, how)


FIGURE_4 = Drawing({0: [1, 4, 5], 1: [2, 3], 4: [7], 5: [6, 7], 6: [8]})


def test_figure_4() -> None:
    table, index = Table(), labelled({2, 3, 5, 6, 8}, 9, "subset")
    assert list(dag(FIGURE_4, index, 0, table)) == [5, 6, 8]
    assert table.rows == [
        (0, set(), {1, 4, 5}, set()),
        (2, {2}, {1, 4, 5}, set()),
        (3, {2, 3}, {1, 4, 5}, set()),
        (5, {2, 3, 5}, {1, 4, 5, 6, 7}, {5}),
        (6, {2, 3, 5, 6}, {1, 4, 5, 6, 7, 8}, {5, 6}),
        (8, {2, 3, 5, 6, 8}, {1, 4, 5, 6, 7, 8}, {5, 6, 8}),
    ]


def test_figure_5_skips_node_3() -> None:
    index = labelled({2, 3, 5, 6, 8}, 9, "subset")
    assert list(dag_skip(FIGURE_4, index, 0)) == [5, 6, 8]
    assert index.given == [2, 5, 6, 8]


def test_figure_7() -> None:
    drawing = Drawing({3: [4, 7, 8], 7: [3], 8: [0, 1], 1: [8], 2: [5], 5: [6], 6: [5, 8]})
    table, index = Table(), labelled({1, 2, 5, 6, 8}, 9, "intersects")
    assert list(general(drawing, index, 3, table)) == [8, 1]
    assert table.rows == [
        (3, set(), {4, 7, 8}, set()),
        (1, {1}, {4, 7, 8}, set()),
        (2, {1, 2}, {4, 7, 8}, set()),
        (5, {1, 2, 5}, {4, 7, 8}, set()),
        (6, {1, 2, 5, 6}, {4, 7, 8}, set()),
        (8, {1, 2, 5, 6, 8}, {0, 1, 4, 7, 8}, {1, 8}),
    ]


# Figure 7 with numbers 1.1, 1.2 | 2.1 | 3.1, 3.2 | 4.1, 4.2 | 5.1 | 6.1, in this order:
# the source and 7, then 2, then 5 and 6, then 1 and 8, then 0, then 4.
FIGURE_9 = Drawing(
    {0: [8, 1, 6], 1: [0], 2: [3], 3: [4], 4: [3, 6], 6: [7, 5], 5: [6]},
    components=[0, 2, 3, 5, 7, 8],
)


def test_figure_9() -> None:
    table, index = Table(), labelled({5, 2, 3, 4, 6}, 9, "intersects")
    assert list(scc_skip(FIGURE_9, index, 0, table)) == [6, 5]
    assert index.given == [2, 5, 6], "3.1 and 3.2 are skipped"
    assert table.rows == [
        (0, set(), {1, 6, 8}, set()),
        (2, set(), {1, 6, 8}, set()),
        (5, {5}, {1, 6, 8}, set()),
        (6, {5, 6}, {1, 5, 6, 7, 8}, {5, 6}),
    ]


def test_the_line_that_figure_8_lost() -> None:
    """Node 2 is reachable only through 1, and the index gives it after 1: without the line it is lost."""
    drawing = Drawing({0: [1], 1: [2], 2: [1]}, components=[0, 1])
    assert list(scc_skip(drawing, labelled({1, 2}, 3, "subset"), 0)) == [1, 2]


@pytest.mark.parametrize(("backwards", "asked"), [(True, 9), (False, 1)])
def test_figure_10(*, backwards: bool, asked: int) -> None:
    """A ring: numbered against its direction the first result comes last, with it at once."""
    order = list(range(9, 0, -1)) if backwards else list(range(1, 10))
    edges = {0: [order[0]]} | {a: [b] for a, b in zip(order, [*order[1:], order[0]], strict=True)}
    index = labelled(set(order), 10, "subset")
    found = scc_skip(Drawing(edges, components=[0, 1]), index, 0)
    assert next(found) == order[0]
    assert len(index.given) == asked


@pytest.mark.parametrize("name", [name for name in BY_NAME if not name.startswith("dag")])
def test_every_evaluator_on_figure_7(name: str) -> None:
    index = labelled({5, 2, 3, 4, 6}, 9, "intersects")
    assert set(BY_NAME[name](FIGURE_9, index, 0)) == {5, 6}
