"""The match job in this process: a table of events to a table of matches, and one of what was refused."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from headgate.contents.protocol import EVENT_ID, SUBSCRIPTION_ID
from headgate.contents.results import RESULT_COLUMNS
from headgate.core.machine import memory
from headgate.core.omission import Omissions
from headgate.core.stepping import within
from headgate.local.events import read_events
from headgate.runtime.batch_queries import Counting
from headgate.runtime.progress import step
from headgate.runtime.questions import RANK, SCORE
from headgate.runtime.statistics import add_statistics
from headgate.runtime.targets import open_target, opened
from headgate.tables.change_set import changing
from headgate.tables.event_rows import REASON, ROW
from headgate.tables.places import UnsureError, local
from headgate.tables.requests import check_match
from headgate.tables.results import Batch, MatchResult
from headgate.tables.tuples import tuples_of, tuples_schema
from headgate.tables.writing import write_table, writing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headgate.core.omission import Omission
    from headgate.engine.statistics import Statistics
    from headgate.local.events import EventTable
    from headgate.runtime.engines import ShardEngines
    from headgate.runtime.questions import Top
    from headgate.runtime.targets import Target
    from headgate.tables.event_rows import Rows

_KINDS: dict[str, pa.DataType] = {"long": pa.int64(), "string": pa.string()}
SHARE = 4
"""A snapshot may take one part in so many of the memory."""


def match_events(
    snapshot: str,
    events: str,
    output: str,
    *,
    rejected: str,
    graph: bool | None = None,
    top: Top | None = None,
    content_type: str | None = None,
    tuples: str | None = None,
    stats: str | None = None,
    results: int | None = None,
    quiet: bool = False,
) -> MatchResult:
    """Match a table of events against a snapshot, as `spark.match.match_events` does."""
    more = {"content_type": content_type, "tuples": tuples, "stats": stats}
    check_match(snapshot, events, output, rejected=rejected, results=results, **more)
    target = open_target(snapshot, graph=graph, top=top)
    room = memory() // SHARE
    groups = target.groups(room)
    if len(groups) > 1:
        raise UnsureError(
            f"{snapshot} is too large for one process: its shards are asked by workers of Spark"
        )
    with changing([output, rejected, tuples, stats]) as changes:
        with step("reading events", quiet=quiet) as reading:
            given = read_events(events, target, target.sources(room), content_type)
        left_out: dict[Omission, None] = {}
        engines = opened(groups[0])
        clock, begun, before = time.thread_time(), time.time(), engines.met
        matches = 0
        statistics = None if stats is None else engines.statistics()
        schema = matches_schema(given.id_type, top, results, numbered=target.numbered)
        with step("matching", quiet=quiet) as matching:
            with writing(changes.staged(output), schema) as write:
                for rows in given.rows:
                    for found in named_matches(engines, rows, schema, top, left_out, statistics, results):
                        write(found)
                        matches += found.num_rows
            if tuples is not None:
                _write_tuples(given, target, changes.staged(tuples))
            _write_refused(given, left_out, changes.staged(rejected))
            if stats is not None and statistics is not None:
                to = Path(changes.staged(stats))
                add_statistics(local(stats), statistics.table(), given.count, begun, to=to, held=changes.held)
    spent = (0.0, time.thread_time() - clock, 0.0, 0.0)
    return MatchResult(
        events=given.count,
        rejected=len(given.refused),
        matches=matches,
        unknown_attributes=given.unknown,
        meant=given.meant,
        survey_seconds=reading.seconds,
        match_seconds=matching.seconds,
        batches=(Batch(0, begun, matching.seconds, given.count, spent),),
        feeds=given.feeds,
        shards=len(target.shards),
        met=engines.met - before,
        left_out=len(left_out),
    )


def matches_schema(id_type: str, top: Top | None, results: int | None = None, *, numbered: bool) -> pa.Schema:
    """Return the columns of matches."""
    types = {
        EVENT_ID: _KINDS[id_type],
        SUBSCRIPTION_ID: _KINDS["long" if numbered else "string"],
    }
    if top is not None:
        types |= {SCORE: pa.float64(), RANK: pa.int32()}
    if results is not None:
        types |= RESULT_COLUMNS
    return pa.schema(types)


def named_matches(
    engines: ShardEngines,
    rows: Rows,
    schema: pa.Schema,
    top: Top | None,
    left_out: dict[Omission, None],
    statistics: Statistics | None = None,
    results: int | None = None,
) -> Iterator[pa.RecordBatch]:
    """Match some events, and give the matches their ids; what is left out of an event is added."""
    numbers = pa.array(np.arange(len(rows.events), dtype=np.int64))
    omitted = Omissions()
    counting = None if statistics is None else Counting(statistics, rows.ids)
    for found in within(lambda: omitted, engines.ask(rows.events, numbers, top, counting, results)):
        # Where another event has text for an id, all have.
        yield found.set_column(0, EVENT_ID, rows.ids.take(found.column(EVENT_ID))).cast(schema)
    if statistics is not None:
        statistics.count(len(rows.events))
        statistics.exceed(omitted)
    for each in omitted:
        left_out[each._replace(event=rows.ids[int(each.event or 0)].as_py())] = None


def _write_tuples(given: EventTable, target: Target, output: str) -> None:
    schema = tuples_schema(given.id_type, numbered=target.numbered)
    with writing(output, schema) as write:
        for shard in target.shards:
            for batch in tuples_of(given.documents, shard, schema):
                write(batch)


def _write_refused(given: EventTable, left_out: dict[Omission, None], rejected: str) -> None:
    """Write what was refused, and the filters that were left out of an event."""
    told = [
        (json.dumps({"id": event, "subscription": subscription}, ensure_ascii=False), reason)
        for event, subscription, reason in left_out
    ]
    rows, reasons = zip(*given.refused, *told, strict=True) if given.refused or told else ((), ())
    columns = [pa.array(list(column), pa.string()) for column in (rows, reasons)]
    write_table(pa.table(columns, names=[ROW, REASON]), rejected)
