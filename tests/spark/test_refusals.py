"""Refused rows are counted by kind of reason, whatever the table's format."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from headgate.jobs.summary import MOST, refusals_of
from tests.spark.files import FORMS, Row, put, put_table
from tests.spark.jobs import on_both, runner_of

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

ROWS: list[Row] = [
    {"row": '{"a": 1}', "reason": "the event has no id"},
    {"row": '{"a": 2}', "reason": "the event has no id"},
    {"row": "x", "reason": "attribute 'aeg' is not in the schema, at character 3: a ⟪+"},
    {"row": "y", "reason": "attribute 'agee' is not in the schema, at character 17: b ⟪*"},
    {"row": "z", "reason": "attribute 'topc' is not in the schema, at character 1: ⟪/"},
]


@pytest.mark.parametrize("form", FORMS)
def test_rows_are_counted_by_kind(session: SparkSession | None, tmp_path: Path, form: str) -> None:
    first, second = refusals_of(runner_of(session), put_table(tmp_path / f"rejected.{form}", ROWS))
    assert (first.reason, first.rows) == ("attribute … is not in the schema", 3)
    assert first.examples[0].startswith("attribute 'aeg' is not in the schema, at character 3")
    assert first.examples[0].endswith(", in x")
    assert len(first.examples) == 2
    assert (second.reason, second.rows) == ("the event has no id", 2)
    assert second.examples == ('the event has no id, in {"a": 1}', 'the event has no id, in {"a": 2}')


@on_both()
def test_nothing_refused_and_too_many_kinds(session: SparkSession | None, tmp_path: Path) -> None:
    assert refusals_of(runner_of(session), put(tmp_path / "none.jsonl", "")) == ()
    letters = "abcdefghijklmnopqrstuvwxyz"
    rows: list[Row] = [{"table": "t", "row": "r", "reason": f"reason {letter}"} for letter in letters]
    found = refusals_of(runner_of(session), put_table(tmp_path / "many.parquet", rows))
    assert len(found) == MOST
    assert (found[-1].reason, found[-1].rows) == (
        f"{len(letters) - MOST + 1} other reasons",
        len(letters) - MOST + 1,
    )
    assert sum(each.rows for each in found) == len(letters)
