"""Consumers on the console: listed, made, changed, tried, replayed, deleted and brought back."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from headgate.service.security.keys import Keys
from headgate.service.server import make_place
from tests.console.serving import Served, Visitor, answering, closed_port, serving, until
from tests.service.delivery.serving import Endpoint

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_IMAGE = '"><img src=x onerror=alert(1)>'


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Return a server whose webhooks may go to this machine, and are tried again at once."""
    with serving(tmp_path_factory.mktemp("consumers"), private_webhooks=True, retry=0.001) as found:
        yield found


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    """Return what webhooks are sent to; it refuses them until told otherwise."""
    found = Endpoint(lambda _: 503)
    yield found
    found.close()


def test_none_is_a_lesson(tmp_path: Path) -> None:
    """Without consumers the page says what one is, and how to have one."""
    with serving(tmp_path) as served:
        seen = served.visitor().get("/console/consumers")
        assert "A consumer is a queue with a cursor" in seen.text
        assert "/v1/consumers/me/deliveries" in seen.text


def test_a_consumer_that_pulls(served: Served) -> None:
    """It is made, waits, is previewed without being acknowledged, replayed, and becomes a webhook."""
    visitor = served.visitor()
    visitor.get("/console/consumers")
    seen = visitor.post("/console/consumers", {"id": "puller"})
    assert "consumer puller is there" in seen.text
    assert "It has no subscription" in seen.text
    with served.client() as client:
        client.subscribe("s", "a > 0", consumer="puller")
        client.publish([{"id": f"e{number}", "a": number} for number in range(1, 8)])
        cursor = client.ask("GET", "/v1/consumers/puller")["cursor"]
        counts = served.running.server.dispatchers["default"].counts
        seen = visitor.get("/console/consumers/puller/live", HX_Request="true")
        assert "Lag 7" in seen.text
        assert "e1" in seen.text
        assert "e6" not in seen.text
        assert client.ask("GET", "/v1/consumers/puller")["cursor"] == cursor
        # Looking is no delivery.
        assert counts["pull"] == 0
        client.ask("POST", "/v1/consumers/puller/acknowledge", {"cursor": cursor + 7})
        assert "Nothing waits" in visitor.get("/console/consumers/puller").text
        visitor.post("/console/consumers/puller/replay", {"cursor": str(cursor + 4), "since": ""})
        assert client.ask("GET", "/v1/consumers/puller")["lag"]["events"] == 3
        seen = visitor.post("/console/consumers/puller/replay", {"since": "2026-01-01T00:00:00"})
        assert "gets again what came after cursor 0" in seen.text
        seen = visitor.post("/console/consumers/puller/replay", {"cursor": "999999"})
        assert (seen.status, "is after the last event" in seen.text) == (422, True)
        seen = visitor.post("/console/consumers/puller", {"url": "ftp://x"})
        assert seen.status == 422
        assert 'value="ftp://x"' in seen.body
    seen = visitor.get("/console/consumers?search=PULL")
    assert "puller" in seen.text
    assert "No consumer has nobody in its id" in visitor.get("/console/consumers?search=nobody").text


