"""The dry run: what is checked, what is estimated, and that Spark never starts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headgate.errors import HeadgateError
from headgate.jobs.match import match_events
from headgate.local.runner import LocalRunner
from headgate.pipeline.dry_run.dry_run import rehearse
from headgate.pipeline.dry_run.samples import first_rows
from headgate.pipeline.file.model import PipelineError
from headgate.pipeline.file.read import read_pipeline
from headgate.tables.results import Tables
from tests.lanes import some
from tests.pipeline.pipelines import EVENTS, EXAMPLES, MATCHES, SHOP, shop
from tests.spark.files import get_lines, names, put, put_lines, put_table
from tests.spark.jobs import compile_graph

if TYPE_CHECKING:
    from pathlib import Path

    from headgate.pipeline.dry_run.dry_run import DryRun
    from tests.cli.running import Command
    from tests.spark.files import Row


@pytest.fixture(autouse=True)
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail if Spark is started."""
    from headgate.spark.session import session

    def refuse(*_: object, **__: object) -> None:
        pytest.fail("Spark would have started")

    monkeypatch.setattr(session, "open_session", refuse)


def rehearsed(folder: Path, text: str = SHOP, sets: dict[str, Any] | None = None) -> DryRun:
    return rehearse(shop(folder, text, sets), quiet=True)


def complaints(folder: Path, text: str = SHOP, sets: dict[str, Any] | None = None) -> list[str]:
    with pytest.raises(PipelineError) as caught:
        rehearsed(folder, text, sets)
    return caught.value.lines


def test_it_reads_matches_and_counts_what_is_there(tmp_path: Path) -> None:
    found = rehearsed(tmp_path)
    outputs = found.sizes.outputs
    assert outputs is not None
    assert outputs["all"].matches == pytest.approx(len(MATCHES) / 3 * 4, abs=3)
    assert outputs["best"].matches <= outputs["all"].matches
    subscriptions, events = (found.sizes.tables[name] for name in ("subscriptions", "events"))
    assert subscriptions is not None
    assert (subscriptions.table.total, len(subscriptions.reasons)) == (4, 1)
    assert events is not None
    assert (events.table.total, len(events.reasons)) == (4, 1)
    assert all(each.why == "it was not done before" for each in found.steps if each.step.name == "compile")
    text = "\n".join(found.lines)
    assert "subscriptions: 4 rows, " in text
    assert "of the first 4 1 would be refused" in text
    assert "4 of 4 steps would be done; nothing was written" in text
    assert names(tmp_path) == ["events.jsonl", "shop.toml", "subs.jsonl"]
    json.dumps(found.as_json)


@pytest.mark.parametrize("form", ["csv", "parquet", "jsonl"])
def test_every_format_is_read_without_spark(tmp_path: Path, form: str) -> None:
    subscriptions = [{"id": f"s{n}", "filter": f"a = {n % 7}"} for n in range(3000)]
    events = [{"id": n, "a": n % 7} for n in range(5000)]
    put_table(tmp_path / f"s.{form}", subscriptions)
    put_table(tmp_path / f"e.{form}", events)
    text = f'[subscriptions]\ntable = "s.{form}"\n[events]\ntable = "e.{form}"\n[match]\n'
    found = rehearsed(tmp_path, text)
    assert found.sizes.outputs is not None
    assert found.sizes.outputs["matches"].matches == pytest.approx(3000 * 5000 / 7, rel=0.1)
    judged = found.sizes.tables["events"]
    assert judged is not None
    assert judged.table.total == pytest.approx(5000, rel=0.1)


def test_rows_of_text_are_counted_or_estimated(tmp_path: Path) -> None:
    put_lines(tmp_path / "t.jsonl", [{"id": n, "text": "x" * 50} for n in range(10_000)])
    found = first_rows(str(tmp_path / "t.jsonl"), 500)
    assert not found.counted
    assert found.total == pytest.approx(10_000, rel=0.05)
    whole = first_rows(str(tmp_path / "t.jsonl"), 20_000)
    assert (whole.counted, whole.total) == (True, 10_000)


def test_rows_of_parquet_are_read_until_there_are_enough(tmp_path: Path) -> None:
    for part in range(3):
        rows = list(range(5000 * part, 5000 * (part + 1)))
        pq.write_table(pa.table({"id": rows}), tmp_path / f"t{part}.parquet")
    for most in (1, 7000, 12_000, 60_000):
        found = first_rows(str(tmp_path), most)
        assert found.rows == [{"id": n} for n in range(min(most, 15_000))]
        assert found.total == 15_000


