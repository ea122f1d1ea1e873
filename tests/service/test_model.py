"""Publish, subscribe, pull, acknowledge, replay, listen, kill: against a plain model in memory.

The model knows which event is due to which consumer because of which subscriptions. Whatever happens, a
consumer gets all that is due after its cursor, in order, and nothing else.
"""

from __future__ import annotations

import contextlib
import random
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from headgate import Client
from headgate.client.asking import Retries
from headgate.errors import ServiceError
from tests.seeds import seeds

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from headgate.client.asking import Delivery, PublishedEvent, PublishedEvents
    from tests.service.servers import Served, Servers

CONSUMERS = ("anna", "bert", "cora")
NAMES = tuple(f"s{number}" for number in range(6))
STEPS = 30


@dataclass
class Wanted:
    """A subscription: events whose attribute `a` is at least so large, or has this remainder."""

    consumer: str
    least: int
    odd: bool | None

    @property
    def text(self) -> str:
        """Write it as a filter."""
        return f"a >= {self.least}" + ("" if self.odd is None else f" AND a % 2 = {int(self.odd)}")

    def holds(self, value: int) -> bool:
        """Tell whether it gets an event."""
        return value >= self.least and (self.odd is None or value % 2 == int(self.odd))


@dataclass
class Model:
    """What should be so."""

    subscriptions: dict[str, Wanted] = field(default_factory=dict)
    events: list[tuple[int, str]] = field(default_factory=list)
    """The cursor and the id of each event that was answered."""
    due: dict[tuple[str, int], set[str]] = field(default_factory=dict)
    """By consumer and cursor, the subscriptions that matched."""
    cursors: dict[str, int] = field(default_factory=dict)

    @property
    def last(self) -> int:
        """Return the cursor of the last event."""
        return self.events[-1][0] if self.events else 0

    def publish(self, cursor: int, identity: str, value: int) -> set[str]:
        """Have an event; returns who matches."""
        assert cursor > self.last
        self.events.append((cursor, identity))
        found = {name for name, each in self.subscriptions.items() if each.holds(value)}
        for name in found:
            self.due.setdefault((self.subscriptions[name].consumer, cursor), set()).add(name)
        return found

    def put(self, name: str, wanted: Wanted) -> None:
        """Have a subscription; what it matched for another consumer is due to nobody."""
        before = self.subscriptions.get(name)
        if before is not None and before.consumer != wanted.consumer:
            self.remove(name)
        self.subscriptions[name] = wanted
        self.cursors.setdefault(wanted.consumer, self.last)

    def remove(self, name: str) -> None:
        """Have no subscription of a name; what it matched and was not delivered is due no more."""
        del self.subscriptions[name]
        for each in self.due.values():
            each.discard(name)

    def after(self, consumer: str, cursor: int) -> list[tuple[int, str, set[str]]]:
        """List what is due to a consumer after a cursor, in order."""
        found = [(place, identity, self.due.get((consumer, place), set())) for place, identity in self.events]
        return [each for each in found if each[0] > cursor and each[2]]


