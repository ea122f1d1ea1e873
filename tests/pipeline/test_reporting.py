"""What is told of a run with several matches, and of one in shards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headgate.pipeline.run.reporting import FinishedRun, page_of, write_metrics
from headgate.pipeline.run.run import StepDone
from headgate.report.runs import page as run_page
from tests.pipeline.pipelines import shop

if TYPE_CHECKING:
    from pathlib import Path

COMPILED = {"subscriptions": 7, "rejected": 1, "parse_seconds": 1.0, "build_seconds": 1.0}
MATCHED = {
    "events": 6,
    "matches": 13,
    "rejected": 2,
    "match_seconds": 1.0,
    "survey_seconds": 1.0,
    "batches": [],
}


def told(folder: Path, **matched: Any) -> FinishedRun:
    """A run of the shop with two matches, the second of which was done before."""
    steps = (
        StepDone("compile", "done", "x", 1.0, COMPILED),
        StepDone("match.all", "done", "x", 1.0, {**MATCHED, **matched}),
        StepDone("match.best", "skipped", "", 1.0, {**MATCHED, "matches": 5}),
    )
    return FinishedRun(shop(folder), steps, None, 1.0, 3.0, 0.0, "headgate run shop.toml")


def test_the_tiles_have_what_was_refused_whatever_the_number_of_matches(tmp_path: Path) -> None:
    page = page_of(told(tmp_path))
    assert page.counts.rejected == {"subscriptions": 1, "events": 2}
    text = run_page.render(page)
    assert "2 rejected" in text
    assert "none rejected" not in text


def test_rows_of_a_graph_are_called_what_they_are(tmp_path: Path) -> None:
    for refused, words in (
        ({"nodes": 0, "edges": 5, "subscriptions": 0}, "5 of the edges could not be used"),
        (
            {"nodes": 2, "edges": 3, "subscriptions": 1},
            "6 of the rows of the graph (2 of nodes, 3 of edges, 1 of subscriptions) could not be used",
        ),
    ):
        rows = sum(refused.values())
        compiled = {**COMPILED, "rejected": rows, "refused": refused}
        steps = (StepDone("compile", "done", "x", 1.0, compiled), *told(tmp_path).steps[1:])
        page = page_of(FinishedRun(shop(tmp_path), steps, None, 1.0, 3.0, 0.0, "headgate run shop.toml"))
        assert page.counts.rejected["subscriptions"] == refused["subscriptions"]
        assert words in run_page.render(page)
        assert "of the subscriptions could not be used" not in run_page.render(page)


def test_metrics_count_the_first_matches_as_the_tiles_do(tmp_path: Path) -> None:
    write_metrics(told(tmp_path), tmp_path / "m.prom")
    lines = (tmp_path / "m.prom").read_text("utf-8").splitlines()
    assert [line for line in lines if "_total" in line and not line.startswith("#")] == [
        "headgate_events_total 6",
        "headgate_matches_total 13",
        'headgate_rejected_total{reason="compile"} 1',
        'headgate_rejected_total{reason="match"} 2',
    ]


def test_an_event_is_one_in_the_picture_however_many_shards_it_met(tmp_path: Path) -> None:
    batches = [{"task": n, "start": float(n), "seconds": 0.5, "events": 3 - n % 2} for n in range(4)]
    cut = page_of(told(tmp_path, batches=batches, shards=4))
    assert sum(part.events for part in cut.throughput) == 6
    assert all(0 < part.events <= 3 for part in cut.throughput)
    whole = page_of(told(tmp_path, batches=batches, shards=1))
    assert [part.events for part in whole.throughput] == [3, 2, 3, 2]
