"""The compile job: what becomes a subscription, what is refused, and that nothing is lost."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headgate import Event, Subscription
from headgate.contents.registry import kind_of
from headgate.core.event import SECOND_MARK
from headgate.core.rooms import RDF, RECORDS, XML
from headgate.core.snapshot import open_snapshot
from headgate.errors import SnapshotError, TableError
from headgate.rdf.index.index import RdfRoom
from headgate.records.compiling import RecordContents
from headgate.records.index.index import ROOM, RecordIndex
from headgate.spark.tables.tables import to_frame, write_table
from headgate.tables import filter_rows as compiling
from headgate.tables.accepted import REJECTED
from headgate.tables.filter_rows import compile_batches
from headgate.tables.places import Format
from headgate.xml.index.index import XmlRoom
from tests.lanes import some
from tests.spark.files import FORMS, Row, get_lines, get_table, names, put, put_lines, put_table
from tests.spark.jobs import compile_subscriptions, on_both, on_spark
from tests.spark.without_spark import compile_lines, lines_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headgate.contents.protocol import Contents
    from headgate.tables.results import CompileResult

GOOD = [
    "age > 30 AND topic = 'news'",
    "topic IN ('a,b', 'c\"d', 'it\\'s')",
    "user.city LIKE 'Zür%'\nOR   age IS NULL",
    'name = "double, \\"quoted\\""',
    "array_contains(tags, 'x') OR price BETWEEN 1.5 AND 2e3",
    "time >= TIMESTAMP '2024-01-01 00:00:00'",
    "TRUE",
    "NOT (a <=> NULL) AND b <> 'é 😀'",
]
BAD = ["age >", "age > now()", "", "topic LIKE concat('a', 'b')"]

KNOWN = (
    "'sql', 'labels', 'sparql', 'tuples', 'xpath', 'tree', 'eventbridge', 'cloudevents', 'cesql', "
    "'elasticsearch' or 'vespa'"
)
"""What is said of dialects, where one is not known."""


def subscriptions() -> list[Row]:
    """Forty good rows and a few bad ones among them, with text ids out of order."""
    rows = [{"id": f"s{number * 7 % 40:02}", "filter": GOOD[number % len(GOOD)]} for number in range(40)]
    for number, text in enumerate(BAD):
        rows.insert(number * 9, {"id": f"bad{number}", "filter": text})
    return rows


class Job:
    """Compile in a folder of its own."""

    def __init__(self, session: SparkSession | None, folder: Path) -> None:
        self.spark: Any = session
        self.folder = folder
        self.snapshot = folder / "snapshot"
        self.rejected = folder / "rejected.jsonl"

    def __call__(self, table: str, **options: Any) -> CompileResult:
        return compile_subscriptions(
            self.spark, table, str(self.snapshot), rejected=str(self.rejected), quiet=True, **options
        )

    def lines(self, *rows: Row | str, **options: Any) -> CompileResult:
        texts = [row if isinstance(row, str) else json.dumps(row) for row in rows]
        return self(put(self.folder / "subs.jsonl", "\n".join(texts) + "\n"), **options)

    def refused(self) -> list[Row]:
        return get_lines(self.rejected)

    def index(self) -> RecordIndex:
        return RecordIndex.open(self.snapshot)


@pytest.fixture
def job(session: SparkSession | None, tmp_path: Path) -> Job:
    return Job(session, tmp_path)


def arrays(snapshot: Path) -> dict[str, Any]:
    return {name: array.tolist() for name, array in open_snapshot(snapshot, ROOM).arrays.items()}


@on_spark
@pytest.mark.parametrize("form", some(FORMS, 1))
def test_every_format_gives_the_arrays_of_the_library(job: Job, form: str) -> None:
    check_arrays(job, form)


@pytest.mark.parametrize("form", FORMS)
def test_every_format_gives_the_arrays_in_this_process(tmp_path: Path, form: str) -> None:
    check_arrays(Job(None, tmp_path), form)


def check_arrays(job: Job, form: str) -> None:
    rows = subscriptions()
    done = job(put_table(job.folder / f"subs.{form}", rows))
    assert (done.subscriptions, done.rejected) == (40, len(BAD))
    good = [Subscription(row["id"], row["filter"]) for row in rows if row["filter"] in GOOD]
    RecordIndex.build(good).save(job.folder / "expected")
    assert arrays(job.snapshot) == arrays(job.folder / "expected")
    assert done.attributes == tuple(job.index().attributes)
    assert sorted(row["id"] for row in job.refused()) == ["bad0", "bad1", "bad2", "bad3"]
    assert names(job.folder) == sorted(["expected", "rejected.jsonl", "snapshot", f"subs.{form}"])


@pytest.mark.parametrize(
    ("form", "files"), [(form, files) for form in ("jsonl", "parquet") for files in (1, 2, 7)]
)
def test_the_first_of_equal_ids_wins_in_the_order_of_the_files(job: Job, form: str, files: int) -> None:
    """Later files are larger, so that Spark takes them first."""
    rows = [{"id": number % 50, "filter": f"a = {number}{' ' * number * 4}"} for number in range(140)]
    folder = job.folder / "subs"
    folder.mkdir()
    for number, part in enumerate(np.array_split(np.arange(140), files)):
        put_table(folder / f"part-{number}.{form}", [rows[place] for place in part])
    done = job(str(folder))
    assert (done.subscriptions, done.rejected) == (50, 90)
    index = job.index()
    assert [index.filter(identity).strip() for identity in index.ids] == [f"a = {n}" for n in range(50)]
    again = job.refused()
    assert [json.loads(row["row"])["filter"].strip() for row in again] == [f"a = {n}" for n in range(50, 140)]
    assert again[0]["reason"] == "id 0 was given by an earlier row already"
    assert again[0]["id"] == "0"


@on_spark
@pytest.mark.nightly
def test_a_file_in_many_partitions_keeps_its_order(job: Job) -> None:
    rows = [{"id": number % 600, "filter": f"a = {number}"} for number in range(1200)]
    job.spark.conf.set("spark.sql.files.maxPartitionBytes", "5k")
    try:
        done = job(put_lines(job.folder / "subs.jsonl", rows))
    finally:
        job.spark.conf.set("spark.sql.files.maxPartitionBytes", "4m")
    assert (done.subscriptions, done.rejected) == (600, 600)
    index = job.index()
    assert [index.filter(identity) for identity in index.ids] == [f"a = {n}" for n in range(600)]


def test_refused_rows_say_what_where_and_why(tmp_path: Path) -> None:
    lines: list[Row | str] = [
        {"id": "ok", "filter": "a = 1"},
        "",
        "   ",
        '{"id": "cut", "filter": "a',
        "[1, 2]",
        {"filter": "a = 1"},
        {"id": None, "filter": "a = 1"},
        {"id": "no filter"},
        {"id": "number", "filter": 5},
        {"id": True, "filter": "a = 1"},
        {"id": 1.5, "filter": "a = 1"},
        {"id": ["x"], "filter": "a = 1"},
        {"id": 2**64, "filter": "a = 1"},
        {"id": "plus", "filter": "a > now()"},
        {"id": "xslt", "filter": "a = 1", "dialect": "xslt"},
        {"id": "twice", "filter": "a = 1", "Filter": "b = 1"},
        {"id": "ok", "filter": "a = 2"},
    ]
    done = compile_lines(tmp_path / "snapshot", lines)
    refused = done.refused
    assert (done.subscriptions, len(refused)) == (1, len(lines) - 3)
    assert all(set(row) == {"id", "row", "reason", "place"} for row in refused)
    found = {row["id"]: row for row in refused if row["id"]}
    assert found["plus"] == {
        "id": "plus",
        "row": '{"id": "plus", "filter": "a > now()"}',
        "reason": "now is not part of the filter language: it asks the clock, "
        "and an event means the same at any time; the event's own time is :event_time, at character 5: "
        "a > ⟪now()",
        "place": 5,
    }
    assert found["no filter"]["reason"] == "the row has no 'filter': a subscription is an id and a filter"
    assert found["number"]["reason"] == "the filter is int and must be text"
    assert found["xslt"]["reason"] == f"dialect 'xslt' is not known: use {KNOWN}"
    assert found["ok"]["reason"] == "id 'ok' was given by an earlier row already"
    reasons = [row["reason"] for row in refused if row["id"] is None]
    for part in (
        "not valid JSON: Input data was truncated",
        "expected a JSON object, found list",
        "the row has no 'id'",
        "id True is not usable",
        "id 1.5 is not usable",
        "id ['x'] is not usable",
        "18446744073709551616 does not fit into 64 bits",
        "differ in case only",
    ):
        assert any(part in reason for reason in reasons), part


@pytest.mark.parametrize("form", FORMS)
def test_rows_of_every_dialect(job: Job, form: str) -> None:
    rows: list[Row] = [
        {"id": "plain", "filter": "a = 1", "dialect": None},
        {"id": "sql", "filter": "array_contains(a, 'x')", "dialect": "sql"},
        {"id": "labels", "filter": "superset(a, 'x', 'y')", "dialect": "labels"},
        {"id": "not sql", "filter": "subset(a, 'x')", "dialect": "sql"},
        {"id": "not labels", "filter": "a = 1", "dialect": "labels"},
        {"id": "xslt", "filter": "a = 1", "dialect": "xslt"},
        {"id": "Labels", "filter": "subset(a)", "dialect": "Labels"},
    ]
    done = job(put_table(job.folder / f"subs.{form}", rows))
    assert (done.subscriptions, done.rejected) == (3, 4)
    index = job.index()
    assert index.filter("labels") == "a IS NULL OR forall(a, x -> x IS NULL OR x IN ('x', 'y'))"
    assert index.match(Event("e", {"a": ["x", None]})) == ["labels", "sql"]
    assert index.match(Event("e", {"a": ["x", "z"]})) == ["sql"]
    found = {row["id"]: row for row in job.refused()}
    assert found["not sql"]["reason"].startswith("there is no function subset")
    assert found["not labels"]["reason"].startswith("the dialect labels takes one call: subset(")
    assert found["not labels"]["place"] == 1
    for name, hint in (("xslt", ""), ("Labels", " (did you mean 'labels'?)")):
        reason = f"dialect {name!r} is not known: use {KNOWN}{hint}"
        assert (found[name]["reason"], found[name]["place"]) == (reason, None)


SPOKEN = {
    RECORDS: {
        "sql": "a = 1",
        "labels": "subset(a, 'x')",
        "eventbridge": '{"a": [1]}',
        "cloudevents": '{"exact": {"type": "x"}}',
        "cesql": "type = 'x'",
        "elasticsearch": '{"term": {"a": 1}}',
        "vespa": "a in ['x']",
    },
    RDF: {"sparql": "ASK { ?x <urn:p> ?y }", "tuples": "(?x, <urn:p>, ?y, {}, {?y > 1})"},
    XML: {"xpath": "//a[b]", "tree": "//a_{ID}[//b]"},
}
"""A filter in every dialect of every room."""


@pytest.mark.parametrize("contents", [RecordContents(), RdfRoom(), XmlRoom()], ids=lambda it: it.room_name)
def test_a_row_that_names_its_dialect_is_read_at_once(
    contents: Contents, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of a subscription and nothing else are not looked at field by field, whatever they speak."""
    spoken = SPOKEN[contents.room_name]
    assert tuple(spoken) == kind_of(contents.room_name).dialects
    rows = [{"id": name, "filter": text, "dialect": name} for name, text in spoken.items()]
    # One more field takes the slow way; what is compiled is the same.
    (slow,) = compile_batches([lines_of([{**row, "more": 1} for row in rows])], contents.writers)
    monkeypatch.setattr(compiling, "read_line", lambda _: pytest.fail("a row took the slow way"))
    (fast,) = compile_batches([lines_of(rows)], contents.writers)
    assert fast["reason"].null_count == len(rows)
    assert fast.drop_columns(["row"]).equals(slow.drop_columns(["row"]))