def test_long_fields_of_csv_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    values = ", ".join(str(10**17 + n) for n in range(9000))
    put(tmp_path / "s.csv", f'id,filter\n1,"a IN ({values})"\n2,a = 1\n')
    text = '[subscriptions]\ntable = "s.csv"\n[events]\ntable = "events.jsonl"\n[match]\n'
    judged = rehearsed(tmp_path, text).sizes.tables["subscriptions"]
    assert judged is not None
    assert (judged.looked_at, judged.reasons) == (2, ())
    # One that is longer than what is read at all is a reason, and no more.
    monkeypatch.setattr("headgate.pipeline.dry_run.samples.BYTES", 150_000)
    judged = rehearsed(tmp_path, text).sizes.tables["subscriptions"]
    assert judged is not None
    assert judged.reasons == ("the line cannot be read: field larger than field limit (150000)",)
    put(tmp_path / "s.csv", f'"{values}",id,filter\n')
    assert "its header: field larger" in complaints(tmp_path, text)[0]


@pytest.mark.parametrize(
    "workload",
    some(["advertising", "mixed", "exchange", "social", "ranking", "paper", "stars", "xmark"], 1, 3, 7),
)
def test_every_workload_is_rehearsed_before_it_is_made(tmp_path: Path, workload: str) -> None:
    extra = {"social": "nodes = 100\nedges = 500\n", "xmark": "kilobytes = [2, 4]\n"}.get(workload, "")
    graph = workload in {"exchange", "social"}
    counts = "events = 40\n" + ("" if graph else "subscriptions = 300\n")
    text = f'[generate]\nworkload = "{workload}"\n{counts}{extra}[match]\n'
    found = rehearsed(tmp_path, text)
    assert all(judged is not None and not judged.reasons for judged in found.sizes.tables.values())
    if workload == "exchange":
        assert "more than 60,000 rows" in found.sizes.note
    else:
        assert found.sizes.note == ""
        assert found.sizes.snapshot
    assert not (tmp_path / "shop").exists()


GRAPH = """
[subscriptions]
table = "subs.jsonl"
[graph]
nodes = "nodes.{form}"
edges = "edges.{form}"
[events]
table = "events.{form}"
[match]
output = "matches.jsonl"
"""


@pytest.mark.parametrize("form", ["jsonl", "csv", "parquet"])
def test_rows_of_a_graph_are_refused_as_compiling_and_matching_refuse_them(tmp_path: Path, form: str) -> None:
    subscriptions: list[Row] = [
        {"id": "cheap", "filter": "price < 50", "node": "net"},
        {"id": "lost", "filter": "price < 50", "node": "nowhere"},
    ]
    nodes: list[Row] = [
        {"id": "pub"},
        {"id": "net"},
        {"id": "net"},
        {"id": "bad", "filter": "price <"},
        {"id": "shop", "filter": "price > 1", "subscription": "all"},
    ]
    edges: list[Row] = [
        {"source": "pub", "target": "net"},
        {"source": "pub", "target": "ghost"},
        {"source": "pub", "target": "bad"},
        {"source": "net", "target": "shop", "filter": "price > 1 AND"},
        {"source": "net", "target": "shop", "filter": "price > 2"},
    ]
    events: list[Row] = [
        {"id": "e1", "source": "pub", "price": 40},
        {"id": "e2", "source": "nobody", "price": 40},
        {"id": "e3", "source": None, "price": 40},
        {"id": "e4", "source": "pub", "price": 90},
    ]
    put_lines(tmp_path / "subs.jsonl", subscriptions)
    for name, rows in (("nodes", nodes), ("edges", edges), ("events", events)):
        every = {key: None for row in rows for key in row}
        put_table(tmp_path / f"{name}.{form}", [every | row for row in rows])
    pipeline = shop(tmp_path, GRAPH.format(form=form))
    found = rehearse(pipeline, quiet=True)
    told = {name: list(judged.reasons) for name, judged in found.sizes.tables.items() if judged is not None}
    nodes_at, edges_at = (str(tmp_path / f"{name}.{form}") for name in ("nodes", "edges"))
    tables = Tables(nodes_at, edges_at, pipeline.compile.subscriptions)
    compile_graph(None, tables, str(tmp_path / "s"), rejected=str(tmp_path / "refused.jsonl"), quiet=True)
    compiled = get_lines(tmp_path / "refused.jsonl")
    for name in ("subscriptions", "nodes", "edges"):
        assert told[name] == [row["reason"] for row in compiled if row["table"] == name]
    assert [len(told[name]) for name in ("subscriptions", "nodes", "edges", "events")] == [1, 2, 3, 2]
    matched = match_events(
        LocalRunner(quiet=True),
        str(tmp_path / "s"),
        str(tmp_path / f"events.{form}"),
        str(tmp_path / "m.jsonl"),
        rejected=str(tmp_path / "no.jsonl"),
    )
    assert sorted(told["events"]) == sorted(row["reason"] for row in get_lines(tmp_path / "no.jsonl"))
    sizes = found.sizes
    # Its manifest names the tables, too.
    written = sum(f.stat().st_size for f in (tmp_path / "s").rglob("*") if f.is_file())
    assert sizes.note == ""
    assert sizes.snapshot == pytest.approx(written, rel=0.02)
    assert sizes.outputs is not None
    assert sizes.outputs["matches"].matches == matched.matches == 3
    assert "events: 4 rows" in "\n".join(found.lines)
    assert "of the first 4 2 would be refused" in "\n".join(found.lines)


