"""The Spark jobs end to end, Parquet in and out, against Spark SQL itself, and where their time goes."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as sf

import headgate.spark as hg
from benchmarks import pipeline_graph, pipeline_plain, pipeline_shards
from benchmarks.kernels import COMMAND, cpu
from benchmarks.measure import once
from benchmarks.results import Result
from benchmarks.waiting import processes_below, share_waited, waited
from benchmarks.workload_statistics import matches
from headgate.jobs.compile import compile_subscriptions
from headgate.jobs.events import JudgeTask
from headgate.jobs.generate import generate
from headgate.jobs.match import match_events
from headgate.runtime.engines import Runtime
from headgate.spark.runner import SparkRunner
from headgate.spark.session.session import close_session, open_session
from headgate.spark.tables.events import judge
from headgate.tables.event_rows import PACKED
from headgate.tables.frames.report import MATCHING, NAMING, RECEIVING, STAGES, WRITING
from headgate.tables.places import Format
from headgate.workloads.catalogue import synthetic
from headgate.workloads.records import advertising

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame, SparkSession

    from headgate.tables.results import CompileResult, MatchResult
    from headgate.workloads.catalogue import Workload


class Plan(NamedTuple):
    """Filters and events of a size: W-eq, advertising, and the W-mix filters that are only compiled."""

    equality: tuple[int, int]
    advertising: tuple[int, int]
    sharded: int
    """Events of W-eq that are matched against shards."""
    mixed: int
    mixed_events: int
    """Events of W-mix that one command matches, Spark's start included."""
    plain: int
    """Events of W-eq that plain Spark matches."""
    checked: int
    """Events of W-eq whose matches are looked up in the specification."""
    runs: int
    """Runs that the best is taken of, after one that starts the workers."""
    rate: float | None
    """The goal for W-eq; few events take hardly more time than the start of their tasks."""
    ranked_rate: float | None
    """The same with a graph and the top 20."""


SIZES = {
    "quick": Plan((1_000, 4_000), (500, 1_000), 1_000, 0, 0, 500, 20, 1, None, None),
    "full": Plan(
        (100_000, 1_000_000), (100_000, 100_000), 200_000, 1_000_000, 200_000, 10_000, 200, 3, 40_000, 20_000
    ),
}
SEED = 1
ORACLE = 200
"""Filters that Spark SQL evaluates for the baseline; all of them would take hours."""

SPEED, COST, ADS, COMPILE = "W-eq: match", "W-eq: where the time goes", "Advertising", "W-mix: compile"
CPU, SHARE = "µs of CPU an event", "% of all"
_TICKS = os.sysconf("SC_CLK_TCK")


class Place(NamedTuple):
    """The files of one workload."""

    subscriptions: str
    events: str
    snapshot: str
    matches: str
    rejected: str

    @classmethod
    def under(cls, folder: Path) -> Place:
        """Name the files in a folder."""
        names = ("subs.parquet", "events.parquet", "snapshot", "matches.parquet", "rejected.jsonl")
        return cls(*(str(folder / name) for name in names))


def run(size: str) -> list[Result]:
    """Measure compile and match; check the answers against Spark SQL and the workload's specification."""
    plan = SIZES[size]
    session = open_session("local[2]")
    try:
        with tempfile.TemporaryDirectory() as directory:
            here = Path(directory)
            results = _equality(session, here / "equality", plan)
            results += pipeline_graph.measure(
                session, here / "graph", *plan.equality, plan.runs, plan.ranked_rate
            )
            results += _sharded(session, here / "shards", plan)
            results += _advertising(session, here / "advertising", plan)
            return results + (_mixed(session, here / "mixed", plan) if plan.mixed else [])
    finally:
        close_session(session)