def test_a_schema_points_into_the_text_as_written(tmp_path: Path) -> None:
    row = {"id": 1, "filter": "  subset(tagz, 'x')", "dialect": "labels"}
    lines = [row, {**row, "id": 2, "filter": "superset(tags, 5)"}]
    done = compile_lines(
        tmp_path / "snapshot", lines, contents=RecordContents(schema='{"tags": "array<string>"}')
    )
    assert done.subscriptions == 1
    (refused,) = done.refused
    assert refused["place"] == 10
    assert refused["reason"].endswith("tags is, at character 10:   subset(⟪tagz, 'x')")


def test_whole_numbers_stay_numbers(tmp_path: Path) -> None:
    rows = [{"id": number, "filter": "a = 1"} for number in (10, 9, -1, 2**63 - 1)]
    compile_lines(tmp_path / "snapshot", rows)
    assert list(RecordIndex.open(tmp_path / "snapshot").ids) == [-1, 9, 10, 2**63 - 1]


def test_mixed_ids_become_text(tmp_path: Path) -> None:
    given = [(1, "a = 1"), ("b", "a = 1"), ("1", "a = 2")]
    rows: list[Row] = [{"id": identity, "filter": text} for identity, text in given]
    done = compile_lines(tmp_path / "snapshot", rows)
    index = RecordIndex.open(tmp_path / "snapshot")
    assert list(index.ids) == ["1", "b"]
    assert len(done.refused) == 1
    assert index.filter("1") == "a = 1"


