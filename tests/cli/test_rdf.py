"""RDF on the command line: compile, match, backtest, explain and report, in this process."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from headgate import Edge, Engine, Node, Subscription, Taxonomy
from headgate.core.snapshot import open_snapshot
from headgate.rdf.index.index import RdfIndex
from headgate.rdf.language.model import SUBCLASS
from headgate.records.index.index import RecordIndex
from tests.spark.files import get_lines, put, put_lines, put_table

if TYPE_CHECKING:
    from tests.cli.running import Command

EX = "http://example.org/"
PREFIX = f"PREFIX : <{EX}> PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#> "
ART = f"{PREFIX} SELECT ?x ?y {{ ?x a/rdfs:subClassOf* :Art ; :year ?y FILTER(?y > 2000) }}"
DOCUMENT = f"@prefix : <{EX}> . :a a :Painting ; :year 2001, 2002, 1990 ."
TAXONOMY = (
    f"@prefix : <{EX}> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . "
    ':Painting rdfs:subClassOf :Art ; rdfs:label "Painting" .'
)
FEED = (
    '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/">'
    f'<channel rdf:about="{EX}"><title>c</title></channel>'
    f'<item rdf:about="{EX}1"><title>one</title></item><item rdf:about="{EX}2"><title>two</title></item>'
    "</rdf:RDF>"
)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a folder with patterns, documents and a taxonomy."""
    monkeypatch.chdir(tmp_path)
    subs = [
        {"id": "art", "filter": ART},
        {"id": "bad", "filter": "ASK { ?x"},
        {"id": "all", "filter": "ASK {}"},
    ]
    put_table(tmp_path / "p.csv", subs)
    put(tmp_path / "art.ttl", TAXONOMY)
    put(tmp_path / "d" / "one.ttl", DOCUMENT)
    put(tmp_path / "d" / "bad.ttl", "<")
    put(tmp_path / "d" / "news.rss", FEED.replace("<rdf:RDF ", "<rss><rdf:RDF "))
    return tmp_path


