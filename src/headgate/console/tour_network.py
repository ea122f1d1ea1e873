"""The network of the tour: a publisher and five sites, processes of this machine that live as long as it.

    source ──► london ──► berlin ──► munich     Europe, Germany, phones there
       │          └─────► paris                 France
       └─────► new-york                         the Americas

When a site is killed, those that it fed are fed in another way.
"""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from headgate.core.event import Event
from headgate.core.subscription import Subscription
from headgate.errors import HeadgateError

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from headgate.console.pages.network import Pictures
    from headgate.console.tour import View
    from headgate.engine.dissemination import Dissemination
    from headgate.network.local import LocalSites

    Documents = Callable[[int, int], list[dict[str, Any]]]
    """Makes some, from a row on."""

_SAMPLE = 200
_KEPT = 64 << 20
"""Bytes of events that a site keeps."""
_EACH = 0.5
"""Seconds between two documents."""
_PATIENCE = 10.0
"""Seconds that the source may take to answer."""
_LOG = logging.getLogger("headgate.console")


async def run(pictures: Pictures, views: list[View], documents: Documents) -> None:
    """Run the network until this is cancelled, and have the console show it."""
    # What plans and what starts processes takes a while to load: the service has started by then.
    from headgate.network.local import LocalSites

    pictures.coming = True
    with TemporaryDirectory(prefix="headgate-demo-network-", ignore_cleanup_errors=True) as folder:
        sites = LocalSites(Path(folder), retention_bytes=_KEPT)
        try:
            plan = await asyncio.to_thread(_begin, sites, views, documents(0, _SAMPLE))
            await _live(sites, plan, pictures, documents)
        finally:
            pictures.sites, pictures.coming = {}, False
            await asyncio.to_thread(sites.close)


def _begin(sites: LocalSites, views: list[View], sample: list[dict[str, Any]]) -> Dissemination:
    """Plan who feeds whom, and start the sites."""
    from headgate.engine.dissemination import Dissemination
    from headgate.network.assignment import SOURCE, write_sites
    from headgate.plan.running.planner import Settings

    wanted = [Subscription(each.id, each.filter) for each in views]
    plan = Dissemination.build(wanted, map(Event.from_row, sample), Settings(fan_out=2))
    plan.rename_sites({each.id: each.site for each in views})
    for name in (SOURCE, *(each.site for each in views)):
        sites.start(name)
    write_sites(sites.place / "sites.jsonl", sites.neighbours())
    return plan


async def _live(sites: LocalSites, plan: Dissemination, pictures: Pictures, documents: Documents) -> None:
    """Put the plan on the sites, look after them, and publish."""
    from headgate.network.assignment import SOURCE, Kind
    from headgate.network.deployment import Deployment
    from headgate.network.watch import watch
    from headgate.service.security.keys import DEFAULT_TENANT

    publisher = sites.sites[SOURCE].publisher
    assert publisher is not None, "the source has one"
    async with (
        Deployment(Kind("demo", DEFAULT_TENANT), plan, sites.neighbours()) as deployment,
        publisher.client(_PATIENCE) as client,
        asyncio.TaskGroup() as tasks,
    ):
        await deployment.deploy()
        pictures.sites, pictures.file = sites.neighbours(), str(sites.place / "sites.jsonl")
        tasks.create_task(watch(deployment, _LOG.info))
        row = 0
        while True:
            try:
                await client.publish(documents(row, 1))
                row += 1
            except HeadgateError as error:
                _LOG.warning("the demo's network waits: %s", error)
            await asyncio.sleep(_EACH)
