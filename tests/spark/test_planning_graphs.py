"""Graphs found by workers: what one machine finds, to the bit, however targets are shared out."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import numpy as np
import pytest

from headgate.jobs import plan as plan_graphs
from headgate.plan.graphs import embeddings, joining
from headgate.plan.graphs.embeddings import EmbeddingFinder
from headgate.plan.graphs.rewritability import Search
from headgate.xml.views.views import XmlViews
from tests.lanes import some
from tests.plan.graph_lists import same
from tests.spark.jobs import runner_of
from tests.xml.random_views import view_set

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def draw_views(seed: int, count: int) -> XmlViews:
    """Draw views, a fifth of them written twice."""
    rng = random.Random(seed)
    drawn = view_set(rng, count)
    return XmlViews.build(drawn + rng.sample(drawn, count // 5))


@pytest.mark.parametrize("parts", some([1, 3, None], 1))
def test_it_is_what_one_machine_finds(session: SparkSession | None, parts: int | None) -> None:
    """Rewritings, target by target."""
    runner = runner_of(session)
    views = draw_views(1, 150)
    weights = np.array([random.Random(view).random() for view in range(len(views))])
    search = Search(k=10, quota=2, most_steps=40)
    joined = plan_graphs.joined_rewritings(runner, views, search, weights=weights, parts=parts, spread=2)
    alone = joining.join_targets(EmbeddingFinder(views, 2), search, weights=weights)
    assert same(joined.searched.rewritings, alone.searched.rewritings)
    assert joined.searched.cut_short.tolist() == alone.searched.cut_short.tolist()
    assert len(alone.searched.cut_short)
    assert len(alone.searched.rewritings.inputs) > 100
    graph = embeddings.embedding_graph(views, spread=2)
    assert joined.in_degrees.tolist() == alone.in_degrees.tolist() == np.diff(graph.offsets).tolist()
    assert joined.removed == alone.removed > 0


def test_more_parts_than_views_and_no_edges(session: SparkSession | None) -> None:
    """Parts may be empty, and graphs too."""
    runner = runner_of(session)
    views = draw_views(2, 5)
    found = plan_graphs.joined_rewritings(runner, views, parts=9)
    assert same(found.searched.rewritings, joining.join_targets(EmbeddingFinder(views)).searched.rewritings)
    nothing = XmlViews.build(draw_views(3, 5).patterns[:1])
    empty = plan_graphs.joined_rewritings(runner, nothing, parts=2)
    assert same(empty.searched.rewritings, joining.join_targets(EmbeddingFinder(nothing)).searched.rewritings)


def test_bounds_are_checked_before_workers_are_asked(session: SparkSession | None) -> None:
    """The same refusal as on one machine."""
    with pytest.raises(ValueError, match="k is 0 and must be 1 or more"):
        plan_graphs.joined_rewritings(runner_of(session), draw_views(2, 5), Search(k=0))