@pytest.mark.usefixtures("spark", "files")
def test_from_tables_to_matches(headgate: Command) -> None:
    compiling = (
        "compile",
        "--subscriptions",
        "p.csv",
        "--output",
        "rdf",
        "--quiet",
        "--dialect",
        "sparql",
    )
    ran = headgate(*compiling, "--taxonomy", "art.ttl")
    assert (ran.code, ran.err) == (0, "")
    terms = open_snapshot(Path("rdf"), "rdf").counts["terms"]
    counts = f"2 subscriptions in 2 patterns over {terms} terms"
    assert ran.out.splitlines() == [
        f"compiled {counts} and a taxonomy of 1 statements (1 others left out) to rdf",
        "refused 1 rows, with the reasons in rdf-rejected.jsonl",
    ]
    ran = headgate("match", "--snapshot", "rdf", "--events", "d", "--output", "matches.jsonl", "--quiet")
    assert (ran.code, ran.err) == (0, "")
    said = ran.out.splitlines()
    assert said[0] == "matched 3 events: 4 matches in matches.jsonl"
    assert said[1] == "refused 1 events, with the reasons in matches-rejected.jsonl"
    assert said[2].startswith("note: 1 of 1 feeds are not well-formed and were read leniently, with ")
    found = sorted((row["event_id"], row["subscription_id"]) for row in get_lines("matches.jsonl"))
    assert found == [("news.rss#1", "all"), ("news.rss#2", "all"), ("one.ttl", "all"), ("one.ttl", "art")]
    backtest = ("backtest", "--filter", ART, "--dialect", "sparql", "--events", "d", "--quiet")
    ran = headgate(*backtest, "--taxonomy", "art.ttl", "--output", "found.jsonl")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines()[:3] == [
        "1 of 3 events match (33.33%)",
        "for example one.ttl",
        "1 lines could not be read",
    ]
    assert ran.out.splitlines()[-1] == "the matching events are in found.jsonl"
    (row,) = get_lines("found.jsonl")
    assert row == {"id": "one.ttl", "source": None, "datacontenttype": "text/turtle", "data": DOCUMENT}
    assert headgate(*backtest, "--json").json["matches"] == 0


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("command", "code", "reason"),
    [
        ("compile --subscriptions p.csv --output r --taxonomy x.ttl", 1, "x.ttl cannot be read: No such"),
        ("compile --subscriptions p.csv --output r --taxonomy README", 1, "format of README is not clear"),
        ("compile --subscriptions p.csv --output r --taxonomy d/bad.ttl", 1, "d/bad.ttl: not"),
        ("compile --subscriptions p.csv --output r --dialect xslt", 2, "is not one of 'sql', 'labels', "),
        ("compile --subscriptions p.csv --output r --coerce --schema s.json", 1, "are for filters of"),
        ("match --snapshot rdf --events d/none --output m.jsonl", 1, "d/none does not exist"),
        ("match --snapshot rdf --events d --output m.jsonl --format html", 2, "is not one of 'turtle', 'nt'"),
        ("match --snapshot records --events e.jsonl --output m.jsonl --format nt", 1, "leave out --format"),
        ("backtest --filter TRUE --events p.csv --taxonomy art.ttl", 2, "--taxonomy is for filters of RDF"),
        ("backtest --filter ASK --dialect sparql --events d", 1, "at character"),
        ("explain --filter TRUE --event {} --bindings 1", 2, "--bindings is for filters of RDF, and these"),
        ("explain --snapshot rdf --subscription a --event one.ttl", 1, "one.ttl does not exist"),
        ("explain --snapshot rdf --subscription a --event {}", 1, "the event is a record, and these filters"),
        ("explain --filter TRUE --event data.json", 1, "is text/turtle and these filters look at records"),
        ("explain --filter ASK{} --dialect sparql --event twice.json", 1, "names that differ in case only"),
        ("explain --snapshot rdf --subscription a --event x", 2, "--event: say --format, or name a file"),
        ("explain --snapshot rdf --subscription a --event d/news.rss", 1, "the feed has 2 items"),
        ("explain --snapshot rdf --subscription a --event d/one.ttl --item 1", 2, "--item is for feeds"),
        ("explain --snapshot rdf --subscription a --event x --format nt --coerce", 2, "a snapshot has"),
        ("explain --snapshot rdf --why-not --event d/one.ttl", 1, "--why-not looks at records"),
        ("explain --snapshot rdf --why-not --event d/one.ttl --bindings 1", 2, "--bindings goes with"),
        ("explain --snapshot rdf --subscription a --event d/bad.ttl", 1, "not valid Turtle"),
        ("explain --filter x --dialect sparql --event d/one.ttl", 1, "at character 1"),
    ],
)  # fmt: skip
def test_what_is_refused_before_spark_starts(
    headgate: Command, monkeypatch: pytest.MonkeyPatch, command: str, code: int, reason: str
) -> None:
    from headgate.spark.session import session

    monkeypatch.setattr(session, "open_session", lambda *_, **__: pytest.fail("Spark would have started"))
    RdfIndex.build([Subscription("a", ART, "sparql")]).save(Path("rdf"))
    RecordIndex.build([Subscription("s", "TRUE")]).save(Path("records"))
    put_lines(Path("e.jsonl"), [{"id": 1}])
    put(Path("s.json"), "{}")
    put(Path("data.json"), '{"Data": "", "datacontenttype": "turtle"}')
    put(Path("twice.json"), '{"Data": "", "DATA": "", "datacontenttype": "turtle"}')
    ran = headgate(*command.split())
    assert ran.code == code
    assert reason in ran.complaint


