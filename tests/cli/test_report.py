"""`headgate report graph`: what it says, writes and refuses, without Spark."""

from __future__ import annotations

import io
import re
import sys
from typing import TYPE_CHECKING

import pytest

from headgate import Edge, Node, Subscription
from headgate.graph.build.sharding import save_shards
from headgate.graph.build.tables import from_models
from headgate.graph.index import GraphIndex
from headgate.records.index.index import RecordIndex

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.running import Command

NODES = [Node("pub"), Node("net", "topic = 'sport'"), Node("adv", subscription="shoes")]
EDGES = [Edge("pub", "net"), Edge("net", "adv")]
SPORT = '{"id": "e1", "source": "pub", "topic": "sport"}'


@pytest.fixture
def graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a snapshot of a graph, and the process in it."""
    GraphIndex.build(NODES, EDGES, room=RecordIndex).save(tmp_path / "graph")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_help_has_examples(headgate: Command) -> None:
    ran = headgate("report", "graph", "--help")
    assert (ran.code, ran.err) == (0, "")
    assert "\n  Examples:\n    headgate report graph --snapshot snapshot/ --output graph.html\n" in ran.out
    assert re.search(r"graph +Draw a graph", headgate("report", "--help").out)


@pytest.mark.parametrize("name", ["out.html", "out.svg", "out.png"])
def test_a_graph(headgate: Command, graph: Path, name: str) -> None:
    ran = headgate("report", "graph", "--snapshot", "graph", "--output", name, "--quiet")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == f"3 nodes and 2 edges; there are no cycles.\ndrawn in {name}\n"
    assert (graph / name).stat().st_size > 1000


def test_json(headgate: Command, graph: Path) -> None:
    words = ("report", "graph", "--snapshot", "graph", "--output", "g.svg", "--quiet", "--json")
    assert headgate(*words).json == {"nodes": 3, "edges": 2, "components": 3, "output": "g.svg"}
    found = headgate(*words, "--event", SPORT).json
    assert found == {
        "nodes": 3,
        "edges": 2,
        "components": 3,
        "reached": 2,
        "stopped": 0,
        "subscriptions": 1,
        "output": "g.svg",
    }
    assert "✓ adv" in (graph / "g.svg").read_text("utf-8")


def test_where_an_event_comes_from(headgate: Command, graph: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("report", "graph", "--snapshot", "graph", "--output", "g.html", "--quiet", "--event")
    (graph / "event.json").write_text(SPORT)
    said = "Event e1 entered at pub and reached 2 nodes. 1 of 1 subscription got it."
    assert headgate(*words, f" {SPORT}").out.startswith(said)
    assert headgate(*words, "event.json").out.startswith(said)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(SPORT.encode())))
    assert headgate(*words, "-").out.startswith(said)
    assert headgate(*words, '{"source": "pub"}').out.startswith(
        "The event entered at pub, reached 0 nodes and was stopped at one by its filter. 0 of 1 subscription"
    )
    page = (graph / "g.html").read_text("utf-8")
    assert "No subscription got the event." in page
    assert "headgate report graph --snapshot graph --output g.html --quiet --event" in page


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        ('{"id": 1}', "event 1 has no source: name the node where it enters the graph"),
        ('{"id": 1, "source": "nobody"}', "source 'nobody' of event 1 is not a node of the graph"),
        ('{"id": 1, "source": "pub"', "not valid JSON"),
        ("missing.json", "missing.json does not exist"),
    ],
)
def test_events_that_are_refused(headgate: Command, graph: Path, event: str, reason: str) -> None:
    ran = headgate("report", "graph", "--snapshot", "graph", "--output", "g.svg", "--quiet", "--event", event)
    assert ran.code == 1
    assert reason in ran.complaint
    assert not (graph / "g.svg").exists()


def test_snapshots_that_are_refused(headgate: Command, graph: Path) -> None:
    RecordIndex.build([Subscription("s", "a = 1")]).save(graph / "records")

    def save(parts: object, place: Path) -> None:
        GraphIndex.from_parts(parts, RecordIndex).save(place)  # type: ignore[arg-type]

    save_shards(graph / "shards", from_models(NODES, EDGES), 2, save)
    for name, reason in {
        "records": "snapshot records is one of 'records' and has no graph: give one of a graph",
        "shards": "snapshot shards is a graph in shards: give one of them, such as shards/shard-000",
        "missing": "missing is not a snapshot: there is no such directory",
    }.items():
        ran = headgate("report", "graph", "--snapshot", name, "--output", "g.svg", "--quiet")
        assert ran.code == 1
        assert reason in ran.complaint
    ran = headgate("report", "graph", "--snapshot", "shards/shard-001", "--output", "g.svg", "--quiet")
    assert ran.code == 0


def test_outputs_that_are_refused(headgate: Command, graph: Path) -> None:
    ran = headgate("report", "graph", "--snapshot", "graph", "--output", "g.gif")
    assert ran.code == 2
    assert "--output g.gif: let the name end in .html, .svg or .png" in ran.complaint
    ran = headgate("report", "graph", "--snapshot", "graph", "--output", "no/g.svg", "--quiet")
    assert ran.code == 1
    assert "cannot write the report to no/g.svg: No such file or directory" in ran.complaint
    assert [path.name for path in graph.iterdir()] == ["graph"]
