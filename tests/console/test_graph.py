"""The page of the graph."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from headgate.service.security.keys import Keys
from headgate.service.server import make_place
from tests.console.serving import serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.console.serving import Seen, Served, Visitor

ODD = ("<script>alert(1)<script>", '"><img src=x onerror=alert(1)>', "{{7*7}}", "' OR 1=1")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Return a server with a small graph, a subscription at it, and three events."""
    with serving(tmp_path_factory.mktemp("graph")) as found:
        visitor = found.visitor()
        empty = visitor.get("/console/graph")
        assert "What a graph is for" in empty.text
        assert "Add a first node" in empty.text
        with found.client() as client:
            for name, body in {
                "pub": {"kind": "source"},
                "sport": {"filter": "topic = 'sport'"},
                "cheap": {"filter": "price < 20"},
            }.items():
                client.ask("PUT", f"/v1/graph/nodes/{name}", body)
            client.ask("PUT", "/v1/graph/edges", {"source": "pub", "target": "sport"})
            client.ask(
                "PUT", "/v1/graph/edges", {"source": "sport", "target": "cheap", "filter": "stock > 0"}
            )
            client.subscribe("anna", "price < 50", node="sport")
            client.publish({"id": "e1", "source": "pub", "topic": "sport", "price": 30, "stock": 0})
            client.publish({"id": "e2", "source": "pub", "topic": "art", "price": 30})
            client.publish({"id": "e3", "source": "elsewhere", "topic": "sport"})
        yield found


@pytest.fixture
def visitor(served: Served) -> Visitor:
    """Return somebody who uses it."""
    return served.visitor()


def _drawing(seen: Seen) -> tuple[dict[str, str], dict[tuple[str, str], str]]:
    found = re.search(r'id="way-data">(.*?)</script>', seen.body, re.DOTALL)
    assert found is not None
    data: Any = json.loads(found[1])
    return {each["id"]: each["state"] for each in data["nodes"]}, {
        (each["source"], each["target"]): each["state"] for each in data["edges"]
    }


def test_the_way_of_events(visitor: Visitor) -> None:
    seen = visitor.get("/console/graph")
    assert "3 nodes, 2 edges" in seen.text
    assert _drawing(seen)[0] == {"pub": "", "sport": "", "cheap": ""}
    seen = visitor.get("/console/graph?event=1")
    assert _drawing(seen) == (
        {"pub": "entered", "sport": "passed", "cheap": ""},
        {("pub", "sport"): "passed", ("sport", "cheap"): "stopped"},
    )
    assert "it passed 1 node, was stopped at 1 place, and 1 subscription in the graph gets it." in seen.text
    assert "on the edge from sport to cheap because of stock > 0" in seen.text
    assert "stock = 0" in seen.text
    seen = visitor.get("/console/graph?event=2")
    assert _drawing(seen)[0]["sport"] == "stopped"
    assert 'topic = "art"' in seen.text
    seen = visitor.get("/console/graph?event=3")
    assert "its source 'elsewhere' is no node of the graph: it reaches no node" in seen.text
    assert "there is no event at cursor 99" in visitor.get("/console/graph?event=99").text
    assert visitor.get("/console/graph?event=x").status == 400
    live = visitor.get("/console/graph?event=newest")
    assert "data-follows" in live.body
    known = re.search(r'data-known="(\d+)"', live.body)
    assert known is not None
    assert visitor.once("GET", f"/console/graph/way?known={known[1]}").status == 204
    part = visitor.get("/console/graph/way?known=1")
    assert (part.status, f'data-known="{known[1]}"' in part.body) == (200, True)
    around = visitor.get("/console/graph?node=cheap&hops=1")
    assert set(_drawing(around)[0]) == {"cheap", "sport"}
    assert "2 of 3 nodes" in around.text
    assert visitor.get("/console/graph?node=none").status == 404
    assert "Nodes with “art” No id" in visitor.get("/console/graph?search=art").text.replace("sport", "")


