"""Consuming over HTTP: consumers as resources, pull, server-sent events, WebSocket."""

from __future__ import annotations

import json
import socket
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from tests.service.delivery.serving import Service

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    found = Service(tmp_path_factory.mktemp("service") / "data", stall=1.0, heartbeat=0.2)
    yield found
    found.stop()


def test_a_consumer_is_a_resource(service: Service) -> None:
    path = "/v1/consumers/resource"
    assert service.ask("GET", path)[0] == 404
    assert service.ask("PUT", path, {}, {"If-Match": "*"})[0] == 412
    status, made, headers = service.ask("PUT", path, {"metadata": {"team": "a"}})
    assert (status, made["id"], made["metadata"]) == (201, "resource", {"team": "a"})
    assert headers["etag"] == f'"{made["revision"]}"'
    assert service.ask("PUT", path, {}, {"If-Match": '"0"'})[0] == 412
    assert service.ask("PUT", path, {}, {"If-None-Match": "*"})[0] == 412
    status, found, headers = service.ask("PATCH", path, {"metadata": {"b": 1}}, {"If-Match": headers["etag"]})
    assert (status, found["metadata"]) == (200, {"team": "a", "b": 1})
    status, found, _ = service.ask("PATCH", path, {"metadata": None}, {"If-Match": headers["etag"]})
    assert (status, "metadata" in found) == (200, False)
    assert service.get("/v1/consumers?search=RESOU")["items"][0]["id"] == "resource"
    service.ask("PUT", "/v1/consumers/resource2", {})
    page = service.get("/v1/consumers?search=resource&limit=1")
    assert (page["items"][0]["id"], page["next"]) == ("resource", "resource")
    assert service.get("/v1/consumers?search=resource&after=resource")["items"][0]["id"] == "resource2"
    assert service.ask("DELETE", path)[0] == 204
    assert service.ask("DELETE", path)[0] == 404


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "detail"),
    [
        ("PUT", "/v1/consumers/x", {"url": "http://10.0.0.1/"}, 422, "no public address"),
        ("PUT", "/v1/consumers/x", {"url": "https://example.com/", "secret": "s"}, 422, "whsec_"),
        ("PUT", "/v1/consumers/x", {"id": "y"}, 422, "the path"),
        ("PUT", "/v1/consumers/x", {"colour": 1}, 422, "colour"),
        ("PUT", "/v1/consumers/%20x", {}, 422, "cannot be the id"),
        ("PUT", "/v1/consumers/a%2Fb", {}, 404, "an id has no '/'"),
        ("POST", "/v1/subscriptions", {"id": "a/b", "filter": "x = 1"}, 422, "an id: text without '/'"),
        ("PATCH", "/v1/consumers/none", {}, 404, "no consumer 'none'"),
        ("PATCH", "/v1/consumers/there", {"order": "other"}, 422, "order"),
        ("PATCH", "/v1/consumers/there", {"id": "z"}, 422, "cannot be changed"),
        ("GET", "/v1/consumers?limit=0", None, 400, "1 to 1000"),
        ("GET", "/v1/consumers/there/deliveries?limit=1001", None, 400, "1 to 1000"),
        ("GET", "/v1/consumers/there/deliveries?wait=31", None, 400, "0 to 30"),
        ("GET", "/v1/consumers/there/deliveries?after=99999", None, 400, "the last event has"),
        ("GET", "/v1/consumers/none/deliveries", None, 404, "no consumer"),
        ("GET", "/v1/consumers/there/listen?after=99999", None, 400, "the last event has"),
        ("GET", "/v1/consumers/there/listen?acknowledge=maybe", None, 400, "acknowledge"),
        ("POST", "/v1/consumers/there/acknowledge", {"cursor": 99_999}, 422, "after the last event"),
        ("POST", "/v1/consumers/there/acknowledge", {"cursor": -1}, 422, "cursor"),
        ("POST", "/v1/consumers/there/replay", {}, 422, "`cursor` or `since`"),
        ("POST", "/v1/consumers/there/replay", {"cursor": 99_999}, 422, "after the last event"),
        ("POST", "/v1/consumers/there/replay", {"since": "2026-01-01T00:00:00"}, 422, "offset"),
        ("POST", "/v1/consumers/there/test", None, 409, "no webhook"),
        ("POST", "/v1/consumers/there/secret", None, 409, "no webhook"),
        ("POST", "/v1/consumers/there/dead-letters:replay", {}, 409, "is not called"),
        ("DELETE", "/v1/consumers/there/dead-letters?cursors=a", None, 400, "numbers"),
        ("DELETE", "/v1/consumers/there/dead-letters?cursors=1", None, 404, "no dead letter"),
    ],
)
def test_what_is_wrong_is_said(
    service: Service, method: str, path: str, body: Any, status: int, detail: str
) -> None:
    service.ask("PUT", "/v1/consumers/there", {})
    found = service.ask(method, path, body)
    assert (found[0], detail in found[1]["detail"]) == (status, True), found


