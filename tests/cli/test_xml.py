"""XML on the command line: compile, match, backtest and explain, in this process."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from headgate import Edge, Engine, Node, Subscription
from headgate.rdf.index.index import RdfIndex
from headgate.records.index.index import RecordIndex
from headgate.xml.index.index import XmlIndex
from tests.spark.files import get_lines, put, put_table

if TYPE_CHECKING:
    from tests.cli.running import Command

ACME = "//news[company = 'ACME'][author{val}]//headline{cont}"
DOCUMENT = (
    "<feed><news><company>ACME</company><author>Bo</author><author>Al</author>"
    "<p><headline>Shares <b>rise</b></headline></p></news></feed>"
)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a folder with patterns and documents."""
    monkeypatch.chdir(tmp_path)
    subs = [
        {"id": "acme", "filter": ACME},
        {"id": "bad", "filter": "//news["},
        {"id": "all", "filter": "/*{}"},
    ]
    put_table(tmp_path / "p.csv", subs)
    put(tmp_path / "d" / "one.xml", DOCUMENT)
    put(tmp_path / "d" / "bad.xml", "<a>")
    return tmp_path


@pytest.mark.usefixtures("spark", "files")
def test_from_tables_to_matches_and_tuples(headgate: Command) -> None:
    ran = headgate("compile", "--subscriptions", "p.csv", "--dialect", "xpath", "--output", "xml", "--quiet")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines() == [
        "compiled 2 subscriptions over 5 paths of 5 labels to xml",
        "refused 1 rows, with the reasons in xml-rejected.jsonl",
    ]
    matching = ("match", "--snapshot", "xml", "--events", "d", "--output", "m.jsonl", "--quiet")
    ran = headgate(*matching, "--tuples", "t.jsonl")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines() == [
        "matched 1 events: 2 matches in m.jsonl",
        "refused 1 events, with the reasons in m-rejected.jsonl",
        "what the patterns return is in t.jsonl",
    ]
    found = sorted((row["event_id"], row["subscription_id"]) for row in get_lines("m.jsonl"))
    assert found == [("one.xml", "acme"), ("one.xml", "all")]
    told = [(row["tuple"], row["name"], row["value"]) for row in get_lines("t.jsonl")]
    headline = "<headline>Shares <b>rise</b></headline>"
    assert told == [
        (1, "author.val", "Bo"),
        (1, "headline.cont", headline),
        (2, "author.val", "Al"),
        (2, "headline.cont", headline),
    ]
    ran = headgate("backtest", "--filter", ACME, "--dialect", "xpath", "--events", "d", "--quiet")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines() == [
        "1 of 1 events match (100.00%)",
        "for example one.xml",
        "1 lines could not be read",
    ]


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("command", "code", "reason"),
    [
        ("match --snapshot xml --events d --output m.jsonl --format turtle", 1, "is not a format of XML"),
        ("match --snapshot rdf --events d --output m.jsonl --tuples t.jsonl", 1, "tuples are of XML"),
        ("match --snapshot records --events p.csv --output m.jsonl --tuples t.csv", 1, "tuples are of XML"),
        ("backtest --filter //a --dialect xpath --events d --taxonomy x.ttl", 2, "--taxonomy is for"),
        ("backtest --filter //a[ --dialect xpath --events d", 1, "at character"),
        ("explain --filter //a --dialect xpath --event d/one.xml --bindings 1", 2, "and these look at XML"),
        ("explain --filter TRUE --event {} --tuples 1", 2, "--tuples is for filters of XML, and these"),
        ("explain --snapshot xml --subscription a --event {}", 1, "the event is a record, and these filters"),
        ("explain --snapshot xml --subscription a --event none.xml", 1, "none.xml does not exist"),
        ("explain --snapshot xml --why-not --event d/one.xml", 1, "--why-not looks at records"),
        ("explain --snapshot xml --subscription a --event d/bad.xml", 1, "not valid XML"),
    ],
)  # fmt: skip
def test_what_is_refused_before_spark_starts(
    headgate: Command, monkeypatch: pytest.MonkeyPatch, command: str, code: int, reason: str
) -> None:
    from headgate.spark.session import session

    monkeypatch.setattr(session, "open_session", lambda *_, **__: pytest.fail("Spark would have started"))
    XmlIndex.build([Subscription("a", ACME, "xpath")]).save(Path("xml"))
    RdfIndex.build([Subscription("a", "ASK {}", "sparql")]).save(Path("rdf"))
    RecordIndex.build([Subscription("s", "TRUE")]).save(Path("records"))
    ran = headgate(*command.split())
    assert ran.code == code
    assert reason in ran.err
    assert len(ran.err.strip().splitlines()) == 1


