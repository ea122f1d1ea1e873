"""Shards: together they answer as the whole graph, and none of them has what belongs to another."""

from __future__ import annotations

import random
import shutil
from typing import TYPE_CHECKING

import numpy as np
import pytest

from headgate import Edge, Event, Node, Subscription
from headgate.core.ids import Ids
from headgate.core.snapshot import shard_places
from headgate.errors import GraphError, SnapshotError
from headgate.graph.build.sharding import homes, save_shards, shard
from headgate.graph.build.tables import from_models
from headgate.graph.index import GraphIndex
from headgate.records.index.index import RecordIndex
from tests.graph.random_graphs import SHAPES, draw_event, draw_graph

if TYPE_CHECKING:
    from pathlib import Path

    from headgate.graph.model import Parts

pytestmark = pytest.mark.jit_off

NODES = [
    Node("pub"),
    Node("net", "topic = 'sport'", subscription="watch"),
    *(Node(f"adv-{n}", subscription=f"s-{n}") for n in range(20)),
    Node("shelf"),
    Node("lonely"),
]
EDGES = [
    Edge("pub", "net"),
    *(Edge("net", f"adv-{n}", "age > 3" if n % 2 else None) for n in range(20)),
    Edge("net", "shelf"),
]
HUNG = [Subscription(f"h-{n}", f"age = {n}", node="shelf") for n in range(6)]


def whole() -> Parts:
    return from_models(NODES, EDGES, HUNG)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("count", [1, 2, 5])
def test_shards_answer_as_the_whole(shape: str, count: int) -> None:
    rng = random.Random(f"{shape}{count}")
    drawn = draw_graph(rng, shape, 40)
    parts = from_models(drawn.nodes, drawn.edges, drawn.subscriptions)
    graph = GraphIndex.from_parts(parts, RecordIndex)
    shards = [GraphIndex.from_parts(each, RecordIndex) for each in shard(parts, count)]
    for each in shards:
        each.base.arrays.check()
    for number in range(40):
        source = str(rng.choice(drawn.nodes).id)
        event = draw_event(rng, source, number)
        homely = [each for each in shards if source in each]
        assert homely
        found = [identity for each in homely for identity in each.match(event)]
        assert len(set(found)) == len(found)
        assert sorted(found) == graph.match(event)


def test_who_is_where() -> None:
    shards = shard(whole(), 4)
    everywhere = {"pub", "net"}
    assert all(everywhere < set(each.node_ids) for each in shards)
    served = [identity for each in shards for identity in each.subscription_ids]
    assert sorted(served) == sorted([f"s-{n}" for n in range(20)] + [f"h-{n}" for n in range(6)] + ["watch"])
    leaves = [node for each in shards for node in each.node_ids if str(node).startswith("adv")]
    assert sorted(leaves) == sorted(f"adv-{n}" for n in range(20))
    # A node that leads nowhere and serves nobody may still be a source.
    assert sum("lonely" in set(each.node_ids) for each in shards) == 1
    for each in shards:
        ids = list(each.subscription_ids)
        own = {ids[place] for place in each.node_subscription[each.node_subscription >= 0].tolist()}
        hung = {ids[place] for place in each.hang_subscription.tolist()}
        assert own | hung == set(ids)
        hangs = any(str(identity).startswith("h-") for identity in ids)
        assert ("shelf" in set(each.node_ids)) is hangs
    assert sum(len(each.edge_source) for each in shards) < 4 * len(EDGES)


def test_an_intermediary_serves_on_one_shard_and_passes_on_all() -> None:
    shards = [GraphIndex.from_parts(each, RecordIndex) for each in shard(whole(), 3)]
    sport = Event("e", {"topic": "sport", "age": 5}, source="pub")
    found = [each.match(sport) for each in shards]
    assert sum("watch" in each for each in found) == 1
    assert sorted(each for part in found for each in part) == sorted(
        ["watch", *(f"s-{n}" for n in range(20)), "h-5"]
    )
    news = Event("e", {"topic": "news", "age": 5}, source="pub")
    assert [each.match(news) for each in shards] == [[], [], []]


def test_a_home_depends_on_the_id_alone() -> None:
    few, many = Ids.of(["b", "x"]), Ids.of(sorted({"a", "b", "x", *map(str, range(100))}))
    places = dict(zip(many, homes(many, 7).tolist(), strict=True))
    assert homes(few, 7).tolist() == [places["b"], places["x"]]


@pytest.mark.parametrize("ids", [Ids.of(range(0, 80_000, 8)), Ids.of(f"adv-{n:06}" for n in range(10_000))])
def test_shards_are_about_as_large(ids: Ids) -> None:
    sizes = np.bincount(homes(ids, 16), minlength=16)
    assert sizes.min() > 500
    assert sizes.max() < 750


@pytest.mark.parametrize("count", [0, -1, 1001])
def test_a_number_of_shards_that_cannot_be(count: int) -> None:
    with pytest.raises(GraphError, match=f"{count} shards: give a number from 1 to 1,000"):
        shard(whole(), count)


def test_more_shards_than_subscriptions() -> None:
    parts = from_models([Node("a"), Node("b", subscription=7)], [Edge("a", "b")])
    shards = shard(parts, 9)
    assert [list(each.subscription_ids) for each in shards].count([]) == 8
    assert all(each.subscription_ids.numbered for each in shards)
    graphs = [GraphIndex.from_parts(each, RecordIndex) for each in shards]
    assert [found for each in graphs for found in each.match(Event(1, {}, source="a"))] == [7]


def test_the_empty_graph() -> None:
    assert [len(each.node_ids) for each in shard(from_models([], []), 3)] == [0, 0, 0]


def test_a_snapshot_of_shards(tmp_path: Path) -> None:
    def save(parts: Parts, place: Path) -> None:
        GraphIndex.from_parts(parts, RecordIndex).save(place)

    save_shards(tmp_path / "graph", whole(), 3, save, source={"nodes": "nodes.jsonl"})
    places = shard_places(tmp_path / "graph")
    assert [place.name for place in places] == ["shard-000", "shard-001", "shard-002"]
    event = Event("e", {"topic": "sport", "age": 5}, source="pub")
    graphs = [GraphIndex.open(place, room=RecordIndex) for place in places]
    found = [identity for graph in graphs for identity in graph.match(event)]
    assert sorted(found) == GraphIndex.from_parts(whole(), RecordIndex).match(event)
    with pytest.raises(SnapshotError, match="is a snapshot of 'shards', not of 'graph'"):
        GraphIndex.open(tmp_path / "graph", room=RecordIndex)


def test_shards_of_another_graph_are_refused(tmp_path: Path) -> None:
    def save(parts: Parts, path: Path) -> None:
        GraphIndex.from_parts(parts, RecordIndex).save(path)

    for name, text in (("one", "x = 1"), ("two", "x = 2")):
        nodes = [Node("p"), Node("a", text, subscription="s")]
        save_shards(tmp_path / name, from_models(nodes, [Edge("p", "a")]), 2, save)
    assert len(shard_places(tmp_path / "one")) == 2
    for part in ("shard-000", "shard-001"):
        shutil.rmtree(tmp_path / "one" / part)
        shutil.copytree(tmp_path / "two" / part, tmp_path / "one" / part)
    with pytest.raises(SnapshotError, match=r"shard-00\d does not belong to it"):
        shard_places(tmp_path / "one")
