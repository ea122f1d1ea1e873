"""Pipeline files: what they say, and every way in which they can be wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headgate.core.settings import SettingKind
from headgate.pipeline.file.model import PipelineError, read_overrides
from headgate.pipeline.file.read import read_pipeline
from headgate.pipeline.file.settings import SETTINGS, TABLES
from headgate.pipeline.file.together import places
from tests.spark.files import put

MINIMAL = '[subscriptions]\ntable = "subs.jsonl"\n[events]\ntable = "events.jsonl"\n[match]\n'


def complaints(folder: Path, text: str | bytes, overrides: dict[str, Any] | None = None) -> list[str]:
    """List what is wrong with a file, without its name."""
    file = Path(put(folder / "jobs" / "p.toml", text))
    with pytest.raises(PipelineError) as caught:
        read_pipeline(file, overrides)
    error = caught.value
    assert all("\n" not in line and line.startswith(f"{file}: ") for line in error.lines)
    assert str(error).startswith(error.lines[0])
    return [line.removeprefix(f"{file}: ") for line in error.lines]


def test_paths_are_those_of_the_file_and_of_the_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    put(tmp_path / "jobs" / "p.toml", MINIMAL + 'rejected = "/elsewhere/bad.jsonl"\n')
    pipeline = read_pipeline(Path("jobs/p.toml"))
    assert (pipeline.about.name, str(pipeline.directory)) == ("p", "jobs/p")
    assert (pipeline.compile.subscriptions, pipeline.events) == ("jobs/subs.jsonl", "jobs/events.jsonl")
    assert pipeline.compile.snapshot == "jobs/p/snapshot"
    assert pipeline.compile.rejected == "jobs/p/snapshot-rejected.jsonl"
    (match,) = pipeline.matches
    assert (match.output, match.rejected) == ("jobs/p/matches.parquet", "/elsewhere/bad.jsonl")
    assert (pipeline.report.page, pipeline.report.json) == ("jobs/p/report.html", "jobs/p/run.json")


def test_remote_places_stay_as_they_are(tmp_path: Path) -> None:
    text = MINIMAL.replace("events.jsonl", "s3a://bucket/events") + 'output = "hdfs://x/m.parquet"\n'
    pipeline = read_pipeline(Path(put(tmp_path / "p.toml", text)))
    assert pipeline.events == "s3a://bucket/events"
    assert pipeline.matches[0].output == "hdfs://x/m.parquet"
    # It is one file, and those are written on this machine.
    assert pipeline.matches[0].rejected == str(tmp_path / "p" / "m-rejected.jsonl")
    pipeline = read_pipeline(tmp_path / "p.toml", {"match.output": f"file://{tmp_path}/m.parquet"})
    assert pipeline.matches[0].rejected == str(tmp_path / "m-rejected.jsonl")


def test_several_matches_have_names_and_places_of_their_own(tmp_path: Path) -> None:
    text = MINIMAL.replace("[match]", '[[match]]\n[[match]]\nname = "best"\ntop = 3\n')
    pipeline = read_pipeline(Path(put(tmp_path / "p.toml", text)))
    assert [Path(str(match.output)).name for match in pipeline.matches] == ["matches.parquet", "best.parquet"]


def test_all_problems_are_told_at_once(tmp_path: Path) -> None:
    text = """
