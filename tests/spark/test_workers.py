"""A cluster without workers: the command says so, goes on when one comes, and ends after a while."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from examples.cluster.standalone import Cluster
from headgate import Subscription
from headgate.records.index.index import RecordIndex
from headgate.spark.session.progress import WAIT, Absence
from tests.spark.files import get_table, names, put_lines

if TYPE_CHECKING:
    from pathlib import Path


def told(longest: float, moments: list[tuple[float, bool]]) -> tuple[list[tuple[float, str]], bool]:
    """Go through moments, each with whether work waits for workers; list what is told when."""
    absence = Absence("matching", "spark://m", longest)
    lines = [(now, absence.look(now, waiting=waiting)) for now, waiting in moments]
    return [(now, line) for now, line in lines if line is not None], absence.given_up


def test_it_is_told_rarely_and_given_up_at_last() -> None:
    lines, given_up = told(100, [(float(now), now > 4) for now in range(105)])
    assert [now for now, _ in lines] == [15, 25, 45, 85]
    assert lines[0][1] == (
        "matching: spark://m has had no worker for 10 s, and waits for one; it gives up after 100 s"
    )
    assert not given_up
    assert told(100, [(float(now), now > 4) for now in range(106)])[1]


def test_a_worker_that_comes_back_is_told_if_its_absence_was() -> None:
    lines, given_up = told(100, [(float(now), now not in {9, 30, 31}) for now in range(50)])
    assert lines == [
        (20, "matching: spark://m has had no worker for 10 s, and waits for one; it gives up after 100 s"),
        (30, "matching: spark://m has a worker again"),
        (42, "matching: spark://m has had no worker for 10 s, and waits for one; it gives up after 100 s"),
    ]
    assert not given_up
    assert told(5, [(0.0, True), (6.0, True)]) == ([], True)


def test_the_refusal_says_what_to_do() -> None:
    text = str(Absence("matching", "spark://m", 600).refusal())
    assert text == (
        "spark://m has had no worker for 600 s while there was work: start workers, and run it again; "
        "--conf spark.headgate.workers.wait=SECONDS waits longer"
    )


def begin(cluster: Cluster, folder: Path, wait: int) -> subprocess.Popen[str]:
    """Match on a cluster, as users do."""
    settings = {**cluster.settings(), "spark.scheduler.minRegisteredResourcesRatio": "0.0", WAIT: str(wait)}
    conf = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    words = "match --snapshot snapshot --events events.jsonl --output matches.jsonl --quiet --master"
    command = [
        sys.executable,
        "-c",
        "from headgate.cli import main; main()",
        *words.split(),
        cluster.url,
        *conf,
    ]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.nightly
@pytest.mark.spark
def test_a_standalone_cluster_without_workers(tmp_path: Path) -> None:
    RecordIndex.build([Subscription(n, f"age > {n}") for n in range(50)]).save(tmp_path / "snapshot")
    put_lines(tmp_path / "events.jsonl", [{"id": n, "age": n} for n in range(200)])
    put_lines(tmp_path / "matches.jsonl", [{"old": 1}])
    with Cluster(tmp_path / "cluster", workers=1) as cluster:
        cluster.kill(0)
        one = begin(cluster, tmp_path, 15)
        out, err = one.communicate(timeout=300)
        assert (one.returncode, out) == (1, "")
        assert len(err.splitlines()) == 2, err
        first, last = err.splitlines()
        assert first.endswith("s, and waits for one; it gives up after 15 s")
        assert "has had no worker for 1" in first
        assert last.startswith(f"headgate: {cluster.url} has had no worker for 15 s while there was work: ")
        assert get_table(tmp_path / "matches.jsonl") == [{"old": 1}]
        assert names(tmp_path) == ["cluster", "events.jsonl", "matches.jsonl", "snapshot"]
        other = begin(cluster, tmp_path, 300)
        assert other.stderr is not None
        assert "has had no worker for" in other.stderr.readline()
        cluster.add()
        out, err = other.communicate(timeout=300)
        assert other.returncode == 0, err
        assert "has a worker again" in err
        assert "matched 200 events" in out
