"""A kind of content that Headgate does not know goes every way that records, RDF and XML go."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from headgate import Edge, Engine, Event, Node, Subscription
from headgate.contents import registry
from headgate.core import event as events
from headgate.core import subscription as subscriptions
from headgate.errors import FilterError, SubscriptionError
from tests.contents.lines_kind import KIND
from tests.docs.fences import ROOT
from tests.spark.classes import java_options
from tests.spark.files import get_lines, put, put_lines

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MODULE = "tests.contents.lines_kind"
FILTERS = {"all": "*", "error": "ERROR", "disk": "ERROR disk", "warning": "WARN"}
LINES = {"1": "ERROR disk full", "2": "WARN slow", "3": "INFO up", "4": "ERROR net"}


def expected(names: set[str] | None = None) -> dict[str, list[str]]:
    """Say by the words of the definition who gets which line."""
    return {
        identity: sorted(
            name
            for name, text in FILTERS.items()
            if (text == "*" or line.startswith(text)) and (names is None or name in names)
        )
        for identity, line in LINES.items()
    }


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Name the module, as `--kinds` does, and forget the kind afterwards."""
    monkeypatch.setenv(registry.MODULES, MODULE)
    monkeypatch.setattr(subscriptions, "_dialects", [*subscriptions._dialects])  # noqa: SLF001 -- put back
    monkeypatch.setattr(events, "_KNOWN", {**events._KNOWN})  # noqa: SLF001 -- put back
    monkeypatch.setattr(events, "_OTHERS", [*events._OTHERS])  # noqa: SLF001 -- put back
    registry.kinds.cache_clear()
    yield
    registry.kinds.cache_clear()


def subscribed(**more: object) -> list[Subscription]:
    """Make the subscriptions."""
    found: list[Subscription] = []
    for number, (name, text) in enumerate(FILTERS.items()):
        found.append(Subscription(name, text, "prefix", score=float(number), **more))  # type: ignore[arg-type]
    return found


def line(identity: str, source: str | None = None) -> Event:
    """Make an event."""
    return Event(identity, LINES[identity], source=source, content_type="line")


def test_the_library(tmp_path: Path) -> None:
    engine = Engine.build(subscribed(), ranked=False)
    assert {each: engine.match(line(each)) for each in LINES} == expected()
    engine.unsubscribe("all")
    engine.subscribe(Subscription("info", "INFO", "prefix"))
    engine.save(tmp_path / "snapshot")
    opened = Engine.open(tmp_path / "snapshot")
    assert opened.match(line("3")) == ["info"]
    assert opened.explain(line("3"), "error").lines() == ["no match: ERROR does not hold"]
    with pytest.raises(FilterError, match="a prefix is empty"):
        engine.subscribe(Subscription("none", "", "prefix"))


def test_a_graph_and_ranks(tmp_path: Path) -> None:
    nodes = [Node("pub"), Node("errors", "ERROR", dialect="prefix"), Node("others")]
    edges = [Edge("pub", "errors"), Edge("pub", "others")]
    given = [
        Subscription(
            each.id, each.filter, each.dialect, "errors" if each.id != "warning" else "others", each.score
        )
        for each in subscribed()
    ]
    Engine.build(given, nodes=nodes, edges=edges, ranked=True).save(tmp_path / "graph")
    engine = Engine.open(tmp_path / "graph")
    assert engine.match(line("4", "pub")) == ["all", "error"]
    assert engine.match(line("3", "pub")) == []
    assert engine.match(line("2", "pub")) == ["warning"]
    assert [each.subscription for each in engine.top(line("1", "pub"), 2)] == ["disk", "error"]
    ranked = Engine.build(subscribed())
    assert [each.subscription for each in ranked.top(line("1"), 2)] == ["disk", "error"]
    relaxed = ranked.top(line("2"), 5, "relaxed")
    assert {each.subscription for each in relaxed} == {"all", "warning"}


def test_it_is_one_content_of_several() -> None:
    assert registry.content_of(["prefix"], "the filters") == KIND.name
    assert registry.titles() == "records, of RDF, of XML, of lines of text"
    engine = Engine.build([*subscribed(), Subscription("r", "a = 1")])
    assert (engine.match(line("4")), engine.match({"a": 1})) == (["all", "error"], ["r"])
    with pytest.raises(SubscriptionError, match="nothing is both"):
        registry.content_of(["prefix", "sql"], "the views")


@pytest.mark.parametrize(
    ("module", "why"),
    [
        ("nowhere.at_all", "cannot be imported"),
        ("tests.contents.test_fourth_kind", "is taken"),
        ("json", "has no KIND"),
    ],
)
def test_bad_kinds(monkeypatch: pytest.MonkeyPatch, module: str, why: str) -> None:
    registry.kinds.cache_clear()
    monkeypatch.setenv(registry.MODULES, f"{MODULE},{module}")
    with pytest.raises(SubscriptionError, match=why):
        registry.kinds()