def test_a_consumer_with_subscriptions_is_deleted_only_with_them(service: Service) -> None:
    service.subscribe("d1", "doomed")
    status, found, _ = service.ask("DELETE", "/v1/consumers/doomed")
    assert (status, "1 subscriptions" in found["detail"]) == (409, True)
    stream = service.listen("/v1/consumers/doomed/listen")
    assert service.ask("DELETE", "/v1/consumers/doomed?subscriptions=delete")[0] == 204
    (end,) = stream.take(1)
    stream.close()
    assert (end["event"], "was deleted" in end["data"]["reason"]) == ("end", True)
    assert service.tenant.names.numbers.get("d1") is None


def test_pulling_acknowledging_and_replaying(service: Service) -> None:
    service.subscribe("p1", "puller", "k = 1")
    service.subscribe("p2", "puller", "k >= 1")
    path = "/v1/consumers/puller"
    begin = service.get(path)["cursor"]
    first, other, third = service.publish({"id": "a", "k": 1}, {"id": "b", "k": 0}, {"id": "c", "k": 2})
    found = service.get(f"{path}/deliveries")
    assert [(each["cursor"], each["subscriptions"]) for each in found["items"]] == [
        (first, ["p1", "p2"]),
        (third, ["p2"]),
    ]
    assert found["items"][0]["event"]["data"] == {"id": "a", "k": 1}
    assert found["next"] == third
    assert service.get(path)["lag"]["events"] == 2
    assert [each["cursor"] for each in service.get(f"{path}/deliveries?limit=1")["items"]] == [first]
    for cursor, now in ((other, other), (first, other), (third, third)):
        assert service.ask("POST", f"{path}/acknowledge", {"cursor": cursor})[:2] == (200, {"cursor": now})
    stored = service.tenant.store.consumers.get("puller")
    assert stored.cursor == third
    assert service.get(path)["lag"] == {"events": 0, "seconds": 0.0, "exact": True}
    assert service.get(f"{path}/deliveries?wait=0.05")["items"] == []
    assert [each["cursor"] for each in service.get(f"{path}/deliveries?after={begin}")["items"]] == [
        first,
        third,
    ]
    time_of = service.get(f"/v1/events/{third}")["time"]
    assert service.ask("POST", f"{path}/replay", {"since": time_of})[1]["cursor"] == first - 1
    assert len(service.get(f"{path}/deliveries")["items"]) == 2
    assert service.ask("POST", f"{path}/replay", {"cursor": third})[1] == {"cursor": third}


def test_a_pull_that_waits_is_answered_when_an_event_comes(service: Service) -> None:
    service.subscribe("w1", "waiter", "w = 1")
    got: list[Any] = []
    asking = threading.Thread(
        target=lambda: got.append(service.get("/v1/consumers/waiter/deliveries?wait=20"))
    )
    asking.start()
    number = service.tenant.names.consumers["waiter"]
    _until(lambda: service.dispatcher.hub.feeds(number))
    service.publish({"id": "other", "w": 2})
    (cursor,) = service.publish({"id": "x", "w": 1})
    asking.join(20)
    assert [each["cursor"] for each in got[0]["items"]] == [cursor]
    assert service.dispatcher.hub.feeds(number) == []


def test_server_sent_events_go_on_where_they_ended(service: Service) -> None:
    service.subscribe("l1", "listener", "l = 1")
    path = "/v1/consumers/listener"
    cursors = service.publish({"id": "a", "l": 1}, {"id": "b", "l": 1})
    stream = service.listen(f"{path}/listen")
    assert stream.answer.headers["content-type"].startswith("text/event-stream")
    assert [int(each["id"]) for each in stream.take(2)] == cursors
    # An envelope of many lines comes as many lines of data.
    text = '{"specversion": "1.0",\r\n "id": "c",\n "source": "/s", "type": "t", "l": 1}'
    link = socket.create_connection(("127.0.0.1", service.port))
    head = "POST /v1/events HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/cloudevents+json\r\n"
    head += f"Content-Length: {len(text)}"
    link.sendall(f"{head}\r\n\r\n{text}".encode())
    assert b"200" in link.recv(100)
    link.close()
    (live,) = stream.take(1)
    assert (live["data"]["event"]["id"], live["data"]["subscriptions"]) == ("c", ["l1"])
    beat = next(iter(stream))
    assert beat == {"comment": ""}
    assert service.get(path)["state"]["listeners"] == 1
    stream.close()
    _until(lambda: not service.dispatcher.states["listener"].listeners)
    again = service.listen(f"{path}/listen?after=0", {"Last-Event-ID": str(cursors[0])})
    assert [each["data"]["event"]["id"] for each in again.take(2)] == ["b", "c"]
    assert service.get(path)["cursor"] < cursors[0]
    # Replaying reaches who listens.
    service.ask("POST", f"{path}/replay", {"cursor": cursors[0] - 1})
    assert [each["data"]["event"]["id"] for each in again.take(3)] == ["a", "b", "c"]
    again.close()
    auto = service.listen(f"{path}/listen?acknowledge=auto")
    last = int(auto.take(3)[-1]["id"])
    _until(lambda: service.get(path)["cursor"] == last)
    auto.close()
    assert service.ask("HEAD", f"{path}/listen")[0] == 200


