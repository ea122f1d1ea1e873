"""The examples run and say what they should."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from examples import first_ten_minutes, library, spark_job
from examples.rss import rss_reader
from tests.docs.fences import ROOT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_library(capsys: pytest.CaptureFixture[str]) -> None:
    library.main()
    assert capsys.readouterr().out.splitlines() == [
        "matches: ['anna', 'ben']",
        "carla: no match, because of user.city LIKE 'Z%'",
        (
            "refused: now is not part of the filter language: it asks the clock, and an event means the "
            "same at any time; the event's own time is :event_time, at character 7: age > ⟪now()"
        ),
        "batch: [{'event_id': 1, 'subscription_id': 'ben'}]",
    ]


def test_first_ten_minutes(capsys: pytest.CaptureFixture[str]) -> None:
    """What a newcomer sees: if it changes, read first_ten_minutes.txt as one would."""
    first_ten_minutes.main()
    shown = (ROOT / "examples" / "first_ten_minutes.txt").read_text("utf-8")
    assert capsys.readouterr().out == shown


def test_spark_job(capsys: pytest.CaptureFixture[str], spark: SparkSession) -> None:
    spark_job.main()
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "compiled 2, refused 1"
    assert said[1].startswith("a subquery is not part of the filter language, at character ")
    assert said[2:] == ["a 1", "a 2", "c 1"]
    assert spark.range(1).count() == 1


@pytest.mark.usefixtures("spark")
def test_notebook(capsys: pytest.CaptureFixture[str]) -> None:
    """Its cells run one after the other, and print what it shows."""
    notebook = json.loads((ROOT / "examples" / "dataframes.ipynb").read_text("utf-8"))
    names: dict[str, object] = {}
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert len(cells) > 5
    for cell in cells:
        exec(compile("".join(cell["source"]), "dataframes.ipynb", "exec"), names)
        shown = "".join(line for output in cell["outputs"] for line in output["text"])
        assert capsys.readouterr().out == shown, "".join(cell["source"])


def test_rss_reader(capsys: pytest.CaptureFixture[str]) -> None:
    folder = ROOT / "examples" / "rss"
    rss_reader.main(*(str(folder / name) for name in ("feeds", "subscriptions.jsonl", "topics.ttl")))
    said = capsys.readouterr()
    assert said.out.splitlines() == [
        "ada",
        "  observatory.rss#1  A partial eclipse on Sunday morning",
        "  observatory.rss#2  Spring tide: the harbour wall may be under water",
        "  observatory.rss#4  A halo round the moon, and what it says about rain",
        "",
        "ben",
        "  harbour.rss#3  New ferry leaves the harbour at seven",
        "  kitchen.rss#2  Mussels from the harbour, sautéed",
        "  observatory.rss#2  Spring tide: the harbour wall may be under water",
        "",
        "cleo",
        "  harbour.rss#2  Hill climb: the record stands",
        "  kitchen.rss#3  A picnic for long rides",
        "  observatory.rss#2  Spring tide: the harbour wall may be under water",
        "",
        "dora",
        "  kitchen.rss#1  Rye bread & butter",
        "  kitchen.rss#2  Mussels from the harbour, sautéed",
    ]
    told = said.err.splitlines()
    assert told[0].startswith("emil: refused: with the option coerce a filter is a pattern")
    assert all(line.startswith("kitchen.rss: ") for line in told[1:-1])
    assert told[-1].startswith("moved.rss: refused: not a usable feed: there is no channel and no item in it")
