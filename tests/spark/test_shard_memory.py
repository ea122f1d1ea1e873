"""An index that is too large for a worker: in one piece it is refused in one line, in shards it works.

Spark limits the address space of its Python workers. The filters are few and long, so that the index is large
and quickly matched.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headgate import Subscription
from headgate.records.index.index import RecordIndex

if TYPE_CHECKING:
    from pathlib import Path

FILTERS, CHARACTERS, SHARDS = 4000, 200_000, "32"
"""About 1,530 MB of arrays."""
LIMIT = "2000m"
"""What a worker may map; without an index it is 700 MB, most of it libraries. A shard is built in 900 MB."""
SCRIPT = """
import json, sys
from headgate.errors import HeadgateError
from headgate.jobs.match import match_events
from headgate.spark.runner import SparkRunner
from headgate.jobs.compile import compile_subscriptions
from headgate.runtime.sharding import Sharding
from headgate.spark.session.session import close_session, open_session
count, limit = int(sys.argv[1]), sys.argv[2]
name = f"cut-{count}"
settings = {"spark.sql.execution.arrow.maxRecordsPerBatch": "50", "spark.driver.memory": "6g"}
settings |= {"spark.executor.pyspark.memory": limit} if limit else {}
session = open_session("local[1]", settings=settings)
try:
    if len(sys.argv) > 3:
        runner = SparkRunner(session, quiet=True)
        compile_subscriptions(runner, "subs.parquet", name, rejected="r.jsonl", sharding=Sharding(count))
        said = {}
    else:
        runner = SparkRunner(session, quiet=True)
        done = match_events(runner, name, "events.parquet", f"{name}.jsonl", rejected="e.jsonl")
        said = {"matches": done.matches}
except HeadgateError as error:
    said = {"kind": type(error).__name__, "error": str(error)}
close_session(session)
print(json.dumps(said))
"""


def run(folder: Path, *arguments: str) -> dict[str, object]:
    """Run the script in a process of its own: the limit is one of a whole session."""
    command = [sys.executable, "-c", SCRIPT, *arguments]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=1200, check=False)
    assert ran.returncode == 0, ran.stderr
    found: dict[str, object] = json.loads(ran.stdout.splitlines()[-1])
    return found


@pytest.mark.nightly
def test_shards_fit_where_the_whole_does_not(tmp_path: Path) -> None:
    numbers = list(range(FILTERS))
    long = "x" * CHARACTERS
    filters = [f"a = '{number}{long}' OR b = {number}" for number in numbers]
    pq.write_table(pa.table({"id": numbers, "filter": filters}), tmp_path / "subs.parquet", row_group_size=50)
    pq.write_table(pa.table({"id": numbers, "b": numbers}), tmp_path / "events.parquet")
    # By the library: Spark's driver would need some gigabytes to collect it.
    RecordIndex.build(Subscription(number, text) for number, text in enumerate(filters)).save(
        tmp_path / "cut-1"
    )
    said = run(tmp_path, "1", LIMIT)
    assert said["kind"] == "MachineError"
    assert "does not fit into the memory of 2,000 MB of a worker: compile it in more shards" in str(
        said["error"]
    )
    assert "\n" not in str(said["error"])
    # The workers that build the shards are as small.
    assert run(tmp_path, SHARDS, LIMIT, "compile") == {}
    assert run(tmp_path, SHARDS, LIMIT) == {"matches": FILTERS}
    found = {
        tuple(json.loads(line).values())
        for line in (tmp_path / f"cut-{SHARDS}.jsonl").read_text().splitlines()
    }
    assert found == {(number, number) for number in numbers}
