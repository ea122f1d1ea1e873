"""The record room in one process: parsing, building, matching, against slower ways of the same run."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from sqlglot.dialects.spark import Spark

from benchmarks.measure import best, once
from benchmarks.results import Result
from headgate import Event, RecordIndex, parse_filter
from headgate.core.ids import Ids
from headgate.core.interning import TextPool
from headgate.records import kernels, reference
from headgate.records.build import build
from headgate.records.encode import encode_batch
from headgate.records.program import compile_program
from headgate.records.rewrite import normalise
from headgate.workloads import advertising

if TYPE_CHECKING:
    import pyarrow as pa

    from headgate.records.arrays import Events

SIZES = {"quick": (2_000, 512), "full": (100_000, 4_096)}
SEED = 1


def run(size: str) -> list[Result]:
    """Measure parsing, building and matching of the advertising workload."""
    filters, count = SIZES[size]
    texts = [str(text) for text in advertising.subscriptions(np.arange(filters), SEED)["filter"].to_pylist()]
    events = advertising.events(np.arange(count), SEED)
    _say(f"{filters:,} filters, {count:,} events")
    results = _parsing(texts[:2_000])
    programs = [compile_program(normalise(parse_filter(text))) for text in texts]
    _say("parsed all")
    seconds = once(lambda: build(programs))
    index = RecordIndex(Ids.of(range(filters)), TextPool.build(texts), build(programs))
    results.append(Result("build from programs", seconds / filters * 1e6, "µs a filter"))
    results.append(Result("snapshot", _bytes(index) / filters, "bytes a filter, text included"))
    results.append(Result("distinct predicates", index.built.arrays.leaves / filters, "a filter"))
    return [*results, *_matching(index, texts, events)]


def _parsing(texts: list[str]) -> list[Result]:
    dialect = Spark()
    ours = best(lambda: [compile_program(normalise(parse_filter(text))) for text in texts])
    theirs = best(lambda: [dialect.parser().parse(dialect.tokenize(text), text) for text in texts])
    scale = 1e6 / len(texts)
    return [
        Result("parse to program", ours * scale, "µs a filter", theirs * scale, "sqlglot alone, no checks")
    ]


def _bytes(index: RecordIndex) -> int:
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory) / "snapshot"
        index.save(place)
        return sum(file.stat().st_size for file in place.iterdir())


def _matching(index: RecordIndex, texts: list[str], events: pa.RecordBatch) -> list[Result]:
    scale = 1e6 / events.num_rows
    found = index.match_batch(events)
    batch = best(lambda: index.match_batch(events)) * scale
    encoded = encode_batch(events, index.built)
    encoding = best(lambda: encode_batch(events, index.built)) * scale
    few = min(64, events.num_rows)
    walk = best(lambda: [_walk(index, encoded, event) for event in range(few)], 1) / few * 1e6
    some = [Event.from_row(row) for row in events.slice(0, 64).to_pylist()]
    single = best(lambda: [index.match(event) for event in some]) / len(some) * 1e6
    trees = [parse_filter(text) for text in texts[:1_000]]
    slow = best(lambda: [reference.matches(tree, some[0].attributes) for tree in trees], 1)
    pairs = len(texts) / len(trees)
    _check(index, texts, events, found)
    matches = found.num_rows / events.num_rows
    return [
        Result("matches", matches, "an event"),
        Result("match_batch", batch, "µs an event", walk, "filter by filter, no shared predicates"),
        Result("of that, encoding from Arrow", encoding, "µs an event"),
        Result(
            "match, one event from a dict",
            single,
            "µs an event",
            slow * pairs * 1e6,
            "reference, from 1,000 filters",
        ),
    ]


def _walk(index: RecordIndex, encoded: Events, event: int) -> int:
    """Match by asking for the next match until there is none: each filter runs alone."""
    found, number = 0, -1
    while (number := kernels.next_match(index.built.arrays, encoded, event, number + 1)) >= 0:
        found += 1
    return found


def _check(index: RecordIndex, texts: list[str], events: pa.RecordBatch, found: pa.RecordBatch) -> None:
    """Compare with the reference on a sample; a benchmark of wrong answers is worth nothing."""
    rows = events.slice(0, 5).to_pylist()
    answers = {(row["event_id"], row["subscription_id"]) for row in found.to_pylist()}
    for number in range(0, len(index), max(1, len(index) // 500)):
        tree = parse_filter(texts[number])
        for row in rows:
            event = Event.from_row(row)
            if reference.matches(tree, event.attributes) != ((event.id, number) in answers):
                raise AssertionError(f"the index and the reference differ on {texts[number]} and {row}")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