def test_a_graph_that_is_not_read_as_a_whole_is_judged_row_by_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headgate.pipeline.dry_run.estimate.GRAPH_ROWS", 2)
    put_lines(tmp_path / "nodes.jsonl", [{"id": "pub"}, {"id": "bad", "filter": "price <"}, {"id": "net"}])
    put_lines(tmp_path / "edges.jsonl", [{"source": "pub", "target": "net"}])
    found = rehearsed(tmp_path, GRAPH.format(form="jsonl")).sizes
    assert "is not read as a whole" in found.note
    assert "sources refer to is not checked" in found.note
    told = {name: len(judged.reasons) for name, judged in found.tables.items() if judged is not None}
    assert (told["nodes"], told["edges"]) == (1, 0)


@pytest.mark.parametrize("example", sorted(EXAMPLES.glob("*.toml")), ids=lambda file: file.stem)
def test_every_example_is_rehearsed(tmp_path: Path, example: Path) -> None:
    overrides: dict[str, Any] = {"pipeline.directory": str(tmp_path / "out")}
    if "subscriptions = 100_000" in example.read_text("utf-8"):
        overrides["generate.subscriptions"] = 2000
    found = rehearse(read_pipeline(example, overrides), quiet=True)
    assert found.sizes.snapshot or found.sizes.note
    assert not (tmp_path / "out").exists()


def test_all_that_is_wrong_outside_the_file_is_told(tmp_path: Path) -> None:
    text = SHOP.replace("subs.jsonl", "no.jsonl").replace("events.jsonl", "no.csv")
    put(tmp_path / "shop" / "snapshot" / "letter.txt", "mine")
    put(tmp_path / "shop" / "matches.jsonl" / "letter.txt", "mine")
    expected = (
        "subscriptions.table: /no.jsonl does not exist",
        "events.table: /no.csv does not exist",
        "compile.snapshot: /shop/snapshot exists and is not a snapshot: ",
        "match.all.output: /shop/matches.jsonl is a directory that Headgate did not write: ",
    )
    found = complaints(tmp_path, text)
    told = [line.split(": ", 1)[1].replace(str(tmp_path), "") for line in found]
    assert all(line.startswith(words) for line, words in zip(told, expected, strict=True)), told


@pytest.mark.parametrize(
    ("overrides", "told"),
    [
        ({"subscriptions.table": "nofilter.csv"}, "has no column 'filter'; its columns are id, fliter"),
        ({"events.table": "noid.parquet"}, "has no column 'id'; its columns are a"),
        ({"events.table": "broken.parquet"}, "is no sound Parquet file"),
        ({"events.table": "readme.txt"}, "the format of"),
        ({"graph.nodes": "nofilter.csv", "graph.edges": "nofilter.csv"}, "has no column 'source'"),
        ({"subscriptions.schema": "no.json"}, "cannot be read: No such file"),
        ({"subscriptions.schema": "readme.txt"}, "subscriptions.schema: "),
        ({"subscriptions.sample": "no.csv"}, "subscriptions.sample: "),
        ({"subscriptions.taxonomy": ["no.ttl"], "subscriptions.dialect": "sparql"}, "no.ttl cannot be read"),
        ({"subscriptions.taxonomy": ["readme.txt"], "subscriptions.dialect": "sparql"}, "is not clear"),
        ({"compile.snapshot": "hdfs://bucket/s"}, "workers map it, so give a path that all see"),
        ({"report.page": "s3a://bucket/p.html"}, "report.page: s3a://bucket/p.html is not on this machine"),
        ({"report.page": "../folder"}, "is a directory: give the path of a file"),
        ({"match.all.output": "s3a://bucket/m.csv"}, "a single file is written to a local path only"),
        ({"match.all.output": "m.txt"}, "the format of"),
        ({"pipeline.directory": "readme.txt"}, "pipeline.directory: "),
    ],
)
def test_what_is_wrong_outside_the_file(tmp_path: Path, overrides: dict[str, Any], told: str) -> None:
    put(tmp_path / "readme.txt", "hello")
    put(tmp_path / "folder" / "x", "")
    put(tmp_path / "nofilter.csv", "id,fliter\n1,a = 1\n")
    put(tmp_path / "broken.parquet", "PAR1")
    pq.write_table(pa.table({"a": [1]}), tmp_path / "noid.parquet")
    found = complaints(tmp_path, sets=overrides)
    assert any(told in line for line in found), found