def _equality(session: SparkSession, here: Path, plan: Plan) -> list[Result]:
    filters, events = plan.equality
    place = Place.under(here)
    _make(session, synthetic("equality", filters), place, filters, events)
    _compile(session, place)
    first = once(lambda: _match(session, place))
    before = waited()
    runs = [_spent(lambda: _match(session, place)) for _ in range(plan.runs)]
    wall, costs, done = min(runs, key=lambda found: found[0])
    _check(session, place, filters, plan.checked)
    frames = [_spent(lambda: _framed(session, place, here, done)) for _ in range(plan.runs)]
    by_spark = [_spent(lambda: _framed(session, place, here, done, spark=True)) for _ in range(plan.runs)]
    _check_framed(session, here, done)
    framed, sparked = (min(sum(each[1]) for each in some) for some in (frames, by_spark))
    queued = share_waited(before, waited())
    plain = min(once(lambda: _plainly(session, place, here)) for _ in range(plan.runs))
    ours = min(sum(each[1]) for each in runs) / events * 1e6
    joined = _joined(session, place, here, plan)
    found = [
        Result("events a second, Parquet to Parquet", events / wall, "/s", goal=plan.rate, at_least=True),
        Result("an event", wall / events * 1e6, "µs"),
        Result("Spark alone reads the events and writes the matches", plain / events * 1e6, "µs an event"),
        Result(
            "the share of the time that is above that",
            max(0.0, 1 - plain / wall) * 100,
            "%",
            goal=None if plan.rate is None else 50,
        ),
        Result(
            "DataFrame to Parquet: `hg.write_parquet(hg.match(events, snapshot), path)`",
            events / min(each[0] for each in frames),
            "/s",
            goal=None if plan.rate is None else 60_000,
            at_least=True,
        ),
        Result(
            "its CPU against that of the job",
            framed / min(sum(each[1]) for each in runs),
            "times",
            goal=None if plan.rate is None else 1.1,
        ),
        Result(
            "the same by Spark's own writer: `hg.match(events, snapshot).write.parquet(path)`",
            events / min(each[0] for each in by_spark),
            "/s",
        ),
        Result("its CPU against that of the job", sparked / min(sum(each[1]) for each in runs), "times"),
        Result("CPU of the job", ours, "µs an event", joined, f"plain Spark, from {plan.plain:,} events"),
        Result(
            "plain Spark (a join with exploded events, verified in a pandas UDF) takes more CPU",
            joined / ours,
            "times",
            goal=30 if plan.rate else None,
            at_least=True,
        ),
        Result("matches of an event", done.matches / events, "on average"),
        Result("this run", wall, "s"),
        Result("threads that could run and waited for a core", queued * 100, "% of their time"),
        Result("the first run of a session, which starts the workers", first, "s"),
    ]
    named = f"{SPEED}, {filters:,} filters, {events:,} events"
    grid = _costs(session, place, plan, wall, costs, done)
    return [_under(result, named) for result in found] + grid


def _sharded(session: SparkSession, here: Path, plan: Plan) -> list[Result]:
    filters, events = plan.equality[0], plan.sharded
    place = Place.under(here)
    _make(session, synthetic("equality", filters), place, filters, events)
    counts = (1, 4) if plan.rate is None else (1, 4, 16)
    return pipeline_shards.measure(
        session, here, place.subscriptions, place.events, filters, plan.runs, counts, _spent
    )


def _framed(
    session: SparkSession, place: Place, here: Path, done: MatchResult, *, spark: bool = False
) -> MatchResult:
    """Match a DataFrame, and have workers write the matches, or Spark."""
    matched = hg.match(session.read.parquet(place.events), place.snapshot)
    if spark:
        matched.write.mode("overwrite").parquet(str(here / "by_spark"))
    else:
        hg.write_parquet(matched, here / "by_workers", mode="overwrite")
    return done


def _check_framed(session: SparkSession, here: Path, done: MatchResult) -> None:
    """Compare what was written: by workers, by Spark, and by the job."""
    ours, theirs = (session.read.parquet(str(here / name)) for name in ("by_workers", "by_spark"))
    if ours.schema != theirs.schema or not ours.count() == theirs.count() == done.matches:
        raise AssertionError("a DataFrame has other matches than the job")


def _joined(session: SparkSession, place: Place, here: Path, plan: Plan) -> float:
    """Have plain Spark match some events; returns the µs of CPU an event. The matches must be the same."""
    filters = plan.equality[0]
    workload = synthetic("equality", filters)
    keys, predicates = pipeline_plain.prepare(session, workload, filters, SEED)
    keys.count()
    some = str(here / "some.parquet")
    session.read.parquet(place.events).orderBy("id").limit(plan.plain).write.mode("overwrite").parquet(some)
    found = str(here / "joined")

    def work() -> None:
        joined = pipeline_plain.match(session.read.parquet(some), workload, keys, predicates)
        joined.write.mode("overwrite").parquet(found)

    spent = least(plan.runs, work)
    names = session.read.parquet(some).select(sf.col("id").alias("event_id"))
    ours = session.read.parquet(place.matches).join(names, "event_id", "left_semi")
    theirs = session.read.parquet(found)
    if ours.exceptAll(theirs).count() or theirs.exceptAll(ours).count():
        raise AssertionError("plain Spark has other matches")
    keys.unpersist()
    return sum(spent) / plan.plain * 1e6


