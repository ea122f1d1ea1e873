"""Runs: what they write is what the single commands write, and they go on where they were stopped."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from headgate.errors import HeadgateError
from headgate.pipeline.file.read import read_pipeline
from headgate.pipeline.run import run
from headgate.pipeline.run.run import RunOptions, run_pipeline
from headgate.pipeline.run.state import stamp
from headgate.spark.session import listeners
from tests.lanes import some
from tests.pipeline.pipelines import EVENTS, EXAMPLES, MATCHES, SHOP, SUBSCRIPTIONS, pairs, shop
from tests.spark.files import get_lines, names, put, put_lines

if TYPE_CHECKING:
    from types import ModuleType

    from headgate.pipeline.run.run import Outcome
    from tests.cli.running import Command

pytestmark = pytest.mark.usefixtures("spark")

QUIET = RunOptions(quiet=True)


def statuses(done: Outcome) -> dict[str, str]:
    return {each.name: each.status for each in done.steps}


def done_now(done: Outcome) -> list[str]:
    return [each.name for each in done.steps if each.status == "done"]


def run_shop(folder: Path, asked: RunOptions = QUIET, sets: dict[str, Any] | None = None) -> Outcome:
    return run_pipeline(shop(folder, sets=sets), asked)


ALL = ["compile", "match.all", "summary.all", "match.best"]
TABLES: dict[str, Any] = {"match.all.output": "matches.parquet"}


@dataclass(frozen=True)
class Story:
    """A shop that was run in two parts, and how it stood after each."""

    folder: Path
    begun: Outcome
    drawn: bool
    """Whether there was a report after the first part."""
    ended: Outcome


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    """Run the shop until a step, and then the rest of it."""
    folder: Path = tmp_path_factory.mktemp("story")
    begun = run_shop(folder, RunOptions(until="match.all", quiet=True), TABLES)
    drawn = (folder / "shop" / "report.html").exists()
    return Story(folder, begun, drawn, run_shop(folder, sets=TABLES))


@pytest.fixture
def finished(story: Story, tmp_path: Path) -> Path:
    """Give a test a copy of the shop as it is when all of it was run."""
    shutil.copytree(story.folder, tmp_path, dirs_exist_ok=True)
    return tmp_path


@pytest.mark.nightly
def test_until_ends_early_and_the_next_run_goes_on(story: Story) -> None:
    assert (done_now(story.begun), story.begun.page) == (ALL[:2], None)
    assert not story.drawn
    assert done_now(story.ended) == ALL[2:]
    assert story.ended.page is not None
    assert "in an earlier run" in story.ended.page.read_text("utf-8")


def test_a_run_writes_everything_and_the_next_has_nothing_to_do(story: Story, finished: Path) -> None:
    first = story.ended
    assert list(statuses(first)) == ALL
    place = finished / "shop"
    assert pairs(place / "matches.parquet") == MATCHES
    best = {(row["event_id"], row["subscription_id"], row["rank"]) for row in get_lines(place / "best.jsonl")}
    assert {("e1", "shoes", 1), ("e1", "both", 2)} <= best
    assert first.refused == 2
    assert first.results["compile"]["refusals"][0]["rows"] == 1
    page = (place / "report.html").read_text("utf-8")
    assert "<svg" in page
    told = json.loads((place / "run.json").read_text("utf-8"))
    assert (told["ok"], [step["name"] for step in told["steps"]]) == (True, ALL)
    # Its tables are small: no Spark was started.
    assert told["stages"] == []
    before = {name: stamp(str(place / name)) for name in names(place) if name != ".headgate"}
    again = run_shop(finished, sets=TABLES)
    assert done_now(again) == []
    assert again.results == first.results
    after = {name: stamp(str(place / name)) for name in before}
    assert {name for name in before if before[name] != after[name]} == {"run.json"}
    # What is asked for later is made then, and what is there stays as it is.
    assert done_now(run_shop(finished, sets={**TABLES, "metrics.file": "m.prom"})) == []
    assert "headgate_matches_total 6" in (place / "m.prom").read_text("utf-8")
    (place / "m.prom").unlink()
    assert stamp(str(place / "report.html")) == before["report.html"]
    assert names(place) == [
        ".headgate",
        "best-rejected.jsonl",
        "best.jsonl",
        "matches-rejected.jsonl",
        "matches.parquet",
        "report.html",
        "run.json",
        "snapshot",
        "snapshot-rejected.jsonl",
    ]


@pytest.mark.nightly
def test_what_changed_is_done_again_and_what_follows_from_it(tmp_path: Path) -> None:
    run_shop(tmp_path)
    place = tmp_path / "shop"
    # Another setting of one step.
    assert done_now(run_shop(tmp_path, sets={"match.best.top": 1})) == ["match.best"]
    # An input of the later steps.
    put_lines(tmp_path / "events.jsonl", EVENTS[:2])
    assert done_now(run_shop(tmp_path, sets={"match.best.top": 1})) == ALL[1:]
    assert pairs(place / "matches.jsonl") == {pair for pair in MATCHES if pair[0] != "e3"}
    # The same content once more makes the same snapshot, and then nothing follows.
    os.utime(tmp_path / "subs.jsonl", ns=(1, 1))
    assert done_now(run_shop(tmp_path, sets={"match.best.top": 1})) == ["compile"]
    # Another content makes another.
    put_lines(tmp_path / "subs.jsonl", SUBSCRIPTIONS[:1])
    assert done_now(run_shop(tmp_path, sets={"match.best.top": 1})) == ALL
    assert pairs(place / "matches.jsonl") == {("e1", "cheap")}
    # An output that somebody removed, or changed.
    (place / "best.jsonl").unlink()
    assert done_now(run_shop(tmp_path, sets={"match.best.top": 1})) == ["match.best"]


def test_a_step_that_fails_leaves_the_others_done(finished: Path) -> None:
    text = (
        SHOP.replace("top = 2", "top = 1")
        + """
