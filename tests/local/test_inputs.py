"""Where rows come from and go to: packed files, patterns, folders that name columns, `-`."""

from __future__ import annotations

import gzip
import io
import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headgate.errors import TableError
from headgate.spark.tables.events import read_files
from headgate.spark.tables.tables import read_lines, write_table
from headgate.tables.lines import BROKEN, VALUE
from headgate.tables.lines import read_lines as read_here
from headgate.tables.packed import read_file
from headgate.tables.places import Format, UnsureError, check_apart, check_input, format_of, table_files
from headgate.tables.writing import write_table as write_here
from headgate.xml.kind import KIND as XML
from tests.spark.files import get_table, put, put_lines

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.cli.running import Command


def packed(path: Path, text: str) -> str:
    """Write a file as its ending says."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist([json.loads(line) for line in text.splitlines()]), path)
    elif path.suffix == ".zst":
        with pa.CompressedOutputStream(str(path), "zstd") as out:
            out.write(text.encode())
    else:
        path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return str(path)


ONE, TWO = '{"id":1,"a":"x"}\n', '{"id":2,"a":"y"}\n'
CSV_ONE, CSV_TWO = "id,a\n1,x\n1,x,broken\n", "id,a\n2,y\n"
LAYOUTS: dict[str, tuple[dict[str, str], str, str]] = {
    "gz": ({"e.jsonl.gz": ONE}, "e.jsonl.gz", '1 {"id":1,"a":"x"}'),
    "zst": ({"e.jsonl.zst": ONE + TWO}, "e.jsonl.zst", '1 {"id":1,"a":"x"} {"id":2,"a":"y"}'),
    "csv.gz": ({"e.csv.gz": CSV_ONE}, "e.csv.gz", '1 {"id":"1","a":"x"} 1,x,broken'),
    "csv.zst": ({"e.csv.zst": CSV_TWO}, "e.csv.zst", '1 {"id":"2","a":"y"}'),
    "pattern": (
        {"e/a1.jsonl": ONE, "e/a2.jsonl.gz": TWO, "e/b.jsonl": ONE, "e/_a.jsonl": ONE},
        "e/a*",
        '2 {"id":1,"a":"x"} {"id":2,"a":"y"}',
    ),
    "pattern of folders": (
        {"e/one/x.csv": CSV_TWO, "e/two/x.csv": CSV_TWO},
        "e/[o]ne",
        '1 {"id":"2","a":"y"}',
    ),
    "output of Spark": (
        {"e/part-0.json": ONE, "e/part-1.json.gz": TWO, "e/_SUCCESS": "", "e/.part-0.json.crc": "x"},
        "e",
        '2 {"id":1,"a":"x"} {"id":2,"a":"y"}',
    ),
    "days": (
        {"e/day=2026-11-01/a.jsonl": ONE + "{ }\n[1]\n", "e/day=2026-11-02/a.jsonl": '{"id":2,"day":7}\n'},
        "e",
        '2 {"id":1,"a":"x","day":"2026-11-01"} {"id":2,"day":7,"day":"2026-11-02"} { "day":"2026-11-01"} [1]',
    ),
    "numbers": (
        {"e/n=01/k=a b/a.jsonl": ONE, "e/n=2/k=true/a.jsonl": TWO, "e/n=3/k=%3D/a.jsonl": "{}\n"},
        "e",
        '3 {"id":1,"a":"x","n":1,"k":"a b"} {"id":2,"a":"y","n":2,"k":"true"} {"n":3,"k":"="}',
    ),
    "fractions": (
        {"e/n=0.5/a.csv": CSV_ONE, "e/n=2/a.csv": CSV_TWO},
        "e",
        '2 {"id":"1","a":"x","n":0.5} {"id":"2","a":"y","n":2.0} 1,x,broken',
    ),
    "nothing": (
        {"e/n=__HIVE_DEFAULT_PARTITION__/a.parquet": ONE, "e/n=art/a.parquet": TWO},
        "e",
        '2 {"id":1,"a":"x"} {"id":2,"a":"y","n":"art"}',
    ),
    "pattern below a folder": (
        {"e/day=2026-11-01/n=1/a.jsonl": ONE, "e/day=2026-12-01/n=2/a.jsonl": TWO},
        "e/day=2026-11-*/n=*",
        '1 {"id":1,"a":"x","day":"2026-11-01","n":1}',
    ),
}
"""Files, what is asked for, and how many files and which rows that is."""


def lay(folder: Path, name: str) -> str:
    """Write the files of a layout; returns what is asked for."""
    files, asked, _ = LAYOUTS[name]
    for place, text in files.items():
        packed(folder / place, text)
    return str(folder / asked)


def shown(rows: list[Any], files: int) -> str:
    """Write rows as the table of layouts does."""
    lines = [row[VALUE] and bytes(row[VALUE]).decode() for row in rows]
    found = sorted((line or row[BROKEN] for line, row in zip(lines, rows, strict=True)), key=repr)
    return " ".join(
        [str(files), *sorted(found, key=lambda line: (line[0] != "{", line.startswith("{ "), line))]
    )


@pytest.mark.parametrize("name", LAYOUTS)
def test_layouts(name: str, tmp_path: Path) -> None:
    """All of them are read here."""
    path = lay(tmp_path, name)
    rows = [row for batch in read_here(path) for row in batch.to_pylist()]
    assert shown(rows, len(table_files(path))) == LAYOUTS[name][2]


@pytest.mark.spark
def test_spark_reads_the_same(spark: SparkSession, tmp_path: Path) -> None:
    """Rows are the same, with the types of what folders name; and so are documents."""
    for name in ("zst", "days", "numbers", "fractions", "nothing", "pattern below a folder"):
        wanted = LAYOUTS[name][2]
        path = lay(tmp_path / name.replace(" ", "-"), name)
        assert shown(read_lines(spark, path).collect(), int(wanted.split()[0])) == wanted, name
    for place in ("a.xml", "b.xml.gz", "in/c.xml", "d.txt"):
        packed(tmp_path / "documents" / place, "<a/>")
    found = read_files(spark, str(tmp_path / "documents" / "*.xml*"), XML).collect()
    assert sorted(row["path"].rpartition("/")[2] for row in found) == ["a.xml", "b.xml.gz"]
    write_table(spark.sql("SELECT 1 AS a, 'x' AS b"), str(tmp_path / "out.csv.gz"))
    assert read_file(tmp_path / "out.csv.gz") == b"a,b\n1,x\n"


UNSURE = {
    "a file beside folders": (["a.jsonl", "day=1/b.jsonl"], "do not name the same columns"),
    "other columns": (["day=1/a.jsonl", "week=1/b.jsonl"], "do not name the same columns"),
    "no column": (["deeper/b.jsonl"], "deeper/b.jsonl lies in a folder inside it"),
    "a time": (["at=2026-11-01T10:00/a.jsonl"], "the type of at, which its folders name, is not clear"),
    "days and numbers": (["at=2026-11-01/a.jsonl", "at=7/a.jsonl"], "the type of at"),
    "a column of the files": (["id=7/a.parquet"], "id is a column of its files and a folder's name"),
    "twice": (["day=1/DAY=2/a.jsonl"], "in folders that name a column twice"),
}


@pytest.mark.parametrize("name", UNSURE)
def test_folders_that_are_left_to_spark(name: str, tmp_path: Path) -> None:
    """What Spark might read in another way is not read here."""
    files, reason = UNSURE[name]
    for place in files:
        packed(tmp_path / place, ONE)
    with pytest.raises(UnsureError, match=reason):
        list(read_here(str(tmp_path)))


def test_what_is_refused(tmp_path: Path) -> None:
    """A pattern that nothing fits, files of two formats, damaged files, and an output among the inputs."""
    put(tmp_path / "mixed" / "a.jsonl", "{}\n")
    put(tmp_path / "mixed" / "b.csv.gz", "id\n")
    (tmp_path / "bad.jsonl.gz").write_bytes(gzip.compress(b"{}\n" * 100)[:-9])
    put(tmp_path / "bad.jsonl.zst", "{}")
    inside = str(tmp_path / "mixed" / "a.jsonl")
    for path, reason in (
        (tmp_path / "no*.jsonl", r"no file fits .*no\*\.jsonl$"),
        (tmp_path / "mixed", "has a.jsonl and b.csv.gz: keep files of one format in a table"),
        (tmp_path / "bad.jsonl.gz", "bad.jsonl.gz cannot be read: it is no sound gzip file"),
        (tmp_path / "bad.jsonl.zst", "bad.jsonl.zst cannot be read: it is no sound zstd file"),
    ):
        with pytest.raises(TableError, match=reason):
            list(read_here(str(path)))
    with pytest.raises(TableError, match=r"a\.jsonl is named twice"):
        check_apart(str(tmp_path / "mixed" / "*.jsonl"), inside)


def test_a_name_with_the_signs_of_a_pattern(tmp_path: Path) -> None:
    """A file of that very name is meant."""
    path = put(tmp_path / "a[1].jsonl", "{}\n")
    put(tmp_path / "a1.jsonl", "{}\n{}\n")
    assert check_input(path) is Format.JSONL
    assert len([row for batch in read_here(path) for row in batch.to_pylist()]) == 1
    assert format_of("out.csv.zst") is Format.CSV


@pytest.mark.parametrize("ending", ["jsonl", "jsonl.gz", "csv.zst"])
def test_outputs_are_packed(ending: str, tmp_path: Path) -> None:
    """What is written packed is read again, and nothing is left beside it."""
    place = tmp_path / f"out.{ending}"
    write_here(pa.table({"a": [1, 2]}), str(place))
    assert read_file(place) == (b"a\n1\n2\n" if "csv" in ending else b'{"a":1}\n{"a":2}\n')
    assert [file.name for file in tmp_path.iterdir()] == [place.name]


FILTERS = [{"id": 1, "filter": "a = 'x'"}, {"id": 2, "filter": "a ="}]


def test_documents_may_be_packed(headgate: Command, tmp_path: Path) -> None:
    """A pattern of packed documents; one that is damaged, or too long when it is unpacked, is refused."""
    subscriptions = put_lines(tmp_path / "s.jsonl", [{"id": 1, "filter": "//a", "dialect": "xpath"}])
    assert headgate("compile", "--subscriptions", subscriptions, "--output", tmp_path / "s").code == 0
    for name in ("a.xml", "b.xml.gz", "c.xml.zst"):
        packed(tmp_path / "d" / name, "<a/>")
    packed(tmp_path / "d" / "long.xml.gz", "<a>" + " " * XML.most + "</a>")
    (tmp_path / "d" / "bad.xml.gz").write_bytes(b"<a/>")
    ran = headgate(
        "match", "--snapshot", tmp_path / "s", "--events", tmp_path / "d" / "*.xml*", "--output", "-"
    )
    assert ran.code == 0
    assert [json.loads(line)["event_id"] for line in ran.out.splitlines()] == [
        "a.xml",
        "b.xml.gz",
        "c.xml.zst",
    ]
    assert "it is no sound gzip file" in ran.err
    assert f"the document has more than {XML.most:,} bytes" in ran.err


def say(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    """Put something on standard input."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))