CSV_IDS: dict[str, tuple[list[str], list[Any]]] = {
    "numbers": (["3", "20", "0"], [0, 3, 20]),
    "leading zeros": (["3", "007"], ["007", "3"]),
    "texts": (["3", "x"], ["3", "x"]),
}


@pytest.mark.parametrize(("given", "found"), list(CSV_IDS.values()), ids=CSV_IDS)
def test_ids_in_csv_are_numbers_if_all_of_them_are(job: Job, given: list[str], found: list[Any]) -> None:
    job(put(job.folder / "subs.csv", "id,filter\n" + "".join(f"{one},a = 1\n" for one in given)))
    assert list(job.index().ids) == found


@pytest.mark.parametrize(("given", "found"), CSV_IDS.values(), ids=CSV_IDS)
def test_texts_of_csv_are_numbers_if_all_of_them_are(
    tmp_path: Path, given: list[str], found: list[Any]
) -> None:
    rows = [{"id": one, "filter": "a = 1"} for one in given]
    compile_lines(tmp_path / "snapshot", rows, form=Format.CSV)
    assert list(RecordIndex.open(tmp_path / "snapshot").ids) == found


@on_spark
@pytest.mark.parametrize("end", some(["\n", "\r\n"], 1), ids=["lf", "crlf"])
@pytest.mark.nightly
def test_csv_with_quotes_commas_and_newlines(job: Job, end: str) -> None:
    lines = [
        "filter,note,id",
        '"a = \'x,y\' OR b = ""q""",,one',
        "",
        f'"a = 1{end}AND b = 2","a ""note""",two',
        "a = 1,too few",
        "a = 1,too,many,fields",
        "a = 1,,",
        ",,three",
    ]
    done = job(put(job.folder / "subs.csv", end.join(lines) + end))
    index = job.index()
    assert list(index.ids) == ["one", "two"]
    assert index.filter("one") == "a = 'x,y' OR b = \"q\""
    assert index.filter("two") == "a = 1\nAND b = 2"
    assert done.rejected == 4
    assert [row["reason"].split(":")[0] for row in job.refused()] == [
        "the line does not have as many fields as the header",
        "the line does not have as many fields as the header",
        "the row has no 'id'",
        "the row has no 'filter'",
    ]
    assert job.refused()[0]["row"] == "a = 1,too few"


