"""The record index in one process, against a scan of all filters in the same run."""

from __future__ import annotations

import gc
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
from sqlglot.dialects.spark import Spark

from benchmarks.live import measure_live
from benchmarks.measure import best, make_base, match_encoded, memory_of, once
from benchmarks.results import Result
from benchmarks.scan import scan_all
from benchmarks.specified_programs import programs
from headgate import Event
from headgate.core.ids import Ids
from headgate.core.interning import TextPool
from headgate.records import reference
from headgate.records.events.columns import BatchColumns
from headgate.records.events.encode import encode
from headgate.records.index.build import by_events, by_filters
from headgate.records.index.index import RecordIndex
from headgate.records.language.parse import parse_filter
from headgate.records.programs.binding import compile_filters
from headgate.records.programs.programs import concatenate
from headgate.workloads.catalogue import synthetic
from headgate.workloads.records import advertising

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.records.index.arrays import BuiltIndex
    from headgate.records.programs.programs import Programs
    from headgate.workloads.records.synthetic import Synthetic


class Plan(NamedTuple):
    """What a size of the benchmark measures: workloads with their filters, and events."""

    workloads: tuple[tuple[str, int], ...]
    growth: tuple[int, ...]
    ways: int
    campaigns: int
    events: int
    scanned: int
    """Events that the scan answers too, and that are checked."""


SIZES = {
    "quick": Plan(
        tuple((name, 3_000) for name in ("equality", "mixed", "ranges", "negations")),
        (1_000, 2_000, 4_000),
        3_000,
        2_000,
        1_000,
        32,
    ),
    "full": Plan(
        (
            ("equality", 100_000),
            ("equality", 1_000_000),
            ("mixed", 100_000),
            ("mixed", 1_000_000),
            ("ranges", 100_000),
            ("negations", 100_000),
        ),
        (100_000, 1_000_000, 10_000_000),
        100_000,
        100_000,
        4_096,
        64,
    ),
}
SEED = 1
SAMPLE = np.arange(10_000_000, 10_004_096)
"""Rows of the events that weights are counted in; none of them is measured."""
BATCH = 1_000_000
"""Filters whose programs are made together."""
NAMES = {
    "equality": "W-eq",
    "mixed": "W-mix",
    "ranges": "ranges",
    "negations": "negations",
    "growth": "growth",
}

MICROS = {
    ("equality", 100_000): 15,
    ("equality", 1_000_000): 80,
    ("mixed", 100_000): 25,
    ("mixed", 1_000_000): 250,
}
TIMES = {
    ("mixed", 100_000): 50,
    ("mixed", 1_000_000): 50,
    ("ranges", 100_000): 10,
    ("negations", 100_000): 12,
}
"""How many times as fast as the scan the index is to be."""
MOST_BYTES, MOST_SECONDS = 200, 10
"""Of a filter, and for building, where there are a million."""


def run(size: str) -> list[Result]:
    """Measure the specified workloads, how the index grows, the ways to ask it, and real text."""
    plan = SIZES[size]
    make_base(programs(synthetic("mixed", 100).specification(np.arange(100), SEED)), by_filters)
    results: list[Result] = []
    for name, count in plan.workloads:
        results += _workload(name, count, plan)
        _say(f"{name}, {count:,} filters: done")
    results += _growth(plan)
    results += _ways(plan)
    results += measure_live(plan.ways, plan.events, SAMPLE)
    results += _campaigns(plan)
    return results


