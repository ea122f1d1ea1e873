"""Files of statistics: they add up, whoever writes at the same time; and the command that shows them."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from headgate import Engine
from headgate.errors import TableError
from headgate.runtime.statistics import (
    add_statistics,
    check_statistics,
    listed,
    pack_statistics,
    read_statistics,
    unpack_statistics,
    with_all,
)
from headgate.runtime.targets import open_target, opened
from tests.cli.running import Command
from tests.spark.files import put_lines

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

SUBSCRIPTIONS = [
    {"id": "s1", "filter": "age > 30"},
    {"id": "s2", "filter": "age > 20 AND name LIKE '%x%'"},
    {"id": "s3", "filter": "age >= 0"},
    {"id": "s4", "filter": "topic = 'none'"},
]
EVENTS = [
    {"id": "e1", "age": 35, "name": "axe"},
    {"id": "e2", "age": 25, "name": "be"},
    {"id": "e3", "age": 3},
]


@pytest.fixture
def headgate(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Run commands in this process."""
    return Command(monkeypatch, capsys)


def counted(*ages: int) -> pa.Table:
    """Count what some events match."""
    engine = Engine.build(SUBSCRIPTIONS)
    found = engine.statistics()
    engine.match_events([{"id": f"e{age}", "age": age} for age in ages])
    return found.table()


def test_files_add_up(tmp_path: Path) -> None:
    """Also those of jobs that end at the same time; the last match is the latest one."""
    place = tmp_path / "statistics.parquet"
    check_statistics(place)
    tables = [counted(age, 1) for age in range(25, 41)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda table: add_statistics(place, table, 2, 100.0), tables))
    add_statistics(place, counted(50), 1, 200.0)
    kept = read_statistics(place)
    assert (kept.events, kept.since) == (33, 100.0)
    found = {row["subscription_id"]: row for row in kept.table.to_pylist()}
    assert [found[name]["matches"] for name in sorted(found)] == [11, 0, 33, 0]
    assert {row["events"] for row in found.values()} == {33}
    assert found["s1"]["last_event"] == found["s3"]["last_event"] == "e50"
    assert found["s4"]["last_match"] is None
    assert sorted(file.name for file in tmp_path.iterdir()) == [".statistics.parquet.lock", place.name]


def test_what_workers_send_is_what_was_counted() -> None:
    """Without what has nothing to tell."""
    table = counted(35)
    (found,) = unpack_statistics([pack_statistics(table)])
    assert found.to_pylist() == [row for row in table.to_pylist() if row["matches"] or row["candidates"]]
    assert 0 < found.num_rows < table.num_rows


def test_what_is_no_file_of_statistics_is_refused(tmp_path: Path) -> None:
    """With what would be right."""
    other = tmp_path / "other.parquet"
    other.write_text("no")
    with pytest.raises(TableError, match=r"other.parquet is not a file of statistics: give one"):
        check_statistics(other)
    with pytest.raises(TableError, match="does not exist: headgate match --stats"):
        read_statistics(tmp_path / "none.parquet")
    with pytest.raises(TableError, match="there is no folder"):
        check_statistics(tmp_path / "nowhere" / "s.parquet")
    place = tmp_path / "numbers.parquet"
    engine = Engine.build([{"id": 1, "filter": "age > 1"}])
    add_statistics(place, engine.statistics().table(), 0, 0.0)
    with pytest.raises(TableError, match="ids are whole numbers, and ids here are text: name another file"):
        add_statistics(place, counted(), 0, 0.0)


@pytest.mark.parametrize(
    ("sort", "only", "wanted"),
    [
        ("id", None, ["s1", "s2", "s3", "s4"]),
        ("matches", None, ["s3", "s1", "s2", "s4"]),
        ("last", None, ["s1", "s3", "s2", "s4"]),
        ("work", "never", ["s2", "s4"]),
        ("work", "every", ["s3"]),
        ("failed", "costly", ["s2", "s1", "s3"]),
        ("exceeded", "exceeded", []),
    ],
)
def test_lists(sort: str, only: str | None, wanted: list[str]) -> None:
    assert listed(counted(35, 31, 1), sort, only)["subscription_id"].to_pylist() == wanted


def test_the_command_shows_what_a_job_counted(
    headgate: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once, and once more: jobs add up."""
    monkeypatch.chdir(tmp_path)
    put_lines(tmp_path / "subs.jsonl", SUBSCRIPTIONS)
    put_lines(tmp_path / "events.jsonl", EVENTS)
    assert headgate("compile", "--subscriptions", "subs.jsonl", "--output", "snapshot").code == 0
    match = ("match", "--snapshot", "snapshot", "--events", "events.jsonl", "--output", "matches.jsonl")
    for _ in range(2):
        ran = headgate(*match, "--stats", "stats.parquet")
        assert ran.out.splitlines()[-1] == (
            "statistics are in stats.parquet: headgate subscriptions stats shows them"
        )
    shown = headgate("subscriptions", "stats", "stats.parquet", "--snapshot", "snapshot").out
    lines = shown.splitlines()
    assert lines[0].startswith("4 subscriptions, 6 events from 20")
    assert lines[1] == "1 never matched, 1 matched every event, 0 were too much for some events"
    assert [line for line in lines if line and not line.startswith(" ")][2:] == [
        "never matched",
        "matched every event",
        "cost most",
    ]
    never = lines[lines.index("never matched") + 2].split()
    assert never == ["s4", "0", "0.00%", "-", "-", "0", "0", "0", "0", "topic", "=", "'none'"]
    rows = headgate("subscriptions", "stats", "stats.parquet", "--format", "csv", "--sort", "matches").out
    assert rows.splitlines()[0].split(",")[:3] == ["subscription_id", "matches", "share"]
    assert [row.split(",")[0] for row in rows.splitlines()[1:]] == ["s3", "s1", "s2", "s4"]
    told = headgate("subscriptions", "stats", "stats.parquet", "--format", "json", "--only", "every").json
    assert (told["events"], told["subscriptions"], told["found"]) == (6, 4, 1)
    assert (told["rows"][0]["share"], told["rows"][0]["last_event"]) == (1.0, "e3")
    assert headgate("subscriptions", "stats", "events.jsonl").complaint == (
        "events.jsonl is not a file of statistics: give one that headgate match --stats has written"
    )
    assert headgate(*match, "--stats", "matches.jsonl").complaint == (
        "matches.jsonl is named twice: give every input and output a place of its own"
    )


def test_the_ids_of_a_table_are_read_as_they_are(tmp_path: Path) -> None:
    """A file tells what it is about, for those who read it otherwise."""
    place = tmp_path / "s.parquet"
    add_statistics(place, counted(1), 1, 5.0)
    about = read_statistics(place).table.schema.metadata[b"headgate.statistics"]
    assert json.loads(about) | {"until": 0} == {"layout": 1, "events": 1, "since": 5.0, "until": 0}


def test_what_was_no_candidate_of_any_worker_counts_as_none(tmp_path: Path) -> None:
    """Workers send what was counted; subscriptions of the snapshot that are not among it have zeros."""
    Engine.build(SUBSCRIPTIONS).save(tmp_path / "snapshot")
    table = counted(35, 25)
    sent = unpack_statistics([pack_statistics(table)])
    whole = with_all(sent, opened(open_target(str(tmp_path / "snapshot")).whole).built, 2)
    columns = ["subscription_id", "matches", "candidates", "work", "exceeded"]
    assert whole.select(columns).to_pylist() == table.select(columns).to_pylist()
    assert 0 in table["candidates"].to_pylist()