[[backtest]]
filter = "nonsense = 1"
"""
    )
    pipeline = shop(finished, text, TABLES)
    with pytest.raises(HeadgateError, match=r"no event of .* has the attribute nonsense"):
        run_pipeline(pipeline, QUIET)
    told = json.loads((finished / "shop" / "run.json").read_text("utf-8"))
    assert (told["ok"], [step["name"] for step in told["steps"]]) == (False, ALL)
    # The last of them in the run that failed.
    assert [step["status"] for step in told["steps"]] == ["skipped"] * 3 + ["done"]
    assert "nonsense" in told["error"]
    mended = shop(finished, text.replace("nonsense = 1", "price < 50"), TABLES)
    done = run_pipeline(mended, QUIET)
    assert done_now(done) == ["backtest.backtest"]
    assert done.results["backtest.backtest"]["matches"] == 2


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (OSError(28, "No space left on device"), "OSError: [Errno 28] No space left on device"),
        (KeyboardInterrupt(), "the run was interrupted"),
    ],
)
def test_a_run_that_does_not_end_is_not_told_to_have_ended_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, told: str
) -> None:
    place = tmp_path / "shop" / "run.json"
    put(place, '{"ok": true}')
    meanwhile = []

    def fail(_: object) -> None:
        meanwhile.append(json.loads(place.read_text("utf-8")))
        raise error

    monkeypatch.setattr("headgate.pipeline.run.run.work", fail)
    with pytest.raises(type(error)):
        run_shop(tmp_path)
    found = [(each["ok"], each["error"]) for each in (*meanwhile, json.loads(place.read_text("utf-8")))]
    assert found == [(False, "the run has not ended"), (False, told)]


def test_half_a_table_of_a_killed_run_is_replaced(finished: Path) -> None:
    place = finished / "shop"
    state = json.loads((place / ".headgate" / "state.json").read_text("utf-8"))
    state["begun"] = ["matches.parquet"]
    del state["steps"]["match.all"]
    put(place / ".headgate" / "state.json", json.dumps(state))
    (place / "matches.parquet" / "_SUCCESS").unlink()
    put(place / ".headgate" / "lock", "4194305")
    put(place / ".matches.parquet.4194305.parts" / "x.parquet", "half")
    done = run_shop(finished, sets=TABLES)
    assert done_now(done) == ["match.all", "summary.all"]
    assert pairs(place / "matches.parquet") == MATCHES
    assert not list(place.glob(".matches*"))


def check_summary(done: Outcome) -> None:
    summary = done.results["summary.all"]
    assert summary["events_by_matches"] == {"1": 1, "2": 1, "3": 1}
    busiest = {(identity, count) for identity, _, count in summary["busiest"]}
    assert busiest == {("cheap", 2), ("shoes", 2), ("both", 2)}


@pytest.mark.parametrize("suffix", ["csv", pytest.param("jsonl", marks=pytest.mark.nightly)])
def test_matches_in_lines_are_summed_up(story: Story, finished: Path, suffix: str) -> None:
    check_summary(story.ended)
    done = run_shop(finished, sets={"match.all.output": f"matches.{suffix}"})
    assert done_now(done) == ["match.all", "summary.all"]
    check_summary(done)
    assert pairs(finished / "shop" / f"matches.{suffix}") == MATCHES


def test_the_command(headgate: Command, finished: Path) -> None:
    shop(finished, sets=TABLES)
    command = ("run", finished / "shop.toml", "--set", "match.all.output=matches.parquet")
    ran = headgate(*command, "--quiet", "--strict", "--set", "match.best.top=1")
    assert (ran.code, ran.err) == (3, "")
    assert ran.out.splitlines()[-2:] == ["refused 2 rows", f"report: {finished}/shop/report.html"]
    ran = headgate(*command, "--json")
    found = ran.json
    assert ran.code == 0
    assert [step["status"] for step in found["steps"]] == ["skipped"] * 3 + ["done"]
    assert "match.best: begun, since what is asked has changed" in ran.err


# The contract: a pipeline writes what the single commands write.


def rows(path: Path) -> list[Any]:
    """Return a table as a sorted list, whatever its format."""
    found = pq.read_table(path).to_pylist() if path.is_dir() else get_lines(path)
    return sorted(json.dumps(row, sort_keys=True, default=str) for row in found)


def same(ours: Path, theirs: Path, *tables: str) -> None:
    for name in tables:
        assert rows(ours / name) == rows(theirs / name), name
        assert rows(ours / name) or "rejected" in name


def run_example(name: str, folder: Path, **overrides: Any) -> Outcome:
    given = {"pipeline.directory": str(folder / "ours"), **overrides}
    return run_pipeline(read_pipeline(EXAMPLES / f"{name}.toml", given), QUIET)


def test_records_are_as_by_single_commands(headgate: Command, tmp_path: Path) -> None:
    done = run_example("shop", tmp_path)
    assert done_now(done) == [*ALL, "summary.best", "backtest.cheap"]
    theirs = tmp_path / "theirs"
    shared = ("--quiet", "--json")
    tables = EXAMPLES / "shop"
    headgate(
        "compile",
        "--subscriptions",
        tables / "subscriptions.jsonl",
        "--ranked",
        "--output",
        theirs / "snapshot",
        *shared,
    )
    match = ("match", "--snapshot", theirs / "snapshot", "--events", tables / "events.jsonl", *shared)
    headgate(*match, "--output", theirs / "matches.parquet")
    headgate(*match, "--output", theirs / "best.jsonl", "--top", "3")
    same(
        tmp_path / "ours",
        theirs,
        "matches.parquet",
        "best.jsonl",
        "snapshot-rejected.jsonl",
        "best-rejected.jsonl",
    )
    assert stamp(str(tmp_path / "ours" / "snapshot")) == stamp(str(theirs / "snapshot"))
    tested = headgate("backtest", "--filter", "price < 50", "--events", tables / "events.jsonl", *shared).json
    assert done.results["backtest.cheap"]["matches"] == tested["matches"]
    metrics = (tmp_path / "ours" / "metrics.prom").read_text("utf-8")
    assert 'headgate_step_seconds{step="match.best"}' in metrics


@pytest.mark.nightly
def test_rdf_with_a_taxonomy_is_as_by_single_commands(headgate: Command, tmp_path: Path) -> None:
    done = run_example("feeds", tmp_path)
    theirs, data = tmp_path / "theirs", EXAMPLES.parent / "rss"
    headgate(
        *("compile", "--subscriptions", data / "subscriptions.jsonl", "--taxonomy", data / "topics.ttl"),
        *("--coerce", "--output", theirs / "snapshot", "--quiet"),
    )
    headgate(
        *("match", "--snapshot", theirs / "snapshot", "--events", data / "feeds"),
        *("--output", theirs / "matches.jsonl", "--quiet"),
    )
    same(tmp_path / "ours", theirs, "matches.jsonl", "matches-rejected.jsonl", "snapshot-rejected.jsonl")
    counts = Counter(row["subscription_id"] for row in get_lines(theirs / "matches.jsonl"))
    assert {identity: count for identity, _, count in done.results["summary.matches"]["busiest"]} == counts
    assert stamp(str(tmp_path / "ours" / "snapshot")) == stamp(str(theirs / "snapshot"))


@pytest.mark.nightly
def test_xml_with_tuples_and_a_plan_is_as_by_single_commands(headgate: Command, tmp_path: Path) -> None:
    done = run_example("documents", tmp_path)
    theirs, data = tmp_path / "theirs", EXAMPLES.parent / "xml"
    headgate(
        "compile", "--subscriptions", data / "subscriptions.jsonl", "--output", theirs / "snapshot", "--quiet"
    )
    headgate(
        *("match", "--snapshot", theirs / "snapshot", "--events", data / "documents", "--quiet"),
        *("--output", theirs / "matches.jsonl", "--tuples", theirs / "tuples.jsonl"),
    )
    same(tmp_path / "ours", theirs, "matches.jsonl", "tuples.jsonl", "matches-rejected.jsonl")
    planned = headgate(
        *("plan", "--snapshot", theirs / "snapshot", "--sample", data / "documents"),
        *("--output", theirs / "network", "--quiet", "--json"),
    ).json
    ours = done.results["plan"]
    assert {name: ours[name] for name in ("views", "levels", "utilization", "latency")} == {
        name: planned[name] for name in ("views", "levels", "utilization", "latency")
    }
    assert "<svg" in (tmp_path / "ours" / "network.html").read_text("utf-8")


@pytest.mark.nightly
def test_a_graph_with_the_best_20_is_as_by_single_commands(headgate: Command, tmp_path: Path) -> None:
    text = """
