"""A network of sites on this machine: what each view gets, what a hop costs, kills and changes of plan.

Views and documents are those of section 5.5 of Karanasos et al., VLDB 2014, as far as it tells them (the law
`wan` of XMark): most documents match most views, views repeat, and few must be fed by the source. Views are
spread over sites, and every result that a site has kept is compared with what the document itself gives.
"""

from __future__ import annotations

import asyncio
import random
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

from benchmarks.results import Result
from benchmarks.waiting import share_waited, waited
from headgate import AsyncClient, Dissemination, Event, Settings, Subscription
from headgate.client.asking import Ask
from headgate.engine.views import views_of
from headgate.network.assignment import SOURCE, Kind
from headgate.network.deployment import Deployment, look_at
from headgate.network.entry import RESULT
from headgate.network.local import LocalSites
from headgate.network.watch import watch
from headgate.workloads.xml.xmark import WAN, XMark

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from headgate.core.event import Id
    from headgate.network.site import SiteStatus
    from headgate.workloads.xml.walks import ViewLaw

SEED = 5
_AT_ONCE = 20
"""Documents that are published together, at full load."""
_CHAIN = 8
"""Sites that feed one another, for the latency of a hop."""
_CPU = "CPU of the publisher, a document"


@dataclass(frozen=True)
class Size:
    """What a size measures."""

    sites: int
    views: int
    unique: int
    documents: int
    kills: int
    redeploys: int
    hops: int
    """Documents that are published before anything is measured, and along the chain."""
    beside: int = 0
    """Documents of the comparison with a publisher that feeds all, and of the run with kills."""


SIZES = {
    "quick": Size(6, 60, 18, 10, 2, 2, 3, 8),
    "full": Size(200, 3_000, 900, 200, 20, 10, 10, 40),
}
TROUBLED = Size(50, 750, 225, 80, 20, 10, 10, 40)
"""Where sites are killed and plans change, at most: on two cores 200 processes take minutes for each."""


class World(NamedTuple):
    """Views, documents, and what each view gives for each document."""

    subscriptions: list[Subscription]
    documents: list[Event]
    results: dict[tuple[Id, int], bytes]


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _world(size: Size, law: ViewLaw = WAN) -> World:
    workload = XMark(unique=size.unique, law=law)
    rows = workload.subscriptions(np.arange(size.views), SEED).to_pylist()
    subscriptions = [Subscription(row["id"], row["filter"], "xpath") for row in rows]
    texts = workload.events(np.arange(size.documents), SEED).to_pylist()
    documents = [Event(row["id"], row["data"], content_type="xml") for row in texts]
    # What is written alike gives the same.
    named: dict[str, list[Id]] = {}
    for each in subscriptions:
        named.setdefault(each.filter, []).append(each.id)
    views = views_of([Subscription(text, text, "xpath") for text in named])
    results: dict[tuple[Id, int], bytes] = {}
    for number, event in enumerate(documents, 1):
        for view, ids in enumerate(named.values()):
            packed = views.pack(views.result(view, event))
            if packed is not None:
                text = msgspec.json.encode(packed)
                results |= dict.fromkeys(((each, number) for each in ids), text)
    return World(subscriptions, documents, results)


