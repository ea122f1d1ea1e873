"""How much is loaded, and how long that takes, before there is anything to show.

What is loaded is the check that never varies; the times are those of a quiet machine, with some to spare.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, NamedTuple

import pytest
from click import Group

from headgate import cli as commands
from headgate.cli import cli
from headgate.cli.shell import HOMES

if TYPE_CHECKING:
    from pathlib import Path

LARGE = (
    "highspy", "jinja2", "lxml", "matplotlib", "nats", "numba", "pandas", "pyarrow", "pyoxigraph",
    "pyspark", "rich", "scipy", "sqlglot",
)  # fmt: skip
"""What takes long to load."""
LIBRARIES = ("highspy", "lxml", "matplotlib", "pandas", "pyoxigraph", "pyspark", "sqlglot")
"""The same, without what every match needs: numba, which loads scipy, and pyarrow."""
ROOMS = {
    "records": "headgate.records.index.index",
    "rdf": "headgate.rdf.index.index",
    "xml": "headgate.xml.index.index",
    "graph": "headgate.graph.index",
    "ranking": "headgate.ranking.filters.index",
}
"""The module that stands for each room."""
MOST_OF_OURS = 170
"""Modules of ours that a match of records may load; `python -m benchmarks local` says what CPU it takes."""
TRIES = 5
NUMBA = 0.43
"""Seconds that importing numba takes, a third of a first match: where it takes longer, so may that."""
_TOLD = "\nimport json, sys; print('LOADED', json.dumps(sorted(sys.modules)), file=sys.stderr)"

SHUT = """
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"pyspark", "pandas", "py4j"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
"""
"""As if Spark were not installed."""


class Ran(NamedTuple):
    """A process that has ended."""

    code: int
    output: str
    errors: str
    loaded: frozenset[str]
    seconds: float
    """Of processor time, of the process and of those that it started."""


def as_installed() -> dict[str, str]:
    """Let Python keep modules in its own form, as it does for a package that was installed."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def run(program: str, *arguments: str, folder: Path | None = None) -> Ran:
    """Run a program in a Python of its own."""
    before = os.times()
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env=as_installed(),
    )
    after = os.times()
    seconds = after.children_user - before.children_user + after.children_system - before.children_system
    if done.stdout.startswith("SPENT "):
        # Until then; what ends a process comes after what it is for.
        seconds = float(done.stdout.removeprefix("SPENT "))
    errors, _, loaded = done.stderr.partition("LOADED ")
    names = frozenset(json.loads(loaded)) if loaded else frozenset()
    return Ran(done.returncode, done.stdout, errors, names, seconds)


@cache
def slowness() -> float:
    """Say how much slower this machine is at present than one that has nothing else to do."""
    return max(1.0, min(run("import numba").seconds for _ in range(TRIES)) / NUMBA)


def in_time(ran: Ran, seconds: float) -> bool:
    """Tell whether a program took so long at most, on a machine that has nothing else to do."""
    return ran.seconds <= seconds or ran.seconds <= seconds * slowness()


def best(program: str, *arguments: str, folder: Path | None = None, within: float) -> Ran:
    """Run a program until it stays within a time; other processes may slow it."""
    found = [run(program, *arguments, folder=folder)]
    while found[-1].seconds > within and len(found) < TRIES:
        found.append(run(program, *arguments, folder=folder))
    return min(found, key=lambda each: each.seconds)


def command(*arguments: str, folder: Path, within: float) -> Ran:
    """Run a command of ours."""
    program = f"import sys\nfrom headgate.cli import main\ntry:\n    main()\nfinally:{_TOLD}"
    return best(program.replace("finally:\n", "finally:\n    "), *arguments, folder=folder, within=within)


def test_importing_the_engine_loads_no_room() -> None:
    ran = best("from headgate import Engine" + _TOLD, within=0.6)
    assert ran.code == 0
    assert "headgate.engine.engine" in ran.loaded
    assert ran.loaded.isdisjoint((*LARGE, *ROOMS.values()))
    assert in_time(ran, 0.6)


