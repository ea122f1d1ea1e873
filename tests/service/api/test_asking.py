"""Asking: match, top, explain, validate, backtest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.service.api.serving import Api, serving

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    with serving(tmp_path_factory.mktemp("data") / "data") as found:
        for name, text in (("cheap", "price < 20 AND topic = 'sport'"), ("all", "price >= 0")):
            assert found("PUT", f"/v1/subscriptions/{name}", {"filter": text}).status == 201
        found.publish(
            *({"id": f"e{n}", "price": n, "topic": "sport" if n % 2 else "news"} for n in range(40))
        )
        yield found


def test_match_keeps_nothing(api: Api) -> None:
    got = api("POST", "/v1/match", [{"id": "m1", "price": 5, "topic": "sport"}, {"id": "m2", "price": "x"}])
    assert got.json == {"matched": 2, "events": [{"id": "m1", "matches": ["all", "cheap"]}, {"id": "m2"}]}
    assert api("GET", "/v1/info").json["last"] == 40
    assert api("POST", "/v1/match", b"{", Content_Type="application/json").status == 400
    assert api("POST", "/v1/match", b"<a/>", Content_Type="text/html").status == 415


def test_explain(api: Api) -> None:
    asked: dict[str, Any] = {"event": {"price": 25, "topic": "sport"}}
    why = api("POST", "/v1/explain", {**asked, "subscription": "cheap"}).json
    assert why["matches"] is False
    assert [clause["held"] for clause in why["verdict"]["clauses"]] == [False, True]
    assert any("25" in line for line in why["lines"])
    held = api("POST", "/v1/explain", {"cursor": 2, "subscription": "cheap"}).json
    assert (held["matches"], held["delivered"]) == (True, "matched")
    by_id = api("POST", "/v1/explain", {"event_id": "e1", "filter": "price > 0"}).json
    assert by_id["matches"] is True
    assert by_id["lines"][-1] == "indexed by price: price > 0"
    assert (by_id["verdict"]["indexed_by"], by_id["verdict"]["verified"]) == ("price", [])
    near = api("POST", "/v1/explain", asked).json["near"]
    assert [(each["subscription"], len(each["failed"])) for each in near] == [("cheap", 1)]
    assert "did you mean 'cheap'" in api("POST", "/v1/explain", {**asked, "subscription": "chaep"}).detail
    assert api("POST", "/v1/explain", {"cursor": 99_999, "filter": "a = 1"}).status == 404
    assert api("POST", "/v1/explain", {"subscription": "cheap"}).status == 422
    assert api("POST", "/v1/explain", {**asked, "filter": "a ="}).status == 422


def test_validate(api: Api) -> None:
    filters = [
        {"filter": "price < 20", "id": "x"},
        {"filter": "price <"},
        {"filter": "prize < 20"},
        {"filter": "price < 1 AND price > 2"},
        {"filter": "//a", "dialect": "xpath"},
        {"filter": "a", "dialect": "xslt"},
    ]
    good, broken, unknown, never, xml, strange = api(
        "POST", "/v1/filters:validate", {"filters": filters, "events": 40}
    ).json["filters"]
    assert (good["valid"], good["id"], good["indexed_by"]) == (True, "x", "price")
    assert (good["matched"], good["events"]) == (0.5, 40)
    assert (good["costs"]["indexed"], good["costs"]["verified"]) == (["price"], [])
    assert (broken["valid"], broken["place"]) == (False, 7)
    assert any("price" in note for note in unknown["notes"])
    assert never["notes"] == ["it can never match"]
    assert (xml["valid"], xml.get("events", 0)) == (True, 0)
    assert "dialect 'xslt' is not known" in strange["error"]


def test_backtest(api: Api) -> None:
    said = {
        "filters": [{"filter": "price < 10"}, {"filter": "price <", "id": "bad"}],
        "subscriptions": [{"id": "cheap", "filter": "price < 30 AND topic = 'sport'"}],
    }
    got = api("POST", "/v1/backtest", said).json
    assert (got["events"], got["refused"], got["first"], got["last"], got["cut"]) == (40, 0, 1, 40, None)
    first, bad, cheap = got["filters"]
    assert (first["matched"], [each["cursor"] for each in first["sample"]]) == (10, [1, 2, 3, 4, 5])
    assert "at character" in bad["refused"]
    assert (cheap["before"], cheap["matched"], cheap["gained"], cheap.get("lost")) == (10, 15, 5, 0)
    part = api("POST", "/v1/backtest", {**said, "after": 10, "to": 30, "events": 5}).json
    assert (part["first"], part["last"], part["events"]) == (11, 15, 5)
    assert "as many as were asked for" in part["cut"]
    late = api("POST", "/v1/backtest", {**said, "since": 4e9}).json
    assert (late["events"], late["cut"]) == (0, None)
    assert api("POST", "/v1/backtest", {}).status == 422


def test_backtest_of_what_names_mean(api: Api) -> None:
    filters = [{"filter": text, "id": text} for text in ("price < 10", "Price < 10", "present(price)")]
    got = api("POST", "/v1/backtest", {"filters": filters, "names": "exact", "nulls": "told"}).json
    assert [each.get("matched", 0) for each in got["filters"]] == [10, 0, 40]
    usual = api("POST", "/v1/backtest", {"filters": filters}).json
    assert [each.get("matched", 0) for each in usual["filters"]] == [10, 10, 0]
    assert "present" in usual["filters"][2]["refused"]
    subscriptions = {"subscriptions": [{"id": "cheap", "filter": "price < 30"}], "names": "exact"}
    refused = api("POST", "/v1/backtest", subscriptions)
    assert (refused.status, "`names` is about `filters`" in refused.detail) == (422, True)
    documents = {"filters": [{"filter": "//a", "dialect": "xpath"}], "dots": "name"}
    refused = api("POST", "/v1/backtest", documents)
    assert (refused.status, "for filters of records" in refused.detail) == (422, True)
    assert api("POST", "/v1/backtest", {"filters": filters, "names": "loud"}).status == 422


def test_top(api: Api) -> None:
    assert api("PUT", "/v1/subscriptions/best", {"filter": "rank = 1", "score": 3}).status == 201
    assert api("PUT", "/v1/subscriptions/good", {"filter": "rank = 1", "score": 2}).status == 201
    said = {"events": [{"id": "t", "rank": 1, "price": -1}], "k": 1}
    assert api("POST", "/v1/top", said).json["events"] == [
        {"id": "t", "best": [{"subscription": "best", "value": 3.0, "rank": 1}]}
    ]
    why = api("POST", "/v1/explain", {"event": {"rank": 1}, "subscription": "good", "rank": {"k": 1}}).json
    assert (why["rank"]["rank"], why["rank"]["entered"], why["rank"]["short"]) == (2, False, 1.0)
    assert api("POST", "/v1/top", {**said, "hops": True}).status == 422
    relaxed = api("POST", "/v1/top", {**said, "k": 5, "mode": "relaxed", "factors": {"rank": 2}})
    assert relaxed.status == 200


def test_rows_whatever_their_capitals(api: Api) -> None:
    assert api("PUT", "/v1/subscriptions/xml", {"filter": "//a", "dialect": "xpath"}).status == 201
    for names in (("ID", "Data", "DataContentType"), ("Id", "data", "datacontenttype")):
        row = dict(zip(names, ("c", "<a/>", "xml"), strict=True))
        unnamed = {name: value for name, value in row.items() if value != "c"}
        matched = api("POST", "/v1/match", [row, unnamed]).json["events"]
        assert [each["matches"] for each in matched] == [["xml"], ["xml"]]
        assert api.publish(row) == [["xml"]]
        last = api("GET", "/v1/info").json["last"]
        assert api("GET", f"/v1/events/{last}").json["event"]["data"] == "<a/>"


def test_validate_over_documents(api: Api) -> None:
    """What is kept is text: a filter is tried over what it says."""
    kept = [{"data": f"<a><b>{n}</b></a>", "datacontenttype": "xml"} for n in range(4)]
    api.publish(*kept, {"data": "<urn:a> a <urn:C> .", "datacontenttype": "turtle"})
    filters = [{"filter": text, "dialect": "xpath"} for text in ("//a[b = 1]", "//a[count(b) = 1]", "//c")]
    filters.append({"filter": "ASK { ?x a <urn:C> }", "dialect": "sparql"})
    tried = api("POST", "/v1/filters:validate", {"filters": filters, "events": 5}).json["filters"]
    assert [(each["reached"], each["matched"]) for each in tried] == [(1, 0.25), (1, 1), (0, 0), (1, 1)]
    assert "steps for an event" in tried[1]["notes"][-1]
