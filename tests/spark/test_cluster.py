"""Jobs where workers are processes of their own, and a real installation ships the code.

All clusters are in this file: they share a folder inside Spark, and files of tests may run
at the same time.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyspark
import pytest

from headgate import Subscription
from headgate.records.index.index import RecordIndex
from headgate.workloads.records import advertising
from tests.conftest import SMALL_TABLES
from tests.docs.fences import ROOT
from tests.spark.classes import java_options
from tests.spark.every_job import CONTENTS, Jobs, World, expected, jobs_of
from tests.spark.files import get_lines, names, put_lines
from tests.spark.test_session import END, JOB, run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MASTER = "local-cluster[2,1,1024]"
QUICK = {
    # Workers are those of a real installation, and there is one part for each.
    **{name: value for name, value in SMALL_TABLES.items() if name.startswith("spark.sql.")},
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.executor.extraJavaOptions": java_options()["SPARK_SUBMIT_OPTS"],
}
SCRIPT = """
import json
from headgate.jobs.compile import compile_subscriptions
from headgate.spark.runner import SparkRunner
from headgate.spark.session.listeners import listening
from headgate.jobs.match import match_events
from headgate.spark.runner import SparkRunner
from headgate.spark.session.session import close_session, open_session
from tests.spark.test_cluster import MASTER, QUICK

session = open_session(MASTER, settings=QUICK)
with listening(session) as activity:
    session.range(0, 800, 1, 8).selectExpr("id % 3 AS k").groupBy("k").count().collect()
runner = SparkRunner(session, quiet=True)
compiled = compile_subscriptions(runner, "subs.jsonl", "snapshot", rejected="refused-subs.jsonl")
matched = match_events(
    SparkRunner(session, quiet=True),
    "snapshot",
    "events.jsonl",
    "matches.jsonl",
    rejected="refused-events.jsonl",
)
said = {"executors": session.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1}
# The first holder that closes Spark ends it, whoever listens.
with listening(session) as cut:
    session.range(5).count()
    close_session(session)
said |= {"cut": len(cut.troubles)}
stages = [[s.planned, len(s.tasks), sorted({t.executor for t in s.tasks})] for s in activity.stages]
said |= {"activity": stages, "troubles": activity.troubles}
said |= {"compiled": [compiled.subscriptions, compiled.rejected]}
said |= {"matched": [matched.events, matched.rejected, matched.matches]}
print(json.dumps(said))
"""


def applications() -> list[str] | None:
    """List what clusters have left inside Spark, by now or by those that were killed; None if all is gone."""
    work = Path(pyspark.__file__).parent / "work"
    return names(work) if work.exists() else None


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Run every job on two workers that are processes of their own."""
    folder: Path = tmp_path_factory.mktemp("cluster")
    command = [sys.executable, "-m", "tests.spark.every_job", str(folder), MASTER]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert found["executors"] == 2
    return found


@pytest.mark.nightly
@pytest.mark.spark
@pytest.mark.parametrize(
    ("content", "job"), [(content, job) for content in CONTENTS for job in jobs_of(content)]
)
def test_every_job_on_separate_workers(cluster: dict[str, Any], content: str, job: str) -> None:
    assert cluster[content]["answers"][job] == expected(World(content))[job]


@pytest.mark.nightly
@pytest.mark.parametrize("content", CONTENTS)
def test_plans_are_the_same_on_separate_workers(
    spark: SparkSession, tmp_path: Path, cluster: dict[str, Any], content: str
) -> None:
    here = Jobs.new(spark, tmp_path / content, content).plan()
    assert here == cluster[content]["plan"]
    assert here[0] == 40


@pytest.mark.nightly
@pytest.mark.spark
def test_a_local_cluster_leaves_nothing_in_spark(tmp_path: Path) -> None:
    script = JOB.replace("open_session()", "open_session('local-cluster[1,1,1024]')")
    where = (
        "import pyspark, pathlib\nsaid['work'] = (pathlib.Path(pyspark.__file__).parent / 'work').exists()\n"
    )
    said = run(script + END.replace("print", where + "print"), tmp_path)
    assert said == {"rows": 3, "java": 0, "work": False}


@pytest.mark.nightly
@pytest.mark.spark
def test_a_cluster_gives_the_same_answers(tmp_path: Path) -> None:
    before = applications()
    made = advertising.subscriptions(np.arange(400), 2).to_pylist()
    events = advertising.events(np.arange(300), 2)
    rows = [{**row, "time": row["time"].isoformat()} for row in events.to_pylist()]
    put_lines(tmp_path / "subs.jsonl", [*made, {"id": "bad", "filter": "age +"}])
    put_lines(tmp_path / "events.jsonl", [*rows, {"no": "id"}])
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith("listening to Spark: Spark was gone before all of its events arrived")
    assert done.stderr.count("\n") == 1
    index = RecordIndex.build(Subscription(row["id"], row["filter"]) for row in made)
    answer = index.match_batch(events).to_pylist()
    told = json.loads(done.stdout)
    stages = told.pop("activity")
    assert stages[0][:2] == [8, 8]
    assert {executor for stage in stages for executor in stage[2]} <= {"0", "1"}
    assert told == {
        "executors": 2,
        "troubles": [],
        "cut": 1,
        "compiled": [400, 1],
        "matched": [300, 1, len(answer)],
    }
    assert get_lines(tmp_path / "matches.jsonl") == answer
    assert applications() == before
    assert names(tmp_path) == [
        "events.jsonl",
        "matches.jsonl",
        "refused-events.jsonl",
        "refused-subs.jsonl",
        "snapshot",
        "subs.jsonl",
    ]
