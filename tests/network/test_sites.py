"""Sites as processes: every view gets what it gets from the documents themselves."""

from __future__ import annotations

import asyncio
import json
import random
import re
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from headgate import AsyncClient, Settings
from headgate.client.asking import Ask
from headgate.errors import ServiceError
from headgate.network.assignment import SOURCE, Assignment, Kind, Neighbour
from headgate.network.deployment import Deployment
from headgate.network.entry import Result, read_entry
from headgate.network.link import LogPage
from headgate.network.local import LocalSites
from headgate.network.watch import Limits, watch
from tests.network.proxy import Proxy
from tests.network.test_evaluation import direct
from tests.network.worlds import KINDS, World, world_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Self

    from headgate import Dissemination, Event
    from headgate.core.event import Id


@pytest.fixture
def sites(tmp_path: Path) -> Iterator[LocalSites]:
    """Return what starts sites."""
    with LocalSites(tmp_path) as found:
        yield found


def row_of(event: Event) -> dict[str, Any]:
    """Write a document for the service."""
    if isinstance(event.data, str):
        return {"id": event.id, "data": event.data, "datacontenttype": event.content_type}
    return dict(event.data)


async def results(deployment: Deployment) -> dict[Id, list[tuple[int, Any]]]:
    """Read the logs of all sites."""
    found: dict[Id, list[tuple[int, Any]]] = {}
    own = {each.id: each.site for each in deployment.deployed}
    for name, site in deployment.sites.items():
        if name == SOURCE or name in deployment.failed:
            continue
        async with AsyncClient(site.address, key=site.key) as client:
            after: str | None = "0"
            while after is not None:
                page: LogPage = await client.send(Ask("GET", f"/v1/events?after={after}&limit=1000", LogPage))
                after = page.next
                for item in page.items:
                    entry = read_entry(item.event)
                    if isinstance(entry, Result) and own[entry.view] == name:
                        found.setdefault(entry.view, []).append(
                            (entry.document, msgspec.json.decode(entry.text))
                        )
    return found


def plain(rows: dict[Id, list[tuple[int, Any]]], world: World) -> dict[Id, list[tuple[int, Any]]]:
    """Write results as JSON has them."""
    found = {view: rows.get(view, []) for view in (each.id for each in world.subscriptions)}
    decoded: dict[Id, list[tuple[int, Any]]] = msgspec.json.decode(
        msgspec.json.encode(found), type=dict[str, list[tuple[int, Any]]]
    )
    return decoded


class Running:
    """A world on sites of this machine, and a publisher."""

    def __init__(
        self,
        sites: LocalSites,
        world: World,
        plan: Dissemination,
        delay: float | None = None,
        deployment: type[Deployment] = Deployment,
    ) -> None:
        self.sites = sites
        self.world = world
        self.proxies: dict[str, Proxy] = {}
        for name in (SOURCE, *sorted({each.site for each in plan.placed()})):
            sites.start(name)
        kind = Kind("test", "default", world.carries)
        found = sites.neighbours()
        if delay is not None:
            for name, each in found.items():
                self.proxies[name] = Proxy(int(each.address.rpartition(":")[2]), delay)
                found[name] = Neighbour(f"http://127.0.0.1:{self.proxies[name].port}", each.key)
        self.deployment = deployment(kind, plan, found)
        if isinstance(self.deployment, SlowLinks):
            self.proxies = {
                name: Proxy(int(each.address.rpartition(":")[2]), 0.8) for name, each in found.items()
            }
            self.deployment.proxies = self.proxies
        publisher = sites.sites[SOURCE].publisher
        assert publisher is not None
        self._publisher = publisher

    async def __aenter__(self) -> Self:
        self.client = AsyncClient(self._publisher.address, key=self._publisher.key)
        await self.deployment.deploy()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.client.close()
        await self.deployment.close()
        for proxy in self.proxies.values():
            proxy.close()

    async def publish(self, *events: Event) -> None:
        """Publish documents."""
        await self.client.publish([row_of(event) for event in events])