RECORDS = """
engine = Engine.build([Subscription("s1", "age > 30 AND topic = 'news'"), Subscription("s2", "age < 20")])
event = Event("e1", {"age": 35, "topic": "news"})
"""
GRAPH = """
nodes = [Node("pub"), Node("net", "topic = 'news'")]
subscriptions = [Subscription("s1", "age > 30", node="net"), Subscription("s2", "age < 20", node="net")]
engine = Engine.build(subscriptions, nodes=nodes, edges=[Edge("pub", "net")])
event = Event("e1", {"age": 35, "topic": "news"}, source="pub")
"""
RDF = """
text = "ASK { ?x a <urn:Art> ; <urn:year> ?y FILTER(?y > 2000) }"
engine = Engine.build([Subscription("s1", text, "sparql")])
event = Event("e1", "<urn:x> a <urn:Art> ; <urn:year> 2001 .", content_type="text/turtle")
"""
XML = """
engine = Engine.build([Subscription("s1", "//item[price > 10]", "xpath")])
event = Event("e1", "<shop><item><price>12</price></item></shop>", content_type="xml")
"""
FIRST = """
from headgate import Edge, Engine, Event, Node, Subscription
{}
assert engine.match(event) == ["s1"]
import time
print("SPENT", time.process_time())
"""


@pytest.mark.parametrize(
    ("lines", "rooms", "libraries"),
    [
        (RECORDS, ["records"], []),
        (GRAPH, ["records", "graph"], []),
        (RDF, ["rdf"], ["pyoxigraph"]),
        (XML, ["xml"], ["lxml"]),
    ],
    ids=["records", "graph", "rdf", "xml"],
)
def test_the_first_match_loads_its_room_and_no_other(
    lines: str, rooms: list[str], libraries: list[str]
) -> None:
    # The first try may compile kernels, the others find them. Arrow loads pandas where that is installed: it
    # comes with Spark only.
    ran = best(f"import sys\n{SHUT}{FIRST.format(lines)}{_TOLD}", within=1.5)
    assert ran.code == 0, ran.errors
    assert {room for room, module in ROOMS.items() if module in ran.loaded} == set(rooms)
    assert {name for name in LIBRARIES if name in ran.loaded} == set(libraries)
    assert in_time(ran, 1.5)


def test_a_small_match_loads_neither_a_parser_nor_what_spark_brings(tmp_path: Path) -> None:
    (tmp_path / "subs.jsonl").write_text('{"id": "s1", "filter": "age > 30"}\n')
    (tmp_path / "events.jsonl").write_text('{"id": "e1", "age": 35}\n')
    said = ["--engine", "local", "--quiet"]
    compiled = command(
        *["compile", "--subscriptions", "subs.jsonl", "--output", "s", *said], folder=tmp_path, within=60
    )
    assert compiled.code == 0, compiled.errors
    matching = ["match", "--snapshot", "s", "--events", "events.jsonl", "--output", "m.jsonl", *said]
    ran = command(*matching, folder=tmp_path, within=1.5)
    assert ran.output.startswith("matched 1 events: 1 matches")
    assert ran.loaded.isdisjoint((*LIBRARIES, "rich"))
    ours = {name for name in ran.loaded if name.partition(".")[0] == "headgate"}
    assert len(ours) <= MOST_OF_OURS, "python -X importtime says what loads what"
    assert not [name for name in ours if name.startswith("headgate.ranking")]
    assert in_time(ran, 1.5)


