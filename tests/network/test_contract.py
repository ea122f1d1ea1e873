"""A network gives each event to those whom the library says: the worlds of the contract, on real sites."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from headgate import Dissemination, Engine, Event, Settings, Subscription
from headgate.core.rooms import RDF, RECORDS, XML
from headgate.engine.views import views_of
from headgate.errors import HeadgateError
from headgate.network.local import LocalSites
from tests.network.test_sites import Running, results
from tests.network.worlds import World
from tests.seeds import seeds
from tests.service.contract import world_of

if TYPE_CHECKING:
    from pathlib import Path

    from headgate.core.event import Id

CONTENTS = [
    RECORDS,
    pytest.param(RDF, marks=pytest.mark.nightly),
    pytest.param(XML, marks=pytest.mark.nightly),
]


@pytest.mark.parametrize("content", CONTENTS)
def test_sites_give_what_the_library_says(content: str, tmp_path: Path) -> None:
    """Views are those filters of the world that can be fed by others or by the source; few cannot."""
    drawn = world_of(content, tuple(seeds(12, 2)), graph=False, ranked=False)
    given = [
        Subscription(row["id"], row["filter"], row["dialect"])
        for row in drawn.subscriptions
        if row["dialect"] in {"sql", "sparql", "xpath"}
    ]
    views = [each for each in given if _is_view(each)]
    assert len(views) >= 0.7 * len(given) > 0
    engine = Engine.build(views)
    events = [event for row in drawn.events if (event := _event(row, engine)) is not None]
    # Some views of many can be fed by the source alone.
    settings = Settings(fan_out=4, source_fan_out=max(4, len(views)))
    plan = Dissemination.build(views, events[:5], settings)
    plan.rename_sites({view.site: f"s{number % 4}" for number, view in enumerate(plan.placed())})
    world = World(content, views[0].dialect, None, views, events)

    async def run() -> dict[Id, list[tuple[int, Any]]]:
        async with Running(sites, world, plan) as running:
            await running.publish(*events)
            await running.deployment.wait(len(events))
            return await results(running.deployment)

    with LocalSites(tmp_path) as sites:
        found = asyncio.run(run())
    for number, event in enumerate(events, 1):
        got = sorted(view for view, rows in found.items() if number in dict(rows))
        assert got == sorted(engine.match(event)), event


def _is_view(each: Subscription) -> bool:
    try:
        views_of([each])
    except HeadgateError:
        return False
    return True


def _event(row: dict[str, Any], engine: Engine) -> Event | None:
    """Read an event of the world, unless it is one of those that are refused."""
    try:
        event = Event.from_row(row)
        engine.match(event)
    except HeadgateError:
        return None
    return event
