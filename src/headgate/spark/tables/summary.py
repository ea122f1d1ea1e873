"""Questions about tables that a job wrote, answered by Spark: who gets most, why rows were refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as sf

from headgate.core.values import fold
from headgate.records.index.index import EVENT_ID, SUBSCRIPTION_ID
from headgate.spark.session.progress import watch
from headgate.spark.session.session import spark_errors
from headgate.spark.session.settings import in_own_session
from headgate.spark.tables.tables import column, read_columns, read_csv, read_parquet, reader, source_of
from headgate.tables.lines import BROKEN
from headgate.tables.places import Format, check_input, format_of
from headgate.tables.summary import LONGEST, PARTICULARS, REASON, Refusal, Summary, summed, with_others

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@in_own_session
def refusals_of(session: SparkSession, path: str) -> tuple[Refusal, ...]:
    """Count the rows of a table of refused ones by kind of reason, most first. Shuffles the reasons.

    The last one takes in what is beyond `MOST` kinds.
    """
    with spark_errors():
        table = _read(session, path)
        if table is None:
            return ()
        name = next(each for each in table.columns if fold(each) == REASON)
        kind = column(name)
        for pattern, instead in PARTICULARS:
            kind = sf.regexp_replace(kind, pattern, instead)
        # Tables of events have the row as one column; those of other rows have columns of their own.
        others = [column(each) for each in table.columns if each != name]
        row = others[0].cast("string") if len(others) == 1 else sf.to_json(sf.struct(*others))
        example = sf.left(sf.concat_ws(", in ", column(name), row), sf.lit(LONGEST))
        found = (
            table.select(kind.alias("kind"), example.alias("example"))
            .groupBy("kind")
            # The first and the last: any number of rows in no memory, and always the same.
            .agg(
                sf.count("*").alias("rows"), sf.min("example").alias("first"), sf.max("example").alias("last")
            )
            .orderBy(sf.col("rows").desc(), "kind")
            .collect()
        )
    refusals = [
        Refusal(each["kind"] or "", each["rows"], tuple(dict.fromkeys((each["first"], each["last"]))))
        for each in found
    ]
    return with_others(refusals)


def _read(session: SparkSession, path: str) -> DataFrame | None:
    """Read the table; None if it has no columns, because nothing was refused."""
    form = check_input(path)
    if form is Format.PARQUET:
        table = read_parquet(session, path)
    elif form is Format.CSV:
        table = read_csv(session, path, typed=False).drop(BROKEN)
    else:
        table = reader(session, path).json(source_of(path))
    return table if REASON in map(fold, table.columns) else None


@in_own_session
def summarise(
    session: SparkSession, matches: str, events: int, *, top: int = 10, quiet: bool = False
) -> Summary:
    """Count a table of matches by event and by subscription. Shuffles twice."""
    with spark_errors(), watch(session, "summing up", quiet=quiet):
        table = _read_matches(session, matches)
        per_event = table.groupBy(EVENT_ID).count()
        spread = {
            row["count"]: row["events"]
            for row in per_event.groupBy("count").agg(sf.count("*").alias("events")).collect()
        }
        order = [sf.col("count").desc(), sf.col(SUBSCRIPTION_ID)]
        busiest = table.groupBy(SUBSCRIPTION_ID).count().orderBy(*order).limit(top).collect()
    return summed(spread, [(row[SUBSCRIPTION_ID], row["count"]) for row in busiest], events, top)


def _read_matches(session: SparkSession, matches: str) -> DataFrame:
    form = format_of(matches)
    if form is Format.JSONL:
        # Without any match there would be no columns.
        ids = ", ".join(f"{name} string" for name in (EVENT_ID, SUBSCRIPTION_ID))
        return session.read.schema(ids).json(source_of(matches))
    return read_columns(session, matches, form, typed=False)
