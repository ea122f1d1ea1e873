"""Outputs on other file systems: nothing is written to a folder here that is named like one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from headgate.tables.places import beside

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.running import Command

TABLE = "is not on this machine, and the {0} table is written here: say where with --{0}"
DIRECTORY = "is not on this machine: give a path that all machines see"
STORE = f"{DIRECTORY}, s3:// or gs://"


@pytest.mark.parametrize(
    ("command", "output", "told"),
    [
        ("match --snapshot s --events e.jsonl", "hdfs:///data/m.parquet", TABLE.format("rejected")),
        (
            "backtest --snapshot s --events e.csv --changes c.csv",
            "s3a://b/m.parquet",
            TABLE.format("rejected"),
        ),
        (
            "backtest --snapshot s --events e.csv --changes c.csv --rejected r.csv",
            "s3a://b/m.parquet",
            TABLE.format("effects"),
        ),
        ("compile --subscriptions s.jsonl", "hdfs:///data/snapshot", STORE),
        ("compile --subscriptions s.jsonl --rejected r.csv", "hdfs:///data/snapshot", STORE),
        ("plan --snapshot s --sample e.jsonl", "hdfs:///data/network", DIRECTORY),
        ("plan --snapshot s --sample e.jsonl --rejected r.csv", "hdfs:///data/network", DIRECTORY),
    ],
)
def test_what_lies_beside_an_output_elsewhere_is_asked_for(
    headgate: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, output: str, told: str
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = headgate(*command.split(), "--output", output)
    assert (ran.complaint, ran.code) == (f"{output} {told}", 1)
    assert not list(tmp_path.iterdir())


def test_a_file_uri_is_a_place_on_this_machine(tmp_path: Path) -> None:
    assert beside(f"file://{tmp_path}/m.parquet", "rejected") == f"{tmp_path}/m-rejected.jsonl"
