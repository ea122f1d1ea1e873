"""Pages of runs to draw: a usual one, a stream, and the corners."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime

import numpy as np

from headgate.jobs.summary import Refusal
from headgate.report.runs.model import (
    BusySubscription,
    Counts,
    Histogram,
    Machine,
    Partition,
    RefusedRows,
    RunPage,
    Step,
    StreamBatch,
    quantile,
)
from headgate.runtime.stages import StageRun, TaskRun

MATCHES = Counter(np.random.default_rng(1).lognormal(3, 1, 4000).astype(int).tolist())
WHEN = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)


def stage(title: str, count: int, start: float, seed: int, executors: int = 2, slots: int = 1) -> StageRun:
    """Make a stage whose tasks are run as executors become free; the last one takes long."""
    random = np.random.default_rng(seed)
    lengths = random.gamma(8, 0.02, count)
    if count:
        lengths[count * 3 // 4] *= 4
    free = [(start, str(slot // slots)) for slot in range(executors * slots)]
    tasks = []
    for number, seconds in enumerate(lengths.tolist()):
        free.sort()
        at, executor = free.pop(0)
        failure = "ValueError: no" if number == 1 else None
        tasks.append(TaskRun(executor, round(at, 3), round(seconds, 3), 1000 + number, failure))
        free.append((at + seconds + 0.001, executor))
    end = max((task.start + task.seconds for task in tasks), default=start)
    return StageRun(title, start, end, tuple(tasks))


def batch(number: int, rate: float = 1.0) -> StreamBatch:
    """Make a micro-batch; now and then one is slow."""
    random = np.random.default_rng(number)
    slow = 4.0 if number % 37 == 17 else 1.0
    took = float(random.gamma(20, 0.02)) * slow
    middle = took * 0.8
    return StreamBatch(
        number=number,
        start=number * rate,
        seconds=took,
        events=5000,
        matches=12_000,
        duplicates=int(random.poisson(4)),
        late=int(random.poisson(1)),
        malformed=int(number % 10 == 3) * 7,
        version=number // 15,
        latency=((0.5, middle), (0.95, middle * 1.8), (0.99, middle * 2.6)),
    )


PAGE = RunPage(
    title="A pipeline & more",
    created=WHEN,
    counts=Counts(123_456, 4000, sum(matches * events for matches, events in MATCHES.items()), 2.0),
    steps=(
        Step("start Spark", 5.2, 0.0),
        Step("generate", 0.0, 5.2, "up to date"),
        Step("parse the filters", 1.5, 5.2),
        Step("build the index", 2.5, 6.7),
        Step("match", 6.0, 9.4),
        Step("report", 0.4, 15.4),
    ),
    stages=(
        stage("reading subscriptions (0)", 8, 5.2, 1),
        stage("reading events (1)", 3, 9.4, 2),
        stage("matching (3)", 40, 10.2, 3),
    ),
    throughput=tuple(
        Partition(index, index // 2 * 0.5, 0.5, 400 + index // 2 % 2 * 200) for index in range(8)
    ),
    rejected=(
        RefusedRows(
            "subscriptions",
            12,
            "out/rejected-subscriptions.jsonl",
            (
                Refusal(
                    "attribute … is not in the schema", 11, ("attribute aeg is not in the schema, in {}",)
                ),
                Refusal("… is not part of the filter language", 1),
            ),
        ),
        RefusedRows("events", 0),
    ),
    matches_per_event=Histogram.of(MATCHES),
    quantiles=tuple((share, quantile(MATCHES, share)) for share in (0.5, 0.9, 0.99)),
    busiest=(
        BusySubscription("campaign-7", "country = 'FR' AND age >= 18", 900),
        BusySubscription("campaign-8", "age < 30", 400),
    ),
    machine=Machine("3.11.7", "4.3.0", "17.0.12", 2, 23.4, 0.25),
    command="headgate run pipeline.toml",
)
STREAM = RunPage(
    title="A stream",
    created=WHEN,
    counts=Counts(1000, 300_000, 720_000, 60.0),
    batches=tuple(batch(number) for number in range(60)),
)