class _Network:
    """A world on sites, and a publisher."""

    def __init__(self, place: Path, world: World, plan: Dissemination, sites: int) -> None:
        self.world = world
        names = sorted({view.site for view in plan.placed()})
        self.spread = {each: f"s{number % sites:03}" for number, each in enumerate(names)}
        plan.rename_sites(self.spread)
        self.local = LocalSites(place, many=sites, log="json")
        self.local.start(SOURCE)
        for name in sorted(set(self.spread.values())):
            self.local.start(name)
        self.deployment = Deployment(Kind("bench", "default"), plan, self.local.neighbours())
        self.published = 0

    async def __aenter__(self) -> _Network:
        publisher = self.local.sites[SOURCE].publisher
        assert publisher is not None
        self.client = AsyncClient(publisher.address, key=publisher.key)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.client.close()
        await self.deployment.close()
        self.local.close()

    async def publish(self, documents: Sequence[Event]) -> None:
        """Publish documents, in requests of ten."""
        for first in range(0, len(documents), 10):
            rows = [
                {"id": each.id, "data": each.data, "datacontenttype": each.content_type}
                for each in documents[first : first + 10]
            ]
            await self.client.publish(rows)
        self.published += len(documents)

    async def status(self) -> dict[str, SiteStatus]:
        """Ask all sites how they fare."""
        found = await self.deployment.look(
            [name for name in self.local.sites if name not in self.deployment.failed]
        )
        return {name: each for name, each in found.items() if each is not None}

    async def results(self) -> AsyncIterator[_Data]:
        """Read the results that all sites have kept, but for the source."""
        for name, site in self.local.neighbours().items():
            if name == SOURCE:
                continue
            async with AsyncClient(site.address, key=site.key) as client:
                after: str | None = "0"
                while after is not None:
                    page: _Page = await client.send(Ask("GET", f"/v1/events?after={after}&limit=1000", _Page))
                    after = page.next
                    for item in page.items:
                        if item.event.type == RESULT:
                            yield msgspec.json.decode(item.event.data, type=_Data)

    async def kept(self) -> dict[tuple[Id, int], list[bytes]]:
        """Collect what sites have kept of each view and document."""
        found: dict[tuple[Id, int], list[bytes]] = {}
        async for data in self.results():
            found.setdefault((data.view, data.document), []).append(bytes(data.result))
        return found


class _Data(msgspec.Struct):
    view: str
    document: int
    result: msgspec.Raw
    path: list[list[Any]]


class _Event(msgspec.Struct):
    type: str
    data: msgspec.Raw


class _Item(msgspec.Struct):
    event: _Event


class _Page(msgspec.Struct):
    items: list[_Item]
    next: str | None


def _wrong(world: World, kept: dict[tuple[Id, int], list[bytes]], documents: int) -> tuple[int, int, int]:
    """Count results that are lost, doubled, or not what the document gives."""
    wanted = {key: each for key, each in world.results.items() if key[1] <= documents}
    lost = sum(key not in kept for key in wanted)
    doubled = sum(len(each) - 1 for each in kept.values())
    other = sum(any(one != wanted.get(key) for one in each) for key, each in kept.items())
    return lost, doubled, other


def run(size: str) -> list[Result]:
    """Measure networks."""
    return measure(SIZES[size], full=size == "full")


def measure(size: Size, *, full: bool) -> list[Result]:
    """Measure networks of a size."""
    begun = time.perf_counter()

    def done(what: str) -> None:
        _say(f"{time.perf_counter() - begun:6.0f} s  {what}")

    world = _world(size)
    done(
        f"{size.views:,} views, {size.documents} documents: {len(world.results):,} results computed directly"
    )
    sample = world.documents[:3]
    plan = Dissemination.build(world.subscriptions, sample, Settings(fan_out=7.0))
    done("planned")
    with tempfile.TemporaryDirectory() as place:
        results = asyncio.run(_run(size, Path(place), world, plan, done, full=full))
    with tempfile.TemporaryDirectory() as place:
        results += asyncio.run(_alone(size, Path(place), world, results, done, full=full))
    with tempfile.TemporaryDirectory() as place:
        results += asyncio.run(_chain(size, Path(place), world, full=full))
        done(f"a chain of {_CHAIN} sites")
    if size.sites > TROUBLED.sites:
        size, world = TROUBLED, _world(TROUBLED)
        sample = world.documents[:3]
    with tempfile.TemporaryDirectory() as place:
        plans = [
            Dissemination.build(world.subscriptions, sample, Settings(fan_out=each)) for each in (7.0, 15.0)
        ]
        results += asyncio.run(_trouble(size, Path(place), world, plans, done, full=full))
    return results


