"""Who may ask for what; limits on requests; quotas; who did what."""

from __future__ import annotations

import gzip
import json
import socket
import time
from typing import TYPE_CHECKING, Any

import pytest
from starlette.requests import Request

from headgate.service.api.openapi import document, problems_of
from headgate.service.api.operation import OPERATIONS
from headgate.service.problems import Problem
from headgate.service.security.keys import check_local
from tests.cli.running import Command
from tests.service.api.serving import Api, serving

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headgate.service.api.operation import Operation

OTHERS = {"publish": "read", "subscribe": "publish", "read": "publish", "admin": "read"}
"""For each scope, another one that does not include it."""


class Keyed:
    """A server with keys of two tenants."""

    def __init__(self, api: Api) -> None:
        self.api = api
        keys = api.server.keys
        self.admin = keys.add("one", ["admin"])[1]
        self.other = keys.add("two", ["admin"])[1]
        self.scoped = {scope: keys.add("one", [scope])[1] for scope in ("publish", "subscribe", "read")}


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keyed]:
    with serving(tmp_path_factory.mktemp("data") / "data", upload=0.5, body=50_000) as api:
        yield Keyed(api)


def _path(asked: Operation) -> str:
    return asked.path.replace("{id}", "secret").replace("{cursor}", "1")


@pytest.mark.parametrize("asked", OPERATIONS, ids=lambda each: each.name)
def test_every_route_is_refused(keyed: Keyed, asked: Operation) -> None:
    """Without a key, with a wrong one, and without the scope."""
    if asked.public:
        assert keyed.api(asked.method, _path(asked)).status == 200
        return
    none = keyed.api(asked.method, _path(asked))
    assert (none.status, none.headers["www-authenticate"]) == (401, "Bearer")
    assert "there is no key" in none.detail
    for wrong in ("hg_x_y", "x", keyed.admin[:-1] + "x", keyed.admin.replace("hg", "gh")):
        assert keyed.api(asked.method, _path(asked), key=wrong).status == 401
    lacking = keyed.api(asked.method, _path(asked), key=keyed.scoped[OTHERS[asked.scope]])
    assert lacking.status == 403
    assert f"no scope {asked.scope!r}" in lacking.detail


def test_tenants_do_not_see_each_other(keyed: Keyed) -> None:
    api, other = keyed.api, keyed.other
    secret = {"filter": "secret = 1"}
    assert api("PUT", "/v1/subscriptions/secret", secret, key=keyed.admin).status == 201
    assert api("PUT", "/v1/graph/nodes/secret", {}, key=keyed.admin).status == 201
    event = {"id": "secret", "secret": 1}
    assert api("POST", "/v1/events", event, key=keyed.admin).json["matched"] == 1
    made = api("POST", "/v1/keys", {"scopes": ["read"], "note": "secret"}, key=keyed.admin).json
    assert api("GET", "/v1/info", key=made["text"]).json["scopes"] == ["read"]
    for asked in OPERATIONS:
        if asked.public or asked.method != "GET":
            continue
        got = api("GET", _path(asked), key=other)
        assert b"secret" not in got.raw.replace(b"/secret", b"").replace(b"'secret'", b""), asked.name
        assert got.status == (404 if "{" in asked.path or asked.path == "/v1/taxonomy" else 200), asked.name
    for method, path in (
        ("DELETE", "/v1/subscriptions/secret"),
        ("DELETE", "/v1/graph/nodes/secret"),
        ("DELETE", f"/v1/keys/{made['id']}"),
        ("PATCH", "/v1/subscriptions/secret"),
    ):
        body: dict[str, Any] | None = {} if method == "PATCH" else None
        assert api(method, path, body, key=other).status == 404
    assert api("POST", "/v1/match", event, key=other).json["matched"] == 0
    assert api("POST", "/v1/explain", {"event": event, "subscription": "secret"}, key=other).status == 404
    assert api("POST", "/v1/explain", {"cursor": 1, "filter": "true"}, key=other).status == 404
    tried = api("POST", "/v1/backtest", {"filters": [{"filter": "true"}]}, key=other)
    assert tried.json["events"] == 0
    assert api("GET", "/v1/subscriptions/secret", key=keyed.admin).status == 200
    # Keys: shown once, listed without their text, gone when deleted.
    listed = api("GET", "/v1/keys?search=secret", key=keyed.admin).json["items"]
    assert [each["id"] for each in listed] == [made["id"]]
    assert "text" not in listed[0]
    assert api("DELETE", f"/v1/keys/{made['id']}", key=keyed.admin).status == 204
    assert api("GET", "/v1/info", key=made["text"]).status == 401
    own = api("GET", "/v1/keys", key=other).json["items"]
    assert api("DELETE", f"/v1/keys/{own[0]['id']}", key=other).status == 409
    actions = [each["action"] for each in api("GET", "/v1/audit", key=keyed.admin).json["items"]]
    assert actions == ["replace subscription", "put node", "create key", "delete key"]
    page = api("GET", "/v1/audit?limit=3", key=keyed.admin).json
    rest = api("GET", f"/v1/audit?limit=3&after={page['next']}", key=keyed.admin).json
    assert ([each["action"] for each in rest["items"]], rest["next"]) == (["delete key"], None)
    assert keyed.admin.split("_")[1] in {each["key"] for each in page["items"]}


