"""The jobs that the contract does not ask, over every content in one process, give what the engine gives.

Some cells are in the default lane: those with the most steps, over one content. The others are nightly.
`test_cluster` has every job on separate workers.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

from headgate.core.rooms import RDF, RECORDS, XML
from tests.spark.every_job import ALONE, CONTENTS, JOBS, TUPLES, Jobs, World, expected, jobs_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SOME = {(RDF, "backtest"), (XML, TUPLES)}
CELLS = [(content, job) for content in CONTENTS for job in jobs_of(content) if job in {*ALONE, TUPLES}]


@cache
def wanted(content: str) -> dict[str, Any]:
    """Ask the engine, once for each content."""
    found = expected(World(content))
    assert set(found) == set(jobs_of(content))
    return found


@pytest.fixture(scope="module")
def local(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Jobs]:
    """Make the worlds in which jobs run in this process."""
    folder = tmp_path_factory.mktemp("jobs")
    return {content: Jobs.new(spark, folder / content, content) for content in CONTENTS}


@pytest.mark.parametrize(
    ("content", "job"),
    [
        pytest.param(content, job, marks=[] if (content, job) in SOME else pytest.mark.nightly)
        for content, job in CELLS
    ],
)
def test_a_job_in_one_process(local: dict[str, Jobs], content: str, job: str) -> None:
    assert wanted(content)[job], "there is something to find"
    assert local[content].answer(job) == wanted(content)[job]


def test_contents_agree() -> None:
    """The three contents tell one world, so that a slip in one of them shows."""
    for name in JOBS:
        if "relaxed" not in name:
            assert wanted(RECORDS)[name] == wanted(RDF)[name] == wanted(XML)[name], name
