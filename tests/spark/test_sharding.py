"""Shards: the library's answers, whatever the content, the question, the rule and the number of parts."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import pytest

from headgate import RecordIndex, Subscription, XmlIndex
from headgate.core.snapshot import room_of
from headgate.errors import SnapshotError, TableError
from headgate.runtime.questions import Top
from headgate.runtime.sharding import ACCESS, HASH, RULES, TENANT, Sharding
from headgate.runtime.shards import ids_at, shard_places
from headgate.runtime.targets import Group, open_target
from headgate.spark.compile.compile import compile_subscriptions
from headgate.spark.compile.graph import Tables, compile_graph
from headgate.spark.match.match import match_events
from headgate.spark.match.tuples import _of_event
from headgate.spark.match.worker import Task, match_rows
from headgate.spark.tables.event_rows import LINES
from tests.lanes import some
from tests.spark.files import get_lines, get_table, names, put, put_lines, put_table
from tests.spark.shard_cases import CONTENTS, KINDS, draw_case
from tests.spark.without_spark import compile_lines, match_lines

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from headgate.spark.match.match import Matched
    from tests.spark.files import Row
    from tests.spark.shard_cases import Case

TOPS = (Top.of(3), Top.of(4, "relaxed"))
CASES = {content: draw_case(content, 11) for content in CONTENTS}
SOME = [
    ("records", "plain", 16, ACCESS),
    ("records", "ranked", 2, TENANT),
    ("records", "graph", 3, ACCESS),
    ("rdf", "plain", 2, ACCESS),
    ("rdf", "ranked", 3, HASH),
    ("rdf", "graph", 2, TENANT),
    ("xml", "plain", 2, TENANT),
    ("xml", "ranked", 3, ACCESS),
    ("xml", "graph", 4, ACCESS),
]
"""Every content and kind once, every rule, few shards and many; the nightly test has all of them."""


class Job:
    """Tables in a folder, cut into files, and what jobs make of them."""

    def __init__(self, spark: SparkSession, folder: Path, case: Case) -> None:
        self.spark = spark
        self.folder = folder
        self.case = case
        self.snapshot = folder / "snapshot"

    def put(self, name: str, rows: list[Any], files: int) -> str:
        for number in range(files):
            put_lines(self.folder / name / f"part-{number}.jsonl", rows[number::files])
        return str(self.folder / name)

    def compile(self, kind: str, sharding: Sharding, files: int = 3) -> Any:
        options: dict[str, Any] = {"rejected": str(self.folder / "refused.jsonl"), "quiet": True}
        options |= {"sharding": sharding, "ranked": kind != "plain", "taxonomy": self.case.taxonomy}
        place = str(self.snapshot)
        rows = self.case.rows(graph=kind == "graph", ranked=kind != "plain")
        table = self.put(f"{kind}-subscriptions", rows, files)
        if kind != "graph":
            return compile_subscriptions(self.spark, table, place, **options)
        nodes = [{k: v for k, v in asdict(each).items() if v is not None} for each in self.case.nodes]
        tables = Tables(
            self.put("nodes", nodes, 1),
            self.put("edges", [asdict(each) for each in self.case.edges], 1),
            table,
        )
        return compile_graph(self.spark, tables, place, **options)

    def match(self, top: Top | None = None, files: int = 2, name: str = "matches.parquet") -> Matched:
        events = self.put("events", self.case.events, files)
        place, refused = str(self.folder / name), str(self.folder / "refused-events.jsonl")
        return match_events(
            self.spark, str(self.snapshot), events, place, rejected=refused, top=top, quiet=True
        )

    def pairs(self, name: str = "matches.parquet") -> list[tuple[Any, Any]]:
        return sorted((row["event_id"], row["subscription_id"]) for row in get_table(self.folder / name))

    def best(self) -> list[tuple[Any, ...]]:
        rows = get_table(self.folder / "matches.parquet")
        return sorted((row["event_id"], row["rank"], row["subscription_id"], row["score"]) for row in rows)


def sharded(content: str, count: int, by: str) -> Sharding:
    return Sharding.of(count, by, "country" if by == ACCESS and content == "records" else None)


def check(
    job: Job, kind: str, count: int, by: str, files: int = 2, asked: Sequence[Top | None] = (None, *TOPS)
) -> None:
    """Assert that jobs answer as the engine does, to questions for all matches or the best of each event."""
    case, engine = job.case, job.case.engine(kind)
    done = job.compile(kind, sharded(case.content, count, by), files)
    assert (done.rejected, done.shards) == (0, count)
    for top in asked:
        if top is not None:
            if kind != "plain":
                job.match(top, files)
                assert job.best() == case.best(engine, top)
            continue
        found = job.match(files=files)
        assert job.pairs() == case.matches(engine)
        assert found.matches == len(job.pairs())
        assert (found.shards, found.rejected) == (count, 0)
        assert found.met <= found.events * count


@pytest.mark.parametrize(
    ("content", "kind", "count", "by", "asked"),
    [
        ("records", "plain", 6, ACCESS, (None,)),
        ("records", "graph", 3, ACCESS, (TOPS[0],)),
        ("rdf", "ranked", 3, HASH, (TOPS[1],)),
        ("xml", "plain", 2, TENANT, (None,)),
    ],
)
def test_some_shards_answer_as_the_library(
    spark: SparkSession, tmp_path: Path, content: str, kind: str, count: int, by: str, asked: Sequence[Top]
) -> None:
    """Every content, kind, rule and question once at least."""
    check(Job(spark, tmp_path, CASES[content]), kind, count, by, asked=asked)


@pytest.mark.nightly
@pytest.mark.parametrize(("content", "kind", "count", "by"), SOME)
def test_shards_answer_as_the_library(
    spark: SparkSession, tmp_path: Path, content: str, kind: str, count: int, by: str
) -> None:
    check(Job(spark, tmp_path, CASES[content]), kind, count, by)


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


def compile_rows(spark: SparkSession, folder: Path, table: str, sharding: Sharding) -> Any:
    place, refused = str(folder / "out"), str(folder / "refused.jsonl")
    return compile_subscriptions(spark, table, place, rejected=refused, sharding=sharding, quiet=True)


@pytest.mark.parametrize("by", RULES)
def test_rows_are_refused_as_in_one_piece(spark: SparkSession, tmp_path: Path, by: str) -> None:
    table = put_lines(tmp_path / "subs.jsonl", ROWS)
    one = compile_lines(tmp_path / "out", ROWS)
    cut = compile_rows(spark, tmp_path, table, Sharding.of(3, by, "tenant" if by == ACCESS else None))
    assert get_lines(tmp_path / "refused.jsonl") == one.refused
    assert (cut.subscriptions, cut.rejected, cut.attributes) == (
        one.subscriptions,
        len(one.refused),
        one.attributes,
    )
    assert (cut.subscriptions, cut.shards, cut.ranked) == (4, 3, False)
    assert names(tmp_path) == ["out", "refused.jsonl", "subs.jsonl"]
    assert room_of(tmp_path / "out") == "filter-shards"
    found = [ids_at(place, ranked=False) for place in shard_places(tmp_path / "out")]
    assert sorted(identity for each in found for identity in each) == ACCEPTED
    # The first of equal ids wins, whatever their tenants.
    done = match_lines(tmp_path / "out", [{"id": 1, "tenant": "b", "x": 9}, {"id": 2, "tenant": "c"}])
    assert sorted(done.pairs) == [(1, "s2"), (2, "s8")]
    if by == TENANT:
        homes = {identity: number for number, each in enumerate(found) for identity in each}
        assert len({homes[identity] for identity in ("s1", "7", "s2")}) > 1
    assert done.met <= 2 * len([each for each in found if len(each)])


@pytest.mark.parametrize(
    ("more", "found"), some([([], range(30)), (["007"], [*map(str, range(30)), "007"])], 0)
)
def test_whole_numbers_of_csv_are_seen_in_the_whole_table(
    spark: SparkSession, tmp_path: Path, more: list[str], found: Sequence[Any]
) -> None:
    rows: list[Row] = [{"id": each, "filter": "x = 7"} for each in [*range(30), *more]]
    cut = compile_rows(spark, tmp_path, put_table(tmp_path / "subs.csv", rows), Sharding(2))
    ids = [ids_at(place, ranked=False) for place in shard_places(tmp_path / "out")]
    assert sorted(identity for each in ids for identity in each) == sorted(found)
    assert (cut.subscriptions, open_target(str(tmp_path / "out")).numbered) == (len(rows), not more)


def test_events_pass_shards_by(spark: SparkSession, tmp_path: Path) -> None:
    rows = [{"id": number, "filter": f"country = 'c{number % 8}' AND x >= {number}"} for number in range(80)]
    table = put_lines(tmp_path / "subs.jsonl", rows)
    compile_rows(spark, tmp_path, table, Sharding.of(4, ACCESS, "Country"))
    target = open_target(str(tmp_path / "out"))
    assert target.routes is not None
    used = int((target.routes.subscriptions > 0).sum())
    assert not target.routes.open.any()
    events: list[Row] = [{"id": number, "country": f"c{number % 10}", "x": number} for number in range(50)]
    events += [{"id": 90, "country": None, "x": 99}]
    place = put_table(tmp_path / "events.parquet", events)
    done = match_events(
        spark,
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


def test_no_subscriptions_at_all(spark: SparkSession, tmp_path: Path) -> None:
    table = put_lines(tmp_path / "subs.jsonl", [])
    done = compile_rows(spark, tmp_path, table, Sharding(3))
    assert (done.subscriptions, done.rejected, done.shards) == (0, 0, 3)
    events = put_lines(tmp_path / "events.jsonl", [{"id": 1}])
    found = match_events(
        spark,
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


def test_what_patterns_return_on_all_shards(spark: SparkSession, tmp_path: Path) -> None:
    case = CASES["xml"]
    table = put_lines(tmp_path / "subs.jsonl", case.rows(graph=False, ranked=False))
    events = put_lines(tmp_path / "events.jsonl", case.events)
    compile_rows(spark, tmp_path, table, Sharding(3, ACCESS))
    place, refused, written = (str(tmp_path / name) for name in ("m.jsonl", "r.jsonl", "t.parquet"))
    match_events(spark, str(tmp_path / "out"), events, place, rejected=refused, tuples=written, quiet=True)
    index = case.engine("plain").index
    assert isinstance(index, XmlIndex)
    wanted = [row for event in case.asked() for row in _of_event(index, event)]
    assert sorted(tuple(row.values()) for row in get_table(tmp_path / "t.parquet")) == sorted(wanted)
    assert len(wanted) > 20


def test_what_cannot_be_read_leaves_nothing(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "subs.parquet").mkdir()
    put_table(tmp_path / "subs.parquet" / "a.parquet", [{"id": 1, "filter": "x"}])
    put(tmp_path / "subs.parquet" / "b.parquet", b"PAR1 and no more than that PAR1")
    with pytest.raises(TableError):
        compile_rows(spark, tmp_path, str(tmp_path / "subs.parquet"), Sharding(2))
    table = put_lines(tmp_path / "subs.jsonl", ROWS)
    with pytest.raises(TableError, match="give --shard-column"):
        compile_rows(spark, tmp_path, table, Sharding.of(2, ACCESS))
    assert names(tmp_path) == ["subs.jsonl", "subs.parquet"]


def test_a_shard_that_was_replaced_is_not_matched(tmp_path: Path) -> None:
    RecordIndex.build([Subscription(1, "x")]).save(tmp_path / "one")
    task = Task(Group(str(tmp_path / "one"), "another digest"), "records", LINES, "long", "long")
    with pytest.raises(SnapshotError, match="was replaced while it was being used: run the job again"):
        list(match_rows([], task))


@pytest.mark.nightly
@pytest.mark.parametrize("by", RULES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("content", CONTENTS)
def test_all_numbers_of_shards_and_parts(
    spark: SparkSession, tmp_path: Path, content: str, kind: str, by: str
) -> None:
    for number, (count, files) in enumerate([(1, 1), (2, 5), (16, 3)]):
        case = draw_case(content, 100 + number, 40 * (number + 1), 40)
        check(Job(spark, tmp_path / str(count), case), kind, count, by, files)
