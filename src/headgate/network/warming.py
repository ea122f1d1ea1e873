"""A small network in one process, run once and ended, before processes are forked from it.

What a site loads, compiles and fills on its first documents is then there, and shared by all of them. No
thread is left when it has ended, as a fork would lose it.
"""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from headgate import AsyncClient, Dissemination, Event, Settings, Subscription
from headgate.network.assignment import SOURCE, Kind, Neighbour
from headgate.network.deployment import Deployment
from headgate.network.extension import TENANT, SiteExtension
from headgate.network.local import keys_of
from headgate.service.running import Running
from headgate.service.security.keys import DEFAULT_TENANT
from headgate.service.settings import ServiceSettings

_VIEWS = {
    "u": "//a{id}[b{val}]",
    "v": "//a{id}[c{val}]",
    "w": "//a{id}[b{val}][c{val}]",
    "x": "//a{id}[b{val}]",
}
"""Some that are selected, joined, and taken as they are."""
_DOCUMENTS = 40
"""Python makes code ready for what it meets when it has run some times."""
_PATIENCE = 60.0


class _Stage(NamedTuple):
    """A site in a thread."""

    running: Running
    thread: threading.Thread
    site: Neighbour
    publisher: Neighbour


def warm_up() -> None:
    """Run a source and two sites, and end them."""
    with TemporaryDirectory() as folder:
        stages = {name: _begin(Path(folder) / name) for name in (SOURCE, "a", "b")}
        try:
            asyncio.run(_play(stages))
        finally:
            for stage in stages.values():
                stage.running.stop()
            for stage in stages.values():
                stage.thread.join(_PATIENCE)


def _begin(data: Path) -> _Stage:
    made = keys_of(data, (TENANT, DEFAULT_TENANT), "warming")
    running = Running(ServiceSettings(data=str(data), port=0), SiteExtension(TENANT))
    listens = threading.Event()
    thread = threading.Thread(target=running.run, args=(lambda _: listens.set(),), daemon=True)
    thread.start()
    listens.wait(_PATIENCE)
    site, publisher = (Neighbour(running.address, made[each]) for each in (TENANT, DEFAULT_TENANT))
    return _Stage(running, thread, site, publisher)


async def _play(stages: dict[str, _Stage]) -> None:
    text = "<x>" + "".join(f"<a><b>{number}</b><c>2</c></a>" for number in range(40)) + "</x>"
    sample = [Event("sample", text, content_type="xml")]
    views = [Subscription(each, path, "xpath") for each, path in _VIEWS.items()]
    plan = Dissemination.build(views, sample, Settings(fan_out=2.0))
    sites = sorted({view.site for view in plan.placed()})
    plan.rename_sites({each: "ab"[number % 2] for number, each in enumerate(sites)})
    deployment = Deployment(
        Kind("warming", DEFAULT_TENANT), plan, {name: each.site for name, each in stages.items()}
    )
    publisher = stages[SOURCE].publisher
    async with AsyncClient(publisher.address, key=publisher.key) as client:
        await deployment.deploy()
        for number in range(_DOCUMENTS):
            await client.publish([{"id": str(number), "data": text, "datacontenttype": "xml"}])
        await deployment.wait(_DOCUMENTS, _PATIENCE)
    await deployment.close()