NONE = "no such directory"
REFUSED: dict[str, tuple[list[str], str]] = {
    "validate": (["validate", "absent.jsonl"], "absent.jsonl does not exist"),
    "convert": (
        ["convert", "--from", "vespa", "absent.jsonl", "--output", "x.jsonl"],
        "absent.jsonl does not exist",
    ),
    "snapshot": (["snapshot", "info"], "Missing argument 'PATH'"),
    "serve": (["serve", "--data", "data", "--port", "70000"], "is not in the range 0<=x<=65535"),
    "service": (["service", "key", "add", "--data", "data"], "Missing option '--scope'"),
    "site": (["site", "--data", "data", "--port", "70000"], "is not in the range 0<=x<=65535"),
    "network": (["network", "status", "--sites", "nope.jsonl"], "nope.jsonl cannot be read: No such file"),
    "network-simulate": (["network", "simulate", "nope", "--output", "x.html"], "x.html is no picture"),
    "publish": (["publish", "--url", "localhost:8080"], "the address 'localhost:8080' is none of a service"),
    "listen": (["listen", "--url", "ftp://x"], "the address 'ftp://x' is none of a service"),
    "warm": (
        ["warm", "nope"],
        "'nope' is not a room with kernels: those are core, graph, network, papers, plan",
    ),
    "compile": (["compile", "--subscriptions", "nope.jsonl", "--output", "x"], "nope.jsonl does not exist"),
    "compile-graph": (
        ["compile", "--nodes", "nope.csv", "--edges", "e.csv", "--output", "x"],
        "nope.csv does not exist",
    ),
    "compile-taxonomy": (
        ["compile", "--subscriptions", "subs.jsonl", "--output", "x", "--taxonomy", "nope.ttl"],
        "nope.ttl cannot be read: No such file or directory",
    ),
    "compile-schema": (
        ["compile", "--subscriptions", "subs.jsonl", "--output", "x", "--schema", "nope.json"],
        "nope.json cannot be read: No such file or directory",
    ),
    "compile-types": (
        ["compile", "--subscriptions", "subs.jsonl", "--output", "x", "--schema", "types.json"],
        "schema: attribute a: ",
    ),
    "compile-sample": (
        ["compile", "--subscriptions", "subs.jsonl", "--output", "x", "--sample", "nope.csv"],
        "nope.csv does not exist",
    ),
    "compile-shards": (
        ["compile", "--subscriptions", "subs.jsonl", "--output", "x", "--shards", "2", "--shard-column", "a"],
        "shards by hash look at ids alone",
    ),
    "compile-conf": (
        ["compile", "--subscriptions", "subs.jsonl", "--output", "x", "--conf", "a"],
        "--conf a: write NAME=VALUE",
    ),
    "compile-master": (
        ["compile", "--subscriptions", "subs.jsonl", "--output", "x", "--master", "sc://a"],
        "master 'sc://a' is a Spark Connect server",
    ),
    "match": (["match", "--snapshot", "nope", "--events", "e.csv", "--output", "m.csv"], NONE),
    "plan": (["plan", "--snapshot", "nope", "--sample", "e.csv", "--output", "n"], NONE),
    "stream": (
        ["stream", "--snapshot", "nope", "--events", "in", "--output", "out", "--state", "state"],
        NONE,
    ),
    "backtest": (["backtest", "--filter", "a = 1", "--events", "nope.csv"], "nope.csv does not exist"),
    "backtest-documents": (
        ["backtest", "--filter", "//a", "--dialect", "xpath", "--events", "nope.xml"],
        "nope.xml does not exist",
    ),
    "backtest-changes": (
        ["backtest", "--changes", "nope.csv", "--subscriptions", "subs.jsonl", "--events", "e.csv"],
        "nope.csv does not exist",
    ),
    "backtest-snapshot": (
        ["backtest", "--changes", "subs.jsonl", "--snapshot", "nope", "--events", "e.csv"],
        NONE,
    ),
    "subscriptions": (
        ["subscriptions", "stats", "nope.parquet"],
        "nope.parquet does not exist: headgate match --stats nope.parquet writes it",
    ),
    "explain": (["explain", "--snapshot", "nope", "--subscription", "s1", "--event", "{}"], NONE),
    "explain-event": (["explain", "--filter", "a = 1", "--event", "{"], "not valid JSON"),
    "report-graph": (["report", "graph", "--snapshot", "nope", "--output", "x.svg"], NONE),
    "report-format": (["report", "graph", "--snapshot", "nope", "--output", "x.gif"], "let the name end in"),
    "report-plan": (["report", "plan", "--network", "nope", "--output", "x.svg"], NONE),
    "generate": (["generate", "records", "--output", "taken"], "is a directory that Headgate did not write"),
    "run": (["run", "nope.toml"], "File 'nope.toml' does not exist"),
    "run-file": (["run", "bad.toml"], "bad.toml: not valid TOML"),
    "run-until": (["run", "sound.toml", "--until", "nope"], "there is no step 'nope'"),
    "demo": (["demo", "--output", "taken"], "taken is not empty and not a demo's directory"),
}

SOUND = """
[pipeline]
name = "sound"

[subscriptions]
table = "subs.jsonl"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("start")
    (made / "subs.jsonl").write_text('{"id": "s1", "filter": "age > 30"}\n')
    (made / "types.json").write_text('{"a": "no such type"}')
    (made / "bad.toml").write_text("nonsense = [")
    (made / "sound.toml").write_text(SOUND)
    (made / "taken" / "subscriptions.jsonl").mkdir(parents=True)
    (made / "taken" / "subscriptions.jsonl" / "file").touch()
    return made


ONE_BY_ONE = """
import contextlib, io, json, sys
from headgate.cli import main

cases, large = json.loads(sys.argv[1])
for arguments in cases:
    sys.argv[1:] = arguments
    with contextlib.redirect_stderr(io.StringIO()) as errors:
        try:
            main()
        except SystemExit as end:
            code = end.code
    print(json.dumps([code, errors.getvalue(), [name for name in large if name in sys.modules]]))
