"""What tests of jobs share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(
    scope="session",
    params=["local", pytest.param("spark", marks=[pytest.mark.nightly, pytest.mark.spark])],
)
def session(request: pytest.FixtureRequest) -> SparkSession | None:
    """Give no Spark, so that jobs run in this process, and nightly also the shared one."""
    if request.param == "local":
        return None
    spark: SparkSession = request.getfixturevalue("spark")
    return spark