@pytest.mark.usefixtures("files")
def test_why_and_what_is_returned(headgate: Command) -> None:
    asked = ("explain", "--filter", ACME, "--dialect", "xpath", "--tuples", "1")
    ran = headgate(*asked, "--event", "d/one.xml")
    assert (ran.code, ran.err) == (0, "")
    said = ran.out.splitlines()
    assert said[0] == "match"
    assert said[-3:] == [
        "tuples: the first 1",
        "  author.val   headline.cont",
        "  Bo           <headline>Shares <b>rise</b></headline>",
    ]
    found = headgate(*asked, "--event", DOCUMENT.replace("ACME", "Other"), "--json").json
    assert (found["matches"], found["tuples"]) == (False, {"rows": [], "complete": True})
    index = [Subscription("acme", ACME, "xpath", node="net")]
    gate = Node("net", filter="//company[starts-with(., 'AC')]", dialect="xpath")
    Engine.build(index, nodes=[Node("pub"), gate], edges=[Edge("pub", "net")]).save(Path("graph"))
    graph = (
        "explain",
        "--snapshot",
        "graph",
        "--subscription",
        "acme",
        "--tuples",
        "9",
        "--event",
        "d/one.xml",
    )
    assert "tuples: 2" in headgate(*graph, "--source", "pub").out.splitlines()
    assert headgate(*graph, "--source", "other").code == 1


WHOLE = [
    {"id": "s1", "filter": "//p:item[price > 10 or @sale][1]", "dialect": "xpath"},
    {"id": "s2", "filter": "//item[2]/name", "dialect": "xpath"},
    {"id": "s3", "filter": "not(//zzz)", "dialect": "xpath"},
    {"id": "s4", "filter": "//item/name", "dialect": "xpath"},
]
SETTINGS = ("--namespace", "p=urn:p", "--unindexed", "allow")


@pytest.mark.parametrize("shards", ["1", "2"])
def test_expressions_from_tables_to_results(
    shards: str, headgate: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one piece and in shards, with namespaces that the snapshot keeps; documents travel as arrays."""
    monkeypatch.chdir(tmp_path)
    put_table(tmp_path / "p.jsonl", WHOLE)
    shop = "<shop><item><name>pen</name></item><item><!-- new --><name>ink</name></item></shop>"
    put(tmp_path / "d" / "one.xml", shop)
    put(tmp_path / "d" / "two.xml", "<shop xmlns='urn:p'><item sale='1'/></shop>")
    ran = headgate(
        *("compile", "--subscriptions", "p.jsonl", "--output", "xml", "--shards", shards, "--quiet"),
        *SETTINGS,
    )
    assert (ran.code, ran.err) == (0, "")
    assert "(lxml decides 3, 1 of them for every event)" in ran.out
    ran = headgate(
        "match", "--snapshot", "xml", "--events", "d", "--output", "m.jsonl", "--results", "--quiet"
    )
    assert (ran.code, ran.err) == (0, "")
    rows = {(row["event_id"], row["subscription_id"]): row["results"] for row in get_lines("m.jsonl")}
    assert rows == {
        ("one.xml", "s2"): [{"value": "<name>ink</name>"}],
        ("one.xml", "s3"): [{}],
        ("one.xml", "s4"): [{"name.cont": "<name>pen</name>"}, {"name.cont": "<name>ink</name>"}],
        ("two.xml", "s1"): [{"value": '<n0:item xmlns:n0="urn:p" sale="1"/>'}],
        ("two.xml", "s3"): [{}],
    }


def test_expressions_are_told_apart(
    headgate: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is indexed and what is verified, what it costs, and what goes with which filters."""
    monkeypatch.chdir(tmp_path)
    put_table(tmp_path / "p.jsonl", WHOLE)
    put(tmp_path / "d" / "one.xml", "<shop><item><name>pen</name></item></shop>")
    ran = headgate("validate", "p.jsonl", "--events", "d", *SETTINGS)
    assert ran.code == 0
    assert (
        "note s1: lxml decides for events that have //Q{urn:p}item/price >= 10 or //Q{urn:p}item/@sale, up to"
        in ran.out
    )
    assert (
        "note s3: nothing of it is indexed: lxml decides for every event, up to 7 steps for an event"
        in ran.out
    )
    ran = headgate("validate", "p.jsonl", "--namespace", "p=urn:p")
    assert ran.code == 1
    assert "refused s3: nothing in the filter can be indexed" in ran.out
    one = ("--dialect", "xpath", "--event", "d/one.xml", *SETTINGS[:2])
    ran = headgate("explain", "--filter", "not(//p:item)", *one)
    assert ran.out.splitlines()[0] == "match"
    ran = headgate(
        "backtest", "--filter", "//p:item[1]", "--dialect", "xpath", "--events", "d", *SETTINGS[:2]
    )
    assert ran.out.splitlines() == ["0 of 1 events match (0.00%)"]
    ran = headgate("explain", "--snapshot", "xml", "--subscription", "s1", "--event", "x", *SETTINGS)
    assert "--namespace, --unindexed, --nulls, --names and --dots go with --filter" in ran.complaint
    ran = headgate("backtest", "--filter", "a > 1", "--events", "p.jsonl", *SETTINGS[:2])
    assert "--namespace is for filters of XML" in ran.complaint
    ran = headgate("compile", "--subscriptions", "p.jsonl", "--output", "xml", "--namespace", "p")
    assert "--namespace p: write PREFIX=NAMESPACE" in ran.complaint
    assert headgate("compile", "--subscriptions", "p.jsonl", "--output", "xml", *SETTINGS).code == 0
    ran = headgate("plan", "--snapshot", "xml", "--sample", "d", "--output", "net", "--quiet")
    assert "the filter of subscription 's1' is no tree pattern, and plans are made of those" in ran.complaint