async def _run(
    size: Size, place: Path, world: World, plan: Dissemination, done: Callable[[str], None], *, full: bool
) -> list[Result]:
    section = f"{size.sites} sites as processes, {size.views:,} views, {size.documents} documents"
    async with _Network(place, world, plan, size.sites) as network:
        done(f"{size.sites + 1} processes")
        await network.deployment.deploy()
        done("deployed")
        # Everything is loaded, and links are open, when a few documents have gone through.
        await network.publish(world.documents[: size.hops])
        await network.deployment.wait(network.published, 300)
        done(f"{network.published} documents are everywhere")
        before, waits = await network.status(), waited()
        began = time.perf_counter()
        while network.published < size.documents:
            await network.publish(world.documents[network.published : network.published + _AT_ONCE])
            await network.deployment.wait(network.published, 900)
            done(f"{network.published} documents are everywhere")
        seconds = time.perf_counter() - began
        after, share = await network.status(), share_waited(waits, waited())
        looked = await look_at(network.local.neighbours())
        memory = sum(each.memory or 0 for each in looked.values() if each is not None)
        kept = await network.kept()
        lost, doubled, other = _wrong(world, kept, network.published)
        done(f"{len(kept):,} results compared")
        cpu = {name: after[name].cpu - before[name].cpu for name in after}
        taken = {name: after[name].taken - before[name].taken for name in after}
        placed = plan.placed()
        fed = sum(not view.inputs for view in placed)
        at = {view.id: view.site for view in placed}
        # What goes to one site goes there once.
        feeds = {(each, view.site) for view in placed for each in view.inputs if at[each] != view.site}
        count = size.documents - size.hops
        return [
            Result(
                "results that differ from the documents' own",
                lost + doubled + other,
                "",
                goal=0,
                section=section,
            ),
            Result("results", len(kept), "", section=section),
            Result("views that the source feeds", fed, "", section=section),
            Result("levels", max(view.level for view in placed), "", section=section),
            Result(
                "memory of all processes",
                memory / 1e9,
                "GB",
                goal=4 if full else None,
                section=section,
            ),
            Result("memory of a process", memory / 1e6 / len(looked), "MB", section=section),
            Result(
                "the publisher's share of all deliveries",
                100 * (after[SOURCE].entries - before[SOURCE].entries) / max(1, sum(taken.values())),
                "%",
                100 * fed / (fed + len(feeds)),
                "as planned, if all views give something",
                goal=5 if full else None,
                section=section,
            ),
            Result(
                "a hop: CPU of the site that takes",
                1e3 * sum(each for name, each in cpu.items() if name != SOURCE) / max(1, sum(taken.values())),
                "ms",
                goal=1 if full else None,
                section=section,
            ),
            Result("a document is everywhere, at full load, after", seconds / count, "s", section=section),
            Result(_CPU, 1e3 * cpu[SOURCE] / count, "ms", section=section),
            Result("share of their time that threads waited for a core", 100 * share, "%", section=section),
        ]


async def _chain(size: Size, place: Path, world: World, *, full: bool) -> list[Result]:
    """Have sites feed one another in a chain, and publish documents when the one before is everywhere.

    So each site has one result to take at a time, and nothing else is under way on the machine.
    """
    section = f"{_CHAIN} sites in a chain, one view, documents one by one"
    views = [Subscription(f"v{number}", "//item{id}[name{val}]", "xpath") for number in range(_CHAIN)]
    plan = Dissemination.build(views, world.documents[:1], Settings(fan_out=1.0, source_fan_out=1.0))
    async with _Network(place, world, plan, _CHAIN) as network:
        await network.deployment.deploy()

        async def publish(rounds: int) -> None:
            for document in world.documents[: size.hops] * rounds:
                await network.publish([document])
                await network.deployment.wait(network.published, 120)

        await publish(_CHAIN)
        first, waits = network.published, waited()
        await publish(_CHAIN)
        share = share_waited(waits, waited())
        times = np.array(await _times(network, first)) / 1e3
    return [
        Result("hops", len(times), "", section=section),
        Result("a hop: mean latency", float(times.mean()), "ms", section=section),
        Result("a hop: median", float(np.median(times)), "ms", section=section),
        Result("share of their time that threads waited for a core", 100 * share, "%", section=section),
        Result(
            "a hop: mean latency, less the share of time waited",
            float(times.mean()) * (1 - share),
            "ms",
            goal=2 if full else None,
            section=section,
        ),
    ]


