"""The graph and the taxonomy as resources."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.service.api.serving import serving

if TYPE_CHECKING:
    from pathlib import Path


def _event(source: str, **data: object) -> dict[str, object]:
    return {"specversion": "1.0", "id": "e", "source": source, "type": "t", "data": data}


def test_a_graph_that_grows_and_goes(tmp_path: Path) -> None:
    with serving(tmp_path / "data") as api:
        assert api("PUT", "/v1/subscriptions/free", {"filter": "age > 30", "score": 2}).status == 201
        early = api("PUT", "/v1/subscriptions/hung", {"filter": "age > 30", "node": "net"})
        assert (early.status, "add it first" in early.detail) == (422, True)
        assert api("PUT", "/v1/graph/edges", {"source": "pub", "target": "net"}).status == 404
        assert api("PUT", "/v1/graph/nodes/pub", {}).status == 201
        # Who hangs at no node gets what it got before, whatever the source.
        assert api.publish(_event("/x", age=40), _event("pub", age=40)) == [["free"], ["free"]]
        assert api("PUT", "/v1/graph/nodes/net", {"filter": "topic = 'sport'"}).status == 201
        assert api("PUT", "/v1/graph/edges", {"source": "pub", "target": "net", "cost": 3}).status == 201
        assert (
            api("PUT", "/v1/subscriptions/hung", {"filter": "age > 30", "node": "net", "score": 9}).status
            == 201
        )
        sport = _event("pub", age=40, topic="sport")
        assert api.publish(sport, _event("pub", age=40), _event("/x", age=40, topic="sport")) == [
            ["free", "hung"],
            ["free"],
            ["free"],
        ]
        best = api("POST", "/v1/top", {"events": [sport], "k": 2}).json["events"][0]["best"]
        assert [(each["subscription"], each["value"]) for each in best] == [("hung", 6.0), ("free", 2.0)]
        assert best[0]["path"] == ["pub", "net"]
        why = api("POST", "/v1/explain", {"event": _event("pub", age=40), "subscription": "hung"}).json
        assert why["matches"] is False
        assert any("topic" in line for line in why["lines"])
        strange = api("POST", "/v1/explain", {"event": _event("/x"), "subscription": "hung"}).json
        assert "no node of the graph" in strange["lines"][0]
        ranked = {"event": sport, "subscription": "hung", "rank": {"k": 1}}
        assert api("POST", "/v1/explain", ranked).json["rank"]["rank"] == 1
        # A node that is replaced keeps what hangs at it.
        assert api("PUT", "/v1/graph/nodes/net", {"filter": "topic = 'news'"}).status == 200
        assert api.publish(sport, _event("pub", age=40, topic="news")) == [["free"], ["free", "hung"]]
        assert api("PUT", "/v1/graph/nodes/net", {"filter": "topic ="}).status == 422
        busy = api("DELETE", "/v1/graph/nodes/net")
        assert (busy.status, "1 subscriptions hang at node 'net'" in busy.detail) == (409, True)
        assert [each["id"] for each in api("GET", "/v1/graph/nodes").json["items"]] == ["net", "pub"]
        assert api("GET", "/v1/graph/edges?limit=1").json == {
            "items": [{"source": "pub", "target": "net", "cost": 3.0}],
            "next": None,
        }
    with serving(tmp_path / "data") as api:
        news = _event("pub", age=40, topic="news")
        assert api.publish(news) == [["free", "hung"]]
        # From the graph to outside of it, and back.
        assert api("PATCH", "/v1/subscriptions/hung", {"node": None}).status == 200
        assert api.publish(_event("/x", age=40)) == [["free", "hung"]]
        assert api("PATCH", "/v1/subscriptions/hung", {"node": "net"}).status == 200
        assert api.publish(_event("/x", age=40), news) == [["free"], ["free", "hung"]]
        assert api("DELETE", "/v1/graph/edges?source=pub&target=net").status == 204
        assert api("DELETE", "/v1/graph/edges?source=pub&target=net").status == 404
        assert api.publish(news) == [["free"]]
        assert api("DELETE", "/v1/subscriptions/hung").status == 204
        for name in ("net", "pub"):
            assert api("DELETE", f"/v1/graph/nodes/{name}").status == 204
        assert api("GET", "/v1/graph/nodes").json["items"] == []
        assert api.publish(news) == [["free"]]
        actions = [each["action"] for each in api("GET", "/v1/audit?search=node").json["items"]]
        assert actions == ["put node"] * 3 + ["delete node"] * 2


def test_the_taxonomy(tmp_path: Path) -> None:
    with serving(tmp_path / "data") as api:
        said = {
            "filter": "ASK { ?x a/<http://www.w3.org/2000/01/rdf-schema#subClassOf>* <urn:Human> }",
            "dialect": "sparql",
        }
        assert api("PUT", "/v1/subscriptions/human", said).status == 201
        event = _event("/x") | {"datacontenttype": "text/turtle", "data": "<urn:s> a <urn:Man> ."}
        assert api.publish(event) == [[]]
        turtle = b"<urn:Man> <http://www.w3.org/2000/01/rdf-schema#subClassOf> <urn:Human> ."
        put = api("PUT", "/v1/taxonomy", turtle, Content_Type="text/turtle")
        assert (put.status, put.json) == (200, {"statements": 1})
        assert api.publish(event) == [["human"]]
        assert api("PUT", "/v1/taxonomy", b"<urn:Man", Content_Type="text/turtle").status == 422
        assert api("PUT", "/v1/taxonomy", turtle, Content_Type="text/plain").status == 415
    with serving(tmp_path / "data") as api:
        assert api.publish(event) == [["human"]]
        assert api("GET", "/v1/taxonomy").raw == turtle
        assert api("DELETE", "/v1/taxonomy").status == 204
        assert api("GET", "/v1/taxonomy").status == 404
        assert api.publish(event) == [[]]