"""


@pytest.fixture(scope="module")
def refusals(folder: Path) -> dict[str, tuple[int, str, list[str]]]:
    """Run all commands that are refused, in one process: what one of them loads, those after it have too."""
    ran = run(
        ONE_BY_ONE, json.dumps([[arguments for arguments, _ in REFUSED.values()], LARGE]), folder=folder
    )
    assert ran.code == 0, ran.errors
    return dict(zip(REFUSED, map(json.loads, ran.output.splitlines()), strict=True))


@pytest.mark.parametrize("case", REFUSED)
def test_arguments_are_refused_before_anything_large_is_loaded(
    case: str, refusals: dict[str, tuple[int, str, list[str]]]
) -> None:
    code, errors, loaded = refusals[case]
    assert code in {1, 2}
    assert errors.startswith("headgate: ")
    assert REFUSED[case][1] in errors
    assert errors.count("\n") == 1
    assert loaded == []


@pytest.mark.parametrize("case", ["compile", "stream", "backtest-snapshot", "explain", "report-plan"])
def test_arguments_are_refused_quickly(case: str, folder: Path) -> None:
    ran = command(*REFUSED[case][0], folder=folder, within=0.6)
    assert ran.code == 1
    assert ran.loaded.isdisjoint(LARGE)
    assert in_time(ran, 0.6)


def test_every_command_is_found_by_its_name() -> None:
    for module in iter_modules(commands.__path__):
        import_module(f"{commands.__name__}.{module.name}")
    homes = {name: f"{commands.__name__}.{home}" for name, home in HOMES.items()}
    assert {name: each.callback.__module__ for name, each in cli.commands.items() if each.callback} == homes


GROUP = """
import json, sys
from click import Context
from headgate.cli import cli
print(json.dumps(sorted(cli.get_command(Context(cli), sys.argv[1]).commands)))
"""


@pytest.mark.parametrize("name", ["generate", "network", "report", "service", "snapshot", "subscriptions"])
def test_a_group_that_is_found_by_its_name_has_all_its_commands(name: str) -> None:
    for module in iter_modules(commands.__path__):
        import_module(f"{commands.__name__}.{module.name}")
    group = cli.commands[name]
    assert isinstance(group, Group)
    assert json.loads(run(GROUP, name).output) == sorted(group.commands)


def test_a_command_that_there_is_not_is_told_with_those_like_it() -> None:
    ran = run("from headgate.cli import main; main()", "mach")
    assert (ran.code, ran.errors) == (
        2,
        "headgate: No such command 'mach'. Did you mean 'match'? (see headgate --help)\n",
    )


def test_every_command_is_tried() -> None:
    tried = {arguments[0] for arguments, _ in REFUSED.values()}
    # The doctor has no arguments that could be wrong.
    assert tried == set(HOMES) - {"doctor"}


def test_help_starts_quickly(folder: Path) -> None:
    ran = command("compile", "--help", folder=folder, within=0.4)
    assert ran.code == 0
    assert "Usage: headgate" in ran.output
    assert ran.loaded.isdisjoint((*LARGE, "numpy"))
    assert in_time(ran, 0.4)


HELP = """
import sys, click
from headgate.cli import cli

def show(command, name):
    command.main(["--help"], prog_name=name, standalone_mode=False)
    if isinstance(command, click.Group):
        context = click.Context(command)
        for each in command.list_commands(context):
            show(command.get_command(context, each), f"{name} {each}")

show(cli, "headgate")
"""


def test_no_help_loads_anything_large() -> None:
    ran = run(HELP + _TOLD)
    assert ran.code == 0
    assert "Usage: headgate generate rdf" in ran.output
    assert ran.loaded.isdisjoint((*LARGE, "numpy"))


def shut(program: str, folder: Path) -> Ran:
    """Run a program as if Spark were not installed."""
    return run(f"import sys\n{SHUT}\n{program}", folder=folder)


LIBRARY = f"""
from headgate import Dissemination, Edge, Engine, Event, Node, Subscription
from pathlib import Path
{RECORDS}
assert engine.match(event) == ["s1"]
engine.save(Path("records"))
assert Engine.open(Path("records")).match(event) == ["s1"]
{GRAPH}
assert engine.match(event) == ["s1"]
engine.save(Path("graph"))
ranked = Engine.build([Subscription("s1", "age > 30", score=1), Subscription("s2", "age > 20", score=2)])
assert [each.subscription for each in ranked.top(event, 2)] == ["s2", "s1"]
{RDF}
assert engine.match(event) == ["s1"]
{XML}
assert engine.match(event) == ["s1"]
given = [Subscription("s1", "//item{{id}}", "xpath"), Subscription("s2", "//item/price{{id}}", "xpath")]
plan = Dissemination.build(given, [event])
assert set(plan.deliver(event)) == {{"s1", "s2"}}
from headgate.workloads.catalogue import workload
import numpy as np
assert workload("advertising", 100).subscriptions(np.arange(10), 1).num_rows == 10
from headgate.cli import cli
for line in (
    ["explain", "--filter", "age > 30", "--event", '{{"age": 35}}'],
    ["explain", "--snapshot", "records", "--subscription", "s1", "--event", '{{"age": 35}}', "--quiet"],
    ["explain", "--why-not", "--snapshot", "records", "--event", '{{"age": 35}}', "--quiet"],
    ["report", "graph", "--snapshot", "graph", "--output", "graph.svg", "--quiet"],
):
    cli.main(line, standalone_mode=False)
