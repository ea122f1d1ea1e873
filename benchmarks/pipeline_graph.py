"""W-eq through a graph, with the best 20 of each event: the tables, the jobs, and a check against the engine.

    100 publishers ─► 3 of 30 exchanges each ─► 150 of 300 networks each ─► 100,000 subscriptions hang there

Exchanges and every other network take some of the events only; ways have costs, subscriptions have scores.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.measure import once
from benchmarks.results import Result
from headgate import Engine
from headgate.core.event import Event
from headgate.engine.question import Question, Top
from headgate.graph.walk.hits import BY_FILTERS, BY_GRAPH, StrategyChooser
from headgate.jobs.graph import compile_graph
from headgate.jobs.match import match_events
from headgate.spark.runner import SparkRunner
from headgate.tables.results import Tables
from headgate.workloads.catalogue import synthetic
from headgate.workloads.columns import Key, integers

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray
    from pyspark.sql import SparkSession

    from headgate.tables.results import MatchResult

PUBLISHERS, EXCHANGES, NETWORKS = 100, 30, 300
FEEDS, SELLS = 3, 150
"""Exchanges of a publisher, and networks of an exchange."""
K = 20
SEED = 1
CHUNK = 100_000
SECTION = "W-eq with a graph and the top 20"
WAYS = "W-eq through a graph, in one process: two ways"
BATCH = 8192


class Place(NamedTuple):
    """The files of the workload."""

    nodes: str
    edges: str
    subscriptions: str
    events: str
    snapshot: str
    matches: str
    rejected: str

    @classmethod
    def under(cls, folder: Path) -> Place:
        """Name the files in a folder."""
        tables = ("nodes", "edges", "subscriptions", "events")
        return cls(
            *(str(folder / f"{name}.parquet") for name in tables),
            *(str(folder / name) for name in ("snapshot", "matches.parquet", "rejected.jsonl")),
        )


def measure(
    session: SparkSession, folder: Path, filters: int, events: int, runs: int, rate: float | None
) -> list[Result]:
    """Measure the match job with graph and ranking; check some events against the in-process engine."""
    place = Place.under(folder)
    make(place, filters, events)
    tables = Tables(place.nodes, place.edges, place.subscriptions)
    compile_graph(SparkRunner(session, quiet=True), tables, place.snapshot, rejected=place.rejected)
    done = match(session, place)
    wall = min(once(lambda: match(session, place)) for _ in range(runs))
    check(session, place)
    section = f"{SECTION}, {filters:,} filters, {events:,} events"
    found = [
        Result("events a second, Parquet to Parquet", events / wall, "/s", goal=rate, at_least=True),
        Result("an event", wall / events * 1e6, "µs"),
        Result("ranked matches of an event", done.matches / events, "on average"),
        Result("load", os.getloadavg()[0], "in the last minute"),
    ]
    return [Result(**{**vars(result), "section": section}) for result in found] + both_ways(place, runs)


class Only(StrategyChooser):
    """Goes one way."""

    def __init__(self, way: int) -> None:
        super().__init__()
        self.best, self._left = way, 1 << 62


def both_ways(place: Place, runs: int) -> list[Result]:
    """Measure each way through the graph by itself, in this process."""
    graph = Engine.open(Path(place.snapshot)).graph
    batch = next(pq.ParquetFile(place.events).iter_batches(BATCH))
    found = []
    for way, name in (
        (BY_GRAPH, "the graph asks the filters on the way"),
        (BY_FILTERS, "the filters are asked first"),
    ):
        graph.view.ways = Only(way)
        questions: dict[str, Callable[[], object]] = {
            "all matches": lambda: graph.match_batch(batch),
            f"the best {K}": lambda: graph.top_batch(batch, K),
        }
        for what, ask in questions.items():
            ask()
            seconds = min(_cpu(ask) for _ in range(runs))
            found.append(
                Result(f"{name}: {what}", seconds / batch.num_rows * 1e6, "µs of CPU an event", section=WAYS)
            )
    content = graph.base.content
    rows = pa.array(np.arange(batch.num_rows))
    alone = min(_cpu(lambda: content.match_batch(batch, rows)) for _ in range(runs))
    found.append(
        Result(
            "the filters alone, without a graph",
            alone / batch.num_rows * 1e6,
            "µs of CPU an event",
            section=WAYS,
        )
    )
    return found


def _cpu(ask: Callable[[], object]) -> float:
    begun = time.thread_time()
    ask()
    return time.thread_time() - begun


def match(session: SparkSession, place: Place) -> MatchResult:
    """Run the match job."""
    return match_events(
        SparkRunner(session, quiet=True),
        place.snapshot,
        place.events,
        place.matches,
        rejected=place.rejected,
        question=Question(Top(K)),
    )


def make(place: Place, filters: int, events: int) -> None:
    """Write the tables; W-eq's own, and what the graph adds to them."""
    workload = synthetic("equality", filters)
    Path(place.nodes).parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(_nodes(), place.nodes)
    pq.write_table(_edges(), place.edges)
    rows = np.arange(filters)
    table = pa.Table.from_batches([workload.subscriptions(rows, SEED)])
    table = table.append_column("node", _named("network", _drawn("hangs at", rows, NETWORKS)))
    table = table.append_column("score", pa.array(_drawn("score", rows, 10_000) / 100.0))
    pq.write_table(table, place.subscriptions)
    schema = workload.schema().append(pa.field("source", pa.string()))
    with pq.ParquetWriter(place.events, schema) as writer:
        for begin in range(0, events, CHUNK):
            rows = np.arange(begin, min(events, begin + CHUNK))
            batch = workload.events(rows, SEED)
            source = _named("publisher", _drawn("source", rows, PUBLISHERS))
            writer.write_batch(pa.RecordBatch.from_arrays([*batch.columns, source], schema=schema))


