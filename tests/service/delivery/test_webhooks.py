"""Webhooks: signatures, order, retries, the circuit breaker, dead letters, and a restart in between."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import apsw
import pytest
from standardwebhooks import Webhook as Standard

from headgate.service.security.webhooks import key_of, new_secret, sign
from tests.service.delivery.serving import Endpoint, Service

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.service.servers import Served, Servers


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    found = Service(tmp_path_factory.mktemp("service") / "data", private_webhooks=True, retry=0.001)
    yield found
    found.stop()


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    found = Endpoint()
    yield found
    found.close()


def _positions(got: list[tuple[dict[str, str], bytes]]) -> list[int]:
    return [int(headers["headgate-cursor"]) for headers, _ in got]


def _until(true: Any, seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_signatures_are_those_of_the_standard_library_of_webhooks() -> None:
    import datetime as dt

    for body in (b"", b"{}", '{"ü": "€"}'.encode()):
        secret = new_secret()
        at = dt.datetime(2026, 1, 2, tzinfo=dt.UTC)
        expected = Standard(secret).sign("msg_1", at, body.decode())
        assert sign(key_of(secret), "msg_1", int(at.timestamp()), body) == expected


def test_a_webhook_gets_signed_events_in_order(service: Service, endpoint: Endpoint) -> None:
    status, made, _ = service.ask("PUT", "/v1/consumers/hook", {"url": endpoint.url})
    assert (status, made["state"]["circuit"]) == (201, "closed")
    assert service.ask("PUT", "/v1/consumers/hook", {"url": endpoint.url})[1].get("secret") is None
    service.subscribe("h1", "hook", "h = 1")
    cursors = service.publish(*({"id": f"{each}", "h": 1} for each in range(20)))
    got = endpoint.wait(20)
    assert _positions(got) == cursors
    headers, body = got[0]
    assert headers["content-type"] == "application/cloudevents+json; charset=utf-8"
    assert json.loads(headers["headgate-subscriptions"]) == ["h1"]
    # The text is as it was kept, byte by byte.
    (block,) = service.tenant.store.log.read(cursors[0], 1)
    assert body == block.texts[cursors[0] - block.first]
    assert Standard(made["secret"]).verify(body.decode(), headers) == json.loads(body)
    _until(lambda: service.get("/v1/consumers/hook")["cursor"] == cursors[-1])
    attempts = service.get("/v1/consumers/hook/attempts?limit=5")
    assert [each["cursor"] for each in attempts["items"]] == cursors[:-6:-1]
    assert service.get(f"/v1/consumers/hook/attempts?before={attempts['next']}")["items"][0]["status"] == 200
    # Its own answers acknowledge, and nobody else.
    assert service.ask("POST", "/v1/consumers/hook/acknowledge", {"cursor": 1})[0] == 409
    assert service.ask("GET", "/v1/consumers/hook/listen?acknowledge=auto")[0] == 409
    tested = service.ask("POST", "/v1/consumers/hook/test")[1]
    assert (tested["delivered"], tested["status"]) == (True, 200)
    assert json.loads(endpoint.wait(21)[-1][1])["type"] == "headgate.test"
    rotated = service.ask("POST", "/v1/consumers/hook/secret")[1]["secret"]
    service.publish({"id": "rotated", "h": 1})
    headers, body = endpoint.wait(22)[-1]
    assert Standard(rotated).verify(body.decode(), headers) == json.loads(body)
    service.ask("POST", "/v1/consumers/hook/replay", {"cursor": cursors[-2]})
    assert _positions(endpoint.wait(24))[-2] == cursors[-1]


def test_failures_are_tried_again_in_order_until_they_are_dead_letters(
    service: Service, endpoint: Endpoint
) -> None:
    # The first event fails twice and is delivered, the second fails for good.
    endpoint.answer = lambda count: 200 if count in {3, 7} else (500, {"Retry-After": "0"})
    service.ask("PUT", "/v1/consumers/retry", {"url": endpoint.url, "attempts": 3})
    service.subscribe("r1", "retry", "r = 1")
    first, second, third = service.publish(*({"id": f"{each}", "r": 1} for each in range(3)))
    got = endpoint.wait(7)
    assert _positions(got) == [first] * 3 + [second] * 3 + [third]
    assert len({headers["webhook-id"] for headers, _ in got}) == 3
    _until(lambda: service.get("/v1/consumers/retry")["cursor"] == third)
    (letter,) = service.get("/v1/consumers/retry/dead-letters")["items"]
    assert (letter["cursor"], letter["attempts"], letter["event"]["id"]) == (second, 3, "1")
    assert "500" in letter["reason"]
    assert service.get("/v1/consumers/retry")["state"]["dead_letters"] == 1
    # What is tried again and fails stays; what is delivered goes.
    assert service.ask("POST", "/v1/consumers/retry/dead-letters:replay", {"cursors": [second]})[:2] == (
        202,
        {"replayed": 1},
    )
    endpoint.wait(8)
    endpoint.answer = lambda _: 200
    assert len(service.get("/v1/consumers/retry/dead-letters")["items"]) == 1
    service.ask("POST", "/v1/consumers/retry/dead-letters:replay", {})
    assert _positions(endpoint.wait(9))[-1] == second
    _until(lambda: not service.get("/v1/consumers/retry/dead-letters")["items"])


def test_the_circuit_opens_and_closes_and_410_disables(service: Service, endpoint: Endpoint) -> None:
    endpoint.answer = lambda count: 503 if count < 7 else 200
    service.ask("PUT", "/v1/consumers/circuit", {"url": endpoint.url, "attempts": 50})
    service.subscribe("c1", "circuit", "c = 1")
    seen = set()
    (cursor,) = service.publish({"id": "a", "c": 1})
    while len(endpoint.got) < 7:
        seen.add(service.get("/v1/consumers/circuit")["state"]["circuit"])
    _until(lambda: service.get("/v1/consumers/circuit")["cursor"] == cursor)
    assert service.get("/v1/consumers/circuit")["state"]["circuit"] == "closed"
    assert seen <= {"closed", "open", "half-open"}
    attempts = service.get("/v1/consumers/circuit/attempts")["items"]
    assert [each["status"] for each in attempts] == [200] + [503] * 6
    endpoint.answer = lambda _: 410
    (gone,) = service.publish({"id": "b", "c": 1})
    _until(lambda: service.get("/v1/consumers/circuit")["enabled"] is False)
    found = service.get("/v1/consumers/circuit")
    assert (found["cursor"], "410" in found["state"]["reason"], found["lag"]["events"]) == (cursor, True, 1)
    endpoint.answer = lambda _: 200
    assert service.ask("PATCH", "/v1/consumers/circuit", {"enabled": True})[0] == 200
    assert _positions(endpoint.wait(9))[-1] == gone


def test_in_parallel_the_cursor_waits_for_the_first(service: Service, endpoint: Endpoint) -> None:
    service.ask(
        "PUT",
        "/v1/consumers/beside",
        {"url": endpoint.url, "order": "parallel", "parallel": 4, "attempts": 100},
    )
    service.subscribe("b1", "beside", "b = 1")
    begin = service.get("/v1/consumers/beside")["cursor"]
    first = begin + 1
    holding = [True]

    def answer(_: int) -> int:
        return 500 if holding[0] and _positions(endpoint.got[-1:]) == [first] else 200

    endpoint.answer = answer
    cursors = service.publish(*({"id": f"{each}", "b": 1} for each in range(4)))
    assert cursors[0] == first
    _until(lambda: set(cursors) <= set(_positions(list(endpoint.got))))
    assert service.get("/v1/consumers/beside")["cursor"] == begin
    holding[0] = False
    _until(lambda: service.get("/v1/consumers/beside")["cursor"] == cursors[-1])


def test_a_redirect_is_not_followed(service: Service, endpoint: Endpoint) -> None:
    endpoint.answer = lambda _: (302, {"Location": endpoint.url})
    service.ask("PUT", "/v1/consumers/redirected", {"url": endpoint.url})
    tested = service.ask("POST", "/v1/consumers/redirected/test")[1]
    assert (tested["delivered"], tested["status"], "not followed" in tested["reason"]) == (False, 302, True)
    assert len(endpoint.got) == 1


def test_a_sink_is_a_webhook_and_a_restart_goes_on_from_the_cursor(
    tmp_path: Path, endpoint: Endpoint
) -> None:
    service = Service(tmp_path / "data", private_webhooks=True, retry=0.2)
    service.subscribe("s1", "", "s = 1", sink=endpoint.url)
    endpoint.answer = lambda count: 200 if count == 1 else 500
    first, second = service.publish({"id": "a", "s": 1}, {"id": "b", "s": 1})
    endpoint.wait(2)
    _until(lambda: service.get("/v1/consumers/sink:s1")["cursor"] == first)
    service.stop()
    endpoint.answer = lambda _: 200
    before = len(endpoint.got)
    service = Service(tmp_path / "data", private_webhooks=True, retry=0.2)
    assert _positions(endpoint.wait(before + 1))[before:] == [second]
    _until(lambda: service.get("/v1/consumers/sink:s1")["cursor"] == second)
    service.stop()


def test_dead_letters_are_tried_again_also_after_a_kill(servers: Servers, tmp_path: Path) -> None:
    """Whoever asked for it was answered: it is done, by whichever process."""
    settings: dict[str, Any] = {"private_webhooks": True, "retry": 0.001}
    server = servers.start(tmp_path / "data", **settings)
    status = 500

    def answer(_: int) -> int:
        if not status:
            # It was sent, and nothing is noted of it.
            server.kill()
        return status or 500

    endpoint = Endpoint(answer)
    letters = "/v1/consumers/hook/dead-letters"

    def left(server: Served) -> list[int]:
        return [each["cursor"] for each in server.ask("GET", letters)["items"]]

    server.ask("PUT", "/v1/consumers/hook", {"url": endpoint.url, "attempts": 1})
    server.ask("PUT", "/v1/subscriptions/all", {"filter": "true", "consumer": "hook"})
    server.ask("POST", "/v1/events", [{"id": f"e{number}"} for number in range(3)])
    _until(lambda: left(server) == [1, 2, 3])
    status = 0
    assert server.ask("POST", f"{letters}:replay", {"cursors": [1, 3]}) == {"replayed": 2}
    endpoint.wait(4)
    status = 200
    again = servers.start(tmp_path / "data", **settings)
    _until(lambda: left(again) == [2])
    assert [json.loads(body)["id"] for _, body in endpoint.got[3:]] == ["e0", "e0", "e2"]
    # One that fails once more stays, and is not tried by itself.
    status = 500
    again.ask("POST", f"{letters}:replay", {})
    endpoint.wait(7)
    reading = apsw.Connection(str(tmp_path / "data" / "tenants" / "default" / "store.db"))
    _until(lambda: not any(reading.execute("SELECT 1 FROM dead_letters WHERE again")))
    reading.close()
    again.stop()
    status = 200
    third = servers.start(tmp_path / "data", **settings)
    third.ask("POST", "/v1/events", {"id": "last"})
    assert [json.loads(body)["id"] for _, body in endpoint.wait(8)[6:]] == ["e1", "last"]
    assert left(third) == [2]
    third.stop()
    endpoint.close()