def test_a_webhook(served: Served, endpoint: Endpoint) -> None:
    """Its secret is shown once; attempts and dead letters are listed, replayed and dropped."""
    visitor, place = served.visitor(), "/console/consumers/hook"
    visitor.get("/console/consumers")
    form = {"id": "hook", "url": endpoint.url, "order": "parallel", "parallel": "4", "attempts": "1"}
    form["timeout"] = "2"
    seen = visitor.post("/console/consumers", form)
    (secret,) = re.findall(r'<pre id="secret">(whsec_[^<]+)</pre>', seen.body)
    assert visitor.place == "/console/consumers"
    assert secret not in visitor.get(place).body
    assert "there is a consumer 'hook' already" in visitor.post("/console/consumers", form).text
    with served.client() as client:
        client.subscribe("h", "hook = true", consumer="hook")
        client.publish([{"id": f"<b>{number}", "hook": True} for number in range(3)])

        def letters() -> list[Any]:
            found: list[Any] = client.ask("GET", "/v1/consumers/hook/dead-letters")["items"]
            return found

        until(lambda: len(letters()) == 3)
        seen = visitor.get(place)
        assert "&lt;b&gt;0" in seen.body
        assert "<b>0" not in seen.body
        assert "503" in seen.text
        assert "The last failure" in seen.text
        first, second, third = (each["cursor"] for each in letters())
        assert "no dead letter is chosen" in visitor.post(f"{place}/dead-letters", {"what": "replay"}).text
        for wrong in ("burn all", f"replay {first}x", "drop 999"):
            assert visitor.post(f"{place}/dead-letters", {"what": wrong}).status in {404, 422}
        endpoint.answer = lambda _: 200
        visitor.get(place)
        seen = visitor.post(f"{place}/test", HX_Request="true")
        assert "The webhook answered 200" in seen.text
        seen = visitor.post(f"{place}/dead-letters", {"what": f"replay {first}"})
        assert "1 dead letters are tried as soon as it may be called" in seen.text
        until(lambda: len(letters()) == 2)
        visitor.post(f"{place}/dead-letters", {"what": "drop", f"letter-{third}": "on"})
        assert [each["cursor"] for each in letters()] == [second]
        visitor.post(f"{place}/dead-letters", {"what": "replay all"})
        until(lambda: not letters())
        seen = visitor.get(place)
        assert (seen.body.count(">delivered</span>"), seen.body.count('value="replay ')) == (2, 1), (
            "replay all"
        )
        seen = visitor.post(f"{place}/secret")
        (other,) = re.findall(r'<pre id="secret">(whsec_[^<]+)</pre>', seen.body)
        assert other != secret
        visitor.get(place)
        assert (
            "is not called until you enable it" in visitor.post(f"{place}/enabled", {"enabled": "false"}).text
        )
        assert "disabled" in visitor.get("/console/consumers").text
        visitor.post(f"{place}/enabled", {"enabled": "true"})
        changed = {**form, "order": "ordered", "attempts": "7"}
        assert "consumer hook is changed" in visitor.post(place, changed).text
        found = client.ask("GET", "/v1/consumers/hook")
        assert (found["order"], found["attempts"], found["enabled"]) == ("ordered", 7, True)


def test_delete_is_undone_with_subscriptions_and_secret(served: Served, endpoint: Endpoint) -> None:
    """What is deleted comes back as it was; the secret is the same, and in no page."""
    visitor = served.visitor()
    with served.client() as client:
        made = client.ask("PUT", "/v1/consumers/gone", {"url": endpoint.url, "attempts": 3})
        client.subscribe("g", "gone = 1", consumer="gone", score=2.5)
        stored = served.running.server.tenants["default"].consumer("gone")
        visitor.get("/console/consumers/gone")
        assert visitor.post("/console/consumers/gone/delete").status == 409
        visitor.get("/console/consumers/gone")
        seen = visitor.post("/console/consumers/gone/delete", {"subscriptions": "delete"})
        assert "consumer gone is deleted, with its subscriptions: 1" in seen.text
        assert visitor.get("/console/consumers/gone").status == 404
        (name,) = re.findall(r'name="what" value="([0-9a-f]+)"', seen.body)
        visitor.get("/console/consumers")
        seen = visitor.post("/console/undo", {"what": name})
        assert "consumer gone is back" in seen.text
        found = client.ask("GET", "/v1/consumers/gone")
        assert (found["attempts"], found["subscriptions"]) == (3, 1)
        assert client.ask("GET", "/v1/subscriptions/g")["score"] == 2.5
        again = served.running.server.tenants["default"].consumer("gone")
        assert stored is not None
        assert again is not None
        assert again.said.secret == stored.said.secret == made["secret"]
        assert made["secret"] not in visitor.get("/console/consumers/gone").body