@on_spark
def test_names_of_columns_ignore_case_and_others_are_passed_over(job: Job) -> None:
    table = pa.table({"ID": [1, 2], "Filter": ["a = 1", "b = 1"], "odd`name": [b"\xff", None]})
    pq.write_table(table, job.folder / "subs.parquet")
    assert job(str(job.folder / "subs.parquet")).subscriptions == 2
    row = {"Id": "x", "FILTER": "a = 1", "Dialect": "sql", "more": {"b": 1}}
    assert compile_lines(job.folder / "lines", [row]).subscriptions == 1


@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("missing", ["id", "filter"])
def test_a_table_without_the_column_is_one_error(job: Job, form: str, missing: str) -> None:
    row = {"id": "x", "filter": "a = 1", "note": "n"}
    del row[missing]
    table = put_table(job.folder / f"subs.{form}", [row])
    with pytest.raises(TableError) as caught:
        job(table)
    assert str(caught.value) == f"{table} has no column '{missing}'; its columns are {', '.join(row)}"
    assert names(job.folder) == [f"subs.{form}"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("empty.jsonl", ""),
        ("blank.jsonl", "\n  \n\t\n"),
        ("empty.csv", ""),
        ("header.csv", "id,filter\n"),
        ("empty.parquet", None),
    ],
)
def test_nothing_in_is_an_empty_snapshot(job: Job, name: str, content: str | None) -> None:
    path = job.folder / name
    if content is None:
        pq.write_table(pa.schema([("id", pa.string()), ("filter", pa.string())]).empty_table(), path)
    else:
        put(path, content)
    done = job(str(path))
    assert (done.subscriptions, done.rejected, done.attributes) == (0, 0, ())
    assert len(job.index()) == 0
    assert job.refused() == []


