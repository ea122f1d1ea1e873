"""The network on the console: sites by level, who is silent, the way of a document."""

from __future__ import annotations

import asyncio
import json
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from headgate import AsyncClient
from headgate.console.extension import Console
from headgate.console.pages.network import Pictures, draw, fares_of
from headgate.network.assignment import SOURCE, Kind, Neighbour
from headgate.network.deployment import Deployment
from headgate.network.extension import TENANT, SiteExtension
from headgate.report.network_page import RunningNetwork, SiteRow
from headgate.service.running import Running
from headgate.service.security.keys import DEFAULT_TENANT, Keys
from headgate.service.server import make_place
from headgate.service.settings import ServiceSettings
from tests.console.browsing import PLACE, started, violations, window
from tests.console.serving import serving
from tests.network.worlds import world_of

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from pathlib import Path


def run(work: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine in a thread: where a browser is open, this one has a loop already."""
    with ThreadPoolExecutor(1) as one:
        one.submit(asyncio.run, work).result(60)


class Site:
    """A site in a thread of this process."""

    def __init__(self, data: Path) -> None:
        make_place(data)
        keys = Keys(data)
        texts = {name: keys.add(name, ["admin"])[1] for name in (TENANT, DEFAULT_TENANT)}
        keys.close()
        self._running = Running(ServiceSettings(data=str(data), port=0), SiteExtension(TENANT))
        ready = threading.Event()
        self._thread = threading.Thread(target=lambda: self._running.run(lambda _: ready.set()), daemon=True)
        self._thread.start()
        assert ready.wait(30)
        self.neighbour = Neighbour(self._running.address, texts[TENANT])
        self.publisher = Neighbour(self._running.address, texts[DEFAULT_TENANT])

    def stop(self) -> None:
        """End it."""
        self._running.stop()
        self._thread.join(30)


def test_a_network_is_shown(tmp_path: Path) -> None:
    """Levels, feeds and the way of a document are on the page; a site that ends is told at once."""
    world = world_of("sql", random.Random(3), 12, 6)
    plan = world.plan()
    spread = {name: f"site{place % 3}" for place, name in enumerate(sorted({v.site for v in plan.placed()}))}
    plan.rename_sites(spread)
    sites = {name: Site(tmp_path / name) for name in (SOURCE, *sorted(set(spread.values())))}
    known = {name: each.neighbour for name, each in sites.items()}

    async def publish() -> None:
        deployment = Deployment(Kind("<b>net", "default", world.carries), plan, known)
        await deployment.deploy()
        way = sites[SOURCE].publisher
        async with AsyncClient(way.address, key=way.key) as client:
            rows: list[Any] = [dict(event.data) for event in world.documents]
            await client.publish(rows)
        end = time.monotonic() + 30
        while True:
            found = await Pictures(known).of()
            assert found.error is None
            assert found.network is not None
            if found.network.documents == len(rows) and not any(each.behind for each in found.network.sites):
                break
            assert time.monotonic() < end, found.network
            await asyncio.sleep(0.05)
        await deployment.close()

    try:
        run(publish())
        with serving(tmp_path / "console", Console(known)) as served:
            visitor = served.visitor()
            seen = visitor.get("/console/network")
            assert "Network &lt;b&gt;net" in seen.body
            assert "Sites 4" in seen.text
            assert "In trouble 0" in seen.text
            assert seen.body.count('"href":"#site-') == 4
            assert '"title":"source feeds site' in seen.body
            ways = [visitor.get(f"/console/network?document={n}").text for n in range(1, 7)]
            assert any("+" in text and "ms →" in text for text in ways)
            assert "No view has a result of document 999" in visitor.get("/console/network?document=999").text
            assert all(each.key not in seen.body for each in known.values() if each.key)
            assert visitor.get("/console/network?document=x").status == 400
            if PLACE is not None:
                with started() as browser, window(browser, served.address) as page:
                    page.goto("/console/network")
                    assert page.locator("svg .node").count() == 4
                    page.evaluate("document.querySelector('svg .node').dataset.seen = 'yes'")
                    with page.expect_response("**/network/live"):
                        pass
                    page.wait_for_timeout(200)
                    assert page.locator("svg .node[data-seen]").count() == 1, "it stays as it is"
                    assert violations(page) == []
            sites["site1"].stop()
            seen = visitor.get("/console/network/live?document=998", HX_Request="true")
            assert "site1 : does not answer" in seen.text
            assert '"note":"does not answer","state":"bad"' in seen.body
    finally:
        for name, each in sites.items():
            if name != "site1":
                each.stop()


def test_no_network_is_a_lesson(tmp_path: Path) -> None:
    """Without sites the page says what a network is, and how to try one."""
    with serving(tmp_path) as served:
        assert "headgate network local" in served.visitor().get("/console/network").text


def test_who_waits_is_told_from_who_is_down() -> None:
    """A site that lost its link to one that does not answer waits for it; lines of silent sites stay."""
    sites = (
        SiteRow(SOURCE, (1,), 0, 0, 0, "runs"),
        SiteRow("a", (), 0, 0, 0, "does not answer"),
        SiteRow("b", (2, 2), 40, 2, 1, "a: lost"),
        SiteRow("c", (2,), 40, 1, 1, "runs"),
    )
    network = RunningNetwork("n", 1, 50, sites, (), "", ())
    fares = fares_of(network)
    told = [(each.state, each.waits_for) for each in fares.values()]
    assert told == [("source", None), ("bad", None), ("late", "a"), ("late", None)]
    drawn = json.loads(draw(fares, {SOURCE: {"a": 3}, "a": {"b": 1, "gone": 2}, "b": {"a": 1}}))
    assert [(each["state"], each["width"]) for each in drawn["edges"]] == [("bad", 4), ("bad", 2), ("bad", 2)]


def test_a_look_that_fails_is_told() -> None:
    """Sites that cannot be asked leave the page standing, with the reason."""

    async def look() -> None:
        pictures = Pictures({SOURCE: Neighbour("http://127.0.0.1:9")})
        seen = await pictures.of()
        assert seen.network is not None
        assert [each.state for each in seen.network.sites] == ["does not answer"]
        pictures.close()

    run(look())