def check(session: SparkSession, place: Place, count: int = 100) -> None:
    """Hold the answers of the first events against those of the engine."""
    graph = Engine.open(Path(place.snapshot)).graph
    first = next(pq.ParquetFile(place.events).iter_batches(count)).to_pylist()
    wanted = [
        (row["id"], rank, best.subscription, best.value)
        for row in first
        for rank, best in enumerate(graph.top(Event.from_row(row), K), 1)
    ]
    names = [row["id"] for row in first]
    found = session.read.parquet(place.matches).where(f"event_id <= '{max(names)}'").collect()
    ours = sorted((row["event_id"], row["rank"], row["subscription_id"], row["score"]) for row in found)
    if not wanted or ours != sorted(wanted):
        raise AssertionError("the job's best are not those of the engine")


def _nodes() -> pa.Table:
    names = [f"publisher-{n}" for n in range(PUBLISHERS)]
    texts: list[str | None] = [None] * PUBLISHERS
    names += [f"exchange-{n}" for n in range(EXCHANGES)]
    texts += [f"cat00 <> 'v{n % 4}' OR num00 > 5" for n in range(EXCHANGES)]
    names += [f"network-{n}" for n in range(NETWORKS)]
    texts += [None if n % 2 else f"num01 IS NULL OR num01 >= {n % 5}" for n in range(NETWORKS)]
    return pa.table({"id": names, "filter": texts})


def _edges() -> pa.Table:
    rng = np.random.default_rng(SEED)
    source, target = [], []
    for name, count, above, reach, below in (
        ("publisher", PUBLISHERS, "exchange", FEEDS, EXCHANGES),
        ("exchange", EXCHANGES, "network", SELLS, NETWORKS),
    ):
        for number in range(count):
            chosen = rng.choice(below, reach, replace=False).tolist()
            source += [f"{name}-{number}"] * reach
            target += [f"{above}-{each}" for each in chosen]
    cost = rng.integers(0, 5, len(source)).astype(np.float64)
    return pa.table({"source": source, "target": target, "cost": cost})


def _drawn(column: str, rows: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    return integers(Key(SEED, "pipeline graph", column, rows), 0, most)


def _named(name: str, numbers: NDArray[np.int64]) -> pa.Array[pa.StringScalar]:
    return pa.array([f"{name}-{number}" for number in numbers.tolist()])