[pipelin]
[generate]
workload = "advertisng"
evnts = 3
events = -1
[match]
tpo = 3
top = "ten"
"""
    assert complaints(tmp_path, text) == [
        "pipelin: there is no such table: did you mean 'pipeline'?",
        "generate.workload: 'advertisng' is none of them: did you mean 'advertising'?",
        "generate.evnts: there is no such setting: did you mean 'events'?",
        "generate.events: -1 is out of range: give a whole number, 0 or more",
        "match.tpo: there is no such setting: did you mean 'top'?",
        "match.top: 'ten' is text: give a whole number, 0 or more",
    ]


WRONG_VALUES = {
    SettingKind.TEXT: 3,
    SettingKind.INPUT: False,
    SettingKind.OUTPUT: ["a"],
    SettingKind.INPUTS: "one.ttl",
    SettingKind.WHOLE: 1.5,
    SettingKind.COUNT: "many",
    SettingKind.NUMBER: "much",
    SettingKind.SECONDS: "soon",
    SettingKind.SHARE: "much",
    SettingKind.FLAG: "yes",
    SettingKind.NUMBERS: {"age": "old"},
    SettingKind.TEXTS: {"spark.x": 3},
    SettingKind.PAIR: [1, 2, 3],
}


@pytest.mark.parametrize("where", SETTINGS)
def test_a_value_of_the_wrong_type_is_refused_for_every_setting(tmp_path: Path, where: str) -> None:
    found = complaints(tmp_path, "", {where: WRONG_VALUES[SETTINGS[where].kind]})
    assert any(line.startswith(f"{where}: ") and ": give " in line for line in found), found


@pytest.mark.parametrize("where", [name for name, each in SETTINGS.items() if each.least is not None])
def test_a_value_out_of_range_is_refused_for_every_setting(tmp_path: Path, where: str) -> None:
    setting = SETTINGS[where]
    assert setting.least is not None
    values = [setting.least - 1] + ([] if setting.most is None else [setting.most + 1])
    for value in values:
        given = [int(value), int(value)] if setting.kind is SettingKind.PAIR else value
        found = complaints(tmp_path, "", {where: given})
        assert any(line.startswith(f"{where}: ") and "is out of range: give" in line for line in found), found


@pytest.mark.parametrize("where", [name for name, each in SETTINGS.items() if each.choices])
def test_a_value_that_is_none_of_them_is_refused_for_every_setting(tmp_path: Path, where: str) -> None:
    found = complaints(tmp_path, "", {where: "qqqq"})
    assert any(line.startswith(f"{where}: 'qqqq' is none of them: there are ") for line in found), found


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (b"\xff\xfe", "the file is not UTF-8"),
        ("[match\n", "not valid TOML: "),
        ("a = 1\na = 2\n", "not valid TOML: Cannot overwrite a value (at line 2"),
        ("", "subscriptions.table: it is missing: name a table of subscriptions, or [graph]"),
        ("match = 3\n", "match: it is a number: write a table, [[match]]"),
        ("compile = 'x'\n", "compile: it is text: write a table, [compile]"),
        (MINIMAL + "[[backtest]]\n", "backtest.filter: it is missing: the filter to try"),
        (MINIMAL + "[[what_if]]\n", "what_if.changes: it is missing"),
        (
            MINIMAL.replace("[match]", "[[match]]\n[[match]]"),
            "match: 2 of them are named 'matches': give each",
        ),
        (MINIMAL + 'name = "a/b"\n', "match.name: 'a/b' is not a name: use letters"),
        (MINIMAL + 'output = ""\n', "match.output: '' is empty: give a path"),
        (MINIMAL + 'mode = "exact"\n', "match.mode: there is no match.top: give both, or leave it out"),
        (MINIMAL + "top = 3\nfactors = {a = 1}\n", "match.factors: match.mode is not 'relaxed': say mode"),
        (
            MINIMAL.replace('[events]\ntable = "events.jsonl"\n', ""),
            "events.table: it is missing, and [match]",
        ),
        ('[graph]\nnodes = "n.csv"\n', "graph.edges: it is missing, and there are nodes: a graph has both"),
        ('[graph]\nedges = "e.csv"\n', "graph.nodes: it is missing, and there are edges: a graph has both"),
        (
            MINIMAL + '[pipeline]\ndirectory = "hdfs:///jobs/out"\n',
            "pipeline.directory: hdfs:///jobs/out is not on this machine: name a folder",
        ),
        (MINIMAL + '[shards]\ncolumn = "x"\n', "shards.column: the rule 'hash' looks at no column"),
        (
            '[generate]\nworkload = "mixed"\nscale = 2\n',
            "generate.scale: the workload 'mixed' has no such setting: leave it out, or use exchange",
        ),
        ('[generate]\nworkload = "exchange"\nsubscriptions = 2\n', "generate.subscriptions: the nodes of"),
        (
            '[generate]\nworkload = "exchange"\nselectivity = "1/64"\n',
            "generate.selectivity: 'exchange' has no '1/64': there are 1/16",
        ),
        (
            '[generate]\nworkload = "ranking"\npresence = 0.5\n',
            "generate.presence: there is no generate.attri",
        ),
        (
            '[generate]\nworkload = "ranking"\ndimensions = 2\nattributes = 9\n',
            "generate.dimensions: there is generate.attributes, too: give one of them",
        ),
        (
            '[generate]\nworkload = "xmark"\nkilobytes = [9, 3]\n',
            "generate.kilobytes: [9, 3] ends before it begins",
        ),
        (
            MINIMAL + "[subscriptions.x]\n",
            "subscriptions.x: there is no such setting",
        ),
        (
            MINIMAL.replace('subs.jsonl"', 'subs.jsonl"\ndialect = "sql"\ntaxonomy = ["t.ttl"]'),
            "subscriptions.taxonomy: it is for filters of RDF, and the dialect is 'sql': leave it out, or",
        ),
        (
            MINIMAL.replace('subs.jsonl"', 'subs.jsonl"\ndialect = "xpath"\nschema = "s.json"'),
            "subscriptions.schema: it is for filters of records, and the dialect is 'xpath'",
        ),
        (
            MINIMAL.replace('subs.jsonl"', 'subs.jsonl"\ndialect = "sql"').replace(
                'events.jsonl"', 'events.jsonl"\nformat = "xml"'
            ),
            "events.format: 'xml' is none of filters whose dialect is 'sql': leave it out",
        ),
        (
            MINIMAL.replace('subs.jsonl"', 'subs.jsonl"\ndialect = "sql"') + 'tuples = "t.jsonl"\n',
            "match.tuples: it is for filters of XML, and the dialect is 'sql': leave it out",
        ),
        (
            MINIMAL.replace('subs.jsonl"', 'subs.jsonl"\ndialect = "xpath"')
            + 'top = 2\ntuples = "t.jsonl"\n',
            "match.tuples: it is for matches without a graph and without top: leave it out",
        ),
        (
            MINIMAL + 'output = "m.csv.gz"\nresults = true\n',
            "m.csv.gz is CSV, which has no lists: let the output end in .parquet or .jsonl",
        ),
        (
            MINIMAL.replace('subs.jsonl"', 'subs.jsonl"\nranked = false') + "top = 2\n",
            "match.top: subscriptions.ranked is false: leave that out, or leave out top",
        ),
        (
            MINIMAL + '[shards]\nby = "tenant"\n',
            "shards.by: there is no shards.count: give both, or leave it",
        ),
        (
            MINIMAL.replace('subs.jsonl"', 'subs.jsonl"\ndialect = "xpath"') + '[plan]\ncarries = "row"\n',
            "plan.carries: it is for records, and the dialect is 'xpath': leave it out",
        ),
        (
            '[generate]\nworkload = "stars"\n[subscriptions]\ndialect = "sql"\n',
            "subscriptions.dialect: 'sql' is none of generated RDF: leave it out",
        ),
        (
            MINIMAL + 'output = "a.jsonl"\nrejected = "a.jsonl"\n',
            "match.rejected: ",
        ),
        (MINIMAL + 'output = "../subs.jsonl"\n', "is match.output, too: give every input and output a place"),
        (MINIMAL + 'output = "snapshot/m.jsonl"\n', "lies inside compile.snapshot: choose a place outside"),
        (MINIMAL + 'output = "../p.toml"\n', "is the pipeline file itself: choose another place"),
    ],
)
def test_what_is_refused(tmp_path: Path, text: str, told: str) -> None:
    found = complaints(tmp_path, text)
    assert any(told in line for line in found), found


def test_a_file_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match=r"no\.toml: the file cannot be read: No such file"):
        read_pipeline(tmp_path / "no.toml")


def test_overrides_are_values_as_in_the_file(tmp_path: Path) -> None:
    entries = {
        "match.top": "20",
        "spark.conf.spark.x.y": "3",
        "subscriptions.taxonomy": '["t.ttl"]',
        "events.table": "a b.csv",
    }
    text = MINIMAL.replace('subs.jsonl"', 'subs.jsonl"\ndialect = "sparql"')
    pipeline = read_pipeline(Path(put(tmp_path / "p.toml", text)), read_overrides(entries))
    assert pipeline.matches[0].top == 20
    assert pipeline.spark.conf == {"spark.x.y": "3"}
    assert pipeline.compile.taxonomy == (str(tmp_path / "t.ttl"),)
    assert pipeline.events == str(tmp_path / "a b.csv")


def test_overrides_name_one_of_several(tmp_path: Path) -> None:
    text = MINIMAL.replace("[match]", '[[match]]\n[[match]]\nname = "best"\ntop = 3\n')
    file = Path(put(tmp_path / "p.toml", text))
    assert [match.top for match in read_pipeline(file, {"match.best.top": 5}).matches] == [None, 5]
    for where, told in (
        (
            "match.top",
            "match.top: there are 2 tables [[match]]: write match.NAME.key=value with one of matches",
        ),
        ("match.bset.top", "match.bset.top: there is no [[match]] 'bset'"),
        ("mach.top", "mach.top: there is no such setting: did you mean 'match'?"),
        ("match", "match: there is no such setting: write table.key=value"),
    ):
        assert any(told in line for line in complaints(tmp_path, text, {where: 1}))


def test_an_override_alone_can_make_a_table(tmp_path: Path) -> None:
    file = Path(put(tmp_path / "p.toml", ""))
    pipeline = read_pipeline(file, {"generate.workload": "stars", "match.top": 2})
    assert pipeline.dialect == "sparql"
    assert pipeline.matches[0].top == 2


def test_defaults_are_those_of_the_list(tmp_path: Path) -> None:
    pipeline = read_pipeline(Path(put(tmp_path / "p.toml", '[generate]\nworkload = "mixed"\n[match]\n')))
    tables = {"generate": pipeline.generate, "shards": pipeline.compile, "match": pipeline.matches[0]}
    for table, request in tables.items():
        for setting in TABLES[table].settings:
            if setting.kind is not SettingKind.OUTPUT and not setting.required:
                assert getattr(request, setting.name) == setting.default


def test_every_path_of_the_list_is_a_place(tmp_path: Path) -> None:
    """No output can be forgotten where places are compared."""
    text = MINIMAL + "[compile]\nchanges = 'changes'\n[plan]\n[metrics]\n[[what_if]]\nchanges = 'c.jsonl'\n"
    text += "[stream]\nevents = 'in'\n"
    pipeline = read_pipeline(Path(put(tmp_path / "p.toml", text)))
    found = {place.where for place in places(pipeline)}
    for table in ("compile", "report", "metrics"):
        assert {f"{table}.{each.where}" for each in TABLES[table].settings} <= found
    assert {"plan.output", "plan.rejected", "match.output", "match.rejected", "what_if.output"} <= found
    assert {"subscriptions.table", "events.table", "what_if.changes"} <= found
    assert {f"stream.{name}" for name in ("events", "output", "state", "dead_letters")} <= found
