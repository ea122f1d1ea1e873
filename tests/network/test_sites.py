"""Sites as processes: every view gets what it gets from the documents themselves."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Any

import pytest

from headgate import AsyncClient
from headgate.client.asking import Ask
from headgate.network.assignment import SOURCE
from headgate.network.deployment import Deployment
from headgate.network.entry import Result, read_entry
from headgate.network.local import LocalSites
from headgate.network.placement import Kind
from tests.network.test_evaluation import direct
from tests.network.worlds import KINDS, World, world_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from headgate import Event
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
    for name, site in deployment.sites.items():
        if name == SOURCE or name in deployment.failed:
            continue
        async with AsyncClient(site.address, key=site.key) as client:
            after: str | None = "0"
            while after is not None:
                page = await client.send(Ask("GET", f"/v1/events?after={after}&limit=1000", dict[str, Any]))
                after = page["next"]
                for item in page["items"]:
                    entry = read_entry(item["event"])
                    if isinstance(entry, Result):
                        found.setdefault(entry.view, []).append((entry.document, entry.packed))
    return found


def plain(rows: dict[Id, list[tuple[int, Any]]], world: World) -> dict[Id, list[tuple[int, Any]]]:
    """Write results as JSON has them."""
    import msgspec

    found = {view: rows.get(view, []) for view in (each.id for each in world.subscriptions)}
    decoded: dict[Id, list[tuple[int, Any]]] = msgspec.json.decode(
        msgspec.json.encode(found), type=dict[str, list[tuple[int, Any]]]
    )
    return decoded


@pytest.mark.parametrize("kind", KINDS)
def test_processes_feed_each_other(sites: LocalSites, kind: str) -> None:
    rng = random.Random(kind)
    world = world_of(kind, rng, 12, 20)
    plan = world.plan()
    for name in (SOURCE, *sorted({each.site for each in plan.placed()})):
        sites.start(name)

    async def run() -> dict[Id, list[tuple[int, Any]]]:
        publisher = sites.sites[SOURCE].publisher
        assert publisher is not None
        async with (
            Deployment(
                Kind("test", world.dialect, "default", world.carries), plan, sites.neighbours()
            ) as deployment,
            AsyncClient(publisher.address, key=publisher.key) as client,
        ):
            await deployment.deploy()
            for event in world.documents:
                await client.publish(row_of(event))
            await deployment.wait(len(world.documents))
            return await results(deployment)

    assert plain(asyncio.run(run()), world) == plain(direct(world), world)
