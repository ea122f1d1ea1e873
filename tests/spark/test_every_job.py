"""Every job over every content, in one process and on separate workers, gives what the engine gives."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from headgate.contents import XML
from tests.spark.every_job import CONTENTS, JOBS, TUPLES, Jobs, World, expected, put_world

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

CELLS = [*((content, job) for content in CONTENTS for job in JOBS), (XML, TUPLES)]


@pytest.fixture(scope="module")
def wanted() -> dict[str, Any]:
    """Ask the engine, once for each content."""
    found = {content: expected(World(content)) for content in CONTENTS}
    assert {(content, job) for content, answers in found.items() for job in answers} == set(CELLS)
    return found


@pytest.fixture(scope="module")
def local(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Run every job in this process."""
    found = {}
    for content in CONTENTS:
        folder, world = tmp_path_factory.mktemp("jobs") / content, World(content)
        put_world(folder, world)
        jobs = Jobs(spark, folder, world)
        found[content] = {"answers": jobs.run(), "plan": jobs.plan()}
    return found


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Run every job on two workers that are processes of their own."""
    folder: Path = tmp_path_factory.mktemp("cluster")
    command = [sys.executable, "-m", "tests.spark.every_job", str(folder), "local-cluster[2,1,1024]"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert found["executors"] == 2
    return found


@pytest.mark.parametrize(("content", "job"), CELLS)
def test_a_job_in_one_process(local: dict[str, Any], wanted: dict[str, Any], content: str, job: str) -> None:
    assert wanted[content][job], "there is something to find"
    assert local[content]["answers"][job] == wanted[content][job]


@pytest.mark.spark
@pytest.mark.parametrize(("content", "job"), CELLS)
def test_a_job_on_separate_workers(
    cluster: dict[str, Any], wanted: dict[str, Any], content: str, job: str
) -> None:
    assert cluster[content]["answers"][job] == wanted[content][job]


@pytest.mark.parametrize("content", CONTENTS)
def test_plans_are_the_same_on_separate_workers(
    local: dict[str, Any], cluster: dict[str, Any], content: str
) -> None:
    assert local[content]["plan"] == cluster[content]["plan"]
    assert local[content]["plan"][0] == 40


def test_contents_agree(wanted: dict[str, Any]) -> None:
    """The three contents tell one world, so that a slip in one of them shows."""
    for name in JOBS:
        if "relaxed" not in name:
            assert wanted["records"][name] == wanted["rdf"][name] == wanted["xml"][name], name
