"""Subscriptions as resources."""

from __future__ import annotations

import datetime as dt
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from tests.service.api.serving import Api, Got, serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    with serving(tmp_path_factory.mktemp("data") / "data") as found:
        yield found


def test_a_life(api: Api) -> None:
    made = api("POST", "/v1/subscriptions", {"id": "life", "filter": "life = 1", "metadata": {"a": {"b": 1}}})
    assert made.status == 201
    assert made.headers["location"] == "/v1/subscriptions/life"
    tag = made.headers["etag"]
    assert api.publish({"life": 1}, {"life": 2}) == [["life"], []]
    read = api("GET", "/v1/subscriptions/life")
    assert read.headers["etag"] == tag
    about = read.json
    assert about["statistics"]["matches"] == 1
    assert about["statistics"]["last_match"] is not None
    assert (about["state"], about["consumer"], about["indexed_by"]) == ("active", "default", "life")
    assert api("GET", "/v1/subscriptions/life", If_None_Match=tag).status == 304
    twice = api("POST", "/v1/subscriptions", {"id": "life", "filter": "life = 2"})
    assert twice.status == 409
    assert "is there already" in twice.detail
    replaced = api("PUT", "/v1/subscriptions/life", {"filter": "life = 2"}, If_Match=tag)
    assert replaced.status == 200
    late = api("PUT", "/v1/subscriptions/life", {"filter": "life = 3"}, If_Match=tag)
    assert late.status == 412
    assert "read it again" in late.detail
    assert api("PUT", "/v1/subscriptions/life", {"filter": "life = 3"}, If_None_Match="*").status == 412
    assert api("PATCH", "/v1/subscriptions/life", {"filter": "life = 3"}, If_Match=tag).status == 412
    patched = api("PATCH", "/v1/subscriptions/life", {"metadata": {"a": None, "c": 2}, "score": 2})
    assert patched.status == 200
    assert (patched.json["metadata"], patched.json["filter"]) == ({"c": 2}, "life = 2")
    assert api.publish({"life": 2}) == [["life"]]
    assert api("DELETE", "/v1/subscriptions/life", If_Match=tag).status == 412
    assert api("DELETE", "/v1/subscriptions/life").status == 204
    assert api("GET", "/v1/subscriptions/life").status == 404
    assert api("DELETE", "/v1/subscriptions/life").status == 404
    assert api("PUT", "/v1/subscriptions/life", {"filter": "life = 4"}, If_Match="*").status == 412
    assert api("PUT", "/v1/subscriptions/life", {"filter": "life = 4"}, If_None_Match="*").status == 201
    assert api.publish({"life": 4}) == [["life"]]


def test_of_two_who_replace_the_same_one_fails(tmp_path: Path) -> None:
    """Also if the index must be built anew for each of them, which takes a while."""
    filters = [{"filter": "//a", "dialect": "xpath"}, {"filter": "//b", "dialect": "xpath"}]
    with serving(tmp_path / "data") as api:
        tag = api("PUT", "/v1/subscriptions/one", {"filter": "a = 1"}).headers["etag"]
        together = threading.Barrier(2)

        def replace(said: dict[str, Any], **headers: str) -> Got:
            together.wait()
            return api("PUT", "/v1/subscriptions/one", said, **headers)

        with ThreadPoolExecutor(2) as pool:
            got = list(pool.map(lambda said: replace(said, If_Match=tag), filters))
            assert sorted(each.status for each in got) == [200, 412]
            late = next(each for each in got if each.status == 412)
            assert "is not as you know it: it has" in late.detail
            kept = next(said for said, each in zip(filters, got, strict=True) if each.status == 200)
            assert api("GET", "/v1/subscriptions/one").json["filter"] == kept["filter"]
            made = [{**said, "filter": "ASK { ?x <urn:a> 1 }", "dialect": "sparql"} for said in filters]
            got = list(
                pool.map(lambda said: api("PUT", "/v1/subscriptions/new", said, If_None_Match="*"), made)
            )
            assert sorted(each.status for each in got) == [201, 412]


REFUSED: list[tuple[Any, int, str]] = [
    ({}, 422, "there is no `filter`"),
    ({"filter": "a = 1", "types": ["x"]}, 422, "there are both"),
    ({"filter": "a ="}, 422, "at character"),
    ({"filter": "a = 1", "dialect": "xslt"}, 422, "dialect 'xslt' is not known"),
    ({"filter": "a = 1", "id": "a/b"}, 422, "does not fit"),
    ({"filter": "a = 1", "node": "x"}, 422, "there is no node 'x'"),
    ({"filter": "a = 1", "expires": "2030-01-01T00:00:00"}, 422, "has no zone"),
    ({"filter": "a = 1", "limit": {"events": 0, "period": 1}}, 422, "does not fit"),
    ({"filter": "a = 1", "colour": 1}, 422, "colour"),
    ({"filter": "a = 1", "sinkcredential": {}}, 422, "not supported"),
    ({"filter": "//a[", "dialect": "xpath"}, 422, "at character"),
]


