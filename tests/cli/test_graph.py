"""Commands over graphs: compile, match and explain."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from headgate import Edge, Node, Subscription
from headgate.core.versions.current import resolved
from headgate.graph.build.sharding import save_shards
from headgate.graph.build.tables import from_models
from headgate.graph.index import GraphIndex
from headgate.records.index.index import RecordIndex
from tests.spark.files import get_lines, names, put_lines

if TYPE_CHECKING:
    from pathlib import Path

    from headgate.graph.model import Parts
    from tests.cli.running import Command

NODES = [
    Node("pub"),
    Node("net", "topic = 'sport'"),
    Node("adv", "age > 30", subscription="shoes"),
    Node("idle"),
]
EDGES = [Edge("pub", "net"), Edge("net", "adv")]
HUNG = [Subscription("fans", "age < 50", node="net")]


@pytest.fixture
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a folder with the tables of a graph, each with a bad row."""
    monkeypatch.chdir(tmp_path)
    nodes = [{"id": each.id, "filter": each.filter, "subscription": each.subscription} for each in NODES]
    put_lines(tmp_path / "nodes.jsonl", [*nodes, {"id": "bad", "filter": "+"}])
    edges = [{"source": each.source, "target": each.target} for each in EDGES]
    put_lines(tmp_path / "edges.jsonl", [*edges, {"source": "pub", "target": "nobody"}])
    put_lines(tmp_path / "subs.jsonl", [{"id": "fans", "filter": "age < 50", "node": "net"}, {"id": "x"}])
    events = [{"id": 1, "source": "pub", "topic": "sport", "age": 35}, {"id": 2, "source": "nobody"}]
    put_lines(tmp_path / "events.jsonl", events)
    return tmp_path


GRAPH = ("compile", "--nodes", "nodes.jsonl", "--edges", "edges.jsonl", "--subscriptions", "subs.jsonl")
MATCH = ("match", "--snapshot", "graph", "--events", "events.jsonl", "--output", "matches.jsonl")


@pytest.mark.usefixtures("spark")
def test_from_tables_to_matches(headgate: Command, tables: Path) -> None:
    ran = headgate(*GRAPH, "--output", "graph", "--quiet", "--shards", "3")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines() == [
        "compiled 4 nodes, 2 edges and 2 subscriptions in 3 shards over 2 attributes to graph",
        "refused 3 rows, with the reasons in graph-rejected.jsonl",
    ]
    assert names(resolved(tables / "graph")) == ["manifest.json", "shard-000", "shard-001", "shard-002"]
    ran = headgate(*MATCH, "--quiet")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines() == [
        "matched 1 events: 2 matches in matches.jsonl",
        "refused 1 events, with the reasons in matches-rejected.jsonl",
        "events met shards 1 times, of 3 that there could be",
    ]
    assert sorted(row["subscription_id"] for row in get_lines("matches.jsonl")) == ["fans", "shoes"]
    ran = headgate(*MATCH, "--graph", "--strict", "--json")
    assert (ran.code, ran.json["matches"], ran.json["rejected"]) == (3, 2, 1)


@pytest.mark.usefixtures("spark", "tables")
def test_json_and_strict(headgate: Command) -> None:
    ran = headgate(*GRAPH, "--output", "graph", "--json", "--strict", "--quiet")
    assert ran.code == 3
    said = ran.json
    assert said["rows"] == {"nodes": 4, "edges": 2, "subscriptions": 1}
    assert said["refused"] == {"nodes": 1, "edges": 1, "subscriptions": 1}
    assert (said["rejected"], said["shards"], said["attributes"]) == (3, 1, ["age", "topic"])
    assert said["rejected_table"] == "graph-rejected.jsonl"


@pytest.fixture(params=[1, 4])
def graph(request: pytest.FixtureRequest, tables: Path) -> Path:
    """A snapshot of the graph, whole or in shards, made without Spark."""

    def save(parts: Parts, place: Path) -> None:
        GraphIndex.from_parts(parts, RecordIndex).save(place)

    parts = from_models(NODES, EDGES, HUNG)
    if request.param == 1:
        save(parts, tables / "graph")
    else:
        save_shards(tables / "graph", parts, request.param, save)
    return tables


@pytest.mark.usefixtures("graph")
def test_a_graph_is_neither_left_out_nor_made_up(headgate: Command) -> None:
    ran = headgate(*MATCH, "--no-graph")
    assert ran.code == 1
    assert ran.complaint == (
        "snapshot graph was compiled with a graph, and without it events would reach subscriptions that no "
        "path leads to: leave out --no-graph, or compile the subscriptions alone and match against that"
    )


def test_a_graph_that_is_not_there(headgate: Command, tables: Path) -> None:
    RecordIndex.build([Subscription("s", "TRUE")]).save(tables / "graph")
    ran = headgate(*MATCH, "--graph")
    assert ran.code == 1
    assert ran.complaint == (
        "snapshot graph was compiled without a graph: leave out --graph, or compile it with --nodes and "
        "--edges"
    )


@pytest.mark.usefixtures("graph")
def test_explain(headgate: Command) -> None:
    command = ("explain", "--snapshot", "graph", "--subscription")
    event = {"id": "e", "source": "pub", "topic": "sport", "age": 35}
    ran = headgate(*command, "shoes", "--event", json.dumps(event))
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines()[0] == "match: 2 hops from pub to shoes"
    ran = headgate(*command, "fans", "--event", json.dumps({**event, "topic": "news"}))
    assert ran.out.splitlines()[0] == "no match: every path from pub to fans is blocked"
    assert "  failed  topic = 'sport'   topic = \"news\"" in ran.out
    ran = headgate(*command, "fans", "--event", json.dumps({**event, "age": 60}), "--json")
    assert (ran.json["matches"], ran.json["reason"]) == (False, "own filter")
    # Nothing leads from there, on whatever shard it is.
    ran = headgate(*command, "fans", "--event", '{"source": "idle"}')
    assert ran.out.splitlines()[0] == "no match: no path leads from idle to fans, whatever the filters say"


@pytest.mark.usefixtures("graph")
def test_explain_refuses(headgate: Command) -> None:
    command = ("explain", "--snapshot", "graph", "--event")
    assert "has no source" in headgate(*command, "{}", "--subscription", "fans").complaint
    ran = headgate(*command, '{"source": "nobody"}', "--subscription", "fans")
    assert "source 'nobody'" in ran.complaint
    assert "is not a node of the graph" in ran.complaint
    ran = headgate(*command, '{"source": "pub"}', "--subscription", "nobody")
    assert "there is no subscription 'nobody' here" in ran.complaint
    ran = headgate(*command, '{"source": "pub"}', "--why-not")
    assert ran.complaint == (
        "snapshot graph has a graph, and --why-not looks at filters alone: ask for one with --subscription"
    )
