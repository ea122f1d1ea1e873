"""A large snapshot in every worker: how long it takes to open, and whose memory it is."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.core.snapshot import open_snapshot, write_snapshot
from headgate.core.subscription import Subscription
from headgate.records.index.index import RecordIndex
from headgate.records.index.live import ROOM, Base
from headgate.workloads.catalogue import synthetic

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import SparkSession

FILTERS = 20_000
PADDING = "padding"


class Held(NamedTuple):
    """What a worker process says of a snapshot that it has opened and read; sizes in bytes."""

    process: int
    open: float
    read: float
    resident: int
    share: int
    """What is resident, with pages that n processes share counted as one n-th."""
    mapped_share: int


def write(path: Path, size: int) -> str:
    """Write a snapshot of records, and one more array that makes it as large as wanted."""
    workload = synthetic("equality", FILTERS)
    rows = workload.subscriptions(np.arange(FILTERS), 1).to_pylist()
    small = path.with_name("small")
    RecordIndex.build(Subscription(row["id"], row["filter"]) for row in rows).save(small)
    found = open_snapshot(small, ROOM)
    padding = {PADDING: np.random.default_rng(1).integers(0, 2**62, size // 8)}
    write_snapshot(path, ROOM, {**found.arrays, **padding}, counts=found.counts, about=found.about)
    return str(path)


def measure(session: SparkSession, snapshot: str) -> list[Held]:
    """Open a snapshot in two tasks that run at the same time, and wait for each other while they hold it."""
    from pyspark import BarrierTaskContext

    def hold(_: Iterable[int]) -> Iterator[Held]:
        begun = time.perf_counter()
        Base.open(Path(snapshot), verify=False)
        opened = time.perf_counter() - begun
        arrays = open_snapshot(Path(snapshot), ROOM, verify=False).arrays
        begun = time.perf_counter()
        total = sum(
            float(array.reshape(-1).view(np.uint8)[::4096].sum()) for array in arrays.values() if array.size
        )
        read = time.perf_counter() - begun
        assert total > 0
        together = BarrierTaskContext.get()
        together.barrier()
        held = Held(os.getpid(), opened, read, *_memory(snapshot))
        together.barrier()
        yield held

    numbers = session.sparkContext.parallelize(range(2), 2)
    numbers.barrier().mapPartitions(lambda _: iter(())).collect()
    return numbers.barrier().mapPartitions(hold).collect()


def _memory(snapshot: str) -> tuple[int, int, int]:
    """Read what this process holds: all of it, its share of it, and its share of the snapshot's pages."""
    sums = {"Rss": 0, "Pss": 0}
    for line in Path("/proc/self/smaps_rollup").read_text("ascii").splitlines()[1:]:
        name, value = line.split()[:2]
        if name.rstrip(":") in sums:
            sums[name.rstrip(":")] = int(value) * 1024
    mapped, inside = 0, False
    for line in Path("/proc/self/smaps").read_text("utf-8").splitlines():
        words = line.split()
        if not words[0].endswith(":"):
            inside = snapshot in line
        elif inside and words[0] == "Pss:":
            mapped += int(words[1]) * 1024
    return sums["Rss"], sums["Pss"], mapped