def test_quotas(keyed: Keyed, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """They are set where the data are, and the service takes them while it runs; tenants only read them."""
    command, place = Command(monkeypatch, capsys), keyed.api.server.settings.place

    def api(method: str, path: str, body: Any = None) -> Any:
        return keyed.api(method, path, body, key=keyed.other)

    def set_quotas(*said: str) -> dict[str, Any]:
        done = command("service", "quotas", "--data", place, "--tenant", "two", "--json", *said)
        assert done.code == 0, done.err
        return done.json

    def wait_for(wanted: dict[str, Any]) -> None:
        until = time.monotonic() + 20
        while api("GET", "/v1/quotas").json != wanted:
            assert time.monotonic() < until, api("GET", "/v1/quotas").json
            time.sleep(0.02)

    assert api("PUT", "/v1/quotas", {"subscriptions": 10**6}).status == 405
    whole = {"subscriptions": 2, "filter_length": 30, "events_a_second": 1000.0}
    given = ["--subscriptions", "2", "--filter-length", "30", "--events-a-second", "1000"]
    assert set_quotas(*given) == whole
    wait_for(whole)
    assert keyed.api("GET", "/v1/quotas", key=keyed.admin).json == {}
    for name in ("q1", "q2"):
        assert api("PUT", f"/v1/subscriptions/{name}", {"filter": "q = 1"}).status == 201
    third = api("POST", "/v1/subscriptions", {"filter": "q = 1"})
    assert (third.status, "the quota is 2" in third.detail) == (403, True)
    assert api("PUT", "/v1/subscriptions/q2", {"filter": "q = 2"}).status == 200
    long = api("PUT", "/v1/subscriptions/q2", {"filter": "q = 2 OR " * 5 + "q = 3"})
    assert (long.status, "the quota is 30" in long.detail) == (403, True)
    body = b'{"id": "q3", "filter": "q = 1"}\n{"id": "q1", "filter": "q = 3"}'
    got = keyed.api(
        "POST", "/v1/subscriptions:import", body, key=keyed.other, Content_Type="application/x-ndjson"
    ).json
    assert (got["accepted"], [each["id"] for each in got["errors"]]) == (1, ["q3"])
    unindexed = {"filter": "count(//*) > 3", "dialect": "xpath"}
    assert api("PUT", "/v1/subscriptions/q1", unindexed).status == 422
    report = api("POST", "/v1/filters:validate", {"filters": [unindexed]}).json["filters"][0]
    assert (report["valid"], report["unindexed"]) == (False, True)
    assert set_quotas("--clear", "--unindexed") == {"unindexed": True}
    wait_for({"unindexed": True})
    assert api("PUT", "/v1/subscriptions/q1", unindexed).status == 200
    assert api("GET", "/v1/subscriptions/q1").json["unindexed"] is True
    # A filter that is there stays, and with it the leave to have it.
    assert set_quotas("--no-unindexed", "--events-a-second", "2") == {"events_a_second": 2.0}
    wait_for({"unindexed": True, "events_a_second": 2.0})
    missing = command("service", "quotas", "--data", place / "nowhere", "--subscriptions", "5")
    assert "nowhere does not exist: give the directory that `headgate serve` was given" in missing.complaint
    assert not (place / "nowhere").exists()
    refused = command("service", "quotas", "--data", place, "--tenant", "two", "--subscriptions", "0")
    assert refused.complaint == "subscriptions is 0: give a number above 0, or leave it out"
    told = command("service", "quotas", "--data", place, "--tenant", "two").out
    assert "subscriptions: no limit\nevents_a_second: 2.0\n" in told
    noted = api("GET", "/v1/audit?search=quotas").json["items"]
    assert [each["action"] for each in noted] == ["set quotas"] * 3
    statuses = [api("POST", "/v1/events", {"q": 1}).status for _ in range(8)]
    assert statuses[0] == 200
    assert 429 in statuses


EVENT = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t"}
STRUCTURED, BATCH = "application/cloudevents+json", "application/cloudevents-batch+json"
MALFORMED: list[tuple[str, bytes, dict[str, str]]] = [
    (STRUCTURED, b"", {}),
    (STRUCTURED, b"{", {}),
    (STRUCTURED, b"[]", {}),
    (STRUCTURED, b"\xff\xfe", {}),
    (STRUCTURED, b"null", {}),
    (STRUCTURED, b"[" * 10_000, {}),
    *(
        (STRUCTURED, json.dumps({**EVENT, **more}).encode(), {})
        for more in (
            {"specversion": "2.0"},
            {"id": ""},
            {"id": 7},
            {"source": None},
            {"type": ["t"]},
            {"time": "yesterday"},
            {"time": 5},
            {"datacontenttype": ""},
            {"data_base64": "%%%"},
            {"data": 1, "data_base64": "MQ=="},
            {"My-Name": "x"},
            {"extension": {"a": 1}},
            {"extension": 2**40},
            {"datacontenttype": "text/turtle", "data": {"a": 1}},
        )
    ),
    (BATCH, json.dumps(EVENT).encode(), {}),
    (BATCH, b"[]", {}),
    (BATCH, b"[1]", {}),
    (BATCH, json.dumps([EVENT, {}]).encode(), {}),
    ("application/json", b"{}", {"ce-id": "1"}),
    ("application/json", b"{", {"ce-id": "1", "ce-specversion": "1.0", "ce-source": "/s", "ce-type": "t"}),
    ("application/json", b"{}", {"ce-id": "%ff", "ce-specversion": "1.0", "ce-source": "/s", "ce-type": "t"}),
    ("application/json", b"{}", {"ce-id": "1", "ce-specversion": "9", "ce-source": "/s", "ce-type": "t"}),
    ("text/csv", b"a,b", {}),
    ("", b"{}", {}),
    ("application/x-ndjson", b'{"a": 1}\n{', {}),
]


@pytest.mark.parametrize("route", ["/v1/events", "/v1/match"])
def test_malformed_events(keyed: Keyed, route: str) -> None:
    for content_type, body, headers in MALFORMED:
        given = {"Content-Type": content_type, **headers}
        got = keyed.api("POST", route, body, key=keyed.admin, **given)
        assert got.status in {400, 415}, (content_type, body[:60], got)
        assert got.detail


def test_limits_of_requests(keyed: Keyed) -> None:
    api, port = keyed.api, keyed.api.port
    big = b'{"a": "' + b"x" * 60_000 + b'"}'
    assert api("POST", "/v1/events", big, key=keyed.admin, Content_Type="application/json").status == 413
    bomb = gzip.compress(b" " * 50_000_000)
    assert len(bomb) < 50_000
    given = {"Content_Type": "application/json", "Content_Encoding": "gzip"}
    assert api("POST", "/v1/events", bomb, key=keyed.admin, **given).status == 413
    assert api("POST", "/v1/events", b"no gzip", key=keyed.admin, **given).status == 400
    cut = gzip.compress(b'{"a": 1}')[:-4]
    assert api("POST", "/v1/events", cut, key=keyed.admin, **given).status == 400
    packed = gzip.compress(b'{"a": 1}')
    assert api("POST", "/v1/events", packed, key=keyed.admin, **given).status == 200
    given["Content_Encoding"] = "br"
    assert api("POST", "/v1/events", packed, key=keyed.admin, **given).status == 415
    assert api("GET", "/v1/info", key=keyed.admin, X_Long="x" * 60_000).status == 200
    assert api("GET", "/v1/info", key=keyed.admin, X_Long="x" * 70_000).status == 431
    with socket.create_connection(("127.0.0.1", port)) as line:
        line.sendall(b"GET /v1/info HTTP/1.1\r\nX-Endless: ")
        with pytest.raises((BrokenPipeError, ConnectionResetError)):
            line.sendall(b"x" * 100_000_000)
    with socket.create_connection(("127.0.0.1", port)) as line:
        began = time.monotonic()
        line.sendall(
            b"POST /v1/events HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: 100\r\n"
            b"Authorization: Bearer " + keyed.admin.encode() + b"\r\n\r\n{"
        )
        line.settimeout(20)
        assert b" 408 " in line.recv(100)
        assert 0.4 < time.monotonic() - began < 15


def test_what_is_not_there(keyed: Keyed) -> None:
    nothing = keyed.api("GET", "/v1/nothing", key=keyed.admin)
    assert (nothing.status, "/v1/openapi.json" in nothing.detail) == (404, True)
    wrong = keyed.api("PUT", "/v1/events", key=keyed.admin)
    assert (wrong.status, "it takes" in wrong.detail) == (405, True)


def test_the_description_is_whole(keyed: Keyed) -> None:
    about = json.loads(document())
    assert about["openapi"] == "3.1.0"
    for asked in OPERATIONS:
        told = about["paths"][asked.path][asked.method.lower()]
        assert set(map(int, told["responses"])) == {*asked.answers, *problems_of(asked)}, asked.name
    stream = about["paths"]["/v1/consumers/{id}/listen"]["get"]["responses"]["200"]["content"]
    # Readers of OpenAPI 3.1 take it for the schema of each event.
    assert stream == {"text/event-stream": {"schema": {"$ref": "#/components/schemas/SentEvent"}}}
    assert about["components"]["schemas"]["SentEvent"]["required"] == ["data"]
    page = keyed.api("GET", "/v1/docs")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert b"http://" not in page.raw.replace(b"http://www.w3.org", b"")
    assert b"https://" not in page.raw


def test_a_service_that_lost_its_keys_is_closed() -> None:
    """Where others can reach it, nobody is everybody: removing all keys while it runs opens nothing."""
    asked = Request({"type": "http", "headers": [(b"host", b"localhost")], "path": "/", "method": "GET"})
    check_local(asked, "127.0.0.1")
    for host in ("0.0.0.0", "192.0.2.7", "headgate.example"):
        with pytest.raises(Problem, match="there are no keys any more") as refused:
            check_local(asked, host)
        assert refused.value.status == 401
