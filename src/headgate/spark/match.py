"""The match job: a table of events to a table of matches, and a table of the events that were refused.

events -> survey -> rejected, types of the ids
       -> match (in parallel, against the mapped snapshot) -> matches
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as sf
from pyspark.sql.types import IntegralType

from headgate.core.event import ID
from headgate.core.snapshot import open_snapshot
from headgate.core.values import fold
from headgate.errors import TableError
from headgate.records.index import ROOM, RecordIndex
from headgate.spark.matching import (
    NUMBERS,
    REASON,
    ROW,
    SURVEY_DDL,
    TEXTS,
    Task,
    match_columns,
    match_lines,
    survey_lines,
)
from headgate.spark.progress import watch
from headgate.spark.session import spark_errors
from headgate.spark.tables import BROKEN, VALUE, Format, check_input, check_output, read_csv, write_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_REASON = "_reason"


@dataclass(frozen=True)
class Batch:
    """One batch of events in a worker: when it began, how long it took, how many events."""

    task: int
    start: float
    seconds: float
    events: int


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


@dataclass(frozen=True)
class _Survey:
    """The events to match, those refused, and what is known of the ids before matching."""

    events: DataFrame
    refused: DataFrame
    cached: DataFrame
    count: int
    event_type: str
    unknown: tuple[str, ...]


def match_events(
    session: SparkSession, snapshot: str, events: str, output: str, *, rejected: str, quiet: bool = False
) -> Matched:
    """Match a table of events against a snapshot; write (event_id, subscription_id) to `output`.

    Events that cannot be read go to the table `rejected` with the reason.
    """
    form = check_input(events)
    check_output(output)
    check_output(rejected)
    place = Path(snapshot).absolute()
    index = RecordIndex.open(place)
    digest = open_snapshot(place, ROOM, verify=False).digest
    with spark_errors(), tempfile.TemporaryDirectory(prefix="headgate-") as notes:
        with watch(session, "reading events", quiet=quiet) as surveying:
            survey = _survey(session, events, form, index)
            refused = survey.refused.count()
            write_table(survey.refused, rejected)
        local = (session.sparkContext.master or "").startswith("local")
        kind = "long" if index.numbered else "string"
        task = Task(str(place), digest, survey.event_type, kind, notes if local else None)
        work = match_lines if form is Format.JSONL else match_columns
        with watch(session, "matching", quiet=quiet) as matching:
            matches = survey.events.mapInArrow(partial(work, task=task), task.ddl)
            write_table(matches, output)
        survey.cached.unpersist()
        found = _count(session, output)
        batches = _read_notes(Path(notes))
    return Matched(survey.count, refused, found, survey.unknown, surveying.seconds, matching.seconds, batches)


def _survey(session: SparkSession, path: str, form: Format, index: RecordIndex) -> _Survey:
    if form is Format.JSONL:
        return _survey_lines(session, path)
    table = read_csv(session, path, typed=True) if form is Format.CSV else session.read.parquet(path)
    return _survey_columns(table, path, index)


def _survey_lines(session: SparkSession, path: str) -> _Survey:
    """Read every line once to find those that are no events. No shuffle."""
    lines = session.read.text(path).select(sf.col(VALUE).cast("binary"))
    # Cached, because it is asked three times and is small: one row a batch and the refused lines.
    survey = lines.mapInArrow(survey_lines, SURVEY_DDL).persist()
    totals = survey.agg(sf.sum(NUMBERS).alias(NUMBERS), sf.sum(TEXTS).alias(TEXTS)).collect()[0]
    numbers, texts = totals[NUMBERS] or 0, totals[TEXTS] or 0
    refused = survey.where(sf.col(REASON).isNotNull()).select(ROW, REASON)
    return _Survey(lines, refused, survey, numbers + texts, "string" if texts else "long", ())


def _survey_columns(table: DataFrame, path: str, index: RecordIndex) -> _Survey:
    """Set rows without an id and broken lines aside, and keep the columns that filters name. No shuffle."""
    names = {fold(name): name for name in table.columns if name != BROKEN}
    if not table.columns:
        empty = table.sparkSession.createDataFrame([], f"{ROW} string, {REASON} string")
        return _Survey(table.withColumn(ID, sf.lit("")), empty, empty, 0, "string", ())
    if ID not in names:
        raise TableError(f"{path} has no column {ID!r}; its columns are {', '.join(sorted(names.values()))}")
    identity = sf.col(f"`{names[ID]}`")
    broken = sf.col(BROKEN).isNotNull() if BROKEN in table.columns else sf.lit(False)
    line = sf.to_json(sf.struct(*[sf.col(f"`{name}`") for name in names.values()]))
    table = table.withColumn(
        _REASON,
        sf.when(broken, sf.lit("the line does not fit the header, or a value its column's type")).when(
            identity.isNull(), sf.lit("the event has no id: give the field 'id' as text or a whole number")
        ),
    )
    raw = sf.col(BROKEN) if BROKEN in table.columns else sf.lit(None)
    wrong = sf.col(_REASON).isNotNull()
    refused = table.where(wrong).select(sf.coalesce(raw, line).alias(ROW), sf.col(_REASON).alias(REASON))
    good = table.where(~wrong)
    whole = isinstance(table.schema[names[ID]].dataType, IntegralType)
    kind = "long" if whole else "string"
    wanted = {path[0] for path in index.built.attributes} - {ID}
    kept = [sf.col(f"`{names[name]}`") for name in sorted(wanted) if name in names]
    events = good.select(identity.cast(kind).alias(ID), *kept)
    unknown = tuple(name for name in index.attributes if fold(name.split(".")[0]) not in names)
    return _Survey(events, refused, refused, good.count(), kind, unknown)


def _count(session: SparkSession, output: str) -> int:
    """Count what was written, from what was written."""
    if output.rstrip("/").endswith(".parquet") or Path(output).is_dir():
        return session.read.parquet(output).count()
    with Path(output).open("rb") as file:
        lines = sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(1 << 20), b""))
    return lines - (1 if output.endswith(".csv") else 0)


def _read_notes(directory: Path) -> tuple[Batch, ...]:
    found: list[Batch] = []
    for file in sorted(directory.glob("task-*.json")):
        number = int(file.stem.removeprefix("task-"))
        found.extend(Batch(number, *entry) for entry in json.loads(file.read_text("utf-8")))
    return tuple(sorted(found, key=lambda batch: batch.start))
