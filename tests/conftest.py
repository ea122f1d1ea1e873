"""What several tests share."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
# Tables of tests are small: one task a stage, planned once, takes a fraction of the time of many.
SMALL_TABLES = {
    "spark.sql.shuffle.partitions": "1",
    "spark.default.parallelism": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # Workers are forked from a process that has imported what they need, whatever folder it runs in.
    "spark.python.daemon.module": "tests.spark.daemon",
    "spark.executorEnv.PYTHONPATH": str(Path(__file__).parents[1]),
}


def pytest_configure() -> None:
    """Let every Java that tests start, here or in processes of their own, compile little."""
    for name in ("SPARK_SUBMIT_OPTS", "SPARK_LAUNCHER_OPTS"):
        os.environ.setdefault(name, QUICK_JAVA)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Share one embedded Spark among all tests of this process that need one."""
    from headgate.spark.session import close_session, open_session

    session = open_session("local[1,4]", settings=SMALL_TABLES)
    yield session
    close_session(session)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark whatever uses Spark, so that no test can forget to."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker("spark")
