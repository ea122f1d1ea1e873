"""Planning on the command line: from a snapshot and a sample to a network and its picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from headgate import Edge, Engine, Node, Subscription
from headgate.records.index.index import RecordIndex
from headgate.xml.index.index import XmlIndex
from tests.spark.files import put, put_lines

if TYPE_CHECKING:
    from tests.cli.running import Command

FILTERS = {
    "whole": "//news{val}[company{val}][author{val}]//title{val}",
    "titles": "//news//title{val}",
    "acme": "//news[company = 'ACME'][author]//title{val}",
    "authors": "//news[author{val}][company]//title",
}
DOCUMENT = "<news><company>ACME</company><author>Bo</author><title>Up</title></news>"


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a folder with compiled subscriptions and a sample."""
    monkeypatch.chdir(tmp_path)
    XmlIndex.build([Subscription(name, text, "xpath") for name, text in FILTERS.items()]).save(Path("xml"))
    put(tmp_path / "d" / "one.xml", DOCUMENT)
    put(tmp_path / "d" / "two.xml", DOCUMENT.replace("ACME", "Other"))
    put(tmp_path / "d" / "bad.xml", "<news>")
    return tmp_path


@pytest.mark.usefixtures("spark", "files")
def test_from_a_snapshot_to_a_picture(headgate: Command) -> None:
    planning = ("plan", "--snapshot", "xml", "--sample", "d", "--output", "network", "--quiet")
    ran = headgate(*planning, "--fan-out", "3", "--source-fan-out", "2", "--report", "plan.html")
    assert (ran.code, ran.err) == (0, "")
    said = ran.out.splitlines()
    assert said[0].startswith("planned 4 views from 2 events: ")
    assert "refused 1 rows of the sample" in ran.out
    assert said[-2:] == ["the network is in network", "drawn in plan.html"]
    rows = {row["view"]: row for row in pq.read_table("network/views.parquet").to_pylist()}
    # Whether authors and companies are there is not told by titles alone.
    assert rows["whole"]["inputs"] == []
    assert rows["acme"]["inputs"] == rows["authors"]["inputs"] == ["whole"]
    assert rows["acme"]["level"] == 2
    assert sum(not row["inputs"] for row in rows.values()) <= 2
    assert "headgate" in Path("plan.html").read_text("utf-8")
    told = headgate("report", "plan", "--network", "network", "--output", "again.svg", "--json").json
    assert told == {"views": 4, "output": "again.svg"}
    again = headgate(*planning, "--source-fan-out", "2", "--json").json
    assert (again["views"], again["rejected"], again["rejected_table"]) == (4, 1, "network-rejected.jsonl")
    ran = headgate(*planning, "--source-fan-out", "0")
    assert ran.code == 1
    assert len(ran.err.strip().splitlines()) == 1


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("command", "code", "reason"),
    [
        ("plan --snapshot none --sample d --output n", 1, "none is not a snapshot"),
        ("plan --snapshot xml --sample none.jsonl --output n", 1, "none.jsonl does not exist"),
        ("plan --snapshot xml --sample d --output d", 1, "d is named twice"),
        ("plan --snapshot xml --sample d --output n --report plan.pdf", 1, "let it end in .html"),
        ("plan --snapshot xml --sample d --output n --format turtle", 1, "is not a format of XML"),
        ("plan --snapshot records --sample s.jsonl --output n --format xml", 1, "leave out --format"),
        ("plan --snapshot xml --sample d --output n --carries key", 1, "is for views over records"),
        ("plan --snapshot graph --sample d --output n", 1, "give a snapshot of the subscriptions"),
        ("plan --snapshot xml --sample d --output n --fan-out -1", 2, "--fan-out"),
        ("report plan --network xml --output plan.html", 1, "is a snapshot of 'xml', not of 'plan'"),
    ],
)  # fmt: skip
def test_what_is_refused_before_spark_starts(
    headgate: Command, monkeypatch: pytest.MonkeyPatch, command: str, code: int, reason: str
) -> None:
    from headgate.spark.session import session

    monkeypatch.setattr(session, "open_session", lambda *_, **__: pytest.fail("Spark would have started"))
    RecordIndex.build([Subscription("s", "TRUE")]).save(Path("records"))
    put_lines(Path("s.jsonl"), [{"id": 1}])
    hanging = [Subscription("s", "//a", "xpath", node="n")]
    Engine.build(hanging, nodes=[Node("p"), Node("n")], edges=[Edge("p", "n")]).save(Path("graph"))
    ran = headgate(*command.split())
    assert (ran.code, reason in ran.err) == (code, True), ran.err
    assert len(ran.err.strip().splitlines()) == 1


def test_one_file_has_ranks_and_a_plan(
    headgate: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plan of ranked subscriptions is that of the same ones without ranks."""
    monkeypatch.chdir(tmp_path)
    filters = {
        "c": "price < 90",
        "a": "price < 50 AND topic = 'art'",
        "b": "price < 50",
        "d": "topic = 'art'",
    }
    rows = [{"id": name, "filter": text, "score": len(text) % 7} for name, text in filters.items()]
    put_lines(Path("subs.jsonl"), [*rows, {"id": "bad", "filter": "price < 1", "score": "high +"}])
    put_lines(Path("events.jsonl"), [{"id": n, "price": n, "topic": "art"} for n in range(0, 100, 10)])
    text = (
        '[subscriptions]\ntable = "subs.jsonl"\n[events]\ntable = "events.jsonl"\n[match]\ntop = 2\n[plan]\n'
    )
    put(Path("p.toml"), f"{text}fan_out = 3\nsource_fan_out = 2\n")
    assert headgate("run", "p.toml", "--quiet").code == 0
    assert {row["rank"] for row in pq.read_table("p/matches.parquet").to_pylist()} == {1, 2}
    RecordIndex.build([Subscription(name, text) for name, text in filters.items()]).save(Path("plain"))
    planning = "plan --snapshot plain --sample events.jsonl --output network --quiet"
    assert headgate(*planning.split(), "--fan-out", "3", "--source-fan-out", "2").code == 0
    planned, plain = (
        pq.read_table(f"{place}/views.parquet").to_pylist() for place in ("p/network", "network")
    )
    assert planned == plain
    assert sorted(row["view"] for row in planned) == sorted(filters)
    assert any(row["inputs"] for row in planned)