@pytest.mark.parametrize("kind", KINDS)
def test_processes_feed_each_other(sites: LocalSites, kind: str) -> None:
    """All views get their results, through sites that take from each other, and compute for each other."""
    world = world_of(kind, random.Random(kind), 12, 20)

    async def run() -> dict[Id, list[tuple[int, Any]]]:
        plan = world.plan(links=world.links(random.Random(1)))
        assert any(each.host for each in plan.placed()) == (kind in {"xpath", "sql key"})
        async with Running(sites, world, plan) as running:
            assert running.deployment.deployed == plan.placed()
            for event in world.documents:
                await running.publish(event)
            await running.deployment.wait(len(world.documents))
            return await results(running.deployment)

    assert plain(asyncio.run(run()), world) == plain(direct(world), world)


def test_sites_are_killed_and_come_again(sites: LocalSites) -> None:
    """Those that they fed are fed in another way meanwhile; nothing is lost, nothing comes twice."""
    world = world_of("xpath", random.Random(7), 12, 40)

    async def run() -> dict[Id, list[tuple[int, Any]]]:
        plan = world.plan()
        used = {each for view in plan.placed() for each in view.inputs}
        feeders = sorted({view.site for view in plan.placed() if view.id in used})
        async with Running(sites, world, plan) as running:
            deployment = running.deployment
            for number, event in enumerate(world.documents):
                await running.publish(event)
                if number == 10:
                    for name in feeders[:2]:
                        sites.kill(name)
                if number == 15:
                    repaired = await deployment.repair()
                    assert repaired is not None
                    assert repaired.failed == tuple(feeders[:2])
                    assert repaired.moved
                    assert not repaired.unfed
                    assert await deployment.repair() is None
                if number == 25:
                    for name in feeders[:2]:
                        sites.again(name)
                    assert await deployment.admit() == tuple(feeders[:2])
            await deployment.wait(len(world.documents))
            return await results(deployment)

    assert plain(asyncio.run(run()), world) == plain(direct(world), world)


def test_a_partition_heals(sites: LocalSites) -> None:
    """Sites that cannot be reached, and answer slowly before and after that, miss nothing."""
    world = world_of("sparql", random.Random(11), 10, 30)

    async def run() -> dict[Id, list[tuple[int, Any]]]:
        async with Running(sites, world, world.plan(), delay=0.003) as running:
            deployment = running.deployment
            watching = asyncio.ensure_future(watch(deployment, lines.append, 0.05))
            cut = [name for name in running.proxies if name != SOURCE][:3]
            for number, event in enumerate(world.documents):
                await running.publish(event)
                if number == 8:
                    for name in cut:
                        running.proxies[name].cut()
                    while not deployment.failed >= set(cut):
                        await asyncio.sleep(0.01)
                if number == 20:
                    for name in cut:
                        running.proxies[name].heal()
            while deployment.failed:
                await asyncio.sleep(0.01)
            await deployment.wait(len(world.documents))
            watching.cancel()
            return await results(deployment)

    lines: list[str] = []
    assert plain(asyncio.run(run()), world) == plain(direct(world), world)
    assert any("fed in another way" in line for line in lines)
    assert any("is back, and catches up" in line for line in lines)


class SlowLinks(Deployment):
    """One site reaches the others through proxies that delay."""

    slow = ""
    proxies: dict[str, Proxy]

    async def _assign(self, assignment: Assignment) -> None:
        if assignment.site == self.slow:
            near = {
                name: Neighbour(f"http://127.0.0.1:{self.proxies[name].port}", each.key)
                for name, each in assignment.neighbours.items()
            }
            assignment = msgspec.structs.replace(assignment, neighbours=near)
        await super()._assign(assignment)


