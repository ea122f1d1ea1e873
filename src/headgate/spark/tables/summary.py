"""Questions about a table of matches, answered by Spark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as sf

from headgate.records.index.index import EVENT_ID, SUBSCRIPTION_ID
from headgate.spark.session.progress import watch
from headgate.spark.session.session import spark_errors
from headgate.spark.tables.places import Format, for_reading, format_of
from headgate.spark.tables.tables import read_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from headgate.core.event import Id


@dataclass(frozen=True)
class Summary:
    """How many events have how many matches, and who gets most."""

    events_by_matches: dict[int, int]
    busiest: tuple[tuple[Id, int], ...]


def summarise(
    session: SparkSession, matches: str, events: int, *, top: int = 10, quiet: bool = False
) -> Summary:
    """Count a table of matches by event and by subscription. Shuffles twice."""
    with spark_errors(), watch(session, "summing up", quiet=quiet):
        table = _read(session, matches)
        per_event = table.groupBy(EVENT_ID).count()
        spread = {
            row["count"]: row["events"]
            for row in per_event.groupBy("count").agg(sf.count("*").alias("events")).collect()
        }
        order = [sf.col("count").desc(), sf.col(SUBSCRIPTION_ID)]
        busiest = table.groupBy(SUBSCRIPTION_ID).count().orderBy(*order).limit(top).collect()
    silent = events - sum(spread.values())
    if silent:
        spread[0] = silent
    return Summary(spread, tuple((row[SUBSCRIPTION_ID], row["count"]) for row in busiest))


def _read(session: SparkSession, matches: str) -> DataFrame:
    form = format_of(matches)
    if form is Format.JSONL:
        # Without any match there would be no columns.
        ids = ", ".join(f"{name} string" for name in (EVENT_ID, SUBSCRIPTION_ID))
        return session.read.schema(ids).json(for_reading(matches))
    return read_columns(session, matches, form, typed=False)
