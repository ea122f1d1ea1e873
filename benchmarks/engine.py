"""The library's own calls, on W-mix: one event, lists of dicts and of JSON, tables, threads, and all ids.

Times are of the processor, of this thread or with threads of the process, the best of some rounds in which
all calls take turns. Against them stand a scan of all filters in compiled code, a counting join by Polars
(and DuckDB, where it is installed), and what a plain look-up of every attribute costs.
"""

from __future__ import annotations

import time
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

from benchmarks.results import Result
from benchmarks.scan import most_selective_first, scan, scan_all, scan_events
from benchmarks.specified_programs import programs
from headgate import Engine
from headgate.core.ids import Ids
from headgate.core.interning import TextPool
from headgate.engine.backend import PlainFilters
from headgate.records.index.index import RecordIndex
from headgate.records.index.live import Base
from headgate.records.programs.binding import compile_filters
from headgate.records.programs.programs import take
from headgate.workloads.catalogue import synthetic
from headgate.workloads.records.specification import Operator

if TYPE_CHECKING:
    from collections.abc import Callable

    from headgate.workloads.records.specification import Specification

SEED = 1
SAMPLE = np.arange(10_000_000, 10_004_096)
"""Rows of the events that weights are counted in; none of them is measured."""
EACH, BATCH = "µs an event, CPU", 100
VOID = 0.1
"""Share of its time that a run may wait for a core; one that waits longer says nothing about the clock."""


class Plan(NamedTuple):
    """What a size measures: filters, events one by one and in tables, rounds, filters that always hold."""

    filters: tuple[int, ...]
    events: int
    table: int
    rounds: int
    scanned: int
    every: int


SIZES = {
    "quick": Plan((2_000,), 100, 512, 1, 16, 10_000),
    "full": Plan((100_000, 1_000_000), 300, 8_192, 12, 48, 1_000_000),
}
GOALS = {
    ("match", 100_000): 35.0,
    ("match, JSON", 100_000): 35.0,
    ("match_events", 100_000): 28.0,
    ("match_events, JSON", 100_000): 28.0,
    ("match_batch", 100_000): 18.0,
    ("match_batch", 1_000_000): 85.0,
}
NAMES = {
    "match": "`match`, a dict",
    "match, JSON": "`match`, JSON",
    "match_events": f"`match_events`, {BATCH} dicts",
    "match_events, JSON": f"`match_events`, {BATCH} JSON texts",
    "match_batch": "`match_batch`, Arrow to Arrow",
}


def run(size: str) -> list[Result]:
    """Measure all calls."""
    plan = SIZES[size]
    results: list[Result] = []
    for count in plan.filters:
        results += _calls(count, plan)
    return results + _every(plan)


def make_engine(workload: Any, spec: Specification, count: int) -> Engine:
    """Make an engine of a specification, without the texts of its filters; ids are texts."""
    ids = Ids.from_arrow(pa.array([f"s{number:07}" for number in range(count)]))
    texts = TextPool(np.zeros(count + 1, np.int64), np.zeros(0, np.uint8))
    sample = workload.events(SAMPLE, SEED)
    return _engine(RecordIndex.from_programs(ids, texts, programs(spec), sample=sample))


def _engine(index: RecordIndex) -> Engine:
    return Engine(PlainFilters(index, RecordIndex))


