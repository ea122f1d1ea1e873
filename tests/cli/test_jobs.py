"""The commands that run on Spark, in this process, on the Spark that all tests share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow.parquet as pq
import pytest

from headgate.records.index.index import RecordIndex
from headgate.workloads.catalogue import NAMES
from headgate.workloads.catalogue import workload as named
from tests.spark.files import get_lines, get_table, names, put, put_lines

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.running import Command

pytestmark = pytest.mark.usefixtures("spark")


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a folder with two tables, each with a bad row."""
    monkeypatch.chdir(tmp_path)
    subs = [
        {"id": "a", "filter": "age > 30"},
        {"id": "b", "filter": "topic = 'x'"},
        {"id": "c", "filter": "+"},
    ]
    put_lines(tmp_path / "subs.jsonl", subs)
    put(tmp_path / "events.jsonl", '{"id": 1, "age": 35}\nbad\n{"id": 2, "age": 3}\n')
    return tmp_path


def test_from_tables_to_matches(headgate: Command, files: Path) -> None:
    ran = headgate("compile", "--subscriptions", "subs.jsonl", "--output", "out/snapshot/", "--quiet")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines() == [
        "compiled 2 subscriptions over 2 attributes to out/snapshot/",
        "refused 1 rows, with the reasons in out/snapshot-rejected.jsonl",
    ]
    match = ("match", "--snapshot", "out/snapshot/", "--events", "events.jsonl", "--quiet")
    ran = headgate(*match, "--output", "matches.jsonl")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines() == [
        "matched 2 events: 1 matches in matches.jsonl",
        "refused 1 events, with the reasons in matches-rejected.jsonl",
    ]
    assert get_lines("matches.jsonl") == [{"event_id": 1, "subscription_id": "a"}]
    ran = headgate(*match, "--output", "matches.csv", "--rejected", "bad.csv", "--json", "--strict")
    assert ran.code == 3
    assert ran.json["matches"] == 1
    assert ran.json["rejected_table"] == "bad.csv"
    assert names(files) == sorted(
        [
            "bad.csv",
            "events.jsonl",
            "matches-rejected.jsonl",
            "matches.csv",
            "matches.jsonl",
            "out",
            "subs.jsonl",
        ]
    )
    assert names(files / "out") == ["snapshot", "snapshot-rejected.jsonl"]


def test_json_and_strict_of_compile(headgate: Command, files: Path) -> None:
    command = ("compile", "--subscriptions", "subs.jsonl", "--output", "snapshot", "--json", "--strict")
    ran = headgate(*command)
    assert ran.code == 3
    assert ran.json["subscriptions"] == 2
    assert ran.json["rejected"] == 1
    assert ran.json["attributes"] == ["age", "topic"]
    assert ran.json["rejected_table"] == "snapshot-rejected.jsonl"
    good = put_lines(files / "good.jsonl", [{"id": 1, "filter": "a = 1"}])
    ran = headgate("compile", "--subscriptions", good, "--output", "snapshot", "--strict")
    assert (ran.code, ran.out.splitlines()[-1]) == (0, "refused none")


@pytest.mark.usefixtures("files")
def test_backtest(headgate: Command) -> None:
    command = ("backtest", "--filter", "age > 30", "--events", "events.jsonl", "--quiet")
    ran = headgate(*command, "--output", "old.jsonl")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines() == [
        "1 of 2 events match (50.00%)",
        "for example 1",
        "1 lines could not be read",
        "the matching events are in old.jsonl",
    ]
    assert headgate(*command, "--json").json["matches"] == 1
    ran = headgate("backtest", "--filter", "agee > 30", "--events", "events.jsonl", "--quiet")
    assert ran.code == 1
    assert ran.complaint == "no event of events.jsonl has the attribute agee; did you mean age?"
    assert headgate(*command, "--nulls", "told", "--json").json["matches"] == 1
    assert headgate("backtest", "--filter", "present(age)", *command[3:]).code == 1
    told = headgate("backtest", "--filter", "present(age)", *command[3:], "--nulls", "told", "--json")
    assert told.json["matches"] == 2
    ran = headgate("backtest", "--filter", "//a", "--dialect", "xpath", *command[3:], "--names", "exact")
    assert ran.code == 2
    assert "--names is for filters of records, and these look at XML" in ran.err