def test_standard_input_and_output(
    headgate: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tables come from standard input and go to standard output; all that is said goes to stderr."""
    lines = "".join(f"{json.dumps(row)}\n" for row in FILTERS).encode()
    snapshot = tmp_path / "s"
    for given in (lines, gzip.compress(lines)):
        say(monkeypatch, given)
        ran = headgate("compile", "--subscriptions", "-", "--output", snapshot)
        assert (ran.code, ran.err) == (0, "")
    assert len(get_table(tmp_path / "s-rejected.jsonl")) == 1
    say(monkeypatch, (ONE + TWO + "{}\n" * 7).encode())
    ran = headgate("match", "--snapshot", snapshot, "--events", "-", "--output", "-", "--strict")
    assert (ran.code, ran.out) == (3, '{"event_id":1,"subscription_id":1}\n')
    assert ran.err.splitlines()[:2] == [
        "matched 2 events: 1 matches in standard output",
        "refused 7 events, with the reasons in the lines below",
    ]
    assert ran.err.count("refused: the event has no id") == 5
    assert ran.err.endswith("refused: 2 more; --rejected TABLE keeps all of them\n")
    assert {file.name for file in tmp_path.iterdir()} == {"s", "s-rejected.jsonl"}


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--nodes", "-", "--edges", "-"), "--nodes and --edges are both standard input: give one of them"),
        (("--subscriptions", "-", "--master", "spark://h:1"), "workers of spark://h:1 do not see what"),
    ],
)
def test_standard_input_is_refused(
    headgate: Command, tmp_path: Path, words: tuple[str, ...], reason: str
) -> None:
    ran = headgate("compile", "--output", tmp_path / "s", *words)
    assert ran.code == 2
    assert reason in ran.complaint


def test_errors_name_standard_input(
    headgate: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    say(monkeypatch, gzip.compress(b"{}\n" * 100)[:-9])
    ran = headgate("compile", "--subscriptions", "-", "--output", tmp_path / "s")
    assert ran.complaint.startswith("standard input cannot be read: it is no sound gzip file")
