"""A server that is killed under load: what was acknowledged is there, in order, once."""

from __future__ import annotations

import json
import random
import threading
import time
from http.client import HTTPException
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError, URLError

import pytest

from headgate.service.backup import check

if TYPE_CHECKING:
    from pathlib import Path

    from tests.service.servers import Served, Servers


class Publisher(threading.Thread):
    """Publishes numbered events, and notes which were acknowledged."""

    def __init__(self, server: Served, name: str, first: int) -> None:
        super().__init__()
        self._server = server
        self._called = name
        self.next = first
        self.acknowledged: list[tuple[str, int, int]] = []
        """Id, cursor and number of matches."""

    def run(self) -> None:
        """Publish until the server is gone."""
        chance = random.Random(self.next)
        while True:
            some = [
                {"id": f"{self._called}-{self.next + row}", "number": self.next + row, "by": self._called}
                for row in range(chance.choice((1, 1, 5, 40)))
            ]
            self.next += len(some)
            try:
                answer = self._server.ask("POST", "/v1/events", some)
            except (HTTPError, URLError, OSError, HTTPException, json.JSONDecodeError):
                return
            self.acknowledged += [
                (each["id"], each["cursor"], each.get("matched", 0)) for each in answer["events"]
            ]


def _kill_and_look(servers: Servers, data: Path, kills: int) -> None:
    known: dict[str, tuple[int, int]] = {}
    first = [0, 0]
    chance = random.Random(11)
    for turn in range(kills + 1):
        server = servers.start(data)
        if not turn:
            server.ask("PUT", "/v1/subscriptions/even", {"filter": "number % 2 = 0"})
            server.ask("PUT", "/v1/subscriptions/a", {"filter": "by = 'a'", "consumer": "me"})
        _look(server, known)
        if turn == kills:
            server.stop()
            break
        publishers = [Publisher(server, name, first[row]) for row, name in enumerate("ab")]
        for each in publishers:
            each.start()
        time.sleep(chance.uniform(0.05, 0.4))
        server.kill()
        for row, each in enumerate(publishers):
            each.join()
            first[row] = each.next
            for identity, cursor, matched in each.acknowledged:
                assert identity not in known
                known[identity] = cursor, matched
    assert known, "nothing was acknowledged: the kills came too early"
    assert [each.damage for each in check(data)] == [[]]


def _look(server: Served, known: dict[str, tuple[int, int]]) -> None:
    """Read the whole log, and compare it with what was acknowledged."""
    found: dict[str, tuple[int, int]] = {}
    after, last = 0, 0
    while True:
        page = server.ask("GET", f"/v1/events?after={after}&limit=1000")
        for item in page["items"]:
            identity, cursor = item["event"]["id"], item["cursor"]
            assert cursor > last, "out of order"
            assert identity not in found, "an event is there twice"
            last = cursor
            data: dict[str, Any] = item["event"]["data"]
            expected = {"even"} if data["number"] % 2 == 0 else set()
            expected |= {"a"} if data["by"] == "a" else set()
            assert set(item["matches"]) == expected
            found[identity] = cursor, len(expected)
        if page["next"] is None:
            break
        after = int(page["next"])
    for identity, place in known.items():
        assert found[identity] == place, f"event {identity} was acknowledged at {place}"


def test_ten_kills_lose_nothing(servers: Servers, tmp_path: Path) -> None:
    _kill_and_look(servers, tmp_path / "data", 10)


@pytest.mark.nightly
@pytest.mark.parametrize("part", range(6))
def test_three_hundred_kills_lose_nothing(servers: Servers, tmp_path: Path, part: int) -> None:
    _kill_and_look(servers, tmp_path / f"data-{part}", 50)