def test_generate(headgate: Command, tmp_path: Path) -> None:
    command = ("generate", "records", "--subscriptions", "5", "--events", "3", "--quiet")
    ran = headgate(*command, "--output", tmp_path / "ads")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines()[0] == f"wrote 5 subscriptions to {tmp_path}/ads/subscriptions.jsonl"
    ran = headgate(*command, "--output", tmp_path / "ads", "--format", "parquet", "--seed", "9", "--json")
    assert ran.json["seed"] == 9
    assert names(tmp_path / "ads") == [
        "events.jsonl",
        "events.parquet",
        "subscriptions.jsonl",
        "subscriptions.parquet",
    ]
    assert len(get_table(tmp_path / "ads" / "events.parquet")) == 3


@pytest.mark.parametrize("workload", NAMES)
def test_generate_a_workload(headgate: Command, tmp_path: Path, workload: str) -> None:
    count = 250_000 if workload == "growth" else 7
    made = named(workload, count)
    command = ("generate", "records", "--workload", workload, "--events", "5", "--quiet", "--seed", "3")
    ran = headgate(*command, "--subscriptions", str(count), "--output", tmp_path, "--format", "parquet")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines()[1] == f"wrote 5 events to {tmp_path}/events.parquet"
    assert get_table(tmp_path / "events.parquet") == made.events(np.arange(5), 3).to_pylist()
    found = pq.read_table(tmp_path / "subscriptions.parquet")
    assert found.num_rows == count
    assert found.slice(0, 7).to_pylist() == made.subscriptions(np.arange(7), 3).to_pylist()


def test_an_unknown_workload_is_refused(headgate: Command, tmp_path: Path) -> None:
    ran = headgate("generate", "records", "--output", tmp_path / "out", "--workload", "w-eq")
    assert ran.code == 2
    assert "'w-eq' is not one of 'advertising', 'equality', 'mixed'" in ran.err
    assert names(tmp_path) == []


@pytest.mark.nightly
def test_the_demo_is_repeatable(headgate: Command, tmp_path: Path) -> None:
    command = ("demo", "--subscriptions", "300", "--events", "100", "--output", tmp_path / "demo")
    ran = headgate(*command, "--quiet")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines()[-2] == f"report: {tmp_path}/demo/report.html"
    assert ran.out.splitlines()[-1].endswith("headgate serve --demo")
    page = (tmp_path / "demo" / "report.html").read_text("utf-8")
    assert "<svg" in page
    first = get_table(tmp_path / "demo" / "matches.parquet")
    again = headgate(*command, "--json").json
    assert again["matches"] == len(first)
    assert again["subscriptions"] == 300
    assert get_table(tmp_path / "demo" / "matches.parquet") == first
    assert len(RecordIndex.open(tmp_path / "demo" / "snapshot")) == 300
    assert names(tmp_path) == ["demo"]
    assert names(tmp_path / "demo") == [
        ".headgate",
        ".headgate-demo",
        "events.parquet",
        "matches.parquet",
        "pipeline.toml",
        "rejected-events.jsonl",
        "rejected-subscriptions.jsonl",
        "report.html",
        "run.json",
        "snapshot",
        "subscriptions.parquet",
    ]
    # It is a pipeline that can be run, and changed; a changed one is not written over.
    file = tmp_path / "demo" / "pipeline.toml"
    steps = headgate("run", file, "--json", "--quiet").json["steps"]
    assert {step["status"] for step in steps} == {"skipped"}
    file.write_text(file.read_text("utf-8").replace("[report]", "[metrics]\n[report]"), "utf-8")
    assert "pipeline.toml was changed: run it with headgate run" in headgate(*command).complaint
