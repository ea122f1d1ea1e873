"""A record index that changes: what subscribing costs, and what the tail costs matching."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pyarrow as pa

from benchmarks import measure
from benchmarks.results import Result
from benchmarks.specified_programs import programs
from headgate import Event, Subscription
from headgate.core.ids import Ids
from headgate.core.interning import TextPool
from headgate.records.index.index import RecordIndex
from headgate.records.programs.binding import compile_filter
from headgate.workloads.catalogue import synthetic

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

T = TypeVar("T")
# CPU time of all threads: layers are built aside.
best = partial(measure.best, clock=time.process_time)
once = partial(measure.once, clock=time.process_time)
SEED = 1
SOME = 500
"""Filters that are compiled for the clock, and then subscribed."""
MOST_MICROS = 100
"""For adding a filter, its share of layers and of the compaction included, beyond compiling it."""
MOST_TIMES = 1.5
"""What an event may cost with a quarter more filters that came late, by what it costs without them."""
MERGES = 8
"""Batches after which late filters of a quarter of the base are one layer."""
ALONE = 128
"""Events that are asked about one by one."""


def measure_live(count: int, events: int, sample: np.ndarray) -> list[Result]:
    """Subscribe a quarter more filters than there are, match, compact, unsubscribe as many."""
    workload = synthetic("mixed", count)
    ids = Ids.from_arrow(pa.array(np.arange(count)))
    texts = TextPool.from_arrow(workload.subscriptions(np.arange(count), SEED)["filter"])
    ready = programs(workload.specification(np.arange(count), SEED))
    index = RecordIndex.from_programs(ids, texts, ready, sample=workload.events(sample, SEED))
    index.compact_after = None
    batch = workload.events(np.arange(events), SEED)
    more = count // 4
    given = workload.subscriptions(np.arange(count, count + more), SEED)["filter"].to_pylist()
    new = [Subscription(count + place, str(text)) for place, text in enumerate(given)]
    _warm(new[:64])
    some = [Event.from_row(row) for row in batch.slice(0, ALONE).to_pylist()]
    before = best(lambda: index.match_batch(batch), 5) / events * 1e6
    alone = best(lambda: [index.match(event) for event in some]) / len(some) * 1e6
    walked = best(lambda: [_walk(index, event) for event in some]) / len(some) * 1e6
    # One after the other, so that neither runs on a machine that the other did not have.
    compiling = subscribing = 0.0
    for first in range(0, more, SOME):
        few = new[first : first + SOME]
        compiling += once(partial(_each, _compile, few)) / more * 1e6
        subscribing += once(partial(_each, index.subscribe, few)) / more * 1e6
        # Layers are built aside, and are paid for here.
        subscribing += once(index.settle) / more * 1e6
    adding = subscribing - compiling
    found = index.match_batch(batch)
    # A tail that was asked about so many events becomes a layer, and several layers become one: that is
    # paid for here, and not by the events that happen to come meanwhile.
    merging = once(lambda: _merge(index, batch))
    with_tail = best(lambda: index.match_batch(batch), 5) / events * 1e6
    merging = max(0.0, merging / more * 1e6 - MERGES * with_tail * events / more)
    alone_with_tail = best(lambda: [index.match(event) for event in some]) / len(some) * 1e6
    walked_with_tail = best(lambda: [_walk(index, event) for event in some]) / len(some) * 1e6
    compacting = once(index.compact)
    if _pairs(index.match_batch(batch)) != _pairs(found):
        raise AssertionError("compaction changed the answers")
    after = best(lambda: index.match_batch(batch)) / events * 1e6
    removing = once(lambda: _each(index.unsubscribe, [each.id for each in new])) / more * 1e6
    share = compacting / more * 1e6
    title = f"W-mix, {count:,} filters and {more:,} new ones: "
    rows = [
        ("subscribe, layers included", subscribing, "µs a filter", None),
        ("of that, compiling the filter", compiling, "µs a filter", None),
        ("layers that become one when events were asked about", merging, "µs a filter", None),
        ("compaction", compacting, "s", None),
        ("compaction, for each new filter", share, "µs a filter", None),
        (
            "subscribe, layers and compaction, without compiling the filter",
            adding + merging + share,
            "µs a filter",
            MOST_MICROS,
        ),
        ("unsubscribe", removing, "µs a filter", None),
        ("match_batch before", before, "µs an event", None),
        ("match_batch with the new ones beside the base", with_tail, "µs an event", None),
        ("the same, by what it was before", with_tail / before, "times", MOST_TIMES),
        ("match_batch after compaction", after, "µs an event", None),
        ("match, one event from a dict, before", alone, "µs an event", None),
        ("match, one event from a dict, with the new ones", alone_with_tail, "µs an event", None),
        ("the same, by what it was before", alone_with_tail / alone, "times", MOST_TIMES),
        ("next, all matches of an event, before", walked, "µs an event", None),
        ("next, all matches of an event, with the new ones", walked_with_tail, "µs an event", None),
    ]
    return [
        Result(title + name, value, unit, goal=goal, section="Live changes, CPU time")
        for name, value, unit, goal in rows
    ]


def _warm(some: list[Subscription]) -> None:
    """Compile every kernel before the clock runs."""
    index = RecordIndex.build(some[:32])
    for each in some[32:]:
        index.subscribe(each)
    index.compact()


def _merge(index: RecordIndex, batch: pa.RecordBatch) -> None:
    """Match until late filters are laid out as they will stay."""
    for _ in range(MERGES):
        index.match_batch(batch)
        index.settle()


def _walk(index: RecordIndex, event: Event) -> list[object]:
    """List the matches of an event, each asked for by itself."""
    found: list[object] = []
    identity = index.next(event, 0)
    while identity is not None:
        found.append(identity)
        identity = index.next(event, int(identity) + 1)
    return found


def _compile(subscription: Subscription) -> None:
    compile_filter(subscription.filter)


def _each(change: Callable[[T], None], items: Sequence[T]) -> None:
    for item in items:
        change(item)


def _pairs(batch: pa.RecordBatch) -> set[tuple[object, object]]:
    return set(zip(*(column.to_pylist() for column in batch.columns), strict=True))