async def _times(network: _Network, first: int) -> list[float]:
    """Return how long each hop took, in microseconds, for documents after one."""
    return [
        data.path[-1][1] - data.path[-2][1]
        async for data in network.results()
        if data.document > first and len(data.path) > 1
    ]


async def _alone(
    size: Size,
    place: Path,
    world: World,
    before: Sequence[Result],
    done: Callable[[str], None],
    *,
    full: bool,
) -> list[Result]:
    """Have the publisher feed everybody itself."""
    section = "The publisher, against feeding everybody itself"
    plan = Dissemination.build(
        world.subscriptions, world.documents[:1], Settings(fan_out=0.0, source_fan_out=1e9)
    )
    async with _Network(place, world, plan, size.sites) as network:
        await network.deployment.deploy()
        await network.publish(world.documents[: size.hops])
        await network.deployment.wait(network.published, 300)
        done("the publisher feeds all")
        begun = (await network.status())[SOURCE].cpu
        await network.publish(world.documents[size.hops : size.hops + size.beside])
        await network.deployment.wait(network.published, 900)
        cpu = 1e3 * ((await network.status())[SOURCE].cpu - begun) / (network.published - size.hops)
        done(f"{network.published} documents are everywhere")
    planned = next(each.value for each in before if each.name == _CPU)
    return [
        Result(_CPU, planned, "ms", cpu, "feeding all", section=section),
        Result(
            "its share of feeding all",
            100 * planned / cpu,
            "%",
            goal=10 if full else None,
            section=section,
        ),
    ]


async def _trouble(
    size: Size,
    place: Path,
    world: World,
    plans: list[Dissemination],
    done: Callable[[str], None],
    *,
    full: bool,
) -> list[Result]:
    """Kill sites, start them again, and change the plan, while documents are published."""
    section = (
        f"{size.sites} sites: kill -9 of {size.kills}, {size.redeploys} changes of plan, while documents come"
    )
    rng = random.Random(SEED)
    async with _Network(place, world, plans[0], size.sites) as network:
        plans[1].rename_sites(network.spread)
        await network.deployment.deploy()
        lines: list[str] = []
        recovered: list[float] = []
        watching = asyncio.ensure_future(watch(network.deployment, lines.append))
        publishing = asyncio.ensure_future(_slowly(network, world.documents[: size.beside]))
        names = rng.sample(sorted(set(network.spread.values())), size.kills)
        for name in names:
            network.local.kill(name)
            began = time.perf_counter()
            seen = len(lines)
            while len(lines) == seen:
                await _beside(watching)
            recovered.append(time.perf_counter() - began)
            network.local.again(name)
            while name in network.deployment.failed:
                await _beside(watching)
        await publishing
        await network.deployment.wait(network.published, 600)
        done(f"{size.kills} sites were killed, and came again")
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        publishing = asyncio.ensure_future(_slowly(network, world.documents[size.beside : 2 * size.beside]))
        for number in range(size.redeploys):
            await network.deployment.redeploy(plans[(number + 1) % 2])
        await publishing
        await network.deployment.wait(network.published, 600)
        done(f"{size.redeploys} changes of plan")
        kept = await network.kept()
        lost, doubled, other = _wrong(world, kept, network.published)
    return [
        Result("results lost", lost, "", goal=0, section=section),
        Result("results doubled", doubled, "", goal=0, section=section),
        Result("results that are others", other, "", goal=0, section=section),
        Result(
            "recovered, median", float(np.median(recovered)), "s", goal=2 if full else None, section=section
        ),
        Result("recovered, at most", max(recovered), "s", goal=10 if full else None, section=section),
    ]


async def _beside(watching: asyncio.Future[None]) -> None:
    """Wait a little while something goes on, which never ends by itself."""
    if watching.done():
        watching.result()
    await asyncio.sleep(0.02)


async def _slowly(network: _Network, documents: Sequence[Event]) -> None:
    for document in documents:
        await network.publish([document])
        await asyncio.sleep(0.1)