@pytest.mark.parametrize(("body", "status", "detail"), REFUSED)
def test_refused(api: Api, body: Any, status: int, detail: str) -> None:
    got = api("POST", "/v1/subscriptions", body)
    assert got.status == status
    assert detail in got.detail


DIALECTS = [
    ("sql", "d = 1", {"d": 1}, "application/json"),
    ("labels", "subset(d_tags, 'new')", {"d_tags": ["new"]}, "application/json"),
    ("eventbridge", '{"d_eb": ["x"]}', {"d_eb": "x"}, "application/json"),
    ("elasticsearch", '{"term": {"d_es": "x"}}', {"d_es": "x"}, "application/json"),
    ("cesql", "dce = 'x'", {"dce": "x"}, "application/json"),
    ("sparql", "ASK { ?x a <urn:Art> }", "<urn:x> a <urn:Art> .", "text/turtle"),
    ("xpath", "//art", "<art/>", "application/xml"),
]


def test_every_dialect_lives_in_one_tenant(api: Api) -> None:
    for dialect, text, _, _ in DIALECTS:
        got = api("PUT", f"/v1/subscriptions/dialect-{dialect}", {"filter": text, "dialect": dialect})
        assert got.status == 201, (dialect, got)
    for dialect, _, data, kind in DIALECTS:
        event = {
            "specversion": "1.0",
            "id": "1",
            "source": "/s",
            "type": "t",
            "datacontenttype": kind,
            "data": data,
        }
        assert api.publish(event) == [[f"dialect-{dialect}"]], dialect


def test_cloudevents_subscriptions(api: Api) -> None:
    said = {"types": ["com.example.made"], "filters": [{"prefix": {"source": "/shop"}}], "config": {"a": 1}}
    assert api("PUT", "/v1/subscriptions/ce", said).status == 201
    event = {"specversion": "1.0", "id": "1", "source": "/shop/1", "type": "com.example.made"}
    assert api.publish(event, {**event, "source": "/x"}, {**event, "type": "x"}) == [["ce"], [], []]
    read = api("GET", "/v1/subscriptions/ce").json
    assert (read["types"], read["filters"], read["config"]) == (said["types"], said["filters"], {"a": 1})


def test_pages_search_and_export(api: Api) -> None:
    lines = [{"id": f"page-{number}", "filter": f"page = {number}"} for number in range(5)]
    body = "\n".join(json.dumps(each) for each in lines).encode()
    bad = b'\n{"id": "page-bad", "filter": "page ="}\n\n{"id": "x"\n'
    got = api("POST", "/v1/subscriptions:import", body + bad, Content_Type="application/x-ndjson").json
    assert (got["accepted"], got["refused"]) == (5, 2)
    assert [(each["line"], each["id"]) for each in got["errors"]] == [(6, "page-bad"), (8, None)]
    assert "at character" in got["errors"][0]["reason"]
    found: list[str] = []
    after: str | None = ""
    while after is not None:
        page = api("GET", f"/v1/subscriptions?search=page&limit=2&after={after}").json
        found += [each["id"] for each in page["items"]]
        after = page["next"]
    assert found == [each["id"] for each in lines]
    exported = [json.loads(line) for line in api("GET", "/v1/subscriptions:export").raw.splitlines()]
    assert [each for each in exported if each["id"].startswith("page")] == lines
    assert api("GET", "/v1/subscriptions?limit=0").status == 400
    assert api("GET", "/v1/subscriptions?limit=1&limit=2").status == 400
    assert api("GET", "/v1/subscriptions?colour=red").status == 400


def test_other_orders(tmp_path: Path) -> None:
    """By age and by matches, a page after the other, against a plain sort."""
    with serving(tmp_path / "data") as api:
        for number in range(23):
            body = {"filter": f"n >= {number * 7 % 23}", "consumer": f"c{number % 2}"}
            assert api("PUT", f"/v1/subscriptions/s{number:02}", body).status == 201
        assert api("PUT", "/v1/subscriptions/s99", {"filter": "n >= -5", "consumer": "c1"}).status == 201
        for value in (-1, 3, 3, 9, 22):
            api.publish({"n": value})
        assert api("DELETE", "/v1/subscriptions/s05").status == 204
        whole = api("GET", "/v1/subscriptions").json["items"]
        counts = {each["id"]: each["statistics"]["matches"] for each in whole}
        made = sorted(counts)

        def listed(more: str) -> list[str]:
            found, after = [], ""
            while True:
                page = api("GET", f"/v1/subscriptions?limit=4&after={after}&{more}").json
                found += [each["id"] for each in page["items"]]
                if page["next"] is None:
                    return found
                after = page["next"]

        assert listed("sort=newest") == made[::-1]
        assert listed("sort=most") == sorted(made, key=lambda each: -counts[each])
        assert listed("sort=least") == sorted(made, key=lambda each: counts[each])
        odd = [each for each in made if int(each[1:]) % 2]
        assert listed("sort=most&consumer=c1") == sorted(odd, key=lambda each: -counts[each])
        assert listed("sort=newest&search=S1") == [each for each in made[::-1] if "s1" in each]
        assert listed("matched=never") == [each for each in made if not counts[each]]
        assert listed("matched=always") == ["s99"]
        for odd_number in ("/v1/events/%C2%B3", "/v1/consumers/c1/listen?after=%C2%B3"):
            assert api("GET", odd_number).status in {400, 404}
        for wrong in ("sort=odd", "matched=some", "sort=most&after=x", "sort=most&consumer=none"):
            refused = api("GET", f"/v1/subscriptions?{wrong}")
            assert refused.status in {400, 404}, wrong
            assert refused.detail