[generate]
workload = "social"
nodes = 300
edges = 2_000
events = 60
format = "jsonl"
[[match]]
name = "best"
output = "best.jsonl"
top = 20
busiest = 0
"""
    run_pipeline(read_pipeline(Path(put(tmp_path / "ours.toml", text))), QUIET)
    theirs = tmp_path / "theirs"
    headgate(
        *("generate", "social", "--nodes", "300", "--edges", "2000", "--events", "60"),
        *("--output", theirs, "--quiet"),
    )
    graph = ("--nodes", theirs / "nodes.jsonl", "--edges", theirs / "edges.jsonl")
    headgate("compile", *graph, "--output", theirs / "snapshot", "--quiet")
    headgate(
        *("match", "--snapshot", theirs / "snapshot", "--events", theirs / "events.jsonl"),
        *("--output", theirs / "best.jsonl", "--top", "20", "--quiet"),
    )
    same(tmp_path / "ours", theirs, "nodes.jsonl", "edges.jsonl", "events.jsonl", "best.jsonl")
    assert stamp(str(tmp_path / "ours" / "snapshot")) == stamp(str(theirs / "snapshot"))


@pytest.mark.parametrize("count", some([2, 4], 0))
def test_shards_answer_as_one(tmp_path: Path, count: int) -> None:
    small = {"generate.subscriptions": 500 * count, "generate.events": 100, "match.near.busiest": 0}
    cut = run_example("sharded", tmp_path, **small, **{"shards.count": count})
    assert done_now(cut) == ["generate", "compile", "match.best", "summary.best", "match.near"]
    assert cut.results["match.best"]["shards"] == count
    # What was generated does not depend on shards; all that follows does.
    shutil.copytree(tmp_path / "ours", tmp_path / "one")
    one = {**small, "match.best.busiest": 0, "shards.count": 1, "pipeline.directory": str(tmp_path / "one")}
    whole = run_pipeline(read_pipeline(EXAMPLES / "sharded.toml", one), QUIET)
    assert done_now(whole) == ["compile", "match.best", "match.near"]
    same(tmp_path / "ours", tmp_path / "one", "best.parquet", "near.parquet", "subscriptions.parquet")


@pytest.mark.nightly
def test_shards_by_tenant_and_by_access_answer_as_one(tmp_path: Path) -> None:
    rows = [
        {"id": n, "filter": f"topic = 't{n % 5}' AND price < {n}", "tenant": f"c{n % 4}", "score": n % 7}
        for n in range(60)
    ]
    put_lines(tmp_path / "subs.jsonl", [*rows, {"id": 60, "filter": "price < 30"}])
    put_lines(tmp_path / "events.jsonl", [{"id": n, "topic": f"t{n % 6}", "price": n} for n in range(40)])
    text = """