assert not {{"pyspark", "pandas"}} & set(sys.modules)
print("done")
"""


def test_what_needs_no_spark_works_without_it(tmp_path: Path) -> None:
    ran = shut(LIBRARY, tmp_path)
    assert ran.output.endswith("done\n"), ran.errors
    assert (tmp_path / "graph.svg").is_file()


NEED = {
    "compile": ["compile", "--subscriptions", "subs.jsonl", "--output", "x", "--engine", "spark"],
    "backtest": ["backtest", "--filter", "age > 30", "--events", "subs.jsonl", "--engine", "spark"],
    "generate": ["generate", "records", "--output", "made", "--engine", "spark"],
    "run": ["run", "sound.toml", "--engine", "spark"],
    "demo": ["demo", "--output", "demo"],
}


def test_what_needs_spark_says_how_to_get_it(folder: Path) -> None:
    ran = run(f"import sys\n{SHUT}{ONE_BY_ONE}", json.dumps([list(NEED.values()), LARGE]), folder=folder)
    told = dict(zip(NEED, map(json.loads, ran.output.splitlines()), strict=True))
    words = "headgate: this needs pyspark, pandas: pip install 'headgate[spark]'\n"
    assert {name: found[:2] for name, found in told.items()} == {name: [1, words] for name in NEED}


def test_the_doctor_says_that_an_extra_is_not_installed(folder: Path) -> None:
    ran = shut("sys.argv[1:] = ['doctor', '--json']\nfrom headgate.cli import main\nmain()", folder)
    assert ran.code == 0
    found = {each["name"]: each for each in json.loads(ran.output)["findings"]}
    assert found["[spark]"]["advice"] == "pip install 'headgate[spark]'"
    assert found["[spark]"]["found"] == "not installed"
    assert "Java" not in found


WITHOUT_EXTRAS = SHUT.replace(
    '"py4j"', '"scipy", "highspy", "matplotlib", "jinja2", "lxml", "pyoxigraph", "urllib3", "apsw"'
)
"""As if the base were installed alone."""
ASKED_OF_EXTRAS = """
from headgate import Dissemination, Edge, Engine, Event, Node, Subscription
rows = [Subscription(name, "age > 30", node="n") for name in "st"]
event = Event("e", {"age": 35})
print(Engine.build([Subscription("s", "age > 30")]).match(event))
for ask in (
    lambda: Engine.build([Subscription("s", "ASK { ?x a <urn:a> }", "sparql")]),
    lambda: Engine.build([Subscription("s", "//a", "xpath")]),
    lambda: Engine.build(rows, nodes=[Node("m"), Node("n")], edges=[Edge("m", "n")]),
    lambda: Dissemination.build(rows, [event]),
):
    try:
        ask()
    except Exception as error:
        print(error)
"""


def test_a_library_without_extras_matches_records_and_says_what_else_it_takes(folder: Path) -> None:
    ran = run(f"import sys\n{WITHOUT_EXTRAS}{ASKED_OF_EXTRAS}", folder=folder)
    assert ran.code == 0, ran.errors
    assert ran.output.splitlines() == [
        "['s']",
        "this needs pyoxigraph: pip install 'headgate[rdf]'",
        "this needs lxml: pip install 'headgate[xml]'",
        "this needs scipy: pip install 'headgate[graph]'",
        "this needs highspy, scipy: pip install 'headgate[plan]'",
    ]
    for line, words in {
        "serve --demo": "apsw, jinja2, scipy, highspy: pip install 'headgate[service,graph,plan]'",
        "publish --url http://localhost:1": "urllib3: pip install 'headgate[client]'",
        "report graph --snapshot x --output x.svg": (
            "jinja2, matplotlib, scipy: pip install 'headgate[report,graph]'"
        ),
    }.items():
        start = f"sys.argv[1:] = {line.split()}\nfrom headgate.cli import main\nmain()"
        ran = run(f"import sys\n{WITHOUT_EXTRAS}{start}", folder=folder)
        assert ran.errors == f"headgate: this needs {words}\n"
