"""XML through the pipeline: the answers of the library, whatever the documents are in, and none is lost."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from headgate import Engine, Event, Subscription
from headgate.core.subscription import XPATH
from headgate.errors import TableError
from headgate.spark.tables.events import _left_out
from headgate.xml.index.index import XmlIndex
from headgate.xml.language.printing import print_pattern
from tests.lanes import some
from tests.spark.files import FORMS, get_lines, put, put_lines, put_table
from tests.spark.jobs import backtest, on_spark
from tests.spark.rdf_cases import Job, answers, subscription_row
from tests.xml.random_patterns import random_document, random_pattern

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from headgate.core.event import Id
    from tests.spark.files import Row

TEXT = pa.string()
EVENTS = pa.schema({"id": TEXT, "data": TEXT, "datacontenttype": TEXT})

# A document for every way to be refused, and what the reason says.
BOMBS: dict[str, tuple[Row, str]] = {
    "laughs": (
        {
            "data": '<!DOCTYPE x [<!ENTITY a "a"><!ENTITY b "&a;&a;">]><x>&b;</x>',
            "datacontenttype": "xml",
        },
        "DOCTYPE",
    ),
    "broken": ({"data": "<a><b></a>", "datacontenttype": "text/xml"}, "not valid XML"),
    "deep": ({"data": "<a>" * 5000 + "</a>" * 5000, "datacontenttype": "xml"}, "deep"),
    "wordless": ({"data": None, "datacontenttype": "xml"}, "the event has no 'data': give its XML there"),
    "turtle": (
        {"data": "<urn:a> <urn:b> <urn:c> .", "datacontenttype": "turtle"},
        "datacontenttype 'turtle' is not a format of XML: give one of xml",
    ),
    "untyped": ({"data": "<a/>"}, "the event has no 'datacontenttype'"),
}


def document(rng: random.Random, identity: Id, **more: object) -> Row:
    """Draw a row with a document."""
    kind = rng.choice(["xml", "text/xml", "image/svg+xml; charset=utf-8"])
    return {"id": identity, "data": random_document(rng), "datacontenttype": kind, **more}


def drawn_subscriptions(seed: int, count: int) -> list[Subscription]:
    """Draw subscriptions with scores; the last matches every document."""
    rng = random.Random(seed)
    drawn = [
        Subscription(f"s{number}", print_pattern(random_pattern(rng)), XPATH, score=float(rng.randrange(9)))
        for number in range(count)
    ]
    return [*drawn, Subscription("always", "/*{}", XPATH)]


@pytest.fixture(scope="module")
def drawn(session: SparkSession | None, tmp_path_factory: pytest.TempPathFactory) -> tuple[Job, Engine]:
    """Compile random patterns, and build the same here."""
    job = Job(session, tmp_path_factory.mktemp("xml"))
    subscriptions = drawn_subscriptions(1, 80)
    table = put_lines(job.folder / "subs.jsonl", map(subscription_row, subscriptions))
    done = job.compile(table)
    assert (done.subscriptions, done.rejected, done.ranked, done.attributes) == (81, 0, False, ())
    assert done.holds is not None
    assert done.holds.counts["paths"] > 80
    return job, Engine.build(subscriptions, ranked=False)


def test_a_snapshot_is_as_the_library_builds_it(drawn: tuple[Job, Engine]) -> None:
    job, engine = drawn
    opened = Engine.open(job.snapshot)
    assert isinstance(opened.index, XmlIndex)
    assert isinstance(engine.index, XmlIndex)
    assert list(opened.index.ids) == list(engine.index.ids)
    assert all(opened.index.filter(each) == engine.index.filter(each) for each in engine.index.ids)
    rng = random.Random(2)
    rows = [document(rng, number) for number in range(30)]
    assert answers(opened, rows) == answers(engine, rows)
    events = [Event.from_row(row) for row in rows]
    assert all(opened.index.answers(event) == engine.index.answers(event) for event in events)


@on_spark
@pytest.mark.parametrize("form", some(FORMS, 2))
def test_it_answers_as_the_library_and_loses_nothing(drawn: tuple[Job, Engine], form: str) -> None:
    job, engine = drawn
    rng = random.Random(form)
    rows = [document(rng, f"e{number}") for number in range(60)]
    bad = [{"id": name, "data": None, "datacontenttype": None, **row} for name, (row, _) in BOMBS.items()]
    table = put_table(job.folder / f"events.{form}", rows[:30] + bad + rows[30:], EVENTS)
    done = job.match(table, f"matches.{form}")
    assert (done.events, done.rejected, done.feeds) == (60, len(bad), None)
    expected = answers(engine, rows)
    assert done.matches == len(expected) > 500
    assert job.pairs(f"matches.{form}") == expected
    refused = job.refused_events()
    assert set(refused) == set(BOMBS)
    for name, reason in refused.items():
        assert BOMBS[name][1] in reason
        assert "\n" not in reason


@on_spark
@pytest.mark.nightly
def test_files_are_events(drawn: tuple[Job, Engine], tmp_path: Path) -> None:
    job, engine = drawn
    rng = random.Random(5)
    rows: list[Row] = []
    for name in ("a.xml", "deeper/b c.XML"):
        text = random_document(rng)
        put(tmp_path / "documents" / name, text)
        rows.append({"id": name, "data": text, "datacontenttype": "xml"})
    put(tmp_path / "documents" / "c.ttl", "<urn:a> <urn:b> <urn:c> .")
    put(tmp_path / "documents" / "deeper" / "d.xml", "")
    # Folders of the path that lead up and down again are no part of ids.
    done = job.match(f"{tmp_path}/documents/deeper/../../documents")
    assert (done.events, done.rejected) == (2, 2)
    assert job.pairs() == answers(engine, rows)
    assert job.refused_events() == {
        "c.ttl": "its name ends in none of .xml, .rss, .atom: rename it, or say --format",
        "deeper/d.xml": "the document is empty: its file has no bytes",
    }
    # One file by itself is no less refused, nor in a backtest.
    empty = str(tmp_path / "documents" / "deeper" / "d.xml")
    done = job.match(empty)
    assert (done.events, done.rejected) == (0, 1)
    tried = backtest(job.spark, "//a", empty, dialect=XPATH, quiet=True)
    assert (tried.events, tried.rejected) == (0, 1)
    # Other file systems are asked for what Spark has listed and not read.
    files = job.spark.read.format("binaryFile").option("recursiveFileLookup", "true")
    assert _left_out(files.load(f"file://{tmp_path}/documents")) == [f"file:{empty}"]
    with pytest.raises(TableError, match=r"'turtle' is not a format of XML: use xml"):
        job.match(str(tmp_path / "documents"), content_type="turtle")


def test_what_is_refused_of_a_table(session: SparkSession | None, tmp_path: Path) -> None:
    job = Job(session, tmp_path)
    rows: list[Row] = [
        {"id": 1, "filter": "//a[matches(b, 'c')]"},
        {"id": 2, "filter": "//a_{ID}[//b]", "dialect": "tree"},
        {"id": 3, "filter": "//a[.//b]"},
        {"id": 3, "filter": "//a"},
    ]
    done = job.compile(put_lines(tmp_path / "subs.jsonl", rows), dialect=XPATH)
    assert (done.subscriptions, done.rejected) == (2, 2)
    found = {row["id"]: row for row in job.refused()}
    assert found["1"]["place"] == rows[0]["filter"].index("matches") + 1
    assert found["3"]["reason"] == "id 3 was given by an earlier row already"
    index = XmlIndex.open(job.snapshot)
    assert index.match(Event("e", "<a><c><b/></c></a>", content_type="xml")) == [2, 3]
    mixed = put_lines(tmp_path / "mixed.jsonl", [rows[2], {"id": 9, "filter": "ASK {}", "dialect": "sparql"}])
    assert job.compile(mixed, dialect=XPATH).subscriptions == 2
    with pytest.raises(TableError, match="a schema and a sample are for filters of records"):
        job.compile(str(tmp_path / "subs.jsonl"), dialect=XPATH, schema="{}")


def test_a_filter_is_tried_on_the_past(drawn: tuple[Job, Engine], tmp_path: Path) -> None:
    job, engine = drawn
    rng = random.Random(9)
    rows = [document(rng, f"e{number}") for number in range(20)]
    table = put_lines(tmp_path / "events.jsonl", [*rows, {"id": "bad", **BOMBS["broken"][0]}])
    assert isinstance(engine.index, XmlIndex)
    names = [
        each
        for each in engine.index.ids
        if sum(each in engine.match(Event.from_row(row)) for row in rows) > 3
    ]
    output = tmp_path / "found.jsonl"
    done = backtest(
        job.spark, engine.index.filter(names[0]), table, dialect=XPATH, output=str(output), quiet=True
    )
    matching = [row for row in rows if names[0] in engine.match(Event.from_row(row))]
    assert (done.events, done.rejected, done.matches) == (20, 1, len(matching))
    found = {row["id"]: row["data"] for row in get_lines(output)}
    assert found == {row["id"]: row["data"] for row in matching}
