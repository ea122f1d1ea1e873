"""The clients: what they ask is answered, what fails is sent again, and nothing is taken twice."""

from __future__ import annotations

import asyncio
import json
import select
import socket
import threading
import time
from typing import TYPE_CHECKING
from urllib.request import urlopen

import pytest

from headgate import AsyncClient, Client
from headgate.client.asking import Retries
from headgate.errors import ServiceError
from headgate.service.metrics import WAYS
from tests.cli.running import Command

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.service.servers import Served, Servers


@pytest.fixture(scope="module")
def server(servers: Servers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Return a server that the tests of this module share."""
    found = servers.start(tmp_path_factory.mktemp("client") / "data")
    yield found
    found.stop()


def test_a_program_publishes_and_listens(server: Served) -> None:
    with Client(server.address) as client:
        client.subscribe("cheap", "price < 10", consumer="me")
        client.subscribe("dear", "price > 100", consumer="me", score=2.0)
        assert client.subscription("cheap")["filter"] == "price < 10"
        assert [each["id"] for each in client.subscriptions()] == ["cheap", "dear"]
        assert client.match([{"price": 5}, {"price": 50}]) == [["cheap"], []]
        found = client.publish(
            [{"id": "e1", "price": 5}, {"id": "e2", "price": 50}, {"id": "e3", "price": 500}]
        )
        assert (found.accepted, found.matched) == (3, 2)
        assert client.publish({"id": "e4", "price": 1}, matches=True).events[0].matches == ["cheap"]
        seen = []
        for delivery in client.listen("me"):
            seen.append((delivery.event["id"], delivery.subscriptions, delivery.data["price"]))
            if len(seen) == 3:
                client.acknowledge("me", delivery.cursor)
                break
        assert seen == [("e1", ["cheap"], 5), ("e3", ["dear"], 500), ("e4", ["cheap"], 1)]
        assert client.pull("me") == []
        assert [each.event["id"] for each in client.pull("me", after=0)] == ["e1", "e3", "e4"]
        assert client.explain({"price": 50}, "cheap")["matches"] is False
        client.unsubscribe("dear")
        with pytest.raises(
            ServiceError, match=r"GET /v1/subscriptions/dear: there is no subscription 'dear'"
        ) as told:
            client.subscription("dear")
        assert told.value.status == 404
        with pytest.raises(ServiceError, match="at character") as told:
            client.subscribe("bad", "age NOT")
        assert told.value.status == 422
        imported = client.import_subscriptions(
            [{"id": "i1", "filter": "a = 1"}, {"id": "i2", "filter": "a ="}]
        )
        assert (imported.accepted, [each["id"] for each in imported.errors]) == (1, ["i2"])


def test_a_program_on_asyncio_does_the_same(server: Served) -> None:
    async def story() -> None:
        async with AsyncClient(server.address) as client:
            await client.subscribe("large", "size > 10", consumer="async")
            found = await client.publish([{"id": "a1", "size": 11}, {"id": "a2", "size": 1}])
            assert (found.accepted, found.matched) == (2, 1)
            assert await client.match({"size": 12}) == [["large"]]
            async for delivery in client.listen("async"):
                assert (delivery.event["id"], delivery.subscriptions) == ("a1", ["large"])
                await client.acknowledge("async", delivery.cursor)
                break
            assert await client.pull("async") == []
            assert "large" in [each["id"] async for each in client.subscriptions("size")]
            await client.unsubscribe("large")
            with pytest.raises(ServiceError, match="there is no subscription 'large'"):
                await client.subscription("large")

    asyncio.run(story())


class _Breaking(threading.Thread):
    """A proxy that hands requests on, and cuts the connection before some answers come back."""

    def __init__(self, port: int, cut: set[int]) -> None:
        super().__init__(daemon=True)
        self._target = port
        self._cut = cut
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self.requests = 0

    def run(self) -> None:
        while True:
            try:
                near, _ = self._listening.accept()
            except OSError:
                return
            with near, socket.create_connection(("127.0.0.1", self._target)) as far:
                self._carry(near, far)

    def _carry(self, near: socket.socket, far: socket.socket) -> None:
        while True:
            for each in select.select([near, far], [], [], 5)[0]:
                data = each.recv(1 << 16)
                self.requests += each is far and bool(data)
                if not data or (each is far and self.requests in self._cut):
                    return
                (near if each is far else far).sendall(data)

    def close(self) -> None:
        self._listening.close()


def test_an_answer_that_is_lost_is_asked_for_again(server: Served) -> None:
    proxy = _Breaking(server.port, {1, 2})
    proxy.start()
    before = server.ask("GET", "/v1/events?limit=1")["last"]
    with Client(f"http://127.0.0.1:{proxy.port}", retries=Retries(5, 0.01)) as client:
        found = client.publish({"id": "once"})
    proxy.close()
    assert proxy.requests >= 3
    assert server.ask("GET", "/v1/events?limit=1")["last"] == before + 1 == found.events[0].cursor


def test_listening_goes_on_after_the_service_came_again(servers: Servers, tmp_path: Path) -> None:
    first = servers.start(tmp_path / "data")
    retries = Retries(8, 0.05)
    with Client(first.address, retries=retries) as client:
        client.subscribe("all", "true", consumer="me")
        client.publish([{"id": "e1"}, {"id": "e2"}])
        deliveries = client.listen("me")
        assert [next(deliveries).event["id"] for _ in range(2)] == ["e1", "e2"]
        first.stop()
        second = servers.start(tmp_path / "data", port=first.port)
        client.publish({"id": "e3"})
        assert next(deliveries).event["id"] == "e3"
        deliveries.close()
        # What was taken before the last one is acknowledged when whoever listens goes.
        assert [each.event["id"] for each in client.pull("me")] == ["e3"]
        second.stop()
        with pytest.raises(ServiceError, match=r"does not answer|is lost|ended the stream"):
            next(client.listen("me"))


def test_what_was_delivered_is_counted(server: Served) -> None:
    with Client(server.address) as client:
        client.subscribe("counted", "counted = 1", consumer="counted")
        client.publish([{"id": "n1", "counted": 1}, {"id": "n2", "counted": 1}])
        assert len(client.pull("counted")) == 2
        next(client.listen("counted"))
    with urlopen(f"{server.address}/v1/metrics", timeout=30) as answer:
        lines = dict(line.rsplit(" ", 1) for line in answer.read().decode().splitlines() if line[0] != "#")
    counts = {how: float(lines[f'headgate_deliveries_total{{how="{how}",tenant="default"}}']) for how in WAYS}
    assert counts["pull"] >= 2
    assert counts["server-sent events"] >= 1
    assert float(lines['headgate_events_total{tenant="default"}']) >= 2
    assert float(lines['headgate_cut_off_total{tenant="default"}']) == 0


def test_a_service_that_is_not_there_is_told(tmp_path: Path) -> None:
    del tmp_path
    with socket.create_server(("127.0.0.1", 0)) as found:
        port = found.getsockname()[1]
    began = time.monotonic()
    with (
        Client(f"http://127.0.0.1:{port}", retries=Retries(2, 0.01)) as client,
        pytest.raises(ServiceError, match="does not answer"),
    ):
        client.publish({"id": "e"})
    assert time.monotonic() - began < 5
    with pytest.raises(ServiceError, match="is none of a service"):
        Client("localhost:8080")


@pytest.fixture
def headgate(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Return the command line in this process."""
    return Command(monkeypatch, capsys)


def test_commands_use_it(server: Served, tmp_path: Path, headgate: Command) -> None:
    url = ["--url", server.address]
    assert headgate("subscriptions", "add", "red", "colour = 'red'", "--consumer", "cli", *url).code == 0
    listed = headgate("subscriptions", "list", "--search", "red", *url)
    assert [json.loads(line)["id"] for line in listed.out.splitlines()] == ["red"]
    events = tmp_path / "events.jsonl"
    events.write_text('{"id": "c1", "colour": "red"}\n{"id": "c2", "colour": "blue"}\n', "utf-8")
    done = headgate("publish", str(events), "--matches", *url)
    assert done.out.splitlines() == ["c1\tred", "c2\t"]
    assert "events published: 2, matches: 1, refused: 0" in done.err
    heard = headgate("listen", "cli", "--count", "1", *url)
    assert json.loads(heard.out)["event"]["id"] == "c1"
    noted = headgate("subscriptions", "add", "red", "color = 'red'", *url)
    assert (noted.code, noted.out, noted.err) == (
        0,
        "",
        "note red: no event has 'color': did you mean 'colour'?\n",
    )
    noted = headgate("subscriptions", "add", "red", "colour = 'rd'", "--json", *url)
    told = "colour = 'rd' holds for none of the events: colour is 'red', 'blue'"
    assert (noted.err, json.loads(noted.out)["notes"]) == ("", [told])
    events.write_text('{"id": "c3"}\n{"id":\n', "utf-8")
    assert "events.jsonl, line 2: not valid JSON" in headgate("publish", str(events), *url).complaint
    table = tmp_path / "subs.jsonl"
    table.write_text('{"id": "t1", "filter": "a = 1"}\n{"id": "t2", "filter": "a = ="}\n', "utf-8")
    imported = headgate("subscriptions", "import", str(table), *url)
    assert imported.code == 3
    assert "refused: line 2, 't2'" in imported.err
    assert headgate("subscriptions", "remove", "red", *url).code == 0