class Story:
    """One server, its model, and what is done to both."""

    def __init__(self, servers: Servers, data: Path, seed: int) -> None:
        self.servers = servers
        self.data = data
        self.chance = random.Random(seed)
        self.model = Model()
        self.number = 0
        self.server: Served = servers.start(data)
        self.client = self._client()

    def _client(self) -> Client:
        return Client(self.server.address, retries=Retries(1, 0.01))

    def step(self) -> None:
        """Do one thing, chosen by chance."""
        steps: list[tuple[Callable[[], None], int]] = [
            (self.publish, 8), (self.put, 4), (self.remove, 2), (self.bring, 1), (self.pull, 4),
            (self.acknowledge, 4), (self.replay, 2), (self.listen, 2), (self.kill, 1), (self.restart, 1),
        ]  # fmt: skip
        chosen = self.chance.choices([each for each, _ in steps], [often for _, often in steps])[0]
        chosen()

    def publish(self) -> None:
        """Publish some events; the answer says who matched."""
        rows = self._rows()
        self._published(rows, self.client.publish(rows, matches=True).events)

    def _rows(self) -> list[dict[str, Any]]:
        rows = []
        for _ in range(self.chance.choice((1, 1, 2, 7, 30))):
            self.number += 1
            rows.append({"id": f"e{self.number}", "a": self.chance.randrange(10)})
        return rows

    def _published(self, rows: list[dict[str, Any]], found: list[PublishedEvent]) -> None:
        assert [each.id for each in found] == [row["id"] for row in rows]
        for row, each in zip(rows, found, strict=True):
            assert each.cursor is not None
            assert set(each.matches or []) == self.model.publish(each.cursor, each.id, row["a"]), row

    def put(self) -> None:
        """Subscribe, or replace, perhaps for another consumer."""
        name, wanted = self.chance.choice(NAMES), self._wanted()
        self.client.subscribe(name, wanted.text, consumer=wanted.consumer)
        self.model.put(name, wanted)

    def _wanted(self) -> Wanted:
        odd = self.chance.choice((None, None, True, False))
        return Wanted(self.chance.choice(CONSUMERS), self.chance.randrange(9), odd)

    def remove(self) -> None:
        """Unsubscribe."""
        if self.model.subscriptions:
            name = self.chance.choice(sorted(self.model.subscriptions))
            self.client.unsubscribe(name)
            self.model.remove(name)

    def bring(self) -> None:
        """Import some subscriptions, of which one is refused."""
        rows = {name: self._wanted() for name in self.chance.sample(NAMES, 3)}
        given: list[dict[str, Any]] = [
            {"id": name, "filter": each.text, "consumer": each.consumer} for name, each in rows.items()
        ]
        found = self.client.import_subscriptions([*given, {"id": "bad", "filter": "a >"}])
        assert (found.accepted, found.refused) == (3, 1)
        for name, each in rows.items():
            self.model.put(name, each)

    def _consumer(self) -> str | None:
        return self.chance.choice(sorted(self.model.cursors)) if self.model.cursors else None

    def pull(self) -> None:
        """Pull after the cursor, or after another one."""
        consumer = self._consumer()
        if consumer is None:
            return
        after = self.chance.choice((None, None, self.chance.randrange(self.model.last + 1)))
        limit = self.chance.choice((1, 3, 1_000))
        self._same(consumer, after, self.client.pull(consumer, after=after, limit=limit), limit)

    def _same(self, consumer: str, after: int | None, found: list[Any], most: int) -> None:
        begin = self.model.cursors[consumer] if after is None else after
        wanted = self.model.after(consumer, begin)[:most]
        given = [(each.cursor, each.event["id"], set(each.subscriptions)) for each in found]
        assert given == wanted, f"consumer {consumer} after {begin}"

    def acknowledge(self) -> None:
        """Acknowledge up to some delivery, or up to an earlier one, which changes nothing."""
        consumer = self._consumer()
        if consumer is not None:
            cursor = self.chance.randrange(self.model.last + 1)
            self.client.acknowledge(consumer, cursor)
            self.model.cursors[consumer] = max(self.model.cursors[consumer], cursor)

    def replay(self) -> None:
        """Have a consumer begin after an earlier cursor."""
        consumer = self._consumer()
        if consumer is not None:
            cursor = self.chance.randrange(self.model.last + 1)
            self.server.ask("POST", f"/v1/consumers/{consumer}/replay", {"cursor": cursor})
            self.model.cursors[consumer] = cursor

    def listen(self) -> None:
        """Listen to what waits and to what comes meanwhile."""
        consumer = self._consumer()
        if consumer is None:
            return
        begin = self.model.cursors[consumer]
        waits = self.model.after(consumer, begin)
        if not waits:
            return
        stream = self.client.listen(consumer, acknowledge=False)
        found: list[Delivery] = []
        for delivery in stream:
            if not found:
                # Those come while it listens.
                self.publish()
                waits = self.model.after(consumer, begin)
            found.append(delivery)
            if len(found) >= len(waits):
                break
        stream.close()
        self._same(consumer, begin, found, len(waits))

    def kill(self) -> None:
        """End the server at once, while events are on their way, and start another."""
        rows = self._rows()
        answers: list[PublishedEvents] = []

        def publish() -> None:
            with contextlib.suppress(ServiceError):
                answers.append(self.client.publish(rows, matches=True))

        sending = threading.Thread(target=publish)
        sending.start()
        time.sleep(self.chance.choice((0, 0.002, 0.005, 0.02)))
        self.server.kill()
        sending.join()
        if answers:
            self._published(rows, answers[0].events)
        self.client.close()
        self.server = self.servers.start(self.data)
        self.client = self._client()
        if not answers:
            # What got no answer is there as a whole, or not at all.
            kept = self.server.ask("GET", f"/v1/events?after={self.model.last}")["items"]
            assert [each["event"]["id"] for each in kept] in ([], [row["id"] for row in rows])
            for each in kept:
                data = each["event"]["data"]
                assert set(each["matches"]) == self.model.publish(each["cursor"], data["id"], data["a"])
        self.check()

    def restart(self) -> None:
        """End the server in good order, and start another."""
        self.server.stop()
        self.client.close()
        self.server = self.servers.start(self.data)
        self.client = self._client()
        self.check()

    def check(self) -> None:
        """Compare all that can be read."""
        kept = self.server.ask("GET", "/v1/events?limit=1000")["items"]
        assert [(each["cursor"], each["event"]["id"]) for each in kept] == self.model.events[:1_000]
        found = {each["id"]: (each["filter"], each["consumer"]) for each in self.client.subscriptions()}
        assert found == {name: (each.text, each.consumer) for name, each in self.model.subscriptions.items()}
        for consumer, cursor in self.model.cursors.items():
            state = self.server.ask("GET", f"/v1/consumers/{consumer}")
            assert (state["cursor"], state["lag"]["events"]) == (
                cursor,
                len(self.model.after(consumer, cursor)),
            )
            self._same(consumer, None, self.client.pull(consumer, limit=1_000), 1_000)


@pytest.mark.parametrize("seed", seeds(32))
def test_the_service_does_what_the_model_says(servers: Servers, tmp_path: Path, seed: int) -> None:
    _tell(servers, tmp_path / "data", seed)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(100, 200))
def test_the_service_does_what_the_model_says_nightly(servers: Servers, tmp_path: Path, seed: int) -> None:
    _tell(servers, tmp_path / "data", seed)


def _tell(servers: Servers, data: Path, seed: int) -> None:
    story = Story(servers, data, seed)
    for _ in range(STEPS):
        story.step()
    story.kill()
    story.check()
    story.client.close()
    story.server.kill()
