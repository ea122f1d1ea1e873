"""What it costs to keep statistics of subscriptions: matching with them and without, by turns."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from benchmarks.results import Result
from benchmarks.specified_programs import programs
from headgate import Engine, Event
from headgate.core.ids import Ids
from headgate.core.interning import TextPool
from headgate.engine.backend import PlainFilters
from headgate.records.index.index import RecordIndex
from headgate.workloads.catalogue import synthetic

if TYPE_CHECKING:
    from collections.abc import Callable

SIZES = {"quick": (3_000, 2_000), "full": (100_000, 20_000)}
"""Filters, and events."""
SEED, TURNS = 1, 9
SAMPLE = np.arange(10_000_000, 10_004_096)
MOST = 1.05
"""Times the CPU time without statistics."""
ONE = 512
"""Events that are asked about one by one."""


def run(size: str) -> list[Result]:
    """Measure W-mix, in batches and one event at a time, with ids that are numbers and texts."""
    count, events = SIZES[size]
    workload = synthetic("mixed", count)
    made = programs(workload.specification(np.arange(count), SEED))
    batch = workload.events(np.arange(events), SEED)
    some = [Event.from_row(row) for row in batch.slice(0, ONE).to_pylist()]
    results = []
    for title, ids in {
        "whole numbers": Ids.from_arrow(pa.array(np.arange(count))),
        "text": Ids.of(f"s{number:07}" for number in range(count)),
    }.items():
        texts = TextPool.build([""] * count)
        index = RecordIndex.from_programs(ids, texts, made, sample=workload.events(SAMPLE, SEED))
        named = f"W-mix, {count:,} filters, ids are {title}"
        results.append(
            _turns(index, f"{named}: match_batch", lambda engine: engine.match_batch(batch), events)
        )
        results.append(
            _turns(index, f"{named}: match", lambda engine: [engine.match(event) for event in some], ONE)
        )
    return results


def _turns(index: RecordIndex, title: str, ask: Callable[[Engine], object], events: int) -> Result:
    """Ask with and without, by turns; others who use the machine slow both down. Returns the CPU times."""
    engines = [Engine(PlainFilters(index, RecordIndex)) for _ in range(2)]
    engines[1].statistics()
    spent: list[list[float]] = [[], []]
    for turn in range(TURNS + 1):
        for place, engine in enumerate(engines):
            begun = time.thread_time()
            ask(engine)
            if turn:
                spent[place].append(time.thread_time() - begun)
    without, with_them = (float(np.median(each)) / events * 1e6 for each in spent)
    return Result(title, with_them, "µs an event", without, "without statistics", goal=MOST * without)