def test_documents_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    put(tmp_path / "docs" / "a.xml", "<news><topic>art</topic></news>")
    put(tmp_path / "docs" / "b.xml", "<news>")
    put_lines(tmp_path / "s.jsonl", [{"id": "s", "filter": "//news[topic = 'art']", "dialect": "xpath"}])
    text = '[subscriptions]\ntable = "s.jsonl"\n[events]\ntable = "docs"\n[match]\n'
    found = rehearsed(tmp_path, text)
    judged = found.sizes.tables["events"]
    assert judged is not None
    assert (judged.table.total, judged.usable, len(judged.reasons)) == (2, 1, 1)
    assert found.sizes.outputs is not None
    assert found.sizes.outputs["matches"].matches == 1


def test_what_lies_elsewhere_is_not_looked_at(tmp_path: Path) -> None:
    found = rehearsed(tmp_path, sets={"events.table": "s3a://bucket/e.parquet"})
    assert "which is not checked" in found.sizes.note
    assert any(line.startswith("events: on another file system") for line in found.lines)


def test_the_command_prints_the_plan(headgate: Command, tmp_path: Path) -> None:
    shop(tmp_path)
    ran = headgate("run", tmp_path / "shop.toml", "--dry-run", "--quiet")
    assert (ran.code, ran.err) == (0, "")
    assert "2. match.all: to be done: it was not done before" in ran.out
    found = headgate("run", tmp_path / "shop.toml", "--dry-run", "--json", "--until", "compile").json
    assert [step["name"] for step in found["steps"]] == ["compile"]
    assert found["tables"]["events"]["rows"] == len(EVENTS)


def test_the_command_tells_all_problems_one_a_line(headgate: Command, tmp_path: Path) -> None:
    put(tmp_path / "p.toml", "[pipelin]\n[match]\ntpo = 1\n")
    ran = headgate("run", tmp_path / "p.toml")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.splitlines() == [
        f"headgate: {tmp_path}/p.toml: pipelin: there is no such table: did you mean 'pipeline'?",
        f"headgate: {tmp_path}/p.toml: match.tpo: there is no such setting: did you mean 'top'?",
    ]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("run",), "Missing argument 'FILE'"),
        (("run", "no.toml"), "does not exist"),
        (("run", "shop.toml", "--set", "nonsense"), "--set nonsense: write TABLE.KEY=VALUE"),
        (("run", "shop.toml", "--conf", "nonsense"), "--conf nonsense: write NAME=VALUE"),
    ],
)
def test_wrong_usage(
    headgate: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], told: str
) -> None:
    shop(tmp_path)
    monkeypatch.chdir(tmp_path)
    ran = headgate(*arguments)
    assert told in ran.complaint
    assert ran.code == 2


def test_a_step_that_is_none_is_one_line(headgate: Command, tmp_path: Path) -> None:
    shop(tmp_path)
    ran = headgate("run", tmp_path / "shop.toml", "--until", "nonsense", "--dry-run")
    assert ran.complaint.startswith("there is no step 'nonsense': there are compile, match.all")
    assert ran.code == 1


def test_a_stream_is_checked_and_told(tmp_path: Path) -> None:
    found = rehearsed(tmp_path, SHOP + '[stream]\nevents = "incoming"\n')
    assert f"then a stream, of events that arrive at {tmp_path}/incoming" in found.lines
    for text, told in (
        ("once = true\n", "stream.events: it is missing: a folder to which files of events are moved"),
        ('events = "in"\nevry = 1\n', "stream.evry: there is no such setting: did you mean 'every'?"),
        ('events = "in"\nonce = 1\n', "stream.once: 1 is a whole number: give true or false"),
        ('events = "in"\nformat = "csv"\n', "stream.format: 'csv' is none of them: there are parquet, jsonl"),
        ('events = "in"\nmax_rows = 3\n', "stream: max_rows counts messages of a broker"),
        ('events = "in"\nevery = -1\n', "stream.every: -1 is out of range: give seconds"),
    ):
        lines = complaints(tmp_path, SHOP + f"[stream]\n{text}")
        assert any(told in line for line in lines), lines


def test_errors_are_ours() -> None:
    assert issubclass(PipelineError, HeadgateError)
