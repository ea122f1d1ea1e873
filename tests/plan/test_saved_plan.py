"""A network as data: its tables say what its arrays do, and a snapshot brings all of it back."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.parquet as pq
import pytest

from headgate.core.ids import Ids
from headgate.core.interning import TextPool
from headgate.errors import SnapshotError
from headgate.plan.model import SOURCE, Plan
from headgate.plan.running.saved_plan import SavedPlan
from tests.plan.instances import random_instance
from tests.plan.reference import latency_of
from tests.seeds import seeds

if TYPE_CHECKING:
    from pathlib import Path


def drawn(seed: int, views: int = 30) -> SavedPlan:
    """Draw a network: each view has a rewriting if it can have one, and the source now and then."""
    rng = random.Random(seed)
    rewritings, costs, capacities = random_instance(rng, views)
    begins, ends = rewritings.offsets[:-1].tolist(), rewritings.offsets[1:].tolist()
    plans = [
        Plan(
            np.array(
                [
                    SOURCE if begin == end or rng.random() < 0.2 else rng.randrange(begin, end)
                    for begin, end in zip(begins, ends, strict=True)
                ],
                np.int64,
            )
        )
        for _ in range(2)
    ]
    ids = Ids.of(f"v{number:03}" for number in range(views))
    sites = [f"site {number}" for number in range(len(capacities.fan_out))]
    about = {"trace": [[0.0, 2.0], [0.5, 1.0]], "utilization": {"gap": 0.001}}
    return SavedPlan(
        ids,
        TextPool.build([f"//a{number}" for number in range(views)]),
        TextPool.build(sites),
        rewritings,
        costs,
        capacities,
        plans[0],
        plans[1],
        about,
    )


@pytest.mark.parametrize("seed", seeds(5))
def test_a_snapshot_brings_it_back(tmp_path: Path, seed: int) -> None:
    network = drawn(seed)
    network.save(tmp_path / "network")
    opened = SavedPlan.open(tmp_path / "network")
    assert list(opened.ids) == list(network.ids)
    assert opened.about == network.about
    for part in ("rewritings", "costs", "capacities", "before", "plan"):
        for mine, its in zip(getattr(network, part), getattr(opened, part), strict=True):
            assert np.array_equal(mine, its)
    assert pq.read_table(tmp_path / "network" / "views.parquet").equals(network.views())
    assert pq.read_table(tmp_path / "network" / "feeds.parquet").equals(network.feeds())


@pytest.mark.parametrize("seed", seeds(5))
def test_tables_say_who_feeds_whom(seed: int) -> None:
    network = drawn(seed)
    all_chosen = network.plan.chosen.tolist()
    rows = network.views().to_pylist()
    fed = [(row["view"], each) for row in rows for each in row["inputs"]]
    assert fed == [(row["view"], row["input"]) for row in network.feeds().to_pylist()]
    levels = {row["view"]: row["level"] for row in rows}
    for number, row in enumerate(rows):
        chosen = int(network.plan.chosen[number])
        assert (row["rewriting"] is None) == (chosen == SOURCE) == (not row["inputs"])
        assert row["level"] == 1 + max((levels[each] for each in row["inputs"]), default=0)
        assert row["feeds"] == sum(each == row["view"] for _, each in fed)
        latency = latency_of(number, all_chosen, network.rewritings, network.costs)
        assert row["latency"] == pytest.approx(latency)
        if chosen != SOURCE:
            begin, end = network.rewritings.input_offsets[chosen : chosen + 2]
            wanted = [network.ids[each] for each in network.rewritings.inputs[begin:end].tolist()]
            assert row["inputs"] == wanted
            assert row["utilization"] == network.costs.utilization[chosen]


def test_a_damaged_table_is_noticed(tmp_path: Path) -> None:
    drawn(1).save(tmp_path / "network")
    table = tmp_path / "network" / "feeds.parquet"
    data = bytearray(table.read_bytes())
    data[10] ^= 1
    table.write_bytes(data)
    with pytest.raises(SnapshotError, match=r"feeds.parquet does not have its checksum"):
        SavedPlan.open(tmp_path / "network")
