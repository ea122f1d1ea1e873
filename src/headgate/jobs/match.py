"""The match job: a table of events to a table of matches, and a table of the events that were refused.

events -> judge -> rejected, types of the ids
       -> match (in parallel, against the mapped snapshot) -> matches
       -> the best k of each event on some shards -> merge -> the best k of each event
"""

from __future__ import annotations

import json
import time
from functools import partial, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import pyarrow as pa

from headgate.contents.protocol import EVENT_ID, SCORE
from headgate.contents.registry import room_at
from headgate.engine.question import ALL
from headgate.jobs.runner import job
from headgate.runtime.statistics import add_statistics, unpack_statistics, with_all
from headgate.runtime.targets import open_target, opened, opened_as
from headgate.tables.event_rows import KEY, REASON, ROW, read_events
from headgate.tables.frames.rows import VALUE, match_types
from headgate.tables.places import local
from headgate.tables.requests import check_match
from headgate.tables.results import MatchResult

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from headgate.core.event import Event, Id
    from headgate.core.omission import Omission
    from headgate.engine.question import Question
    from headgate.jobs.events import EventTable
    from headgate.jobs.runner import Rows, Runner
    from headgate.runtime.targets import Group, Target
    from headgate.tables.frames.report import Report
    from headgate.tables.frames.task import FrameTask
    from headgate.xml.index.index import XmlIndex


class MatchTask(NamedTuple):
    """What is asked, and of what."""

    target: Target
    question: Question
    content_type: str | None
    counts: bool
    """Whether statistics of the subscriptions are wanted."""


class FoundMatches(NamedTuple):
    """What was found; the matches are written."""

    events: int
    matches: int
    rejected: int
    reports: list[Report]


class Matching(Protocol):
    """What a runner does of this job in its own way: it reads events, and writes what becomes of them."""

    def read(self, events: str) -> None:
        """Read a table of events, or make it ready for workers."""

    def match(self, output: str) -> FoundMatches:
        """Match the events, and write the matches."""

    @property
    def given(self) -> EventTable[Rows] | None:
        """Return what is known of the events; None if they were read and matched in one pass."""

    @property
    def refused(self) -> Rows:
        """Return the rows that are no events, once they were matched."""


@job
def match_events(
    runner: Runner,
    snapshot: str,
    events: str,
    output: str,
    *,
    rejected: str,
    graph: bool | None = None,
    question: Question = ALL,
    content_type: str | None = None,
    tuples: str | None = None,
    stats: str | None = None,
    target: Target | None = None,
) -> MatchResult:
    """Match a table of events against a snapshot; write (event_id, subscription_id) to `output`.

    What a `question` asks besides has columns, too: of the best of each event, score and rank.

    Events that cannot be read go to the table `rejected` with the reason; so do those that come from no node
    of the snapshot's graph. A filter that is too expensive for an event is left out of it, and is a row of
    `rejected` with the event's id, the subscription's and the reason. A snapshot that has a graph is matched
    with it; `graph` can only insist.

    Against patterns over RDF or XML, events are documents: rows of a table, or files. `content_type` is that
    of rows that name none, and of files whatever their names. What patterns over XML return goes to the table
    `tuples`, if one is named. Statistics of the subscriptions are added to the file `stats`, if one is named.
    `target` is the snapshot if it was verified already.
    """
    more = {"content_type": content_type, "tuples": tuples, "stats": stats}
    check_match(snapshot, events, output, rejected=rejected, question=question, **more)
    if target is None:
        target = open_target(snapshot, graph=graph, top=question.top)
    begun = time.time()
    task = MatchTask(target, question, content_type, counts=stats is not None)
    with (
        runner.changing([output, rejected, tuples, stats]) as changes,
        runner.matching(task) as matching,
    ):
        with runner.step("reading events") as reading:
            matching.read(events)
        with runner.step("matching") as working:
            done = matching.match(changes.staged(output))
            if tuples is not None:
                with runner.step("writing tuples"):
                    _tuples(matching, target).write(changes.staged(tuples))
            left_out = list(dict.fromkeys(each for report in done.reports for each in report.left_out))
            refused = matching.refused
            if left_out:
                refused = refused.then(runner.rows(_told(left_out)))
            refused.write(changes.staged(rejected))
            if stats is not None:
                packed = [report.statistics for report in done.reports if report.statistics is not None]
                counted = with_all(unpack_statistics(packed), opened(target.whole).built, done.events)
                to = Path(changes.staged(stats))
                add_statistics(local(stats), counted, done.events, begun, to=to, held=changes.held)
    given = matching.given
    batches = sorted(
        (each for report in done.reports for each in report.batches), key=lambda each: each.start
    )
    return MatchResult(
        events=done.events,
        rejected=done.rejected,
        matches=done.matches,
        unknown_attributes=() if given is None else given.unknown,
        meant={} if given is None else given.meant,
        survey_seconds=reading.seconds,
        match_seconds=working.seconds,
        batches=tuple(batches),
        feeds=None if given is None else given.feeds,
        shards=len(target.shards),
        met=sum(report.met for report in done.reports),
        left_out=len(left_out),
    )


