"""The match job: a table of events to a table of matches, and a table of the events that were refused.

events -> judge -> rejected, types of the ids
       -> match (in parallel, against the mapped snapshot) -> matches
       -> the best k of each event on some shards -> merge -> the best k of each event
"""

from __future__ import annotations

import json
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from headgate.errors import TableError
from headgate.runtime.statistics import add_statistics, unpack_statistics, with_all
from headgate.runtime.targets import open_target
from headgate.spark.jobs.match.running import MatchRun, read_notes
from headgate.spark.jobs.match.tuples import write_tuples
from headgate.spark.session.progress import watch
from headgate.spark.session.session import spark_errors
from headgate.spark.session.settings import in_own_session
from headgate.spark.tables.elsewhere import changing_together
from headgate.spark.tables.tables import write_table
from headgate.tables.event_rows import REASON, ROW
from headgate.tables.places import local
from headgate.tables.requests import check_match
from headgate.tables.results import MatchResult
from headgate.tables.utf8 import STRANGE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import DataFrame, SparkSession

    from headgate.core.omission import Omission
    from headgate.runtime.questions import Top
    from headgate.runtime.targets import Target


@in_own_session
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
    stats: str | None = None,
    results: int | None = None,
    quiet: bool = False,
) -> MatchResult:
    """Match a table of events against a snapshot; write (event_id, subscription_id) to `output`.

    With `top`, only the best of each event, with the columns score and rank. With `results`, the columns
    results and complete: what each match gives, in so many rows at most.

    Events that cannot be read go to the table `rejected` with the reason; so do those that come from no node
    of the snapshot's graph. A filter that is too expensive for an event is left out of it, and is a row of
    `rejected` with the event's id, the subscription's and the reason. A snapshot that has a graph is matched
    with it; `graph` can only insist.

    Against patterns over RDF or XML, events are documents: rows of a table, or files. `content_type` is that
    of rows that name none, and of files whatever their names. What patterns over XML return goes to the table
    `tuples`, if one is named. Statistics of the subscriptions are added to the file `stats`, if one is named.
    """
    more = {"content_type": content_type, "tuples": tuples, "stats": stats}
    check_match(snapshot, events, output, rejected=rejected, results=results, **more)
    target = open_target(snapshot, graph=graph, top=top)
    run = partial(
        _match_events,
        session,
        target,
        events,
        output,
        rejected=rejected,
        top=top,
        content_type=content_type,
        tuples=tuples,
        stats=stats,
        results=results,
        quiet=quiet,
    )
    try:
        return run(texts=False)
    except TableError as error:
        if STRANGE not in str(error):
            raise
    # It is rare, and to look for it takes another pass over the table: so it is looked for now.
    return run(texts=True)


def _match_events(
    session: SparkSession,
    target: Target,
    events: str,
    output: str,
    *,
    rejected: str,
    top: Top | None,
    content_type: str | None,
    tuples: str | None,
    stats: str | None,
    results: int | None,
    quiet: bool,
    texts: bool,
) -> MatchResult:
    begun = time.time()
    places = [output, rejected, tuples, stats]
    with (
        spark_errors(),
        tempfile.TemporaryDirectory(prefix="headgate-") as folder,
        changing_together(session, places) as changes,
    ):
        job = MatchRun(session, target, top, Path(folder), results, counts=stats is not None)
        with watch(session, "reading events", quiet=quiet) as surveying:
            job.read(events, content_type, texts=texts)
        with (
            watch(session, "matching", quiet=quiet) as matching,
            job.matched(changes.staged(output)) as found,
        ):
            if tuples is not None:
                with watch(session, "writing tuples", quiet=quiet):
                    assert job.given is not None
                    write_tuples(job.rows, target, found.id_type, changes.staged(tuples))
            refused = found.refused
            if job.left_out.value:
                refused = refused.union(_told(session, job.left_out.value))
            write_table(refused, changes.staged(rejected))
            if stats is not None and job.statistics is not None:
                told = with_all(unpack_statistics(job.statistics.value.values()), target.ids(), found.events)
                to = Path(changes.staged(stats))
                add_statistics(local(stats), told, found.events, begun, to=to, held=changes.held)
        job.forget()
        batches = read_notes(Path(folder))
    return MatchResult(
        events=found.events,
        rejected=found.rejected,
        matches=found.matches,
        unknown_attributes=() if job.given is None else job.given.unknown,
        meant={} if job.given is None else job.given.meant,
        survey_seconds=surveying.seconds,
        match_seconds=matching.seconds,
        batches=batches,
        feeds=None if job.given is None else job.given.feeds,
        shards=len(target.shards),
        met=job.met.value,
        left_out=len(job.left_out.value),
    )


def _told(session: SparkSession, left_out: Iterable[Omission]) -> DataFrame:
    """Write filters that were left out as rows of the rejected table: the event and the subscription."""
    rows = [
        (json.dumps({"id": event, "subscription": subscription}, ensure_ascii=False), reason)
        for event, subscription, reason in left_out
    ]
    return session.createDataFrame(rows, f"{ROW} string, {REASON} string")
