"""What several tests share."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from tests.seeds import NIGHTLY, share

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

# Before any test module is imported: what a module says about its own examples starts from the profile.
settings.register_profile("nightly", deadline=None, print_blob=True, max_examples=100)
settings.register_profile("default", settings.get_profile("nightly"), max_examples=share(100))
settings.load_profile("nightly" if NIGHTLY else "default")


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


def pytest_collection_finish() -> None:
    """Let the collector pass over what collecting has made: it stays, and is walked through ever again."""
    gc.collect()
    gc.freeze()
