"""The match job: a table of events to a table of matches, and a table of the events that were refused.

events -> judge -> rejected, types of the ids
       -> match (in parallel, against the mapped snapshot) -> matches
       -> the best k of each event on each shard -> merge -> the best k of each event

A Parquet table of matches is written by the workers themselves where all of them see the driver's files;
else, and in other formats, by Spark.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from dataclasses import dataclass
from functools import partial, reduce
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
from pyspark.accumulators import AccumulatorParam
from pyspark.sql import DataFrame

from headgate.contents.registry import kind_of
from headgate.core.omission import Omission
from headgate.runtime.targets import open_target
from headgate.spark.match.graph_matching import Sources
from headgate.spark.match.matching import CODECS, FILE, FILE_DDL, REASON, ROW, Task, write_matches
from headgate.spark.match.reading import read_given, read_records
from headgate.spark.match.top import merged, with_key
from headgate.spark.match.tuples import write_tuples
from headgate.spark.session.progress import watch
from headgate.spark.session.session import spark_errors
from headgate.spark.shards.matching import match_routed
from headgate.spark.tables.places import Format, format_of, is_remote, local
from headgate.spark.tables.requests import check_match
from headgate.spark.tables.tables import replacing, write_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyspark.sql import SparkSession

    from headgate.contents.kind import Feeds
    from headgate.runtime.questions import Top
    from headgate.runtime.targets import Target
    from headgate.spark.tables.events import Given, Work


@dataclass(frozen=True)
class Batch:
    """One batch of events in a worker: when it began, how long it took, how many events."""

    task: int
    start: float
    seconds: float
    events: int
    spent: tuple[float, ...] = ()
    """Seconds of the worker's CPU, for each of `matching.STAGES`."""


@dataclass(frozen=True)
class Matched:
    """What the job did."""

    events: int
    rejected: int
    matches: int
    unknown_attributes: tuple[str, ...]
    """Attributes that filters name and the events' table lacks: NULL in every event."""
    survey_seconds: float
    match_seconds: float
    batches: tuple[Batch, ...]
    feeds: Feeds | None = None
    """What was read of RSS feeds, if there were any."""
    shards: int = 1
    met: int = 0
    """How often an event met a shard, of at most events times shards; the others could not match there."""
    left_out: int = 0
    """Filters that were too much for an event, for each event; they are in the rejected table, too."""


class _Gathered(AccumulatorParam[dict[Omission, None]]):
    """Gathers what workers tell."""

    def zero(self, value: dict[Omission, None]) -> dict[Omission, None]:
        """Begin with nothing."""
        del value
        return {}

    def addInPlace(  # noqa: N802 -- Spark's name
        self, value1: dict[Omission, None], value2: dict[Omission, None]
    ) -> dict[Omission, None]:
        """Put two together."""
        return value1 | value2


def match_events(
    session: SparkSession,
    snapshot: str,
    events: str,
    output: str,
    *,
    rejected: str,
    graph: bool | None = None,
    top: Top | None = None,
    content_type: str | None = None,
    tuples: str | None = None,
    quiet: bool = False,
) -> Matched:
    """Match a table of events against a snapshot; write (event_id, subscription_id) to `output`.

    With `top`, only the best of each event, with the columns score and rank.

    Events that cannot be read go to the table `rejected` with the reason; so do those that come from no node
    of the snapshot's graph. A filter that is too much for an event is left out of it, and is a row of
    `rejected` with the event's id, the subscription's and the reason. A snapshot that has a graph is matched
    with it; `graph` can only insist.

    Against patterns over RDF or XML, events are documents: rows of a table, or files. `content_type` is that
    of rows that name none, and of files whatever their names. What patterns over XML return goes to the table
    `tuples`, if one is named.
    """
    check_match(snapshot, events, output, rejected=rejected, content_type=content_type, tuples=tuples)
    target = open_target(snapshot, graph=graph, top=top)
    sources = Sources(target.shards, target.numbered_nodes) if target.graph else None
    with spark_errors(), tempfile.TemporaryDirectory(prefix="headgate-") as notes:
        with watch(session, "reading events", quiet=quiet) as surveying:
            given = _read(session, events, target, sources, content_type, best=top is not None)
            judged = given.judged
            write_table(judged.refused, rejected)
        here = (session.sparkContext.master or "").startswith("local")
        codec = (session.conf.get("spark.sql.parquet.compression.codec") or "").lower()
        met = session.sparkContext.accumulator(0)
        left_out = session.sparkContext.accumulator(dict[Omission, None](), _Gathered())
        meetings = target.meetings(top)
        first = Task(
            *meetings[0][0],
            judged.id_type,
            "long" if target.numbered else "string",
            notes if here else None,
            codec=codec,
            numbered_nodes=target.numbered_nodes,
            top=top,
            keyed=top is not None and len(meetings) > 1,
            met=met,
            left_out=left_out,
        )
        tasks = [first._replace(snapshot=each.place, digest=each.digest) for each, _ in meetings]
        works: list[Work] = [partial(match_routed, work=given.work, route=route) for _, route in meetings]
        rows = given.rows
        with watch(session, "matching", quiet=quiet) as matching:
            if top is not None and first.keyed:
                found = _mapped(with_key(rows), works, tasks, first.ddl)
                write_table(merged(found, top.k), output)
            elif here and codec in CODECS and format_of(output) is Format.PARQUET and not is_remote(output):
                _write(rows, works, tasks, output)
            else:
                write_table(_mapped(rows, works, tasks, first.ddl), output)
        if tuples is not None:
            with watch(session, "writing tuples", quiet=quiet):
                shards = [shard for shard, _ in meetings]
                write_tuples(rows, shards, judged.id_type, target.numbered, tuples)
        if left_out.value:
            # Written anew: what is read of the events is kept until here.
            write_table(judged.refused.union(_told(session, left_out.value)), rejected)
        judged.forget()
        count = _count(session, output)
        batches = _read_notes(Path(notes))
    return Matched(
        events=judged.count,
        rejected=judged.rejected,
        matches=count,
        unknown_attributes=given.unknown,
        survey_seconds=surveying.seconds,
        match_seconds=matching.seconds,
        batches=batches,
        feeds=given.feeds,
        shards=len(target.shards),
        met=met.value,
        left_out=len(left_out.value),
    )


