"""Run a pipeline on a standalone cluster of this machine, and hold its answers against the local run.

    python -m examples.cluster.run              compare: compile and match; with a graph and the best k, too
    python -m examples.cluster.run --kill       the same, and one of the two workers is killed meanwhile
    python -m examples.cluster.run --measure    events a second with one worker and with two
    python -m examples.cluster.run --load       a snapshot of 2 GB in every worker: time to open, memory
    python -m examples.cluster.run --ship zip   workers without Headgate get it from the job; or `archive`

It exits with 1 if the answers differ. Run it from the project's root.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from examples.cluster import loading, shipping, tables
from examples.cluster.standalone import Cluster
from headgate.engine.question import Question, Top
from headgate.jobs.compile import compile_subscriptions
from headgate.jobs.graph import compile_graph
from headgate.jobs.match import match_events
from headgate.spark.runner import SparkRunner
from headgate.spark.session.session import close_session, open_session, spark_errors
from headgate.tables.results import Tables

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import SparkSession

K = 5
RUNS = 3


class Answers(NamedTuple):
    """Sorted rows of both matches, and how long all of it took."""

    plain: list[tuple[object, ...]]
    ranked: list[tuple[object, ...]]
    seconds: float


def main(arguments: list[str] | None = None) -> int:
    """Do what the options say."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--filters", type=int, help="subscriptions; 2,000, or 100,000 with --measure")
    parser.add_argument("--events", type=int, help="events; 20,000, or 1,000,000 with --measure")
    parser.add_argument("--gigabytes", type=float, default=2.0, help="the size of the snapshot with --load")
    for name in ("kill", "measure", "load"):
        parser.add_argument(f"--{name}", action="store_true")
    parser.add_argument("--ship", choices=shipping.FORMS, help="how workers get Headgate from the job")
    wanted = parser.parse_args(arguments)
    # So that the cluster ends with us also when we are told to end.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory(prefix="headgate-cluster-") as directory:
        here = Path(directory)
        if wanted.measure:
            return measure(here, wanted.filters or 100_000, wanted.events or 1_000_000)
        if wanted.load:
            return load(here, wanted.gigabytes)
        if wanted.ship:
            return ship(here, wanted.filters or 2_000, wanted.events or 20_000, wanted.ship)
        return compare(here, wanted.filters or 2_000, wanted.events or 20_000, kill=wanted.kill)


def compare(here: Path, filters: int, events: int, *, kill: bool = False) -> int:
    """Run the pipeline here and on a cluster; 0 if all rows are the same."""
    place = tables.Place.under(here / "tables")
    tables.write(place, filters, events)
    local = pipeline(place, here / "local", "local[2]", {})
    print(f"local: {local.seconds:.1f} s", file=sys.stderr, flush=True)
    with Cluster(here / "cluster") as cluster:
        settings = cluster.settings() | {"spark.sql.files.maxPartitionBytes": "128k"}
        spread = pipeline(place, here / "spread", cluster.url, settings, Killer(cluster) if kill else None)
        living = sum(process.poll() is None for process in cluster.workers)
    rows = [
        ("", "local[2]", "2 workers" + (", one killed" if kill else "")),
        ("matches", f"{len(local.plain):,}", f"{len(spread.plain):,}"),
        (f"best {K}, with a graph", f"{len(local.ranked):,}", f"{len(spread.ranked):,}"),
        ("seconds, with Spark's start", f"{local.seconds:.1f}", f"{spread.seconds:.1f}"),
        ("workers at the end", "-", str(living)),
    ]
    _print(rows)
    same = local[:2] == spread[:2] and bool(local.plain) and bool(local.ranked)
    print("all rows are the same" if same else "THE ANSWERS DIFFER")
    if living != 2 - kill:
        print("a worker was to be killed, and none was: take more events" if kill else "a worker died")
        return 1
    return 0 if same else 1


def ship(here: Path, filters: int, events: int, form: str) -> int:
    """Match on workers that have no Headgate; 0 if all rows are those of this machine."""
    place = tables.Place.under(here / "tables")
    tables.write(place, filters, events)
    snapshot = str(here / "snapshot")
    wanted = shipping.local(place, snapshot)
    found = shipping.ship(here, place, snapshot, form)
    rows = [
        ("shipped as", form),
        ("matches", f"{len(found.rows):,}"),
        ("seconds of the first run", f"{found.first:.1f}"),
        ("seconds of the second", f"{found.second:.1f}"),
        ("kernels compiled by workers", str(found.compiled)),
    ]
    _print(rows)
    same = bool(wanted) and found.rows == wanted
    print("all rows are the same" if same else "THE ANSWERS DIFFER")
    return 0 if same else 1


