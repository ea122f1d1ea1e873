"""kill -9 at random moments: each match is in the sink once, with subscriptions changing all along."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.streaming.killing import run_and_kill

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.mark.nightly
def test_killed_once(spark: SparkSession, tmp_path: Path) -> None:
    """One kill, when there are batches already."""
    stages = run_and_kill(tmp_path, 1, seed=3, spark=spark)
    assert len(stages) == 1
    assert stages != ["none"]


@pytest.mark.nightly
def test_killed_twice(tmp_path: Path) -> None:
    """Two kills, in the midst of a batch or between batches."""
    assert len(run_and_kill(tmp_path, 2, seed=2)) == 2


@pytest.mark.nightly
def test_killed_five_times(tmp_path: Path) -> None:
    """Five kills, some in the midst of a batch."""
    assert len(run_and_kill(tmp_path, 5, seed=5)) == 5


@pytest.mark.nightly
def test_killed_fifty_times(tmp_path: Path) -> None:
    """Fifty kills; among so many there are all stages of a batch."""
    stages = run_and_kill(tmp_path, 50, seed=50)
    assert {"pinned", "committed"} <= set(stages)