def test_nodes_and_edges_change_and_come_back(visitor: Visitor, served: Served) -> None:
    def undo(seen: Seen) -> Seen:
        name = seen.body.partition('name="what" value="')[2].partition('"')[0]
        return visitor.post("/console/undo", {"what": name})

    visitor.get("/console/graph/new-node")
    assert "It was not added" in visitor.post("/console/graph/nodes", {"id": " "}).text
    wrong = visitor.post("/console/graph/nodes", {"id": "new", "filter": "topic =", "dialect": "sql"})
    assert (wrong.status, "a value or a condition is missing" in wrong.text) == (422, True)
    assert "give a number" in visitor.post("/console/graph/nodes", {"id": "new", "cost": "dear"}).text
    seen = visitor.post("/console/graph/nodes", {"id": "new", "filter": "a = 1", "kind": "k", "cost": "2"})
    assert (visitor.place, "node new is there" in seen.text) == ("/console/graph/nodes/new", True)
    again = visitor.post("/console/graph/nodes", {"id": "new"})
    assert (again.status, "is there already" in again.text) == (409, True)
    edge = {"source": "pub", "target": "new", "filter": "b = 2", "cost": "3"}
    assert "the edge from pub to new is there" in visitor.post("/console/graph/edges", edge).text
    assert "change that one" in visitor.post("/console/graph/edges", edge).text
    assert visitor.post("/console/graph/edges", {"source": "pub", "target": "no"}).status == 404
    changed = visitor.post("/console/graph/edges", {**edge, "filter": "b = 3", "known": "yes"})
    assert "is changed" in changed.text
    assert "is back" in undo(changed).text
    changed = visitor.post("/console/graph/nodes/new", {"filter": "a = 2", "kind": "k", "cost": "2"})
    assert "is changed" in changed.text
    assert "is back" in undo(changed).text
    with served.client() as client:
        assert client.ask("GET", "/v1/graph/nodes/new") == {
            "id": "new",
            "filter": "a = 1",
            "kind": "k",
            "cost": 2.0,
        }
    gone = visitor.post("/console/graph/nodes/new/delete")
    assert "node new and its 1 edges are deleted" in gone.text
    assert "is back" in undo(gone).text
    with served.client() as client:
        edges = client.ask("GET", "/v1/graph/edges")["items"]
        assert {"source": "pub", "target": "new", "filter": "b = 2", "cost": 3.0} in edges
    visitor.get("/console/graph/edge?source=pub&target=new")
    gone = visitor.post("/console/graph/delete-edge", {"source": "pub", "target": "new"})
    assert "is deleted" in gone.text
    assert visitor.get("/console/graph/edge?source=pub&target=new").status == 404
    visitor.post("/console/graph/nodes/new/delete")
    busy = visitor.post("/console/graph/nodes/sport/delete")
    assert (busy.status, "subscriptions hang at node" in busy.text) == (409, True)
    page = visitor.get("/console/graph/nodes/sport?event=2")
    assert "It was stopped here by topic = 'sport'" in page.text
    assert "anna" in page.text


def test_odd_names_are_text(visitor: Visitor) -> None:
    for odd in ODD:
        name = quote(odd, safe="")
        visitor.get("/console/graph/new-node")
        assert visitor.post("/console/graph/nodes", {"id": odd, "kind": odd, "filter": "a = 1"}).status == 200
        for path in (f"/nodes/{name}", "", f"?node={name}", f"?search={name}"):
            seen = visitor.get(f"/console/graph{path}")
            assert (seen.status, odd in seen.text) == (200, True), path
            # The data of the drawing is JSON, in which no tag can begin.
            assert "<script>alert" not in seen.body
            assert "<img src=x" not in seen.body


def test_refusals(tmp_path: Path) -> None:
    data = tmp_path / "data"
    make_place(data)
    keys = Keys(data)
    key = keys.add("default", ["read"])[1]
    keys.close()
    with serving(data) as served:
        visitor = served.visitor()
        visitor.post("/console/sign-in", {"key": key, "next": "/console/graph"})
        seen = visitor.get("/console/graph")
        assert "A key with the scope admin" in seen.text
        assert "Add a first node" not in seen.text
        refused = visitor.post("/console/graph/nodes", {"id": "a"})
        assert (refused.status, "the key has no scope 'admin'" in refused.text) == (403, True)
        assert visitor.post("/console/graph/nodes", {"id": "a", "token": "0" * 64}).status == 403
        assert visitor.post("/console/graph/nodes", {"id": "a"}, Origin="http://evil.example").status == 403