def _plainly(session: SparkSession, place: Place, here: Path) -> None:
    """Have Spark read the events, and write as many matches, without a line of Python."""
    _drop(session.read.parquet(place.events))
    session.read.parquet(place.matches).write.mode("overwrite").parquet(str(here / "plain"))


def _under(result: Result, section: str) -> Result:
    return Result(**{**vars(result), "section": section})


class Spent(NamedTuple):
    """Seconds of CPU of Spark's Java process, and of the Python workers under it."""

    java: float
    python: float


def _costs(
    session: SparkSession, place: Place, plan: Plan, wall: float, whole: Spent, done: MatchResult
) -> list[Result]:
    """Divide the CPU of a run among its steps; those of Java are measured by running them alone."""
    table = session.read.parquet(place.events)
    packed = table.select(sf.struct(*table.columns).alias(PACKED))
    runs, events = plan.runs, plan.equality[1]
    reading = least(runs, lambda: _drop(table))
    handing = least(runs, lambda: _drop(packed.mapInArrow(_swallow, "rows long")))
    judging = least(runs, lambda: judge(session, JudgeTask(place.events, Format.PARQUET, texts=())))
    by_stage = dict(
        zip(STAGES, np.sum([batch.spent for batch in done.batches], axis=0).tolist(), strict=True)
    )
    java = {
        "Spark reads Parquet": reading.java,
        "Spark makes Arrow batches of rows": max(0.0, handing.java - reading.java),
        "judging the events (footers), the rejected table": judging.java,
    }
    python = {
        "workers take batches apart": by_stage[RECEIVING],
        "workers encode and match": by_stage[MATCHING],
        "workers take the ids": by_stage[NAMING],
        "workers write Parquet": by_stage[WRITING],
    }
    rows = {
        **java,
        "planning and scheduling, what else Java does": whole.java - sum(java.values()),
        **python,
        "receiving of batches, start and end of tasks": whole.python - sum(python.values()),
        "all": whole.java + whole.python,
        "two cores for as long as the run took": 2 * wall,
    }
    total = whole.java + whole.python
    found: list[Result] = []
    for name, seconds in rows.items():
        found.append(Result(name, seconds / events * 1e6, "µs", section=COST, column=CPU))
        found.append(Result(name, seconds / total * 100, "%", section=COST, column=SHARE))
    return found


def _spent(work: Callable[[], MatchResult]) -> tuple[float, Spent, MatchResult]:
    before, begun = _clocks(), time.perf_counter()
    done = work()
    wall, after = time.perf_counter() - begun, _clocks()
    return wall, Spent(after.java - before.java, after.python - before.python), done


def least(runs: int, work: Callable[[], object]) -> Spent:
    """Return the CPU of the cheapest of some runs: Java compiles itself during the first ones."""
    found = []
    for _ in range(runs):
        before = _clocks()
        work()
        after = _clocks()
        found.append(Spent(after.java - before.java, after.python - before.python))
    return min(found)


def _clocks() -> Spent:
    """Read the CPU of the Java process, and of the Python processes below it."""
    java = next(process for process in processes_below(os.getpid()) if _fields(process)[0] == "(java)")
    return Spent(_seconds(java), sum(map(_seconds, processes_below(java))))


def _fields(process: int) -> list[str]:
    """Read what is known of a process, from its name on; the name may hold blanks."""
    text = Path(f"/proc/{process}/stat").read_text("utf-8")
    end = text.rindex(")") + 1
    return [text[text.index("(") : end], *text[end:].split()]


def _seconds(process: int) -> float:
    user, system = _fields(process)[12:14]
    return (int(user) + int(system)) / _TICKS


def _drop(table: DataFrame) -> None:
    table.write.format("noop").mode("overwrite").save()


