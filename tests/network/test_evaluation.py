"""A network in memory gives every view what it gets from the documents themselves, whatever happens."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from headgate import Dissemination, SavedPlan, Settings, Subscription
from headgate.engine.views import views_of
from headgate.network.assignment import SOURCE
from headgate.network.entry import Result
from headgate.plan.costs import Settings as Costs
from headgate.plan.graphs.rewritability import Search
from tests.network.memory import MemoryNetwork
from tests.network.worlds import KINDS, World, world_of
from tests.seeds import seeds

if TYPE_CHECKING:
    from pathlib import Path

    from headgate.core.event import Id


def direct(world: World, first: int = 1) -> dict[Id, list[tuple[int, Any]]]:
    """Compute what each view gives for each document, from the document itself, as JSON has it."""
    views = views_of(world.subscriptions, carries=world.carries)
    return {
        each.id: [
            (number, msgspec.json.decode(msgspec.json.encode(packed)))
            for number, event in enumerate(world.documents, 1)
            if number >= first and (packed := views.pack(views.result(view, event))) is not None
        ]
        for view, each in enumerate(world.subscriptions)
    }


@pytest.mark.parametrize("seed", seeds(6))
@pytest.mark.parametrize("kind", KINDS)
def test_all_get_what_the_documents_give(kind: str, seed: int) -> None:
    """Sites take from each other in any order, are killed, and have room for few documents."""
    rng = random.Random(f"{kind} {seed}")
    world = world_of(kind, rng, 25, 30)
    plan = world.plan(links=rng.choice([None, world.links(rng)]))
    if rng.random() < 0.5:
        # Several views at each site, which feed each other there.
        plan.rename_sites({each.site: f"s{rng.randrange(6)}" for each in plan.placed()})
    network = MemoryNetwork(world, plan, rng, most_kept=rng.choice([2, 5, 2_000]))
    left = list(world.documents)
    while left:
        act = rng.random()
        if act < 0.3:
            network.publish(left.pop(0))
        elif act < 0.9:
            site, upstream = rng.choice(network.links())
            network.sites[site].step(upstream, rng.randint(1, 4))
        elif act < 0.95:
            rng.choice(list(network.sites.values())).begin()
        else:
            rng.choice(list(network.sites.values())).mark()
    network.drain()
    assert network.results() == direct(world)
    # Everybody knows that this was all.
    assert set(network.reached().values()) == {len(world.documents)}
    deep = {each.level for each in network.plan.placed()}
    assert len(deep) > 1
    # What was sent is what the plan says: the source feeds those that it feeds, and nobody else.
    fed = {each.id for each in network.plan.placed() if not each.inputs}
    assert {entry.view for entry in network.sites[SOURCE].log if isinstance(entry, Result)} <= fed


@pytest.mark.parametrize("seed", seeds(4))
@pytest.mark.parametrize("kind", KINDS)
def test_plans_change_while_documents_come(kind: str, seed: int) -> None:
    """Sites fail or are relieved: those that they fed are fed in another way, from where they were."""
    rng = random.Random(f"{kind} {seed}")
    world = world_of(kind, rng, 25, 30)
    plan = world.plan(Settings(fan_out=3), world.links(rng) if seed % 2 else None)
    plan.rename_sites({each.site: f"s{rng.randrange(12)}" for each in plan.placed()})
    network = MemoryNetwork(world, plan, rng)
    gone: set[Id] = set()
    relieved: set[str] = set()
    for event in world.documents:
        network.publish(event)
        for _ in range(rng.randint(0, 20)):
            site, upstream = rng.choice(network.links())
            network.sites[site].step(upstream, rng.randint(1, 4))
        if rng.random() < 0.15:
            name = rng.choice(sorted({each.site for each in plan.placed()}))
            gone |= {each.id for each in plan.placed() if each.site == name}
            plan.fail_site(name)
            relieved.discard(name)
            network.sites[name].alive = False
            network.deploy()
        elif rng.random() < 0.2:
            name = rng.choice(sorted({each.site for each in plan.placed()}))
            if name in relieved:
                plan.resume_site(name)
            else:
                plan.relieve_site(name)
                # The source can feed all, so nobody elsewhere is left to the site.
                at = {each.id: each.site for each in plan.placed()}
                takers = {
                    each.host or each.site for each in plan.placed() for one in each.inputs if at[one] == name
                }
                assert takers <= {name}
            relieved ^= {name}
            network.deploy()
    network.drain()
    found, wanted = network.results(), direct(world)
    assert {view: rows for view, rows in found.items() if view not in gone} == {
        view: rows for view, rows in wanted.items() if view not in gone
    }
    # What a site had when it failed is a beginning of what it should have had.
    assert all(found[view] == wanted[view][: len(found[view])] for view in gone)


@pytest.mark.parametrize("seed", seeds(4))
@pytest.mark.parametrize("kind", KINDS)
def test_joins_run_where_links_are_short(kind: str, seed: int, tmp_path: Path) -> None:
    """Views that are computed at the site of an input get the same, and a saved plan knows where that is."""
    rng = random.Random(f"{kind} {seed}")
    world = world_of(kind, rng, 30, 12)
    plan = world.plan(Settings(fan_out=6, source_fan_out=30), world.links(rng))
    elsewhere = {each.id: each.host for each in plan.placed() if each.host is not None}
    # From a whole row all is selected, and nothing joined.
    assert elsewhere or kind == "sql"
    plan.saved.save(tmp_path / "plan")
    opened = Dissemination.open(tmp_path / "plan")
    assert opened.placed() == plan.placed()
    rows = SavedPlan.open(tmp_path / "plan").views().to_pylist()
    assert {row["view"]: row["computed_at"] for row in rows if row["computed_at"] != row["site"]} == elsewhere
    network = MemoryNetwork(world, opened, rng)
    for event in world.documents:
        network.publish(event)
        for _ in range(5):
            site, upstream = rng.choice(network.links())
            network.sites[site].step(upstream, rng.randint(1, 4))
        if elsewhere and rng.random() < 0.2:
            # A view is fed in another way, and later as before.
            opened.relieve_site(moved := rng.choice(sorted(set(elsewhere.values()))))
            network.deploy()
            opened.resume_site(moved)
        network.deploy()
    network.drain()
    assert network.results() == direct(world)


@pytest.mark.parametrize("kind", KINDS)
def test_a_plan_is_opened_again(kind: str, tmp_path: Path) -> None:
    """What was saved feeds views as before, and takes new ones."""
    world = world_of(kind, random.Random(kind), 20, 10)
    exact = "exact" if kind == "sql" else None
    settings = Settings(fan_out=4, search=Search(k=9), costs=Costs(hop=3.0), swaps=False, to_source=True)
    plan = Dissemination.build(
        world.subscriptions, world.documents[:3], settings, carries=world.carries, names=exact
    )
    plan.saved.save(tmp_path / "plan")
    opened = Dissemination.open(tmp_path / "plan")
    assert Settings.read(opened.saved.about["settings"]) == settings
    assert opened.placed() == plan.placed()
    assert opened.carries == world.carries
    assert opened.names == ({} if exact is None else {"names": exact})
    event = world.documents[-1]
    assert opened.deliver(event) == plan.deliver(event)
    opened.subscribe(Subscription("new", world.subscriptions[0].filter, world.dialect))
    assert opened.deliver(event)["new"] == opened.deliver(event)[world.subscriptions[0].id]