def _told(session: SparkSession, left_out: Iterable[Omission]) -> DataFrame:
    """Write filters that were left out as rows of the rejected table: the event and the subscription."""
    rows = [
        (json.dumps({"id": event, "subscription": subscription}, ensure_ascii=False), reason)
        for event, subscription, reason in left_out
    ]
    return session.createDataFrame(rows, f"{ROW} string, {REASON} string")


def _read(
    session: SparkSession,
    events: str,
    target: Target,
    sources: Sources | None,
    content_type: str | None,
    *,
    best: bool,
) -> Given:
    """Read events as the content room of the filters wants them."""
    if not kind_of(target.content).documents:
        return read_records(session, events, target, sources, best=best)
    return read_given(session, events, target.content, sources, content_type)


def _mapped(rows: DataFrame, works: Sequence[Work], tasks: Sequence[Task], ddl: str) -> DataFrame:
    """Have workers go through all events once for each shard. No shuffle."""
    each = [partial(work, task=task) for work, task in zip(works, tasks, strict=True)]
    return reduce(DataFrame.union, [rows.mapInArrow(work, ddl) for work in each])


def _write(rows: DataFrame, works: Sequence[Work], tasks: Sequence[Task], output: str) -> None:
    """Have the workers write a local Parquet table. No shuffle.

    They write into a folder inside the one that is to be the table; only files of tasks that came to their
    end are moved up. A task that Spark gave up and that writes on does so into a folder that is gone.
    """
    with replacing(output) as folder:
        # The name is one that readers of tables pass over, too.
        parts = folder / "_temporary"
        parts.mkdir(parents=True)
        tasks = [task._replace(parts=str(parts)) for task in tasks]
        writing = [partial(write_matches, match=work) for work in works]
        done = _mapped(rows, writing, tasks, FILE_DDL).collect()
        for row in done:
            (parts / row[FILE]).rename(folder / row[FILE])
        if not done:
            # Else the table would have no columns.
            tasks[0].writer(folder / f"part-00000.{tasks[0].codec}.parquet").close()
        shutil.rmtree(parts)
        (folder / "_SUCCESS").touch()


def _count(session: SparkSession, output: str) -> int:
    """Count what was written, from what was written."""
    form = format_of(output)
    if form is Format.PARQUET:
        if is_remote(output):
            return session.read.parquet(output).count()
        return sum(pq.read_metadata(file).num_rows for file in local(output).glob("*.parquet"))
    lines, quoted = 0, False
    with local(output).open("rb") as file:
        for chunk in iter(lambda: file.read(1 << 20), b""):
            # JSON escapes line ends; in CSV those between quotes belong to an id.
            for number, piece in enumerate(chunk.split(b'"') if form is Format.CSV else [chunk]):
                quoted ^= number > 0
                lines += 0 if quoted else piece.count(b"\n")
    return lines - (form is Format.CSV)


def _read_notes(directory: Path) -> tuple[Batch, ...]:
    found: list[Batch] = []
    for file in sorted(directory.glob("task-*.json")):
        number = int(file.stem.removeprefix("task-"))
        for start, seconds, events, spent in json.loads(file.read_text("utf-8")):
            found.append(Batch(number, start, seconds, events, tuple(spent)))
    return tuple(sorted(found, key=lambda batch: batch.start))
