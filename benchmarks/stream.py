"""A stream of records, end to end: from a file that is in its place to matches that readers see.

One process moves files into the folder at a steady rate, another runs the stream. When a file was in place
is what the first one notes; when its matches were visible is when the file of matches was renamed, which the
file system notes. The answers of a sample are compared with those of the engine in this process.
"""

from __future__ import annotations

import json
import multiprocessing
import tempfile
import threading
import time
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow.parquet as pq

from benchmarks.results import Result
from benchmarks.waiting import share_waited, waited
from headgate import Engine, Event
from headgate.jobs.compile import compile_subscriptions
from headgate.jobs.generate import generate
from headgate.runtime.state import State
from headgate.spark.runner import SparkRunner
from headgate.spark.session.session import close_session, open_session
from headgate.spark.stream.run import run_stream
from headgate.stream.settings import StreamSettings
from headgate.workloads.catalogue import synthetic

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess

    from pyspark.sql import SparkSession

    from headgate.stream.reporting import StreamResult

SEED = 1
POOL = 20_000
"""Events that are drawn; each is sent again and again, under ids of its own."""


WARM = 2_000
"""Events of the file that starts the workers."""
PATIENCE = 120.0
"""Seconds to wait for the first matches, and for the last."""


class Plan(NamedTuple):
    """How much of what."""

    filters: int
    rate: int
    """Events a second."""
    seconds: int
    warm: int
    """Seconds at the start that are not counted."""
    every: float
    """Seconds between files."""
    checked: int
    """Events whose matches are compared."""
    median: float | None
    """The goal for half of the files, in seconds."""
    slowest: float | None
    """The same for all but one in a hundred."""


SIZES = {
    "quick": (Plan(2_000, 1_000, 4, 1, 0.25, 500, None, None),),
    "full": (
        Plan(100_000, 1_000, 610, 10, 0.2, 5_000, 0.4, 1.5),
        Plan(100_000, 5_000, 190, 10, 0.2, 5_000, 1.0, None),
    ),
}


def run(size: str) -> list[Result]:
    """Measure the stream, and check what it found."""
    results: list[Result] = []
    for plan in SIZES[size]:
        session = open_session("local[2]")
        try:
            with tempfile.TemporaryDirectory() as directory:
                here = Path(directory)
                _make(session, here, plan)
                results += _measured(session, here, plan)
        finally:
            close_session(session)
    return results


def _make(session: SparkSession, here: Path, plan: Plan) -> None:
    """Draw filters and events, and compile the filters."""
    workload = synthetic("equality", plan.filters)
    subscriptions, events = str(here / "subs.parquet"), str(here / "pool.jsonl")
    schema = workload.subscription_schema()
    generate(
        SparkRunner(session, quiet=True),
        workload.subscriptions,
        schema,
        plan.filters,
        subscriptions,
        seed=SEED,
    )
    generate(SparkRunner(session, quiet=True), workload.events, workload.schema(), POOL, events, seed=SEED)
    compile_subscriptions(
        SparkRunner(session, quiet=True),
        subscriptions,
        str(here / "snapshot"),
        rejected=str(here / "refused.jsonl"),
    )
    (here / "in").mkdir()


def _measured(session: SparkSession, here: Path, plan: Plan) -> list[Result]:
    settings = StreamSettings(
        str(here / "snapshot"),
        str(here / "in"),
        str(here / "out"),
        str(here / "state"),
        every=0.25,
        finished="delete",
        keep=1_000_000,
        progress=60.0,
    )
    feeder = multiprocessing.get_context("spawn").Process(target=feed, args=(here, plan), daemon=True)
    feeder.start()
    before = waited()
    stop = threading.Event()
    threading.Thread(target=_end, args=(here, feeder, stop), daemon=True).start()
    done = run_stream(session, settings, stop=stop)
    wait = share_waited(before, waited())
    sent = json.loads((here / "sent.json").read_text("utf-8"))
    _check(here, sent, plan)
    return _figures(here, sent, plan, done, wait)


def _end(here: Path, feeder: BaseProcess, stop: threading.Event) -> None:
    """End the stream when all that was sent is committed, or when that takes too long."""
    feeder.join()
    until = time.monotonic() + PATIENCE
    if (here / "sent.json").exists():
        sent = set(json.loads((here / "sent.json").read_text("utf-8")))
        while not sent <= set(_visible(here)) and time.monotonic() < until:
            time.sleep(1)
    stop.set()


