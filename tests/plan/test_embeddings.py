"""The embedding graph: the same as asking about every pair, whatever the threads and blocks."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import numpy as np
import pytest

from headgate.plan.graphs import embeddings as module
from headgate.plan.graphs.embeddings import embedding_graph, find_classes, find_near, group_views
from tests.plan import reference
from tests.plan.graph_lists import rows_of, same
from tests.plan.set_views import SetViews, random_views
from tests.seeds import seeds

if TYPE_CHECKING:
    from numpy.typing import NDArray

pytestmark = pytest.mark.jit_off


@pytest.mark.parametrize("seed", seeds(20))
def test_it_is_what_asking_about_every_pair_gives(seed: int) -> None:
    """Folding, grouping and signatures leave nothing out and add nothing."""
    rng = random.Random(seed)
    views = random_views(rng, rng.choice([0, 1, 2, 30, 150]), rng.choice([2, 8, 30]))
    found = embedding_graph(views, threads=rng.choice([1, 2, 3]), spread=len(views) + 1)
    assert same(found, reference.embedding_graph(views))


@pytest.mark.parametrize("seed", seeds(5))
def test_blocks_and_room_for_pairs_do_not_show(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small blocks and little room give the same as large ones."""
    views = random_views(random.Random(seed), 120, 6)
    monkeypatch.setattr(module, "_BLOCK", 7)
    monkeypatch.setattr(module, "_PAIRS", 1)
    assert same(embedding_graph(views), reference.embedding_graph(views))


@pytest.mark.parametrize("seed", seeds(5))
def test_rows_of_some_targets(seed: int) -> None:
    """Rows of some targets are those of the whole graph; others are empty."""
    rng = random.Random(seed)
    views = random_views(rng, 80)
    some = np.array(rng.choices(range(80), k=15), np.int32)
    found = rows_of(embedding_graph(views, targets=some))
    for view, row in enumerate(rows_of(reference.embedding_graph(views))):
        assert found[view] == (row if view in some else {})


@pytest.mark.parametrize("seed", seeds(10))
def test_groups_near_each_other_are_those_of_the_trie(seed: int) -> None:
    """The look-up by the rarest label finds the subsets that the paper's trie finds."""
    views = random_views(random.Random(seed), 100, 12)
    groups, group_of = group_views(views, np.arange(100, dtype=np.int32))
    count = len(groups.starts) - 1
    sets = [groups.labels[groups.label_starts[g] : groups.label_starts[g + 1]].tolist() for g in range(count)]
    for view in range(100):
        begin, end = views.label_offsets[view], views.label_offsets[view + 1]
        assert sets[group_of[view]] == views.labels[begin:end].tolist()
    trie = reference.make_trie(enumerate(sets))
    near = np.empty(count, np.int32)
    for group in range(count):
        found = near[: find_near(groups, group, near)].tolist()
        assert sorted(found) == sorted(reference.subsets(trie, sets[group]))


@pytest.mark.parametrize("seed", seeds(10))
@pytest.mark.parametrize("spread", [1, 2, 5])
def test_large_classes_are_spread(seed: int, spread: int) -> None:
    """Each target has at most `spread` sources of a class, all of which embed, and no fewer than that."""
    rng = random.Random(seed)
    views = random_views(rng, 100, 3)
    classes = find_classes(views.equals)
    sizes = np.diff(classes.starts)
    whole = rows_of(reference.embedding_graph(views))
    for view, row in enumerate(rows_of(embedding_graph(views, spread=spread))):
        assert row.items() <= whole[view].items()
        own, before = classes.owner[view], classes.place[view]
        for other in {int(classes.owner[source]) for source in whole[view]}:
            taken = [source for source in row if classes.owner[source] == other]
            if other != own:
                assert len(taken) == min(spread, sizes[other])
            elif sizes[own] <= spread + 1:
                assert len(taken) == sizes[own] - 1
            else:
                assert len(taken) == min(spread, before)
                assert all(source < view for source in taken)
                assert not before or int(classes.members[classes.starts[own] + before - 1]) in taken


def test_members_of_a_class_are_used_alike() -> None:
    """Targets take turns in which members of a class are their sources."""
    views = SetViews.build([([1], [1])] * 12 + [([1, 2], [1])] * 6)
    graph = rows_of(embedding_graph(views, spread=4))
    used = [source for row in graph[12:] for source in row if source < 12]
    assert sorted(used) == sorted([*range(12)] * 2)


def test_an_error_of_the_content_room_comes_through() -> None:
    """What coverage raises in a thread is raised."""

    class Broken(SetViews):
        def coverage(
            self, sources: NDArray[np.int32], targets: NDArray[np.int32]
        ) -> tuple[NDArray[np.bool_], NDArray[np.uint64]]:
            raise ArithmeticError(f"no coverage of {len(sources)} and {len(targets)}")

    whole = random_views(random.Random(1), 50)
    broken = Broken(**{name: getattr(whole, name) for name in SetViews.__dataclass_fields__})
    with pytest.raises(ArithmeticError, match="no coverage"):
        embedding_graph(broken)


def test_spread_must_be_positive() -> None:
    """Without any copies views that are alike would be lost."""
    with pytest.raises(ValueError, match="spread is 0 and must be 1 or more"):
        embedding_graph(random_views(random.Random(1), 3), spread=0)