@pytest.mark.usefixtures("files")
def test_explain_a_filter(headgate: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = ("explain", "--filter", ART, "--dialect", "sparql", "--taxonomy", "art.ttl", "--bindings", "5")
    ran = headgate(*asked, "--event", "d/one.ttl")
    assert (ran.code, ran.err) == (0, "")
    said = ran.out.splitlines()
    assert said[0] == "match"
    assert said[-4:] == [
        "bindings: 2",
        "  ?x                       ?y",
        "  <http://example.org/a>   2001",
        "  <http://example.org/a>   2002",
    ]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(DOCUMENT.encode())))
    ran = headgate(*asked[:-1], "1", "--event", "-", "--format", "turtle")
    assert ran.out.splitlines()[-3] == "bindings: the first 1"
    row = json.dumps({"id": 7, "data": DOCUMENT, "datacontenttype": "text/turtle"})
    found = headgate(*asked, "--event", row, "--json").json
    assert found["matches"] is True
    assert found["bindings"]["names"] == ["?x", "?y"]
    assert len(found["bindings"]["rows"]) == 2
    assert found["bindings"]["complete"] is True
    ran = headgate(*asked, "--event", DOCUMENT.replace("Painting", "Song"), "--format", "turtle")
    assert ran.out.startswith("no match")
    assert ran.out.splitlines()[-1] == "no bindings"
    year = f'@prefix : <{EX}> . :a a :Art ; :year "2001" .'
    for more, verdict in (([], "no match"), (["--coerce"], "match")):
        assert headgate(*asked, "--event", year, "--format", "turtle", *more).out.startswith(verdict)
    two = "ASK { ?x <urn:p> ?y . ?z <urn:p> ?y }"
    edge = ("explain", "--filter", two, "--dialect", "sparql", "--event", "<urn:a> <urn:p> <urn:b> .")
    for more, verdict in (([], "match"), (["--injective"], "no match")):
        assert headgate(*edge, "--format", "nt", *more).out.startswith(verdict)


@pytest.mark.usefixtures("files")
def test_explain_items_of_feeds(headgate: Command) -> None:
    title = 'ASK { ?x <http://purl.org/rss/1.0/title> "two" }'
    asked = ("explain", "--filter", title, "--dialect", "sparql", "--event", "d/news.rss", "--item")
    assert headgate(*asked, "1").out.startswith("no match")
    assert headgate(*asked, "2").out.startswith("match")
    assert headgate(*asked, "3").complaint.startswith("the feed has 2 items: say with --item which")


def build(kind: str) -> Engine:
    taxonomy = Taxonomy.of([(f"<{EX}Painting>", SUBCLASS, f"<{EX}Art>")])
    more: dict[str, Any] = {}
    if "graph" in kind:
        gate = Node(2, f"{PREFIX} ASK {{ ?x :year ?y FILTER(?y < 1995) }}", dialect="sparql")
        more = {"nodes": [Node(1), gate], "edges": [Edge(1, 2)]}
    asked = Subscription("art", ART, "sparql", node=2 if "graph" in kind else None)
    return Engine.build([asked], ranked="ranked" in kind, taxonomy=taxonomy, **more)


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("kind", ["plain", "ranked", "graph", "ranked graph"])
def test_explain_a_snapshot(headgate: Command, kind: str) -> None:
    build(kind).save(Path("rdf"))
    source = ("--source", "1") if "graph" in kind else ()
    asked = ("explain", "--snapshot", "rdf", "--subscription", "art", *source)
    ran = headgate(*asked, "--event", "d/one.ttl", "--bindings", "9")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("match")
    assert ran.out.splitlines()[-4] == "bindings: 2"
    assert headgate(*asked, "--event", "d/one.ttl", "--json").json["matches"] is True
    ran = headgate(
        *asked, "--event", DOCUMENT.replace("1990", "1999"), "--format", "turtle", "--bindings", "9"
    )
    last = "no bindings" if "graph" in kind else "  <http://example.org/a>   2002"
    assert ran.out.splitlines()[-1] == last
    if kind == "graph":
        drawn = ("report", "graph", "--snapshot", "rdf", "--output", "way.svg", "--event", "d/one.ttl")
        ran = headgate(*drawn, *source, "--json", "--quiet")
        assert (ran.json["reached"], ran.json["subscriptions"]) == (2, 1)
    elif "ranked" in kind:
        ran = headgate(*asked, "--event", "d/one.ttl", "--rank", "1", "--mode", "relaxed", "--json")
        assert (ran.json["rank"], ran.json["value"]) == (1, 3.0)
