"""The generate job: the same rows whatever the partitioning and the format."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headgate.spark import runner as module
from headgate.workloads.catalogue import NAMES, workload
from headgate.workloads.graphs.exchange import Exchange
from headgate.workloads.graphs.social import Social
from headgate.workloads.ranking import Ranking, Sparse
from headgate.workloads.rdf.stars import Stars
from headgate.workloads.rdf.triples import Paper
from headgate.workloads.records import advertising
from headgate.workloads.xml.xmark import XMark
from tests.cli.running import Command
from tests.lanes import some
from tests.spark.files import get_lines, get_table, names
from tests.spark.jobs import generate, on_both

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from headgate.jobs.generate import Maker
    from headgate.workloads.graphs.graphs import GraphWorkload


@pytest.mark.parametrize("size", some([10_000, 100, 7], 2))
def test_rows_do_not_depend_on_partitions(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(module, "TASK_NUMBERS", size)
    for make, schema, name in (
        (advertising.events, advertising.schema(), "events.parquet"),
        (advertising.subscriptions, advertising.subscription_schema(), "subs.parquet"),
    ):
        generate(spark, make, schema, 300, str(tmp_path / name), seed=4, quiet=True)
        expected = pa.Table.from_batches([make(np.arange(300), 4)]).to_pylist()
        assert get_table(tmp_path / name) == expected
    assert names(tmp_path) == ["events.parquet", "subs.parquet"]


def makers() -> dict[str, dict[str, tuple[Maker, pa.Schema, int]]]:
    """List the tables of every workload: how rows are made, their schema, and how many are made here."""
    plain: dict[str, Any] = {name: workload(name, 60) for name in NAMES}
    plain |= {"ranking": Ranking(1, "random"), "boxes": Ranking(4), "sparse": Sparse(30, presence=0.3)}
    plain |= {"rdf": Paper(), "stars": Stars(), "xmark": XMark(sizes=(2_000, 4_000)).settled(60, 4)}
    found: dict[str, dict[str, tuple[Maker, pa.Schema, int]]] = {
        name: {
            "subscriptions": (made.subscriptions, made.subscription_schema(), 60),
            "events": (made.events, made.schema(), 40),
        }
        for name, made in plain.items()
    }
    graphs: dict[str, GraphWorkload] = {"exchange": Exchange(1, "1/4"), "social": Social(500, 2_000, "1/8")}
    for name, graph in graphs.items():
        found[name] = {
            "nodes": (graph.nodes, graph.node_schema(), min(500, graph.node_count)),
            "edges": (graph.edges, graph.edge_schema(), min(500, graph.edge_count)),
            "events": (graph.events, graph.schema(), 40),
        }
    return found


WORKLOADS = [*NAMES, "ranking", "boxes", "sparse", "rdf", "stars", "xmark", "exchange", "social"]


# One of documents, one of graphs; one of records is that above.
@pytest.mark.parametrize("name", some(WORKLOADS, WORKLOADS.index("xmark"), WORKLOADS.index("social")))
def test_every_workload_is_the_same_in_any_number_of_parts(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    for table, (make, schema, count) in makers()[name].items():
        path = tmp_path / f"{table}.parquet"
        generate(spark, make, schema, count, str(path), seed=4, parts=3, quiet=True)
        assert len(list(path.glob("*.parquet"))) > 1
        expected = pa.Table.from_batches([make(np.arange(count), 4)])
        assert get_table(path) == expected.to_pylist(), table


@on_both()
def test_lines_hold_the_same_rows(session: SparkSession | None, tmp_path: Path) -> None:
    path = tmp_path / "subs.jsonl"
    schema = advertising.subscription_schema()
    generate(session, advertising.subscriptions, schema, 50, str(path), seed=4, quiet=True)
    assert get_lines(path) == advertising.subscriptions(np.arange(50), 4).to_pylist()
    generate(session, advertising.subscriptions, schema, 50, str(path), seed=5, quiet=True)
    assert get_lines(path) != advertising.subscriptions(np.arange(50), 4).to_pylist()
    events = tmp_path / "events.jsonl"
    generate(session, advertising.events, advertising.schema(), 5, str(events), seed=4, quiet=True)
    expected = advertising.events(np.arange(5), 4).to_pylist()
    for found, row in zip(get_lines(events), expected, strict=True):
        assert found["time"].endswith("Z")
        assert {**found, "time": None} == json.loads(json.dumps({**row, "time": None}))


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
@pytest.mark.parametrize("count", [0, 1])
def test_small_counts(session: SparkSession | None, tmp_path: Path, form: str, count: int) -> None:
    path = tmp_path / f"events.{form}"
    generate(session, advertising.events, advertising.schema(), count, str(path), seed=1, quiet=True)
    assert len(get_table(path)) == count


GRAPHS: list[tuple[str, GraphWorkload]] = [
    ("exchange --selectivity 1/16 --vocabulary 200", Exchange(1, "1/16", 200)),
    ("social --nodes 2000 --edges 5000 --selectivity 1/8", Social(2_000, 5_000, "1/8")),
]


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize(
    ("command", "made", "form"),
    # A graph of an exchange is large, whatever is asked for.
    some([(*graph, form) for graph in GRAPHS for form in ("jsonl", "parquet")], 1, 2),
)
@pytest.mark.nightly
def test_graphs_from_the_command_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    form: str,
    command: str,
    made: GraphWorkload,
) -> None:
    # So that there are several partitions.
    monkeypatch.setattr("headgate.spark.runner.TASK_NUMBERS", 1)
    headgate = Command(monkeypatch, capsys)
    arguments = ("generate", *command.split(), "--events", "30", "--seed", "4", "--format", form, "--quiet")
    ran = headgate(*arguments, "--output", tmp_path, "--json")
    assert ran.code == 0, ran.err
    places = {name: str(tmp_path / f"{name}.{form}") for name in ("nodes", "edges", "events")}
    assert ran.json == {**places, "seed": 4}
    for name, make, count in (
        ("nodes", made.nodes, made.node_count),
        ("edges", made.edges, made.edge_count),
        ("events", made.events, 30),
    ):
        expected, place = make(np.arange(count), 4), tmp_path / f"{name}.{form}"
        if form == "parquet":
            assert pq.read_table(place).to_pydict() == expected.to_pydict()
        else:
            assert get_lines(place) == expected.to_pylist()
    assert names(tmp_path) == sorted(f"{name}.{form}" for name in places)