def feed(here: Path, plan: Plan) -> None:
    """Move files into the folder at a steady rate; note when each was in place. A process of its own.

    It begins when the stream has matched a first file: what the start of workers takes is not its subject.
    """
    rest = []
    for line in (here / "pool.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        del row["id"]
        rest.append(json.dumps(row)[1:])
    (here / ".warm").write_text("".join(f'{{"id": -{each + 1}, {rest[each]}\n' for each in range(WARM)))
    (here / ".warm").rename(here / "in" / "warm.jsonl")
    until = time.monotonic() + PATIENCE
    while not list((here / "out").glob("batch-*")) and time.monotonic() < until:
        time.sleep(0.1)
    size = round(plan.rate * plan.every)
    sent: dict[str, float] = {}
    begun = time.monotonic()
    for number in range(round(plan.seconds / plan.every)):
        first = number * size
        text = "".join(f'{{"id": {each}, {rest[each % POOL]}\n' for each in range(first, first + size))
        beside = here / "in" / f".{number}"
        beside.write_text(text, "utf-8")
        time.sleep(max(0.0, begun + number * plan.every - time.monotonic()))
        beside.rename(here / "in" / f"{number:06d}.jsonl")
        sent[f"{number:06d}.jsonl"] = time.time()
    (here / "sent.json").write_text(json.dumps(sent), "utf-8")


def _visible(here: Path) -> dict[str, float]:
    """Find when the matches of each file of events were in place."""
    found: dict[str, float] = {}
    for record in State(here / "state").committed():
        staged = record["note"]["files"]
        places = [here / "out" / f"{name.partition('.')[0]}.parquet" for name in staged]
        moment = max((place.stat().st_ctime for place in places), default=0.0)
        found |= {Path(origin).name: moment for origin in record["origins"]}
    return found


def _check(here: Path, sent: dict[str, float], plan: Plan) -> None:
    """Compare a sample with the engine; and every event must be in one batch."""
    visible = _visible(here)
    assert set(visible) == {*sent, "warm.jsonl"}
    table = pq.read_table(here / "out", columns=["event_id", "subscription_id"])
    found: dict[int, list[object]] = defaultdict(list)
    for row in table.to_pylist():
        if 0 <= int(row["event_id"]) < plan.checked:
            found[int(row["event_id"])].append(row["subscription_id"])
    engine = Engine.open(here / "snapshot")
    pool = (here / "pool.jsonl").read_text("utf-8").splitlines()
    for number in range(plan.checked):
        wanted = engine.match(Event.from_json(pool[number % POOL]))
        assert sorted(found[number], key=str) == sorted(wanted, key=str), number


def _figures(
    here: Path, sent: dict[str, float], plan: Plan, done: StreamResult, queued: float
) -> list[Result]:
    visible = _visible(here)
    begun = min(sent.values())
    times, waits = [], []
    for name, moment in sent.items():
        if name in visible and moment - begun >= plan.warm:
            times.append(moment - begun)
            waits.append(visible[name] - moment)
    at, wait = np.array(times), np.array(waits)
    minute = min(60.0, (plan.seconds - plan.warm) / 2)
    first, last = wait[at < plan.warm + minute], wait[at >= at.max() - minute]
    state = sum(file.stat().st_size for file in (here / "state").rglob("*") if file.is_file())
    section = f"W-eq, {plan.filters:,} filters, {plan.rate:,} events a second, {plan.seconds:,} s"
    found = [
        Result("p50, a file in place to its matches in place", float(np.median(wait)), "s", goal=plan.median),
        Result("p90", float(np.quantile(wait, 0.9)), "s"),
        Result("p99", float(np.quantile(wait, 0.99)), "s", goal=plan.slowest),
        Result("p50 of the first minute", float(np.median(first)), "s"),
        Result(
            "p50 of the last minute",
            float(np.median(last)),
            "s",
            goal=None if plan.median is None else float(np.median(first)) * 1.25,
        ),
        Result("events a second", (done.events - WARM) / plan.seconds, "/s"),
        Result("matches of an event", done.matches / max(1, done.events), "on average"),
        Result("batches", done.batches, "in all"),
        Result("the state at the end", state / 1e6, "MB"),
        Result("threads that could run and waited for a core", queued * 100, "% of their time"),
    ]
    return [Result(**{**vars(result), "section": section}) for result in found]
