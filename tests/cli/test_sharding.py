"""Shards on the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from headgate.core.machine import cores, memory
from headgate.core.versions.current import resolved
from headgate.runtime import sharding
from tests.spark.files import get_lines, names, put_lines

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.cli.running import Command

COMPILE = ("compile", "--subscriptions", "subs.jsonl", "--output", "cut", "--shards", "3", "--quiet")
MATCH = ("match", "--snapshot", "cut", "--events", "events.jsonl", "--output", "matches.jsonl", "--quiet")
EXPLAIN = ("explain", "--snapshot", "cut", "--event", '{"topic": "news", "age": 35}', "--subscription")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rows = [{"id": f"s{number}", "filter": f"topic = 't{number}' AND age > 30"} for number in range(6)]
    put_lines(tmp_path / "subs.jsonl", [*rows, {"id": "all", "filter": "age > 30"}])
    put_lines(tmp_path / "events.jsonl", [{"id": 1, "topic": "t1", "age": 35}, {"id": 2, "topic": "t9"}])
    return tmp_path


@pytest.mark.usefixtures("spark")
def test_from_a_table_to_matches_and_reasons(headgate: Command, folder: Path) -> None:
    ran = headgate(*COMPILE, "--shard-by", "access", "--shard-column", "topic")
    assert ran.out.splitlines() == [
        "compiled 7 subscriptions in 3 shards over 2 attributes to cut",
        "refused none",
    ]
    assert "key_data.npy" in names(resolved(folder / "cut"))
    ran = headgate(*MATCH)
    assert ran.out.splitlines() == [
        "matched 2 events: 2 matches in matches.jsonl",
        "refused none",
        # Both meet the open shard, and the first one more.
        "events met shards 3 times, of 6 that there could be",
    ]
    found = sorted((row["event_id"], row["subscription_id"]) for row in get_lines("matches.jsonl"))
    assert found == [(1, "all"), (1, "s1")]
    assert headgate(*EXPLAIN, "all").out.startswith("match\n")
    for number in range(6):
        assert f"topic = 't{number}'" in headgate(*EXPLAIN, f"s{number}").out
    assert "nobody" in headgate(*EXPLAIN, "nobody").complaint


@pytest.mark.usefixtures("folder")
def test_options_that_do_not_go_together(headgate: Command) -> None:
    ran = headgate(*COMPILE, "--shard-column", "topic")
    assert ran.complaint.startswith("shards by hash look at ids alone: leave out the column 'topic'")
    ran = headgate(*COMPILE[:-3], "--quiet", "--shard-by", "tenant")
    assert ran.complaint.startswith("--shard-by goes with --shards")


@pytest.mark.usefixtures("folder")
def test_as_many_as_memory_asks_for(
    headgate: Command, monkeypatch: pytest.MonkeyPatch, session: SparkSession | None
) -> None:
    """What is open is decided when the subscriptions are counted."""
    engine = ("--engine", "local" if session is None else "spark")
    auto = ("compile", "--subscriptions", "subs.jsonl", "--output", "cut", "--shards", "auto", "--quiet")
    assert headgate(*auto, *engine).out.startswith("compiled 7 subscriptions over 2 attributes to cut")
    share = memory() // 2 // (1 if session is None else cores())
    monkeypatch.setattr(sharding, "BUILDING", share // 3)
    assert headgate(*auto, *engine).out.startswith("compiled 7 subscriptions in 3 shards over 2 attributes")
    ran = headgate(*auto[:-2], "many")
    assert ran.complaint.startswith(
        "Invalid value for '--shards': 'many' is not a number from 1 to 1,000, nor"
    )
