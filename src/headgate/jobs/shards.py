"""Subscriptions to shards by the workers: no row goes through the driver but those of its own counts.

lines -> survey (in parallel) -> kept -> counts, types of the ids, repeated ids -> rejected
                                      -> place -> rows of a shard together -> build -> moved into place

Rows are compiled twice, which costs less than carrying programs about: they are long, and texts are not.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from headgate.core.event import ID
from headgate.runtime.rows import FILTER
from headgate.runtime.shards import ShardPlacement
from headgate.tables.accepted import REJECTED
from headgate.tables.filter_rows import REASON
from headgate.tables.lines import ORDER
from headgate.tables.places import Format
from headgate.tables.shards.rows import (
    ATTRIBUTES,
    BUILT,
    HOME,
    KEYS,
    NUMBER_ID,
    PLACED,
    SURVEYED,
    TEXT_ID,
    BuildSettings,
    CompileSettings,
    ShardResult,
    build_shard,
    each_key,
    place_rows,
    refuse_rows,
    save_built,
    staging,
    survey_rows,
    survey_settings,
    write_shard,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from headgate.contents.protocol import Contents
    from headgate.jobs.compile import CompileTask
    from headgate.jobs.runner import Rows, Runner, Table

_KEYS = pa.schema({KEYS: pa.string()})


def compile_shards(runner: Runner, table: Table, contents: Contents, task: CompileTask) -> ShardResult:
    """Have workers cut the rows of a table into shards and write them."""
    sharding, ranked = task.sharding, bool(task.ranked)
    reading = CompileSettings(contents.writers, task.wanted.dialect, ranked)
    finder, column = survey_settings(contents, sharding)
    # CSV has text only, so it is read.
    survey = partial(
        survey_rows, reading=reading, finder=finder, column=column, numbers=table.form is Format.CSV
    )
    lines = table.lines(ID, FILTER, even=True)
    with lines.map(survey, SURVEYED).kept() as rows:
        with runner.step("parsing filters") as parsing:
            every = _counted(rows)
            numbered = every.numbers == every.good
            accepted, again = rows.lacking(REASON).firsts(TEXT_ID, *ORDER)
            repeated = _counted(again)
            count, keyed = every.good - repeated.good, every.keyed - repeated.keyed
            refused = rows.having(REASON).sorted(*ORDER)
            if repeated.good:
                refused = refused.then(again.sorted(*ORDER))
            task.refuse(refused.map(partial(refuse_rows, numbered=numbered), REJECTED))
        with (
            runner.step(f"building {sharding.count} shards") as building,
            staging(task.output) as stage,
        ):
            placing = ShardPlacement(sharding, keyed, count - keyed)
            counts = _counts(accepted) if sharding.demands(contents.room_name) else None
            place = partial(place_rows, placing=placing, numbered=numbered, counts=counts)
            made = BuildSettings(str(stage), contents, reading, numbered)
            # A shard is a part, also one without rows.
            parts = accepted.map(place, PLACED).parted(HOME, sharding.count, *ORDER)
            tasks = parts.map(partial(build_shard, building=made), BUILT, numbered=True).collect()
            done = {row[HOME]: row for row in tasks.to_pylist()}
            # Spark runs no tasks at all if it knows that there are no rows.
            built = [
                done[number] if number in done else write_shard([], made, number)
                for number in range(sharding.count)
            ]
            save_built(built, stage, task.output, sharding, contents, ranked=ranked, source=task.source)
    attributes = tuple(sorted({name for row in built for name in row[ATTRIBUTES]}))
    return ShardResult(count, every.bad + repeated.good, attributes, parsing.seconds, building.seconds)


class _Counts(NamedTuple):
    """How many rows there are, how many with an id that is a number, and with keys."""

    good: int
    bad: int
    numbers: int
    keyed: int


_COUNTS = pa.schema([pa.field(name, pa.int64()) for name in _Counts._fields])


def _counted(rows: Rows) -> _Counts:
    told = rows.select(REASON, NUMBER_ID, KEYS).map(_count, _COUNTS).collect()
    return _Counts(*(int(np.sum(column.to_numpy())) for column in told.columns))


def _count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    counts = np.zeros(len(_COUNTS), np.int64)
    for batch in batches:
        good = batch.filter(batch[REASON].is_null())
        valid = [good.num_rows - good[name].null_count for name in (NUMBER_ID, KEYS)]
        counts += [good.num_rows, batch.num_rows - good.num_rows, *valid]
    yield pa.RecordBatch.from_pylist([dict(zip(_COUNTS.names, counts.tolist(), strict=True))], _COUNTS)


def _counts(accepted: Rows) -> dict[str, int]:
    """Count in how many filters each key is."""
    found = accepted.select(KEYS).map(each_key, _KEYS).counted(KEYS).collect()
    counts: dict[str, int] = dict(zip(*(column.to_pylist() for column in found.columns), strict=True))
    return counts