def test_blank_lines_are_nothing(tmp_path: Path) -> None:
    done = compile_lines(tmp_path / "snapshot", ["", "  ", "\t"])
    assert done == (0, (), [])
    assert len(RecordIndex.open(tmp_path / "snapshot")) == 0


def test_an_older_snapshot_is_replaced(job: Job) -> None:
    older = compile_lines(job.snapshot, [{"id": 1, "filter": "a = 1"}, {"id": 2, "filter": "bad +"}])
    assert len(older.refused) == 1
    put_lines(job.rejected, older.refused)
    job.lines({"id": "new", "filter": "b = 1"})
    assert list(job.index().ids) == ["new"]
    assert job.refused() == []


def test_a_place_that_is_taken_is_refused(job: Job) -> None:
    put(job.snapshot / "precious.txt", "mine")
    with pytest.raises(SnapshotError, match="exists and is not a snapshot"):
        job.lines({"id": 1, "filter": "a = 1"})
    assert names(job.snapshot) == ["precious.txt"]
    assert not job.rejected.exists()


def test_no_table_is_both_read_and_written(job: Job) -> None:
    table = put_lines(job.folder / "rejected.jsonl", [{"id": 1, "filter": "a = 1"}])
    with pytest.raises(TableError, match="is named twice"):
        job(table)


@pytest.mark.parametrize(
    "name", ["with space.jsonl", "Zürich-日本.jsonl", "a[1]{b}*?.jsonl", "100%20#1.jsonl"]
)
def test_any_file_name_will_do(job: Job, name: str) -> None:
    folder = job.folder / "ordner [ü] é"
    table = put_lines(folder / name, [{"id": 1, "filter": "a = 1"}])
    done = compile_subscriptions(
        job.spark, table, str(folder / "snap shot*"), rejected=str(folder / f"rejected-{name}"), quiet=True
    )
    assert done.subscriptions == 1
    assert names(folder) == sorted([name, "snap shot*", f"rejected-{name}"])


def test_a_colon_in_a_file_name_is_told(job: Job) -> None:
    table = put(job.folder / "at 12:30.jsonl", "")
    with pytest.raises(TableError, match="has ':' in its name, which Spark cannot read: rename it"):
        job(table)


def test_relative_paths_and_file_uris(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    put_lines(job.folder / "subs.jsonl", [{"id": 1, "filter": "a = 1"}])
    monkeypatch.chdir(job.folder)
    for table, out in (("subs.jsonl", "out/"), (f"file://{job.folder}/subs.jsonl", "./out")):
        done = compile_subscriptions(job.spark, table, out, rejected="sub/rejected.jsonl", quiet=True)
        assert done.subscriptions == 1
    assert names(Path(os.curdir).absolute()) == ["out", "sub", "subs.jsonl"]


@on_both()
def test_a_schema_refuses_what_can_never_match(job: Job) -> None:
    rows = ["age > 30", "aeg > 30", "age = 'x'", "user.city = 'Bern'", "array_contains(tags, 'x')"]
    table = put_lines(job.folder / "s.jsonl", [{"id": n, "filter": text} for n, text in enumerate(rows)])
    schema = '{"age": "int64", "user": {"city": "string"}, "tags": "array<string>"}'
    done = job(table, schema=schema)
    assert done.subscriptions + done.rejected == 5
    assert job.refused()[0]["reason"].startswith("attribute aeg is not in the schema; age is, at character 1")


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ("{bad", "schema: not valid JSON"),
        ('{"age": "integer"}', "type 'integer' is not known"),
        ('{"age": 5}', "schema: attribute age has 5"),
        ("[]", "schema: expected a JSON object, found list"),
    ],
)
def test_a_bad_schema_is_one_error(job: Job, schema: str, reason: str) -> None:
    table = put_lines(job.folder / "subs.jsonl", [{"id": 1, "filter": "a = 1"}])
    with pytest.raises(TableError, match=reason):
        job(table, schema=schema)
    assert names(job.folder) == ["subs.jsonl"]


