"""RDF through the pipeline: the answers of the library, whatever the documents are in, and none is lost."""

from __future__ import annotations

import json
import os
import random
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from headgate import Engine, Event, Options, Subscription
from headgate.contents.kind import FilterSettings
from headgate.core.snapshot import open_snapshot
from headgate.core.subscription import SPARQL
from headgate.errors import TableError
from headgate.jobs.choosing import contents_of
from headgate.rdf.events.feeds import read_feed
from headgate.rdf.events.reading import DEFAULT_READER
from headgate.rdf.index.index import RdfIndex, RdfRoom
from tests.lanes import some
from tests.spark.files import FORMS, get_lines, put, put_lines, put_table
from tests.spark.jobs import backtest, on_spark, runner_of
from tests.spark.rdf_cases import (
    BOMBS,
    PREFIX,
    TURTLE,
    Job,
    answers,
    document,
    pattern,
    subscription_row,
    taxonomy,
    too_much,
)
from tests.spark.without_spark import compile_lines

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headgate.core.event import Id
    from tests.spark.files import Row

TEXT = pa.string()
SUBSCRIPTIONS = pa.schema({"id": TEXT, "filter": TEXT, "dialect": TEXT})
EVENTS = pa.schema({"id": TEXT, "data": TEXT, "datacontenttype": TEXT})
TUPLES = "(?x, <http://example.org/p1>, ?y, <http://example.org/C1> <=, )"


@pytest.fixture(scope="module")
def drawn(session: SparkSession | None, tmp_path_factory: pytest.TempPathFactory) -> tuple[Job, Engine]:
    """Compile random patterns over a random taxonomy, and build the same here."""
    rng = random.Random(1)
    job = Job(session, tmp_path_factory.mktemp("rdf"))
    subscriptions = [Subscription(f"s{number}", pattern(rng), "sparql") for number in range(80)]
    subscriptions.append(Subscription("always", "ASK {}", "sparql"))
    table = put_lines(job.folder / "subs.jsonl", map(subscription_row, subscriptions))
    done = job.compile(table, taxonomy=taxonomy(1))
    assert (done.subscriptions, done.rejected, done.ranked, done.attributes) == (81, 0, False, ())
    return job, Engine.build(subscriptions, taxonomy=taxonomy(1))


def test_a_snapshot_is_as_the_library_builds_it(drawn: tuple[Job, Engine]) -> None:
    job, engine = drawn
    opened = Engine.open(job.snapshot)
    assert isinstance(opened.index, RdfIndex)
    assert isinstance(engine.index, RdfIndex)
    assert list(opened.index.ids) == list(engine.index.ids)
    assert [opened.index.filter(each) for each in engine.index.ids] == [
        engine.index.filter(each) for each in engine.index.ids
    ]
    assert opened.taxonomy.statements() == engine.taxonomy.statements()
    rng = random.Random(2)
    rows = [document(rng, number) for number in range(30)]
    assert answers(opened, rows) == answers(engine, rows)


@on_spark
@pytest.mark.parametrize("form", some(FORMS, 1))
def test_it_answers_as_the_library_and_loses_nothing(drawn: tuple[Job, Engine], form: str) -> None:
    job, engine = drawn
    rng = random.Random(form)
    rows = [document(rng, f"e{number}") for number in range(60)]
    bombs = {name: row for name, (row, _) in BOMBS.items() if form == "jsonl" or name != "numeric"}
    bad = [{"id": name, "data": None, "datacontenttype": None, **row} for name, row in bombs.items()]
    table = put_table(job.folder / f"events.{form}", rows[:30] + bad + rows[30:], EVENTS)
    done = job.match(table, f"matches.{form}")
    assert (done.events, done.rejected) == (60, len(bad))
    expected = answers(engine, rows)
    assert done.matches == len(expected) > 500
    assert job.pairs(f"matches.{form}") == expected
    refused = job.refused_events()
    assert set(refused) == set(bombs)
    for name, reason in refused.items():
        assert BOMBS[name][1] in reason
        assert "\n" not in reason


