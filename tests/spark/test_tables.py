"""Tables in files: formats, places that are refused, and what a write leaves behind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from headgate.errors import TableError
from headgate.spark.tables.tables import read_csv, to_frame, write_table
from headgate.tables.places import (
    Format,
    check_apart,
    check_input,
    check_links,
    check_output,
    for_reading,
    format_of,
)
from headgate.tables.requests import check_events
from headgate.xml.kind import KIND as XML_DOCUMENTS
from tests.spark.files import FORMS, get_table, names, put

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("a.jsonl", Format.JSONL),
        ("a.ndjson", Format.JSONL),
        ("a.json", Format.JSONL),
        ("A.CSV", Format.CSV),
        ("s3://b/a.parquet/", Format.PARQUET),
    ],
)
def test_the_ending_is_the_format(name: str, form: Format) -> None:
    assert format_of(name) is form


def test_a_directory_is_known_by_its_files(tmp_path: Path) -> None:
    put(tmp_path / "_SUCCESS", "")
    put(tmp_path / ".hidden.csv", "")
    with pytest.raises(
        TableError, match=r"is not clear: put some there, or let its name end in one of \.jsonl"
    ):
        format_of(str(tmp_path))
    put(tmp_path / "part-0.snappy.parquet", "")
    assert format_of(str(tmp_path)) is Format.PARQUET


def test_inputs_that_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TableError, match=r"no.jsonl does not exist"):
        check_input(str(tmp_path / "no.jsonl"))
    with pytest.raises(TableError, match=r"the format of .* is not clear"):
        check_input(put(tmp_path / "table.txt", ""))


def test_outputs_that_are_refused(tmp_path: Path) -> None:
    file = put(tmp_path / "file.parquet", "mine")
    put(tmp_path / "mine.jsonl" / "precious", "")
    put(tmp_path / "mine.parquet" / "precious", "")
    for path, reason in (
        (file, "is a file and a Parquet table is a directory"),
        (str(tmp_path / "mine.jsonl"), "is a directory that Headgate did not write"),
        (str(tmp_path / "mine.parquet"), "is a directory that Headgate did not write"),
        (f"{file}/below/out.jsonl", "is not a directory"),
        (str(tmp_path / "out.txt"), "the format of .* is not clear"),
        ("s3://bucket/out.jsonl", "a single file is written to a local path only"),
    ):
        with pytest.raises(TableError, match=reason):
            check_output(path)


def test_links_that_lead_out_of_a_folder_are_refused(tmp_path: Path) -> None:
    put(tmp_path / "outside" / "o.jsonl", "{}")
    folder = tmp_path / "in"
    put(folder / "deeper" / "a.jsonl", "{}")
    put(folder / "b.jsonl", "{}")
    # A link to the folder is that folder; one inside of it that stays there is a second name.
    (folder / "c.jsonl").symlink_to("deeper/a.jsonl")
    (folder / "_left.jsonl").symlink_to(tmp_path / "outside" / "o.jsonl")
    (tmp_path / "link").symlink_to(folder)
    for path in (str(folder), str(tmp_path / "link"), f"file://{folder}"):
        assert check_input(path) is Format.JSONL
        check_links(path)
    out, circle = folder / "deeper" / "d.jsonl", folder / "circle"
    out.symlink_to(tmp_path / "outside" / "o.jsonl")
    with pytest.raises(TableError) as refused:
        check_input(str(folder))
    assert str(refused.value) == f"{out} is a link that leads out of {folder}: put the file itself there"
    with pytest.raises(TableError, match="is a link that leads out of"):
        check_events(str(folder), XML_DOCUMENTS)
    check_links(str(folder), folders=True)
    circle.symlink_to(folder)
    with pytest.raises(
        TableError, match=r"circle is a link to a folder, which is not followed: put the folder"
    ):
        check_links(str(folder), folders=True)
    # A table that is one file may be a link, as ever.
    assert check_input(str(folder / "deeper" / "d.jsonl")) is Format.JSONL


def test_places_named_twice_are_found_under_any_name(tmp_path: Path) -> None:
    file = put(tmp_path / "a.jsonl", "")
    (tmp_path / "link.jsonl").symlink_to(file)
    check_apart(file, str(tmp_path / "b.jsonl"), None, None)
    for other in (f"file://{file}", f"{tmp_path}/./a.jsonl", str(tmp_path / "link.jsonl")):
        with pytest.raises(TableError, match="is named twice"):
            check_apart(file, None, other)


def test_paths_reach_spark_as_they_are() -> None:
    assert for_reading("/a b/[1]*.csv") == r"file:///a b/\[1\]\*.csv"
    assert for_reading("s3://bucket/*.csv") == "s3://bucket/*.csv"


@pytest.mark.parametrize("form", FORMS)
def test_a_write_replaces_and_leaves_nothing_else(spark: SparkSession, tmp_path: Path, form: str) -> None:
    place = tmp_path / "new folder" / f"out.{form}"
    for count in (5, 3):
        write_table(spark.range(0, count, 1, 3), str(place))
        assert [int(row["id"]) for row in get_table(place)] == list(range(count))
        assert names(place.parent) == [f"out.{form}"]
    link = tmp_path / f"link.{form}"
    link.symlink_to(place)
    write_table(spark.range(1), str(link))
    assert link.is_symlink()
    assert len(get_table(place)) == 1


@pytest.mark.parametrize("form", FORMS)
def test_a_write_that_fails_keeps_what_was_there(spark: SparkSession, tmp_path: Path, form: str) -> None:
    place = tmp_path / f"out.{form}"
    write_table(spark.range(2), str(place))
    with pytest.raises(Exception, match="CAST_INVALID_INPUT"):
        write_table(spark.range(0, 9, 1, 3).selectExpr("CAST(concat('x', id) AS BIGINT) AS id"), str(place))
    assert len(get_table(place)) == 2
    assert names(tmp_path) == [f"out.{form}"]


def test_values_of_csv_come_back_as_they_were(spark: SparkSession, tmp_path: Path) -> None:
    texts = ["plain", " padded ", "a,b", 'q"q', "two\nlines", "\\", "", "é😀", "\t", "#", "'"]
    rows = [(text, 1) for text in texts]
    write_table(spark.createDataFrame(rows, '`a,"b` string, n long').coalesce(1), str(tmp_path / "t.csv"))
    assert [row['a,"b'] for row in get_table(tmp_path / "t.csv")] == texts


@pytest.mark.parametrize("header", ["id,a,a", "id,a,A", '"id","a\nb","a\nb"'])
def test_a_csv_header_names_each_column_once(spark: SparkSession, tmp_path: Path, header: str) -> None:
    put(tmp_path / "events.csv", f"{header}\n1,2,3\n")
    with pytest.raises(TableError, match=r"events\.csv: the header names the column 'a.*' 2 times"):
        read_csv(spark, str(tmp_path / "events.csv"), typed=True)


def test_no_row_is_lost_on_the_way_to_spark(spark: SparkSession) -> None:
    one = pa.table({"a": ["x"]})
    none = one.slice(0, 0)
    assert to_frame(spark, pa.concat_tables([one, none, none, one, none, one])).count() == 3
    assert to_frame(spark, none).count() == 0