def test_two_people_change_a_consumer(served: Served, endpoint: Endpoint) -> None:
    """Who saves a form that is not of now is told, and changes nothing."""
    one, other = served.visitor(), served.visitor()
    with served.client() as client:
        client.ask("PUT", "/v1/consumers/shared", {"url": endpoint.url, "attempts": 3})
        known = re.compile(r'name="revision" value="(\d+)"')
        revision = [known.findall(each.get("/console/consumers/shared").body)[0] for each in (one, other)]
        form = {"url": endpoint.url, "attempts": "4", "revision": revision[0]}
        assert one.post("/console/consumers/shared", form).status == 200
        seen = other.post("/console/consumers/shared", form | {"attempts": "5", "revision": revision[1]})
        assert seen.status == 412
        assert known.findall(seen.body) == [revision[1]]
        assert client.ask("GET", "/v1/consumers/shared")["attempts"] == 4


def test_odd_names_are_text(served: Served) -> None:
    """Names and searches with tags in them are shown as they are."""
    visitor = served.visitor()
    visitor.get("/console/consumers")
    seen = visitor.post("/console/consumers", {"id": "<script>alert(1)</script>"})
    assert seen.status == 422
    assert "cannot be the id of a consumer" in seen.text
    seen = visitor.post("/console/consumers", {"id": _IMAGE})
    assert seen.status == 200
    for path in ("/console/consumers", visitor.place, "/console/consumers?search={{7*7}}<script>alert(1)"):
        body = visitor.get(path).body
        assert "<img" not in body.replace('<img src="/console/assets', "")
        assert "<script>alert" not in body
        assert ">49<" not in body
    assert "&#34;&gt;&lt;img" in visitor.get("/console/consumers").body
    assert visitor.get("/console/consumers/' OR 1=1".replace(" ", "%20")).status == 404


def test_who_only_reads_changes_nothing(tmp_path: Path) -> None:
    """A key without `subscribe` sees no buttons, and is refused where it sends forms by itself."""
    make_place(tmp_path)
    keys = Keys(tmp_path)
    reading, admin = keys.add("default", ["read"])[1], keys.add("default", ["admin"])[1]
    keys.close()
    with serving(tmp_path) as served:
        served.client(admin).ask("PUT", "/v1/consumers/c", {})
        visitor: Visitor = served.visitor()
        visitor.post("/console/sign-in", {"key": reading, "next": "/console/consumers"})
        assert "Create a consumer" not in visitor.get("/console/consumers").text
        assert "Delete" not in visitor.get("/console/consumers/c").text
        assert visitor.post("/console/consumers", {"id": "x"}).status == 403
        for path in ("", "/enabled", "/secret", "/test", "/replay", "/dead-letters", "/delete"):
            form = {"what": "drop all", "cursor": "0"}
            assert visitor.post(f"/console/consumers/c{path}", form).status == 403, path
        assert visitor.post("/console/consumers/c/delete", {"token": "x"}).status == 403
        assert visitor.post("/console/consumers/c/delete", Origin="https://example.com").status == 403


def test_replays_do_not_wait_for_the_circuit_of_another_endpoint(tmp_path: Path) -> None:
    """Dead letters that wait for an open circuit are delivered as soon as the consumer has another URL."""
    with (
        serving(tmp_path, private_webhooks=True) as served,
        served.client() as client,
        closed_port() as closed,
        answering() as (port, taken),
    ):
        client.consumer("hook", url=f"http://127.0.0.1:{closed}/", attempts=1, order="parallel")
        client.subscribe("called", "n > 0", consumer="hook")
        client.publish([{"id": str(n), "n": n} for n in range(1, 7)])
        until(lambda: client.ask("GET", "/v1/consumers/hook")["state"].get("circuit") == "open")
        client.ask("POST", "/v1/consumers/hook/dead-letters:replay", {})
        client.consumer("hook", url=f"http://127.0.0.1:{port}/", attempts=1, order="parallel")
        assert taken.wait(15)
        until(lambda: not client.ask("GET", "/v1/consumers/hook/dead-letters")["items"])
