"""CSV is read here as Spark reads it, or left to Spark."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any

import pytest

from headgate.spark.tables.tables import read_columns, read_lines
from headgate.tables.csv_text import read_csv, typed
from headgate.tables.lines import BROKEN, VALUE
from headgate.tables.lines import read_lines as read_here
from headgate.tables.places import Format, UnsureError

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

COLUMNS = {
    "whole": ["7", "-8", "+9", "007", ""],
    "long": ["1", "123456789012345678", "", "-5", "0"],
    "fraction": ["1.5", "-.5", "2", "", "0.10"],
    "truth": ["true", "FALSE", "True", "", "false"],
    "day": ["2024-02-29", "1999-12-31", "", "2024-01-01", "2024-01-02"],
    "text": ["art", "Ünï, cödé", "it's", "", 'a "b"'],
    "mixed": ["7", "art", "1.5", "true", ""],
    "truths_and_numbers": ["true", "7", "", "false", "1"],
    "ordinals": ["3rd", "7", "", "5th", "2nd"],
    "blanks": ["", "", "", "", ""],
    "spaces": [" art", "a b", "c ", "", "x"],
    "letters": ["T", "nano", "info", "E5", "e"],
}
"""Columns whose types are clear."""
UNCLEAR = {
    "exponent": ["1e5", "2"],
    "point": ["1.", "2"],
    "suffix": ["1.5d", "2"],
    "large": ["12345678901234567890", "2"],
    "time": ["12:30", ""],
    "moment": ["2024-01-01T00:00:00Z", ""],
    "years": ["2024-01-01", "2024"],
    "no_day": ["2024-02-30", ""],
    "none": ["NaN", "1.5"],
    "space": [" 7", "8"],
    "month": ["2024-01", ""],
}
"""Columns that Spark may take for something else than one would think."""


def put(path: Path, columns: dict[str, list[str]]) -> str:
    """Write a table of columns, with ids."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["id", *columns])
    rows = zip(*columns.values(), strict=True)
    writer.writerows([number, *row] for number, row in enumerate(rows))
    path.write_text(text.getvalue(), "utf-8")
    return str(path)


@pytest.mark.spark
def test_types_are_those_that_spark_infers(spark: SparkSession, tmp_path: Path) -> None:
    """Values and their types are the same, column by column."""
    path = put(tmp_path / "clear.csv", COLUMNS)
    found = typed(read_csv(path, [tmp_path / "clear.csv"]), path, ("id",))
    wanted = read_columns(spark, path, Format.CSV).drop(BROKEN).toArrow()
    for name in ("id", *COLUMNS):
        values, told = found[name].to_pylist(), wanted[name].to_pylist()
        assert [(type(value), value) for value in values] == [(type(value), value) for value in told], name


@pytest.mark.parametrize("name", UNCLEAR)
def test_unclear_types_are_left_to_spark(name: str, tmp_path: Path) -> None:
    """A column that Spark may take for something else is not read here."""
    path = put(tmp_path / "unclear.csv", {name: UNCLEAR[name]})
    with pytest.raises(UnsureError, match=name):
        typed(read_csv(path, [tmp_path / "unclear.csv"]), path, ("id",))


FILES = {
    "plain": "id,filter\n1,a > 1\n2,b = 'x'\n",
    "mark": "\ufeffid,filter\n1,a > 1\n",
    "ends": "id,filter\r\n1,a > 1\r\n2,b",
    "quotes": 'id,filter\n1,"a = ""x"" , b"\n"2","two\nlines"\n',
    "empty": 'id,filter,dialect\n1,,""\n"",x,\n',
    "fewer": "id,filter\n1\n2,b\n3,c,d\n",
    "blank": "id,filter\n\n1,a\n\n\n2,b\n",
    "late": "\n\nid,filter\n1,7\n",
    "nothing": "",
    "header": "id,filter\n",
}
IRREGULAR = {
    "inside": 'id,filter\n1,a "b" c\n',
    "after": 'id,filter\n1,"a"b\n',
    "open": 'id,filter\n1,"a\n2,b\n',
    "spaces": "id,filter\n  \n1,b\n",
    "carriage": "id,filter\r1,a\r2,b\r",
    "nameless": "id,,filter\n1,2,b\n",
}


@pytest.mark.spark
@pytest.mark.parametrize("name", FILES)
def test_rows_are_as_spark_writes_them(spark: SparkSession, tmp_path: Path, name: str) -> None:
    """Lines of JSON, and broken lines, are the same."""
    path = tmp_path / f"{name}.csv"
    path.write_text(FILES[name], "utf-8", newline="")
    told = [(row[VALUE] and bytes(row[VALUE]), row[BROKEN]) for row in read_lines(spark, str(path)).collect()]
    here: list[Any] = [row for batch in read_here(str(path)) for row in batch.to_pylist()]
    assert sorted([(row[VALUE], row[BROKEN]) for row in here], key=repr) == sorted(told, key=repr)


@pytest.mark.parametrize("name", IRREGULAR)
def test_irregular_files_are_left_to_spark(name: str, tmp_path: Path) -> None:
    """A file that may be read in two ways is not read here."""
    path = tmp_path / f"{name}.csv"
    path.write_text(IRREGULAR[name], "utf-8", newline="")
    with pytest.raises(UnsureError):
        list(read_here(str(path)))