def test_a_listener_that_takes_nothing_is_cut_off_and_others_are_not(service: Service) -> None:
    service.subscribe("st", "stalled", "st = 1")
    stream = service.listen("/v1/consumers/stalled/listen")
    link = socket.socket()
    link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    link.connect(("127.0.0.1", service.port))
    link.sendall(b"GET /v1/consumers/stalled/listen HTTP/1.1\r\nHost: localhost\r\n\r\n")
    state = service.dispatcher.states["stalled"]
    _until(lambda: len(state.listeners) == 2)
    before = service.dispatcher.counts["cut off"]
    rows = [{"id": f"{each}", "st": 1, "pad": "x" * 10_000} for each in range(400)]
    published = service.publish(*rows)
    assert [int(each["id"]) for each in stream.take(400)] == published
    _until(lambda: service.dispatcher.counts["cut off"] == before + 1)
    _until(lambda: len(state.listeners) == 1)
    (more,) = service.publish({"id": "more", "st": 1})
    assert int(stream.take(1)[0]["id"]) == more
    stream.close()
    # It is told although its buffers are full: the kernel holds nothing for it any more. 7 is closed.
    _until(lambda: link.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] == 7)
    link.close()


def test_a_web_socket_delivers_and_acknowledges(service: Service) -> None:
    service.subscribe("ws", "socket", "ws = 1")
    address = f"ws://127.0.0.1:{service.port}/v1/consumers/socket/socket"
    cursors = service.publish({"id": "a", "ws": 1}, {"id": "b", "ws": 1})
    with connect(address) as link:
        got = [json.loads(link.recv(20)) for _ in cursors]
        assert [(each["cursor"], each["subscriptions"]) for each in got] == [
            (each, ["ws"]) for each in cursors
        ]
        link.send(json.dumps({"acknowledge": cursors[0]}))
        assert json.loads(link.recv(20)) == {"acknowledged": cursors[0]}
    _until(lambda: not service.dispatcher.states["socket"].listeners)
    with connect(address) as link:
        assert json.loads(link.recv(20))["cursor"] == cursors[1]
        (third,) = service.publish({"id": "c", "ws": 1})
        assert json.loads(link.recv(20))["cursor"] == third


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        ("{", 1008), ('{"acknowledge": "a"}', 1008), ('{"other": 1}', 1008),
        ('{"acknowledge": 9999999}', 1008),
        ("1" * 70_000, 1009), (b"\xff\xff", 1008),
    ],
)  # fmt: skip
def test_a_web_socket_that_is_abused_is_closed_with_a_reason(
    service: Service, sent: str | bytes, code: int
) -> None:
    service.ask("PUT", "/v1/consumers/abused", {})
    with connect(f"ws://127.0.0.1:{service.port}/v1/consumers/abused/socket") as link:
        link.send(sent)
        with pytest.raises(ConnectionClosed) as error:
            link.recv(20)
    assert error.value.rcvd is not None
    assert (error.value.rcvd.code, bool(error.value.rcvd.reason)) == (code, True)
    _until(lambda: not service.dispatcher.states["abused"].listeners)


def test_a_web_socket_to_nobody_is_refused(service: Service) -> None:
    with pytest.raises(InvalidStatus) as error:
        connect(f"ws://127.0.0.1:{service.port}/v1/consumers/nobody/socket")
    assert error.value.response.status_code == 404
    assert b"no consumer" in error.value.response.body


def test_what_retention_passes_is_counted_and_said(service: Service) -> None:
    service.subscribe("r1", "retained", "r = 1")
    cursors = [service.publish({"id": f"r{each}", "r": each % 2})[0] for each in range(4)]
    begin = service.get("/v1/consumers/retained")["cursor"]
    log = service.tenant.store.log
    service.do(service.dispatcher.forget(cursors[2], log.trimming(cursors[2])))
    found = service.get("/v1/consumers/retained")
    # Two of four were for it, and one of them is gone.
    assert (found["state"]["passed"], found["cursor"], found["lag"]["events"]) == (1, cursors[2] - 1, 1)
    assert service.tenant.store.consumers.passed()["retained"] == 1
    pulled = service.get(f"/v1/consumers/retained/deliveries?after={begin}")
    assert pulled["gone"] == {"after": begin, "first": cursors[2]}
    assert ([each["cursor"] for each in pulled["items"]], pulled["passed"]) == ([cursors[3]], 1)
    status, said, _ = service.ask("POST", "/v1/consumers/retained/replay", {"cursor": begin})
    assert (status, said["first"]) == (410, cursors[2])
    assert service.ask("POST", "/v1/consumers/retained/replay", {"since": 1.0})[0] == 410
    stream = service.listen(f"/v1/consumers/retained/listen?after={begin}")
    passed, event = stream.take(2)
    assert (passed["event"], passed["data"]) == ("passed", {"after": begin, "first": cursors[2]})
    assert int(event["id"]) == cursors[3]
    stream.close()


def _until(true: Any, seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)
