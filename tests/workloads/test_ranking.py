"""Boxes and points are as their page and Table 1 of the paper say, and texts mean what the arrays do."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.workload_statistics import measure_boxes
from headgate import Event, Subscription
from headgate.errors import HeadgateError
from headgate.records.index.index import RecordIndex
from headgate.workloads.ranking import TABLE_1, Columns, Lists, Ranking, RankingWorkload, Sparse
from tests.cli.running import Command
from tests.records.programs import bindable
from tests.seeds import examples
from tests.spark.files import get_table

if TYPE_CHECKING:
    from pathlib import Path


SEED = 5
ROWS = np.arange(20_000)
SMALL = Sparse(20, 2, 5, presence=0.6)


def cells(points: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> list[int]:
    """Count points by cell."""
    found: list[int] = np.bincount(np.floor(points * 100).astype(int), minlength=100).tolist()
    return found


def test_the_defaults_are_those_of_table_1() -> None:
    assert TABLE_1._asdict() == {
        "regions": 10,
        "cells": 100,
        "volume": 0.05,
        "skew_across": 0,
        "skew_within": 1,
        "skew_length": 0.75,
    }
    assert (Ranking().dimensions, Ranking().scores) == (1, "length")
    assert (Sparse().dimensions, Sparse().least, Sparse().most) == (500, 3, 8)


@pytest.mark.parametrize("dimensions", [1, 2, 4, 8])
def test_regions_have_the_volume(dimensions: int) -> None:
    start, size = Ranking(dimensions).regions(SEED)
    assert start.shape == size.shape == (10, dimensions)
    assert (start >= 0).all()
    assert (start + size <= 100).all()
    assert size.prod(axis=1) / 100.0**dimensions == pytest.approx(0.05, rel=0.12)
    if dimensions > 1:
        assert len(np.unique(size)) > 5, "sides are random"
    assert not np.array_equal(start, Ranking(dimensions).regions(SEED + 1).start)


def test_points_thin_out_from_the_middle() -> None:
    one = Ranking(law=TABLE_1._replace(regions=1))
    start, size = (int(side[0, 0]) for side in one.regions(SEED))
    assert size == 5
    found = cells(one.points(ROWS, SEED)[:, 0])
    assert sum(found[start : start + 5]) == len(ROWS)
    ranks = 1 / np.array([5, 3, 1, 2, 4])
    assert np.array(found[start : start + 5]) / len(ROWS) == pytest.approx(ranks / ranks.sum(), abs=0.01)


@pytest.mark.parametrize(("skew", "shares"), [(0.0, [1, 1, 1]), (1.0, [1, 1 / 2, 1 / 3])])
def test_points_are_split_across_regions(skew: float, shares: list[float]) -> None:
    made = Ranking(law=TABLE_1._replace(regions=3, volume=0.01, skew_across=skew))
    start, size = made.regions(SEED)
    assert len({*start[:, 0].tolist()}) == 3
    assert (size == 1).all()
    found = np.array(cells(made.points(ROWS, SEED)[:, 0]))[start[:, 0]] / len(ROWS)
    assert found == pytest.approx(np.array(shares) / sum(shares), abs=0.015)


def test_points_are_uniform_in_their_cell() -> None:
    points = Ranking(2).points(ROWS, SEED)
    assert points.min() >= 0
    assert points.max() < 1
    assert np.bincount(np.floor(points[:, 0] * 1000).astype(int) % 10) / len(ROWS) == pytest.approx(
        0.1, abs=0.01
    )


@pytest.mark.parametrize("skew", [0.0, 0.75, 2.0])
def test_lengths_follow_zipf(skew: float) -> None:
    boxes = Ranking(2, law=TABLE_1._replace(skew_length=skew)).columns(ROWS, SEED)
    length = (boxes.high - boxes.low) / 2
    law = np.arange(1, 101) ** -skew
    found = np.bincount(np.minimum(length * 100, 99).astype(int).ravel(), minlength=100) / length.size
    assert found == pytest.approx(law / law.sum(), abs=0.01)
    assert boxes.weight == pytest.approx(1 - length, abs=1e-6)
    assert abs(np.corrcoef(length[:, 0], length[:, 1])[0, 1]) < 0.03, "dimensions are independent"


def test_scores_follow_length_or_chance() -> None:
    boxes, chance = Ranking(4).columns(ROWS, SEED), Ranking(4, "random").columns(ROWS, SEED)
    assert boxes.score == pytest.approx(boxes.weight.mean(axis=1), abs=1e-7)
    assert np.array_equal(boxes.low, chance.low)
    assert abs(np.corrcoef(chance.score, boxes.score)[0, 1]) < 0.03
    assert chance.score.mean() == pytest.approx(0.5, abs=0.01)
    assert abs(np.corrcoef(Sparse(50, scores="random").lists(ROWS, SEED).score, chance.score)[0, 1]) > 0.99


def test_floats_have_four_bytes_and_texts_without_exponents() -> None:
    boxes, sparse = Ranking(3).columns(ROWS, SEED), SMALL.lists(ROWS, SEED)
    for made in (boxes, sparse):
        for array in (made.low, made.high, made.weight, made.score):
            assert np.array_equal(array, array.astype(np.float32))
    assert all(column.flags.c_contiguous for column in boxes.low.T)
    assert not any("e" in text.lower() for text in pa_texts(Ranking(3)) if "BETWEEN" not in text)
    assert all(map(bindable, pa_texts(Ranking(3))[:300])), "the parser is the slow way"


def pa_texts(made: RankingWorkload) -> list[str]:
    """List some filters."""
    return [str(text) for text in made.subscriptions(ROWS[:2_000], SEED)["filter"].to_pylist()]


def test_lists_of_columns() -> None:
    low = np.arange(6.0).reshape(3, 2)
    boxes = Columns(low, low + 10, low + 20, np.arange(3.0))
    lists = boxes.lists()
    assert lists.start.tolist() == [0, 2, 4, 6]
    assert lists.attribute.tolist() == [0, 1, 0, 1, 0, 1]
    assert (lists.low.tolist(), lists.weight[-1]) == ([0, 1, 2, 3, 4, 5], 25)


def test_sparse_boxes_have_different_attributes() -> None:
    boxes = Sparse().lists(ROWS, SEED)
    counts = np.diff(boxes.start)
    assert np.bincount(counts)[3:] / len(ROWS) == pytest.approx([1 / 6] * 6, abs=0.01)
    inside = np.ones(len(boxes.attribute) - 1, bool)
    inside[boxes.start[1:-1] - 1] = False
    assert (np.diff(boxes.attribute)[inside] > 0).all()
    named = np.bincount(boxes.attribute, minlength=500)
    assert named[0] / named[99] == pytest.approx(10, rel=0.2), "Zipf's law with the exponent 0.5"
    assert named.min() > 50
    tight = Sparse(10, 5, 5, skew=2.0).lists(ROWS[:300], SEED)
    assert (np.diff(tight.attribute.reshape(300, 5)) > 0).all()


def test_sparse_events_lack_attributes() -> None:
    points = Sparse(presence=0.1).points(ROWS[:200], SEED)
    assert np.isfinite(points).mean() == pytest.approx(0.1, abs=0.005)
    whole = Sparse().points(ROWS[:200], SEED)
    assert np.isfinite(whole).all()
    there = np.isfinite(points)
    assert np.array_equal(points[there], whole[there]), "the same values, fewer of them"
    batch = Sparse(presence=0.1).events(ROWS[:200], SEED)
    assert sum(column.null_count for column in batch.columns) == int((~there).sum())


@pytest.mark.parametrize("made", [Ranking(3), SMALL], ids=["dense", "sparse"])
def test_texts_mean_what_arrays_do(made: RankingWorkload) -> None:
    count = 400
    boxes = made.lists(ROWS[:count], SEED)
    rows = made.subscriptions(ROWS[:count], SEED).to_pylist()
    index = RecordIndex.build(Subscription(row["id"], row["filter"]) for row in rows)
    points = made.points(ROWS[:60], SEED)
    # Some events are at the very end of an interval.
    at = boxes.start[30:60]
    points[np.arange(30, 60), boxes.attribute[at]] = boxes.low[at]
    matched = 0
    for event, point in zip(written(made, points), points, strict=True):
        expected = [rows[n]["id"] for n in np.flatnonzero(holding(boxes, point) == np.diff(boxes.start))]
        assert index.match(Event(0, event)) == expected
        matched += len(expected)
    assert matched > 30


def holding(boxes: Lists, point: np.ndarray[tuple[int], np.dtype[np.float64]]) -> list[int]:
    """Count the intervals of each box that hold, one by one."""
    found = []
    for first, last in zip(boxes.start[:-1].tolist(), boxes.start[1:].tolist(), strict=True):
        found.append(
            sum(bool(boxes.low[i] <= point[boxes.attribute[i]] <= boxes.high[i]) for i in range(first, last))
        )
    return found


def written(
    made: RankingWorkload, points: np.ndarray[tuple[int, ...], np.dtype[np.float64]]
) -> list[dict[str, float]]:
    """Write points as events of the table are: the shortest decimals of floats of 4 bytes."""
    return [
        {name: float(str(np.float32(x))) for name, x in zip(made.names, point, strict=True) if np.isfinite(x)}
        for point in points
    ]


@pytest.mark.parametrize("made", [Ranking(3), SMALL], ids=["dense", "sparse"])
def test_tables(made: RankingWorkload) -> None:
    subscriptions, events = made.subscriptions(ROWS[:500], SEED), made.events(ROWS[:500], SEED)
    for batch, schema in ((subscriptions, made.subscription_schema()), (events, made.schema())):
        batch.validate(full=True)
        assert batch.schema == schema
    assert subscriptions["id"][42].as_py() == "box-0000042"
    boxes = made.lists(ROWS[:500], SEED)
    first, last = boxes.start[42:44].tolist()
    names = [f"x{number + 1}" for number in boxes.attribute[first:last]]
    assert dict(subscriptions["weights"][42].as_py()) == dict(
        zip(names, boxes.weight[first:last].tolist(), strict=True)
    )
    text = subscriptions["filter"][42].as_py()
    assert [clause.split()[0] for clause in text.split(" AND ")[::2]] == names
    assert np.float32(text.split()[2]) == boxes.low[first]
    assert subscriptions["score"].to_pylist() == boxes.score.tolist()
    rows = [
        {name: value for name, value in row.items() if name != "id" and value is not None}
        for row in events.to_pylist()
    ]
    assert rows == written(made, made.points(ROWS[:500], SEED))
    assert made.subscriptions(ROWS[:0], SEED).num_rows == made.events(ROWS[:0], SEED).num_rows == 0


@examples(10)
@given(cuts=st.lists(st.integers(0, 60), max_size=5), seed=st.integers(0, 3))
def test_rows_are_the_same_whatever_the_batches(cuts: list[int], seed: int) -> None:
    rows = np.arange(1000, 1060)
    for made in (Ranking(2, "random"), SMALL):
        for make in (made.subscriptions, made.events):
            whole = make(rows, seed).to_pylist()
            parts = [make(part, seed).to_pylist() for part in np.split(rows, sorted(cuts))]
            assert [row for part in parts for row in part] == whole
            assert make(rows[::-1], seed).to_pylist() == whole[::-1]


def test_statistics() -> None:
    found = measure_boxes(Ranking(2), 3_000, 20, SEED)
    assert found["intervals a box"] == 2
    assert (
        0.3 < found["least of the events"] < found["intervals that hold"] < found["most of the events"] < 0.8
    )
    assert found["boxes of which all intervals hold"] < found["intervals that hold"]
    assert found["boxes of which some interval holds"] > found["intervals that hold"]
    assert 1.9 < found["different ends by intervals"] <= 2
    half = measure_boxes(Sparse(50, presence=0.5), 2_000, 20, SEED)
    whole = measure_boxes(Sparse(50), 2_000, 20, SEED)
    assert half["intervals that hold"] == pytest.approx(whole["intervals that hold"] / 2, rel=0.15)


def test_a_million_is_drawn_in_seconds() -> None:
    begin = time.perf_counter()
    boxes = Ranking(8).columns(np.arange(100_000), SEED)
    assert time.perf_counter() - begin < 5, "0.15 s on a machine at rest"
    assert boxes.low.shape == (100_000, 8)


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        (lambda: Ranking(0), "0 dimensions: give 1 to 64"),
        (lambda: Ranking(2, "price"), "there are no scores 'price'; there are length, random"),
        (lambda: Ranking(2, law=TABLE_1._replace(volume=0)), "and a part above 0 up to 1"),
        (lambda: Ranking(2, law=TABLE_1._replace(skew_within=-1)), "a finite number from 0 up"),
        (lambda: Sparse(0), "0 attributes: give 1 to 10,000"),
        (lambda: Sparse(15), "3 to 8 intervals of 15 attributes: give 1 or more"),
        (lambda: Sparse(20, 4, 3), "4 to 3 intervals of 20 attributes"),
        (lambda: Sparse(presence=0), "presence 0: give a part of the attributes"),
    ],
)
def test_what_cannot_be_drawn_is_refused(wrong: object, complaint: str) -> None:
    with pytest.raises(HeadgateError, match=complaint):
        wrong()  # type: ignore[operator]


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("form", ["jsonl", "parquet"])
@pytest.mark.parametrize(
    ("command", "made"),
    [
        (
            "--dimensions 2 --scores random --skew-length 1",
            Ranking(2, "random", TABLE_1._replace(skew_length=1)),
        ),
        ("--attributes 20 --presence 0.5", Sparse(20, presence=0.5)),
    ],
    ids=["dense", "sparse"],
)
@pytest.mark.nightly
def test_the_command_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    form: str,
    command: str,
    made: RankingWorkload,
) -> None:
    # So that there are several partitions.
    monkeypatch.setattr("headgate.spark.runner.TASK_NUMBERS", 1)
    headgate = Command(monkeypatch, capsys)
    sizes = ["--subscriptions", "40", "--events", "30", "--seed", "4", "--quiet", "--json", "--format"]
    ran = headgate("generate", "ranking", *command.split(), *sizes, form, "--output", tmp_path)
    assert ran.code == 0, ran.err
    places = {name: tmp_path / f"{name}.{form}" for name in ("subscriptions", "events")}
    assert ran.json == {**{name: str(place) for name, place in places.items()}, "seed": 4}
    events = [{name: x for name, x in row.items() if x is not None} for row in get_table(places["events"])]
    expected = made.events(ROWS[:30], 4).to_pylist()
    assert events == [{name: x for name, x in row.items() if x is not None} for row in expected]
    for row, wanted in zip(
        get_table(places["subscriptions"]), made.subscriptions(ROWS[:40], 4).to_pylist(), strict=True
    ):
        assert {**row, "weights": dict(row["weights"])} == {**wanted, "weights": dict(wanted["weights"])}


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ("--dimensions 2 --attributes 20", "give --dimensions or --attributes, not both"),
        ("--presence 0.5", "--presence goes with --attributes"),
    ],
)
def test_options_that_do_not_go_together(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    arguments: str,
    complaint: str,
) -> None:
    ran = Command(monkeypatch, capsys)("generate", "ranking", *arguments.split(), "--output", tmp_path)
    assert ran.code == 2
    assert complaint in ran.err