def test_what_is_refused_of_a_table(session: SparkSession | None, tmp_path: Path) -> None:
    job = Job(session, tmp_path)
    rows: list[Row] = [
        {"id": 1, "filter": f"{PREFIX} ASK {{ ?x :p ?y FILTER(?y > 1) }}"},
        {"id": 2, "filter": f"{PREFIX} ASK {{ ?x :p ?y OPTIONAL {{ ?x :q ?z }} }}"},
        {"id": 3, "filter": "(?x, <http://example.org/p>, ?y, {}, {?y > 1})", "dialect": "tuples"},
        {"id": 1, "filter": "ASK {}"},
        {"id": None, "filter": "ASK {}"},
        {"id": 4, "filter": "ASK {}", "dialect": "xslt"},
        {"id": 5, "filter": 7, "dialect": "sparql"},
        {"id": 6, "filter": f"{PREFIX} ASK {{ ?x :p ?y FILTER(?y > ) }}"},
    ]
    done = job.compile(
        put_lines(tmp_path / "subs.jsonl", rows), dialect="sparql", options=Options(coerce=True)
    )
    assert (done.subscriptions, done.rejected) == (2, 6)
    found = {row["id"]: row for row in job.refused()}
    assert found["6"]["place"] == str(rows[-1]["filter"]).index(") }") + 1
    assert found["2"]["reason"].startswith("with the option coerce a filter is a pattern of triples")
    assert found["1"]["reason"] == "id 1 was given by an earlier row already"
    assert found["4"]["reason"].startswith("dialect 'xslt' is not known")
    assert found["5"]["reason"] == "the filter is int and must be text"
    assert found[None]["reason"] == "the row has no 'id': a subscription is an id and a filter"
    # The two that are left are one pattern, and differ in the names of variables.
    counts = open_snapshot(job.snapshot, "rdf").counts
    assert done.holds is not None
    assert done.holds.counts == {
        "patterns": 1,
        "terms": counts["terms"],
        "taxonomy": 0,
        "left_out": 0,
        "verified": 0,
        "unindexed": 0,
    }
    events = [
        {"id": "number", "data": f"{TURTLE} :a :p 2 .", "datacontenttype": "turtle"},
        {"id": "string", "data": f'{TURTLE} :a :p "2" .', "datacontenttype": "turtle"},
        {"id": "less", "data": f'{TURTLE} :a :p "0" .', "datacontenttype": "turtle"},
    ]
    job.match(put_lines(tmp_path / "events.jsonl", events))
    assert job.pairs() == [("number", 1), ("number", 3), ("string", 1), ("string", 3)]


def test_a_filter_that_is_too_much_is_left_out(session: SparkSession | None, tmp_path: Path) -> None:
    """All others are answered; the rejected table says which it was, beside what was refused."""
    job = Job(session, tmp_path)
    clique, statements = too_much()
    rows: list[Row] = [{"id": "bad", "filter": clique}, {"id": "s", "filter": "ASK { ?a <urn:p> ?b }"}]
    job.compile(put_lines(tmp_path / "subs.jsonl", rows), dialect="sparql")
    events = [
        {"id": "dense", "data": statements, "datacontenttype": "nt"},
        {"id": "small", "data": statements.split("\n")[0], "datacontenttype": "nt"},
        {"id": "none", "data": "{", "datacontenttype": "nt"},
    ]
    done = job.match(put_lines(tmp_path / "events.jsonl", events))
    assert (done.events, done.rejected, done.left_out) == (2, 1, 1)
    assert job.pairs() == [("dense", "s"), ("small", "s")]
    refused = {json.loads(row["row"])["id"]: row for row in get_lines(tmp_path / "refused-events.jsonl")}
    assert set(refused) == {"dense", "none"}
    assert json.loads(refused["dense"]["row"]) == {"id": "dense", "subscription": "bad"}
    assert refused["dense"]["reason"].startswith("joining it takes more than 50,000,000 steps")


def test_the_rows_of_a_table_say_which_kinds_its_filters_are_of(
    session: SparkSession | None, tmp_path: Path
) -> None:
    job, runner = Job(session, tmp_path), runner_of(session)
    rows = [{"id": 1, "filter": "a = 1"}, {"id": 2, "filter": "ASK {}", "Dialect": "sparql"}]
    table = put_lines(tmp_path / "subs.jsonl", rows)
    assert contents_of(FilterSettings(), [runner.table(table)], runner.table).room_name == "records+rdf"
    both = FilterSettings(schema='{"a": "int64"}', options=Options())
    assert contents_of(both, [runner.table(table)], runner.table).room_name == "records+rdf"
    contents = contents_of(FilterSettings("tuples"), [runner.table(table)], runner.table)
    assert isinstance(contents, RdfRoom)
    assert len(compile_lines(job.snapshot, rows, contents=contents, dialect="tuples").refused) == 1
    columns = [
        {"id": "1", "filter": "ASK {}", "dialect": None},
        {"id": "2", "filter": None, "dialect": "sql"},
    ]
    table = put_table(tmp_path / "subs.parquet", columns, SUBSCRIPTIONS)
    assert isinstance(contents_of(FilterSettings("sparql"), [runner.table(table)], runner.table), RdfRoom)
    with pytest.raises(
        TableError, match=r"a schema and a sample are for filters of records, and the filters"
    ):
        job.compile(table, dialect="sparql", schema="{}")
    with pytest.raises(
        TableError, match=r"a taxonomy and options are for filters of RDF, and the filters of"
    ):
        job.compile(table, taxonomy=taxonomy(1))