def _tuples(matching: Matching, target: Target) -> Rows:
    """Return what patterns over XML return, a row for each value of each tuple.

    An `id` is written as pre,post,level.
    """
    given = matching.given
    assert given is not None, "documents are read before they are matched"
    schema = tuples_schema(given.id_type, numbered=target.numbered)
    first, *others = (
        given.rows.map(partial(tuples_of, shard=shard, schema=schema), schema) for shard in target.shards
    )
    return reduce(lambda one, other: one.then(other), others, first)


MOST_TUPLES = 1000
"""Tuples of an event and a subscription, at most."""
CUT = "cut"
"""The name of the value that says that there were more rows."""
TOO_MUCH = "refused"
"""The name of the value that says that there was too much to return."""
TUPLES_SIZE = 64 << 20
"""Characters that are sent together, about."""


def tuples_schema(id_type: str, *, numbered: bool) -> pa.Schema:
    """Return the columns: event_id, subscription_id, `tuple` (from 1 for each pair), `name` and `value`."""
    types: dict[str, pa.DataType] = {
        "event_id": pa.int64() if id_type == "long" else pa.string(),
        "subscription_id": pa.int64() if numbered else pa.string(),
        "tuple": pa.int32(),
        "name": pa.string(),
        "value": pa.string(),
    }
    return pa.schema(types)


def tuples_of(batches: Iterable[pa.RecordBatch], shard: Group, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Ask a shard what its patterns return for documents that were read."""
    index: Any = opened_as(shard.place, shard.digest, lambda place: room_at(place).open(place, verify=False))
    rows: list[tuple[Any, ...]] = []
    size = 0
    for batch in batches:
        for event in read_events(batch, index.room_name):
            for row in _of_event(index, event):
                rows.append(row)
                size += len(row[-1])
                if size > TUPLES_SIZE:
                    yield _batch(rows, schema)
                    rows, size = [], 0
    yield _batch(rows, schema)


def _of_event(index: XmlIndex, event: Event) -> Iterator[tuple[Any, ...]]:
    """List what patterns return for an event; a pattern that returns too much is told, and stops no other."""
    refused: dict[Id, str] = {}
    for identity, answer in index.answers(event, refused).items():
        tuples = answer.tuples(MOST_TUPLES)
        for number, row in enumerate(tuples.written(), 1):
            for name, value in zip(tuples.names, row, strict=True):
                yield event.id, identity, number, name, value
        if not tuples.complete:
            yield event.id, identity, MOST_TUPLES + 1, CUT, f"more than {MOST_TUPLES} tuples"
    for identity, reason in refused.items():
        yield event.id, identity, 0, TOO_MUCH, reason


def _batch(rows: list[tuple[Any, ...]], schema: pa.Schema) -> pa.RecordBatch:
    columns = zip(*rows, strict=True) if rows else [()] * len(schema)
    arrays = [pa.array(list(column), kind) for column, kind in zip(columns, schema.types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _told(left_out: list[Omission]) -> pa.Table:
    """Write filters that were left out as rows of the rejected table: the event and the subscription."""
    rows = [
        json.dumps({"id": event, "subscription": subscription}, ensure_ascii=False)
        for event, subscription, _ in left_out
    ]
    columns = [pa.array(rows, pa.string()), pa.array([each.reason for each in left_out], pa.string())]
    return pa.table(columns, names=[ROW, REASON])


def columns_of(task: FrameTask) -> dict[str, str]:
    """Say in which order the columns of answers stand in a table of matches, and how they are called."""
    names = task.question.columns(numbered=task.numbered)
    called = {VALUE if name == SCORE else name: name for name in names}
    return {EVENT_ID: EVENT_ID, **called, **({KEY: KEY} if task.keyed else {})}


def matches_schema(task: FrameTask, id_type: str) -> pa.Schema:
    """Return the columns of a table of matches; ids of events are `long` or `string`."""
    types = {**match_types(task), EVENT_ID: pa.int64() if id_type == "long" else pa.string(), KEY: pa.int64()}
    return pa.schema({called: types[name] for name, called in columns_of(task).items()})
