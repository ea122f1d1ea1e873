"""Scores that depend on the event, from a table of subscriptions to a table of the best."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from headgate.engine.question import Question, Top
from headgate.jobs.match import match_events
from headgate.local.runner import LocalRunner
from tests.spark.jobs import compile_subscriptions

if TYPE_CHECKING:
    from pathlib import Path

SUBSCRIPTIONS = [
    {"id": 1, "filter": "a > 0", "score": "a * 2"},
    {"id": 2, "filter": "a > 0", "score": 3},
    {"id": 3, "filter": "a > 0", "score": "a *"},
    {"id": 4, "filter": "a > 1", "score": "0.5 * a"},
]


@pytest.mark.parametrize("shards", [1, 2])
def test_tables(tmp_path: Path, shards: int) -> None:
    place = {
        name: str(tmp_path / name)
        for name in ("subs.jsonl", "events.jsonl", "snapshot", "bad.jsonl", "best.jsonl")
    }
    for name, rows in (
        ("subs.jsonl", SUBSCRIPTIONS),
        ("events.jsonl", [{"id": n, "a": n} for n in range(4)]),
    ):
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    compiled = compile_subscriptions(
        None, place["subs.jsonl"], place["snapshot"], rejected=place["bad.jsonl"], shards=shards, quiet=True
    )
    assert (compiled.subscriptions, compiled.rejected) == (3, 1)
    refused = json.loads((tmp_path / "bad.jsonl").read_text("utf-8"))
    assert refused["reason"].startswith("the score of subscription 3: ")
    match_events(
        LocalRunner(quiet=True),
        place["snapshot"],
        place["events.jsonl"],
        place["best.jsonl"],
        rejected=place["bad.jsonl"],
        question=Question(Top(2)),
    )
    lines = (tmp_path / "best.jsonl").read_text("utf-8").splitlines()
    found = sorted(tuple(json.loads(line).values()) for line in lines)
    assert [(event, subscription, score) for event, subscription, score, _ in found] == [
        (1, 1, 2.0),
        (1, 2, 3.0),
        (2, 1, 4.0),
        (2, 2, 3.0),
        (3, 1, 6.0),
        (3, 2, 3.0),
    ]
