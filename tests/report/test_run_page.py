"""The page of a run says what was measured, escapes what it must, and stands with nothing to show."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from headgate.errors import TableError
from headgate.jobs.summary import Refusal
from headgate.pipeline.run.reporting import stages_of
from headgate.report import words
from headgate.report.runs import charts
from headgate.report.runs import page as run_page
from headgate.report.runs import page as run_pictures
from headgate.report.runs.model import (
    BusySubscription,
    Counts,
    Histogram,
    Partition,
    RefusedRows,
    RunPage,
    Step,
    this_machine,
)
from headgate.runtime.stages import StageRun, TaskRun
from tests.lanes import some
from tests.report.reading import Reader, svg_texts
from tests.report.runs import MATCHES, PAGE, STREAM, WHEN, batch, stage

if TYPE_CHECKING:
    from pathlib import Path

    from headgate.report.drawing import Chart

BARE = RunPage("Nothing", WHEN)


def test_the_page_shows_the_numbers() -> None:
    reader = Reader(run_page.render(PAGE))
    assert reader.of("h1") == ["A pipeline & more"]
    matches = PAGE.counts.matches or 0
    assert reader.of("dd") == [
        "123,456", "filters that events are asked for; 12 rejected",
        "4,000", "what was matched with all of them; none rejected",
        f"{matches:,}", f"pairs of an event and a filter that holds; {matches / 4000:.1f} an event",
        "2,000", "over the 2.0 s that matching took",
    ]  # fmt: skip
    # Each is there twice: as wide as a page, and for a telephone.
    assert reader.tags["svg"] == 10
    assert reader.tags["details"] == 3
    assert len(reader.ids) == len(set(reader.ids))
    assert "12 of the subscriptions could not be used; each row and its reason is in" in reader.of("p")
    assert {"out/rejected-subscriptions.jsonl", "country = 'FR' AND age >= 18"} <= set(reader.of("code"))
    assert "attribute aeg is not in the schema, in {}" in reader.of("code")
    cells = reader.of("td")
    assert {"attribute … is not in the schema", "11", "matching (3)", "40", "up to date", "38 %"} <= set(
        cells
    )
    assert reader.of("pre") == ["headgate run pipeline.toml"]
    assert any("2 cores, 23.4 GiB of memory, load 0.25" in text for text in reader.of("p"))


def test_the_captions_state_the_findings() -> None:
    median, high = (words.count(dict(PAGE.quantiles)[share]) for share in (0.5, 0.99))
    first, busy, rate, steps, tasks = Reader(run_page.render(PAGE)).of("figcaption")
    assert first.startswith(
        f"Half of the events match {median} subscriptions or fewer; the busiest 1 % match more than {high}."
    )
    assert busy.startswith(
        "The busiest subscription, campaign-7, matches 22 % of the events; the 2 shown take"
    )
    assert rate == "4,000 events in 2.0 s, in 8 batches: 2,000 events a second on average."
    assert steps == "The run took 16 s; the longest step, match, took 38 % of it."
    assert tasks.startswith("51 tasks of 3 stages on 2 executors; ")
    assert "times as long as the one in the middle. 3 tasks failed, in grey." in tasks


def test_a_stream_has_its_own_charts() -> None:
    reader = Reader(run_page.render(STREAM))
    assert reader.of("h2") == ["Latency", "Micro-batches", "Left out", "Version of the subscriptions"]
    latency, batches, left_out, versions = reader.of("figcaption")
    worst = max(dict(each.latency)[0.99] for each in STREAM.batches)
    assert f"the highest p99 is {words.duration(worst)}." in latency
    assert batches.startswith("60 micro-batches with 300,000 events. One in the middle took ")
    for name, said in (("duplicates", "duplicate"), ("late", "late"), ("malformed", "malformed")):
        assert f"{sum(getattr(each, name) for each in STREAM.batches)} {said}" in left_out
    assert versions.startswith("It changed 3 times, from version 0 to 3;")
    texts = svg_texts(charts.latency(STREAM).svg or "")
    assert {"p50", "p95", "p99", "seconds since the stream began"} <= set(texts)


@pytest.mark.parametrize("page", [PAGE, STREAM, BARE], ids=["run", "stream", "bare"])
def test_nothing_is_loaded_from_elsewhere(page: RunPage) -> None:
    text = run_page.render(page)
    assert not {"script", "link", "img", "iframe"} & set(Reader(text).tags)
    assert "@import" not in text


@pytest.mark.parametrize("page", some([PAGE, STREAM], 0), ids=["run", "stream"])
def test_pictures_are_xml_and_always_the_same(page: RunPage) -> None:
    for first, second in zip(run_page.charts(page), run_page.charts(page), strict=True):
        assert first.svg == second.svg
        assert ET.fromstring(first.svg or "").tag.endswith("svg")
        assert "var(--series-1, #1f7a8c)" in (first.svg or "")


@pytest.mark.parametrize(
    "text",
    some(
        [
            "a = '<script>alert(1)</script>'",
            "a = '</svg><b>' AND b = \"&amp;\"",
            "price = '$5' OR price = '$_{6}$'",
            "name = '東京' OR name = 'עברית'",
            "a = '#1f7a8c' OR a = 'id=\"x\"' OR a = '*{url(#y)'",
            "a = 1\n\t AND b = '\x00\x08'",
            "a = '" + "x" * 5000 + "'",
            "W" * 300,
        ],
        1,
        4,
        6,
    ),
)
def test_texts_of_users_are_shown_as_they_are(text: str) -> None:
    page = replace(
        PAGE,
        title=text,
        command=text,
        busiest=(BusySubscription(text, text, 5),),
        steps=(Step(text, 1.0), Step("match", 2.0, note=text)),
        stages=(StageRun(text, 0, 1, (TaskRun(text, 0, 1), TaskRun(text, 1, 3, failure=text))),),
        rejected=(RefusedRows("events", 3, text, (Refusal(text, 3, (text,)),)),),
        troubles=(text,),
    )
    reader = Reader(run_page.render(page))
    assert not {"script", "b"} & set(reader.tags)
    assert words.clean(text) in {words.clean(each) for each in reader.of("td")}
    assert words.clean(reader.of("h1")[0]) == words.clean(text)
    for chart in (charts.busiest(page), run_pictures.steps(page), run_pictures.tasks(page)):
        assert words.clean(text)[:19] in "".join(svg_texts(chart.svg or ""))


@pytest.mark.parametrize(
    ("page", "drawn", "said"),
    [
        (BARE, 0, 0),
        (replace(PAGE, matches_per_event=Histogram.of({}), counts=Counts(), quantiles=(), busiest=()), 3, 5),
        (replace(PAGE, matches_per_event=Histogram.of({0: 4}), counts=Counts(1, 4, 0), busiest=()), 4, 5),
        (replace(BARE, steps=(Step("match", 2.0),)), 1, 1),
        (replace(BARE, steps=(Step("match", 0.0),)), 0, 1),
        (replace(BARE, throughput=(Partition(0, 0.0, 0.0, 10),)), 0, 1),
        (replace(BARE, throughput=(Partition(0, 0.0, 0.0, 10), Partition(1, 0.0, 1.0, 0))), 1, 1),
        (replace(BARE, throughput=(Partition(0, 0.0, 1.0, 0),)), 0, 1),
        (replace(BARE, throughput=(Partition(0, 0.0, 1.0, 7),)), 0, 1),
        (replace(BARE, batches=(batch(1), replace(batch(1), number=2, start=2.0))), 2, 4),
        (replace(BARE, stages=(StageRun("none", 0, 0),)), 0, 1),
        (replace(BARE, stages=(stage("one", 1, 0, 1),)), 1, 1),
        (replace(BARE, stages=(StageRun("instant", 0, 0, (TaskRun("0", 0, 0), TaskRun("0", 0, 0))),)), 1, 1),
        (replace(BARE, batches=(replace(batch(1), latency=(), duplicates=0, late=0, malformed=0),)), 0, 4),
        (replace(BARE, batches=(replace(batch(1), seconds=0.0, latency=((0.5, 0.0),)),)), 1, 4),
    ],
)  # fmt: skip
def test_empty_parts_are_words(page: RunPage, drawn: int, said: int) -> None:
    reader = Reader(run_page.render(page))
    assert reader.tags["svg"] == 2 * drawn
    assert len(reader.of("figcaption")) == said


def test_ten_thousand_tasks_stay_a_small_picture() -> None:
    page = replace(PAGE, stages=(stage("matching (3)", 10_000, 0, 5), stage("sorting (4)", 300, 900, 6)))
    chart = run_pictures.tasks(page)
    assert chart.caption.startswith("10,300 tasks of 2 stages on 2 executors")
    assert len(chart.svg or "") < 300_000
    wide = run_pictures.tasks(replace(PAGE, stages=(stage("matching (3)", 2000, 0, 1, 50, 4),)))
    assert wide.caption.endswith("168 more rows are not drawn.")
    assert len(wide.svg or "") < 300_000


def test_lanes_hold_every_task_once_and_none_overlaps() -> None:
    stages = [stage("a", 200, 0, 1, 3, 2), stage("b", 100, 4, 2, 3, 2)]
    lanes = run_pictures.lanes(stages)
    assert sorted(id(task) for lane in lanes for _, task in lane.tasks) == sorted(
        id(task) for each in stages for task in each.tasks
    )
    for lane in lanes:
        ends = 0.0
        for _, task in lane.tasks:
            assert task.executor == lane.executor
            assert task.start >= ends - 2e-3
            ends = task.start + task.seconds
    assert [lane.executor for lane in lanes] == sorted(lane.executor for lane in lanes)


def test_the_slowest_task_is_drawn_and_named() -> None:
    tasks = (*(TaskRun("0", number * 0.1, 0.1) for number in range(10)), TaskRun("1", 0.0, 1.5))
    chart = run_pictures.tasks(replace(BARE, stages=(StageRun("match", 0, 1.5, tasks),)))
    assert "its slowest task took 1.5 s, 15.0 times as long as the one in the middle" in chart.caption
    assert "1.5 s" in svg_texts(chart.svg or "")
    assert "var(--series-3, #c44f2b)" in (chart.svg or "")


def test_long_streams_are_cut_into_slices() -> None:
    batches = tuple(batch(number) for number in range(5000))
    parts = charts.sliced(batches)
    assert len(parts) == charts.SLICES
    assert [each for part in parts for each in part] == list(batches)
    for chart in run_page.charts(replace(STREAM, batches=batches)):
        assert len(chart.svg or "") < 300_000


def test_throughput_keeps_every_event() -> None:
    generator = np.random.default_rng(2)
    spans = generator.uniform(0, 5, (2500, 2)).tolist()
    parts = [Partition(index, start, seconds, 7 + index) for index, (start, seconds) in enumerate(spans)]
    edges, rates = charts.rates(parts)
    assert (rates * np.diff(edges)).sum() == pytest.approx(sum(part.events for part in parts))
    assert edges[0] == 0


def test_steps_without_a_start_follow_each_other() -> None:
    steps = [Step("a", 1.0), Step("b", 2.0), Step("c", 1.0, start=5.0), Step("d", 1.0)]
    assert [start for _, start in run_pictures.placed(steps)] == [0.0, 1.0, 5.0, 6.0]


def test_what_spark_told_is_taken_over() -> None:
    task = TaskRun("3", 102.0, 1.5, 70)
    other = replace(task, seconds=0.5, failure="lost")
    told = StageRun("matching", 101.0, 104.0, (task, other), number=4, name="collect at x")
    (found,) = stages_of([told], 100.0)
    tasks = (TaskRun("3", 2.0, 1.5, 70), TaskRun("3", 2.0, 0.5, 70, "lost"))
    assert found == replace(told, title="matching (4)", start=1.0, end=4.0, tasks=tasks)
    assert found.seconds == 3.0
    assert stages_of([replace(told, title="")], 0.0)[0].title == "collect at x (4)"
    assert found.skew is None
    assert this_machine("17").spark.startswith("4.")


def test_histograms_and_quantiles_come_from_the_page() -> None:
    assert Histogram.of(MATCHES) == PAGE.matches_per_event
    assert "median 19" in svg_texts(charts.matches_per_event(PAGE).svg or "")


def test_write_replaces_the_page_and_leaves_nothing_beside(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text("old", encoding="utf-8")
    run_page.write(PAGE, path)
    assert path.read_text(encoding="utf-8") == run_page.render(PAGE)
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(TableError, match=r"cannot write the report to .*No such file or directory$"):
        run_page.write(PAGE, tmp_path / "missing" / "report.html")


def titles(charts: list[Chart]) -> list[str]:
    return [chart.heading for chart in charts]


def test_only_what_is_there_has_a_section() -> None:
    assert titles(run_page.charts(BARE)) == []
    assert titles(run_page.charts(replace(BARE, steps=PAGE.steps))) == ["Where the time went"]
    assert Reader(run_page.render(BARE)).of("h2") == []