def test_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--kinds` names the module, and `--dialect` and `--format` know what it speaks."""
    monkeypatch.delenv(registry.MODULES)
    event = put(tmp_path / "1.txt", LINES["1"])
    asked = ["explain", "--filter", "ERROR", "--dialect", "prefix", "--event", event]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    for words, code, told in (
        (["--kinds", MODULE, *asked], 0, "match: ERROR"),
        (["--kinds", MODULE, *asked, "--format", "xml"], 1, "'xml' is not a format of lines of text"),
        (asked, 2, "'prefix' is not one of"),
        (["--kinds", "nowhere", *asked], 1, "module 'nowhere' cannot be imported"),
    ):
        command = [sys.executable, "-c", "from headgate.cli import main; main()", *words]
        ran = subprocess.run(command, text=True, capture_output=True, env=env, check=False)
        assert (ran.returncode, told in ran.stdout + ran.stderr) == (code, True), ran.stderr


JOBS = """
import sys
from headgate.cli import cli

for line in sys.stdin.read().splitlines():
    cli.main(line.split(), standalone_mode=False)
"""
ON_SPARK = """
from headgate.spark.session.session import close_session, open_session
from tests.conftest import SMALL_TABLES

small = {name: value for name, value in SMALL_TABLES.items() if name.startswith("spark.sql.")}
session = open_session("local[1]", settings=small)
%s
close_session(session)
"""


@pytest.mark.parametrize(
    "engine", ["local", pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.nightly])]
)
def test_the_jobs(tmp_path: Path, engine: str) -> None:
    """Compile, match, stream and explain, in a program that is told the module."""
    rows = [{"id": name, "filter": text, "score": 1.0} for name, text in FILTERS.items()]
    put_lines(tmp_path / "subs.jsonl", [*rows, {"id": "bad", "filter": ""}])
    for identity, text in LINES.items():
        put(tmp_path / "events" / f"{identity}.txt", text)
    put(tmp_path / "events" / "5.txt", "two\nlines")
    snapshot, cut = f"--snapshot {tmp_path}/snapshot", f"--snapshot {tmp_path}/cut"
    compiled = f"compile --subscriptions {tmp_path}/subs.jsonl --dialect prefix --quiet --engine {engine}"
    to = f"--events {tmp_path}/events --quiet --engine {engine} --output {tmp_path}"
    commands = [
        f"{compiled} --output {tmp_path}/snapshot --no-ranked",
        f"{compiled} --output {tmp_path}/cut --ranked --shards 2",
        f"match {snapshot} {to}/matches.jsonl",
        f"match {cut} {to}/best.jsonl --top 1",
        f"stream {snapshot} {to}/out --state {tmp_path}/state --once --files jsonl",
    ]
    path = os.pathsep.join([str(ROOT), *sys.path])
    env = {**os.environ, **java_options(), "PYTHONPATH": path, "HEADGATE_SIGNATURES": ""}
    ran = subprocess.run(
        [sys.executable, "-c", JOBS if engine == "local" else ON_SPARK % JOBS],
        input="\n".join(commands),
        text=True,
        capture_output=True,
        env=env,
        cwd=tmp_path,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert "compiled 4 subscriptions of lines of text, which are asked one after another" in ran.stdout
    found: dict[str, list[str]] = {f"{identity}.txt": [] for identity in LINES}
    for row in get_lines(tmp_path / "matches.jsonl"):
        found[str(row["event_id"])].append(str(row["subscription_id"]))
    assert {name: sorted(ids) for name, ids in found.items()} == {
        f"{identity}.txt": ids for identity, ids in expected().items()
    }
    # All scores are equal: the first id is the best.
    best = {row["event_id"]: row["subscription_id"] for row in get_lines(tmp_path / "best.jsonl")}
    assert best == {f"{identity}.txt": ids[0] for identity, ids in expected().items()}
    streamed = [
        (row["event_id"], row["subscription_id"])
        for part in sorted((tmp_path / "out").glob("*.jsonl"))
        for row in map(json.loads, part.read_text("utf-8").splitlines())
    ]
    assert sorted(streamed) == sorted(
        (f"{identity}.txt", each) for identity, ids in expected().items() for each in ids
    )
    (part,) = (tmp_path / "out-dead-letters").glob("*.jsonl")
    dead = json.loads(part.read_text("utf-8"))
    assert dead["kind"] == "malformed"
    assert dead["reason"] == "the text has more than one line: send each by itself"