def test_an_import_of_many_is_one_build(api: Api) -> None:
    lines = [json.dumps({"id": f"many-{number}", "filter": f"many = {number}"}) for number in range(2_000)]
    lines[7] = json.dumps({"id": "many-7", "filter": "many ="})
    lines[8] = json.dumps({"id": "many-8", "filter": "many = 8", "score": 2.0})
    got = api(
        "POST", "/v1/subscriptions:import", "\n".join(lines).encode(), Content_Type="application/x-ndjson"
    ).json
    assert (got["accepted"], [each["line"] for each in got["errors"]]) == (1_999, [8])
    assert api.publish({"many": 1_999}, {"many": 7}) == [["many-1999"], []]


def _later(seconds: float) -> str:
    return (dt.datetime.now(dt.UTC) + dt.timedelta(seconds=seconds)).isoformat()


def test_expiry_and_renewal(api: Api) -> None:
    for name in ("ending", "renewed"):
        assert api("PUT", f"/v1/subscriptions/{name}", {"filter": "ending = 1"}).status == 201
    assert api.publish({"ending": 1}) == [["ending", "renewed"]]
    for name in ("ending", "renewed"):
        assert api("PATCH", f"/v1/subscriptions/{name}", {"expires": _later(0.3)}).status == 200
    assert api("PATCH", "/v1/subscriptions/renewed", {"expires": _later(600)}).status == 200
    time.sleep(0.4)
    assert api.publish({"ending": 1}) == [["renewed"]]
    assert api("GET", "/v1/subscriptions/ending").json["state"] == "expired"
    why = api("POST", "/v1/explain", {"event": {"ending": 1}, "subscription": "ending"}).json
    assert any("has expired" in note for note in why["notes"])
    assert api("PATCH", "/v1/subscriptions/ending", {"expires": None}).json["state"] == "active"
    assert api.publish({"ending": 1}) == [["ending", "renewed"]]


def test_limits_and_digests_across_a_restart(tmp_path: Path) -> None:
    with serving(tmp_path / "data") as api:
        for name, digest in (("held", False), ("told", True)):
            limit = {"events": 2, "period": 1 if digest else 3_600, "digest": digest}
            said = {"filter": f"{name} = 1", "limit": limit}
            assert api("PUT", f"/v1/subscriptions/{name}", said).status == 201
        fresh = {"events": 1, "period": 3_600}
        assert api("PUT", "/v1/subscriptions/unused", {"filter": "unused = 1", "limit": fresh}).status == 201
        # Events of one request come at one time.
        api.publish(*[{"held": 1, "told": 1}] * 3)
        kept = api("GET", "/v1/events/3").json
        assert (kept["matches"], sorted(kept["held"])) == ([], ["held", "told"])
        assert api("GET", "/v1/subscriptions/held").json["statistics"]["held"] == 1
        why = api("POST", "/v1/explain", {"cursor": 3, "subscription": "held"}).json
        assert (why["matches"], why["delivered"]) == (True, "held")
        assert any("2 events in 3600 seconds" in note for note in why["notes"])
    with serving(tmp_path / "data") as api:
        api.publish({"held": 1, "unused": 1}, {"unused": 1})
        assert api("GET", "/v1/subscriptions/held").json["statistics"]["held"] == 2
        assert api("GET", "/v1/subscriptions/unused").json["statistics"]["held"] == 1
        ended = time.monotonic() + 60
        while not (digests := _digests(api)) and time.monotonic() < ended:
            time.sleep(0.1)
        (digest,) = digests
        assert digest["matches"] == ["told"]
        assert digest["event"]["data"]["held"] == 1
        time.sleep(0.6)
        assert len(_digests(api)) == 1


def _digests(api: Api) -> list[Any]:
    items = api("GET", "/v1/events").json["items"]
    return [each for each in items if each["event"]["type"] == "headgate.digest"]
