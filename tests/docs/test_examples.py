"""The examples run and say what they should."""

from __future__ import annotations

from typing import TYPE_CHECKING

from examples import library, spark_job

if TYPE_CHECKING:
    import pytest
    from pyspark.sql import SparkSession


def test_library(capsys: pytest.CaptureFixture[str]) -> None:
    library.main()
    assert capsys.readouterr().out.splitlines() == [
        "matches: ['anna', 'ben']",
        "carla: no match, because of user.city LIKE 'Z%'",
        "refused: '+' is not part of the filter language here, at character 5: age ⟪+ 1 > 30",
        "batch: [{'event_id': 1, 'subscription_id': 'ben'}]",
    ]


def test_spark_job(capsys: pytest.CaptureFixture[str], spark: SparkSession) -> None:
    spark_job.main()
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "compiled 2, refused 1"
    assert said[1].startswith("a subquery is not part of the filter language, at character ")
    assert said[2:] == ["a 1", "a 2", "c 1"]
    assert spark.range(1).count() == 1
