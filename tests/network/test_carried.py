"""A saved plan carried out event by event gives what the documents give, and what a network gives."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
import pytest

from headgate import Settings
from headgate.core.snapshot import digest_of
from headgate.engine.views import views_of
from headgate.runtime.targets import Group
from headgate.tables.event_rows import COLUMNS, DOCUMENTS
from headgate.tables.frames.disseminating import (
    CarriedPlan,
    LevelCounts,
    PlanPlace,
    count_levels_frame,
    disseminate_frame,
)
from headgate.tables.frames.task import FrameTask
from tests.network.memory import MemoryNetwork
from tests.network.test_evaluation import direct
from tests.network.worlds import KINDS, World, world_of
from tests.seeds import seeds

if TYPE_CHECKING:
    from pathlib import Path


def _events(world: World) -> pa.RecordBatch:
    """Lay events out as workers get them; the last row is none."""
    ids = [each.id for each in world.documents]
    columns: dict[str, Any] = {"id": [*ids, None]}
    if world.dialect == "sql":
        names = ("id", "x", "y", "z", "w")
        rows = [{name: each.data.get(name) for name in names} for each in world.documents]
        columns["event"] = [*rows, rows[0]]
    else:
        columns |= {
            "source": [None] * (len(ids) + 1),
            "data": [*(each.data for each in world.documents), "<"],
            "datacontenttype": [*(each.content_type for each in world.documents), "xml"],
        }
    columns["kept"] = [{"number": number} for number in range(len(ids) + 1)]
    return pa.RecordBatch.from_pydict(columns)


@pytest.mark.parametrize("seed", seeds(3))
@pytest.mark.parametrize("kind", KINDS)
def test_levels_give_what_the_documents_give(kind: str, seed: int, tmp_path: Path) -> None:
    rng = random.Random(f"{kind} {seed}")
    world = world_of(kind, rng, 25, 15)
    plan = world.plan(Settings(fan_out=2, source_fan_out=25))
    network = MemoryNetwork(world, plan, rng)
    for event in world.documents:
        network.publish(event)
    network.drain()
    plan.saved.save(tmp_path / "plan")
    carried = CarriedPlan.open(tmp_path / "plan")
    counts = LevelCounts(carried.depth)
    found: dict[Any, list[tuple[int, Any]]] = {each.id: [] for each in world.subscriptions}
    levels: dict[Any, int] = {each.id: each.level for each in plan.placed()}
    for number, event in enumerate(world.documents, 1):
        for given in carried.deliver(event, counts):
            found[carried.ids[given.view]].append((number, json.loads(msgspec.json.encode(given.packed))))
            assert given.level == levels[carried.ids[given.view]]
    assert found == direct(world) == network.results()
    # What is read of a view is what each that takes it reads, unless another input gives nothing.
    assert (
        counts.read[0]
        == counts.given[0]
        == sum(len(found[each.id]) for each in plan.placed() if not each.inputs)
    )
    assert sum(counts.given) == sum(map(len, found.values()))
    assert carried.depth > 1
    assert all(counts.bytes)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_workers(kind: str, tmp_path: Path) -> None:
    """Workers give a row for each result, and count what levels read."""
    world = world_of(kind, random.Random(kind), 20, 12)
    plan = world.plan(Settings(fan_out=2, source_fan_out=25))
    plan.saved.save(tmp_path / "plan")
    place = PlanPlace(str(tmp_path / "plan"), digest_of(tmp_path / "plan"))
    form = COLUMNS if world.dialect == "sql" else DOCUMENTS
    task = FrameTask(Group(*place[:2]), plan.saved.about["content"], form, numbered=False)
    rows = [row for each in disseminate_frame([_events(world)], task, place) for row in each.to_pylist()]
    views = views_of(world.subscriptions, carries=world.carries)
    wanted = {}
    for number, event in enumerate(world.documents):
        for view, each in enumerate(world.subscriptions):
            packed = views.pack(views.result(view, event))
            if packed is not None:
                wanted[event.id, each.id] = (number, packed)
    assert {(row["event_id"], row["subscription_id"]) for row in rows} == set(wanted)
    assert len(rows) == len(wanted)
    for row in rows:
        number, packed = wanted[row["event_id"], row["subscription_id"]]
        assert row["number"] == number
        read = json.loads(row["result"])
        if kind == "sql":
            # A column that is NULL is an attribute without a value.
            read[1] = {name: value for name, value in read[1].items() if value is not None}
        assert read == json.loads(msgspec.json.encode(packed))
    (told,) = count_levels_frame([_events(world)], task, place)
    levels = told.to_pylist()
    assert levels[0] == {"level": 0, "read": 12, "bytes": 0, "results": 0, "refused": 1}
    assert [row["results"] for row in levels[1:]] == [
        sum(row["level"] == level for row in rows) for level in range(1, len(levels))
    ]
