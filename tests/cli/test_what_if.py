"""A set of changes on the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from headgate import Engine, Subscription
from tests.spark.files import get_lines, names, put_lines

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.running import Command


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a snapshot and tables, and the process in it."""
    Engine.build([Subscription(1, "age > 30"), Subscription(2, "age < 5")]).save(tmp_path / "snapshot")
    put_lines(tmp_path / "subs.jsonl", [{"id": 1, "filter": "age > 30"}, {"id": 2, "filter": "age < 5"}])
    put_lines(tmp_path / "events.jsonl", [{"id": f"e{n}", "age": 10 * n} for n in range(10)])
    rows = [
        {"id": 1, "filter": "age > 80"},
        {"id": 3, "filter": "age > 1000"},
        {"op": "unsubscribe", "id": 9},
    ]
    put_lines(tmp_path / "changes.jsonl", rows)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("spark")
def test_changes_are_told_and_written(headgate: Command, folder: Path) -> None:
    command = ("backtest", "--changes", "changes.jsonl", "--events", "events.jsonl", "--quiet")
    ran = headgate(*command, "--snapshot", "snapshot", "--output", "diff.jsonl", "--report", "page.html")
    assert (ran.code, ran.err) == (0, "")
    lines = ran.out.splitlines()
    assert lines[:2] == [
        "changes: 1 subscribe, 1 replace",
        "in 10 events 0 matches would be gained and 5 lost",
    ]
    assert "3" in lines[4]
    assert lines[4].endswith("matches nothing")
    assert "refused 1 changes and 0 events, with the reasons in diff-rejected.jsonl" in lines
    assert lines[-3:] == [
        "what comes and goes is in diff.jsonl",
        "each subscription is in diff-effects.jsonl",
        "report: page.html",
    ]
    assert [row["event_id"] for row in get_lines("diff.jsonl")] == ["e4", "e5", "e6", "e7", "e8"]
    assert "headgate backtest --changes changes.jsonl" in (folder / "page.html").read_text("utf-8")
    said = headgate(*command, "--subscriptions", "subs.jsonl", "--no-cost", "--noise", "5%", "--json").json
    assert (said["gained"], said["lost"], said["silent"], said["noisy"]) == (0, 5, 1, 1)
    exact = headgate(
        *command, "--subscriptions", "subs.jsonl", "--no-cost", "--names", "exact", "--json"
    ).json
    assert (exact["gained"], exact["lost"]) == (0, 5)
    assert "cost" not in said
    assert "output" not in said
    assert names(folder) == sorted(
        [
            "changes.jsonl",
            "diff-effects.jsonl",
            "diff-rejected.jsonl",
            "diff.jsonl",
            "events.jsonl",
            "page.html",
            "snapshot",
            "subs.jsonl",
        ]
    )


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("--filter TRUE --changes changes.jsonl", 2, "give one of --filter and --changes"),
        ("", 2, "give one of --filter and --changes"),
        ("--filter TRUE --top 3", 2, "--top goes with --changes"),
        ("--filter TRUE --no-cost", 2, "--no-cost goes with --changes"),
        ("--changes changes.jsonl", 2, "wants one of --snapshot and --subscriptions"),
        (
            "--changes changes.jsonl --snapshot snapshot --dialect sql",
            2,
            "--dialect goes with --subscriptions",
        ),
        (
            "--changes changes.jsonl --snapshot snapshot --names exact",
            2,
            "--names goes with --subscriptions: a snapshot has its own",
        ),
        ("--changes changes.jsonl --snapshot snapshot --mode exact", 2, "--mode goes with --top"),
        ("--changes changes.jsonl --snapshot snapshot --top 2", 1, "was compiled without ranks"),
        ("--changes none.jsonl --snapshot snapshot", 1, "none.jsonl does not exist"),
        ("--changes changes.jsonl --snapshot snapshot --report page.pdf", 1, "let it end in .html"),
        ("--changes changes.jsonl --snapshot snapshot --output events.jsonl", 1, "is named twice"),
        ("--changes changes.jsonl --snapshot snapshot --format xml", 2, "--format is for filters of RDF"),
    ],
)
def test_what_makes_no_sense_is_one_line(headgate: Command, line: str, code: int, said: str) -> None:
    ran = headgate("backtest", "--events", "events.jsonl", *line.split())
    assert ran.code == code
    assert said in (ran.err if code == 2 else ran.complaint)
