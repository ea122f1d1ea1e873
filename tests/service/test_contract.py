"""The service answers as the library does: through the API, after changes, and after it was killed."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from headgate import Event
from headgate.core.rooms import RDF, RECORDS, XML
from headgate.engine.question import Top
from headgate.errors import HeadgateError
from headgate.graph.path_cost import DEFAULT_PATH_COST, PathCost
from tests.contract.library import Library
from tests.contract.telling import CONTENTS, MIXED
from tests.contract.world import Question
from tests.seeds import seeds
from tests.service.contract import Service, world_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from headgate.core.event import Id
    from tests.contract.world import World
    from tests.service.contract import Answers
    from tests.service.servers import Servers
    from tests.spark.files import Row

FACTORS = {
    RECORDS: {"age": 0.5, "price": 0.0},
    RDF: {"urn:age": 0.5, "?price": 0.0},
    XML: {"age": 0.5, "price": 0.0},
    MIXED: {"age": 0.5, "price": 0.0, "urn:age": 0.5, "?price": 0.0},
}
TAKEN = ("the event has no id", "is not a node of the graph", "has no source", "these filters look at")
"""Events that the library refuses and the service takes: they get an id, or reach nobody."""
SOME = [(RECORDS, True, True), (MIXED, False, False)]
ALL = [
    (content, graph, ranked)
    for content in (*CONTENTS, MIXED)
    for graph in (False, True)
    for ranked in (False, True)
]
SEEDS = tuple(seeds(12, 1))


def cells() -> list[Any]:
    """List worlds: some in the ordinary run, nightly all."""
    found = []
    for cell in ALL:
        content, graph, ranked = cell
        name = f"{content}-{'graph' if graph else 'plain'}-{'ranked' if ranked else 'unranked'}"
        found.append(pytest.param(*cell, id=name, marks=[] if cell in SOME else [pytest.mark.nightly]))
    return found


class Asking:
    """A service and the library, about the same world."""

    def __init__(self, service: Service, world: World) -> None:
        self.service = service
        self.world = world
        self.library = Library(world)
        self.events = [*world.events, *world.odd, *world.repeated]

    def check(self, when: str, *, changed: bool) -> None:
        """Compare all answers that keep nothing."""
        self.library.turn_to(Question(changed=changed))
        self.same(f"{when}, match", self.service.match(self.events), self._matches)
        for top in self._rankings():
            self.same(f"{when}, top {top}", self.service.top(self.events, top), partial(self._top, top))
        for event, identity in self._pairs(changed=changed):
            told = self.service.explain(event, str(identity))
            assert told == self.library.explain(event, identity), (when, event["id"], identity)

    def check_published(self, *, changed: bool) -> None:
        """Compare who gets events that are published."""
        self.library.turn_to(Question(changed=changed))
        self.same("publish", self.service.publish(self.events), self._matches)

    def check_refused(self) -> None:
        """Compare which events are refused, and why."""
        for bad in self.world.bad_events:
            found, wanted = self.service.refusal(bad.line), None
            try:
                self.library.asked.match(Event.from_json(bad.line))
            except HeadgateError as error:
                wanted = str(error)
            assert wanted is not None
            if any(part in wanted for part in TAKEN):
                assert found is None, bad.line
            else:
                assert found is not None, bad.line
                assert wanted in found

    def same(self, what: str, found: Answers, wanted: Callable[[Row], Any]) -> None:
        """Compare what was answered about all events."""
        expected: Answers = {}
        for event in self.events:
            expected.setdefault(event["id"], []).append(wanted(event))
        assert any(any(each) for each in expected.values()), "there is something to find"
        wrong = {
            identity: (found.get(identity), answer)
            for identity, answer in expected.items()
            if found.get(identity) != answer
        }
        assert not wrong, f"{self.world.name}, {what}: the service and the library differ"
        assert found.keys() == expected.keys()

    def _matches(self, event: Row) -> list[Id]:
        return sorted(self.library.asked.match(Event.from_row(event)), key=str)

    def _top(self, top: Top, event: Row) -> list[tuple[Id, float, int]]:
        best: Any = self.library.asked.top(
            Event.from_row(event), top.k, top.mode, factors=top.weighing, **top.path._asdict()
        )
        return [(each.subscription, each.value, rank) for rank, each in enumerate(best, 1)]

    def _rankings(self) -> list[Top]:
        world, found = self.world, []
        if world.graph:
            found += [Top.of(3, path=PathCost("times", 0.5, hops=True)), Top.of(3)]
        elif world.ranked:
            found += [Top.of(3, path=DEFAULT_PATH_COST)]
        if world.ranked:
            found.append(Top.of(4, "relaxed", FACTORS[world.content]))
        return found

    def _pairs(self, *, changed: bool) -> list[tuple[Row, Id]]:
        """Choose some events, and for each a subscription that gets it and one that does not."""
        given = [row["id"] for row in self.world.at(Question(changed=changed))]
        found = []
        for event in self.world.events[:: max(1, len(self.world.events) // 4)]:
            gets = set(self._matches(event))
            for wanted in (True, False):
                found += [(event, each) for each in given if (each in gets) is wanted][:1]
        return found


@pytest.mark.parametrize(("content", "graph", "ranked"), cells())
def test_the_service_answers_as_the_library(
    servers: Servers, tmp_path: Path, content: str, *, graph: bool, ranked: bool
) -> None:
    world = world_of(content, SEEDS, graph=graph, ranked=ranked)
    service = Service(servers.start(tmp_path / "data"), world)
    service.load()
    asking = Asking(service, world)
    asking.check("loaded", changed=False)
    asking.check_published(changed=False)
    asking.check_refused()
    for row in world.changes:
        service.change(row)
    asking.check("changed", changed=True)
    asking.check_published(changed=True)
    service.server.kill()
    service.server = servers.start(tmp_path / "data")
    asking.check("killed", changed=True)
    service.server.stop()
    service.server = servers.start(tmp_path / "data")
    asking.check("stopped", changed=True)
    asking.check_published(changed=True)
    service.server.kill()
