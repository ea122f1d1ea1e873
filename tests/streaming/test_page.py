"""The page about a stream's run: what was counted, when, and what was not matched."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from headgate import Engine, Subscription
from headgate.errors import HeadgateError
from headgate.pipeline.run import stream_history as history
from headgate.pipeline.run.stream_history import History, run_told
from headgate.stream.request import check_request
from headgate.stream.rows import KINDS
from tests.streaming.world import World

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from headgate.stream.reporting import StreamResult


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_page(spark: SparkSession, tmp_path: Path, form: str) -> None:
    """Two batches with changes between them, and dead letters of two kinds."""
    world = World(tmp_path, {"format": form, "max_files": 1, "report": str(tmp_path / "page.html")})
    Engine.build([Subscription("s1", "n > 10"), Subscription("s2", "n > 20")]).save(world.snapshot)
    world.send("1.jsonl", [{"id": n, "n": n} for n in range(30)])
    world.send("2.jsonl", [{"id": 1, "n": 99}, "<b>no event</b>", {"id": 77, "n": 30}])
    world.change("1.jsonl", [{"op": "unsubscribe", "id": "nobody"}])
    done = run_told(spark, world.settings(), quiet=True)
    assert (done.batches, done.events, done.malformed, done.duplicate) == (2, 31, 1, 1)
    text = (tmp_path / "page.html").read_text("utf-8")
    assert "<b>no event</b>" not in text
    for part in (
        "&lt;b&gt;no event&lt;/b&gt;",
        "was seen before, within the window",
        "2 of the events could not be used",
        "1 of the changes could not be used",
        f"{world.output}-dead-letters",
        "2 micro-batches with 31 events",
        "Throughput",
        "Latency",
        "Left out",
        "Version of the subscriptions",
        "Where the time went",
        "read and match",
    ):
        assert part in text, part
    # Numbers of the tiles.
    assert ">31<" in text
    assert f">{done.matches}<" in text


def _done(settings_batches: int) -> StreamResult:
    from headgate.stream.reporting import StreamResult

    return StreamResult(settings_batches, 7, 9, 0, 0, 0, 0, 0, 0, 0, 3, 5, 60.0, None, "asked")


def test_long_runs_stay_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last batches are drawn; how many there were is told."""
    monkeypatch.setattr(history, "MOST", 3)
    told = History(World(tmp_path).settings())
    counts = {"events": 1, "matches": 2, **dict.fromkeys(KINDS, 0)}
    for number in range(7):
        record = {"batch": number, "version": 3, "counts": counts, "dead": []}
        told.add(record, [(0.0, 1)], {"batch": 0.5, "job": 0.4, "commit": 0.1})
    page = told.page(_done(7), "headgate stream")
    assert [batch.number for batch in page.batches] == [4, 5, 6]
    assert page.troubles == ("The charts show the last 3 of 7 micro-batches.",)
    steps = {step.name: step.seconds for step in page.steps}
    assert steps["read and match"] == pytest.approx(2.8)
    assert sum(steps.values()) == pytest.approx(60.0, abs=1.0)


def test_dead_letters_that_were_taken_away(tmp_path: Path) -> None:
    """They are counted, without an example; the stream goes on."""
    told = History(World(tmp_path).settings())
    counts = {"events": 0, "matches": 0, **dict.fromkeys(KINDS, 1)}
    name = "batch-0000000000-00000.7.jsonl"
    told.add({"batch": 0, "version": 0, "counts": counts, "dead": [name]}, [], {"batch": 0.5})
    done = replace(_done(1), malformed=1, late=1, duplicate=1, unknown_source=1, left_out=1)
    (events, _) = told.page(done, "").rejected
    assert events.rows == 5
    assert [(each.reason, each.rows, each.examples) for each in events.reasons] == [
        (kind, 1, ()) for kind in KINDS
    ]


def test_refused_places(tmp_path: Path) -> None:
    """A page that is none, or lies nowhere, is refused before any work."""
    world = World(tmp_path)
    Engine.build([Subscription("s1", "n > 10")]).save(world.snapshot)
    with pytest.raises(HeadgateError, match=r"let it end in \.html"):
        check_request(world.settings(report="page.pdf"))
    with pytest.raises(HeadgateError, match="lies in no folder"):
        check_request(world.settings(report=str(tmp_path / "none" / "page.html")))
