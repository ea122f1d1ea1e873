"""Shards: what is refused, what passes them by, and what cannot be; their answers are in the contract."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as sf

from headgate import Subscription
from headgate.core.snapshot import room_of
from headgate.engine.question import Top
from headgate.errors import SnapshotError, TableError
from headgate.jobs.match import _of_event
from headgate.jobs.sharding import HOME
from headgate.records.index.index import RecordIndex
from headgate.runtime.engines import Runtime
from headgate.runtime.sharding import ACCESS, RULES, TENANT, Sharding
from headgate.runtime.targets import Group, open_target
from headgate.spark.tables.rows import parted_by_hash
from headgate.tables.event_rows import LINES
from headgate.tables.frames.rows import match_frame
from headgate.tables.frames.task import FrameTask
from headgate.xml.index.index import XmlIndex
from tests.spark.files import get_lines, get_table, names, put, put_lines, put_table
from tests.spark.jobs import compile_subscriptions, match_events, on_both, on_spark
from tests.spark.shard_cases import draw_case
from tests.spark.without_spark import compile_lines, match_lines

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.spark.files import Row

ROWS: list[Row] = [
    {"id": "s1", "filter": "tenant = 'a' AND x > 1", "tenant": "a"},
    {"id": "s2", "filter": "tenant = 'b'", "tenant": "b"},
    {"id": 7, "filter": "tenant IN ('a', 'b') AND x = 1", "tenant": 3},
    {"id": "bad", "filter": "x >", "tenant": "a"},
    {"id": "s1", "filter": "x > 2", "tenant": "b"},
    {"filter": "x > 3"},
    {"id": 7, "filter": "x > 4"},
    {"id": "7", "filter": "x > 5", "tenant": "c"},
    {"id": "s8", "filter": "tenant = 'c'"},
]
ACCEPTED = ["7", "s1", "s2", "s8"]
"""The ids of those that are accepted: some ids are text, so all are."""


def compile_rows(session: SparkSession | None, folder: Path, table: str, sharding: Sharding) -> Any:
    place, refused = str(folder / "out"), str(folder / "refused.jsonl")
    return compile_subscriptions(session, table, place, rejected=refused, sharding=sharding, quiet=True)


@on_both("by", RULES)
def test_rows_are_refused_as_in_one_piece(session: SparkSession | None, tmp_path: Path, by: str) -> None:
    table = put_lines(tmp_path / "subs.jsonl", ROWS)
    one = compile_lines(tmp_path / "out", ROWS)
    cut = compile_rows(session, tmp_path, table, Sharding.of(3, by, "tenant" if by == ACCESS else None))
    assert get_lines(tmp_path / "refused.jsonl") == one.refused
    assert (cut.subscriptions, cut.rejected, cut.attributes) == (
        one.subscriptions,
        len(one.refused),
        one.attributes,
    )
    assert (cut.subscriptions, cut.shards, cut.ranked) == (4, 3, False)
    assert names(tmp_path) == ["out", "refused.jsonl", "subs.jsonl"]
    assert room_of(tmp_path / "out") == "filter-shards"
    found = Runtime.open(tmp_path / "out").built
    assert sorted(identity for each in found for identity in each) == ACCEPTED
    # The first of equal ids wins, whatever their tenants.
    done = match_lines(tmp_path / "out", [{"id": 1, "tenant": "b", "x": 9}, {"id": 2, "tenant": "c"}])
    assert sorted(done.pairs) == [(1, "s2"), (2, "s8")]
    if by == TENANT:
        homes = {identity: number for number, each in enumerate(found) for identity in each}
        assert len({homes[identity] for identity in ("s1", "7", "s2")}) > 1
    assert done.met <= 2 * len([each for each in found if len(each)])


@on_both("more,found", [([], range(30)), (["007"], [*map(str, range(30)), "007"])])
def test_whole_numbers_of_csv_are_seen_in_the_whole_table(
    session: SparkSession | None, tmp_path: Path, more: list[str], found: Sequence[Any]
) -> None:
    rows: list[Row] = [{"id": each, "filter": "x = 7"} for each in [*range(30), *more]]
    cut = compile_rows(session, tmp_path, put_table(tmp_path / "subs.csv", rows), Sharding(2))
    ids = Runtime.open(tmp_path / "out").built
    assert sorted(identity for each in ids for identity in each) == sorted(found)
    assert (cut.subscriptions, open_target(str(tmp_path / "out")).numbered) == (len(rows), not more)


@on_spark
def test_events_pass_shards_by(session: SparkSession | None, tmp_path: Path) -> None:
    rows = [{"id": number, "filter": f"country = 'c{number % 8}' AND x >= {number}"} for number in range(80)]
    table = put_lines(tmp_path / "subs.jsonl", rows)
    compile_rows(session, tmp_path, table, Sharding.of(4, ACCESS, "Country"))
    target = open_target(str(tmp_path / "out"))
    assert target.routes is not None
    used = int((target.routes.subscriptions > 0).sum())
    assert not target.routes.open.any()
    events: list[Row] = [{"id": number, "country": f"c{number % 10}", "x": number} for number in range(50)]
    events += [{"id": 90, "country": None, "x": 99}]
    place = put_table(tmp_path / "events.parquet", events)
    done = match_events(
        session,
        str(tmp_path / "out"),
        place,
        str(tmp_path / "m.jsonl"),
        rejected=str(tmp_path / "r.jsonl"),
        quiet=True,
    )
    # Every country is on one shard; c8 and c9 are on none, and neither is NULL.
    assert (done.events, done.shards, done.met) == (51, 4, 40)
    assert 1 < used <= 4
    wanted = sum(int(a["country"] == f"c{b % 8}" and a["x"] >= b) for a in events for b in range(80))
    assert done.matches == wanted == len(get_lines(tmp_path / "m.jsonl"))
    lines = match_lines(tmp_path / "out", events)
    assert (lines.events, lines.met, len(lines.pairs)) == (51, 40, wanted)


def test_no_subscriptions_at_all(session: SparkSession | None, tmp_path: Path) -> None:
    table = put_lines(tmp_path / "subs.jsonl", [])
    done = compile_rows(session, tmp_path, table, Sharding(3))
    assert (done.subscriptions, done.rejected, done.shards) == (0, 0, 3)
    events = put_lines(tmp_path / "events.jsonl", [{"id": 1}])
    found = match_events(
        session,
        str(tmp_path / "out"),
        events,
        str(tmp_path / "m.parquet"),
        rejected=str(tmp_path / "r.jsonl"),
        quiet=True,
    )
    assert (found.matches, get_table(tmp_path / "m.parquet")) == (0, [])
    with pytest.raises(SnapshotError, match="was compiled without ranks"):
        open_target(str(tmp_path / "out"), top=Top.of(1))
    with pytest.raises(SnapshotError, match="was compiled without a graph"):
        open_target(str(tmp_path / "out"), graph=True)


def test_what_patterns_return_on_all_shards(session: SparkSession | None, tmp_path: Path) -> None:
    case = draw_case("xml", 11)
    table = put_lines(tmp_path / "subs.jsonl", case.rows(graph=False, ranked=False))
    events = put_lines(tmp_path / "events.jsonl", case.events)
    compile_rows(session, tmp_path, table, Sharding(3, ACCESS))
    place, refused, written = (str(tmp_path / name) for name in ("m.jsonl", "r.jsonl", "t.parquet"))
    match_events(session, str(tmp_path / "out"), events, place, rejected=refused, tuples=written, quiet=True)
    index = case.engine("plain").index
    assert isinstance(index, XmlIndex)
    wanted = [row for event in case.asked() for row in _of_event(index, event)]
    assert sorted(tuple(row.values()) for row in get_table(tmp_path / "t.parquet")) == sorted(wanted)
    assert len(wanted) > 20


@on_spark
def test_what_cannot_be_read_leaves_nothing(session: SparkSession | None, tmp_path: Path) -> None:
    (tmp_path / "subs.parquet").mkdir()
    put_table(tmp_path / "subs.parquet" / "a.parquet", [{"id": 1, "filter": "x"}])
    put(tmp_path / "subs.parquet" / "b.parquet", b"PAR1 and no more than that PAR1")
    with pytest.raises(TableError):
        compile_rows(session, tmp_path, str(tmp_path / "subs.parquet"), Sharding(2))
    table = put_lines(tmp_path / "subs.jsonl", ROWS)
    with pytest.raises(TableError, match="give --shard-column"):
        compile_rows(session, tmp_path, table, Sharding.of(2, ACCESS))
    assert names(tmp_path) == ["subs.jsonl", "subs.parquet"]


def test_a_shard_that_was_replaced_is_not_matched(tmp_path: Path) -> None:
    RecordIndex.build([Subscription(1, "x")]).save(tmp_path / "one")
    task = FrameTask(Group(str(tmp_path / "one"), "another digest"), "records", LINES, numbered=True)
    batch = pa.RecordBatch.from_pydict({"value": pa.array([b'{"id": 1}'], pa.binary())})
    with pytest.raises(SnapshotError, match="was replaced while it was being used: run the job again"):
        list(match_frame([batch], task))


@pytest.mark.nightly
@pytest.mark.parametrize("count", [1, 2, 7, 200])
def test_spark_4_0_has_each_shard_in_its_partition(spark: SparkSession, count: int) -> None:
    placed = spark.range(1_000).select((sf.col("id") % count).cast("int").alias(HOME))
    parted = parted_by_hash(placed, HOME, count)
    assert parted.rdd.getNumPartitions() == count
    rows = parted.select(HOME, sf.spark_partition_id().alias("partition")).distinct().collect()
    assert sorted((row[HOME], row["partition"]) for row in rows) == [(n, n) for n in range(count)]
