"""A command does the same on Spark and in this process: its tables, its words, its JSON."""

from __future__ import annotations

import datetime as dt
import json
import subprocess
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headgate import Engine
from headgate.core.snapshot import shard_name
from headgate.core.versions.current import resolved
from headgate.jobs.match import match_events
from headgate.local import small
from headgate.local.runner import LocalRunner
from headgate.runtime.statistics import read_statistics
from headgate.spark.runner import SparkRunner
from tests.lanes import some
from tests.spark.files import get_lines, get_table, put, put_lines, put_table

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.running import Command

ENGINES = ("local", "spark")
SUBSCRIPTIONS = [
    {"id": "s1", "filter": "age > 30"},
    {"id": "s2", "filter": "topic = 'art' AND price < 2.5"},
    {"id": "s3", "filter": "age >"},
    {"id": "s1", "filter": "age > 31"},
    {"id": "s4", "filter": "born >= DATE '1990-01-01' OR new"},
]
EVENTS = [
    {"id": 1, "age": 35, "topic": "art", "price": 1.5, "new": True, "born": "1991-02-03"},
    {"id": 2, "age": 20, "topic": 'art, "fine"', "price": 3.0, "new": False, "born": "1980-02-03"},
    {"id": 30, "age": 31, "topic": "", "price": 2.0, "new": True, "born": "1999-12-31"},
]
TIMES = {"parse_seconds", "build_seconds", "survey_seconds", "match_seconds", "seconds"}


def rows(path: Path) -> Counter[str]:
    """Read a table, whatever the order of its rows."""
    return Counter(json.dumps(row, sort_keys=True, default=str) for row in get_table(path))


def told(found: dict[str, Any]) -> dict[str, Any]:
    """Return what a command printed, without times."""
    return {name: value for name, value in found.items() if name not in TIMES}


@pytest.mark.spark
@pytest.mark.parametrize("form", some(["jsonl", "csv", "parquet"], 1))
def test_compile_and_match(headgate: Command, tmp_path: Path, form: str) -> None:
    """Rows, refused rows, counts and words are the same."""
    subscriptions = put_table(tmp_path / f"subs.{form}", SUBSCRIPTIONS)
    events = put_table(tmp_path / f"events.{form}", EVENTS)
    if form == "csv":
        put(
            tmp_path / "events.csv", (tmp_path / "events.csv").read_text() + "4,5\n,6,x,1.0,true,2000-01-01\n"
        )
    printed: list[Any] = []
    for engine in ENGINES:
        place = tmp_path / engine
        snapshot, output = place / "snapshot", place / f"matches.{form}"
        compiled = headgate(
            "compile", "--subscriptions", subscriptions, "--output", snapshot, "--json", "--engine", engine
        )
        assert compiled.code == 0, compiled.err
        matched = headgate(
            *("match", "--snapshot", snapshot, "--events", events, "--output", output),
            *("--rejected", place / "refused.jsonl", "--json", "--engine", engine),
            *("--stats", tmp_path / f"{engine}.parquet"),
        )
        assert matched.code == 0, matched.err
        here = str(place)
        printed.append(
            [
                {name: str(value).replace(here, "") for name, value in told(each.json).items()}
                for each in (compiled, matched)
            ]
        )
        printed[-1] += [rows(output), rows(place / "refused.jsonl"), rows(place / "snapshot-rejected.jsonl")]
    assert printed[0] == printed[1]
    assert printed[0][2]
    # Which of two tasks ends last is not said.
    mine, theirs = (
        pq.read_table(tmp_path / f"{engine}.parquet").drop_columns(["last_match", "last_event"])
        for engine in ENGINES
    )
    assert mine.to_pylist() == theirs.to_pylist()
    assert sum(row["matches"] for row in mine.to_pylist()) == sum(printed[0][2].values())


