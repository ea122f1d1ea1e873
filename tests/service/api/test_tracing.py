"""The graph to look at, and the way of an event through it, over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.service.api.serving import serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.service.api.serving import Api

_NODES = {
    "pub": {},
    "sport": {"filter": "topic = 'sport'", "kind": "channel"},
    "cheap": {"filter": "price < 20"},
    "shop": {},
    "alone": {},
}
_EDGES = [
    {"source": "pub", "target": "sport"},
    {"source": "pub", "target": "cheap", "filter": "stock > 0"},
    {"source": "sport", "target": "shop"},
    {"source": "cheap", "target": "shop", "cost": 2},
]


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """Return a service with a small graph."""
    with serving(tmp_path_factory.mktemp("tracing") / "data") as found:
        for name, body in _NODES.items():
            assert found("PUT", f"/v1/graph/nodes/{name}", body).status == 201
        for edge in _EDGES:
            assert found("PUT", "/v1/graph/edges", edge).status == 201
        for name in ("a", "b"):
            said = {"filter": "price < 50" if name == "a" else "price > 50", "node": "shop"}
            assert found("PUT", f"/v1/subscriptions/{name}", said).status == 201
        yield found


def _event(source: str, **data: object) -> dict[str, object]:
    return {"specversion": "1.0", "id": "e", "source": source, "type": "t", "data": data}


def test_the_way_of_an_event(api: Api) -> None:
    sport = _event("pub", topic="sport", price=30, stock=0)
    assert api.publish(sport) == [["a"]]
    cursor = api("GET", "/v1/events").json["items"][-1]["cursor"]
    for asked in ({"event": sport}, {"cursor": cursor}, {"event_id": "e"}):
        found = api("POST", "/v1/graph/trace", asked).json
        states = {each["id"]: (each["state"], each["served"]) for each in found["nodes"]}
        assert states == {"pub": ("entered", 0), "sport": ("passed", 0), "shop": ("passed", 1)}
        assert (found["source"], found["passed"], found["served"]) == ("pub", 2, 1)
        edges = {(each["source"], each["target"]): each for each in found["edges"]}
        assert {ends: each["state"] for ends, each in edges.items()} == {
            ("pub", "sport"): "passed",
            ("pub", "cheap"): "stopped",
            ("sport", "shop"): "passed",
        }
        (clause,) = edges["pub", "cheap"]["why"]["failed"]
        assert (clause["text"], clause["attribute"], clause["value"]) == ("stock > 0", "stock", 0)
    dear = api("POST", "/v1/graph/trace", {"event": _event("pub", topic="art", price=30, stock=2)}).json
    stops = {each["id"]: each["why"]["failed"][0] for each in dear["nodes"] if each["state"] == "stopped"}
    assert {name: (clause["text"], clause["value"]) for name, clause in stops.items()} == {
        "sport": ("topic = 'sport'", "art"),
        "cheap": ("price < 20", 30),
    }
    assert (dear["passed"], dear["served"]) == (0, 0)
    short = api("POST", "/v1/graph/trace", {"event": sport, "most": 2}).json
    assert (len(short["nodes"]), short["passed"]) == (2, 2)
    assert short["note"] == "its way is longer: the first 2 nodes are listed"


def test_an_event_that_does_not_enter_the_graph(api: Api) -> None:
    strange = api("POST", "/v1/graph/trace", {"event": _event("/x", price=1)}).json
    assert (strange["nodes"], strange["served"]) == ([], 0)
    assert strange["note"].startswith("its source '/x' is no node of the graph: it reaches no node")
    assert api("POST", "/v1/graph/trace", {"event": {"price": 1}}).json["note"].startswith("it has no source")
    assert api("POST", "/v1/graph/trace", {"cursor": 999}).status == 404
    assert api("POST", "/v1/graph/trace", {}).detail == "give one of `event`, `cursor` and `event_id`"


def test_a_graph_to_look_at(api: Api) -> None:
    whole = api("GET", "/v1/graph").json
    assert {each["id"]: each["subscriptions"] for each in whole["nodes"]} == dict.fromkeys(_NODES, 0) | {
        "shop": 2
    }
    assert (len(whole["edges"]), whole["all_nodes"], whole["all_edges"], whole["cut"]) == (4, 5, 4, None)
    cases = [
        ("node=shop&hops=1", {"shop", "sport", "cheap"}, 2),
        ("node=sport&hops=1", {"pub", "sport", "shop"}, 2),
        ("node=pub&hops=5", {"pub", "sport", "cheap", "shop"}, 4),
        ("node=pub&hops=5&most=2", {"pub", "cheap"}, 1),
        # A node that no edge leads to, what follows it, which is nothing, and others.
        ("most=3", {"alone", "cheap", "pub"}, 1),
    ]
    for query, nodes, edges in cases:
        found = api("GET", f"/v1/graph?{query}").json
        assert {each["id"] for each in found["nodes"]} == nodes, query
        assert len(found["edges"]) == edges, query
        assert f"{len(found['nodes'])} of 5 nodes" in found["cut"]
    assert api("GET", "/v1/graph?node=none").detail == "there is no node 'none'"
    names = api("GET", "/v1/graph/nodes/shop/subscriptions?limit=1").json
    assert names == {"items": ["a"], "next": "a"}
    assert api("GET", "/v1/graph/nodes/shop/subscriptions?after=a").json == {"items": ["b"], "next": None}
    assert api("GET", "/v1/graph/nodes/none/subscriptions").status == 404


def test_without_a_graph(tmp_path: Path) -> None:
    with serving(tmp_path / "data") as api:
        assert api("GET", "/v1/graph").json == {
            "nodes": [],
            "edges": [],
            "all_nodes": 0,
            "all_edges": 0,
            "cut": None,
        }
        found = api("POST", "/v1/graph/trace", {"event": _event("pub")}).json
        assert found["note"].startswith("there is no graph")
