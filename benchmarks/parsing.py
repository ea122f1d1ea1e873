"""From texts to programs in one process: by the shape of a filter against the parser."""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from benchmarks.measure import best
from benchmarks.results import Result
from headgate.records.language.parse import parse_filter
from headgate.records.language.rewrite import normalise
from headgate.records.programs.binding import Binder, compile_filter, compile_filters
from headgate.records.programs.program import compile_program
from headgate.tables.filter_rows import compile_batches
from headgate.tables.lines import BROKEN, ORDER, VALUE
from headgate.workloads.catalogue import workload

if TYPE_CHECKING:
    from headgate.records.programs.tokens import Program

SIZES = {"quick": (400, 200), "full": (100_000, 3_000)}
BATCH = 10_000
"""Rows that Spark hands over together."""
SEED = 1
SIX = (
    "age > 30 AND topic IN ('news', 'art', 'music') AND (price BETWEEN 10 AND 20 OR vip) "
    "AND city = 'Zurich' AND name LIKE 'A%' AND score <= 12.5 AND x=1"
)
WORKLOADS = ("advertising", "equality", "mixed", "negations")


def run(size: str) -> list[Result]:
    """Measure the same filters by shape, by the parser, and with all that a worker does to their rows."""
    count, few = SIZES[size]
    alone = best(lambda: [parse_filter(SIX) for _ in range(400)], 25, time.process_time) / 400 * 1e6
    results = [Result(f"one filter of six predicates, {len(SIX)} characters: the parser", alone, "µs")]
    for name in WORKLOADS:
        rows = workload(name, count).subscriptions(np.arange(count), SEED)
        texts = [str(text) for text in rows["filter"].to_pylist()]
        _check(texts[:few])
        results += _measure(name, texts, few, _batches(texts))
        print(f"{name} done", file=sys.stderr, flush=True)
    return results


def _measure(name: str, texts: list[str], few: int, batches: list[pa.RecordBatch]) -> list[Result]:
    parts = [texts[first : first + BATCH] for first in range(0, len(texts), BATCH)]
    slow = best(lambda: [_by_parser(text) for text in texts[:few]], 1) / few * 1e6
    shape = best(lambda: [compile_filters(part) for part in parts], 2) / len(texts) * 1e6
    single = best(lambda: [compile_filter(text) for text in texts[:few]], 5) / few * 1e6
    worker = best(lambda: list(compile_batches(batches, None)), 2) / len(texts) * 1e6
    binder = Binder()
    for text in texts:
        binder.add(text)
    share = 100 / len(texts)
    return [
        Result(f"{name}: in batches, by shape", shape, "µs a filter", slow, "the parser"),
        Result(f"{name}: one by one, by shape", single, "µs a filter", slow, "the parser"),
        Result(f"{name}: all that a worker does to a row", worker, "µs a filter", goal=60),
        Result(f"{name}: bound", binder.bound * share, "% of filters"),
        Result(f"{name}: joined from models", binder.joined * share, "% of filters"),
        Result(f"{name}: left to the parser", binder.parsed * share, "% of filters"),
    ]


def _by_parser(text: str) -> Program:
    return compile_program(normalise(parse_filter(text)))


def _batches(texts: list[str]) -> list[pa.RecordBatch]:
    """Make what Spark hands to a worker."""
    rows = [json.dumps({"id": number, "filter": text}).encode() for number, text in enumerate(texts)]
    columns = {
        **dict(zip(ORDER, ([""] * len(rows), [0] * len(rows), list(range(len(rows)))), strict=True)),
        VALUE: pa.array(rows, pa.binary()),
        BROKEN: pa.nulls(len(rows), pa.string()),
    }
    return pa.table(columns).to_batches(max_chunksize=BATCH)


def _check(texts: list[str]) -> None:
    for text in texts:
        if compile_filter(text) != _by_parser(text):
            raise AssertionError(f"the shape and the parser differ on {text}")