@pytest.mark.spark
def test_generate(headgate: Command, tmp_path: Path) -> None:
    """The same rows are made, with the same types."""
    for engine in ENGINES:
        ran = headgate(
            *(
                "generate",
                "records",
                "--output",
                tmp_path / engine,
                "--subscriptions",
                "40",
                "--events",
                "30",
            ),
            *("--engine", engine, "--format", "parquet", "--quiet"),
        )
        assert ran.code == 0, ran.err
        lines = headgate(
            *(
                "generate",
                "records",
                "--output",
                tmp_path / engine,
                "--subscriptions",
                "40",
                "--events",
                "30",
            ),
            *("--engine", engine, "--quiet"),
        )
        assert lines.code == 0, lines.err
    for name in ("subscriptions", "events"):
        here, there = (tmp_path / engine / f"{name}.parquet" for engine in ENGINES)
        assert pq.read_table(here).to_pylist() == pq.read_table(there).to_pylist()
        here, there = (tmp_path / engine / f"{name}.jsonl" for engine in ENGINES)
        assert here.read_text() == there.read_text()


@pytest.mark.spark
def test_plan(headgate: Command, tmp_path: Path) -> None:
    """The same network is made of a sample, with sites and refused rows."""
    views = [{"id": f"v{number}", "filter": f"age > {10 * number}"} for number in range(4)]
    subscriptions = put_lines(tmp_path / "views.jsonl", views)
    sample = put(
        tmp_path / "sample.jsonl", "".join(f"{json.dumps(row)}\n" for row in EVENTS) + '{"age": 3}\n'
    )
    sites = put_lines(tmp_path / "sites.jsonl", [{"id": "v1", "site": "hub", "fan_out": 2}])
    snapshot = tmp_path / "snapshot"
    assert headgate("compile", "--subscriptions", subscriptions, "--output", snapshot).code == 0
    printed = []
    for engine in ENGINES:
        place = tmp_path / engine
        ran = headgate(
            *("plan", "--snapshot", snapshot, "--sample", sample, "--output", place / "network"),
            *("--sites", sites, "--json", "--engine", engine, "--quiet"),
        )
        assert ran.code == 0, ran.err
        found = {name: str(value).replace(str(place), "") for name, value in told(ran.json).items()}
        tables = [pq.read_table(place / "network" / f"{name}.parquet") for name in ("views", "feeds")]
        printed.append(
            (found, [table.to_pylist() for table in tables], rows(place / "network-rejected.jsonl"))
        )
    assert printed[0] == printed[1]


SHARDED: dict[str, tuple[tuple[str, ...], list[dict[str, Any]]]] = {
    "access": (
        ("--shard-by", "access", "--shard-column", "topic"),
        [{"id": number, "filter": f"topic = 't{number % 4}' AND age > {number}"} for number in range(20)]
        + [{"id": 20, "filter": "age > 3"}, {"id": 3, "filter": "age > 3"}, {"id": 21, "filter": "age >"}],
    ),
    "tenant": (
        ("--shard-by", "tenant", "--nodes", "{}/nodes.jsonl", "--edges", "{}/edges.jsonl"),
        [
            {"id": number, "filter": f"age > {number}", "node": "n", "tenant": number % 3}
            for number in range(9)
        ],
    ),
}


@pytest.mark.spark
@pytest.mark.nightly
@pytest.mark.parametrize("name", list(SHARDED))
def test_shards(headgate: Command, tmp_path: Path, name: str) -> None:
    """The same subscriptions lie in the same shards, and events meet the same ones."""
    words, rows = SHARDED[name]
    subscriptions = put_lines(tmp_path / "subs.jsonl", rows)
    put_lines(tmp_path / "nodes.jsonl", [{"id": "n"}, {"id": "m"}])
    put_lines(tmp_path / "edges.jsonl", [{"source": "m", "target": "n"}])
    events = [{"id": number, "age": number, "topic": f"t{number}", "source": "m"} for number in range(30)]
    put_lines(tmp_path / "events.jsonl", events)
    printed = []
    for engine in ENGINES:
        place = tmp_path / engine
        ran = headgate(
            *("compile", "--subscriptions", subscriptions, "--output", place / "snapshot", "--shards", "3"),
            *(*(word.format(tmp_path) for word in words), "--json", "--engine", engine, "--quiet"),
        )
        assert ran.code == 0, ran.err
        found = {key: str(value).replace(str(place), "") for key, value in told(ran.json).items()}
        matched = headgate(
            *("match", "--snapshot", place / "snapshot", "--events", tmp_path / "events.jsonl"),
            *("--output", place / "matches.jsonl", "--json", "--engine", "local", "--quiet"),
        )
        tables = get_lines(place / "snapshot-rejected.jsonl"), get_lines(place / "matches.jsonl")
        counts = [matched.json[key] for key in ("matches", "met", "shards")]
        printed.append((found, tables, counts, [shard_ids(place / "snapshot", shard) for shard in range(3)]))
    assert printed[0] == printed[1]
    assert printed[0][2][0] > 0
    assert 30 <= printed[0][2][1] <= 90


