"""Runs that are killed at any moment: the next one completes them, and the result is the same."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from headgate.pipeline.file.read import read_pipeline
from headgate.pipeline.run.run import RunOptions, run_pipeline
from headgate.pipeline.run.state import stamp
from tests.cli.running import HEADGATE, run_alone
from tests.spark.files import names, put

if TYPE_CHECKING:
    from typing import Any

TEXT = """
[generate]
workload = "mixed"
subscriptions = 1_000
events = 500
[[match]]
name = "all"
[[match]]
name = "again"
"""
STEPS = ("generate", "compile", "match.all", "summary.all", "match.again")
SECONDS = 120


def rows(path: Path) -> list[Any]:
    """Return a table of matches in an order of its own."""
    table = pq.read_table(path)
    return table.sort_by([(name, "ascending") for name in table.column_names]).to_pylist()


def kill_in(file: Path, step: str, later: float, *more: str) -> None:
    """Run a pipeline and kill it, so many seconds after a step has begun; or let it end, if it is quicker."""
    command = [HEADGATE, "run", str(file), *more]
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as running:
        assert running.stderr is not None
        seen = []
        for line in running.stderr:
            seen.append(line)
            if line.startswith(f"{step}: begun"):
                time.sleep(later)
                break
        if running.poll() is None:
            # The whole group: what is left of Spark would only take this machine's time.
            os.killpg(running.pid, signal.SIGKILL)
        running.wait(SECONDS)
        assert seen, "it never said anything"


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("kills", [1, *(pytest.param(kills, marks=pytest.mark.nightly) for kills in (3, 30))])
@pytest.mark.nightly
def test_a_run_that_was_killed_is_completed_by_the_next(tmp_path: Path, kills: int) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    whole = Path(put(tmp_path / "whole.toml", TEXT))
    run_pipeline(read_pipeline(whole), RunOptions(quiet=True))
    killed = Path(put(tmp_path / "killed.toml", TEXT))
    few = sorted(chance.sample(range(len(STEPS)), min(kills, 3)))
    for number in range(kills):
        # Later steps after earlier ones: what is done is passed over, and could not be killed.
        step = STEPS[few[number] if kills <= 3 else number % len(STEPS)]
        anew = ["--fresh"] if number and step == STEPS[0] else []
        kill_in(killed, step, chance.random() * 2, *anew)
    if kills == 1:
        # The Spark that is there completes it as well as one of its own.
        run_pipeline(read_pipeline(killed), RunOptions(quiet=True))
    else:
        ran = run_alone("run", killed, "--quiet", "--json")
        assert ran.code == 0, ran.err
    ours, theirs = tmp_path / "killed", tmp_path / "whole"
    assert names(ours) == names(theirs)
    for name in ("all.parquet", "again.parquet"):
        assert rows(ours / name) == rows(theirs / name)
    assert stamp(str(ours / "snapshot")) == stamp(str(theirs / "snapshot"))
    again = run_alone("run", killed, "--quiet", "--json").json
    assert {step["status"] for step in again["steps"]} == {"skipped"}