def _swallow(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield pa.RecordBatch.from_pydict({"rows": [sum(batch.num_rows for batch in batches)]})


def _make(session: SparkSession, workload: Workload, place: Place, filters: int, events: int) -> None:
    schema = workload.subscription_schema()
    generate(
        SparkRunner(session, quiet=True),
        workload.subscriptions,
        schema,
        filters,
        place.subscriptions,
        seed=SEED,
    )
    generate(
        SparkRunner(session, quiet=True), workload.events, workload.schema(), events, place.events, seed=SEED
    )
    print(f"{filters:,} filters, {events:,} events", file=sys.stderr, flush=True)


def _compile(session: SparkSession, place: Place) -> CompileResult:
    return compile_subscriptions(
        SparkRunner(session, quiet=True), place.subscriptions, place.snapshot, rejected=place.rejected
    )


def _match(session: SparkSession, place: Place) -> MatchResult:
    return match_events(
        SparkRunner(session, quiet=True), place.snapshot, place.events, place.matches, rejected=place.rejected
    )


def _check(session: SparkSession, place: Place, filters: int, checked: int) -> None:
    """Look up the matches of some events in the specification, every operand of every filter."""
    workload = synthetic("equality", filters)
    rows = np.arange(checked)
    names = workload.events(rows, SEED)["id"].to_pylist()
    spec = workload.specification(np.arange(filters), SEED)
    held = [np.flatnonzero(matches(spec, event)) for event in workload.numbers(rows, SEED)]
    used = np.unique(np.concatenate(held))
    called = dict(zip(used.tolist(), workload.subscriptions(used, SEED)["id"].to_pylist(), strict=True))
    wanted = Counter(
        (name, called[n]) for name, found in zip(names, held, strict=True) for n in found.tolist()
    )
    ours = session.read.parquet(place.matches).where(sf.col("event_id").isin(names)).collect()
    if Counter((row["event_id"], row["subscription_id"]) for row in ours) != wanted:
        raise AssertionError("the matches are not those of the specification")


def _advertising(session: SparkSession, here: Path, plan: Plan) -> list[Result]:
    filters, events = plan.advertising
    place = Place.under(here)
    _make(session, advertising, place, filters, events)
    done = _compile(session, place)
    matching = min(once(lambda: _match(session, place)) for _ in range(plan.runs))
    copy = str(here / "copy")
    read = once(lambda: session.read.parquet(place.events).write.mode("overwrite").parquet(copy))
    spark = once(lambda: _oracle(session, place)) * filters / ORACLE
    scale = 1e6 / events
    found = [
        Result("compile: parse", done.parse_seconds / filters * 1e6, "µs a filter"),
        Result("compile: build and write", done.build_seconds / filters * 1e6, "µs a filter"),
        Result(
            "match, Parquet to Parquet",
            matching * scale,
            "µs an event",
            spark * scale,
            "Spark SQL, from 200 filters",
        ),
        Result("Spark reads and writes the events", read * scale, "µs an event"),
    ]
    return [_under(result, f"{ADS}, {filters:,} filters, {events:,} events") for result in found]


def _oracle(session: SparkSession, place: Place) -> None:
    """Evaluate some filters as Spark SQL over all events, and compare every count with our matches."""
    some = session.read.parquet(place.subscriptions).orderBy("id").limit(ORACLE).collect()
    events = session.read.parquet(place.events)
    theirs = (
        events.agg(*[sf.count_if(sf.expr(row["filter"])).alias(row["id"]) for row in some])
        .collect()[0]
        .asDict()
    )
    ours = session.read.parquet(place.matches).groupBy("subscription_id").count().collect()
    counts = {row["subscription_id"]: row["count"] for row in ours}
    wrong = [name for name, count in theirs.items() if counts.get(name, 0) != count]
    if wrong:
        raise AssertionError(f"Spark SQL counts other matches than Headgate for {wrong[:5]}")


def _mixed(session: SparkSession, here: Path, plan: Plan) -> list[Result]:
    """Compile many filters, from a table of texts to a snapshot on the disk, and match by one command."""
    place, filters, events = Place.under(here), plan.mixed, plan.mixed_events
    _make(session, synthetic("mixed", filters), place, filters, events)
    begun = time.perf_counter()
    done = _compile(session, place)
    seconds = time.perf_counter() - begun
    assert (done.subscriptions, done.rejected) == (filters, 0)
    words = ["match", "--snapshot", place.snapshot, "--events", place.events, "--engine", "spark"]
    words += ["--output", place.matches, "--rejected", place.rejected, "--master", "local[2]", "--quiet"]
    spent = min(cpu(COMMAND, *words) for _ in range(plan.runs))
    opening = once(lambda: Runtime.open(Path(place.snapshot), verify=False))
    section = f"{COMPILE}, {filters:,} filters, text to snapshot"
    return [
        Result(
            f"`headgate match` of {events:,} events, Spark's start included",
            spent / events * 1e6,
            "µs of CPU an event",
            goal=250,
            section=section,
        ),
        Result("a worker opens the snapshot", opening, "s", goal=1, section=section),
        Result("from text to snapshot", seconds, "s", goal=120, section=section),
        Result("parse, on both cores", done.parse_seconds, "s", section=section),
        Result("build and write", done.build_seconds, "s", section=section),
    ]