@on_spark
@pytest.mark.nightly
def test_every_format_of_events(drawn: tuple[Job, Engine], tmp_path: Path) -> None:
    """One graph in every format; whole numbers as ids, of which CSV makes them too; bytes in Parquet."""
    job, engine = drawn
    xml = (
        '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://example.org/">'
        '<rdf:Description rdf:about="http://example.org/n1"><e:p1 rdf:resource="http://example.org/n2"/>'
        "</rdf:Description></rdf:RDF>"
    )
    texts = {
        "turtle": f"{TURTLE} :n1 :p1 :n2 .",
        "nt": "<http://example.org/n1> <http://example.org/p1> <http://example.org/n2> .",
        "application/rdf+xml": xml,
        "JSONLD": '{"@id": "http://example.org/n1", "http://example.org/p1": {"@id": "http://example.org/n2"}}',
    }
    rows = [
        {"id": number, "data": text, "datacontenttype": kind}
        for number, (kind, text) in enumerate(texts.items())
    ]
    expected = answers(engine, [{**rows[0], "datacontenttype": "turtle"}])
    assert len(expected) > 1
    wanted = [(number, found) for number in range(4) for _, found in expected]
    put_table(tmp_path / "events.csv", rows)
    job.match(str(tmp_path / "events.csv"))
    assert job.pairs() == wanted
    types: dict[str, pa.DataType] = {"id": pa.int32(), "data": pa.binary(), "datacontenttype": TEXT}
    kinds = pa.schema(types)
    rows = [{**row, "data": str(row["data"]).encode()} for row in rows]
    put_table(tmp_path / "events.parquet", rows, kinds)
    done = job.match(str(tmp_path / "events.parquet"))
    assert (done.events, done.rejected, done.feeds) == (4, 0, None)
    assert job.pairs() == wanted


def test_folders_and_feeds(drawn: tuple[Job, Engine], tmp_path: Path) -> None:
    job, engine = drawn
    folder = tmp_path / "documents"
    rng = random.Random(5)
    put(folder / "a b#%20.ttl", str(document(rng, 0)["data"]))
    put(folder / "deeper" / "c.nt", str(document(rng, 0)["data"]))
    put(folder / "bad.jsonld", "[" * 5000)
    put(folder / "bad.rdf", b"\xff\xfe\x00")
    put(folder / "huge.nt", b"#" * (4 << 20) + b"#")
    put(folder / "none.nt", "")
    put(folder / "deeper" / "no one's #1%20.ttl", "")
    put(folder / "_SUCCESS", "")
    put(folder / ".hidden.ttl", "nonsense")
    put(folder / "README.md", "# About")
    put(folder / "good.rss", feed("p1", "n1", "n2"))
    put(folder / "lenient.rss", feed("p1", "n3").replace('xmlns:e="http://example.org/"', ""))
    done = job.match(str(folder))
    documents = {"a b#%20.ttl": "turtle", "deeper/c.nt": "nt"}
    expected: list[tuple[Id, Id]] = [
        (name, found)
        for name, kind in documents.items()
        for found in engine.match(Event(name, (folder / name).read_text(), content_type=kind))
    ]
    feeds = [
        Event(name, (folder / name).read_bytes(), content_type="rss") for name in ("good.rss", "lenient.rss")
    ]
    items = [item for each in feeds for item in read_feed(each).items]
    assert [item.id for item in items] == ["good.rss#1", "good.rss#2", "lenient.rss#1"]
    expected += [(item.id, found) for item in items for found in engine.match(item)]
    assert job.pairs() == sorted(expected)
    assert (done.events, done.rejected) == (5, 6)
    assert done.feeds is not None
    assert (done.feeds.feeds, done.feeds.lenient, done.feeds.notes > 0) == (2, 1, True)
    refused = job.refused_events()
    empty = {"none.nt", "deeper/no one's #1%20.ttl"}
    assert set(refused) == {"bad.jsonld", "bad.rdf", "huge.nt", "README.md", *empty}
    assert {refused[name] for name in empty} == {"the document is empty: its file has no bytes"}
    assert refused["huge.nt"] == "the document has 4,194,305 bytes: 4,194,304 are allowed"
    assert refused["README.md"].startswith("its name ends in none of .ttl, .nt, ")


def feed(name: str, *nodes: str) -> str:
    """Write a feed with an item for each of some nodes."""
    items = "".join(
        f'<item rdf:about="http://example.org/{node}"><title>{node}</title>'
        f'<e:{name} rdf:resource="http://example.org/n2"/></item>'
        for node in nodes
    )
    return (
        '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/" '
        f'xmlns:e="http://example.org/"><channel rdf:about="http://example.org/"><title>c</title></channel>'
        f"{items}</rdf:RDF>"
    )


