"""A real standalone cluster on this machine gives the rows of the local run, also when a worker dies."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.docs.fences import ROOT


def run(*arguments: str) -> str:
    """Run the example as users do; all that it started must be gone when it ends."""
    command = [sys.executable, "-m", "examples.cluster.run", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.nightly
@pytest.mark.spark
def test_a_worker_that_is_killed_changes_no_row() -> None:
    told = run("--kill", "--filters", "500", "--events", "4000")
    assert told.splitlines()[-1] == "all rows are the same"
    assert told.splitlines()[-2].split() == ["workers", "at", "the", "end", "-", "1"]


@pytest.mark.nightly
@pytest.mark.spark
def test_two_workers_give_the_rows_of_the_local_run() -> None:
    told = run("--filters", "5000", "--events", "50000")
    assert told.splitlines()[-1] == "all rows are the same"
    assert told.splitlines()[-2].split() == ["workers", "at", "the", "end", "-", "2"]


@pytest.mark.nightly
@pytest.mark.spark
def test_workers_share_the_pages_of_a_snapshot() -> None:
    """Each process has half of it, and opens it without reading it."""
    rows = [line.split() for line in run("--load", "--gigabytes", "0.5").splitlines()[1:3]]
    for _, opened, _, _, _, mapped in rows:
        assert float(opened) < 1_000
        assert 0.4 < float(mapped.replace(",", "")) / (0.5 * 2**30 / 1e6) < 0.6


@pytest.mark.nightly
@pytest.mark.spark
@pytest.mark.parametrize("form", ["zip", "archive"])
def test_workers_get_headgate_from_the_job(form: str) -> None:
    """They have its packages only. From a zip they compile kernels, once; an archive brings them along."""
    told = dict(line.rsplit(maxsplit=1) for line in run("--ship", form, "--filters", "500").splitlines())
    assert told.pop("all rows are the") == "same"
    assert (int(told["kernels compiled by workers"]) > 0) is (form == "zip")
    assert int(told["matches"].replace(",", "")) > 0