def pipeline(
    place: tables.Place,
    out: Path,
    master: str,
    settings: dict[str, str],
    killer: Killer | None = None,
) -> Answers:
    """Compile, and match twice: against all subscriptions, and the best of what the graph lets through."""
    begun = time.perf_counter()
    session = open_session(master, settings=settings)
    try:
        names = ("plain", "graph", "matches.parquet", "best.parquet", "refused.jsonl")
        plain, graph, matches, best, refused = (str(out / name) for name in names)
        compile_subscriptions(
            SparkRunner(session, quiet=True), place.subscriptions, plain, rejected=refused, ranked=False
        )
        given = Tables(place.nodes, place.edges, place.subscriptions)
        compile_graph(SparkRunner(session, quiet=True), given, graph, rejected=refused)
        if killer is not None:
            killer.watch(session)
        match_events(SparkRunner(session, quiet=True), plain, place.events, matches, rejected=refused)
        asked = Question(Top(K))
        runner = SparkRunner(session, quiet=True)
        match_events(runner, graph, place.events, best, rejected=refused, question=asked)
        if killer is not None:
            killer.end()
        seconds = time.perf_counter() - begun
        return Answers(_rows(session, matches), _rows(session, best), seconds)
    finally:
        close_session(session)


def measure(here: Path, filters: int, events: int) -> int:
    """Time the match job with one worker and with two."""
    place = tables.Place.under(here / "tables")
    tables.write(place, filters, events)
    snapshot = str(here / "snapshot")
    refused = str(here / "refused.jsonl")
    rows = [("each worker has", "workers", "events a second", "ratio")]
    for bound in (True, False):
        has = "one core for all of its processes" if bound else "one task at a time, on any core"
        alone = 0.0
        for workers in (1, 2):
            with Cluster(here / f"cluster-{workers}-{bound}", workers, bound=bound) as cluster:
                session = open_session(cluster.url, settings=cluster.settings())
                try:
                    if not Path(snapshot).exists():
                        compile_subscriptions(
                            SparkRunner(session, quiet=True),
                            place.subscriptions,
                            snapshot,
                            rejected=refused,
                            ranked=False,
                        )
                    matches = str(here / "matches.parquet")
                    times = list(_times(session, snapshot, place.events, matches, refused))
                finally:
                    close_session(session)
            rate = events / min(times[1:])
            alone = alone or rate
            took = ", ".join(f"{one:.1f}" for one in times)
            print(f"{workers} workers, {has}: {took} s", file=sys.stderr, flush=True)
            rows.append((has, str(workers), f"{rate:,.0f}", f"{rate / alone:.2f}"))
    _print(rows)
    print(f"{filters:,} filters, {events:,} events, best of {RUNS} after a first; {_machine()}")
    return 0


def load(here: Path, gigabytes: float) -> int:
    """Open a large snapshot in both workers, touch all of it, and look at their memory while both hold it."""
    size = int(gigabytes * 2**30)
    snapshot = loading.write(here / "large", size)
    with Cluster(here / "cluster") as cluster:
        # Workers run a function of this example, so they must find it.
        root = {"spark.executorEnv.PYTHONPATH": str(Path(__file__).parents[2])}
        session = open_session(cluster.url, settings=cluster.settings() | root)
        try:
            with spark_errors():
                found = loading.measure(session, snapshot)
        finally:
            close_session(session)
    rows: list[tuple[str, ...]] = [
        (
            "worker process",
            "open, ms",
            "read all, s",
            "resident, MB",
            "its share, MB",
            "of it the snapshot, MB",
        )
    ]
    for one in found:
        mega = (one.resident, one.share, one.mapped_share)
        rows.append(
            (str(one.process), f"{one.open * 1e3:.1f}", f"{one.read:.1f}", *(f"{n / 1e6:,.0f}" for n in mega))
        )
    _print(rows)
    print(f"a snapshot of {size / 1e9:.2f} GB; {_machine()}")
    return 0 if len({one.process for one in found}) == 2 else 1


def _times(session: SparkSession, snapshot: str, events: str, matches: str, refused: str) -> Iterator[float]:
    for _ in range(RUNS + 1):
        shutil.rmtree(matches, ignore_errors=True)
        begun = time.perf_counter()
        match_events(SparkRunner(session, quiet=True), snapshot, events, matches, rejected=refused)
        yield time.perf_counter() - begun


def _rows(session: SparkSession, path: str) -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in session.read.parquet(path).collect())


class Killer(threading.Thread):
    """Kills a worker in the midst of a job: as soon as a stage has tasks done and tasks running."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(daemon=True)
        self._cluster = cluster
        self._over = threading.Event()
        self._session: SparkSession | None = None

    def watch(self, session: SparkSession) -> None:
        """Begin."""
        self._session = session
        self.start()

    def run(self) -> None:
        """Look at the running stages until the time has come."""
        assert self._session is not None
        tracker = self._session.sparkContext.statusTracker()
        while not self._over.wait(0.002):
            stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            if any(one.numCompletedTasks and one.numActiveTasks for one in stages if one is not None):
                self._cluster.kill(1)
                return

    def end(self) -> None:
        """Stop looking."""
        self._over.set()
        self.join()


def _print(rows: Sequence[tuple[str, ...]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        first, *rest = (text.rjust(width) for text, width in zip(row, widths, strict=True))
        print("  ".join([first.strip().ljust(widths[0]), *rest]))


def _machine() -> str:
    return f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the end"


if __name__ == "__main__":
    sys.exit(main())