def test_the_format_of_what_does_not_say(drawn: tuple[Job, Engine], tmp_path: Path) -> None:
    job, engine = drawn
    text = f"{TURTLE} :n1 :p1 :n2 ."
    rows: list[Row] = [
        {"id": "plain", "data": text},
        {"id": "own", "data": "{}", "datacontenttype": "jsonld"},
    ]
    rows.append({"id": "feed", "data": feed("p1", "n1"), "datacontenttype": "rss"})
    table = put_lines(tmp_path / "events.jsonl", rows)
    done = job.match(table, content_type="turtle")
    assert (done.events, done.rejected) == (3, 0)
    expected = answers(engine, [{**rows[0], "datacontenttype": "turtle"}, rows[1]])
    items = read_feed(Event("feed", rows[2]["data"], content_type="rss")).items
    assert job.pairs() == sorted(expected + [(each.id, s) for each in items for s in engine.match(each)])
    done = job.match(put(tmp_path / "document.txt", text), content_type="turtle")
    assert done.events == 1
    assert job.pairs() == [("document.txt", found) for name, found in expected if name == "plain"]
    done = job.match(put(tmp_path / "none.jsonl", ""))
    assert (done.events, done.rejected, job.pairs()) == (0, 0, [])
    for path, content_type, reason in (
        (
            "document.txt",
            None,
            r"the format of .* is not clear: name it with one of .*\.ttl.*or say --format",
        ),
        ("absent.ttl", None, r"absent.ttl does not exist"),
        ("events.jsonl", "html", r"'html' is not a format of RDF: use turtle, nt, rdfxml, jsonld, rss"),
    ):
        with pytest.raises(TableError, match=reason):
            job.match(str(tmp_path / path), content_type=content_type)


def test_backtest_answers_as_match(drawn: tuple[Job, Engine], tmp_path: Path) -> None:
    job, engine = drawn
    rng = random.Random(6)
    rows: list[Row] = [document(rng, f"e{number}", source="pub") for number in range(40)]
    rows.append({"id": "deep", **BOMBS["deep"][0]})
    rows.append({"id": "feed", "data": feed("p1", "n1", "n2"), "datacontenttype": "rss"})
    table = put_lines(tmp_path / "events.jsonl", rows)
    items = read_feed(Event("feed", rows[-1]["data"], content_type="rss")).items
    index = engine.index
    assert isinstance(index, RdfIndex)
    events = [*map(Event.from_row, rows[:40]), *items]
    counts = Counter(found for event in events for found in index.match(event))
    often = [str(name) for name, count in sorted(counts.items()) if 5 < count < 40]
    for name in often[:1]:
        output = tmp_path / f"{name}.jsonl"
        done = backtest(
            job.spark,
            index.filter(name),
            table,
            dialect=SPARQL,
            taxonomy=engine.taxonomy,
            output=str(output),
            quiet=True,
        )
        assert (done.events, done.rejected) == (42, 1)
        matching = [row for row in rows[:40] if name in index.match(Event.from_row(row))]
        found = {row["id"]: row for row in get_lines(output)}
        for row in matching:
            assert found[row["id"]]["data"] == row["data"]
            assert found[row["id"]]["source"] == "pub"
        theirs = [item.id for item in items if name in index.match(item)]
        assert set(found) == {row["id"] for row in matching} | set(theirs)
        assert all(found[each]["datacontenttype"] == "application/n-triples" for each in theirs)
        assert done.matches == len(found) == counts[name]
        assert set(done.sample) <= set(found)
        assert len(done.sample) == 5
    with pytest.raises(TableError, match=r"does not exist"):
        backtest(job.spark, "ASK {}", "nowhere.jsonl", dialect=SPARQL, quiet=True)


@on_spark
def test_parsers_end_with_their_tasks(drawn: tuple[Job, Engine], tmp_path: Path) -> None:
    job, _ = drawn
    put(tmp_path / "a.ttl", f"{TURTLE} :n1 :p1 :n2 .")
    # That of this process is not a task's.
    DEFAULT_READER.close()
    job.match(str(tmp_path / "a.ttl"))
    until = time.monotonic() + 10
    while (left := parsers()) and time.monotonic() < until:
        time.sleep(0.05)
    assert left == []


def parsers() -> list[int]:
    """List the parser processes below this one."""
    parents, found = {}, []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            command = (place / "cmdline").read_bytes()
            parents[int(place.name)] = int((place / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if b"headgate.rdf.events.worker" in command:
            found.append(int(place.name))
    return [process for process in found if is_below(process, parents)]


def is_below(process: int, parents: dict[int, int]) -> bool:
    while process in parents and process != os.getpid():
        process = parents[process]
    return process == os.getpid()
