"""Jobs in sessions of others: the same answers whatever their settings, and none of these is changed."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark import RDD
from pyspark.sql import SparkSession

from headgate.contents.kind import FilterSettings
from headgate.jobs.backtest import backtest
from headgate.jobs.match import match_events
from headgate.jobs.summary import refusals_of, summarise
from headgate.jobs.what_if import what_if
from headgate.spark.runner import SparkRunner
from headgate.spark.session.session import close_session, open_session
from headgate.spark.session.settings import SEMANTICS, own_session
from headgate.spark.stream.run import CONF
from headgate.tables.requests import WhatIfRequest
from tests.contract.frames import HOSTILE
from tests.lanes import some
from tests.seeds import NIGHTLY
from tests.spark.files import get_lines, put, put_lines
from tests.spark.jobs import compile_subscriptions

if TYPE_CHECKING:
    from pathlib import Path

NOON = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)
TIMES = [NOON - dt.timedelta(hours=2), NOON, NOON + dt.timedelta(hours=2)]
FILTERS = {
    1: "t >= TIMESTAMP '2026-01-01 12:00:00'",
    2: "T < TIMESTAMP '2026-01-01 12:00:00' OR local < TIMESTAMP '2026-01-01 11:00:00'",
    3: "day = DATE '2026-01-01' AND Name = 'x'",
    4: "Text > 9",
}
PAIRS = [(0, 2), (0, 3), (1, 1), (1, 3), (2, 1), (2, 3), (2, 4)]
TABLES = ("csv", "jsonl", "parquet") if NIGHTLY else ("csv",)
ALL = {name: value for settings in HOSTILE for name, value in settings.items()}
ODD = {
    **ALL,
    "spark.sql.files.ignoreCorruptFiles": "true",
    "spark.sql.parser.escapedStringLiterals": "true",
    "spark.sql.ansi.doubleQuotedIdentifiers": "true",
    "spark.sql.jsonGenerator.ignoreNullFields": "false",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
}


def hostile(spark: SparkSession, settings: dict[str, str]) -> SparkSession:
    session = spark.newSession()
    for name, value in settings.items():
        session.conf.set(name, value)
    return session


def test_a_stream_has_the_settings_that_it_wants(spark: SparkSession) -> None:
    """Among them one of which Spark says that it cannot be changed."""
    own = own_session(spark, CONF)
    assert own is not spark
    assert {name: own.conf.get(name) for name in CONF} == CONF
    assert own_session(own, CONF) is own
    assert all(spark.conf.get(name, None) != value for name, value in CONF.items())


def put_events(folder: Path) -> dict[str, str]:
    """Write the same three events, and a row that is none, in each format."""
    rows = [
        {"id": n, "t": time.isoformat(), "local": time.strftime("%Y-%m-%d %H:%M:%S"), "day": "2026-01-01"}
        for n, time in enumerate(TIMES)
    ]
    more = [{**row, "name": "x", "text": str(8 + n)} for n, row in enumerate(rows)]
    kinds: dict[str, Any] = {
        "id": pa.int64(),
        "t": pa.timestamp("us", "UTC"),
        "local": pa.timestamp("us"),
        "day": pa.date32(),
        "name": pa.string(),
        "text": pa.string(),
    }
    columns = [
        [*range(3), None],
        [*TIMES, None],
        [*(time.replace(tzinfo=None) for time in TIMES), None],
        [NOON.date()] * 4,
        ["x"] * 4,
        ["8", "9", "10", "11"],
    ]
    arrays = [pa.array(each, kind) for each, kind in zip(columns, kinds.values(), strict=True)]
    table = pa.table(arrays, names=list(kinds))
    pq.write_table(table, folder / "e.parquet")
    lines = "".join(",".join(map(str, row.values())) + "\n" for row in more)
    put(folder / "e.csv", f"{','.join(more[0])}\n{lines},,,,,\n")
    put_lines(folder / "e.jsonl", [*more, {"t": "x"}])
    return {form: str(folder / f"e.{form}") for form in ("csv", "jsonl", "parquet")}


def answers(session: SparkSession, folder: Path) -> dict[str, Any]:
    """Run the jobs, and read what they wrote."""
    folder.mkdir()
    events = put_events(folder)
    subscriptions = put_lines(
        folder / "s.jsonl", [{"id": name, "filter": text} for name, text in FILTERS.items()]
    )
    made, no = str(folder / "snapshot"), str(folder / "no.jsonl")
    compile_subscriptions(session, subscriptions, made, rejected=no, quiet=True)
    changes = put(folder / "c.csv", "op,id,filter\nunsubscribe,1,\n,4,text > 8\n")
    found: dict[str, Any] = {}
    for form in TABLES:
        table, output = events[form], folder / f"m-{form}.jsonl"
        done = match_events(SparkRunner(session, quiet=True), made, table, str(output), rejected=no)
        found[f"match {form}"] = (
            done.events,
            done.rejected,
            sorted(map(str, get_lines(output))),
            get_lines(no),
        )
        runner, kept = SparkRunner(session, quiet=True), str(folder / f"b-{form}.jsonl")
        tried = backtest(runner, FILTERS[1], table, FilterSettings(), output=kept)
        found[f"backtest {form}"] = (tried.matches, tried.sample, get_lines(folder / f"b-{form}.jsonl"))
    question = WhatIfRequest(changes, made, events["csv"], cost=False)
    changed = what_if(SparkRunner(session, quiet=True), question, rejected=no)
    found["what if"] = (changed.gained, changed.lost, changed.days, changed.effects)
    runner = SparkRunner(session, quiet=True)
    found["summary"] = summarise(runner, str(folder / "m-csv.jsonl"), 3)
    found["refusals"] = refusals_of(runner, no)
    return found


@pytest.mark.parametrize("settings", some([*HOSTILE, ODD], 3))
@pytest.mark.nightly
def test_answers_are_the_same_in_every_session(
    spark: SparkSession, tmp_path: Path, settings: dict[str, str]
) -> None:
    session = hostile(spark, settings)
    before, active = session.conf.getAll, SparkSession.getActiveSession()
    to_frame = RDD.toDF
    found = answers(session, tmp_path / "theirs")
    assert session.conf.getAll == before
    assert SparkSession.getActiveSession() is active
    assert RDD.toDF is to_frame
    for form in TABLES:
        events, rejected, rows, _ = found[f"match {form}"]
        wanted = sorted(str({"event_id": event, "subscription_id": name}) for event, name in PAIRS)
        assert (events, rejected, rows) == (3, 1, wanted), form
    assert found["backtest csv"][:2] == (2, ("1", "2"))
    assert found["backtest csv"][2][0]["t"] == "2026-01-01T12:00:00.000Z"
    gained, lost, days, effects = found["what if"]
    assert (gained, lost, days, [each.id for each in effects]) == (1, 2, None, [4, 1])
    assert [(each.rows, each.reason[:19]) for each in found["refusals"]] == [(1, "the event has no id")]
    if NIGHTLY:
        assert found == answers(spark, tmp_path / "ours")


def test_a_session_that_has_our_settings_is_taken_as_it_is(spark: SparkSession) -> None:
    assert own_session(spark) is spark
    other = hostile(spark, {"spark.sql.session.timeZone": "Asia/Kolkata", "fs.s3a.endpoint": "x"})
    other.conf.set("spark.sql.shuffle.partitions", "7")
    own = own_session(other, {"spark.sql.files.maxPartitionBytes": "1m"})
    assert own is not other
    for name, value in {
        **SEMANTICS,
        "spark.sql.shuffle.partitions": "7",
        "fs.s3a.endpoint": "x",
        "spark.sql.files.maxPartitionBytes": "1m",
    }.items():
        assert own.conf.get(name) == value
    assert other.conf.get("spark.sql.session.timeZone") == "Asia/Kolkata"
    assert own_session(own, {"spark.sql.files.maxPartitionBytes": "1m"}) is own


def test_opening_leaves_the_active_session_as_it_is(spark: SparkSession) -> None:
    # That which has last made a DataFrame of rows is the active one.
    spark.createDataFrame([], "id long")
    before = spark.conf.getAll
    assert open_session() is spark
    close_session(spark)
    other = open_session(settings={"spark.sql.shuffle.partitions": "3"})
    assert (other.conf.get("spark.sql.shuffle.partitions"), other.sparkContext) == ("3", spark.sparkContext)
    close_session(other)
    assert spark.conf.getAll == before
    assert spark.range(2).count() == 2
