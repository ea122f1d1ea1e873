"""What the dry run refuses because a run would fail at it, after other steps were done."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headgate.errors import TableError
from headgate.pipeline.dry_run.dry_run import rehearse
from headgate.pipeline.file.model import PipelineError
from headgate.pipeline.run.run import RunOptions, run_pipeline
from tests.pipeline.pipelines import SUBSCRIPTIONS, shop
from tests.spark.files import put, put_lines

if TYPE_CHECKING:
    from pathlib import Path

    from headgate.pipeline.dry_run.dry_run import DryRun

PLAIN = '[subscriptions]\ntable = "plain.jsonl"\n[events]\ntable = "events.jsonl"\n'
XML = '[subscriptions]\ntable = "xml.jsonl"\n[events]\ntable = "docs"\n'
GRAPH = '[graph]\nnodes = "nodes.jsonl"\nedges = "edges.jsonl"\n[events]\ntable = "events.jsonl"\n'
RANKED = PLAIN.replace("plain", "subs")
CUT = "[shards]\ncount = 4\n"
WHAT_IF = '[[what_if]]\nchanges = "changes.jsonl"\n'


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    """A folder with all tables that the files name."""
    put_lines(tmp_path / "plain.jsonl", [{"id": "a", "filter": "price < 50", "tenant": "x"}])
    put_lines(tmp_path / "xml.jsonl", [{"id": "a", "filter": "//news[topic]", "dialect": "xpath"}])
    put(tmp_path / "docs" / "a.xml", "<news><topic>art</topic></news>")
    put_lines(tmp_path / "nodes.jsonl", [{"id": "p"}, {"id": "s", "subscription": "a"}])
    put_lines(tmp_path / "edges.jsonl", [{"source": "p", "target": "s"}])
    put_lines(tmp_path / "changes.jsonl", [{"op": "unsubscribe", "id": "a"}])
    put(tmp_path / "taken", "a file")
    return tmp_path


def rehearsed(folder: Path, text: str, sets: dict[str, Any] | None = None) -> DryRun:
    return rehearse(shop(folder, text, sets), quiet=True)


def complaints(folder: Path, text: str) -> list[str]:
    with pytest.raises(PipelineError) as caught:
        rehearsed(folder, text)
    return [line.partition(".toml: ")[2].replace(str(folder), "") for line in caught.value.lines]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (PLAIN + '[[backtest]]\nfilter = "price <"\n', "backtest.filter: a value or a condition is missing"),
        (
            PLAIN
            + '[[backtest]]\nname = "a"\nfilter = "price < 1"\n[[backtest]]\nname = "b"\nfilter = "("\n',
            "backtest.b.filter: ",
        ),
        (
            PLAIN + '[[backtest]]\nfilter = "//a"\ndialect = "xpath"\n',
            "backtest.dialect: 'xpath' looks at XML, and the events are records: use sql or labels",
        ),
        (
            XML + '[[backtest]]\nfilter = "//news"\n',
            "backtest.dialect: 'sql' looks at records, and the events are XML: use xpath or tree",
        ),
        (XML + '[[backtest]]\nfilter = "//news["\ndialect = "xpath"\n', "backtest.filter: "),
        (PLAIN + CUT + 'by = "access"\n', "shards.column: it is missing, and shards by access of records"),
        (PLAIN + CUT + 'by = "access"\ncolumn = "a..b"\n', "shards.column: 'a..b' is not a name: give"),
        (
            XML + CUT + 'by = "access"\ncolumn = "topic"\n',
            "shards.column: it is an attribute of records, and the filters look at XML: leave it out",
        ),
        (PLAIN + "[match]\ntop = 3\n", "match.top: the subscriptions have no column 'score' or 'weights'"),
        (PLAIN + WHAT_IF + "top = 3\n", "what_if.top: the subscriptions have no column 'score' or 'weights'"),
        (PLAIN + '[stream]\nevents = "in"\ntop = 3\n', "stream.top: the subscriptions have no column"),
        (
            RANKED.replace('"subs.jsonl"', '"subs.jsonl"\nranked = false') + WHAT_IF + "top = 3\n",
            "what_if.top: the subscriptions have no column",
        ),
        (
            '[generate]\nworkload = "mixed"\nsubscriptions = 10\n[match]\ntop = 3\n',
            "match.top: the subscriptions have no column 'score' or 'weights'",
        ),
        (
            GRAPH + '[match]\ntop = 3\nmode = "relaxed"\n',
            "match.top: the subscriptions have no column 'weights'",
        ),
        (PLAIN + CUT + '[plan]\ncarries = "row"\n', "plan: it is made of a snapshot in one piece, and"),
        (
            GRAPH + '[plan]\ncarries = "row"\n',
            "plan: it is made of subscriptions alone, and there is a graph",
        ),
        (RANKED + CUT + WHAT_IF + "top = 3\n", "what_if.top: who is among the best is known of the whole"),
        (GRAPH + CUT + WHAT_IF, "what_if: who is reached through a graph is known of the whole only"),
        (
            PLAIN + '[plan]\ncarries = "row"\npage = "net.pdf"\n',
            "plan.page: /shop/net.pdf has no known ending",
        ),
        (PLAIN + WHAT_IF + 'page = "../taken/w.html"\n', "what_if.page: /taken/w.html cannot be written: "),
        (PLAIN + '[compile]\nsnapshot = "../taken/s"\n', "compile.snapshot: /taken/s cannot be written: "),
        (
            PLAIN + '[match]\noutput = "m.parquet"\n[stream]\nevents = "in"\noutput = "m.parquet"\n',
            "stream.output: /shop/m.parquet is match.output, too: give every input and output a place",
        ),
        (
            PLAIN + '[stream]\nevents = "in"\nstate = "snapshot"\n',
            "stream.state: /shop/snapshot is compile.snapshot, too",
        ),
        (PLAIN + '[stream]\nevents = "in"\noutput = "snapshot/m"\n', "/shop/snapshot/m lies inside compile"),
        (PLAIN + '[stream]\nevents = "in"\noutput = "../in"\n', "stream.events: /in is stream.output, too"),
        (PLAIN + '[stream]\nevents = "in"\nstate = "../taken"\n', "stream.state: /taken is a file: name"),
        (
            PLAIN + '[stream]\nevents = "in"\noutput = "hdfs:///m"\n',
            "stream.output: hdfs:///m is not on this machine: name a folder that all machines see",
        ),
    ],
)
def test_what_a_run_would_fail_at(tables: Path, text: str, told: str) -> None:
    found = complaints(tables, text)
    assert any(told in line for line in found), found


@pytest.mark.parametrize(
    "text",
    [
        PLAIN.replace('"plain.jsonl"', '"plain.jsonl"\nranked = true') + "[match]\ntop = 3\n",
        RANKED + CUT + "[match]\ntop = 3\n" + WHAT_IF,
        RANKED + WHAT_IF + "top = 3\n",
        RANKED + '[match]\ntop = 3\n[plan]\ncarries = "row"\n',
        GRAPH + "[match]\ntop = 3\n" + WHAT_IF + "top = 3\n",
        GRAPH + CUT + "[match]\ntop = 3\n",
        PLAIN + CUT + 'by = "access"\ncolumn = "price"\n[match]\n',
        PLAIN + '[shards]\ncount = 1\nby = "access"\n[match]\n',
        XML + CUT + 'by = "access"\n[match]\n',
        XML + '[plan]\n[[backtest]]\nfilter = "//news"\ndialect = "xpath"\n',
        PLAIN + CUT + '[stream]\nevents = "in"\n',
        PLAIN + '[stream]\nevents = "nats://h/E"\noutput = "nats://h/M"\n',
        PLAIN + WHAT_IF + 'page = "pages/w.html"\n',
        PLAIN.replace("plain.jsonl", "s3a://bucket/xml.parquet")
        + CUT
        + 'by = "access"\n[match]\ntop = 3\n[[backtest]]\nfilter = "//a"\ndialect = "xpath"\n',
    ],
)
def test_what_a_run_can_do(tables: Path, text: str) -> None:
    assert rehearsed(tables, text).steps


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_ranks_are_columns(tables: Path, form: str) -> None:
    text = PLAIN.replace("plain.jsonl", f"s.{form}") + "[match]\ntop = 3\n"
    rows: dict[str, list[Any]] = {"id": ["a"], "filter": ["price < 50"]}
    for given, ranked in ((rows, False), ({**rows, "Score": [3.0]}, True)):
        if form == "parquet":
            pq.write_table(pa.table(given), tables / "s.parquet")
        else:
            lines = [",".join(given), ",".join(str(column[0]) for column in given.values())]
            put(tables / "s.csv", "\n".join(lines) + "\n")
        if ranked:
            assert rehearsed(tables, text).steps
        else:
            assert complaints(tables, text)


def test_a_table_that_is_not_read_to_its_end_may_have_ranks_later(tables: Path) -> None:
    put_lines(
        tables / "plain.jsonl",
        [*({"id": n, "filter": "a = 1"} for n in range(2500)), {"id": -1, "filter": "a = 1", "score": 2}],
    )
    assert rehearsed(tables, PLAIN + "[match]\ntop = 3\n").steps


def test_a_stream_and_its_secrets_are_not_told(tables: Path) -> None:
    text = PLAIN + '[stream]\nevents = "in"\ndead_letters = "nats://ann:PASSWORD@host/E?token=TOKEN"\n'
    pipeline = shop(tables, text)
    with pytest.raises(PipelineError) as caught:
        run_pipeline(pipeline, RunOptions(quiet=True))
    told = json.loads((tables / "shop" / "run.json").read_text("utf-8"))
    assert not told["ok"]
    for line in (*caught.value.lines, told["error"]):
        assert "stream.dead_letters: nats://host/E is not on this machine" in line
        assert "PASSWORD" not in line
        assert "TOKEN" not in line


def test_a_run_that_is_refused_is_not_told_to_be_the_one_before(tmp_path: Path) -> None:
    put_lines(tmp_path / "subs.jsonl", SUBSCRIPTIONS)
    pipeline = shop(tmp_path, '[subscriptions]\ntable = "no.jsonl"\n')
    place = tmp_path / "shop" / "run.json"
    put(place, '{"ok": true}')
    with pytest.raises(PipelineError, match=r"no\.jsonl does not exist"):
        run_pipeline(pipeline, RunOptions(quiet=True))
    told = json.loads(place.read_text("utf-8"))
    assert (told["ok"], told["steps"]) == (False, [])
    assert "no.jsonl does not exist" in told["error"]
    put(tmp_path / "shop" / ".headgate" / "state.json", "{")
    with pytest.raises(TableError, match="run with --fresh"):
        run_pipeline(pipeline, RunOptions(quiet=True))
    assert "run with --fresh" in json.loads(place.read_text("utf-8"))["error"]


def test_a_place_for_the_word_that_cannot_be_one_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    put(tmp_path / "folder" / "x", "")
    text = PLAIN.replace("plain", "subs")
    for place in ("s3a://bucket/run.json", str(tmp_path / "folder")):
        with pytest.raises(PipelineError, match=r"report\.json: "):
            run_pipeline(shop(tmp_path, text, {"report.json": place}), RunOptions(quiet=True))
    assert not list(tmp_path.glob("s3a*"))