def _calls(count: int, plan: Plan) -> list[Result]:
    workload = synthetic("mixed", count)
    spec = workload.specification(np.arange(count), SEED)
    engine = make_engine(workload, spec, count)
    batch = workload.events(np.arange(plan.table), SEED)
    rows = [
        {name: value for name, value in row.items() if value is not None}
        for row in batch.slice(0, plan.events).to_pylist()
    ]
    texts = [msgspec.json.encode(row) for row in rows]
    scanned = scan_all(
        spec, workload.numbers(SAMPLE, SEED), workload.numbers(np.arange(plan.scanned), SEED), 1
    )
    _check(engine, rows, texts, batch, scanned.matches)
    known: dict[str, tuple[int, dict[Any, int]]] = {
        name: (place, {}) for place, name in enumerate(batch.schema.names)
    }
    times = _turns(
        {
            "match": lambda: [engine.match(row) for row in rows],
            "match, JSON": lambda: [engine.match(text) for text in texts],
            "match_events": lambda: [engine.match_events(some) for some in _hundreds(rows)],
            "match_events, JSON": lambda: [engine.match_events(some) for some in _hundreds(texts)],
            "plain look-ups": lambda: [_look_up(row, known) for row in rows],
        },
        plan.rounds,
    )
    index = engine.backend.index
    base = Base(index.ids, TextPool.build(()), index.built)
    encoded = base.encode(batch)
    tables = _turns(
        {
            "match_batch": lambda: engine.match_batch(batch),
            "kernel": lambda: base.match(encoded),
        },
        max(1, plan.rounds // 3),
    )
    slow = _scan_micros(spec, workload, plan)
    micros = {name: seconds / len(rows) * 1e6 for name, seconds in times.items()}
    micros |= {name: seconds / plan.table * 1e6 for name, seconds in tables.items()}
    section = f"Calls of the engine, W-mix, {count:,} filters"
    attributes = sum(map(len, rows)) / len(rows)
    found = [
        Result(
            NAMES[name],
            micros[name],
            EACH,
            slow,
            "scan, most selective first",
            GOALS.get((name, count)),
            section=section,
        )
        for name in NAMES
    ]
    found.append(Result("the kernel alone, events encoded before", micros["kernel"], EACH, section=section))
    found.append(
        Result(
            f"plain look-ups of {attributes:.0f} attributes", micros["plain look-ups"], EACH, section=section
        )
    )
    found += _peers(spec, workload, scanned.matches, plan, section)
    return found + _threads(engine, batch, plan, section)


def _scan_micros(spec: Specification, workload: Any, plan: Plan) -> float:
    """Return the microseconds an event of a scan of all filters, by the clock that calls are timed with."""
    filters = scan(most_selective_first(spec, workload.numbers(SAMPLE, SEED)))
    events = np.ascontiguousarray(workload.numbers(np.arange(plan.scanned), SEED), np.int32)
    out, counts = np.empty(len(events) * spec.filters, np.int32), np.zeros(len(events), np.int64)
    work: dict[str, Callable[[], object]] = {"scan": lambda: scan_events(filters, events, out, counts)}
    return _turns(work, min(3, plan.rounds))["scan"] / len(events) * 1e6


def _hundreds(given: list[Any]) -> list[list[Any]]:
    return [given[begin : begin + BATCH] for begin in range(0, len(given), BATCH)]


def _look_up(row: dict[str, Any], known: dict[str, tuple[int, dict[Any, int]]]) -> list[int]:
    """Look every name and every value up, and write a number down."""
    codes = [0] * len(known)
    for name, value in row.items():
        place, numbers = known[name]
        codes[place] = numbers.setdefault(value, 1)
    return codes


def _check(
    engine: Engine, rows: list[Any], texts: list[bytes], batch: pa.RecordBatch, wanted: list[Any]
) -> None:
    """Compare all calls with each other, and with the scan."""
    lists = engine.match_events(rows)
    for place, filters in enumerate(wanted[: len(rows)]):
        if lists[place] != [f"s{number:07}" for number in filters.tolist()]:
            raise AssertionError(f"the engine and the scan differ on event {place}")
    if not lists == engine.match_events(texts) == [engine.match(row) for row in rows]:
        raise AssertionError("match and match_events differ, or dicts and JSON")
    table = engine.match_batch(batch)
    if not table.equals(engine.match_batch(batch, threads=2)):
        raise AssertionError("one thread and two differ")
    names = table["subscription_id"].slice(0, sum(map(len, lists))).to_pylist()
    if names != [name for each in lists for name in each]:
        raise AssertionError("match_batch and match_events differ")


def _turns(works: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Return the least seconds of this thread that each work took; they take turns."""
    best = dict.fromkeys(works, float("inf"))
    for _ in range(rounds + 1):
        for name, work in works.items():
            begun = time.thread_time()
            work()
            best[name] = min(best[name], time.thread_time() - begun)
    return best


def _threads(engine: Engine, batch: pa.RecordBatch, plan: Plan, section: str) -> list[Result]:
    """Hold two threads against one; by the clock only in rounds that hardly waited for a core."""
    cpu: dict[int, float] = {1: float("inf"), 2: float("inf")}
    clock = dict(cpu)
    waits: list[float] = []
    for _ in range(max(2, plan.rounds)):
        for threads in (1, 2):
            waited, begun, spent = _waited(), time.perf_counter(), time.process_time()
            engine.match_batch(batch, threads=threads)
            took = time.perf_counter() - begun
            cpu[threads] = min(cpu[threads], time.process_time() - spent)
            waits.append((_waited() - waited) / took / threads)
            if waits[-1] < VOID:
                clock[threads] = min(clock[threads], took)
    rows = [
        Result(
            "`match_batch`, two threads: CPU of one",
            cpu[2] / cpu[1],
            "times",
            goal=1.1 if plan.rounds > 1 else None,
            section=section,
        ),
        Result("least share of time that waited for a core", min(waits), "of the time", section=section),
    ]
    if max(clock.values()) < float("inf"):
        speed, goal = clock[1] / clock[2], 1.6 if plan.rounds > 1 else None
        name = "`match_batch`, two threads: speed by the clock"
        rows.append(Result(name, speed, "times", goal=goal, at_least=True, section=section))
    return rows


def _waited() -> float:
    """Return the seconds that all threads of this process have waited for a core."""
    found = 0
    for task in Path("/proc/self/task").iterdir():
        found += int((task / "schedstat").read_text("ascii").split()[1])
    return found / 1e9


def _peers(spec: Specification, workload: Any, wanted: list[Any], plan: Plan, section: str) -> list[Result]:
    """Count by joins in other engines: an event's values with predicates, a filter's hits with its size."""
    if spec.filters > 100_000:
        return []
    numbers = workload.numbers(np.arange(8), SEED)
    predicates = _predicates(spec)
    values = pa.table(
        {
            "event": np.repeat(np.arange(len(numbers)), numbers.shape[1]),
            "attribute": np.tile(np.arange(numbers.shape[1]), len(numbers)),
            "value": numbers.ravel(),
        }
    )
    rows = []
    for name, count in (("polars", _by_polars), ("duckdb", _by_duckdb)):
        if find_spec(name) is not None:
            seconds = float("inf")
            for _ in range(min(2, plan.rounds)):
                begun = time.process_time()
                held = count(import_module(name), predicates, values)
                seconds = min(seconds, time.process_time() - begun)
                _check_join(spec, held, wanted[: len(numbers)])
            micros = seconds / len(numbers) * 1e6
            rows.append(Result(f"counting join by {name}", micros, EACH, section=section))
    return rows


def _predicates(spec: Specification) -> pa.Table:
    """Write operands as intervals, one row each: those of a predicate never overlap."""
    counts = np.diff(spec.operand_start)
    predicate = np.repeat(np.arange(len(counts)), counts)
    first = spec.operands[spec.operand_start[:-1]]
    last = spec.operands[spec.operand_start[1:] - 1]
    ranges = spec.is_operator(*(each for each in Operator if each.is_range))
    kept = ~ranges[predicate] | (np.arange(len(predicate)) == spec.operand_start[predicate])
    predicate, low = predicate[kept], spec.operands[kept]
    high = np.where(ranges[predicate], last[predicate], low)
    low = np.where(
        spec.is_operator(Operator.LE)[predicate], 0, np.where(ranges[predicate], first[predicate], low)
    )
    high = np.where(spec.is_operator(Operator.GE)[predicate], 1 << 30, high)
    conjunction = np.repeat(np.arange(len(spec.predicate_start) - 1), np.diff(spec.predicate_start))
    sizes = np.diff(spec.predicate_start)
    return pa.table(
        {
            "conjunction": conjunction[predicate],
            "attribute": spec.attribute[predicate],
            "low": low,
            "high": high,
            "size": sizes[conjunction[predicate]],
        }
    )


def _check_join(spec: Specification, held: pa.Table, wanted: list[Any]) -> None:
    """Compare the conjunctions that a join found with the filters that the scan found."""
    of_conjunction = np.repeat(np.arange(spec.filters), np.diff(spec.conjunction_start))
    filters = of_conjunction[np.asarray(held["conjunction"], np.int64)]
    pairs = set(zip(held["event"].to_pylist(), filters.tolist(), strict=True))
    if pairs != {(event, number) for event, each in enumerate(wanted) for number in each.tolist()}:
        raise AssertionError("a join and the scan differ")


def _by_polars(polars: Any, predicates: pa.Table, values: pa.Table) -> pa.Table:
    left, right = polars.from_arrow(values), polars.from_arrow(predicates)
    held = (
        left.lazy()
        .join(right.lazy(), on="attribute")
        .filter((polars.col("value") >= polars.col("low")) & (polars.col("value") <= polars.col("high")))
    )
    counted = held.group_by("event", "conjunction").agg(polars.len(), polars.col("size").first())
    table: pa.Table = counted.filter(polars.col("len") == polars.col("size")).collect().to_arrow()
    return table


def _by_duckdb(duckdb: Any, predicates: pa.Table, values: pa.Table) -> pa.Table:
    connection = duckdb.connect()
    connection.register("predicates", predicates)
    connection.register("given", values)
    table: pa.Table = connection.execute(
        "SELECT event, conjunction FROM given JOIN predicates USING (attribute) "
        "WHERE value BETWEEN low AND high GROUP BY event, conjunction HAVING count(*) = first(size)"
    ).fetch_arrow_table()
    return table


def _every(plan: Plan) -> list[Result]:
    """Measure one event for which all filters hold."""
    count = plan.every
    section = f"{count:,} filters with whole-number ids that match everything"
    found = []
    for text in ("age >= 0", "TRUE"):
        ready = take(compile_filters([text]).programs, np.zeros(count, np.int64))
        texts = TextPool(np.zeros(count + 1, np.int64), np.zeros(0, np.uint8))
        engine = _engine(RecordIndex.from_programs(Ids.from_arrow(pa.array(np.arange(count))), texts, ready))
        event = {"id": 1, "age": 35}
        if engine.match_batch([event]).num_rows != count or len(engine.match(event)) != count:
            raise AssertionError("not all filters hold")
        works: dict[str, Callable[[], object]] = {
            "to Arrow": lambda engine=engine, event=event: engine.match_batch([event]),  # type: ignore[misc]
            "to a list": lambda engine=engine, event=event: engine.match(event),  # type: ignore[misc]
        }
        for name, seconds in _turns(works, min(4, plan.rounds)).items():
            goal = 30.0 if name == "to Arrow" and plan.rounds > 1 else None
            title = f"`{text}`, one event, {name}"
            found.append(Result(title, seconds * 1e3, "ms an event, CPU", goal=goal, section=section))
    return found
