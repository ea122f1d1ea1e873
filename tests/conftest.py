"""What several tests share."""

from __future__ import annotations

import gc
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from headgate.core.jit import signatures
from tests.durations import Recorder
from tests.seeds import NIGHTLY, share
from tests.spark.classes import java_options

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

# Before any test module is imported: what a module says about its own examples starts from the profile.
settings.register_profile("nightly", deadline=None, print_blob=True, max_examples=100)
settings.register_profile("default", settings.get_profile("nightly"), max_examples=share(100))
settings.load_profile("nightly" if NIGHTLY else "default")

ROOT = Path(__file__).parents[1]

# Tables of tests are small: one task a stage, planned once, takes a fraction of the time of many.
SMALL_TABLES = {
    "spark.sql.shuffle.partitions": "1",
    "spark.default.parallelism": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # Workers are forked from a process that has imported what they need, whatever folder it runs in.
    "spark.python.daemon.module": "tests.spark.daemon",
    "spark.executorEnv.PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}",
}


def pytest_configure(config: pytest.Config) -> None:
    """Set what processes that tests start take over, and measure where that is asked for."""
    for name, options in java_options().items():
        os.environ.setdefault(name, options)
    # Every process of the tests refuses kernels that `headgate warm` would not have compiled.
    os.environ.setdefault(signatures.MODE, signatures.STRICT)
    folder = os.environ.get("HEADGATE_DURATIONS")
    if folder and not config.getoption("numprocesses", None):
        config.pluginmanager.register(Recorder(Path(folder)))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Share one embedded Spark among all tests of this process that need one."""
    from headgate.spark.session.session import close_session, open_session

    session = open_session("local[1,4]", settings=SMALL_TABLES)
    yield session
    close_session(session)


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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark whatever uses Spark, so that no test can forget to."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker("spark")


def pytest_collection_finish() -> None:
    """Let the collector pass over what collecting has made: it stays, and is walked through ever again."""
    gc.collect()
    gc.freeze()
