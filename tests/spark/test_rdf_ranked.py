"""Graphs and rankings over RDF through the pipeline: the answers of the engine, in any number of shards."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import pytest

from headgate import Edge, Engine, Event, Node, Subscription
from headgate.runtime.questions import Top
from headgate.spark.compile.graph import Tables, compile_graph
from tests.lanes import some
from tests.spark.files import get_lines, put_lines
from tests.spark.rdf_cases import Job, document, pattern, subscription_row, taxonomy

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from headgate.spark.compile.graph import CompiledGraph
    from tests.spark.files import Row


def best(engine: Engine, rows: Sequence[Row], k: int, mode: str, **more: Any) -> list[tuple[Any, ...]]:
    """Ask the engine in this process for the best of each event."""
    found = []
    for row in rows:
        event = Event.from_row(row)
        top: Sequence[Any] = engine.top(event, k, mode, **more)
        found += [(event.id, rank, each.subscription, each.value) for rank, each in enumerate(top, 1)]
    return sorted(found)


@pytest.fixture
def job(spark: SparkSession, tmp_path: Path) -> Job:
    return Job(spark, tmp_path)


FACTORS = {"http://example.org/P1": 3.0, "?x": 0.0}
ASKED = [(shards, top) for shards in (1, 3) for top in (None, Top.of(3), Top.of(4, "relaxed", FACTORS))]


@pytest.mark.parametrize(("shards", "top"), some(ASKED, 5))
def test_ranked_subscriptions(job: Job, shards: int, top: Top | None) -> None:
    rng = random.Random(shards)
    subscriptions = [
        Subscription(number, pattern(rng), "sparql", score=rng.choice([0.0, 1.0, 1.0, 2.5]))
        for number in range(40)
    ]
    rows = [{**subscription_row(each), "score": each.score} for each in subscriptions]
    rows.append({"id": 99, "filter": "ASK {}", "dialect": "sparql", "score": 1, "weights": [1, 2]})
    done = job.compile(put_lines(job.folder / "subs.jsonl", rows), taxonomy=taxonomy(3), shards=shards)
    assert (done.subscriptions, done.rejected, done.ranked, done.shards) == (40, 1, True, shards)
    assert job.refused()[0]["reason"].startswith("subscription 99 has 2 weights and 1 clause")
    engine = Engine.build(subscriptions, ranked=True, taxonomy=taxonomy(3))
    events = [document(rng, number) for number in range(12)]
    table = put_lines(job.folder / "events.jsonl", events)
    job.match(table, top=top)
    if top is None:
        assert job.pairs() == sorted(
            (row["id"], s) for row in events for s in engine.publish(Event.from_row(row))
        )
    else:
        assert job.best() == best(engine, events, top.k, top.mode, factors=top.weighing)


class GraphJob(Job):
    """A graph whose filters are patterns."""

    def compile_graph(self, parts: Drawn, **options: Any) -> CompiledGraph:
        nodes, edges, subscriptions = parts
        place, rejected = str(self.snapshot), str(self.folder / "refused.jsonl")
        tables = Tables(
            put_lines(self.folder / "nodes.jsonl", nodes),
            put_lines(self.folder / "edges.jsonl", edges),
            put_lines(self.folder / "subs.jsonl", subscriptions),
        )
        return compile_graph(self.spark, tables, place, rejected=rejected, quiet=True, **options)


Drawn = tuple[list[dict[str, Any]], list[dict[str, Any]], list[dict[str, Any]]]


def draw(rng: random.Random) -> Drawn:
    """Draw a graph of publishers, networks with patterns, and subscribers."""

    def some() -> dict[str, Any]:
        return {"filter": pattern(rng), "dialect": "sparql"} if rng.random() < 0.4 else {}

    nodes = [{"id": f"n{number}", **some()} for number in range(14)]
    nodes += [{"id": f"s{number}", "subscription": f"own{number % 2}", "score": 4.0} for number in range(3)]
    edges = []
    for number in range(40):
        source, target = rng.sample(range(len(nodes)), 2)
        edges.append({"source": f"n{source % 14}", "target": nodes[target]["id"], "cost": 1.0})
        if number % 10 == 0:
            edges[-1] |= {"filter": pattern(rng), "dialect": "sparql"}
    subscriptions = [
        {"id": f"sub{n}", "filter": pattern(rng), "dialect": "sparql", "node": f"n{n % 14}", "score": n % 4}
        for n in range(25)
    ]
    return nodes, edges, subscriptions


@pytest.mark.parametrize(
    ("shards", "mode"), some([(shards, mode) for shards in (1, 2) for mode in ("exact", "relaxed")], 2)
)
def test_graphs(spark: SparkSession, tmp_path: Path, shards: int, mode: str) -> None:
    job = GraphJob(spark, tmp_path)
    rng = random.Random(f"graph {shards}")
    nodes, edges, subscriptions = draw(rng)
    bad = [{"id": "bad", "filter": "ASK { ?x", "dialect": "sparql", "node": "n1"}]
    done = job.compile_graph(
        (nodes, edges, subscriptions + bad), taxonomy=taxonomy(4), shards=shards, ranked=True
    )
    assert (done.nodes, done.rejected, done.shards, done.ranked) == (17, 1, shards, True)
    assert done.holds is not None
    assert done.holds.counts["taxonomy"] == len(taxonomy(4))
    assert [row["id"] for row in job.refused()] == ["bad"]
    engine = Engine.build(
        [Subscription(**each) for each in subscriptions],
        nodes=[Node(**each) for each in nodes],
        edges=[Edge(**each) for each in edges],
        ranked=True,
        taxonomy=taxonomy(4),
    )
    events = [document(rng, f"e{number}", source=f"n{number % 14}") for number in range(28)]
    lost = [{**document(rng, "nowhere"), "source": "x"}, document(rng, "sourceless")]
    table = put_lines(job.folder / "events.jsonl", events + lost)
    matched = job.match(table)
    assert (matched.events, matched.rejected) == (28, 2)
    expected = sorted((row["id"], s) for row in events for s in engine.publish(Event.from_row(row)))
    assert len(expected) > 20
    assert job.pairs() == expected
    assert job.refused_events() == {
        "nowhere": "source 'x' is no node of the graph: give the id of one",
        "sourceless": "it has no source: name the node where it enters the graph",
    }
    job.match(table, top=Top.of(3, mode))
    assert job.best() == best(engine, events, 3, mode)


def test_a_graph_mixed_of_two_rooms_is_refused_and_nodes_need_no_dialect(
    spark: SparkSession, tmp_path: Path
) -> None:
    job = GraphJob(spark, tmp_path)
    nodes: list[dict[str, Any]] = [{"id": 1}, {"id": 2, "kind": "sparql"}]
    edges: list[dict[str, Any]] = [{"source": 1, "target": 2}]
    subscriptions = [{"id": "a", "filter": "ASK { ?x a <urn:A> }", "dialect": "sparql", "node": 2}]
    subscriptions.append({"id": "b", "filter": "ASK {}", "dialect": "sparql", "node": 7})
    assert job.compile_graph((nodes, edges, subscriptions)).subscriptions == 1
    rows = [{"id": "e", "source": 1, "data": "<urn:x> a <urn:A> .", "datacontenttype": "turtle"}]
    job.match(put_lines(tmp_path / "events.jsonl", rows))
    assert job.pairs() == [("e", "a")]
    # What is written anew in the rejected table can be read again.
    (refused,) = get_lines(tmp_path / "refused.jsonl")
    assert (refused["id"], json.loads(refused["row"])["dialect"]) == ("b", "sparql")
    edges[0]["filter"] = "age > 3"
    with pytest.raises(Exception, match=r"look at records \('sql'\) and at RDF \('sparql'\)"):
        job.compile_graph((nodes, edges, subscriptions))