def shard_ids(snapshot: Path, shard: int) -> list[Any]:
    """List the subscriptions of a shard."""
    return sorted(Engine.open(resolved(snapshot) / shard_name(shard)).ids)


CHANGES = [
    {"op": "unsubscribe", "id": "s1"},
    {"id": "s5", "filter": "age < 33"},
    {"id": "s5", "filter": "age < 34", "op": "subscribe"},
    {"id": "s6", "filter": "price > 1000"},
]
BACKTESTS: dict[str, tuple[str, ...]] = {
    "filter": ("--filter", "age > 30 AND born > DATE '1990-01-01'"),
    "changes": ("--changes", "{}/changes.jsonl", "--subscriptions", "{}/subs.jsonl", "--no-cost"),
    "documents": ("--filter", "//a[b > 1]", "--dialect", "xpath"),
}


@pytest.mark.spark
@pytest.mark.parametrize("name", some(list(BACKTESTS), 1))
def test_backtest(headgate: Command, tmp_path: Path, name: str) -> None:
    """A filter and a set of changes are told alike, and their tables are the same."""
    words = [word.format(tmp_path) for word in BACKTESTS[name]]
    put_lines(tmp_path / "subs.jsonl", SUBSCRIPTIONS)
    put_lines(tmp_path / "changes.jsonl", CHANGES)
    events: list[dict[str, Any]] = [
        {**row, "time": f"2026-03-0{place + 1}T00:00:00Z"} for place, row in enumerate(EVENTS)
    ]
    if name == "documents":
        texts = ("<a><b>2</b></a>", "<a><b>0</b></a>", "<a")
        events = [
            {"id": place, "data": text, "datacontenttype": "xml"} for place, text in enumerate(texts, 1)
        ]
    lines = "".join(f"{json.dumps(row)}\n" for row in events)
    put(tmp_path / "events.jsonl", lines + '{"age": 3}\n')
    printed = []
    for engine in ENGINES:
        place = tmp_path / engine
        place.mkdir()
        ran = headgate(
            *("backtest", "--events", tmp_path / "events.jsonl", "--output", place / "out.jsonl"),
            *(*words, "--json", "--engine", engine, "--quiet"),
        )
        assert ran.code == 0, ran.err
        found = {key: str(value).replace(str(place), "") for key, value in told(ran.json).items()}
        tables = {file.name: get_lines(file) for file in place.iterdir()}
        printed.append((found, tables, ran.err))
    assert printed[0] == printed[1]
    assert printed[0][1]["out.jsonl"]


def test_what_is_not_small_goes_to_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Large tables, and those elsewhere, are for Spark."""
    table = put(tmp_path / "events.jsonl", "{}\n" * 10)
    assert small.why_large([table, str(tmp_path / "absent.jsonl")]) is None
    monkeypatch.setattr(small, "BYTES", 20)
    assert small.why_large([table]) == "the tables have 0 MB, and up to 0 are small"
    assert (
        small.why_large(["s3a://bucket/events.parquet"])
        == "s3a://bucket/events.parquet is not on this machine"
    )


def test_what_is_unsure_is_refused_by_local(headgate: Command, tmp_path: Path) -> None:
    """Who insists on this process is told what it cannot read."""
    subscriptions = put(tmp_path / "subs.csv", 'id,filter\n1,a = "b" c\n')
    ran = headgate(
        "compile", "--subscriptions", subscriptions, "--output", tmp_path / "s", "--engine", "local"
    )
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.endswith("that is left to Spark, so leave --engine local out\n")
    assert not (tmp_path / "s").exists()
    ran = headgate(
        *("compile", "--subscriptions", subscriptions, "--output", tmp_path / "s"),
        *("--engine", "local", "--master", "local[2]"),
    )
    assert (ran.code, ran.err) == (
        2,
        (
            "headgate: --master and --conf are for Spark: leave them out, or --engine local "
            "(see headgate compile --help)\n"
        ),
    )


WITHOUT = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"pyspark", "py4j"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
import json
from headgate.cli import main
for words in json.loads(sys.argv[1]):
    sys.argv[1:] = words
    main()
"""


