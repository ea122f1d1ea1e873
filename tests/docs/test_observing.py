"""The page on metrics lists every metric as the code has it, and its example runs."""

from __future__ import annotations

import re

from headgate.report.runs import charts
from headgate.report.runs import page as run_pictures
from headgate.stream.metrics import CATALOGUE
from tests.docs.fences import ROOT, fences
from tests.docs.test_tutorial import run_python
from tests.report.runs import PAGE, STREAM

TEXT = (ROOT / "docs" / "observing.md").read_text("utf-8")


def test_every_metric_is_in_the_table() -> None:
    rows = re.findall(r"^\| `(headgate_\w+)` \| (\w+) \|(.*?)\| (.*?) \|$", TEXT, re.MULTILINE)
    listed = [
        (name, kind, words, tuple(re.findall(r"`(\w+)`", labels))) for name, kind, labels, words in rows
    ]
    assert listed == [tuple(each) for each in CATALOGUE]


def test_every_picture_is_explained() -> None:
    drawn = [
        charts.matches_per_event(PAGE),
        charts.busiest(PAGE),
        charts.throughput(PAGE),
        charts.latency(STREAM),
        charts.batches(STREAM),
        charts.left_out(STREAM),
        charts.versions(STREAM),
        run_pictures.steps(PAGE),
        run_pictures.tasks(PAGE),
    ]
    for chart in drawn:
        assert f"| {chart.heading} |" in TEXT


def test_the_example_runs() -> None:
    names: dict[str, object] = {}
    for fence in fences(ROOT / "docs" / "observing.md"):
        # The others need a session.
        if fence.language == "python" and ">>> " in fence.body:
            run_python(fence, "docs/observing.md", names)