def test_lone_surrogates_and_other_bytes_are_refused(tmp_path: Path) -> None:
    lines = [b'{"id": "\\ud800", "filter": "a = 1"}', b'{"id": "\xff", "filter": "a = 1"}']
    lines += [b'{"id": "x", "filter": "a = \'\\udc00\'"}', "{'id': 1}".encode("utf-16")]
    done = compile_lines(tmp_path / "snapshot", lines)
    assert done.subscriptions == 0
    assert len(done.refused) == 4


def test_a_byte_order_mark_is_no_part_of_the_first_row(job: Job) -> None:
    assert job(put(job.folder / "s.jsonl", b'\xef\xbb\xbf{"id": 1, "filter": "a = 1"}\n')).subscriptions == 1
    assert job(put(job.folder / "s.csv", b"\xef\xbb\xbfid,filter\n1,a = 1\n")).subscriptions == 1
    # A second one is a part of it. Spark would pass over that of CSV.
    done = job(put(job.folder / "s.jsonl", 2 * b"\xef\xbb\xbf" + b'{"id": 1, "filter": "a = 1"}\n'))
    assert (done.subscriptions, done.rejected) == (0, 1)
    assert job.refused()[0]["reason"] == f"not valid JSON: {SECOND_MARK}"
    with pytest.raises(TableError, match=rf"s\.csv: {SECOND_MARK}"):
        job(put(job.folder / "s.csv", 2 * b"\xef\xbb\xbf" + b"id,filter\n1,a = 1\n"))


@on_spark
@pytest.mark.nightly
def test_rejected_rows_can_go_to_any_format(job: Job) -> None:
    row = {"id": "x", "filter": 'a + now() =\n"b"'}
    job.rejected = job.folder / "rejected.parquet"
    assert job(put_lines(job.folder / "s.jsonl", [row])).rejected == 1
    (refused,) = pq.read_table(job.rejected).to_pylist()
    assert refused["place"] == 5
    table = pa.Table.from_pylist([refused], REJECTED)
    write_table(to_frame(job.spark, table), str(job.folder / "rejected.csv"))
    assert get_table(job.folder / "rejected.csv") == [{**refused, "place": "5"}]


@pytest.mark.parametrize("form", FORMS)
def test_a_sample_changes_where_filters_lie_and_no_answer(job: Job, tmp_path: Path, form: str) -> None:
    rows = [{"id": n, "a": n % 2, "b": n} for n in range(200)]
    place = tmp_path / f"sample.{form}"
    if form == "jsonl":
        place.write_text("\n".join([*(json.dumps(row) for row in rows), "no event"]), "utf-8")
    elif form == "csv":
        place.write_text("id,a,b\n" + "".join(f"{r['id']},{r['a']},{r['b']}\n" for r in rows), "utf-8")
    else:
        pq.write_table(pa.Table.from_pylist(rows), place)
    given = [{"id": n, "filter": f"a = {n % 2} AND b = {n}"} for n in range(200)]
    plain = compile_lines(tmp_path / "plain", given)
    sampled = job.lines(*given, sample=str(place))
    assert plain.subscriptions == sampled.subscriptions == 200
    found, without = job.index(), RecordIndex.open(tmp_path / "plain")
    for row in rows:
        assert found.match(Event.from_row(row)) == without.match(Event.from_row(row)) == [row["id"]]