def _workload(name: str, count: int, plan: Plan) -> list[Result]:
    """Measure one event at a time, encoded, with both kinds of weights; then memory and building."""
    workload = synthetic(name, count)
    spec = workload.specification(np.arange(count), SEED)
    numbers = workload.numbers(np.arange(plan.scanned), SEED)
    scanned = scan_all(spec, workload.numbers(SAMPLE, SEED), numbers)
    slow, order = scanned.best()
    ready = programs(spec)
    del spec
    # An event of `negations` matches four filters in a hundred.
    events = workload.events(np.arange(plan.events if name != "negations" else plan.events // 8), SEED)
    title = f"{NAMES[name]}, {count:,} filters"
    rows = [
        Result(f"{title}: {each}", micros, "µs an event", section="The scan, by the order of predicates")
        for each, micros in scanned.micros.items()
    ]
    for weigh in (by_events(workload.events(SAMPLE, SEED)), by_filters):
        base, seconds = make_base(ready, weigh)
        micros, matches = match_encoded(base, events, scanned.matches)
        section = "One event, encoded"
        if weigh is by_filters:
            guessed = f"{title}, weights guessed from the filters"
            rows.append(Result(guessed, micros, "µs an event", slow, f"scan, {order}", section=section))
            continue
        goal = MICROS.get((name, count))
        rows.append(Result(title, micros, "µs an event", slow, f"scan, {order}", goal, section=section))
        if (name, count) in TIMES:
            ratio, wanted = f"{title}, against the scan", TIMES[name, count]
            rows.append(Result(ratio, slow / micros, "times", goal=wanted, at_least=True, section=section))
        rows.append(Result(f"{title}, matches", matches, "an event", section=section))
        rows += _weight_and_build(title, count, base.built, seconds)
        del base
    return rows


def _weight_and_build(title: str, count: int, built: BuiltIndex, seconds: float) -> list[Result]:
    most_bytes, most_seconds = (MOST_BYTES, MOST_SECONDS) if count == 1_000_000 else (None, None)
    size, section = memory_of(built) / count, "Memory and building"
    return [
        Result(f"{title}: without texts", size, "bytes a filter", goal=most_bytes, section=section),
        Result(f"{title}: build from programs", seconds, "s", goal=most_seconds, section=section),
    ]


def _growth(plan: Plan) -> list[Result]:
    """Measure ever more filters, each event matching as many of them."""
    section = "Growth, at constant matches"
    rows: list[Result] = []
    micros: list[float] = []
    for count in plan.growth:
        workload = synthetic("growth", count)
        ready, wanted = _in_batches(workload, count, plan)
        base, seconds = make_base(ready, by_events(workload.events(SAMPLE, SEED)))
        del ready
        gc.collect()
        took, matches = match_encoded(base, workload.events(np.arange(plan.events), SEED), wanted)
        micros.append(took)
        figures = {
            "matches an event": matches,
            "µs an event": took,
            "µs an event and million filters": took / count * 1e6,
            "bytes a filter": memory_of(base.built) / count,
            "s to build": seconds,
        }
        rows += [
            Result(f"{count:,} filters", value, column, column=column, section=section)
            for column, value in figures.items()
        ]
        _say(f"growth, {count:,} filters: done")
        del base
        gc.collect()
    rows += [
        Result(
            f"{few:,} to {many:,} filters: the time of an event grows",
            after / before,
            "times",
            goal=many / few,
            section="Growth of time against that of filters",
        )
        for few, many, before, after in zip(plan.growth, plan.growth[1:], micros, micros[1:], strict=False)
    ]
    return rows


def _in_batches(workload: Synthetic, count: int, plan: Plan) -> tuple[Programs, list[NDArray[np.int32]]]:
    """Make the programs of many filters; scan each batch while it is there, for memory's sake."""
    events = workload.numbers(np.arange(plan.scanned // 4), SEED)
    sample = workload.numbers(SAMPLE, SEED)
    parts: list[Programs] = []
    found: list[list[NDArray[np.int32]]] = [[] for _ in events]
    for first in range(0, count, BATCH):
        spec = workload.specification(np.arange(first, min(first + BATCH, count)), SEED)
        for own, more in zip(found, scan_all(spec, sample, events, 1).matches, strict=True):
            own.append(more + np.int32(first))
        parts.append(programs(spec))
        del spec
    return concatenate(parts), [np.concatenate(own) for own in found]


def _ways(plan: Plan) -> list[Result]:
    """Measure every way to ask the index, on W-mix."""
    workload = synthetic("mixed", plan.ways)
    spec = workload.specification(np.arange(plan.ways), SEED)
    ids = Ids.from_arrow(pa.array(np.arange(plan.ways)))
    texts = TextPool.from_arrow(workload.subscriptions(np.arange(plan.ways), SEED)["filter"])
    index = RecordIndex.from_programs(ids, texts, programs(spec), sample=workload.events(SAMPLE, SEED))
    events = workload.events(np.arange(plan.events), SEED)
    some = [Event.from_row(row) for row in events.slice(0, 256).to_pylist()]
    if [_walk(index, event) for event in some] != [index.match(event) for event in some]:
        raise AssertionError("next and match differ")
    title = f"W-mix, {plan.ways:,} filters: "
    one, many = 1e6 / len(some), 1e6 / events.num_rows
    figures = {
        "match, one event from a dict": best(lambda: [index.match(event) for event in some]) * one,
        "next, the first match of an event from a dict": best(
            lambda: [index.next(event, 0) for event in some]
        )
        * one,
        "next, all matches of an event": best(lambda: [_walk(index, event) for event in some]) * one,
        "encoding from Arrow": best(lambda: encode(BatchColumns(events), index.built)) * many,
        "match_batch, from Arrow to Arrow": best(lambda: index.match_batch(events)) * many,
    }
    return [
        Result(title + name, value, "µs an event", section="Ways to ask") for name, value in figures.items()
    ]


def _walk(index: RecordIndex, event: Event) -> list[object]:
    found: list[object] = []
    identity = index.next(event, 0)
    while identity is not None:
        found.append(identity)
        identity = index.next(event, int(identity) + 1)
    return found


def _campaigns(plan: Plan) -> list[Result]:
    """Measure the advertising workload: text with most of the language, against its reference."""
    count = plan.campaigns
    texts = [str(text) for text in advertising.subscriptions(np.arange(count), SEED)["filter"].to_pylist()]
    events = advertising.events(np.arange(plan.events), SEED)
    few, dialect = texts[:2_000], Spark()
    parsing = best(lambda: compile_filters(few)) / len(few) * 1e6
    sqlglot = best(lambda: [dialect.parser().parse(dialect.tokenize(text), text) for text in few], 1)
    ready = compile_filters(texts).programs
    ids, pool = Ids.from_arrow(pa.array(np.arange(count))), TextPool.build(texts)
    RecordIndex.from_programs(ids, pool, ready)
    built = once(lambda: RecordIndex.from_programs(ids, pool, ready))
    index = RecordIndex.from_programs(ids, pool, ready, sample=advertising.events(SAMPLE, SEED))
    found = index.match_batch(events)
    trees = [parse_filter(text) for text in texts[:1_000]]
    row = Event.from_row(events.slice(0, 1).to_pylist()[0])
    slow = once(lambda: [reference.matches(tree, row.attributes) for tree in trees]) * count / len(trees)
    _check(texts, events, found)
    some = [Event.from_row(row) for row in events.slice(0, 64).to_pylist()]
    rows = [
        Result(
            "text to program", parsing, "µs a filter", sqlglot / len(few) * 1e6, "sqlglot alone, no checks"
        ),
        Result("build from programs", built / count * 1e6, "µs a filter"),
        Result("index and filters, without texts", memory_of(index.built) / count, "bytes a filter"),
        Result("matches", found.num_rows / events.num_rows, "an event"),
        Result(
            "match_batch, from Arrow to Arrow",
            best(lambda: index.match_batch(events)) / events.num_rows * 1e6,
            "µs an event",
            slow * 1e6,
            "reference, from 1,000 filters",
        ),
        Result(
            "match, one event from a dict",
            best(lambda: [index.match(event) for event in some]) / len(some) * 1e6,
            "µs an event",
            slow * 1e6,
            "reference, from 1,000 filters",
        ),
    ]
    return [replace(row, section=f"Advertising, {count:,} filters") for row in rows]


def _check(texts: list[str], events: pa.RecordBatch, found: pa.RecordBatch) -> None:
    """Compare with the reference on a sample; a benchmark of wrong answers is worth nothing."""
    rows = events.slice(0, 5).to_pylist()
    answers = {(row["event_id"], row["subscription_id"]) for row in found.to_pylist()}
    for number in range(0, len(texts), max(1, len(texts) // 500)):
        tree = parse_filter(texts[number])
        for row in rows:
            event = Event.from_row(row)
            if reference.matches(tree, event.attributes) != ((event.id, number) in answers):
                raise AssertionError(f"the index and the reference differ on {texts[number]} and {row}")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