PIPELINE = """
[pipeline]
name = "small"
directory = "out"

[subscriptions]
table = "subs.jsonl"

[events]
table = "events.jsonl"

[match]
stats = "statistics.parquet"

[[backtest]]
name = "one"
filter = "age > 30"

[[what_if]]
name = "changes"
changes = "changes.jsonl"
"""


def test_small_jobs_need_no_spark(tmp_path: Path) -> None:
    """Where Spark is not installed, small tables are compiled, matched and tried, also by a pipeline."""
    put_lines(tmp_path / "subs.jsonl", SUBSCRIPTIONS)
    put_lines(tmp_path / "events.jsonl", EVENTS)
    put_lines(tmp_path / "changes.jsonl", CHANGES)
    put_lines(tmp_path / "in" / "events.jsonl", EVENTS)
    put(tmp_path / "small.toml", PIPELINE)
    commands = (
        ("compile", "--subscriptions", "subs.jsonl", "--output", "snapshot"),
        ("match", "--snapshot", "snapshot", "--events", "events.jsonl", "--output", "matches.jsonl"),
        (
            "stream",
            "--snapshot",
            "snapshot",
            "--events",
            "in",
            "--output",
            "out-stream",
            "--state",
            "state",
            "--once",
        ),
        ("run", "small.toml", "--dry-run"),
        ("run", "small.toml"),
    )
    command = [sys.executable, "-c", WITHOUT, json.dumps([[*words, "--quiet"] for words in commands])]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    found = [row["subscription_id"] for row in get_table(tmp_path / "matches.jsonl")]
    assert found == ["s1", "s2", "s4", "s1", "s4"]
    assert len(get_table(tmp_path / "out-stream")) == len(found)
    steps = json.loads((tmp_path / "out" / "run.json").read_text())["steps"]
    results = {each["name"]: each for each in steps}
    assert results["backtest.one"]["matches"] == 2
    assert results["what_if.changes"]["lost"] == 2
    kept = read_statistics(tmp_path / "out" / "statistics.parquet")
    assert (kept.events, sum(row["matches"] for row in kept.table.to_pylist())) == (3, len(found))


def test_ids_of_documents_of_both_types(headgate: Command, tmp_path: Path) -> None:
    """Where one id is text, all are."""
    put_lines(tmp_path / "subs.jsonl", [{"id": 1, "filter": "//a", "dialect": "xpath"}])
    rows = [{"id": each, "data": "<a/>", "datacontenttype": "xml"} for each in (1, "x")]
    events = put_lines(tmp_path / "events.jsonl", rows)
    output, snapshot = tmp_path / "matches.jsonl", tmp_path / "snapshot"
    subscriptions = tmp_path / "subs.jsonl"
    ran = headgate("compile", "--subscriptions", subscriptions, "--output", snapshot, "--engine", "local")
    assert ran.code == 0
    ran = headgate(
        *("match", "--snapshot", snapshot, "--events", events, "--output", output, "--engine", "local")
    )
    assert ran.code == 0
    assert get_table(output) == [{"event_id": each, "subscription_id": 1} for each in ("1", "x")]


MIXED = [
    {"id": "old", "filter": "age > 30 AND born < TIMESTAMP '2000-01-01 00:00:00'"},
    {"id": "every", "filter": "age > 0"},
    {"id": "tree", "filter": "//a/b{val}", "dialect": "xpath"},
    {"id": "art", "filter": "ASK { ?x a <urn:Art> }", "dialect": "sparql"},
    {"id": "old", "filter": "//c", "dialect": "xpath"},
]
TREE, GRAPH = "<a><b>hi</b></a>", "<urn:x> a <urn:Art> ."
DOCUMENTS: list[dict[str, Any]] = [
    {"id": "t", "datacontenttype": "xml", "data": TREE},
    {"id": "g", "datacontenttype": "turtle", "data": GRAPH},
    {"id": "none", "datacontenttype": None, "data": TREE},
]


