"""More filters than one index holds in memory while it is built: shards, by two commands.

Times are by the clock; memory is the most that all processes of a command held at one moment, shared pages
counted once.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.kernels import COMMAND
from benchmarks.results import Result
from benchmarks.waiting import processes_below
from benchmarks.workload_statistics import matches
from headgate.jobs.generate import generate
from headgate.spark.runner import SparkRunner
from headgate.spark.session.session import close_session, open_session
from headgate.workloads.catalogue import synthetic

SEED = 1
EVERY = 0.5
"""Seconds between two looks at the memory."""


class Plan(NamedTuple):
    """Filters and events of a size."""

    filters: int
    events: int
    shards: str
    checked: int
    """Events whose matches are looked up in the specification."""


SIZES = {"quick": Plan(2_000, 500, "2", 20), "full": Plan(10_000_000, 20_000, "auto", 5)}


class Ran(NamedTuple):
    """What a command took."""

    seconds: float
    cpu: float
    memory: int
    """The most bytes at one moment."""


def run(size: str) -> list[Result]:
    """Generate filters and events, compile, match, and look some answers up."""
    plan = SIZES[size]
    workload = synthetic("mixed", plan.filters)
    with tempfile.TemporaryDirectory() as directory:
        here = Path(directory)
        texts, events, found = (
            str(here / name) for name in ("subs.parquet", "events.parquet", "found.parquet")
        )
        session = open_session("local[2]")
        try:
            schema = workload.subscription_schema()
            generate(
                SparkRunner(session, quiet=True),
                workload.subscriptions,
                schema,
                plan.filters,
                texts,
                seed=SEED,
            )
            generate(
                SparkRunner(session, quiet=True),
                workload.events,
                workload.schema(),
                plan.events,
                events,
                seed=SEED,
            )
        finally:
            close_session(session)
        snapshot = str(here / "snapshot")
        refused = ["--rejected", str(here / "refused.jsonl"), "--engine", "spark", "--master", "local[2]"]
        compiled = _ran(
            *["compile", "--subscriptions", texts, "--output", snapshot, "--shards", plan.shards, *refused]
        )
        matched = _ran("match", "--snapshot", snapshot, "--events", events, "--output", found, *refused)
        rows = pq.read_table(found)
        _check(rows, plan)
        # The whole has a manifest, too.
        shards = len(list((here / "snapshot").rglob("manifest.json"))) - 1
        held = sum(file.stat().st_size for file in (here / "snapshot").rglob("*") if file.is_file())
    most = 24.0 if size == "full" else None
    section = f"W-mix, {plan.filters:,} filters, `--shards {plan.shards}`"
    results = [
        Result("shards", shards, "in all"),
        Result("the snapshot", held / plan.filters, "bytes a filter"),
        Result("compile, text to snapshot", compiled.seconds, "s"),
        Result("compile: CPU", compiled.cpu / plan.filters * 1e6, "µs a filter"),
        Result("compile: the most memory", compiled.memory / 2**30, "GiB", goal=most),
        Result(f"match of {plan.events:,} events", matched.seconds, "s"),
        Result("match: events a second, Spark's start included", plan.events / matched.seconds, "/s"),
        Result("match: CPU", matched.cpu / plan.events * 1e6, "µs an event"),
        Result("match: the most memory", matched.memory / 2**30, "GiB", goal=most),
        Result("matches of an event", rows.num_rows / plan.events, "on average"),
    ]
    return [Result(**{**vars(result), "section": section}) for result in results]


def _ran(*words: str) -> Ran:
    """Run a command of Headgate, and watch it."""
    print(" ".join(words), file=sys.stderr, flush=True)
    begun = time.perf_counter()
    before = os.times()
    command = subprocess.Popen([sys.executable, "-c", COMMAND, *words], stdout=subprocess.DEVNULL)
    most = 0
    ended = threading.Event()

    def watch() -> None:
        nonlocal most
        while not ended.wait(EVERY):
            most = max(most, _held(command.pid))

    watching = threading.Thread(target=watch)
    watching.start()
    code = command.wait()
    ended.set()
    watching.join()
    after = os.times()
    if code:
        raise AssertionError(f"headgate {words[0]} ended with {code}")
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return Ran(time.perf_counter() - begun, cpu, most)


def _held(process: int) -> int:
    """Count the bytes that a process and those below it hold; a shared page counts once."""
    total = 0
    for each in (process, *processes_below(process)):
        try:
            text = Path(f"/proc/{each}/smaps_rollup").read_text("ascii")
        except OSError:
            # Ended since it was listed.
            continue
        total += next(int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:"))
    return total << 10


def _check(rows: pa.Table, plan: Plan) -> None:
    """Look the matches of some events up in the specification, every operand of every filter."""
    workload = synthetic("mixed", plan.filters)
    some = np.arange(plan.checked)
    names = workload.events(some, SEED)["id"].to_pylist()
    held: dict[object, set[object]] = {name: set() for name in names}
    for first in range(0, plan.filters, 1_000_000):
        part = np.arange(first, min(plan.filters, first + 1_000_000))
        spec = workload.specification(part, SEED)
        for name, event in zip(names, workload.numbers(some, SEED), strict=True):
            those = part[matches(spec, event)]
            held[name] |= set(workload.subscriptions(those, SEED)["id"].to_pylist())
    mine = rows.filter(pc.is_in(rows["event_id"], pa.array(names)))
    ours: dict[object, set[object]] = {name: set() for name in names}
    for event, found in zip(mine["event_id"].to_pylist(), mine["subscription_id"].to_pylist(), strict=True):
        ours[event].add(found)
    if ours != held:
        raise AssertionError("the matches are not those of the specification")
