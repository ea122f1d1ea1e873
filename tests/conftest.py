"""What several tests share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Share one embedded Spark among all tests that need one."""
    from headgate.spark.session import close_session, open_session

    session = open_session(
        settings={"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
    )
    yield session
    close_session(session)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark whatever uses Spark, so that no test can forget to."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker("spark")
