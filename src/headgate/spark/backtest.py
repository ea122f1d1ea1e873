"""The backtest job: one filter over historic events, evaluated by Spark SQL itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import to_arrow_schema

from headgate.core.event import ID
from headgate.core.schema import Schema
from headgate.core.values import dotted, fold
from headgate.errors import TableError
from headgate.records.model import predicates
from headgate.records.parse import parse_filter
from headgate.spark.progress import watch
from headgate.spark.session import spark_errors
from headgate.spark.tables import BROKEN, Format, check_input, check_output, read_csv, write_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Backtested:
    """What the filter would have done."""

    events: int
    matches: int
    rejected: int
    """Lines that Spark could not read as events."""
    sample: tuple[str, ...]
    """Ids of some events that match."""
    seconds: float


def backtest(
    session: SparkSession, filter_text: str, events: str, *, output: str | None = None, quiet: bool = False
) -> Backtested:
    """Count the events that a filter would have matched; with `output`, write those events there.

    The text is parsed by us first, so a filter that passes here can be subscribed with as it is.
    """
    tree = parse_filter(filter_text)
    form = check_input(events)
    if output is not None:
        check_output(output)
    with spark_errors(), watch(session, "backtesting", quiet=quiet) as timing:
        table = _read(session, events, form)
        _check_attributes(table, {found.attribute.path for found in predicates(tree)}, events)
        holds = sf.expr(filter_text)
        broken = sf.col(BROKEN).isNotNull() if BROKEN in table.columns else sf.lit(False)
        totals = table.agg(
            sf.count_if(~broken).alias("events"),
            sf.count_if(holds & ~broken).alias("matches"),
            sf.count_if(broken).alias("rejected"),
        ).collect()[0]
        matching = table.where(holds & ~broken).drop(BROKEN)
        identity = next((name for name in matching.columns if fold(name) == ID), None)
        sample = matching.select(sf.col(identity).cast("string")).limit(5).collect() if identity else []
        if output is not None:
            write_table(matching, output)
    return Backtested(
        events=totals["events"],
        matches=totals["matches"],
        rejected=totals["rejected"],
        sample=tuple(str(row[0]) for row in sample),
        seconds=timing.seconds,
    )


def _read(session: SparkSession, path: str, form: Format) -> DataFrame:
    if form is Format.PARQUET:
        return session.read.parquet(path)
    if form is Format.CSV:
        return read_csv(session, path, typed=True)
    return session.read.json(path, columnNameOfCorruptRecord=BROKEN)


def _check_attributes(table: DataFrame, paths: set[tuple[str, ...]], events: str) -> None:
    """Refuse a filter over attributes that no event has: most often a name is misspelt."""
    schema = Schema.from_arrow(to_arrow_schema(table.schema))
    for path in sorted(paths - set(schema.types)):
        near = schema.nearest(path)
        hint = f"; did you mean {near}?" if near else ""
        raise TableError(f"no event of {events} has the attribute {dotted(path)}{hint}")