def test_a_slow_site_is_relieved(sites: LocalSites) -> None:
    """It feeds nobody elsewhere while it is behind, and feeds them again when it has caught up."""
    world = world_of("sparql", random.Random(11), 10, 400)

    async def run() -> dict[Id, list[tuple[int, Any]]]:
        plan = world.plan()
        at = {view.id: view.site for view in plan.placed()}
        used = [each for view in plan.placed() for each in view.inputs]
        name = at[max(sorted(set(used)), key=used.count)]
        SlowLinks.slow = name
        async with Running(sites, world, plan, deployment=SlowLinks) as running:
            deployment = running.deployment
            watching = asyncio.ensure_future(
                watch(deployment, lines.append, 0.05, Limits(high=0.5, low=0.3, hold=0.3))
            )
            left = list(world.documents)

            async def publish_until(start: str) -> None:
                while not any(start in line for line in lines):
                    assert left, lines
                    await running.publish(left.pop(0))
                    await asyncio.sleep(0.03)

            await publish_until(f"site {name!r} is behind")
            assert {view.site for view in plan.placed() for each in view.inputs if at[each] == name} <= {name}
            assert not deployment.told[name].feeds
            for proxy in running.proxies.values():
                proxy.delay = 0.0
            await publish_until(f"site {name!r} has caught up")
            assert deployment.told[name].feeds
            del world.documents[len(world.documents) - len(left) :]
            await deployment.wait(len(world.documents))
            watching.cancel()
            return await results(deployment)

    lines: list[str] = []
    assert plain(asyncio.run(run()), world) == plain(direct(world), world)


def test_a_network_goes_over_to_other_plans(sites: LocalSites) -> None:
    """Back and forth between plans while documents come; a site leaves; nothing is lost or comes twice."""
    world = world_of("sql", random.Random(3), 12, 40)

    async def run() -> tuple[dict[Id, list[tuple[int, Any]]], Id]:
        plans = [world.plan(Settings(fan_out=each, source_fan_out=12)) for each in (2, 5, 3)]
        async with Running(sites, world, plans[0]) as running:
            deployment = running.deployment
            for number, event in enumerate(world.documents):
                await running.publish(event)
                if number % 8 == 5:
                    await deployment.redeploy(plans[number // 8 % 3])
            left = deployment.plan.placed()[0]
            await deployment.drain(left.site)
            await deployment.wait(len(world.documents))
            return await results(deployment), left.id

    found, left = asyncio.run(run())
    rows, wanted = plain(found, world), plain(direct(world), world)
    assert rows.pop(left) == []
    del wanted[left]
    assert rows == wanted


def test_what_cannot_be_is_refused(sites: LocalSites) -> None:
    """A site of another version, an older assignment, a view that is not there: one line each."""
    sites.start("a")
    site = sites.sites["a"].neighbour

    def asked(method: str, path: str, said: dict[str, Any]) -> Ask[dict[str, Any]]:
        body, headers = json.dumps(said).encode(), {"Content-Type": "application/json"}
        return Ask(method, path, dict[str, Any], body, headers)

    def told(**given: Any) -> Ask[dict[str, Any]]:
        said = {"network": "n", "site": "a", "epoch": 2, **given}
        return asked("PUT", "/v1/site", said)

    view = {"id": "v", "filter": "x = 1", "dialect": "sql", "level": 1}
    cases = [
        (told(protocol=99), "the assignment of site 'a' has protocol 99, and this version of Headgate has 1"),
        (told(views=[view]), "view 'v' of site 'a' has no inputs, and only the source reads documents"),
        (
            told(
                views=[{**view, "inputs": [{"view": "u", "site": "b", "filter": "TRUE", "dialect": "sql"}]}]
            ),
            "is fed by site 'b', whose address is not given",
        ),
        (
            told(
                views=[{**view, "inputs": [{"view": "u", "site": "b", "filter": "y = 1", "dialect": "sql"}]}],
                neighbours={"b": {"address": "http://127.0.0.1:1"}},
            ),
            "cannot be computed from view",
        ),
        (
            told(feeds={"b": ["v", "w"]}, fan_out=1),
            "site 'a' is to feed 2 views at other sites, and its bound is 1: plan within it",
        ),
        (told(documents="network"), "publish documents to another tenant"),
        (told(epoch=1), "which is older"),
        (
            asked("POST", "/v1/site:locate", {"site": "b", "views": [["v", 0]], "protocol": 1}),
            "view 'v' is not at this site",
        ),
        (
            asked("POST", "/v1/site:locate", {"site": "b", "views": [], "protocol": 7}),
            "a site with protocol 7 asks, and this one has 1",
        ),
    ]

    async def run() -> None:
        async with AsyncClient(site.address, key=site.key) as client:
            await client.send(told())
            for ask, why in cases:
                with pytest.raises(ServiceError, match=re.escape(why)) as caught:
                    await client.send(ask)
                assert "\n" not in str(caught.value)

    asyncio.run(run())