@pytest.mark.parametrize(
    "engine", ["local", pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.nightly])]
)
def test_filters_and_events_of_several_contents(
    headgate: Command, tmp_path: Path, engine: str, request: pytest.FixtureRequest
) -> None:
    """Rows and files say what they are; columns are all records, with their types, or all documents."""
    snapshot, output, tuples = tmp_path / "snapshot", tmp_path / "matches.jsonl", tmp_path / "tuples.jsonl"
    table = put_lines(tmp_path / "subs.jsonl", MIXED)
    compiled = headgate("compile", "--subscriptions", table, "--output", snapshot, "--engine", "local")
    assert (compiled.code, "of records, RDF and XML" in compiled.out) == (0, True), compiled.err
    (again,) = get_table(tmp_path / "snapshot-rejected.jsonl")
    assert again["reason"] == "id 'old' was given by an earlier row already"
    born = dt.datetime(1980, 2, 3, tzinfo=dt.UTC)
    put_table(tmp_path / "columns.parquet", [{"id": "r", "age": 35, "born": born}])
    put_table(tmp_path / "documents.csv", DOCUMENTS)
    put_lines(tmp_path / "rows.jsonl", [*DOCUMENTS, {"id": "r", "age": 35, "born": "1980-02-03T00:00:00"}])
    put(tmp_path / "files" / "r.json", '{"id": "other",\n "age": 35}')
    put(tmp_path / "files" / "in" / "t.xml", TREE)
    put(tmp_path / "files" / "g.ttl", GRAPH)
    put(tmp_path / "files" / "bad.json", "{")
    lacks = "the event has no 'datacontenttype': name the format of its data, one of turtle"
    for name, pairs, reason in (
        ("columns.parquet", {("r", "old"), ("r", "every")}, None),
        ("documents.csv", {("t", "tree"), ("g", "art")}, lacks),
        ("rows.jsonl", {("r", "old"), ("r", "every"), ("t", "tree"), ("g", "art")}, None),
        ("files", {("r.json", "every"), ("in/t.xml", "tree"), ("g.ttl", "art")}, "not valid JSON"),
    ):
        more: dict[str, Any] = {"rejected": str(tmp_path / "matches-rejected.jsonl")}
        more |= {"tuples": str(tuples)} if name == "rows.jsonl" else {}
        places = str(snapshot), str(tmp_path / name), str(output)
        if engine == "local":
            match_events(LocalRunner(quiet=True), *places, **more)
        else:
            # A command would start Spark for each of them.
            spark = request.getfixturevalue("spark")
            match_events(SparkRunner(spark, quiet=True), *places, **more)
        assert {tuple(row.values()) for row in get_table(output)} == pairs, name
        reasons = [row["reason"] for row in get_table(tmp_path / "matches-rejected.jsonl")]
        assert [each.startswith(str(reason)) for each in reasons] == ([] if reason is None else [True]), name
    assert [row["value"] for row in get_table(tuples)] == ["hi"]
    refused = headgate("plan", "--snapshot", snapshot, "--sample", tmp_path / "rows.jsonl", "--output", "p")
    assert "has filters of records, RDF and XML, and a plan is of one kind of content" in refused.err


def test_attributes_that_no_event_has_are_told_with_what_was_meant(headgate: Command, tmp_path: Path) -> None:
    subscriptions = put_lines(
        tmp_path / "s.jsonl", [{"id": 1, "filter": "pric > 1 AND user.cty = 'x' AND zebra"}]
    )
    table = pa.table({"id": [1], "price": [2], "user": [{"city": "x"}]})
    pq.write_table(table, tmp_path / "e.parquet")
    headgate("compile", "--subscriptions", subscriptions, "--output", tmp_path / "s", "--quiet")
    words = (
        "match",
        "--snapshot",
        tmp_path / "s",
        "--events",
        tmp_path / "e.parquet",
        "--output",
        tmp_path / "m.csv",
    )
    ran = headgate(*words, "--quiet")
    assert ran.out.splitlines()[-1] == (
        "note: no event has pric (is 'price' meant?), user.cty (is 'user.city' meant?), zebra, "
        "so filters see NULL there"
    )
    assert headgate(*words, "--quiet", "--json").json["meant"] == {"pric": "price", "user.cty": "user.city"}
