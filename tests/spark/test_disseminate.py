"""A saved plan as a job on Spark gives every view what the documents give."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING

import pytest

import headgate.spark as hg
from headgate import Settings
from headgate.errors import TableError
from tests.network.test_evaluation import direct
from tests.network.worlds import KINDS, world_of

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.mark.nightly
@pytest.mark.parametrize("kind", KINDS)
def test_views_get_what_the_documents_give(spark: SparkSession, kind: str, tmp_path: Path) -> None:
    world = world_of(kind, random.Random(kind), 25, 30)
    plan = world.plan(Settings(fan_out=2))
    plan.saved.save(tmp_path / "plan")
    if world.dialect == "sql":
        rows = [
            (each.id, *(each.data.get(name) for name in "xyzw"), number)
            for number, each in enumerate(world.documents, 1)
        ]
        schema = "uuid string, x int, y string, z int, w int, number int"
    else:
        rows = [
            (each.id, each.data, each.content_type, number) for number, each in enumerate(world.documents, 1)
        ]
        rows.append(("bad", "<", "xml", 0))
        schema = "uuid string, body string, datacontenttype string, number int"
    events = spark.createDataFrame(rows, schema).repartition(3)
    found = hg.disseminate(events, tmp_path / "plan", id="uuid", data="body", keep=["number"])
    assert found.columns == ["event_id", "subscription_id", "level", "result", "number"]
    given = found.collect()
    wanted = direct(world)
    assert sorted((row["subscription_id"], row["number"]) for row in given) == sorted(
        (view, number) for view, some in wanted.items() for number, _ in some
    )
    if kind != "sql":
        # Rows of a table have all of its columns, also those without a value.
        told = {(view, number): packed for view, some in wanted.items() for number, packed in some}
        assert all(
            json.loads(row["result"]) == json.loads(json.dumps(told[row["subscription_id"], row["number"]]))
            for row in given
        )
    levels = hg.disseminate(events, tmp_path / "plan", id="uuid", data="body", counts=True).collect()
    assert [row["level"] for row in levels] == list(range(1 + max(each.level for each in plan.placed())))
    assert levels[0]["read"] == 30
    assert levels[0]["refused"] == (world.dialect != "sql")
    assert sum(row["results"] for row in levels) == len(given)
    with pytest.raises(TableError, match=r"there is no column|nobody"):
        hg.disseminate(events, tmp_path / "plan", id="nobody")