[subscriptions]
table = "subs.jsonl"
[events]
table = "events.jsonl"
[[match]]
output = "all.jsonl"
busiest = 0
[[match]]
name = "best"
output = "best.jsonl"
top = 3
busiest = 0
"""
    rules: dict[str, dict[str, Any]] = {
        "whole": {},
        "tenant": {"shards.count": 3, "shards.by": "tenant"},
        "access": {"shards.count": 3, "shards.by": "access", "shards.column": "topic"},
    }
    found: dict[str, Outcome] = {}
    for name, sets in rules.items():
        found[name] = run_pipeline(shop(tmp_path, text, {"pipeline.directory": name, **sets}), QUIET)
        assert found[name].results["match.matches"]["shards"] == sets.get("shards.count", 1)
        same(tmp_path / name, tmp_path / "whole", "all.jsonl", "best.jsonl")
    met = found["access"].results["match.matches"]
    assert met["met"] < met["events"] * met["shards"]
    assert sum(part.events for part in found["access"].report.throughput) == met["events"]


def note_handlers(monkeypatch: pytest.MonkeyPatch, module: ModuleType, name: str) -> list[Any]:
    """Note what is done about SIGTERM whenever a function is called."""
    function, found = getattr(module, name), []

    def noted(*given: Any, **more: Any) -> Any:
        found.append(signal.getsignal(signal.SIGTERM))
        return function(*given, **more)

    monkeypatch.setattr(module, name, noted)
    return found


@pytest.mark.nightly
def test_what_if_and_a_stream_of_the_same_pipeline(
    headgate: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = """
[subscriptions]
table = "subs.jsonl"
ranked = false
[events]
table = "events.jsonl"
[[what_if]]
name = "wider"
changes = "changes.jsonl"
page = "pages/wider.html"
[stream]
events = "incoming"
output = "live"
format = "jsonl"
once = true
report = "live.html"
"""
    put_lines(
        tmp_path / "changes.jsonl",
        [
            {"op": "subscribe", "id": "books", "filter": "topic = 'books'"},
            {"op": "unsubscribe", "id": "shoes"},
        ],
    )
    put_lines(tmp_path / "incoming" / "a.jsonl", EVENTS)
    shop(tmp_path, text)
    before = signal.getsignal(signal.SIGTERM)
    steps, streamed = (
        note_handlers(monkeypatch, run, "work"),
        note_handlers(monkeypatch, run, "run_told"),
    )
    secret = ("--conf", "spark.hadoop.fs.s3a.secret.key=TOPSECRET")
    found = headgate("run", tmp_path / "shop.toml", "--quiet", "--json", *secret).json
    (step,) = (each for each in found["steps"] if each["name"] == "what_if.wider")
    assert (step["gained"], step["lost"]) == (1, 2)
    place = tmp_path / "shop"
    assert "<svg" in (place / "pages" / "wider.html").read_text("utf-8")
    assert (found["stream"]["events"], found["stream"]["matches"]) == (3, len(MATCHES))
    # Asked to end, steps do so at once, and a stream after its batch.
    assert set(steps) == {before}
    assert len(streamed) == 1
    assert streamed[0] is not before
    # Nothing that was written has what the command line kept secret.
    shown = [file.read_bytes() for file in place.rglob("*") if file.is_file()]
    assert sum(b"spark.hadoop.fs.s3a.secret.key" in text for text in shown) == 2
    assert not any(b"TOPSECRET" in text for text in shown)
    files = [file for file in (place / "live").rglob("*.jsonl") if not file.name.startswith((".", "_"))]
    assert {pair for file in files for pair in pairs(file)} == MATCHES
    # The stream goes on where it was: nothing comes twice. It may run for months, and is not listened to.
    monkeypatch.setattr(listeners, "listening", lambda _: pytest.fail("the stream was listened to"))
    again = run_pipeline(shop(tmp_path, text), QUIET)
    assert done_now(again) == []
    assert again.streamed is not None
    assert again.streamed.events == 0
