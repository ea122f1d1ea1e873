"""Compile and match where workers are processes of their own, and a real installation ships the code."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyspark
import pytest

from headgate import RecordIndex, Subscription
from headgate.workloads import advertising
from tests.spark.files import Row, get_lines, names, put_lines

SCRIPT = """
import dataclasses, json
from headgate.spark.compile import compile_subscriptions
from headgate.spark.compile_graph import Tables, compile_graph
from headgate.spark.match import match_events
from headgate.spark.session import close_session, open_session

session = open_session("local-cluster[2,1,1024]")
compiled = compile_subscriptions(session, "subs.jsonl", "snapshot", rejected="refused-subs.jsonl", quiet=True)
matched = match_events(
    session, "snapshot", "events.jsonl", "matches.jsonl", rejected="refused-events.jsonl", quiet=True
)
tables = Tables("nodes.jsonl", "edges.jsonl")
through = compile_graph(session, tables, "graph", rejected="refused-rows.jsonl", shards=2, quiet=True)
passed = match_events(
    session, "graph", "sent.jsonl", "passed.jsonl", rejected="refused-sent.jsonl", quiet=True
)
said = {"executors": session.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1}
close_session(session)
said |= {"compiled": [compiled.subscriptions, compiled.rejected]}
said |= {"matched": [matched.events, matched.rejected, matched.matches]}
said |= {"graph": [through.nodes, through.edges, through.rejected]}
said |= {"passed": [passed.events, passed.rejected, passed.matches]}
print(json.dumps(said))
"""


@pytest.mark.spark
def test_a_cluster_gives_the_same_answers(tmp_path: Path) -> None:
    made = advertising.subscriptions(np.arange(400), 2).to_pylist()
    events = advertising.events(np.arange(300), 2)
    rows = [{**row, "time": row["time"].isoformat()} for row in events.to_pylist()]
    put_lines(tmp_path / "subs.jsonl", [*made, {"id": "bad", "filter": "age +"}])
    put_lines(tmp_path / "events.jsonl", [*rows, {"no": "id"}])
    nodes: list[Row] = [{"id": n, "filter": f"age > {n}", "subscription": n} for n in range(1, 60)]
    put_lines(tmp_path / "nodes.jsonl", [{"id": 0}, *nodes, {"id": 99, "filter": "age +"}])
    put_lines(tmp_path / "edges.jsonl", [{"source": n // 2, "target": n} for n in range(1, 60)])
    put_lines(tmp_path / "sent.jsonl", [{"id": 7, "source": 0, "age": 30}, {"id": 8, "source": 99}])
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    index = RecordIndex.build(Subscription(row["id"], row["filter"]) for row in made)
    answer = index.match_batch(events).to_pylist()
    assert json.loads(done.stdout) == {
        "executors": 2,
        "compiled": [400, 1],
        "matched": [300, 1, len(answer)],
        "graph": [60, 59, 1],
        "passed": [1, 1, 29],
    }
    passed = sorted((row["event_id"], row["subscription_id"]) for row in get_lines(tmp_path / "passed.jsonl"))
    assert passed == [(7, n) for n in range(1, 30)]
    assert get_lines(tmp_path / "matches.jsonl") == answer
    assert not (Path(pyspark.__file__).parent / "work").exists()
    assert names(tmp_path) == [
        "edges.jsonl",
        "events.jsonl",
        "graph",
        "matches.jsonl",
        "nodes.jsonl",
        "passed.jsonl",
        "refused-events.jsonl",
        "refused-rows.jsonl",
        "refused-sent.jsonl",
        "refused-subs.jsonl",
        "sent.jsonl",
        "snapshot",
        "subs.jsonl",
    ]
